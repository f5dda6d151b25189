/* SPDX-License-Identifier: BSD-3-Clause */
#include "wavefront/ring.h"
#include "machine/minmax.h"

enum { CHUNK = 64 }; /* columns whose records stay in L1 while lane after lane is moved */

/* Columns c..c+n-1 of lane k. */
static void put(struct mx_wf_record *r, enum mx_wf_matrix m, int64_t k, int64_t c, int64_t n,
                const double *from) {
    double *to = &r[c + k].za[0] + m * MX_WF_LANES + k;
    for (int64_t x = 0; x < n; x++) to[x * MX_WF_LANE_STEP] = from[x];
}

static void zero(struct mx_wf_record *r, enum mx_wf_matrix m, int64_t k, int64_t c, int64_t n) {
    double *to = &r[c + k].za[0] + m * MX_WF_LANES + k;
    for (int64_t x = 0; x < n; x++) to[x * MX_WF_LANE_STEP] = 0;
}

static void get(const struct mx_wf_record *r, int64_t k, int64_t c, int64_t n, double *to) {
    const double *from = &r[c + k].za[k];
    for (int64_t x = 0; x < n; x++) to[x] = from[x * MX_WF_LANE_STEP];
}

/* One group of one tile, between the columns of its chunk. */
struct window {
    const struct mx_wf_rows *rows;
    enum mx_wf_matrix m;
    int64_t j;
    char *dram;
    bool out;
};

static void move_lane(const struct window *w, struct mx_wf_record *group, int64_t k, int64_t row, int64_t c0,
                      int64_t c1) {
    const struct mx_wf_geometry *g = w->rows->geometry;
    struct mx_wf_piece pieces[3];
    const int n = mx_wf_row(g, w->m, w->rows->i, w->j, row, w->dram, pieces);
    int64_t at = w->j * g->nb;
    for (int p = 0; p < n; at += pieces[p++].cells) {
        const int64_t from = mx_max(c0, at), upto = mx_min(c1, at + pieces[p].cells);
        if (from >= upto) continue;
        double *cells = pieces[p].at + (from - at);
        if (w->out)
            get(group, k, from, upto - from, cells);
        else
            put(group, w->m, k, from, upto - from, cells);
    }
}

static void move_groups(const struct window *w) {
    const struct mx_wf_geometry *g = w->rows->geometry;
    const struct mx_wf_tile t = mx_wf_tile(g, w->rows->i, w->j);
    const int64_t first = mx_wf_first_row(g, w->rows->i), n = mx_wf_end_row(g, w->rows->i) - first;
    for (int64_t from = 0; from < n; from += MX_WF_LANES) {
        struct mx_wf_record *group = w->rows->groups + from / MX_WF_LANES * mx_wf_records(g->cols);
        const int64_t lanes = mx_min(n - from, MX_WF_LANES);
        for (int64_t c = t.c0; c < t.c1; c += CHUNK) {
            const int64_t end = mx_min(c + CHUNK, t.c1);
            for (int64_t k = 0; k < lanes; k++) move_lane(w, group, k, first + from + k - t.r0, c, end);
            for (int64_t k = lanes; k < MX_WF_LANES && !w->out; k++) zero(group, w->m, k, c, end - c);
        }
    }
}

/* Border rows of the tile from or to their arrays. */
static void move_borders(const struct window *w) {
    const struct mx_wf_geometry *g = w->rows->geometry;
    const int64_t i = w->rows->i;
    const struct mx_wf_tile t = mx_wf_tile(g, i, w->j);
    if (i == 0) mx_wf_move_row(g, w->m, i, w->j, 0, w->dram, w->rows->top, w->out);
    if (i + 1 == g->tile_rows)
        mx_wf_move_row(g, w->m, i, w->j, t.r1 - t.r0 - 1, w->dram, w->rows->bottom, w->out);
}

void mx_wf_unpack(const struct mx_wf_rows *to, enum mx_wf_matrix m, int64_t j, char *dram, bool take_border) {
    const struct window w = {to, m, j, dram, false};
    move_groups(&w);
    if (m == MX_WF_ZA && take_border) move_borders(&w);
}

void mx_wf_pack(const struct mx_wf_rows *from, int64_t j, char *dram) {
    const struct window w = {from, MX_WF_ZA, j, dram, true};
    move_groups(&w);
    move_borders(&w);
    mx_wf_seal(from->geometry, MX_WF_ZA, from->i, j, dram);
}
