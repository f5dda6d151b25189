/* SPDX-License-Identifier: BSD-3-Clause */
/* feed.h - the first sweep's LOADs from elsewhere than a Buffer: a file, or a formula.
 *
 * Threads of their own fill the rows of a LOAD, plane by plane, several planes at a time. Like a transfer a
 * LOAD is through when all of its rows are there.
 */
#ifndef MX_FEED_H
#define MX_FEED_H

#include "engine/engine.h"
#include "steps/step.h"

struct mx_feeding {
    int32_t threads; /* from 1 on */
    /* Fills rows [y0,y1) of plane z of the state that the run begins with, frame counted, in the coordinates
     * of a Buffer: the first stands at `rows`, the next row_pitch_bytes further. Called on several threads at
     * a time, `thread` from 0 on says on which. < 0 with a sentence: the run fails. */
    int (*rows)(void *context, int32_t thread, int64_t z, int64_t y0, int64_t y1, char *rows,
                int64_t row_pitch_bytes, mx_why *why);
    void *context;
};

struct mx_feeder;
struct mx_feed; /* a LOAD that was posted */
int mx_feeder_start(const struct mx_feeding *feeding, mx_why *why, struct mx_feeder **out);
/* Of a LOAD of array 0 or 1; view with its offsets. NULL: no memory. */
struct mx_feed *mx_feeder_post(struct mx_feeder *feeder, const struct mx_step *load,
                               const struct mx_view *view);
bool mx_feed_done(const struct mx_feed *feed);
/* Waits, frees. 0, or the feeder's first error, whose sentence `why` gets. */
int mx_feeder_finish(struct mx_feeder *feeder, struct mx_feed *feed, mx_why *why);
/* Nothing is posted any more. NULL allowed. */
void mx_feeder_stop(struct mx_feeder *feeder);

#endif
