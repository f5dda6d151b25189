/* SPDX-License-Identifier: BSD-3-Clause */
/* search_skewed.c - time-skewed blocks: skewed, skewed-y, skewed-min.
 *
 * For a number of sweeps and of blocks in y and in z, the bytes do not depend on where the cuts are: shared
 * spans are as long as bt alone says. So among such plans the least DRAM wins, and decides what fits:
 *  - bt balanced: the shortest of as many sweeps;
 *  - y has a fixed plane layout of by + bt h + h rows: the least by;
 *  - z spans are clipped at the end of the grid: with three or more blocks an inner one is the largest, so
 * the least bz; with two the lengths h + bz and nz + 2h - bz + bt h balance at bz = (nz + h + bt h) / 2. More
 * blocks in y move more bytes, so of those the fewest that fit.
 */
#include "tune/search.h"

/* Fewest blocks k in [2, most] with fits(mx_search_least_by(k)), most + 1 if none. Planes shrink with k. */
static int64_t fewest_blocks(const struct job *job, int64_t most, int64_t bz, int64_t bt) {
    int64_t low = 2, high = most + 1;
    while (low < high) {
        int64_t k = low + (high - low) / 2, by = mx_search_least_by(job, k, bt);
        if (by > 0 && mx_job_fits(job, by, bz, bt))
            high = k;
        else
            low = k + 1;
    }
    return low;
}

static void try_skewed_bz(struct job *job, int64_t bz, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    if (mx_job_try(job, p->ny, bz, bt) && !job->by_dram) return;
    int64_t most = mx_search_most_blocks(job, p->ny, p->h, bt);
    int64_t k = job->by_dram ? most : fewest_blocks(job, most, bz, bt);
    if (k <= most && mx_search_least_by(job, k, bt) > 0)
        mx_job_try(job, mx_search_least_by(job, k, bt), bz, bt);
}

static void try_skewed_two(struct job *job, struct lengths z, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    int64_t even = multiple_down((p->nz + p->h + bt * p->h) / 2, job->z_step);
    int64_t first = mx_min(mx_max(even, z.low), z.high);
    int64_t second = mx_min(mx_max(even + job->z_step, z.low), z.high);
    try_skewed_bz(job, first, bt);
    if (second != first) try_skewed_bz(job, second, bt);
}

static void try_skewed_bt(struct job *job, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    try_skewed_bz(job, p->nz, bt);
    int64_t most = mx_search_most_blocks(job, p->nz, p->h, bt);
    for (int64_t k = 2; k <= most; k++) {
        struct lengths z = mx_search_lengths(job, p->nz, p->h, k, bt, job->z_step);
        if (z.low > z.high) continue;
        if (k == 2)
            try_skewed_two(job, z, bt);
        else
            try_skewed_bz(job, z.low, bt);
    }
}

void mx_search_skewed(struct job *job) { mx_search_over_bt(job, try_skewed_bt); }

void mx_search_every_skewed(struct job *job) {
    for (int64_t bt = job->bt_min; bt <= mx_search_largest_bt(job); bt += mx_job_unit(job))
        mx_search_every_block(job, bt);
}
