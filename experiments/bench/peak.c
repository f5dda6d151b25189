/* SPDX-License-Identifier: BSD-3-Clause */
/* peak.c - simple kernels for the instruction set that this file is compiled for (PEAK_ISA:
 * cmake/bench.cmake). */
#include "peak.h"

#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)
#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)

#define CELL double
#define NAME(x) x##_f64
#include "peak.inc"
#undef CELL
#undef NAME
#define CELL float
#define NAME(x) x##_f32
#include "peak.inc"

/* [way][shape][dtype] */
static mx_kernel_fn *const kernels[][3][2] = {
    {{rows7_f64, rows7_f32}, {rows19_f64, rows19_f32}, {rows27_f64, rows27_f32}},
    {{pairs7_f64, pairs7_f32}, {pairs19_f64, pairs19_f32}, {pairs27_f64, pairs27_f32}},
};
static const char *const names[] = {"rows " TEXT(PEAK_ISA), "pairs of rows " TEXT(PEAK_ISA)};

mx_kernel_fn *JOIN(peak_find, PEAK_ISA)(const struct mx_stencil *stencil, enum mx_dtype dtype, int which,
                                        const char **name) {
    if (which >= (int)(sizeof kernels / sizeof kernels[0])) return NULL;
    *name = names[which];
    return kernels[which][stencil->n_coef - 2][dtype == MX_F32];
}
