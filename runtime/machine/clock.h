/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - the clock for all times, which never goes back, and the clock of a thread's CPU time. */
#ifndef MX_CLOCK_H
#define MX_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t mx_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* CPU time of the calling thread: what others do on the machine does not count. */
static inline uint64_t mx_thread_cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline double mx_clock_s(void) { return (double)mx_clock_ns() * 1e-9; }
static inline double mx_seconds_since(uint64_t begin_ns) { return (double)(mx_clock_ns() - begin_ns) * 1e-9; }

#endif
