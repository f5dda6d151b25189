/* SPDX-License-Identifier: BSD-3-Clause */
/* given.c - a plan that is given: completed, checked, and predicted as a tuned one is. */
#include "machine/size.h"
#include "tune/request.h"
#include "tune/search.h"

#include "machine/clock.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In DRAM where they fit, if the plan does not say. */
static int place_seams(const struct job *job, struct mx_plan *p, mx_why *why) {
    struct option o;
    bool given = p->seams[0] != 0;
    if (!mx_job_measure(job, p, &o)) return 0; /* the check says why */
    if (given && o.plan.seams[0] == 0)
        return mx_fail(why, -EINVAL,
                       "--plan: 'faces=%s' needs stream with strips (by < ny), and this plan has no strips: "
                       "leave it out",
                       p->seams);
    memcpy(p->seams, o.plan.seams, sizeof p->seams);
    bool file = !given && p->seams[0] != 0 && !job->resident &&
                (o.dram_bytes >= job->room_bytes || o.device_bytes > job->device_bytes);
    if (file) strcpy(p->seams, MX_SEAMS_IN_FILE);
    return 0;
}

/* In thinner slabs, if the plan leaves them open and does not fit otherwise. */
static void thin_to_fit(const struct job *job, const struct mx_plan *given, struct mx_plan *p) {
    struct option o;
    if (given->slab != 0 || !mx_job_measure(job, p, &o) || mx_job_plan_fits(job, p)) return;
    struct mx_plan open = *p;
    open.slab = 0, open.ahead = given->ahead;
    memcpy(open.seams, given->seams, sizeof open.seams);
    const bool may_file = given->seams[0] == 0 && p->seams[0] != 0 && mx_job_may_file(job);
    struct mx_plan filed = open;
    strcpy(filed.seams, MX_SEAMS_IN_FILE);
    if (mx_job_thin(job, &open))
        *p = open;
    else if (may_file && mx_job_thin(job, &filed))
        *p = filed;
    else if (mx_job_measure(job, may_file ? &filed : &open, &o))
        *p = o.plan; /* the least that it needs */
}

static int merge_plan(const struct mx_plan *given, struct job *job, mx_why *why, struct mx_plan *out) {
    struct mx_plan p = *given;
    if (p.bt == 0)
        return mx_fail(
            why, -EINVAL,
            "the plan has no bt (the number of steps a sweep computes): add bt=STEPS, for example bt=4");
    if (p.by == 0) p.by = job->problem.ny;
    if (p.bz == 0) p.bz = job->problem.nz;
    if (p.threads == 0) p.threads = job->threads;
    if (p.ahead == 0) p.ahead = TUNE_AHEAD;
    if (p.tuner[0] == 0) strcpy(p.tuner, "manual");
    memcpy(p.algorithm, job->base.algorithm, sizeof p.algorithm);
    memcpy(p.engine, job->base.engine, sizeof p.engine);
    mx_tune_refine(job, &p);
    mx_job_complete(job, &p);
    int err = place_seams(job, &p, why);
    if (err < 0) return err;
    thin_to_fit(job, given, &p);
    *out = p;
    return job->algorithm->check(&job->problem, &p, why);
}

static int check_room(const struct context *c, const struct mx_tune_candidate *x, mx_why *why) {
    if (c->q.accel != NULL && x->device_bytes > c->q.accel->memory_bytes)
        return mx_fail(
            why, -ENOMEM,
            "the plan needs %s of memory of %.60s, and %s is free: raise --device-memory, or lower by or bt",
            mx_size(x->device_bytes).text, c->q.accel->device, mx_size(c->q.accel->memory_bytes).text);
    if (x->dram_bytes < c->room_bytes) return 0;
    return mx_fail(why, -ENOMEM,
                   "the plan needs %s of DRAM, and %s is free for it (%s less %s reserve and %s for the "
                   "program): raise --dram, or lower by, bz or bt",
                   mx_size(x->dram_bytes).text, mx_size(c->room_bytes).text, mx_size(c->q.dram_bytes).text,
                   mx_size(c->q.reserve_bytes).text, mx_size(c->overhead_bytes).text);
}

static int measure_given(const struct context *c, const struct mx_plan *given, enum sizes sizes, mx_why *why,
                         struct mx_tune_result *r) {
    struct job job;
    struct mx_plan plan;
    struct mx_tune_candidate *x = &r->candidates[0];
    int err = mx_tune_make_job(c, mx_algorithm_find(given->algorithm), sizes, why, &job);
    if (err == 0) err = merge_plan(given, &job, why, &plan);
    if (err < 0) return err;
    if (!mx_job_can_transfer(&job, &plan)) return mx_tune_explain_layout(&c->q, job.algorithm->name, why);
    snprintf(x->algorithm, sizeof x->algorithm, "%s", job.algorithm->name);
    x->fits = true;
    x->n_evaluated = 1;
    mx_tune_fill(&job, &plan, x);
    r->n_candidates = 1;
    r->n_evaluated = 1;
    r->z_step = job.z_step;
    err = mx_tune_check_capacity(&c->q, x, why);
    return err < 0 ? err : check_room(c, x, why);
}

static int tune_given(struct context *c, const struct mx_plan *given, mx_why *why, struct mx_tune_result *r) {
    const struct mx_algorithm *a = mx_algorithm_find(given->algorithm);
    if (a == NULL)
        return mx_fail(why, -EINVAL, "there is no algorithm '%s', which the plan names", given->algorithm);
    c->q.algorithm = a->name;
    int err = mx_tune_check_algorithm(&c->q, a, why);
    if (err == 0) err = measure_given(c, given, REFINED, why, r);
    return err == -ENOMEM ? measure_given(c, given, OWN, why, r) : err;
}

int mx_tune_plan(const struct mx_tune_request *request, const struct mx_plan *plan, mx_why *why,
                 struct mx_tune_result *out) {
    struct context c;
    struct mx_tune_request q = *request;
    struct mx_plan given = *plan;
    q.tuner = "manual";
    q.manual.in_place |= plan->in_place;
    if (plan->engine[0] != 0) q.engine = plan->engine;
    if (plan->threads != 0) q.threads = plan->threads;
    if (q.accel != NULL)
        snprintf(given.algorithm, sizeof given.algorithm, "%s", mx_tune_there(plan->algorithm));
    struct mx_tune_result *r = calloc(1, sizeof *r);
    if (r == NULL) return mx_fail(why, -ENOMEM, "no memory for a tuner");
    const uint64_t begin = mx_thread_cpu_ns();
    int err = mx_plan_check(plan, why);
    if (err == 0) err = mx_tune_complete(&q, why, &c);
    if (err == 0) err = tune_given(&c, &given, why, r);
    if (err == 0) {
        mx_tune_take_context(&c, r);
        mx_tune_take_winner(&c, r);
        snprintf(r->tuner, sizeof r->tuner, "%s", r->plan.tuner);
        r->search_ns = mx_thread_cpu_ns() - begin;
        *out = *r;
    }
    free(r);
    return err;
}
