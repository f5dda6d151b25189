/* SPDX-License-Identifier: BSD-3-Clause */
/* told.c - what the command tells of a run: its plan, its result, how it ended. */
#include "run/open/open.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mx_run_begin(mx_run *r, bool (*late)(void), mx_why *why) {
    r->late = late;
    int err = mx_run_open_ranks(r);
    if (err < 0) *why = r->why;
    return err;
}

int mx_run_check_json_path(mx_run *r, mx_why *why) {
    int err = mx_run_check_names(r);
    if (err == 0) err = mx_run_check_stored_names(r);
    if (err < 0) *why = r->why;
    return err;
}

bool mx_run_may_write_json(const mx_run *r) {
    return r->o.json != NULL && !r->same_names && !r->names_unknown;
}

void mx_run_print_plan(mx_run *r, FILE *to) {
    char *text = r->o.explain ? mx_tune_explain(&r->request, &r->tuned) : NULL;
    if (text != NULL) fputs(text, stderr);
    free(text);
    r->report.problem = r->whole;
    if (!r->o.quiet) mx_report_print_plan(&r->report, to);
}

void mx_run_print_result(const mx_run *r, FILE *to) {
    if (!r->o.quiet) mx_report_print_result(&r->report, to);
}

/* ------------------------------------------------------------------ the end */

static void tell_interrupted(const mx_run *r, struct mx_run_end *end) {
    if (r->committed)
        snprintf(end->line[0], sizeof end->line[0],
                 "interrupted after step %lld of %lld; resume it with --resume", (long long)r->note.time,
                 (long long)r->o.problem.nt);
    else if (r->algorithm != NULL && !r->algorithm->resumable && r->report.seconds > 0)
        snprintf(end->line[0], sizeof end->line[0],
                 "interrupted; %s rewrites the Buffers in place and cannot be resumed", r->algorithm->name);
    else
        snprintf(end->line[0], sizeof end->line[0],
                 "interrupted before the first commit: start the run again");
}

static void tell_failed(const mx_run *r, int err, struct mx_run_end *end) {
    if (mx_run_is_silent(r)) return;
    snprintf(end->line[0], sizeof end->line[0], "%s", r->why.text[0] != 0 ? r->why.text : strerror(-err));
    if (err < 0 && err != -EDOM && r->moving && r->unobserved.err == 0 && r->committed && !r->note.pending)
        snprintf(end->line[1], sizeof end->line[1],
                 "step %lld of %lld is committed in %.600s; resume the run with --resume",
                 (long long)r->note.time, (long long)r->o.problem.nt, mx_run_committed_place(r));
}

int mx_run_end_at(mx_run *r, int err, const mx_why *why, struct mx_run_end *end) {
    if (r->state == MX_RUN_ENDED) err = r->err;
    *end = (struct mx_run_end){.moving = r->moving, .different = err == 0 && r->report.verified == 0};
    if (err < 0 && why->text[0] != 0) r->why = *why;
    if (err == -EINTR)
        tell_interrupted(r, end);
    else if (err < 0 || end->different)
        tell_failed(r, err, end);
    mx_run_close_report(r, err);
    return err;
}
