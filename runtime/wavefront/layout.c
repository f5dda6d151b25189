/* SPDX-License-Identifier: BSD-3-Clause */
#include "wavefront/layout.h"
#include "machine/minmax.h"

#include <errno.h>
#include <memext/backend.h>
#include <string.h>

const char *const mx_wf_names[MX_WF_MATRICES] = {"za", "zr", "zb", "zu", "zv", "zz"};
const char *const mx_wf_layouts[MX_WF_LAYOUTS] = {"row", "block", "frontier"};

enum { CELL = 8 };

int mx_wf_geometry(int64_t rows, int64_t cols, enum mx_wf_layout layout, int64_t mb, int64_t nb,
                   uint32_t align, mx_why *why, struct mx_wf_geometry *out) {
    struct mx_wf_geometry g = {.rows = rows, .cols = cols, .layout = layout, .align_bytes = align};
    if (rows < 1 || cols < 1 || rows > MX_WF_MOST_EXTENT || cols > MX_WF_MOST_EXTENT)
        return mx_fail(why, -EINVAL,
                       "a matrix of %lld x %lld cells is not possible: each extent must be 1 to %lld",
                       (long long)rows, (long long)cols, (long long)MX_WF_MOST_EXTENT);
    if (mb < 1 || nb < 1)
        return mx_fail(why, -EINVAL,
                       "a tile of %lld x %lld cells is not possible: each extent must be at least 1",
                       (long long)mb, (long long)nb);
    if ((rows + 2) > (INT64_C(1) << 55) / (cols + 2))
        return mx_fail(why, -EOVERFLOW,
                       "a matrix of %lld x %lld cells has more than 2^55 cells: give a smaller -n",
                       (long long)rows, (long long)cols);
    g.mb = mx_min(mb, rows);
    g.nb = mx_min(nb, cols);
    if (layout == MX_WF_ROW && align > CELL) g.nb = mx_wf_up(g.nb, align / CELL);
    g.tile_rows = (rows - 1) / g.mb + 1;
    g.tile_cols = (cols - 1) / g.nb + 1;
    g.pitch_bytes = mx_wf_up((cols + 2) * CELL, align);
    *out = g;
    return 0;
}

struct mx_wf_tile mx_wf_tile(const struct mx_wf_geometry *g, int64_t i, int64_t j) {
    return (struct mx_wf_tile){i == 0 ? 0 : mx_wf_first_row(g, i),
                               i + 1 == g->tile_rows ? g->rows + 2 : mx_wf_end_row(g, i), j * g->nb,
                               j + 1 == g->tile_cols ? g->cols + 2 : (j + 1) * g->nb};
}

enum mx_wf_layout mx_wf_layout_of(const struct mx_wf_geometry *g, enum mx_wf_matrix m) {
    return g->layout == MX_WF_FRONTIER && m != MX_WF_ZA ? MX_WF_BLOCK : g->layout;
}

/* ---- sizes of tiles of h x w cells */

static int64_t inner(int64_t n) { return n > 2 ? n - 2 : 0; }

static int64_t frontier_cells(int64_t h, int64_t w) { return 2 * w + 2 * h + inner(h) * inner(w); }

static int64_t block_bytes(const struct mx_wf_geometry *g, enum mx_wf_layout l, int64_t h, int64_t w) {
    return mx_wf_up((l == MX_WF_FRONTIER ? frontier_cells(h, w) : h * w) * CELL, g->align_bytes);
}

/* Bytes of a row's piece in layout row: the last tile column takes the padding of the pitch. */
static int64_t piece_bytes(const struct mx_wf_geometry *g, int64_t j) {
    return j + 1 == g->tile_cols ? g->pitch_bytes - j * g->nb * CELL : g->nb * CELL;
}

int64_t mx_wf_tile_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i, int64_t j) {
    const struct mx_wf_tile t = mx_wf_tile(g, i, j);
    const enum mx_wf_layout l = mx_wf_layout_of(g, m);
    if (l == MX_WF_ROW) return (t.r1 - t.r0) * piece_bytes(g, j);
    return block_bytes(g, l, t.r1 - t.r0, t.c1 - t.c0);
}

/* Heights: the first tile row, the last, and one between. */
static int64_t row_of_kind(const struct mx_wf_geometry *g, int kind) {
    return kind == 0 ? 0 : kind == 1 ? g->tile_rows - 1 : g->tile_rows / 2;
}

int64_t mx_wf_most_tile_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m) {
    int64_t most = 0;
    for (int k = 0; k < 3; k++)
        for (int e = 0; e < 2; e++) {
            int64_t bytes = mx_wf_tile_bytes(g, m, row_of_kind(g, k), e ? g->tile_cols - 1 : 0);
            if (bytes > most) most = bytes;
        }
    return most;
}

int64_t mx_wf_most_spans(const struct mx_wf_geometry *g, enum mx_wf_matrix m) {
    return mx_wf_layout_of(g, m) == MX_WF_ROW ? g->mb + 2 : 1;
}

/* ---- where tiles lie */

/* All tiles of tile row i. */
static int64_t row_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i) {
    return (g->tile_cols - 1) * mx_wf_tile_bytes(g, m, i, 0) + mx_wf_tile_bytes(g, m, i, g->tile_cols - 1);
}

static int64_t tile_offset(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i, int64_t j) {
    int64_t at = i > 0 ? row_bytes(g, m, 0) : 0;
    if (i > 1) at += (i - 1) * row_bytes(g, m, 1);
    return at + j * mx_wf_tile_bytes(g, m, i, 0);
}

int64_t mx_wf_buffer_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m) {
    if (mx_wf_layout_of(g, m) == MX_WF_ROW) return (g->rows + 2) * g->pitch_bytes;
    return tile_offset(g, m, g->tile_rows - 1, 0) + row_bytes(g, m, g->tile_rows - 1);
}

int64_t mx_wf_spans(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i, int64_t j, char *dram,
                    struct mx_span *spans) {
    const struct mx_wf_tile t = mx_wf_tile(g, i, j);
    const int64_t h = t.r1 - t.r0, bytes = piece_bytes(g, j);
    if (mx_wf_layout_of(g, m) != MX_WF_ROW) {
        spans[0] =
            (struct mx_span){(uint64_t)tile_offset(g, m, i, j), (uint64_t)mx_wf_tile_bytes(g, m, i, j), dram};
        return 1;
    }
    for (int64_t r = 0; r < h; r++)
        spans[r] = (struct mx_span){(uint64_t)((t.r0 + r) * g->pitch_bytes + t.c0 * CELL), (uint64_t)bytes,
                                    dram + r * bytes};
    return h;
}

/* ---- inside a tile */

/* Doubles before TF, LF, interior, RF, BF of a tile of h x w cells. */
static void frontier_offsets(int64_t h, int64_t w, int64_t at[5]) {
    at[0] = 0;
    at[1] = w;
    at[2] = w + h;
    at[3] = at[2] + inner(h) * inner(w);
    at[4] = at[3] + h;
}

int mx_wf_row(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i, int64_t j, int64_t r,
              char *dram, struct mx_wf_piece pieces[3]) {
    const struct mx_wf_tile t = mx_wf_tile(g, i, j);
    const int64_t h = t.r1 - t.r0, w = t.c1 - t.c0;
    double *cells = (double *)(void *)dram;
    int64_t at[5];
    int n = 0;
    switch (mx_wf_layout_of(g, m)) {
    case MX_WF_ROW:
        pieces[n++] = (struct mx_wf_piece){(double *)(void *)(dram + r * piece_bytes(g, j)), w};
        return n;
    case MX_WF_FRONTIER:
        break;
    default:
        pieces[n++] = (struct mx_wf_piece){cells + r * w, w};
        return n;
    }
    frontier_offsets(h, w, at);
    if (r == 0 || r == h - 1) {
        pieces[n++] = (struct mx_wf_piece){cells + at[r == 0 ? 0 : 4], w};
        return n;
    }
    pieces[n++] = (struct mx_wf_piece){cells + at[1] + r, 1};
    if (inner(w) > 0) pieces[n++] = (struct mx_wf_piece){cells + at[2] + (r - 1) * inner(w), inner(w)};
    if (w > 1) pieces[n++] = (struct mx_wf_piece){cells + at[3] + r, 1};
    return n;
}

void mx_wf_move_row(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i, int64_t j, int64_t r,
                    char *dram, double *row, bool to_tile) {
    struct mx_wf_piece pieces[3];
    const int n = mx_wf_row(g, m, i, j, r, dram, pieces);
    double *at = row + j * g->nb;
    for (int p = 0; p < n; at += pieces[p++].cells)
        memcpy(to_tile ? pieces[p].at : at, to_tile ? at : pieces[p].at, (size_t)pieces[p].cells * CELL);
}

void mx_wf_seal(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i, int64_t j, char *dram) {
    const struct mx_wf_tile t = mx_wf_tile(g, i, j);
    const int64_t h = t.r1 - t.r0, w = t.c1 - t.c0;
    double *cells = (double *)(void *)dram;
    int64_t at[5];
    if (mx_wf_layout_of(g, m) != MX_WF_FRONTIER) return;
    frontier_offsets(h, w, at);
    double *tf = cells + at[0], *lf = cells + at[1], *rf = cells + at[3], *bf = cells + at[4];
    if (h == 1) memcpy(bf, tf, (size_t)w * CELL);
    lf[0] = tf[0], lf[h - 1] = bf[0];
    rf[0] = tf[w - 1], rf[h - 1] = bf[w - 1];
    if (w == 1) memcpy(rf, lf, (size_t)h * CELL);
    const int64_t end = at[4] + w, bytes = mx_wf_tile_bytes(g, m, i, j);
    memset(cells + end, 0, (size_t)(bytes - end * CELL));
}

/* ---- overhead */

int64_t mx_wf_copy_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m) {
    struct mx_wf_geometry packed = *g;
    if (mx_wf_layout_of(g, m) != MX_WF_FRONTIER) return 0;
    packed.align_bytes = 1;
    return mx_wf_buffer_bytes(&packed, m) - (g->rows + 2) * (g->cols + 2) * CELL;
}

int64_t mx_wf_padding_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m) {
    return mx_wf_buffer_bytes(g, m) - mx_wf_copy_bytes(g, m) - (g->rows + 2) * (g->cols + 2) * CELL;
}
