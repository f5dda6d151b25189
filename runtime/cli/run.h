/* run.h - one run of the command, as its files see it.
 *
 *     run.c       the command: in what order, how it ends, what it says
 *     prepare.c   before anything is touched: limits, place, plan, commits; what a store says on --resume
 *     phases.c    with the store open: initial grid, computation, checksum, verification, result
 */
#ifndef MX_CLI_RUN_H
#define MX_CLI_RUN_H

#include "cli/options.h"
#include "cli/progress.h"
#include "cli/request.h"
#include "cli/signals.h"
#include "engine/engine.h"
#include "execute/execute.h"
#include "grid/grid.h"
#include "observe/report.h"
#include "observe/timeline.h"
#include "run/note.h"
#include "run/output.h"
#include "schedule/schedule.h"
#include "tune/tune.h"

#include <memext/backend.h>

#include <errno.h>

/* Files that the run leaves, each optional. */
struct mx_run_outputs {
    struct mx_output result, json, timeline, trace;
};

struct mx_run {
    struct mx_options o;
    const char *program;
    mx_why why;
    const struct mx_backend *backend;
    struct mx_problem rest; /* what is left to compute: the problem with the steps after `first_time` */
    int64_t first_time;     /* steps that the store holds already */
    struct mx_tune_request request;
    struct mx_tune_result tuned;
    struct mx_report report;
    struct mx_note note;
    struct mx_npy npy;
    struct mx_fill fill;
    struct mx_run_outputs outputs;
    mx_budget *budget;
    mx_device *device;
    mx_buffer *buffer[MX_BUFFERS], *faces; /* faces: side file, or NULL */
    int32_t n_buffers;
    double commit_every_s; /* 0 = after every sweep */
    const struct mx_algorithm *algorithm;
    const struct mx_engine_ops *ops;
    mx_engine *engine;
    struct mx_schedule *schedule;
    struct mx_progress progress;
    mx_timeline *timeline;
    FILE *streams[2]; /* of timeline and trace */
    int32_t result;   /* Buffer of the result */
    bool resumed, resident;
    bool moving;    /* Buffers are there and data moves: errors are those of I/O */
    bool committed; /* there is something to resume */
    bool planned;   /* the report's plan holds */
    bool told;      /* the plan was printed */
};

/* prepare.c. All: 0 or -errno with r->why. */
int mx_run_prepare(struct mx_run *r); /* place, input, machine, limits; on --resume the store's note */
int mx_run_plan(
    struct mx_run *r); /* plan and predictions, without or (after open) with the device's own facts */
int mx_run_open(struct mx_run *r); /* device, budget, Buffers */
int mx_run_check_names(
    struct mx_run *r); /* no output may be the input, the store, or another output: before any is opened */
int mx_run_open_outputs(struct mx_run *r); /* all but the report, which the command itself opens first */
double mx_run_seconds_a_sweep(const struct mx_run *r);

/* phases.c */
int mx_run_work(struct mx_run *r); /* from the initial grid to the published result */
void mx_run_close(struct mx_run *r);

/* -EINTR when a signal asked for the end. */
static inline int mx_stopped(void) { return mx_stop ? -EINTR : 0; }

#endif
