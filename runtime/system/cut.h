/* SPDX-License-Identifier: BSD-3-Clause */
/* cut.h - a grid in parts of whole planes, one for each rank. */
#ifndef MX_SYSTEM_CUT_H
#define MX_SYSTEM_CUT_H

#include "system/system.h"

/* First planes of all ranks of a grid of nz planes, and nz behind them: first[ranks + 1]. weights:
 * --rank-weights; NULL = as many planes for each, or one more, from the first rank on. -EINVAL with a
 * sentence. */
int mx_ranks_table(int64_t nz, const char *weights, int ranks, mx_why *why, int64_t *first);
/* The part of the problem of rank `rank`, with the sides that it has. -EINVAL with a sentence. */
int mx_ranks_cut(const struct mx_problem *whole, const int64_t *first, int rank, int ranks, mx_why *why,
                 struct mx_problem *out);
/* A rank that has the most neighbours. */
static inline int mx_ranks_planner(int ranks) { return ranks > 2 ? 1 : 0; }

#endif
