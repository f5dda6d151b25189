/* SPDX-License-Identifier: BSD-3-Clause */
/* lanes.c - messages that are posted, and done by a thread for each direction at each end. */
#include "link/link_private.h"

#include "machine/bell.h"
#include "machine/machine.h"

#include <errno.h>
#include <string.h>

int mx_link_agree(const struct mx_link *l, int peer, enum mx_channel c, size_t bytes, bool sends) {
    return l->ops->agree != NULL ? l->ops->agree(l->state, peer, c, bytes, sends) : 0;
}

/* Waits until piece i may go. */
static int wait_ready(struct lane *n, int64_t i) {
    pthread_mutex_lock(&n->lock);
    while (n->ready <= i && !n->stopped && !n->ending) pthread_cond_wait(&n->changed, &n->lock);
    const int err = n->ready <= i ? -ECANCELED : 0;
    pthread_mutex_unlock(&n->lock);
    return err;
}

/* So many pieces are done. Lock held. */
static void tell_done(struct lane *n, int64_t pieces) {
    n->done = pieces;
    pthread_cond_broadcast(&n->changed);
    if (n->asked > pieces) return;
    n->asked = INT64_MAX;
    mx_bell_ring(n->bell);
}

static int transfer_piece(struct lane *n, int64_t i) {
    const struct mx_link *l = n->link;
    const size_t skip = (size_t)i * n->piece_bytes;
    size_t moved = 0;
    int err = n->sends ? wait_ready(n, i) : 0;
    for (int k = 0; k < n->n && err == 0; k++) {
        const size_t left = n->part[k].iov_len > skip ? n->part[k].iov_len - skip : 0;
        const size_t bytes = left < n->piece_bytes ? left : n->piece_bytes;
        char *at = (char *)n->part[k].iov_base + skip;
        if (bytes == 0) continue;
        err = n->sends ? l->ops->send(l->state, n->peer, n->channel, at, bytes)
                       : l->ops->receive(l->state, n->peer, n->channel, at, bytes);
        if (err == 0) moved += bytes;
    }
    pthread_mutex_lock(&n->lock);
    n->bytes += moved;
    /* With the last one the message is through, which `work` says. */
    if (err == 0 && i + 1 < n->pieces) tell_done(n, i + 1);
    pthread_mutex_unlock(&n->lock);
    return err;
}

static int transfer(struct lane *n) {
    size_t bytes = 0;
    for (int i = 0; i < n->n; i++) bytes += n->part[i].iov_len;
    int err = mx_link_agree(n->link, n->peer, n->channel, bytes, n->sends);
    for (int64_t i = 0; i < n->pieces && err == 0; i++) err = transfer_piece(n, i);
    return err;
}

static void *work(void *argument) {
    struct lane *n = argument;
    pthread_mutex_lock(&n->lock);
    for (;;) {
        while (!n->busy && !n->ending) pthread_cond_wait(&n->changed, &n->lock);
        if (!n->busy) break;
        pthread_mutex_unlock(&n->lock);
        const int err = transfer(n);
        pthread_mutex_lock(&n->lock);
        n->busy = false;
        if (err < 0) n->err = err;
        n->asked = n->sends ? n->asked : 0; /* that it is through is asked for each time */
        tell_done(n, err == 0 ? n->pieces : n->done);
    }
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

int mx_link_gone(const mx_link *l, int peer, int err, mx_why *why) {
    if (err == -ECANCELED)
        return mx_fail(why, err, "the exchange with rank %d was stopped, because the run ends", peer);
    if (err == -ECONNRESET)
        return mx_fail(why, err, "rank %d of %d has ended, so this rank ends too", peer, l->ranks);
    return mx_fail(why, err, "the link %s to rank %d of %d failed: %s", l->ops->name, peer, l->ranks,
                   strerror(-err));
}

static int64_t pieces_of(const struct iovec *part, int parts, size_t piece_bytes) {
    size_t most = 0;
    for (int i = 0; i < parts; i++)
        if (part[i].iov_len > most) most = part[i].iov_len;
    return (int64_t)(most / piece_bytes + (most % piece_bytes > 0));
}

int mx_lane_post(struct lane *n, const struct iovec *part, int parts, size_t piece_bytes, int64_t ready,
                 mx_why *why) {
    int err = 0;
    pthread_mutex_lock(&n->lock);
    if (!n->begun) {
        err = mx_thread_start(&n->thread, work, n);
        n->begun = err == 0;
    }
    if (err == 0 && n->err < 0) {
        err = mx_link_gone(n->link, n->peer, n->err, why);
    } else if (err < 0) {
        mx_fail(why, err, "no thread for the link to rank %d: %s", n->peer, mx_no_thread(err).text);
    } else if (n->busy || parts > MOST_PARTS) {
        err = mx_fail(why, -EBUSY, "a message to or from rank %d is under way already (an internal error)",
                      n->peer);
    } else {
        memcpy(n->part, part, (size_t)parts * sizeof *part);
        n->n = parts;
        n->piece_bytes = piece_bytes;
        n->pieces = pieces_of(part, parts, piece_bytes);
        n->ready = ready;
        n->done = 0;
        n->asked = INT64_MAX;
        n->bell = mx_bell_mine();
        n->busy = true;
        pthread_cond_broadcast(&n->changed);
    }
    pthread_mutex_unlock(&n->lock);
    return err;
}

int mx_lane_done(struct lane *n, int64_t pieces, bool wait, mx_why *why) {
    pthread_mutex_lock(&n->lock);
    while (n->busy && n->done < pieces && wait) pthread_cond_wait(&n->changed, &n->lock);
    const bool through = !n->busy || n->done >= pieces;
    if (!through && pieces < n->asked) n->asked = pieces;
    const int err = n->busy || n->done >= pieces ? 0 : n->err;
    pthread_mutex_unlock(&n->lock);
    return err < 0 ? mx_link_gone(n->link, n->peer, err, why) : through;
}

static int more(struct lane *n, int64_t ready, mx_why *why) {
    pthread_mutex_lock(&n->lock);
    const int err = n->err;
    if (ready > n->ready) n->ready = ready, pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    return err < 0 ? mx_link_gone(n->link, n->peer, err, why) : 0;
}

int mx_link_send(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, int64_t ready,
                 mx_why *why) {
    return mx_lane_post(&((mx_link *)link)->lane[end][1], part, n, piece_bytes, ready, why);
}
int mx_link_more(void *link, int end, int64_t ready, mx_why *why) {
    return more(&((mx_link *)link)->lane[end][1], ready, why);
}
int mx_link_receive(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, mx_why *why) {
    return mx_lane_post(&((mx_link *)link)->lane[end][0], part, n, piece_bytes, 0, why);
}
int mx_link_sent(void *link, int end, bool wait, mx_why *why) {
    return mx_lane_done(&((mx_link *)link)->lane[end][1], INT64_MAX, wait, why);
}
int mx_link_received(void *link, int end, int64_t pieces, bool wait, mx_why *why) {
    return mx_lane_done(&((mx_link *)link)->lane[end][0], pieces, wait, why);
}

static uint64_t bytes_of(struct lane *n) {
    pthread_mutex_lock(&n->lock);
    const uint64_t bytes = n->bytes;
    pthread_mutex_unlock(&n->lock);
    return bytes;
}

void mx_link_counters(mx_link *l, uint64_t *sent, uint64_t *received) {
    *received = bytes_of(&l->lane[0][0]) + bytes_of(&l->lane[1][0]);
    *sent = bytes_of(&l->lane[0][1]) + bytes_of(&l->lane[1][1]);
}

void mx_lane_make(mx_link *l, struct lane *n, bool sends, int peer, enum mx_channel channel) {
    n->link = l;
    n->sends = sends;
    n->peer = peer;
    n->channel = channel;
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->changed, NULL);
}

void mx_lane_end(struct lane *n) {
    pthread_mutex_lock(&n->lock);
    n->ending = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    if (n->begun) pthread_join(n->thread, NULL);
    n->begun = false;
}
