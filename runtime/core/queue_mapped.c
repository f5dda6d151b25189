/* SPDX-License-Identifier: BSD-3-Clause */
/* queue_mapped.c - the copying threads of the mapped style. */
#include "core/queue_private.h"
#include "machine/clock.h"
#include "machine/machine.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Short rows are taken by the handful, so that threads do not queue for the lock. */
enum { MOST_PIECES = 64 };

struct batch {
    struct piece pieces[MOST_PIECES];
    unsigned n;
    struct piece ahead; /* what will be read soon; bytes 0 = nothing */
};

/* The piece that lies as far ahead as the other workers will have taken when this one is back. None in the
 * middle of a long span of a file: there the kernel's own read-ahead works, with larger pages. */
static struct piece look_ahead(const struct mx_queue *q, const mx_ticket *t) {
    uint64_t most = q->setup.max_request_bytes, skip = most * (q->setup.workers - 1);
    uint64_t from = t->at_bytes;
    for (size_t i = t->at; i < t->n; i++, from = 0) {
        uint64_t left = t->spans[i].bytes - from;
        if (skip < left) {
            uint64_t bytes = left < skip + most ? left - skip : q->setup.backend->anonymous ? most : 0;
            return (struct piece){.offset_bytes = t->spans[i].offset_bytes + from + skip, .bytes = bytes};
        }
        skip -= left;
    }
    return (struct piece){0};
}

/* SCHEDULE brings in what is read, and of a file also what is written: the kernel reads the pages that are
 * overwritten, page by page or with what lies around, unless it is told. Anonymous memory may be new. */
static bool brings_in(const struct mx_queue *q, const mx_ticket *t) {
    return q->setup.schedule && (!t->write || !q->setup.backend->anonymous);
}

/* Lock held; one ticket's pieces, together about max_request_bytes. */
static void take_batch(struct mx_queue *q, struct batch *b) {
    mx_ticket *ticket = q->head;
    uint64_t bytes = 0, now = mx_clock_ns();
    b->n = 0;
    b->ahead = (struct piece){0};
    while (b->n < MOST_PIECES && bytes < q->setup.max_request_bytes && q->head == ticket &&
           mx_queue_take(q, &b->pieces[b->n])) {
        mx_queue_begin(q, ticket->write, now);
        bytes += b->pieces[b->n++].bytes;
    }
    if (brings_in(q, ticket)) b->ahead = look_ahead(q, ticket);
}

static int advise(struct mx_queue *q, char *from, uint64_t bytes, enum mx_advice advice) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)from / page * page;
    return q->setup.backend->advise(q->setup.state, (void *)start, (uintptr_t)from + bytes - start, advice);
}

static void copy(const struct piece *p) {
    char *mapped = p->ticket->base + p->offset_bytes;
    if (p->ticket->write)
        memcpy(mapped, p->dram, p->bytes);
    else
        memcpy(p->dram, mapped, p->bytes);
}

/* Pieces from the first on that adjoin in the Buffer: they are advised in one call. */
static unsigned run_of(const struct batch *b, unsigned first, uint64_t *bytes) {
    unsigned n = 1;
    *bytes = b->pieces[first].bytes;
    while (first + n < b->n && b->pieces[first + n].offset_bytes == b->pieces[first].offset_bytes + *bytes)
        *bytes += b->pieces[first + n++].bytes;
    return n;
}

/* Other errors of advice harm nothing. */
static bool is_loss(int err) { return err == -EIO || err == -ENOSPC || err == -EDQUOT; }

/* SCHEDULE: brought in before and dropped behind. Returns how many pieces were moved. */
static unsigned move_run(struct mx_queue *q, const struct batch *b, unsigned first, int *errors) {
    uint64_t bytes;
    unsigned n = run_of(b, first, &bytes);
    const struct piece *p = &b->pieces[first];
    char *mapped = p->ticket->base + p->offset_bytes;
    /* A page that cannot be read is found here as -EFAULT; touched, it would kill the process by SIGBUS. */
    int err = brings_in(q, p->ticket) ? advise(q, mapped, bytes, MX_ADVICE_POPULATE) : 0;
    bool unreadable = err == -EFAULT || err == -EHWPOISON || err == -EIO;
    if (!unreadable)
        for (unsigned i = first; i < first + n; i++) copy(&b->pieces[i]);
    int dropped = advise(q, mapped, bytes, MX_ADVICE_DROP);
    /* Of what was written by this ticket or one before: nothing tells which. */
    bool lost = p->ticket->write && is_loss(dropped);
    for (unsigned i = first; i < first + n; i++) errors[i] = unreadable ? -EIO : lost ? dropped : 0;
    return n;
}

static void move_batch(struct mx_queue *q, const struct batch *b, int *errors) {
    if (q->setup.schedule) {
        for (unsigned i = 0; i < b->n;) i += move_run(q, b, i, errors);
        return;
    }
    for (unsigned i = 0; i < b->n; i++) {
        errors[i] = 0;
        copy(&b->pieces[i]);
    }
}

static void finish_batch(struct mx_queue *q, const struct batch *b, const int *errors) {
    uint64_t now = mx_clock_ns();
    bool write = b->pieces[0].ticket->write;
    pthread_mutex_lock(&q->lock);
    for (unsigned i = 0; i < b->n; i++) {
        if (errors[i] == 0)
            *(write ? &q->counters.write_bytes : &q->counters.read_bytes) += b->pieces[i].bytes;
        (*(write ? &q->counters.write_requests : &q->counters.read_requests))++;
        mx_queue_end(q, write, now);
        mx_queue_finish(q, b->pieces[i].ticket, errors[i]);
    }
    pthread_mutex_unlock(&q->lock);
}

void *mx_mapped_run(void *queue) {
    struct mx_queue *q = queue;
    struct batch b;
    int errors[MOST_PIECES];
    mx_machine_unpin();
    for (;;) {
        pthread_mutex_lock(&q->lock);
        while (q->head == NULL && !q->stop) pthread_cond_wait(&q->work, &q->lock);
        bool work = q->head != NULL;
        if (work) take_batch(q, &b);
        pthread_mutex_unlock(&q->lock);
        if (!work) return NULL;
        if (b.ahead.bytes > 0)
            advise(q, b.pieces[0].ticket->base + b.ahead.offset_bytes, b.ahead.bytes, MX_ADVICE_WILLNEED);
        move_batch(q, &b, errors);
        finish_batch(q, &b, errors);
    }
}
