/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - runs as the command makes them: memext.h, with options that were read already, and for processes
 * that signals end. */
#ifndef MX_RUN_RUN_H
#define MX_RUN_RUN_H

#include "ask/options.h"

#include <errno.h>

/* A run of options that were read; takes nothing of them but texts. remark: as in struct mx_run_options.
 * -ENOMEM.
 */
int mx_run_make(const struct mx_options *options, void (*remark)(void *context, const char *sentence),
                void *context, mx_run **out);
/* Fills in what the report says of the end, err. */
void mx_run_close_report(mx_run *r, int err);
/* The report as text; free() it. */
int mx_run_json(const mx_run *r, mx_why *why, char **out);

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
