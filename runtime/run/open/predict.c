/* SPDX-License-Identifier: BSD-3-Clause */
/* predict.c - what a plan says of the run: bytes of each phase, seconds. */
#include "run/open/open.h"

/* The kernel of one that is here is the tiled engine's. */
static void report_model(struct mx_run *r) {
    struct mx_report_accel *a = &r->report.accel;
    const struct mx_seconds *s = &r->tuned.seconds;
    const bool here = r->there.here && r->there.updates_per_s == 0;
    a->put_bytes_per_s = s->put_bytes_per_s;
    a->get_bytes_per_s = s->get_bytes_per_s;
    a->updates_per_s = s->updates_per_s;
    a->bus_source = mx_rates_source_name(r->there.bus_source);
    a->kernel_source = mx_rates_source_name(here ? r->tuned.rates.compute_source : r->there.kernel_source);
    a->kernel_s = s->compute_s;
    a->bus_s = s->bus_s;
    a->flash_s = s->flash_s;
}

void mx_run_predict_plan(struct mx_run *r) {
    struct mx_report *p = &r->report;
    p->plan = r->tuned.plan;
    p->layout = r->tuned.layout;
    p->predicted_read_bytes = r->tuned.traffic.read_bytes;
    p->predicted_write_bytes = r->tuned.traffic.write_bytes;
    p->predicted_updates = r->tuned.traffic.updates;
    const struct mx_seconds *s = &r->tuned.seconds;
    p->predicted_seconds = s->total_s;
    p->predicted_time =
        (struct mx_report_time){s->io_s, s->stall_s, s->compute_s, s->copy_s, s->cores_s, s->edge_s};
    p->block_bytes = r->tuned.dram_bytes;
    p->side_file_bytes = mx_execute_seam_bytes(&r->tuned.shape, &r->tuned.layout);
    p->moves = r->algorithm->uses_blocks;
    p->accel.used_bytes = r->tuned.device_bytes;
    p->accel.more_put_bytes = mx_traffic_put_bytes(&r->tuned.traffic) - r->tuned.traffic.read_bytes;
    if (r->accel != NULL) report_model(r);
    p->accel.staging_bytes =
        r->accel == NULL ? 0
                         : MX_STAGING_PIECES * (uint64_t)mx_execute_piece_bytes(&r->rest, &r->tuned.shape,
                                                                                &r->tuned.layout, &p->plan);
}

void mx_run_predict_commits(struct mx_run *r) {
    struct mx_report *p = &r->report;
    p->buffers = mx_run_buffers(r);
    p->commits = mx_run_resumable(r) && !r->backend->anonymous;
    p->commit_every_s = r->commit_every_s;
    p->seconds_a_sweep = mx_run_seconds_a_sweep(r);
    p->sweeps = mx_run_sweeps(r);
    p->integrity = r->o.integrity || r->note.integrity_unit > 0;
    p->predicted_init_bytes =
        mx_run_has_store(r) ? 0
                            : mx_run_first_count(r) * (r->tuned.shape.pairs ? 2 : 1) * p->layout.buffer_bytes;
    if (r->note.pending && mx_run_has_store(r))
        p->predicted_init_bytes = (r->tuned.shape.init_both ? r->n_buffers : 1) * p->layout.buffer_bytes;
    if (r->fuse.source) p->predicted_init_bytes = r->fuse.init_bytes;
    p->predicted_read_bytes += r->fuse.fed_bytes - r->fuse.saved_bytes;
    p->predicted_write_bytes -= r->fuse.unstored_bytes;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && !mx_run_has_store(r); i++)
        p->predicted_init_bytes += p->layout.fixed[i].user_file ? 0 : p->layout.fixed[i].bytes;
}

/* What passes over the Buffers of the result an output takes. */
static int64_t output_passes(const struct mx_run *r) {
    int64_t passes = 0;
    if (r->system == NULL) return r->sink.region != NULL;
    for (int32_t array = 0; array < 2; array++) {
        bool wanted = false;
        for (int32_t i = 0; i < r->fields.n; i++)
            wanted |= r->fields.field[i].array == array &&
                      (r->field_sink[i].path != NULL || r->sink.region != NULL);
        passes += wanted;
    }
    return passes;
}

/* A resumed run whose Buffers do not all have the frame yet copies it. */
static int64_t copied_bytes(const struct mx_run *r) {
    return __builtin_popcount(mx_run_unframed(r)) * (r->tuned.shape.pairs ? 2 : 1) *
           r->report.layout.buffer_bytes;
}

/* A program gives the grid once, and every further Buffer that is to begin with it is a copy of the first. */
static int64_t initial_copy_bytes(const struct mx_run *r) {
    const bool fresh = r->note.pending || (!mx_run_has_store(r) && !r->recut.asked);
    if (!fresh || !r->o.source || r->fuse.source) return 0;
    return (mx_run_first_count(r) - 1) * (r->tuned.shape.pairs ? 2 : 1) * r->report.layout.buffer_bytes;
}

void mx_run_predict_phases(struct mx_run *r) {
    struct mx_report *p = &r->report;
    const struct mx_run_fuse *u = &r->fuse;
    const int64_t buffer = p->layout.buffer_bytes, copied = copied_bytes(r);
    bool made = true;
    for (int32_t i = 0; i < u->n; i++) made &= u->field[i].field.init != NULL;
    p->fused = (struct mx_report_fused){.source = u->source,
                                        .made = made,
                                        .checksum = u->checksum,
                                        .output = u->output,
                                        .no_source = u->no_source,
                                        .no_checksum = u->no_checksum,
                                        .no_output = u->no_output};
    struct mx_report_phase *init = &p->phase[MX_PHASE_INIT], *stencil = &p->phase[MX_PHASE_STENCIL],
                           *checksum = &p->phase[MX_PHASE_CHECKSUM], *output = &p->phase[MX_PHASE_OUTPUT];
    init->predicted_read_bytes = (u->source ? u->init_read_bytes : 0) + copied + mx_run_former_bytes(r) +
                                 initial_copy_bytes(r) + mx_run_edit_read_bytes(r);
    init->predicted_write_bytes = p->predicted_init_bytes + copied + mx_run_edit_write_bytes(r);
    stencil->predicted_read_bytes = p->predicted_read_bytes;
    stencil->predicted_write_bytes = p->predicted_write_bytes;
    checksum->predicted_read_bytes = u->checksum ? 0 : mx_states(&r->o.problem) * buffer;
    output->predicted_read_bytes = u->output ? u->frame_read_bytes : output_passes(r) * buffer;
    output->predicted_write_bytes = u->output ? u->output_bytes : 0;
}
