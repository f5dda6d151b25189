/* SPDX-License-Identifier: BSD-3-Clause */
#include "files/profile.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ extents */

static bool fits(const int64_t shape[3], const int64_t extent[3], bool flat, uint8_t *alike) {
    *alike = 0;
    for (int i = 0; i < 3; i++) {
        if (shape[i] == extent[i] && (shape[i] != 1 || (flat && i == 1))) continue;
        if (shape[i] != 1) return false;
        *alike |= (uint8_t)(1 << (MX_DIM_Z - i));
    }
    return *alike != 0;
}

bool mx_field_is_alike(const int64_t shape[3], const struct mx_problem *p, bool made, bool *frame,
                       uint8_t *alike) {
    const int64_t h2 = 2 * (int64_t)p->h, bare[3] = {p->nz, p->ny, p->nx},
                  framed[3] = {p->nz + h2, p->ny + 2 * mx_halo_y(p), p->nx + h2};
    const bool single = shape[0] == 1 && shape[1] == 1 && shape[2] == 1;
    uint8_t axes;
    if (memcmp(shape, bare, sizeof bare) == 0 || memcmp(shape, framed, sizeof framed) == 0) return false;
    const bool has = fits(shape, framed, p->flat, &axes) && !(single && made);
    if (!has && !fits(shape, bare, p->flat, &axes)) return false;
    return *frame = has, *alike = axes, true;
}

bool mx_field_is_profile(const struct mx_run_field *f, const struct mx_system *s) {
    const bool frame_differs = !f->frame && f->made.kind == MX_FRAME_VALUE && s->hc > 0;
    const bool rows_fit = f->alike != MX_ALIKE_X || s->text != NULL; /* mx_kernel_take_profiles */
    return f->array == MX_FIELD_OF_C && f->alike != 0 && rows_fit && !frame_differs;
}

/* ------------------------------------------------------------------ values */

void mx_field_spread(uint8_t alike, int64_t e, int64_t cells, int64_t rows, int64_t pitch, char *plane) {
    const int64_t given = (alike & MX_ALIKE_Y) != 0 ? 1 : rows;
    for (int64_t y = 0; y < given && (alike & MX_ALIKE_X) != 0; y++)
        for (int64_t x = 1; x < cells; x++) memcpy(plane + y * pitch + x * e, plane + y * pitch, (size_t)e);
    for (int64_t y = given; y < rows; y++) memcpy(plane + y * pitch, plane, (size_t)(cells * e));
}

/* A file while it is read. */
struct reading {
    const struct mx_run_field *field;
    const struct mx_problem *p;
    const struct mx_profile *profile;
    struct mx_frame frame; /* that is made, where the file has none */
    char *row;             /* one of the file */
    int64_t at;            /* which, counted over planes; -1 = none yet */
};

/* Cell i of a dimension, frame counted, in the file. */
static int64_t place(const struct reading *r, int dim, int64_t i) {
    const int64_t source = mx_profile_source(r->p, dim, i);
    if ((r->profile->alike >> dim & 1) != 0) return 0;
    return r->field->frame
               ? source
               : mx_frame_source(&r->frame, mx_extent_of(r->p, dim), mx_halo_of(r->p, dim), source);
}

static void make_row(const struct reading *r, const char *file_row, char *row) {
    const struct mx_problem *p = r->p;
    const int64_t e = mx_dtype_bytes(r->field->dtype), all = p->nx + 2 * p->h;
    if (mx_has_one_cell(r->profile)) {
        memcpy(row, file_row, (size_t)e);
        return;
    }
    if ((r->profile->alike & MX_ALIKE_X) != 0) {
        memcpy(row, file_row, (size_t)e);
        mx_field_spread(MX_ALIKE_X, e, all, 1, 0, row);
    } else if (r->field->frame) {
        memcpy(row, file_row, (size_t)(all * e));
    } else {
        mx_frame_row(&r->frame, p->nx, p->h, r->field->dtype, file_row, row);
    }
    for (int64_t x = 0; x < all; x = x + 1 == p->h ? p->nx + p->h : x + 1) {
        const int64_t from = mx_profile_source(p, MX_DIM_X, x);
        if (from != x) memcpy(row + x * e, row + from * e, (size_t)e);
    }
}

static int make_plane(struct reading *r, int64_t z, char *plane, mx_why *why) {
    const struct mx_profile_range rows = mx_profile_rows(r->p, r->profile->alike);
    const struct mx_npy *npy = &r->field->npy;
    const int64_t bytes = npy->shape[2] * mx_dtype_bytes(r->field->dtype);
    for (int64_t y = rows.first; y < rows.end; y++, plane += r->profile->row_pitch_bytes) {
        const int64_t at = place(r, MX_DIM_Z, z) * npy->shape[1] + place(r, MX_DIM_Y, y);
        const int err =
            at == r->at ? 0
                        : mx_read_all(npy->fd, r->row, (size_t)bytes, npy->data_offset_bytes + at * bytes);
        if (err < 0) return mx_fail(why, err, "%.300s cannot be read: %s", r->field->path, strerror(-err));
        r->at = at;
        make_row(r, r->row, plane);
    }
    return 0;
}

int mx_field_read_profile(const struct mx_run_field *f, const struct mx_problem *whole, mx_why *why,
                          struct mx_profile *out) {
    struct mx_profile q;
    mx_profile_lay(whole, f->dtype, f->alike, &q);
    struct reading r = {.field = f, .p = whole, .profile = &q, .frame = f->made, .at = -1};
    if (f->made.kind == MX_FRAME_INCLUDED || f->made.kind == MX_FRAME_VALUE)
        r.frame.kind = MX_FRAME_EDGE; /* one that nobody reads */
    const int64_t planes = mx_profile_planes(whole, f->alike).end;
    r.row = malloc((size_t)(f->npy.shape[2] * mx_dtype_bytes(f->dtype)));
    q.memory = aligned_alloc(64, (size_t)q.bytes);
    int err = r.row != NULL && q.memory != NULL
                  ? 0
                  : mx_fail(why, -ENOMEM, "no memory for the %lld bytes of the read-only field %s",
                            (long long)q.bytes, f->name);
    for (int64_t z = 0; z < planes && err == 0; z++)
        err = make_plane(&r, z, q.memory + z * q.plane_pitch_bytes, why);
    free(r.row);
    if (err < 0)
        free(q.memory);
    else
        *out = q;
    return err;
}
