/* field.c - whole planes between a Buffer and DRAM, in groups, double-buffered. */
#include "grid/grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_BYTES = 8 << 20 };

struct pass {
    const struct mx_layout *layout;
    mx_block *block;
    int64_t group;        /* planes */
    mx_ticket *ticket[2]; /* of either half */
};

static int pass_open(struct pass *p, const struct mx_layout *layout, mx_budget *budget, mx_why *why) {
    *p = (struct pass){.layout = layout, .group = GROUP_BYTES / layout->plane_pitch_bytes};
    if (p->group < 1) p->group = 1;
    if (p->group > layout->planes) p->group = layout->planes;
    struct mx_block_options options = {.budget = budget};
    return mx_block_create(&options, (uint64_t)(2 * p->group * layout->plane_pitch_bytes), why, &p->block);
}

static char *half(const struct pass *p, int64_t i) {
    return (char *)mx_block_data(p->block) + (i & 1) * p->group * p->layout->plane_pitch_bytes;
}

static int64_t group_planes(const struct pass *p, int64_t i) {
    int64_t left = p->layout->planes - i * p->group;
    return left < p->group ? left : p->group;
}

static int start(struct pass *p, mx_buffer *buffer, int64_t i, bool write) {
    struct mx_span span = {.offset_bytes = (uint64_t)(i * p->group * p->layout->plane_pitch_bytes),
                           .bytes = (uint64_t)(group_planes(p, i) * p->layout->plane_pitch_bytes),
                           .dram = half(p, i)};
    return (write ? mx_buffer_write : mx_buffer_read)(buffer, &span, 1, &p->ticket[i & 1]);
}

static int finish(struct pass *p, int64_t i) {
    mx_ticket *t = p->ticket[i & 1];
    p->ticket[i & 1] = NULL;
    return mx_wait(t);
}

static int pass_close(struct pass *p, int err, const char *what, mx_why *why) {
    bool said = err < 0 && why != NULL && why->text[0] != 0;
    for (int i = 0; i < 2; i++) {
        int e = finish(p, i);
        if (err == 0) err = e;
    }
    mx_block_free(p->block);
    if (err < 0 && err != -EINTR && !said) mx_fail(why, err, "%s the grid failed: %s", what, strerror(-err));
    return err;
}

int mx_field_write(mx_buffer *buffer, const struct mx_layout *layout, const struct mx_device_facts *facts,
                   mx_budget *budget, const volatile int *stop, mx_planes_fn *planes, void *context,
                   mx_why *why) {
    struct pass p;
    (void)facts;
    int err = pass_open(&p, layout, budget, why);
    if (err < 0) return err;
    for (int64_t i = 0; i * p.group < layout->planes && err == 0; i++) {
        if (stop != NULL && *stop) err = -EINTR;
        if (err == 0) err = finish(&p, i);
        if (err == 0) err = planes(context, i * p.group, group_planes(&p, i), half(&p, i));
        if (err == 0) err = start(&p, buffer, i, true);
    }
    return pass_close(&p, err, "writing", why);
}

int mx_field_read(mx_buffer *buffer, const struct mx_layout *layout, const struct mx_device_facts *facts,
                  mx_budget *budget, const volatile int *stop, mx_planes_fn *planes, void *context,
                  mx_why *why) {
    struct pass p;
    (void)facts;
    int err = pass_open(&p, layout, budget, why);
    if (err < 0) return err;
    err = start(&p, buffer, 0, false);
    for (int64_t i = 0; i * p.group < layout->planes && err == 0; i++) {
        if (stop != NULL && *stop) err = -EINTR;
        if (err == 0 && (i + 1) * p.group < layout->planes) err = start(&p, buffer, i + 1, false);
        if (err == 0) err = finish(&p, i);
        if (err == 0) err = planes(context, i * p.group, group_planes(&p, i), half(&p, i));
    }
    return pass_close(&p, err, "reading", why);
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

int mx_fill_planes(void *context, int64_t z0, int64_t n, char *dram) {
    const struct mx_fill *f = context;
    const struct mx_layout *l = f->layout;
    if (f->init == NULL) return mx_npy_read(f->npy, z0, n, dram, l, f->why);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n * l->rows; i++)
        fill_row(f, i % l->rows, z0 + i / l->rows,
                 dram + i / l->rows * l->plane_pitch_bytes + i % l->rows * l->row_pitch_bytes);
    return 0;
}
