/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - inside tune/ only: a job is one algorithm being tuned; functions count what a plan of it needs and
 * costs. */
#ifndef MX_TUNE_JOB_H
#define MX_TUNE_JOB_H

#include "grid/grid.h"
#include "machine/minmax.h"
#include "system/sides.h"
#include "tune/tune.h"

/* A plan with what it costs. Better = smaller cost, then fewer bytes moved, then smaller DRAM (Blk-Tune step
 * 3), then smaller bt, by, bz. */
struct option {
    struct mx_plan plan;
    struct mx_shape shape;
    struct mx_traffic traffic;
    uint64_t dram_bytes, device_bytes;
    double cost, moved_bytes;
};

static inline int64_t tune_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct job;

/* How Blk-Tune looks for the best plan of an algorithm. */
struct strategy {
    const char *algorithm, *counted;  /* counted NULL = algorithm */
    void (*reduced)(struct job *job); /* both find job->best, the optimum of the same space */
    void (*exhaustive)(struct job *job);
    bool by_seconds;   /* cost = predicted seconds (redundant compute counts), else bytes moved */
    bool blocks;       /* by, bz, bt are the extents of a Block, which naive and manual can choose */
    bool halo_twice;   /* Block extents grow by 2 bt h (overlapped blocks), else by bt h */
    bool side_file;    /* a side file can keep the seams of strips */
    bool thin_slabs;   /* rings grow with the slab: a thinner slab makes room for more steps */
    bool only_by_name; /* chosen only if the user names it, since paging by Linux decides its speed */
};

struct job {
    const struct mx_tune_request *request;
    struct mx_problem problem; /* as asked, nt >= 1 */
    const struct mx_algorithm *algorithm;
    const struct mx_algorithm
        *counted; /* the algorithm whose shape and CalcTrans decide: the algorithm itself, or another one if
                     it has a working set instead of Blocks (for direct-skewed it is skewed) */
    const struct strategy *strategy;
    const struct mx_engine_ops *engine;
    struct mx_layout layout[2]; /* [partial planes are transferred] */
    struct mx_rates rates;
    struct mx_plan base;           /* the parts of the plan that do not change during the search */
    struct mx_tiled_sizes refined; /* instead of the engine's own choice; 0 = none */
    uint64_t room_bytes;           /* Blocks must take less than this */
    uint64_t device_bytes;         /* and in an accelerator's memory not more than this */
    int64_t z_step, bt_min;        /* bz is a multiple of z_step or nz; bt >= bt_min */
    int64_t stretch;               /* levels of the longest stretch between due steps: no sweep has more */
    int32_t threads;
    bool resident;    /* both Buffers are to stay in DRAM */
    bool only_strips; /* only strips, no whole planes */
    double most_cost; /* plans that cost more are not wanted; 0 = no limit */
    bool by_dram;     /* look for the smallest DRAM instead of the smallest cost */
    /* outcome */
    bool found;
    struct option best;
    int64_t n_evaluated;
    bool relaxed; /* z_step or bt_min had to be given up to find a plan */
};

const struct mx_layout *mx_job_layout(const struct job *job, const struct mx_plan *plan);
/* Can the device transfer what the plan needs? Rows must start aligned if partial planes are transferred,
 * otherwise planes must. false only for the fixed layout of a store. */
bool mx_job_can_transfer(const struct job *job, const struct mx_plan *plan);
/* Return the DRAM of a plan: Blocks, or the staging memory for them, and Buffers that stay in DRAM; and the
 * memory of an accelerator that it takes. */
uint64_t mx_job_dram_bytes(const struct job *job, const struct mx_plan *plan, const struct mx_shape *shape);
uint64_t mx_job_device_bytes(const struct job *job, const struct mx_plan *plan, const struct mx_shape *shape);
/* Completes a plan with by, bz and bt: sets the slab, and other sizes of the engine. */
void mx_job_complete(const struct job *job, struct mx_plan *plan);
/* Returns the share of the engine's best rate that slab and levels of the plan allow. */
double mx_job_efficiency(const struct job *job, const struct mx_plan *plan);
/* Computes shape, traffic, DRAM and cost of a plan; false = it violates a constraint of the schedule. Does
 * not check the room. */
bool mx_job_measure(const struct job *job, const struct mx_plan *plan, struct option *out);
/* Levels of the run, and of a step. bt is a multiple of the latter. */
static inline int64_t mx_job_levels(const struct job *job) {
    return mx_levels_of(&job->problem, job->problem.nt);
}
static inline int64_t mx_job_unit(const struct job *job) { return mx_levels_a_step(&job->problem); }
/* Is the cost in seconds? Redundant cells cost seconds but no bytes: those of overlapped blocks, and ghost
 * layers of any algorithm. */
static inline bool mx_job_by_seconds(const struct job *job) {
    return job->strategy->by_seconds || mx_sides_periodic(&job->problem.sides, MX_DIM_Y) ||
           mx_sides_periodic(&job->problem.sides, MX_DIM_Z) || job->problem.all_nz > 0;
}
/* Return the number of Buffers of the state, 2 or 4; and the bytes of everything on the device: with the side
 * file, and with C except for files of the user. */
int64_t mx_job_state_buffers(const struct mx_shape *shape);
uint64_t mx_job_stored_bytes(const struct mx_layout *layout, const struct mx_shape *shape);
/* Returns the bytes in DRAM if everything stays there: the same, and the files of the user. */
uint64_t mx_job_resident_bytes(const struct mx_layout *layout, const struct mx_shape *shape);
/* Measures (by, bz, bt), counts it, and keeps it if it fits and is better than the best. Returns whether it
 * fits. */
bool mx_job_try(struct job *job, int64_t by, int64_t bz, int64_t bt);
/* Does it fit? They look only at the shape, which is cheaper than a try, and are not counted. */
bool mx_job_plan_fits(const struct job *job, const struct mx_plan *plan);
bool mx_job_fits(const struct job *job, int64_t by, int64_t bz, int64_t bt);

/* Returns the plan with this Block; everything else is the job's. */
struct mx_plan mx_job_with_block(const struct job *job, int64_t by, int64_t bz, int64_t bt);
/* Return the cost of a plan (HUGE_VAL if it violates a constraint); and a lower bound of the cost of all
 * plans with this bt, that of one Block with the whole grid (0 = not known). */
double mx_job_cost(const struct job *job, int64_t by, int64_t bz, int64_t bt);
double mx_job_least_cost(const struct job *job, int64_t bt);

struct mx_seconds mx_predict(const struct job *job, const struct mx_plan *plan,
                             const struct mx_layout *layout, const struct mx_shape *shape,
                             const struct mx_traffic *traffic);

/* Returns the seconds of transfers and computing that overlap, from the seconds of each (0 or more): at least
 * the longer one, at most 1.26 times that. Grows with both, so that bounds of plans stay bounds. */
double mx_predict_overlap(const struct job *job, double io_s, double compute_s);

#endif
