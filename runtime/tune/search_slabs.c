/* SPDX-License-Identifier: BSD-3-Clause */
/* search_slabs.c - Blk-Tune: the search of an algorithm, over slabs of planes and places of seams. */
#include "tune/search.h"

#include <math.h>
#include <string.h>

/* As the paper has it; where nothing fits, the "preferable" condition on bz is given up. */
static void search_relaxing(struct job *job) {
    const int64_t steps[] = {job->z_step, job->threads, 1};
    for (int i = 0; i < 3 && !job->found; i++) {
        if (i > 0 && steps[i] >= job->z_step) continue;
        job->z_step = steps[i];
        job->relaxed = i > 0;
        mx_job_search(job);
    }
}

static struct mx_seconds seconds_of(const struct job *job) {
    const struct option *o = &job->best;
    return mx_predict(job, &o->plan, mx_job_layout(job, &o->plan), &o->shape, &o->traffic);
}

static double predicted(const struct job *job) { return seconds_of(job).total_s; }

/* One slab ahead rides out fewer hiccups of the device than two: it has to pay. In seconds, or, where those
 * are the same because computing hides the transfers, by a quarter of the bytes: they take cores and
 * bandwidth from the computation (510 x 510 x 1022 in 507 MiB: one sweep of 64 steps 1.25 times as fast as
 * two). */
static const double one_ahead_gain = 0.97, same_seconds = 1.02, fewer_bytes = 0.75;

/* The rates of the device are assumed, or an hour old: where computing takes nearly as long as the transfers,
 * a plan that computes faster is better, if seconds and bytes are the same. (1022^3, 32 steps, 1 GiB: slabs
 * of 10 planes with one ahead take 0.90 of the time of slabs of 6 with two.) */
static const double nearly_as_long = 0.75, faster_computing = 0.97, same_bytes = 1.01;

static bool same_but_for_computing(const struct job *a, const struct job *b) {
    const struct mx_seconds x = seconds_of(a), y = seconds_of(b);
    const double most = fmax(x.total_s, y.total_s), compute = fmax(x.compute_s, y.compute_s);
    const double moving = fmax(x.io_s + x.stall_s, y.io_s + y.stall_s);
    return most <= same_seconds * fmin(x.total_s, y.total_s) && compute >= nearly_as_long * moving &&
           fmin(x.compute_s, y.compute_s) <= faster_computing * compute &&
           fmax(a->best.moved_bytes, b->best.moved_bytes) <=
               same_bytes * fmin(a->best.moved_bytes, b->best.moved_bytes);
}

static bool is_better(const struct job *other, const struct job *job, double gain) {
    const double before = predicted(job), now = predicted(other);
    if (same_but_for_computing(other, job)) return seconds_of(other).compute_s < seconds_of(job).compute_s;
    return now < gain * before ||
           (now <= same_seconds * before && other->best.cost <= fewer_bytes * job->best.cost);
}

static void search_slab(struct job *job, int64_t slab, int64_t ahead, double gain) {
    struct job other = *job;
    other.base.slab = slab;
    other.base.ahead = ahead;
    other.found = false;
    search_relaxing(&other);
    job->n_evaluated = other.n_evaluated;
    if (!other.found || (job->found && !is_better(&other, job, gain))) return;
    job->found = true;
    job->best = other.best;
}

/* Planes of a slab as the engine chooses them, or as they are asked for. */
static int64_t own_slab(const struct job *job) {
    struct mx_plan plan = mx_job_with_block(job, job->problem.ny, job->problem.nz, 1);
    mx_job_complete(job, &plan);
    return plan.slab;
}

enum { THINNER = 8 };

static int64_t thinner_slab(int64_t own, int i) {
    static const int64_t twelfths[THINNER] = {10, 8, 6, 4, 3, 2, 1, 0};
    return mx_max(1, own * twelfths[i] / 12);
}

/* The engine's slab is the best for computing; thinner ones leave more DRAM to the levels. */
static void search_thinner(struct job *job) {
    const int64_t own = own_slab(job);
    int64_t last = own;
    if (job->request->manual.ahead == 0 && job->base.ahead > 1) search_slab(job, last, 1, one_ahead_gain);
    for (int i = 0; i < THINNER && last > 1; i++) {
        const int64_t slab = thinner_slab(own, i);
        if (slab == last) continue;
        last = slab;
        search_slab(job, slab, job->base.ahead, 1);
        if (job->request->manual.ahead == 0 && job->base.ahead > 1) search_slab(job, slab, 1, one_ahead_gain);
    }
}

static void search_slabs(struct job *job) {
    search_relaxing(job);
    if (job->strategy->thin_slabs && job->base.slab == 0) search_thinner(job);
}

/* Completes a plan. Returns its seconds; HUGE_VAL if it does not fit. */
static double seconds_if_it_fits(const struct job *job, struct mx_plan *plan) {
    struct option o;
    if (!mx_job_plan_fits(job, plan) || !mx_job_measure(job, plan, &o)) return HUGE_VAL;
    *plan = o.plan;
    return mx_predict(job, &o.plan, mx_job_layout(job, &o.plan), &o.shape, &o.traffic).total_s;
}

bool mx_job_thin(const struct job *job, struct mx_plan *plan) {
    /* Refined sizes give way first, to the engine's own. */
    if (!job->strategy->thin_slabs || plan->slab != 0 || job->refined.slab != 0) return false;
    const int64_t own = own_slab(job), ahead = plan->ahead != 0 ? plan->ahead : job->base.ahead;
    const bool may_be_one = plan->ahead == 0 && ahead > 1;
    struct mx_plan tried[2 * (THINNER + 1)]; /* the thickest first, each with one slab ahead last */
    double seconds[2 * (THINNER + 1)], least = HUGE_VAL;
    int n = 0;
    for (int i = -1; i < THINNER; i++)
        for (int one = 0; one <= may_be_one; one++, n++) {
            tried[n] = *plan;
            tried[n].slab = i < 0 ? own : thinner_slab(own, i), tried[n].ahead = one ? 1 : ahead;
            seconds[n] = seconds_if_it_fits(job, &tried[n]);
            least = fmin(least, seconds[n]);
        }
    int best = 0;
    while (least < HUGE_VAL && seconds[best] > same_seconds * least) best++;
    *plan = least < HUGE_VAL ? tried[best] : tried[n - 1];
    return least < HUGE_VAL;
}

void mx_job_thinnest(struct job *job) {
    if (!job->strategy->thin_slabs || job->base.slab != 0) return;
    job->base.slab = 1;
    if (job->request->manual.ahead == 0) job->base.ahead = 1;
}

bool mx_job_may_file(const struct job *job) {
    return job->strategy->side_file && !job->resident && job->base.seams[0] == 0;
}

/* Seams in DRAM cost no transfers: a side file, which leaves more DRAM to the levels, has to pay. In seconds,
 * or, where those are the same, by half the bytes. */
static const double side_file_gain = 0.95, side_file_saving = 0.5;

/* What a side file may move at most to pay, 0 = anything. Where computing decides, in slabs that are as thick
 * as they may be, it saves no seconds: any plan computes as many cells. */
static double most_that_pays(const struct job *job) {
    if (!job->found) return 0;
    const struct mx_seconds s = seconds_of(job);
    const bool computes = s.compute_s > side_file_gain * s.total_s;
    return computes && job->best.plan.slab >= own_slab(job) ? side_file_saving * job->best.cost
                                                            : job->best.cost;
}

static bool pays(const struct job *filed, const struct job *job) {
    if (!filed->found || !job->found) return filed->found;
    if (filed->best.cost >= job->best.cost) return false;
    double before = predicted(job), now = predicted(filed);
    return now <= side_file_gain * before ||
           (now <= same_seconds * before && filed->best.cost <= side_file_saving * job->best.cost);
}

static void search_side_file(struct job *job, const struct job *start) {
    struct job filed = *start;
    strcpy(filed.base.seams, MX_SEAMS_IN_FILE);
    filed.n_evaluated = job->n_evaluated;
    filed.most_cost = most_that_pays(job);
    filed.only_strips = true; /* whole planes have no seams: they have been looked at */
    search_slabs(&filed);
    job->n_evaluated = filed.n_evaluated;
    if (!pays(&filed, job)) return;
    job->found = true;
    job->best = filed.best;
}

int mx_tune_blk(struct job *job, mx_why *why) {
    struct job start = *job;
    (void)why;
    search_slabs(job);
    if (mx_job_may_file(job)) search_side_file(job, &start);
    return 0;
}
