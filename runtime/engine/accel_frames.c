/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_frames.c - frames on an accelerator that copy what a level has written. */
#include "engine/accel_private.h"

/* The array of the system that is in array `array` of the view, of which level l writes the other or, where
 * rows of it are inserted, the same. */
static int system_array(const struct mx_advance *a, int array) {
    return (array - a->parity + a->first_level) & 1;
}

static bool differ(const struct mx_sides *s, int dim) {
    return s->side[dim][0] == MX_SIDE_SEVERAL || s->side[dim][1] == MX_SIDE_SEVERAL;
}

/* Rows and planes are copied field by field: signs change, or fields differ. */
static bool apart(const struct mx_accel_after *d) {
    const struct mx_sides *s = &d->after.sides;
    return differ(s, MX_DIM_Y) || differ(s, MX_DIM_Z) || mx_sides_any(s, MX_DIM_Y, MX_SIDES_MINUS) ||
           mx_sides_any(s, MX_DIM_Z, MX_SIDES_MINUS);
}

static int refresh_x(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, struct mx_ends ends,
                     int64_t field, int64_t *number) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    int err = 0;
    for (int64_t z = w->z0, n; z < w->z1 && err == 0; z += n) {
        n = mx_min(w->z1 - z, mx_accel_most_planes(d->accel));
        struct mx_accel_level k = mx_accel_window(d, a, l, MX_ACCEL_FRAME, w->y0, w->y1, z, z + n);
        k.number[7] = ends.side[0], k.number[8] = ends.side[1], k.number[9] = field;
        k.size[0] = 2 * d->problem->h, k.size[1] = w->y1 - w->y0, k.size[2] = n;
        err = mx_accel_launch(d, &k, number);
    }
    return err;
}

int mx_accel_refresh_x(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t *number) {
    const struct mx_sides *s = &d->after.sides;
    const int fields = system_array(a, mx_accel_written(a, l));
    int err = 0;
    if (!mx_accel_copies_in(&d->after, MX_DIM_X)) return 0;
    if (!differ(s, MX_DIM_X)) return refresh_x(d, a, l, mx_ends_of(s, 0, 0, MX_DIM_X), -1, number);
    for (int32_t f = 0; f < mx_field_count(d->problem, fields) && err == 0; f++)
        err = refresh_x(d, a, l, mx_ends_of(s, fields, f, MX_DIM_X), f, number);
    return err;
}

/* ------------------------------------------------------------------ field by field */

enum image { ZERO, COPY, MINUS };

/* Cells [x0,x1) of a field in rows [y0,y1) of planes [z0,z1): 0, or those of rows dy and planes dz further
 * on. */
static int make_image(struct mx_accel_after *d, const struct mx_advance *a, int array, int32_t field,
                      enum image what, struct mx_cells x, const struct mx_accel_box *b, int64_t dy,
                      int64_t dz, int64_t *number) {
    const struct mx_view *v = &a->view;
    const int64_t slots = v->slots[array];
    int err = 0;
    for (int64_t z = b->z0, n; z < b->z1 && err == 0; z += n) {
        n = mx_min(b->z1 - z, mx_accel_most_planes(d->accel));
        const int64_t first = mx_accel_slot(v, array, z);
        struct mx_accel_level k = {
            .kernel = mx_accel_kernel(d->problem, MX_ACCEL_IMAGE, 1 - system_array(a, array)),
            .arrays = 1,
            .array = {v->base[array]},
            .number = {b->y0, z, b->y1 - b->y0, n, first, slots, v->y_offset, 4 * field + (int)what, x.x0,
                       x.x1, dy, mx_wrap(mx_accel_slot(v, array, z + dz) - first, slots)},
            .size = {x.x1 - x.x0, b->y1 - b->y0, n}};
        err = mx_accel_launch(d, &k, number);
    }
    return err;
}

int mx_accel_make_zeros(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0,
                        int64_t z1, int64_t *number) {
    static const int node = 1 << MX_SIDE_ODD_NODE;
    const struct mx_problem *p = d->problem;
    const struct mx_window w = mx_window_at(a, l);
    const int array = mx_accel_written(a, l), fields = system_array(a, array);
    int err = 0;
    for (int dim = MX_DIM_X; dim <= MX_DIM_Z; dim++)
        for (int32_t f = 0; mx_sides_any(&d->after.sides, dim, node) && f < mx_field_count(p, fields); f++)
            for (int end = 0; end < 2 && err == 0; end++) {
                const int64_t at = end == 0 ? p->h : mx_extent_of(p, dim) + p->h - 1;
                struct mx_cells x = {p->h, p->nx + p->h};
                struct mx_accel_box b = {w.y0, w.y1, z0, z1};
                if (mx_ends_of(&d->after.sides, fields, f, dim).side[end] != MX_SIDE_ODD_NODE) continue;
                if (dim == MX_DIM_X) x = (struct mx_cells){at, at + 1};
                if (dim == MX_DIM_Y) b.y0 = mx_max(b.y0, at), b.y1 = mx_min(b.y1, at + 1);
                if (dim == MX_DIM_Z) b.z0 = mx_max(b.z0, at), b.z1 = mx_min(b.z1, at + 1);
                if (b.y0 < b.y1) err = make_image(d, a, array, f, ZERO, x, &b, 0, 0, number);
            }
    return err;
}

static enum image image_of(const struct mx_accel_after *d, int dim, const struct mx_ends *ends, int64_t i) {
    return mx_side_minus(ends->side, mx_extent_of(d->problem, dim), d->problem->h, i) ? MINUS : COPY;
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

static int copies_of(const struct mx_accel_after *d, int dim, const struct mx_ends *ends, int64_t i,
                     int64_t out[MX_SIDE_COPIES]) {
    if (!mx_accel_copies_in(&d->after, dim)) return 0;
    return mx_side_copies(ends->side, mx_extent_of(d->problem, dim), d->problem->h, i, out);
}

/* Of one field: the rows that copy rows of the box, in its planes. */
static int image_rows(struct mx_accel_after *d, const struct mx_advance *a, int array, int32_t f,
                      const struct mx_accel_box *b, int64_t *number) {
    const struct mx_ends ends = mx_ends_of(&d->after.sides, system_array(a, array), f, MX_DIM_Y);
    const struct mx_cells all = {0, d->problem->nx + 2 * d->problem->h};
    int err = 0;
    for (int64_t y = b->y0; y < b->y1; y++) {
        int64_t copy[MX_SIDE_COPIES];
        const int copies = copies_of(d, MX_DIM_Y, &ends, y, copy);
        for (int i = 0; i < copies && err == 0; i++) {
            const struct mx_accel_box to = {copy[i], copy[i] + 1, b->z0, b->z1};
            if (in_reach(a, array, copy[i], b->z0))
                err = make_image(d, a, array, f, image_of(d, MX_DIM_Y, &ends, copy[i]), all, &to, y - copy[i],
                                 0, number);
        }
    }
    return err;
}

/* Of one field: the planes that copy planes of the box, with the rows that copy rows there. */
static int image_planes(struct mx_accel_after *d, const struct mx_advance *a, int array, int32_t f,
                        const struct mx_accel_box *b, int64_t *number) {
    const int fields = system_array(a, array);
    const struct mx_ends rows = mx_ends_of(&d->after.sides, fields, f, MX_DIM_Y),
                         ends = mx_ends_of(&d->after.sides, fields, f, MX_DIM_Z);
    const struct mx_cells all = {0, d->problem->nx + 2 * d->problem->h};
    int err = 0;
    for (int64_t z = b->z0; z < b->z1; z++) {
        int64_t plane[MX_SIDE_COPIES], row[MX_SIDE_COPIES];
        const int planes = copies_of(d, MX_DIM_Z, &ends, z, plane);
        for (int k = 0; k < planes && err == 0; k++) {
            const enum image what = image_of(d, MX_DIM_Z, &ends, plane[k]);
            struct mx_accel_box to = {b->y0, b->y1, plane[k], plane[k] + 1};
            if (!in_reach(a, array, b->y0, plane[k])) continue;
            err = make_image(d, a, array, f, what, all, &to, 0, z - plane[k], number);
            for (int64_t y = b->y0; y < b->y1; y++)
                for (int i = copies_of(d, MX_DIM_Y, &rows, y, row); i-- > 0 && err == 0;) {
                    to.y0 = row[i], to.y1 = row[i] + 1;
                    if (in_reach(a, array, row[i], plane[k]))
                        err = make_image(d, a, array, f, what, all, &to, 0, z - plane[k], number);
                }
        }
    }
    return err;
}

/* ------------------------------------------------------------------ all fields at once */

/* Rows [y0,y1) of planes [z0,z1): the rows that copy them. */
int mx_accel_refresh_y(struct mx_accel_after *d, const struct mx_advance *a, int array,
                       const struct mx_accel_box *b, int64_t *number) {
    const struct mx_view *v = &a->view;
    const struct mx_ends ends = mx_ends_of(&d->after.sides, 0, 0, MX_DIM_Y);
    const int32_t fields = mx_field_count(d->problem, system_array(a, array));
    int err = 0;
    for (int32_t f = 0; apart(d) && f < fields && err == 0; f++) err = image_rows(d, a, array, f, b, number);
    for (int64_t y = b->y0; y < b->y1 && err == 0 && !apart(d); y++) {
        int64_t copy[MX_SIDE_COPIES];
        const int copies = copies_of(d, MX_DIM_Y, &ends, y, copy);
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
    const struct mx_ends ends = mx_ends_of(&d->after.sides, 0, 0, MX_DIM_Z),
                         row_ends = mx_ends_of(&d->after.sides, 0, 0, MX_DIM_Y);
    const int32_t fields = mx_field_count(d->problem, system_array(a, array));
    int err = 0;
    for (int32_t f = 0; apart(d) && f < fields && err == 0; f++)
        err = image_planes(d, a, array, f, b, number);
    for (int64_t z = b->z0; z < b->z1 && err == 0 && !apart(d); z++) {
        int64_t plane[MX_SIDE_COPIES], row[MX_SIDE_COPIES];
        const int planes = copies_of(d, MX_DIM_Z, &ends, z, plane);
        for (int k = 0; k < planes && err == 0; k++) {
            if (!in_reach(a, array, b->y0, plane[k])) continue;
            err = copy_rows(d, a, array, b->y0, b->y1 - b->y0, b->y0, z, plane[k], 1, number);
            for (int64_t y = b->y0; y < b->y1; y++) {
                const int rows = copies_of(d, MX_DIM_Y, &row_ends, y, row);
                for (int i = 0; i < rows && err == 0; i++)
                    if (in_reach(a, array, row[i], plane[k]))
                        err = copy_rows(d, a, array, y, 1, row[i], z, plane[k], 1, number);
            }
        }
    }
    return err;
}
