/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/finite.h"

#include <string.h>

/* A number is none where all bits of its exponent are set: one more there, and the sign is reached. */
#define EXPONENT_64 UINT64_C(0x7ff0000000000000)
#define ONE_MORE_64 UINT64_C(0x0010000000000000)
#define EXPONENT_32 UINT32_C(0x7f800000)
#define ONE_MORE_32 UINT32_C(0x00800000)

static int64_t odd_64(const char *cells, int64_t n) {
    uint64_t some = 0, c;
    for (int64_t i = 0; i < n; i++) {
        memcpy(&c, cells + i * 8, sizeof c);
        some += ((c & EXPONENT_64) + ONE_MORE_64) >> 63;
    }
    return (int64_t)some;
}

/* Of so few that their number fits. */
static int64_t odd_32(const char *cells, int64_t n) {
    uint32_t some = 0, c;
    for (int64_t i = 0; i < n; i++) {
        memcpy(&c, cells + i * 4, sizeof c);
        some += ((c & EXPONENT_32) + ONE_MORE_32) >> 31;
    }
    return some;
}

int64_t mx_count_nonfinite(const void *cells, int64_t n, enum mx_dtype dtype) {
    enum { MOST = 1 << 30 };
    const char *at = cells;
    int64_t odd = 0;
    if (dtype == MX_F64) return odd_64(at, n);
    for (int64_t i = 0; i < n && dtype == MX_F32; i += MOST)
        odd += odd_32(at + i * 4, n - i < MOST ? n - i : MOST);
    return odd;
}

static bool is_before(const struct mx_nonfinite *a, const struct mx_nonfinite *b) {
    if (a->z != b->z) return a->z < b->z;
    if (a->y != b->y) return a->y < b->y;
    if (a->x != b->x) return a->x < b->x;
    return a->array != b->array ? a->array < b->array : a->field < b->field;
}

void mx_nonfinite_add(struct mx_nonfinite *found, const struct mx_nonfinite *more) {
    if (more->cells == 0) return;
    const int64_t cells = found->cells + more->cells;
    if (found->cells == 0 || is_before(more, found)) *found = *more;
    found->cells = cells;
}

/* The first cell of a row that has some. */
static int64_t first_of(const char *at, enum mx_dtype dtype) {
    int64_t x = 0;
    while (mx_count_nonfinite(at + x * mx_dtype_bytes(dtype), 1, dtype) == 0) x++;
    return x;
}

void mx_nonfinite_cells(const void *cells, int64_t n, enum mx_dtype dtype, const struct mx_nonfinite *where,
                        struct mx_nonfinite *found) {
    struct mx_nonfinite row = *where;
    row.cells = mx_count_nonfinite(cells, n, dtype);
    if (row.cells == 0) return;
    row.x += first_of(cells, dtype);
    mx_nonfinite_add(found, &row);
}

void mx_nonfinite_rows(const struct mx_state_rows *rows, struct mx_nonfinite *found) {
    struct mx_field_row row = {0};
    while (mx_next_field_row(rows, &row)) {
        const struct mx_nonfinite where = {.array = row.array, .field = row.field, .y = row.y, .z = row.z};
        mx_nonfinite_cells(row.cells, row.n, row.dtype, &where, found);
    }
}
