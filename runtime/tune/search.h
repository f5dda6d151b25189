/* SPDX-License-Identifier: BSD-3-Clause */
/* search.h - inside tune/ only: the searches of Blk-Tune, and what they share. */
#ifndef MX_TUNE_SEARCH_H
#define MX_TUNE_SEARCH_H

#include "tune/job.h"

const struct strategy *mx_strategy_find(const char *algorithm);

/* May seams be kept in a side file without the user asking for it? */
bool mx_job_may_file(const struct job *job);

/* Completes a plan whose Block is given so that it fits: if it leaves its slab open (0), with a thinner one;
 * if it leaves `ahead` open too, perhaps with one slab ahead. Of those that fit it takes the thickest that is
 * as fast as the fastest, within 2 %. Returns false, with the thinnest, if none does. */
bool mx_job_thin(const struct job *job, struct mx_plan *plan);
/* Leaves what is open at its thinnest: the least DRAM that a Block can take. */
void mx_job_thinnest(struct job *job);

/* Runs the search of the job's strategy with the current constraints. */
void mx_job_search(struct job *job);

/* The tuners. They leave the job's best plan, or found = false. */
int mx_tune_blk(struct job *job, mx_why *why);
int mx_tune_naive(struct job *job, mx_why *why);
int mx_tune_manual(struct job *job, mx_why *why);

/* ---- one algorithm each: a reduced set that holds an optimum of the whole, and every combination */

void mx_search_skewed(struct job *job);
void mx_search_every_skewed(struct job *job);
void mx_search_lapped(struct job *job);
void mx_search_every_lapped(struct job *job);
void mx_search_stream(struct job *job);
void mx_search_every_stream(struct job *job);

/* ---- search_lengths.c: numbers of levels, and lengths of Blocks in one dimension */

/* Return the levels of the longest sweep that the problem needs, and of the longest that Blocks can compute.
 */
int64_t mx_search_longest_sweep(const struct job *job);
int64_t mx_search_largest_bt(const struct job *job);
/* At least one step: sweeps are whole steps. */
int64_t mx_search_whole_steps(const struct job *job, int64_t levels);
/* Returns the next smaller balanced bt, 0 at the end; bt = 0 starts. A balanced bt is the least one with its
 * number of sweeps from one due step to the next (Fig. 15). */
int64_t mx_search_next_bt(const struct job *job, int64_t bt);
/* Tries every balanced bt, from the longest on. It ends at a bt whose least cost is above the best found,
 * since more sweeps cost more. For the smallest DRAM it tries only the shortest bt. */
void mx_search_over_bt(struct job *job, void (*try_bt)(struct job *, int64_t));
/* Tries every Block that the constraints allow with this bt. */
void mx_search_every_block(struct job *job, int64_t bt);

static inline int64_t multiple_up(int64_t n, int64_t step) { return tune_ceil_div(n, step) * step; }
static inline int64_t multiple_down(int64_t n, int64_t step) { return n / step * step; }

/* Returns the least length of a Block for bt levels. */
int64_t mx_search_shortest(const struct job *job, int64_t bt);
/* Returns the most blocks that bt allows. lead: cells before the interior that the cut counts (h if it starts
 * on the ghost row). */
int64_t mx_search_most_blocks(const struct job *job, int64_t n, int64_t lead, int64_t bt);
/* The lengths b with exactly k blocks, k >= 2, that bt and `step` allow: [low, high], empty if low > high. */
struct lengths {
    int64_t low, high;
};
struct lengths mx_search_lengths(const struct job *job, int64_t n, int64_t lead, int64_t k, int64_t bt,
                                 int64_t step);
/* Returns the least by of k time-skewed blocks; 0 = there is none. */
int64_t mx_search_least_by(const struct job *job, int64_t k, int64_t bt);

#endif
