/* SPDX-License-Identifier: BSD-3-Clause */
/* check_findings.c - what a kernel that is tried out does wrong, each finding with its sentence. */
#include "kernel/check.h"

#include <errno.h>
#include <math.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- results */

const char *mx_check_name(const struct check *c, const struct block *b) {
    const struct mx_system *s = c->system;
    if (b->kind == FIXED) return s->fixed[b->field].name;
    if (b->kind == WRITTEN && c->reduce != NULL) return c->reduce->name;
    return s->field[b->kind == READ ? check_read(c) : 1 - check_read(c)][b->field].name;
}

static char *expected_at(const struct check *c, struct cell at) {
    return c->expected + ((at.field * c->rows + at.row) * c->cells + at.x - check_radius(c)) * 8;
}

static bool is_expected(const struct check *c, struct image *m, struct cell at) {
    const struct block *b = check_written_block(m, at.field);
    const size_t e = (size_t)mx_dtype_bytes(b->dtype);
    const char *got = m->work + b->at + at.row * b->pitch + at.x * (int64_t)e, *wanted = expected_at(c, at);
    return memcmp(got, wanted, e) == 0 ||
           (isnan(mx_cell_load(b->dtype, got, 0)) && isnan(mx_cell_load(b->dtype, wanted, 0)));
}

void mx_check_keep(struct check *c) {
    struct image *m = &c->image;
    for (int32_t f = 0; f < m->n_out; f++)
        for (int64_t row = 0; row < c->rows; row++)
            for (int64_t x = check_radius(c); x < c->cells + check_radius(c); x++) {
                const struct block *b = check_written_block(m, f);
                const int64_t e = mx_dtype_bytes(b->dtype);
                const char *from = m->work + b->at + row * b->pitch + x * e;
                memcpy(expected_at(c, (struct cell){f, row, x}), from, (size_t)e);
                if (isfinite(mx_cell_load(b->dtype, from, 0))) c->finite[check_read(c)][f] = true;
            }
}

/* The first cell that differs from what was kept. */
static bool all_expected(const struct check *c, struct image *m, struct cell *where) {
    for (int32_t f = 0; f < m->n_out; f++)
        for (int64_t row = 0; row < c->rows; row++)
            for (int64_t x = check_radius(c); x < c->cells + check_radius(c); x++)
                if (!is_expected(c, m, (struct cell){f, row, x}))
                    return *where = (struct cell){f, row, x}, false;
    return true;
}

static int differs(struct check *c, struct cell at, const char *what) {
    return mx_fail(&c->report->why, -EINVAL,
                   "the kernel \"%s\" %s: %s of the cell at X = %lld, Y = %lld, Z = %lld changes",
                   c->system->name, what, mx_check_name(c, check_written_block(&c->image, at.field)),
                   (long long)(c->place.x + at.x - check_radius(c)),
                   (long long)(c->system->flat ? c->place.z : c->place.y + at.row),
                   (long long)(c->system->flat ? 0 : c->place.z));
}

static int expect_all(struct check *c, const char *what) {
    struct cell where;
    return all_expected(c, &c->image, &where) ? 0 : differs(c, where, what);
}

/* ---- what may be written */

static int check_row_written(struct check *c, const struct block *b, int64_t row) {
    const int64_t h = check_radius(c), e = mx_dtype_bytes(b->dtype);
    const int64_t begin = b->from + (row + h + BESIDE) * b->pitch, end = begin + b->pitch;
    const int64_t cell0 = b->at + row * b->pitch;
    for (int64_t i = begin; i < end; i++) {
        if (c->image.work[i] == c->image.clean[i]) continue;
        const int64_t x = (i - cell0 + 4096 * e) / e - 4096 - h;
        if (b->kind == WRITTEN && row >= 0 && row < c->rows && x >= 0 && x < c->cells) continue;
        if (b->kind == BEYOND)
            return mx_fail(&c->report->why, -EINVAL,
                           "the kernel \"%s\" writes to %ss beyond its radius, which it may not even read",
                           c->system->name, mx_plane_word(c->system->flat));
        if (b->kind != WRITTEN)
            return mx_fail(&c->report->why, -EINVAL, "the kernel \"%s\" writes to %s, which is read only",
                           c->system->name, mx_check_name(c, b));
        return mx_fail(&c->report->why, -EINVAL,
                       "the kernel \"%s\" writes %s at X = %lld, Y = %lld, outside the cells that the call "
                       "asks for (X = %lld to %lld, Y = %lld to %lld)",
                       c->system->name, mx_check_name(c, b), (long long)(c->place.x + x),
                       (long long)(c->place.y + row), (long long)c->place.x,
                       (long long)(c->place.x + c->cells - 1), (long long)c->place.y,
                       (long long)c->place.y + c->rows - 1);
    }
    return 0;
}

static int check_written(struct check *c) {
    const int64_t h = check_radius(c);
    int err = 0;
    for (int32_t i = 0; i < c->image.n_blocks && err == 0; i++)
        for (int64_t row = -h - BESIDE; row < c->rows + h + BESIDE && err == 0; row++)
            err = check_row_written(c, &c->image.blocks[i], row);
    return err;
}

/* ---- old values, repetition, pieces */

static int check_old(struct check *c) {
    struct image *m = &c->image;
    if (check_has_old(c)) return 0;
    for (int p = POISONS - 1; p >= 0;
         p--) { /* NaN last: it does not tell a cell left alone from one computed */
        check_work_from(m, m->clean);
        for (int32_t f = 0; f < m->n_out; f++) {
            const struct block *b = check_written_block(m, f);
            memcpy(m->work + b->from, m->poison[p] + b->from, (size_t)b->bytes);
        }
        mx_check_call_all(c, m);
        struct cell at;
        if (all_expected(c, m, &at)) continue;
        const struct block *b = check_written_block(m, at.field);
        const int64_t e = mx_dtype_bytes(b->dtype), i = b->at + at.row * b->pitch + at.x * e;
        const bool unset = memcmp(m->work + i, m->poison[p] + i, (size_t)e) == 0;
        if (c->reduce != NULL)
            return differs(c, at,
                           unset ? "sets no RESULT for a cell in a reduction"
                                 : "reads the array that a reduction fills");
        return differs(c, at,
                       unset ? "leaves a cell unset, but a row function must store every cell that it is "
                               "called for (memext/cell.h does)"
                             : "reads the value that it replaces, which the form MX_JACOBI does not have "
                               "(MX_LEAPFROG and MX_STAGGERED have it)");
    }
    return 0;
}

static int check_again(struct check *c) {
    check_work_from(&c->image, c->image.clean);
    mx_check_call_all(c, &c->image);
    return expect_all(c, "keeps a state between calls, perhaps in static variables");
}

static int check_rows(struct check *c) {
    check_work_from(&c->image, c->image.clean);
    for (int64_t row = c->rows - 1; row >= 0; row--)
        mx_check_call(c, &c->image, row, 1, check_radius(c), c->cells + check_radius(c));
    return expect_all(c, "gives results that depend on how many rows a call computes");
}

static int check_pieces(struct check *c) {
    check_work_from(&c->image, c->image.clean);
    const int64_t first = check_radius(c), end = c->cells + first;
    for (int64_t x = first, n = 1 + c->round; x < end; x += n, n = n * 2 % 29 + 1)
        mx_check_call(c, &c->image, 0, c->rows, x, x + n < end ? x + n : end);
    return expect_all(c, "gives results that depend on how x is cut into pieces (a cell may use only its X "
                         "and its neighbours)");
}

/* ---- poison around every single cell */

static void copy_near(const struct check *c, struct image *m, const char *from, int64_t row, int64_t x) {
    for (int32_t i = 0; i + 1 < m->n_blocks; i++) {
        const struct block *b = &m->blocks[i];
        if (b->kind == WRITTEN && !check_has_old(c)) continue;
        const int64_t e = mx_dtype_bytes(b->dtype);
        for (int64_t y = row - b->reach_y; y <= row + b->reach_y; y++) {
            const int64_t at = b->at + y * b->pitch + (x - b->reach) * e;
            memcpy(m->work + at, from + at, (size_t)((2 * b->reach + 1) * e));
        }
    }
}

static void restore_cell(struct image *m, const char *from, int64_t row, int64_t x) {
    for (int32_t f = 0; f < m->n_out; f++) {
        const struct block *b = check_written_block(m, f);
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
    if (b->kind == WRITTEN && !check_has_old(c)) return false;
    return llabs(y - row) <= b->reach_y && llabs(at - x) <= b->reach;
}

static int say_read(struct check *c, const struct block *b, int64_t dx, int64_t dy) {
    mx_why *why = &c->report->why;
    const char *kernel = c->system->name;
    if (b->kind == BEYOND)
        return mx_fail(why, -EINVAL,
                       "the kernel \"%s\" reads %ss farther away in %c than its radius, %d (MX_RADIUS; %d "
                       "for read-only fields, MX_FIXED_RADIUS)",
                       kernel, mx_plane_word(c->system->flat), c->system->flat ? 'y' : 'z', c->system->h,
                       c->system->hc);
    if (b->kind == WRITTEN)
        return mx_fail(why, -EINVAL,
                       "the kernel \"%s\" reads %s of another cell, %lld in x and %lld in y away, in the "
                       "array that it writes",
                       kernel, mx_check_name(c, b), (long long)dx, (long long)dy);
    return mx_fail(
        why, -EINVAL, "the kernel \"%s\" reads %s at (%lld, %lld, %d), farther away than its %s, %d (%s)",
        kernel, mx_check_name(c, b), (long long)dx, c->system->flat ? (long long)b->dz : (long long)dy,
        c->system->flat ? (int)dy : b->dz, b->kind == FIXED ? "radius in read-only fields" : "radius",
        b->reach, b->kind == FIXED ? "MX_FIXED_RADIUS" : "MX_RADIUS");
}

/* The one value, among those that the cell may not see, that changes it. */
static int locate(struct check *c, int64_t row, int64_t x, const char *poison) {
    struct image *m = &c->image;
    const int64_t h = check_radius(c);
    int32_t field;
    check_work_from(m, m->clean);
    mx_check_call(c, m, row, 1, h, c->cells + h);
    if (!cell_is_expected(c, m, row, x, &field))
        return differs(c, (struct cell){field, row, x},
                       "gives results that depend on how many rows a call computes");
    check_work_from(m, m->clean);
    mx_check_call(c, m, row, 1, x, x + 1);
    if (!cell_is_expected(c, m, row, x, &field))
        return differs(c, (struct cell){field, row, x},
                       "gives results that depend on how x is cut into pieces (a cell may use only its X and "
                       "its neighbours)");
    for (int32_t i = 0; i < m->n_blocks; i++) {
        const struct block *b = &m->blocks[i];
        const int64_t e = mx_dtype_bytes(b->dtype);
        for (int64_t y = -h - BESIDE; y < c->rows + h + BESIDE; y++)
            for (int64_t at = -SIDE; at < c->cells + 2 * h + SIDE; at++) {
                if (may_read(c, b, row, x, y, at)) continue;
                const int64_t byte = b->at + y * b->pitch + at * e;
                restore_cell(m, m->clean, row, x);
                memcpy(m->work + byte, poison + byte, (size_t)e);
                mx_check_call(c, m, row, 1, x, x + 1);
                if (!cell_is_expected(c, m, row, x, &field)) return say_read(c, b, at - x, y - row);
                memcpy(m->work + byte, m->clean + byte, (size_t)e);
            }
    }
    return differs(c, (struct cell){0, row, x}, "reads a value outside its radius");
}

static int check_reads(struct check *c) {
    struct image *m = &c->image;
    int64_t near = 0, n = 0;
    for (int32_t i = 0; i < m->n_blocks; i++)
        near += (int64_t)(2 * m->blocks[i].reach + 1) * (2 * m->blocks[i].reach_y + 1);
    const int64_t step = 1 + 2 * near * c->rows * c->cells / MOST_COPIED;
    for (int p = 0; p < POISONS; p++) {
        check_work_from(m, m->poison[p]);
        for (int64_t row = c->rows - 1; row >= 0; row--)
            for (int64_t x = c->cells + check_radius(c) - 1; x >= check_radius(c); x--) {
                int32_t field;
                if (n++ % step != 0) continue;
                copy_near(c, m, m->clean, row, x);
                mx_check_call(c, m, row, 1, x, x + 1);
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
    int err = mx_check_image_make(c, 1, &other);
    if (err < 0) return err;
    mx_check_fill(c, &other);
    check_work_from(&other, other.clean);
    snprintf(c->report->stage, sizeof c->report->stage, " when rows begin at other addresses");
    snprintf(c->report->crash, sizeof c->report->crash,
             ": a row may begin at any multiple of the size of a cell, not only of a vector");
    mx_check_call_all(c, &other);
    struct cell where;
    if (!all_expected(c, &other, &where))
        err = differs(c, where, "gives results that depend on the addresses of rows");
    mx_check_image_free(&other);
    return err;
}

/* ---- all of it */

int mx_check_findings(struct check *c) {
    static int (*const findings[])(struct check *) = {
        check_written, check_again, check_old, check_reads, check_rows, check_pieces, check_addresses};
    int err = 0;
    for (size_t i = 0; i < sizeof findings / sizeof findings[0] && err == 0; i++) err = findings[i](c);
    return err;
}
