/* device.c - the engine of an accelerator: levels of a call are launches of a kernel on the device, one after
 * the other in one queue, whole windows each. Faces are copied there as well.
 *
 * A device that is here (accel/host.c) computes with the tiled engine: its calls pass through.
 */
#include "accel/accel.h"
#include "engine/device_text.h"
#include "engine/work.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 16 }; /* under way at most */

struct mx_engine {
    struct mx_work work;
    mx_accel *accel;
    bool here;
    mx_engine *inner; /* the tiled engine, here */
    int64_t calls, inner_calls;
    int64_t last[CALLS]; /* of call i the number of its last launch, at i % CALLS */
    int64_t launched;
    /* What the text was made for. */
    bool built;
    struct mx_view view;
};

static const struct mx_engine_ops *tiled(void) { return &mx_engine_tiled; }

/* ---- launches */

static bool same_geometry(const struct mx_engine *e, const struct mx_view *v) {
    return e->built && e->view.plane_pitch_bytes == v->plane_pitch_bytes &&
           e->view.row_pitch_bytes == v->row_pitch_bytes;
}

/* Once: the geometry of a run does not change. */
static int build(mx_engine *e, const struct mx_view *v) {
    struct mx_accel_program program = {.text = NULL};
    mx_why why = {""};
    char *text = NULL;
    if (same_geometry(e, v)) return 0;
    int err = mx_device_text(&e->work, v, &why, &text);
    if (err < 0) return mx_accel_fail(e->accel, err, why.text);
    program.text = text;
    program.n_names = mx_device_kernels(e->work.problem, &program.names);
    err = mx_accel_build(e->accel, &program);
    free(text);
    if (err < 0) return err;
    e->view = *v;
    e->built = true;
    return 0;
}

static int launch(mx_engine *e, const struct mx_advance *a, int32_t l) {
    const struct mx_problem *p = e->work.problem;
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const struct mx_view *v = &a->view;
    const int from = (a->parity + l) & 1, to = 1 - from;
    const int64_t level = a->first_level + l, z = w->z0 + v->z_offset, n_fixed = mx_fixed_count(p);
    const int64_t fixed_slots = n_fixed > 0 ? v->fixed[0].slots : 1;
    if (w->y0 >= w->y1 || w->z0 >= w->z1) return 0;
    struct mx_accel_level k = {.kernel = mx_form(p) == MX_STAGGERED ? (int32_t)(level & 1) : 0,
                               .arrays = 2 + (int32_t)n_fixed,
                               .array = {v->base[from], v->base[to]},
                               .number = {w->y0, w->z0, w->y1 - w->y0, w->z1 - w->z0, z % v->slots[from],
                                          v->slots[from], z % v->slots[to], v->slots[to], z % fixed_slots,
                                          fixed_slots, v->y_offset, level / mx_levels_a_step(p)},
                               .size = {p->nx + 2 * (int64_t)p->h, w->y1 - w->y0, w->z1 - w->z0}};
    for (int64_t i = 0; i < n_fixed; i++) k.array[2 + i] = v->fixed[i].base;
    const int64_t number = mx_accel_level(e->accel, &k);
    if (number < 0) return (int)number;
    return e->launched = number, 0;
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

/* What fails is remembered by the accelerator, and found by who waits. */
static void launch_levels(mx_engine *e, const struct mx_advance *a) {
    int err = a->after == NULL
                  ? build(e, &a->view)
                  : mx_accel_fail(e->accel, -ENOTSUP,
                                  "an accelerator does no sides, sources, probes and norms: leave "
                                  "--accel out, or these");
    for (int32_t l = a->first; l < mx_advance_end(a) && err == 0; l++) {
        if (a->face_in.base != NULL) err = copy_face(e, a, &a->face_in, true, l);
        if (err == 0 && a->face_out.base != NULL) err = copy_face(e, a, &a->face_out, false, l);
        if (err == 0) err = launch(e, a, l);
    }
}

/* ---- calls */

static void device_wait(mx_engine *e, int64_t number) {
    if (e->here) {
        tiled()->wait(e->inner, mx_min(number, e->inner_calls));
        return;
    }
    if (number > 0) mx_accel_wait(e->accel, MX_ACCEL_WORK, e->last[number % CALLS]);
}

static int64_t device_post(mx_engine *e, const struct mx_advance *advance) {
    if (e->here) {
        if (mx_accel_launch_here(e->accel) == 0) e->inner_calls = tiled()->post(e->inner, advance);
        return ++e->calls;
    }
    if (e->calls >= CALLS - 1) device_wait(e, e->calls - CALLS + 2);
    launch_levels(e, advance);
    e->last[++e->calls % CALLS] = e->launched;
    return e->calls;
}

static int64_t device_done(mx_engine *e) {
    if (e->here) {
        const int64_t done = tiled()->done(e->inner);
        return done == e->inner_calls ? e->calls : done;
    }
    int64_t call = e->calls;
    while (call > 0 && call > e->calls - CALLS + 1 &&
           !mx_accel_is_done(e->accel, MX_ACCEL_WORK, e->last[call % CALLS]))
        call--;
    return call;
}

/* A launch, and each of the transfers of a slab, cost a device some 10 us, in which it could have computed so
 * many cells: slabs have many more than that. */
static const double cells_of_a_launch = 2e5, cells_of_a_slab = 8e6;

static double plane_cells(const struct mx_engine_options *o) {
    const int64_t rows = o->rows > 0 ? o->rows : o->problem->ny;
    return (double)o->problem->nx * (double)rows;
}

static int64_t device_slab(const struct mx_engine_options *o) {
    if (o->slab > 0) return o->slab;
    return mx_min(mx_max((int64_t)(cells_of_a_slab / plane_cells(o)), 1), mx_max(o->problem->nz / 4, 1));
}

static double device_efficiency(const struct mx_engine_options *o) {
    const double cells = plane_cells(o) * (double)device_slab(o);
    return cells / (cells + cells_of_a_launch);
}

static void device_free(mx_engine *e) {
    if (e == NULL) return;
    if (e->inner != NULL) tiled()->free(e->inner);
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
    err = e->here ? tiled()->create(o, why, &e->inner) : 0;
    if (err != 0) return device_free(e), err;
    return *out = e, 0;
}

static void device_describe(const mx_engine *e, struct mx_plan *plan) {
    if (e->here) tiled()->describe(e->inner, plan);
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
