/* SPDX-License-Identifier: BSD-3-Clause */
/* resident.h - inside engine/ only: tiles whose levels are computed in place, in memory of the thread's own.
 *
 * In skewed coordinates a tile is the same box at every level, so one array serves all its levels: level l+1
 * of a row replaces level l of the row it stands for (mx_tile). That array is half of what two would be,
 * stays in L2, and reads and writes each line of it once a level. The view gets what others read: of every
 * level the last 2h rows and planes, of the last level everything.
 *
 * If rows are too long for that, a tile has spans of rows, skewed in x by one vector a level
 * (mx_stencil_span). Rows in the thread's memory have the pitch of the view's rows, and only one span of each
 * row is used. Cell x of a level lies x - first_x cells behind the place of that level's cell first_x. What
 * the span to the left has computed of a row that a level reads, two vectors, is fetched from the view
 * before, and what the span to the right will read is put there after it.
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

/* Whether tiles of so many rows and planes (0: any) can be done in place. */
bool mx_resident_fits(int64_t rows, int64_t planes);
/* Whether tiles of spans of `span` cells can: of rows of the options' pitch. */
bool mx_resident_fits_span(const struct mx_engine_options *options, int64_t span);
/* Memory for tiles of `rows` x `planes` for each thread; span 0: of whole rows. -ENOMEM. */
int mx_resident_make(const struct mx_engine_options *options, int64_t rows, int64_t planes, int64_t span,
                     mx_why *why, struct mx_resident *out);
void mx_resident_free(struct mx_resident *resident);

/* Level l of levels [l0,l1), all of it inside its window; box: what it computes. */
struct mx_resident_level {
    struct mx_box box;
    int from; /* array that is read */
    bool first, last;
    const struct mx_x_copy *x_copy; /* [x_copies]: made of every row */
    int x_copies;
    const struct mx_after *points; /* its sources and probes act; NULL = there are none */
    const struct mx_after *norms;  /* the last level: rows are handed to all that is asked; NULL = not */
    int64_t level;                 /* of the run, for these */
    int64_t first_x; /* spans: cells first_x .. first_x + span - 1, as far as the row has them */
};
/* Cells of the row's nx + 2 that a level reads beside its own, first_x or those before it; [from, to), which
 * may be empty. */
void mx_resident_side(const struct mx_resident *resident, int64_t nx, int64_t first_x, int64_t *from,
                      int64_t *to);
void mx_resident_level(const struct mx_resident *resident, const struct mx_work *work,
                       const struct mx_view *view, int thread, const struct mx_resident_level *level,
                       struct mx_ahead *ahead);

#endif
