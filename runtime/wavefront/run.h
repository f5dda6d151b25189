/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - a wavefront run from its options to its report: what `memext wavefront` does, without the command.
 */
#ifndef MX_WAVEFRONT_RUN_H
#define MX_WAVEFRONT_RUN_H

#include "wavefront/calctrans.h"
#include "wavefront/note.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>

struct mx_wf_options {
    int64_t rows, cols, iterations;    /* 0 rows = from the inputs; iterations -1 = not given */
    const char *layout;                /* NULL = frontier */
    int64_t mb, nb, waves, ahead;      /* 0 = to be chosen */
    int32_t threads;                   /* 0 = cores */
    const char *path, *backend, *init; /* NULL = default */
    const char *inputs[MX_WF_MATRICES], *outputs[MX_WF_MATRICES];
    const char *json, *timeline, *trace; /* files; json "-" = standard output */
    uint64_t dram_bytes;                 /* 0 = what there is */
    enum mx_advice advice;
    bool unchained, sequential, verify, resume, keep, force, no_lock, overwrite, dry_run, quiet;
    uint32_t queue_depth, request_bytes, workers;
    const char *fault;
    double read_bw, write_bw, rate; /* 0 = assumed */
};

typedef struct mx_wf_run mx_wf_run;

/* stop: set from outside, ends the run in order. progress may be NULL: label of a phase, its units done and
 * in all. */
int mx_wf_run_create(const struct mx_wf_options *options, const atomic_int *stop,
                     void (*progress)(void *context, const char *label, int64_t done, int64_t total),
                     void *context, mx_why *why, mx_wf_run **out);
/* Everything up to the published result. 0, -EINTR, or an error; plan, if any, is printed to `to` (NULL =
 * not). */
int mx_wf_run_work(mx_wf_run *run, FILE *to);
/* Data was moved: errors are those of I/O. */
bool mx_wf_run_moving(const mx_wf_run *run);
/* 1 verified, 0 different, -1 not asked. */
int mx_wf_run_verified(const mx_wf_run *run);
/* What a user of an interrupted or failed run needs to know: "" or a sentence. */
const char *mx_wf_run_way_on(const mx_wf_run *run, char *text, size_t capacity);
/* Writes the report that was asked for, whatever the end was, and a summary to `to` (NULL = none). */
int mx_wf_run_report(mx_wf_run *run, int err, FILE *to, mx_why *why);
/* For a process that must end at once: outputs vanish, the device is abandoned. */
void mx_wf_run_abandon(mx_wf_run *run);
void mx_wf_run_close(mx_wf_run *run);
const char *mx_wf_run_sentence(const mx_wf_run *run);

/* What `memext tune --wavefront` prints. */
json_t *mx_wf_json_choice(const struct mx_wf_request *request, const struct mx_wf_choice *choice);
void mx_wf_print_choice(const struct mx_wf_request *request, const struct mx_wf_choice *choice, FILE *to);

#endif
