/* SPDX-License-Identifier: BSD-3-Clause */
/* queue.c - tickets, and the queue that they are posted to. */
#include "core/integrity.h"
#include "core/queue_private.h"
#include "machine/clock.h"
#include "machine/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- tickets */

/* Copies the spans; neighbours that adjoin in the Buffer and in DRAM become one. */
static size_t coalesce(const struct mx_span *spans, size_t n, struct mx_span *out) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        struct mx_span *last = used > 0 ? &out[used - 1] : NULL;
        if (spans[i].bytes == 0) continue;
        if (last != NULL && last->offset_bytes + last->bytes == spans[i].offset_bytes &&
            (char *)last->dram + last->bytes == spans[i].dram)
            last->bytes += spans[i].bytes;
        else
            out[used++] = spans[i];
    }
    return used;
}

static mx_ticket *make_ticket(bool write, const struct mx_span *spans, size_t n) {
    if (n > (SIZE_MAX - sizeof(mx_ticket)) / sizeof(struct mx_span)) return NULL;
    mx_ticket *ticket = calloc(1, sizeof *ticket + n * sizeof(struct mx_span));
    if (ticket == NULL) return NULL;
    ticket->write = write;
    ticket->bell = mx_bell_mine();
    ticket->n = coalesce(spans, n, ticket->spans);
    ticket->exhausted = ticket->n == 0;
    pthread_mutex_init(&ticket->lock, NULL);
    pthread_cond_init(&ticket->ended, NULL);
    atomic_init(&ticket->done, ticket->exhausted);
    return ticket;
}

void mx_ticket_check(mx_ticket *ticket, struct mx_integrity *table) { ticket->integrity = table; }

int mx_wait(mx_ticket *ticket) {
    if (ticket == NULL) return 0;
    pthread_mutex_lock(&ticket->lock);
    while (!atomic_load(&ticket->done)) pthread_cond_wait(&ticket->ended, &ticket->lock);
    pthread_mutex_unlock(&ticket->lock);
    int err = ticket->error;
    if (err == 0) err = mx_integrity_check(ticket->integrity, ticket->spans, ticket->n);
    pthread_cond_destroy(&ticket->ended);
    pthread_mutex_destroy(&ticket->lock);
    free(ticket);
    return err;
}

int mx_test(const mx_ticket *ticket) { return ticket == NULL || atomic_load(&ticket->done) ? 1 : 0; }

/* ---- the queue */

int mx_queue_post(struct mx_queue *q, bool write, const struct mx_span *spans, size_t n,
                  uint64_t base_offset_bytes, void *base, mx_ticket **out) {
    mx_ticket *ticket = make_ticket(write, spans, n);
    if (ticket == NULL) return -ENOMEM;
    ticket->base_offset_bytes = base_offset_bytes;
    ticket->base = base;
    if (!ticket->exhausted) {
        pthread_mutex_lock(&q->lock);
        if (q->tail != NULL)
            q->tail->next = ticket;
        else
            q->head = ticket;
        q->tail = ticket;
        pthread_cond_broadcast(&q->work);
        pthread_mutex_unlock(&q->lock);
    }
    *out = ticket;
    return 0;
}

int mx_queue_write_error(struct mx_queue *q) {
    pthread_mutex_lock(&q->lock);
    int err = q->write_error;
    pthread_mutex_unlock(&q->lock);
    return err;
}

void mx_queue_move_begins(struct mx_queue *q, bool write) {
    pthread_mutex_lock(&q->lock);
    mx_queue_begin(q, write, mx_clock_ns());
    pthread_mutex_unlock(&q->lock);
}

void mx_queue_move_ends(struct mx_queue *q, bool write, uint64_t bytes) {
    pthread_mutex_lock(&q->lock);
    mx_queue_end(q, write, mx_clock_ns());
    *(write ? &q->counters.write_bytes : &q->counters.read_bytes) += bytes;
    (*(write ? &q->counters.write_requests : &q->counters.read_requests))++;
    pthread_mutex_unlock(&q->lock);
}

void mx_queue_counters(struct mx_queue *q, struct mx_counters *out) {
    pthread_mutex_lock(&q->lock);
    uint64_t now = mx_clock_ns();
    mx_queue_count_time(q, false, now);
    mx_queue_count_time(q, true, now);
    *out = q->counters;
    pthread_mutex_unlock(&q->lock);
}

/* ---- threads */

static void join_threads(struct mx_queue *q) {
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->lock);
    for (unsigned i = 0; i < q->n_threads; i++) pthread_join(q->threads[i], NULL);
}

void mx_queue_free(struct mx_queue *q) {
    if (q == NULL) return;
    join_threads(q);
    mx_transfer_free(q);
    free(q->threads);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

int mx_queue_create(const struct mx_queue_setup *setup, mx_why *why, struct mx_queue **out) {
    bool mapped = setup->backend->face == MX_FACE_MAPPED;
    unsigned want = mapped ? setup->workers : 1;
    struct mx_queue *q = calloc(1, sizeof *q);
    if (q == NULL) return mx_fail(why, -ENOMEM, "no memory for a transfer queue");
    q->setup = *setup;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    q->threads = calloc(want, sizeof *q->threads);
    int err = q->threads == NULL ? -ENOMEM : 0;
    if (err == 0 && !mapped) err = mx_transfer_create(q);
    int no_thread = 0;
    for (; err == 0 && q->n_threads < want; q->n_threads++) {
        err = no_thread =
            mx_thread_start(&q->threads[q->n_threads], mapped ? mx_mapped_run : mx_transfer_run, q);
        if (err != 0) break;
    }
    if (err != 0) {
        mx_queue_free(q);
        if (no_thread != 0) return mx_fail(why, err, "no thread for transfers: %s", mx_no_thread(err).text);
        return mx_fail(
            why, err, "no memory for a transfer queue of %u requests and %u threads: %s; lower --queue-depth",
            setup->depth, want, strerror(-err));
    }
    *out = q;
    return 0;
}
