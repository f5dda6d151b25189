/* SPDX-License-Identifier: BSD-3-Clause */
/* redundant.c - overlapped temporal blocking (algorithm-1 of the slides "Flash as main memory", Naive-Tune of
 * Midorikawa & Tan): a block and its halo of bt*h cells in y and z are read from one Buffer, advanced by bt
 * steps while the halo shrinks, and the block alone is written to the other Buffer.
 *
 * Level 0 is always in array 0. Plane z of a block is in slot z - z0. Where the old value is read, level -1
 * is loaded into array 1 as far as level 1 replaces it and level 2 reads the frame, which is what a block of
 * one step less would load; the last two levels are both valid on the block itself, and stored.
 *
 * Sides. At a periodic end the halo of a block is ghost layers, from the other end of the grid. At
 * other ends whose frame copies the Block has the frame, which whoever computes what it copies refreshes;
 * blocks store the frame with what it copies.
 */
#include "schedule/walk.h"

#include <errno.h>
#include <memext/backend.h>

static void cuts(const struct mx_problem *p, const struct mx_plan *plan, struct mx_cut *y, struct mx_cut *z) {
    *y = mx_lap_cut(p->ny, plan->by, mx_halo_y(p));
    *z = mx_lap_cut(p->nz, plan->bz, p->h);
    for (int end = 0; end < 2; end++) {
        y->ghost[end] = mx_end_ghost(p, true, MX_DIM_Y, end);
        z->ghost[end] = mx_end_ghost(p, true, MX_DIM_Z, end);
    }
}

static void redundant_begin(struct mx_walk *w) {
    struct mx_cut y, z;
    cuts(&w->problem, &w->plan, &y, &z);
    int64_t j = w->pass % y.count, k = w->pass / y.count;
    struct mx_range ys = mx_lap_span(&y, j, w->levels), zs = mx_lap_span(&z, k, w->levels);
    w->block = (struct mx_region){ys.lo, ys.hi, zs.lo, zs.hi};
    w->at = (struct mx_placement){-ys.lo, -zs.lo};
    w->parity = 0;
    for (int32_t l = 0; l < w->levels; l++) {
        struct mx_range a = mx_lap_window(&y, j, l + 1, w->levels),
                        c = mx_lap_window(&z, k, l + 1, w->levels);
        w->whole[l] = (struct mx_window){(int32_t)a.lo, (int32_t)a.hi, (int32_t)c.lo, (int32_t)c.hi};
    }
}

/* The block's own rows or planes, with the frame that copies them. */
static struct mx_range owned(const struct mx_problem *p, int dim, bool ghost, struct mx_range own) {
    const int64_t n = mx_extent_of(p, dim), h = mx_halo_of(p, dim);
    if (own.lo == h && mx_end_copies(p, ghost, dim, 0)) own.lo = 0;
    if (own.hi == n + h && mx_end_copies(p, ghost, dim, 1)) own.hi = n + 2 * h;
    return own;
}

/* Frames are stored that copy cells in some fields and keep what they are in others. */
static bool keeps_some(const struct mx_problem *p) {
    for (int dim = MX_DIM_Y; dim <= MX_DIM_Z; dim++)
        for (int end = 0; end < 2; end++)
            if (p->sides.side[dim][end] == MX_SIDE_SEVERAL &&
                (mx_sides_kinds(&p->sides, dim, end) & 1 << MX_SIDE_FIXED) != 0)
                return true;
    return false;
}

/* Rows or planes of level -1 that a block loads: what it replaces and level 2 reads, and what it stores
 * without having written it. Periodic dimensions have ghosts. */
static struct mx_range older(const struct mx_problem *p, int dim, const struct mx_cut *cut, int64_t j,
                             int64_t levels) {
    if (levels > 1 || !keeps_some(p)) return mx_lap_span(cut, j, levels - 1);
    return owned(p, dim, mx_sides_periodic(&p->sides, dim), mx_lap_window(cut, j, levels, levels));
}

static int64_t older_sum(const struct mx_problem *p, int dim, const struct mx_cut *cut, int64_t levels) {
    if (levels > 1 || !keeps_some(p)) return mx_lap_span_sum(cut, levels - 1);
    return mx_extent_of(p, dim) + (mx_sides_periodic(&p->sides, dim) ? 0 : mx_copied_layers(p, dim));
}

static void load_older(struct mx_walk *w, int64_t z0, int64_t z1) {
    struct mx_cut y, z;
    cuts(&w->problem, &w->plan, &y, &z);
    struct mx_range ys = older(&w->problem, MX_DIM_Y, &y, w->pass % y.count, w->levels),
                    zs = older(&w->problem, MX_DIM_Z, &z, w->pass / y.count, w->levels);
    mx_walk_move(w, MX_STEP_LOAD, 1, w->buffer,
                 (struct mx_region){ys.lo, ys.hi, mx_max(z0, zs.lo), mx_min(z1, zs.hi)});
}

/* Array 1 needs as much of the frame as level 2 reads, or is stored with it. */
static void redundant_load(struct mx_walk *w, int64_t z0, int64_t z1) {
    const int64_t h = w->problem.h, hy = mx_halo_y(&w->problem);
    mx_walk_move(w, MX_STEP_LOAD, 0, w->buffer, (struct mx_region){w->block.y0, w->block.y1, z0, z1});
    if (w->base.shape.pairs) load_older(w, z0, z1);
    mx_walk_load_fixed(w, z0, z1);
    if (w->base.shape.pairs || (w->levels < 2 && !keeps_some(&w->problem))) return;
    const struct mx_window *second = &w->whole[w->levels < 2 ? 0 : 1];
    struct mx_region read = {second->y0 - hy, second->y1 + hy, mx_max(z0, second->z0 - h),
                             mx_min(z1, second->z1 + h)};
    mx_walk_copy_z_frame(w, 0, read);
    mx_walk_copy_y_frame(w, 0, read);
}

static void redundant_store(struct mx_walk *w, int64_t z0, int64_t z1) {
    const struct mx_window *own = &w->whole[w->levels - 1];
    const struct mx_shape *shape = &w->base.shape;
    const struct mx_range y = owned(&w->problem, MX_DIM_Y, shape->ghost[MX_DIM_Y],
                                    (struct mx_range){own->y0, own->y1}),
                          z = owned(&w->problem, MX_DIM_Z, shape->ghost[MX_DIM_Z],
                                    (struct mx_range){own->z0, own->z1});
    const struct mx_region done = {y.lo, y.hi, mx_max(z0, z.lo), mx_min(z1, z.hi)};
    mx_walk_move(w, MX_STEP_STORE, mx_walk_last_array(w), 1 - w->buffer, done);
    if (w->base.shape.pairs) mx_walk_move(w, MX_STEP_STORE, 1 - mx_walk_last_array(w), 1 - w->buffer, done);
}

/* Of all blocks. */
static int64_t redundant_given(const struct mx_problem *p, const struct mx_plan *plan, int64_t levels,
                               int end) {
    struct mx_cut y, z;
    if (!mx_has_neighbour(p, end)) return 0;
    cuts(p, plan, &y, &z);
    int64_t rows = mx_lap_span_sum(&y, levels) * mx_lap_beyond_sum(&z, end, levels);
    if (mx_reads_old(p)) rows += mx_lap_span_sum(&y, levels - 1) * mx_lap_beyond_sum(&z, end, levels - 1);
    return rows;
}

static const struct mx_walk_ops redundant_ops = {
    .begin = redundant_begin, .load = redundant_load, .store = redundant_store, .given = redundant_given};

static int check_ends(const struct mx_problem *p, const struct mx_plan *plan, mx_why *why) {
    struct mx_cut cut[2];
    cuts(p, plan, &cut[0], &cut[1]);
    int err = 0;
    for (int i = 0; i < 2 && err == 0; i++) {
        const int dim = MX_DIM_Y + i;
        err = mx_sides_periodic(&p->sides, dim) ? mx_check_ghosts(p, dim, mx_sweep_levels(p, plan->bt), why)
                                                : mx_check_lapped_ends(p, dim, &cut[i], why);
    }
    return err < 0 ? err : mx_check_neighbours(p, mx_sweep_levels(p, plan->bt), why);
}

static int redundant_check(const struct mx_problem *problem, const struct mx_plan *plan, mx_why *why) {
    int err = mx_check_plan(problem, plan, true, why);
    if (err == 0) err = check_ends(problem, plan, why);
    if (err < 0 || !plan->in_place) return err;
    return mx_fail(why, -EINVAL,
                   "--in-place is not possible with redundant, whose overlapping Blocks read cells that "
                   "others have overwritten: leave --in-place out, or choose --algorithm stream or skewed-y");
}

static void redundant_shape(const struct mx_problem *problem, const struct mx_plan *plan,
                            struct mx_shape *out) {
    struct mx_cut y, z;
    int64_t levels = mx_sweep_levels(problem, plan->bt);
    cuts(problem, plan, &y, &z);
    int64_t slots = mx_lap_span_max(&z, levels);
    *out = (struct mx_shape){.rows = mx_lap_span_max(&y, levels),
                             .slots = {slots, slots},
                             .fixed_slots = mx_loaded_count(problem) > 0 ? slots : 0,
                             .init_both = true,
                             .ghost = {[MX_DIM_Y] = mx_sides_periodic(&problem->sides, MX_DIM_Y),
                                       [MX_DIM_Z] = mx_sides_periodic(&problem->sides, MX_DIM_Z)},
                             .max_levels = levels};
    mx_shape_of_form(problem, out);
    mx_shape_of_neighbours(problem, out);
}

/* Rows that all blocks compute in a sweep. Levels whose halo reaches across the grid are all alike: there may
 * be millions. Where ghosts let a halo grow on, the check keeps it shorter than the grid. */
static int64_t computed_rows(const struct mx_cut *y, const struct mx_cut *z, int64_t levels) {
    const bool ends = !(y->ghost[0] || y->ghost[1] || z->ghost[0] || z->ghost[1]);
    const int64_t across = mx_ceil_div64(mx_max(y->n, z->n), z->h),
                  alike = ends ? mx_max(0, levels - across) : 0;
    int64_t rows = alike * mx_lap_window_sum(y, 1, levels) * mx_lap_window_sum(z, 1, levels);
    for (int64_t l = alike + 1; l <= levels; l++)
        rows += mx_lap_window_sum(y, l, levels) * mx_lap_window_sum(z, l, levels);
    return rows;
}

static void redundant_traffic(const struct mx_problem *problem, const struct mx_plan *plan,
                              const struct mx_layout *layout, struct mx_traffic *out) {
    struct mx_cut y, z;
    struct mx_shape shape;
    redundant_shape(problem, plan, &shape);
    struct mx_traffic t = {.init_write_bytes = mx_initial_buffers(&shape) * layout->buffer_bytes};
    cuts(problem, plan, &y, &z);
    const int64_t stored = (problem->ny + mx_copied_layers(problem, MX_DIM_Y)) *
                           (problem->nz + mx_copied_layers(problem, MX_DIM_Z));
    for (struct mx_sweeps all = mx_sweeps_of(problem, plan->bt); mx_sweeps_next(&all);) {
        const int64_t levels = all.levels, sweeps = all.count;
        int64_t read = mx_lap_span_sum(&y, levels) * mx_lap_span_sum(&z, levels);
        int64_t fixed = mx_fixed_traffic(problem, layout, &y, mx_lap_window, &z, mx_lap_window, levels);
        if (shape.pairs)
            read += older_sum(problem, MX_DIM_Y, &y, levels) * older_sum(problem, MX_DIM_Z, &z, levels);
        for (int end = 0; end < 2; end++) read -= redundant_given(problem, plan, levels, end);
        t.read_bytes += sweeps * (read * layout->row_pitch_bytes + fixed);
        t.fixed_read_bytes += sweeps * fixed;
        t.write_bytes += sweeps * (shape.pairs ? 2 : 1) * stored * layout->row_pitch_bytes;
        t.updates += sweeps * computed_rows(&y, &z, levels) * problem->nx;
    }
    t.updates /= mx_levels_a_step(problem);
    mx_add_neighbours(problem, plan, layout, &t);
    *out = t;
}

static bool redundant_cuts_y(const struct mx_problem *problem, const struct mx_plan *plan) {
    (void)problem, (void)plan;
    return true; /* the frame is never written */
}

static int redundant_open(const struct mx_problem *problem, const struct mx_plan *plan, int64_t first_time,
                          int32_t first_buffer, struct mx_schedule **out) {
    struct mx_shape shape;
    struct mx_cut y, z;
    redundant_shape(problem, plan, &shape);
    cuts(problem, plan, &y, &z);
    return mx_walk_open(&redundant_ops, problem, plan, &shape, y.count * z.count, first_time, first_buffer,
                        out);
}

const struct mx_algorithm mx_algorithm_redundant = {
    .name = "redundant",
    .aliases = "algorithm-1 algorithm1",
    .summary = "Blocks of bt steps that overlap, each of which computes the overlap again; resumable",
    .uses_blocks = true,
    .resumable = true,
    .cuts_y = redundant_cuts_y,
    .check = redundant_check,
    .shape = redundant_shape,
    .traffic = redundant_traffic,
    .open = redundant_open,
};
