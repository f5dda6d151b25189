/* SPDX-License-Identifier: BSD-3-Clause */
/* minmax.h - the lesser and the greater of two numbers. */
#ifndef MX_MINMAX_H
#define MX_MINMAX_H

#include <stdint.h>

static inline int64_t mx_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t mx_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline uint64_t mx_max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline double mx_max_real(double a, double b) { return a > b ? a : b; }
static inline double mx_min_real(double a, double b) { return a < b ? a : b; }

#endif
