/* SPDX-License-Identifier: BSD-3-Clause */
/* queue_transfer.c - the I/O thread of the transfer style.
 *
 * Every request sits in a slot from the moment its piece is taken until it has moved all its bytes or failed:
 *
 *     free -> waiting -> in flight -> (short, EAGAIN: waiting again) -> free
 *
 * The tag of a request is its slot and the slot's generation, so a completion that comes twice is known and
 * ignored. The thread sleeps on the queue's condition when nothing is to be done and in the backend's reap
 * when something is in flight.
 */
#include "core/queue_private.h"
#include "machine/clock.h"
#include "machine/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* Back-off of a request that the system had no room for: 20 us, doubled up to 10 ms; about a second in all.
 */
enum { FIRST_DELAY_NS = 20000, MOST_DELAY_NS = 10000000, MOST_TRIES = 110, MOST_REAP_ERRORS = 100 };

enum slot_state { SLOT_FREE, SLOT_WAITING, SLOT_IN_FLIGHT };

struct slot {
    struct mx_request request; /* what is left to do */
    mx_ticket *ticket;
    enum slot_state state;
    uint32_t generation, tries;
    uint64_t not_before_ns;
};

struct transfer {
    struct slot *slots;
    uint32_t *free_slots, *waiting; /* slot numbers; waiting in the order of arrival */
    uint32_t n_free, n_waiting, n_in_flight;
    struct mx_request *batch;
    uint32_t *batch_slots;
    struct mx_completion *completions;
    uint64_t not_before_ns; /* the backend had no room at all: nobody is submitted before */
    unsigned reap_errors;
    int broken; /* the backend cannot be reaped any more: every ticket fails with this */
};

int mx_transfer_create(struct mx_queue *q) {
    uint32_t depth = q->setup.depth;
    struct transfer *t = calloc(1, sizeof *t);
    if (t == NULL) return -ENOMEM;
    q->transfer = t;
    t->slots = calloc(depth, sizeof *t->slots);
    t->free_slots = calloc(depth, sizeof *t->free_slots);
    t->waiting = calloc(depth, sizeof *t->waiting);
    t->batch = calloc(depth, sizeof *t->batch);
    t->batch_slots = calloc(depth, sizeof *t->batch_slots);
    t->completions = calloc(depth, sizeof *t->completions);
    if (!t->slots || !t->free_slots || !t->waiting || !t->batch || !t->batch_slots || !t->completions)
        return -ENOMEM;
    for (uint32_t i = 0; i < depth; i++) t->free_slots[t->n_free++] = depth - 1 - i;
    return 0;
}

void mx_transfer_free(struct mx_queue *q) {
    struct transfer *t = q->transfer;
    if (t == NULL) return;
    free(t->completions);
    free(t->batch_slots);
    free(t->batch);
    free(t->waiting);
    free(t->free_slots);
    free(t->slots);
    free(t);
}

/* ---- pieces in (lock held) */

static void occupy(struct transfer *t, const struct piece *piece) {
    uint32_t i = t->free_slots[--t->n_free];
    struct slot *s = &t->slots[i];
    *s = (struct slot){.request = {.offset_bytes = piece->ticket->base_offset_bytes + piece->offset_bytes,
                                   .bytes = (uint32_t)piece->bytes,
                                   .write = piece->ticket->write,
                                   .dram = piece->dram,
                                   .tag = (uint64_t)(s->generation + 1) << 32 | i},
                       .ticket = piece->ticket,
                       .state = SLOT_WAITING,
                       .generation = s->generation + 1};
    t->waiting[t->n_waiting++] = i;
}

static void release(struct mx_queue *q, uint32_t i, int err) {
    struct transfer *t = q->transfer;
    t->slots[i].state = SLOT_FREE;
    t->free_slots[t->n_free++] = i;
    mx_queue_finish(q, t->slots[i].ticket, err);
}

static void fill(struct mx_queue *q) {
    struct transfer *t = q->transfer;
    struct piece piece;
    while ((t->n_free > 0 || t->broken) && mx_queue_take(q, &piece)) {
        if (t->broken)
            mx_queue_finish(q, piece.ticket, t->broken);
        else
            occupy(t, &piece);
    }
}

/* ---- requests out */

static uint64_t delay_ns(uint32_t tries) {
    uint64_t delay = (uint64_t)FIRST_DELAY_NS << (tries < 20 ? tries : 20);
    return delay < MOST_DELAY_NS ? delay : MOST_DELAY_NS;
}

static bool try_again(int err) { return err == -EAGAIN || err == -EINTR || err == -EBUSY; }

static uint32_t gather(struct transfer *t, uint64_t now) {
    uint32_t n = 0;
    if (now < t->not_before_ns) return 0;
    for (uint32_t i = 0; i < t->n_waiting; i++) {
        const struct slot *s = &t->slots[t->waiting[i]];
        if (s->not_before_ns > now) continue;
        t->batch[n] = s->request;
        t->batch_slots[n++] = t->waiting[i];
    }
    return n;
}

static void drop_from_waiting(struct transfer *t) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->n_waiting; i++)
        if (t->slots[t->waiting[i]].state == SLOT_WAITING) t->waiting[kept++] = t->waiting[i];
    t->n_waiting = kept;
}

static void count_submitted(struct mx_queue *q, uint32_t from, uint32_t n, uint64_t now) {
    struct transfer *t = q->transfer;
    for (uint32_t i = from; i < from + n; i++) {
        struct slot *s = &t->slots[t->batch_slots[i]];
        s->state = SLOT_IN_FLIGHT;
        mx_queue_begin(q, s->request.write, now);
        (*(s->request.write ? &q->counters.write_requests : &q->counters.read_requests))++;
    }
    t->n_in_flight += n;
}

/* The backend took nothing. With requests in flight there will be room after the next completion; without
 * any, the first request is tried again later, and fails in the end. Other errors are the first request's
 * own. */
static void refused(struct mx_queue *q, uint32_t first, int err, uint64_t now) {
    struct transfer *t = q->transfer;
    struct slot *s = &t->slots[first];
    if (err == 0) err = -EAGAIN;
    if (try_again(err)) {
        q->counters.retries++;
        if (t->n_in_flight > 0) return;
        t->not_before_ns = now + delay_ns(s->tries);
        if (err == -EINTR || s->tries++ < MOST_TRIES) return;
    }
    release(q, first, err);
}

static int start(struct mx_queue *q, const struct mx_request *requests, uint32_t n) {
    struct transfer *t = q->transfer;
    const struct mx_backend *b = q->setup.backend;
    if (b->move == NULL) return b->submit(q->setup.state, requests, n);
    t->completions[0] = (struct mx_completion){requests->tag, b->move(q->setup.state, requests)};
    return 1;
}

static int completed(struct mx_queue *q) {
    const struct mx_backend *b = q->setup.backend;
    if (b->move == NULL) return b->reap(q->setup.state, 1, q->setup.depth, q->transfer->completions);
    return 1;
}

static void submit(struct mx_queue *q) {
    struct transfer *t = q->transfer;
    uint64_t now = mx_clock_ns();
    uint32_t n = gather(t, now), done = 0;
    if (q->setup.backend->move != NULL && n > 1) n = 1; /* its ticket need not wait for the others */
    while (done < n) {
        int taken = start(q, t->batch + done, n - done);
        pthread_mutex_lock(&q->lock);
        if (taken > 0) count_submitted(q, done, (uint32_t)taken, now);
        bool again = taken <= 0 && (taken == 0 || try_again(taken));
        if (taken <= 0) refused(q, t->batch_slots[done], taken, now);
        pthread_mutex_unlock(&q->lock);
        if (again) break;
        done += taken > 0 ? (uint32_t)taken : 1;
    }
    if (n > 0) drop_from_waiting(t);
}

/* ---- completions (lock held) */

static void wait_again(struct transfer *t, uint32_t i, uint64_t not_before_ns) {
    t->slots[i].state = SLOT_WAITING;
    t->slots[i].not_before_ns = not_before_ns;
    t->waiting[t->n_waiting++] = i;
}

/* Part of the bytes moved: the rest is a request of its own, from an aligned place on. */
static void advance(struct mx_queue *q, uint32_t i, uint32_t moved, uint64_t now) {
    struct transfer *t = q->transfer;
    struct slot *s = &t->slots[i];
    const uint64_t end = q->setup.end_bytes;
    if (end != 0 && !s->request.write && s->request.offset_bytes + moved >= end) moved = s->request.bytes;
    uint32_t whole = moved == s->request.bytes ? moved : moved - moved % q->setup.align_bytes;
    *(s->request.write ? &q->counters.write_bytes : &q->counters.read_bytes) += whole;
    s->request.offset_bytes += whole;
    s->request.bytes -= whole;
    s->request.dram = (char *)s->request.dram + whole;
    if (s->request.bytes == 0) {
        release(q, i, 0);
        return;
    }
    q->counters.short_transfers++;
    if (whole > 0)
        s->tries = 0;
    else if (s->tries++ >= MOST_TRIES) {
        release(q, i, -EIO);
        return;
    }
    wait_again(t, i, whole > 0 ? now : now + delay_ns(s->tries));
}

static void complete(struct mx_queue *q, const struct mx_completion *c, uint64_t now) {
    struct transfer *t = q->transfer;
    uint32_t i = (uint32_t)c->tag;
    if (i >= q->setup.depth || t->slots[i].generation != (uint32_t)(c->tag >> 32) ||
        t->slots[i].state != SLOT_IN_FLIGHT)
        return; /* a second completion of one request: the backend's fault, harmless here */
    struct slot *s = &t->slots[i];
    t->n_in_flight--;
    mx_queue_end(q, s->request.write, now);
    if (c->result > 0 && c->result <= s->request.bytes) {
        advance(q, i, (uint32_t)c->result, now);
    } else if (c->result == -EINTR) {
        q->counters.retries++; /* not a try: a storm of signals ends some time */
        wait_again(t, i, now + delay_ns(0));
    } else if (c->result < 0 && try_again((int)c->result) && s->tries < MOST_TRIES) {
        q->counters.retries++;
        wait_again(t, i, now + delay_ns(s->tries++));
    } else {
        /* 0 = behind the end of the place, where no Buffer lies; more than asked for = nonsense. */
        release(q, i, c->result < 0 ? (int)c->result : -EIO);
    }
}

/* Nothing more will come of the backend, and it is drained: no request can write to DRAM any more. */
static void give_up(struct mx_queue *q, int err) {
    struct transfer *t = q->transfer;
    uint64_t now = mx_clock_ns();
    t->broken = err;
    for (uint32_t i = 0; i < q->setup.depth; i++) {
        if (t->slots[i].state == SLOT_FREE) continue;
        if (t->slots[i].state == SLOT_IN_FLIGHT) mx_queue_end(q, t->slots[i].request.write, now);
        release(q, i, err);
    }
    t->n_waiting = t->n_in_flight = 0;
}

/* Tickets end after the last request has: their DRAM may be given up then. */
static void abandon_backend(struct mx_queue *q, int err) {
    if (q->setup.backend->drain != NULL) q->setup.backend->drain(q->setup.state);
    pthread_mutex_lock(&q->lock);
    give_up(q, err);
    pthread_mutex_unlock(&q->lock);
}

static void sleep_until(uint64_t when_ns) {
    struct timespec t = {(time_t)(when_ns / 1000000000u), (long)(when_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void sleep_until_ready(const struct transfer *t) {
    uint64_t when = UINT64_MAX;
    for (uint32_t i = 0; i < t->n_waiting; i++)
        if (t->slots[t->waiting[i]].not_before_ns < when) when = t->slots[t->waiting[i]].not_before_ns;
    if (when < t->not_before_ns) when = t->not_before_ns;
    if (t->n_waiting > 0 && when > mx_clock_ns()) sleep_until(when);
}

static void reap(struct mx_queue *q) {
    struct transfer *t = q->transfer;
    if (t->n_in_flight == 0) {
        sleep_until_ready(t);
        return;
    }
    int n = completed(q);
    uint64_t now = mx_clock_ns();
    pthread_mutex_lock(&q->lock);
    for (int i = 0; i < n; i++) complete(q, &t->completions[i], now);
    pthread_mutex_unlock(&q->lock);
    if (n == -EINTR) return;
    if (n >= 0)
        t->reap_errors = 0;
    else if (!try_again(n) || t->reap_errors++ >= MOST_REAP_ERRORS)
        abandon_backend(q, n);
    else
        sleep_until(now + delay_ns(t->reap_errors));
}

void *mx_transfer_run(void *queue) {
    struct mx_queue *q = queue;
    struct transfer *t = q->transfer;
    mx_machine_unpin();
    for (;;) {
        pthread_mutex_lock(&q->lock);
        while (q->head == NULL && t->n_waiting + t->n_in_flight == 0 && !q->stop)
            pthread_cond_wait(&q->work, &q->lock);
        fill(q);
        bool idle = t->n_waiting + t->n_in_flight == 0, stop = q->stop;
        pthread_mutex_unlock(&q->lock);
        if (idle && stop) return NULL;
        if (idle) continue;
        submit(q);
        reap(q);
    }
}
