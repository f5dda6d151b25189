/* SPDX-License-Identifier: BSD-3-Clause */
/* compute.c - the sweeps of a run, and what is measured of them. */
#include "run/work/work.h"

#include "run/work/engine.h"

#include <string.h>

int mx_run_make_engine(struct mx_run *r) {
    const struct mx_plan *p = &r->report.plan;
    struct mx_engine_options e =
        mx_take_engine(&r->rest, &r->report.machine, p, &r->report.layout, &r->tuned.shape);
    e.accel = r->accel;
    r->ops = mx_engine_find(p->engine);
    int err = r->ops->create(&e, &r->why, &r->engine);
    if (err == 0) r->ops->describe(r->engine, &r->report.plan);
    return err;
}

static struct mx_counters counters_since(const struct mx_run *r, const struct mx_counters *s) {
    struct mx_counters n;
    mx_run_counters(r, &n);
    return (struct mx_counters){n.size,
                                n.read_bytes - s->read_bytes,
                                n.write_bytes - s->write_bytes,
                                n.read_requests - s->read_requests,
                                n.write_requests - s->write_requests,
                                n.retries - s->retries,
                                n.short_transfers - s->short_transfers,
                                n.read_ns - s->read_ns,
                                n.write_ns - s->write_ns,
                                n.peak_in_flight};
}

/* On a mapping the kernel moved the data: its own counters. */
static void take_kernel_bytes(struct mx_run *r) {
    struct mx_report *p = &r->report;
    if (p->moves || r->resident) return;
    p->counters.read_bytes = r->backend->anonymous ? p->usage.swap_in_bytes : p->usage.storage_read_bytes;
    p->counters.write_bytes = r->backend->anonymous ? p->usage.swap_out_bytes : p->usage.storage_write_bytes;
}

static void take_measurement(struct mx_run *r, const struct mx_executed *done) {
    struct mx_report *p = &r->report;
    take_kernel_bytes(r);
    p->seconds = (double)done->total_ns * 1e-9;
    p->update_s = (double)done->update_ns * 1e-9;
    p->blk2blk_s = (double)done->copy_ns * 1e-9;
    p->wait_s = (double)done->wait_ns * 1e-9;
    p->updates = done->updates;
    p->block_bytes = (uint64_t)done->block_bytes;
    p->accel.put_bytes = done->put_bytes;
    p->accel.get_bytes = done->get_bytes;
    p->accel.aside_put_bytes = done->aside_put_bytes;
    p->accel.aside_get_bytes = done->aside_get_bytes;
    if (r->accel != NULL) {
        const struct mx_accel_counters c = mx_accel_counters(r->accel);
        p->accel.operations = c.operations;
        p->accel.pinned = c.pinned;
        p->accel.direct = c.direct > 0 && c.refused == 0;
    }
    p->steps_done = r->first_time + done->steps_done;
    r->result = done->result;
}

/* Runs the schedule between two looks at all counters. */
static int execute(struct mx_run *r, const struct mx_execution *x, struct mx_executed *done) {
    struct mx_report *p = &r->report;
    struct mx_counters before;
    mx_run_counters(r, &before);
    struct mx_usage_files files = mx_usage_open();
    struct mx_usage usage = mx_usage_now(&files);
    p->hash_bytes = 0;
    int err = mx_execute(x, r->schedule, r->ops, r->engine, &r->why, done);
    err = mx_run_leave_neighbours(r, err);
    p->usage = mx_usage_since(&files, &usage);
    mx_usage_close(&files);
    p->counters = counters_since(r, &before);
    p->counters.write_bytes -=
        p->hash_bytes < p->counters.write_bytes ? p->hash_bytes : p->counters.write_bytes;
    const char *beside = err < 0 ? mx_parts_failed(r) : NULL;
    return beside != NULL ? mx_fail(&r->why, err, "%s", beside) : err;
}

/* ------------------------------------------------------------------ what the executor asks for */

/* Steps as above; whether they are committed or not. */
static int take_sweep(void *context, int64_t steps, mx_why *why) {
    struct mx_run *r = context;
    return mx_parts_swept(r, r->first_time + steps, why);
}

static bool decides(void *context, int64_t steps) {
    const struct mx_run *r = context;
    return mx_parts_may_end(r, r->first_time + steps);
}

bool mx_run_asks(const struct mx_run *r) {
    return r->after.sources != NULL || r->after.traces != NULL || r->after.norms != NULL ||
           !mx_sides_all_fixed(&r->sides);
}

int mx_run_compute(struct mx_run *r) {
    struct mx_report *p = &r->report;
    struct mx_executed done;
    const bool commits = mx_run_resumable(r) && p->device.durable;
    const int64_t first_level = mx_levels_of(&r->o.problem, r->first_time);
    struct mx_execution x = {.problem = &r->rest,
                             .plan = &p->plan,
                             .layout = &p->layout,
                             .device = r->device,
                             .first_level = first_level,
                             .n_buffers = r->n_buffers,
                             .source = r->note.buffer,
                             .committed = commits ? r->note.buffer : -1,
                             .commit_every_s = r->commit_every_s,
                             .seams = r->seams,
                             .budget = r->budget,
                             .accel = r->accel,
                             .after = mx_run_asks(r) ? &r->after : NULL,
                             .most_ahead = mx_parts_most_ahead(r),
                             .finite = mx_run_finite_state,
                             .stores_once = r->algorithm->resumable,
                             .sweep = take_sweep,
                             .decides = mx_parts_may_end_early(r) ? decides : NULL,
                             .feeding = r->fuse.source ? &r->fuse.feeding : NULL,
                             .mapped = p->device.mapped,
                             .advise = r->o.advice == MX_ADVICE_SCHEDULE,
                             .lock = r->o.lock || r->backend->locks_blocks,
                             .stop = &r->stop,
                             .progress = mx_run_on_progress,
                             .context = r,
                             .commit = commits ? mx_run_commit : NULL};
    mx_run_take_neighbours(r, commits, &x);
    memcpy(x.taking, r->taking, sizeof x.taking);
    if (r->fuse.checksum || r->fuse.output) x.taking[mx_run_takings(r)] = &r->fuse.taking;
    const int odd = (int)(first_level & 1);
    for (int32_t i = 0; i < r->n_buffers; i++) {
        x.buffer[i] = mx_run_buffer(r, i, odd);
        x.partner[i] = r->tuned.shape.pairs ? mx_run_buffer(r, i, 1 - odd) : NULL;
    }
    memcpy(x.fixed, r->fixed, sizeof x.fixed);
    r->result = r->note.buffer;
    p->steps_done = r->first_time;
    if (r->resumed && r->rest.nt == 0) return 0;
    int err = r->algorithm->open(&r->rest, &p->plan, 0, 0, &r->schedule);
    if (err < 0)
        return mx_fail(&r->why, err, "the schedule of %s could not be opened: %s", p->plan.algorithm,
                       strerror(-err));
    if ((err = mx_run_start_timeline(r)) < 0) return err;
    if (r->timeline != NULL) x.event = mx_run_on_event;
    mx_run_begin_phase(r, "updates", "updates", r->tuned.traffic.updates);
    err = execute(r, &x, &done);
    if (r->finite.ended) err = -EDOM; /* of ranks one may have heard of the end of another before */
    if (err == 0) err = mx_run_end_agreeing(r, &x);
    err = mx_run_stop_timeline(r, err);
    take_measurement(r, &done);
    return err;
}
