/* SPDX-License-Identifier: BSD-3-Clause */
/* sides.h - what the frame of a grid holds: its sides, and how the frame of an input without one is made.
 * Pure.
 *
 * A cell of one dimension is named by its index with the frame counted: 0 .. n+2h-1, of which h .. n+h-1 are
 * the interior. Its side 0 is the frame before the interior, side 1 the one behind it:
 *
 *     fixed      the frame keeps the values that it began with
 *     mirror     frame cell h-1-i is interior cell h+i, and at the other end alike: zero normal derivative
 *     periodic   frame cell h-1-i is cell n+h-1-i, and n+h+i is h+i: the cell at the opposite end
 *
 * Frames are made in x first, then in y over whole rows, x frame included, then in z over whole planes: so
 * corners are copies of copies. Rows of frames that are fixed have an x frame like every other row, and
 * planes of them a y frame. tests/unit/test_after.c has it as plain loops.
 */
#ifndef MX_SIDES_H
#define MX_SIDES_H

#include "system/system.h"

enum mx_side {
    MX_SIDE_FIXED,
    MX_SIDE_MIRROR,
    MX_SIDE_PERIODIC,
    MX_SIDE_NEIGHBOUR /* of z: another rank has what lies beyond (struct mx_problem). Nothing is copied: there
                         are ghost layers, of which the Buffers have none. No user says so */
};
enum { MX_DIM_X, MX_DIM_Y, MX_DIM_Z };

/* "x=periodic" (both ends), "z=fixed,mirror" (end 0, end 1): changes the dimension that is named and leaves
 * the others. -EINVAL, with a sentence, for anything else, and for periodic at one end only. */
int mx_sides_parse(const char *text, mx_why *why, struct mx_sides *sides);
/* n of them. -EINVAL, with a sentence, too where two say different things of one dimension. */
int mx_sides_read(const char *const *word, int32_t n, mx_why *why, struct mx_sides *sides);
/* "x=periodic z=fixed,mirror": the dimensions that are not fixed at both ends, "" if there is none; what
 * mx_sides_parse takes, word by word. Never more than MX_SIDES_TEXT bytes. */
enum { MX_SIDES_TEXT = 80 };
const char *mx_sides_text(const struct mx_sides *sides, char text[MX_SIDES_TEXT]);
/* -EINVAL, with a sentence: mirror and periodic copy h cells, so that n must not be less than h. */
int mx_sides_check(const struct mx_sides *sides, const struct mx_problem *problem, mx_why *why);

static inline bool mx_sides_fixed(const struct mx_sides *s, int dim) {
    return s->side[dim][0] == MX_SIDE_FIXED && s->side[dim][1] == MX_SIDE_FIXED;
}
static inline bool mx_sides_all_fixed(const struct mx_sides *s) {
    return mx_sides_fixed(s, MX_DIM_X) && mx_sides_fixed(s, MX_DIM_Y) && mx_sides_fixed(s, MX_DIM_Z);
}
static inline bool mx_sides_periodic(const struct mx_sides *s, int dim) {
    return s->side[dim][0] == MX_SIDE_PERIODIC;
}
static inline int64_t mx_extent_of(const struct mx_problem *p, int dim) {
    return dim == MX_DIM_X ? p->nx : dim == MX_DIM_Y ? p->ny : p->nz;
}

/* The interior index of the cell that stands at i: i modulo n, for ghost layers. */
static inline int64_t mx_wrap(int64_t i, int64_t n) {
    if ((uint64_t)i < (uint64_t)n) return i;
    return ((i % n) + n) % n;
}

/* The interior plane of the whole grid, from 0, that stands at z, frame counted. Ghost planes, of a periodic
 * z or of a neighbour, are those of the cells that they stand for. */
static inline int64_t mx_plane_of(const struct mx_problem *p, int64_t z) {
    return mx_wrap(z - p->h + p->first_plane, mx_all_planes(p));
}
/* Another rank goes on at this end of z. */
static inline bool mx_has_neighbour(const struct mx_problem *p, int end) {
    return p->sides.side[MX_DIM_Z][end] == MX_SIDE_NEIGHBOUR;
}
/* Mirror or periodic: the frame at this end is a copy. */
static inline bool mx_side_is_copy(uint8_t side) {
    return side == MX_SIDE_MIRROR || side == MX_SIDE_PERIODIC;
}

/* Frame cells that copy cell i of a dimension: out[0 .. result), 0 to 2. None for a cell of the frame. */
static inline int mx_side_copies(const uint8_t side[2], int64_t n, int32_t h, int64_t i, int64_t out[2]) {
    const int64_t a = i - h, b = n + h - 1 - i; /* cells before and behind it */
    int count = 0;
    if (a < 0 || b < 0 || (a >= h && b >= h)) return 0;
    if (a < h && side[0] == MX_SIDE_MIRROR) out[count++] = h - 1 - a;
    if (a < h && side[1] == MX_SIDE_PERIODIC) out[count++] = n + h + a;
    if (b < h && side[1] == MX_SIDE_MIRROR) out[count++] = n + h + b;
    if (b < h && side[0] == MX_SIDE_PERIODIC) out[count++] = h - 1 - b;
    return count;
}

/* The cell that cell i copies: an interior one, or i itself (interior cells, fixed frames). */
static inline int64_t mx_side_source(const uint8_t side[2], int64_t n, int32_t h, int64_t i) {
    if (i < h) return side[0] == MX_SIDE_MIRROR ? 2 * h - 1 - i : side[0] == MX_SIDE_PERIODIC ? i + n : i;
    if (i >= n + h)
        return side[1] == MX_SIDE_MIRROR ? 2 * (n + h) - 1 - i : side[1] == MX_SIDE_PERIODIC ? i - n : i;
    return i;
}

/* Of one dimension: makes [*from, *end) contain the frame cells that copy one of its cells. */
void mx_side_extend(const uint8_t side[2], int64_t n, int32_t h, int64_t *from, int64_t *end);

/* Some cells of a row, empty where x0 >= x1. */
struct mx_cells {
    int64_t x0, x1;
};
/* The x frame that goes with cells [x0,x1) of a row: the frame cells that copy one of them, and a fixed frame
 * with the interior's first or last cell, if that is among them. So cells of a row that are cut into spans at
 * any place have each frame cell once. out[0], out[1]: the frames at the two ends. */
void mx_sides_x_frame(const struct mx_sides *sides, const struct mx_problem *problem, struct mx_cells cells,
                      struct mx_cells out[2]);

/* Of the x frame that goes with some cells, one end: cell x of [x0,x1) is a copy of cell from + step * (x -
 * x0). */
struct mx_x_copy {
    int64_t x0, x1, from, step;
};
/* What the x frame copies of cells [x0,x1): 0 to 2 ends. Made once for many rows. */
int mx_sides_x_copies(const struct mx_sides *sides, int64_t nx, int32_t h, struct mx_cells cells,
                      struct mx_x_copy out[2]);
/* Does so in one field's row, whose cell 0 `row` points to; `element_bytes` 4 or 8. */
static inline void mx_sides_copy_x(const struct mx_x_copy *copy, int n, int64_t element_bytes, char *row) {
    for (int i = 0; i < n; i++) {
        const int64_t count = copy[i].x1 - copy[i].x0, step = copy[i].step;
        if (element_bytes == 8) {
            uint64_t *to = (uint64_t *)row + copy[i].x0;
            const uint64_t *from = (const uint64_t *)row + copy[i].from;
            for (int64_t k = 0; k < count; k++) to[k] = from[k * step];
        } else {
            uint32_t *to = (uint32_t *)row + copy[i].x0;
            const uint32_t *from = (const uint32_t *)row + copy[i].from;
            for (int64_t k = 0; k < count; k++) to[k] = from[k * step];
        }
    }
}

/* One plane of array `array` (0 = A, 1 = B), all rows of it: x frames of all rows, then y frames. Planes of
 * the z frame are made as the plane of which they are copies (mx_side_source). */
void mx_sides_plane(const struct mx_sides *sides, const struct mx_problem *problem,
                    const struct mx_layout *layout, int array, char *plane);

/* ---- inputs without a frame */

enum mx_frame_kind { MX_FRAME_INCLUDED, MX_FRAME_EDGE, MX_FRAME_MIRROR, MX_FRAME_PERIODIC, MX_FRAME_VALUE };

/* All zero: the file has its frame. Else the file is nz x ny x nx, and a cell of the frame is the nearest
 * cell of the interior (edge), the cell as far inside as it is outside (mirror; the edge's own cell counts),
 * the cell that would be there were the grid repeated (periodic), or a value. Extents may be shorter than h:
 * what is repeated or mirrored goes on. As numpy.pad with edge, symmetric, wrap and constant. */
struct mx_frame {
    enum mx_frame_kind kind;
    double value; /* MX_FRAME_VALUE */
};

/* "included" "edge" "mirror" "periodic" or a number. -EINVAL with a sentence. */
int mx_frame_parse(const char *text, mx_why *why, struct mx_frame *out);
/* -EINVAL, with a sentence: the value is none that cells of this type can hold exactly (integers), or it is
 * beyond the type (f32: rounded to the nearest). `name` is the field's. */
int mx_frame_check(const struct mx_frame *frame, const char *name, enum mx_dtype dtype, mx_why *why);

/* Of one dimension with n cells in the file: the file's cell (row, plane), 0 .. n-1, that is at i; -1: none,
 * it is of the value. For every kind but MX_FRAME_INCLUDED, where it is i. */
int64_t mx_frame_source(const struct mx_frame *frame, int64_t n, int32_t h, int64_t i);

/* A row of the array, nx+2h cells, of the file's row, nx cells (MX_FRAME_INCLUDED: nx+2h). file_row NULL: a
 * row of the value alone. Row y of plane z is made of the file's row mx_frame_source(y) of plane
 * mx_frame_source(z). The two do not overlap, but file_row may be row + h cells. */
void mx_frame_row(const struct mx_frame *frame, int64_t nx, int32_t h, enum mx_dtype dtype,
                  const char *file_row, char *row);

#endif
