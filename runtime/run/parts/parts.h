/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.h - optional parts of a run besides its computation. Each is a file and a row of the table. No other
 * file of run/ names a part.
 *
 * To add a part, write a file in this folder with a struct mx_part at its end, and add a row of mx_parts
 * (parts.c) and a member of struct mx_run_parts for its data. Its functions are called in the order of a run:
 *
 *     make, take, names, check     take what the options or the store ask for, or refuse it, before anything
 *                                  is touched
 *     has_ended, may_end_early     for parts that end runs
 *     accel_bytes, dram_bytes,
 *     fits, predict                pure; called again until the plan is stable
 *     hinders                      why the last sweep cannot write the output too
 *     open, hold, begin            allocate memory; lock what the part writes to; empty it
 *     most_ahead                   how far the computation may be ahead of `swept`
 *     may_end, swept               can the next sweep end the run? The executor has completed it
 *     prepare, note                the commit of a state
 *     failed                       work on a thread of the part has failed
 *     finish, report, close        end the work, fill the report, free everything
 *     abandon                      the process must end at once
 *
 * docs/extending.md says which functions a part needs, and how it sees the state.
 */
#ifndef MX_RUN_PARTS_H
#define MX_RUN_PARTS_H

#include "run/parts/norms.h"
#include "run/parts/points.h"
#include "run/parts/snapshots.h"

/* Reductions of states while these are stored: which of the kernel's reductions, and the newest values, by
 * the kernel's numbers. */
struct mx_run_stored {
    int32_t n, number[MX_MAX_REDUCES];
    struct mx_reduce reduce[MX_MAX_REDUCES];
    struct mx_norms *norms; /* NULL: none are taken */
    struct mx_taking taking;
    int64_t step; /* of the values; 0 = none yet */
    double value[MX_MAX_REDUCES];
};

/* The data of the parts. */
struct mx_run_parts {
    struct mx_run_points points;
    struct mx_run_norms norms;
    struct mx_run_stored stored;
    struct mx_run_snapshots snapshots;
    char time_step[MX_TIME_STEP_TEXT]; /* of seconds.c: --time-step, as the store keeps it */
};

/* A part. A function may be NULL if the part has nothing to do there. Functions that return int return 0 or
 * -errno with r->why, unless their comment says otherwise. */
struct mx_part {
    const char *name;
    void (*make)(mx_run *r); /* nothing is open yet */
    int (*take)(mx_run *r);
    /* Returns path i of the files that the part uses, which no output may be; NULL after the last. */
    const char *(*names)(const mx_run *r, int64_t i, const char **option);
    int (*check)(mx_run *r);
    uint64_t (*dram_bytes)(const mx_run *r); /* besides Blocks */
    /* Are the counted bytes enough for the plan? If not, the part has raised them, and the plan is made
     * again. */
    bool (*fits)(mx_run *r);
    uint64_t (*accel_bytes)(const mx_run *r); /* of an accelerator's memory besides Blocks */
    void (*predict)(mx_run *r);               /* may be called several times */
    bool (*has_ended)(const mx_run *r);       /* of a resumed run: is there nothing left to compute? */
    bool (*may_end_early)(const mx_run *r);   /* may it end the run before its last step? */
    const char *(*hinders)(
        const mx_run *r);    /* why the last sweep cannot write the output too; NULL = it can */
    int (*open)(mx_run *r);  /* the store is open: allocates memory, and fills its share of r->after */
    int (*hold)(mx_run *r);  /* locks what it writes to; everything else of the run has been accepted */
    int (*begin)(mx_run *r); /* everything has been accepted: removes old files of its outputs */
    int64_t (*most_ahead)(
        const mx_run *r); /* levels that may be computed beyond the last sweep; 0 = no limit */
    /* The sweep up to this step is complete. 1 = the run ends here; else 0, or -errno with a sentence. */
    int (*swept)(mx_run *r, int64_t step, mx_why *why);
    bool (*may_end)(const mx_run *r, int64_t step);
    int (*prepare)(mx_run *r, int64_t step); /* before this step is committed; gives no sentence */
    void (*note)(mx_run *r);                 /* fills its share of r->note, for r->note.time */
    int (*finish)(mx_run *r);
    const char *(*failed)(const mx_run *r); /* the sentence of failed work on another thread, or NULL */
    void (*report)(mx_run *r);              /* may be called several times, and in dry runs */
    void (*abandon)(mx_run *r);             /* the process must end at once */
    void (*close)(mx_run *r);
};
extern const struct mx_part *const mx_parts[]; /* ends with NULL */
extern const struct mx_part mx_part_seconds;
extern const struct mx_part mx_part_points;
extern const struct mx_part mx_part_norms;
extern const struct mx_part mx_part_stored;
extern const struct mx_part mx_part_snapshots;

/* Call the function of all parts, in the order of the table. Those that return int return the first error. */
void mx_parts_make(mx_run *r);
int mx_parts_take(mx_run *r);
int mx_parts_check(mx_run *r);
const char *mx_parts_name(const mx_run *r, int64_t i, const char **option);
uint64_t mx_parts_dram_bytes(const mx_run *r);
bool mx_parts_fit(mx_run *r);
uint64_t mx_parts_accel_bytes(const mx_run *r);
/* A part that needs states (execute/take.h) calls this in `take`, before the plan is made, or in `open` if
 * that reads no Buffer. *taking must stay where it is until `close`; every and stride must be set now, the
 * rest before `begin`. r->o.problem.due has the steps that must end sweeps. It counts the Buffers that are
 * read for that, and their DRAM. -EINVAL: there are too many such parts. */
int mx_parts_hand_out(mx_run *r, const struct mx_taking *taking);
/* Is the counted DRAM for that enough for the plan? Like `fits`. */
bool mx_parts_have_planes(mx_run *r);
/* Returns the bytes of Buffers that are read for all parts that need states, with this algorithm, shape
 * and layout. */
int64_t mx_parts_read_bytes(const mx_run *r, const char *algorithm, const struct mx_shape *shape,
                            const struct mx_layout *layout);
void mx_parts_predict(mx_run *r);
bool mx_parts_have_ended(const mx_run *r);
bool mx_parts_may_end_early(const mx_run *r);
const char *mx_parts_hinder(const mx_run *r);
int mx_parts_open(mx_run *r);
int mx_parts_hold(mx_run *r);
int mx_parts_begin(mx_run *r);
int64_t mx_parts_most_ahead(const mx_run *r);
int mx_parts_swept(mx_run *r, int64_t step, mx_why *why);
bool mx_parts_may_end(const mx_run *r, int64_t step);
int mx_parts_prepare(mx_run *r, int64_t step);
void mx_parts_note(mx_run *r);
int mx_parts_finish(mx_run *r);
const char *mx_parts_failed(const mx_run *r);
void mx_parts_report(mx_run *r);
void mx_parts_abandon(mx_run *r);
void mx_parts_close(mx_run *r);

#endif
