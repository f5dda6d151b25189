/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - inside tune/ only: handles a request: completes it, and finds a plan for one algorithm, or
 * checks a given plan. */
#ifndef MX_TUNE_REQUEST_H
#define MX_TUNE_REQUEST_H

#include "tune/search.h"

/* The tuners, as mx_tuners lists them. */
enum { BLK, NAIVE, MANUAL, N_TUNERS };

/* --dram is rounded up to a multiple of TUNE_MIB; TUNE_AHEAD: Blocks or slabs that are read ahead by default.
 */
enum { TUNE_MIB = 1 << 20, TUNE_AHEAD = 2 };

/* A request, completed. */
struct context {
    struct mx_tune_request q; /* dram_bytes, engine, rates, threads set */
    int tuner;
    uint64_t room_bytes, overhead_bytes;
};

/* ---- request.c */

/* Completes a request. -EINVAL with a sentence if no algorithm could do it. */
int mx_tune_complete(const struct mx_tune_request *request, mx_why *why, struct context *out);

/* ---- make_job.c */

/* The sizes of tiles: the engine's own, or those that were refined. */
enum sizes { OWN, REFINED };
int mx_tune_make_job(const struct context *context, const struct mx_algorithm *algorithm, enum sizes sizes,
                     mx_why *why, struct job *out);
/* Sets refined tile and chunk, if no size is given; mx_job_complete then sets the slab. */
void mx_tune_refine(const struct job *job, struct mx_plan *plan);

/* ---- misfit.c */

/* Call it if nothing fits: fills `why` and the smallest DRAM that would do. */
void mx_tune_explain_misfit(const struct context *context, const struct job *job,
                            struct mx_tune_candidate *out);
/* Call it if the rows of the store do not suit the device: -EINVAL with the ways out. */
int mx_tune_explain_layout(const struct mx_tune_request *request, const char *what, mx_why *why);
/* -ENOSPC if the device has no room for what the plan stores. */
int mx_tune_check_capacity(const struct mx_tune_request *request, const struct mx_tune_candidate *candidate,
                           mx_why *why);

/* ---- candidate.c */

/* Can this algorithm compute on an accelerator? */
bool mx_tune_on_accel(const struct mx_algorithm *algorithm);
/* -ENOTSUP if the request excludes the algorithm. */
int mx_tune_check_algorithm(const struct mx_tune_request *request, const struct mx_algorithm *algorithm,
                            mx_why *why);
/* Fills a candidate: what the algorithm itself needs and moves, for the requested steps (0 steps move
 * nothing). */
void mx_tune_fill(struct job *job, const struct mx_plan *plan, struct mx_tune_candidate *out);
/* Tunes one algorithm and fills *out, whether a plan is found or not. Negative: the request is wrong for this
 * algorithm. */
int mx_tune_one(const struct context *context, const struct mx_algorithm *algorithm, mx_why *why,
                struct mx_tune_candidate *out, struct job *job);

/* ---- tuners.c */

/* Runs the tuner of the context, if the algorithm leaves it something to choose. */
int mx_tune_run(const struct context *context, struct job *job, mx_why *why);

/* ---- tune.c: copies the context, and the first candidate, to a result */

void mx_tune_take_context(const struct context *context, struct mx_tune_result *result);
void mx_tune_take_winner(const struct context *context, struct mx_tune_result *result);

#endif
