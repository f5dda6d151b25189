/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline.h - makes passes over the matrices: tiles are read ahead, computed by P workers, and written
 * behind.
 *
 * Stage s of a pass unpacks tile row s + 1, advances tile row s by wave 1, s - 1 by wave 2, ... and writes
 * tile row s - W + 1, which has all its waves. Worker k takes the stages k, k + P, k + 2P, ... through all
 * passes. Within a stage every wave finds its south (the wave before, one tile row below) already computed.
 * Its north is the same wave of the stage before, which another worker computes slightly ahead. One counter
 * per worker says how far it is, and workers wait for nothing else. So a frontier is handed on as soon as it
 * is computed, in the DRAM where it was computed. No wave or pass waits for the end of the one before.
 *
 * There are three kinds of threads. One reads tiles ahead, in the order in which they are needed. One waits
 * for writes and commits passes. The others are the workers. A pass reads one Buffer of the data matrix and
 * writes the other. It overwrites a Buffer only when the pass before is committed. Threads that wait sleep.
 */
#ifndef MX_WAVEFRONT_PIPELINE_H
#define MX_WAVEFRONT_PIPELINE_H

#include "wavefront/calctrans.h"

#include <stdatomic.h>

struct mx_wf_event {
    const char *name;                  /* "load" "advance" "store" "wait" "commit" */
    uint64_t begin_ns, end_ns, amount; /* bytes or cells */
    int64_t rows[2], cols[2];
};

struct mx_wf_execution {
    const struct mx_wf_plan *plan;
    int64_t iterations; /* to be made, >= 0 */
    mx_device *device;
    mx_buffer *data[2];               /* of the data matrix */
    mx_buffer *fixed[MX_WF_MATRICES]; /* of the coefficients; that of za is not looked at */
    int32_t source;                   /* which of data is read first */
    mx_budget *budget;
    bool lock;              /* mlock the Blocks */
    const atomic_int *stop; /* not NULL: nonzero ends the run with -EINTR */
    /* Called after every pass, when all its writes are done, on a thread of the pipeline: Buffer `buffer`
     * holds `done` iterations. NULL = nothing to do. */
    int (*commit)(void *context, int64_t done, int32_t buffer);
    void (*progress)(void *context, int64_t updates); /* NULL = none; from any thread, one at a time */
    void (*event)(void *context, const struct mx_wf_event *e); /* NULL = none; from any thread */
    void *context;
};

struct mx_wf_executed {
    uint64_t total_ns;
    uint64_t update_ns, copy_ns, wait_ns; /* summed over workers */
    int64_t updates;                      /* cells */
    int64_t done;                         /* iterations of complete passes */
    int32_t result;                       /* Buffer that holds them */
    uint64_t block_bytes;
};

/* 0, -EINTR, or the first error with a sentence; *out is filled in any case. */
int mx_wf_execute(const struct mx_wf_execution *x, mx_why *why, struct mx_wf_executed *out);

#endif
