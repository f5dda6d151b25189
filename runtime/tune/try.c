/* SPDX-License-Identifier: BSD-3-Clause */
/* try.c - what a plan costs, whether it fits, and which of those that were tried is the best. */
#include "tune/job.h"

#include "execute/execute.h"

#include <math.h>
#include <string.h>

static void name_seams(const struct mx_shape *shape, struct mx_plan *plan) {
    const char *place = shape->seam_slabs == 0 ? ""
                        : shape->seams_in_file ? MX_SEAMS_IN_FILE
                                               : MX_SEAMS_IN_DRAM;
    memset(plan->seams, 0, sizeof plan->seams);
    strcpy(plan->seams, place);
}

static bool shape_of(const struct job *job, struct mx_plan *plan, struct mx_shape *shape) {
    mx_job_complete(job, plan);
    if (!mx_job_can_transfer(job, plan) || job->counted->check(&job->problem, plan, NULL) < 0) return false;
    job->counted->shape(&job->problem, plan, shape);
    return true;
}

bool mx_job_measure(const struct job *job, const struct mx_plan *plan, struct option *out) {
    struct option o = {.plan = *plan};
    if (!shape_of(job, &o.plan, &o.shape)) return false;
    const struct mx_layout *layout = mx_job_layout(job, &o.plan);
    name_seams(&o.shape, &o.plan);
    job->counted->traffic(&job->problem, &o.plan, layout, &o.traffic);
    o.dram_bytes = mx_job_dram_bytes(job, &o.plan, &o.shape);
    o.device_bytes = mx_job_device_bytes(job, &o.plan, &o.shape);
    o.moved_bytes = (double)o.traffic.read_bytes + (double)o.traffic.write_bytes;
    o.cost = o.moved_bytes;
    if (mx_job_by_seconds(job)) {
        struct mx_seconds s = mx_predict(job, &o.plan, layout, &o.shape, &o.traffic);
        o.cost = mx_max_real(mx_predict_overlap(job, s.io_s, s.compute_s) + s.lag_s, s.link_s);
    }
    if (job->by_dram) o.cost = (double)(job->request->accel != NULL ? o.device_bytes : o.dram_bytes);
    *out = o;
    return true;
}

static bool better(const struct option *a, const struct option *b) {
    if (a->cost != b->cost) return a->cost < b->cost;
    if (a->moved_bytes != b->moved_bytes) return a->moved_bytes < b->moved_bytes;
    if (a->dram_bytes != b->dram_bytes) return a->dram_bytes < b->dram_bytes;
    if (a->plan.bt != b->plan.bt) return a->plan.bt < b->plan.bt;
    if (a->plan.by != b->plan.by) return a->plan.by < b->plan.by;
    return a->plan.bz < b->plan.bz;
}

struct mx_plan mx_job_with_block(const struct job *job, int64_t by, int64_t bz, int64_t bt) {
    struct mx_plan plan = job->base;
    plan.by = by, plan.bz = bz, plan.bt = bt;
    return plan;
}

bool mx_job_plan_fits(const struct job *job, const struct mx_plan *given) {
    struct mx_plan plan = *given;
    struct mx_shape shape;
    if (!shape_of(job, &plan, &shape) || mx_job_dram_bytes(job, &plan, &shape) >= job->room_bytes)
        return false;
    if (mx_job_device_bytes(job, &plan, &shape) > job->device_bytes) return false;
    uint64_t capacity = job->request->capacity_bytes;
    return !shape.seams_in_file || capacity == 0 ||
           mx_job_stored_bytes(mx_job_layout(job, &plan), &shape) <= capacity;
}

bool mx_job_fits(const struct job *job, int64_t by, int64_t bz, int64_t bt) {
    const struct mx_plan plan = mx_job_with_block(job, by, bz, bt);
    return mx_job_plan_fits(job, &plan);
}

bool mx_job_try(struct job *job, int64_t by, int64_t bz, int64_t bt) {
    struct option o;
    job->n_evaluated++;
    if (!mx_job_fits(job, by, bz, bt)) return false;
    struct mx_plan plan = mx_job_with_block(job, by, bz, bt);
    if (!mx_job_measure(job, &plan, &o)) return false;
    if (!job->found || better(&o, &job->best)) job->best = o;
    job->found = true;
    return true;
}

double mx_job_cost(const struct job *job, int64_t by, int64_t bz, int64_t bt) {
    struct option o;
    struct mx_plan plan = mx_job_with_block(job, by, bz, bt);
    return mx_job_measure(job, &plan, &o) ? o.cost : HUGE_VAL;
}

/* Least cost of any plan with this bt: one Block holds the whole grid. */
double mx_job_least_cost(const struct job *job, int64_t bt) {
    struct option o;
    struct mx_plan plan = mx_job_with_block(job, job->problem.ny, job->problem.nz, bt);
    return mx_job_measure(job, &plan, &o) ? o.cost : 0;
}
