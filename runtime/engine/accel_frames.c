/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_frames.c - frames on an accelerator that copy what a level has written. */
#include "engine/accel_private.h"

int mx_accel_refresh_x(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t *number) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    if (!mx_accel_copies_in(&d->after, MX_DIM_X)) return 0;
    int err = 0;
    for (int64_t z = w->z0, n; z < w->z1 && err == 0; z += n) {
        n = mx_min(w->z1 - z, mx_accel_most_planes(d->accel));
        struct mx_accel_level k = mx_accel_window(d, a, l, MX_ACCEL_FRAME, w->y0, w->y1, z, z + n);
        k.number[7] = d->after.sides.side[MX_DIM_X][0];
        k.number[8] = d->after.sides.side[MX_DIM_X][1];
        k.size[0] = 2 * d->problem->h, k.size[1] = w->y1 - w->y0, k.size[2] = n;
        err = mx_accel_launch(d, &k, number);
    }
    return err;
}

static bool in_reach(const struct mx_advance *a, int array, int64_t y, int64_t z) {
    const struct mx_reach *r = &a->after->reach;
    return r->y1 == 0 || (y >= r->y0 && y < r->y1 && z >= r->z0[array] && z < r->z1[array]);
}

/* Rows [y, y + rows) of plane z become rows from `y_to` on of plane z_to; so do those of the planes after
 * them, as many as n. */
static int copy_rows(struct mx_accel_after *d, const struct mx_advance *a, int array, int64_t y, int64_t rows,
                     int64_t y_to, int64_t z, int64_t z_to, int64_t n, int64_t *number) {
    const struct mx_view *v = &a->view;
    const struct mx_accel_copy c = {.to = mx_view_row(v, array, y_to, z_to),
                                    .from = mx_view_row(v, array, y, z),
                                    .to_pitch = v->plane_pitch_bytes,
                                    .from_pitch = v->plane_pitch_bytes,
                                    .bytes = rows * v->row_pitch_bytes,
                                    .n = n};
    const int64_t done = mx_accel_copy(d->accel, MX_ACCEL_WORK, &c);
    return done < 0 ? (int)done : (*number = done, 0);
}

static int copies_of(const struct mx_accel_after *d, int dim, int64_t i, int64_t out[2]) {
    if (!mx_accel_copies_in(&d->after, dim)) return 0;
    return mx_side_copies(d->after.sides.side[dim], mx_extent_of(d->problem, dim), d->problem->h, i, out);
}

/* Rows [y0,y1) of planes [z0,z1): the rows that copy them. */
int mx_accel_refresh_y(struct mx_accel_after *d, const struct mx_advance *a, int array,
                       const struct mx_accel_box *b, int64_t *number) {
    const struct mx_view *v = &a->view;
    int err = 0;
    for (int64_t y = b->y0; y < b->y1 && err == 0; y++) {
        int64_t copy[2];
        const int copies = copies_of(d, MX_DIM_Y, y, copy);
        for (int i = 0; i < copies; i++)
            for (int64_t z = b->z0, n; z < b->z1 && err == 0 && in_reach(a, array, copy[i], z); z += n) {
                n = mx_min(b->z1 - z, v->slots[array] - mx_accel_slot(v, array, z));
                err = copy_rows(d, a, array, y, 1, copy[i], z, z, n, number);
            }
    }
    return err;
}

/* And the planes, with the rows that copy rows. */
int mx_accel_refresh_z(struct mx_accel_after *d, const struct mx_advance *a, int array,
                       const struct mx_accel_box *b, int64_t *number) {
    int err = 0;
    for (int64_t z = b->z0; z < b->z1 && err == 0; z++) {
        int64_t plane[2], row[2];
        const int planes = copies_of(d, MX_DIM_Z, z, plane);
        for (int k = 0; k < planes && err == 0; k++) {
            if (!in_reach(a, array, b->y0, plane[k])) continue;
            err = copy_rows(d, a, array, b->y0, b->y1 - b->y0, b->y0, z, plane[k], 1, number);
            for (int64_t y = b->y0; y < b->y1; y++) {
                const int rows = copies_of(d, MX_DIM_Y, y, row);
                for (int i = 0; i < rows && err == 0; i++)
                    if (in_reach(a, array, row[i], plane[k]))
                        err = copy_rows(d, a, array, y, 1, row[i], z, plane[k], 1, number);
            }
        }
    }
    return err;
}
