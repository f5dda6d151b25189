/* SPDX-License-Identifier: BSD-3-Clause */
/* feed.h - feeds the first sweep's LOADs from a file or a formula, instead of a Buffer.
 *
 * Separate threads fill the rows of a LOAD, plane by plane, several planes at a time. Like a transfer, a LOAD
 * is done when all of its rows are there.
 */
#ifndef MX_FEED_H
#define MX_FEED_H

#include "engine/engine.h"
#include "steps/step.h"

struct mx_feeding {
    int32_t threads; /* 1 or more */
    /* Fills rows [y0,y1) of plane z of the initial state, frame counted, in coordinates of a Buffer. The
     * first row goes to `rows`, each next one row_pitch_bytes later. Called on several threads at a time;
     * thread: the number of the thread, from 0. < 0 with a sentence: the run fails. */
    int (*rows)(void *context, int32_t thread, int64_t z, int64_t y0, int64_t y1, char *rows,
                int64_t row_pitch_bytes, mx_why *why);
    void *context;
};

struct mx_feeder;
struct mx_feed; /* a LOAD that was posted */
int mx_feeder_start(const struct mx_feeding *feeding, mx_why *why, struct mx_feeder **out);
/* Posts a LOAD of array 0 or 1, into `view`, which has its offsets. NULL = no memory. */
struct mx_feed *mx_feeder_post(struct mx_feeder *feeder, const struct mx_step *load,
                               const struct mx_view *view);
bool mx_feed_done(const struct mx_feed *feed);
/* Waits for a LOAD, and frees it. 0, or the feeder's first error, with its sentence in *why. */
int mx_feeder_finish(struct mx_feeder *feeder, struct mx_feed *feed, mx_why *why);
/* Ends the threads; every LOAD is finished. NULL allowed. */
void mx_feeder_stop(struct mx_feeder *feeder);

#endif
