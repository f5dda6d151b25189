/* SPDX-License-Identifier: BSD-3-Clause */
/* norms.h - norms of a step and sums of a kernel's own, the same bits for every plan and thread count.
 *
 * At a check step the rows that its level writes are reduced each to a few numbers, whichever thread writes
 * them and in whatever order; when the step is complete these are added in the one order there is: cell x of
 * a row goes to lane x mod 8, x from left to right; lanes 0 to 7; rows of a plane; planes; for the change
 * then fields. Everything is f64 and starts from 0. A reduction of a kernel's own (struct mx_reduce) is taken
 * of what the level reads: of the state that the step is computed from. Its maximum or minimum is NaN where a
 * value is.
 *
 * Rows are reduced whole, since a lane is a chain of additions from left to right. Spans of a row may be cut
 * anywhere and come in any order: the thread that brings the last cell reduces the row. At that moment the
 * row and the row it is compared with must still be in DRAM. They are at the last level of a sweep, because
 * nothing writes them before the call ends. Therefore checks are at ends of sweeps (mx_problem.due). The row
 * before is the same row of the other array, which an engine writes whole at the level before, or hands over
 * (tiles computed in place); of staggered systems, whose state is replaced by the last level itself, engines
 * compute such a level row by row, whole rows, and keep each while it is replaced. Rows, and spans, may be
 * computed again (spans not at the same time): the sum of a row is stored, not added.
 *
 * A step of several stages has reductions alone: of the step before nothing is left after its last stage.
 * They are taken with its first stage, of the state before the step, in whole rows: what the stage has read
 * is there until the row is done, and is replaced when the stage after it comes.
 *
 * Memory: a number for every row and quantity: 8 * ny * nz bytes for each field with rms-change and for each
 * reduction of the kernel, 4 * ny * nz more where rows come in spans; three times, since a step may begin
 * before the one before it has been taken, and the last of a run comes soon after another one. That is 1 / nx
 * of an array for each, and asks for no lock, no order of rows, no room that depends on a plan. The maximum
 * of the change needs none of it.
 */
#ifndef MX_NORMS_H
#define MX_NORMS_H

#include "system/system.h"

#include <stdatomic.h>

enum { MX_NORM_SLOTS = 3 };

struct mx_norms_options {
    const struct mx_problem *problem;
    int64_t every;   /* check steps: every, 2 * every ..., and the last of the run; >= 1 */
    bool max_change; /* greatest |new - old| over the interior and all fields, NaN if there is one */
    bool rms_change; /* sqrt(sum((new - old)^2) / (cells * fields)) */
    bool spans;      /* rows may come in spans (tiles of an engine that are cut in x) */
    int32_t threads; /* that keep old rows (mx_norms_old_take) at a time; 0 = the caller has room for them */
    int64_t row_bytes; /* of such a row */
    int32_t n_reduce;  /* 0..MX_MAX_REDUCES */
    const struct mx_reduce *reduce;
    /* Of a rank of several: every rank calls it for every check, in order. planes: [quantities * all planes
     * of the grid], of which this rank has filled its own of each; *most: bits of a number >= 0, or of a NaN.
     * Fills all of them, of all ranks, and makes *most the greatest. < 0 with a sentence. NULL = by itself.
     */
    int (*join)(void *context, int64_t quantities, double *planes, uint64_t *most, mx_why *why);
    void *context;
};

struct mx_norms;

/* One check. */
struct mx_norms_result {
    int64_t step;       /* steps that are done: the state after `step` steps */
    double simulated_s; /* and so many seconds; NAN = not known. mx_norms_take leaves it to the caller */
    double max_change, rms_change; /* NaN where they are not asked for */
    int32_t n_reduce;
    double reduce[MX_MAX_REDUCES]; /* over the whole interior */
    double spread[MX_MAX_REDUCES]; /* of planes, such as slice fluxes: range / mean */
    double range[MX_MAX_REDUCES];  /* greatest - least of the planes that count: of three or more planes all
                                      but the first and the last where those are exactly 0 (a flux to the
                                      next plane has none at an end) and two are left */
    double mean[MX_MAX_REDUCES];   /* |mean| of these planes */
    const double *plane[MX_MAX_REDUCES]; /* [nz]: of each plane of the grid; valid until the next
                                            mx_norms_take */
};

/* Of the check after `step` steps: 1, 2, 3 ... */
static inline int64_t mx_check_number(int64_t step, int64_t every) { return (step + every - 1) / every; }
/* DRAM of it, for the budget. */
int64_t mx_norms_bytes(const struct mx_norms_options *options);
/* -EINVAL, -ENOMEM with a sentence. `reduce` is copied. */
int mx_norms_make(const struct mx_norms_options *options, mx_why *why, struct mx_norms **out);
void mx_norms_free(struct mx_norms *norms); /* NULL allowed */

/* Is there a check after so many steps of the run? */
bool mx_norms_is_check(const struct mx_norms *norms, int64_t step);
/* Is this level (absolute, from 0) the last of a check step, or of several stages the first? Then its rows
 * are to be handed over. */
bool mx_norms_due(const struct mx_norms *norms, int64_t level);
/* Is a call that ends when so many levels of the run are done to compute whole rows, since a level of its
 * last step needs them? */
bool mx_norms_in_whole_rows(const struct mx_norms *norms, int64_t levels);
/* Does this level overwrite the state that its change is measured against? Staggered systems do. The caller
 * must then keep each old row for mx_norms_row. Otherwise the old row is the same row of the other array. */
bool mx_norms_needs_old(const struct mx_norms *norms, int64_t level);

/* Are there reductions, which want the row as the kernel gets it? */
bool mx_norms_reduces(const struct mx_norms *norms);
/* Room for one such old row, to be given back by the same thread before it takes another one. */
char *mx_norms_old_take(struct mx_norms *norms);
void mx_norms_old_give(struct mx_norms *norms, char *row);
/* Levels that may be computed beyond the last sweep that was taken, so that no two checks meet in a slot:
 * mx_execution.most_ahead. */
int64_t mx_norms_most_ahead(const struct mx_norms *norms);

/* Row (y, z) of the interior, from 0, at a level that is due: cells [x0,x1) of it, frame counted (h .. nx+h)
 * have been written. `now` and `old` are cell 0 of the row, `now` in the array written with all its fields,
 * `old` as above; `r` is the row as the kernel gets it (rows = 1), NULL if there are no reductions. Both are
 * looked at only when the row is whole. Any thread. */
struct mx_norm_row {
    int64_t level, y, z, x0, x1;
    const char *now, *old;
    const int64_t *field_offset_bytes; /* layout.field_offset_bytes of the array written */
    const struct mx_row *r;
};
void mx_norms_row(struct mx_norms *norms, const struct mx_norm_row *row);

/* A row whose lanes were added elsewhere, as mx_norms_row adds them: cell x to lane x mod 8, from left to
 * right, each from 0, of maxima from -infinity, of minima from infinity. Whole rows. */
struct mx_norm_lanes {
    int64_t level, y, z;
    const double
        *squares; /* [fields of the state][8]: of the change; with `most` where the change is asked for */
    const double *most;                   /* [8]: the greatest |change| of all fields */
    const double *reduce[MX_MAX_REDUCES]; /* [8] each */
};
void mx_norms_lanes(struct mx_norms *norms, const struct mx_norm_lanes *row);
/* What it was made for. */
const struct mx_norms_options *mx_norms_asked(const struct mx_norms *norms);

/* The result of the check after `step` steps, when all rows of it have come. To be called, by one thread, for
 * every check in order, before the third one after it begins (mx_norms_most_ahead). -EIO, with a sentence:
 * rows are missing, or two checks met. */
int mx_norms_take(struct mx_norms *norms, int64_t step, mx_why *why, struct mx_norms_result *out);

/* ---- when to stop */

enum mx_until_kind { MX_UNTIL_MAX_CHANGE, MX_UNTIL_RMS_CHANGE, MX_UNTIL_REDUCE, MX_UNTIL_SPREAD };

/* "max-change=1e-6", "rms-change=1e-6", "NAME=1e-6" of a reduction of the kernel, and "NAME-spread=1e-3" of
 * the planes of it: met at most this, or, followed by ",above", at least this (",below" is the default). A
 * spread may have ",floor=1e-12": it is relative to the mean of the planes, or to the floor where that is
 * greater. Without a floor the spread of numbers that go to 0 is that of their rounding errors. */
struct mx_until {
    enum mx_until_kind kind;
    int32_t reduce;
    double limit, floor; /* floor 0: none */
    bool above;
};
/* -EINVAL with a sentence; the reductions there are may be none. */
int mx_until_parse(const char *text, int32_t n_reduce, const struct mx_reduce *reduce, mx_why *why,
                   struct mx_until *out);
double mx_until_value(const struct mx_until *until, const struct mx_norms_result *result);
/* A value that is NaN never ends a run. */
bool mx_until_met(const struct mx_until *until, const struct mx_norms_result *result);
/* As mx_until_parse takes it, always in the same words. Returns out. */
enum { MX_UNTIL_TEXT = 112, MX_UNTILS_MOST = 8 };
const char *mx_until_text(const struct mx_until *until, const struct mx_reduce *reduce,
                          char out[MX_UNTIL_TEXT]);

/* What ended a run before its last step. */
struct mx_met {
    char until[MX_UNTIL_TEXT]; /* "": nothing did */
    int64_t step;
    double value;
};

/* ---- what is kept of the checks of a run, however many there are: those whose number is a multiple of
 * `stride`, which doubles when there are too many, and the newest */

enum { MX_HISTORY_MOST = 96 };
struct mx_norms_history {
    int64_t stride; /* 0: nothing was added yet */
    int32_t n;
    struct mx_norms_kept {
        int64_t number; /* of the check: those before it have smaller ones */
        struct mx_norms_result result;
    } kept[MX_HISTORY_MOST];
};
void mx_history_add(struct mx_norms_history *history, int64_t number, const struct mx_norms_result *result);
/* What it was after step `step`, as far as that is kept, and of that at most `most` >= 1. */
void mx_history_up_to(const struct mx_norms_history *history, int64_t step, int32_t most,
                      struct mx_norms_history *out);

#endif
