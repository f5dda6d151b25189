/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/work/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mx_run_take_finite(struct mx_run *r) {
    const bool given = r->o.nonfinite != NULL;
    r->finite.ignored =
        given ? strcmp(r->o.nonfinite, "ignore") == 0 : r->resumed && !r->o.same && r->note.ignores_nonfinite;
    r->finite.before = r->first_time;
}

/* ------------------------------------------------------------------ states */

static bool ends(const struct mx_run *r, const struct mx_nonfinite *found) {
    return found->cells > 0 && !r->finite.ignored;
}

int mx_run_finite_state(void *run, int64_t steps, const struct mx_nonfinite *found, mx_why *why) {
    struct mx_run *r = run;
    struct mx_run_finite *f = &r->finite;
    const int64_t step = r->first_time + steps;
    pthread_mutex_lock(&r->lock);
    if (found->cells > 0 && f->first.found.cells == 0)
        f->first = (struct mx_run_odd){.from = f->before, .step = step, .found = *found};
    f->before = step;
    f->counted = true;
    f->cells = found->cells;
    pthread_mutex_unlock(&r->lock);
    if (!ends(r, found) || !mx_run_alone(r)) return 0;
    return mx_fail(why, -EDOM, "cells of step %lld are not finite", (long long)step);
}

bool mx_run_is_counted(const struct mx_run *r) {
    return r->finite.counted && r->finite.before == r->report.steps_done;
}

/* The earliest of all ranks, and of those that are as early all cells. */
static void join(struct mx_run_odd *all, const struct mx_run_odd *one) {
    if (one->found.cells == 0) return;
    if (all->found.cells > 0 && one->step > all->step) return;
    if (all->found.cells > 0 && one->step == all->step)
        mx_nonfinite_add(&all->found, &one->found);
    else
        *all = *one;
}

static int gather(struct mx_run *r, enum mx_channel channel, const struct mx_run_odd *mine,
                  struct mx_run_odd *joint, mx_why *why) {
    const int32_t ranks = mx_run_ranks_of(r);
    struct mx_run_odd *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) return mx_fail(why, -ENOMEM, "no memory for the ranks");
    const int err = mx_run_gather(r, channel, mine, sizeof *mine, all, why);
    *joint = (struct mx_run_odd){.step = 0};
    for (int i = 0; i < ranks && err == 0; i++) join(joint, &all[i]);
    free(all);
    return err;
}

int mx_run_agree_finite(struct mx_run *r, enum mx_channel channel, int64_t step) {
    struct mx_run_finite *f = &r->finite;
    struct mx_run_odd mine, joint;
    mx_why *why = channel == MX_CHANNEL_RUN ? &r->why : NULL;
    if (f->ignored) return 0;
    memset(&mine, 0, sizeof mine);
    pthread_mutex_lock(&r->lock);
    if (f->first.found.cells > 0 && f->first.step <= step) mine = f->first;
    pthread_mutex_unlock(&r->lock);
    const int err = gather(r, channel, &mine, &joint, why);
    if (err < 0 || joint.found.cells == 0) return err;
    pthread_mutex_lock(&r->lock);
    f->first = joint;
    f->cells = joint.found.cells;
    f->initial = joint.step == 0;
    f->ended = true;
    pthread_mutex_unlock(&r->lock);
    /* None of them ends before all know why. */
    if (channel == MX_CHANNEL_RUN)
        mx_run_meet(r);
    else
        mx_run_meet_to_commit(r);
    return -EDOM;
}

int mx_run_settle_finite(struct mx_run *r) {
    struct mx_run_odd mine, joint;
    const int err = mx_run_agree_finite(r, MX_CHANNEL_RUN, r->report.steps_done);
    if (err < 0 || !r->finite.ignored) return err;
    memset(&mine, 0, sizeof mine);
    mine.found.cells = r->finite.cells;
    if (gather(r, MX_CHANNEL_RUN, &mine, &joint, &r->why) < 0) return -EIO;
    r->finite.cells = joint.found.cells;
    return 0;
}

/* ------------------------------------------------------------------ initial grid */

int mx_fill_counted(void *context, int64_t z, char *plane) {
    const struct mx_counted_fill *c = context;
    const int err = c->fill(c->context, z, plane);
    const struct mx_state_rows rows =
        mx_rows_of_plane(&c->r->o.problem, &c->r->report.layout, c->array, z, plane);
    if (err == 0) mx_nonfinite_rows(&rows, c->found);
    return err;
}

static int refuse_initial(struct mx_run *r, const struct mx_nonfinite *found) {
    pthread_mutex_lock(&r->lock);
    r->finite.initial = r->finite.ended = true;
    r->finite.first.found = *found;
    r->finite.cells = found->cells;
    pthread_mutex_unlock(&r->lock);
    return -EDOM;
}

int mx_run_check_initial(struct mx_run *r, const struct mx_nonfinite *found) {
    struct mx_run_odd mine, joint;
    if (r->finite.ignored) return 0;
    memset(&mine, 0, sizeof mine);
    mine.found = *found;
    const int err = gather(r, MX_CHANNEL_RUN, &mine, &joint, &r->why);
    return err < 0 || joint.found.cells == 0 ? err : refuse_initial(r, &joint.found);
}

int mx_run_check_edited(struct mx_run *r, const struct mx_nonfinite *found) {
    const int err = mx_run_check_initial(r, found);
    r->finite.edited = err == -EDOM;
    return err;
}

/* Ranks that the first sweep feeds hear of it with its commit. Rows may come more than once: the first
 * counts. */
static void remember_initial(struct mx_run *r, const struct mx_nonfinite *found) {
    struct mx_run_odd *first = &r->finite.first;
    pthread_mutex_lock(&r->lock);
    const bool earlier = first->found.cells == 0 || first->step > 0 || found->z < first->found.z;
    if (earlier) *first = (struct mx_run_odd){.found = *found};
    pthread_mutex_unlock(&r->lock);
}

int mx_run_check_fed(struct mx_run *r, int32_t field, int64_t z, int64_t y0, int64_t y1, const char *rows,
                     int64_t pitch, mx_why *why) {
    struct mx_nonfinite found = {.cells = 0};
    if (r->finite.ignored) return 0;
    const struct mx_state_rows of_field = {.problem = &r->o.problem,
                                           .field = field,
                                           .z = z,
                                           .y0 = y0,
                                           .y1 = y1,
                                           .rows = rows,
                                           .row_pitch_bytes = pitch};
    mx_nonfinite_rows(&of_field, &found);
    if (found.cells == 0) return 0;
    if (!mx_run_alone(r)) return remember_initial(r, &found), 0;
    return mx_fail(why, refuse_initial(r, &found), "cells of the initial grid are not finite");
}

/* ------------------------------------------------------------------ what is said */

static const char *describe(const struct mx_run *r, const struct mx_nonfinite *n, char *text,
                            size_t capacity) {
    const struct mx_system *s = r->system;
    char where[80];
    const bool old = mx_form(&r->o.problem) == MX_LEAPFROG && r->finite.initial &&
                     n->array != (mx_levels_of(&r->o.problem, r->first_time) & 1);
    if (r->whole.flat)
        snprintf(where, sizeof where, "x=%lld, y=%lld", (long long)n->x, (long long)n->z);
    else
        snprintf(where, sizeof where, "x=%lld, y=%lld, z=%lld", (long long)n->x, (long long)n->y,
                 (long long)n->z);
    snprintf(text, capacity, "%lld %s not finite (%s%s%s at %s)", (long long)n->cells,
             n->cells == 1 ? "cell that is" : "cells that are",
             n->cells == 1 ? "" : "the first: ", s != NULL ? s->field[n->array][n->field].name : "u",
             old ? ".old" : "", where);
    return text;
}

static const char *way_out(const struct mx_run *r, char *text, size_t capacity) {
    const char *other = r->system != NULL ? "a smaller time step" : "other coefficients (--coef)";
    char anew[120];
    snprintf(anew, sizeof anew, "start again with %s, or with --nonfinite ignore", other);
    if (r->committed && r->note.pending)
        snprintf(text, capacity,
                 "nothing is committed yet: start again with %s and --force, or continue with --resume "
                 "--nonfinite ignore",
                 other);
    else if (r->committed)
        snprintf(text, capacity,
                 "the last commit is step %lld: start again with %s and --force, or resume from the commit "
                 "with --resume --nonfinite ignore",
                 (long long)r->note.time, other);
    else if (r->backend->anonymous)
        snprintf(text, capacity, "the backend %s keeps no commits: %s", r->backend->name, anew);
    else
        snprintf(text, capacity, "%s%s rewrites its Buffers in place, so no earlier state is left: %s",
                 r->tuned.shape.in_place && r->algorithm->resumable ? "--in-place with " : "",
                 r->algorithm->name, anew);
    return text;
}

bool mx_run_is_nonfinite(const struct mx_run *r, int err) {
    return err == -EDOM && !r->finite.ignored && r->finite.first.found.cells > 0;
}

void mx_run_say_nonfinite(struct mx_run *r) {
    const struct mx_run_odd *odd = &r->finite.first;
    char found[160], out[256];
    describe(r, &odd->found, found, sizeof found);
    mx_run_one_says(r);
    r->report.checksum[0] = 0; /* there is no result */
    if (!mx_run_alone(r)) r->report.steps_done = odd->from;
    if (r->finite.edited) {
        mx_fail(&r->why, -EDOM,
                "the changed state of step %lld has %s, so the store was left unchanged: give finite "
                "numbers, or accept these with --nonfinite ignore",
                (long long)r->first_time, found);
        return;
    }
    if (r->finite.initial) {
        mx_fail(&r->why, -EDOM,
                "the initial grid has %s: give finite numbers%s, or accept these with --nonfinite ignore",
                found, r->committed ? ", and --force for the store that this run leaves" : "");
        return;
    }
    way_out(r, out, sizeof out);
    if (odd->from >= odd->step)
        mx_fail(&r->why, -EDOM, "step %lld has %s; %s", (long long)odd->step, found, out);
    else
        mx_fail(&r->why, -EDOM, "steps %lld to %lld lead to %s; %s", (long long)odd->from + 1,
                (long long)odd->step, found, out);
}
