/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.h - the rows that one call of a kernel computes: patches of planes, levels of tiles, and memory to
 * prefetch. */
#ifndef MX_STENCIL_ROWS_H
#define MX_STENCIL_ROWS_H

#include "system/system.h"

/* Runs of bytes that later calls will read, to prefetch while this call computes. So DRAM is busy all the
 * time, and not only in calls that find nothing in cache. With every strip of rows that it begins, a kernel
 * prefetches a share in proportion to the strip's cells. */
struct mx_ahead_run {
    const char *from;
    int64_t bytes;
};

struct mx_ahead {
    const struct mx_ahead_run *run, *end; /* the remaining runs */
    int64_t done;                         /* bytes of *run that were prefetched */
    double bytes_per_cell, due;           /* bytes to prefetch per cell; bytes that are due */
    bool to_l2; /* prefetch to L2 only: L1 has no room for data that is needed a level later */
};

/* Prefetches the share of `cells` more cells, in lines of 64 bytes; nothing when the runs are used up. */
void mx_ahead_ask(struct mx_ahead *ahead, int64_t cells);

/* A patch of rows of one plane. Cell x of row r: dst + r*row_pitch + x*element; x counts the frame, interior
 * is h..nx+h. */
struct mx_patch {
    char *dst; /* cell 0 of the patch's first row, array written (planes <= 1) */
    const char *const
        *src; /* [2h+1]: cell 0 of the same row in planes z-h .. z+h of the array read; src[h] is plane z */
    int64_t row_pitch_bytes;
    int32_t rows; /* >= 1 */
    int32_t h;
    int64_t nx;
    int64_t x0, x1; /* interior cells of this call: h <= x0 < x1 <= nx+h */
    /* For several planes z, z+1, ... in one call: src has planes + 2h entries, and dst_planes, with `planes`
     * entries, replaces dst. 0 and 1 mean one plane. */
    int32_t planes;
    char *const *dst_planes;
    struct mx_ahead *ahead; /* NULL: nothing */
};

static inline int64_t mx_patch_planes(const struct mx_patch *patch) {
    return patch->planes > 1 ? patch->planes : 1;
}
static inline char *mx_patch_dst(const struct mx_patch *patch, int64_t plane) {
    return patch->planes > 1 ? patch->dst_planes[plane] : patch->dst;
}

typedef void mx_kernel_fn(const struct mx_patch *patch, const double coef[4]);

/* One plane of a tile's rows -2 .. rows-1, in up to three places; each pointer is to cell 0 of its first row.
 */
struct mx_tile_rows {
    char *below; /* rows -2 and -1, which the tile before left */
    char *inner; /* rows 0 .. rows-3 */
    char *top;   /* rows-2 and rows-1 */
};

/* One level of a tile in skewed coordinates, stencils of h = 1: row r of plane s is computed from the rows
 * around row r-1 of plane s-1 of what is read. So new values may replace old ones in the same place: rows are
 * computed from the last to the first in z and y, and nothing is overwritten before it is read. In x the
 * whole row is computed. Its frame cells are copied from the old row, and then, while the row is in L1, from
 * the row itself as `x_copies` say (sides that are not fixed).
 *
 * A span of x (mx_stencil_span) is skewed in x as well, by a vector of `lanes` cells a level, so that it
 * stays aligned. Cells x0 .. x1-1 are computed from cells up to `lanes` below and above them, clipped to the
 * row. They may overwrite old cells that are `lanes` cells further on. They are computed from the last to the
 * first, and frame cells among them are copied from the old row. */
struct mx_tile {
    const struct mx_tile_rows *src; /* [planes + 2]: planes -2 .. planes-1 */
    const struct mx_tile_rows *dst; /* [planes]: planes 0 .. planes-1, `below` not used */
    int32_t rows, planes;           /* rows even; up to MX_TILE_MOST_ROWS, MX_TILE_MOST_PLANES */
    int64_t row_pitch_bytes, nx;
    struct mx_ahead *ahead; /* NULL: nothing */
    int32_t x_copies;       /* 0..2 */
    struct {
        int64_t to, from; /* cells of a row, frame counted */
    } x_copy[2];
    int64_t x0,
        x1; /* spans: cells, frame counted; x0 a multiple of lanes, x1 one or the row's end (nx + 2) */
};
enum { MX_TILE_MOST_ROWS = 12, MX_TILE_MOST_PLANES = 32 };

typedef void mx_tile_fn(const struct mx_tile *tile, const double coef[4]);

/* Copies the x frame cells of the patch's rows from src[h] to dst (left if x0 == h, right if x1 == nx+h). */
void mx_stencil_x_frame(const struct mx_patch *patch, enum mx_dtype dtype);

#endif
