/* SPDX-License-Identifier: BSD-3-Clause */
/* trial.h - inside tune/ only: the grid that rates are measured with. */
#ifndef MX_TUNE_TRIAL_H
#define MX_TUNE_TRIAL_H

#include "grid/grid.h"
#include "tune/tune.h"

/* What rates are measured with, in DRAM and in memory of an accelerator: a grid with the problem's rows, up
 * to 512 of them, and planes that two arrays of it and its fields of C have room for in memory_bytes; rows
 * are shortened where not even 16 planes of 16 of them would be. window: all of it, for each level. */
enum { MX_TRIAL_LEVELS = 32 };
struct mx_trial {
    struct mx_problem problem;
    struct mx_layout layout;
    struct mx_window window[MX_TRIAL_LEVELS];
};
int mx_trial_make(const struct mx_problem *problem, uint64_t memory_bytes, mx_why *why, struct mx_trial *out);
/* Field i of C, whose planes begin at base. */
struct mx_fixed_view mx_trial_fixed(const struct mx_trial *trial, int32_t i, char *base);

#endif
