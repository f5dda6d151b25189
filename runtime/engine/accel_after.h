/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_after.h - inside engine/ only: what happens to rows that a level has written (engine/after.h), where
 * they are in memory of an accelerator that is not here. Sources are added and frames refreshed by kernels
 * and copies there, in the queue of the levels; values of probes are gathered there and got when the call
 * they are of is done; lanes of rows are summed there at check steps, and got at once.
 *
 * Nothing of it counts as bytes of LOADs and STOREs (mx_accel_aside).
 */
#ifndef MX_ACCEL_AFTER_H
#define MX_ACCEL_AFTER_H

#include "accel/accel.h"
#include "engine/accel_text.h"
#include "engine/after.h"
#include "engine/work.h"

struct mx_accel_after;

/* Tables of points, and room for what is gathered. `after` of any call: all have the same but for the reach.
 * What fails is remembered by the accelerator. NULL then. */
struct mx_accel_after *mx_accel_after_make(mx_accel *accel, const struct mx_work *work,
                                           const struct mx_view *view, const struct mx_after *after,
                                           char *series);

/* accel_series.c: the parameters over time, in memory of the accelerator that is released with
 * mx_accel_release. *out NULL: there are none. */
int mx_accel_put_series(mx_accel *accel, const struct mx_problem *problem, char **out);
void mx_accel_after_free(struct mx_accel_after *after); /* NULL allowed */

/* Planes [z0,z1) of the window of level l that have been computed: sources, zeros, and norms of a level that
 * is due. `old`: false, or what these planes held before was kept (mx_accel_after_keep). 0 or -errno;
 * *number: of the last operation in the queue of the levels. */
int mx_accel_after_planes(struct mx_accel_after *after, const struct mx_advance *a, int32_t l, int64_t z0,
                          int64_t z1, bool old, int64_t *number);
/* How many planes at a time must be kept, computed and handed over like that; 0: any, nothing is kept. */
int64_t mx_accel_after_kept(const struct mx_accel_after *after, const struct mx_advance *a, int32_t l);
int mx_accel_after_keep(struct mx_accel_after *after, const struct mx_advance *a, int32_t l, int64_t z0,
                        int64_t z1, int64_t *number);
/* All of the window: probes, frames. `call` is the engine's number of the call. */
int mx_accel_after_level(struct mx_accel_after *after, const struct mx_advance *a, int32_t l, int64_t call,
                         int64_t *number);
/* Rows of a seam that were inserted as level l: the planes that copy them. */
int mx_accel_after_inserted(struct mx_accel_after *after, const struct mx_advance *a, int32_t l,
                            int64_t *number);
/* Calls up to this one are done: their values are recorded. */
void mx_accel_after_done(struct mx_accel_after *after, int64_t call);

/* accel_there.c: planes of a window that one launch may have. */
int64_t mx_accel_most_planes(const mx_accel *accel);
/* Level l of a call, of rows [y0,y1) and planes [z0,z1). series: mx_accel_put_series. */
struct mx_accel_level mx_accel_level_of(const struct mx_problem *problem, const struct mx_advance *a,
                                        int32_t l, int64_t y0, int64_t y1, int64_t z0, int64_t z1,
                                        char *series);

#endif
