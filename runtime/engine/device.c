/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - the engine of an accelerator: levels of a call are launches of a kernel on the device, one after
 * the other in one queue, whole windows each. Faces are copied there as well, and what happens to rows that a
 * level has written is done there too (device_after.c).
 *
 * A device that is here (accel/host.c) computes with the tiled engine: its calls pass through.
 */
#include "accel/accel.h"
#include "engine/device_after.h"
#include "engine/device_text.h"
#include "engine/work.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 16 };       /* under way at most */
enum { FUSED_LEVELS = 4 }; /* at a time: twice from one array to the other, and so back */

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
    struct mx_device_after *after; /* NULL: nothing is asked for */
    /* Two levels in one launch: the text has the kernel; whether it is used, or what of both was measured, in
     * nanoseconds for FUSED_LEVELS of them. */
    bool fused;
    int32_t fuse;
    uint64_t took_ns[3]; /* [1], [2] levels a launch */
    int32_t trials;
};

/* ---- launches */

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool same_geometry(const struct mx_engine *e, const struct mx_view *v) {
    return e->built && e->view.plane_pitch_bytes == v->plane_pitch_bytes &&
           e->view.row_pitch_bytes == v->row_pitch_bytes;
}

/* Once: the geometry of a run does not change, nor what is asked of its rows. */
static int build(mx_engine *e, const struct mx_advance *a) {
    struct mx_accel_program program = {.text = NULL};
    struct mx_device_names names;
    mx_why why = {""};
    char *text = NULL;
    if (same_geometry(e, &a->view)) return 0;
    e->fused = a->after == NULL && e->fuse != 1 && mx_device_fuses(e->work.problem);
    int err = mx_device_text(&e->work, &a->view, a->after, e->fused, &why, &text);
    if (err < 0) return mx_accel_fail(e->accel, err, why.text);
    mx_device_names(e->work.problem, a->after, e->fused, &names);
    program.text = text;
    program.names = names.name;
    program.n_names = names.n;
    err = mx_accel_build(e->accel, &program);
    free(text);
    if (err < 0) return err;
    if (a->after != NULL && (e->after = mx_device_after_make(e->accel, &e->work, &a->view, a->after)) == NULL)
        return mx_accel_error(e->accel, NULL);
    e->view = a->view;
    e->built = true;
    return 0;
}

int64_t mx_device_most_planes(const mx_accel *accel) {
    const int64_t most = mx_accel_facts(accel)->most_planes;
    return most > 0 ? most : INT64_MAX / 2;
}

struct mx_accel_level mx_device_launch(const struct mx_problem *p, const struct mx_advance *a, int32_t l,
                                       int64_t y0, int64_t y1, int64_t z0, int64_t z1) {
    const struct mx_view *v = &a->view;
    const int from = (a->parity + l) & 1, to = 1 - from;
    const int64_t level = a->first_level + l, z = z0 + v->z_offset, n_fixed = mx_fixed_count(p);
    const int64_t fixed_slots = n_fixed > 0 ? v->fixed[0].slots : 1;
    struct mx_accel_level k = {
        .kernel = mx_device_kernel(p, MX_DEVICE_CELL, level),
        .arrays = 2 + (int32_t)n_fixed,
        .array = {v->base[from], v->base[to]},
        .number = {y0, z0, y1 - y0, z1 - z0, z % v->slots[from], v->slots[from], z % v->slots[to],
                   v->slots[to], z % fixed_slots, fixed_slots, v->y_offset, level / mx_levels_a_step(p)},
        .size = {p->nx + 2 * (int64_t)p->h, y1 - y0, mx_ceil_div(z1 - z0, MX_DEVICE_DEEP)}};
    for (int64_t i = 0; i < n_fixed; i++) k.array[2 + i] = v->fixed[i].base;
    return k;
}

/* Planes [z0,z1) of the window. `kept`: what they held is wanted afterwards. */
static int launch_planes(mx_engine *e, const struct mx_advance *a, int32_t l, int64_t z0, int64_t z1,
                         bool kept) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const struct mx_accel_level k = mx_device_launch(e->work.problem, a, l, w->y0, w->y1, z0, z1);
    int err = kept ? mx_device_after_keep(e->after, a, l, z0, z1, &e->launched) : 0;
    if (err < 0) return err;
    const int64_t number = mx_accel_level(e->accel, &k);
    if (number < 0) return (int)number;
    e->launched = number;
    return e->after != NULL ? mx_device_after_planes(e->after, a, l, z0, z1, kept, &e->launched) : 0;
}

static int launch(mx_engine *e, const struct mx_advance *a, int32_t l) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const int64_t kept = mx_device_after_kept(e->after, a, l), planes = mx_device_most_planes(e->accel),
                  most = kept > 0 ? mx_min(kept, planes) : planes;
    int err = 0;
    if (w->y0 >= w->y1 || w->z0 >= w->z1) return 0;
    for (int64_t z = w->z0; z < w->z1 && err == 0; z += most)
        err = launch_planes(e, a, l, z, mx_min(z + most, w->z1), kept > 0);
    if (err == 0 && e->after != NULL) err = mx_device_after_level(e->after, a, l, e->calls + 1, &e->launched);
    return err;
}

/* Planes of a level between the view and a face, as many at a time as follow one another in the ring. */
static int copy_face(mx_engine *e, const struct mx_advance *a, const struct mx_face *face, bool insert,
                     int32_t l) {
    const struct mx_view *v = &a->view;
    const int array = (a->parity + l) & 1;
    const struct mx_face_planes have = mx_face_planes(face, l);
    const int64_t pitch = v->row_pitch_bytes, end = have.z1;
    for (int64_t z = have.z0, n; z < end && face->n_rows[l] > 0; z += n) {
        n = mx_min(end - z, v->slots[array] - (z + v->z_offset) % v->slots[array]);
        char *row = mx_view_row(v, array, face->first_y[l], z);
        char *kept = face->base + (l * face->planes_per_level + (z - have.z0)) * face->face_rows * pitch;
        const struct mx_accel_copy c = {.to = insert ? row : kept,
                                        .from = insert ? kept : row,
                                        .to_pitch = insert ? v->plane_pitch_bytes : face->face_rows * pitch,
                                        .from_pitch = insert ? face->face_rows * pitch : v->plane_pitch_bytes,
                                        .bytes = face->n_rows[l] * pitch,
                                        .n = n};
        const int64_t number = mx_accel_copy(e->accel, MX_ACCEL_WORK, &c);
        if (number < 0) return (int)number;
        e->launched = number;
    }
    return 0;
}

/* ---- two levels in one launch */

/* Levels [l, l + FUSED_LEVELS) compute the whole interior: nobody needs what is between them, and what they
 * read beside it are frames that stay as they are. */
static bool can_fuse(const mx_engine *e, const struct mx_advance *a, int32_t l) {
    const struct mx_problem *p = e->work.problem;
    if (!e->fused || mx_advance_end(a) - l < FUSED_LEVELS || a->face_in.base != NULL ||
        a->face_out.base != NULL)
        return false;
    for (int32_t i = l; i < l + FUSED_LEVELS; i++) {
        const struct mx_window at = mx_window_at(a, i), *w = &at;
        if (w->y0 != p->h || w->y1 != p->ny + p->h || w->z0 != p->h || w->z1 != p->nz + p->h) return false;
    }
    return true;
}

/* From one array to the other. `swapped`: the arrays have changed places, for two levels went from one to the
 * other. */
static int launch_two(mx_engine *e, const struct mx_advance *a, int32_t l, bool swapped) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    struct mx_advance two = *a;
    two.parity = a->parity ^ (int32_t)swapped;
    struct mx_accel_level k = mx_device_launch(e->work.problem, &two, l, w->y0, w->y1, w->z0, w->z1);
    k.kernel = MX_DEVICE_FUSED;
    k.group[0] = MX_DEVICE_TILE_X, k.group[1] = MX_DEVICE_TILE_Y;
    k.size[0] -= 2 * e->work.h;
    k.size[2] = mx_ceil_div(w->z1 - w->z0, MX_DEVICE_TILE_Z);
    const int64_t number = mx_accel_level(e->accel, &k);
    if (number < 0) return (int)number;
    return e->launched = number, 0;
}

static int launch_group(mx_engine *e, const struct mx_advance *a, int32_t l, int32_t at_a_time) {
    int err = 0;
    for (int32_t i = 0; i < FUSED_LEVELS && err == 0; i += at_a_time)
        err = at_a_time == 2 ? launch_two(e, a, l + i, i == 2) : launch(e, a, l + i);
    return err;
}

/* Which way is faster is found out by both, with work that has to be done anyway: the first of each is not
 * counted, for devices make ready then what they launch. */
static int try_group(mx_engine *e, const struct mx_advance *a, int32_t l) {
    const int32_t at_a_time = 1 + e->trials % 2;
    int err = mx_accel_wait(e->accel, MX_ACCEL_WORK, e->launched);
    const uint64_t begin = now_ns();
    if (err == 0) err = launch_group(e, a, l, at_a_time);
    if (err == 0) err = mx_accel_wait(e->accel, MX_ACCEL_WORK, e->launched);
    e->took_ns[at_a_time] = now_ns() - begin;
    if (++e->trials == 4) e->fuse = e->took_ns[2] < e->took_ns[1] ? 2 : 1;
    return err;
}

/* Returns how many levels it has launched; -errno. */
static int32_t launch_some(mx_engine *e, const struct mx_advance *a, int32_t l) {
    if (e->fuse == 1 || !can_fuse(e, a, l)) {
        const int err = launch(e, a, l);
        return err < 0 ? err : 1;
    }
    const int err = e->fuse == 2 ? launch_group(e, a, l, 2) : try_group(e, a, l);
    return err < 0 ? err : FUSED_LEVELS;
}

/* What fails is remembered by the accelerator, and found by who waits. */
static void launch_levels(mx_engine *e, const struct mx_advance *a) {
    int err = build(e, a);
    for (int32_t l = a->first, done; l < mx_advance_end(a) && err == 0; l += done) {
        done = 1;
        if (a->face_in.base != NULL) err = copy_face(e, a, &a->face_in, true, l);
        if (err == 0 && a->face_in.base != NULL && l > 0 && e->after != NULL)
            err = mx_device_after_inserted(e->after, a, l, &e->launched);
        if (err == 0 && a->face_out.base != NULL) err = copy_face(e, a, &a->face_out, false, l);
        if (err == 0) done = launch_some(e, a, l);
        if (done < 0) err = done;
    }
}

/* ---- calls */

static void device_wait(mx_engine *e, int64_t number) {
    if (e->here) {
        if (e->inner != NULL) e->ops->wait(e->inner, mx_min(number, e->inner_calls));
        return;
    }
    if (number <= 0) return;
    if (mx_accel_wait(e->accel, MX_ACCEL_WORK, e->last[number % CALLS]) == 0)
        mx_device_after_done(e->after, number);
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
    mx_device_after_done(e->after, call);
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
    mx_device_after_free(e->after);
    free(e);
}

static int device_create(const struct mx_engine_options *o, mx_why *why, mx_engine **out) {
    struct mx_work work;
    if (o->accel == NULL)
        return mx_fail(why, -EINVAL,
                       "engine device computes on an accelerator: give one with --accel, or another engine");
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
