/* SPDX-License-Identifier: BSD-3-Clause */
#include "wavefront/convert.h"
#include "machine/minmax.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BAND_BYTES = 2 << 20 }; /* of dense rows at a time */

static int64_t row_bytes(const struct mx_wf_geometry *g) { return (g->cols + 2) * (int64_t)sizeof(double); }
static int64_t band_rows(const struct mx_wf_geometry *g) {
    return mx_min(mx_max(BAND_BYTES / row_bytes(g), 1), g->mb + 2);
}

/* All tiles of the tallest tile row: the first, the last, or one between. */
static int64_t tile_row_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m) {
    return g->tile_cols * mx_wf_most_tile_bytes(g, m);
}

int64_t mx_wf_conversion_bytes(const struct mx_wf_geometry *g) {
    const int64_t align = g->align_bytes > 4096 ? g->align_bytes : 4096;
    return mx_wf_up(2 * tile_row_bytes(g, MX_WF_ZA) + band_rows(g) * row_bytes(g), align);
}

struct mover {
    const struct mx_wf_conversion *c;
    const struct mx_wf_geometry *g;
    mx_block *block;
    char *half[2];
    double *band;
    struct mx_span *spans;
    mx_ticket *tickets[2];
};

static char *tile_at(const struct mover *v, int64_t i, int64_t j) {
    return v->half[i % 2] + j * mx_wf_most_tile_bytes(v->g, v->c->matrix);
}

static int fail_row(const struct mover *v, int err, bool write, int64_t i) {
    return mx_fail(v->c->why, err, "%s tile row %lld of matrix %s failed: %s", write ? "writing" : "reading",
                   (long long)i, mx_wf_names[v->c->matrix], strerror(-err));
}

static int start(struct mover *v, bool write, int64_t i) {
    int64_t n = 0;
    for (int64_t j = 0; j < v->g->tile_cols; j++)
        n += mx_wf_spans(v->g, v->c->matrix, i, j, tile_at(v, i, j), v->spans + n);
    int err =
        (write ? mx_buffer_write : mx_buffer_read)(v->c->buffer, v->spans, (size_t)n, &v->tickets[i % 2]);
    return err < 0 ? fail_row(v, err, write, i) : 0;
}

static int finish(struct mover *v, bool write, int64_t i) {
    int err = i < 0 ? 0 : mx_wait(v->tickets[i % 2]);
    if (i >= 0) v->tickets[i % 2] = NULL;
    return err < 0 ? fail_row(v, err, write, i) : 0;
}

static int open_mover(const struct mx_wf_conversion *c, struct mover *v) {
    const int64_t half = tile_row_bytes(c->geometry, c->matrix);
    const struct mx_block_options o = {.budget = c->budget, .device = c->device};
    *v = (struct mover){.c = c, .g = c->geometry};
    v->spans = calloc((size_t)(v->g->tile_cols * mx_wf_most_spans(v->g, c->matrix)), sizeof *v->spans);
    if (v->spans == NULL) return mx_fail(c->why, -ENOMEM, "no memory for the conversion of a matrix");
    const int64_t bytes = 2 * half + band_rows(v->g) * row_bytes(v->g);
    int err = mx_block_create(&o, (uint64_t)bytes, c->why, &v->block);
    if (err < 0) return free(v->spans), err;
    v->half[0] = mx_block_data(v->block);
    v->half[1] = v->half[0] + half;
    v->band = (double *)(void *)(v->half[1] + half);
    return 0;
}

static int close_mover(struct mover *v, int err) {
    for (int h = 0; h < 2; h++) {
        int e = mx_wait(v->tickets[h]);
        if (err == 0 && e < 0)
            err = mx_fail(v->c->why, e, "a transfer of matrix %s failed: %s", mx_wf_names[v->c->matrix],
                          strerror(-e));
    }
    mx_block_free(v->block);
    free(v->spans);
    return err;
}

static bool stopped(const struct mover *v) { return v->c->stop != NULL && *v->c->stop != 0; }

/* Row r of the matrix between its tiles and a dense row. */
static void move_row(const struct mover *v, int64_t i, int64_t r, double *dense, bool to_tiles) {
    const int64_t from = mx_wf_tile(v->g, i, 0).r0;
    for (int64_t j = 0; j < v->g->tile_cols; j++)
        mx_wf_move_row(v->g, v->c->matrix, i, j, r - from, tile_at(v, i, j), dense, to_tiles);
}

/* ---- to the layout */

static int cut_row(struct mover *v, const struct mx_wf_source *source, int64_t i) {
    const struct mx_wf_tile t = mx_wf_tile(v->g, i, 0);
    const int64_t width = v->g->cols + 2;
    for (int64_t r = t.r0; r < t.r1; r += band_rows(v->g)) {
        const int64_t n = mx_min(band_rows(v->g), t.r1 - r);
        int err = stopped(v) ? -EINTR : mx_wf_source_rows(source, v->c->matrix, r, n, v->band, v->c->why);
        if (err < 0) return err;
        for (int64_t k = 0; k < n; k++) move_row(v, i, r + k, v->band + k * width, true);
    }
    for (int64_t j = 0; j < v->g->tile_cols; j++) mx_wf_seal(v->g, v->c->matrix, i, j, tile_at(v, i, j));
    return 0;
}

int mx_wf_store_matrix(const struct mx_wf_conversion *c, const struct mx_wf_source *source) {
    struct mover v;
    int err = open_mover(c, &v);
    if (err < 0) return err;
    for (int64_t i = 0; i < v.g->tile_rows && err == 0; i++) {
        err = finish(&v, true, i - 2);
        if (err == 0) err = cut_row(&v, source, i);
        if (err == 0) err = start(&v, true, i);
    }
    return close_mover(&v, err);
}

/* ---- from the layout */

static int hand_out(struct mover *v, int64_t i, mx_wf_sink_fn *sink, void *context) {
    const struct mx_wf_tile t = mx_wf_tile(v->g, i, 0);
    const int64_t width = v->g->cols + 2;
    for (int64_t r = t.r0; r < t.r1; r += band_rows(v->g)) {
        const int64_t n = mx_min(band_rows(v->g), t.r1 - r);
        if (stopped(v)) return -EINTR;
        for (int64_t k = 0; k < n; k++) move_row(v, i, r + k, v->band + k * width, false);
        int err = sink(context, r, n, v->band);
        if (err < 0) return err;
    }
    return 0;
}

int mx_wf_fetch_matrix(const struct mx_wf_conversion *c, mx_wf_sink_fn *sink, void *context) {
    struct mover v;
    int err = open_mover(c, &v);
    if (err < 0) return err;
    err = start(&v, false, 0);
    for (int64_t i = 0; i < v.g->tile_rows && err == 0; i++) {
        if (i + 1 < v.g->tile_rows) err = start(&v, false, i + 1);
        if (err == 0) err = finish(&v, false, i);
        if (err == 0) err = hand_out(&v, i, sink, context);
    }
    return close_mover(&v, err);
}
