/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - the whole grid streams once per sweep along z through a pipeline of bt levels in DRAM: every
 * plane is read once from one Buffer and written once to the other.
 *
 * Ring. Plane z of pass i of a run is plane z + i*(nz+2h) of an endless row of planes, of which each array
 * keeps the last slots[p]: passes follow one another without reusing what is still in flight. Level 0 of
 * every sweep is in array 0. With s = slab and a = ahead, the step that moves the front from F-s to F reads
 * and writes planes F-s-bt*h-h .. F; meanwhile a slabs beyond F are read into array 0, and a slabs below
 * F-s-bt*h are written from array bt&1. The next step begins while this one ends, in planes up to F+s:
 *
 *     slots[p] = bt*h + s + max(h + s, max(h, p == bt&1 ? a*s : 0) + (p == 0 ? a*s : 0))
 *
 * (the largest value, where sweeps have different levels), and never more than the grid has planes, plus a*s
 * where a pass follows. The constant frame in array 1 is copied from array 0, so the Buffer written needs no
 * initial content.
 *
 * Strips. With by < ny, y is cut as by the time-skewed blocks (geometry.h), and a pass is one strip. What
 * strip j reads left of its windows is what strip j-1 computed there: for each level 0..bt-1 and each
 * interior plane a seam of 2h rows, which j-1 saves and j inserts as soon as both have that level of that
 * plane. The 2h frame planes have no seams; they are loaded with all rows that a strip ever reads. Both
 * strips have the same fronts, so slab k of the seams is written by step k of strip j-1 and read by step k of
 * strip j. Two seam stores take turns: strip j writes slabs (j&1)*fronts + k.
 *
 * The seam stores are in DRAM, or in a side file: a third Buffer, of which a ring of 2 (a + 1) slabs is in
 * DRAM, half of it for the seams that go in and half for those that come out. Then slab k is loaded before
 * step k and stored after it, those levels of it that have planes. Seams never outlive a sweep, so a run that
 * is resumed needs nothing of them.
 *
 * Pairs. Where the old value is read, level -1 is loaded into array 1 beside level 0, and the last two levels
 * are stored; both rings hold slabs that are read ahead and slabs that are written behind, and there are no
 * COPYs of the frame, for each array has its own. A strip replaces level -1 only where it computes level 1.
 * So it loads only these rows of level -1; they begin h rows below those of level 0. Of the last level but
 * one it stores its own rows, which begin h rows above those of the last level. So each row is read by one
 * strip and written by one strip. Seams are the same: level l+1 of a strip begins 2h rows below level l-1,
 * and the old values of these rows are the seam of level l-1.
 *
 * C. Planes of C are loaded with those of level 0, and stay until the last level has read them.
 *
 * Sides (ends.h). At an end in z whose frame copies the h frame planes behind the last are loaded together,
 * and those before the first stored together, which the ring has room for. Of strips the first and the last
 * have what frames in y copy, and inserted seams refresh the frame planes that copy them.
 *
 * Periodic z: the Block begins bt*h planes before the interior and ends as many behind it, loaded from the
 * other end. Level l (from 1) computes (bt-l)*h planes beyond either end, so that the last computes the
 * interior. Periodic y likewise, and strips cut what that makes of a plane. Its rows are transferred as parts
 * of planes. Only the papers' engine on whole planes computes levels one after the other, and needs no ghosts
 * in y: there frames copy.
 */
#include "schedule/walk.h"

#include <errno.h>
#include <memext/backend.h>
#include <string.h>

static bool ghosts_in_y(const struct mx_problem *p, const struct mx_plan *plan) {
    const bool level_by_level = plan->by >= p->ny && strcmp(plan->engine, "iblock") == 0;
    return mx_sides_periodic(&p->sides, MX_DIM_Y) && !level_by_level;
}
static bool periodic_z(const struct mx_problem *p) { return mx_sides_periodic(&p->sides, MX_DIM_Z); }
static bool ghosts_in_z(const struct mx_problem *p, int end) { return mx_end_ghost(p, true, MX_DIM_Z, end); }

/* Ghost rows that level 1 of a sweep computes at either end: the cut counts them as interior, and so many
 * rows more than the Buffer has. */
static int64_t more_rows(const struct mx_problem *p, const struct mx_plan *plan, int64_t levels) {
    return ghosts_in_y(p, plan) ? (levels - 1) * mx_halo_y(p) : 0;
}

static struct mx_cut strips(const struct mx_problem *p, const struct mx_plan *plan, int64_t levels) {
    const int64_t rows = p->ny + 2 * more_rows(p, plan, levels);
    struct mx_cut cut = mx_strip_cut(rows, plan->by >= p->ny ? rows : plan->by, mx_halo_y(p));
    cut.ghost[0] = cut.ghost[1] = ghosts_in_y(p, plan);
    return cut;
}

/* Rows of the cut, in rows of the Buffer. */
static struct mx_range in_rows(struct mx_range r, int64_t more) {
    return (struct mx_range){r.lo - more, r.hi - more};
}

/* Ghost layers are used up level by level. */
static struct mx_range used_up(struct mx_range r, int64_t n, int64_t h, int64_t level, int64_t levels) {
    const int64_t left = (levels - level) * h;
    return (struct mx_range){mx_max(r.lo, h - left), mx_min(r.hi, n + h + left)};
}

/* Planes of the Block. */
static struct mx_range planes_of_pass(const struct mx_problem *p, int64_t levels) {
    const int64_t more = (levels - 1) * p->h;
    return (struct mx_range){ghosts_in_z(p, 0) ? -more : 0,
                             p->nz + 2 * p->h + (ghosts_in_z(p, 1) ? more : 0)};
}

/* Moves of the front that a pass of so many levels takes: it ends where the last level does. */
static int64_t fronts(const struct mx_problem *p, const struct mx_plan *plan, int64_t levels) {
    const int64_t planes = p->nz + p->h + levels * p->h - planes_of_pass(p, levels).lo;
    return mx_ceil_div64(planes, mx_plan_slab(p, plan));
}

static bool seams_in_file(const struct mx_plan *plan) { return strcmp(plan->seams, MX_SEAMS_IN_FILE) == 0; }

/* ------------------------------------------------------------------ steps */

static void seam_table(const struct mx_cut *y, int64_t more, int64_t strip, int32_t levels, int32_t *first,
                       int32_t *n) {
    for (int32_t l = 0; l <= levels; l++) {
        struct mx_range r = {0, 0};
        if (strip > 0 && strip < y->count && l < levels) r = in_rows(mx_strip_seam(y, strip, l), more);
        first[l] = (int32_t)r.lo;
        n[l] = (int32_t)mx_length(r);
    }
}

static struct mx_range window_of(const struct mx_cut *c, int64_t j, int64_t level, int64_t levels) {
    struct mx_range r = mx_skew_window(c, j, level);
    if (!c->ghost[0]) return r;
    const int64_t more = (levels - 1) * c->h;
    return used_up(in_rows(r, more), c->n - 2 * more, c->h, level, levels);
}

static void stream_begin(struct mx_walk *w) {
    const struct mx_problem *p = &w->problem;
    const struct mx_cut y = strips(p, &w->plan, w->levels);
    const int64_t more = more_rows(p, &w->plan, w->levels), h = p->h;
    const struct mx_range rows = in_rows(mx_skew_span(&y, w->pass, w->levels), more),
                          planes = planes_of_pass(p, w->levels), inner = {h, p->nz + h};
    w->passes = y.count;
    w->block = (struct mx_region){rows.lo, rows.hi, planes.lo, planes.hi};
    w->at = (struct mx_placement){-rows.lo, w->planes_before - planes.lo};
    w->parity = 0;
    for (int32_t l = 0; l < w->levels; l++) {
        const struct mx_range r = window_of(&y, w->pass, l + 1, w->levels);
        const int64_t left = (w->levels - l - 1) * h;
        w->whole[l] = (struct mx_window){(int32_t)r.lo, (int32_t)r.hi,
                                         (int32_t)(inner.lo - (ghosts_in_z(p, 0) ? left : 0)),
                                         (int32_t)(inner.hi + (ghosts_in_z(p, 1) ? left : 0))};
    }
    if (y.count == 1) return;
    int64_t store = fronts(p, &w->plan, w->max_levels);
    w->seams_before = w->passes_done * store;
    if (w->pass > 0) w->seam_in = ((w->pass - 1) & 1) * store;
    if (w->pass < y.count - 1) w->seam_out = (w->pass & 1) * store;
    seam_table(&y, more, w->pass, w->levels, w->seam_in_y, w->seam_in_n);
    seam_table(&y, more, w->pass + 1, w->levels, w->seam_out_y, w->seam_out_n);
}

/* Frame planes with all rows of the strip's Block, the others with those that no other strip loads. */
static void load_array(struct mx_walk *w, int32_t array, struct mx_range rows, int64_t z0, int64_t z1) {
    struct mx_region all = {w->block.y0, w->block.y1, z0, z1}, part = all;
    int64_t low = w->problem.h, top = w->problem.nz + low;
    if (ghosts_in_z(&w->problem, 0)) low = z0; /* no frame there */
    if (ghosts_in_z(&w->problem, 1)) top = z1;
    if (w->base.shape.whole_planes) {
        mx_walk_move(w, MX_STEP_LOAD, array, w->buffer, all);
        return;
    }
    part.z1 = mx_min(z1, low);
    mx_walk_move(w, MX_STEP_LOAD, array, w->buffer, part);
    part = (struct mx_region){rows.lo, rows.hi, mx_max(z0, low), mx_min(z1, top)};
    mx_walk_move(w, MX_STEP_LOAD, array, w->buffer, part);
    part = all;
    part.z0 = mx_max(z0, top);
    mx_walk_move(w, MX_STEP_LOAD, array, w->buffer, part);
}

static void stream_load(struct mx_walk *w, int64_t z0, int64_t z1) {
    const struct mx_cut y = strips(&w->problem, &w->plan, w->levels);
    const int64_t more = more_rows(&w->problem, &w->plan, w->levels);
    const struct mx_range rows = in_rows(mx_strip_loaded(&y, w->pass), more);
    load_array(w, 0, rows, z0, z1);
    if (w->base.shape.pairs) load_array(w, 1, in_rows(mx_strip_stored(&y, w->pass, 1), more), z0, z1);
    mx_walk_load_fixed(w, z0, z1);
    if (w->base.shape.pairs) return;
    mx_walk_copy_z_frame(w, 0, (struct mx_region){w->block.y0, w->block.y1, z0, z1});
    mx_walk_copy_y_frame(w, 0, (struct mx_region){rows.lo, rows.hi, z0, z1});
}

static void stream_store(struct mx_walk *w, int64_t z0, int64_t z1) {
    const struct mx_cut y = strips(&w->problem, &w->plan, w->levels);
    const int64_t more = more_rows(&w->problem, &w->plan, w->levels);
    struct mx_range rows = in_rows(mx_strip_stored(&y, w->pass, w->levels), more);
    int32_t last = mx_walk_last_array(w), to = 1 - w->buffer;
    mx_walk_move(w, MX_STEP_STORE, last, to, (struct mx_region){rows.lo, rows.hi, z0, z1});
    if (!w->base.shape.pairs) return;
    rows = in_rows(mx_strip_stored(&y, w->pass, w->levels - 1), more);
    mx_walk_move(w, MX_STEP_STORE, 1 - last, to, (struct mx_region){rows.lo, rows.hi, z0, z1});
}

/* Every strip loads its part of every row, in ghost planes too. */
static int64_t stream_given(const struct mx_problem *p, const struct mx_plan *plan, int64_t levels, int end) {
    const struct mx_cut y = strips(p, plan, levels);
    return mx_has_neighbour(p, end) ? (mx_reads_old(p) ? 2 : 1) * (y.n + 2 * y.h) * levels * p->h : 0;
}

static const struct mx_walk_ops stream_ops = {
    .begin = stream_begin, .load = stream_load, .store = stream_store, .given = stream_given};

/* ------------------------------------------------------------------ what it needs */

static int check_ends(const struct mx_problem *p, const struct mx_plan *plan, mx_why *why) {
    const int64_t levels = mx_sweep_levels(p, plan->bt);
    const struct mx_cut y = strips(p, plan, levels);
    int err = 0;
    if (ghosts_in_y(p, plan))
        err = mx_check_ghosts(p, MX_DIM_Y, levels, why);
    else
        err = mx_check_skewed_ends(p, MX_DIM_Y, &y, levels, why);
    if (err == 0 && periodic_z(p)) err = mx_check_ghosts(p, MX_DIM_Z, levels, why);
    if (err == 0) err = mx_check_neighbours(p, levels, why);
    if (err < 0 || !plan->in_place || !(ghosts_in_y(p, plan) || periodic_z(p))) return err;
    return mx_fail(why, -EINVAL,
                   "--in-place is not possible with periodic sides, since a sweep would overwrite the other "
                   "end of the grid before it is read: leave --in-place out");
}

static int stream_check(const struct mx_problem *problem, const struct mx_plan *plan, mx_why *why) {
    int err = mx_check_plan(problem, plan, false, why);
    if (err < 0) return err;
    if (plan->by < 1)
        return mx_fail(why, -EINVAL,
                       "strips of %lld rows: by must be at least 1 (by = ny = %lld makes no strips)",
                       (long long)plan->by, (long long)problem->ny);
    if ((err = check_ends(problem, plan, why)) < 0) return err;
    if (plan->seams[0] == 0 || seams_in_file(plan) || strcmp(plan->seams, MX_SEAMS_IN_DRAM) == 0) return 0;
    return mx_fail(why, -EINVAL,
                   "faces=%.11s is not possible: faces are kept in " MX_SEAMS_IN_DRAM " or " MX_SEAMS_IN_FILE,
                   plan->seams);
}

/* Beyond what windows reach: the frame planes before the first that are stored late, and those behind the
 * last that are loaded early. */
static int64_t below(const struct mx_problem *p) {
    return mx_end_copies(p, periodic_z(p), MX_DIM_Z, 0) ? p->h : 0;
}
static int64_t above(const struct mx_problem *p) {
    return mx_end_copies(p, periodic_z(p), MX_DIM_Z, 1) ? mx_sides_sources(&p->sides, MX_DIM_Z, 1, p->h) - 1
                                                        : 0;
}

/* Planes that a pass of the longest sweep has. */
static int64_t most_planes(const struct mx_problem *p, const struct mx_plan *plan) {
    return mx_length(planes_of_pass(p, mx_sweep_levels(p, plan->bt)));
}

/* Planes that may be read ahead or written behind at a time. */
static int64_t ahead_planes(const struct mx_problem *p, const struct mx_plan *plan) {
    return mx_min(most_planes(p, plan), mx_plan_ahead(plan) * mx_plan_slab(p, plan) + above(p));
}

/* Engine device takes two levels at a time, of four or more, where both are computed alike, their rows are
 * whole and their frames constant (engine/accel_levels.c): both arrays are then read 2h below a window. */
static bool by_twos(const struct mx_problem *p, const struct mx_plan *plan) {
    if (strcmp(plan->engine, "device") != 0 || plan->by < p->ny || !mx_takes_two_levels(p)) return false;
    return mx_sides_all_fixed(&p->sides) && mx_all_planes(p) == p->nz && mx_sweep_levels(p, plan->bt) >= 4;
}

/* What a sweep of so many levels asks of an array's ring: planes that a step touches, that are read ahead
 * into it, and that are written behind from it. -1 is C. */
static int64_t sweep_slots(const struct mx_problem *p, const struct mx_plan *plan, int array,
                           int64_t levels) {
    const bool pairs = mx_reads_old(p), fixed = array < 0;
    const bool stored = !fixed && (pairs || (levels & 1) == array), loaded = fixed || pairs || array == 0;
    const int64_t more = by_twos(p, plan) ? p->h : 0, /* of a window downwards */
        reach = more + (fixed ? p->system->hc : p->h + below(p));
    const int64_t s = mx_plan_slab(p, plan), ahead = ahead_planes(p, plan);
    const int64_t behind = mx_max(reach, stored ? ahead : 0);
    return levels * p->h + s + mx_max(reach + s, behind + (loaded ? ahead : 0)) + above(p);
}

static int64_t ring_slots(const struct mx_problem *p, const struct mx_plan *plan, int array) {
    int64_t most = sweep_slots(p, plan, array, mx_sweep_levels(p, plan->bt)), passes = 0;
    for (struct mx_sweeps all = mx_sweeps_of(p, plan->bt); mx_sweeps_next(&all);) {
        passes += all.count * strips(p, plan, all.levels).count;
        most = mx_max(most, sweep_slots(p, plan, array, all.levels));
    }
    return mx_min(most, most_planes(p, plan) + (passes > 1 ? ahead_planes(p, plan) : 0));
}

static void stream_shape(const struct mx_problem *problem, const struct mx_plan *plan, struct mx_shape *out) {
    int64_t levels = mx_sweep_levels(problem, plan->bt);
    struct mx_cut y = strips(problem, plan, levels);
    struct mx_shape s = {.rows = mx_skew_span_max(&y, levels),
                         .slots = {ring_slots(problem, plan, 0), ring_slots(problem, plan, 1)},
                         .ghost = {[MX_DIM_Y] = ghosts_in_y(problem, plan), [MX_DIM_Z] = periodic_z(problem)},
                         .whole_planes = y.count == 1 && !y.ghost[0],
                         .in_place = plan->in_place,
                         .max_levels = levels,
                         .by_twos = by_twos(problem, plan)};
    mx_shape_of_form(problem, &s);
    mx_shape_of_neighbours(problem, &s);
    if (mx_loaded_count(problem) > 0) s.fixed_slots = ring_slots(problem, plan, -1);
    if (y.count > 1) {
        s.seam_slabs = (y.count > 2 ? 2 : 1) * fronts(problem, plan, levels);
        s.seam_rows = 2 * y.h;
        s.seam_planes = mx_plan_slab(problem, plan);
        s.seams_in_file = seams_in_file(plan);
        s.seam_slots = s.seams_in_file ? 2 * (mx_plan_ahead(plan) + 1) : s.seam_slabs;
    }
    *out = s;
}

/* Moves of the front that bring about level l of an interior plane, summed over l = 0..levels-1. */
static int64_t seam_fronts(const struct mx_problem *p, const struct mx_plan *plan, int64_t levels) {
    const int64_t s = mx_plan_slab(p, plan), h = p->h, first = -planes_of_pass(p, levels).lo;
    const bool low = ghosts_in_z(p, 0), high = ghosts_in_z(p, 1);
    /* In planes that the front has moved, level l begins at `before` and ends at `end`. */
    const int64_t before = low ? mx_floor_sum(levels, s, 2 * h, 0) : mx_floor_sum(levels, s, h, h);
    const int64_t end =
        high ? levels * fronts(p, plan, levels) : mx_floor_sum(levels, s, h, first + p->nz + h + s - 1);
    return end - before;
}

/* Cells that a sweep computes, ghosts included. */
static int64_t cells(const struct mx_problem *p, const struct mx_plan *plan, int64_t levels) {
    int64_t rows = 0;
    const int ends = ghosts_in_z(p, 0) + ghosts_in_z(p, 1);
    if (!ghosts_in_y(p, plan) && ends == 0) return levels * p->nx * p->ny * p->nz;
    for (int64_t left = 0; left < levels; left++)
        rows += (p->ny + (ghosts_in_y(p, plan) ? 2 * left * mx_halo_y(p) : 0)) * (p->nz + ends * left * p->h);
    return rows * p->nx;
}

static void stream_traffic(const struct mx_problem *problem, const struct mx_plan *plan,
                           const struct mx_layout *layout, struct mx_traffic *out) {
    const int64_t h = problem->h, frame = 2 * h, stored_rows = problem->ny + 2 * mx_halo_y(problem);
    const int64_t arrays = mx_reads_old(problem) ? 2 : 1;
    struct mx_traffic t = {.init_write_bytes = arrays * layout->buffer_bytes};
    for (struct mx_sweeps all = mx_sweeps_of(problem, plan->bt); mx_sweeps_next(&all);) {
        const int64_t levels = all.levels, sweeps = all.count;
        const struct mx_cut y = strips(problem, plan, levels);
        const int64_t planes = mx_length(planes_of_pass(problem, levels)), rows = y.n + 2 * y.h;
        const int64_t stored = problem->nz + frame - mx_neighbours(problem) * h,
                      own = planes - mx_neighbours(problem) * levels * h;
        int64_t read = own * layout->plane_pitch_bytes, write = stored * layout->plane_pitch_bytes, seams = 0;
        if (y.count > 1 || y.ghost[0]) {
            const int64_t with_all = (!ghosts_in_z(problem, 0) + !ghosts_in_z(problem, 1)) * h; /* frames */
            read =
                ((own - with_all) * rows + with_all * mx_skew_span_sum(&y, levels)) * layout->row_pitch_bytes;
            write = stored * stored_rows * layout->row_pitch_bytes;
            seams = (y.count - 1) * seam_fronts(problem, plan, levels) * mx_plan_slab(problem, plan) * frame *
                    layout->row_pitch_bytes;
        }
        struct mx_cut z = mx_lap_cut(problem->nz, problem->nz, h);
        for (int end = 0; end < 2; end++) z.ghost[end] = ghosts_in_z(problem, end);
        int64_t fixed = mx_fixed_traffic(problem, layout, &y, window_of, &z, mx_lap_window, levels);
        int64_t filed = seams_in_file(plan) ? seams : 0;
        t.read_bytes += sweeps * (arrays * read + fixed + filed);
        t.write_bytes += sweeps * (arrays * write + filed);
        t.fixed_read_bytes += sweeps * fixed;
        t.seam_read_bytes += sweeps * seams;
        t.seam_write_bytes += sweeps * seams;
        t.updates += sweeps * cells(problem, plan, levels);
        for (int end = 0; end < 2; end++)
            t.given_bytes += sweeps * stream_given(problem, plan, levels, end) * layout->row_pitch_bytes;
    }
    t.updates /= mx_levels_a_step(problem);
    mx_add_neighbours(problem, plan, layout, &t);
    *out = t;
}

static bool stream_cuts_y(const struct mx_problem *problem, const struct mx_plan *plan) {
    return plan->by < problem->ny || ghosts_in_y(problem, plan);
}

static int stream_open(const struct mx_problem *problem, const struct mx_plan *plan, int64_t first_time,
                       int32_t first_buffer, struct mx_schedule **out) {
    struct mx_shape shape;
    stream_shape(problem, plan, &shape);
    const int64_t passes = strips(problem, plan, shape.max_levels).count;
    return mx_walk_open(&stream_ops, problem, plan, &shape, passes, first_time, first_buffer, out);
}

const struct mx_algorithm mx_algorithm_stream = {
    .name = "stream",
    .aliases = "",
    .summary = "the grid streams along z through bt levels in DRAM, with one read and one write per sweep; "
               "resumable",
    .uses_blocks = true,
    .resumable = true,
    .cuts_y = stream_cuts_y,
    .check = stream_check,
    .shape = stream_shape,
    .traffic = stream_traffic,
    .open = stream_open,
};
