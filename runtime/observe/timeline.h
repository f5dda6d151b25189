/* SPDX-License-Identifier: BSD-3-Clause */
/* timeline.h - records samples of a run over time, and its steps as events; it shows what is in the page
 * cache.
 *
 * File format: JSON lines. The first line is a header with the names of the columns. Samples and events
 * follow, in the order in which they were taken. With several ranks, which all begin at the same moment, the
 * files of the ranks follow one another. Each begins with a header with `rank` and `ranks`, and its planes
 * are those of that rank.
 *   {"s":[...],"r":[[...],[...]]}  a sample: values in the order of header.columns; counters count from the
 * start of the stencil phase, memory columns are gauges; sampler_s is the CPU time that sampling itself took.
 * r: per Buffer, the percentage of each of header.bins equal ranges of file offset that is in the page cache;
 * absent from samples where looking would have taken more than 0.5 % of a core since the last look, and of
 * anonymous Buffers without `mapped`.
 *   {"e":"advance","t":[b,e],"y":[y0,y1],"z":[z0,z1],"n":updates}  what was done: advance, load, store, copy
 * (n: bytes), load-faces, store-faces (of a side file: y counts rows of slabs, z slabs), feed and take (a
 * load and a store that went by no Buffer, but from the initial grid and to the output; n: bytes that the
 * Buffer would have moved), wait (the computing thread waited for the transfer), sweep (from its first step
 * to the last ADVANCE; n: time steps done since the start), commit (of a sweep, to the superblock).
 *
 * Memory: MX_TIMELINE_EVENT_BYTES for events and some KiB for the two files, however long the run. Samples
 * are written as they are taken, events with the next sample, and at once when there is no room left for
 * them: none is dropped, and the thread that reports one waits for the file then. The trace is one JSON
 * object, which is whole when it is closed.
 */
#ifndef MX_TIMELINE_H
#define MX_TIMELINE_H

#include "system/system.h"

#include <stdio.h>

#define MX_TIMELINE_EVENT_BYTES (UINT64_C(1) << 20)

typedef struct mx_timeline mx_timeline;

enum { MX_TIMELINE_BUFFERS = 3 };

struct mx_timeline_options {
    const char *path;       /* file to write; NULL = `file` */
    const char *trace_path; /* Chrome / Perfetto trace of the events; NULL = `trace` */
    FILE *file,
        *trace; /* open streams instead of paths, which the timeline closes in every case; NULL = none */
    const char *file_name, *trace_name; /* of these streams, for sentences; NULL = "its file" */
    double interval_s;                  /* 0 = 0.1 */
    const struct mx_problem *problem;
    const struct mx_plan *plan;
    mx_device *device;
    mx_device *const *files; /* [n_files]: of files that are read too; NULL entries are skipped */
    int32_t n_files;
    const char *place; /* file or block device with the Buffers; "" for anonymous memory */
    int32_t n_buffers; /* 0 = 2 */
    const char *names[MX_TIMELINE_BUFFERS]; /* of the Buffers; NULL = source, target, spare */
    void *mapped[MX_TIMELINE_BUFFERS];      /* addresses of mapped anonymous Buffers, for mincore; NULL = use
                             place; neither: no      residency */
    uint64_t buffer_offset_bytes[MX_TIMELINE_BUFFERS], buffer_bytes[MX_TIMELINE_BUFFERS];
    int32_t bins; /* 0 = 128 */
    /* The number of this rank, and the number of ranks, whose files are joined. The trace of rank 0 has no
     * end, and those of the others have neither beginning nor end. Concatenated, and followed by
     * mx_timeline_trace_end, they are one trace. */
    int32_t rank, ranks;
};

/* Opens both files and starts sampling on a thread of its own. -errno if a file cannot be opened. */
int mx_timeline_start(const struct mx_timeline_options *options, mx_why *why, mx_timeline **out);
void mx_timeline_updates(mx_timeline *timeline, int64_t updates_done); /* NULL allowed */
/* name: a string that outlives the timeline. Times are CLOCK_MONOTONIC nanoseconds. NULL allowed. */
void mx_timeline_event(mx_timeline *timeline, const char *name, uint64_t begin_ns, uint64_t end_ns,
                       const int64_t y[2], const int64_t z[2], uint64_t amount);
/* Ends the sampling and both files. 0 or the first error of writing. NULL allowed. */
int mx_timeline_stop(mx_timeline *timeline, mx_why *why);
extern const char mx_timeline_trace_end[];

#endif
