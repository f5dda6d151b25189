/* SPDX-License-Identifier: BSD-3-Clause */
/* finite.h - a run whose numbers have become NaN or infinite ends, and what is committed last is finite.
 *
 * Cells that are not finite (system/finite.h) are counted in the initial grid, as it is written or fed to the
 * first sweep: the run is refused. They are counted in states at the end of sweeps, as rows are computed, or,
 * with an accelerator, stored: in every state that may be committed, handed out or be the last one, and in
 * some others (execute.h). A result that
 * was not among them is counted with its checksum.
 *
 * Such a state is neither committed nor handed out, and the run ends with -EDOM. The newest complete sweep
 * before it is committed, where there are commits. Ranks decide together, when they commit. With --nonfinite
 * ignore the cells are counted all the same, and nothing else happens.
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
    bool committed; /* the result was, before its checksum was taken */
    bool initial;   /* `first` is of what the run began with */
    bool edited;    /* `first` is of a state that was changed before the run went on */
    bool ended;     /* all ranks know that they end */
    /* Under the run's lock. */
    bool counted;            /* some state was */
    int64_t before;          /* step of the newest one that was */
    struct mx_run_odd first; /* the first one that is not finite; found.cells 0 = none was */
    int64_t cells;           /* of the newest one */
};

/* All: 0, or < 0 with a sentence in r->why, but for where `why` gets it. */

/* What --nonfinite says, or the store. */
void mx_run_take_finite(struct mx_run *r);
/* mx_execution.finite. -EDOM with a sentence; of ranks 0, who ask mx_run_agree_finite. */
int mx_run_finite_state(void *run, int64_t steps, const struct mx_nonfinite *found, mx_why *why);
/* Was that the state that the run is at? */
bool mx_run_is_counted(const struct mx_run *r);
/* Of ranks, at the step of a commit, before it: -EDOM for all, or 0 for all. */
int mx_run_agree_finite(struct mx_run *r, enum mx_channel channel, int64_t step);
/* Of the result, which was counted: the number of cells of all ranks, or -EDOM for all. */
int mx_run_settle_finite(struct mx_run *r);
/* Is this the error of a state that is not finite, and none of a source or a sink? */
bool mx_run_is_nonfinite(const struct mx_run *r, int err);
/* Such an error has ended the run, and what is committed is settled: says so in r->why. */
void mx_run_say_nonfinite(struct mx_run *r);

/* ---- the initial grid */

/* A mx_source_fn that fills planes of array A (0) or B (1) by another one, and counts. */
struct mx_counted_fill {
    struct mx_run *r;
    int array;
    mx_source_fn *fill;
    void *context;
    struct mx_nonfinite *found;
};
int mx_fill_counted(void *counted_fill, int64_t z, char *plane);
/* Of all ranks: was anything found? */
int mx_run_check_initial(struct mx_run *r, const struct mx_nonfinite *found);
/* Likewise of a state that was changed before the run goes on from it. */
int mx_run_check_edited(struct mx_run *r, const struct mx_nonfinite *found);
/* Rows that the first sweep gets from a file; any thread. */
int mx_run_check_fed(struct mx_run *r, int32_t field, int64_t z, int64_t y0, int64_t y1, const char *rows,
                     int64_t row_pitch_bytes, mx_why *why);

#endif
