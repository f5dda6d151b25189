/* SPDX-License-Identifier: BSD-3-Clause */
/* search_lapped.c - overlapped blocks: redundant.
 *
 * Cost is predicted seconds: redundant rows are read and computed. bt is balanced in both searches, as Fig.
 * 15 of the paper has it. With 2 bt h <= b, only the last two blocks are clipped at the end of the grid. So
 * for k blocks in a dimension, reads and updates are constant up to b = (n + h - bt h) / (k - 1). Beyond it
 * they fall, because the last block gets shorter than its halo. DRAM grows with b; only for k = 3 it falls
 * beyond that point. An engine may compute faster the longer b is in y, never slower. So: in y the greatest b
 * that fits, or the least that costs as little; in z the least, and all beyond. More blocks cost more, so of
 * those in y the fewest that fit.
 */
#include "tune/search.h"

/* The greatest by of k blocks that fits, 0 = none. DRAM grows with by; for k = 3 it falls again beyond
 * `peak`, where the greatest is the best and has been looked at first. */
static int64_t greatest_by(const struct job *job, struct lengths y, int64_t k, int64_t bz, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    if (y.low > y.high) return 0;
    if (mx_job_fits(job, y.high, bz, bt)) return y.high;
    int64_t peak = k == 3 ? (p->ny + p->h - bt * p->h) / 2 : y.high;
    int64_t low = y.low - 1, high = mx_max(y.low, mx_min(y.high, peak)) + 1;
    while (low + 1 < high) {
        int64_t b = low + (high - low) / 2;
        if (mx_job_fits(job, b, bz, bt))
            low = b;
        else
            high = b;
    }
    return low >= y.low ? low : 0;
}

/* Beyond this length k blocks cost less the longer they are. */
static int64_t flat_end(int64_t n, int64_t h, int64_t k, int64_t bt) { return (n + h - bt * h) / (k - 1); }

/* The least by in [low, great] that costs no more than the greatest: an engine may be faster on longer
 * Blocks, which counts only until transfers decide. */
static int64_t least_of_cost(const struct job *job, int64_t low, int64_t great, int64_t bz, int64_t bt) {
    const double cost = mx_job_cost(job, great, bz, bt);
    if (mx_job_cost(job, low, bz, bt) <= cost) return low;
    while (low + 1 < great) {
        int64_t b = low + (great - low) / 2;
        if (mx_job_cost(job, b, bz, bt) <= cost)
            great = b;
        else
            low = b;
    }
    return great;
}

static bool try_lapped_k(struct job *job, int64_t k, int64_t bz, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    struct lengths y = mx_search_lengths(job, p->ny, 0, k, bt, 1);
    int64_t great = greatest_by(job, y, k, bz, bt);
    if (great == 0) return false;
    if (job->by_dram) return mx_job_try(job, y.low, bz, bt);
    bool flat = great <= flat_end(p->ny, p->h, k, bt);
    return mx_job_try(job, flat ? least_of_cost(job, y.low, great, bz, bt) : great, bz, bt);
}

/* Fewest blocks, at least four, whose least by fits; most + 1 if none. From four on planes shrink with k. */
static int64_t fewest_lapped(const struct job *job, int64_t most, int64_t bz, int64_t bt) {
    int64_t low = 4, high = mx_max(4, most + 1);
    while (low < high) {
        int64_t k = low + (high - low) / 2;
        int64_t by = mx_max(mx_search_shortest(job, bt), tune_ceil_div(job->problem.ny, k));
        if (mx_job_fits(job, by, bz, bt))
            high = k;
        else
            low = k + 1;
    }
    return low;
}

static void try_lapped_bz(struct job *job, int64_t bz, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    bool first = !job->by_dram;
    if (mx_job_try(job, p->ny, bz, bt) && first) return;
    int64_t most = mx_search_most_blocks(job, p->ny, 0, bt);
    for (int64_t k = 2; k <= most; k++) {
        if (k == 4 && first) k = fewest_lapped(job, most, bz, bt);
        if (k <= most && try_lapped_k(job, k, bz, bt) && first) return;
    }
}

static void try_lapped_bt(struct job *job, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    try_lapped_bz(job, p->nz, bt);
    int64_t most = mx_search_most_blocks(job, p->nz, 0, bt);
    for (int64_t k = 2; k <= most; k++) {
        struct lengths z = mx_search_lengths(job, p->nz, 0, k, bt, job->z_step);
        if (z.low > z.high) continue;
        try_lapped_bz(job, z.low, bt);
        int64_t falls = flat_end(p->nz, p->h, k, bt);
        for (int64_t bz = mx_max(z.low + job->z_step, multiple_up(falls, job->z_step)); bz <= z.high;
             bz += job->z_step)
            try_lapped_bz(job, bz, bt);
    }
}

void mx_search_lapped(struct job *job) { mx_search_over_bt(job, try_lapped_bt); }

void mx_search_every_lapped(struct job *job) {
    for (int64_t bt = mx_search_next_bt(job, 0); bt > 0; bt = mx_search_next_bt(job, bt))
        mx_search_every_block(job, bt);
}
