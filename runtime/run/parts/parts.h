/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.h - what a run may have besides its computation: a file and a row of the table each. No other file of
 * run/ names a part.
 *
 * A new part is a file in this folder with a struct mx_part at its end, a row of mx_parts (parts.c), and a
 * member of struct mx_run_parts for what it keeps. In the order of a run:
 *
 *     make   take -> names -> check      what is asked for, or what the store says; refused before anything
 *                                        is touched
 *     has_ended  may_end_early           of parts that end runs
 *     accel_bytes  dram_bytes  fits  predict   pure, asked again until the plan is stable
 *     hinders                            why the last sweep cannot write the output besides
 *     open   hold -> begin               memory; what it writes to, first locked, then emptied
 *     most_ahead                         what is kept for so many levels alone, until `swept` takes it
 *     swept  may_end                     the executor has completed a sweep
 *     prepare -> note                    the commit of a state
 *     failed                             work on a thread of its own
 *     finish  report  abandon  close
 *
 * docs/extending.md says when a part needs which, and how it sees the state.
 */
#ifndef MX_RUN_PARTS_H
#define MX_RUN_PARTS_H

#include "run/parts/norms.h"
#include "run/parts/points.h"
#include "run/parts/snapshots.h"

/* Reductions of states as they are stored: which of the kernel's, and the newest values, by the kernel's
 * numbers. */
struct mx_run_stored {
    int32_t n, number[MX_MAX_REDUCES];
    struct mx_reduce reduce[MX_MAX_REDUCES];
    struct mx_norms *norms; /* NULL: none are taken */
    struct mx_taking taking;
    int64_t step; /* of the values; 0 = none yet */
    double value[MX_MAX_REDUCES];
};

/* What the parts keep; each its own. */
struct mx_run_parts {
    struct mx_run_points points;
    struct mx_run_norms norms;
    struct mx_run_stored stored;
    struct mx_run_snapshots snapshots;
    char time_step[MX_TIME_STEP_TEXT]; /* of seconds.c: as the store is to remember it */
};

/* Every call may be NULL: the part has nothing to do there. All that return int: 0 or -errno with r->why,
 * where nothing else is said. */
struct mx_part {
    const char *name;
    void (*make)(mx_run *r); /* nothing is open yet */
    int (*take)(mx_run *r);
    /* Paths that it found, which no output may be: number i, NULL behind the last. */
    const char *(*names)(const mx_run *r, int64_t i, const char **option);
    int (*check)(mx_run *r);
    uint64_t (*dram_bytes)(const mx_run *r); /* besides Blocks */
    /* Is what was counted enough for the plan? Else it has grown, and the plan is made again. */
    bool (*fits)(mx_run *r);
    uint64_t (*accel_bytes)(const mx_run *r); /* of an accelerator's memory besides Blocks */
    void (*predict)(mx_run *r);
    bool (*has_ended)(const mx_run *r);      /* a resumed run: there is nothing left to compute */
    bool (*may_end_early)(const mx_run *r);  /* it may end the run before its last step */
    const char *(*hinders)(const mx_run *r); /* why the last sweep cannot be taken along; NULL = it can */
    int (*open)(mx_run *r);                  /* with the store open: memory; its share of r->after */
    int (*hold)(mx_run *r);  /* nothing of the run's own is refused any more: what it writes to is locked */
    int (*begin)(mx_run *r); /* nothing is refused any more: what is in the way goes */
    int64_t (*most_ahead)(const mx_run *r); /* levels that may be computed beyond the last sweep; 0 = any */
    /* The sweep up to this step is complete. 1: the run ends here; else 0, or -errno with a sentence. */
    int (*swept)(mx_run *r, int64_t step, mx_why *why);
    bool (*may_end)(const mx_run *r, int64_t step);
    int (*prepare)(mx_run *r, int64_t step); /* before this step is committed: no sentence */
    void (*note)(mx_run *r);                 /* what r->note says of it, at r->note.time */
    int (*finish)(mx_run *r);
    const char *(*failed)(const mx_run *r); /* the sentence of work that failed beside the run, or NULL */
    void (*report)(mx_run *r);
    void (*abandon)(mx_run *r); /* the process ends at once */
    void (*close)(mx_run *r);
};
extern const struct mx_part *const mx_parts[]; /* ends with NULL */
extern const struct mx_part mx_part_seconds, mx_part_points, mx_part_norms, mx_part_stored, mx_part_snapshots;

/* All parts at once, in the order of the table; of int the first error. */
void mx_parts_make(mx_run *r);
int mx_parts_take(mx_run *r);
int mx_parts_check(mx_run *r);
const char *mx_parts_name(const mx_run *r, int64_t i, const char **option);
uint64_t mx_parts_dram_bytes(const mx_run *r);
bool mx_parts_fit(mx_run *r);
uint64_t mx_parts_accel_bytes(const mx_run *r);
/* `take` of a part that is to be handed states (execute/take.h): every and stride are known now, the rest
 * before `begin`. Steps that have to end sweeps are r->o.problem.due. What Buffers are read for it, and the
 * DRAM for that, are counted here. -EINVAL: there are too many. */
int mx_parts_hand_out(mx_run *r, const struct mx_taking *taking);
/* Is the DRAM that was counted for that enough for the plan? As `fits`. */
bool mx_parts_have_planes(mx_run *r);
/* Of Buffers, read for all that are handed states, where this algorithm has this layout. */
int64_t mx_parts_read_bytes(const mx_run *r, const char *algorithm, const struct mx_layout *layout);
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
