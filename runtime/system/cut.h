/* SPDX-License-Identifier: BSD-3-Clause */
/* cut.h - cuts a grid into parts of whole planes, one for each rank. */
#ifndef MX_SYSTEM_CUT_H
#define MX_SYSTEM_CUT_H

#include "system/system.h"

/* Computes the first planes of all ranks of a grid of nz planes: first[ranks + 1], which ends with nz.
 * weights: --rank-weights; NULL = equal parts, where the first ranks may have one plane more. -EINVAL with a
 * sentence. */
int mx_ranks_table(int64_t nz, const char *weights, int ranks, mx_why *why, int64_t *first);
/* Makes the problem of rank `rank`: its part of the planes, with its sides. -EINVAL with a sentence. */
int mx_ranks_cut(const struct mx_problem *whole, const int64_t *first, int rank, int ranks, mx_why *why,
                 struct mx_problem *out);
/* Returns the rank that plans for all: one with the most neighbours. */
static inline int mx_ranks_planner(int ranks) { return ranks > 2 ? 1 : 0; }

#endif
