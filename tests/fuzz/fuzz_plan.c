/* SPDX-License-Identifier: BSD-3-Clause */
/* Plan lines: what is read, printed and read again is the same plan, and prints the same line. What is read
 * is planned, for a small problem, a large one and a long one: refused with a sentence, or with numbers that
 * count. */
#include "fuzz.h"
#include "tune/tune.h"

static void plan_it(const struct mx_plan *plan) {
    static const struct mx_problem problems[] = {
        {.nx = 13, .ny = 11, .nz = 17, .nt = 9, .h = 1, .stencil = "star7"},
        {.nx = 1 << 20, .ny = 1 << 19, .nz = 1 << 17, .nt = 1000, .h = 8, .stencil = "star49"},
        {.nx = 20,
         .ny = 300,
         .nz = 20,
         .nt = INT64_C(1) << 40,
         .h = 2,
         .dtype = MX_F32,
         .stencil = "star13"}};
    static const struct mx_machine machine = {.cores = 8,
                                              .sockets = 2,
                                              .numa_nodes = 2,
                                              .l1_bytes = 1 << 15,
                                              .l2_bytes = 1 << 20,
                                              .l3_bytes = 1 << 25,
                                              .memory_bytes = UINT64_C(1) << 40};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        static struct mx_tune_result result;
        struct mx_tune_request q = {.problem = &problems[i],
                                    .machine = &machine,
                                    .dram_bytes = UINT64_C(1) << (i == 1 ? 39 : 28),
                                    .threads = 8};
        q.style = strncmp(plan->algorithm, "direct", 6) == 0 ? MX_TUNE_MAPPED : MX_TUNE_TRANSFER;
        mx_why why = {0};
        const int err = mx_tune_plan(&q, plan, &why, &result);
        if (err < 0) fuzz_check_refusal(err, &why);
        FUZZ_CHECK(err <= 0);
        FUZZ_CHECK(err < 0 || mx_plan_check(plan, &why) == 0);
        if (err == 0)
            FUZZ_CHECK(result.traffic.read_bytes >= 0 && result.traffic.write_bytes >= 0 &&
                       result.traffic.updates >= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *line = fuzz_text(data, bytes), printed[MX_PLAN_LINE_BYTES], again[MX_PLAN_LINE_BYTES];
    struct mx_plan plan, second;
    mx_why why = {0};
    int err = mx_plan_parse(line, &why, &plan);
    free(line);
    if (err != 0) {
        fuzz_check_refusal(err, &why);
        return 0;
    }
    mx_plan_print(&plan, printed, sizeof printed);
    FUZZ_CHECK(strlen(printed) + 1 < sizeof printed);
    FUZZ_CHECK(mx_plan_parse(printed, &why, &second) == 0);
    mx_plan_print(&second, again, sizeof again);
    FUZZ_CHECK(strcmp(printed, again) == 0);
    FUZZ_CHECK(memcmp(&plan, &second, sizeof plan) == 0);
    plan_it(&plan);
    return 0;
}
