/* SPDX-License-Identifier: BSD-3-Clause */
/* looker.h - inside execute/ only: threads that look for cells that are not finite in rows that are being
 * stored. Looking at a slab of 200 MiB takes one thread 25 ms. Meanwhile a fast accelerator computes all
 * levels of the next slab, so the executor's thread must not be held up. */
#ifndef MX_LOOKER_H
#define MX_LOOKER_H

#include "engine/work.h"
#include "steps/step.h"
#include "system/finite.h"

#include <stdatomic.h>

struct mx_looker;

/* The rows of one STORE, to be looked at. The caller keeps this struct and the rows until it is done. */
struct mx_looking {
    struct mx_view view;
    int32_t view_array; /* array of the view */
    int array;          /* array of the system, A (0) or B (1) */
    struct mx_region region;
    struct mx_finding *finding; /* receives what is found */
    /* Private to the looker. */
    int64_t rows, next, left; /* rows of a piece; pieces that were taken; pieces that are not done */
    _Atomic bool under_way;
    struct mx_looking *following;
};

/* Starts up to `threads` threads, at least 1. NULL = no memory or no thread; mx_look_at still works. The
 * calling thread posts, and its bell is rung. */
struct mx_looker *mx_looker_start(int32_t threads, const struct mx_problem *problem,
                                  const struct mx_layout *layout);
/* Ends the threads; nothing is under way. NULL allowed. */
void mx_looker_stop(struct mx_looker *looker);
void mx_looker_post(struct mx_looker *looker, struct mx_looking *looking);
void mx_looker_wait(struct mx_looker *looker, struct mx_looking *looking);
static inline bool mx_looking_done(const struct mx_looking *looking) {
    return !atomic_load_explicit(&looking->under_way, memory_order_acquire);
}

/* Looks at all rows on this thread. */
void mx_look_at(const struct mx_problem *problem, const struct mx_layout *layout,
                const struct mx_looking *looking);

#endif
