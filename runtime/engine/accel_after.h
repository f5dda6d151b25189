/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_after.h - inside engine/ only: what happens to rows that a level has written (engine/after.h), if
 * they are in the memory of an accelerator that is not `here` (accel.h). Kernels and copies on the device add
 * sources and refresh frames, in the queue of the levels. Values of probes are gathered on the device, and
 * transferred when their call is done. At check steps lanes of rows are summed on the device, and transferred
 * at once.
 *
 * None of these transfers count as bytes of LOADs and STOREs (mx_accel_aside).
 */
#ifndef MX_ACCEL_AFTER_H
#define MX_ACCEL_AFTER_H

#include "accel/accel.h"
#include "engine/accel_text.h"
#include "engine/after.h"
#include "engine/work.h"

struct mx_accel_after;

/* Makes the tables of points, and room for gathered values. `after`: that of any call, since they differ only
 * in the reach. NULL = something failed; the accelerator remembers the error. */
struct mx_accel_after *mx_accel_after_make(mx_accel *accel, const struct mx_work *work,
                                           const struct mx_view *view, const struct mx_after *after,
                                           char *series);

/* accel_series.c: copies the parameters over time to memory of the accelerator, which the caller frees with
 * mx_accel_release. *out NULL: there are none. */
int mx_accel_put_series(mx_accel *accel, const struct mx_problem *problem, char **out);
void mx_accel_after_free(struct mx_accel_after *after); /* NULL allowed */

/* Call it when planes [z0,z1) of the window of level l have been computed: adds sources, makes zeros, and
 * takes norms if the level is due. `old`: mx_accel_after_keep has kept what these planes held before. 0 or
 * -errno; *number: the last operation in the queue of the levels. */
int mx_accel_after_planes(struct mx_accel_after *after, const struct mx_advance *a, int32_t l, int64_t z0,
                          int64_t z1, bool old, int64_t *number);
/* Returns how many planes at a time must be kept, computed and handed over in this way; 0 = any number, and
 * nothing is kept. */
int64_t mx_accel_after_kept(const struct mx_accel_after *after, const struct mx_advance *a, int32_t l);
int mx_accel_after_keep(struct mx_accel_after *after, const struct mx_advance *a, int32_t l, int64_t z0,
                        int64_t z1, int64_t *number);
/* Call it when the whole window has been computed: handles probes and frames. `call`: the engine's number of
 * the call. */
int mx_accel_after_level(struct mx_accel_after *after, const struct mx_advance *a, int32_t l, int64_t call,
                         int64_t *number);
/* Refreshes the planes that copy rows of a seam which was inserted as level l. */
int mx_accel_after_inserted(struct mx_accel_after *after, const struct mx_advance *a, int32_t l,
                            int64_t *number);
/* Calls up to this one are done: records their values of probes. */
void mx_accel_after_done(struct mx_accel_after *after, int64_t call);

/* accel_there.c: returns how many planes one launch may compute. */
int64_t mx_accel_most_planes(const mx_accel *accel);
/* Returns the launch of level l of a call, for rows [y0,y1) and planes [z0,z1). series: from
 * mx_accel_put_series. */
struct mx_accel_level mx_accel_level_of(const struct mx_problem *problem, const struct mx_advance *a,
                                        int32_t l, int64_t y0, int64_t y1, int64_t z0, int64_t z1,
                                        char *series);

#endif
