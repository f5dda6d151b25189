/* SPDX-License-Identifier: BSD-3-Clause */
/* skewed.c - non-redundant temporal blocking (Algorithm 2 of Midorikawa & Tan, IWAPT 2016, and its programs
 * mmap2/aio2, aio3y, aio5y; mmap1 and mmap1+opt of Fig. 12): blocks that move down by h cells per time step,
 * in place on both Buffers.
 *
 * Array a holds Buffer a throughout (where the old value is read, part a of the one pair of Buffers, and all
 * of both moves); level 0 of a sweep is in array time & 1. A Block keeps a fixed plane
 * layout (row y of block j at y + bt*h - j*by), so the rows that block j takes over from j-1 move down by
 * `by` rows inside their plane. Plane z is in slot z - z0, the same for all blocks of a z row of blocks.
 */
#include "schedule/walk.h"

struct variant {
    bool hand_over; /* y overlaps are copied in DRAM, not written and read again */
    bool minimal;   /* of the second array only what z blocks share is moved; its frame is made in DRAM */
    bool mapped;    /* no Blocks: the same windows on the mapped Buffers */
    bool at_once;   /* level after level over the whole block; otherwise slab by slab */
};

/* Where the pass stands in both dimensions. */
struct place {
    struct mx_cut y, z;
    int64_t j, k;
};

static struct place place_of(const struct mx_problem *p, const struct mx_plan *plan, int64_t pass) {
    struct place o = {.y = mx_skew_cut(p->ny, plan->by, mx_halo_y(p)),
                      .z = mx_skew_cut(p->nz, plan->bz, p->h)};
    o.j = pass % o.y.count;
    o.k = pass / o.y.count;
    return o;
}

static void skewed_begin(struct mx_walk *w) {
    const struct variant *v = w->ops->variant;
    struct place o = place_of(&w->problem, &w->plan, w->pass);
    struct mx_range ys = mx_skew_span(&o.y, o.j, w->levels), zs = mx_skew_span(&o.z, o.k, w->levels);
    w->block = (struct mx_region){ys.lo, ys.hi, zs.lo, zs.hi};
    w->at = (struct mx_placement){0, 0};
    if (!v->mapped) w->at = (struct mx_placement){mx_skew_offset(&o.y, o.j, w->levels), -zs.lo};
    w->parity = mx_walk_place_parity(w);
    for (int32_t l = 0; l < w->levels; l++) {
        struct mx_range a = mx_skew_window(&o.y, o.j, l + 1), c = mx_skew_window(&o.z, o.k, l + 1);
        w->whole[l] = (struct mx_window){(int32_t)a.lo, (int32_t)a.hi, (int32_t)c.lo, (int32_t)c.hi};
    }
    if (v->at_once) w->slab = zs.hi - zs.lo + w->levels * (int64_t)w->problem.h;
}

/* What block j-1 left in DRAM: both arrays, to the place where block j has it. */
static void take_over(struct mx_walk *w, const struct place *o, int64_t z0, int64_t z1) {
    struct mx_range rows = mx_skew_handed(&o->y, o->j, w->levels);
    struct mx_step s = {.kind = MX_STEP_COPY,
                        .region = {rows.lo, rows.hi, z0, z1},
                        .at = {mx_skew_offset(&o->y, o->j - 1, w->levels), w->at.z_offset},
                        .to = w->at,
                        .seam_in = -1,
                        .seam_out = -1};
    for (s.array = 0; s.array < 2; s.array++) {
        s.to_array = s.array;
        mx_walk_push(w, &s);
    }
}

/* Of the second array only what z blocks share is moved. */
static bool moves_less(const struct variant *v, const struct mx_problem *p) {
    return v->minimal && !mx_reads_old(p);
}

static struct mx_range window_of(const struct mx_cut *c, int64_t j, int64_t level, int64_t levels) {
    (void)levels;
    return mx_skew_window(c, j, level);
}

static void skewed_load(struct mx_walk *w, int64_t z0, int64_t z1) {
    const struct variant *v = w->ops->variant;
    struct place o = place_of(&w->problem, &w->plan, w->pass);
    struct mx_range rows = mx_skew_span(&o.y, o.j, w->levels);
    int32_t source = w->parity;
    if (v->hand_over) {
        if (o.j > 0) take_over(w, &o, z0, z1);
        rows = mx_skew_read(&o.y, o.j, w->levels);
    }
    struct mx_region all = {rows.lo, rows.hi, z0, z1}, second = all, frame = all;
    const bool minimal = moves_less(v, &w->problem);
    if (minimal) second.z1 = mx_min(z1, mx_skew_shared_before(&o.z, o.k, w->levels).hi);
    mx_walk_move_in_place(w, MX_STEP_LOAD, source, all);
    mx_walk_move_in_place(w, MX_STEP_LOAD, 1 - source, second);
    mx_walk_load_fixed(w, z0, z1);
    if (!minimal) return;
    frame.z0 = mx_max(z0, second.z1);
    mx_walk_copy_z_frame(w, source, frame);
    mx_walk_copy_y_frame(w, source, frame);
}

static void skewed_store(struct mx_walk *w, int64_t z0, int64_t z1) {
    const struct variant *v = w->ops->variant;
    struct place o = place_of(&w->problem, &w->plan, w->pass);
    struct mx_range rows = (v->hand_over ? mx_skew_written : mx_skew_span)(&o.y, o.j, w->levels);
    struct mx_region all = {rows.lo, rows.hi, z0, z1}, second = all;
    int32_t last = mx_walk_last_array(w);
    if (moves_less(v, &w->problem)) second.z0 = mx_max(z0, mx_skew_shared_after(&o.z, o.k, w->levels).lo);
    mx_walk_move_in_place(w, MX_STEP_STORE, last, all);
    mx_walk_move_in_place(w, MX_STEP_STORE, 1 - last, second);
}

/* On mapped Buffers every frame is in reach; a Block has those of its own end. */
static int check_sides(const struct mx_problem *p, const struct mx_plan *plan, bool mapped, mx_why *why) {
    const int64_t levels = mx_sweep_levels(p, plan->bt);
    int err = mx_check_plan(p, plan, true, why);
    if (err == 0) err = mx_check_not_periodic(p, plan->algorithm, why);
    if (err == 0) err = mx_check_no_neighbours(p, plan->algorithm, why);
    if (err < 0 || mapped) return err;
    const struct place o = place_of(p, plan, 0);
    err = mx_check_skewed_ends(p, MX_DIM_Y, &o.y, levels, why);
    return err < 0 ? err : mx_check_skewed_ends(p, MX_DIM_Z, &o.z, levels, why);
}

static int skewed_check(const struct mx_problem *problem, const struct mx_plan *plan, mx_why *why) {
    return check_sides(problem, plan, false, why);
}

static int mapped_check(const struct mx_problem *problem, const struct mx_plan *plan, mx_why *why) {
    return check_sides(problem, plan, true, why);
}

static bool cuts(const struct mx_problem *problem, const struct mx_plan *plan) {
    (void)problem, (void)plan;
    return true;
}

static bool cuts_not(const struct mx_problem *problem, const struct mx_plan *plan) {
    (void)problem, (void)plan;
    return false;
}

static void shape_of(const struct variant *v, const struct mx_problem *problem, const struct mx_plan *plan,
                     struct mx_shape *out) {
    struct place o = place_of(problem, plan, 0);
    int64_t levels = mx_sweep_levels(problem, plan->bt);
    struct mx_shape s = {.in_place = true, .init_both = !v->minimal, .max_levels = levels};
    if (!v->mapped) {
        s.rows = mx_skew_fixed(&o.y, levels);
        s.slots[0] = s.slots[1] = mx_skew_span_max(&o.z, levels);
        if (mx_loaded_count(problem) > 0) s.fixed_slots = s.slots[0];
    }
    mx_shape_of_form(problem, &s);
    *out = s;
}

static void traffic_of(const struct variant *v, const struct mx_problem *problem, const struct mx_plan *plan,
                       const struct mx_layout *layout, struct mx_traffic *out) {
    struct place o = place_of(problem, plan, 0);
    struct mx_shape shape;
    shape_of(v, problem, plan, &shape);
    struct mx_traffic t = {.init_write_bytes = mx_initial_buffers(&shape) * layout->buffer_bytes,
                           .updates = mx_updates_once(problem)};
    for (struct mx_sweeps all = mx_sweeps_of(problem, plan->bt); !v->mapped && mx_sweeps_next(&all);) {
        const int64_t levels = all.levels, sweeps = all.count;
        int64_t planes = mx_skew_span_sum(&o.z, levels), spans = mx_skew_span_sum(&o.y, levels);
        int64_t both = moves_less(v, problem) ? planes + mx_skew_shared_sum(&o.z, levels) : 2 * planes;
        int64_t read = v->hand_over ? mx_skew_read_sum(&o.y) : spans;
        int64_t written = v->hand_over ? problem->ny + 2 * mx_halo_y(problem) : spans;
        int64_t fixed = mx_fixed_traffic(problem, layout, &o.y, window_of, &o.z, window_of, levels);
        t.read_bytes += sweeps * (read * both * layout->row_pitch_bytes + fixed);
        t.fixed_read_bytes += sweeps * fixed;
        t.write_bytes += sweeps * written * both * layout->row_pitch_bytes;
        t.copy_bytes += sweeps * (spans - read) * 2 * planes * layout->row_pitch_bytes;
    }
    *out = t;
}

static int open_of(const struct mx_walk_ops *ops, const struct mx_problem *problem,
                   const struct mx_plan *plan, int64_t first_time, int32_t first_buffer,
                   struct mx_schedule **out) {
    struct place o = place_of(problem, plan, 0);
    struct mx_shape shape;
    shape_of(ops->variant, problem, plan, &shape);
    return mx_walk_open(ops, problem, plan, &shape, o.y.count * o.z.count, first_time, first_buffer, out);
}

/* One algorithm of the family: its functions are those above with its variant. */
#define SKEWED_FUNCTIONS(id, load, store, ...)                                                               \
    static const struct variant id = {__VA_ARGS__};                                                          \
    static const struct mx_walk_ops id##_ops = {skewed_begin, load, store, &id, NULL};                       \
    static void id##_shape(const struct mx_problem *problem, const struct mx_plan *plan,                     \
                           struct mx_shape *out) {                                                           \
        shape_of(&id, problem, plan, out);                                                                   \
    }                                                                                                        \
    static void id##_traffic(const struct mx_problem *problem, const struct mx_plan *plan,                   \
                             const struct mx_layout *layout, struct mx_traffic *out) {                       \
        traffic_of(&id, problem, plan, layout, out);                                                         \
    }                                                                                                        \
    static int id##_open(const struct mx_problem *problem, const struct mx_plan *plan, int64_t first_time,   \
                         int32_t first_buffer, struct mx_schedule **out) {                                   \
        return open_of(&id##_ops, problem, plan, first_time, first_buffer, out);                             \
    }

SKEWED_FUNCTIONS(plain, skewed_load, skewed_store, .hand_over = false)
SKEWED_FUNCTIONS(handed, skewed_load, skewed_store, .hand_over = true)
SKEWED_FUNCTIONS(minimal, skewed_load, skewed_store, .hand_over = true, .minimal = true)
SKEWED_FUNCTIONS(direct, NULL, NULL, .mapped = true, .at_once = true)
SKEWED_FUNCTIONS(direct_opt, NULL, NULL, .mapped = true)

const struct mx_algorithm mx_algorithm_skewed = {
    .name = "skewed",
    .aliases = "mmap2 aio2 algorithm-2",
    .summary = "Blocks that shift from level to level, so that nothing is computed twice; moves both "
               "Buffers; not resumable",
    .uses_blocks = true,
    .cuts_y = cuts,
    .check = skewed_check,
    .shape = plain_shape,
    .traffic = plain_traffic,
    .open = plain_open,
};

const struct mx_algorithm mx_algorithm_skewed_y = {
    .name = "skewed-y",
    .aliases = "mmap3y aio3y 3y",
    .summary = "as skewed, but overlaps in y stay in DRAM; not resumable",
    .uses_blocks = true,
    .cuts_y = cuts,
    .check = skewed_check,
    .shape = handed_shape,
    .traffic = handed_traffic,
    .open = handed_open,
};

const struct mx_algorithm mx_algorithm_skewed_min = {
    .name = "skewed-min",
    .aliases = "mmap5y aio5y 5y",
    .summary = "as skewed-y, but moves the second Buffer only where Blocks overlap in z; not resumable",
    .uses_blocks = true,
    .cuts_y = cuts,
    .check = skewed_check,
    .shape = minimal_shape,
    .traffic = minimal_traffic,
    .open = minimal_open,
};

const struct mx_algorithm mx_algorithm_direct_skewed = {
    .name = "direct-skewed",
    .aliases = "mmap1",
    .summary = "the blocks of skewed on the mapped Buffers, level after level over a block; not resumable",
    .needs_mapped = true,
    .cuts_y = cuts_not,
    .check = mapped_check,
    .shape = direct_shape,
    .traffic = direct_traffic,
    .open = direct_open,
};

const struct mx_algorithm mx_algorithm_direct_skewed_opt = {
    .name = "direct-skewed-opt",
    .aliases = "mmap1+opt",
    .summary = "as direct-skewed, but the threads share slabs of planes, and all levels follow one front; "
               "not resumable",
    .needs_mapped = true,
    .cuts_y = cuts_not,
    .check = mapped_check,
    .shape = direct_opt_shape,
    .traffic = direct_opt_traffic,
    .open = direct_opt_open,
};
