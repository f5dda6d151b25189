/* SPDX-License-Identifier: BSD-3-Clause */
/* search_stream.c - stream: whole planes, and strips of them.
 *
 * With whole planes a sweep moves 2 N bytes whatever bt is. So the fewest sweeps win, then the least DRAM.
 * The DRAM of a bt depends on the array that holds the last level of the last sweep. So every bt with the
 * fewest sweeps is tried; where DRAM alone counts, only the shortest bt and the next longer one. Strips (by <
 * ny) are as time-skewed blocks in y, with 2 bt h <= by; two of them need one store of seams, more need two.
 * In a side file seams take the same DRAM however many strips there are, and each further one moves more of
 * them: the fewest that fit win there too.
 */
#include "tune/search.h"

/* As many strips as can always have the same length to h rows: (k - 1) (k + h) <= ny. Up to there the largest
 * span shrinks with every further one. */
static int64_t most_even_strips(const struct mx_problem *p) {
    int64_t k = 2;
    while (k * (k + 1 + p->h) <= p->ny) k++;
    return k;
}

/* Three strips or more: the fewest that fit, then the least DRAM. */
static void try_even_or_short_strips(struct job *job, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    int64_t most = mx_min(most_even_strips(p), mx_search_most_blocks(job, p->ny, p->h, bt));
    /* Fewer strips of the shortest length than were asked for are not even. */
    while (most > 3 && tune_ceil_div(p->ny + p->h, most) < mx_search_shortest(job, bt)) most--;
    int64_t low = 3, high = mx_max(low, most + 1), strips = 0;
    while (low < high) {
        int64_t k = low + (high - low) / 2;
        if (mx_job_fits(job, mx_search_least_by(job, k, bt), p->nz, bt))
            high = k;
        else
            low = k + 1;
    }
    if (low <= most) {
        mx_job_try(job, mx_search_least_by(job, low, bt), p->nz, bt);
        return;
    }
    for (int64_t by = tune_ceil_div(p->ny, most) - 1; by >= mx_search_shortest(job, bt); by--) {
        int64_t k = tune_ceil_div(p->ny, by);
        if (strips != 0 && k != strips) break;
        if (mx_job_try(job, by, p->nz, bt)) strips = k;
    }
}

/* The shortest strip may leave up to h rows more to the last one than a longer one. */
static void try_shortest_strips(struct job *job, int64_t bt) {
    int64_t shortest = mx_search_shortest(job, bt),
            end = mx_min(shortest + job->problem.h, job->problem.ny - 1);
    for (int64_t by = shortest; by <= end; by++) mx_job_try(job, by, job->problem.nz, bt);
}

/* Strips of one step may be shorter than the way that its levels are skewed. The ends of the grid then cut
 * seams of several strips, and a further strip may move less. */
static void try_strips_below_the_skew(struct job *job, int64_t bt) {
    const int64_t shortest = mx_search_shortest(job, bt);
    for (int64_t by = mx_min(2 * bt * job->problem.h, job->problem.ny) - 1; by >= shortest; by--)
        mx_job_try(job, by, job->problem.nz, bt);
}

static void try_strips(struct job *job, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    if (mx_search_shortest(job, bt) > p->ny) return;
    struct lengths two = mx_search_lengths(job, p->ny, p->h, 2, bt, 1);
    int64_t even = (p->ny + p->h + bt * p->h) / 2;
    int64_t first = mx_min(mx_max(even, two.low), two.high);
    int64_t second = mx_min(mx_max(even + 1, two.low), two.high);
    bool fits = two.low <= two.high && mx_job_try(job, first, p->nz, bt);
    if (two.low <= two.high && second != first) fits |= mx_job_try(job, second, p->nz, bt);
    if (job->by_dram)
        try_shortest_strips(job, bt);
    else if (!fits)
        try_even_or_short_strips(job, bt);
    if (!job->by_dram) try_strips_below_the_skew(job, bt);
}

/* Whole planes fit if all sweeps have bt levels. */
static bool equal_sweeps_fit(const struct job *job, int64_t bt) {
    struct job equal = *job;
    equal.problem.nt = bt / mx_job_unit(job);
    return mx_job_fits(&equal, equal.problem.ny, equal.problem.nz, bt);
}

/* Whole planes of bt levels fit, or of one more: which array the last level is in makes a difference of a
 * slab. A shorter sweep at the end may make it as well, so that longer sweeps fit where shorter ones do not.
 */
static bool planes_fit(const struct job *job, int64_t bt) {
    return equal_sweeps_fit(job, bt) || equal_sweeps_fit(job, bt + mx_job_unit(job));
}

/* Beyond so many levels neither whole planes fit nor do strips have their shortest length: DRAM grows with
 * the levels. */
static int64_t bound_of_levels(const struct job *job, int64_t longest) {
    const int64_t unit = mx_job_unit(job);
    int64_t low = 0, high = longest / unit + 1; /* steps: low fits, high does not */
    if (job->by_dram || planes_fit(job, longest)) return longest;
    while (low + 1 < high) {
        int64_t steps = low + (high - low) / 2;
        if (planes_fit(job, steps * unit))
            low = steps;
        else
            high = steps;
    }
    const int64_t strips = mx_search_whole_steps(job, job->problem.ny / (2 * job->problem.h)) + unit;
    return mx_min(longest, mx_max((low + 2) * unit, strips));
}

/* With ghost layers longer sweeps compute more, and the cost of one more level has no single course. */
static const double uneven = 1.25;

void mx_search_stream(struct job *job) {
    const struct mx_problem *p = &job->problem;
    int64_t longest = job->by_dram ? mx_min(job->stretch, job->bt_min + mx_job_unit(job))
                                   : bound_of_levels(job, mx_search_longest_sweep(job));
    for (int64_t bt = longest; bt >= job->bt_min; bt -= mx_job_unit(job)) {
        double most = job->found ? job->best.cost : job->most_cost;
        const double least = most > 0 && !job->by_dram ? mx_job_least_cost(job, bt) : 0;
        if (least > (mx_job_by_seconds(job) ? uneven * most : most)) break;
        bool whole = !job->only_strips && mx_job_try(job, p->ny, p->nz, bt);
        if (!whole || job->by_dram) try_strips(job, bt);
    }
}

void mx_search_every_stream(struct job *job) {
    const struct mx_problem *p = &job->problem;
    for (int64_t bt = job->bt_min; bt <= mx_search_longest_sweep(job); bt += mx_job_unit(job)) {
        for (int64_t by = mx_search_shortest(job, bt); by < p->ny; by++) mx_job_try(job, by, p->nz, bt);
        mx_job_try(job, p->ny, p->nz, bt);
    }
}
