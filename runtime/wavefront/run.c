/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - the phases of a wavefront run. */
#include "wavefront/run_private.h"

#include "core/device.h"
#include "machine/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mx_wf_run_create(const struct mx_options *options, const struct mx_wf_caller *caller, mx_why *why,
                     mx_wf_run **out) {
    mx_wf_run *r = calloc(1, sizeof *r);
    if (r == NULL) return mx_fail(why, -ENOMEM, "no memory for a run");
    r->o = *options;
    r->caller = *caller;
    r->begin_ns = mx_clock_ns();
    r->report.verified = -1;
    r->json.fd = r->timeline_file.fd = r->trace_file.fd = -1;
    for (int m = 0; m < MX_WF_MATRICES; m++) r->results[m].fd = r->source.files[m].fd = -1;
    int err = mx_wf_take_files("input", &options->inputs, r->inputs, why);
    if (err == 0) err = mx_wf_take_files("output", &options->outputs, r->outputs, why);
    if (err < 0)
        free(r);
    else
        *out = r;
    return err;
}

/* ------------------------------------------------------------------ into the layout */

static int initialise(mx_wf_run *r) {
    const uint64_t begin = mx_clock_ns();
    int err = mx_device_take(r->device, &r->why); /* what can be refused was */
    if (err == 0 && !r->resumed) err = mx_wf_begin_note(r);
    snprintf(r->note.backend, sizeof r->note.backend, "%s", r->backend->name);
    mx_wf_begin_phase(r, "convert", "B", MX_WF_MATRICES * mx_wf_matrix_bytes(r));
    for (int m = 0; m < MX_WF_MATRICES && err == 0 && !r->resumed; m++) {
        const struct mx_wf_conversion c = mx_wf_conversion(r, (enum mx_wf_matrix)m);
        const uint64_t one = mx_clock_ns();
        err = mx_wf_store_matrix(&c, &r->source);
        r->converted_s[m] = mx_seconds_since(one);
        mx_wf_on_bytes(r, mx_wf_matrix_bytes(r));
    }
    if (err == 0 && !r->resumed && r->report.device.durable) err = mx_wf_commit(r, 0, 0);
    r->report.init_seconds = mx_seconds_since(begin);
    return err;
}

/* ------------------------------------------------------------------ progress */

/* ------------------------------------------------------------------ timeline */

static void on_event(void *context, const struct mx_wf_event *e) {
    const mx_wf_run *r = context;
    mx_timeline_event(r->timeline, e->name, e->begin_ns, e->end_ns, e->rows, e->cols, e->amount);
}

static int open_stream(mx_wf_run *r, const struct mx_output *output, FILE **out) {
    *out = output->fd >= 0 ? mx_output_stream(output) : NULL;
    if (output->fd < 0 || *out != NULL) return 0;
    return mx_fail(&r->why, -errno, "%.300s cannot be written: %s", output->path, strerror(errno));
}

static int start_timeline(mx_wf_run *r) {
    struct mx_timeline_options t = {.problem = &r->report.problem,
                                    .plan = &r->report.plan,
                                    .file_name = r->timeline_file.path,
                                    .trace_name = r->trace_file.path,
                                    .device = r->device,
                                    .place = r->backend->anonymous ? "" : r->report.device.place,
                                    .n_buffers = 2,
                                    .names = {mx_wf_data[0], mx_wf_data[1]}};
    if (r->timeline_file.fd < 0 && r->trace_file.fd < 0) return 0;
    mx_output_show(&r->timeline_file);
    int err = open_stream(r, &r->timeline_file, &t.file);
    if (err == 0) err = open_stream(r, &r->trace_file, &t.trace);
    if (err < 0) return err;
    for (int i = 0; i < 2; i++) {
        t.buffer_bytes[i] = mx_buffer_bytes(r->data[i]);
        t.buffer_offset_bytes[i] = mx_buffer_offset(r->data[i]);
    }
    return mx_timeline_start(&t, &r->why, &r->timeline);
}

static int stop_timeline(mx_wf_run *r, int err) {
    mx_why why = {""};
    int observed = mx_timeline_stop(r->timeline, &why);
    r->timeline = NULL;
    if (observed == 0 && r->timeline_file.fd >= 0)
        observed = mx_output_publish(&r->timeline_file, "the timeline", &why);
    if (observed == 0 && r->trace_file.fd >= 0)
        observed = mx_output_publish(&r->trace_file, "the trace", &why);
    if (err == 0 && observed < 0) r->why = why;
    return err < 0 ? err : observed;
}

/* ------------------------------------------------------------------ computation */

static void take_measurement(mx_wf_run *r, const struct mx_wf_executed *done,
                             const struct mx_counters *before) {
    struct mx_report *p = &r->report;
    struct mx_counters *c = &p->counters;
    *c = (struct mx_counters){.size = sizeof *c};
    mx_device_counters(r->device, c);
    c->read_bytes -= before->read_bytes, c->write_bytes -= before->write_bytes;
    c->read_requests -= before->read_requests, c->write_requests -= before->write_requests;
    c->retries -= before->retries, c->short_transfers -= before->short_transfers;
    c->read_ns -= before->read_ns, c->write_ns -= before->write_ns;
    p->seconds = (double)done->total_ns * 1e-9;
    p->update_s = (double)done->update_ns * 1e-9;
    p->blk2blk_s = (double)done->copy_ns * 1e-9;
    p->wait_s = (double)done->wait_ns * 1e-9;
    p->updates = done->updates;
    p->steps_done += done->done;
    r->result = done->result;
}

static int compute(mx_wf_run *r) {
    struct mx_wf_execution x = {.plan = &r->choice.plan,
                                .iterations = r->o.wavefront.iterations - r->first,
                                .device = r->device,
                                .data = {r->data[0], r->data[1]},
                                .source = r->result,
                                .budget = r->budget,
                                .lock = r->backend->locks_blocks,
                                .stop = r->caller.stop,
                                .commit = r->report.device.durable ? mx_wf_commit : NULL,
                                .progress = mx_wf_on_progress,
                                .context = r};
    struct mx_counters before = {.size = sizeof before};
    struct mx_wf_executed done;
    memcpy(x.fixed, r->fixed, sizeof x.fixed);
    if (x.iterations == 0) return 0;
    int err = start_timeline(r);
    if (err < 0) return err;
    if (r->timeline != NULL) x.event = on_event;
    mx_wf_begin_phase(r, "updates", "updates", r->choice.traffic.updates);
    mx_device_counters(r->device, &before);
    struct mx_usage_files files = mx_usage_open();
    const struct mx_usage usage = mx_usage_now(&files);
    err = mx_wf_execute(&x, &r->why, &done);
    r->report.usage = mx_usage_since(&files, &usage);
    mx_usage_close(&files);
    take_measurement(r, &done, &before);
    return stop_timeline(r, err);
}

static int run_sequential(mx_wf_run *r) {
    struct mx_report *p = &r->report;
    uint64_t fill_ns = 0, loop_ns = 0;
    int err = mx_wf_make_budget(r);
    if (err < 0) return err;
    const struct mx_wf_walk_options o = mx_wf_walk_of(r);
    mx_wf_begin_phase(r, "updates", "updates", o.iterations * r->source.rows * r->source.cols);
    err = mx_wf_run_sequential(&o, &r->matrices, &fill_ns, &loop_ns);
    p->init_seconds = (double)fill_ns * 1e-9;
    p->seconds = p->update_s = (double)loop_ns * 1e-9;
    if (err == 0) p->steps_done = o.iterations;
    return err;
}

/* ------------------------------------------------------------------ the whole */

int mx_wf_run_work(mx_wf_run *r, FILE *to) {
    static int (*const phases[])(mx_wf_run *) = {initialise, compute, mx_wf_take_checksum};
    static int (*const plain[])(mx_wf_run *) = {run_sequential, mx_wf_take_checksum};
    const bool sequential = r->o.wavefront.sequential;
    int err = mx_wf_prepare(r);
    if (err == 0) err = mx_wf_open_outputs(r);
    if (r->o.dry_run) {
        if (err == 0) err = mx_wf_ask_place(r);
        if (err == 0 && to != NULL && r->planned) mx_wf_print_choice(r, to);
        return err;
    }
    if (err == 0 && !sequential) err = mx_wf_open_store(r);
    if (err < 0) return err;
    if (to != NULL && r->planned) mx_wf_print_choice(r, to);
    r->moving = true;
    const size_t n = sequential ? sizeof plain / sizeof plain[0] : sizeof phases / sizeof phases[0];
    for (size_t i = 0; i < n && err == 0; i++) {
        err = mx_wf_stopped(r);
        if (err == 0) err = (sequential ? plain : phases)[i](r);
    }
    if (err == 0 && r->o.verify) err = mx_wf_verify(r);
    if (err == 0) err = mx_wf_stopped(r);
    if (err == 0) err = mx_wf_publish(r);
    return err < 0 || sequential ? err : mx_wf_finish(r);
}

bool mx_wf_run_moving(const mx_wf_run *r) { return r->moving; }
int mx_wf_run_verified(const mx_wf_run *r) { return r->report.verified; }
const char *mx_wf_run_sentence(const mx_wf_run *r) { return r->why.text; }

const char *mx_wf_run_way_on(const mx_wf_run *r, char *text, size_t capacity) {
    text[0] = 0;
    if (r->committed && !r->note.different)
        snprintf(text, capacity,
                 "iteration %lld of %lld is committed in %.300s; resume the run with --resume",
                 (long long)r->note.done, (long long)r->o.wavefront.iterations,
                 r->report.device.place[0] != 0 ? r->report.device.place : r->o.path);
    return text;
}

/* ------------------------------------------------------------------ the end */

static void drop_outputs(mx_wf_run *r) {
    for (int m = 0; m < MX_WF_MATRICES; m++) mx_output_drop(&r->results[m]);
    mx_output_drop(&r->timeline_file);
    mx_output_drop(&r->trace_file);
}

void mx_wf_run_abandon(mx_wf_run *r) {
    drop_outputs(r);
    if (r->device != NULL) mx_device_abandon(r->device);
}

void mx_wf_run_close(mx_wf_run *r) {
    if (r == NULL) return;
    mx_block_free(r->matrices);
    for (int i = 0; i < 2; i++) mx_buffer_close(r->data[i]);
    for (int m = 0; m < MX_WF_MATRICES; m++) mx_buffer_close(r->fixed[m]);
    mx_device_close(r->device);
    mx_budget_free(r->budget);
    mx_wf_source_close(&r->source);
    drop_outputs(r);
    mx_output_drop(&r->json);
    free(r);
}
