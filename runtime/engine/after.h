/* SPDX-License-Identifier: BSD-3-Clause */
/* after.h - what happens to rows that a level has just written: sources are added, probes recorded, norms
 * taken, and the frames that copy these rows are refreshed.
 *
 * The order for every cell is: update; sources of the step, in the order given; 0 where a side about a node
 * demands it (sides.h); probes; norms; the x frame of its row; the rows of the y frame that copy the row
 * (whole rows with their x frame); the planes of the z frame that copy the plane (with their y frame). The
 * thread that writes an interior cell also writes every frame cell that copies it, and no other thread writes
 * those. So a copy has no race that the cell itself does not have, and spans may be cut anywhere. Whatever
 * reads a frame cell also reads the cell that it copies. So an order in which a level may overwrite a cell
 * also allows it to overwrite the copies (skewing).
 *
 * Guarantees of schedules, on which engines may rely:
 *
 *  - An ADVANCE touches more than its windows. For a row with copies in the y frame it also writes those
 * rows, for a plane with copies in the z frame those planes, of the same level and array. They lie up to 2h
 * rows or planes away, or at the other end (periodic without ghost layers). step.region, writes[] and
 * touches[] contain them: mx_sides_extend adds them. In a ring, all planes of a frame that copies have slots
 * while a plane that they copy is written: the h planes after the last are loaded before a window reaches the
 * last planes of the interior that they copy (schedule/walk.c, load_up_to).
 *  - Copies outside `reach` are left out: overlapped blocks compute rows whose copies are in other blocks. A
 * block has all parts of a frame that it needs.
 *  - The rows that a frame in y copies are in the same strip as the frame at every level (schedule/ends.h),
 * so seams have no such rows. Inserted rows refresh the frame planes that copy them (mx_after_refresh),
 * except for level 0, whose frame planes are loaded.
 *  - A LOAD of such frames, and a COPY of frames to the other array, are right if the frames in Buffers are.
 * These are made when a grid is filled (mx_sides_plane). Every algorithm stores them after the level that is
 * stored has written the rows that they copy. A LOAD or COPY of a frame never follows a write of a row that
 * it copies at a later level, since it would bring old values.
 *  - Planes beyond the grid (ghost layers, y < h or z < h or after the end) are those of the cells that they
 * stand for: index modulo n. They have sources, and frames in the other dimensions, but no probes and no
 * norms.
 *  - A level that is due (mx_norms_due) is the last of a sweep, or the first stage of its last step.
 *  - Of several stages only the last one has sources and probes (mx_points_act).
 */
#ifndef MX_AFTER_H
#define MX_AFTER_H

#include "engine/engine.h"
#include "system/norms.h"
#include "system/points.h"
#include "system/sides.h"

/* Rows [y0,y1), and planes [z0[p],z1[p]) of array p, that a call may touch; y1 = 0: all. */
struct mx_reach {
    int64_t y0, y1, z0[2], z1[2];
};

/* Everything that happens to rows after a level: in the whole run, and (`reach`) in one call of an engine. */
struct mx_after {
    const struct mx_problem *problem;
    const struct mx_layout *layout; /* field_offset_bytes */
    struct mx_sides sides;
    bool ghost[3]; /* [MX_DIM_Y], [MX_DIM_Z]: the periodic dimension has ghost layers instead of copies */
    const struct mx_sources *sources; /* indexed; NULL = none */
    struct mx_traces *traces;         /* NULL = no probes */
    struct mx_norms *norms;           /* NULL = none */
    struct mx_reach reach;
};

/* Do frames in y or z copy any of these rows and planes (frame counted), or frames in x change signs? If not,
 * an engine may compute the rows in memory of its own, and calls mx_after_points, makes copies in x, and
 * takes norms of the last level itself. */
bool mx_after_copies_rows(const struct mx_after *after, int64_t y0, int64_t y1, int64_t z0, int64_t z1);

/* Handles only sources and probes, of whole rows [y0,y1) of plane z that level `level` has just written
 * (frame counted, ghost layers too). Cell 0 of row y0 is at `rows`, that of each next row row_pitch_bytes
 * later. true: a source has added something, so the frames in x that copy these rows must be made again. */
bool mx_after_points(const struct mx_after *after, int64_t level, int64_t y0, int64_t y1, int64_t z,
                     char *rows, int64_t row_pitch_bytes);

/* Returns a bit for each plane: bit i is set if rows [y0,y1) of plane z0 + i may have a source or a probe.
 * Otherwise mx_after_points has nothing to do there. planes <= 64. */
uint64_t mx_after_planes_with_points(const struct mx_after *after, int64_t y0, int64_t y1, int64_t z0,
                                     int64_t planes);

/* Handles cells [x0,x1) of rows [y0,y1) of planes [z0,z1), frame counted, that level `level` (of the run) has
 * just written to DRAM array `array` of the view: cells of the interior and of ghost layers. after NULL: does
 * nothing. Any thread. It reads no cells that another thread writes, except for norms of rows in spans
 * (norms.h).
 *
 * old NULL: norms compare the row with the same row of the other array. Otherwise `old` points to cell 0 of
 * the row's former values, and the call is for one whole row. It is needed if mx_norms_needs_old says so, or
 * if that other row is in other memory. */
void mx_after_box(const struct mx_after *after, const struct mx_view *view, int array, int64_t level,
                  int64_t x0, int64_t x1, int64_t y0, int64_t y1, int64_t z0, int64_t z1, const char *old);

/* Handles one row likewise. */
static inline void mx_after_row(const struct mx_after *after, const struct mx_view *view, int array,
                                int64_t level, int64_t y, int64_t z, int64_t x0, int64_t x1) {
    if (after != NULL) mx_after_box(after, view, array, level, x0, x1, y, y + 1, z, z + 1, NULL);
}

/* Refreshes the copies of rows that were not computed by this call, but come from a seam or were loaded. Does
 * nothing else. Rows that are copies themselves are skipped. Fixed frames among the rows have copies too (x
 * frames, corners). `fields`: whose fields these are, array A's (0) or B's (1) of the system; in a staggered
 * system they differ. */
void mx_after_refresh(const struct mx_after *after, const struct mx_view *view, int array, int fields,
                      int64_t x0, int64_t x1, int64_t y0, int64_t y1, int64_t z0, int64_t z1);

#endif
