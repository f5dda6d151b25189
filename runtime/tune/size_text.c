/* SPDX-License-Identifier: BSD-3-Clause */
/* size_text.c - bytes as a user reads them. */
#include "tune/size_text.h"

#include <stdio.h>

struct size_text mx_size_text(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct size_text out;
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 6) value /= 1024, unit++;
    snprintf(out.text, sizeof out.text, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return out;
}
