/* SPDX-License-Identifier: BSD-3-Clause */
/* sample.c - a small tile in cache, on which the row functions of a system are timed. */
#include "kernel/sample.h"

#include "kernel/private.h"
#include "machine/minmax.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, PAGE = 4096 };

static int64_t whole_lines(int64_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

void mx_kernel_put(char *to, enum mx_dtype dtype, double real, int whole) {
    mx_cell_store(dtype, to, 0, mx_dtype_is_real(dtype) ? real : whole);
}

/* Small integers are mostly 0, as in masks. */
static void put(char *to, enum mx_dtype dtype, uint64_t i, const double range[2]) {
    const double unit = (double)(i * 2654435761u % 65536) / 65536;
    mx_kernel_put(to, dtype, range[0] + (range[1] - range[0]) * unit, i % 16 == 0);
}

/* Without memory. */
static struct mx_sample lay_out(const struct mx_system *s, const int64_t n[3]) {
    const int64_t cells = n[0] + 2 * s->h;
    struct mx_sample t = {.n = {n[0], n[1], n[2]},
                          .grid = {n[0], n[1], n[2]},
                          .h = s->h,
                          .hy = s->flat ? 0 : s->h,
                          .hc = s->hc};
    t.rows = n[1] + 2 * t.hy, t.planes = n[2] + 2 * s->h;
    for (int array = 0; array < 2; array++) {
        int64_t end = 0;
        for (int32_t f = 0; f < s->n_field[array]; f++) {
            t.offset[array][f] = end;
            end += whole_lines(cells * mx_dtype_bytes(s->field[array][f].dtype));
        }
        t.row_pitch = mx_max(t.row_pitch, end);
    }
    for (int32_t i = 0; i < s->n_fixed; i++)
        t.fixed_pitch[i] = whole_lines(cells * mx_dtype_bytes(s->fixed[i].dtype));
    return t;
}

int64_t mx_sample_bytes(const struct mx_system *s, const int64_t n[3]) {
    const struct mx_sample t = lay_out(s, n);
    int64_t row = 2 * t.row_pitch;
    for (int32_t i = 0; i < s->n_fixed; i++) row += t.fixed_pitch[i];
    return row * t.rows * t.planes;
}

static void fill(const struct mx_sample *t, char *from, int64_t pitch, enum mx_dtype dtype, uint64_t seed,
                 const double range[2]) {
    const int64_t e = mx_dtype_bytes(dtype), cells = t->n[0] + 2 * t->h;
    for (int64_t row = 0; row < t->rows * t->planes; row++)
        for (int64_t x = 0; x < cells; x++)
            put(from + row * pitch + x * e, dtype, (uint64_t)(row * 31 + x) + seed, range);
}

void mx_sample_fill(const struct mx_sample *t, const struct mx_system *s, const double range[2]) {
    for (int array = 0; array < 2; array++)
        for (int32_t f = 0; f < s->n_field[array]; f++)
            fill(t, t->array[array] + t->offset[array][f], t->row_pitch, s->field[array][f].dtype,
                 (uint64_t)(f * 7 + array), range);
    for (int32_t i = 0; i < s->n_fixed; i++)
        fill(t, t->fixed[i], t->fixed_pitch[i], s->fixed[i].dtype, (uint64_t)(i * 11), range);
}

int64_t mx_sample_array_bytes(const struct mx_sample *t) { return t->row_pitch * t->rows * t->planes; }

static char *cleared(int64_t bytes) {
    const size_t whole = (size_t)((bytes + PAGE - 1) / PAGE * PAGE);
    char *p = aligned_alloc(PAGE, whole);
    return p != NULL ? memset(p, 0, whole) : NULL;
}

int mx_sample_make(const struct mx_system *s, const int64_t n[3], struct mx_sample *out) {
    static const double harmless[2] = {0.5, 1};
    struct mx_sample t = lay_out(s, n);
    bool whole = true;
    for (int array = 0; array < 2; array++)
        whole &= (t.array[array] = cleared(mx_sample_array_bytes(&t))) != NULL;
    for (int32_t i = 0; i < s->n_fixed; i++)
        whole &= (t.fixed[i] = cleared(t.fixed_pitch[i] * t.rows * t.planes)) != NULL;
    if (!whole) {
        mx_sample_free(&t);
        return -ENOMEM;
    }
    mx_sample_fill(&t, s, harmless);
    *out = t;
    return 0;
}

void mx_sample_free(struct mx_sample *t) {
    free(t->array[0]), free(t->array[1]);
    for (int32_t i = 0; i < MX_MAX_FIXED; i++) free(t->fixed[i]);
    *t = (struct mx_sample){.h = 0};
}

struct call {
    struct mx_row row;
    void *out[MX_MAX_FIELDS * MX_MAX_DEEP];
    const void *in[MX_MAX_FIELDS * (2 * MX_MAX_HALO + MX_MAX_DEEP)];
    const void *fixed[MX_MAX_FIXED * (2 * MX_MAX_HALO + MX_MAX_DEEP)];
};

/* Rows from y on of `deep` planes from z on, frame counted. */
static void point(const struct mx_sample *t, const struct mx_system *s, int read, int64_t y, int64_t z,
                  int64_t deep, struct call *c) {
    const int64_t planes = 2 * t->h + deep, fixed_planes = 2 * t->hc + deep;
    for (int32_t f = 0; f < s->n_field[1 - read]; f++)
        for (int64_t d = 0; d < deep; d++)
            c->out[f * deep + d] =
                t->array[1 - read] + ((z + d) * t->rows + y) * t->row_pitch + t->offset[1 - read][f];
    for (int64_t d = 0; d < planes; d++)
        for (int32_t f = 0; f < s->n_field[read]; f++)
            c->in[f * planes + d] =
                t->array[read] + ((z + d - t->h) * t->rows + y) * t->row_pitch + t->offset[read][f];
    for (int64_t d = 0; d < fixed_planes; d++)
        for (int32_t i = 0; i < s->n_fixed; i++)
            c->fixed[i * fixed_planes + d] =
                t->fixed[i] + ((z + d - t->hc) * t->rows + y) * t->fixed_pitch[i];
}

void mx_sample_level(const struct mx_sample *t, const struct mx_system *s, int level, int64_t rows) {
    struct call c;
    c.row = (struct mx_row){.out = c.out,
                            .in = c.in,
                            .fixed = c.fixed,
                            .row_pitch = t->row_pitch,
                            .fixed_pitch = t->fixed_pitch,
                            .param = s->param,
                            .x0 = t->h,
                            .x1 = t->n[0] + t->h,
                            .nx = t->grid[0],
                            .ny = t->grid[1],
                            .nz = t->grid[2]};
    for (int64_t z = 0, deep; z < t->n[2]; z += deep) {
        deep = mx_planes_of_call(s, t->n[2] - z);
        for (int64_t y = 0; y < t->n[1]; y += c.row.rows) {
            c.row.rows = mx_min(rows, t->n[1] - y);
            c.row.y = y, c.row.z = z;
            point(t, s, level & 1, y + t->hy, z + t->h, deep, &c);
            mx_planes_of(s, level, deep)(&c.row);
        }
    }
}
