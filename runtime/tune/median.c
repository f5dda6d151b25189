/* SPDX-License-Identifier: BSD-3-Clause */
/* median.c - the median of a few measurements. */
#include "tune/calibrate.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void mx_sort_values(double *values, size_t n) { qsort(values, n, sizeof values[0], by_value); }

double mx_median(double *values, size_t n) {
    mx_sort_values(values, n);
    return values[n / 2];
}
