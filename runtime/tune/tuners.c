/* SPDX-License-Identifier: BSD-3-Clause */
/* tuners.c - the table of tuners. */
#include "tune/request.h"

const struct mx_tuner mx_tuners[] = {
    {"blk", "Blk-Tune: the global optimum of CalcTrans under the constraints"},
    {"naive", "Naive-Tune: powers of two that fit, then the steps that fit"},
    {"manual", "the Block that is given, or the one that the papers choose by hand"},
    {NULL, NULL},
};

typedef int tuner_fn(struct job *job, mx_why *why);
static tuner_fn *const tuner_functions[] = {mx_tune_blk, mx_tune_naive, mx_tune_manual};

int mx_tune_run(const struct context *c, struct job *job, mx_why *why) {
    bool choice = job->strategy->blocks || (c->tuner == MANUAL && job->algorithm->uses_blocks);
    return (choice ? tuner_functions[c->tuner] : mx_tune_blk)(job, why);
}
