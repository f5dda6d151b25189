/* SPDX-License-Identifier: BSD-3-Clause */
/* fill.c - steps are taken from the schedule into the window, and what is known of them then is settled: the
 * tables that they need, which Buffer is meant, whether a sweep is to be made durable. */
#include "execute/executor.h"
#include "machine/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void mx_exec_drop_tables(struct tables *t) {
    if (t == NULL || --t->users > 0) return;
    free(t->window);
    free(t->seam);
    free(t);
}

static struct tables *copy_tables(const struct mx_step *s) {
    const size_t n = (size_t)s->levels + 1;
    const int32_t *from[6] = {s->seam_z,    s->seam_nz,    s->seam_in_y,
                              s->seam_in_n, s->seam_out_y, s->seam_out_n};
    struct tables *t = calloc(1, sizeof *t);
    if (t == NULL) return NULL;
    t->pass = s->pass;
    t->users = 1;
    t->window = malloc(n * sizeof *t->window);
    if (s->seam_z != NULL) t->seam = calloc(6 * n, sizeof *t->seam);
    if (t->window == NULL || (s->seam_z != NULL && t->seam == NULL)) return mx_exec_drop_tables(t), NULL;
    memcpy(t->window, s->window, (size_t)s->levels * sizeof *t->window);
    for (size_t i = 0; i < 6 && t->seam != NULL; i++)
        if (from[i] != NULL) memcpy(t->seam + i * n, from[i], n * sizeof *t->seam);
    return t;
}

/* Whether the tables of the newest step are those of this one: of a pass some ADVANCEs have seams, and some,
 * at its ends, have none. */
static bool has_tables(const struct tables *t, const struct mx_step *s) {
    return t != NULL && t->pass == s->pass && (t->seam != NULL || s->seam_z == NULL);
}

static int keep_tables(struct executor *r, struct entry *e) {
    struct mx_step *s = &e->step;
    const size_t n = (size_t)s->levels + 1;
    mx_exec_drop_tables(e->tables);
    e->tables = NULL;
    if (s->kind != MX_STEP_ADVANCE) return 0;
    if (!has_tables(r->newest, s)) {
        mx_exec_drop_tables(r->newest);
        if ((r->newest = copy_tables(s)) == NULL) return -ENOMEM;
    }
    e->tables = r->newest;
    e->tables->users++;
    s->window = e->tables->window;
    const bool seams = s->seam_z != NULL;
    const int32_t **seam[6] = {&s->seam_z,    &s->seam_nz,    &s->seam_in_y,
                               &s->seam_in_n, &s->seam_out_y, &s->seam_out_n};
    for (size_t i = 0; i < 6 && seams; i++) *seam[i] = e->tables->seam + i * n;
    return 0;
}

int32_t mx_exec_free_buffer(const struct executor *r, int32_t source, int32_t committed) {
    if (r->x->n_buffers < MX_BUFFERS) return 1 - source;
    for (int32_t i = 0; i < MX_BUFFERS; i++)
        if (i != source && i != committed) return i;
    return -1; /* never: of three, one is neither of two */
}

/* Whether the sweep that is taken from the schedule, and ends with this level, is to be durable. */
static int is_due(struct executor *r, int64_t time) {
    const uint64_t now = mx_clock_ns();
    const bool may_rest =
        r->x->n_buffers == MX_BUFFERS && !r->shape->in_place && mx_exec_steps(r, time) < r->x->problem->nt;
    if (r->x->commit == NULL) return 0;
    int due = !may_rest || (double)(now - r->decided_ns) * 1e-9 >= r->x->commit_every_s;
    if (may_rest && r->x->agree != NULL) due = r->x->agree(r->x->context, due, r->why);
    if (due > 0) r->decided_ns = now;
    return due;
}

/* Of the step at `end`: 1 = it may be taken up, 0 = what all ranks decide about it is not known yet. */
int mx_exec_settle_due(struct executor *r) {
    const struct mx_step *s = &mx_exec_at(r, r->end)->step;
    if (s->kind != MX_STEP_COMMIT) return 1;
    if (!r->held || r->due == -EAGAIN) r->due = is_due(r, s->time);
    r->held = true;
    return r->due == -EAGAIN ? 0 : r->due < 0 ? r->due : 1;
}

/* The end of a sweep was taken from the schedule. The Buffer committed before is given up when this sweep
 * is durable, which is why the next sweep does not write it yet: it may start before. */
static void end_sweep(struct executor *r, struct entry *e) {
    const int32_t next = mx_exec_free_buffer(r, r->target, r->committed);
    e->durable = !mx_exec_is_only_taken(r, e) && r->due > 0;
    e->source = r->source;
    e->frees = r->x->n_buffers < MX_BUFFERS ? r->source : r->committed;
    if (r->shape->in_place) return;
    e->step.buffer = r->target;
    if (e->durable) r->committed = r->target;
    r->called = 1 - r->called;
    r->source = r->target;
    r->target = next;
}

static void settle_buffer(struct executor *r, struct entry *e) {
    struct mx_step *s = &e->step;
    e->fed = r->feeder != NULL && r->first_sweep && s->kind == MX_STEP_LOAD && s->buffer < MX_SEAMS;
    e->feed = NULL;
    if (s->kind == MX_STEP_COMMIT) r->first_sweep = false, end_sweep(r, e);
    if (mx_exec_moves(s) && s->buffer < MX_SEAMS && !r->shape->in_place)
        s->buffer = s->buffer == r->called ? r->source : r->target;
}

int mx_exec_fill(struct executor *r) {
    int64_t advances = r->x->plan->ahead + 1 > WINDOW_ADVANCES ? r->x->plan->ahead + 1 : WINDOW_ADVANCES;
    while (!r->exhausted && r->advances < advances && r->end - r->first < WINDOW_STEPS) {
        struct entry *e = mx_exec_at(r, r->end);
        if (!r->held) {
            memset(&e->step, 0, sizeof e->step);
            e->step.seam_in = e->step.seam_out = -1;
            int more = r->schedule->ops->next(r->schedule, &e->step);
            if (more < 0) return mx_fail(r->why, more, "the schedule failed: %s", strerror(-more));
            if (more == 0) return r->exhausted = true, 0;
        }
        const int known = mx_exec_settle_due(r);
        if (known <= 0) return known;
        r->held = false;
        if (keep_tables(r, e) < 0) return mx_fail(r->why, -ENOMEM, "no memory for the windows of a step");
        mx_exec_settle_taking(r, e);
        settle_buffer(r, e);
        if (mx_exec_settle_exchange(r, e) < 0) return -EIO;
        e->state = WAITING;
        e->ticket = NULL;
        r->advances += e->step.kind == MX_STEP_ADVANCE;
        r->end++;
    }
    return 0;
}
