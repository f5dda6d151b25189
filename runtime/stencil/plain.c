/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.c - one cell at a time, straight from the expression in stencil.c: the oracle of every other kernel.
 */
#include "stencil/kernels.h"

#define CELL double
#define DTYPE MX_F64
#define NAME(x) x##_f64
#include "plain.inc"
#undef CELL
#undef DTYPE
#undef NAME

#define CELL float
#define DTYPE MX_F32
#define NAME(x) x##_f32
#include "plain.inc"

const mx_kernel_table mx_kernels_plain = {
    [MX_STAR] = {[MX_F64] = star_f64, [MX_F32] = star_f32},
    [MX_EDGE19] = {[MX_F64] = edge19_f64, [MX_F32] = edge19_f32},
    [MX_BOX27] = {[MX_F64] = box27_f64, [MX_F32] = box27_f32},
};
