/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/sides.h"
#include "machine/minmax.h"

#include <errno.h>
#include <math.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const side_names[] = {"fixed", "mirror", "periodic", "neighbour"};
enum { SIDES = 3 };

static int side_find(const char *from, size_t length) {
    for (int i = 0; i < SIDES; i++)
        if (strlen(side_names[i]) == length && memcmp(side_names[i], from, length) == 0) return i;
    return -1;
}

int mx_sides_parse(const char *text, mx_why *why, struct mx_sides *sides) {
    if (text[0] < 'x' || text[0] > 'z' || text[1] != '=')
        return mx_fail(
            why, -EINVAL,
            "side '%s' names no axis: begin it with x=, y= or z=, such as x=periodic or z=fixed,mirror",
            text);
    const char *first = text + 2, *comma = strchr(first, ','), *second = comma != NULL ? comma + 1 : first;
    const size_t length[2] = {comma != NULL ? (size_t)(comma - first) : strlen(first), strlen(second)};
    const int side[2] = {side_find(first, length[0]), side_find(second, length[1])};
    for (int i = 0; i < 2; i++)
        if (side[i] < 0)
            return mx_fail(
                why, -EINVAL,
                "side '%.*s' of '%s' is not known; a side is fixed, mirror or periodic, and two of "
                "them have a comma between them: z=fixed,mirror",
                (int)length[i], i == 0 ? first : second, text);
    if ((side[0] == MX_SIDE_PERIODIC) != (side[1] == MX_SIDE_PERIODIC))
        return mx_fail(why, -EINVAL,
                       "side '%s' is periodic at one end only; both ends are or none is: %c=periodic", text,
                       text[0]);
    for (int i = 0; i < 2; i++) sides->side[text[0] - 'x'][i] = (uint8_t)side[i];
    return 0;
}

int mx_sides_read(const char *const *word, int32_t n, mx_why *why, struct mx_sides *sides) {
    struct mx_sides read = *sides;
    const char *named[3] = {NULL, NULL, NULL};
    for (int32_t i = 0; i < n; i++) {
        const struct mx_sides before = read;
        int err = mx_sides_parse(word[i], why, &read);
        if (err < 0) return err;
        const int d = word[i][0] - 'x';
        if (named[d] != NULL && memcmp(before.side[d], read.side[d], sizeof read.side[d]) != 0)
            return mx_fail(why, -EINVAL,
                           "the sides in %c are given twice, as '%s' and as '%s'; leave one of them out",
                           'x' + d, named[d], word[i]);
        named[d] = word[i];
    }
    return *sides = read, 0;
}

const char *mx_sides_text(const struct mx_sides *sides, char text[MX_SIDES_TEXT]) {
    size_t at = 0;
    text[0] = 0;
    for (int d = 0; d < 3; d++) {
        const uint8_t *side = sides->side[d];
        if (mx_sides_fixed(sides, d)) continue;
        const bool alike = side[0] == side[1];
        at += (size_t)snprintf(text + at, MX_SIDES_TEXT - at, "%s%c=%s%s%s", at > 0 ? " " : "", 'x' + d,
                               side_names[side[0]], alike ? "" : ",", alike ? "" : side_names[side[1]]);
    }
    return text;
}

int mx_sides_check(const struct mx_sides *sides, const struct mx_problem *p, mx_why *why) {
    for (int d = 0; d < 3; d++) {
        const int64_t n = mx_extent_of(p, d);
        if (mx_sides_fixed(sides, d) || n >= p->h) continue;
        const uint8_t *side = sides->side[d];
        return mx_fail(
            why, -EINVAL,
            "the grid has %lld cells in %c, and a %s side copies the %d nearest (the radius); make it "
            "%d cells or more, or the side fixed",
            (long long)n, 'x' + d, side_names[side[0] != MX_SIDE_FIXED ? side[0] : side[1]], p->h, p->h);
    }
    return 0;
}

/* The frame cells at `end` whose sources lie in `cells`: sources s run against the frame's cells (mirror: f =
 * sum - s) or with them (periodic: f = s - shift). */
static struct mx_cells frame_of(enum mx_side side, int end, int64_t n, int32_t h, struct mx_cells c) {
    const int64_t f0 = end == 0 ? 0 : n + h, f1 = f0 + h;
    struct mx_cells f = {0, 0};
    if (side == MX_SIDE_MIRROR) {
        const int64_t sum = end == 0 ? 2 * h - 1 : 2 * (n + h) - 1;
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

void mx_sides_x_frame(const struct mx_sides *sides, const struct mx_problem *p, struct mx_cells cells,
                      struct mx_cells out[2]) {
    for (int end = 0; end < 2; end++)
        out[end] = frame_of((enum mx_side)sides->side[MX_DIM_X][end], end, p->nx, p->h, cells);
}

int mx_sides_x_copies(const struct mx_sides *sides, int64_t nx, int32_t h, struct mx_cells cells,
                      struct mx_x_copy out[2]) {
    int n = 0;
    for (int end = 0; end < 2; end++) {
        const enum mx_side side = (enum mx_side)sides->side[MX_DIM_X][end];
        if (side == MX_SIDE_FIXED) continue;
        const struct mx_cells f = frame_of(side, end, nx, h, cells);
        if (f.x0 >= f.x1) continue;
        const int64_t sum = end == 0 ? 2 * h - 1 : 2 * (nx + h) - 1, shift = end == 0 ? nx : -nx;
        out[n++] = side == MX_SIDE_MIRROR ? (struct mx_x_copy){f.x0, f.x1, sum - f.x0, -1}
                                          : (struct mx_x_copy){f.x0, f.x1, f.x0 + shift, 1};
    }
    return n;
}

void mx_sides_plane(const struct mx_sides *sides, const struct mx_problem *p, const struct mx_layout *l,
                    int array, char *plane) {
    const int64_t rows = p->ny + 2 * p->h;
    struct mx_x_copy copy[2];
    const int n = mx_sides_x_copies(sides, p->nx, p->h, (struct mx_cells){p->h, p->nx + p->h}, copy);
    for (int32_t f = 0; f < mx_field_count(p, array) && n > 0; f++)
        for (int64_t y = 0; y < rows; y++)
            mx_sides_copy_x(copy, n, mx_dtype_bytes(mx_field_dtype(p, array, f)),
                            plane + y * l->row_pitch_bytes + l->field_offset_bytes[array][f]);
    for (int64_t y = 0; y < rows; y++) {
        const int64_t from = mx_side_source(sides->side[MX_DIM_Y], p->ny, p->h, y);
        if (from != y)
            memcpy(plane + y * l->row_pitch_bytes, plane + from * l->row_pitch_bytes, (size_t)l->row_bytes);
    }
}

/* ---- inputs without a frame */

int mx_frame_parse(const char *text, mx_why *why, struct mx_frame *out) {
    static const char *const names[] = {"included", "edge", "mirror", "periodic"};
    for (int i = 0; i < MX_FRAME_VALUE; i++)
        if (strcmp(text, names[i]) == 0) return *out = (struct mx_frame){(enum mx_frame_kind)i, 0}, 0;
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != 0 || text[0] == ' ')
        return mx_fail(why, -EINVAL,
                       "frame '%s' is not known; take included, edge, mirror, periodic or a value", text);
    *out = (struct mx_frame){MX_FRAME_VALUE, value};
    return 0;
}

int mx_frame_check(const struct mx_frame *frame, const char *name, enum mx_dtype dtype, mx_why *why) {
    static const double limit[MX_DTYPES][2] = {
        [MX_U8] = {0, 255}, [MX_U16] = {0, 65535}, [MX_I16] = {-32768, 32767}};
    const double v = frame->value;
    if (frame->kind != MX_FRAME_VALUE || dtype == MX_F64) return 0;
    if (dtype == MX_F32) {
        if (isfinite(v) && !isfinite((float)v))
            return mx_fail(why, -EINVAL,
                           "frame value %.17g is beyond the cells of %s, which are f32 (up to 3.4e38)", v,
                           name);
        return 0;
    }
    if (!(v >= limit[dtype][0] && v <= limit[dtype][1]) || v != floor(v))
        return mx_fail(why, -EINVAL,
                       "frame value %.17g is none of the cells of %s, which are %s: whole numbers "
                       "from %.0f to %.0f",
                       v, name, mx_dtype_name(dtype), limit[dtype][0], limit[dtype][1]);
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

static void fill(char *to, int64_t from, int64_t end, enum mx_dtype dtype, double value) {
    for (int64_t x = from; x < end; x++) {
        if (dtype == MX_F64) ((double *)to)[x] = value;
        if (dtype == MX_F32) ((float *)to)[x] = (float)value;
        if (dtype == MX_U8) ((uint8_t *)to)[x] = (uint8_t)value;
        if (dtype == MX_U16) ((uint16_t *)to)[x] = (uint16_t)value;
        if (dtype == MX_I16) ((int16_t *)to)[x] = (int16_t)value;
    }
}

void mx_frame_row(const struct mx_frame *frame, int64_t nx, int32_t h, enum mx_dtype dtype,
                  const char *file_row, char *row) {
    const int64_t e = mx_dtype_bytes(dtype), all = nx + 2 * h;
    if (file_row == NULL) {
        fill(row, 0, all, dtype, frame->value);
        return;
    }
    if (frame->kind == MX_FRAME_INCLUDED) {
        memmove(row, file_row, (size_t)(all * e));
        return;
    }
    memmove(row + h * e, file_row, (size_t)(nx * e));
    if (frame->kind == MX_FRAME_VALUE) {
        fill(row, 0, h, dtype, frame->value);
        fill(row, nx + h, all, dtype, frame->value);
        return;
    }
    for (int64_t x = 0; x < all; x = x + 1 == h ? nx + h : x + 1)
        memcpy(row + x * e, row + (h + mx_frame_source(frame, nx, h, x)) * e, (size_t)e);
}

void mx_side_extend(const uint8_t side[2], int64_t n, int32_t h, int64_t *from, int64_t *end) {
    int64_t lo = *from, hi = *end, copy[2];
    for (int64_t i = *from; i < *end; i++) {
        if (i >= 2 * h && i < n) { /* those between the ends have no copies */
            i = mx_min(n, *end) - 1;
            continue;
        }
        for (int k = mx_side_copies(side, n, h, i, copy); k-- > 0;) {
            lo = mx_min(lo, copy[k]);
            hi = mx_max(hi, copy[k] + 1);
        }
    }
    *from = lo;
    *end = hi;
}
