/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/sides.h"
#include "machine/minmax.h"

#include <errno.h>
#include <math.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what copies what, in one dimension */

int64_t mx_side_source(const uint8_t side[2], int64_t n, int32_t h, int64_t i) {
    const bool high = i >= n + h;
    if (i >= h && !high) return i;
    const int64_t beyond = high ? i - n - h : h - 1 - i; /* from 0, outwards */
    int64_t inward;
    switch (side[high]) {
    case MX_SIDE_MIRROR:
    case MX_SIDE_ODD:
        inward = beyond;
        break;
    case MX_SIDE_MIRROR_NODE:
    case MX_SIDE_ODD_NODE:
        inward = beyond + 1;
        break;
    case MX_SIDE_EDGE:
        inward = 0;
        break;
    case MX_SIDE_PERIODIC:
        inward = n - 1 - beyond;
        break;
    default:
        return i;
    }
    return high ? n + h - 1 - inward : h + inward;
}

int mx_side_copies(const uint8_t side[2], int64_t n, int32_t h, int64_t i, int64_t out[MX_SIDE_COPIES]) {
    const int64_t a = i - h, b = n + h - 1 - i; /* cells before and behind it */
    int count = 0;
    if (a < 0 || b < 0 || (a > h && b > h)) return 0;
    for (int64_t f = 0; f < h; f++) {
        if (mx_side_source(side, n, h, f) == i) out[count++] = f;
        if (mx_side_source(side, n, h, n + h + f) == i) out[count++] = n + h + f;
    }
    return count;
}

static void extend(const uint8_t side[2], int64_t n, int32_t h, int64_t from, int64_t end, int64_t *lo,
                   int64_t *hi) {
    int64_t copy[MX_SIDE_COPIES];
    for (int64_t i = from; i < end; i++) {
        if (i > 2 * h && i < n - 1) { /* those between the ends have no copies */
            i = mx_min(n - 1, end) - 1;
            continue;
        }
        for (int k = mx_side_copies(side, n, h, i, copy); k-- > 0;) {
            *lo = mx_min(*lo, copy[k]);
            *hi = mx_max(*hi, copy[k] + 1);
        }
    }
}

/* The two ends have nothing to do with each other. */
void mx_sides_extend(const struct mx_sides *sides, int dim, int64_t n, int32_t h, int64_t *from,
                     int64_t *end) {
    int64_t lo = *from, hi = *end;
    for (int e = 0; e < 2; e++)
        for (int k = 0; k < MX_SIDE_KINDS; k++) {
            uint8_t side[2] = {MX_SIDE_FIXED, MX_SIDE_FIXED};
            if ((MX_SIDES_COPY & mx_sides_kinds(sides, dim, e)) >> k & 1) {
                side[e] = (uint8_t)k;
                extend(side, n, h, *from, *end, &lo, &hi);
            }
        }
    *from = lo;
    *end = hi;
}

/* Copies n integers, which are `step` apart in the source. Minus the lowest integer is the lowest integer. */
#define COPY_WHOLE(type)                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                        \
        const type v = ((const type *)from)[i * step];                                                       \
        ((type *)to)[i] = (type)(minus ? 0u - v : v);                                                        \
    }
static void copy_whole(char *to, const char *from, int64_t n, int64_t step, int64_t element, bool minus) {
    switch (element) {
    case 1:
        COPY_WHOLE(uint8_t)
        break;
    case 2:
        COPY_WHOLE(uint16_t)
        break;
    case 4:
        COPY_WHOLE(uint32_t)
        break;
    default:
        COPY_WHOLE(uint64_t)
    }
}

void mx_side_copy_x_whole(const struct mx_x_copy *c, enum mx_dtype dtype, char *row) {
    const int64_t element = mx_dtype_bytes(dtype);
    copy_whole(row + c->x0 * element, row + c->from * element, c->x1 - c->x0, c->step, element, c->minus);
}

void mx_side_copy(char *to, const char *from, int64_t bytes, enum mx_dtype dtype, bool minus) {
    if (!minus) {
        if (to != from) memcpy(to, from, (size_t)bytes);
    } else if (!mx_dtype_is_real(dtype)) {
        copy_whole(to, from, bytes / mx_dtype_bytes(dtype), 1, mx_dtype_bytes(dtype), true);
    } else if (dtype == MX_F64) {
        for (int64_t i = 0; i < bytes / 8; i++)
            ((uint64_t *)to)[i] = ((const uint64_t *)from)[i] ^ UINT64_C(1) << 63;
    } else {
        for (int64_t i = 0; i < bytes / 4; i++)
            ((uint32_t *)to)[i] = ((const uint32_t *)from)[i] ^ UINT32_C(1) << 31;
    }
}

/* ---- rows and their x frames */

/* Of images: frame cell f and its source s have f + s = sum. */
static bool is_image(uint8_t side, int end, int64_t n, int32_t h, int64_t *sum) {
    const bool node = (MX_SIDES_NODE >> side & 1) != 0;
    *sum = end == 0 ? 2 * h - 1 + node : 2 * (n + h) - 1 - node;
    return node || side == MX_SIDE_MIRROR || side == MX_SIDE_ODD;
}

/* The frame cells at `end` whose sources lie in `cells`, of images, periodic (f = s - shift) and others. */
static struct mx_cells frame_of(uint8_t side, int end, int64_t n, int32_t h, struct mx_cells c) {
    const int64_t f0 = end == 0 ? 0 : n + h, f1 = f0 + h;
    struct mx_cells f = {0, 0};
    int64_t sum;
    if (is_image(side, end, n, h, &sum)) {
        f = (struct mx_cells){sum - c.x1 + 1, sum - c.x0 + 1};
    } else if (side == MX_SIDE_PERIODIC) {
        const int64_t shift = end == 0 ? n : -n;
        f = (struct mx_cells){c.x0 - shift, c.x1 - shift};
    } else if (end == 0 ? c.x0 <= h && c.x1 > h : c.x1 >= n + h && c.x0 < n + h) {
        return (struct mx_cells){f0, f1};
    }
    f = (struct mx_cells){mx_max(f.x0, f0), mx_min(f.x1, f1)};
    return f.x0 < f.x1 ? f : (struct mx_cells){0, 0};
}

void mx_side_x_frame(const uint8_t side[2], int64_t nx, int32_t h, struct mx_cells cells,
                     struct mx_cells out[2]) {
    for (int end = 0; end < 2; end++) out[end] = frame_of(side[end], end, nx, h, cells);
}

int mx_side_x_copies(const uint8_t side[2], int64_t nx, int32_t h, struct mx_cells cells,
                     struct mx_x_copy out[2]) {
    int n = 0;
    for (int end = 0; end < 2; end++) {
        const struct mx_cells f = frame_of(side[end], end, nx, h, cells);
        int64_t sum;
        if (!mx_side_is_copy(side[end]) || f.x0 >= f.x1) continue;
        struct mx_x_copy *c = &out[n++];
        *c = (struct mx_x_copy){f.x0, f.x1, mx_side_source(side, nx, h, f.x0), 1,
                                mx_side_minus(side, nx, h, f.x0)};
        if (is_image(side[end], end, nx, h, &sum)) c->step = -1;
        if (side[end] == MX_SIDE_EDGE) c->step = 0;
    }
    return n;
}

void mx_side_zero_x(const uint8_t side[2], int64_t nx, int32_t h, struct mx_cells c, int64_t element_bytes,
                    char *row) {
    const int64_t ends[2] = {h, nx + h - 1};
    for (int end = 0; end < 2; end++)
        if (side[end] == MX_SIDE_ODD_NODE && ends[end] >= c.x0 && ends[end] < c.x1)
            memset(row + ends[end] * element_bytes, 0, (size_t)element_bytes);
}

/* What one field has in all rows. */
struct field_sides {
    struct mx_ends x, y, z;
    enum mx_dtype dtype;
    int64_t element, row_bytes;
    struct mx_cells inner;
    struct mx_x_copy copy[2];
    int copies;
};

static struct field_sides field_sides(const struct mx_sides *s, const struct mx_problem *p, int array,
                                      int32_t f) {
    struct field_sides o = {.x = mx_ends_of(s, array, f, MX_DIM_X),
                            .y = mx_ends_of(s, array, f, MX_DIM_Y),
                            .z = mx_ends_of(s, array, f, MX_DIM_Z),
                            .dtype = mx_field_dtype(p, array, f),
                            .inner = {p->h, p->nx + p->h}};
    o.element = mx_dtype_bytes(o.dtype);
    o.row_bytes = (p->nx + 2 * p->h) * o.element;
    o.copies = mx_side_x_copies(o.x.side, p->nx, p->h, o.inner, o.copy);
    return o;
}

/* A row that is row y of plane z, interior or of a fixed frame. */
static void own_row(const struct field_sides *o, const struct mx_problem *p, int64_t y, int64_t z,
                    char *row) {
    const int64_t h = p->h, hy = mx_halo_y(p);
    if (y >= hy && y < p->ny + hy && z >= h && z < p->nz + h) {
        mx_side_zero_x(o->x.side, p->nx, p->h, o->inner, o->element, row);
        if (mx_side_zero(o->y.side, p->ny, mx_halo_y(p), y) || mx_side_zero(o->z.side, p->nz, p->h, z))
            memset(row + h * o->element, 0, (size_t)(p->nx * o->element));
    }
    mx_sides_copy_x(o->copy, o->copies, o->dtype, row);
}

void mx_sides_row(const struct mx_sides *sides, const struct mx_problem *p, int array, int32_t field,
                  int64_t y, int64_t z, char *row) {
    const struct field_sides o = field_sides(sides, p, array, field);
    own_row(&o, p, mx_side_source(o.y.side, p->ny, mx_halo_y(p), y), mx_side_source(o.z.side, p->nz, p->h, z),
            row);
    const bool minus =
        mx_side_minus(o.y.side, p->ny, mx_halo_y(p), y) != mx_side_minus(o.z.side, p->nz, p->h, z);
    mx_side_copy(row, row, o.row_bytes, o.dtype, minus);
}

void mx_sides_plane(const struct mx_sides *sides, const struct mx_problem *p, const struct mx_layout *l,
                    int array, int64_t z, char *plane) {
    const int64_t rows = p->ny + 2 * mx_halo_y(p), pitch = l->row_pitch_bytes;
    for (int32_t f = 0; f < mx_field_count(p, array); f++) {
        const struct field_sides o = field_sides(sides, p, array, f);
        const int64_t from_z = mx_side_source(o.z.side, p->nz, p->h, z);
        const bool minus_z = mx_side_minus(o.z.side, p->nz, p->h, z);
        char *first = plane + l->field_offset_bytes[array][f];
        for (int64_t y = 0; y < rows; y++)
            if (mx_side_source(o.y.side, p->ny, mx_halo_y(p), y) == y) {
                own_row(&o, p, y, from_z, first + y * pitch);
                mx_side_copy(first + y * pitch, first + y * pitch, o.row_bytes, o.dtype, minus_z);
            }
        for (int64_t y = 0; y < rows; y++) {
            const int64_t from = mx_side_source(o.y.side, p->ny, mx_halo_y(p), y);
            if (from != y)
                mx_side_copy(first + y * pitch, first + from * pitch, o.row_bytes, o.dtype,
                             mx_side_minus(o.y.side, p->ny, mx_halo_y(p), y));
        }
    }
}

/* ---- inputs without a frame */

/* A number in digits alone that 64 bits hold. */
static bool take_digits(const char *text, uint64_t *bits) {
    const bool negative = text[0] == '-';
    const char *digit = text + (negative || text[0] == '+');
    uint64_t n = 0;
    if (digit[0] == 0) return false;
    for (; *digit != 0; digit++)
        if (*digit < '0' || *digit > '9' || __builtin_mul_overflow(n, UINT64_C(10), &n) ||
            __builtin_add_overflow(n, (uint64_t)(*digit - '0'), &n))
            return false;
    if (negative && n > (uint64_t)INT64_MAX + 1) return false;
    return *bits = negative ? 0 - n : n, true;
}

int mx_frame_parse(const char *text, mx_why *why, struct mx_frame *out) {
    static const char *const names[] = {"included", "edge", "mirror", "periodic"};
    for (int i = 0; i < MX_FRAME_VALUE; i++)
        if (strcmp(text, names[i]) == 0) return *out = (struct mx_frame){.kind = (enum mx_frame_kind)i}, 0;
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != 0 || text[0] == ' ')
        return mx_fail(why, -EINVAL,
                       "there is no frame '%s': choose included, edge, mirror, periodic or a value", text);
    struct mx_frame f = {.kind = MX_FRAME_VALUE, .value = value};
    f.whole = take_digits(text, &f.bits);
    *out = f;
    return 0;
}

/* Doubles do not have all integers beyond 2^53. So for 64-bit fields the digits of the number count. */
static int check_wide(const struct mx_frame *f, const char *name, enum mx_dtype dtype, mx_why *why) {
    const bool is_signed = mx_dtype_is_signed(dtype), negative = f->value < 0;
    const bool small = fabs(f->value) <= 0x1p53 && f->value == floor(f->value);
    const char *range =
        is_signed ? "-9223372036854775808 to 9223372036854775807" : "0 to 18446744073709551615";
    char value[40];
    snprintf(value, sizeof value, "%.17g", f->value);
    if (f->whole && negative) snprintf(value, sizeof value, "%lld", (long long)f->bits);
    if (f->whole && !negative) snprintf(value, sizeof value, "%llu", (unsigned long long)f->bits);
    if (!(f->whole || small) || (negative && !is_signed) ||
        (f->whole && !negative && is_signed && f->bits > INT64_MAX))
        return mx_fail(why, -EINVAL,
                       "frame value %s does not fit the cells of %s, which are %s: give an integer from %s, "
                       "and above 2^53 only its digits (no exponent or fraction)",
                       value, name, mx_dtype_name(dtype), range);
    return 0;
}

int mx_frame_check(const struct mx_frame *frame, const char *name, enum mx_dtype dtype, mx_why *why) {
    const double v = frame->value, lowest = mx_dtype_lowest(dtype), highest = mx_dtype_highest(dtype);
    if (frame->kind != MX_FRAME_VALUE || dtype == MX_F64) return 0;
    if (dtype == MX_F32) {
        if (isfinite(v) && !isfinite((float)v))
            return mx_fail(why, -EINVAL,
                           "frame value %.17g does not fit the cells of %s, which are f32 (up to 3.4e38)", v,
                           name);
        return 0;
    }
    if (mx_dtype_bytes(dtype) == 8) return check_wide(frame, name, dtype, why);
    if (!(v >= lowest && v <= highest) || v != floor(v))
        return mx_fail(
            why, -EINVAL,
            "frame value %.17g does not fit the cells of %s, which are %s: give an integer from %.0f to %.0f",
            v, name, mx_dtype_name(dtype), lowest, highest);
    return 0;
}

int64_t mx_frame_source(const struct mx_frame *frame, int64_t n, int32_t h, int64_t i) {
    const int64_t at = i - h;
    if (frame->kind == MX_FRAME_INCLUDED) return i;
    if (at >= 0 && at < n) return at;
    if (frame->kind == MX_FRAME_VALUE) return -1;
    if (frame->kind == MX_FRAME_EDGE) return at < 0 ? 0 : n - 1;
    if (frame->kind == MX_FRAME_PERIODIC) return mx_wrap(at, n);
    const int64_t turn = mx_wrap(at, 2 * n);
    return turn < n ? turn : 2 * n - 1 - turn;
}

static void fill(char *to, int64_t from, int64_t end, enum mx_dtype dtype, const struct mx_frame *f) {
    const bool wide = f->whole && mx_dtype_bytes(dtype) == 8 && !mx_dtype_is_real(dtype);
    for (int64_t x = from; x < end && wide; x++)
        memcpy(to + x * (int64_t)sizeof f->bits, &f->bits, sizeof f->bits);
    for (int64_t x = from; x < end && !wide; x++) mx_cell_store(dtype, to, x, f->value);
}

void mx_frame_row(const struct mx_frame *frame, int64_t nx, int32_t h, enum mx_dtype dtype,
                  const char *file_row, char *row) {
    const int64_t e = mx_dtype_bytes(dtype), all = nx + 2 * h;
    if (file_row == NULL) {
        fill(row, 0, all, dtype, frame);
        return;
    }
    if (frame->kind == MX_FRAME_INCLUDED) {
        memmove(row, file_row, (size_t)(all * e));
        return;
    }
    memmove(row + h * e, file_row, (size_t)(nx * e));
    if (frame->kind == MX_FRAME_VALUE) {
        fill(row, 0, h, dtype, frame);
        fill(row, nx + h, all, dtype, frame);
        return;
    }
    for (int64_t x = 0; x < all; x = x + 1 == h ? nx + h : x + 1)
        memcpy(row + x * e, row + (h + mx_frame_source(frame, nx, h, x)) * e, (size_t)e);
}
