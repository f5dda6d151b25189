/* SPDX-License-Identifier: BSD-3-Clause */
/* stencil.h - stencil kernels: pointers and strides in, values out. They know nothing of storage, threads or
 * time.
 *
 * Every kernel of a stencil, plain C or SIMD, computes each cell by the same expression in the same order
 * (stated in stencil.c), without contraction to fused multiply-add, so all give the same bits.
 */
#ifndef MX_STENCIL_H
#define MX_STENCIL_H

#include "stencil/rows.h"

struct mx_stencil {
    const char *name;
    const char *summary;
    int32_t h;
    int32_t points;
    double coef[4]; /* defaults: centre, face, edge, corner (0 where the stencil has none) */
    int32_t n_coef; /* coefficients that count */
    int32_t flops;  /* operations of the expression, per cell */
};

extern const struct mx_stencil mx_stencils[]; /* ends with name NULL */
const struct mx_stencil *mx_stencil_find(const char *name);

/* The plain C kernel: the oracle. Never NULL for a stencil of the table. */
mx_kernel_fn *mx_stencil_plain(const struct mx_stencil *stencil, enum mx_dtype dtype);
/* Are there kernels for this instruction set ("avx512", "avx2" or "plain"), and does this CPU have it? */
bool mx_stencil_has_isa(const char *isa);
/* Checks the environment variable MX_ISA, which names the best instruction set that may be used, so that all
 * can be tested on one machine. -EINVAL, with a sentence, if it names one for which mx_stencil_has_isa is
 * false. */
int mx_stencil_isa_check(mx_why *why);
/* Returns the best kernel for this CPU and MX_ISA; `isa` (may be NULL) receives "avx512", "avx2" or "plain".
 */
mx_kernel_fn *mx_stencil_kernel(const struct mx_stencil *stencil, enum mx_dtype dtype, const char **isa);
/* Returns the kernel for a given instruction set; NULL if this CPU or this stencil has none. For tests and
 * benchmarks. */
mx_kernel_fn *mx_stencil_kernel_isa(const struct mx_stencil *stencil, enum mx_dtype dtype, const char *isa);

/* The best kernel for tiles on this CPU, MX_ISA heeded, NULL where there is none: h > 1, or no vector unit
 * that it is written for. */
mx_tile_fn *mx_stencil_tile(const struct mx_stencil *stencil, enum mx_dtype dtype);
/* The same for a given instruction set. */
mx_tile_fn *mx_stencil_tile_isa(const struct mx_stencil *stencil, enum mx_dtype dtype, const char *isa);

/* Returns how many rows of a plane this kernel computes together, so that shared data is read once; 0 = there
 * is no such kernel. Tiles with other even numbers of rows are computed in strips of this many rows, and of
 * two. */
int32_t mx_stencil_tile_rows(const struct mx_stencil *stencil);

/* The best kernel for spans, and its lanes: NULL where there is none for tiles. x_copies are not for them. */
mx_tile_fn *mx_stencil_span(const struct mx_stencil *stencil, enum mx_dtype dtype, int64_t *lanes);
mx_tile_fn *mx_stencil_span_isa(const struct mx_stencil *stencil, enum mx_dtype dtype, const char *isa,
                                int64_t *lanes);

#endif
