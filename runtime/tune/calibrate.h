/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate.h - inside tune/ only: shared by measurements. */
#ifndef MX_TUNE_CALIBRATE_H
#define MX_TUNE_CALIBRATE_H

#include <stddef.h>

/* Everything is measured this many times, in turns, and the median counts. */
enum { TURNS = 3 };
/* Least DRAM for measurements of the engines, where nothing forbids it. */
enum { DEFAULT_MEMORY_BYTES = 128 << 20 };
void mx_sort_values(double *values, size_t n);
/* Sorts n values and returns their median. */
double mx_median(double *values, size_t n);

#endif
