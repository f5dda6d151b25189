/* execute.h - runs a schedule: reads ahead, computes, writes behind, commits sweeps. One executor for all
 * algorithms and backends. */
#ifndef MX_EXECUTE_H
#define MX_EXECUTE_H

#include "execute/step.h"
#include "grid/grid.h"

/* What happened when, for traces. Times are mx_clock_ns(). amount: bytes of LOAD, STORE and COPY, updates of
 * ADVANCE, time steps done of COMMIT. */
struct mx_event {
    enum mx_step_kind kind;
    bool waiting; /* nothing could be computed until this I/O ended */
    uint64_t begin_ns, end_ns, amount;
    struct mx_region region; /* of faces: rows of slabs */
    bool faces;              /* LOAD, STORE: from or to the side file */
    bool sweep;              /* COMMIT: the sweep that ends with it, not what makes it durable */
};

struct mx_execution {
    const struct mx_problem *problem;
    const struct mx_plan *plan; /* complete: slab, ahead, threads set */
    const struct mx_layout *layout;
    mx_device *device;
    mx_buffer *buffer[2];
    mx_buffer *faces; /* side file of stream's strips, where the shape asks for one; content undefined */
    mx_budget *budget;
    bool mapped, advise, lock; /* mapped device; --advice schedule; mlock the Blocks */
    bool poison;               /* tests: Blocks start as NaN */
    const volatile int
        *stop; /* set by a signal handler: the run ends after the step under way; may be NULL */
    /* Called when a sweep is complete and before anything of it is overwritten: makes it durable. NULL = no
     * commits. One call at a time, on a thread of its own. */
    int (*commit)(void *context, int64_t time, int32_t buffer);
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
    int64_t block_bytes; /* DRAM of Block arrays and faces */
    int64_t steps_done;  /* time step of the last completed sweep */
};

/* 0, -EINTR (stopped; sweeps committed so far are intact), -EIO... (why says which transfer), -ENOMEM. out is
 * written in every case. */
int mx_execute(const struct mx_execution *execution, struct mx_schedule *schedule,
               const struct mx_engine_ops *ops, mx_engine *engine, mx_why *why, struct mx_executed *out);

/* DRAM that mx_execute allocates for a shape: both Block arrays, and the faces or what a side file leaves of
 * them in DRAM. */
int64_t mx_execute_block_bytes(const struct mx_shape *shape, const struct mx_layout *layout);
/* The side file of faces that a shape needs; 0 = none. */
int64_t mx_execute_face_bytes(const struct mx_shape *shape, const struct mx_layout *layout);

uint64_t mx_clock_ns(void); /* CLOCK_MONOTONIC */

/* Recomputes nt steps plainly (triple loops of the plain kernel, one plane-deep level after the other,
 * streaming where the grid does not fit in `budget`) and compares bit by bit with `result`. 0 = equal, 1 =
 * different (why names the first cell), -errno. */
struct mx_verification {
    const struct mx_problem *problem;
    const struct mx_layout *layout;
    mx_source_fn *source; /* initial grid */
    void *source_context;
    mx_device *device;
    mx_buffer *result;
    mx_buffer *scratch; /* a Buffer of the same size whose content may be destroyed */
    mx_budget *budget;
    uint64_t memory_bytes; /* may be used */
    const volatile int *stop;
    void (*progress)(void *context, int64_t updates_done);
    void *context;
};
int mx_verify(const struct mx_verification *verification, mx_why *why);

#endif
