/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.h - inside stencil/ only: the kernel tables that stencil.c dispatches on. */
#ifndef MX_KERNELS_H
#define MX_KERNELS_H

#include "stencil/stencil.h"

enum mx_shape_kind { MX_STAR, MX_EDGE19, MX_BOX27, MX_SHAPES };

/* [shape][dtype]; a star kernel serves every radius. NULL = none. */
typedef mx_kernel_fn *const mx_kernel_table[MX_SHAPES][2];

typedef mx_tile_fn *const mx_tile_table[MX_SHAPES][2];
/* Rows that they compute together. */
typedef const int32_t mx_rows_table[MX_SHAPES];

extern const mx_kernel_table mx_kernels_plain;
#if defined(__x86_64__)
extern const mx_kernel_table mx_kernels_avx2, mx_kernels_avx512;
extern const mx_tile_table mx_tiles_avx2, mx_tiles_avx512, mx_spans_avx2, mx_spans_avx512;
extern mx_rows_table mx_rows_avx2, mx_rows_avx512;
#endif

/* Kernels with h = 1 walk wide patches in columns of this many bytes. Measured with 32 and 48 KiB of L1, a
 * quarter less and twice as much are both slower. */
enum { MX_COLUMN_BYTES = 1024 };

#endif
