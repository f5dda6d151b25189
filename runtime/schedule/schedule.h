/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.h - the out-of-core algorithms as pure step iterators, with their CalcTrans in closed form. No
 * I/O, no clock, no threads. */
#ifndef MX_SCHEDULE_H
#define MX_SCHEDULE_H

#include "steps/step.h"

/* Words of plan.seams. */
#define MX_SEAMS_IN_DRAM "dram"
#define MX_SEAMS_IN_FILE "side-file"

/* CalcTrans: bytes of the stencil phase, and of writing the initial grid. Exact. */
struct mx_traffic {
    int64_t read_bytes, write_bytes; /* between Buffers and Blocks, seams in a side file included; 0 for
                                        direct algorithms on mapped Buffers */
    int64_t fixed_read_bytes;        /* of C; part of read_bytes. 0 on mapped Buffers */
    int64_t seam_read_bytes, seam_write_bytes; /* stream with strips: of seams, in DRAM or in a side file */
    int64_t
        sent_bytes; /* to neighbours, and as many are received: layers of the state that every sweep needs */
    int64_t first_sent_bytes; /* part of read_bytes: read to be sent before the first sweep, into no Block */
    int64_t given_bytes; /* into Blocks, of what neighbours have sent; no part of read_bytes. Of stream */
    int64_t init_write_bytes; /* of A and B; where C comes from is not known here */
    int64_t copy_bytes;       /* blk2blk, DRAM to DRAM; without the constant frames */
    int64_t updates; /* cells computed, redundant ones included: of all levels, divided by those that a step
                        has, so that a step of a staggered system counts a cell once */
};

/* What goes to an accelerator, whose memory the Blocks are in; what comes from it is what is written. */
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

    /* Transfers of partial planes: the row pitch must suit the device. */
    bool (*cuts_y)(const struct mx_problem *problem, const struct mx_plan *plan);
    /* Is the plan allowed? 0, or -EINVAL with the broken constraint (value, limit, way out). plan->slab and
     * threads are set. */
    int (*check)(const struct mx_problem *problem, const struct mx_plan *plan, mx_why *why);
    /* Both need a checked plan. */
    void (*shape)(const struct mx_problem *problem, const struct mx_plan *plan, struct mx_shape *out);
    void (*traffic)(const struct mx_problem *problem, const struct mx_plan *plan,
                    const struct mx_layout *layout, struct mx_traffic *out);
    /* Iterator over all sweeps from level first_time (0, or a committed one: resume). first_buffer: 0 or 1,
     * the Buffer that holds it; for the executor 0, which finds the true one itself (execute.h). Of no
     * account to pairs in place, which have one. */
    int (*open)(const struct mx_problem *problem, const struct mx_plan *plan, int64_t first_time,
                int32_t first_buffer, struct mx_schedule **out);
};

extern const struct mx_algorithm *const mx_algorithms[]; /* NULL-terminated */
/* By name or alias; NULL if unknown. */
const struct mx_algorithm *mx_algorithm_find(const char *name);

/* Of the schedule's two Buffers, or pairs, the one that holds the result after nt steps (first_buffer 0).
 * Which array of a pair holds the last level: levels & 1. */
int32_t mx_schedule_final_buffer(const struct mx_algorithm *algorithm, const struct mx_problem *problem,
                                 const struct mx_plan *plan);

/* ---- sweeps: how the levels of a problem are cut. A sweep ends where the run ends, at every due step
 * (mx_problem.due), and where it is bt levels long: from one due step to the next there are as many of bt
 * levels as fit, and one with what is left. A run that is resumed goes on from any step in the same way. */

/* Iterates over pairs of a sweep length and the number of sweeps of that length. The same length may come
 * several times. There are a few pairs if one of the two numbers of due is a multiple of the other, otherwise
 * at most about 3 sqrt(nt). */
enum { MX_SWEEP_PARTS = 3 };
struct mx_sweeps {
    int64_t levels, count; /* of the kind at hand */
    /* the iterator's own */
    int64_t bt, unit, first, end, small, large, period, pieces, piece, full;
    int64_t stretch[MX_SWEEP_PARTS], stretches[MX_SWEEP_PARTS];
    int part;
};
struct mx_sweeps mx_sweeps_of(const struct mx_problem *problem, int64_t bt);
bool mx_sweeps_next(struct mx_sweeps *sweeps); /* false: there are no more */

/* Levels of the longest sweep; at least 1. With a bt that is large enough: of the longest stretch between due
 * steps. */
int64_t mx_sweep_levels(const struct mx_problem *problem, int64_t bt);
int64_t mx_sweep_count(const struct mx_problem *problem, int64_t bt);
/* The level with which the last of them begins. */
int64_t mx_sweep_last(const struct mx_problem *problem, int64_t bt);
/* The level, counted as `time` is, at which the sweep that begins at level `time` ends at the latest. */
int64_t mx_sweep_end(const struct mx_problem *problem, int64_t time);

/* What a whole schedule amounts to, by running through it: O(steps). For tests, traces and progress. */
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
