/* SPDX-License-Identifier: BSD-3-Clause */
/* geometry.h - inside schedule/ only: how one dimension is divided into blocks. The same functions serve y
 * and z of every algorithm; nothing else in this folder knows where a block begins.
 *
 * Positions are Buffer coordinates 0..n+2h, frame included. Levels count from 1; `levels` is the number of
 * steps of the sweep at hand.
 */
#ifndef MX_GEOMETRY_H
#define MX_GEOMETRY_H

#include "machine/minmax.h"

#include <stdbool.h>
#include <stdint.h>

struct mx_range {
    int64_t lo, hi; /* [lo,hi); empty when lo >= hi */
};
static inline int64_t mx_ceil_div64(int64_t a, int64_t b) { return (a + b - 1) / b; } /* a >= 0, b > 0 */
static inline int64_t mx_length(struct mx_range r) { return r.hi > r.lo ? r.hi - r.lo : 0; }

/* Returns the smallest range that contains both. */
static inline struct mx_range mx_hull(struct mx_range a, struct mx_range b) {
    if (mx_length(a) == 0 || mx_length(b) == 0) return mx_length(a) == 0 ? b : a;
    return (struct mx_range){mx_min(a.lo, b.lo), mx_max(a.hi, b.hi)};
}
/* Returns what lies between the first and the last window, of windows that move one way. */
static inline struct mx_range mx_between(struct mx_range first, struct mx_range last) {
    if (mx_length(first) == 0) return first;
    return (struct mx_range){mx_min(first.lo, last.lo), mx_max(first.hi, last.hi)};
}
static inline struct mx_range mx_wider(struct mx_range r, int64_t by) {
    return mx_length(r) == 0 ? (struct mx_range){0, 0} : (struct mx_range){r.lo - by, r.hi + by};
}

struct mx_cut {
    int64_t n, b, h; /* interior cells, block, halo */
    int64_t count;   /* blocks */
    bool ghost[2];   /* overlapped blocks: the block at this end has a halo too (ends.h) */
};

/* ---- time-skewed blocks (Algorithm 2 of Midorikawa & Tan)
 * The cut starts on the ghost row: block j owns [j*b, (j+1)*b) at level 1 and moves down by h per level. Each
 * cell is computed once. Any b >= 1 is correct: a cell's level t is in block floor((z + (t-1)h) / b), and
 * everything that it reads or overwrites is in the same block or an earlier one. */

/* Halo rows that are read again at each cut in y, if the rest is handed over in DRAM (c of CalcTrans). */
enum { MX_REREAD_HALOS = 1 };

struct mx_cut mx_skew_cut(int64_t n, int64_t b, int64_t h); /* one block when b >= n */
struct mx_range mx_skew_window(const struct mx_cut *cut, int64_t j, int64_t level);
struct mx_range mx_skew_span(const struct mx_cut *cut, int64_t j, int64_t levels);
/* The part of the span that block j-1 holds too (empty for j = 0) ... */
struct mx_range mx_skew_shared_before(const struct mx_cut *cut, int64_t j, int64_t levels);
/* ... that block j+1 needs too (empty for the last) ... */
struct mx_range mx_skew_shared_after(const struct mx_cut *cut, int64_t j, int64_t levels);
/* ... and, where blocks hand over in DRAM, what is handed to j, read by j, written by j. */
struct mx_range mx_skew_handed(const struct mx_cut *cut, int64_t j, int64_t levels);
struct mx_range mx_skew_read(const struct mx_cut *cut, int64_t j, int64_t levels);
struct mx_range mx_skew_written(const struct mx_cut *cut, int64_t j, int64_t levels);
/* Sums over all blocks, and Block extents; O(1). */
int64_t mx_skew_shared_sum(const struct mx_cut *cut, int64_t levels);
int64_t mx_skew_span_sum(const struct mx_cut *cut, int64_t levels);
int64_t mx_skew_read_sum(const struct mx_cut *cut);
int64_t mx_skew_span_max(const struct mx_cut *cut, int64_t levels); /* zmax of the model */
int64_t mx_skew_fixed(const struct mx_cut *cut, int64_t levels);    /* ysize of the model */
/* Fixed layout: where row 0 of the Buffer stands in the Block of block j. */
int64_t mx_skew_offset(const struct mx_cut *cut, int64_t j, int64_t levels);

/* ---- overlapped blocks (algorithm-1): block j owns [j*b+h, (j+1)*b+h), with a halo that shrinks by h per
 * level */
struct mx_cut mx_lap_cut(int64_t n, int64_t b, int64_t h);
struct mx_range mx_lap_window(const struct mx_cut *cut, int64_t j, int64_t level, int64_t levels);
struct mx_range mx_lap_span(const struct mx_cut *cut, int64_t j, int64_t levels);
int64_t mx_lap_window_sum(const struct mx_cut *cut, int64_t level, int64_t levels); /* O(1) */
int64_t mx_lap_span_sum(const struct mx_cut *cut, int64_t levels);                  /* O(1) */
int64_t mx_lap_span_max(const struct mx_cut *cut, int64_t levels);                  /* O(1) */
/* Returns the part of these spans that lies beyond an end of the grid with ghosts. */
int64_t mx_lap_beyond_sum(const struct mx_cut *cut, int end, int64_t levels);

/* ---- y-strips of stream: windows and spans are those of time-skewed blocks. But n alone determines the
 * number of strips, so that the last strip owns all of the upper frame. Rows left of a strip's windows come
 * as seams.
 */
struct mx_cut mx_strip_cut(int64_t n, int64_t b, int64_t h);
struct mx_range mx_strip_loaded(const struct mx_cut *cut, int64_t j);
struct mx_range mx_strip_stored(const struct mx_cut *cut, int64_t j, int64_t levels);
/* Rows of level `level` (0..levels-1, 0 = loaded) that strip j reads and strip j-1 computed: at most 2h. */
struct mx_range mx_strip_seam(const struct mx_cut *cut, int64_t j, int64_t level);

#endif
