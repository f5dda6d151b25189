/* SPDX-License-Identifier: BSD-3-Clause */
/* take.h - the state at chosen steps, handed out row by row while the computation goes on.
 *
 * Where an algorithm stores every row of the interior once in a sweep, with the level that the sweep ends
 * with (stream, redundant), rows are taken from DRAM as they are stored: a thread hands them out, and a STORE
 * is through when its rows are, for until then nobody overwrites them. Nothing is read for it, and no memory
 * is needed. All other algorithms rewrite their Buffers in place: there the end of the sweep waits until the
 * rows have been taken from the Buffer, plane by plane.
 */
#ifndef MX_TAKE_H
#define MX_TAKE_H

#include "engine/engine.h"
#include "steps/step.h"

/* Rows of a box, handed out. `array`: of the view; `of`: of the system. Row y of plane z is row y + buffer_y
 * of plane z + buffer_z of the Buffer. */
struct mx_taken_box {
    struct mx_view view;
    int32_t array, of;
    struct mx_region region;
    int64_t buffer_y, buffer_z;
    int64_t step;
};

/* Who asks for states, and for which; there may be several. Steps and levels are those of the run,
 * first_level of the execution included. */
enum { MX_TAKINGS = 8 };
struct mx_taking {
    int64_t every;  /* multiples of it are taken, as far as a sweep ends there (mx_problem.due makes it) */
    int64_t stride; /* of the whole grid's interior rows and planes 0, stride, 2 stride ... are wanted; others
                       may come */
    /* Rows [y0,y1) of plane z, interior ones, frame counted, of array A (0) or B (1) at this step: cell 0 of
     * the first stands at `rows`, the next row_pitch_bytes further. Rows of a step come in any order, each
     * once; steps come one after the other. Then `whole`. One call at a time, not on the thread that called
     * mx_execute where they are taken from STOREs. < 0 with a sentence: the run fails. */
    int (*rows)(void *context, int64_t step, int array, int64_t z, int64_t y0, int64_t y1, const char *rows,
                int64_t row_pitch_bytes, mx_why *why);
    int (*whole)(void *context, int64_t step, mx_why *why);
    /* In place of `rows`, from STOREs alone: all that is stored at this step, the frame included, and what is
     * stored once more as a frame that copies it. Boxes come in the order of the schedule. */
    int (*box)(void *context, const struct mx_taken_box *box, mx_why *why);
    /* With box: what is handed out is not stored besides. The sweep that ends with this step is the last one;
     * no Buffer holds its state, and it is not committed. */
    bool only;
    void *context;
};

static inline bool mx_taking_is_due(const struct mx_taking *t, int64_t step) { return step % t->every == 0; }
/* Hands a box to all that want it. */
int mx_take_box(const struct mx_taking *const *taking, const struct mx_problem *problem,
                const struct mx_taken_box *box, mx_why *why);
/* All of a step was handed out. */
int mx_take_whole(const struct mx_taking *const *taking, int64_t step, mx_why *why);

/* The thread that does so, in the order of posting. */
struct mx_taker;
struct mx_take; /* what was posted */
int mx_taker_start(const struct mx_taking *const *taking, const struct mx_problem *problem, mx_why *why,
                   struct mx_taker **out);
/* NULL: no memory. The rows stay as they are until it is done. */
struct mx_take *mx_taker_post(struct mx_taker *taker, const struct mx_taken_box *box);
/* All of a step was posted. -ENOMEM. */
int mx_taker_end_step(struct mx_taker *taker, int64_t step);
bool mx_take_done(const struct mx_take *take);
/* Waits, frees. 0, or the first error of the taker, whose sentence `why` gets. NULL: 0. */
int mx_taker_finish(struct mx_taker *taker, struct mx_take *take, mx_why *why);
/* Waits for everything posted and ends the thread. `err` (0 or an earlier error), or the taker's first error.
 * NULL allowed. */
int mx_taker_stop(struct mx_taker *taker, int err, mx_why *why);

#endif
