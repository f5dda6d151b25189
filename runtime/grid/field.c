/* SPDX-License-Identifier: BSD-3-Clause */
/* field.c - whole planes between a Buffer and DRAM, in groups, double-buffered. */
#include "grid/grid.h"
#include "machine/machine.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mx_plane_stream {
    mx_buffer *buffer;
    const struct mx_layout *layout;
    mx_block *block;
    mx_ticket *ticket[2]; /* of either half of the block */
    int64_t group;        /* planes of a half */
    int64_t z;            /* plane that next hands out */
    bool write;
};

static char *half(const struct mx_plane_stream *p, int64_t i) {
    return (char *)mx_block_data(p->block) + (i & 1) * p->group * p->layout->plane_pitch_bytes;
}

/* Starts the transfer of planes [i*group, z1). */
static int start(struct mx_plane_stream *p, int64_t i, int64_t z1) {
    int64_t z0 = i * p->group, pitch = p->layout->plane_pitch_bytes;
    if (z1 > p->layout->planes) z1 = p->layout->planes;
    if (z0 >= z1) return 0;
    struct mx_span span = {(uint64_t)(z0 * pitch), (uint64_t)((z1 - z0) * pitch), half(p, i)};
    return (p->write ? mx_buffer_write : mx_buffer_read)(p->buffer, &span, 1, &p->ticket[i & 1]);
}

static int finish(struct mx_plane_stream *p, int64_t i) {
    mx_ticket *t = p->ticket[i & 1];
    p->ticket[i & 1] = NULL;
    return mx_wait(t);
}

int mx_plane_stream_open(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget, bool write,
                         mx_why *why, struct mx_plane_stream **out) {
    return mx_plane_stream_open_small(buffer, layout, budget, MX_PLANE_GROUP_BYTES, write, why, out);
}

int mx_plane_stream_open_small(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget,
                               int64_t half_bytes, bool write, mx_why *why, struct mx_plane_stream **out) {
    struct mx_plane_stream *p = calloc(1, sizeof *p);
    struct mx_block_options options = {.budget = budget};
    if (p == NULL) return mx_fail(why, -ENOMEM, "no memory");
    *p = (struct mx_plane_stream){
        .buffer = buffer, .layout = layout, .write = write, .group = half_bytes / layout->plane_pitch_bytes};
    if (p->group > (layout->planes + 1) / 2) p->group = (layout->planes + 1) / 2;
    if (p->group < 1) p->group = 1;
    int err = mx_block_create(&options, (uint64_t)(2 * p->group * layout->plane_pitch_bytes), why, &p->block);
    if (err == 0 && !write) err = start(p, 0, p->group);
    if (err < 0) return mx_plane_stream_close(p, err);
    *out = p;
    return 0;
}

int mx_plane_stream_next(struct mx_plane_stream *p, char **plane) {
    int64_t i = p->z / p->group, within = p->z % p->group;
    int err = 0;
    if (p->z == p->layout->planes) return 0;
    if (within == 0 && p->write) {
        if (i > 0) err = start(p, i - 1, i * p->group);
        if (err == 0) err = finish(p, i);
    } else if (within == 0) {
        err = finish(p, i);
        if (err == 0) err = start(p, i + 1, (i + 2) * p->group);
    }
    if (err < 0) return err;
    *plane = half(p, i) + within * p->layout->plane_pitch_bytes;
    p->z++;
    return 1;
}

int mx_plane_stream_close(struct mx_plane_stream *p, int err) {
    if (p == NULL) return err;
    if (p->write && err == 0 && p->z > 0) err = start(p, (p->z - 1) / p->group, p->z);
    for (int i = 0; i < 2; i++) {
        int e = finish(p, i);
        if (err == 0) err = e;
    }
    mx_block_free(p->block);
    free(p);
    return err;
}

int mx_field_damaged(const mx_buffer *buffer, const struct mx_layout *layout, const char *what, mx_why *why) {
    const int64_t at = mx_buffer_damage(buffer);
    char where[80] = "";
    if (layout != NULL && layout->rows == 1) /* of two dimensions */
        snprintf(where, sizeof where, " (%s %lld)", mx_plane_word(true),
                 (long long)(at / layout->plane_pitch_bytes));
    else if (layout != NULL)
        snprintf(where, sizeof where, " (plane %lld, row %lld)", (long long)(at / layout->plane_pitch_bytes),
                 (long long)(at % layout->plane_pitch_bytes / layout->row_pitch_bytes));
    return mx_fail(
        why, -EBADMSG,
        "reading %s gave other data than was written: the hash of the unit at byte %lld%s differs. The "
        "device or its memory is faulty: resume from the last commit on other hardware",
        what, (long long)at, where);
}

static int pass(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget, const atomic_int *stop,
                mx_source_fn *use, void *context, bool write, mx_why *why) {
    struct mx_plane_stream *planes = NULL;
    char *plane;
    if (why != NULL) why->text[0] = 0;
    int err = mx_plane_stream_open(buffer, layout, budget, write, why, &planes);
    for (int64_t z = 0; z < layout->planes && err == 0; z++) {
        if (stop != NULL && *stop) err = -EINTR;
        if (err == 0 && (err = mx_plane_stream_next(planes, &plane)) == 1) err = use(context, z, plane);
    }
    err = mx_plane_stream_close(planes, err);
    /* Else what is written here was read elsewhere, and `use` has said where. */
    if (err == -EBADMSG && mx_buffer_damage(buffer) >= 0)
        return mx_field_damaged(buffer, layout, "the grid", why);
    if (err < 0 && err != -EINTR && why != NULL && why->text[0] == 0)
        mx_fail(why, err, "%s the grid failed: %s", write ? "writing" : "reading", strerror(-err));
    return err;
}

int mx_field_write(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget,
                   const atomic_int *stop, mx_source_fn *source, void *context, mx_why *why) {
    return pass(buffer, layout, budget, stop, source, context, true, why);
}

int mx_field_read(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget,
                  const atomic_int *stop, mx_source_fn *sink, void *context, mx_why *why) {
    return pass(buffer, layout, budget, stop, sink, context, false, why);
}

/* Patterns have values from 0 to a few units; integers get the nearest. */
static void put_cell(enum mx_dtype dtype, char *row, int64_t x, double value) {
    mx_cell_store(dtype, row, x, mx_dtype_is_real(dtype) ? value : round(value));
}

void mx_fill_field_row(const struct mx_problem *p, const struct mx_plane_field *field, int64_t y, int64_t z,
                       char *row) {
    for (int64_t x = 0; x < p->nx + 2 * p->h; x++)
        put_cell(field->dtype, row, x, field->init->value(p, x, y, z));
}

/* What no cell stands on, so that a Buffer's bytes are a matter of its grid alone. */
static void clear_padding(const struct mx_fill *f, const struct mx_plane_field *field, int32_t n, char *row) {
    const int64_t cells = f->problem->nx + 2 * f->problem->h;
    for (int32_t i = 0; i < n; i++) {
        const int64_t end = field[i].offset_bytes + cells * mx_dtype_bytes(field[i].dtype);
        const int64_t next = i + 1 < n ? field[i + 1].offset_bytes : f->layout->row_pitch_bytes;
        memset(row + end, 0, (size_t)(next - end));
    }
}

/* Planes of few cells are not worth waking other threads for. */
enum { SHARED_CELLS = 16384 };

void mx_fill_field_plane(const struct mx_problem *p, const struct mx_layout *l,
                         const struct mx_plane_field *field, int32_t threads, int64_t z, char *plane) {
    const bool shared = threads > 1 && p->nx * l->rows > SHARED_CELLS;
#pragma omp parallel for schedule(static) num_threads(mx_loop_threads(shared ? threads : 1)) if (shared)
    for (int64_t y = 0; y < l->rows; y++) mx_fill_field_row(p, field, y, z, plane + y * l->row_pitch_bytes);
}

int mx_fill_plane(void *context, int64_t z, char *plane) {
    const struct mx_fill *f = context;
    const struct mx_layout *l = f->layout;
    const struct mx_plane_field one = {.dtype = f->problem->dtype, .init = f->init, .npy = f->npy};
    const struct mx_plane_field *field = f->field != NULL ? f->field : &one;
    const int32_t n = f->field != NULL ? f->n_fields : 1;
    int err = 0;
    for (int32_t i = 0; i < n && err == 0; i++) {
        char *at = plane + field[i].offset_bytes;
        if (field[i].init == NULL) {
            err = mx_npy_read(field[i].npy, z, 1, at, l, f->why);
            continue;
        }
        mx_fill_field_plane(f->problem, l, &field[i], f->threads, z, at);
    }
    if (f->field != NULL || f->init != NULL)
        for (int64_t y = 0; y < l->rows; y++) clear_padding(f, field, n, plane + y * l->row_pitch_bytes);
    return err;
}
