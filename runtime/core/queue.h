/* SPDX-License-Identifier: BSD-3-Clause */
/* queue.h - the transfer queue of a device: tickets in, requests to the backend out.
 *
 * Splitting, coalescing, retry, finishing of short transfers, timing and counting happen here and nowhere
 * else. Tickets are served in the order in which they were posted, several at once as depth allows.
 * Transfer style: one I/O thread. Mapped style: `workers` threads that copy.
 */
#ifndef MX_QUEUE_H
#define MX_QUEUE_H

#include <memext/backend.h>

struct mx_queue;
struct mx_integrity;

struct mx_queue_setup {
    const struct mx_backend *backend;
    void *state;
    uint32_t depth, max_request_bytes, align_bytes, workers;
    bool schedule; /* mapped style: populate before reading, drop after every piece */
    /* Transfer style: the place ends here, in the middle of a block. A read that reaches this end is
     * complete, and counts as the whole block. 0 = the place has whole blocks only. */
    uint64_t end_bytes;
};

int mx_queue_create(const struct mx_queue_setup *setup, mx_why *why, struct mx_queue **out);
/* Waits for all tickets, then ends the threads. NULL allowed. */
void mx_queue_free(struct mx_queue *queue);

/* Posts a transfer. The caller has checked the spans. Offsets count from base_offset_bytes of the place
 * (transfer style) or from base (mapped style). -ENOMEM. */
int mx_queue_post(struct mx_queue *queue, bool write, const struct mx_span *spans, size_t n,
                  uint64_t base_offset_bytes, void *base, mx_ticket **out);
/* Returns the first error of a write; 0 = none so far. */
int mx_queue_write_error(struct mx_queue *queue);
/* Makes mx_wait compare what was read with the table (NULL = with none). Called before anybody can wait for
 * the ticket. */
void mx_ticket_check(mx_ticket *ticket, struct mx_integrity *table);
/* For data that is moved without the queue: counts it as one request, and its time as that of other requests.
 */
void mx_queue_move_begins(struct mx_queue *queue, bool write);
void mx_queue_move_ends(struct mx_queue *queue, bool write, uint64_t bytes);
void mx_queue_counters(struct mx_queue *queue, struct mx_counters *out);

#endif
