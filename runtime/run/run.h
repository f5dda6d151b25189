/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - functions for the command, beyond those of memext.h: runs of options that were read already, and of
 * processes that signals may end. */
#ifndef MX_RUN_RUN_H
#define MX_RUN_RUN_H

#include "ask/options.h"

#include <errno.h>
#include <stdio.h>

/* Makes a run of options that were read. The texts of the options must stay valid. remark: as in struct
 * mx_run_options. -ENOMEM.
 */
int mx_run_make(const struct mx_options *options, void (*remark)(void *context, const char *sentence),
                void *context, mx_run **out);
/* Fills in the report's part about the end of the run, err. */
void mx_run_close_report(mx_run *r, int err);
/* Returns the report as text, which the caller frees with free(). */
int mx_run_json(const mx_run *r, mx_why *why, char **out);

/* ---- told.c: functions with which the command reports on a run */

/* Call it first: finds out which of several ranks this process is. late: true = mx_run_prepare must not wait
 * any longer. */
int mx_run_begin(mx_run *r, bool (*late)(void), mx_why *why);
/* Returns the number of this rank; -1 = the run is a single process. */
int mx_run_rank(const mx_run *r);
/* Call it before the file of the report is opened: checks that it is not another file of the run. */
int mx_run_check_json_path(mx_run *r, mx_why *why);
/* Has this process a report to write, and is its file still not one of the run's? */
bool mx_run_may_write_json(const mx_run *r);
/* Print the plan of a prepared run, with the text of --explain on standard error; and the result of a run. */
void mx_run_print_plan(mx_run *r, FILE *to);
void mx_run_print_result(const mx_run *r, FILE *to);
/* How a run ended: sentences ("" = none), and what determines the exit status. */
struct mx_run_end {
    char line[2][1024];
    bool moving;    /* data was being moved: errors are those of I/O */
    bool different; /* --verify found another result */
};
/* Describes the end of a run, by its own error, or by `err` if it has none. Returns the error. */
int mx_run_end_at(mx_run *r, int err, const mx_why *why, struct mx_run_end *end);
/* Sets the exit status of this process, for the ranks that wait for it. */
void mx_run_set_status(mx_run *r, int status);

/* ---- planned.c */

/* Adds to the report of a run that is planned and not begun (object: a json_t) the plan as a line, all
 * candidates, and the rates. */
void mx_run_add_planned(const mx_run *r, void *object);

/* ---- release.c */

/* For a process that must end at once because a page of a mapped Buffer cannot be read or written, where the
 * run's thread has stopped. Keeps what was committed, and waits for nothing. */
void mx_run_abandon(mx_run *r);
/* Closes what is still open if a run did not end well: the sink learns that there is no result. */
void mx_run_close_ends(mx_run *r);
void mx_run_release(mx_run *r);

#endif
