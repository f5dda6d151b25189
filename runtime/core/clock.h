/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MX_CLOCK_H
#define MX_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t mx_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

#endif
