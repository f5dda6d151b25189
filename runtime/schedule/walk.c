/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule/walk.h"

#include <assert.h>
#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ steps */

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
static int64_t given_planes(const struct mx_walk *w, int64_t time) {
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
                                     .next_given = given_planes(w, w->time + w->levels),
                                     .time = kind == MX_STEP_STORE ? w->time + w->levels : 0,
                                     .seam_in = -1,
                                     .seam_out = -1});
}

void mx_walk_move_in_place(struct mx_walk *w, enum mx_step_kind kind, int32_t array,
                           struct mx_region region) {
    mx_walk_move(w, kind, array, array, region);
}

/* Both of two ranges, and what lies between them. */
static struct mx_range hull(struct mx_range a, struct mx_range b) {
    if (mx_length(a) == 0 || mx_length(b) == 0) return mx_length(a) == 0 ? b : a;
    return (struct mx_range){mx_min(a.lo, b.lo), mx_max(a.hi, b.hi)};
}
/* Of windows that move one way: what lies between the first and the last. */
static struct mx_range between(struct mx_range first, struct mx_range last) {
    if (mx_length(first) == 0) return first;
    return (struct mx_range){mx_min(first.lo, last.lo), mx_max(first.hi, last.hi)};
}
static struct mx_range wider(struct mx_range r, int64_t by) {
    return mx_length(r) == 0 ? (struct mx_range){0, 0} : (struct mx_range){r.lo - by, r.hi + by};
}

static struct mx_range rows_of(const struct mx_window *w) { return (struct mx_range){w->y0, w->y1}; }
static struct mx_range planes_of(const struct mx_window *w) { return (struct mx_range){w->z0, w->z1}; }

void mx_walk_load_fixed(struct mx_walk *w, int64_t z0, int64_t z1) {
    if (!w->has_fixed) return;
    const int64_t hc = w->problem.system->hc;
    const struct mx_window *first = &w->whole[0], *last = &w->whole[w->levels - 1];
    struct mx_range y = between(rows_of(first), rows_of(last)),
                    z = between(planes_of(first), planes_of(last));
    y = wider(hull(y, w->ghost_rows), hc), z = wider(z, hc);
    const struct mx_region r = {y.lo, y.hi, mx_max(z.lo, z0), mx_min(z.hi, z1)};
    for (int32_t i = 0; i < mx_fixed_count(&w->problem); i++)
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
    int64_t h = w->problem.h, end = w->problem.ny + h;
    const bool *ghost = w->base.shape.ghost;
    int64_t z0 = mx_end_ghost(&w->problem, ghost[MX_DIM_Z], MX_DIM_Z, 0) ? r.z0 : mx_max(r.z0, h),
            z1 = mx_end_ghost(&w->problem, ghost[MX_DIM_Z], MX_DIM_Z, 1) ? r.z1
                                                                         : mx_min(r.z1, w->problem.nz + h);
    if (ghost[MX_DIM_Y]) return;
    push_frame(w, from, r.y0, mx_min(r.y1, h), z0, z1);
    push_frame(w, from, mx_max(r.y0, end), r.y1, z0, z1);
}

/* ------------------------------------------------------------------ the front */

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
        mx_side_extend(w->problem.sides.side[MX_DIM_Z], w->problem.nz, w->problem.h, &z0, &z1);
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
    const int64_t h = w->problem.h, hc = mx_fixed_count(&w->problem) > 0 ? w->problem.system->hc : -1,
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
    const bool frame = mx_end_copies(&w->problem, w->base.shape.ghost[MX_DIM_Z], MX_DIM_Z, 1);
    z = frame && z > w->problem.nz + w->problem.h ? w->block.z1 : mx_min(z, w->block.z1);
    if (z <= w->loaded) return;
    if (w->ops->load != NULL) w->ops->load(w, w->loaded, z);
    w->loaded = z;
}

/* The frame before the first planes is right when those are that it copies. */
static void store_up_to(struct mx_walk *w, int64_t z) {
    const bool frame = mx_end_copies(&w->problem, w->base.shape.ghost[MX_DIM_Z], MX_DIM_Z, 0);
    const bool computed = w->front >= w->front_end;
    z = mx_min(z, w->block.z1);
    if (frame && !computed && w->stored < w->problem.h && z < 2 * w->problem.h) return;
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

/* ------------------------------------------------------------------ passes and sweeps */

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
        w->ghost_rows = hull(w->ghost_rows, rows_of(&w->whole[l]));
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
                                      .next_given = given_planes(w, w->time),
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
    w->has_fixed = shape->rows > 0 && mx_fixed_count(problem) > 0;
    w->max_levels = shape->max_levels;
    w->time = first_time;
    w->buffer = shape->pairs && shape->in_place ? 0 : first_buffer;
    w->whole = (struct mx_window *)(w + 1);
    int32_t *tables = (int32_t *)(w->whole + n), **table[] = {&w->seam_z,    &w->seam_nz,    &w->seam_in_y,
                                                              &w->seam_in_n, &w->seam_out_y, &w->seam_out_n};
    for (int i = 0; i < 6; i++) *table[i] = tables + (size_t)i * (n + 1);
    w->base.first_given = given_planes(w, first_time);
    *out = &w->base;
    return 0;
}

/* ------------------------------------------------------------------ limits and sums */

int64_t mx_plan_slab(const struct mx_problem *problem, const struct mx_plan *plan) {
    return mx_max(1, mx_min(plan->slab, problem->nz + 2 * problem->h));
}
int64_t mx_plan_ahead(const struct mx_plan *plan) { return plan->ahead > 0 ? plan->ahead : 2; }

void mx_shape_of_form(const struct mx_problem *problem, struct mx_shape *shape) {
    shape->pairs = mx_reads_old(problem);
    if (shape->pairs && shape->in_place) shape->init_both = false;
}

void mx_shape_of_neighbours(const struct mx_problem *p, struct mx_shape *shape) {
    for (int end = 0; end < 2; end++)
        if (mx_has_neighbour(p, end)) shape->given[end] = shape->max_levels * p->h;
}

/* Whole planes are sent, of both arrays where both are live. Before the first sweep as many are read as the
 * longest sends: what a STORE does not bring of them, fixed frames, stays as it was. */
void mx_add_neighbours(const struct mx_problem *p, const struct mx_plan *plan, const struct mx_layout *layout,
                       struct mx_traffic *t) {
    const int64_t bytes = mx_neighbours(p) * (mx_reads_old(p) ? 2 : 1) * p->h * layout->plane_pitch_bytes;
    for (struct mx_sweeps all = mx_sweeps_of(p, plan->bt); mx_sweeps_next(&all);)
        t->sent_bytes += all.count * all.levels * bytes;
    if (t->sent_bytes > 0) t->first_sent_bytes = mx_sweep_levels(p, plan->bt) * bytes;
    t->read_bytes += t->first_sent_bytes;
}

int64_t mx_initial_buffers(const struct mx_shape *shape) {
    return (shape->init_both ? 2 : 1) * (shape->pairs ? 2 : 1);
}

/* Rows or planes of C that pass j of a cut loads. */
static struct mx_range fixed_range(const struct mx_cut *c, int64_t j, mx_window_fn *window, int64_t levels,
                                   int64_t hc) {
    struct mx_range r = between(window(c, j, 1, levels), window(c, j, levels, levels));
    for (int64_t l = 2; l <= levels && (c->ghost[0] || c->ghost[1]); l++)
        r = hull(r, window(c, j, l, levels));
    return wider(r, hc);
}

/* Bytes of the pieces of rows `y` of all of the planes `z`. */
static int64_t fixed_bytes(const struct mx_problem *p, const struct mx_fixed_layout *f, bool ghost_y,
                           bool ghost_z, struct mx_range y, struct mx_range z) {
    struct mx_piece ys[MX_PIECES], zs[MX_PIECES];
    const int ny = mx_load_pieces(p, MX_DIM_Y, ghost_y, y, ys),
              nz = mx_load_pieces(p, MX_DIM_Z, ghost_z, z, zs);
    int64_t bytes = 0;
    for (int j = 0; j < ny; j++)
        for (int k = 0; k < nz; k++)
            bytes += mx_fixed_span_sum(f, zs[k].lo + zs[k].shift, zs[k].hi + zs[k].shift,
                                       ys[j].lo + ys[j].shift, ys[j].hi + ys[j].shift);
    return bytes;
}

int64_t mx_fixed_traffic(const struct mx_problem *p, const struct mx_layout *layout, const struct mx_cut *y,
                         mx_window_fn *window_y, const struct mx_cut *z, mx_window_fn *window_z,
                         int64_t levels) {
    int64_t total = 0;
    for (int32_t i = 0; i < mx_fixed_count(p); i++) {
        const struct mx_fixed_layout *f = &layout->fixed[i];
        const int64_t hc = p->system->hc, align = mx_max(1, f->align_bytes);
        const bool alike = f->plane_pitch_bytes % align == 0; /* every plane's transfer is as long */
        const struct mx_range one = {p->h, p->h + 1};
        int64_t planes = 0;
        for (int64_t k = 0; k < z->count; k++) {
            const struct mx_range r = fixed_range(z, k, window_z, levels, hc);
            planes += mx_length(r);
            for (int64_t j = 0; j < y->count && !alike; j++)
                total += fixed_bytes(p, f, y->ghost[0], z->ghost[0] && mx_sides_periodic(&p->sides, MX_DIM_Z),
                                     fixed_range(y, j, window_y, levels, hc), r);
        }
        for (int64_t j = 0; j < y->count && alike; j++)
            total +=
                planes * fixed_bytes(p, f, y->ghost[0], false, fixed_range(y, j, window_y, levels, hc), one);
    }
    return total;
}

int64_t mx_updates_once(const struct mx_problem *p) { return p->nx * p->ny * p->nz * p->nt; }

/* At most so many rows or planes do all blocks of n have in a sweep, with what they share; blocks of 0: one.
 */
static double shared_extent(int64_t n, int64_t block, int64_t skew, int64_t h) {
    const double whole = (double)(n + 2 * h), own = (double)block + 2 * (double)(skew + h);
    if (block < 1 || block >= n) return whole;
    return (double)mx_ceil_div64(n + h, block) * (own < whole ? own : whole);
}

/* Blocks that are small for what they share compute and move it again and again: what is counted of them has
 * to be a number of 64 bits. */
static bool is_countable(const struct mx_problem *p, const struct mx_plan *plan) {
    const double most = 0x1p62, cells = (double)(p->nx + 2 * p->h), padding = 3 * 8192,
                 levels = (double)mx_levels_of(p, p->nt), sweeps = (double)mx_sweep_count(p, plan->bt);
    const int64_t skew = mx_sweep_levels(p, plan->bt) * p->h;
    const double rows =
        shared_extent(p->ny, plan->by, skew, p->h) * shared_extent(p->nz, plan->bz, skew, p->h);
    const double whole = (double)(p->ny + 2 * p->h) * (double)(p->nz + 2 * p->h);
    const double cell = (double)(mx_cell_bytes(p, 0) + mx_cell_bytes(p, 1) + mx_fixed_cell_bytes(p));
    if (rows * cells * levels >= most) return false;
    /* No more than a sweep a level would move, which the layout has looked at. */
    return rows * sweeps <= whole * levels || rows * (cells * cell + padding) * sweeps < most;
}

int mx_check_plan(const struct mx_problem *p, const struct mx_plan *plan, bool blocks, mx_why *why) {
    int64_t limit = INT32_MAX - 4 * MX_MAX_HALO;
    if (p->nx < 1 || p->ny < 1 || p->nz < 1 || p->nt < 0)
        return mx_fail(
            why, -EINVAL,
            "the grid is %lldx%lldx%lld with %lld steps: every extent must be at least 1 and nt at least 0",
            (long long)p->nx, (long long)p->ny, (long long)p->nz, (long long)p->nt);
    if (p->ny > limit || p->nz > limit)
        return mx_fail(why, -EINVAL,
                       "ny %lld or nz %lld is above %lld, the most rows or planes that memext counts: make x "
                       "or the other dimension longer instead",
                       (long long)p->ny, (long long)p->nz, (long long)limit);
    if (p->h < 1 || p->h > MX_MAX_HALO)
        return mx_fail(why, -EINVAL, "the halo is %d cells: it must be 1..%d", p->h, MX_MAX_HALO);
    if (p->due[0] < 0 || p->due[1] < 0 || p->done < 0)
        return mx_fail(why, -EINVAL,
                       "sweeps cannot end at every %lld and %lld steps from step %lld on: neither may be "
                       "negative (0 = none)",
                       (long long)p->due[0], (long long)p->due[1], (long long)p->done);
    if (plan->bt < 1)
        return mx_fail(why, -EINVAL, "bt is %lld: a sweep needs at least 1 time step", (long long)plan->bt);
    if (mx_sweep_levels(p, plan->bt) * p->h > limit / 2)
        return mx_fail(why, -EINVAL, "bt %lld with halo %d is above %lld levels of skew: choose a smaller bt",
                       (long long)plan->bt, p->h, (long long)(limit / 2));
    if (plan->bt % mx_levels_a_step(p) != 0)
        return mx_fail(
            why, -EINVAL,
            "bt is %lld levels, and a step of a staggered system is two: choose an even bt, %lld for "
            "example",
            (long long)plan->bt, (long long)plan->bt + 1);
    if (plan->in_place && !mx_reads_old(p))
        return mx_fail(
            why, -EINVAL,
            "in-place is for systems that read the old value (leapfrog, staggered): this one needs "
            "two Buffers, leave it out");
    if (blocks && (plan->by < 1 || plan->bz < 1))
        return mx_fail(why, -EINVAL,
                       "the Block is %lld rows by %lld planes: both must be at least 1 (ny = %lld and nz = "
                       "%lld mean one block)",
                       (long long)plan->by, (long long)plan->bz, (long long)p->ny, (long long)p->nz);
    if (plan->slab < 0 || plan->ahead < 0)
        return mx_fail(why, -EINVAL, "slab %lld and ahead %lld: neither may be negative (0 = chosen)",
                       (long long)plan->slab, (long long)plan->ahead);
    if (is_countable(p, plan)) return 0;
    return mx_fail(why, -EINVAL,
                   "Blocks of %lld rows by %lld planes share so much over %lld levels that %lld steps are "
                   "more than 2^62 "
                   "updates or bytes: choose larger Blocks, or fewer steps",
                   (long long)plan->by, (long long)plan->bz, (long long)plan->bt, (long long)p->nt);
}
