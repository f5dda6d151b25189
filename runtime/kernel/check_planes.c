/* SPDX-License-Identifier: BSD-3-Clause */
/* check_planes.c - whether calls for several planes compute what calls for one plane do. */
#include "kernel/check.h"
#include "kernel/sample.h"
#include "machine/minmax.h"

#include <errno.h>
#include <math.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows with and without room for blocks, more of them than a pass has, and an odd number of planes. Grids of
 * two dimensions have planes of one row. */
enum { SIZES = 2, ROWS_HERE = 5, PLANES_HERE = 7 };
static const int64_t row_cells[SIZES] = {150, 7};

static bool same_cell(enum mx_dtype dtype, const char *a, const char *b) {
    return memcmp(a, b, (size_t)mx_dtype_bytes(dtype)) == 0 ||
           (isnan(mx_cell_load(dtype, a, 0)) && isnan(mx_cell_load(dtype, b, 0)));
}

/* In a field of the array written, frames included. */
static bool same_field(const struct mx_sample *t, const struct mx_field_of *field, int64_t offset,
                       const char *got, const char *want) {
    const int64_t e = mx_dtype_bytes(field->dtype);
    for (int64_t row = 0; row < t->rows * t->planes; row++)
        for (int64_t x = 0; x < t->n[0] + 2 * t->h; x++) {
            const int64_t at = row * t->row_pitch + offset + x * e;
            if (!same_cell(field->dtype, got + at, want + at)) return false;
        }
    return true;
}

static int check_level(const struct mx_system *s, const struct mx_sample *t, int level, char *want,
                       mx_why *why) {
    struct mx_system single = *s;
    const int written = 1 - (level & 1);
    single.deep_planes = 1;
    for (int round = 0; round < ROUNDS; round++) {
        mx_sample_fill(t, s, mx_check_ranges[round]);
        mx_sample_level(t, &single, level, ROWS_HERE);
        memcpy(want, t->array[written], (size_t)mx_sample_array_bytes(t));
        mx_sample_fill(t, s, mx_check_ranges[round]);
        mx_sample_level(t, s, level, ROWS_HERE);
        for (int32_t f = 0; f < s->n_field[written]; f++)
            if (!same_field(t, &s->field[written][f], t->offset[written][f], t->array[written], want))
                return mx_fail(why, -EINVAL,
                               "the kernel \"%s\" gives results that depend on how many %ss a call "
                               "computes: %s changes. Look for variables without a value, or set CC to "
                               "another compiler",
                               s->name, mx_plane_word(s->flat), s->field[written][f].name);
    }
    return 0;
}

static int check_size(const struct mx_system *s, const int64_t n[3], const struct mx_kernel_grid *grid,
                      mx_why *why) {
    struct mx_sample sample;
    int err = 0;
    if (mx_sample_make(s, n, &sample) < 0)
        return mx_fail(why, -ENOMEM, "no memory to try out the kernel \"%s\"", s->name);
    memcpy(sample.grid, grid->n, sizeof sample.grid);
    char *want = malloc((size_t)mx_sample_array_bytes(&sample));
    if (want == NULL) err = mx_fail(why, -ENOMEM, "no memory to try out the kernel \"%s\"", s->name);
    for (int level = 0; level < (int)mx_system_levels(s) && err == 0; level++)
        err = check_level(s, &sample, level, want, why);
    free(want);
    mx_sample_free(&sample);
    return err;
}

int mx_check_planes(const struct mx_system *s, const struct mx_kernel_grid *grid,
                    struct mx_isolated *report) {
    int err = 0;
    for (int i = 0; i < SIZES && err == 0 && s->deep_planes > 1; i++) {
        const int64_t n[3] = {mx_min(row_cells[i], grid->n[0]), mx_min(ROWS_HERE, grid->n[1]),
                              mx_min(PLANES_HERE, grid->n[2])};
        snprintf(report->stage, sizeof report->stage,
                 " when it computes %lld planes of %lld rows of %lld cells", (long long)n[2], (long long)n[1],
                 (long long)n[0]);
        err = check_size(s, n, grid, &report->why);
    }
    return err;
}
