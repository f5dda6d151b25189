/* SPDX-License-Identifier: BSD-3-Clause */
/* after.h - what happens to rows that a level has just written: sources are added, probes recorded, norms
 * taken, and the frames that copy them refreshed.
 *
 * Order for every cell: update; sources of the step, in the order given; 0 where a side about a node says so
 * (sides.h); probes; norms; the x frame of its row; the rows of the y frame that copy the row, whole rows
 * with their x frame; the planes of the z frame that copy the plane, with their y frame. The thread that
 * writes an interior cell also writes every frame cell that copies it; nobody else writes those. So a copy
 * has no race that the cell itself does not have, and spans may be cut anywhere. A frame cell is a copy of
 * one that is read by whatever reads the frame cell, so an order in which a level may overwrite a cell also
 * allows it to overwrite the copies (skewing).
 *
 * What schedules guarantee (and engines may rely on):
 *
 *  - An ADVANCE touches more than its windows. A row whose copies lie in the y frame writes those rows, a
 * plane whose copies lie in the z frame those planes, of the same level and array; they lie up to 2h rows
 *    or planes away, or at the other end (periodic, not ghost). step.region, writes[] and touches[] are to
 *    contain them: mx_sides_extend does that. Of a ring, all planes of a frame that copies have slots
 *    while a plane that they copy is written: the h planes behind the last are loaded before a window reaches
 *    the last of the interior that they copy (schedule/walk.c, load_up_to).
 *  - Copies outside `reach` are left out: overlapped blocks compute rows whose copies other blocks have. What
 *    a block needs of a frame it has itself.
 *  - The rows that a frame in y copies are in the same strip as the frame at every level (schedule/ends.h),
 * so that no seam has one. Inserted rows refresh the frame planes that copy them (mx_after_refresh), but for
 *    level 0, whose frame planes are loaded.
 *  - What LOAD brings of such frames, and the COPY of frames to the other array, is right if Buffers hold
 * right frames: made when a grid is filled (mx_sides_plane), and stored when the level that is stored has
 *    written the rows that they copy: every algorithm does so. A LOAD
 * or COPY of a frame never comes after a write of a row that it copies at a later level: it would bring the
 * past.
 *  - Planes beyond the grid (ghost layers, y < h or z < h or behind the end) are those of the cell they stand
 *    for: index modulo n. They have sources, and frames in the other dimensions, but no probes and no norms.
 *  - A level that is due (mx_norms_due) is the last of a sweep, or the first stage of its last step.
 *  - Of several stages the last one alone has sources and probes (mx_points_act).
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

/* Everything that is asked for, in a run and, `reach`, in one call of an engine. */
struct mx_after {
    const struct mx_problem *problem;
    const struct mx_layout *layout; /* field_offset_bytes */
    struct mx_sides sides;
    bool ghost[3]; /* [MX_DIM_Y], [MX_DIM_Z]: a periodic dimension has ghost layers, no copies */
    const struct mx_sources *sources; /* indexed; NULL = none */
    struct mx_traces *traces;         /* NULL = no probes */
    struct mx_norms *norms;           /* NULL = none */
    struct mx_reach reach;
};

/* Do frames in y or z copy any of these rows and planes (frame counted), or change signs in x? Where they do
 * not, an engine may compute them in memory of its own, with mx_after_points, copies in x, and norms of the
 * last level. */
bool mx_after_copies_rows(const struct mx_after *after, int64_t y0, int64_t y1, int64_t z0, int64_t z1);

/* Sources and probes alone, of rows [y0,y1) of plane z (frame counted, ghost layers too) that level `level`
 * has just written, whole, one behind the other: cell 0 of row y0 is at `rows`, that of the next
 * `row_pitch_bytes` behind. True: a source has added something, so that frames in x that copy these rows are
 * to be made again. */
bool mx_after_points(const struct mx_after *after, int64_t level, int64_t y0, int64_t y1, int64_t z,
                     char *rows, int64_t row_pitch_bytes);

/* Bit i: rows [y0,y1) of plane z0 + i may have a source or a probe; where not, mx_after_points has
 * nothing to do. planes <= 64. */
uint64_t mx_after_planes_with_points(const struct mx_after *after, int64_t y0, int64_t y1, int64_t z0,
                                     int64_t planes);

/* Cells [x0,x1), rows [y0,y1), planes [z0,z1), frame counted, that level `level` (absolute) has just written
 * to DRAM array `array` of the view. The interior, and ghost layers. NULL: nothing is asked for. Any thread;
 * cells that another thread writes are not looked at, but for norms of rows in spans (norms.h).
 *
 * `old`: NULL: norms compare with the same row of the other array. Where mx_norms_needs_old(level), and where
 * that row is somewhere else: what the row was before; one row then, whole, cell 0 of it. */
void mx_after_box(const struct mx_after *after, const struct mx_view *view, int array, int64_t level,
                  int64_t x0, int64_t x1, int64_t y0, int64_t y1, int64_t z0, int64_t z1, const char *old);

/* One row of it. */
static inline void mx_after_row(const struct mx_after *after, const struct mx_view *view, int array,
                                int64_t level, int64_t y, int64_t z, int64_t x0, int64_t x1) {
    if (after != NULL) mx_after_box(after, view, array, level, x0, x1, y, y + 1, z, z + 1, NULL);
}

/* Rows that were not computed here: of a seam, or loaded. Refreshes what copies them, and nothing else; rows
 * that are copies themselves are skipped. Fixed frames among them have copies too (x frames, corners).
 * `fields`: of array A (0) or B (1) of the system, which of a staggered one differ. */
void mx_after_refresh(const struct mx_after *after, const struct mx_view *view, int array, int fields,
                      int64_t x0, int64_t x1, int64_t y0, int64_t y1, int64_t z0, int64_t z1);

#endif
