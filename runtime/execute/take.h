/* SPDX-License-Identifier: BSD-3-Clause */
/* take.h - hands out the state at chosen steps, row by row, while the computation goes on.
 *
 * Some algorithms store every row of the interior once in a sweep, with the level that the sweep ends with
 * (stream, redundant). There rows are taken from DRAM when they are stored: a thread hands them out, and a
 * STORE is done only when its rows were handed out, so nobody overwrites them before. This reads nothing and
 * needs no memory. All other algorithms rewrite their Buffers in place. There the end of the sweep waits
 * until the rows were read from the Buffer, plane by plane.
 */
#ifndef MX_TAKE_H
#define MX_TAKE_H

#include "engine/engine.h"
#include "steps/step.h"
#include "system/field_rows.h"

/* A box of rows that is handed out. `array`: number in the view; `of`: in the system. Row y of plane z is row
 * y + buffer_y of plane z + buffer_z of the Buffer. */
struct mx_taken_box {
    struct mx_view view;
    int32_t array, of;
    struct mx_region region;
    int64_t buffer_y, buffer_z;
    int64_t step;
};

/* A receiver of states, and the states that it wants; a run may have several. Steps and levels count from the
 * beginning of the run. */
enum { MX_TAKINGS = 8 };
struct mx_taking {
    int64_t every;  /* steps that are multiples of it are handed out; mx_problem.due makes sweeps end there.
                       0 = the end of each sweep */
    int64_t stride; /* wanted are rows and planes 0, stride, 2 stride ... of the whole grid's interior; others
                       may come too */
    /* Receives interior rows of the state at this step; mx_next_field_row goes through their fields. Rows of
     * a step come in any order, each once, and then `whole` is called. Steps come one after the other,
     * without the one that the run begins with. Calls come one at a time; if rows are taken from STOREs, not
     * on the thread that called mx_execute, and `whole` may come after the executor has gone on to the next
     * sweep. If the run ends within a sweep, some of its rows may have come, and `whole` does not. All calls
     * are over when mx_execute returns. < 0 with a sentence: the run fails. */
    int (*rows)(void *context, int64_t step, const struct mx_state_rows *rows, mx_why *why);
    int (*whole)(void *context, int64_t step, mx_why *why); /* NULL allowed */
    /* Instead of `rows`, only if states are taken from STOREs: receives everything that is stored at this
     * step, the frame included, also rows that are stored again as a frame that copies them. Boxes come in
     * the order of the schedule. */
    int (*box)(void *context, const struct mx_taken_box *box, mx_why *why);
    /* With box: what is handed out is not stored in a Buffer. The sweep that ends with this step is the last
     * one; no Buffer holds its state, and it is not committed. */
    bool only;
    void *context;
};

static inline bool mx_taking_is_due(const struct mx_taking *t, int64_t step) {
    return t->every == 0 || step % t->every == 0;
}
/* Hands a box to all receivers that want it. */
int mx_take_box(const struct mx_taking *const *taking, const struct mx_problem *problem,
                const struct mx_layout *layout, const struct mx_taken_box *box, mx_why *why);
/* Tells all receivers that a step was handed out completely. */
int mx_take_whole(const struct mx_taking *const *taking, int64_t step, mx_why *why);

/* A thread that does so, in the order of posting. */
struct mx_taker;
struct mx_take; /* a box that was posted */
int mx_taker_start(const struct mx_taking *const *taking, const struct mx_problem *problem,
                   const struct mx_layout *layout, mx_why *why, struct mx_taker **out);
/* Posts a box. Its rows must not change until it is done. NULL = no memory. */
struct mx_take *mx_taker_post(struct mx_taker *taker, const struct mx_taken_box *box);
/* Says that a step was posted completely. -ENOMEM. */
int mx_taker_end_step(struct mx_taker *taker, int64_t step);
bool mx_take_done(const struct mx_take *take);
/* Waits for a box, and frees it. 0, or the first error of the taker, with its sentence in *why. NULL: 0. */
int mx_taker_finish(struct mx_taker *taker, struct mx_take *take, mx_why *why);
/* Waits for everything that was posted, and ends the thread. Returns err (0 or an earlier error), or else the
 * taker's first error. NULL allowed. */
int mx_taker_stop(struct mx_taker *taker, int err, mx_why *why);

#endif
