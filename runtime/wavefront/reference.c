/* SPDX-License-Identifier: BSD-3-Clause */
#include "wavefront/reference.h"
#include "machine/clock.h"
#include "machine/minmax.h"

#include "wavefront/kernel.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mx_wf_walk {
    struct mx_wf_walk_options o;
    int64_t rows, width;   /* rows with border; cells of a row with border */
    int64_t pitch_bytes;   /* of rows in DRAM and in scratch */
    int64_t waves;         /* of this walk */
    int64_t done;          /* iterations of the walks before */
    int64_t loaded, given; /* rows */
    int64_t slots;
    int64_t updates;
    mx_block *block;
};

static int64_t pitch(int64_t cols, uint32_t align) {
    return mx_wf_up((cols + 2) * (int64_t)sizeof(double), align > 64 ? align : 64);
}

int64_t mx_wf_scratch_bytes(int64_t rows, int64_t cols, uint32_t align) {
    return (rows + 2) * pitch(cols, align);
}

static bool stopped(const struct mx_wf_walk_options *o) { return o->stop != NULL && *o->stop != 0; }

static double *row_at(const struct mx_wf_walk *w, enum mx_wf_matrix m, int64_t i) {
    char *base = mx_block_data(w->block);
    return (double *)(void *)(base + (m * w->slots + i % w->slots) * w->pitch_bytes);
}

static int move(struct mx_wf_walk *w, int64_t i, bool write) {
    mx_ticket *ticket;
    const struct mx_span span = {(uint64_t)(i * w->pitch_bytes), (uint64_t)w->pitch_bytes,
                                 row_at(w, MX_WF_ZA, i)};
    int err = (write ? mx_buffer_write : mx_buffer_read)(w->o.scratch, &span, 1, &ticket);
    if (err == 0) err = mx_wait(ticket);
    if (err < 0)
        mx_fail(w->o.why, err, "%s row %lld of the comparison failed: %s", write ? "writing" : "reading",
                (long long)i, strerror(-err));
    return err;
}

static int load_row(struct mx_wf_walk *w, int64_t i) {
    int err = 0;
    for (int m = w->done > 0 ? MX_WF_ZR : MX_WF_ZA; m < MX_WF_MATRICES && err == 0; m++)
        err = mx_wf_source_rows(w->o.source, (enum mx_wf_matrix)m, i, 1, row_at(w, (enum mx_wf_matrix)m, i),
                                w->o.why);
    return err == 0 && w->done > 0 ? move(w, i, false) : err;
}

static void advance_row(struct mx_wf_walk *w, int64_t i) {
    if (i < 1 || i + 1 >= w->rows) return;
    const struct mx_wf_plain p = {row_at(w, MX_WF_ZA, i),     row_at(w, MX_WF_ZA, i - 1),
                                  row_at(w, MX_WF_ZA, i + 1), row_at(w, MX_WF_ZR, i),
                                  row_at(w, MX_WF_ZB, i),     row_at(w, MX_WF_ZU, i),
                                  row_at(w, MX_WF_ZV, i),     row_at(w, MX_WF_ZZ, i)};
    mx_wf_plain_row(&p, w->width - 2);
    w->updates += w->width - 2;
}

/* Takes in one row more; every wave goes a row on. */
static int step(struct mx_wf_walk *w) {
    const int64_t i = w->loaded;
    if (stopped(&w->o)) return -EINTR;
    int err = i < w->rows ? load_row(w, i) : 0;
    for (int64_t wave = 1; wave <= w->waves && err == 0; wave++) advance_row(w, i - wave);
    w->loaded++;
    if (w->o.progress != NULL) w->o.progress(w->o.context, w->updates);
    return err;
}

int mx_wf_walk_next(struct mx_wf_walk *w, const double **row) {
    int err = 0;
    while (w->loaded <= w->given + w->waves && err == 0) err = step(w);
    if (err < 0) return err;
    *row = row_at(w, MX_WF_ZA, w->given++);
    return 0;
}

static void begin_walk(struct mx_wf_walk *w) {
    w->waves = mx_min(w->slots - 2, w->o.iterations - w->done);
    w->loaded = w->given = 0;
}

static int walk_to_scratch(struct mx_wf_walk *w) {
    const double *row;
    int err = 0;
    for (int64_t i = 0; i < w->rows && err == 0; i++) {
        err = mx_wf_walk_next(w, &row);
        if (err == 0) err = move(w, i, true);
    }
    w->done += w->waves;
    begin_walk(w);
    return err;
}

int mx_wf_walk_open(const struct mx_wf_walk_options *o, struct mx_wf_walk **out) {
    struct mx_wf_walk *w = calloc(1, sizeof *w);
    if (w == NULL) return mx_fail(o->why, -ENOMEM, "no memory for the comparison");
    w->o = *o;
    w->rows = o->source->rows + 2;
    w->width = o->source->cols + 2;
    w->pitch_bytes = pitch(o->source->cols, o->align_bytes);
    w->slots = mx_min(o->iterations + 2, (int64_t)o->dram_bytes / (MX_WF_MATRICES * w->pitch_bytes));
    if (w->slots < 3) w->slots = 3;
    const struct mx_block_options b = {.budget = o->budget, .device = o->device};
    int err = mx_block_create(&b, (uint64_t)(MX_WF_MATRICES * w->slots * w->pitch_bytes), o->why, &w->block);
    begin_walk(w);
    while (err == 0 && w->done + w->waves < o->iterations) err = walk_to_scratch(w);
    if (err < 0)
        mx_wf_walk_close(w);
    else
        *out = w;
    return err;
}

void mx_wf_walk_close(struct mx_wf_walk *w) {
    if (w == NULL) return;
    mx_block_free(w->block);
    free(w);
}

/* ---- in memory */

static int fill(const struct mx_wf_walk_options *o, double *const z[MX_WF_MATRICES]) {
    const int64_t rows = o->source->rows + 2, width = o->source->cols + 2;
    int err = 0;
    for (int m = 0; m < MX_WF_MATRICES; m++)
        for (int64_t i = 0; i < rows && err == 0; i++)
            err = stopped(o)
                      ? -EINTR
                      : mx_wf_source_rows(o->source, (enum mx_wf_matrix)m, i, 1, z[m] + i * width, o->why);
    return err;
}

static int loop(const struct mx_wf_walk_options *o, double *const z[MX_WF_MATRICES]) {
    const int64_t rows = o->source->rows, cols = o->source->cols, width = cols + 2;
    for (int64_t k = 0; k < o->iterations; k++)
        for (int64_t i = 1; i <= rows; i++) {
            const int64_t at = i * width;
            const struct mx_wf_plain p = {
                z[MX_WF_ZA] + at, z[MX_WF_ZA] + at - width, z[MX_WF_ZA] + at + width, z[MX_WF_ZR] + at,
                z[MX_WF_ZB] + at, z[MX_WF_ZU] + at,         z[MX_WF_ZV] + at,         z[MX_WF_ZZ] + at};
            mx_wf_plain_row(&p, cols);
            if (stopped(o)) return -EINTR;
            if (o->progress != NULL && i % 64 == 0) o->progress(o->context, (k * rows + i) * cols);
        }
    return 0;
}

int mx_wf_run_sequential(const struct mx_wf_walk_options *o, mx_block **block, uint64_t *fill_ns,
                         uint64_t *loop_ns) {
    const int64_t cells = (o->source->rows + 2) * (o->source->cols + 2);
    const struct mx_block_options b = {.budget = o->budget};
    double *z[MX_WF_MATRICES];
    int err = mx_block_create(&b, (uint64_t)(MX_WF_MATRICES * cells) * sizeof(double), o->why, block);
    if (err < 0) return err;
    for (int m = 0; m < MX_WF_MATRICES; m++) z[m] = (double *)mx_block_data(*block) + m * cells;
    const uint64_t begin = mx_clock_ns();
    err = fill(o, z);
    const uint64_t filled = mx_clock_ns();
    if (err == 0) err = loop(o, z);
    *fill_ns = filled - begin;
    *loop_ns = mx_clock_ns() - filled;
    return err;
}
