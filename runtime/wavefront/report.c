/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - what is said of a wavefront run and of a plan. */
#include "wavefront/run_private.h"

#include "machine/clock.h"
#include "observe/json.h"
#include "observe/usage.h"
#include "wavefront/kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ a plan */

static json_t *json_problem(const mx_wf_run *r) {
    json_t *o = json_object();
    mx_json_put(o, "kind", json_string("wavefront"));
    mx_json_put_whole(o, "rows", r->source.rows);
    mx_json_put_whole(o, "cols", r->source.cols);
    mx_json_put_whole(o, "iterations", r->o.wavefront.iterations);
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
    mx_json_put_whole(o, "plans_tried", c->tried);
}

static double gib(int64_t bytes) { return (double)bytes / 1073741824.0; }

void mx_wf_print_choice(const mx_wf_run *r, FILE *to) {
    const struct mx_wf_choice *c = &r->choice;
    const struct mx_wf_plan *p = &c->plan;
    const struct mx_wf_geometry *g = &p->geometry;
    fprintf(to, "problem    %lld x %lld, %lld iterations, 6 matrices of %.3f GiB\n", (long long)g->rows,
            (long long)g->cols, (long long)r->request.iterations, gib((g->rows + 2) * (g->cols + 2) * 8));
    fprintf(to,
            "plan       layout %s, tiles of %lld x %lld, %lld waves a pass, %lld passes, %d threads (%s); "
            "DRAM %.3f of %.3f GiB\n",
            mx_wf_layouts[g->layout], (long long)g->mb, (long long)g->nb, (long long)p->waves,
            (long long)c->traffic.passes, p->threads, p->tuner, gib(c->dram_bytes),
            gib((int64_t)r->request.dram_bytes));
    fprintf(to, "predicted  read %.4f GiB, write %.4f GiB, conversion %.4f GiB; about %.3g s\n",
            gib(c->traffic.read_bytes), gib(c->traffic.write_bytes), gib(c->traffic.load_bytes), c->seconds);
}

/* ------------------------------------------------------------------ a run */

static const char *status_of(const mx_wf_run *r, int err) {
    if (err == -EINTR) return "interrupted";
    if (err < 0) return "failed";
    if (r->o.dry_run) return "planned";
    return r->report.verified == 0 ? "different" : "done";
}

static double seconds_per_wave(const struct mx_report *p) {
    const int64_t made = p->steps_done - p->resumed_from;
    return made > 0 ? p->seconds / (double)made : 0;
}

/* Seconds by matrix. */
static json_t *json_seconds(const double seconds[MX_WF_MATRICES]) {
    json_t *o = json_object();
    for (int m = 0; m < MX_WF_MATRICES; m++)
        if (seconds[m] > 0) mx_json_put_real(o, mx_wf_names[m], seconds[m]);
    return o;
}

static void put_measured(json_t *o, const mx_wf_run *r) {
    mx_report_put_measured(o, &r->report);
    mx_json_put_real(o, "verify_seconds", r->report.verify_seconds); /* a number in any case */
    mx_json_put_real(o, "seconds_per_wave", seconds_per_wave(&r->report));
    mx_json_put_real(o, "preprocess_seconds", r->report.init_seconds);
    mx_json_put_real(o, "postprocess_seconds", r->post_seconds);
    mx_json_put(o, "preprocess", json_seconds(r->converted_s));
    mx_json_put(o, "postprocess", json_seconds(r->written_s));
}

static json_t *json_inputs(const mx_wf_run *r) {
    json_t *o = json_object();
    for (int m = 0; m < MX_WF_MATRICES; m++)
        if (r->inputs[m] != NULL) mx_json_put(o, mx_wf_names[m], mx_json_path(r->inputs[m]));
    return o;
}

static json_t *json_run(const mx_wf_run *r) {
    json_t *o = json_object();
    mx_report_put_run(o, &r->report);
    mx_json_put(o, "problem", json_problem(r));
    mx_json_put(o, "layout", json_layout(r));
    if (r->planned) put_choice(o, &r->choice);
    if (r->o.wavefront.sequential) mx_json_put(o, "plan", json_pack("{ss}", "algorithm", "sequential"));
    mx_json_put(o, "sequential", json_boolean(r->o.wavefront.sequential));
    mx_json_put(o, "inputs", json_inputs(r));
    mx_json_put(o, "init", json_string(r->source.init != NULL ? r->source.init->name : ""));
    if (r->planned) mx_json_put_whole(o, "block_bytes", (int64_t)r->report.block_bytes);
    if (!r->o.dry_run) put_measured(o, r);
    return o;
}

static void print_result(const mx_wf_run *r, FILE *to) {
    const struct mx_report *p = &r->report;
    if (r->device != NULL)
        fprintf(to, "backend    %s on %s%s%s\n", p->device.backend, p->device.place,
                p->device.note[0] != 0 ? "; " : "", p->device.note);
    fprintf(to, "moved      read %.4f GiB, write %.4f GiB\n", gib((int64_t)p->counters.read_bytes),
            gib((int64_t)p->counters.write_bytes));
    fprintf(
        to,
        "time       %.3f s, %.4f s an iteration (+ %.3f s conversion, %.3f s output); workers: update %.3f, "
        "copy %.3f, waiting %.3f\n",
        p->seconds, seconds_per_wave(p), p->init_seconds, r->post_seconds, p->update_s, p->blk2blk_s,
        p->wait_s);
    fprintf(to, "rate       %.4f Gupdates/s, peak RSS %.3f GiB\n", mx_report_rate(p) * 1e-9,
            gib((int64_t)p->peak_rss_bytes));
    if (p->checksum[0] != 0)
        fprintf(to, "checksum   %s%s\n", p->checksum,
                p->verified < 0 ? ""
                : p->verified   ? ", verified bit by bit"
                                : ", DIFFERENT from the sequential loop");
}

/* What the report says of the end. */
static void close_report(mx_wf_run *r, int err) {
    struct mx_report *p = &r->report;
    const bool failed = (err < 0 && err != -EINTR) || p->verified == 0;
    p->status = status_of(r, err);
    p->error = !failed ? NULL : r->why.text[0] != 0 ? r->why.text : strerror(-err);
    p->wall_seconds = mx_seconds_since(r->begin_ns);
    p->peak_rss_bytes = mx_usage_peak_rss_bytes();
    p->fault_calls = r->o.fault != NULL ? (int64_t)mx_fault_calls_made() : 0;
}

int mx_wf_run_report(mx_wf_run *r, int err, FILE *to, mx_why *why) {
    close_report(r, err);
    if (to != NULL && r->moving && (err == 0 || err == -EINTR)) print_result(r, to);
    if (r->o.json == NULL) return 0;
    const bool standard = strcmp(r->o.json, "-") == 0;
    if (!standard && r->json.fd < 0) return 0; /* it was the report that was refused */
    json_t *object = json_run(r);
    char *text = json_dumps(object, JSON_INDENT(2));
    json_decref(object);
    const int e = text != NULL ? mx_output_text(standard ? NULL : &r->json, "the report", text, why)
                               : mx_fail(why, -ENOMEM, "no memory for the report");
    free(text);
    mx_output_drop(&r->json);
    return e;
}
