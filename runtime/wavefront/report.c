/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - what is said of a wavefront run and of a plan. */
#include "wavefront/run_private.h"

#include "core/device.h"
#include "machine/clock.h"
#include "observe/json.h"
#include "wavefront/kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ------------------------------------------------------------------ a plan */

static json_t *json_problem(const struct mx_wf_request *q, int64_t iterations) {
    json_t *o = json_object();
    mx_json_put(o, "kind", json_string("wavefront"));
    mx_json_put_whole(o, "rows", q->rows);
    mx_json_put_whole(o, "cols", q->cols);
    mx_json_put_whole(o, "iterations", iterations);
    mx_json_put(o, "dtype", json_string("f64"));
    return o;
}

static json_t *json_plan(const struct mx_wf_choice *c) {
    const struct mx_wf_plan *p = &c->plan;
    json_t *o = json_object();
    mx_json_put(o, "algorithm", json_string("wavefront"));
    mx_json_put(o, "engine", json_string(mx_wf_isa()));
    mx_json_put(o, "layout", json_string(mx_wf_layouts[p->geometry.layout]));
    mx_json_put(o, "tuner", json_string(p->tuner));
    mx_json_put_whole(o, "mb", p->geometry.mb);
    mx_json_put_whole(o, "nb", p->geometry.nb);
    mx_json_put_whole(o, "tile_rows", p->geometry.tile_rows);
    mx_json_put_whole(o, "tile_cols", p->geometry.tile_cols);
    mx_json_put_whole(o, "waves", p->waves);
    mx_json_put_whole(o, "passes", c->traffic.passes);
    mx_json_put_whole(o, "threads", p->threads);
    mx_json_put_whole(o, "ahead", p->ahead);
    mx_json_put_whole(o, "behind", p->behind);
    mx_json_put(o, "chained", json_boolean(!p->unchained));
    mx_json_put_whole(o, "align_bytes", p->geometry.align_bytes);
    return o;
}

/* The keys of other runs' layouts, as far as they mean something here. */
static json_t *json_layout(const mx_wf_run *r) {
    const struct mx_wf_geometry *g = mx_wf_geometry_of(r);
    json_t *o = json_object();
    mx_json_put_whole(o, "row_bytes", (r->source.cols + 2) * 8);
    mx_json_put_whole(o, "row_pitch_bytes", r->planned ? g->pitch_bytes : (r->source.cols + 2) * 8);
    if (r->planned) mx_json_put_whole(o, "buffer_bytes", mx_wf_buffer_bytes(g, MX_WF_ZA));
    return o;
}

static json_t *json_no_plan(void) {
    json_t *o = json_object();
    mx_json_put(o, "algorithm", json_string("sequential"));
    return o;
}

/* Table 1 of the paper, of this run. */
static json_t *json_space(const struct mx_wf_geometry *g) {
    json_t *o = json_object();
    int64_t coefficients = 0;
    for (int m = MX_WF_ZR; m < MX_WF_MATRICES; m++)
        coefficients += mx_wf_buffer_bytes(g, (enum mx_wf_matrix)m);
    mx_json_put_whole(o, "matrix_bytes", (g->rows + 2) * (g->cols + 2) * 8);
    mx_json_put_whole(o, "data_bytes", mx_wf_buffer_bytes(g, MX_WF_ZA));
    mx_json_put_whole(o, "coefficient_bytes", coefficients);
    mx_json_put_whole(o, "copy_bytes", mx_wf_copy_bytes(g, MX_WF_ZA));
    mx_json_put_whole(o, "padding_bytes", mx_wf_padding_bytes(g, MX_WF_ZA));
    return o;
}

static void put_choice(json_t *o, const struct mx_wf_choice *c) {
    mx_json_put(o, "plan", json_plan(c));
    mx_json_put(o, "space", json_space(&c->plan.geometry));
    mx_json_put_whole(o, "predicted_read_bytes", c->traffic.read_bytes);
    mx_json_put_whole(o, "predicted_write_bytes", c->traffic.write_bytes);
    mx_json_put_whole(o, "predicted_init_bytes", c->traffic.load_bytes);
    mx_json_put_whole(o, "predicted_updates", c->traffic.updates);
    mx_json_put_real(o, "predicted_seconds", c->seconds);
    mx_json_put_whole(o, "block_bytes", c->dram_bytes);
}

json_t *mx_wf_json_choice(const struct mx_wf_request *q, const struct mx_wf_choice *c) {
    json_t *o = json_object();
    mx_json_put(o, "memext", json_string(MX_VERSION));
    mx_json_put(o, "problem", json_problem(q, q->iterations));
    put_choice(o, c);
    mx_json_put_whole(o, "dram_budget_bytes", (int64_t)q->dram_bytes);
    mx_json_put_whole(o, "plans_tried", c->tried);
    return o;
}

static double gib(int64_t bytes) { return (double)bytes / 1073741824.0; }

void mx_wf_print_choice(const struct mx_wf_request *q, const struct mx_wf_choice *c, FILE *to) {
    const struct mx_wf_plan *p = &c->plan;
    const struct mx_wf_geometry *g = &p->geometry;
    fprintf(to, "problem    %lld x %lld, %lld iterations, 6 matrices of %.3f GiB\n", (long long)q->rows,
            (long long)q->cols, (long long)q->iterations, gib((g->rows + 2) * (g->cols + 2) * 8));
    fprintf(to,
            "plan       layout %s, tiles of %lld x %lld, %lld waves a pass, %lld passes, %d threads (%s); "
            "DRAM %.3f of %.3f GiB\n",
            mx_wf_layouts[g->layout], (long long)g->mb, (long long)g->nb, (long long)p->waves,
            (long long)c->traffic.passes, p->threads, p->tuner, gib(c->dram_bytes),
            gib((int64_t)q->dram_bytes));
    fprintf(to, "predicted  read %.4f GiB, write %.4f GiB, conversion %.4f GiB; about %.3g s\n",
            gib(c->traffic.read_bytes), gib(c->traffic.write_bytes), gib(c->traffic.load_bytes), c->seconds);
}

/* ------------------------------------------------------------------ a run */

static const char *status_of(const mx_wf_run *r, int err) {
    if (err == -EINTR) return "interrupted";
    if (err < 0) return "failed";
    if (r->o.dry_run) return "planned";
    return r->verified == 0 ? "different" : "done";
}

static double seconds_of(const mx_wf_run *r) {
    return r->o.sequential ? r->sequential_seconds : (double)r->executed.total_ns * 1e-9;
}

static int64_t iterations_made(const mx_wf_run *r) { return r->executed.done; }

static double rate(const mx_wf_run *r) {
    const double cells = (double)r->source.rows * (double)r->source.cols * (double)iterations_made(r);
    return seconds_of(r) > 0 ? cells / seconds_of(r) : 0;
}

static json_t *json_device(const mx_wf_run *r) {
    const struct mx_device_facts *f = &r->device_facts;
    json_t *o = json_object();
    mx_json_put(o, "place", json_string(f->place));
    mx_json_put(o, "note", json_string(f->note));
    mx_json_put(o, "bypasses_page_cache", json_boolean(f->bypasses_page_cache));
    mx_json_put_whole(o, "offset_align_bytes", f->offset_align_bytes);
    mx_json_put_whole(o, "memory_align_bytes", f->memory_align_bytes);
    mx_json_put_whole(o, "read_requests", (int64_t)r->counters.read_requests);
    mx_json_put_whole(o, "write_requests", (int64_t)r->counters.write_requests);
    mx_json_put_whole(o, "retries", (int64_t)r->counters.retries);
    mx_json_put_whole(o, "short_transfers", (int64_t)r->counters.short_transfers);
    mx_json_put_whole(o, "peak_in_flight", r->counters.peak_in_flight);
    return o;
}

static json_t *json_time(const mx_wf_run *r) {
    json_t *o = json_object();
    mx_json_put_real(o, "buf2blk_s", (double)r->counters.read_ns * 1e-9);
    mx_json_put_real(o, "blk2buf_s", (double)r->counters.write_ns * 1e-9);
    mx_json_put_real(o, "blk2blk_s", (double)r->executed.copy_ns * 1e-9);
    mx_json_put_real(o, "update_s",
                     r->o.sequential ? r->sequential_seconds : (double)r->executed.update_ns * 1e-9);
    mx_json_put_real(o, "wait_s", (double)r->executed.wait_ns * 1e-9);
    return o;
}

static json_t *json_kernel(const struct mx_usage *u) {
    json_t *o = json_object();
    mx_json_put_whole(o, "storage_read_bytes", (int64_t)u->storage_read_bytes);
    mx_json_put_whole(o, "storage_write_bytes", (int64_t)u->storage_write_bytes);
    mx_json_put_whole(o, "swap_in_bytes", (int64_t)u->swap_in_bytes);
    mx_json_put_whole(o, "swap_out_bytes", (int64_t)u->swap_out_bytes);
    mx_json_put_whole(o, "minor_faults", (int64_t)u->minor_faults);
    mx_json_put_real(o, "user_s", (double)u->user_us * 1e-6);
    mx_json_put_real(o, "system_s", (double)u->system_us * 1e-6);
    return o;
}

/* Seconds by matrix. */
static json_t *json_seconds(const double seconds[MX_WF_MATRICES]) {
    json_t *o = json_object();
    for (int m = 0; m < MX_WF_MATRICES; m++)
        if (seconds[m] > 0) mx_json_put_real(o, mx_wf_names[m], seconds[m]);
    return o;
}

static void put_measurement(json_t *o, const mx_wf_run *r) {
    const double seconds = seconds_of(r);
    mx_json_put_real(o, "seconds", seconds);
    mx_json_put_real(o, "seconds_per_wave",
                     iterations_made(r) > 0 ? seconds / (double)iterations_made(r) : 0);
    mx_json_put_real(o, "init_seconds", r->init_seconds);
    mx_json_put_real(o, "preprocess_seconds", r->init_seconds);
    mx_json_put_real(o, "postprocess_seconds", r->post_seconds);
    mx_json_put(o, "preprocess", json_seconds(r->converted_s));
    mx_json_put(o, "postprocess", json_seconds(r->written_s));
    mx_json_put_real(o, "verify_seconds", r->verify_seconds);
    mx_json_put_real(o, "wall_seconds", mx_seconds_since(r->begin_ns));
    mx_json_put_real(o, "updates_per_second", rate(r));
    mx_json_put_whole(o, "updates", r->executed.updates);
    mx_json_put_whole(o, "steps_done", r->first + iterations_made(r));
    mx_json_put_whole(o, "resumed_from", r->first);
    mx_json_put_whole(o, "read_bytes", (int64_t)r->counters.read_bytes);
    mx_json_put_whole(o, "write_bytes", (int64_t)r->counters.write_bytes);
    mx_json_put(o, "time", json_time(r));
    mx_json_put(o, "kernel", json_kernel(&r->usage));
    mx_json_put_whole(o, "major_faults", (int64_t)r->usage.major_faults);
    mx_json_put_whole(o, "peak_rss_bytes", (int64_t)mx_usage_peak_rss_bytes());
    mx_json_put(o, "checksum", r->checksum[0] != 0 ? json_string(r->checksum) : json_null());
    mx_json_put(o, "verified", r->verified < 0 ? json_null() : json_boolean(r->verified));
}

static json_t *json_inputs(const mx_wf_run *r) {
    json_t *o = json_object();
    for (int m = 0; m < MX_WF_MATRICES; m++)
        if (r->o.inputs[m] != NULL) mx_json_put(o, mx_wf_names[m], json_string(r->o.inputs[m]));
    return o;
}

static json_t *json_run(const mx_wf_run *r, int err) {
    json_t *o = json_object();
    const bool failed = (err < 0 && err != -EINTR) || r->verified == 0;
    mx_json_put(o, "memext", json_string(MX_VERSION));
    mx_json_put(o, "status", json_string(status_of(r, err)));
    mx_json_put(o, "error",
                failed ? json_string(r->why.text[0] != 0 ? r->why.text : strerror(-err)) : json_null());
    mx_json_put(o, "problem", json_problem(&r->request, r->o.iterations));
    mx_json_put(o, "machine", mx_json_machine(&r->machine));
    mx_json_put(o, "layout", json_layout(r));
    if (r->planned) put_choice(o, &r->choice);
    if (!r->planned && r->o.sequential) mx_json_put(o, "plan", json_no_plan());
    mx_json_put(o, "sequential", json_boolean(r->o.sequential));
    mx_json_put(o, "backend",
                json_string(r->o.sequential                   ? "memory"
                            : r->device_facts.backend[0] != 0 ? r->device_facts.backend
                            : r->backend != NULL              ? r->backend->name
                                                              : ""));
    mx_json_put(o, "device", json_device(r));
    mx_json_put(o, "inputs", json_inputs(r));
    mx_json_put(o, "init", json_string(r->source.init != NULL ? r->source.init->name : ""));
    mx_json_put_whole(o, "dram_limit_bytes", (int64_t)r->dram_limit_bytes);
    mx_json_put_whole(o, "dram_budget_bytes", (int64_t)(r->dram_limit_bytes - r->reserve_bytes));
    if (!r->o.dry_run) put_measurement(o, r);
    return o;
}

static void print_result(const mx_wf_run *r, FILE *to) {
    const double seconds = seconds_of(r);
    if (!r->o.sequential)
        fprintf(to, "backend    %s on %s%s%s\n", r->device_facts.backend, r->device_facts.place,
                r->device_facts.note[0] != 0 ? "; " : "", r->device_facts.note);
    fprintf(to, "moved      read %.4f GiB, write %.4f GiB\n", gib((int64_t)r->counters.read_bytes),
            gib((int64_t)r->counters.write_bytes));
    fprintf(
        to,
        "time       %.3f s, %.4f s an iteration (+ %.3f s conversion, %.3f s output); workers: update %.3f, "
        "copy %.3f, waiting %.3f\n",
        seconds, iterations_made(r) > 0 ? seconds / (double)iterations_made(r) : 0, r->init_seconds,
        r->post_seconds, (double)r->executed.update_ns * 1e-9, (double)r->executed.copy_ns * 1e-9,
        (double)r->executed.wait_ns * 1e-9);
    fprintf(to, "rate       %.4f Gupdates/s, peak RSS %.3f GiB\n", rate(r) * 1e-9,
            gib((int64_t)mx_usage_peak_rss_bytes()));
    if (r->checksum[0] != 0)
        fprintf(to, "checksum   %s%s\n", r->checksum,
                r->verified < 0 ? ""
                : r->verified   ? ", verified bit by bit"
                                : ", DIFFERENT from the sequential loop");
}

int mx_wf_run_report(mx_wf_run *r, int err, FILE *to, mx_why *why) {
    if (to != NULL && r->moving && (err == 0 || err == -EINTR)) print_result(r, to);
    if (r->o.json == NULL) return 0;
    const bool standard = strcmp(r->o.json, "-") == 0;
    if (!standard && r->json.fd < 0) return 0; /* it was the report that was refused */
    json_t *object = json_run(r, err);
    char *text = json_dumps(object, JSON_INDENT(2));
    json_decref(object);
    const int e = text != NULL ? mx_output_report(standard ? NULL : &r->json, text, why)
                               : mx_fail(why, -ENOMEM, "no memory for the report");
    free(text);
    mx_output_drop(&r->json);
    return e;
}

void mx_wf_run_abandon(mx_wf_run *r) {
    for (int m = 0; m < MX_WF_MATRICES; m++) mx_output_drop(&r->outputs[m]);
    mx_output_drop(&r->timeline_file);
    mx_output_drop(&r->trace_file);
    if (r->device != NULL) mx_device_abandon(r->device);
}
