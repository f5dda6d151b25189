/* SPDX-License-Identifier: BSD-3-Clause */
/* rates.c - how long a core takes for operations on whole vectors of the instruction set that this file is
 * compiled for (RATES_ISA: cmake/bench.cmake). */
#include "rates.h"

#include "machine/clock.h"

#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)

#if defined(__AVX512F__)
#define RATES_BYTES 64
#elif defined(__AVX__)
#define RATES_BYTES 32
#else
#define RATES_BYTES 16
#endif
#if defined(__x86_64__)
#define KEEP(v) __asm__ volatile("" : "+v"(v))
#elif defined(__aarch64__)
#define KEEP(v) __asm__ volatile("" : "+w"(v))
#else
#define KEEP(v) __asm__ volatile("" : "+m"(v))
#endif

enum { TURNS = 100000, ROUNDS = 12 };

static char memory[12 * 64] __attribute__((aligned(64)));

static double best(void (*work)(void)) {
    double least = 1e30;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t begin = mx_thread_cpu_ns();
        work();
        const double ns = (double)(mx_thread_cpu_ns() - begin);
        if (ns < least) least = ns;
    }
    return least;
}

#define CELL double
#define NAME(x) x##_f64
#include "rates.inc"
#undef CELL
#undef NAME
#define CELL float
#define NAME(x) x##_f32
#include "rates.inc"

void JOIN(rates, RATES_ISA)(struct rates *out) {
    rates_f64(out->ns[RATE_F64]);
    rates_f32(out->ns[RATE_F32]);
}
