/* SPDX-License-Identifier: BSD-3-Clause */
/* make_job.c - one algorithm of a request: its strategy, its layouts, what stays the same in all plans. */
#include "tune/request.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_L2_BYTES = 256 << 10 };

/* Refined tile and chunk, where no size is given; the slab follows with them (mx_job_complete). */
void mx_tune_refine(const struct job *job, struct mx_plan *plan) {
    bool given = plan->slab != 0 || plan->tile != 0 || plan->ct != 0 || plan->column != 0;
    if (!given) plan->tile = job->refined.tile, plan->ct = job->refined.ct;
}

static void set_base(const struct context *c, struct job *job) {
    const struct mx_plan *m = &c->q.manual;
    struct mx_plan *b = &job->base;
    int64_t sockets = mx_max(1, c->q.machine->sockets);
    uint64_t l2 = c->q.machine->l2_bytes > 0 ? c->q.machine->l2_bytes : DEFAULT_L2_BYTES;
    int64_t cell = mx_max(mx_cell_bytes(&job->problem, 0), mx_cell_bytes(&job->problem, 1));
    struct mx_iblock rule = mx_iblock_blk(job->problem.nx, cell, job->threads, l2, job->problem.ny,
                                          mx_max(1, job->problem.nz / sockets));
    snprintf(b->algorithm, sizeof b->algorithm, "%s", job->algorithm->name);
    snprintf(b->engine, sizeof b->engine, "%s", c->q.engine);
    snprintf(b->tuner, sizeof b->tuner, "%s", mx_tuners[c->tuner].name);
    if (job->strategy->blocks || strcmp(job->engine->name, "iblock") == 0) b->iy = rule.iy, b->iz = rule.iz;
    if (m->iy > 0) b->iy = m->iy;
    if (m->iz > 0) b->iz = m->iz;
    b->slab = m->slab, b->tile = m->tile, b->ct = m->ct, b->column = m->column;
    mx_tune_refine(job, b);
    memcpy(b->seams, m->seams, sizeof b->seams);
    b->ahead = m->ahead > 0 ? m->ahead : TUNE_AHEAD;
    b->threads = job->threads;
    b->in_place = m->in_place;
    job->z_step = mx_max(1, (b->iz > 0 ? b->iz : rule.iz) * sockets); /* section V-B-2a */
    /* The tiled engine shares rows and levels among threads, not planes: there bz is free, save where the
     * papers' rules are asked for, or a multiple of the slab where a finer search would cost more than it
     * gains. */
    if (c->q.reserve_paper || m->iz != 0) return;
    /* With iblock an iBlock is cut where a Block ends; what must come out even is each thread's share. */
    if (strcmp(job->engine->name, "tiled") != 0) {
        job->z_step = mx_max(1, (int64_t)job->threads * sockets);
        return;
    }
    struct mx_plan one = *b;
    one.by = one.bz = 1, one.bt = mx_job_unit(job);
    mx_job_complete(job, &one);
    job->z_step = job->strategy->by_seconds ? one.slab : 1;
}

static int make_layouts(struct job *job, mx_why *why) {
    uint32_t align = job->request->offset_align_bytes;
    const struct mx_fixed_layout *fixed = job->request->fixed;
    if (job->request->layout != NULL) {
        job->layout[0] = job->layout[1] = *job->request->layout;
    } else {
        int err = mx_layout_make(&job->problem, align, false, why, &job->layout[0]);
        if (err == 0) err = mx_layout_make(&job->problem, align, true, why, &job->layout[1]);
        if (err < 0) return err;
        if (job->request->style == MX_TUNE_RESIDENT) mx_layout_in_dram(&job->layout[0]);
    }
    for (int i = 0; i < 2 && job->request->fixed_unit_bytes > 0; i++)
        mx_layout_fixed_units(&job->problem, job->request->fixed_unit_bytes, job->request->layout == NULL,
                              i == 1, &job->layout[i]);
    for (int32_t i = 0; i < mx_fixed_count(&job->problem) && fixed != NULL; i++)
        if (fixed[i].row_pitch_bytes > 0) job->layout[0].fixed[i] = job->layout[1].fixed[i] = fixed[i];
    return 0;
}

/* The engine whose sizes are looked for: an accelerator that is here computes with the tiled one. */
static const char *sized_by(const struct mx_tune_request *q) {
    return q->accel != NULL && q->accel->here ? "tiled" : q->engine;
}

int mx_tune_make_job(const struct context *c, const struct mx_algorithm *algorithm, enum sizes sizes,
                     mx_why *why, struct job *out) {
    struct job job = {.request = &c->q,
                      .problem = *c->q.problem,
                      .algorithm = algorithm,
                      .counted = algorithm,
                      .strategy = mx_strategy_find(algorithm->name),
                      .engine = mx_engine_find(sized_by(&c->q)),
                      .rates = c->q.rates,
                      .room_bytes = c->room_bytes,
                      .device_bytes = c->q.accel != NULL ? c->q.accel->memory_bytes : UINT64_MAX,
                      .threads = c->q.threads,
                      .bt_min = 1};
    if (job.strategy == NULL)
        return mx_fail(why, -ENOTSUP, "memext cannot choose a plan for %s: give a whole plan",
                       algorithm->name);
    if (job.strategy->counted != NULL) job.counted = mx_algorithm_find(job.strategy->counted);
    job.problem.nt = mx_max(1, job.problem.nt);
    job.stretch = mx_sweep_levels(&job.problem, INT64_MAX);
    /* On dram always; a mapping that DRAM does not hold is used directly only where that was asked for. */
    job.resident = c->q.style == MX_TUNE_RESIDENT ||
                   (algorithm->needs_mapped && c->q.algorithm == NULL && !job.strategy->only_by_name);
    int err = make_layouts(&job, why);
    if (err < 0) return err;
    bool refined = sizes == REFINED && strcmp(job.engine->name, "tiled") == 0 &&
                   mx_refined_for(&job.rates.refined, &job.problem);
    if (refined) job.refined = job.rates.refined.sizes;
    set_base(c, &job);
    *out = job;
    return 0;
}
