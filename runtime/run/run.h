/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - runs, as the command and the library make them. */
#ifndef MX_RUN_RUN_H
#define MX_RUN_RUN_H

#include "run/state.h"

/* A run of options that were read; takes nothing of them but texts. -ENOMEM. */
int mx_run_make(const struct mx_options *options, mx_run **out);
/* Fills in what the report says of the end, err. */
void mx_run_close_report(struct mx_run *r, int err);
/* The report as text; free() it. */
int mx_run_json(const struct mx_run *r, mx_why *why, char **out);

/* ---- release.c */

/* For a process that must end at once, since memory that Buffers are mapped to cannot be had, and the run's
 * thread stands still in it: what was committed is kept, nothing is waited for. */
void mx_run_abandon(struct mx_run *r);
/* What was not closed at the end of a run that was good: the sink learns that there is no result. */
void mx_run_close_ends(struct mx_run *r);
void mx_run_release(struct mx_run *r);

#endif
