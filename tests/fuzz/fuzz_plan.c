/* SPDX-License-Identifier: BSD-3-Clause */
/* Plan lines: what is read, printed and read again is the same plan, and prints the same line. */
#include "fuzz.h"
#include "tune/tune.h"

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
    return 0;
}
