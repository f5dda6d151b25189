/* SPDX-License-Identifier: BSD-3-Clause */
/* search.h - inside tune/ only: the searches of Blk-Tune, and what they share. */
#ifndef MX_TUNE_SEARCH_H
#define MX_TUNE_SEARCH_H

#include "tune/job.h"

const struct strategy *mx_strategy_find(const char *algorithm);

/* Seams may be kept in a side file though nobody asked for it. */
bool mx_job_may_file(const struct job *job);

/* The search of the job's strategy with the constraints as they stand. */
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

/* Levels of the longest sweep that is asked for, and of the longest that Blocks can do. */
int64_t mx_search_longest_sweep(const struct job *job);
int64_t mx_search_largest_bt(const struct job *job);
/* At least one step: sweeps are whole steps. */
int64_t mx_search_whole_steps(const struct job *job, int64_t levels);
/* The next smaller balanced bt (Fig. 15: the least bt with as many sweeps, from one due step to the next), 0
 * at the end. bt = 0 starts. */
int64_t mx_search_next_bt(const struct job *job, int64_t bt);
/* Every balanced bt from the longest on. A bt whose least cost is above the best found ends it: more sweeps
 * cost more. For the smallest DRAM the shortest bt alone. */
void mx_search_over_bt(struct job *job, void (*try_bt)(struct job *, int64_t));
/* Every Block of the constraints with this bt. */
void mx_search_every_block(struct job *job, int64_t bt);

static inline int64_t multiple_up(int64_t n, int64_t step) { return tune_ceil_div(n, step) * step; }
static inline int64_t multiple_down(int64_t n, int64_t step) { return n / step * step; }

/* Blocks of at least this length for bt levels. */
int64_t mx_search_shortest(const struct job *job, int64_t bt);
/* Most blocks that bt allows. lead: cells before the first that the cut counts (h where it starts on the
 * ghost row). */
int64_t mx_search_most_blocks(const struct job *job, int64_t n, int64_t lead, int64_t bt);
/* Lengths b with exactly k blocks, k >= 2, that bt and `step` allow: [low, high], empty when low > high. */
struct lengths {
    int64_t low, high;
};
struct lengths mx_search_lengths(const struct job *job, int64_t n, int64_t lead, int64_t k, int64_t bt,
                                 int64_t step);
/* The least by of k time-skewed blocks, 0 if there is none. */
int64_t mx_search_least_by(const struct job *job, int64_t k, int64_t bt);

#endif
