/* SPDX-License-Identifier: BSD-3-Clause */
/* size.h - sizes as people read them, and rounding. */
#ifndef MX_SIZE_H
#define MX_SIZE_H

#include <stdint.h>
#include <stdio.h>

#define MX_MIB (UINT64_C(1) << 20)

struct mx_size_text {
    char text[24];
};

/* "640 B", "64 KiB", "31.5 GiB" */
static inline struct mx_size_text mx_size(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct mx_size_text out;
    int unit = 0;
    double value = (double)bytes;
    for (; value >= 1024 && unit < 6; unit++) value /= 1024;
    snprintf(out.text, sizeof out.text, "%.4g %s", value, units[unit]);
    return out;
}

static inline uint64_t mx_round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
static inline uint64_t mx_round_down(uint64_t value, uint64_t unit) { return value / unit * unit; }

#endif
