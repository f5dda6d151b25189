/* SPDX-License-Identifier: BSD-3-Clause */
/* result.c - what comes out of a wavefront run: checksum, comparison, files. */
#include "wavefront/run_private.h"

#include "machine/clock.h"
#include "machine/minmax.h"

#include <errno.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

/* All rows of a matrix, in order. */
static int each_row(mx_wf_run *r, enum mx_wf_matrix m, mx_wf_sink_fn *sink, void *context) {
    if (r->matrices != NULL) {
        const int64_t rows = r->source.rows + 2, cells = rows * (r->source.cols + 2);
        return sink(context, 0, rows, (double *)mx_block_data(r->matrices) + m * cells);
    }
    const struct mx_wf_conversion c = mx_wf_conversion(r, m);
    return mx_wf_fetch_matrix(&c, sink, context);
}

/* ------------------------------------------------------------------ checksum */

struct digest {
    const struct mx_wf_source *of;
    XXH3_state_t *state;
};

/* The interior, rows from above, columns from the left. */
static int digest_rows(void *context, int64_t r0, int64_t n, double *rows) {
    struct digest *d = context;
    const int64_t width = d->of->cols + 2;
    for (int64_t r = 0; r < n; r++)
        if (r0 + r >= 1 && r0 + r <= d->of->rows)
            XXH3_64bits_update(d->state, rows + r * width + 1, (size_t)(width - 2) * sizeof(double));
    return 0;
}

int mx_wf_take_checksum(mx_wf_run *r) {
    struct digest d = {&r->source, XXH3_createState()};
    if (d.state == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the checksum");
    XXH3_64bits_reset(d.state);
    int err = each_row(r, MX_WF_ZA, digest_rows, &d);
    if (err == 0)
        snprintf(r->report.checksum, sizeof r->report.checksum, "%016llx",
                 (unsigned long long)XXH3_64bits_digest(d.state));
    XXH3_freeState(d.state);
    return err;
}

/* ------------------------------------------------------------------ comparison */

struct comparison {
    struct mx_wf_walk *walk;
    int64_t width;
    bool different;
};

static int compare_rows(void *context, int64_t r0, int64_t n, double *rows) {
    struct comparison *c = context;
    int err = 0;
    (void)r0;
    for (int64_t r = 0; r < n && err == 0; r++) {
        const double *expected;
        err = mx_wf_walk_next(c->walk, &expected);
        if (err == 0 && memcmp(expected, rows + r * c->width, (size_t)c->width * sizeof(double)) != 0)
            c->different = true;
    }
    return err;
}

static uint64_t room_for_walk(const mx_wf_run *r) {
    struct mx_budget_facts b = {.size = sizeof b};
    mx_budget_facts(r->budget, &b);
    uint64_t taken =
        b.reserve_bytes + b.used_bytes + (uint64_t)mx_wf_conversion_bytes(mx_wf_geometry_of(r)) + (1u << 20);
    if (mx_wf_is_resident(r)) taken += (uint64_t)mx_wf_all_bytes(mx_wf_geometry_of(r));
    return b.limit_bytes > taken ? b.limit_bytes - taken : 0;
}

int mx_wf_verify(mx_wf_run *r) {
    struct comparison v = {.width = r->source.cols + 2};
    struct mx_wf_walk_options o = mx_wf_walk_of(r);
    o.dram_bytes = room_for_walk(r);
    o.device = r->device;
    o.scratch = r->data[1 - r->result];
    o.align_bytes = mx_wf_geometry_of(r)->align_bytes;
    const uint64_t begin = mx_clock_ns();
    mx_wf_begin_phase(r, "verify", "updates", o.iterations * r->source.rows * r->source.cols);
    int err = mx_wf_walk_open(&o, &v.walk);
    if (err == 0) err = each_row(r, MX_WF_ZA, compare_rows, &v);
    mx_wf_walk_close(v.walk);
    r->report.verify_seconds = mx_seconds_since(begin);
    if (err < 0) return err;
    r->report.verified = !v.different;
    if (v.different)
        mx_fail(&r->why, -EILSEQ,
                "the result differs from that of the sequential loop, so --output is not written");
    return 0;
}

/* ------------------------------------------------------------------ files */

/* Of a dry run: would it be refused? */
static int begin(mx_wf_run *r, const char *path, const char *what, unsigned flags, struct mx_output *out) {
    if (path == NULL) return 0;
    return r->o.dry_run ? mx_output_ask(path, what, flags, &r->why)
                        : mx_output_open(path, what, flags, &r->why, out);
}

int mx_wf_open_outputs(mx_wf_run *r) {
    const unsigned flags = MX_OUTPUT_SEEK | (r->o.overwrite ? MX_OUTPUT_REPLACE : 0);
    const int64_t border = r->o.bare_output ? 0 : 2;
    const int64_t cells = (r->source.rows + border) * (r->source.cols + border);
    int err = 0;
    for (int m = 0; m < MX_WF_MATRICES && err == 0; m++) {
        char what[16];
        snprintf(what, sizeof what, "matrix %s", mx_wf_names[m]);
        err = begin(r, r->outputs[m], what, flags, &r->results[m]);
        if (err == 0 && r->results[m].fd >= 0)
            err = mx_output_reserve(&r->results[m], (uint64_t)cells * sizeof(double) + 128, what, &r->why);
    }
    if (err == 0) err = begin(r, r->o.timeline, "the timeline", MX_OUTPUT_REPLACE, &r->timeline_file);
    return err < 0 ? err : begin(r, r->o.trace, "the trace", MX_OUTPUT_REPLACE, &r->trace_file);
}

struct writer {
    mx_wf_run *run;
    struct mx_npy npy;
};

/* Without the border the cells of the interior are moved together first. */
static int write_rows(void *context, int64_t r0, int64_t n, double *rows) {
    const struct writer *w = context;
    const int64_t bare = w->run->o.bare_output ? 1 : 0, all = w->npy.shape[1], cols = w->npy.shape[2];
    const int64_t from = mx_max(r0 - bare, 0), upto = mx_min(r0 + n - bare, all);
    if (from >= upto) return 0;
    double *first = rows + (from + bare - r0) * (cols + 2 * bare);
    for (int64_t i = 0; bare && i < upto - from; i++)
        memmove(first + i * cols, first + i * (cols + 2) + 1, (size_t)cols * sizeof(double));
    int err = mx_write_all(w->npy.fd, first, (size_t)((upto - from) * cols) * sizeof(double),
                           w->npy.data_offset_bytes + from * cols * (int64_t)sizeof(double));
    mx_wf_on_bytes(w->run, n * (cols + 2 * bare) * (int64_t)sizeof(double));
    if (err < 0) mx_fail(&w->run->why, err, "writing the result failed: %s", strerror(-err));
    return err;
}

static int write_matrix(mx_wf_run *r, enum mx_wf_matrix m) {
    const uint64_t begin = mx_clock_ns();
    const int64_t border = r->o.bare_output ? 0 : 2;
    struct writer w = {.run = r};
    if (r->results[m].fd < 0) return 0;
    int err = mx_npy_begin_matrix(r->results[m].fd, MX_F64, r->source.rows + border, r->source.cols + border,
                                  &r->why, &w.npy);
    if (err == 0) err = each_row(r, m, write_rows, &w);
    r->written_s[m] = mx_seconds_since(begin);
    return err;
}

/* All are written before the first gets its name. */
int mx_wf_publish(mx_wf_run *r) {
    const uint64_t begin = mx_clock_ns();
    int err = 0;
    if (r->report.verified == 0) return 0;
    mx_wf_begin_phase(r, "output", "B", r->o.outputs.n * mx_wf_matrix_bytes(r));
    for (int m = 0; m < MX_WF_MATRICES && err == 0; m++) err = write_matrix(r, (enum mx_wf_matrix)m);
    for (int m = 0; m < MX_WF_MATRICES && err == 0; m++)
        if (r->results[m].fd >= 0) err = mx_output_publish(&r->results[m], "the result", &r->why);
    r->post_seconds = mx_seconds_since(begin);
    return err;
}
