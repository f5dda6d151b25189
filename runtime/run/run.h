/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - runs as the command makes them: memext.h, with options that were read already, and for processes
 * that signals end. */
#ifndef MX_RUN_RUN_H
#define MX_RUN_RUN_H

#include "ask/options.h"

#include <errno.h>
#include <stdio.h>

/* A run of options that were read; takes nothing of them but texts. remark: as in struct mx_run_options.
 * -ENOMEM.
 */
int mx_run_make(const struct mx_options *options, void (*remark)(void *context, const char *sentence),
                void *context, mx_run **out);
/* Fills in what the report says of the end, err. */
void mx_run_close_report(mx_run *r, int err);
/* The report as text; free() it. */
int mx_run_json(const mx_run *r, mx_why *why, char **out);

/* ---- told.c: what the command tells of a run */

/* Before anything else: which of several ranks is this process? late: mx_run_prepare is to wait no longer. */
int mx_run_begin(mx_run *r, bool (*late)(void), mx_why *why);
/* The number of this rank; -1 = the run is by itself. */
int mx_run_rank(const mx_run *r);
/* Before the file of the report is opened: it is no other file of the run. */
int mx_run_check_json_path(mx_run *r, mx_why *why);
/* Has this process a report to write, and is its file still none of the run's? */
bool mx_run_may_write_json(const mx_run *r);
/* Of a prepared run, with the text of --explain on standard error; of one that was computed. */
void mx_run_print_plan(mx_run *r, FILE *to);
void mx_run_print_result(const mx_run *r, FILE *to);
/* How a run ended: sentences ("" = none), and what the exit status depends on. */
struct mx_run_end {
    char line[2][1024];
    bool moving;    /* data was being moved: errors are those of I/O */
    bool different; /* --verify found another result */
};
/* The end of a run, by its own error, or, where it did not come to one, by this. Returns the error. */
int mx_run_end_at(mx_run *r, int err, const mx_why *why, struct mx_run_end *end);
/* The exit status of this process, for those that wait for its rank. */
void mx_run_set_status(mx_run *r, int status);

/* ---- planned.c */

/* What the report of a run that is planned and not begun has besides, into its object (json_t): the plan as a
 * line, all that it was chosen from, the rates. */
void mx_run_add_planned(const mx_run *r, void *object);

/* ---- release.c */

/* For a process that must end at once, since memory that Buffers are mapped to cannot be had, and the run's
 * thread stands still in it: what was committed is kept, nothing is waited for. */
void mx_run_abandon(mx_run *r);
/* What was not closed at the end of a run that was good: the sink learns that there is no result. */
void mx_run_close_ends(mx_run *r);
void mx_run_release(mx_run *r);

#endif
