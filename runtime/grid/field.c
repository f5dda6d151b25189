/* field.c - whole planes between a Buffer and DRAM, in groups, double-buffered. */
#include "grid/grid.h"

#include <errno.h>
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
    struct mx_plane_stream *p = calloc(1, sizeof *p);
    struct mx_block_options options = {.budget = budget};
    if (p == NULL) return mx_fail(why, -ENOMEM, "no memory");
    *p = (struct mx_plane_stream){.buffer = buffer,
                                  .layout = layout,
                                  .write = write,
                                  .group = MX_PLANE_GROUP_BYTES / layout->plane_pitch_bytes};
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
    if (layout != NULL)
        snprintf(where, sizeof where, " (plane %lld, row %lld)", (long long)(at / layout->plane_pitch_bytes),
                 (long long)(at % layout->plane_pitch_bytes / layout->row_pitch_bytes));
    return mx_fail(why, -EBADMSG,
                   "reading %s gave other data than was written: the checksum of the unit at byte %lld%s "
                   "differs; the device or its memory is faulty, go on from the last commit elsewhere",
                   what, (long long)at, where);
}

static int pass(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget,
                const volatile int *stop, mx_source_fn *use, void *context, bool write, mx_why *why) {
    struct mx_plane_stream *planes = NULL;
    char *plane;
    if (why != NULL) why->text[0] = 0;
    int err = mx_plane_stream_open(buffer, layout, budget, write, why, &planes);
    for (int64_t z = 0; z < layout->planes && err == 0; z++) {
        if (stop != NULL && *stop) err = -EINTR;
        if (err == 0 && (err = mx_plane_stream_next(planes, &plane)) == 1) err = use(context, z, plane);
    }
    err = mx_plane_stream_close(planes, err);
    if (err == -EBADMSG) return mx_field_damaged(buffer, layout, "the grid", why);
    if (err < 0 && err != -EINTR && why != NULL && why->text[0] == 0)
        mx_fail(why, err, "%s the grid failed: %s", write ? "writing" : "reading", strerror(-err));
    return err;
}

int mx_field_write(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget,
                   const volatile int *stop, mx_source_fn *source, void *context, mx_why *why) {
    return pass(buffer, layout, budget, stop, source, context, true, why);
}

int mx_field_read(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget,
                  const volatile int *stop, mx_source_fn *sink, void *context, mx_why *why) {
    return pass(buffer, layout, budget, stop, sink, context, false, why);
}

static void fill_row(const struct mx_fill *f, int64_t y, int64_t z, char *row) {
    const struct mx_problem *p = f->problem;
    int64_t n = p->nx + 2 * p->h;
    if (p->dtype == MX_F64)
        for (int64_t x = 0; x < n; x++) ((double *)row)[x] = f->init->value(p, x, y, z);
    else
        for (int64_t x = 0; x < n; x++) ((float *)row)[x] = (float)f->init->value(p, x, y, z);
    memset(row + f->layout->row_bytes, 0, (size_t)(f->layout->row_pitch_bytes - f->layout->row_bytes));
}

int mx_fill_plane(void *context, int64_t z, char *plane) {
    const struct mx_fill *f = context;
    const struct mx_layout *l = f->layout;
#pragma omp parallel for schedule(static)
    for (int64_t y = 0; y < l->rows; y++) fill_row(f, y, z, plane + y * l->row_pitch_bytes);
    return 0;
}
