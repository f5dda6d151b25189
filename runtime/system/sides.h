/* SPDX-License-Identifier: BSD-3-Clause */
/* sides.h - the sides of a grid (what its frame holds), and how a frame is made for an input without one.
 * Pure functions.
 *
 * A cell of one dimension is named by its index with the frame counted: 0 .. n+2h-1, of which h .. n+h-1 are
 * the interior. Its side 0 is the frame before the interior, side 1 the one behind it. For side 0, with k = 1
 * .. h counted outwards (side 1 is the same seen from its end):
 *
 *     fixed        the frame keeps the values that it began with
 *     mirror       frame cell h-k = cell h+k-1: an image about the face of the outermost cell
 *     odd          frame cell h-k = - cell h+k-1
 *     mirror-node  frame cell h-k = cell h+k: an image about the middle of the outermost cell
 *     odd-node     frame cell h-k = - cell h+k, and the outermost cell h is 0
 *     edge         frame cell h-k = cell h
 *     periodic     frame cell h-k = cell n+h-k, the one at the opposite end; of all fields, at both ends
 *
 * Minus changes only the sign bit of a floating-point number: 0 becomes -0, and a NaN becomes the NaN with
 * the other sign. Integers are negated.
 *
 * Frames are made in x first, then in y over whole rows with their x frame, then in z over whole planes. So
 * corners are copies of copies, with the product of their signs. Rows of fixed frames have an x frame like
 * every other row, and planes of fixed frames have a y frame. Every field has sides of its own: statements
 * about rows and planes hold for the field's part of them. tests/unit/after_world.c has the same as plain
 * loops.
 *
 * The 0 of odd-node is +0. It replaces the value of the cell in every state: in both arrays of the initial
 * state, and in every level, after the kernel has computed the cell and sources were added, and before
 * anything reads it. So kernels, probes, norms, outputs and counts of cells that are not finite see 0 there.
 * Only interior cells become 0: fixed frames keep their values.
 */
#ifndef MX_SIDES_H
#define MX_SIDES_H

#include "system/system.h"

enum mx_side {
    MX_SIDE_FIXED,
    MX_SIDE_MIRROR,
    MX_SIDE_PERIODIC,
    MX_SIDE_NEIGHBOUR, /* in z: another rank has the planes beyond this end (struct mx_problem). Nothing is
                          copied: DRAM has ghost layers, Buffers do not. Users cannot choose it */
    MX_SIDE_ODD,
    MX_SIDE_MIRROR_NODE,
    MX_SIDE_ODD_NODE,
    MX_SIDE_EDGE,
    MX_SIDE_SEVERAL, /* only in struct mx_sides: fields differ */
    MX_SIDE_KINDS = MX_SIDE_SEVERAL
};
enum { MX_DIM_X, MX_DIM_Y, MX_DIM_Z };

/* Reads the sides of a run from words: "x=periodic" (both ends) or "z=fixed,mirror" (end 0, end 1) for all
 * fields, "vx:z=odd" for one field, which overrides words for all. Axes that are not named are fixed. The
 * problem names the fields of both arrays; that of a built-in stencil is u. -EINVAL, with a sentence: an
 * unknown word, periodic at only one end or in only some fields, or two words that contradict each other. */
int mx_sides_read(const char *const *word, int32_t n, const struct mx_problem *problem, mx_why *why,
                  struct mx_sides *sides);
/* Writes sides as words that mx_sides_read reads: "x=periodic z=fixed,mirror vx:z=odd"; "" if all are fixed.
 * Never more than MX_SIDES_TEXT bytes. */
enum { MX_SIDES_TEXT = 3 * (2 * MX_MAX_FIELDS + 1) * (MX_FIELD_NAME + 28) };
const char *mx_sides_text(const struct mx_sides *sides, const struct mx_problem *problem,
                          char text[MX_SIDES_TEXT]);
/* Writes its first bytes, for a sentence; "fixed" if all are. */
enum { MX_SIDES_BRIEF = 160 };
const char *mx_sides_brief(const struct mx_sides *sides, const struct mx_problem *problem,
                           char text[MX_SIDES_BRIEF]);
const char *mx_side_name(uint8_t side);
/* Returns the user's name of a dimension: in two dimensions z is called y. */
char mx_axis_name(const struct mx_problem *problem, int dim);
/* -EINVAL, with a sentence, if an extent is less than the cells that a side copies: h; h + 1 for the kinds
 * about a node, whose outermost cell has no image; 1 for edge. */
int mx_sides_check(const struct mx_sides *sides, const struct mx_problem *problem, mx_why *why);

/* The kinds of one field at the two ends of a dimension. */
struct mx_ends {
    uint8_t side[2];
};
static inline struct mx_ends mx_ends_of(const struct mx_sides *s, int array, int32_t field, int dim) {
    struct mx_ends e = {{s->side[dim][0], s->side[dim][1]}};
    for (int end = 0; end < 2; end++)
        if (e.side[end] == MX_SIDE_SEVERAL) e.side[end] = s->field[array][field][dim][end];
    return e;
}
/* Bit k: some field has kind k at this end. */
static inline uint8_t mx_sides_kinds(const struct mx_sides *s, int dim, int end) {
    const uint8_t side = s->side[dim][end];
    return side == MX_SIDE_SEVERAL ? s->some[dim][end] : (uint8_t)(1 << side);
}
enum {
    MX_SIDES_MINUS = 1 << MX_SIDE_ODD | 1 << MX_SIDE_ODD_NODE,
    MX_SIDES_NODE = 1 << MX_SIDE_MIRROR_NODE | 1 << MX_SIDE_ODD_NODE,
    MX_SIDES_COPY =
        MX_SIDES_MINUS | MX_SIDES_NODE | 1 << MX_SIDE_MIRROR | 1 << MX_SIDE_PERIODIC | 1 << MX_SIDE_EDGE
};
/* Does some field have one of these kinds at an end of the dimension? */
static inline bool mx_sides_any(const struct mx_sides *s, int dim, int kinds) {
    return ((mx_sides_kinds(s, dim, 0) | mx_sides_kinds(s, dim, 1)) & kinds) != 0;
}
/* Returns how many interior cells from this end on hold everything that the frame copies: 0, h or h + 1. */
static inline int64_t mx_sides_sources(const struct mx_sides *s, int dim, int end, int32_t h) {
    const int kinds = mx_sides_kinds(s, dim, end);
    return (kinds & MX_SIDES_COPY) == 0 ? 0 : h + ((kinds & MX_SIDES_NODE) != 0);
}

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
static inline int32_t mx_halo_of(const struct mx_problem *p, int dim) {
    return dim == MX_DIM_Y ? mx_halo_y(p) : p->h;
}

/* Returns the interior index of the cell at i: i modulo n, for ghost layers. */
static inline int64_t mx_wrap(int64_t i, int64_t n) {
    if ((uint64_t)i < (uint64_t)n) return i;
    return ((i % n) + n) % n;
}

/* Returns the interior plane of the whole grid, from 0, that is at z, frame counted. A ghost plane, of a
 * periodic z or of a neighbour, is the plane that it stands for. */
static inline int64_t mx_plane_of(const struct mx_problem *p, int64_t z) {
    return mx_wrap(z - p->h + p->first_plane, mx_all_planes(p));
}
/* Do another rank's planes follow at this end of z? */
static inline bool mx_has_neighbour(const struct mx_problem *p, int end) {
    return p->sides.side[MX_DIM_Z][end] == MX_SIDE_NEIGHBOUR;
}
/* Is the frame at this end a copy, at least for some field? */
static inline bool mx_side_is_copy(uint8_t side) {
    return side != MX_SIDE_FIXED && side != MX_SIDE_NEIGHBOUR;
}

/* For one field in one dimension: returns the cell that cell i copies. It is an interior one, or i itself
 * (interior cells, fixed frames). */
int64_t mx_side_source(const uint8_t side[2], int64_t n, int32_t h, int64_t i);
/* Is cell i minus the cell that it copies? */
static inline bool mx_side_minus(const uint8_t side[2], int64_t n, int32_t h, int64_t i) {
    return (i < h && (MX_SIDES_MINUS >> side[0] & 1) != 0) ||
           (i >= n + h && (MX_SIDES_MINUS >> side[1] & 1) != 0);
}
/* Is interior cell i 0? */
static inline bool mx_side_zero(const uint8_t side[2], int64_t n, int32_t h, int64_t i) {
    return (i == h && side[0] == MX_SIDE_ODD_NODE) || (i == n + h - 1 && side[1] == MX_SIDE_ODD_NODE);
}
/* Lists the frame cells that copy cell i of a dimension: out[0 .. result). A cell of the frame has no copies.
 */
enum { MX_SIDE_COPIES = 2 * MX_MAX_HALO };
int mx_side_copies(const uint8_t side[2], int64_t n, int32_t h, int64_t i, int64_t out[MX_SIDE_COPIES]);
/* For all fields in one dimension: extends [*from, *end) so that it contains the frame cells that copy one of
 * its cells. */
void mx_sides_extend(const struct mx_sides *sides, int dim, int64_t n, int32_t h, int64_t *from,
                     int64_t *end);
/* Copies cells of this type, or minus them. The two ranges do not overlap, or are the same. */
void mx_side_copy(char *to, const char *from, int64_t bytes, enum mx_dtype dtype, bool minus);

/* Some cells of a row, empty where x0 >= x1. */
struct mx_cells {
    int64_t x0, x1;
};
/* The x frame that goes with cells [x0,x1) of a row: the frame cells that copy one of them, and a fixed frame
 * with the interior's first or last cell, if that is among them. So cells of a row that are cut into spans at
 * any place have each frame cell once. out[0], out[1]: the frames at the two ends. `side`: a field's in x. */
void mx_side_x_frame(const uint8_t side[2], int64_t nx, int32_t h, struct mx_cells cells,
                     struct mx_cells out[2]);

/* One end of the x frame that belongs to some cells: cell x of [x0,x1) is a copy of cell from + step * (x -
 * x0), or minus it. */
struct mx_x_copy {
    int64_t x0, x1, from, step;
    bool minus;
};
/* Finds what the x frame copies of cells [x0,x1): 0 to 2 ends. Make it once for many rows. */
int mx_side_x_copies(const uint8_t side[2], int64_t nx, int32_t h, struct mx_cells cells,
                     struct mx_x_copy out[2]);
/* Makes these copies in a field's row, whose cell 0 is at `row`. */
void mx_side_copy_x_whole(const struct mx_x_copy *copy, enum mx_dtype dtype, char *row);
static inline void mx_sides_copy_x(const struct mx_x_copy *copy, int n, enum mx_dtype dtype, char *row) {
    for (int i = 0; i < n; i++) {
        const int64_t count = copy[i].x1 - copy[i].x0, step = copy[i].step;
        if (dtype == MX_F64) {
            const uint64_t sign = (uint64_t)copy[i].minus << 63;
            uint64_t *to = (uint64_t *)row + copy[i].x0;
            const uint64_t *from = (const uint64_t *)row + copy[i].from;
            for (int64_t k = 0; k < count; k++) to[k] = from[k * step] ^ sign;
        } else if (dtype == MX_F32) {
            const uint32_t sign = (uint32_t)copy[i].minus << 31;
            uint32_t *to = (uint32_t *)row + copy[i].x0;
            const uint32_t *from = (const uint32_t *)row + copy[i].from;
            for (int64_t k = 0; k < count; k++) to[k] = from[k * step] ^ sign;
        } else {
            mx_side_copy_x_whole(&copy[i], dtype, row);
        }
    }
}
/* Sets the cells of [x0,x1) of a field's row to 0 that a side in x makes 0. */
void mx_side_zero_x(const uint8_t side[2], int64_t nx, int32_t h, struct mx_cells cells,
                    int64_t element_bytes, char *row);

/* Completes row y of plane z of one field: zeros, the x frame, signs. The row holds row mx_side_source(y) of
 * plane mx_side_source(z), as it came from a file. */
void mx_sides_row(const struct mx_sides *sides, const struct mx_problem *problem, int array, int32_t field,
                  int64_t y, int64_t z, char *row);
/* Completes plane z of array `array` (0 = A, 1 = B) likewise. In it every field holds its rows of the plane
 * that plane z copies (mx_side_source), as they came from a file. */
void mx_sides_plane(const struct mx_sides *sides, const struct mx_problem *problem,
                    const struct mx_layout *layout, int array, int64_t z, char *plane);

/* ---- inputs without a frame */

enum mx_frame_kind { MX_FRAME_INCLUDED, MX_FRAME_EDGE, MX_FRAME_MIRROR, MX_FRAME_PERIODIC, MX_FRAME_VALUE };

/* How a frame is made. All zero: the file has its frame. Otherwise the file is nz x ny x nx cells, and a cell
 * of the frame is one of these: the nearest interior cell (edge); the cell as far inside as it is outside,
 * where the outermost cell counts (mirror); the cell there if the grid were repeated (periodic); or a value.
 * Extents may be shorter than h: the repeated or mirrored grid continues. These are numpy.pad's edge,
 * symmetric, wrap and constant. */
struct mx_frame {
    enum mx_frame_kind kind;
    double value;  /* MX_FRAME_VALUE */
    bool whole;    /* the value is an integer of 64 bits, written only in digits: */
    uint64_t bits; /* that integer; as an int64_t if it is negative */
};

/* Reads "included" "edge" "mirror" "periodic" or a number. -EINVAL with a sentence. */
int mx_frame_parse(const char *text, mx_why *why, struct mx_frame *out);
/* -EINVAL, with a sentence, if cells of this type cannot hold the value: integers must hold it exactly; f32
 * rounds it, and must not overflow. `name`: of the field. */
int mx_frame_check(const struct mx_frame *frame, const char *name, enum mx_dtype dtype, mx_why *why);

/* For one dimension with n cells in the file: returns the file's cell (row, plane), 0 .. n-1, that is at i.
 * -1 = the frame holds the value there. With MX_FRAME_INCLUDED it is i. */
int64_t mx_frame_source(const struct mx_frame *frame, int64_t n, int32_t h, int64_t i);

/* Makes a row of the array, nx+2h cells, from a row of the file, nx cells (MX_FRAME_INCLUDED: nx+2h).
 * file_row NULL: the row holds only the value. Row y of plane z is made from the file's row
 * mx_frame_source(y) of plane mx_frame_source(z). The two rows do not overlap, except that file_row may be
 * row + h cells. */
void mx_frame_row(const struct mx_frame *frame, int64_t nx, int32_t h, enum mx_dtype dtype,
                  const char *file_row, char *row);

#endif
