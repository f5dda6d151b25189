/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_there.c - memory of an accelerator that is not here, and launches of its kernels. */
#include "engine/accel_private.h"

#include <errno.h>
#include <memext/backend.h>

/* Waits: nothing else is under way when tables are made, and lanes are wanted at once. */
int mx_accel_transfer(struct mx_accel_after *d, bool in, char *there, void *here, int64_t bytes) {
    const struct mx_accel_span span = {there, here, (uint64_t)bytes};
    mx_accel_aside(d->accel, true);
    const int64_t number = (in ? mx_accel_put : mx_accel_get)(d->accel, &span, 1);
    mx_accel_aside(d->accel, false);
    return number < 0 ? (int)number : mx_accel_wait(d->accel, in ? MX_ACCEL_PUT : MX_ACCEL_GET, number);
}

int mx_accel_take(struct mx_accel_after *d, int64_t bytes, const char *what, char **out) {
    mx_why why = {""};
    const int err = mx_accel_alloc(d->accel, (uint64_t)mx_max(bytes, 8), what, &why, out);
    return err < 0 ? mx_accel_fail(d->accel, -EIO, why.text) : 0;
}

struct mx_accel_level mx_accel_window(const struct mx_accel_after *d, const struct mx_advance *a, int32_t l,
                                      enum mx_accel_kernel kernel, int64_t y0, int64_t y1, int64_t z0,
                                      int64_t z1) {
    const int to = mx_accel_written(a, l);
    const struct mx_view *v = &a->view;
    return (struct mx_accel_level){
        .kernel = mx_accel_kernel(d->problem, kernel, a->first_level + l),
        .arrays = 1,
        .array = {v->base[to]},
        .number = {y0, z0, y1 - y0, z1 - z0, mx_accel_slot(v, to, z0), v->slots[to], v->y_offset}};
}

int mx_accel_launch(struct mx_accel_after *d, struct mx_accel_level *k, int64_t *number) {
    const int64_t n = mx_accel_level(d->accel, k);
    return n < 0 ? (int)n : (*number = n, 0);
}

int64_t mx_accel_most_planes(const mx_accel *accel) {
    const int64_t most = mx_accel_facts(accel)->most_planes;
    return most > 0 ? most : INT64_MAX / 2;
}

struct mx_accel_level mx_accel_level_of(const struct mx_problem *p, const struct mx_advance *a, int32_t l,
                                        int64_t y0, int64_t y1, int64_t z0, int64_t z1, char *series) {
    const struct mx_view *v = &a->view;
    const int from = (a->parity + l) & 1, to = 1 - from;
    const int64_t level = a->first_level + l, z = z0 + v->z_offset, n_fixed = mx_fixed_count(p);
    int64_t fixed_slots = 1; /* of those that are no profiles */
    for (int64_t i = 0; i < n_fixed; i++) fixed_slots = mx_max(fixed_slots, v->fixed[i].slots);
    struct mx_accel_level k = {
        .kernel = mx_accel_kernel(p, MX_ACCEL_CELL, level),
        .arrays = 2 + (int32_t)n_fixed,
        .array = {v->base[from], v->base[to]},
        .number = {y0, z0, y1 - y0, z1 - z0, z % v->slots[from], v->slots[from], z % v->slots[to],
                   v->slots[to], z % fixed_slots, fixed_slots, v->y_offset, level / mx_levels_a_step(p)},
        .size = {p->nx + 2 * (int64_t)p->h, y1 - y0, mx_ceil_div(z1 - z0, MX_ACCEL_DEEP)}};
    for (int64_t i = 0; i < n_fixed; i++) k.array[2 + i] = v->fixed[i].base;
    if (series != NULL) k.array[k.arrays++] = series;
    return k;
}
