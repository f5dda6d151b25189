/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_levels.c - the engine of an accelerator: levels of a call are launches of a kernel on the device, one
 * after the other in one queue, whole windows each. Seams are copied there as well, and what happens to rows
 * that a level has written is done there too (accel_after.c).
 *
 * A device that is here (accel/host.c) computes with the tiled engine: its calls pass through.
 */
#include "accel/accel.h"
#include "engine/accel_after.h"
#include "engine/accel_text.h"
#include "engine/work.h"
#include "machine/clock.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 16 }; /* under way at most */

struct mx_engine {
    struct mx_work work;
    mx_accel *accel;
    bool here;
    /* Here: the tiled engine, and the other one where frames copy the opposite end of y or z. */
    const struct mx_engine_ops *ops;
    mx_engine *inner;
    struct mx_engine_options options;
    int64_t calls, inner_calls;
    int64_t last[CALLS]; /* of call i the number of its last launch, at i % CALLS */
    int64_t launched;
    /* What the text was made for. */
    bool built;
    struct mx_view view;
    struct mx_accel_after *after; /* NULL: nothing is asked for */
    char *series;                 /* parameters over time, there; NULL = none */
    bool fused;                   /* the text has the kernel of two levels in one launch */
    int32_t fuse;                 /* levels in one launch, 0: not known yet */
};

/* ---- launches */

static bool same_geometry(const struct mx_engine *e, const struct mx_view *v) {
    return e->built && e->view.plane_pitch_bytes == v->plane_pitch_bytes &&
           e->view.row_pitch_bytes == v->row_pitch_bytes;
}

_Static_assert((int)MX_ACCEL_TEXT_KERNELS <= (int)MX_ACCEL_KERNELS,
               "a text has more kernels than a program may have");

/* Once: the geometry of a run does not change, nor what is asked of its rows. */
static int build(mx_engine *e, const struct mx_advance *a) {
    struct mx_accel_program program = {.text = NULL};
    struct mx_accel_names names;
    mx_why why = {""};
    char *text = NULL;
    if (same_geometry(e, &a->view)) return 0;
    e->fused = a->after == NULL && e->fuse != 1 && mx_accel_fuses(e->work.problem) &&
               mx_accel_facts(e->accel)->most_group >= MX_ACCEL_GROUP_X * MX_ACCEL_GROUP_Y;
    int err = mx_accel_text(&e->work, &a->view, a->after, e->fused, &why, &text);
    if (err < 0) return mx_accel_fail(e->accel, err, why.text);
    mx_accel_names(e->work.problem, a->after, e->fused, &names);
    program.text = text;
    program.names = names.name;
    program.n_names = names.n;
    err = mx_accel_build(e->accel, &program);
    free(text);
    if (err == 0) err = mx_accel_put_series(e->accel, e->work.problem, &e->series);
    if (err < 0) return err;
    if (a->after != NULL &&
        (e->after = mx_accel_after_make(e->accel, &e->work, &a->view, a->after, e->series)) == NULL)
        return mx_accel_error(e->accel, NULL);
    e->view = a->view;
    e->built = true;
    return 0;
}

/* Planes [z0,z1) of the window. `kept`: what they held is wanted afterwards. */
static int launch_planes(mx_engine *e, const struct mx_advance *a, int32_t l, int64_t z0, int64_t z1,
                         bool kept) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const struct mx_accel_level k = mx_accel_level_of(e->work.problem, a, l, w->y0, w->y1, z0, z1, e->series);
    int err = kept ? mx_accel_after_keep(e->after, a, l, z0, z1, &e->launched) : 0;
    if (err < 0) return err;
    const int64_t number = mx_accel_level(e->accel, &k);
    if (number < 0) return (int)number;
    e->launched = number;
    return e->after != NULL ? mx_accel_after_planes(e->after, a, l, z0, z1, kept, &e->launched) : 0;
}

static int launch(mx_engine *e, const struct mx_advance *a, int32_t l) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const int64_t kept = mx_accel_after_kept(e->after, a, l), planes = mx_accel_most_planes(e->accel),
                  most = kept > 0 ? mx_min(kept, planes) : planes;
    int err = 0;
    if (w->y0 >= w->y1 || w->z0 >= w->z1) return 0;
    for (int64_t z = w->z0; z < w->z1 && err == 0; z += most)
        err = launch_planes(e, a, l, z, mx_min(z + most, w->z1), kept > 0);
    if (err == 0 && e->after != NULL) err = mx_accel_after_level(e->after, a, l, e->calls + 1, &e->launched);
    return err;
}

/* Planes of a level between the view and a seam, as many at a time as follow one another in the ring. */
static int copy_seam(mx_engine *e, const struct mx_advance *a, const struct mx_seam *seam, bool insert,
                     int32_t l) {
    const struct mx_view *v = &a->view;
    const int array = (a->parity + l) & 1;
    const struct mx_seam_planes have = mx_seam_planes(seam, l);
    const int64_t pitch = v->row_pitch_bytes, end = have.z1;
    for (int64_t z = have.z0, n; z < end && seam->n_rows[l] > 0; z += n) {
        n = mx_min(end - z, v->slots[array] - (z + v->z_offset) % v->slots[array]);
        char *row = mx_view_row(v, array, seam->first_y[l], z);
        char *kept = seam->base + (l * seam->planes_per_level + (z - have.z0)) * seam->seam_rows * pitch;
        const struct mx_accel_copy c = {.to = insert ? row : kept,
                                        .from = insert ? kept : row,
                                        .to_pitch = insert ? v->plane_pitch_bytes : seam->seam_rows * pitch,
                                        .from_pitch = insert ? seam->seam_rows * pitch : v->plane_pitch_bytes,
                                        .bytes = seam->n_rows[l] * pitch,
                                        .n = n};
        const int64_t number = mx_accel_copy(e->accel, MX_ACCEL_WORK, &c);
        if (number < 0) return (int)number;
        e->launched = number;
    }
    return 0;
}

/* ---- two levels in one launch */

/* From one array to the other, and so four levels as far as four single ones do: rows of level l + 2 need
 * those of level l alone, 2h around them, and nobody reads what is between. In a pipeline level l, read
 * there, must not have been replaced by a slab before, whose windows are ahead by a radius a level: the next
 * one that goes to its array must be level l + 4 or later, or of a single step level l + 2. So single levels
 * come first. */
enum { BY_TWOS = 4 };

/* How many levels of a call are computed singly before those that are taken two at a time: the same in all
 * slabs of a sweep. */
static int32_t single_levels(const mx_engine *e, const struct mx_advance *a) {
    const struct mx_problem *p = e->work.problem;
    if (!e->fused || a->seam_in.base != NULL || a->seam_out.base != NULL || mx_all_planes(p) != p->nz)
        return a->levels;
    for (int32_t l = a->first; l < mx_advance_end(a); l++) {
        const struct mx_window w = mx_window_at(a, l);
        if (w.y0 < w.y1 && (w.y0 != mx_halo_y(p) || w.y1 != p->ny + mx_halo_y(p))) return a->levels;
    }
    return a->levels % BY_TWOS;
}

/* Levels l and l + 1, as far as the window of the latter goes; at most so many planes of it. `swapped`: level
 * l is in the array that level l + 1 would be in, had each been computed by itself. */
static int launch_two(mx_engine *e, const struct mx_advance *a, int32_t l, bool swapped, int64_t planes) {
    const struct mx_window w = mx_window_at(a, l + 1);
    const int64_t z1 = mx_min(w.z1, w.z0 + planes);
    struct mx_advance two = *a;
    if (w.y0 >= w.y1 || w.z0 >= z1) return 0;
    two.parity = a->parity ^ (int32_t)swapped;
    struct mx_accel_level k = mx_accel_level_of(e->work.problem, &two, l, w.y0, w.y1, w.z0, z1, e->series);
    k.kernel = MX_ACCEL_FUSED;
    k.group[0] = MX_ACCEL_GROUP_X, k.group[1] = MX_ACCEL_GROUP_Y;
    for (int i = 0; i < 2; i++) /* a group has more work items than cells of level l + 1 */
        k.size[i] = k.group[i] * mx_ceil_div(i == 0 ? e->work.problem->nx : w.y1 - w.y0,
                                             k.group[i] - 2 * (int64_t)e->work.problem->h);
    k.size[2] = mx_ceil_div(z1 - w.z0, MX_ACCEL_TILE_Z);
    const int64_t number = mx_accel_level(e->accel, &k);
    if (number < 0) return (int)number;
    return e->launched = number, 0;
}

/* Which way is faster is found out by both, on planes of the first sweep's first level, which is computed
 * again afterwards: the first of each is not counted, for devices make ready then what they launch. */
static int try_both(mx_engine *e, const struct mx_advance *a) {
    enum { PLANES = 64, TRIALS = 4 };
    const struct mx_window one = mx_window_at(a, 0), two = mx_window_at(a, 1);
    const int64_t planes = mx_min(mx_min(PLANES, mx_accel_most_planes(e->accel)), two.z1 - two.z0);
    uint64_t took_ns[2] = {0, 0};
    int err = mx_accel_wait(e->accel, MX_ACCEL_WORK, e->launched);
    for (int i = 0; i < TRIALS && err == 0; i++) {
        const uint64_t begin = mx_clock_ns();
        err = i % 2 == 0 ? launch_planes(e, a, 0, one.z0, one.z0 + planes, false)
                         : launch_two(e, a, 0, false, planes);
        if (err == 0) err = mx_accel_wait(e->accel, MX_ACCEL_WORK, e->launched);
        took_ns[i % 2] = mx_clock_ns() - begin;
    }
    e->fuse = took_ns[1] < 2 * took_ns[0] ? 2 : 1;
    return err;
}

/* Before a sweep begins, for all that come: a sweep goes one way or the other. */
static int choose(mx_engine *e, const struct mx_advance *a) {
    const struct mx_window two = a->levels > 1 ? mx_window_at(a, 1) : (struct mx_window){0, 0, 0, 0};
    if (e->fuse != 0 || a->first > 0 || mx_window_at(a, 0).z0 != e->work.problem->h) return 0;
    if (single_levels(e, a) == a->levels || two.z0 >= two.z1) return 0;
    return try_both(e, a);
}

/* What fails is remembered by the accelerator, and found by who waits. */
static void launch_levels(mx_engine *e, const struct mx_advance *a) {
    int err = build(e, a);
    if (err == 0) err = choose(e, a);
    const int32_t single = e->fuse == 2 ? single_levels(e, a) : a->levels, end = mx_advance_end(a);
    for (int32_t l = a->first; l < mx_min(single, end) && err == 0; l++) {
        if (a->seam_in.base != NULL) err = copy_seam(e, a, &a->seam_in, true, l);
        if (err == 0 && a->seam_in.base != NULL && l > 0 && e->after != NULL)
            err = mx_accel_after_inserted(e->after, a, l, &e->launched);
        if (err == 0 && a->seam_out.base != NULL) err = copy_seam(e, a, &a->seam_out, false, l);
        if (err == 0) err = launch(e, a, l);
    }
    for (int32_t l = single; l + 1 < end && err == 0; l += 2)
        if (l + 1 >= a->first) err = launch_two(e, a, l, (l - single) / 2 % 2 == 1, INT64_MAX / 2);
}

/* ---- calls */

static void device_wait(mx_engine *e, int64_t number) {
    if (e->here) {
        if (e->inner != NULL) e->ops->wait(e->inner, mx_min(number, e->inner_calls));
        return;
    }
    if (number <= 0) return;
    if (mx_accel_wait(e->accel, MX_ACCEL_WORK, e->last[number % CALLS]) == 0)
        mx_accel_after_done(e->after, number);
}

/* Frames that copy the opposite end of y or z: levels cannot be skewed in tiles. */
static bool goes_around(const struct mx_advance *a) {
    const struct mx_after *after = a->after;
    for (int dim = MX_DIM_Y; after != NULL && dim <= MX_DIM_Z; dim++)
        if (mx_sides_periodic(&after->sides, dim) && !after->ghost[dim]) return true;
    return false;
}

static int64_t post_here(mx_engine *e, const struct mx_advance *a) {
    mx_why why = {""};
    if (mx_accel_launch_here(e->accel) < 0) return ++e->calls;
    if (goes_around(a) && e->ops != &mx_engine_iblock) {
        e->ops->free(e->inner); /* nothing is under way: it is the first call */
        e->ops = &mx_engine_iblock;
        e->inner = NULL;
        const int err = e->ops->create(&e->options, &why, &e->inner);
        if (err < 0) return mx_accel_fail(e->accel, err, why.text), ++e->calls;
    }
    e->inner_calls = e->ops->post(e->inner, a);
    return ++e->calls;
}

static int64_t device_post(mx_engine *e, const struct mx_advance *advance) {
    if (e->here) return post_here(e, advance);
    if (e->calls >= CALLS - 1) device_wait(e, e->calls - CALLS + 2);
    launch_levels(e, advance);
    e->last[++e->calls % CALLS] = e->launched;
    return e->calls;
}

static int64_t device_done(mx_engine *e) {
    if (e->here) {
        const int64_t done = e->inner != NULL ? e->ops->done(e->inner) : 0;
        return done == e->inner_calls ? e->calls : done;
    }
    int64_t call = e->calls;
    while (call > 0 && call > e->calls - CALLS + 1 &&
           !mx_accel_is_done(e->accel, MX_ACCEL_WORK, e->last[call % CALLS]))
        call--;
    mx_accel_after_done(e->after, call);
    return call;
}

/* A slab of so many cells takes a fast device 0.2 ms, some twenty times what a launch costs it. */
static const double cells_of_a_slab = 3.2e7;

static double plane_cells(const struct mx_engine_options *o) {
    const int64_t rows = o->rows > 0 ? o->rows : o->problem->ny;
    return (double)o->problem->nx * (double)rows;
}

static int64_t device_slab(const struct mx_engine_options *o) {
    if (o->slab > 0) return o->slab;
    return mx_min(mx_max((int64_t)(cells_of_a_slab / plane_cells(o)), 1), mx_max(o->problem->nz / 4, 1));
}

/* What launches cost is said in seconds, where rates are known (tune/predict.c). */
static double device_efficiency(const struct mx_engine_options *o) {
    (void)o;
    return 1;
}

static void device_free(mx_engine *e) {
    if (e == NULL) return;
    if (e->inner != NULL) e->ops->free(e->inner);
    mx_accel_after_free(e->after);
    mx_accel_release(e->accel, e->series);
    free(e);
}

static int device_create(const struct mx_engine_options *o, mx_why *why, mx_engine **out) {
    struct mx_work work;
    if (o->accel == NULL)
        return mx_fail(why, -EINVAL,
                       "engine device needs an accelerator: name one with --accel, or choose another engine");
    int err = mx_work_make(o, why, &work);
    if (err != 0) return err;
    mx_engine *e = calloc(1, sizeof *e);
    if (e == NULL) return mx_fail(why, -ENOMEM, "no memory for the engine of an accelerator");
    e->work = work;
    e->accel = o->accel;
    e->here = mx_accel_facts(o->accel)->here;
    e->fuse = mx_accel_facts(o->accel)->fuse;
    e->options = *o;
    e->ops = &mx_engine_tiled;
    err = e->here ? e->ops->create(o, why, &e->inner) : 0;
    if (err != 0) return device_free(e), err;
    return *out = e, 0;
}

static void device_describe(const mx_engine *e, struct mx_plan *plan) {
    if (e->here) e->ops->describe(e->inner, plan);
}

const struct mx_engine_ops mx_engine_device = {
    .name = "device",
    .summary = "launches on an accelerator, level by level (--accel)",
    .slab = device_slab,
    .efficiency = device_efficiency,
    .create = device_create,
    .post = device_post,
    .done = device_done,
    .wait = device_wait,
    .free = device_free,
    .describe = device_describe,
};
