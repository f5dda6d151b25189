/* SPDX-License-Identifier: BSD-3-Clause */
/* execute.h - runs a schedule: reads ahead, computes, writes behind, commits sweeps. One executor for all
 * algorithms and backends. */
#ifndef MX_EXECUTE_H
#define MX_EXECUTE_H

#include "accel/accel.h"
#include "engine/after.h"
#include "execute/feed.h"
#include "execute/staging.h"
#include "execute/take.h"
#include "grid/grid.h"
#include "steps/bytes.h"
#include "system/finite.h"

#include <stdatomic.h>
#include <sys/uio.h>

/* What happened when, for traces. Times are mx_clock_ns(). amount: bytes of LOAD, STORE and COPY, updates of
 * ADVANCE, time steps done of COMMIT. */
struct mx_event {
    enum mx_step_kind kind;
    bool waiting; /* nothing could be computed until this I/O ended */
    uint64_t begin_ns, end_ns, amount;
    struct mx_region region; /* of seams: rows of slabs */
    bool seams;              /* LOAD, STORE: from or to the side file */
    bool file;               /* LOAD, STORE: by no Buffer, but from `feeding`, to `taking` only */
    bool sweep;              /* COMMIT: the sweep that ends with it, not what makes it durable */
};

/* What a rank of several asks of its neighbours, at end 0 and 1 of z (exchange.h). Messages of an end, and
 * the pieces of each, arrive in the order in which they were sent. */
struct mx_neighbours_ops {
    /* Posts a message of n parts, in pieces: piece i are bytes i * piece_bytes to (i + 1) * piece_bytes - 1
     * of every part, or what there is of them. One message at a time at each end and in each direction. To be
     * sent are its first `ready` pieces, which stay as they are until it is done, and, `more`, so many, until
     * it is all of them: what is more than all is all. 0, or < 0 with a sentence. */
    int (*send)(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, int64_t ready,
                mx_why *why);
    int (*more)(void *link, int end, int64_t ready, mx_why *why);
    int (*receive)(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, mx_why *why);
    /* Of the one that was posted last: 1 = done, of a received one its first `pieces` (INT64_MAX: all, and
     * the next one can be posted), 0 = under way (not with `wait`); < 0 with a sentence: the neighbour is
     * gone. */
    int (*sent)(void *link, int end, bool wait, mx_why *why);
    int (*received)(void *link, int end, int64_t pieces, bool wait, mx_why *why);
    /* Of an execution that failed: nothing is under way when it returns, and the neighbours end too. */
    void (*quit)(void *link);
};

struct mx_execution {
    const struct mx_problem *problem;
    const struct mx_plan *plan; /* complete: slab, ahead, threads set */
    const struct mx_layout *layout;
    mx_device *device;
    mx_buffer *buffer[MX_BUFFERS];
    mx_buffer *partner[MX_BUFFERS]; /* shape.pairs: buffer[i] holds array A of pair i, partner[i] array B;
                                       else NULL */
    mx_buffer
        *fixed[MX_MAX_FIXED]; /* C, one per field: Buffers of this device, or of the devices of user files */
    int32_t n_buffers;   /* 2 (or 0) or 3. Three: a committed state rests while the other two take turns */
    int64_t first_level; /* of the run that the schedule's level 0 is, for what kernels know of time. Odd:
                            what the schedule calls array A is B, and the caller gives buffer and partner the
                            other way round */
    int32_t source;      /* Buffer that holds the grid at the start; in place: the schedule's first_buffer */
    int32_t committed;   /* Buffer of the last commit, which the run goes on from; -1 = none yet */
    mx_buffer *seams;    /* side file of stream's strips, where the shape asks for one; content undefined */
    mx_budget *budget;
    /* What is asked of rows that were computed, levels counted from the run's first, first_level included;
     * NULL = nothing. */
    const struct mx_after *after;
    /* The most levels that may be computed beyond the last sweep that `sweep` has taken: an ADVANCE that
     * would pass this limit does not begin. It is at least the levels of one sweep; 0 = only the executor's
     * own limit. It bounds the memory for what is kept of each step until `sweep` takes it. */
    int64_t most_ahead;
    /* A sweep is complete, its first `steps` steps are done: before it is committed, and whether it is or
     * not. In order, on the thread that called mx_execute. < 0 with a sentence: the run fails. > 0, only
     * where `decides`: it ends here, this sweep is committed and is its result, and what was begun of the
     * next one is given up. May be NULL. */
    int (*sweep)(void *context, int64_t steps, mx_why *why);
    /* Called when a state is complete, before `sweep` and before the state is handed out or committed.
     * `found` has its cells that are not finite (finite.h); of a leapfrog system those of the newest step
     * alone. < 0 with a sentence makes the run fail. With -EDOM the newest complete sweep before this state
     * is committed first, where there are commits. NULL = nothing is counted.
     *
     * Cells are counted in every state that may be committed or is taken, and in that of the problem's last
     * step. Other states are counted at most once in 64 levels. Engines count while rows are in cache. With
     * an accelerator cells are counted as they are stored, and only where stores_once holds: each sweep
     * stores every row of the interior once, with the level that it ends with. */
    int (*finite)(void *context, int64_t steps, const struct mx_nonfinite *found, mx_why *why);
    bool stores_once;
    /* May the run end with the sweep that its first `steps` steps end? Then nothing overwrites this state
     * before `sweep` was asked. NULL = with none but the last. */
    bool (*decides)(void *context, int64_t steps);
    const struct mx_taking *taking[MX_TAKINGS + 1]; /* states that are handed out while the run goes on; ends
                                       with NULL. From STOREs where stores_once, and the arrays are in DRAM */
    /* Where the first sweep's LOADs of A come from, in place of Buffer `source`, which holds nothing then;
     * NULL = from there. Of forms that do not read the old value, where the arrays are in DRAM. */
    const struct mx_feeding *feeding;
    /* NULL, or whose memory the arrays of the schedule are in: LOADs and STOREs pass through staging memory
     * in DRAM, engine is one of it ("device"). Seams are there too. */
    mx_accel *accel;
    const struct mx_neighbours_ops *neighbours; /* where the shape has neighbours: of all ranks that compute
                                                   this problem together, each with the same bt */
    void *link;
    bool mapped, advise, lock; /* mapped device; --advice schedule; mlock the Blocks */
    bool poison;               /* tests: Blocks start as NaN */
    const atomic_int *stop; /* set by a signal handler: the run ends after the step under way; may be NULL */
    /* Makes a complete sweep durable: step `time` of the whole grid, which `buffer` (0..n_buffers-1) holds
     * and keeps until the call has returned. NULL = no commits. One call at a time, in order, on a thread of
     * its own; the one of an interrupted run on the thread that called mx_execute. Until it returns 0 nothing
     * of the state committed before it is overwritten. */
    int (*commit)(void *context, int64_t time, int32_t buffer);
    /* Seconds from one commit to the next at least: the end of a sweep before that costs nothing. 0 = after
     * every sweep. The last step of the problem is always committed, and with two Buffers every sweep, for
     * the next one overwrites the state before it. */
    double commit_every_s;
    /* NULL, or, of ranks that keep a committed state in a third Buffer: whether the next sweep of the
     * schedule but the last is committed, as all of them decide. due: by the clock of this process. 1 or 0;
     * -EAGAIN: it is not known yet, and is asked for again; else an error with a sentence. Asked in order, on
     * the thread that called mx_execute, which does not wait for the answer as long as it has other things to
     * do. */
    int (*agree)(void *context, bool due, mx_why *why);
    void (*progress)(void *context, int64_t updates_done); /* after each ADVANCE; may be NULL */
    void (*event)(void *context,
                  const struct mx_event *event); /* may be NULL; called by the computing thread */
    void *context;
};

struct mx_executed {
    uint64_t total_ns;
    uint64_t update_ns; /* an ADVANCE was under way */
    uint64_t copy_ns;   /* COPYs; part of it while an ADVANCE was under way */
    uint64_t wait_ns;   /* for transfers and commits, with nothing to compute */
    int64_t updates;
    int64_t block_bytes;           /* of Block arrays and seams, in DRAM or in the accelerator's memory */
    uint64_t put_bytes, get_bytes; /* to the accelerator, and from it */
    uint64_t aside_put_bytes, aside_get_bytes; /* of points and norms, beside those */
    int64_t sent_bytes;                        /* to neighbours */
    /* The newest complete sweep, durable or not: the steps that it ends with (0 = none was completed) and the
     * Buffer that holds it (`source` where none was). After an error or an interruption without commits its
     * content may have been overwritten in part. */
    int64_t steps_done;
    int32_t result;
    bool ended;              /* `sweep` has said so */
    int64_t committed_steps; /* time step of the last commit that this call made; 0 = none */
};

/* Runs a schedule to its end. Schedules that do not work in place are opened with the first_time that
 * `source` holds and first_buffer 0. Returns 0; -EINTR (stopped: what was under way is finished, and where
 * there are commits the newest complete sweep is committed); -EDOM (`finite` or `feeding` has said so:
 * likewise); -EIO... (why says which transfer; nothing more is committed), -EBADMSG (data read is not what
 * was written; why says where), -ENOMEM. Whatever it returns, the last committed state is intact. out is
 * written in every case. */
int mx_execute(const struct mx_execution *execution, struct mx_schedule *schedule,
               const struct mx_engine_ops *ops, mx_engine *engine, mx_why *why, struct mx_executed *out);

/* Recomputes nt steps plainly (triple loops of the plain kernel or of the system's row functions, one
 * plane-deep level after the other, streaming where the grid does not fit in `budget`) and compares bit by
 * bit with `result`, of pairs also the other array with `partner`. 0 = equal, 1 = different (why names the
 * first cell), -errno. */
struct mx_verification {
    const struct mx_problem *problem;
    const struct mx_layout *layout;
    mx_source_fn *source; /* initial grid */
    void *source_context;
    mx_device *device;
    mx_buffer *result;
    mx_buffer *scratch; /* a Buffer of the same size whose content may be destroyed */
    bool one_pass;      /* there is no such Buffer: the run has one pair */
    /* Of systems. Forms that read the old value: `source`, `result` and `scratch` are of array A, these of B.
     */
    mx_source_fn *partner_source;
    void *partner_context;
    mx_buffer *partner, *scratch_partner;
    mx_buffer *fixed[MX_MAX_FIXED]; /* C; of all backends that transfer, mapped ones included */
    mx_budget *budget;
    uint64_t memory_bytes;        /* may be used */
    const struct mx_after *after; /* as in mx_execution; its probes are not recorded again; NULL = nothing.
                                     `source` gives planes with the frames of the sides. Frame planes that are
                                     copies are not compared */
    const atomic_int *stop;
    void (*progress)(void *context, int64_t updates_done);
    void *context;
};
int mx_verify(const struct mx_verification *verification, mx_why *why);
/* Whether memory_bytes is enough for it: 0, or -ENOMEM. Asks for no Buffer, and of `after` for its sides. */
int mx_verify_fits(const struct mx_verification *verification, mx_why *why);

#endif
