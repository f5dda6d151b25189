/* SPDX-License-Identifier: BSD-3-Clause */
/* walk_steps.c - the steps of a walk: what is moved, in pieces that each lie in one place of a Buffer, and
 * frames. */
#include "schedule/walk.h"

#include <assert.h>

void mx_walk_push(struct mx_walk *w, const struct mx_step *step) {
    bool moves = step->kind != MX_STEP_ADVANCE && step->kind != MX_STEP_COMMIT;
    if (moves && mx_region_rows(step->region) == 0) return;
    assert(w->count < MX_WALK_QUEUE);
    w->queue[w->count++] = *step;
}

/* A LOAD of what a neighbour has sent. The last of a sweep says so. */
static void push_given(struct mx_walk *w, struct mx_step *s, int32_t neighbour) {
    int64_t *left = &w->given[neighbour - 1];
    s->neighbour = neighbour;
    *left -= mx_region_rows(s->region);
    s->last_given = *left == 0;
    mx_walk_push(w, s);
    s->neighbour = 0;
    s->last_given = false;
}

/* Planes that a sweep which begins at level `time` needs of its neighbours. */
int64_t mx_walk_given_planes(const struct mx_walk *w, int64_t time) {
    if (mx_neighbours(&w->problem) == 0 || time >= w->all_levels) return 0;
    return mx_min(w->max_levels, mx_sweep_end(&w->problem, time) - time) * w->problem.h;
}

/* A LOAD or STORE as one step for each piece of it that lies in one place of the Buffer. */
static void push_pieces(struct mx_walk *w, const struct mx_step *step) {
    const struct mx_region *g = &step->region;
    const bool *ghost = w->base.shape.ghost;
    int (*const cut)(const struct mx_problem *, int, bool, struct mx_range, struct mx_piece[MX_PIECES]) =
        step->kind == MX_STEP_LOAD ? mx_load_pieces : mx_store_pieces;
    struct mx_piece y[MX_PIECES], z[MX_PIECES];
    struct mx_step s = *step;
    const int ny = cut(&w->problem, MX_DIM_Y, ghost[MX_DIM_Y], (struct mx_range){g->y0, g->y1}, y);
    const int nz = cut(&w->problem, MX_DIM_Z, ghost[MX_DIM_Z], (struct mx_range){g->z0, g->z1}, z);
    for (int k = 0; k < nz; k++)
        for (int j = 0; j < ny; j++) {
            s.region = (struct mx_region){y[j].lo, y[j].hi, z[k].lo, z[k].hi};
            s.buffer_y = y[j].shift;
            s.buffer_z = z[k].shift;
            if (z[k].neighbour > 0 && step->kind == MX_STEP_LOAD && step->array < MX_SEAMS)
                push_given(w, &s, z[k].neighbour);
            else
                mx_walk_push(w, &s);
        }
}

void mx_walk_move(struct mx_walk *w, enum mx_step_kind kind, int32_t array, int32_t buffer,
                  struct mx_region region) {
    const bool pairs = w->base.shape.pairs;
    push_pieces(w, &(struct mx_step){.kind = kind,
                                     .array = array,
                                     .buffer = pairs && w->base.shape.in_place ? 0 : buffer,
                                     .part = pairs ? (int32_t)((w->time + array + w->parity) & 1) : 0,
                                     .region = region,
                                     .at = w->at,
                                     .whole_planes = w->base.shape.whole_planes,
                                     .next_given = mx_walk_given_planes(w, w->time + w->levels),
                                     .time = kind == MX_STEP_STORE ? w->time + w->levels : 0,
                                     .seam_in = -1,
                                     .seam_out = -1});
}

void mx_walk_move_in_place(struct mx_walk *w, enum mx_step_kind kind, int32_t array,
                           struct mx_region region) {
    mx_walk_move(w, kind, array, array, region);
}

void mx_walk_load_fixed(struct mx_walk *w, int64_t z0, int64_t z1) {
    if (!w->has_fixed) return;
    const int64_t hc = w->problem.system->hc;
    const struct mx_window *first = &w->whole[0], *last = &w->whole[w->levels - 1];
    struct mx_range y = mx_between(mx_window_rows(first), mx_window_rows(last)),
                    z = mx_between(mx_window_planes(first), mx_window_planes(last));
    y = mx_wider(mx_hull(y, w->ghost_rows), mx_reach_y_of_fixed(&w->problem)), z = mx_wider(z, hc);
    const struct mx_region r = {y.lo, y.hi, mx_max(z.lo, z0), mx_min(z.hi, z1)};
    for (int32_t i = 0; i < mx_fixed_count(&w->problem); i++)
        if (!mx_is_profile(&w->problem, i))
            push_pieces(w, &(struct mx_step){.kind = MX_STEP_LOAD,
                                             .array = MX_FIXED_ARRAY + i,
                                             .buffer = MX_FIXED_ARRAY + i,
                                             .region = r,
                                             .at = w->at,
                                             .seam_in = -1,
                                             .seam_out = -1});
}

static void push_frame(struct mx_walk *w, int32_t from, int64_t y0, int64_t y1, int64_t z0, int64_t z1) {
    mx_walk_push(w, &(struct mx_step){.kind = MX_STEP_COPY,
                                      .array = from,
                                      .to_array = 1 - from,
                                      .region = {y0, y1, z0, z1},
                                      .at = w->at,
                                      .to = w->at,
                                      .frame = true,
                                      .seam_in = -1,
                                      .seam_out = -1});
}

void mx_walk_copy_z_frame(struct mx_walk *w, int32_t from, struct mx_region r) {
    int64_t h = w->problem.h, top = w->problem.nz + h;
    const bool ghost = w->base.shape.ghost[MX_DIM_Z];
    if (!mx_end_ghost(&w->problem, ghost, MX_DIM_Z, 0))
        push_frame(w, from, r.y0, r.y1, r.z0, mx_min(r.z1, h));
    if (!mx_end_ghost(&w->problem, ghost, MX_DIM_Z, 1))
        push_frame(w, from, r.y0, r.y1, mx_max(r.z0, top), r.z1);
}

void mx_walk_copy_y_frame(struct mx_walk *w, int32_t from, struct mx_region r) {
    const int64_t h = w->problem.h, hy = mx_halo_y(&w->problem), end = w->problem.ny + hy;
    const bool *ghost = w->base.shape.ghost;
    int64_t z0 = mx_end_ghost(&w->problem, ghost[MX_DIM_Z], MX_DIM_Z, 0) ? r.z0 : mx_max(r.z0, h),
            z1 = mx_end_ghost(&w->problem, ghost[MX_DIM_Z], MX_DIM_Z, 1) ? r.z1
                                                                         : mx_min(r.z1, w->problem.nz + h);
    if (ghost[MX_DIM_Y]) return;
    push_frame(w, from, r.y0, mx_min(r.y1, hy), z0, z1);
    push_frame(w, from, mx_max(r.y0, end), r.y1, z0, z1);
}
