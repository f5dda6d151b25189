/* SPDX-License-Identifier: BSD-3-Clause */
/* candidate.c - the best plan of one algorithm, or why there is none. */
#include "schedule/ends.h"
#include "tune/request.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What the algorithm itself needs and moves, with the steps as asked (0 steps move nothing). */
void mx_tune_fill(struct job *job, const struct mx_plan *plan, struct mx_tune_candidate *out) {
    const struct mx_problem *asked = job->request->problem;
    struct mx_shape counted;
    struct mx_traffic traffic;
    out->plan = *plan;
    out->layout = *mx_job_layout(job, plan);
    job->algorithm->shape(asked, plan, &out->shape);
    job->algorithm->traffic(asked, plan, &out->layout, &out->traffic);
    job->counted->shape(asked, plan, &counted);
    job->counted->traffic(asked, plan, &out->layout, &traffic);
    out->seconds = mx_predict(job, plan, &out->layout, &counted, &traffic);
    out->dram_bytes = mx_job_dram_bytes(job, plan, &out->shape);
    out->device_bytes = mx_job_device_bytes(job, plan, &out->shape);
}

bool mx_tune_on_accel(const struct mx_algorithm *a) {
    return strcmp(a->name, "stream") == 0 || strcmp(a->name, "resident") == 0;
}

const char *mx_tune_there(const char *name) {
    const struct mx_algorithm *a = name != NULL ? mx_algorithm_find(name) : NULL;
    return a != NULL && strcmp(a->name, "direct") == 0 ? "resident" : name;
}

int mx_tune_check_algorithm(const struct mx_tune_request *q, const struct mx_algorithm *a, mx_why *why) {
    if (q->accel != NULL && !mx_tune_on_accel(a))
        return mx_fail(why, -ENOTSUP,
                       "%s cannot compute on an accelerator: choose --algorithm stream, or direct if "
                       "everything fits there, or leave --accel out",
                       a->name);
    if (q->resumable && q->manual.in_place)
        return mx_fail(why, -ENOTSUP,
                       "--in-place rewrites the Buffers, and a run that has commits cannot continue that "
                       "way: leave --in-place out, and in-place out of a plan");
    if (q->manual.in_place && strcmp(a->name, "redundant") == 0)
        return mx_fail(why, -ENOTSUP,
                       "redundant is not possible with --in-place, since its overlapping Blocks read cells "
                       "that others have overwritten: choose --algorithm stream or skewed-y");
    if (q->resumable && !a->resumable && mx_neighbours(q->problem) > 0)
        return mx_check_no_neighbours(q->problem, a->name, why);
    if (q->resumable && !a->resumable)
        return mx_fail(why, -ENOTSUP,
                       "%s rewrites the Buffers in place, and a run that has commits cannot continue that "
                       "way: choose --algorithm redundant or stream",
                       a->name);
    if (!a->needs_mapped || q->style != MX_TUNE_TRANSFER) return 0;
    return mx_fail(why, -ENOTSUP,
                   "%s works on mapped Buffers: choose --backend mmap, swap or dram, or another --algorithm",
                   a->name);
}

/* Sides that the algorithm cannot do with in any Block: what it says of one that is the whole grid. */
static int check_sides(const struct job *job, mx_why *why) {
    if (mx_sides_all_fixed(&job->problem.sides)) return 0;
    struct mx_plan whole = job->base;
    whole.by = job->problem.ny, whole.bz = job->problem.nz, whole.bt = mx_job_unit(job);
    return job->algorithm->check(&job->problem, &whole, why);
}

/* Refined sizes are there to gain speed: a plan that only they keep from fitting is made without them. */
static int tune_sizes(const struct context *c, struct job *job, mx_why *why) {
    int err = mx_tune_run(c, job, why);
    bool misfit = err == -ENOMEM || (err == 0 && !job->found);
    if (job->refined.slab == 0 || !misfit) return err;
    err = mx_tune_make_job(c, job->algorithm, OWN, why, job);
    return err < 0 ? err : mx_tune_run(c, job, why);
}

/* Fills out, found or not. Negative: the request itself is wrong for this algorithm. */
int mx_tune_one(const struct context *c, const struct mx_algorithm *algorithm, mx_why *why,
                struct mx_tune_candidate *out, struct job *job) {
    struct mx_tune_candidate candidate = {0};
    snprintf(candidate.algorithm, sizeof candidate.algorithm, "%s", algorithm->name);
    int err = mx_tune_check_algorithm(&c->q, algorithm, why);
    if (err == 0) err = mx_tune_make_job(c, algorithm, REFINED, why, job);
    if (err == 0) err = check_sides(job, why);
    if (err < 0) return err;
    err = tune_sizes(c, job, why);
    candidate.n_evaluated = job->n_evaluated;
    /* Strips that were asked for, of rows that cannot be transferred. */
    const struct mx_tune_request *q = &c->q;
    if (err == 0 && !job->found && q->layout != NULL && q->manual.by > 0 && q->style == MX_TUNE_TRANSFER &&
        (q->whole_planes || q->layout->row_pitch_bytes % q->offset_align_bytes != 0))
        return mx_tune_explain_layout(q, algorithm->name, why);
    if (err == 0 && !job->found) mx_tune_explain_misfit(c, job, &candidate);
    if (err == 0 && job->found) {
        mx_tune_fill(job, &job->best.plan, &candidate);
        candidate.fits = true;
        err = mx_tune_check_capacity(&c->q, &candidate, why);
    }
    *out = candidate;
    return err;
}
