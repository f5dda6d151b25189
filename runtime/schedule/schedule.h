/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.h - the out-of-core algorithms as pure step iterators, with their CalcTrans in closed form. No
 * I/O, no clock, no threads. */
#ifndef MX_SCHEDULE_H
#define MX_SCHEDULE_H

#include "steps/step.h"

/* Words of plan.seams. */
#define MX_SEAMS_IN_DRAM "dram"
#define MX_SEAMS_IN_FILE "side-file"

/* CalcTrans: the exact bytes of the stencil phase, and of writing the initial grid. */
struct mx_traffic {
    int64_t read_bytes, write_bytes; /* between Buffers and Blocks, seams in a side file included; 0 for
                                        direct algorithms on mapped Buffers */
    int64_t fixed_read_bytes;        /* of C; part of read_bytes. 0 on mapped Buffers */
    int64_t seam_read_bytes, seam_write_bytes; /* stream with strips: of seams, in DRAM or in a side file */
    int64_t sent_bytes;       /* to neighbours: layers of the state that every sweep needs; as many bytes are
                                 received */
    int64_t first_sent_bytes; /* part of read_bytes: read to be sent before the first sweep, into no Block */
    int64_t
        given_bytes; /* into Blocks, from messages of neighbours; not part of read_bytes. Only in stream */
    int64_t init_write_bytes; /* of A and B, not of C */
    int64_t copy_bytes;       /* blk2blk, DRAM to DRAM; without the constant frames */
    int64_t updates; /* cells computed, redundant ones included: of all levels, divided by the levels of a
                        step, so that a step of a staggered system counts a cell once */
};

/* Returns the bytes that go to an accelerator whose memory holds the Blocks. The bytes that come from it are
 * write_bytes. */
static inline int64_t mx_traffic_put_bytes(const struct mx_traffic *t) {
    return t->read_bytes - t->first_sent_bytes + t->given_bytes;
}

struct mx_algorithm {
    const char *name;
    const char *aliases; /* space separated: the papers' names */
    const char *summary; /* one line for help, with the source */
    bool needs_mapped;   /* works on mapped Buffers only */
    bool uses_blocks;    /* moves data between Buffers and Blocks */
    bool resumable;      /* a finished sweep is a commit */

    /* Does the plan transfer partial planes, so that the row pitch must suit the device? */
    bool (*cuts_y)(const struct mx_problem *problem, const struct mx_plan *plan);
    /* Checks a plan: 0, or -EINVAL with the violated constraint (value, limit, way out). plan->slab and
     * threads are set. */
    int (*check)(const struct mx_problem *problem, const struct mx_plan *plan, mx_why *why);
    /* shape and traffic need a checked plan. */
    void (*shape)(const struct mx_problem *problem, const struct mx_plan *plan, struct mx_shape *out);
    void (*traffic)(const struct mx_problem *problem, const struct mx_plan *plan,
                    const struct mx_layout *layout, struct mx_traffic *out);
    /* Opens an iterator over all sweeps from level first_time (0, or a committed one: resume). first_buffer:
     * 0 or 1, the Buffer that holds it. For the executor it is 0, since the executor chooses the real Buffer
     * (execute.h). Pairs in place ignore it, since there is only one. */
    int (*open)(const struct mx_problem *problem, const struct mx_plan *plan, int64_t first_time,
                int32_t first_buffer, struct mx_schedule **out);
};

extern const struct mx_algorithm *const mx_algorithms[]; /* NULL-terminated */
/* By name or alias; NULL if unknown. */
const struct mx_algorithm *mx_algorithm_find(const char *name);

/* Returns which of the schedule's two Buffers, or pairs, holds the result after nt steps (first_buffer 0).
 * Array (levels & 1) of a pair holds the last level. */
int32_t mx_schedule_final_buffer(const struct mx_algorithm *algorithm, const struct mx_problem *problem,
                                 const struct mx_plan *plan);

/* ---- sweeps: how the levels of a problem are cut. A sweep ends at the end of the run, at every due step
 * (mx_problem.due), and after bt levels. So from one due step to the next there are as many sweeps of bt
 * levels as fit, and one with the remaining levels. A resumed run continues from any step in the same way. */

/* Iterates over pairs of a sweep length and the number of sweeps of that length. The same length may come
 * several times. There are a few pairs if one of the two numbers of due is a multiple of the other, otherwise
 * at most about 3 sqrt(nt). */
enum { MX_SWEEP_PARTS = 3 };
struct mx_sweeps {
    int64_t levels, count; /* of the current pair */
    /* private to the iterator */
    int64_t bt, unit, first, end, small, large, period, pieces, piece, full;
    int64_t stretch[MX_SWEEP_PARTS], stretches[MX_SWEEP_PARTS];
    int part;
};
struct mx_sweeps mx_sweeps_of(const struct mx_problem *problem, int64_t bt);
bool mx_sweeps_next(struct mx_sweeps *sweeps); /* false: there are no more */

/* Returns the levels of the longest sweep, at least 1. If bt is large enough, that is the longest stretch
 * between due steps. */
int64_t mx_sweep_levels(const struct mx_problem *problem, int64_t bt);
int64_t mx_sweep_count(const struct mx_problem *problem, int64_t bt);
/* Returns the level with which the last sweep begins. */
int64_t mx_sweep_last(const struct mx_problem *problem, int64_t bt);
/* Returns the latest level at which the sweep that begins at level `time` ends; it counts like `time`. */
int64_t mx_sweep_end(const struct mx_problem *problem, int64_t time);

/* Counts the steps of a whole schedule by running through it: O(steps). For tests, traces and progress. */
struct mx_step_counts {
    int64_t steps[MX_STEP_COMMIT + 1]; /* by kind */
    int64_t read_rows, write_rows; /* LOAD, STORE; whole planes count their ny+2h rows; seams in a file too */
    int64_t fixed_rows;            /* LOAD of C, all fields; not in read_rows */
    int64_t given_rows;            /* LOAD of what neighbours have sent; not in read_rows */
    int64_t copy_rows, frame_rows; /* COPY: handed over, constant frames */
    int64_t window_rows;           /* ADVANCE: rows computed */
    int64_t seam_reads, seam_writes; /* ADVANCE: seam slabs */
};
int mx_schedule_count(const struct mx_algorithm *algorithm, const struct mx_problem *problem,
                      const struct mx_plan *plan, struct mx_step_counts *out);

#endif
