/* SPDX-License-Identifier: BSD-3-Clause */
/* points.h - the sources and probes of a run: read before anything is touched, traces written beside the
 * store while it goes on.
 *
 * The file of traces is not one that appears when it is whole (output.h): its rows up to a committed step are
 * durable before the commit is, so that an interrupted run goes on with it. A run is resumed with the same
 * sources and probes: their identities are in the note.
 */
#ifndef MX_RUN_POINTS_H
#define MX_RUN_POINTS_H

#include "engine/after.h"

struct mx_run_points {
    struct mx_sources sources;
    struct mx_points probes;
    struct mx_traces traces;
    struct mx_after after;
    int64_t capacity; /* steps that the ring of traces has room for */
    int fd;           /* of the file of traces; -1 = none */
    /* Of a rank: `probes` are those of its planes, of `all` in the run, at most `most` of a rank. Rank 0,
     * which writes the file, knows whose they are: number i of rank k is column[k * most + i] of the traces.
     */
    int64_t all, most;
    int64_t *column;
};

/* All with r->why. */

/* Reads what --source, --sources and --probes name, once the grid is known. -EINVAL. */
int mx_run_take_points(mx_run *r);
/* Can the file of traces be had? Nothing is touched. */
int mx_run_check_points(mx_run *r);
/* DRAM that points take besides Blocks, and room for the traces of one more plan: true if that plan fits in
 * what was counted, else capacity has grown and the plan is to be made again. */
uint64_t mx_run_points_bytes(const mx_run *r);
bool mx_run_points_fit(mx_run *r);
/* Opens the file of traces that a run goes on with, once the store is ours. */
int mx_run_open_points(mx_run *r);
/* Makes that of a run that begins, or replaces one: nothing is refused any more. */
int mx_run_begin_points(mx_run *r);
/* Steps of the run that are complete: their traces into the file. */
int mx_run_write_traces(mx_run *r, int64_t steps, mx_why *why);
/* The run has ended: before its last step the file is cut. */
int mx_run_end_traces(mx_run *r);
/* Before the commit of what was written. 0 or -errno, no sentence. */
int mx_run_sync_traces(mx_run *r);
void mx_run_close_points(mx_run *r);

#endif
