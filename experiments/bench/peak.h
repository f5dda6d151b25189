/* SPDX-License-Identifier: BSD-3-Clause */
/* peak.h - simple kernels that a machine's peak is looked for among, beside memext's own.
 *
 * Loops over rows that the compiler vectorises for one instruction set, with multiplications and additions
 * fused where the set has that: what somebody would write who need not give the same bits everywhere.
 */
#ifndef PEAK_H
#define PEAK_H

#include "stencil/stencil.h"

/* The `which`-th simple kernel for `stencil` of h = 1, NULL after the last one; *name receives what it is.
 * One function an instruction set, each peak.c compiled with other flags; the CPU must have the set. */
typedef mx_kernel_fn *peak_find(const struct mx_stencil *stencil, enum mx_dtype dtype, int which,
                                const char **name);
peak_find peak_find_plain, peak_find_avx2, peak_find_avx512;

#endif
