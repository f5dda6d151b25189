/* SPDX-License-Identifier: BSD-3-Clause */
/* queue_private.h - shared by queue.c and the two styles. */
#ifndef MX_QUEUE_PRIVATE_H
#define MX_QUEUE_PRIVATE_H

#include "core/queue.h"
#include "machine/bell.h"

#include <pthread.h>
#include <stdatomic.h>

/* A ticket belongs to the caller of mx_buffer_read; the queue does not touch it after `done`. The queue's
 * lock guards the fields above `lock`. */
struct mx_ticket {
    struct mx_ticket *next;
    bool write;
    bool exhausted;     /* every piece was taken, or the rest was given up after an error */
    int error;          /* the first one */
    uint64_t in_flight; /* pieces taken and not finished */
    uint64_t base_offset_bytes;
    char *base;
    size_t n, at;         /* number of spans; the span that the next piece comes from */
    uint64_t at_bytes;    /* bytes of that span that were taken */
    pthread_mutex_t lock; /* guards the end of the ticket */
    pthread_cond_t ended;
    atomic_bool done;
    struct mx_bell *bell;           /* of the thread that posted it */
    struct mx_integrity *integrity; /* used by mx_wait only; NULL: nothing is compared */
    struct mx_span spans[];
};

/* At most max_request_bytes of one span. */
struct piece {
    mx_ticket *ticket;
    uint64_t offset_bytes; /* as in the span */
    uint64_t bytes;
    void *dram;
};

/* Time with at least one piece under way. */
struct busy {
    uint32_t n;
    uint64_t since_ns;
};

struct mx_queue {
    struct mx_queue_setup setup;
    pthread_mutex_t lock;
    pthread_cond_t work;
    mx_ticket *head, *tail; /* tickets with pieces left to take */
    bool stop;
    struct mx_counters counters;
    struct busy busy[2]; /* [write] */
    uint32_t in_flight;
    int write_error; /* of the first write that failed */
    pthread_t *threads;
    unsigned n_threads;
    struct transfer *transfer; /* transfer style */
};

/* ---- queue_pieces.c; all with the queue's lock held */

bool mx_queue_take(struct mx_queue *queue, struct piece *out);
void mx_queue_finish(struct mx_queue *queue, mx_ticket *ticket, int err); /* one piece */
void mx_queue_begin(struct mx_queue *queue, bool write, uint64_t now_ns);
void mx_queue_end(struct mx_queue *queue, bool write, uint64_t now_ns);
/* Adds the time until now to the counters. */
void mx_queue_count_time(struct mx_queue *queue, bool write, uint64_t now_ns);

/* The styles: setup, thread, cleanup. */
int mx_transfer_create(struct mx_queue *queue);
void *mx_transfer_run(void *queue);
void mx_transfer_free(struct mx_queue *queue);
void *mx_mapped_run(void *queue);

#endif
