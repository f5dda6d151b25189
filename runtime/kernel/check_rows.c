/* SPDX-License-Identifier: BSD-3-Clause */
/* check_rows.c - the rows that a kernel is tried out on: their values, where they lie, and the calls. */
#include "kernel/check.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>

/* ---- values */

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

const double mx_check_ranges[ROUNDS][2] = {{0.25, 1.75}, {-2, 2}, {-1000, 1000}};

/* Integers are small, mostly 0 and 1, as in masks; floating-point numbers are within the round's range. */
static void put(char *to, enum mx_dtype dtype, uint64_t random, int round) {
    static const int small[8] = {0, 0, 0, 1, 1, 2, 3, -1};
    const int whole = small[random % 8] >= 0 ? small[random % 8] : (int)(random >> 40 & 127);
    const double unit = (double)(random >> 11) * 0x1p-53;
    mx_kernel_put(to, dtype,
                  mx_check_ranges[round][0] + (mx_check_ranges[round][1] - mx_check_ranges[round][0]) * unit,
                  whole);
}

/* The same values wherever a block lies. */
static void fill_block(const struct check *c, const struct block *b, char *image, uint64_t seed) {
    const int64_t e = mx_dtype_bytes(b->dtype), h = check_radius(c);
    for (int64_t row = -h - BESIDE; row < c->rows + h + BESIDE; row++)
        for (int64_t x = -SIDE; x < c->cells + 2 * h + SIDE; x++) {
            const uint64_t key =
                (((uint64_t)b->kind * 64 + (uint64_t)b->field) * 64 + (uint64_t)(b->dz + 32)) * 4096 * 4096 +
                (uint64_t)(row + 64) * 4096 + (uint64_t)(x + 64);
            put(image + b->at + row * b->pitch + x * e, b->dtype, mix(key + mix(seed)), c->round);
        }
}

void mx_check_fill(const struct check *c, struct image *m) {
    const uint64_t seed = (uint64_t)c->round * 16 + (uint64_t)c->level;
    memset(m->clean, 0, (size_t)m->bytes);
    memset(m->poison[0], 0xff, (size_t)m->bytes); /* NaN; -1; the largest of unsigned ones */
    memset(m->poison[1], 0x41, (size_t)m->bytes);
    for (int32_t i = 0; i < m->n_blocks; i++) {
        fill_block(c, &m->blocks[i], m->clean, seed + 1);
        fill_block(c, &m->blocks[i], m->poison[1], seed + 1000);
    }
}

/* ---- the image */

/* `spread` moves every field by another number of cells and makes rows longer by some. */
static void place_block(const struct check *c, struct image *m, struct block b, int spread) {
    const int64_t e = mx_dtype_bytes(b.dtype), h = check_radius(c), cells = c->cells + 2 * h + 2 * SIDE;
    const int64_t shift = spread * (5 * b.field + 3 * (int)b.kind + 1) % 16;
    b.pitch =
        b.kind == FIXED ? (cells + spread * (b.field + 1)) * e : (cells * 8 + 63) / 64 * 64 + spread * 64;
    b.reach_y = c->system->flat ? 0 : b.reach;
    b.from = m->bytes;
    b.bytes = (b.pitch * (c->rows + 2 * (h + BESIDE)) + 16 * 8 + 63) / 64 * 64;
    b.at = b.from + (h + BESIDE) * b.pitch + (SIDE + shift) * e;
    m->bytes += b.bytes;
    if (b.kind == FIXED) m->fixed_pitch[b.field] = b.pitch;
    m->blocks[m->n_blocks++] = b;
}

static void place_blocks(const struct check *c, struct image *m, int spread) {
    const struct mx_system *s = c->system;
    for (int32_t f = 0; f < m->n_in; f++)
        for (int32_t dz = -s->h; dz <= s->h; dz++)
            place_block(c, m,
                        (struct block){.kind = READ,
                                       .field = f,
                                       .dz = dz,
                                       .reach = s->h,
                                       .dtype = s->field[check_read(c)][f].dtype},
                        spread);
    for (int32_t f = 0; f < s->n_fixed; f++)
        for (int32_t dz = -s->hc; dz <= s->hc; dz++)
            place_block(c, m,
                        (struct block){
                            .kind = FIXED, .field = f, .dz = dz, .reach = s->hc, .dtype = s->fixed[f].dtype},
                        spread);
    for (int32_t f = 0; f < m->n_out; f++) {
        const enum mx_dtype dtype = c->reduce != NULL ? MX_F64 : s->field[1 - check_read(c)][f].dtype;
        place_block(c, m, (struct block){.kind = WRITTEN, .field = f, .dtype = dtype}, spread);
    }
    place_block(c, m, (struct block){.kind = BEYOND, .dtype = MX_F64}, spread);
}

void mx_check_image_free(struct image *m) {
    free(m->blocks), free(m->work), free(m->clean), free(m->in), free(m->fixed), free(m->out);
    for (int i = 0; i < POISONS; i++) free(m->poison[i]);
    *m = (struct image){0};
}

static char *image_memory(int64_t bytes) { return aligned_alloc(4096, ((size_t)bytes + 4095) / 4096 * 4096); }

int mx_check_image_make(const struct check *c, int spread, struct image *m) {
    const struct mx_system *s = c->system;
    *m = (struct image){.n_in = s->n_field[check_read(c)],
                        .n_out = c->reduce != NULL ? 1 : s->n_field[1 - check_read(c)]};
    const size_t in = (size_t)m->n_in * (size_t)(2 * s->h + 1),
                 fixed = (size_t)s->n_fixed * (size_t)(2 * s->hc + 1), out = (size_t)m->n_out;
    m->blocks = calloc(in + fixed + out + 1, sizeof *m->blocks);
    m->in = calloc(in + 2 * AROUND, sizeof *m->in);
    m->fixed = calloc(fixed + 2 * AROUND, sizeof *m->fixed);
    m->out = calloc(out, sizeof *m->out);
    if (m->blocks != NULL && m->in != NULL && m->fixed != NULL && m->out != NULL) {
        place_blocks(c, m, spread);
        m->work = image_memory(m->bytes), m->clean = image_memory(m->bytes);
        for (int i = 0; i < POISONS; i++) m->poison[i] = image_memory(m->bytes);
    }
    if (m->work != NULL && m->clean != NULL && m->poison[0] != NULL && m->poison[1] != NULL) return 0;
    mx_check_image_free(m);
    return mx_fail(&c->report->why, -ENOMEM, "no memory to try out the kernel \"%s\"", s->name);
}

/* ---- calls */

void mx_check_call(const struct check *c, struct image *m, int64_t row, int64_t rows, int64_t x0,
                   int64_t x1) {
    const struct mx_system *s = c->system;
    for (; c->reduce != NULL && rows > 1; rows--) mx_check_call(c, m, row++, 1, x0, x1); /* one row each */
    const struct block *beyond = &m->blocks[m->n_blocks - 1];
    const int32_t n_in = m->n_in * (2 * s->h + 1), n_fixed = s->n_fixed * (2 * s->hc + 1);
    const int64_t first = c->place.x; /* pointers are to cell 0 of rows that begin before the patch */
    /* Whoever goes beyond the planes of a field does so in cells of the field next to them. */
    for (int32_t i = 0; i < n_in + 2 * AROUND; i++) {
        const struct block *next = &m->blocks[i < AROUND ? 0 : n_in - 1];
        m->in[i] = m->work + beyond->at + row * beyond->pitch - first * mx_dtype_bytes(next->dtype);
    }
    for (int32_t i = 0; i < n_fixed + 2 * AROUND; i++) {
        const struct block *next = &m->blocks[n_fixed == 0 ? 0 : i < AROUND ? n_in : n_in + n_fixed - 1];
        m->fixed[i] = m->work + beyond->at + row * beyond->pitch - first * mx_dtype_bytes(next->dtype);
    }
    for (int32_t i = 0; i + 1 < m->n_blocks; i++) {
        const struct block *b = &m->blocks[i];
        char *at = m->work + b->at + row * b->pitch - first * mx_dtype_bytes(b->dtype);
        if (i < n_in)
            m->in[AROUND + i] = at;
        else if (i < n_in + n_fixed)
            m->fixed[AROUND + i - n_in] = at;
        else
            m->out[b->field] = at;
    }
    double param[MX_MAX_PARAMS];
    const struct mx_row r = {.out = c->reduce != NULL ? NULL : m->out,
                             .in = m->in + AROUND,
                             .fixed = m->fixed + AROUND,
                             .row_pitch = m->blocks[0].pitch,
                             .fixed_pitch = m->fixed_pitch,
                             .rows = rows,
                             .param = mx_params_at(s, c->place.t * mx_system_levels(s) + c->level, param),
                             .x0 = first + x0,
                             .x1 = first + x1,
                             .y = c->place.y + row,
                             .z = c->place.z,
                             .t = c->place.t,
                             .nx = c->grid.n[0],
                             .ny = c->grid.n[1],
                             .nz = c->grid.n[2]};
    if (c->reduce != NULL)
        c->reduce->value(&r, (double *)m->out[0] + first + x0);
    else
        mx_row_of(s, c->level)(&r);
}

void mx_check_call_all(const struct check *c, struct image *m) {
    mx_check_call(c, m, 0, c->rows, check_radius(c), c->cells + check_radius(c));
}
