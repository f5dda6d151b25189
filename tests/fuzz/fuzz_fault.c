/* SPDX-License-Identifier: BSD-3-Clause */
/* Specs of the backend fault: what is accepted opens, and every request that is taken is completed once. */
#include "fuzz.h"

#include <memext/backend.h>

enum { DEPTH = 8, REQUESTS = 24, BYTES = 4096 };

static struct mx_device_options options = {.backend = "fault:dram", .queue_depth = DEPTH};

/* Delays are real time: those of more than a millisecond would stop the fuzzer. */
static bool is_slow(const char *spec) { return strstr(spec, "delay_us=") != NULL; }

static void transfer(void *state) {
    static char dram[BYTES];
    const struct mx_backend *fault = mx_backend_fault;
    struct mx_completion done[DEPTH];
    uint32_t completed = 0, under_way = 0;
    for (uint64_t tag = 0; tag < REQUESTS; tag++) {
        const struct mx_request r = {
            .offset_bytes = tag * BYTES, .bytes = BYTES, .write = tag & 1, .dram = dram, .tag = tag};
        int taken = fault->submit(state, &r, 1);
        FUZZ_CHECK(taken <= 1);
        if (taken > 0) under_way++;
        int n = under_way > 0 ? fault->reap(state, under_way == DEPTH, DEPTH, done) : 0;
        FUZZ_CHECK(n >= 0 && (uint32_t)n <= under_way);
        for (int i = 0; i < n; i++) {
            FUZZ_CHECK(done[i].tag <= tag && (completed & UINT32_C(1) << done[i].tag) == 0);
            FUZZ_CHECK(done[i].result <= BYTES);
            completed |= UINT32_C(1) << done[i].tag;
        }
        under_way -= (uint32_t)n;
    }
    while (under_way > 0) {
        int n = fault->reap(state, 1, DEPTH, done);
        FUZZ_CHECK(n > 0 && (uint32_t)n <= under_way);
        under_way -= (uint32_t)n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *spec = fuzz_text(data, bytes);
    const struct mx_place place = {.fd = -1, .path = "", .bytes = UINT64_C(1) << 40, .options = &options};
    struct mx_backend_facts facts = {0};
    mx_why why = {0};
    void *state = NULL;
    int err = mx_fault_calls(spec, &why);
    if (err != 0) fuzz_check_refusal(err, &why);
    FUZZ_CHECK(mx_fault_calls(NULL, NULL) == 0 && mx_sys == &mx_sys_kernel);
    /* The wrapper of a mapped backend has a large table: opening takes longer than many specs. */
    if (bytes % 8 != 0) {
        free(spec);
        return 0;
    }
    options.fault = spec;
    err = mx_backend_fault->open(&place, &why, &facts, &state);
    if (err != 0) fuzz_check_refusal(err, &why);
    if (err == 0) {
        if (!is_slow(spec)) transfer(state);
        mx_backend_fault->close(state);
    }
    free(spec);
    return 0;
}
