/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - inside tune/ only: a request, and one algorithm or one given plan for it. */
#ifndef MX_TUNE_REQUEST_H
#define MX_TUNE_REQUEST_H

#include "tune/search.h"

/* The tuners, as mx_tuners lists them. */
enum { BLK, NAIVE, MANUAL, N_TUNERS };

/* A size of --dram is rounded up to so much; so many Blocks or slabs are read ahead where nothing is said. */
enum { TUNE_MIB = 1 << 20, TUNE_AHEAD = 2 };

/* A request, completed. */
struct context {
    struct mx_tune_request q; /* dram_bytes, engine, rates, threads set */
    int tuner;
    uint64_t room_bytes, overhead_bytes;
};

/* ---- request.c */

/* -EINVAL with a sentence for what no algorithm could do. */
int mx_tune_complete(const struct mx_tune_request *request, mx_why *why, struct context *out);

/* ---- make_job.c */

/* With the engine's own sizes of tiles, or with those that were refined. */
enum sizes { OWN, REFINED };
int mx_tune_make_job(const struct context *context, const struct mx_algorithm *algorithm, enum sizes sizes,
                     mx_why *why, struct job *out);
/* Refined tile and chunk, where no size is given; the slab follows with them (mx_job_complete). */
void mx_tune_refine(const struct job *job, struct mx_plan *plan);

/* ---- misfit.c */

/* Nothing fits: fills `why` and the smallest DRAM that would do. */
void mx_tune_explain_misfit(const struct context *context, const struct job *job,
                            struct mx_tune_candidate *out);
/* The rows of the store do not suit the device: the ways out that are left. -EINVAL. */
int mx_tune_explain_layout(const struct mx_tune_request *request, const char *what, mx_why *why);
/* -ENOSPC where the device does not hold what the plan stores. */
int mx_tune_check_capacity(const struct mx_tune_request *request, const struct mx_tune_candidate *candidate,
                           mx_why *why);

/* ---- candidate.c */

/* Can this algorithm compute on an accelerator? */
bool mx_tune_on_accel(const struct mx_algorithm *algorithm);
/* -ENOTSUP where the request rules the algorithm out. */
int mx_tune_check_algorithm(const struct mx_tune_request *request, const struct mx_algorithm *algorithm,
                            mx_why *why);
/* What the algorithm itself needs and moves, with the steps as asked (0 steps move nothing). */
void mx_tune_fill(struct job *job, const struct mx_plan *plan, struct mx_tune_candidate *out);
/* Fills out, found or not. Negative: the request itself is wrong for this algorithm. */
int mx_tune_one(const struct context *context, const struct mx_algorithm *algorithm, mx_why *why,
                struct mx_tune_candidate *out, struct job *job);

/* ---- tuners.c */

/* Runs the tuner of the context, where the algorithm leaves it something to choose. */
int mx_tune_run(const struct context *context, struct job *job, mx_why *why);

/* ---- tune.c: what results have of a context, and of the candidate in front */

void mx_tune_take_context(const struct context *context, struct mx_tune_result *result);
void mx_tune_take_winner(const struct context *context, struct mx_tune_result *result);

#endif
