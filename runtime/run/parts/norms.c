/* SPDX-License-Identifier: BSD-3-Clause */
/* norms.c - norms of the change, their history, and criteria that end a run. */
#include "run/parts/parts.h"

#include "engine/accel_room.h"
#include "run/ranks/ranks.h"
#include "run/state.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ what is asked for */

static const struct mx_reduce *reduces(const struct mx_run *r) {
    return r->system != NULL ? r->system->reduce : NULL;
}

static int32_t n_reduces(const struct mx_run *r) { return r->system != NULL ? r->system->n_reduce : 0; }

static int add_until(struct mx_run *r, const char *text) {
    struct mx_run_norms *n = &r->parts.norms;
    if (n->n_until == MX_UNTILS_MOST)
        return mx_fail(&r->why, -EINVAL, "--until is given more than %d times", MX_UNTILS_MOST);
    return mx_until_parse(text, n_reduces(r), reduces(r), &r->why, &n->until[n->n_until++]);
}

static int take_untils(struct mx_run *r) {
    const struct mx_words *given = &r->o.untils;
    int err = 0;
    const bool none = given->n == 1 && strcmp(given->word[0], "none") == 0;
    for (int32_t i = 0; i < given->n && !none && err == 0; i++) err = add_until(r, given->word[i]);
    for (int32_t i = 0; i < r->note.n_until && given->n == 0 && !r->o.same && err == 0; i++)
        err = add_until(r, r->note.until[i]);
    for (int32_t i = 0; i < r->parts.norms.n_until && err == 0; i++)
        mx_until_text(&r->parts.norms.until[i], reduces(r), r->report.until[i]);
    r->report.n_until = r->parts.norms.n_until;
    return err;
}

/* Criteria that are the store's own, in the same order. */
static bool same_untils(const struct mx_run *r) {
    bool same = r->report.n_until == r->note.n_until;
    for (int32_t i = 0; i < r->report.n_until && same; i++)
        same = strcmp(r->report.until[i], r->note.until[i]) == 0;
    return same;
}

/* A criterion that was met is one no more where others are asked for, or another number of steps, or steps
 * from a changed state. */
static void take_former(struct mx_run *r) {
    struct mx_run_norms *n = &r->parts.norms;
    const int64_t nt = mx_run_edits(r) ? r->note.time : r->note.problem.nt;
    n->history = r->note.history;
    if (r->note.met.until[0] != 0 && same_untils(r) && r->o.problem.nt == nt)
        n->met = r->report.met = r->note.met;
}

/* Of the step before nothing is left after several stages: its change is not known. */
static int check_stages(struct mx_run *r) {
    const struct mx_run_norms *n = &r->parts.norms;
    const long long stages = (long long)mx_levels_a_step(&r->o.problem);
    for (int32_t i = 0; i < n->n_until; i++)
        if (n->until[i].kind == MX_UNTIL_MAX_CHANGE || n->until[i].kind == MX_UNTIL_RMS_CHANGE)
            return mx_fail(&r->why, -EINVAL,
                           "--until %s: a step of %lld stages does not keep the state before it, so its "
                           "change is not known. Name a reduction of the kernel instead (MX_REDUCES)",
                           r->report.until[i], stages);
    if (r->report.check > 0 && n_reduces(r) == 0)
        return mx_fail(&r->why, -EINVAL,
                       "--check %lld: a step of %lld stages does not keep the state before it, so its change "
                       "is not known. Give the kernel a reduction (MX_REDUCES), or leave --check out",
                       (long long)r->report.check, stages);
    return 0;
}

static int take(struct mx_run *r) {
    struct mx_problem *p = &r->o.problem;
    int err = take_untils(r);
    if (err < 0) return err;
    int64_t every = r->o.check > 0 || r->o.same ? r->o.check : r->note.check;
    if (every == 0 && r->parts.norms.n_until > 0) every = MX_USUAL_CHECK;
    if (r->resumed) take_former(r);
    p->due[0] = every;
    r->report.check = every;
    r->report.history = &r->parts.norms.history;
    return mx_has_stages(p) ? check_stages(r) : 0;
}

/* ------------------------------------------------------------------ what they take */

static struct mx_norms_options take_norms(const struct mx_problem *p, int32_t threads, int64_t row_bytes) {
    return (struct mx_norms_options){.problem = p,
                                     .every = p->due[0],
                                     .max_change = !mx_has_stages(p),
                                     .rms_change = !mx_has_stages(p),
                                     .spans = mx_levels_a_step(p) == 1,
                                     .threads = threads,
                                     .row_bytes = row_bytes,
                                     .n_reduce = p->system != NULL ? p->system->n_reduce : 0,
                                     .reduce = p->system != NULL ? p->system->reduce : NULL};
}

static uint64_t dram_bytes(const struct mx_run *r) {
    const struct mx_problem *p = &r->o.problem;
    if (p->due[0] == 0) return 0;
    const int64_t row_bytes = (p->nx + 2 * p->h) * mx_cell_bytes(p, 0);
    const struct mx_norms_options o = take_norms(p, r->request.threads, row_bytes);
    return (uint64_t)mx_norms_bytes(&o);
}

/* ------------------------------------------------------------------ the run */

static int open_norms(struct mx_run *r) {
    struct mx_run_norms *n = &r->parts.norms;
    struct mx_norms_options o =
        take_norms(&r->o.problem, r->report.plan.threads, r->report.layout.row_pitch_bytes);
    o.join = mx_run_joins_norms(r), o.context = r;
    if (o.every == 0 || r->rest.nt == 0) return 0;
    int err = mx_norms_make(&o, &r->why, &n->norms);
    r->after.norms = n->norms;
    return err;
}

static bool is_due(const struct mx_run *r, int64_t steps) {
    return r->parts.norms.norms != NULL && mx_norms_is_check(r->parts.norms.norms, steps);
}

static bool may_end(const struct mx_run *r, int64_t steps) {
    return r->parts.norms.n_until > 0 && is_due(r, steps);
}

/* Quantities that criteria name, or the change, or what the kernel has instead; short, for one line. */
static void say_check(const struct mx_run *r, const struct mx_norms_result *result, char *text,
                      size_t capacity) {
    const struct mx_run_norms *n = &r->parts.norms;
    char at[MX_SIMULATED_TEXT];
    int used = snprintf(text, capacity, "step %lld%s:", (long long)result->step,
                        mx_simulated_text(&r->report.simulated, result->step, at));
    if (n->n_until == 0 && mx_has_stages(&r->o.problem))
        snprintf(text + used, capacity - (size_t)used, " %s %.3g", reduces(r)[0].name, result->reduce[0]);
    else if (n->n_until == 0)
        snprintf(text + used, capacity - (size_t)used, " max-change %.3g", result->max_change);
    for (int32_t i = 0; i < n->n_until && used > 0 && (size_t)used < capacity; i++) {
        char name[MX_UNTIL_TEXT];
        mx_until_text(&n->until[i], reduces(r), name);
        name[strcspn(name, "=")] = 0;
        used += snprintf(text + used, capacity - (size_t)used, "%s %s %.3g", i > 0 ? "," : "", name,
                         mx_until_value(&n->until[i], result));
    }
}

/* A mean that has fallen so far is of rounding errors, or of what dies away for ever: its spread stays as it
 * is. */
static const double noise = 1e-12;

static double greatest_mean(const struct mx_norms_history *h, int32_t reduce) {
    double greatest = 0;
    for (int32_t i = 0; i < h->n; i++) greatest = fmax(greatest, h->kept[i].result.mean[reduce]);
    return greatest;
}

static void say_noise(struct mx_run *r, const struct mx_norms_result *result) {
    struct mx_run_norms *n = &r->parts.norms;
    for (int32_t i = 0; i < n->n_until && !n->said_noise && mx_run_leads(r); i++) {
        const struct mx_until *u = &n->until[i];
        if (u->kind != MX_UNTIL_SPREAD || u->floor > 0 || u->above || mx_until_met(u, result)) continue;
        const double mean = result->mean[u->reduce], before = greatest_mean(&n->history, u->reduce);
        if (!(mean < noise * before)) continue;
        n->said_noise = true;
        mx_run_remark(
            r,
            "step %lld: the mean of %s has fallen from %.3g to %.3g, so its spread is only rounding error "
            "and --until %s may never be met: give a floor, such as --until %s,floor=%.1g",
            (long long)result->step, reduces(r)[u->reduce].name, before, mean, r->report.until[i],
            r->report.until[i], before * 1e-9);
    }
}

static int swept(struct mx_run *r, int64_t steps, mx_why *why) {
    struct mx_run_norms *n = &r->parts.norms;
    struct mx_norms_result result;
    if (!is_due(r, steps)) return 0;
    int err = mx_norms_take(n->norms, steps, why, &result);
    if (err < 0) return err;
    result.simulated_s = mx_simulated_s(&r->report.simulated, steps);
    pthread_mutex_lock(&r->lock);
    mx_history_add(&n->history, mx_check_number(steps, r->report.check), &result);
    for (int32_t i = 0; i < n->n_until && n->met.until[0] == 0; i++) {
        if (!mx_until_met(&n->until[i], &result)) continue;
        mx_until_text(&n->until[i], reduces(r), n->met.until);
        n->met.step = steps;
        n->met.value = mx_until_value(&n->until[i], &result);
        r->report.met = n->met;
    }
    const bool met = n->met.until[0] != 0;
    r->progress.check_step = steps;
    r->progress.max_change = result.max_change;
    r->progress.rms_change = result.rms_change;
    say_check(r, &result, r->progress.check, sizeof r->progress.check);
    pthread_mutex_unlock(&r->lock);
    say_noise(r, &result);
    return met;
}

static void note(struct mx_run *r) {
    struct mx_run_norms *n = &r->parts.norms;
    struct mx_note *of = &r->note;
    pthread_mutex_lock(&r->lock);
    of->check = r->report.check;
    of->n_until = r->report.n_until;
    memcpy(of->until, r->report.until, sizeof of->until);
    mx_history_up_to(&n->history, of->time, MX_HISTORY_MOST, &of->history);
    of->met = n->met.step == of->time ? n->met : (struct mx_met){.step = 0};
    pthread_mutex_unlock(&r->lock);
}

static void close_norms(struct mx_run *r) {
    mx_norms_free(r->parts.norms.norms);
    r->parts.norms.norms = NULL;
}

/* ------------------------------------------------------------------ the part */

static uint64_t accel_bytes(const struct mx_run *r) {
    const struct mx_sources none = {.n_wavelets = 0};
    const struct mx_points no_probes = {.n = 0};
    return mx_accel_extra_bytes(&r->o.problem, &none, &no_probes, r->report.check > 0);
}

static bool has_ended(const struct mx_run *r) { return r->parts.norms.met.until[0] != 0; }

static bool may_end_early(const struct mx_run *r) { return r->parts.norms.n_until > 0; }

static const char *hinders(const struct mx_run *r) {
    return may_end_early(r) ? "--until may end the run before its last sweep" : NULL;
}

static int64_t most_ahead(const struct mx_run *r) {
    const struct mx_norms *n = r->parts.norms.norms;
    return n != NULL ? mx_norms_most_ahead(n) : 0;
}

const struct mx_part mx_part_norms = {
    .name = "norms",
    .take = take,
    .dram_bytes = dram_bytes,
    .accel_bytes = accel_bytes,
    .has_ended = has_ended,
    .may_end_early = may_end_early,
    .hinders = hinders,
    .open = open_norms,
    .most_ahead = most_ahead,
    .swept = swept,
    .may_end = may_end,
    .note = note,
    .close = close_norms,
};
