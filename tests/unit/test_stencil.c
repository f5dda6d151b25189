/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of every instruction set against the plain one, and the plain one against the mathematics. */
#include "stencil/stencil.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 192 }; /* bytes before, between and behind rows that no kernel may touch */

static uint64_t state = 1;
static uint64_t next_random(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}
static int64_t pick(int64_t from, int64_t to) {
    return from + (int64_t)(next_random() % (uint64_t)(to - from + 1));
}

/* A patch of `rows` rows in planes of rows + 2h rows; planes 0..2h are read, plane 2h+1 is written. */
struct field {
    char *memory;
    size_t bytes, plane_bytes;
    struct mx_patch patch;
    const char *src[2 * MX_MAX_HALO + 1];
};

static void fill(struct field *f, enum mx_dtype dtype) {
    for (size_t i = 0; i + 8 <= f->bytes; i += (size_t)mx_dtype_bytes(dtype)) {
        double v = (double)next_random() / 1e9;
        float s = (float)v;
        memcpy(f->memory + i, dtype == MX_F64 ? (void *)&v : (void *)&s, (size_t)mx_dtype_bytes(dtype));
    }
}

/* Rows begin `shift` cells behind a multiple of 64 bytes; the allocation ends where the last cell that may be
 * read ends, so that asan sees a read beyond. */
static void field_make(struct field *f, int32_t h, int64_t nx, int32_t rows, enum mx_dtype dtype,
                       int64_t shift, int64_t pitch) {
    const int64_t el = mx_dtype_bytes(dtype);
    f->plane_bytes = (size_t)(pitch * (rows + 2 * h));
    f->bytes =
        f->plane_bytes * (size_t)(2 * h + 1) + (size_t)(pitch * (rows + h - 1) + (nx + 2 * h + shift) * el);
    f->memory = malloc(f->bytes);
    fill(f, dtype);
    for (int32_t d = 0; d <= 2 * h; d++)
        f->src[d] = f->memory + f->plane_bytes * (size_t)d + h * pitch + shift * el;
    f->patch = (struct mx_patch){.dst = f->memory + f->plane_bytes * (size_t)(2 * h + 1) + shift * el,
                                 .src = f->src,
                                 .row_pitch_bytes = pitch,
                                 .rows = rows,
                                 .h = h,
                                 .nx = nx,
                                 .x0 = h,
                                 .x1 = nx + h};
}

static int64_t pitch_for(int32_t h, int64_t nx, enum mx_dtype dtype, int64_t shift) {
    return ((nx + 2 * h + shift) * mx_dtype_bytes(dtype) + 63) / 64 * 64 + 64 * pick(0, 2);
}

/* memory after kernel(patch) == memory after plain(patch), every byte, padding included. */
static void same_bits(const struct mx_stencil *s, enum mx_dtype dtype, const char *isa, int64_t nx,
                      int32_t rows) {
    mx_kernel_fn *kernel = mx_stencil_kernel_isa(s, dtype, isa);
    if (kernel == NULL) return;
    struct field f;
    const int64_t shift = pick(0, 64 / mx_dtype_bytes(dtype) - 1);
    field_make(&f, s->h, nx, rows, dtype, shift, pitch_for(s->h, nx, dtype, shift));
    if (pick(0, 1)) {
        f.patch.x0 = pick(s->h, s->h + nx - 1);
        f.patch.x1 = pick(f.patch.x0 + 1, s->h + nx);
    }
    char *before = malloc(f.bytes), *expected = malloc(f.bytes);
    memcpy(before, f.memory, f.bytes);
    mx_stencil_plain(s, dtype)(&f.patch, s->coef);
    memcpy(expected, f.memory, f.bytes);
    memcpy(f.memory, before, f.bytes);
    kernel(&f.patch, s->coef);
    cr_assert(memcmp(f.memory, expected, f.bytes) == 0, "%s %s %s nx %lld rows %d x0 %lld x1 %lld shift %lld",
              s->name, dtype == MX_F64 ? "f64" : "f32", isa, (long long)nx, rows, (long long)f.patch.x0,
              (long long)f.patch.x1, (long long)shift);
    free(before);
    free(expected);
    free(f.memory);
}

/* Kernels that this CPU cannot run are tests that were not made, and are counted as such. */
static void need(const char *isa) {
    if (!mx_stencil_has_isa(isa)) cr_skip_test("this CPU has no %s: its kernels are not tested here", isa);
}

static void isa_gives_the_bits_of_plain(const char *isa) {
    static const int64_t widths[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 67, 130};
    need(isa);
    for (const struct mx_stencil *s = mx_stencils; s->name != NULL; s++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
            for (int32_t rows = 1; rows <= 13; rows++)
                for (int dtype = 0; dtype < 2; dtype++) same_bits(s, dtype, isa, widths[w], rows);
}

Test(stencil, avx512_gives_the_bits_of_plain) { isa_gives_the_bits_of_plain("avx512"); }
Test(stencil, avx2_gives_the_bits_of_plain) { isa_gives_the_bits_of_plain("avx2"); }
Test(stencil, plain_is_the_same_again) { isa_gives_the_bits_of_plain("plain"); }

/* ---- tiles: each run of rows of a plane lies in one of HOMES arrays of the same form */

enum { HOMES = 3 };

struct tile_field {
    struct mx_tile tile;
    struct mx_tile_rows src[MX_TILE_MOST_PLANES + 2], dst[MX_TILE_MOST_PLANES];
    int home[MX_TILE_MOST_PLANES + 2][3],
        to[MX_TILE_MOST_PLANES][2]; /* of below, inner, top; of inner, top */
    char *memory;
    size_t bytes, home_bytes;
};

/* Row `row` (from -2) of plane `plane` (from -2) in a home. */
static size_t tile_at(const struct tile_field *f, int home, int64_t row, int64_t plane) {
    const int64_t rows = f->tile.rows + 2;
    return (size_t)home * f->home_bytes + (size_t)(((plane + 2) * rows + row + 2) * f->tile.row_pitch_bytes);
}

static int part_of(const struct mx_tile *t, int64_t row) { return row < 0 ? 0 : row < t->rows - 2 ? 1 : 2; }

static void tile_field_make(struct tile_field *f, int64_t nx, enum mx_dtype dtype) {
    struct mx_tile *t = &f->tile;
    *t = (struct mx_tile){.src = f->src, .dst = f->dst, .nx = nx};
    t->rows = 2 * (int32_t)pick(1, MX_TILE_MOST_ROWS / 2);
    t->planes = (int32_t)pick(1, pick(0, 5) == 0 ? MX_TILE_MOST_PLANES : 5);
    t->row_pitch_bytes = pitch_for(1, nx, dtype, 0);
    const bool mirror = pick(0, 1);
    for (int end = 0; end < 2; end++) { /* of both frame cells none, one or both */
        if (pick(0, 2) == 0) continue;
        const int64_t near = end == 0 ? 1 : nx, far = end == 0 ? nx : 1;
        t->x_copy[t->x_copies].to = end == 0 ? 0 : nx + 1;
        t->x_copy[t->x_copies++].from = mirror ? near : far;
    }
    f->home_bytes = (size_t)(t->row_pitch_bytes * (t->rows + 2) * (t->planes + 2));
    /* the last home ends where its last row ends, so that asan sees a read beyond */
    f->bytes = HOMES * f->home_bytes - (size_t)(t->row_pitch_bytes - (nx + 2) * mx_dtype_bytes(dtype));
    f->memory = malloc(f->bytes);
    const bool in_place = pick(0, 1);
    for (int32_t q = 0; q < t->planes + 2; q++) {
        for (int i = 0; i < 3; i++) f->home[q][i] = in_place ? 0 : (int)pick(0, HOMES - 1);
        f->src[q].below = f->memory + tile_at(f, f->home[q][0], -2, q - 2);
        f->src[q].inner = f->memory + tile_at(f, f->home[q][1], 0, q - 2);
        f->src[q].top = f->memory + tile_at(f, f->home[q][2], t->rows - 2, q - 2);
    }
    for (int32_t s = 0; s < t->planes; s++) {
        for (int i = 0; i < 2; i++) f->to[s][i] = in_place ? 0 : (int)pick(0, HOMES - 1);
        f->dst[s].inner = f->memory + tile_at(f, f->to[s][0], 0, s);
        f->dst[s].top = f->memory + tile_at(f, f->to[s][1], t->rows - 2, s);
    }
}

/* What the tile is to leave, into `after`: every row by the plain kernel from what stood there before. */
static void plain_tile(const struct tile_field *f, const struct mx_stencil *s, enum mx_dtype dtype,
                       const char *before, char *after) {
    const struct mx_tile *t = &f->tile;
    for (int64_t plane = 0; plane < t->planes; plane++)
        for (int64_t row = 0; row < t->rows; row++) {
            char *rows = malloc((size_t)(9 * t->row_pitch_bytes));
            const char *src[3];
            for (int q = 0; q < 3; q++) {
                src[q] = rows + (3 * q + 1) * t->row_pitch_bytes;
                for (int r = -2; r <= 0; r++) {
                    const int home = f->home[plane + q][part_of(t, row + r)];
                    memcpy(rows + (3 * q + r + 2) * t->row_pitch_bytes,
                           before + tile_at(f, home, row + r, plane + q - 2),
                           (size_t)((t->nx + 2) * mx_dtype_bytes(dtype)));
                }
            }
            struct mx_patch p = {.dst = after + tile_at(f, f->to[plane][part_of(t, row) - 1], row, plane),
                                 .src = src,
                                 .row_pitch_bytes = t->row_pitch_bytes,
                                 .rows = 1,
                                 .h = 1,
                                 .nx = t->nx,
                                 .x0 = 1,
                                 .x1 = t->nx + 1};
            mx_stencil_plain(s, dtype)(&p, s->coef);
            const int64_t cell = mx_dtype_bytes(dtype);
            for (int i = 0; i < t->x_copies; i++)
                memcpy(p.dst + t->x_copy[i].to * cell, p.dst + t->x_copy[i].from * cell, (size_t)cell);
            free(rows);
        }
}

/* In place, and from anywhere to anywhere: every byte as by the plain kernel from what was read. */
static void same_tile(const struct mx_stencil *s, enum mx_dtype dtype, const char *isa, int64_t nx) {
    mx_tile_fn *kernel = mx_stencil_tile_isa(s, dtype, isa);
    if (kernel == NULL) return;
    struct tile_field f;
    tile_field_make(&f, nx, dtype);
    struct field all = {.memory = f.memory, .bytes = f.bytes};
    fill(&all, dtype);
    char *before = malloc(f.bytes), *after = malloc(f.bytes);
    memcpy(before, f.memory, f.bytes);
    memcpy(after, f.memory, f.bytes);
    plain_tile(&f, s, dtype, before, after);
    kernel(&f.tile, s->coef);
    cr_assert(memcmp(f.memory, after, f.bytes) == 0, "%s %s %s nx %lld rows %d planes %d", s->name,
              dtype == MX_F64 ? "f64" : "f32", isa, (long long)nx, f.tile.rows, f.tile.planes);
    free(before);
    free(after);
    free(f.memory);
}

static void tiles_give_the_bits_of_plain(const char *isa) {
    static const int64_t widths[] = {1,  2,  6,   7,   8,   13,  14,  15,  30,  31,
                                     62, 63, 126, 127, 128, 250, 254, 255, 510, 600};
    need(isa);
    for (const struct mx_stencil *s = mx_stencils; s->name != NULL; s++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
            for (int dtype = 0; dtype < 2; dtype++)
                for (int k = 0; k < 4; k++) same_tile(s, dtype, isa, widths[w]);
}

Test(stencil, avx512_tiles_give_the_bits_of_plain) { tiles_give_the_bits_of_plain("avx512"); }
Test(stencil, avx2_tiles_give_the_bits_of_plain) { tiles_give_the_bits_of_plain("avx2"); }

/* With MX_ISA the best kernel is of that set; a set that the CPU lacks is refused with a sentence. */
Test(stencil, the_environment_names_the_instruction_set) {
    static const char *const isas[] = {"avx512", "avx2", "plain"};
    for (int i = 0; i < 3; i++) {
        const char *isa = NULL;
        mx_why why = {0};
        setenv("MX_ISA", isas[i], 1);
        cr_assert_eq(mx_stencil_isa_check(&why), mx_stencil_has_isa(isas[i]) ? 0 : -22);
        if (!mx_stencil_has_isa(isas[i])) continue;
        cr_assert(mx_stencil_kernel(mx_stencils, MX_F64, &isa) ==
                  mx_stencil_kernel_isa(mx_stencils, MX_F64, isas[i]));
        cr_assert_str_eq(isa, isas[i]);
        cr_assert(mx_stencil_tile(mx_stencils, MX_F64) == mx_stencil_tile_isa(mx_stencils, MX_F64, isas[i]));
    }
    mx_why why = {0};
    setenv("MX_ISA", "sse9", 1);
    cr_assert_eq(mx_stencil_isa_check(&why), -22);
    cr_assert(strstr(why.text, "sse9") != NULL && strstr(why.text, "plain") != NULL);
}

/* A stencil of h > 1 has none: its tiles need 2h planes that move with the level. */
Test(stencil, tiles_are_for_h_1) {
    for (const struct mx_stencil *s = mx_stencils; s->name != NULL; s++) {
        mx_tile_fn *tile = mx_stencil_tile(s, MX_F64);
        cr_assert(s->h > 1 ? tile == NULL : tile == NULL || mx_stencil_tile(s, MX_F32) != NULL);
    }
}

Test(stencil, best_kernel_exists_and_names_itself) {
    for (const struct mx_stencil *s = mx_stencils; s->name != NULL; s++)
        for (int dtype = 0; dtype < 2; dtype++) {
            const char *isa = NULL;
            cr_assert(mx_stencil_kernel(s, dtype, &isa) == mx_stencil_kernel_isa(s, dtype, isa));
            cr_assert(mx_stencil_plain(s, dtype) == mx_stencil_kernel_isa(s, dtype, "plain"));
        }
}

/* Weight of the neighbour at (dx, dy, dz) by the definition of the stencil, not by its expression. */
static double weight(const struct mx_stencil *s, int dx, int dy, int dz) {
    const int far = abs(dx) + abs(dy) + abs(dz), axes = (dx != 0) + (dy != 0) + (dz != 0);
    if (far == 0) return s->coef[0];
    if (s->n_coef == 2) return axes == 1 ? s->coef[1] / far : 0;
    return s->coef[axes];
}

static double cell(const struct field *f, int64_t row, int64_t x, int dx, int dy, int dz,
                   enum mx_dtype dtype) {
    const char *at = f->patch.src[f->patch.h + dz] + (row + dy) * f->patch.row_pitch_bytes;
    return dtype == MX_F64 ? ((const double *)at)[x + dx] : ((const float *)at)[x + dx];
}

/* |dst - sum of weight * neighbour| <= epsilon * |sum|, over all (2h+1)^3 neighbours in long double order. */
static void is_weighted_sum(const struct mx_stencil *s, enum mx_dtype dtype) {
    const double epsilon = dtype == MX_F64 ? 1e-13 : 1e-5;
    struct field f;
    field_make(&f, s->h, 19, 3, dtype, 0, pitch_for(s->h, 19, dtype, 0));
    mx_stencil_plain(s, dtype)(&f.patch, s->coef);
    for (int64_t row = 0; row < 3; row++)
        for (int64_t x = s->h; x < 19 + s->h; x++) {
            long double sum = 0;
            for (int dz = -s->h; dz <= s->h; dz++)
                for (int dy = -s->h; dy <= s->h; dy++)
                    for (int dx = -s->h; dx <= s->h; dx++) {
                        double w = weight(s, dx, dy, dz);
                        if (w != 0) sum += (long double)w * (long double)cell(&f, row, x, dx, dy, dz, dtype);
                    }
            const char *dst = f.patch.dst + row * f.patch.row_pitch_bytes;
            double got = dtype == MX_F64 ? ((const double *)dst)[x] : (double)((const float *)dst)[x];
            cr_assert(fabsl((long double)got - sum) <= (long double)epsilon * fabsl(sum), "%s", s->name);
        }
    free(f.memory);
}

Test(stencil, plain_is_the_weighted_sum_of_the_neighbours) {
    for (const struct mx_stencil *s = mx_stencils; s->name != NULL; s++)
        for (int dtype = 0; dtype < 2; dtype++) is_weighted_sum(s, dtype);
}

/* c + 6 f H_h + 12 e + 8 k = 1: a constant field stays as it is. points = number of weights that are not 0.
 */
Test(stencil, default_weights_sum_to_one) {
    for (const struct mx_stencil *s = mx_stencils; s->name != NULL; s++) {
        double sum = 0;
        int points = 0;
        for (int dz = -s->h; dz <= s->h; dz++)
            for (int dy = -s->h; dy <= s->h; dy++)
                for (int dx = -s->h; dx <= s->h; dx++) {
                    sum += weight(s, dx, dy, dz);
                    points += weight(s, dx, dy, dz) != 0;
                }
        cr_assert(fabs(sum - 1) < 1e-12, "%s: weights sum to %.17g", s->name, sum);
        cr_assert_eq(points, s->points, "%s", s->name);
    }
}

Test(stencil, find_by_name) {
    cr_assert_str_eq(mx_stencil_find("edge19")->name, "edge19");
    cr_assert_eq(mx_stencil_find("star49")->h, 8);
    cr_assert_null(mx_stencil_find("star8"));
}

/* A kernel asks for its share with every strip, and for all of the list by the end of the call. */
Test(stencil, kernels_ask_for_what_comes_next) {
    static double cells[2][10][12 * 40], list[700];
    for (const struct mx_stencil *s = mx_stencils; s->name != NULL; s++) {
        const char *isa;
        mx_kernel_fn *kernel = mx_stencil_kernel(s, MX_F64, &isa);
        if (strcmp(isa, "plain") == 0 || s->h > 2) continue;
        const char *src[8];
        char *dst[3];
        for (int z = 0; z < 3 + 2 * s->h; z++) src[z] = (const char *)&cells[0][z][s->h * 40];
        for (int z = 0; z < 3; z++) dst[z] = (char *)&cells[1][z][s->h * 40];
        const struct mx_ahead_run run[] = {
            {(const char *)list, 8}, {(const char *)(list + 20), 3000}, {(const char *)(list + 600), 64}};
        struct mx_ahead ahead = {.run = run, .end = run + 3, .bytes_per_cell = 3072.0 / (3 * 7 * 30)};
        struct mx_patch patch = {.dst = dst[0],
                                 .src = src,
                                 .row_pitch_bytes = 40 * 8,
                                 .rows = 7,
                                 .h = s->h,
                                 .nx = 30,
                                 .x0 = s->h,
                                 .x1 = 30 + s->h,
                                 .planes = 3,
                                 .dst_planes = dst,
                                 .ahead = &ahead};
        kernel(&patch, s->coef);
        cr_expect(ahead.run == ahead.end || (ahead.run == run + 2 && ahead.done == 0),
                  "%s: %td runs, %lld bytes", s->name, ahead.run - run, (long long)ahead.done);
    }
}

Test(stencil, asking_stays_within_the_runs) {
    static char bytes[4096];
    const struct mx_ahead_run run[] = {{bytes, 100}, {bytes + 1000, 1}, {bytes + 2000, 640}};
    struct mx_ahead ahead = {.run = run, .end = run + 3, .bytes_per_cell = 1};
    int64_t asked = 0;
    for (int cells = 10; ahead.run < ahead.end; asked += cells) {
        cr_assert(asked < 2000);
        cr_expect(ahead.done < ahead.run->bytes);
        mx_ahead_ask(&ahead, cells);
    }
    cr_expect(asked >= 741 - 64 && asked <= 741 + 10, "%lld", (long long)asked);
    mx_ahead_ask(&ahead, 1000);
    cr_expect(ahead.run == ahead.end);
}
