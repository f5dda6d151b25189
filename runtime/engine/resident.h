/* SPDX-License-Identifier: BSD-3-Clause */
/* resident.h - inside engine/ only: tiles whose levels are computed in place, in memory of the thread's own.
 *
 * In skewed coordinates a tile is the same box at every level, so one array serves all its levels: level l+1
 * of a row replaces level l of the row it stands for (mx_tile). That array is half as large as two, stays in
 * L2, and each of its cache lines is read and written once a level. The view gets only what other tiles or
 * later calls read: of every level the last 2h rows and planes, of the last level everything.
 *
 * If rows are too long for that, a tile has spans of rows, skewed in x by one vector a level
 * (mx_stencil_span). Rows in the thread's memory have the pitch of the view's rows, and only one span of each
 * row is used. Cell x of a level lies x - first_x cells after the place of that level's cell first_x. Before
 * a level, the two vectors that it reads of the span to the left are fetched from the view. After it, the
 * cells that the span to the right will read are put there.
 */
#ifndef MX_RESIDENT_H
#define MX_RESIDENT_H

#include "engine/work.h"
#include "system/sides.h"

struct mx_resident {
    mx_tile_fn *kernel; /* NULL: no tile is done in place */
    int64_t rows, planes, row_pitch, plane_pitch;
    int64_t span, lanes; /* cells of x, a multiple of lanes; 0: whole rows */
    char *base;
    int64_t bytes; /* of one thread */
};

/* Can tiles of `rows` rows and `planes` planes (0 = any number) be computed in place? */
bool mx_resident_fits(int64_t rows, int64_t planes);
/* Can tiles of spans of `span` cells be computed in place, in rows of the options' pitch? */
bool mx_resident_fits_span(const struct mx_engine_options *options, int64_t span);
/* Allocates memory for tiles of `rows` x `planes` for each thread; span 0 = whole rows. -ENOMEM. */
int mx_resident_make(const struct mx_engine_options *options, int64_t rows, int64_t planes, int64_t span,
                     mx_why *why, struct mx_resident *out);
void mx_resident_free(struct mx_resident *resident);

/* A level of a tile that lies inside its window at all levels. box: the cells that it computes. */
struct mx_resident_level {
    struct mx_box box;
    int from; /* the array that is read */
    bool first, last;
    const struct mx_x_copy *x_copy; /* [x_copies]: copies to make in every row */
    int x_copies;
    const struct mx_after *points; /* if its sources and probes act at this level; NULL = there are none */
    const struct mx_after *norms;  /* of the last level: what gets its rows, norms included; NULL = nothing */
    int64_t level;                 /* level of the run, for these two */
    int64_t first_x;               /* spans: cells first_x .. first_x + span - 1, clipped to the row */
};
/* Returns the cells around the left end of a span that two neighbouring spans share: [first_x - lanes,
 * first_x + lanes), clipped to the nx + 2 cells of the row. [*from, *to) may be empty. */
void mx_resident_side(const struct mx_resident *resident, int64_t nx, int64_t first_x, int64_t *from,
                      int64_t *to);
/* Computes a level of a tile in the memory of thread number `thread`. */
void mx_resident_level(const struct mx_resident *resident, const struct mx_work *work,
                       const struct mx_view *view, int thread, const struct mx_resident_level *level,
                       struct mx_ahead *ahead);

#endif
