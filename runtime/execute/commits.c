/* SPDX-License-Identifier: BSD-3-Clause */
/* commits.c - the ends of sweeps, and the thread that makes them durable. */
#include "execute/executor.h"
#include "machine/clock.h"
#include "machine/machine.h"

#include <errno.h>
#include <string.h>

static void *commit_thread(void *argument) {
    struct committer *c = argument;
    c->begin_ns = mx_clock_ns();
    c->result = c->x->commit(c->x->context, c->time, c->buffer);
    c->end_ns = mx_clock_ns();
    atomic_store_explicit(&c->ended, true, memory_order_release);
    mx_bell_ring(c->bell);
    return NULL;
}

/* Step e ends a sweep of which everything is in its Buffer. */
static int take_sweep(struct executor *r, const struct entry *e) {
    const int64_t steps = mx_exec_steps(r, e->step.time);
    int err = mx_exec_judge_sweep(r, e);
    if (err < 0) return err;
    err = r->x->sweep != NULL ? r->x->sweep(r->x->context, steps, r->why) : 0;
    if (err < 0) return err;
    r->taken++;
    r->out->ended = err > 0;
    /* Of a run that may end here nobody asks for more than what was sent before it was decided. */
    if (r->exchange != NULL && r->x->decides != NULL)
        err = mx_exchange_ask(r->exchange, r->taken, e->step.next_given, r->why);
    if (err < 0) return err;
    mx_exec_report_sweep(r, &e->step);
    r->out->steps_done = steps;
    r->out->result = e->step.buffer;
    return mx_exec_end_taking(r, e);
}

int mx_exec_start_commit(struct executor *r, struct entry *e) {
    struct committer *c = &r->committer;
    int err = take_sweep(r, e);
    if (err < 0) return err;
    if (!e->durable || r->out->ended) return e->state = DONE, 0; /* at the end commit_newest */
    *c = (struct committer){
        .x = r->x, .bell = r->bell, .time = mx_exec_steps(r, e->step.time), .buffer = e->step.buffer};
    err = mx_thread_start(&c->thread, commit_thread, c);
    if (err != 0)
        return mx_fail(r->why, err, "no thread for the commit of step %lld: %s", (long long)c->time,
                       mx_no_thread(err).text);
    c->started = true;
    e->state = RUNNING;
    return 0;
}

static int take_commit(struct executor *r, const struct mx_step *s) {
    const struct committer *c = &r->committer;
    mx_exec_report(r, s, false, c->begin_ns, c->end_ns, (uint64_t)c->time);
    if (c->result < 0)
        return mx_fail(r->why, c->result, "the commit of time step %lld failed: %s", (long long)c->time,
                       strerror(-c->result));
    r->out->committed_steps = c->time;
    return 0;
}

int mx_exec_finish_commit(struct executor *r, struct entry *e) {
    pthread_join(r->committer.thread, NULL);
    r->committer.started = false;
    e->state = DONE;
    return take_commit(r, &e->step);
}

/* Sweeps that were completed by what was under way when the run was stopped. */
int mx_exec_take_completed(struct executor *r) {
    for (uint64_t i = r->first; i < r->end && !r->out->ended; i++) {
        const struct entry *e = mx_exec_at(r, i);
        if (e->state == DONE) continue;
        if (mx_exec_keeps(&e->step) || e->step.kind == MX_STEP_ADVANCE || mx_exec_is_only_taken(r, e)) break;
        const int err = e->step.kind == MX_STEP_COMMIT ? take_sweep(r, e) : 0;
        if (err < 0) return err;
    }
    return 0;
}

/* The run has ended before its last step, and nothing is under way: the newest complete sweep is made
 * durable, for the STOREs of the sweep after it go to another Buffer, and those of the one after that wait
 * (waits_for_commit). */
int mx_exec_commit_newest(struct executor *r) {
    struct mx_step s = {.kind = MX_STEP_COMMIT};
    const int64_t step =
        mx_exec_steps(r, r->x->first_level + mx_levels_of(r->x->problem, r->out->steps_done));
    const bool nowhere = r->out->steps_done == r->x->problem->nt && mx_exec_keeps_nothing(r, step);
    if (r->x->commit == NULL || r->shape->in_place || nowhere ||
        r->out->steps_done <= r->out->committed_steps)
        return 0;
    s.buffer = r->out->result;
    r->committer = (struct committer){.x = r->x, .time = r->out->steps_done, .buffer = s.buffer};
    commit_thread(&r->committer);
    return take_commit(r, &s);
}
