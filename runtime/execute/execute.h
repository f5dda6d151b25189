/* SPDX-License-Identifier: BSD-3-Clause */
/* execute.h - runs a schedule: reads ahead, computes, writes behind, and commits sweeps. One executor serves
 * all algorithms and backends. */
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

/* An event for traces: what happened when. Times are mx_clock_ns(). amount: bytes of a LOAD, STORE or COPY,
 * updates of an ADVANCE, time steps done of a COMMIT. */
struct mx_event {
    enum mx_step_kind kind;
    bool waiting; /* nothing could be computed until this I/O ended */
    uint64_t begin_ns, end_ns, amount;
    struct mx_region region; /* of seams: y counts rows of slabs */
    bool seams;              /* LOAD, STORE: from or to the side file */
    bool file;               /* LOAD, STORE: without a Buffer, from `feeding` or only to `taking` */
    bool sweep; /* COMMIT: true = the event is the sweep that ends; false = it is the commit itself */
};

/* How a rank exchanges messages with its neighbours at end 0 and 1 of z (exchange.h). Messages of an end, and
 * the pieces of each, arrive in the order of sending. */
struct mx_neighbours_ops {
    /* send and receive post a message of n parts, in pieces: piece i is the bytes i * piece_bytes to (i + 1)
     * * piece_bytes - 1 of every part, as far as the part has them. There is one message at a time at each
     * end in each direction. `ready` pieces may be sent, counted from the first; they must not change until
     * the message is done. `more` raises that number, until it covers all pieces (it may be larger). 0, or <
     * 0 with a sentence. */
    int (*send)(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, int64_t ready,
                mx_why *why);
    int (*more)(void *link, int end, int64_t ready, mx_why *why);
    int (*receive)(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, mx_why *why);
    /* The state of the message that was posted last: 1 = done, 0 = under way (not with `wait`), < 0 with a
     * sentence: the neighbour has ended. received: 1 = the first `pieces` pieces have come (INT64_MAX: all,
     * and the next message can be posted). */
    int (*sent)(void *link, int end, bool wait, mx_why *why);
    int (*received)(void *link, int end, int64_t pieces, bool wait, mx_why *why);
    /* Call it when an execution has failed: when it returns nothing is under way, and the neighbours end too.
     */
    void (*quit)(void *link);
};

struct mx_execution {
    const struct mx_problem *problem;
    const struct mx_plan *plan; /* complete: slab, ahead, threads set */
    const struct mx_layout *layout;
    mx_device *device;
    mx_buffer *buffer[MX_BUFFERS];
    mx_buffer *partner[MX_BUFFERS]; /* with shape.pairs buffer[i] holds array A of pair i, and partner[i]
                                       array B; else NULL */
    mx_buffer *
        fixed[MX_MAX_FIXED]; /* read-only fields: Buffers of this device, or of devices of the user's files */
    int32_t n_buffers;   /* 2 (or 0) or 3. With three, a committed state stays in one while the other two are
                            written in turn */
    int64_t first_level; /* the level of the run that is the schedule's level 0; kernels get their time from
                            it. If it is odd, the schedule's array A is the system's B, and the caller
                            exchanges buffer and partner */
    int32_t source;      /* Buffer that holds the grid at the start; in place: the schedule's first_buffer */
    int32_t committed;   /* Buffer of the last commit, from which the run continues; -1 = none yet */
    mx_buffer *seams; /* side file for the strips of stream, if the shape has one; its content is undefined */
    mx_budget *budget;
    /* What happens to rows that were computed; its levels count from the run's first. NULL = nothing. */
    const struct mx_after *after;
    /* The most levels that may be computed beyond the last sweep that `sweep` has taken: an ADVANCE that
     * would pass this limit does not begin. It is at least the levels of one sweep; 0 = only the executor's
     * own limit. It bounds the memory for data of steps that `sweep` has not handled yet. */
    int64_t most_ahead;
    /* Called when a sweep is complete and `steps` steps are done, before it is committed (if it is). In
     * order, on the thread that called mx_execute. < 0 with a sentence: the run fails. > 0, only if `decides`
     * was true: the run ends here, this sweep is committed as its result, and the beginning of the next one
     * is dropped. May be NULL. */
    int (*sweep)(void *context, int64_t steps, mx_why *why);
    /* Called when a state is complete, before `sweep` and before the state is handed out or committed.
     * `found` has its cells that are not finite (finite.h); of a leapfrog system only those of the newest
     * step. < 0 with a sentence makes the run fail. With -EDOM the newest complete sweep before this state is
     * committed first, if the run commits. NULL = nothing is counted.
     *
     * Cells are counted in every state that may be committed or is handed out, and in that of the problem's
     * last step. Other states are counted at most once in 64 levels. Engines count while rows are in cache.
     * With an accelerator cells are counted as they are stored, and only where stores_once holds: each sweep
     * stores every row of the interior once, with the level that it ends with. */
    int (*finite)(void *context, int64_t steps, const struct mx_nonfinite *found, mx_why *why);
    bool stores_once;
    /* May the run end with the sweep that ends after `steps` steps? Then nothing overwrites this state before
     * `sweep` has returned. NULL = it ends only with the last sweep. */
    bool (*decides)(void *context, int64_t steps);
    const struct mx_taking
        *taking[MX_TAKINGS + 1]; /* states that are handed out during the run; ends with NULL. They are taken
                                    from STOREs if stores_once holds and the arrays are in DRAM */
    /* What feeds the first sweep's LOADs of A instead of Buffer `source`, which then holds nothing; NULL =
     * Buffer `source`. Only if the form does not read the old value, and the arrays are in DRAM. */
    const struct mx_feeding *feeding;
    /* NULL, or the accelerator whose memory holds the arrays of the schedule, seams included. LOADs and
     * STOREs then pass through staging memory in DRAM, and the engine is "device". */
    mx_accel *accel;
    const struct mx_neighbours_ops *neighbours; /* if the shape has neighbours: the functions that reach them;
                                                   all ranks compute with the same bt */
    void *link;
    bool mapped, advise,
        lock;    /* mapped: Buffers are mapped; advise: --advice schedule; lock: lock Blocks in DRAM */
    bool poison; /* for tests: Blocks hold NaN at the start */
    const atomic_int *stop; /* not 0: the run ends after the step under way; may be NULL */
    /* Makes a complete sweep durable: step `time` of the whole grid, which `buffer` (0..n_buffers-1) holds
     * and keeps until the call has returned. NULL = no commits. Calls come one at a time, in order, on a
     * thread of their own; of an interrupted run on the thread that called mx_execute. Until it returns 0,
     * nothing overwrites the state that was committed before. */
    int (*commit)(void *context, int64_t time, int32_t buffer);
    /* The least time from one commit to the next, in seconds: sweeps that end earlier are not committed. 0 =
     * every sweep is. The last step of the problem is always committed. With two Buffers every sweep is,
     * since the next one overwrites the state before it. */
    double commit_every_s;
    /* NULL, or for ranks that keep a committed state in a third Buffer: do all of them commit the next sweep
     * of the schedule? (It is not called for the last sweep.) due: what the clock of this process says. 1 or
     * 0; -EAGAIN: not known yet, and it will be called again; else an error with a sentence. Called in order,
     * on the thread that called mx_execute, which does other work while it has no answer. */
    int (*agree)(void *context, bool due, mx_why *why);
    void (*progress)(void *context, int64_t updates_done); /* after each ADVANCE; may be NULL */
    void (*event)(void *context,
                  const struct mx_event *event); /* may be NULL; called by the computing thread */
    void *context;
};

/* What an execution did. */
struct mx_executed {
    uint64_t total_ns;
    uint64_t update_ns; /* an ADVANCE was under way */
    uint64_t copy_ns;   /* of COPYs; partly while an ADVANCE was under way */
    uint64_t wait_ns;   /* waiting for transfers and commits, with nothing to compute */
    int64_t updates;
    int64_t block_bytes;           /* of Block arrays and seams, in DRAM or in the accelerator's memory */
    uint64_t put_bytes, get_bytes; /* to the accelerator, and from it */
    uint64_t aside_put_bytes, aside_get_bytes; /* of points and norms, not part of these */
    int64_t sent_bytes;                        /* to neighbours */
    /* The newest complete sweep, durable or not: the steps that are done with it (0 = no sweep was completed)
     * and the Buffer that holds it (`source` if there is none). After an error, or an interruption without
     * commits, parts of it may have been overwritten. */
    int64_t steps_done;
    int32_t result;
    bool ended;              /* `sweep` has ended the run */
    int64_t committed_steps; /* time step of the last commit that this call made; 0 = none */
};

/* Runs a schedule to its end. Open a schedule that does not work in place with the first_time that `source`
 * holds, and first_buffer 0. Returns 0; -EINTR (stopped: work under way was finished, and if the run commits,
 * the newest complete sweep is committed); -EDOM (from `finite` or `feeding`: likewise); -EIO... (*why names
 * the transfer; nothing more is committed), -EBADMSG (data read differs from what was written; *why says
 * where), -ENOMEM. In every case the last committed state is intact, and *out is written. */
int mx_execute(const struct mx_execution *execution, struct mx_schedule *schedule,
               const struct mx_engine_ops *ops, mx_engine *engine, mx_why *why, struct mx_executed *out);

/* A verification recomputes nt steps with simple loops over the plain kernel or the system's row functions.
 * If the grid does not fit into the budget, it streams planes through DRAM (verify.c). It compares every bit
 * with `result`, and in pairs also the other array with `partner`. 0 = equal, 1 = different (*why names the
 * first cell), -errno. */
struct mx_verification {
    const struct mx_problem *problem;
    const struct mx_layout *layout;
    mx_source_fn *source; /* initial grid */
    void *source_context;
    mx_device *device;
    mx_buffer *result;
    mx_buffer *scratch; /* a Buffer of the same size whose content may be destroyed */
    bool one_pass;      /* there is no scratch Buffer, since the run has one pair */
    /* For systems whose form reads the old value: `source`, `result` and `scratch` are of array A, these of
     * B.
     */
    mx_source_fn *partner_source;
    void *partner_context;
    mx_buffer *partner, *scratch_partner;
    mx_buffer *fixed[MX_MAX_FIXED]; /* C; of all backends that transfer, mapped ones included */
    mx_budget *budget;
    uint64_t memory_bytes; /* DRAM that may be used */
    const struct mx_after
        *after; /* as in mx_execution, but probes are not recorded again; NULL = nothing. `source` gives
                   planes whose frames fit the sides. Frame planes that are copies are not compared */
    const atomic_int *stop;
    void (*progress)(void *context, int64_t updates_done);
    void *context;
};
int mx_verify(const struct mx_verification *verification, mx_why *why);
/* Checks that memory_bytes is enough for it: 0, or -ENOMEM. Needs no Buffer, and of `after` only the sides.
 */
int mx_verify_fits(const struct mx_verification *verification, mx_why *why);

#endif
