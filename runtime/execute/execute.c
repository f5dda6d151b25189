/* SPDX-License-Identifier: BSD-3-Clause */
/* execute.c - steps in order, transfers out of order.
 *
 * The executor holds a window of steps in program order. ADVANCEs are calls of the engine, LOADs and STOREs
 * tickets of the transfer queue, and both work by themselves; COPYs are done here. A step starts as soon as
 * no unfinished earlier step touches the same Block rows or Buffer region with a write among them: LOADs as
 * early as that rule allows (read-ahead), STOREs finish whenever they do (write-behind). ADVANCEs start in
 * order, the next one while one is under way (engine.h), so that the threads pass from one to the other
 * without a stop. Nothing here knows an algorithm.
 *
 * Buffers. The schedule says which of two Buffers a step reads or writes; which Buffer that is, is settled
 * when the step is taken from the schedule. A sweep writes the one that is neither its source nor the last
 * one that was chosen to be committed. With three Buffers that is one alone, and a state that is committed,
 * or being made durable, rests untouched while sweeps go on in the other two. With two the target can only be
 * the Buffer that was committed before, so its STOREs wait until the newer state is durable. Where the form
 * reads the old value each of them is a pair of Buffers, one for either array, which go through all this
 * together. Fields of C have a ring and a Buffer each, and are only read.
 */
#include "execute/executor.h"
#include "machine/clock.h"
#include "machine/minmax.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whatever ends rings the bell, but for accelerators: halves of their transfers have to be passed on. */
enum { LOOK_AGAIN_NS = 20000000, LOOK_AGAIN_STAGED_NS = 50000 };

/* Whether a step that has been started is through. */
static bool has_ended(const struct executor *r, const struct entry *e) {
    if (e->step.kind == MX_STEP_ADVANCE) return r->ops->done(r->engine) >= e->call;
    if (e->step.kind == MX_STEP_COMMIT)
        return atomic_load_explicit(&r->committer.ended, memory_order_acquire);
    if (e->step.kind == MX_STEP_COPY) return mx_accel_is_done(r->x->accel, MX_ACCEL_COPY, e->number);
    if (mx_exec_is_given(e) && !mx_exec_staged(r)) return mx_exec_given_is_here(r, e);
    return (e->halfway || !mx_exec_staged(r)) && mx_exec_half_ended(r, e) && mx_take_done(e->take) &&
           mx_looking_done(&e->looking);
}

/* Takes up the end of step i, which has been started; waits for it. */
static int finish(struct executor *r, uint64_t i) {
    struct entry *e = mx_exec_at(r, i);
    assert(e->state == RUNNING);
    if (e->step.kind == MX_STEP_COMMIT) return mx_exec_finish_commit(r, e);
    if (e->step.kind == MX_STEP_COPY) return mx_exec_finish_copy(r, e);
    if (e->step.kind != MX_STEP_ADVANCE) return mx_exec_finish_transfer(r, e);
    r->ops->wait(r->engine, e->call);
    mx_exec_finish_advance(r, i);
    return mx_exec_staged(r) ? mx_accel_error(r->x->accel, r->why) : 0;
}

/* Takes up what has finished meanwhile, without waiting. */
static int collect(struct executor *r) {
    int err = mx_exec_pass_halves(r);
    if (err == 0) err = mx_exec_look_at_neighbours(r);
    for (uint64_t i = r->first; i < r->end && err == 0; i++)
        if (mx_exec_at(r, i)->state == RUNNING && has_ended(r, mx_exec_at(r, i))) err = finish(r, i);
    while (r->first < r->end && mx_exec_at(r, r->first)->state == DONE) r->first++;
    return err;
}

/* The oldest transfer of a kind that is under way: they have all of its pieces of the staging memory. */
static uint64_t oldest_staged(const struct executor *r, enum mx_step_kind kind) {
    uint64_t i = r->first;
    while (mx_exec_at(r, i)->state != RUNNING || mx_exec_at(r, i)->step.kind != kind) i++;
    return i;
}

/* First unfinished step before i that step i must wait for, or a transfer that has the staging memory
 * which it needs; i itself if there is none. */
static uint64_t blocker(const struct executor *r, uint64_t i) {
    for (uint64_t j = r->first; j < i; j++)
        if (mx_exec_at(r, j)->state != DONE && mx_exec_depends(r, mx_exec_at(r, i), mx_exec_at(r, j)))
            return j;
    return mx_exec_staged(r) && mx_exec_moves(&mx_exec_at(r, i)->step) &&
                   !mx_exec_is_given(mx_exec_at(r, i)) && mx_region_rows(mx_exec_at(r, i)->step.region) > 0 &&
                   mx_staging_is_taken(&r->staging, mx_exec_at(r, i)->step.kind == MX_STEP_LOAD)
               ? oldest_staged(r, mx_exec_at(r, i)->step.kind)
               : i;
}

static int start(struct executor *r, uint64_t i) {
    struct entry *e = mx_exec_at(r, i);
    if (mx_exec_moves(&e->step)) return mx_exec_start_transfer(r, e);
    if (e->step.kind == MX_STEP_COMMIT) return mx_exec_start_commit(r, e);
    if (e->step.kind == MX_STEP_COPY && mx_exec_staged(r)) return mx_exec_start_copy(r, e);
    if (e->step.kind == MX_STEP_COPY) mx_exec_do_copy(r, e);
    if (e->step.kind == MX_STEP_ADVANCE) mx_exec_start_advance(r, i);
    return 0;
}

/* The first ADVANCE that has not started; end if the window has none. */
static uint64_t waiting_advance(const struct executor *r) {
    uint64_t i = r->first;
    while (i < r->end &&
           (mx_exec_at(r, i)->step.kind != MX_STEP_ADVANCE || mx_exec_at(r, i)->state != WAITING))
        i++;
    return i;
}

/* For what neighbours get of a STORE: while it has none, everything else goes on. With an accelerator that is
 * asked when the rows are in the staging memory. */
static bool has_room(const struct executor *r, const struct entry *e) {
    return r->exchange == NULL || !mx_exec_keeps(&e->step) || mx_exec_staged(r) ||
           mx_exec_is_only_taken(r, e) || mx_exchange_has_room(r->exchange, &e->step);
}

/* Starts every step that depends on nothing unfinished; an ADVANCE last, for there are engines that
 * return only when it is done. *some: whether something was started. */
static int start_ready(struct executor *r, bool *some) {
    int err = 0;
    *some = false;
    for (uint64_t i = r->first; i < r->end && err == 0 && !r->out->ended; i++) {
        const struct entry *e = mx_exec_at(r, i);
        if (e->state != WAITING || e->step.kind == MX_STEP_ADVANCE || blocker(r, i) != i || !has_room(r, e))
            continue;
        err = start(r, i);
        *some = true;
    }
    const uint64_t next = waiting_advance(r);
    if (err < 0 || r->out->ended || next == r->end || r->under_way >= ADVANCES_UNDER_WAY ||
        blocker(r, next) != next)
        return err;
    *some = true;
    return start(r, next);
}

/* The step under way that the next ADVANCE, or if there is none the oldest step, waits for. */
static uint64_t awaited(const struct executor *r) {
    uint64_t i = waiting_advance(r);
    if (i == r->end) i = r->first;
    while (mx_exec_at(r, i)->state == WAITING) {
        const uint64_t j = blocker(r, i);
        if (j == i) break; /* an ADVANCE that waits for its turn only */
        i = j;
    }
    return i;
}

static uint64_t oldest_advance(const struct executor *r) {
    uint64_t i = r->first;
    while (mx_exec_at(r, i)->step.kind != MX_STEP_ADVANCE || mx_exec_at(r, i)->state != RUNNING) i++;
    return i;
}

/* With an accelerator or neighbours: until something has ended, whatever it is, or all ranks agree on the
 * next commit, for then something else can start, which others may be waiting for; halves are passed on
 * meanwhile. What ended is taken up by who collects. */
static bool waits_for_any(const struct executor *r) { return mx_exec_staged(r) || r->exchange != NULL; }

static int wait_for_any(struct executor *r) {
    for (;;) {
        const uint32_t heard = mx_bell_heard(r->bell);
        int err = mx_exec_pass_halves(r);
        if (err == 0) err = mx_exec_look_at_neighbours(r);
        if (err < 0) return err;
        for (uint64_t i = r->first; i < r->end; i++)
            if (mx_exec_at(r, i)->state == RUNNING && has_ended(r, mx_exec_at(r, i))) return 0;
        if (r->exchange != NULL && mx_exchange_freed(r->exchange)) return 0;
        if (r->held && mx_exec_settle_due(r) != 0) return r->due < 0 ? r->due : 0;
        /* What others send may never come. */
        if (r->exchange != NULL && r->x->stop != NULL && *r->x->stop) return -EINTR;
        mx_bell_wait(r->bell, heard, mx_exec_staged(r) ? LOOK_AGAIN_STAGED_NS : LOOK_AGAIN_NS);
    }
}

/* Nothing is computed: waits for what the next ADVANCE waits for. */
static int wait_idle(struct executor *r) {
    if (r->first == r->end) return wait_for_any(r); /* a COMMIT that is held */
    const uint64_t i = awaited(r), begin = mx_clock_ns();
    int err = 0;
    if (waits_for_any(r))
        err = wait_for_any(r);
    else
        err = finish(r, i);
    uint64_t end = mx_clock_ns();
    r->out->wait_ns += end - begin;
    mx_exec_report(r, &mx_exec_at(r, i)->step, true, begin, end, 0);
    return err;
}

/* An ADVANCE is under way: waits for the end of it, or of what the next one waits for. */
static int wait_busy(struct executor *r) {
    const uint64_t a = oldest_advance(r), i = awaited(r);
    const bool transfer = r->under_way < ADVANCES_UNDER_WAY && mx_exec_at(r, i)->state == RUNNING &&
                          mx_exec_at(r, i)->step.kind != MX_STEP_ADVANCE;
    if (waits_for_any(r)) return wait_for_any(r);
    while (transfer) {
        const uint32_t heard = mx_bell_heard(r->bell);
        if (has_ended(r, mx_exec_at(r, a)) || has_ended(r, mx_exec_at(r, i))) break;
        mx_bell_wait(r->bell, heard, LOOK_AGAIN_NS);
    }
    return finish(r, transfer && !has_ended(r, mx_exec_at(r, a)) ? i : a);
}

/* After the last step, an interruption or an error: nothing may be under way when the Blocks are freed.
 * The first error counts, with its sentence, and an interruption is none. Ranks that end so do not wait for
 * others, which a commit under way would: its end is then that the exchange was given up. */
static int drain(struct executor *r, int err) {
    mx_why *why = r->why;
    r->given_up = true;
    const bool quits = err < 0 && r->exchange != NULL;
    if (quits) r->x->neighbours->quit(r->x->link);
    for (uint64_t i = r->first; i < r->end; i++) {
        const bool failed = err < 0 && err != -EINTR;
        if (failed) r->why = NULL;
        int mine = mx_exec_at(r, i)->state == RUNNING ? finish(r, i) : 0;
        if (mine < 0 && !failed && !(quits && mine == -ECANCELED)) err = mine;
    }
    r->why = why;
    if (err < 0 && r->exchange != NULL) return err; /* what all ranks have committed last stays */
    if (err == -EINTR || r->out->ended) {
        const int taken = mx_exec_take_completed(r);
        if (taken < 0) err = taken;
    }
    if (err != -EINTR && err != -EDOM && (err < 0 || !r->out->ended)) return err;
    const int committed = mx_exec_commit_newest(r);
    if (committed < 0) return committed;
    return r->out->ended && err != -EDOM ? 0 : err;
}

static int loop(struct executor *r) {
    int err = mx_exec_fill(r);
    while (err == 0 && (r->first < r->end || r->held) && !r->out->ended) {
        bool some;
        if (r->x->stop != NULL && *r->x->stop) return -EINTR;
        err = start_ready(r, &some);
        if (err == 0 && !some) err = r->under_way > 0 ? wait_busy(r) : wait_idle(r);
        if (err == 0) err = collect(r);
        if (err == 0) err = mx_exec_fill(r);
    }
    return err;
}

/* ------------------------------------------------------------------ from the beginning to the end */

static void close_run(struct executor *r) {
    for (int i = 0; i < WINDOW_STEPS && r->entries != NULL; i++) mx_exec_drop_tables(r->entries[i].tables);
    mx_exec_drop_tables(r->newest);
    for (int i = 0; i < WINDOW_STEPS && r->entries != NULL; i++)
        pthread_mutex_destroy(&r->entries[i].finding.lock);
    free(r->entries);
    free(r->look);
    free(r->spans);
    for (int i = 0; i < 2 * MX_BUFFERS; i++)
        if (r->direct[i / MX_BUFFERS][i % MX_BUFFERS] != NULL)
            mx_accel_unstage(r->x->accel, r->direct[i / MX_BUFFERS][i % MX_BUFFERS]);
    if (mx_exec_staged(r)) mx_staging_close(&r->staging);
    if (r->exchange != NULL) mx_exchange_close(r->exchange);
    free(r->exchange);
    mx_block_free(r->staging_block);
    for (int i = 0; i < MX_MAX_FIXED; i++) mx_block_free(r->fixed_block[i]);
    mx_block_free(r->plane);
    mx_block_free(r->seam_block);
    mx_block_free(r->block[1]);
    mx_block_free(r->block[0]);
}

int mx_execute(const struct mx_execution *x, struct mx_schedule *schedule, const struct mx_engine_ops *ops,
               mx_engine *engine, mx_why *why, struct mx_executed *out) {
    struct executor r = {.x = x,
                         .schedule = schedule,
                         .sweep_ns = mx_clock_ns(),
                         .ops = ops,
                         .engine = engine,
                         .why = why,
                         .out = out,
                         .bell = mx_bell_open(),
                         .shape = &schedule->shape,
                         .first_sweep = true,
                         .source = x->source,
                         .committed = x->committed,
                         .decided_ns = mx_clock_ns()};
    memset(out, 0, sizeof *out);
    out->result = x->source;
    r.target = mx_exec_free_buffer(&r, x->source, x->committed);
    r.n_spans = mx_max(x->layout->planes, 1);
    r.entries = calloc(WINDOW_STEPS, sizeof *r.entries);
    r.spans = calloc((size_t)r.n_spans, sizeof *r.spans);
    r.look = calloc(WINDOW_STEPS, sizeof *r.look);
    for (int i = 0; i < WINDOW_STEPS && r.entries != NULL; i++)
        pthread_mutex_init(&r.entries[i].finding.lock, NULL);
    int err = r.entries == NULL || r.spans == NULL || r.look == NULL
                  ? mx_fail(why, -ENOMEM, "no memory for the executor's window")
                  : mx_exec_open_arrays(&r);
    if (err == 0 && x->feeding != NULL) err = mx_feeder_start(x->feeding, why, &r.feeder);
    if (err == 0) err = mx_exec_open_taking(&r);
    if (err == 0) mx_exec_open_looking(&r);
    if (err == 0 && schedule->first_given > 0) err = mx_exec_open_exchange(&r);
    if (err == 0) {
        const struct mx_accel_counters before =
            mx_exec_staged(&r) ? mx_accel_counters(x->accel) : (struct mx_accel_counters){0};
        uint64_t begin = mx_clock_ns();
        err = mx_taker_stop(r.taker, drain(&r, loop(&r)), why);
        if (err == 0 && r.exchange != NULL) err = mx_exchange_end(r.exchange, r.taken, why);
        out->total_ns = mx_clock_ns() - begin;
        if (mx_exec_staged(&r)) {
            const struct mx_accel_counters now = mx_accel_counters(x->accel);
            out->put_bytes = now.put_bytes - before.put_bytes;
            out->get_bytes = now.get_bytes - before.get_bytes;
            out->aside_put_bytes = now.aside_put_bytes - before.aside_put_bytes;
            out->aside_get_bytes = now.aside_get_bytes - before.aside_get_bytes;
        }
    }
    mx_feeder_stop(r.feeder);
    mx_looker_stop(r.looker);
    close_run(&r);
    mx_bell_close();
    return err;
}
