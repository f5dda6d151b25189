/* SPDX-License-Identifier: BSD-3-Clause */
/* Which cells are not finite, how many rows have, and which is the first: against isfinite, in every position
 * of a vector and of a row with its frame. */
#include "system/finite.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <memext/memext.h>
#include <string.h>

enum { MOST = 70 };

static double from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float from_bits_32(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

Test(finite, numbers) {
    const double f64[] = {0,
                          -0.0,
                          1,
                          -1,
                          DBL_MAX,
                          -DBL_MAX,
                          DBL_MIN,
                          5e-324,
                          -5e-324,
                          INFINITY,
                          -INFINITY,
                          NAN,
                          -NAN,
                          from_bits(UINT64_C(0x7ff0000000000001)),
                          from_bits(UINT64_C(0xfff8dead00000000)),
                          from_bits(UINT64_C(0x7fefffffffffffff))};
    const float f32[] = {0,
                         -0.0f,
                         1,
                         -1,
                         FLT_MAX,
                         -FLT_MAX,
                         FLT_MIN,
                         1e-45f,
                         -1e-45f,
                         INFINITY,
                         -INFINITY,
                         NAN,
                         -NAN,
                         from_bits_32(UINT32_C(0x7f800001)),
                         from_bits_32(UINT32_C(0xffc0dead)),
                         from_bits_32(UINT32_C(0x7f7fffff))};
    for (size_t i = 0; i < sizeof f64 / sizeof *f64; i++) {
        cr_expect_eq(mx_count_nonfinite(&f64[i], 1, MX_F64), !isfinite(f64[i]), "%a", f64[i]);
        cr_expect_eq(mx_count_nonfinite(&f32[i], 1, MX_F32), !isfinite(f32[i]), "%a", (double)f32[i]);
    }
}

/* Of up to MOST cells, from any cell on. */
Test(finite, every_place_in_a_row) {
    double f64[MOST + 3];
    float f32[MOST + 3];
    const uint16_t whole[2] = {0xffff, 0xffff};
    for (int n = 0; n <= MOST; n++)
        for (int from = 0; from < 3; from++)
            for (int odd = -1; odd < n; odd++) {
                for (int i = 0; i < MOST + 3; i++) {
                    const bool inside = i >= from && i < from + n; /* beside them all are */
                    f64[i] = inside && i - from != odd ? i : odd % 2 != 0 ? (double)NAN : (double)-INFINITY;
                    f32[i] = (float)f64[i];
                }
                cr_assert_eq(mx_count_nonfinite(f64 + from, n, MX_F64), odd >= 0);
                cr_assert_eq(mx_count_nonfinite(f32 + from, n, MX_F32), odd >= 0);
                cr_assert_eq(mx_count_nonfinite(f64, from, MX_F64), from);
            }
    cr_assert_eq(mx_count_nonfinite(whole, 2, MX_U16), 0);
}

/* A grid of 5 x 4 x 3 cells, h = 2, of which only the interior counts; planes handed over in two parts, from
 * the last on. */
static struct mx_nonfinite look(const double *grid, const struct mx_problem *p) {
    struct mx_nonfinite found = {.cells = 0};
    const struct mx_layout l = {.row_pitch_bytes = 9 * 8};
    for (int64_t z = 6; z >= 0; z--) {
        const char *plane = (const char *)(grid + z * 8 * 9);
        struct mx_state_rows rows = {
            .problem = p, .layout = &l, .z = z, .row_pitch_bytes = l.row_pitch_bytes};
        rows.y0 = 3, rows.y1 = 8, rows.rows = plane + 3 * l.row_pitch_bytes;
        mx_nonfinite_rows(&rows, &found);
        rows.y0 = 0, rows.y1 = 3, rows.rows = plane;
        mx_nonfinite_rows(&rows, &found);
    }
    return found;
}

Test(finite, rows_with_a_frame) {
    static double grid[7][8][9];
    const struct mx_problem p = {.nx = 5, .ny = 4, .nz = 3, .h = 2, .dtype = MX_F64, .first_plane = 10};
    for (int z = 0; z < 7; z++)
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 9; x++)
                if (z < 2 || z >= 5 || y < 2 || y >= 6 || x < 2 || x >= 7) grid[z][y][x] = NAN;
    cr_assert_eq(look(&grid[0][0][0], &p).cells, 0);
    grid[4][5][6] = NAN;
    grid[3][5][2] = INFINITY;
    grid[3][4][6] = -INFINITY;
    grid[3][4][5] = NAN;
    struct mx_nonfinite found = look(&grid[0][0][0], &p);
    cr_assert_eq(found.cells, 4);
    cr_assert(found.x == 3 && found.y == 2 && found.z == 11 && found.field == 0 && found.array == 0);
    const struct mx_nonfinite before = {.cells = 2, .x = 4, .y = 0, .z = 11}, none = {.cells = 0};
    mx_nonfinite_add(&found, &none);
    cr_assert(found.cells == 4 && found.x == 3);
    mx_nonfinite_add(&found, &before);
    cr_assert(found.cells == 6 && found.x == 4 && found.y == 0 && found.z == 11);
}
