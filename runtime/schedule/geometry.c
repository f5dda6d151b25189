/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule/geometry.h"

#include <stddef.h>

/* ------------------------------------------------------------------ time-skewed blocks */

struct mx_cut mx_skew_cut(int64_t n, int64_t b, int64_t h) {
    return (struct mx_cut){n, mx_min(b, n), h, b >= n ? 1 : mx_ceil_div64(n + h, b), {false, false}};
}

struct mx_range mx_skew_window(const struct mx_cut *c, int64_t j, int64_t level) {
    int64_t back = (level - 1) * c->h, first = c->h, end = c->n + c->h;
    return (struct mx_range){j == 0 ? first : mx_max(first, j * c->b - back),
                             j == c->count - 1 ? end : mx_min(end, (j + 1) * c->b - back)};
}

struct mx_range mx_skew_span(const struct mx_cut *c, int64_t j, int64_t levels) {
    return (struct mx_range){j == 0 ? 0 : mx_max(0, j * c->b - levels * c->h),
                             j == c->count - 1 ? c->n + 2 * c->h : (j + 1) * c->b + c->h};
}

struct mx_range mx_skew_shared_before(const struct mx_cut *c, int64_t j, int64_t levels) {
    int64_t lo = mx_skew_span(c, j, levels).lo;
    return (struct mx_range){lo, j == 0 ? lo : j * c->b + c->h};
}

struct mx_range mx_skew_shared_after(const struct mx_cut *c, int64_t j, int64_t levels) {
    int64_t hi = mx_skew_span(c, j, levels).hi;
    return j == c->count - 1 ? (struct mx_range){hi, hi} : mx_skew_shared_before(c, j + 1, levels);
}

struct mx_range mx_skew_handed(const struct mx_cut *c, int64_t j, int64_t levels) {
    struct mx_range r = mx_skew_shared_before(c, j, levels);
    if (j > 0) r.hi -= MX_REREAD_HALOS * c->h;
    return r;
}

struct mx_range mx_skew_read(const struct mx_cut *c, int64_t j, int64_t levels) {
    return (struct mx_range){mx_skew_handed(c, j, levels).hi, mx_skew_span(c, j, levels).hi};
}

struct mx_range mx_skew_written(const struct mx_cut *c, int64_t j, int64_t levels) {
    return (struct mx_range){mx_skew_span(c, j, levels).lo, mx_skew_shared_after(c, j, levels).lo};
}

/* Spans are clipped at 0 where levels*h > j*b; `clipped` sums what that takes away over j = 1..count-1. */
int64_t mx_skew_shared_sum(const struct mx_cut *c, int64_t levels) {
    int64_t reach = levels * c->h, m = mx_min(c->count - 1, reach / c->b);
    int64_t clipped = m * reach - c->b * (m * (m + 1) / 2);
    return (c->count - 1) * (reach + c->h) - clipped;
}

int64_t mx_skew_span_sum(const struct mx_cut *c, int64_t levels) {
    return c->n + 2 * c->h + mx_skew_shared_sum(c, levels);
}

int64_t mx_skew_read_sum(const struct mx_cut *c) {
    return c->n + 2 * c->h + (c->count - 1) * MX_REREAD_HALOS * c->h;
}

/* The last block may be larger or smaller than the others, of which the last but one is clipped least. */
int64_t mx_skew_span_max(const struct mx_cut *c, int64_t levels) {
    int64_t last = mx_length(mx_skew_span(c, c->count - 1, levels));
    return c->count == 1 ? last : mx_max(last, mx_length(mx_skew_span(c, c->count - 2, levels)));
}

int64_t mx_skew_fixed(const struct mx_cut *c, int64_t levels) {
    return c->count == 1 ? c->n + 2 * c->h : c->b + levels * c->h + c->h;
}

int64_t mx_skew_offset(const struct mx_cut *c, int64_t j, int64_t levels) {
    return c->count == 1 ? 0 : levels * c->h - j * c->b;
}

/* ------------------------------------------------------------------ overlapped blocks */

struct mx_cut mx_lap_cut(int64_t n, int64_t b, int64_t h) {
    return (struct mx_cut){n, mx_min(b, n), h, mx_ceil_div64(n, mx_min(b, n)), {false, false}};
}

/* With ghost layers a halo goes on behind the ends of the grid. */
static void bounds(const struct mx_cut *c, int64_t g, int64_t *lo, int64_t *hi) {
    if (c->ghost[0]) *lo = c->h - g;
    if (c->ghost[1]) *hi = c->n + c->h + g;
}

/* Block j with a halo of g, kept inside [lo,hi). */
static struct mx_range lap(const struct mx_cut *c, int64_t j, int64_t g, int64_t lo, int64_t hi) {
    bounds(c, g, &lo, &hi);
    return (struct mx_range){mx_max(lo, j * c->b + c->h - g), mx_min(hi, (j + 1) * c->b + c->h + g)};
}

/* 0 + 1 + ... terms of max(0, a - i*b), i = 0..count-1 */
static int64_t ramp_sum(int64_t a, int64_t b, int64_t count) {
    int64_t m = a <= 0 ? 0 : mx_min(count, mx_ceil_div64(a, b));
    return m * a - b * (m * (m - 1) / 2);
}

/* Sum of lap() over j: unclipped length, less what sticks out below block 0.. and above block count-1.. */
static int64_t lap_sum(const struct mx_cut *c, int64_t g, int64_t lo, int64_t hi) {
    bounds(c, g, &lo, &hi);
    int64_t below = ramp_sum(lo - (c->h - g), c->b, c->count);
    int64_t above = ramp_sum(c->count * c->b + c->h + g - hi, c->b, c->count);
    return c->count * (c->b + 2 * g) - below - above;
}

struct mx_range mx_lap_window(const struct mx_cut *c, int64_t j, int64_t level, int64_t levels) {
    return lap(c, j, (levels - level) * c->h, c->h, c->n + c->h);
}

struct mx_range mx_lap_span(const struct mx_cut *c, int64_t j, int64_t levels) {
    return lap(c, j, levels * c->h, 0, c->n + 2 * c->h);
}

int64_t mx_lap_window_sum(const struct mx_cut *c, int64_t level, int64_t levels) {
    return lap_sum(c, (levels - level) * c->h, c->h, c->n + c->h);
}

int64_t mx_lap_span_sum(const struct mx_cut *c, int64_t levels) {
    return lap_sum(c, levels * c->h, 0, c->n + 2 * c->h);
}

/* The middle block reaches farthest to both sides; with two or three blocks it is an outer one, and with
 * ghosts at one end alone one at that end. */
int64_t mx_lap_span_max(const struct mx_cut *c, int64_t levels) {
    const int64_t middle = (c->count - 1) / 2,
                  some[] = {0, middle - 1, middle, middle + 1, middle + 2, c->count - 2, c->count - 1};
    int64_t best = 0;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        if (some[i] >= 0 && some[i] < c->count)
            best = mx_max(best, mx_length(mx_lap_span(c, some[i], levels)));
    return best;
}

int64_t mx_lap_beyond_sum(const struct mx_cut *c, int end, int64_t levels) {
    const int64_t g = levels * c->h, last = c->n - (c->count - 1) * c->b; /* cells of the last block */
    if (!c->ghost[end]) return 0;
    if (end == 0) return ramp_sum(g, c->b, c->count);
    return mx_max(g, 0) + ramp_sum(g - last, c->b, c->count - 1);
}

/* ------------------------------------------------------------------ y-strips */

struct mx_cut mx_strip_cut(int64_t n, int64_t b, int64_t h) {
    b = mx_min(b, n);
    return (struct mx_cut){n, b, h, mx_ceil_div64(n, b), {false, false}};
}

struct mx_range mx_strip_loaded(const struct mx_cut *c, int64_t j) {
    return (struct mx_range){j == 0 ? 0 : j * c->b + c->h, mx_skew_span(c, j, 0).hi};
}

/* Strip j stores from where strip j-1 ended; windows that have left the domain leave the frame to strip 0. */
struct mx_range mx_strip_stored(const struct mx_cut *c, int64_t j, int64_t levels) {
    struct mx_range w = mx_skew_window(c, j, levels);
    return (struct mx_range){j == 0 ? 0 : w.lo, j == c->count - 1 ? c->n + 2 * c->h : mx_max(c->h, w.hi)};
}

/* Level l adds the 2h rows below those of level l-2, which the same array holds already, frame rows among
 * them; so nothing is written that another level still reads. */
struct mx_range mx_strip_seam(const struct mx_cut *c, int64_t j, int64_t level) {
    int64_t cut = j * c->b, lo = mx_max(0, cut - (level + 1) * c->h);
    if (level == 0) return (struct mx_range){lo, cut + c->h};
    if (level == 1) return (struct mx_range){lo, mx_max(c->h, cut)};
    return (struct mx_range){lo, mx_max(lo, cut - (level - 1) * c->h)};
}
