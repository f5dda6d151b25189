/* SPDX-License-Identifier: BSD-3-Clause */
/* search_lengths.c - numbers of levels and lengths of Blocks that the searches look at. */
#include "tune/search.h"

/* ---- bt */

/* Beyond so many steps a sweep moves next to nothing for each of them, and looking at every number of them
 * takes long. */
enum { MOST_BT = 1 << 20 };

/* At least one step: sweeps are whole steps. */
int64_t mx_search_whole_steps(const struct job *job, int64_t levels) {
    return mx_max(levels / mx_job_unit(job), 1) * mx_job_unit(job);
}

/* Levels of the longest sweep that is asked for. */
int64_t mx_search_longest_sweep(const struct job *job) {
    const int64_t most = mx_min(job->stretch, MOST_BT), asked = job->request->most_bt;
    return mx_search_whole_steps(job, asked > 0 ? mx_min(most, asked) : most);
}

int64_t mx_search_largest_bt(const struct job *job) {
    const struct mx_problem *p = &job->problem;
    int64_t half = (p->flat ? p->nz : mx_min(p->ny, p->nz)) / (2 * p->h);
    return mx_min(mx_search_longest_sweep(job), mx_search_whole_steps(job, half));
}

/* Returns the least length of Blocks for bt levels. A single step is not temporal blocking, so any length
 * will do. */
int64_t mx_search_shortest(const struct job *job, int64_t bt) {
    return bt == mx_job_unit(job) ? 1 : 2 * bt * job->problem.h;
}

/* The next smaller balanced bt (Fig. 15: the least bt with as many sweeps, from one due step to the next), 0
 * at the end. bt = 0 starts. */
int64_t mx_search_next_bt(const struct job *job, int64_t bt) {
    int64_t unit = mx_job_unit(job), nt = job->stretch / unit,
            limit = bt == 0 ? mx_search_largest_bt(job) : bt - unit;
    if (limit < job->bt_min) return 0;
    int64_t next = unit * tune_ceil_div(nt, tune_ceil_div(nt, limit / unit));
    return next >= job->bt_min ? next : 0;
}

/* Every balanced bt from the longest on. A bt whose least cost is above the best found ends it: more sweeps
 * cost more. For the smallest DRAM the shortest bt alone. */
void mx_search_over_bt(struct job *job, void (*try_bt)(struct job *, int64_t)) {
    if (job->by_dram) {
        try_bt(job, job->bt_min);
        return;
    }
    for (int64_t bt = mx_search_next_bt(job, 0); bt > 0; bt = mx_search_next_bt(job, bt)) {
        if (job->found && mx_job_least_cost(job, bt) > job->best.cost) break;
        try_bt(job, bt);
    }
}

/* ---- lengths of Blocks in one dimension */

struct lengths mx_search_lengths(const struct job *job, int64_t n, int64_t lead, int64_t k, int64_t bt,
                                 int64_t step) {
    int64_t low = mx_max(mx_search_shortest(job, bt), tune_ceil_div(n + lead, k));
    int64_t high = mx_min((n + lead - 1) / (k - 1), n - 1);
    return (struct lengths){multiple_up(low, step), multiple_down(high, step)};
}

/* Most blocks that bt allows. */
int64_t mx_search_most_blocks(const struct job *job, int64_t n, int64_t lead, int64_t bt) {
    return tune_ceil_div(n + lead, mx_search_shortest(job, bt));
}

/* The least by of k blocks, 0 if there is none. */
int64_t mx_search_least_by(const struct job *job, int64_t k, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    if (k == 1) return p->ny;
    int64_t by = mx_max(mx_search_shortest(job, bt), tune_ceil_div(p->ny + p->h, k));
    return by <= p->ny ? by : 0;
}

/* ---- every Block */

/* Every bz of the constraints: multiples of z_step, and nz. */
static int64_t next_bz(const struct job *job, int64_t bz) {
    int64_t nz = job->problem.nz;
    return bz >= nz ? 0 : mx_min(multiple_down(bz, job->z_step) + job->z_step, nz);
}

void mx_search_every_block(struct job *job, int64_t bt) {
    int64_t shortest = mx_search_shortest(job, bt);
    for (int64_t bz = next_bz(job, 0); bz > 0; bz = next_bz(job, bz)) {
        if (bz < mx_min(shortest, job->problem.nz)) continue;
        for (int64_t by = mx_min(shortest, job->problem.ny); by <= job->problem.ny; by++)
            mx_job_try(job, by, bz, bt);
    }
}
