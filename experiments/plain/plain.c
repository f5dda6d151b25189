/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.c - a kernel's file as a plain OpenMP loop over arrays in DRAM: prints 1e9 steps of a cell per second.
 *
 *     cc -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp -std=gnu17 -I experiments/plain
 *        -DKERNEL='"systems/wave.c"' -DGRID_X=254 -DGRID_Y=254 -DGRID_Z=510 experiments/plain/plain.c -lm
 *     ./a.out STEPS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include KERNEL

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Huge pages; every plane is touched by the thread that computes it; no two arrays begin at the same place of a page. Reals
 * from 0.25 to 0.75, whole numbers 0. */
static void *array(size_t bytes) {
    static int arrays;
    const size_t all = (size_t)mx_plane * (GRID_Z + 2 * MX_RADIUS) * bytes, huge = 2 << 20, off = (size_t)(arrays++ * 320 % 4096);
    char *base = aligned_alloc(huge, (all + off + huge) / huge * huge);
    if (base == NULL) exit(1);
    madvise(base, all, MADV_HUGEPAGE);
    base += off;
#pragma omp parallel for schedule(static)
    for (int64_t z = 0; z < GRID_Z + 2 * MX_RADIUS; z++)
        for (int64_t i = z * mx_plane; i < (z + 1) * mx_plane; i++) {
            const double value = 0.25 + 0.5 * (double)(uint32_t)(i * 2654435761) / 4294967296;
            if (bytes == 8)
                ((double *)base)[i] = value;
            else if (bytes == 4)
                ((float *)base)[i] = (float)value;
            else
                memset(base + i * (int64_t)bytes, 0, bytes);
        }
    return base;
}

int main(int argc, char **argv) {
    const int64_t steps = argc > 1 ? atoll(argv[1]) : 10;
    void *a[mx_n_state + 1], *b[mx_n_state + mx_n_partner + 1], *fixed[mx_n_fixed + 1];
    for (int i = 0; i < mx_n_state; i++) a[i] = array(mx_state_bytes[i]);
    for (int i = 0; i < mx_n_fixed; i++) fixed[i] = array(mx_fixed_bytes[i]);
    const int staggered = mx_n_partner > 0;
    for (int i = 0; i < (staggered ? mx_n_partner : mx_n_state); i++)
        b[i] = array(staggered ? mx_partner_bytes[i] : mx_state_bytes[i]);
    const double start = now();
    for (int64_t t = 0; t < steps; t++) {
#if STAGGERED
        level_b(a, b, fixed, t);
        level_a(b, a, fixed, t);
#else
        level(t & 1 ? b : a, t & 1 ? a : b, fixed, t);
#endif
    }
    const double seconds = now() - start;
    printf("%.6f\n", (double)steps * GRID_X * GRID_Y * GRID_Z / seconds * 1e-9);
    return 0;
}
