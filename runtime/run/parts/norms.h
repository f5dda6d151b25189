/* SPDX-License-Identifier: BSD-3-Clause */
/* norms.h - the norms that a run takes at its check steps, their history, and the criteria that end it.
 *
 * A check is the end of a sweep (mx_problem.due): every --check steps and after the last one. Its numbers are
 * taken when the sweep is complete, before it is committed. A criterion that is met ends the run there, and
 * the beginning of the next sweep is dropped. A commit stores the history up to it, as far as the note has
 * room, and the criterion that was met.
 *
 * With --resume the store's checks and criteria continue, unless others are given. A run that a criterion has
 * ended is complete. It continues only if it is resumed with other criteria (--until none: without any) or
 * another number of steps.
 */
#ifndef MX_RUN_NORMS_H
#define MX_RUN_NORMS_H

#include "ask/options.h"
#include "note/note.h"
#include "system/norms.h"

struct mx_run_norms {
    struct mx_norms *norms; /* NULL: no checks, or none that is left */
    int32_t n_until;
    struct mx_until until[MX_UNTILS_MOST];
    struct mx_norms_history history; /* under the run's lock */
    struct mx_met met;               /* the same */
    bool said_noise;                 /* of a spread without a floor */
};

/* Steps of a check where --until is given and --check is not. */
enum { MX_USUAL_CHECK = 100 };

#endif
