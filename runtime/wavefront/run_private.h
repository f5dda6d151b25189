/* SPDX-License-Identifier: BSD-3-Clause */
/* run_private.h - one run as its files see it: prepare.c (before anything is touched, and the store), run.c
 * (the phases), report.c (what is said of it). */
#ifndef MX_WAVEFRONT_RUN_PRIVATE_H
#define MX_WAVEFRONT_RUN_PRIVATE_H

#include "files/output.h"
#include "machine/machine.h"
#include "observe/report.h"
#include "observe/timeline.h"
#include "observe/usage.h"
#include "wavefront/convert.h"
#include "wavefront/pipeline.h"
#include "wavefront/reference.h"
#include "wavefront/run.h"
#include "wavefront/source.h"

#include <memext/backend.h>

struct mx_wf_run {
    struct mx_wf_options o;
    const atomic_int *stop;
    void (*progress)(void *context, const char *label, int64_t done, int64_t total);
    void *context;
    mx_why why;
    uint64_t begin_ns;

    /* prepared */
    const struct mx_backend *backend;
    struct mx_machine machine;
    struct mx_wf_source source;
    struct mx_wf_request request;
    struct mx_wf_choice choice;
    uint64_t dram_limit_bytes, reserve_bytes;
    bool resumed, planned;
    int64_t first; /* iterations that the store holds already */
    struct mx_output outputs[MX_WF_MATRICES], json, timeline_file, trace_file;

    /* open */
    mx_budget *budget;
    mx_device *device;
    struct mx_device_facts device_facts;
    mx_buffer *data[2], *fixed[MX_WF_MATRICES];
    struct mx_wf_note note;
    bool moving, committed;
    mx_timeline *timeline;
    const char *label; /* of the phase, and its units in all */
    int64_t total;

    /* measured */
    struct mx_wf_executed executed;
    struct mx_counters counters;
    struct mx_usage usage;
    double converted_s[MX_WF_MATRICES], written_s[MX_WF_MATRICES]; /* to and from the layout */
    double init_seconds, post_seconds, verify_seconds, sequential_seconds;
    char checksum[17];
    int verified;
    mx_block *matrices; /* of --sequential */
};

/* prepare.c: 0 or -errno with run->why */
int mx_wf_prepare(mx_wf_run *run);
int mx_wf_check_room(mx_wf_run *run); /* of a dry run: would there be room for the Buffers? */
int mx_wf_open_outputs(mx_wf_run *run);
int mx_wf_open_store(mx_wf_run *run);

static inline int mx_wf_stopped(const mx_wf_run *r) { return r->stop != NULL && *r->stop != 0 ? -EINTR : 0; }
/* The geometry of the run. */
static inline const struct mx_wf_geometry *mx_wf_geometry_of(const mx_wf_run *r) {
    return &r->choice.plan.geometry;
}

#endif
