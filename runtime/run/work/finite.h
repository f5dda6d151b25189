/* SPDX-License-Identifier: BSD-3-Clause */
/* finite.h - ends a run whose numbers have become NaN or infinite. Its last commit is finite.
 *
 * Cells that are not finite (system/finite.h) are counted in the initial grid, when it is written or fed to
 * the first sweep. If there are any, the run is refused. They are also counted in states at the end of
 * sweeps, while rows are computed or, with an accelerator, stored: in every state that may be committed,
 * handed out or be the last one, and in some others (execute.h). If the result was not counted, this is done
 * with its checksum.
 *
 * A state with such cells is neither committed nor handed out, and the run ends with -EDOM. The newest
 * complete sweep before it is committed, if the run commits. Ranks decide together, when they commit. With
 * --nonfinite ignore the cells are only counted.
 */
#ifndef MX_RUN_FINITE_H
#define MX_RUN_FINITE_H

#include "grid/grid.h"
#include "link/link.h"
#include "system/finite.h"

struct mx_run;

/* A range of steps in which cells became not finite. `from` is the last state known to be finite, `step` the
 * state with the cells in `found`. */
struct mx_run_odd {
    int64_t from, step;
    struct mx_nonfinite found;
};

struct mx_run_finite {
    bool ignored;   /* --nonfinite ignore */
    bool committed; /* the result was committed before its checksum was taken */
    bool initial;   /* `first` is of what the run began with */
    bool edited;    /* `first` is of a state that was changed before the run continued */
    bool ended;     /* all ranks know that they end */
    /* Under the run's lock. */
    bool counted;            /* some state was counted */
    int64_t before;          /* step of the newest state that was counted */
    struct mx_run_odd first; /* the first state that is not finite; found.cells 0 = none was */
    int64_t cells;           /* cells of the newest state that was counted */
};

/* Functions return 0, or < 0 with a sentence in r->why, or in *why if they have such an argument. */

/* Takes what --nonfinite, or else the store, says. */
void mx_run_take_finite(struct mx_run *r);
/* The function mx_execution.finite. -EDOM with a sentence. With several ranks it returns 0, and they call
 * mx_run_agree_finite. */
int mx_run_finite_state(void *run, int64_t steps, const struct mx_nonfinite *found, mx_why *why);
/* Was the current state counted? */
bool mx_run_is_counted(const struct mx_run *r);
/* All ranks call it before they commit a step: -EDOM for all, or 0 for all. */
int mx_run_agree_finite(struct mx_run *r, enum mx_channel channel, int64_t step);
/* Of the result, which was counted: the number of cells of all ranks, or -EDOM for all. */
int mx_run_settle_finite(struct mx_run *r);
/* Is this the error of a state that is not finite, and not one of a source or a sink? */
bool mx_run_is_nonfinite(const struct mx_run *r, int err);
/* Writes the sentence about such an error to r->why, when it is known what is committed. */
void mx_run_say_nonfinite(struct mx_run *r);

/* ---- the initial grid */

/* Context of mx_fill_counted, a mx_source_fn that fills planes of array A (0) or B (1) by another one, and
 * counts. */
struct mx_counted_fill {
    struct mx_run *r;
    int array;
    mx_source_fn *fill;
    void *context;
    struct mx_nonfinite *found;
};
int mx_fill_counted(void *counted_fill, int64_t z, char *plane);
/* Refuses the run if any rank has found such cells. */
int mx_run_check_initial(struct mx_run *r, const struct mx_nonfinite *found);
/* Likewise for a state that was changed before the run continues from it. */
int mx_run_check_edited(struct mx_run *r, const struct mx_nonfinite *found);
/* Counts in rows that the first sweep gets from a file. Any thread. */
int mx_run_check_fed(struct mx_run *r, int32_t field, int64_t z, int64_t y0, int64_t y1, const char *rows,
                     int64_t row_pitch_bytes, mx_why *why);

#endif
