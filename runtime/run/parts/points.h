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
    int64_t capacity; /* steps that the ring of traces has room for */
    int fd;           /* of the file of traces; -1 = none */
    /* Of a rank: `probes` are those of its planes, of `all` in the run, at most `most` of a rank. Rank 0,
     * which writes the file, knows whose they are: number i of rank k is column[k * most + i] of the traces.
     */
    int64_t all, most;
    int64_t *column;
};

#endif
