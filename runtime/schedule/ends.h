/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h - inside schedule/ only: the kinds of ends of y and z, and how they change a region that is loaded
 * or stored.
 *
 *     fixed      the frame is loaded and stored like all else, or never touched
 *     copies     the frame copies cells, at least for some field. This includes periodic sides if one call
 *                of an engine has everything that a frame copies. Whoever writes a row or plane also
 *                refreshes the frame that copies it (engine/after.h)
 *     ghost      other periodic sides: levels * h layers beyond either end are loaded and computed along,
 *                while every level uses up h of them. They are never stored
 *
 * Where ghost layers come from. Only mx_load_pieces decides which rows or planes a LOAD reads for a range
 * that reaches into ghost layers. For periodic sides these are the ones at the other end of the same Buffer,
 * index modulo n, of the state and of C. For a rank, at an end where another rank's planes follow, they are
 * what that rank has sent. There one end alone may have ghosts, and the Buffers of the state have no copies
 * of them. C does not change, so its Buffers hold them. Windows, rings, CalcTrans, engines and points see the
 * range and not its pieces.
 *
 * DRAM has no frames of ghost dimensions. Buffers do have them: rows and planes at the other end are stored
 * once more (mx_store_pieces). So everything that reads a state finds a right frame: outputs, other plans,
 * plans without ghosts on resume.
 */
#ifndef MX_ENDS_H
#define MX_ENDS_H

#include "schedule/geometry.h"
#include "system/sides.h"

/* Rows or planes [lo,hi) of the Blocks are [lo + shift, hi + shift) of the Buffer. */
struct mx_piece {
    int64_t lo, hi, shift;
    int32_t
        neighbour; /* 0 = of the Buffer; 1, 2 = from the neighbour at end 0, 1, in this rank's coordinates */
};
enum { MX_PIECES = 3 };

/* Does the frame at this end copy cells? It must be neither fixed nor a ghost. `ghost`: the periodic
 * dimension has ghost layers (shape.ghost). */
static inline bool mx_end_copies(const struct mx_problem *p, bool ghost, int dim, int end) {
    return mx_side_is_copy(p->sides.side[dim][end]) && !ghost;
}
/* Are there ghost layers beyond this end? */
static inline bool mx_end_ghost(const struct mx_problem *p, bool ghost, int dim, int end) {
    return (ghost && p->sides.side[dim][end] == MX_SIDE_PERIODIC) ||
           p->sides.side[dim][end] == MX_SIDE_NEIGHBOUR;
}
/* Returns the number of ends of z with another rank beyond. */
static inline int mx_neighbours(const struct mx_problem *p) {
    return mx_has_neighbour(p, 0) + mx_has_neighbour(p, 1);
}

/* Splits a range that is loaded into pieces, and returns their number. The range reaches at most n layers
 * beyond an end. */
int mx_load_pieces(const struct mx_problem *p, int dim, bool ghost, struct mx_range range,
                   struct mx_piece out[MX_PIECES]);
/* Splits a range that is stored likewise. */
int mx_store_pieces(const struct mx_problem *p, int dim, bool ghost, struct mx_range range,
                    struct mx_piece out[MX_PIECES]);

/* Returns the frame layers of both ends that hold copies and are stored: 0 to 2h. */
int64_t mx_copied_layers(const struct mx_problem *p, int dim);

/* 0, or -EINVAL, with a sentence. Ghost layers reach at most around the grid once. */
int mx_check_ghosts(const struct mx_problem *p, int dim, int64_t levels, mx_why *why);
/* Neighbours can send only their own planes: -EINVAL if a sweep needs more planes than the smallest rank has.
 */
int mx_check_neighbours(const struct mx_problem *p, int64_t levels, mx_why *why);
int mx_check_no_neighbours(const struct mx_problem *p, const char *what, mx_why *why);
/* For skewed blocks or strips: checks that the first block holds, at every level, the cells that the lower
 * frame copies, and the last block those of the upper frame. */
int mx_check_skewed_ends(const struct mx_problem *p, int dim, const struct mx_cut *cut, int64_t levels,
                         mx_why *why);
/* For overlapped blocks: checks that the blocks at the ends own the h cells that frames copy. */
int mx_check_lapped_ends(const struct mx_problem *p, int dim, const struct mx_cut *cut, mx_why *why);
/* For algorithms whose order does not allow periodic sides in y and z: -EINVAL if there are such sides. */
int mx_check_not_periodic(const struct mx_problem *p, const char *what, mx_why *why);

#endif
