/* SPDX-License-Identifier: BSD-3-Clause */
/* queue_pieces.c - what the styles do with the queue: take pieces of tickets, and finish them. */
#include "core/queue_private.h"

/* The last touch of the queue: after the unlock the ticket belongs to mx_wait alone. */
static void end_ticket(mx_ticket *ticket) {
    pthread_mutex_lock(&ticket->lock);
    atomic_store(&ticket->done, true);
    pthread_cond_signal(&ticket->ended);
    mx_bell_ring(ticket->bell);
    pthread_mutex_unlock(&ticket->lock);
}

static void pop_head(struct mx_queue *q) {
    q->head->exhausted = true;
    q->head = q->head->next;
    if (q->head == NULL) q->tail = NULL;
}

bool mx_queue_take(struct mx_queue *q, struct piece *out) {
    mx_ticket *t = q->head;
    if (t == NULL) return false;
    const struct mx_span *s = &t->spans[t->at];
    uint64_t left = s->bytes - t->at_bytes, most = q->setup.max_request_bytes;
    *out = (struct piece){t, s->offset_bytes + t->at_bytes, left < most ? left : most,
                          (char *)s->dram + t->at_bytes};
    t->in_flight++;
    t->at_bytes += out->bytes;
    if (t->at_bytes == s->bytes) {
        t->at++;
        t->at_bytes = 0;
        if (t->at == t->n) pop_head(q);
    }
    return true;
}

void mx_queue_finish(struct mx_queue *q, mx_ticket *t, int err) {
    t->in_flight--;
    if (err != 0 && t->error == 0) t->error = err;
    if (err != 0 && t->write && q->write_error == 0) q->write_error = err;
    /* A ticket that pieces were taken of and that has more to take is the head: the order is strict. */
    if (err != 0 && !t->exhausted) pop_head(q);
    if (t->exhausted && t->in_flight == 0) end_ticket(t);
}

void mx_queue_begin(struct mx_queue *q, bool write, uint64_t now_ns) {
    if (q->busy[write].n++ == 0) q->busy[write].since_ns = now_ns;
    if (++q->in_flight > q->counters.peak_in_flight) q->counters.peak_in_flight = q->in_flight;
}

void mx_queue_count_time(struct mx_queue *q, bool write, uint64_t now_ns) {
    struct busy *b = &q->busy[write];
    uint64_t *total = write ? &q->counters.write_ns : &q->counters.read_ns;
    if (b->n > 0 && now_ns > b->since_ns) {
        *total += now_ns - b->since_ns;
        b->since_ns = now_ns;
    }
}

void mx_queue_end(struct mx_queue *q, bool write, uint64_t now_ns) {
    mx_queue_count_time(q, write, now_ns);
    q->busy[write].n--;
    q->in_flight--;
}
