/* SPDX-License-Identifier: BSD-3-Clause */
/* norms.h - norms of a step, and a kernel's own reductions, with the same bits for every plan and number of
 * threads.
 *
 * At a check step, each row that its level writes is reduced to a few numbers, by any thread and in any
 * order. When the step is complete these numbers are added in one fixed order: cell x of a row goes to lane x
 * mod 8, x from left to right; then lanes 0 to 7; rows of a plane; planes; for the change then fields.
 * Everything is f64 and starts from 0. A kernel's own reduction (struct mx_reduce) uses what the level reads:
 * the state from which the step is computed. Its maximum or minimum is NaN if a value is.
 *
 * Rows are reduced whole, since a lane is a chain of additions from left to right. Spans of a row may be cut
 * anywhere and come in any order: the thread that brings the last cell reduces the row. At that moment the
 * row, and the old row that it is compared with, must still be in DRAM. At the last level of a sweep they
 * are, because nothing writes them before the call ends. Therefore checks are at ends of sweeps
 * (mx_problem.due). The old row is the same row of the other array, which an engine wrote whole at the level
 * before, or hands over (tiles computed in place). In staggered systems the last level itself replaces the
 * state. There engines compute such a level in whole rows, and keep each old row while it is replaced. Rows
 * and spans may be computed again (spans not at the same time): the sum of a row is stored, not added.
 *
 * A step of several stages has reductions but no norms of the change, since the state before the step is lost
 * after its last stage. They are taken with its first stage, of the state before the step, in whole rows.
 * What this stage reads stays until the row is done, and is replaced by the next stage.
 *
 * Memory: a number for every row and quantity. That is 8 * ny * nz bytes for each field with rms-change and
 * for each reduction of the kernel, and 4 * ny * nz bytes more if rows come in spans. All of it is needed
 * three times, since a check step may begin before the one before was taken, and the last check of a run may
 * follow soon after another one. Each is 1 / nx of an array, and needs no lock, no order of rows, and no
 * memory that depends on the plan. The maximum of the change needs no such memory.
 */
#ifndef MX_NORMS_H
#define MX_NORMS_H

#include "system/system.h"

#include <stdatomic.h>

enum { MX_NORM_SLOTS = 3 };

struct mx_norms_options {
    const struct mx_problem *problem;
    int64_t every;     /* check steps: every, 2 * every ..., and the last of the run; >= 1 */
    bool max_change;   /* greatest |new - old| over the interior and all fields; NaN if one is NaN */
    bool rms_change;   /* sqrt(sum((new - old)^2) / (cells * fields)) */
    bool spans;        /* rows may come in spans (tiles of an engine that are cut in x) */
    int32_t threads;   /* threads that keep old rows at a time (mx_norms_old_take); 0 = the caller has memory
                          for them */
    int64_t row_bytes; /* of such an old row */
    int32_t n_reduce;  /* 0..MX_MAX_REDUCES */
    const struct mx_reduce *reduce;
    /* With several ranks: joins the numbers of all ranks. Every rank calls it for every check, in order.
     * planes: [quantities * all planes of the grid], of which each rank has filled its own planes; the call
     * fills the others. *most: bits of a number >= 0, or of a NaN; the call makes it the greatest of all
     * ranks. < 0 with a sentence. NULL = one rank.
     */
    int (*join)(void *context, int64_t quantities, double *planes, uint64_t *most, mx_why *why);
    void *context;
};

struct mx_norms;

/* The numbers of one check. */
struct mx_norms_result {
    int64_t step; /* the check is of the state after `step` steps */
    double
        simulated_s; /* simulated seconds until then; NAN = not known. The caller of mx_norms_take fills it */
    double max_change, rms_change; /* NaN if they were not asked for */
    int32_t n_reduce;
    double reduce[MX_MAX_REDUCES]; /* over the whole interior */
    double spread[MX_MAX_REDUCES]; /* range / mean of the planes' values, such as fluxes of slices */
    double range[MX_MAX_REDUCES]; /* greatest - least value of the planes that count. Of three or more planes,
                                     the first and the last do not count if they are exactly 0 and two planes
                                     remain (a flux to the next plane is 0 at an end) */
    double mean[MX_MAX_REDUCES];  /* |mean| of these planes */
    const double *plane[MX_MAX_REDUCES]; /* [nz]: of each plane of the grid; valid until the next
                                            mx_norms_take */
};

/* Returns the number of the check after `step` steps: 1, 2, 3 ... */
static inline int64_t mx_check_number(int64_t step, int64_t every) { return (step + every - 1) / every; }
/* Returns the DRAM that norms take, for the budget. */
int64_t mx_norms_bytes(const struct mx_norms_options *options);
/* -EINVAL, -ENOMEM with a sentence. `reduce` is copied. */
int mx_norms_make(const struct mx_norms_options *options, mx_why *why, struct mx_norms **out);
void mx_norms_free(struct mx_norms *norms); /* NULL allowed */

/* Is there a check after `step` steps of the run? */
bool mx_norms_is_check(const struct mx_norms *norms, int64_t step);
/* Must the rows of this level (of the run, from 0) be handed over? They must if it is the last level of a
 * check step, or with several stages the first. */
bool mx_norms_due(const struct mx_norms *norms, int64_t level);
/* Must a call that ends when `levels` levels of the run are done compute whole rows, since a level of its
 * last step needs them? */
bool mx_norms_in_whole_rows(const struct mx_norms *norms, int64_t levels);
/* Does this level overwrite the state that its change is measured against? In staggered systems it does. The
 * caller must then keep each old row for mx_norms_row. Otherwise the old row is the same row of the other
 * array. */
bool mx_norms_needs_old(const struct mx_norms *norms, int64_t level);

/* Are there reductions? They need the row as the kernel gets it. */
bool mx_norms_reduces(const struct mx_norms *norms);
/* Gives memory for one old row. The same thread gives it back before it takes memory again. */
char *mx_norms_old_take(struct mx_norms *norms);
void mx_norms_old_give(struct mx_norms *norms, char *row);
/* Returns the levels that may be computed beyond the last sweep that was taken, so that no two checks use the
 * same slot: mx_execution.most_ahead. */
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

/* A whole row whose lanes were added elsewhere, as mx_norms_row adds them: cell x to lane x mod 8, from left
 * to right. Sums start from 0, maxima from -infinity, minima from infinity. */
struct mx_norm_lanes {
    int64_t level, y, z;
    const double *squares; /* [fields of the state][8]: of the change; given together with `most` if the
                              change is asked for */
    const double *most;    /* [8]: the greatest |change| of all fields */
    const double *reduce[MX_MAX_REDUCES]; /* [8] each */
};
void mx_norms_lanes(struct mx_norms *norms, const struct mx_norm_lanes *row);
/* Returns the options that norms were made with. */
const struct mx_norms_options *mx_norms_asked(const struct mx_norms *norms);

/* Takes the result of the check after `step` steps, when all its rows have come. One thread calls it for
 * every check in order, before the third check after it begins (mx_norms_most_ahead). -EIO, with a sentence:
 * rows are missing, or two checks used one slot. */
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
/* Reads a criterion. n_reduce may be 0; reduce is NULL for a built-in stencil. -EINVAL with a sentence. */
int mx_until_parse(const char *text, int32_t n_reduce, const struct mx_reduce *reduce, mx_why *why,
                   struct mx_until *out);
double mx_until_value(const struct mx_until *until, const struct mx_norms_result *result);
/* A value that is NaN never ends a run. */
bool mx_until_met(const struct mx_until *until, const struct mx_norms_result *result);
/* Writes a criterion as mx_until_parse reads it, always in the same words. Returns out. */
enum { MX_UNTIL_TEXT = 112, MX_UNTILS_MOST = 8 };
const char *mx_until_text(const struct mx_until *until, const struct mx_reduce *reduce,
                          char out[MX_UNTIL_TEXT]);

/* The criterion that ended a run before its last step. */
struct mx_met {
    char until[MX_UNTIL_TEXT]; /* "" = none did */
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
        int64_t number; /* number of the check, ascending */
        struct mx_norms_result result;
    } kept[MX_HISTORY_MOST];
};
void mx_history_add(struct mx_norms_history *history, int64_t number, const struct mx_norms_result *result);
/* Copies the history up to step `step`, as far as it is kept, and at most `most` >= 1 of its checks. */
void mx_history_up_to(const struct mx_norms_history *history, int64_t step, int32_t most,
                      struct mx_norms_history *out);

#endif
