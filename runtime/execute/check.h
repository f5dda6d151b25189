/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - inside execute/ only: what verify.c and verify_levels.c share of a plain recomputation. */
#ifndef MX_CHECK_H
#define MX_CHECK_H

#include "execute/execute.h"
#include "stencil/stencil.h"

struct check {
    const struct mx_verification *v;
    mx_kernel_fn *kernel; /* NULL: the system's row functions */
    bool pairs;
    mx_block *block;
    char *planes; /* ring of 2h+1 planes for each level (pairs: from -1) to depth-1, one plane for the last */
    int64_t depth; /* levels of this pass */
    int64_t reach; /* 2h+1 */
    int64_t done;  /* levels of earlier passes */
    int64_t fixed_slots;
    mx_block *fixed_block[MX_MAX_FIXED];
    struct mx_fixed_view fixed[MX_MAX_FIXED];
    struct mx_view view;                            /* of C alone */
    struct mx_plane_stream *result[2], *scratch[2]; /* newest and the other array: the last level's planes are
                                                       compared with, or written to */
    int64_t cells;
    struct mx_sides sides;
    bool ghost; /* z is periodic */
    mx_block *kept_block;
    char *kept; /* periodic z, passes after the first: the planes that its end needs again and has overwritten
                   meanwhile, those of the other array behind them */
    int64_t deepest;
    mx_why *why;
};

static inline char *mx_check_plane(const struct check *c, int64_t level, int64_t z) {
    const int64_t at = mx_wrap(z, c->reach);
    int64_t i = (level + c->pairs) * c->reach + (level < c->depth ? at : 0);
    return c->planes + i * c->v->layout->plane_pitch_bytes;
}

/* Planes that level `level` of this pass computes, or has of what it begins with. */
struct extent {
    int64_t first, end;
};
static inline struct extent mx_check_extent(const struct check *c, int64_t level) {
    const struct mx_problem *p = c->v->problem;
    const int64_t more = c->ghost ? (c->depth - level) * p->h : 0;
    return (struct extent){p->h - more, p->nz + p->h + more};
}

/* The plane of the grid that it is. */
static inline int64_t mx_check_in_grid(const struct check *c, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    return c->ghost ? p->h + mx_wrap(z - p->h, p->nz) : z;
}

/* The array that level `level` of this pass is in. */
static inline int mx_check_array(const struct check *c, int64_t level) {
    return (int)((c->done + level) & 1);
}

/* The Buffer that holds the newest array after so many levels (i = 0), or the other one: of a pair. */
static inline mx_buffer *mx_check_buffer(const struct check *c, bool scratch, int64_t levels, int i) {
    const struct mx_verification *v = c->v;
    const bool partner = c->pairs && ((levels - i) & 1) != 0;
    if (scratch) return partner ? v->scratch_partner : v->scratch;
    return partner ? v->partner : v->result;
}

/* ---- verify_levels.c */

/* Level's plane z is known: brings the levels above it up to date. */
int mx_check_push(struct check *c, int64_t level, int64_t z);
/* Plane z of a level has come: makes the frame planes that copy it. */
void mx_check_mirror(const struct check *c, int64_t level, int64_t z);
/* Passes over a plane of the last level, or (pairs, i = 1) of the one before it, that is not compared. */
int mx_check_skip(struct check *c, int i);

#endif
