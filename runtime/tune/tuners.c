/* SPDX-License-Identifier: BSD-3-Clause */
/* tuners.c - the table of tuners. */
#include "tune/request.h"

const struct mx_tuner mx_tuners[] = {
    {"blk", "Blk-Tune: the plan with the least predicted time (CalcTrans) that keeps the limits"},
    {"naive", "Naive-Tune: the largest Block of powers of two that fits, then as many steps as fit"},
    {"manual", "the Block that you give, or the one that the papers chose by hand"},
    {NULL, NULL},
};

typedef int tuner_fn(struct job *job, mx_why *why);
static tuner_fn *const tuner_functions[] = {mx_tune_blk, mx_tune_naive, mx_tune_manual};

int mx_tune_run(const struct context *c, struct job *job, mx_why *why) {
    bool choice = job->strategy->blocks || (c->tuner == MANUAL && job->algorithm->uses_blocks);
    return (choice ? tuner_functions[c->tuner] : mx_tune_blk)(job, why);
}
