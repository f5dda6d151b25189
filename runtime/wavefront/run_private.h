/* SPDX-License-Identifier: BSD-3-Clause */
/* run_private.h - the state of a run, shared by prepare.c (before anything is touched), store.c (device,
 * Buffers, commits), run.c (the phases), result.c (results), report.c (the report). */
#ifndef MX_WAVEFRONT_RUN_PRIVATE_H
#define MX_WAVEFRONT_RUN_PRIVATE_H

#include "files/output.h"
#include "observe/report.h"
#include "observe/timeline.h"
#include "wavefront/convert.h"
#include "wavefront/note.h"
#include "wavefront/pipeline.h"
#include "wavefront/reference.h"
#include "wavefront/run.h"
#include "wavefront/source.h"

#include <memext/backend.h>

struct mx_wf_run {
    struct mx_options o;
    const char *inputs[MX_WF_MATRICES], *outputs[MX_WF_MATRICES]; /* of the options; NULL = none */
    struct mx_wf_caller caller;
    mx_why why;
    uint64_t begin_ns;

    /* prepared */
    const struct mx_backend *backend;
    struct mx_wf_source source;
    struct mx_wf_request request;
    struct mx_wf_choice choice;
    bool resumed, planned, exports;
    int64_t first; /* iterations that the store holds already */
    struct mx_output results[MX_WF_MATRICES], json, timeline_file, trace_file;

    /* open */
    mx_budget *budget;
    mx_device *device;
    mx_buffer *data[2], *fixed[MX_WF_MATRICES];
    struct mx_wf_note note;
    bool moving, committed;
    mx_timeline *timeline;
    const char *label, *unit; /* of the phase: total units, and bytes done */
    int64_t total, bytes_done;

    /* measured; machine, memory and device are there as soon as they are known */
    struct mx_report report;
    int32_t result;                                                /* Buffer that holds it */
    double converted_s[MX_WF_MATRICES], written_s[MX_WF_MATRICES]; /* to and from the layout */
    double post_seconds;
    mx_block *matrices; /* of --sequential */
};

/* ---- run.c */

void mx_wf_begin_phase(mx_wf_run *run, const char *label, const char *unit, int64_t total);
void mx_wf_on_progress(void *run, int64_t done);
void mx_wf_on_bytes(mx_wf_run *run, int64_t more);

static inline int mx_wf_stopped(const mx_wf_run *r) {
    return r->caller.stop != NULL && *r->caller.stop != 0 ? -EINTR : 0;
}
/* The geometry of the run. */
static inline const struct mx_wf_geometry *mx_wf_geometry_of(const mx_wf_run *r) {
    return &r->choice.plan.geometry;
}
static inline bool mx_wf_is_resident(const mx_wf_run *r) {
    return r->backend->anonymous && !r->backend->locks_blocks;
}
static inline int64_t mx_wf_matrix_bytes(const mx_wf_run *r) {
    return (r->source.rows + 2) * (r->source.cols + 2) * (int64_t)sizeof(double);
}
static inline int mx_wf_make_budget(mx_wf_run *r) {
    const uint64_t limit = r->report.dram_limit_bytes;
    return mx_budget_create(limit, limit - r->report.dram_budget_bytes, &r->why, &r->budget);
}
/* Returns options for the plain loop over the run's matrices, in memory; the caller adds what a walk needs.
 */
static inline struct mx_wf_walk_options mx_wf_walk_of(mx_wf_run *r) {
    return (struct mx_wf_walk_options){.source = &r->source,
                                       .iterations = r->o.wavefront.iterations,
                                       .budget = r->budget,
                                       .stop = r->caller.stop,
                                       .progress = mx_wf_on_progress,
                                       .context = r,
                                       .why = &r->why};
}
/* Returns the Buffer of a matrix, with its newest state; and a conversion from or to it. */
static inline mx_buffer *mx_wf_buffer(const mx_wf_run *r, enum mx_wf_matrix m) {
    return m == MX_WF_ZA ? r->data[r->result] : r->fixed[m];
}
static inline struct mx_wf_conversion mx_wf_conversion(mx_wf_run *r, enum mx_wf_matrix m) {
    return (struct mx_wf_conversion){mx_wf_geometry_of(r), m,      r->device, mx_wf_buffer(r, m), r->budget,
                                     r->caller.stop,       &r->why};
}

/* The following functions that return int return 0 or -errno with run->why. */

/* ---- report.c */

void mx_wf_print_choice(const mx_wf_run *run, FILE *to);

/* ---- prepare.c */

int mx_wf_prepare(mx_wf_run *run);
int mx_wf_make_plan(mx_wf_run *run);
uint32_t mx_wf_alignment(const mx_wf_run *run);         /* of transfers, as far as it is known */
int64_t mx_wf_all_bytes(const struct mx_wf_geometry *); /* of all Buffers */

/* ---- store.c */

int mx_wf_ask_place(mx_wf_run *run); /* of a dry run: could the store be made? */
int mx_wf_open_store(mx_wf_run *run);
int mx_wf_begin_note(mx_wf_run *run);
/* context: the run. Called on a thread of the pipeline. */
int mx_wf_commit(void *context, int64_t done, int32_t buffer);
int mx_wf_finish(mx_wf_run *run); /* ends a run: its store then knows the checksum */

/* ---- result.c */

int mx_wf_open_outputs(mx_wf_run *run); /* or, of a dry run, asks whether they could be */
int mx_wf_take_checksum(mx_wf_run *run);
int mx_wf_verify(mx_wf_run *run);
int mx_wf_publish(mx_wf_run *run);

#endif
