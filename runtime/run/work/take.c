/* SPDX-License-Identifier: BSD-3-Clause */
/* take.c - rows of the last sweep, to the checksum and to the files of the result. */
#include "run/work/fuse_private.h"

#include "machine/minmax.h"
#include "run/work/digest.h"

#include <string.h>

enum { OUTPUT_BYTES = 8 << 20, LEAST_PIECE_BYTES = 64 << 10 };

int64_t mx_fuse_places(const struct mx_run *r, int64_t z) { return mx_run_frame_shift(r, z) != 0 ? 2 : 1; }

/* The row of the output that row y of plane z is; -1: it is none. */
static int64_t row_in_file(const struct mx_run *r, int64_t z, int64_t y) {
    const struct mx_problem *p = &r->o.problem;
    const int64_t all = z + p->first_plane;
    const bool inside = z >= p->h && z < p->nz + p->h && y >= mx_halo_y(p) && y < p->ny + mx_halo_y(p);
    if (r->o.bare_output) return inside ? (all - p->h) * p->ny + y - mx_halo_y(p) : -1;
    return z >= mx_fuse_first_own(p) && z < mx_fuse_end_own(p) ? all * (p->ny + 2 * mx_halo_y(p)) + y : -1;
}

static void put_at(struct mx_run *r, int64_t number, const char *row) {
    const struct mx_problem *p = &r->o.problem;
    for (int32_t i = 0; i < r->fuse.n; i++) {
        const struct mx_fuse_field *f = &r->fuse.field[i];
        const int64_t e = mx_dtype_bytes(f->field.dtype);
        const int64_t bytes = (p->nx + (r->o.bare_output ? 0 : 2 * (int64_t)p->h)) * e;
        if (f->writer == NULL) continue;
        mx_writer_put(f->writer, (uint64_t)(f->npy->data_offset_bytes + number * bytes),
                      row + f->offset_bytes + (r->o.bare_output ? p->h * e : 0), (uint64_t)bytes);
    }
}

void mx_fuse_put_row(struct mx_run *r, int64_t z, int64_t y, const char *row) {
    const int64_t number = row_in_file(r, z, y), shift = mx_run_frame_shift(r, z);
    if (number < 0) return;
    put_at(r, number, row);
    if (shift != 0) put_at(r, number + shift * (r->o.problem.ny + 2 * mx_halo_y(&r->o.problem)), row);
}

static void hash_row(const struct mx_run *r, int64_t z, const char *row) {
    const struct mx_problem *p = &r->o.problem;
    for (int32_t i = 0; i < r->fuse.n; i++) {
        const struct mx_fuse_field *f = &r->fuse.field[i];
        const int64_t e = mx_dtype_bytes(f->field.dtype);
        mx_digest_row(&r->fuse.digest[z - p->h], row + f->offset_bytes + p->h * e, (size_t)(p->nx * e));
    }
}

static const char *row_of(const struct mx_taken_box *box, int64_t y, int64_t z) {
    const struct mx_view *v = &box->view;
    return v->base[box->array] + (z + v->z_offset) % v->slots[box->array] * v->plane_pitch_bytes +
           (y + v->y_offset) * v->row_pitch_bytes;
}

int mx_fuse_take_box(void *context, const struct mx_taken_box *box, mx_why *why) {
    struct mx_run *r = context;
    const struct mx_problem *p = &r->o.problem;
    const struct mx_region g = box->region;
    const bool copy = box->buffer_y != 0 || box->buffer_z != 0;
    (void)why;
    for (int64_t z = g.z0; z < g.z1; z++)
        for (int64_t y = g.y0; y < g.y1; y++) {
            const char *row = row_of(box, y, z);
            const bool inside =
                z >= p->h && z < p->nz + p->h && y >= mx_halo_y(p) && y < p->ny + mx_halo_y(p);
            if (r->fuse.checksum && inside && !copy) hash_row(r, z, row);
            if (r->fuse.output && !(copy && r->o.bare_output))
                mx_fuse_put_row(r, z + box->buffer_z, y + box->buffer_y, row);
        }
    return 0;
}

int mx_fuse_take_whole(void *context, int64_t step, mx_why *why) {
    struct mx_run *r = context;
    (void)step, (void)why;
    r->fuse.whole = true;
    return 0;
}

/* The header was written when the file was opened; a file that bypasses the page cache is written anew from
 * its first byte on. */
static int put_head(struct mx_run *r, const struct mx_fuse_field *f) {
    char head[MX_FUSE_HEAD_BYTES];
    const int err = mx_read_all(f->output->fd, head, sizeof head, 0);
    if (err < 0)
        return mx_fail(&r->why, err, "the head of %.300s cannot be read: %s", f->output->path,
                       strerror(-err));
    mx_writer_put(f->writer, 0, head, sizeof head);
    return 0;
}

int mx_fuse_open_writers(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    int32_t n = 0;
    for (int32_t i = 0; i < u->n; i++) n += u->field[i].output != NULL;
    const int64_t units = OUTPUT_BYTES / MX_WRITER_PIECES / (n > 0 ? n : 1) / LEAST_PIECE_BYTES;
    int err = 0;
    for (int32_t i = 0; i < u->n && err == 0; i++) {
        struct mx_fuse_field *f = &u->field[i];
        if (f->output == NULL) continue;
        const bool alone = u->in_order && !f->output->direct && mx_run_alone(r);
        err = mx_writer_open(f->output->fd, alone, (uint64_t)mx_max(units, 1) * LEAST_PIECE_BYTES, r->budget,
                             &r->why, &f->writer);
        if (err == 0 && mx_run_leads(r)) err = put_head(r, f);
    }
    return err;
}
