/* SPDX-License-Identifier: BSD-3-Clause */
/* points.h - the sources and probes of a run. They are read before anything is touched, and traces are
 * written to a file during the run.
 *
 * The file of traces does not appear only when it is complete (output.h). Its rows up to a committed step are
 * durable before the commit is, so that an interrupted run continues with it. A resumed run must have the
 * same sources and probes, whose identities are in the note.
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
    /* With several ranks `probes` are those of this rank's planes, of `all` probes in the run; no rank has
     * more than `most`. Rank 0 writes the file: probe i of rank k is column[k * most + i] of the traces.
     */
    int64_t all, most;
    int64_t *column;
};

#endif
