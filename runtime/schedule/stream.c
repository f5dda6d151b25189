/* stream.c - the whole grid streams once per sweep along z through a pipeline of bt levels in DRAM: every
 * plane is read once from one Buffer and written once to the other (DESIGN.md, section 5;
 * models/stream_schedule.py).
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
 * interior plane a face of 2h rows, which j-1 saves and j inserts as soon as both have that level of that
 * plane. The 2h frame planes have no faces; they are loaded with all rows that a strip ever reads. Both
 * strips have the same fronts, so slab k of the faces is written by step k of strip j-1 and read by step k of
 * strip j. Two face stores take turns: strip j writes slabs (j&1)*fronts + k.
 *
 * The face stores are in DRAM, or in a side file: a third Buffer, of which a ring of 2 (a + 1) slabs is in
 * DRAM, half of it for the faces that go in and half for those that come out. Then slab k is loaded before
 * step k and stored after it, those levels of it that have planes. Faces never outlive a sweep, so a run that
 * is resumed needs nothing of them.
 *
 * Pairs. Where the old value is read, level -1 is loaded into array 1 beside level 0, and the last two levels
 * are stored; both rings hold slabs that are read ahead and slabs that are written behind, and there are no
 * COPYs of the frame, for each array has its own. A strip replaces level -1 only where it computes level 1,
 * so it loads those rows of it, h below those of level 0; and it stores of the last level but one the rows
 * that are its own there, h above those of the last: every row is read by one strip and written by one. Faces
 * are the same: level l+1 of a strip begins 2h rows below level l-1, and the old values of these rows are the
 * face of level l-1.
 *
 * C. Planes of C are loaded with those of level 0, and stay until the last level has read them.
 */
#include "schedule/walk.h"

#include <errno.h>
#include <memext/backend.h>
#include <string.h>

static struct mx_cut strips(const struct mx_problem *p, const struct mx_plan *plan) {
    return mx_strip_cut(p->ny, plan->by, p->h);
}

/* Moves of the front that a pass of so many levels takes. */
static int64_t fronts(const struct mx_problem *p, const struct mx_plan *plan, int64_t levels) {
    return mx_ceil_div64(p->nz + p->h + levels * p->h, mx_plan_slab(p, plan));
}

static bool faces_in_file(const struct mx_plan *plan) { return strcmp(plan->faces, MX_FACES_IN_FILE) == 0; }

/* ------------------------------------------------------------------ steps */

static void face_table(const struct mx_cut *y, int64_t strip, int32_t levels, int32_t *first, int32_t *n) {
    for (int32_t l = 0; l <= levels; l++) {
        struct mx_range r = {0, 0};
        if (strip > 0 && strip < y->count && l < levels) r = mx_strip_face(y, strip, l);
        first[l] = (int32_t)r.lo;
        n[l] = (int32_t)mx_length(r);
    }
}

static void stream_begin(struct mx_walk *w) {
    const struct mx_problem *p = &w->problem;
    struct mx_cut y = strips(p, &w->plan);
    struct mx_range rows = mx_skew_span(&y, w->pass, w->levels);
    int32_t h = p->h;
    w->block = (struct mx_region){rows.lo, rows.hi, 0, p->nz + 2 * h};
    w->at = (struct mx_placement){-rows.lo, w->passes_done * (p->nz + 2 * h)};
    w->parity = 0;
    for (int32_t l = 0; l < w->levels; l++) {
        struct mx_range r = mx_skew_window(&y, w->pass, l + 1);
        w->whole[l] = (struct mx_window){(int32_t)r.lo, (int32_t)r.hi, h, (int32_t)p->nz + h};
    }
    if (y.count == 1) return;
    int64_t store = fronts(p, &w->plan, w->max_levels);
    w->faces_before = w->passes_done * store;
    if (w->pass > 0) w->face_in = ((w->pass - 1) & 1) * store;
    if (w->pass < y.count - 1) w->face_out = (w->pass & 1) * store;
    face_table(&y, w->pass, w->levels, w->face_in_y, w->face_in_n);
    face_table(&y, w->pass + 1, w->levels, w->face_out_y, w->face_out_n);
}

static struct mx_range window_of(const struct mx_cut *c, int64_t j, int64_t level, int64_t levels) {
    (void)levels;
    return mx_skew_window(c, j, level);
}

/* Frame planes with all rows of the strip's Block, the others with those that no other strip loads. */
static void load_array(struct mx_walk *w, int32_t array, struct mx_range rows, int64_t z0, int64_t z1) {
    struct mx_region all = {w->block.y0, w->block.y1, z0, z1}, part = all;
    int64_t h = w->problem.h, top = w->problem.nz + h;
    if (w->base.shape.whole_planes) {
        mx_walk_move(w, MX_STEP_LOAD, array, w->buffer, all);
        return;
    }
    part.z1 = mx_min64(z1, h);
    mx_walk_move(w, MX_STEP_LOAD, array, w->buffer, part);
    part = (struct mx_region){rows.lo, rows.hi, mx_max64(z0, h), mx_min64(z1, top)};
    mx_walk_move(w, MX_STEP_LOAD, array, w->buffer, part);
    part = all;
    part.z0 = mx_max64(z0, top);
    mx_walk_move(w, MX_STEP_LOAD, array, w->buffer, part);
}

static void stream_load(struct mx_walk *w, int64_t z0, int64_t z1) {
    struct mx_cut y = strips(&w->problem, &w->plan);
    struct mx_range rows = mx_strip_loaded(&y, w->pass);
    load_array(w, 0, rows, z0, z1);
    if (w->base.shape.pairs) load_array(w, 1, mx_strip_stored(&y, w->pass, 1), z0, z1);
    mx_walk_load_fixed(w, z0, z1);
    if (w->base.shape.pairs) return;
    mx_walk_copy_z_frame(w, 0, (struct mx_region){w->block.y0, w->block.y1, z0, z1});
    mx_walk_copy_y_frame(w, 0, (struct mx_region){rows.lo, rows.hi, z0, z1});
}

static void stream_store(struct mx_walk *w, int64_t z0, int64_t z1) {
    struct mx_cut y = strips(&w->problem, &w->plan);
    struct mx_range rows = mx_strip_stored(&y, w->pass, w->levels);
    int32_t last = mx_walk_last_array(w), to = 1 - w->buffer;
    mx_walk_move(w, MX_STEP_STORE, last, to, (struct mx_region){rows.lo, rows.hi, z0, z1});
    if (!w->base.shape.pairs) return;
    rows = mx_strip_stored(&y, w->pass, w->levels - 1);
    mx_walk_move(w, MX_STEP_STORE, 1 - last, to, (struct mx_region){rows.lo, rows.hi, z0, z1});
}

static const struct mx_walk_ops stream_ops = {stream_begin, stream_load, stream_store, NULL};

/* ------------------------------------------------------------------ what it needs */

static int stream_check(const struct mx_problem *problem, const struct mx_plan *plan, mx_why *why) {
    int err = mx_check_plan(problem, plan, false, why);
    if (err < 0) return err;
    if (plan->by < 1)
        return mx_fail(why, -EINVAL, "strips of %lld rows: by must be at least 1 (ny = %lld means no strips)",
                       (long long)plan->by, (long long)problem->ny);
    if (plan->faces[0] == 0 || faces_in_file(plan) || strcmp(plan->faces, MX_FACES_IN_DRAM) == 0) return 0;
    return mx_fail(why, -EINVAL,
                   "faces cannot be in '%.11s': it is " MX_FACES_IN_DRAM " or " MX_FACES_IN_FILE,
                   plan->faces);
}

/* Planes that may be read ahead or written behind at a time. */
static int64_t ahead_planes(const struct mx_problem *p, const struct mx_plan *plan) {
    return mx_min64(p->nz + 2 * p->h, mx_plan_ahead(plan) * mx_plan_slab(p, plan));
}

/* What a sweep of so many levels asks of an array's ring: planes that a step touches, that are read ahead
 * into it, and that are written behind from it. -1 is C. */
static int64_t sweep_slots(const struct mx_problem *p, const struct mx_plan *plan, int array,
                           int64_t levels) {
    const bool pairs = mx_reads_old(p), fixed = array < 0;
    const bool stored = !fixed && (pairs || (levels & 1) == array), loaded = fixed || pairs || array == 0;
    const int64_t reach = fixed ? p->system->hc : p->h; /* of a window downwards */
    const int64_t s = mx_plan_slab(p, plan), ahead = ahead_planes(p, plan);
    const int64_t behind = mx_max64(reach, stored ? ahead : 0);
    return levels * p->h + s + mx_max64(reach + s, behind + (loaded ? ahead : 0));
}

static int64_t ring_slots(const struct mx_problem *p, const struct mx_plan *plan, int array) {
    int64_t most = sweep_slots(p, plan, array, mx_sweep_levels(p, plan->bt)), passes = 0;
    for (struct mx_sweeps all = mx_sweeps_of(p, plan->bt); mx_sweeps_next(&all);) {
        passes += all.count * strips(p, plan).count;
        most = mx_max64(most, sweep_slots(p, plan, array, all.levels));
    }
    return mx_min64(most, p->nz + 2 * p->h + (passes > 1 ? ahead_planes(p, plan) : 0));
}

static void stream_shape(const struct mx_problem *problem, const struct mx_plan *plan, struct mx_shape *out) {
    struct mx_cut y = strips(problem, plan);
    int64_t levels = mx_sweep_levels(problem, plan->bt);
    struct mx_shape s = {.rows = mx_skew_span_max(&y, levels),
                         .slots = {ring_slots(problem, plan, 0), ring_slots(problem, plan, 1)},
                         .whole_planes = y.count == 1,
                         .in_place = plan->in_place,
                         .max_levels = levels};
    mx_shape_of_form(problem, &s);
    if (mx_fixed_count(problem) > 0) s.fixed_slots = ring_slots(problem, plan, -1);
    if (y.count > 1) {
        s.face_slabs = (y.count > 2 ? 2 : 1) * fronts(problem, plan, levels);
        s.face_rows = 2 * problem->h;
        s.face_planes = mx_plan_slab(problem, plan);
        s.faces_in_file = faces_in_file(plan);
        s.face_slots = s.faces_in_file ? 2 * (mx_plan_ahead(plan) + 1) : s.face_slabs;
    }
    *out = s;
}

/* Moves of the front that bring about level l of an interior plane, summed over l = 0..levels-1. */
static int64_t face_fronts(const struct mx_problem *p, const struct mx_plan *plan, int64_t levels) {
    int64_t s = mx_plan_slab(p, plan);
    return mx_floor_sum(levels, s, p->h, p->nz + p->h + s - 1) - mx_floor_sum(levels, s, p->h, p->h);
}

static void stream_traffic(const struct mx_problem *problem, const struct mx_plan *plan,
                           const struct mx_layout *layout, struct mx_traffic *out) {
    struct mx_cut y = strips(problem, plan);
    int64_t all_rows = problem->ny + 2 * problem->h, frame = 2 * problem->h;
    const int64_t arrays = mx_reads_old(problem) ? 2 : 1;
    const struct mx_cut z = mx_skew_cut(problem->nz, problem->nz, problem->h);
    struct mx_traffic t = {.init_write_bytes = arrays * layout->buffer_bytes,
                           .updates = mx_updates_once(problem)};
    for (struct mx_sweeps all = mx_sweeps_of(problem, plan->bt); mx_sweeps_next(&all);) {
        const int64_t levels = all.levels, sweeps = all.count;
        int64_t read = layout->buffer_bytes, write = layout->buffer_bytes, faces = 0;
        if (y.count > 1) {
            read = (problem->nz * all_rows + frame * mx_skew_span_sum(&y, levels)) * layout->row_pitch_bytes;
            write = (problem->nz + frame) * all_rows * layout->row_pitch_bytes;
            faces = (y.count - 1) * face_fronts(problem, plan, levels) * mx_plan_slab(problem, plan) * frame *
                    layout->row_pitch_bytes;
        }
        int64_t fixed = mx_fixed_traffic(problem, layout, &y, &z, window_of, levels);
        int64_t filed = faces_in_file(plan) ? faces : 0;
        t.read_bytes += sweeps * (arrays * read + fixed + filed);
        t.write_bytes += sweeps * (arrays * write + filed);
        t.fixed_read_bytes += sweeps * fixed;
        t.face_read_bytes += sweeps * faces;
        t.face_write_bytes += sweeps * faces;
    }
    *out = t;
}

static bool stream_cuts_y(const struct mx_problem *problem, const struct mx_plan *plan) {
    return strips(problem, plan).count > 1;
}

static int stream_open(const struct mx_problem *problem, const struct mx_plan *plan, int64_t first_time,
                       int32_t first_buffer, struct mx_schedule **out) {
    struct mx_shape shape;
    stream_shape(problem, plan, &shape);
    return mx_walk_open(&stream_ops, problem, plan, &shape, strips(problem, plan).count, first_time,
                        first_buffer, out);
}

const struct mx_algorithm mx_algorithm_stream = {
    .name = "stream",
    .aliases = "",
    .summary = "the grid streams along z through bt levels in DRAM, read once and written once per sweep; "
               "resumable",
    .uses_blocks = true,
    .resumable = true,
    .cuts_y = stream_cuts_y,
    .check = stream_check,
    .shape = stream_shape,
    .traffic = stream_traffic,
    .open = stream_open,
};
