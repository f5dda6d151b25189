/* SPDX-License-Identifier: BSD-3-Clause */
/* tune.c - from a request to a plan: every algorithm that may be used is tuned, the predicted fastest wins.
 */
#include "machine/size.h"
#include "tune/request.h"

#include "machine/clock.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Predictions are not more accurate than this: among plans that are this near to the fastest, the one that
 * moves the fewest bytes wins. */
static const double prediction_tolerance = 0.02;

/* May it be chosen without being named? */
static bool allowed(const struct context *c, const struct mx_algorithm *a) {
    const struct strategy *s = mx_strategy_find(a->name);
    if (c->q.accel != NULL) return mx_tune_on_accel(a);
    if (s == NULL || s->only_by_name || (c->q.resumable && !a->resumable)) return false;
    if (c->q.blocks_only && !a->uses_blocks) return false;
    if (a->needs_mapped) return c->q.style != MX_TUNE_TRANSFER;
    /* Blocks beside Buffers that are in DRAM: only where direct cannot be, of several ranks. */
    if (c->q.style == MX_TUNE_RESIDENT && !c->q.blocks_only) return false;
    bool given = c->q.manual.by != 0;
    return c->tuner == BLK || s->blocks || (given && c->q.manual.bz >= c->q.problem->nz);
}

static double moved(const struct mx_tune_candidate *c) {
    return (double)c->traffic.read_bytes + (double)c->traffic.write_bytes;
}

static int compare(const void *a, const void *b) {
    const struct mx_tune_candidate *x = a, *y = b;
    if (x->fits != y->fits) return x->fits ? -1 : 1;
    if (x->seconds.total_s != y->seconds.total_s) return x->seconds.total_s < y->seconds.total_s ? -1 : 1;
    if (moved(x) != moved(y)) return moved(x) < moved(y) ? -1 : 1;
    return strcmp(x->algorithm, y->algorithm);
}

/* Sorted by seconds; the winner is brought to the front. */
static void choose(struct mx_tune_result *r) {
    struct mx_tune_candidate *c = r->candidates, winner;
    qsort(c, (size_t)r->n_candidates, sizeof *c, compare);
    double limit = c[0].seconds.total_s * (1 + prediction_tolerance);
    int best = 0;
    for (int i = 1; i < r->n_candidates && c[i].fits && c[i].seconds.total_s <= limit; i++)
        if (moved(&c[i]) < moved(&c[best])) best = i;
    winner = c[best];
    memmove(c + 1, c, (size_t)best * sizeof *c);
    c[0] = winner;
}

void mx_tune_take_winner(const struct context *c, struct mx_tune_result *r) {
    const struct mx_tune_candidate *w = &r->candidates[0];
    r->plan = w->plan;
    r->layout = w->layout;
    r->shape = w->shape;
    r->traffic = w->traffic;
    r->seconds = w->seconds;
    r->dram_bytes = w->dram_bytes;
    r->device_bytes = w->device_bytes;
    snprintf(r->tuner, sizeof r->tuner, "%s", mx_tuners[c->tuner].name);
}

void mx_tune_take_context(const struct context *c, struct mx_tune_result *r) {
    r->room_bytes = c->room_bytes;
    r->visible_bytes = c->q.dram_bytes;
    r->reserve_bytes = c->q.reserve_bytes;
    r->overhead_bytes = c->overhead_bytes;
    r->rates = c->q.rates;
}

/* Nothing fits: which algorithm would need the least DRAM? */
static int fail_all(const struct context *c, const struct mx_tune_result *r, mx_why *why) {
    const struct mx_tune_candidate *least = NULL;
    const struct mx_problem *p = c->q.problem;
    char extents[MX_EXTENTS_TEXT];
    for (int i = 0; i < r->n_candidates && c->q.accel != NULL; i++)
        if (strcmp(r->candidates[i].algorithm, "stream") == 0 || i + 1 == r->n_candidates)
            return mx_fail(why, -ENOMEM, "%s", r->candidates[i].why);
    for (int i = 0; i < r->n_candidates; i++) {
        const struct mx_tune_candidate *x = &r->candidates[i];
        if (x->smallest_dram_bytes == 0) continue;
        if (least == NULL || x->smallest_dram_bytes < least->smallest_dram_bytes) least = x;
    }
    if (least == NULL && c->q.layout != NULL && (c->q.whole_planes || c->q.style == MX_TUNE_TRANSFER))
        return mx_tune_explain_layout(&c->q, c->q.algorithm != NULL ? c->q.algorithm : "a run", why);
    if (least == NULL)
        return mx_fail(why, -EINVAL,
                       "no algorithm has a plan for %s cells and %lld steps with these options (%s): change "
                       "the options of the plan, or the grid",
                       mx_extents_text(p, extents), (long long)p->nt, r->candidates[0].why);
    return mx_fail(
        why, -ENOMEM,
        "%s. The run has %s of DRAM, less %s reserve and %s for the program: give --dram %lluMiB or more%s",
        least->why, mx_size(c->q.dram_bytes).text, mx_size(c->q.reserve_bytes).text,
        mx_size(c->overhead_bytes).text, (unsigned long long)(least->smallest_dram_bytes / TUNE_MIB),
        c->q.style == MX_TUNE_RESIDENT ? ", or choose a backend with storage" : "");
}

static int tune_named(const struct context *c, mx_why *why, struct mx_tune_result *r) {
    struct job job;
    const struct mx_algorithm *a = mx_algorithm_find(c->q.algorithm);
    if (a == NULL)
        return mx_fail(why, -EINVAL,
                       "there is no algorithm '%s': choose direct, redundant, skewed, skewed-y, skewed-min, "
                       "stream, resident, or a name from the papers (aio3y, aio5y, ...)",
                       c->q.algorithm);
    int err = mx_tune_one(c, a, why, &r->candidates[0], &job);
    r->n_candidates = 1;
    r->z_step = err < 0 ? 0 : job.z_step;
    return err;
}

static int tune_all(const struct context *c, mx_why *why, struct mx_tune_result *r) {
    struct job job;
    mx_why reason;
    int refused = 0;
    for (int i = 0; mx_algorithms[i] != NULL && r->n_candidates < MX_TUNE_MAX_CANDIDATES; i++) {
        struct mx_tune_candidate *out = &r->candidates[r->n_candidates];
        if (!allowed(c, mx_algorithms[i])) continue;
        int err = mx_tune_one(c, mx_algorithms[i], &reason, out, &job);
        r->z_step = mx_max(r->z_step, job.z_step);
        r->n_candidates++;
        if (err == 0) continue;
        out->fits = false;
        snprintf(out->why, sizeof out->why, "%.*s", (int)sizeof out->why - 1, reason.text);
        snprintf(out->algorithm, sizeof out->algorithm, "%s", mx_algorithms[i]->name);
        if (refused == 0 && why != NULL) *why = reason;
        if (refused == 0) refused = err;
    }
    for (int i = 0; i < r->n_candidates; i++)
        if (r->candidates[i].fits || r->candidates[i].smallest_dram_bytes > 0) return 0;
    return refused;
}

int mx_tune(const struct mx_tune_request *request, mx_why *why, struct mx_tune_result *out) {
    struct context c;
    struct mx_tune_result *r = calloc(1, sizeof *r);
    if (r == NULL) return mx_fail(why, -ENOMEM, "no memory for a tuner");
    const uint64_t begin = mx_thread_cpu_ns();
    int err = mx_tune_complete(request, why, &c);
    if (err < 0) goto end;
    mx_tune_take_context(&c, r);
    err = (c.q.algorithm != NULL ? tune_named : tune_all)(&c, why, r);
    if (err < 0) goto end;
    for (int i = 0; i < r->n_candidates; i++) r->n_evaluated += r->candidates[i].n_evaluated;
    if (r->n_candidates == 0) {
        err = mx_fail(why, -ENOTSUP, "memext cannot choose an algorithm here: name one with --algorithm");
        goto end;
    }
    choose(r);
    if (!r->candidates[0].fits) {
        err = fail_all(&c, r, why);
        goto end;
    }
    mx_tune_take_winner(&c, r);
    r->search_ns = mx_thread_cpu_ns() - begin;
    *out = *r;
end:
    free(r);
    return err;
}
