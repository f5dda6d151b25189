/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.h - inside schedule/ only: the iterator that all algorithms share.
 *
 * A sweep is a sequence of passes; a pass advances one Block by all levels of the sweep. The walk moves a
 * front along z through the Block, `slab` planes at a time: planes up to the front are loaded, level t is
 * computed up to t*h planes behind it, and planes levels*h behind it have their final value and are stored.
 * An algorithm says what a pass is (begin) and how planes come and go (load, store).
 */
#ifndef MX_WALK_H
#define MX_WALK_H

#include "schedule/ends.h"
#include "schedule/geometry.h"
#include "schedule/schedule.h"

struct mx_walk;
struct mx_walk_ops {
    /* Sets up pass walk->pass of a sweep of walk->levels: block, at, parity, whole[], and where it differs
     * from the plan's, slab; the walk's other fields are read only. */
    void (*begin)(struct mx_walk *walk);
    /* load appends the steps that bring planes [z0,z1) into the Block, store those that take them out. NULL:
     * mapped Buffers. At ends of z whose frame copies: the upper frame is loaded at once, before any plane
     * that it copies is computed. The lower frame is stored together with the planes that it copies (walk.c,
     * load_up_to and store_up_to). */
    void (*load)(struct mx_walk *walk, int64_t z0, int64_t z1);
    void (*store)(struct mx_walk *walk, int64_t z0, int64_t z1);
    const void *variant; /* the algorithm's own */
    /* Returns how many rows of the neighbour's message at this end of z a sweep of `levels` levels LOADs.
     * NULL: no neighbours are allowed. */
    int64_t (*given)(const struct mx_problem *problem, const struct mx_plan *plan, int64_t levels, int end);
};

enum { MX_WALK_QUEUE = 192 }; /* steps of a front: pieces of two arrays and of all fields of C */

struct mx_walk {
    struct mx_schedule base;
    const struct mx_walk_ops *ops;
    struct mx_problem problem;
    struct mx_plan plan;
    int64_t all_levels; /* of the run */
    int64_t passes;     /* of a sweep */
    int64_t max_levels; /* of a sweep */
    bool has_fixed;     /* fields of C are loaded into Block arrays */
    /* where it stands */
    int64_t time, pass, passes_done; /* time: in levels */
    int32_t buffer;                  /* holds level `time`; of pairs that are rewritten in place always 0 */
    int32_t levels;                  /* of this sweep */
    bool inside;                     /* a pass has begun */
    /* the pass */
    struct mx_region block;    /* in Buffer coordinates */
    struct mx_placement at;    /* of the Block */
    int32_t parity;            /* array that holds level 0 */
    struct mx_window *whole;   /* [max_levels]: everything that each level computes in this pass */
    int64_t slab;              /* planes that the front moves on */
    int64_t given[2];          /* rows of neighbours that this sweep has still to LOAD */
    int64_t front, front_end;  /* planes below front are loaded */
    int64_t loaded, stored;    /* planes below have been loaded, stored */
    int64_t planes_before;     /* of Blocks of all earlier passes: a ring continues from pass to pass */
    int64_t seam_in, seam_out; /* stream with strips: seam slab of front 0, -1 = none */
    int64_t
        seams_before; /* side file: slabs of earlier passes; the ring of seams continues from pass to pass */
    bool ordered;     /* levels begin and end one after the other along the front */
    int32_t cross_first,
        cross_end; /* the first level that the front has not passed; the end of those that it has reached */
    struct mx_range ghost_rows; /* of all windows, where y has ghost layers */
    /* seams of all levels of the pass */
    int32_t *seam_z, *seam_nz;                                /* [max_levels + 1] */
    int32_t *seam_in_y, *seam_in_n, *seam_out_y, *seam_out_n; /* [max_levels + 1] */
    struct mx_step queue[MX_WALK_QUEUE];
    int head, count;
};

/* Returns the array that holds the last level of this sweep. */
static inline int32_t mx_walk_last_array(const struct mx_walk *w) { return (w->parity + w->levels) & 1; }
/* Returns the array of level 0, for an algorithm that works in place. Array a belongs to Buffer a, or to part
 * a of a pair.
 */
static inline int32_t mx_walk_place_parity(const struct mx_walk *w) {
    return w->base.shape.pairs ? (int32_t)(w->time & 1) : w->buffer;
}

static inline struct mx_range mx_window_rows(const struct mx_window *w) {
    return (struct mx_range){w->y0, w->y1};
}
static inline struct mx_range mx_window_planes(const struct mx_window *w) {
    return (struct mx_range){w->z0, w->z1};
}

/* ---- walk_steps.c */

/* Appends a step, unless it moves nothing. */
void mx_walk_push(struct mx_walk *walk, const struct mx_step *step);
/* Appends a LOAD or STORE. `buffer`: one of the schedule's two Buffers; of a pair the array determines the
 * part. A region that reaches into ghost layers becomes several steps (ends.h). */
void mx_walk_move(struct mx_walk *walk, enum mx_step_kind kind, int32_t array, int32_t buffer,
                  struct mx_region region);
/* The same for algorithms in place, where the array determines the Buffer. */
void mx_walk_move_in_place(struct mx_walk *walk, enum mx_step_kind kind, int32_t array,
                           struct mx_region region);
/* Appends the LOADs of planes [z0,z1) of C that the pass reads; call it after the LOADs of the state. */
void mx_walk_load_fixed(struct mx_walk *walk, int64_t z0, int64_t z1);
/* Copy the grid's constant frame inside `region` from array `from` to the other one: its planes in z, and its
 * rows in y of the other planes. */
void mx_walk_copy_z_frame(struct mx_walk *walk, int32_t from, struct mx_region region);
void mx_walk_copy_y_frame(struct mx_walk *walk, int32_t from, struct mx_region region);

/* Returns the planes that a sweep which begins at level `time` needs from its neighbours. */
int64_t mx_walk_given_planes(const struct mx_walk *w, int64_t time);

/* ---- walk.c */

/* Opens a walk in one allocation. -ENOMEM. */
int mx_walk_open(const struct mx_walk_ops *ops, const struct mx_problem *problem, const struct mx_plan *plan,
                 const struct mx_shape *shape, int64_t passes, int64_t first_time, int32_t first_buffer,
                 struct mx_schedule **out);

/* ---- check_plan.c and walk_sums.c: other functions that the algorithms share */

/* Returns the planes from one front to the next. */
int64_t mx_plan_slab(const struct mx_problem *problem, const struct mx_plan *plan);
int64_t mx_plan_ahead(const struct mx_plan *plan);
/* Checks extents, halo and bt (and by, bz if `blocks`), which every algorithm needs. */
int mx_check_plan(const struct mx_problem *problem, const struct mx_plan *plan, bool blocks, mx_why *why);
/* Fills the shape for the form and for in_place: one pair of Buffers if the form reads the old value,
 * otherwise two Buffers that are updated in place. */
void mx_shape_of_form(const struct mx_problem *problem, struct mx_shape *shape);
/* Fills what ranks exchange; call it after max_levels and pairs are set. */
void mx_shape_of_neighbours(const struct mx_problem *problem, struct mx_shape *shape);
/* Adds the traffic of that: what is sent, and what is read to be sent before the first sweep. */
void mx_add_neighbours(const struct mx_problem *problem, const struct mx_plan *plan,
                       const struct mx_layout *layout, struct mx_traffic *traffic);
/* Returns how many Buffers hold the initial grid: 1, 2 or 4. */
int64_t mx_initial_buffers(const struct mx_shape *shape);
int64_t mx_updates_once(const struct mx_problem *problem); /* nx ny nz nt */
/* Returns the bytes of C that a sweep reads whose passes are all blocks of two cuts. Like mx_walk_load_fixed
 * it counts the rows and planes that contain the windows of all levels, and hc more. */
typedef struct mx_range mx_window_fn(const struct mx_cut *cut, int64_t j, int64_t level, int64_t levels);
int64_t mx_fixed_traffic(const struct mx_problem *problem, const struct mx_layout *layout,
                         const struct mx_cut *y, mx_window_fn *window_y, const struct mx_cut *z,
                         mx_window_fn *window_z, int64_t levels);

extern const struct mx_algorithm mx_algorithm_direct, mx_algorithm_redundant, mx_algorithm_skewed,
    mx_algorithm_skewed_y, mx_algorithm_skewed_min, mx_algorithm_direct_skewed,
    mx_algorithm_direct_skewed_opt, mx_algorithm_stream, mx_algorithm_resident;

#endif
