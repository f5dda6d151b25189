/* SPDX-License-Identifier: BSD-3-Clause */
/* feed.c - rows of the state from the files or formulas that a run begins with. */
#include "run/work/fuse_private.h"

#include "core/device.h"
#include "machine/minmax.h"

#include <string.h>

enum { FILE_THREADS = 4 };

int64_t mx_fuse_row_bytes(const struct mx_fuse_field *f) {
    return f->row_cells * mx_dtype_bytes(f->field.dtype);
}

/* Rows [y, y + n) of a plane of the state are rows [fy, fy + n) of plane fz of the file, or, of a formula, of
 * the whole grid; fy -1: of the value that a frame is made of. n is 1 where rows are copies of others. */
struct rows {
    int64_t n, fy, fz;
};

static struct rows rows_at(const struct mx_run *r, const struct mx_fuse_field *f, int64_t z, int64_t y,
                           int64_t y1) {
    const struct mx_problem *p = &r->whole;
    const struct mx_frame *made = &f->field.made;
    const bool included = f->field.init != NULL || made->kind == MX_FRAME_INCLUDED;
    const bool as_they_are = included && mx_sides_fixed(&p->sides, MX_DIM_Y);
    const bool inside = y >= mx_halo_y(p) && y < p->ny + mx_halo_y(p);
    const struct mx_ends in_y = mx_ends_of(&p->sides, f->field.array, f->field.index, MX_DIM_Y),
                         in_z = mx_ends_of(&p->sides, f->field.array, f->field.index, MX_DIM_Z);
    struct rows s = {.n = 1,
                     .fy = mx_side_source(in_y.side, p->ny, mx_halo_y(p), y),
                     .fz = mx_side_source(in_z.side, p->nz, p->h, z + r->o.problem.first_plane)};
    if (as_they_are || inside) s.n = (as_they_are ? y1 : mx_min(y1, p->ny + mx_halo_y(p))) - y;
    if (included) return s;
    s.fy = mx_frame_source(made, p->ny, mx_halo_y(p), s.fy);
    s.fz = mx_frame_source(made, p->nz, p->h, s.fz);
    if (s.fz < 0) s.fy = -1;
    return s;
}

/* Of a file: no more than one transfer has. */
static struct rows piece_at(const struct mx_run *r, const struct mx_fuse_field *f, int64_t z, int64_t y,
                            int64_t y1) {
    struct rows s = rows_at(r, f, z, y, y1);
    if (f->field.init == NULL) s.n = mx_min(s.n, mx_max(MX_FUSE_PIECE_BYTES / mx_fuse_row_bytes(f), 1));
    return s;
}

static struct mx_span span_of(const struct mx_fuse_field *f, const struct rows *s) {
    const int64_t row = mx_fuse_row_bytes(f), align = f->align_bytes > 1 ? f->align_bytes : 1;
    const int64_t from = f->field.npy.data_offset_bytes + (s->fz * f->rows + s->fy) * row;
    const int64_t begin = from / align * align, end = (from + s->n * row + align - 1) / align * align;
    return (struct mx_span){.offset_bytes = (uint64_t)begin, .bytes = (uint64_t)(end - begin)};
}

/* What is read of files for these rows. */
int64_t mx_fuse_read_bytes(const struct mx_run *r, int64_t z, int64_t y0, int64_t y1) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < r->fuse.n; i++) {
        const struct mx_fuse_field *f = &r->fuse.field[i];
        struct rows s;
        for (int64_t y = y0; y < y1 && f->field.init == NULL; y += s.n) {
            s = piece_at(r, f, z, y, y1);
            if (s.fy >= 0) bytes += (int64_t)span_of(f, &s).bytes;
        }
    }
    return bytes;
}

static int read_rows(const struct mx_problem *p, const struct mx_fuse_field *f, const struct rows *s,
                     char *staging, const char **out, mx_why *why) {
    struct mx_span span = span_of(f, s);
    const int64_t from = f->field.npy.data_offset_bytes + (s->fz * f->rows + s->fy) * mx_fuse_row_bytes(f);
    mx_ticket *ticket = NULL;
    span.dram = staging;
    int err = mx_buffer_read(f->file, &span, 1, &ticket);
    if (err == 0) err = mx_wait(ticket);
    *out = staging + (from - (int64_t)span.offset_bytes);
    return err < 0 ? mx_fail(why, err, "%s %lld of %.300s cannot be read: %s", mx_plane_word(p->flat),
                             (long long)s->fz, f->field.path, strerror(-err))
                   : 0;
}

/* Rows from row y of plane z on. */
static int fill_piece(struct mx_run *r, const struct mx_fuse_field *f, const struct rows *s, int64_t y,
                      int64_t z, char *staging, char *rows, int64_t pitch, mx_why *why) {
    const struct mx_problem *p = &r->whole;
    const struct mx_plane_field one = {.dtype = f->field.dtype, .init = f->field.init};
    const char *from = NULL;
    int err = f->field.init == NULL && s->fy >= 0 ? read_rows(p, f, s, staging, &from, why) : 0;
    for (int64_t i = 0; i < s->n && err == 0; i++) {
        char *row = rows + i * pitch;
        if (f->field.init != NULL)
            mx_fill_field_row(p, &one, s->fy + i, s->fz, row);
        else
            mx_frame_row(&f->field.made, p->nx, p->h, f->field.dtype,
                         from != NULL ? from + i * mx_fuse_row_bytes(f) : NULL, row);
        mx_sides_row(&p->sides, p, f->field.array, f->field.index, y + i, z + r->o.problem.first_plane, row);
    }
    return err;
}

int mx_run_feed(void *context, int32_t thread, int64_t z, int64_t y0, int64_t y1, char *rows, int64_t pitch,
                mx_why *why) {
    struct mx_run *r = context;
    char *staging = r->fuse.staging != NULL
                        ? (char *)mx_block_data(r->fuse.staging) + (uint64_t)thread * r->fuse.piece_bytes
                        : NULL;
    int err = 0;
    for (int32_t i = 0; i < r->fuse.n && err == 0; i++) {
        const struct mx_fuse_field *f = &r->fuse.field[i];
        struct rows s;
        for (int64_t y = y0; y < y1 && err == 0; y += s.n) {
            s = piece_at(r, f, z, y, y1);
            char *at = rows + (y - y0) * pitch + f->offset_bytes;
            err = fill_piece(r, f, &s, y, z, staging, at, pitch, why);
            if (err == 0 && f->field.init == NULL)
                err = mx_run_check_fed(r, i, z, y, y + s.n, at, pitch, why);
        }
    }
    return err;
}

/* ------------------------------------------------------------------ files */

static int open_file(struct mx_run *r, struct mx_fuse_field *f) {
    struct mx_device_facts facts = {.size = sizeof facts};
    const struct mx_device_options d = mx_run_device_options(r, f->field.path);
    int err = mx_device_open_file(f->field.npy.fd, &d, &r->why, &f->device);
    if (err == 0) err = mx_buffer_open(f->device, MX_FILE_BUFFER, &r->why, &f->file);
    if (err < 0) return err;
    mx_device_facts(f->device, &facts);
    f->align_bytes = facts.offset_align_bytes;
    return 0;
}

/* Of a run that begins, or begins once more: identities, and devices that read the files. */
int mx_fuse_open_files(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    int err = 0;
    for (int32_t i = 0; i < u->n && err == 0 && !u->opened; i++) {
        struct mx_run_field *f = &u->field[i].field;
        if (f->init != NULL) continue;
        if (!r->resumed) err = mx_field_begin_in_place(f, &r->why);
        if (err == 0) err = open_file(r, &u->field[i]);
    }
    u->opened = true;
    return err;
}

int mx_fuse_open_staging(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    mx_device *device = NULL;
    for (int32_t i = 0; i < u->n; i++) {
        const struct mx_fuse_field *f = &u->field[i];
        if (f->device == NULL) continue;
        const int64_t row = mx_fuse_row_bytes(f), align = mx_max(f->align_bytes, 4096);
        const int64_t most = mx_max(MX_FUSE_PIECE_BYTES / row, 1) * row + 2 * align;
        u->piece_bytes = (uint64_t)mx_max((int64_t)u->piece_bytes, (most + 4095) / 4096 * 4096);
        device = f->device;
    }
    u->feeding = (struct mx_feeding){.rows = mx_run_feed, .context = r, .threads = FILE_THREADS};
    if (device == NULL) {
        const int32_t threads = r->report.plan.threads;
        u->feeding.threads = threads < 1 ? 1 : threads < MX_FUSE_THREADS ? threads : MX_FUSE_THREADS;
        return 0;
    }
    const struct mx_block_options o = {.budget = r->budget, .device = device};
    return mx_block_create(&o, FILE_THREADS * u->piece_bytes, &r->why, &u->staging);
}

int mx_run_fuse_unchanged(struct mx_run *r, mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < r->fuse.n && err == 0 && r->fuse.unfinished; i++) {
        struct mx_run_field *f = &r->fuse.field[i].field;
        if (f->init != NULL) continue;
        err = mx_field_unchanged(f, why);
        if (err == -ESTALE)
            mx_fail(why, err,
                    "%.300s changed while the run read it, and nothing was committed before. Start again, or "
                    "give --no-fuse, which reads the file before the first sweep",
                    f->path);
    }
    return err;
}

void mx_run_fuse_counters(const struct mx_run *r, struct mx_counters *out) {
    for (int32_t i = 0; i < r->fuse.n; i++) {
        struct mx_counters c = {.size = sizeof c};
        if (r->fuse.field[i].device == NULL) continue;
        mx_device_counters(r->fuse.field[i].device, &c);
        out->read_bytes += c.read_bytes;
        out->read_requests += c.read_requests;
        out->retries += c.retries;
        out->short_transfers += c.short_transfers;
        if (c.read_ns > out->read_ns) out->read_ns = c.read_ns;
        out->peak_in_flight += c.peak_in_flight;
    }
}
