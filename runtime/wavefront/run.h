/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - a wavefront run from its options to its report: what `memext wavefront` does, without the command.
 */
#ifndef MX_WAVEFRONT_RUN_H
#define MX_WAVEFRONT_RUN_H

#include "ask/effect.h"
#include "wavefront/calctrans.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>

/* What the run is told by its caller, and tells it; what is NULL is left out. */
struct mx_wf_caller {
    const atomic_int *stop; /* set from outside, ends the run in order */
    /* Label of a phase; "updates" or "B", so many done and in all. */
    void (*progress)(void *context, const char *label, const char *unit, int64_t done, int64_t total);
    mx_remark *remark; /* on options that change nothing */
    void *context;
};

typedef struct mx_wf_run mx_wf_run;

/* Takes nothing of the options but texts. -EINVAL: words of --input and --output. */
int mx_wf_run_create(const struct mx_options *options, const struct mx_wf_caller *caller, mx_why *why,
                     mx_wf_run **out);
/* Everything up to the published result. 0, -EINTR, or an error; plan, if any, is printed to `to` (NULL =
 * not). */
int mx_wf_run_work(mx_wf_run *run, FILE *to);
/* Writes the newest complete state of the store in options->place, as --output says. 0, -EINTR, or an error.
 */
int mx_wf_run_export(mx_wf_run *run);
/* Then: a line for each file; what a report says of them, and of the store. */
void mx_wf_run_say_exported(const mx_wf_run *run, FILE *to);
void mx_wf_run_put_exported(const mx_wf_run *run, json_t *report, json_t *store);
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

#endif
