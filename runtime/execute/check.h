/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - inside execute/ only: a plain recomputation, shared by verify.c and verify_levels.c. */
#ifndef MX_CHECK_H
#define MX_CHECK_H

#include "execute/execute.h"
#include "stencil/stencil.h"

struct check {
    const struct mx_verification *v;
    mx_kernel_fn *kernel; /* NULL: the system's row functions */
    bool pairs;
    mx_block *block;
    char *planes;  /* a ring of 2h+1 planes for each level from 0 (pairs: -1) to depth-1, one plane for the
                      last */
    int64_t depth; /* levels of this pass */
    int64_t reach; /* 2h+1 */
    int64_t done;  /* levels of earlier passes */
    int64_t fixed_slots;
    mx_block *fixed_block[MX_MAX_FIXED];
    struct mx_fixed_view fixed[MX_MAX_FIXED];
    struct mx_view view; /* of the read-only fields alone */
    struct mx_plane_stream *result[2],
        *scratch[2]; /* streams of the newest array and the other one: the last level's planes are compared
                        with `result`, or written to `scratch` */
    int64_t cells;
    struct mx_sides sides;
    bool ghost; /* z is periodic */
    mx_block *kept_block;
    char *kept; /* periodic z, passes after the first: planes that the end of the pass needs again after they
                   were overwritten; those of the other array follow */
    int64_t deepest;
    mx_why *why;
};

static inline char *mx_check_plane(const struct check *c, int64_t level, int64_t z) {
    const int64_t at = mx_wrap(z, c->reach);
    int64_t i = (level + c->pairs) * c->reach + (level < c->depth ? at : 0);
    return c->planes + i * c->v->layout->plane_pitch_bytes;
}

/* The planes that level `level` of this pass computes; for level 0 those that the pass begins with. */
struct extent {
    int64_t first, end;
};
static inline struct extent mx_check_extent(const struct check *c, int64_t level) {
    const struct mx_problem *p = c->v->problem;
    const int64_t more = c->ghost ? (c->depth - level) * p->h : 0;
    return (struct extent){p->h - more, p->nz + p->h + more};
}

/* Returns the plane of the grid that z stands for. */
static inline int64_t mx_check_in_grid(const struct check *c, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    return c->ghost ? p->h + mx_wrap(z - p->h, p->nz) : z;
}

/* Returns the array that holds level `level` of this pass. */
static inline int mx_check_array(const struct check *c, int64_t level) {
    return (int)((c->done + level) & 1);
}

/* Returns the Buffer that holds the newest array after `levels` levels (i = 0), or the other array of a pair
 * (i = 1). */
static inline mx_buffer *mx_check_buffer(const struct check *c, bool scratch, int64_t levels, int i) {
    const struct mx_verification *v = c->v;
    const bool partner = c->pairs && ((levels - i) & 1) != 0;
    if (scratch) return partner ? v->scratch_partner : v->scratch;
    return partner ? v->partner : v->result;
}

/* ---- verify_levels.c */

/* Call it when plane z of a level is known: computes what the levels above it can compute from it. */
int mx_check_push(struct check *c, int64_t level, int64_t z);
/* Call it when plane z of a level has come: makes the frame planes that copy it. */
void mx_check_mirror(const struct check *c, int64_t level, int64_t z);
/* Skips a plane that is not compared, of the last level or (pairs, i = 1) of the one before it. */
int mx_check_skip(struct check *c, int i);

#endif
