/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate.h - inside tune/ only: what measurements share. */
#ifndef MX_TUNE_CALIBRATE_H
#define MX_TUNE_CALIBRATE_H

#include <stddef.h>

/* Everything is measured so often, in turns; medians count. */
enum { TURNS = 3 };
/* DRAM that the engines are measured in. */
enum { DEFAULT_MEMORY_BYTES = 128 << 20 };
void mx_sort_values(double *values, size_t n);
/* Of n values, which are sorted. */
double mx_median(double *values, size_t n);

#endif
