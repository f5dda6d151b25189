/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h - inside schedule/ only: what stands at the ends of y and z, and what it makes of a region that is
 * loaded or stored.
 *
 *     fixed      the frame is loaded and stored like all else, or never touched
 *     copies     all other kinds, of some field at least, and periodic where one call of an engine has
 *                whatever a frame copies: the frame is refreshed by whoever writes the row or plane that it
 *                copies (engine/after.h)
 *     ghost      periodic where that cannot be: levels * h layers beyond either end are loaded, computed
 * along while level by level h of them are used up, and never stored
 *
 * Where ghost layers come from. mx_load_pieces alone says which rows or planes of which Buffer a LOAD reads
 * for a range that reaches into ghost layers: those at the other end of the same Buffer, index modulo n, of
 * state and of C alike; and of a rank of several, at an end where another one goes on, what that one has
 * sent. There one end alone may have ghosts, and the Buffers have no copies of them: C has them itself, for
 * it does not change. Windows, rings, CalcTrans, engines and points see the range and not its pieces.
 *
 * Frames of ghost dimensions are not there in DRAM. Buffers hold them nevertheless, as copies of the rows and
 * planes at the other end that are stored once more (mx_store_pieces), so that whatever reads a state finds
 * its frame right: outputs, other plans, plans without ghosts on resume.
 */
#ifndef MX_ENDS_H
#define MX_ENDS_H

#include "schedule/geometry.h"
#include "system/sides.h"

/* Rows or planes [lo,hi) of the Blocks are [lo + shift, hi + shift) of the Buffer. */
struct mx_piece {
    int64_t lo, hi, shift;
    int32_t neighbour; /* 0, or from that at end 0 (1) or 1 (2), in the coordinates of this rank */
};
enum { MX_PIECES = 3 };

/* A dimension's frame copies cells, at this end: it is neither fixed nor a ghost. `ghost`: a periodic
 * dimension has ghost layers (shape.ghost). */
static inline bool mx_end_copies(const struct mx_problem *p, bool ghost, int dim, int end) {
    return mx_side_is_copy(p->sides.side[dim][end]) && !ghost;
}
/* There are ghost layers beyond this end. */
static inline bool mx_end_ghost(const struct mx_problem *p, bool ghost, int dim, int end) {
    return (ghost && p->sides.side[dim][end] == MX_SIDE_PERIODIC) ||
           p->sides.side[dim][end] == MX_SIDE_NEIGHBOUR;
}
/* Ends of z with another rank beyond. */
static inline int mx_neighbours(const struct mx_problem *p) {
    return mx_has_neighbour(p, 0) + mx_has_neighbour(p, 1);
}

/* What is loaded of a dimension's range; not more than n layers beyond an end. Returns how many. */
int mx_load_pieces(const struct mx_problem *p, int dim, bool ghost, struct mx_range range,
                   struct mx_piece out[MX_PIECES]);
/* What is stored of it. */
int mx_store_pieces(const struct mx_problem *p, int dim, bool ghost, struct mx_range range,
                    struct mx_piece out[MX_PIECES]);

/* Frame layers, of both ends together, that hold copies and so are stored: 0 to 2h. */
int64_t mx_copied_layers(const struct mx_problem *p, int dim);

/* 0, or -EINVAL, with a sentence. Ghost layers reach at most around the grid once. */
int mx_check_ghosts(const struct mx_problem *p, int dim, int64_t levels, mx_why *why);
/* Neighbours give what they have: a sweep may not need more planes than the smallest rank. */
int mx_check_neighbours(const struct mx_problem *p, int64_t levels, mx_why *why);
int mx_check_no_neighbours(const struct mx_problem *p, const char *what, mx_why *why);
/* Blocks, or strips, that are skewed: the first holds the cells that the lower frame copies at every level,
 * and the last those of the upper one. */
int mx_check_skewed_ends(const struct mx_problem *p, int dim, const struct mx_cut *cut, int64_t levels,
                         mx_why *why);
/* The same of overlapped blocks, which compute them themselves: those that own the ends own h cells. */
int mx_check_lapped_ends(const struct mx_problem *p, int dim, const struct mx_cut *cut, mx_why *why);
/* No periodic sides in y and z: for algorithms whose order does not allow them. */
int mx_check_not_periodic(const struct mx_problem *p, const char *what, mx_why *why);

#endif
