/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.c - the front, passes and sweeps (walk.h). */
#include "schedule/walk.h"

#include <errno.h>
#include <stdlib.h>

static void extend(struct mx_planes *planes, int64_t z0, int64_t z1) {
    bool empty = planes->z0 >= planes->z1;
    planes->z0 = empty ? z0 : mx_min(planes->z0, z0);
    planes->z1 = empty ? z1 : mx_max(planes->z1, z1);
}

static void touch(struct mx_step *s, int32_t array, bool writes, int64_t z0, int64_t z1) {
    extend(&s->touches[array & 1], z0, z1);
    if (writes) extend(&s->writes[array & 1], z0, z1);
}

/* The frame planes that copy one of them are written too, of those that the Block has. */
static void touch_written(const struct mx_walk *w, struct mx_step *s, int32_t array, int64_t z0, int64_t z1) {
    if (!w->base.shape.ghost[MX_DIM_Z]) {
        mx_sides_extend(&w->problem.sides, MX_DIM_Z, w->problem.nz, w->problem.h, &z0, &z1);
        z0 = mx_max(z0, w->block.z0), z1 = mx_min(z1, w->block.z1);
    }
    touch(s, array, true, z0, z1);
}

/* Where a level begins and ends, in planes that the front moves over. */
static int64_t level_begin(const struct mx_walk *w, int32_t l) {
    return w->whole[l].z0 + (l + 1) * (int64_t)w->problem.h;
}

static int64_t level_end(const struct mx_walk *w, int32_t l) {
    return mx_max(w->whole[l].z0, w->whole[l].z1) + (l + 1) * (int64_t)w->problem.h;
}

/* Whether levels begin and end one after the other, which those of all algorithms do. */
static bool in_order(const struct mx_walk *w) {
    for (int32_t l = 0; l < w->levels; l++)
        if (l > 0 && (level_begin(w, l - 1) > level_begin(w, l) || level_end(w, l - 1) > level_end(w, l)))
            return false;
    return true;
}

/* The levels that have planes between two positions of the front: the others are not looked at, for a sweep
 * may have a million of which a slab crosses thirty. */
static void cross_levels(struct mx_walk *w, int64_t from, int64_t to) {
    while (w->ordered && w->cross_first < w->levels && level_end(w, w->cross_first) <= from) w->cross_first++;
    while (w->cross_end < w->levels && level_begin(w, w->cross_end) < to) w->cross_end++;
}

/* The part of each level that lies between two positions of the front. */
static void cut_windows(struct mx_walk *w, int64_t from, int64_t to, struct mx_step *s) {
    const int64_t h = w->problem.h, hc = mx_loaded_count(&w->problem) > 0 ? w->problem.system->hc : -1,
                  more = w->base.shape.by_twos ? h : 0;
    cross_levels(w, from, to);
    s->front = (struct mx_front){from, to, w->problem.h};
    s->first = w->cross_first, s->end = w->cross_end;
    for (int32_t l = s->first; l < s->end; l++) {
        const struct mx_window v = mx_step_window(s, l);
        if (v.y0 >= v.y1 || v.z0 >= v.z1) continue;
        for (int32_t i = 0; i < 1 + w->base.shape.by_twos; i++) {
            touch(s, w->parity + l + i, false, v.z0 - h - more, v.z1 + h);
            touch_written(w, s, w->parity + l + 1 + i, v.z0, v.z1);
        }
        if (hc >= 0) extend(&s->fixed, v.z0 - hc - more, v.z1 + hc);
    }
}

/* Interior and ghost planes of every level (0 = loaded) that has a seam. */
static void seam_planes(struct mx_walk *w) {
    const int64_t h = w->problem.h;
    const bool ghost = w->base.shape.ghost[MX_DIM_Z], low = mx_end_ghost(&w->problem, ghost, MX_DIM_Z, 0),
               high = mx_end_ghost(&w->problem, ghost, MX_DIM_Z, 1);
    for (int32_t l = 0; l <= w->levels; l++) {
        const int64_t layers = (w->levels - l) * h, z0 = h - (low ? layers : 0);
        w->seam_z[l] = (int32_t)z0;
        w->seam_nz[l] = l < w->levels ? (int32_t)(w->problem.nz + h + (high ? layers : 0) - z0) : 0;
    }
}

/* Those of them that come about between two positions of the front. Returns the levels that have some: they
 * follow one another, and those from 1 on are the levels whose windows have planes. */
static struct mx_range cut_seams(struct mx_walk *w, struct mx_step *s) {
    const struct mx_seam seam = {.front = s->front, .first_z = w->seam_z, .n_planes = w->seam_nz};
    const int32_t end = (int32_t)mx_min(w->levels, s->end + 1);
    struct mx_range levels = {0, 0};
    for (int32_t l = s->first; l < end; l++) {
        const struct mx_seam_planes z = mx_seam_planes(&seam, l);
        if (z.z0 >= z.z1) continue;
        if (w->seam_in >= 0 && l > 0) touch_written(w, s, w->parity + l, z.z0, z.z1);
        touch(s, w->parity + l, w->seam_in >= 0, z.z0, z.z1);
        if (levels.lo == levels.hi) levels.lo = l;
        levels.hi = l + 1;
    }
    return levels;
}

/* Where slab k of a pass is in DRAM: one after the other in the whole store; with a side file in a ring, the
 * incoming seams in its first half, the outgoing ones in the other. */
static int64_t seam_slot(const struct mx_walk *w, int64_t first, int64_t k, bool out) {
    int64_t ring = w->base.shape.seam_slots / 2;
    if (first < 0) return -1;
    if (!w->base.shape.seams_in_file) return first + k;
    return (w->seams_before + k) % ring + (out ? ring : 0);
}

static struct mx_range add_seams(struct mx_walk *w, int64_t from, struct mx_step *s) {
    struct mx_range none = {0, 0};
    int64_t k = (from - w->block.z0) / w->slab;
    if (w->seam_in < 0 && w->seam_out < 0) return none;
    struct mx_range levels = cut_seams(w, s);
    if (mx_length(levels) == 0) return none;
    s->first = (int32_t)mx_min(s->first, levels.lo), s->end = (int32_t)mx_max(s->end, levels.hi);
    s->seam_in = seam_slot(w, w->seam_in, k, false);
    s->seam_out = seam_slot(w, w->seam_out, k, true);
    s->seam_z = w->seam_z, s->seam_nz = w->seam_nz;
    s->seam_in_y = w->seam_in_y, s->seam_in_n = w->seam_in_n;
    s->seam_out_y = w->seam_out_y, s->seam_out_n = w->seam_out_n;
    return levels;
}

/* Between the side file and the slot that the ADVANCE at hand uses: the rows of the levels that have planes.
 */
static void move_seams(struct mx_walk *w, enum mx_step_kind kind, int64_t slab, int64_t slot,
                       struct mx_range levels) {
    int64_t rows = w->base.shape.seam_planes * w->base.shape.seam_rows;
    if (slot < 0 || !w->base.shape.seams_in_file) return;
    mx_walk_push(w, &(struct mx_step){.kind = kind,
                                      .array = MX_SEAMS,
                                      .buffer = MX_SEAMS,
                                      .region = {levels.lo * rows, levels.hi * rows, slab, slab + 1},
                                      .at = {0, slot - slab},
                                      .seam_in = -1,
                                      .seam_out = -1});
}

static void push_advance(struct mx_walk *w, int64_t from, int64_t to) {
    struct mx_step s = {.kind = MX_STEP_ADVANCE,
                        .region = w->block,
                        .at = w->at,
                        .parity = w->parity,
                        .levels = w->levels,
                        .first_level = w->time,
                        .window = w->whole,
                        .pass = w->passes_done + 1,
                        .seam_in = -1,
                        .seam_out = -1};
    int64_t k = (from - w->block.z0) / w->slab;
    if (w->base.shape.rows > 0) s.block = w->block;
    cut_windows(w, from, to, &s);
    struct mx_range levels = add_seams(w, from, &s);
    struct mx_planes all = s.touches[0];
    if (s.touches[1].z0 < s.touches[1].z1) extend(&all, s.touches[1].z0, s.touches[1].z1);
    if (all.z0 >= all.z1) return;
    s.region.z0 = all.z0;
    s.region.z1 = all.z1;
    move_seams(w, MX_STEP_LOAD, w->seam_in + k, s.seam_in, levels);
    mx_walk_push(w, &s);
    move_seams(w, MX_STEP_STORE, w->seam_out + k, s.seam_out, levels);
}

/* The frame that copies the last planes is there before any of them is computed: what is loaded later would
 * be the past. */
static void load_up_to(struct mx_walk *w, int64_t z) {
    const struct mx_problem *p = &w->problem;
    const bool frame = mx_end_copies(p, w->base.shape.ghost[MX_DIM_Z], MX_DIM_Z, 1);
    const int64_t without = p->nz + 2 * p->h - mx_sides_sources(&p->sides, MX_DIM_Z, 1, p->h);
    z = frame && z > without ? w->block.z1 : mx_min(z, w->block.z1);
    if (z <= w->loaded) return;
    if (w->ops->load != NULL) w->ops->load(w, w->loaded, z);
    w->loaded = z;
}

/* The frame before the first planes is right when those are that it copies. */
static void store_up_to(struct mx_walk *w, int64_t z) {
    const bool frame = mx_end_copies(&w->problem, w->base.shape.ghost[MX_DIM_Z], MX_DIM_Z, 0);
    const bool computed = w->front >= w->front_end;
    const int64_t h = w->problem.h,
                  copied = h + mx_sides_sources(&w->problem.sides, MX_DIM_Z, 0, w->problem.h);
    z = mx_min(z, w->block.z1);
    if (frame && !computed && w->stored < h && z < copied) return;
    if (z <= w->stored) return;
    if (w->ops->store != NULL) w->ops->store(w, w->stored, z);
    w->stored = z;
}

static void move_front(struct mx_walk *w) {
    int64_t from = w->front, to = from + w->slab;
    load_up_to(w, to);
    push_advance(w, from, to);
    w->front = to;
    store_up_to(w, to - w->levels * (int64_t)w->problem.h);
}

static void begin_pass(struct mx_walk *w) {
    w->slab = mx_plan_slab(&w->problem, &w->plan);
    w->levels = (int32_t)mx_min(w->max_levels, mx_sweep_end(&w->problem, w->time) - w->time);
    for (int end = 0; end < 2 && w->pass == 0 && w->ops->given != NULL; end++)
        w->given[end] = w->ops->given(&w->problem, &w->plan, w->levels, end);
    w->seam_in = w->seam_out = -1;
    w->ops->begin(w);
    w->front = w->loaded = w->stored = w->block.z0;
    w->front_end = w->block.z1;
    for (int32_t l = 0; l < w->levels; l++)
        if (w->whole[l].z0 < w->whole[l].z1)
            w->front_end = mx_max(w->front_end, w->whole[l].z1 + (l + 1) * (int64_t)w->problem.h);
    w->ordered = in_order(w);
    w->cross_first = 0, w->cross_end = w->ordered ? 0 : w->levels;
    w->ghost_rows = (struct mx_range){0, 0};
    for (int32_t l = 0; l < w->levels && w->base.shape.ghost[MX_DIM_Y]; l++)
        w->ghost_rows = mx_hull(w->ghost_rows, mx_window_rows(&w->whole[l]));
    if (w->seam_in >= 0 || w->seam_out >= 0) seam_planes(w);
    w->inside = true;
}

static void end_pass(struct mx_walk *w) {
    w->inside = false;
    w->passes_done++;
    w->planes_before += w->block.z1 - w->block.z0;
    if (++w->pass < w->passes) return;
    w->pass = 0;
    w->time += w->levels;
    const bool in_place = w->base.shape.in_place;
    if (!in_place || !w->base.shape.pairs) w->buffer = in_place ? (w->buffer + w->levels) & 1 : 1 - w->buffer;
    mx_walk_push(w, &(struct mx_step){.kind = MX_STEP_COMMIT,
                                      .buffer = w->buffer,
                                      .time = w->time,
                                      .next_given = mx_walk_given_planes(w, w->time),
                                      .seam_in = -1,
                                      .seam_out = -1});
}

/* One move of the front, or, when all is computed, one slab stored. Returns false at the end. */
static bool refill(struct mx_walk *w) {
    w->head = w->count = 0;
    if (!w->inside) {
        if (w->time >= w->all_levels) return false;
        begin_pass(w);
    }
    if (w->front < w->front_end)
        move_front(w);
    else
        store_up_to(w, w->stored + w->slab);
    if (w->front >= w->front_end && (w->stored >= w->block.z1 || w->ops->store == NULL)) end_pass(w);
    return true;
}

static int walk_next(struct mx_schedule *schedule, struct mx_step *step) {
    struct mx_walk *w = (struct mx_walk *)schedule;
    while (w->head == w->count)
        if (!refill(w)) return 0;
    *step = w->queue[w->head++];
    return 1;
}

static void walk_close(struct mx_schedule *schedule) { free(schedule); }

static const struct mx_schedule_ops walk_ops = {walk_next, walk_close};

int mx_walk_open(const struct mx_walk_ops *ops, const struct mx_problem *problem, const struct mx_plan *plan,
                 const struct mx_shape *shape, int64_t passes, int64_t first_time, int32_t first_buffer,
                 struct mx_schedule **out) {
    size_t n = (size_t)shape->max_levels;
    struct mx_walk *w = calloc(1, sizeof *w + n * sizeof(struct mx_window) + 6 * (n + 1) * sizeof(int32_t));
    if (w == NULL) return -ENOMEM;
    w->base.ops = &walk_ops;
    w->base.shape = *shape;
    w->ops = ops;
    w->problem = *problem;
    w->plan = *plan;
    w->all_levels = mx_levels_of(problem, problem->nt);
    w->passes = passes;
    w->has_fixed = shape->rows > 0 && mx_loaded_count(problem) > 0;
    w->max_levels = shape->max_levels;
    w->time = first_time;
    w->buffer = shape->pairs && shape->in_place ? 0 : first_buffer;
    w->whole = (struct mx_window *)(w + 1);
    int32_t *tables = (int32_t *)(w->whole + n), **table[] = {&w->seam_z,    &w->seam_nz,    &w->seam_in_y,
                                                              &w->seam_in_n, &w->seam_out_y, &w->seam_out_n};
    for (int i = 0; i < 6; i++) *table[i] = tables + (size_t)i * (n + 1);
    w->base.first_given = mx_walk_given_planes(w, first_time);
    *out = &w->base;
    return 0;
}
