/* SPDX-License-Identifier: BSD-3-Clause */
/* trial.h - inside tune/ only: the grid on which rates are measured. */
#ifndef MX_TUNE_TRIAL_H
#define MX_TUNE_TRIAL_H

#include "grid/grid.h"
#include "tune/tune.h"

/* The grid for measurements in DRAM and in memory of an accelerator. It has up to 512 of the problem's rows,
 * and as many planes as fit into memory_bytes with two arrays and its fields of C. Rows are shortened if not
 * even 16 planes of 16 rows fit. window: the whole grid, for each level. */
enum { MX_TRIAL_LEVELS = 32 };
struct mx_trial {
    struct mx_problem problem;
    struct mx_layout layout;
    struct mx_window window[MX_TRIAL_LEVELS];
};
int mx_trial_make(const struct mx_problem *problem, uint64_t memory_bytes, mx_why *why, struct mx_trial *out);
/* Returns the view of field i of C, whose planes begin at base. */
struct mx_fixed_view mx_trial_fixed(const struct mx_trial *trial, int32_t i, char *base);

#endif
