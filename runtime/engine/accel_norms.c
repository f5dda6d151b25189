/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_norms.c - norms on an accelerator: lanes of rows are summed there, and got. */
#include "engine/accel_private.h"

#include <errno.h>
#include <stdlib.h>

int64_t mx_accel_room_for_lanes(const struct mx_problem *p) {
    return mx_max(LEAST_BYTES, p->ny * mx_accel_quantities(p) * LANES * (int64_t)sizeof(double));
}

/* Planes whose old values are kept at a time. */
static int64_t planes_kept(const struct mx_problem *p, int64_t plane_pitch) {
    return mx_states(p) < 2 ? 0 : mx_max(1, mx_min(p->nz, 4 * (int64_t)LEAST_BYTES / plane_pitch));
}

int mx_accel_make_norms(struct mx_accel_after *d, const struct mx_view *v) {
    const struct mx_problem *p = d->problem;
    const struct mx_norms_options *o = mx_norms_asked(d->after.norms);
    d->n_reduce = o->n_reduce;
    d->lane_bytes = mx_accel_room_for_lanes(p);
    d->old_planes = planes_kept(p, v->plane_pitch_bytes);
    d->host_lane = malloc((size_t)(d->lane_bytes * (1 + d->n_reduce)));
    if (d->host_lane == NULL) return mx_accel_fail(d->accel, -EIO, "no memory for the lanes of norms");
    int err = mx_accel_take(d, d->lane_bytes, "the lanes of norms", &d->lane);
    if (err < 0 || d->old_planes == 0) return err;
    return mx_accel_take(d, d->old_planes * v->plane_pitch_bytes, "planes before a step", &d->old);
}

int64_t mx_accel_after_kept(const struct mx_accel_after *d, const struct mx_advance *a, int32_t l) {
    return d != NULL && d->after.norms != NULL && mx_norms_needs_old(d->after.norms, a->first_level + l)
               ? d->old_planes
               : 0;
}

int mx_accel_after_keep(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0,
                        int64_t z1, int64_t *number) {
    const struct mx_view *v = &a->view;
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const int to = mx_accel_written(a, l);
    for (int64_t z = z0, n; z < z1; z += n) {
        n = mx_min(z1 - z, v->slots[to] - mx_accel_slot(v, to, z));
        const struct mx_accel_copy c = {.to = d->old + (z - z0) * v->plane_pitch_bytes +
                                              (w->y0 + v->y_offset) * v->row_pitch_bytes,
                                        .from = mx_view_row(v, to, w->y0, z),
                                        .to_pitch = v->plane_pitch_bytes,
                                        .from_pitch = v->plane_pitch_bytes,
                                        .bytes = (w->y1 - w->y0) * v->row_pitch_bytes,
                                        .n = n};
        const int64_t done = mx_accel_copy(d->accel, MX_ACCEL_WORK, &c);
        if (done < 0) return (int)done;
        *number = done;
    }
    return 0;
}

/* The lanes of a kernel, of `of_row` of them a row. */
static int get_lanes(struct mx_accel_after *d, struct mx_accel_level *k, const struct mx_accel_box *b,
                     int64_t of_row, double *out, int64_t *number) {
    const int64_t rows = b->y1 - b->y0, planes = b->z1 - b->z0;
    k->size[0] = rows * LANES, k->size[1] = planes, k->size[2] = 1;
    int err = mx_accel_launch(d, k, number);
    if (err == 0) err = mx_accel_wait(d->accel, MX_ACCEL_WORK, *number);
    return err < 0
               ? err
               : mx_accel_transfer(d, false, d->lane, out, rows * planes * of_row * (int64_t)sizeof(double));
}

static int change_lanes(struct mx_accel_after *d, const struct mx_advance *a, int32_t l,
                        const struct mx_accel_box *b, int64_t kept, int64_t *number) {
    const struct mx_view *v = &a->view;
    const int from = 1 - mx_accel_written(a, l);
    struct mx_accel_level k = mx_accel_window(d, a, l, MX_ACCEL_CHANGE, b->y0, b->y1, b->z0, b->z1);
    k.array[k.arrays++] = kept >= 0 ? d->old : v->base[from];
    k.number[7] = kept >= 0 ? kept : mx_accel_slot(v, from, b->z0);
    k.number[8] = kept >= 0 ? d->old_planes : v->slots[from];
    k.array[k.arrays++] = d->lane;
    return get_lanes(d, &k, b, mx_accel_quantities(d->problem) * LANES, d->host_lane, number);
}

static int reduce_lanes(struct mx_accel_after *d, const struct mx_advance *a, int32_t l,
                        const struct mx_accel_box *b, int32_t i, int64_t *number) {
    struct mx_accel_level k = mx_accel_level_of(d->problem, a, l, b->y0, b->y1, b->z0, b->z1, d->series);
    k.kernel = mx_accel_kernel(d->problem, (enum mx_accel_kernel)(MX_ACCEL_REDUCE + i), a->first_level + l);
    k.array[k.arrays++] = d->lane;
    return get_lanes(d, &k, b, LANES, d->host_lane + (1 + i) * d->lane_bytes / (int64_t)sizeof(double),
                     number);
}

static void hand_over(const struct mx_accel_after *d, int64_t level, const struct mx_accel_box *b) {
    const int64_t h = d->problem->h, hy = mx_halo_y(d->problem), q = mx_accel_quantities(d->problem) * LANES,
                  rows = b->y1 - b->y0;
    for (int64_t z = b->z0; z < b->z1; z++)
        for (int64_t y = b->y0; y < b->y1; y++) {
            const int64_t i = (z - b->z0) * rows + y - b->y0;
            struct mx_norm_lanes n = {.level = level,
                                      .y = y - hy,
                                      .z = z - h,
                                      .squares = d->host_lane + i * q,
                                      .most = d->host_lane + (i + 1) * q - LANES};
            for (int32_t k = 0; k < d->n_reduce; k++)
                n.reduce[k] = d->host_lane + (1 + k) * d->lane_bytes / (int64_t)sizeof(double) + i * LANES;
            mx_norms_lanes(d->after.norms, &n);
        }
}

/* Of planes [z0,z1) the interior, as much at a time as there is room for. */
int mx_accel_take_norms(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0,
                        int64_t z1, bool old, int64_t *number) {
    const struct mx_problem *p = d->problem;
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const int64_t level = a->first_level + l, h = p->h, y0 = mx_max(w->y0, mx_halo_y(p)),
                  y1 = mx_min(w->y1, p->ny + mx_halo_y(p));
    if (d->after.norms == NULL || !mx_norms_due(d->after.norms, level) || y0 >= y1) return 0;
    const struct mx_norms_options *o = mx_norms_asked(d->after.norms);
    const int64_t plane = (y1 - y0) * mx_accel_quantities(p) * LANES * (int64_t)sizeof(double),
                  most = d->lane_bytes / plane;
    int err = 0;
    for (int64_t z = mx_max(z0, h), n; z < mx_min(z1, p->nz + h) && err == 0; z += n) {
        n = mx_min(mx_min(z1, p->nz + h) - z, most);
        const struct mx_accel_box b = {y0, y1, z, z + n};
        if (o->max_change || o->rms_change) err = change_lanes(d, a, l, &b, old ? z - z0 : -1, number);
        for (int32_t i = 0; i < d->n_reduce && err == 0; i++) err = reduce_lanes(d, a, l, &b, i, number);
        if (err == 0) hand_over(d, level, &b);
    }
    return err;
}
