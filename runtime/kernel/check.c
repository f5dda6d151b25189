/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - a kernel is run over a few short rows whose surroundings are poisoned.
 *
 * The memory of a call is an image: one block for every field and plane that the kernel may see, with room
 * around its rows, one more block where all plane pointers beyond the radius lead, and a block for every
 * field that is written. Of each image there are three: `work`, in which the kernel runs, `clean`, with
 * values, and `poison`. One call over everything gives the results that all other calls must repeat to the
 * bit (NaN equals NaN): twice, in pieces of rows and of x, over other old values, at other addresses, and
 * cell by cell, with poison wherever the cell may not look.
 */
#include "kernel/private.h"
#include "machine/minmax.h"

#include <errno.h>
#include <link.h>
#include <math.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_CELLS = 67, /* in x: several vectors and a rest, of any vector length */
    MOST_ROWS = 3,
    SIDE = 16,  /* cells beside a row and its frame */
    BESIDE = 2, /* rows beside the patch and its frame */
    AROUND = 4, /* plane pointers before the first and after the last */
    ROUNDS = 3,
    POISONS = 2,
    CPU_SECONDS = 20,
    MOST_COPIED = 4 << 20 /* cells that one round of poison copies at most */
};

enum kind { READ, FIXED, WRITTEN, BEYOND };

struct block {
    enum kind kind;
    int32_t field, dz, reach;
    enum mx_dtype dtype;
    int64_t pitch, from, bytes; /* in the image */
    int64_t at;                 /* of cell 0 of the patch's first row, frame counted */
};

struct image {
    int32_t n_blocks, n_in, n_out;
    struct block *blocks;
    int64_t bytes;
    char *work, *clean, *poison[POISONS];
    const void **in, **fixed; /* AROUND entries more on both sides */
    void **out;
    int64_t fixed_pitch[MX_MAX_FIXED + 1];
};

/* Where in the grid the patch is. */
struct place {
    int64_t x, y, z, t;
};

struct check {
    const struct mx_system *system;
    struct mx_kernel_grid grid;
    int64_t cells, rows; /* of the patch: no more than the grid has */
    struct mx_isolated *report;
    int level;                      /* 0: B from A, 1: A from B */
    const struct mx_reduce *reduce; /* not the level itself but what this gives for its cells; or NULL */
    int round;
    struct place place;
    struct image image;
    char *expected; /* [n_out][rows][cells] of 8 bytes */
    bool finite[2][MX_MAX_FIELDS];
};

struct cell {
    int32_t field;
    int64_t row, x; /* x: frame counted */
};

static int32_t radius(const struct check *c) { return c->system->h; }

static const char *name_of(const struct check *c, const struct block *b) {
    const struct mx_system *s = c->system;
    if (b->kind == FIXED) return s->fixed[b->field].name;
    if (b->kind == WRITTEN && c->reduce != NULL) return c->reduce->name;
    return s->field[b->kind == READ ? c->level : 1 - c->level][b->field].name;
}

/* ---- values */

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static const double ranges[ROUNDS][2] = {{0.25, 1.75}, {-2, 2}, {-1000, 1000}};

/* Small whole numbers, most of them 0 and 1, as masks have them; reals within the round's range. */
static void put(char *to, enum mx_dtype dtype, uint64_t random, int round) {
    static const int small[8] = {0, 0, 0, 1, 1, 2, 3, -1};
    const int whole = small[random % 8] >= 0 ? small[random % 8] : (int)(random >> 40 & 127);
    const double unit = (double)(random >> 11) * 0x1p-53;
    const double real = ranges[round][0] + (ranges[round][1] - ranges[round][0]) * unit;
    const float single = (float)real;
    const uint16_t two = (uint16_t)whole;
    if (dtype == MX_F64)
        memcpy(to, &real, sizeof real);
    else if (dtype == MX_F32)
        memcpy(to, &single, sizeof single);
    else if (dtype == MX_U8)
        *to = (char)whole;
    else
        memcpy(to, &two, sizeof two);
}

/* The same values wherever a block lies. */
static void fill_block(const struct check *c, const struct block *b, char *image, uint64_t seed) {
    const int64_t e = mx_dtype_bytes(b->dtype), h = radius(c);
    for (int64_t row = -h - BESIDE; row < c->rows + h + BESIDE; row++)
        for (int64_t x = -SIDE; x < c->cells + 2 * h + SIDE; x++) {
            const uint64_t key =
                (((uint64_t)b->kind * 64 + (uint64_t)b->field) * 64 + (uint64_t)(b->dz + 32)) * 4096 * 4096 +
                (uint64_t)(row + 64) * 4096 + (uint64_t)(x + 64);
            put(image + b->at + row * b->pitch + x * e, b->dtype, mix(key + mix(seed)), c->round);
        }
}

static void fill(const struct check *c, struct image *m) {
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
    const int64_t e = mx_dtype_bytes(b.dtype), h = radius(c), cells = c->cells + 2 * h + 2 * SIDE;
    const int64_t shift = spread * (5 * b.field + 3 * (int)b.kind + 1) % 16;
    b.pitch =
        b.kind == FIXED ? (cells + spread * (b.field + 1)) * e : (cells * 8 + 63) / 64 * 64 + spread * 64;
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
            place_block(c, m, (struct block){READ, f, dz, s->h, s->field[c->level][f].dtype, 0, 0, 0, 0},
                        spread);
    for (int32_t f = 0; f < s->n_fixed; f++)
        for (int32_t dz = -s->hc; dz <= s->hc; dz++)
            place_block(c, m, (struct block){FIXED, f, dz, s->hc, s->fixed[f].dtype, 0, 0, 0, 0}, spread);
    for (int32_t f = 0; f < m->n_out; f++) {
        const enum mx_dtype dtype = c->reduce != NULL ? MX_F64 : s->field[1 - c->level][f].dtype;
        place_block(c, m, (struct block){WRITTEN, f, 0, 0, dtype, 0, 0, 0, 0}, spread);
    }
    place_block(c, m, (struct block){BEYOND, 0, 0, 0, MX_F64, 0, 0, 0, 0}, spread);
}

static void image_free(struct image *m) {
    free(m->blocks), free(m->work), free(m->clean), free(m->in), free(m->fixed), free(m->out);
    for (int i = 0; i < POISONS; i++) free(m->poison[i]);
    *m = (struct image){0};
}

static char *image_memory(int64_t bytes) { return aligned_alloc(4096, ((size_t)bytes + 4095) / 4096 * 4096); }

static int image_make(const struct check *c, int spread, struct image *m) {
    const struct mx_system *s = c->system;
    *m = (struct image){.n_in = s->n_field[c->level],
                        .n_out = c->reduce != NULL ? 1 : s->n_field[1 - c->level]};
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
    image_free(m);
    return mx_fail(&c->report->why, -ENOMEM, "no memory to try out the kernel \"%s\"", s->name);
}

static void work_from(struct image *m, const char *from) { memcpy(m->work, from, (size_t)m->bytes); }

/* ---- calls */

static void call(const struct check *c, struct image *m, int64_t row, int64_t rows, int64_t x0, int64_t x1) {
    const struct mx_system *s = c->system;
    for (; c->reduce != NULL && rows > 1; rows--) call(c, m, row++, 1, x0, x1); /* one row each */
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
    const struct mx_row r = {.out = c->reduce != NULL ? NULL : m->out,
                             .in = m->in + AROUND,
                             .fixed = m->fixed + AROUND,
                             .row_pitch = m->blocks[0].pitch,
                             .fixed_pitch = m->fixed_pitch,
                             .rows = rows,
                             .param = s->param,
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
        s->row[c->level](&r);
}

/* What is written is not read: there is no old value. */
static bool has_old(const struct check *c) { return c->system->form != MX_JACOBI && c->reduce == NULL; }

static void call_all(const struct check *c, struct image *m) {
    call(c, m, 0, c->rows, radius(c), c->cells + radius(c));
}

/* ---- results */

static struct block *written(struct image *m, int32_t field) {
    return &m->blocks[m->n_blocks - 1 - m->n_out + field];
}

static char *expected_at(const struct check *c, struct cell at) {
    return c->expected + ((at.field * c->rows + at.row) * c->cells + at.x - radius(c)) * 8;
}

static double as_real(enum mx_dtype dtype, const char *from) {
    double d;
    float f;
    if (dtype == MX_F64) return memcpy(&d, from, sizeof d), d;
    return memcpy(&f, from, sizeof f), (double)f;
}

static bool is_expected(const struct check *c, struct image *m, struct cell at) {
    const struct block *b = written(m, at.field);
    const size_t e = (size_t)mx_dtype_bytes(b->dtype);
    const char *got = m->work + b->at + at.row * b->pitch + at.x * (int64_t)e, *wanted = expected_at(c, at);
    return memcmp(got, wanted, e) == 0 || (isnan(as_real(b->dtype, got)) && isnan(as_real(b->dtype, wanted)));
}

static void keep_results(struct check *c) {
    struct image *m = &c->image;
    for (int32_t f = 0; f < m->n_out; f++)
        for (int64_t row = 0; row < c->rows; row++)
            for (int64_t x = radius(c); x < c->cells + radius(c); x++) {
                const struct block *b = written(m, f);
                const int64_t e = mx_dtype_bytes(b->dtype);
                const char *from = m->work + b->at + row * b->pitch + x * e;
                memcpy(expected_at(c, (struct cell){f, row, x}), from, (size_t)e);
                if (isfinite(as_real(b->dtype, from))) c->finite[c->level][f] = true;
            }
}

/* The first cell that differs from what was kept. */
static bool all_expected(const struct check *c, struct image *m, struct cell *where) {
    for (int32_t f = 0; f < m->n_out; f++)
        for (int64_t row = 0; row < c->rows; row++)
            for (int64_t x = radius(c); x < c->cells + radius(c); x++)
                if (!is_expected(c, m, (struct cell){f, row, x}))
                    return *where = (struct cell){f, row, x}, false;
    return true;
}

static int differs(struct check *c, struct cell at, const char *what) {
    return mx_fail(&c->report->why, -EINVAL,
                   "the kernel \"%s\" %s: %s of the cell at X = %lld, Y = %lld, Z = %lld changes",
                   c->system->name, what, name_of(c, written(&c->image, at.field)),
                   (long long)(c->place.x + at.x - radius(c)), (long long)(c->place.y + at.row),
                   (long long)c->place.z);
}

static int expect_all(struct check *c, const char *what) {
    struct cell where;
    return all_expected(c, &c->image, &where) ? 0 : differs(c, where, what);
}

/* ---- what may be written */

static int check_row_written(struct check *c, const struct block *b, int64_t row) {
    const int64_t h = radius(c), e = mx_dtype_bytes(b->dtype);
    const int64_t begin = b->from + (row + h + BESIDE) * b->pitch, end = begin + b->pitch;
    const int64_t cell0 = b->at + row * b->pitch;
    for (int64_t i = begin; i < end; i++) {
        if (c->image.work[i] == c->image.clean[i]) continue;
        const int64_t x = (i - cell0 + 4096 * e) / e - 4096 - h;
        if (b->kind == WRITTEN && row >= 0 && row < c->rows && x >= 0 && x < c->cells) continue;
        if (b->kind == BEYOND)
            return mx_fail(&c->report->why, -EINVAL,
                           "the kernel \"%s\" writes to planes that it may not even read", c->system->name);
        if (b->kind != WRITTEN)
            return mx_fail(&c->report->why, -EINVAL, "the kernel \"%s\" writes to %s, which it may only read",
                           c->system->name, name_of(c, b));
        return mx_fail(&c->report->why, -EINVAL,
                       "the kernel \"%s\" writes %s at X = %lld, Y = %lld, outside of the cells that it was "
                       "asked for (X = %lld to %lld, Y = %lld to %lld)",
                       c->system->name, name_of(c, b), (long long)(c->place.x + x),
                       (long long)(c->place.y + row), (long long)c->place.x,
                       (long long)(c->place.x + c->cells - 1), (long long)c->place.y,
                       (long long)c->place.y + c->rows - 1);
    }
    return 0;
}

static int check_written(struct check *c) {
    const int64_t h = radius(c);
    int err = 0;
    for (int32_t i = 0; i < c->image.n_blocks && err == 0; i++)
        for (int64_t row = -h - BESIDE; row < c->rows + h + BESIDE && err == 0; row++)
            err = check_row_written(c, &c->image.blocks[i], row);
    return err;
}

/* ---- old values, repetition, pieces */

static int check_old(struct check *c) {
    struct image *m = &c->image;
    if (has_old(c)) return 0;
    for (int p = POISONS - 1; p >= 0;
         p--) { /* NaN last: it does not tell a cell left alone from one computed */
        work_from(m, m->clean);
        for (int32_t f = 0; f < m->n_out; f++) {
            const struct block *b = written(m, f);
            memcpy(m->work + b->from, m->poison[p] + b->from, (size_t)b->bytes);
        }
        call_all(c, m);
        struct cell at;
        if (all_expected(c, m, &at)) continue;
        const struct block *b = written(m, at.field);
        const int64_t e = mx_dtype_bytes(b->dtype), i = b->at + at.row * b->pitch + at.x * e;
        const bool unset = memcmp(m->work + i, m->poison[p] + i, (size_t)e) == 0;
        if (c->reduce != NULL)
            return differs(c, at,
                           unset ? "has no RESULT for a cell in a reduction"
                                 : "reads the values that a reduction writes");
        return differs(
            c, at,
            unset ? "leaves a cell as it was, and a row function stores all of them (memext/cell.h does)"
                  : "reads the value that it replaces, which MX_JACOBI does not have (MX_LEAPFROG and "
                    "MX_STAGGERED do)");
    }
    return 0;
}

static int check_again(struct check *c) {
    work_from(&c->image, c->image.clean);
    call_all(c, &c->image);
    return expect_all(c, "keeps a state of its own between calls (static variables?)");
}

static int check_rows(struct check *c) {
    work_from(&c->image, c->image.clean);
    for (int64_t row = c->rows - 1; row >= 0; row--)
        call(c, &c->image, row, 1, radius(c), c->cells + radius(c));
    return expect_all(c, "depends on how many rows a call computes");
}

static int check_pieces(struct check *c) {
    work_from(&c->image, c->image.clean);
    const int64_t first = radius(c), end = c->cells + first;
    for (int64_t x = first, n = 1 + c->round; x < end; x += n, n = n * 2 % 29 + 1)
        call(c, &c->image, 0, c->rows, x, x + n < end ? x + n : end);
    return expect_all(c, "depends on how x is cut into pieces");
}

/* ---- poison around every single cell */

static void copy_near(const struct check *c, struct image *m, const char *from, int64_t row, int64_t x) {
    for (int32_t i = 0; i + 1 < m->n_blocks; i++) {
        const struct block *b = &m->blocks[i];
        if (b->kind == WRITTEN && !has_old(c)) continue;
        const int64_t e = mx_dtype_bytes(b->dtype);
        for (int64_t y = row - b->reach; y <= row + b->reach; y++) {
            const int64_t at = b->at + y * b->pitch + (x - b->reach) * e;
            memcpy(m->work + at, from + at, (size_t)((2 * b->reach + 1) * e));
        }
    }
}

static void restore_cell(struct image *m, const char *from, int64_t row, int64_t x) {
    for (int32_t f = 0; f < m->n_out; f++) {
        const struct block *b = written(m, f);
        const int64_t e = mx_dtype_bytes(b->dtype), at = b->at + row * b->pitch + x * e;
        memcpy(m->work + at, from + at, (size_t)e);
    }
}

static bool cell_is_expected(const struct check *c, struct image *m, int64_t row, int64_t x, int32_t *field) {
    for (*field = 0; *field < m->n_out; ++*field)
        if (!is_expected(c, m, (struct cell){*field, row, x})) return false;
    return true;
}

static bool may_read(const struct check *c, const struct block *b, int64_t row, int64_t x, int64_t y,
                     int64_t at) {
    if (b->kind == BEYOND) return false;
    if (b->kind == WRITTEN && !has_old(c)) return false;
    return llabs(y - row) <= b->reach && llabs(at - x) <= b->reach;
}

static int say_read(struct check *c, const struct block *b, int64_t dx, int64_t dy) {
    mx_why *why = &c->report->why;
    const char *kernel = c->system->name;
    if (b->kind == BEYOND)
        return mx_fail(
            why, -EINVAL,
            "the kernel \"%s\" reads planes that are farther away in z than its radius, %d (MX_RADIUS; "
            "of fixed fields %d, MX_FIXED_RADIUS)",
            kernel, c->system->h, c->system->hc);
    if (b->kind == WRITTEN)
        return mx_fail(why, -EINVAL,
                       "the kernel \"%s\" reads %s of another cell, %lld in x and %lld in y away, "
                       "in the array that it writes",
                       kernel, name_of(c, b), (long long)dx, (long long)dy);
    return mx_fail(
        why, -EINVAL,
        "the kernel \"%s\" reads %s at (%lld, %lld, %d), which is farther away than its %s, %d (%s)", kernel,
        name_of(c, b), (long long)dx, (long long)dy, b->dz,
        b->kind == FIXED ? "radius in fixed fields" : "radius", b->reach,
        b->kind == FIXED ? "MX_FIXED_RADIUS" : "MX_RADIUS");
}

/* The one value, among those that the cell may not see, that changes it. */
static int locate(struct check *c, int64_t row, int64_t x, const char *poison) {
    struct image *m = &c->image;
    const int64_t h = radius(c);
    int32_t field;
    work_from(m, m->clean);
    call(c, m, row, 1, h, c->cells + h);
    if (!cell_is_expected(c, m, row, x, &field))
        return differs(c, (struct cell){field, row, x}, "depends on how many rows a call computes");
    work_from(m, m->clean);
    call(c, m, row, 1, x, x + 1);
    if (!cell_is_expected(c, m, row, x, &field))
        return differs(c, (struct cell){field, row, x}, "depends on how x is cut into pieces");
    for (int32_t i = 0; i < m->n_blocks; i++) {
        const struct block *b = &m->blocks[i];
        const int64_t e = mx_dtype_bytes(b->dtype);
        for (int64_t y = -h - BESIDE; y < c->rows + h + BESIDE; y++)
            for (int64_t at = -SIDE; at < c->cells + 2 * h + SIDE; at++) {
                if (may_read(c, b, row, x, y, at)) continue;
                const int64_t byte = b->at + y * b->pitch + at * e;
                restore_cell(m, m->clean, row, x);
                memcpy(m->work + byte, poison + byte, (size_t)e);
                call(c, m, row, 1, x, x + 1);
                if (!cell_is_expected(c, m, row, x, &field)) return say_read(c, b, at - x, y - row);
                memcpy(m->work + byte, m->clean + byte, (size_t)e);
            }
    }
    return differs(c, (struct cell){0, row, x}, "reads something outside of its radius");
}

static int check_reads(struct check *c) {
    struct image *m = &c->image;
    int64_t near = 0, n = 0;
    for (int32_t i = 0; i < m->n_blocks; i++)
        near += (int64_t)(2 * m->blocks[i].reach + 1) * (2 * m->blocks[i].reach + 1);
    const int64_t step = 1 + 2 * near * c->rows * c->cells / MOST_COPIED;
    for (int p = 0; p < POISONS; p++) {
        work_from(m, m->poison[p]);
        for (int64_t row = c->rows - 1; row >= 0; row--)
            for (int64_t x = c->cells + radius(c) - 1; x >= radius(c); x--) {
                int32_t field;
                if (n++ % step != 0) continue;
                copy_near(c, m, m->clean, row, x);
                call(c, m, row, 1, x, x + 1);
                if (!cell_is_expected(c, m, row, x, &field)) return locate(c, row, x, m->poison[p]);
                copy_near(c, m, m->poison[p], row, x);
                restore_cell(m, m->poison[p], row, x);
            }
    }
    return 0;
}

/* ---- other addresses */

static int check_addresses(struct check *c) {
    struct image other;
    int err = image_make(c, 1, &other);
    if (err < 0) return err;
    fill(c, &other);
    work_from(&other, other.clean);
    snprintf(c->report->stage, sizeof c->report->stage,
             " when rows begin at other addresses: they are multiples of the size of a cell, no more");
    call_all(c, &other);
    struct cell where;
    if (!all_expected(c, &other, &where)) err = differs(c, where, "depends on the addresses of rows");
    image_free(&other);
    return err;
}

/* ---- variables of the object */

struct segments {
    const void *inside; /* an address in the object */
    char *copy;
    size_t bytes;
    bool take, same;
};

static bool holds(const struct dl_phdr_info *info, const void *address) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t from = (uintptr_t)info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && (uintptr_t)address >= from && (uintptr_t)address < from + p->p_memsz)
            return true;
    }
    return false;
}

/* What can be written after loading: segments without what the linker protects. The program itself is none of
 * a user's objects. */
static int look_at_segments(struct dl_phdr_info *info, size_t size, void *context) {
    struct segments *s = context;
    (void)size;
    if (!holds(info, s->inside)) return 0;
    if (info->dlpi_name == NULL || info->dlpi_name[0] == 0) return 1;
    uintptr_t from_relro = 0, end_relro = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            from_relro = (uintptr_t)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            end_relro = from_relro + info->dlpi_phdr[i].p_memsz;
        }
    size_t at = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || (p->p_flags & PF_W) == 0) continue;
        uintptr_t from = (uintptr_t)info->dlpi_addr + p->p_vaddr;
        const uintptr_t end = from + p->p_memsz;
        if (from_relro <= from && end_relro > from) from = end_relro < end ? end_relro : end;
        const size_t n = end - from;
        if (s->take) {
            char *more = realloc(s->copy, at + n + 1);
            if (more == NULL) return 1;
            s->copy = more;
            memcpy(s->copy + at, (const void *)from, n);
            s->bytes = at + n;
        } else if (at + n <= s->bytes && memcmp(s->copy + at, (const void *)from, n) != 0) {
            s->same = false;
        }
        at += n;
    }
    return 1;
}

/* ---- all of it */

static int check_round(struct check *c) {
    struct image *m = &c->image;
    static int (*const steps[])(struct check *) = {check_written, check_again,  check_old,      check_reads,
                                                   check_rows,    check_pieces, check_addresses};
    fill(c, m);
    work_from(m, m->clean);
    snprintf(
        c->report->stage, sizeof c->report->stage,
        " when it computes %lld rows of %lld cells of a grid of %lld x %lld x %lld: it reads or writes far "
        "outside of them, or divides whole numbers by 0",
        (long long)c->rows, (long long)c->cells, (long long)c->grid.n[0], (long long)c->grid.n[1],
        (long long)c->grid.n[2]);
    call_all(c, m);
    keep_results(c);
    int err = 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && err == 0; i++) err = steps[i](c);
    return err;
}

static int check_level(struct check *c) {
    const int64_t last[4] = {c->grid.n[0] - c->cells, c->grid.n[1] - c->rows, c->grid.n[2] - 1,
                             c->grid.nt > 0 ? c->grid.nt - 1 : 0};
    const struct place places[ROUNDS] = {
        {0, 0, 0, 0},
        {last[0] / 2, mx_min(4, last[1]), mx_min(3, last[2]), mx_min(1, last[3])},
        {last[0], last[1], last[2], last[3]}};
    int err = image_make(c, 0, &c->image);
    if (err < 0) return err;
    memset(c->finite, 0, sizeof c->finite);
    c->expected = calloc((size_t)c->image.n_out * (size_t)(c->rows * c->cells), 8);
    if (c->expected == NULL)
        err = mx_fail(&c->report->why, -ENOMEM, "no memory to try out the kernel \"%s\"", c->system->name);
    for (c->round = 0; c->round < ROUNDS && err == 0; c->round++) {
        c->place = places[c->round];
        err = check_round(c);
    }
    for (int32_t f = 0; f < c->image.n_out && err == 0; f++)
        if (!c->finite[c->level][f])
            err =
                mx_fail(&c->report->why, -EINVAL,
                        "the kernel \"%s\" computes no finite %s: it is NaN or infinite in every cell, from "
                        "values between %g and %g, %g and %g, %g and %g; are the parameters right?",
                        c->system->name, name_of(c, written(&c->image, f)), ranges[0][0], ranges[0][1],
                        ranges[1][0], ranges[1][1], ranges[2][0], ranges[2][1]);
    free(c->expected);
    image_free(&c->image);
    return err;
}

struct asked {
    const struct mx_system *system;
    struct mx_kernel_grid grid;
};

static int check_in_child(void *context, struct mx_isolated *report) {
    const struct asked *asked = context;
    const struct mx_system *s = asked->system;
    struct segments segments = {.take = true, .same = true};
    memcpy(&segments.inside, &s->row[0], sizeof segments.inside);
    dl_iterate_phdr(look_at_segments, &segments);
    struct check *c = calloc(1, sizeof *c);
    if (c == NULL) return mx_fail(&report->why, -ENOMEM, "no memory to try out the kernel \"%s\"", s->name);
    c->system = s, c->report = report;
    c->grid = asked->grid;
    c->cells = mx_min(MOST_CELLS, c->grid.n[0]);
    c->rows = mx_min(MOST_ROWS, c->grid.n[1]);
    int err = 0;
    const int levels = s->form == MX_STAGGERED ? 2 : 1;
    for (c->level = 0; c->level < levels && err == 0; c->level++) err = check_level(c);
    c->level = levels - 1;
    for (int32_t i = 0; i < s->n_reduce && err == 0; i++) {
        c->reduce = &s->reduce[i];
        err = check_level(c);
    }
    segments.take = false;
    dl_iterate_phdr(look_at_segments, &segments);
    if (err == 0 && !segments.same)
        err =
            mx_fail(&report->why, -EINVAL,
                    "the kernel \"%s\" writes static variables: several threads compute rows at once, in any "
                    "order",
                    s->name);
    free(segments.copy);
    free(c);
    return err;
}

int mx_kernel_check(const struct mx_system *system, const struct mx_kernel_grid *grid, mx_why *why) {
    static const struct mx_kernel_grid any = {{MOST_CELLS, 11, 9}, 7};
    struct asked asked = {system, grid != NULL ? *grid : any};
    char subject[96];
    snprintf(subject, sizeof subject, "the kernel \"%s\"", system->name);
    return mx_isolate(check_in_child, &asked, subject, CPU_SECONDS, why);
}
