/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/resident.h"
#include "engine/after.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096, OFF_THE_PAGE = 1536, SMALL_BYTES = 4 << 20 };

bool mx_resident_fits(int64_t rows, int64_t planes) {
    return rows >= 4 && rows % 2 == 0 && rows <= MX_TILE_MOST_ROWS &&
           (planes == 0 || (planes >= 4 && planes <= MX_TILE_MOST_PLANES));
}

/* Vectors beside a span that its first level in memory of its own has, from the span to the left. */
enum { SIDE_VECTORS = 2 };

bool mx_resident_fits_span(const struct mx_engine_options *o, int64_t span) {
    const struct mx_stencil *stencil = mx_stencil_find(o->problem->stencil);
    int64_t lanes;
    return stencil != NULL && mx_stencil_span(stencil, o->problem->dtype, &lanes) != NULL &&
           span % lanes == 0 && span >= SIDE_VECTORS * lanes &&
           (span + SIDE_VECTORS * lanes) * mx_dtype_bytes(o->problem->dtype) <= o->row_pitch_bytes;
}

int mx_resident_make(const struct mx_engine_options *o, int64_t rows, int64_t planes, int64_t span,
                     mx_why *why, struct mx_resident *out) {
    const struct mx_stencil *stencil = mx_stencil_find(o->problem->stencil);
    struct mx_resident r = {.rows = rows, .planes = planes, .row_pitch = o->row_pitch_bytes};
    *out = r;
    if (rows < 4 || rows % 2 != 0 || rows > MX_TILE_MOST_ROWS || planes < 4 || planes > MX_TILE_MOST_PLANES)
        return 0;
    r.kernel = span > 0 ? mx_stencil_span(stencil, o->problem->dtype, &r.lanes)
                        : mx_stencil_tile(stencil, o->problem->dtype);
    if (r.kernel == NULL) return 0;
    r.span = span;
    const int64_t plane = (rows - 2) * r.row_pitch;
    r.plane_pitch = (plane + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES + OFF_THE_PAGE;
    r.bytes = ((planes - 2) * r.plane_pitch + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    r.base =
        aligned_alloc(PAGE_BYTES, (size_t)(r.bytes * o->threads)); /* each thread touches its own first */
    if (r.base == NULL) return mx_fail(why, -ENOMEM, "no memory for the tiles of %d threads", o->threads);
    /* Of a row a span is in use, and huge pages would make all of it resident. */
    if (span > 0 && r.bytes > SMALL_BYTES) madvise(r.base, (size_t)(r.bytes * o->threads), MADV_NOHUGEPAGE);
    *out = r;
    return 0;
}

void mx_resident_free(struct mx_resident *r) { free(r->base); }

/* Rows and planes of the view, as the tile's plane that begins at row y. */
static struct mx_tile_rows in_view(const struct mx_resident *r, const struct mx_view *view, int array,
                                   int64_t y, int64_t z) {
    char *inner = mx_view_row(view, array, y, z);
    return (struct mx_tile_rows){inner - 2 * r->row_pitch, inner, inner + (r->rows - 2) * r->row_pitch};
}

/* Row `row` from -2 on of a plane. */
static char *row_of(const struct mx_tile_rows *p, int64_t rows, int64_t pitch, int64_t row) {
    if (row < 0) return p->below + (row + 2) * pitch;
    return row < rows - 2 ? p->inner + row * pitch : p->top + (row - rows + 2) * pitch;
}

/* Of the last level: what it read is where it was, for it was written to the view. */
static void take_norms(const struct mx_resident *r, const struct mx_work *work, const struct mx_view *view,
                       const struct mx_resident_level *l, const struct mx_tile_rows *src) {
    for (int64_t i = 0; i < r->planes; i++)
        for (int64_t j = 0; j < r->rows; j++) {
            const int64_t y = l->box.y0 + j, z = l->box.z0 + i;
            mx_after_box(l->norms, view, 1 - l->from, l->level, work->h, work->nx + work->h, y, y + 1, z,
                         z + 1, row_of(&src[i + 1], r->rows, r->row_pitch, j - 1));
        }
}

_Static_assert(MX_TILE_MOST_PLANES <= 64, "a bit each");

/* Of rows that are where the kernel has left them: in two pieces each plane. */
static void take_points(const struct mx_resident *r, enum mx_dtype dtype, const struct mx_resident_level *l,
                        const struct mx_tile_rows *dst) {
    const int64_t inner = r->rows - 2;
    const uint64_t some =
        mx_after_planes_with_points(l->points, l->box.y0, l->box.y0 + r->rows, l->box.z0, r->planes);
    for (int64_t i = 0; i < r->planes; i++) {
        if ((some >> i & 1) == 0) continue;
        char *const piece[2] = {dst[i].inner, dst[i].top};
        const int64_t rows[2] = {inner, 2};
        for (int k = 0; k < 2; k++) {
            const int64_t y = l->box.y0 + k * inner;
            if (mx_after_points(l->points, l->level, y, y + rows[k], l->box.z0 + i, piece[k], r->row_pitch))
                for (int64_t j = 0; j < rows[k]; j++)
                    mx_sides_copy_x(l->x_copy, l->x_copies, dtype, piece[k] + j * r->row_pitch);
        }
    }
}

void mx_resident_side(const struct mx_resident *r, int64_t nx, int64_t first_x, int64_t *from, int64_t *to) {
    *from = mx_max(first_x - r->lanes, 0);
    *to = mx_min(first_x + r->lanes, nx + 2);
}

/* Cells [from,to) of the inner rows, between planes as they are in the view and in memory of the thread's
 * own. */
static void copy_side(const struct mx_resident *r, int64_t element, int64_t from, int64_t to,
                      const struct mx_tile_rows *source, const struct mx_tile_rows *target) {
    const int64_t bytes = (to - from) * element, vectors = SIDE_VECTORS * r->lanes * element;
    for (int64_t i = 0; i < r->planes - 2; i++)
        for (int64_t j = 0; j < r->rows - 2; j++) {
            const int64_t at = j * r->row_pitch + from * element;
            if (bytes == vectors && bytes == 64)
                memcpy(target[i].inner + at, source[i].inner + at, 64);
            else
                memcpy(target[i].inner + at, source[i].inner + at, (size_t)bytes);
        }
}

/* Inner rows in memory of the thread's own, as if cell 0 of level `level` stood there. */
static char *own_rows(const struct mx_resident *r, char *own, int64_t plane, int64_t first_x,
                      int64_t element) {
    return own + plane * r->plane_pitch + (SIDE_VECTORS * r->lanes - first_x) * element;
}

void mx_resident_level(const struct mx_resident *r, const struct mx_work *work, const struct mx_view *view,
                       int thread, const struct mx_resident_level *level, struct mx_ahead *ahead) {
    struct mx_tile_rows src[MX_TILE_MOST_PLANES + 2], dst[MX_TILE_MOST_PLANES], out[MX_TILE_MOST_PLANES];
    const int64_t element = mx_dtype_bytes(work->problem->dtype);
    const int64_t x = r->span > 0 ? level->first_x : 0, before = x + r->lanes; /* of the level that is read */
    char *own = r->base + thread * r->bytes;
    for (int64_t i = -2; i < r->planes; i++) {
        struct mx_tile_rows *p = &src[i + 2];
        *p = in_view(r, view, level->from, level->box.y0 + 1, level->box.z0 + 1 + i);
    }
    struct mx_tile tile = {.src = src,
                           .dst = dst,
                           .rows = (int32_t)r->rows,
                           .planes = (int32_t)r->planes,
                           .row_pitch_bytes = r->row_pitch,
                           .nx = work->nx,
                           .ahead = ahead,
                           .x_copies = level->x_copies};
    int64_t from, to;
    if (r->span > 0) {
        tile.x0 = mx_max(x, 0), tile.x1 = mx_min(x + r->span, work->nx + 2);
        if (tile.x0 >= tile.x1) return;
    }
    if (!level->first) {
        for (int64_t i = 0; i < r->planes - 2; i++) out[i] = src[i + 2];
        for (int64_t i = 0; i < r->planes - 2; i++) src[i + 2].inner = own_rows(r, own, i, before, element);
        mx_resident_side(r, work->nx, x, &from, &to);
        if (r->span > 0 && from < to) copy_side(r, element, from, to, out, src + 2);
    }
    for (int64_t i = 0; i < r->planes; i++) {
        dst[i] = out[i] = in_view(r, view, 1 - level->from, level->box.y0, level->box.z0 + i);
        if (!level->last && i < r->planes - 2) dst[i].inner = own_rows(r, own, i, x, element);
    }
    for (int i = 0; i < level->x_copies; i++) /* h = 1: a cell each */
        tile.x_copy[i].to = level->x_copy[i].x0, tile.x_copy[i].from = level->x_copy[i].from;
    r->kernel(&tile, work->coef);
    if (r->span > 0 && !level->last) {
        mx_resident_side(r, work->nx, x + r->span - r->lanes, &from, &to);
        if (from < to) copy_side(r, element, from, to, dst, out);
    }
    if (level->norms != NULL)
        take_norms(r, work, view, level, src);
    else if (level->points != NULL)
        take_points(r, work->problem->dtype, level, dst);
}
