/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - a wavefront run from its options to its report, for the command `memext wavefront`. */
#ifndef MX_WAVEFRONT_RUN_H
#define MX_WAVEFRONT_RUN_H

#include "ask/effect.h"
#include "wavefront/calctrans.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>

/* Functions and data of the caller; NULL = not wanted. */
struct mx_wf_caller {
    const atomic_int *stop; /* not 0: the run ends in order */
    /* Progress of a phase: its label, the unit ("updates" or "B"), the number done, and the total. */
    void (*progress)(void *context, const char *label, const char *unit, int64_t done, int64_t total);
    mx_remark *remark; /* remarks on options without effect */
    void *context;
};

typedef struct mx_wf_run mx_wf_run;

/* Makes a run. The texts of the options must stay valid. -EINVAL: words of --input and --output. */
int mx_wf_run_create(const struct mx_options *options, const struct mx_wf_caller *caller, mx_why *why,
                     mx_wf_run **out);
/* Does everything up to the published result. 0, -EINTR, or an error. A plan is printed to `to` (NULL = not).
 */
int mx_wf_run_work(mx_wf_run *run, FILE *to);
/* Writes the newest complete state of the store in options->place, as --output says. 0, -EINTR, or an error.
 */
int mx_wf_run_export(mx_wf_run *run);
/* After an export: prints a line for each file; adds what a report says of the files and the store. */
void mx_wf_run_say_exported(const mx_wf_run *run, FILE *to);
void mx_wf_run_put_exported(const mx_wf_run *run, json_t *report, json_t *store);
/* Was data moved, so that errors count as I/O errors? */
bool mx_wf_run_moving(const mx_wf_run *run);
/* 1 verified, 0 different, -1 not asked. */
int mx_wf_run_verified(const mx_wf_run *run);
/* Returns what the user can do after an interrupted or failed run: a sentence, or "". */
const char *mx_wf_run_way_on(const mx_wf_run *run, char *text, size_t capacity);
/* Writes the report that was asked for, however the run ended, and a summary to `to` (NULL = none). */
int mx_wf_run_report(mx_wf_run *run, int err, FILE *to, mx_why *why);
/* For a process that must end at once: removes outputs, and abandons the device. */
void mx_wf_run_abandon(mx_wf_run *run);
void mx_wf_run_close(mx_wf_run *run);
const char *mx_wf_run_sentence(const mx_wf_run *run);

#endif
