/* SPDX-License-Identifier: BSD-3-Clause */
/* layout.h - how the six matrices lie on the device: pure geometry, no I/O.
 *
 * A matrix has (rows + 2) x (cols + 2) doubles, border included; the loop computes the interior, rows 1..rows
 * and columns 1..cols. It is cut into tiles of mb interior rows (the first and the last tile row hold a
 * border row more) and nb columns (the first tile column begins with the border, the last one holds what is
 * left, at most nb + 2 columns). Three layouts (Clauss, Gustedt, Suter: Out-of-Core Wavefront Computations
 * with Reduced Synchronization, section 4):
 *
 *     row       row-major, rows at a pitch; a tile is a transfer per row
 *     block     tile after tile, each row-major: a tile is one transfer
 *     frontier  tile after tile, each as TF, LF, interior, RF, BF, corners twice: a tile, or any frontier
 *               of it, is one transfer. Coefficients have no frontiers to hand on: they lie in block layout
 */
#ifndef MX_WAVEFRONT_LAYOUT_H
#define MX_WAVEFRONT_LAYOUT_H

#include <memext/memext.h>
#include <stdbool.h>

enum mx_wf_matrix { MX_WF_ZA, MX_WF_ZR, MX_WF_ZB, MX_WF_ZU, MX_WF_ZV, MX_WF_ZZ, MX_WF_MATRICES };
extern const char *const mx_wf_names[MX_WF_MATRICES]; /* "za" "zr" "zb" "zu" "zv" "zz" */

enum mx_wf_layout { MX_WF_ROW, MX_WF_BLOCK, MX_WF_FRONTIER, MX_WF_LAYOUTS };
extern const char *const mx_wf_layouts[MX_WF_LAYOUTS];

static inline int64_t mx_wf_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

#define MX_WF_MOST_EXTENT (INT64_C(1) << 31)

struct mx_wf_geometry {
    int64_t rows, cols; /* interior, 1..MX_WF_MOST_EXTENT */
    int64_t mb, nb;     /* of a tile; at most rows and cols */
    int64_t tile_rows, tile_cols;
    int64_t pitch_bytes; /* of rows in layout row */
    enum mx_wf_layout layout;
    uint32_t align_bytes; /* of offsets and lengths of transfers; a power of two, or 1 */
};

/* Makes the geometry. Tiles larger than the matrix become the matrix. In layout row the columns of tiles are
 * whole units of transfer: nb is rounded up to a multiple of align / 8. -EINVAL (extents), -EOVERFLOW. */
int mx_wf_geometry(int64_t rows, int64_t cols, enum mx_wf_layout layout, int64_t mb, int64_t nb,
                   uint32_t align_bytes, mx_why *why, struct mx_wf_geometry *out);

/* A tile: rows r0..r1-1, columns c0..c1-1, border included. */
struct mx_wf_tile {
    int64_t r0, r1, c0, c1;
};
struct mx_wf_tile mx_wf_tile(const struct mx_wf_geometry *g, int64_t i, int64_t j);
/* First and one past the last interior row of tile row i. */
static inline int64_t mx_wf_first_row(const struct mx_wf_geometry *g, int64_t i) { return 1 + i * g->mb; }
static inline int64_t mx_wf_end_row(const struct mx_wf_geometry *g, int64_t i) {
    return i + 1 == g->tile_rows ? g->rows + 1 : 1 + (i + 1) * g->mb;
}

/* Returns the layout of one matrix: coefficients of a frontier store have block layout. */
enum mx_wf_layout mx_wf_layout_of(const struct mx_wf_geometry *g, enum mx_wf_matrix m);
/* Returns the bytes of a Buffer. Its tiles fill it, so a pass over all tiles moves this number of bytes. */
int64_t mx_wf_buffer_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m);
/* Returns the bytes that a transfer of the tile moves, in whole units of alignment. This is also the DRAM
 * that it needs. */
int64_t mx_wf_tile_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i, int64_t j);
/* The largest of them. */
int64_t mx_wf_most_tile_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m);
/* Returns the most spans of a transfer: rows of a tile, or 1. */
int64_t mx_wf_most_spans(const struct mx_wf_geometry *g, enum mx_wf_matrix m);
/* The spans of a transfer between the tile and dram, mx_wf_tile_bytes long; returns how many. */
int64_t mx_wf_spans(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i, int64_t j, char *dram,
                    struct mx_span *spans);

/* Finds row r (0 = first of the tile) of a tile that lies in dram as its transfer left it. pieces are in
 * order from the left; together their cells are the width of the tile. Returns their number, 1..3. */
struct mx_wf_piece {
    double *at;
    int64_t cells;
};
int mx_wf_row(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i, int64_t j, int64_t r,
              char *dram, struct mx_wf_piece pieces[3]);
/* The same row from or to an array of the matrix's width. */
void mx_wf_move_row(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i, int64_t j, int64_t r,
                    char *dram, double *row, bool to_tile);
/* Layout frontier: writes the second copies (corners, and rows and columns that are two frontiers at once) of
 * a tile whose rows were written through mx_wf_row. Nothing in other layouts. */
void mx_wf_seal(const struct mx_wf_geometry *g, enum mx_wf_matrix m, int64_t i, int64_t j, char *dram);

/* Bytes of a Buffer beyond those of the matrix: copies of the frontiers' corners (Table 1 of the paper: 4 x
 * thickness^2 x element a tile), and padding for the device. */
int64_t mx_wf_copy_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m);
int64_t mx_wf_padding_bytes(const struct mx_wf_geometry *g, enum mx_wf_matrix m);

#endif
