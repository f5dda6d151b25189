/* SPDX-License-Identifier: BSD-3-Clause */
/* size.h - sizes of memory as people read them. */
#ifndef MX_SIZE_TEXT_H
#define MX_SIZE_TEXT_H

#include <stdint.h>
#include <stdio.h>

struct mx_size_text {
    char text[24];
};

/* "640 B", "64 KiB", "31.5 GiB"; `.text` lives to the end of the full expression that calls it. */
static inline struct mx_size_text mx_size(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct mx_size_text out;
    int unit = 0;
    double value = (double)bytes;
    for (; value >= 1023.95 && unit < 6; unit++) value /= 1024;
    snprintf(out.text, sizeof out.text, "%.4g %s", value, units[unit]);
    return out;
}

#endif
