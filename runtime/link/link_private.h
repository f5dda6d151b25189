/* SPDX-License-Identifier: BSD-3-Clause */
/* link_private.h - inside link/ only: the lanes of a link, and messages that are not posted. */
#ifndef MX_LINK_PRIVATE_H
#define MX_LINK_PRIVATE_H

#include "link/link.h"

#include <pthread.h>

enum { MOST_PARTS = 2, LANES = 5 };

/* One direction at one end: a thread that handles one message after another. */
struct lane {
    struct mx_link *link;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    bool begun, ending, busy, stopped;
    struct iovec part[MOST_PARTS];
    size_t piece_bytes;
    int64_t pieces, ready,
        done;      /* pieces of the message: all, those that may be sent, those that were sent or received */
    int64_t asked; /* pieces that somebody waits for */
    struct mx_bell *bell; /* rung when these have come */
    int n, err;
    uint64_t bytes;
    int peer;
    enum mx_channel channel;
    bool sends;
};

struct mx_link {
    const struct mx_link_ops *ops;
    void *state;
    int rank, ranks;
    struct lane lane[2][2]; /* [end][sends] */
    struct lane words;      /* from rank 0; without a room of its own */
    int64_t word;           /* that it is asked for, */
    bool listens;           /* and whether it is */
};

static inline struct lane *lane_of(mx_link *l, int i) { return i < 4 ? &l->lane[i / 2][i % 2] : &l->words; }

/* ---- lanes.c */

void mx_lane_make(mx_link *link, struct lane *lane, bool sends, int peer, enum mx_channel channel);
/* Ends its thread, and waits for that. */
void mx_lane_end(struct lane *lane);
/* Posts a message, whose first `ready` pieces may be sent. -EBUSY if a message is under way. */
int mx_lane_post(struct lane *lane, const struct iovec *part, int parts, size_t piece_bytes, int64_t ready,
                 mx_why *why);
/* Are `pieces` pieces done? 1, 0 or -errno with a sentence. */
int mx_lane_done(struct lane *lane, int64_t pieces, bool wait, mx_why *why);
/* Before a transfer, both sides tell the number of bytes, if the link has a function for that (agree). */
int mx_link_agree(const struct mx_link *link, int peer, enum mx_channel channel, size_t bytes, bool sends);
/* Returns err, with the sentence of a rank that cannot be reached. */
int mx_link_gone(const mx_link *link, int peer, int err, mx_why *why);

/* ---- collectives.c: messages that are sent or received at once */

int mx_link_give(mx_link *link, int peer, enum mx_channel channel, const void *data, size_t bytes,
                 mx_why *why);
int mx_link_get(mx_link *link, int peer, enum mx_channel channel, void *data, size_t bytes, mx_why *why);

#endif
