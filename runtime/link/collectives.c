/* SPDX-License-Identifier: BSD-3-Clause */
/* collectives.c - what all ranks do together, and what rank 0 tells the others. */
#include "link/link_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20 };

int mx_link_give(mx_link *l, int peer, enum mx_channel c, const void *data, size_t bytes, mx_why *why) {
    int err = mx_link_agree(l, peer, c, bytes, true);
    if (err == 0) err = l->ops->send(l->state, peer, c, data, bytes);
    return err < 0 ? mx_link_gone(l, peer, err, why) : 0;
}

int mx_link_get(mx_link *l, int peer, enum mx_channel c, void *data, size_t bytes, mx_why *why) {
    int err = mx_link_agree(l, peer, c, bytes, false);
    if (err == 0) err = l->ops->receive(l->state, peer, c, data, bytes);
    return err < 0 ? mx_link_gone(l, peer, err, why) : 0;
}

int mx_link_gather(mx_link *l, enum mx_channel c, const void *mine, size_t bytes, void *all, mx_why *why) {
    char *to = all;
    int err = 0;
    if (l->rank > 0) err = mx_link_give(l, 0, c, mine, bytes, why);
    if (l->rank > 0) return err < 0 ? err : mx_link_get(l, 0, c, all, bytes * (size_t)l->ranks, why);
    memmove(to, mine, bytes);
    for (int i = 1; i < l->ranks && err == 0; i++)
        err = mx_link_get(l, i, c, to + (size_t)i * bytes, bytes, why);
    for (int i = 1; i < l->ranks && err == 0; i++)
        err = mx_link_give(l, i, c, all, bytes * (size_t)l->ranks, why);
    return err;
}

int mx_link_share(mx_link *l, enum mx_channel c, int from, void *data, size_t bytes, mx_why *why) {
    int err = 0;
    if (l->rank != from) return mx_link_get(l, from, c, data, bytes, why);
    for (int i = 0; i < l->ranks && err == 0; i++)
        if (i != from) err = mx_link_give(l, i, c, data, bytes, why);
    return err;
}

int mx_link_meet(mx_link *l, enum mx_channel c, mx_why *why) {
    char *all = malloc((size_t)l->ranks), mine = 1;
    if (all == NULL) return mx_fail(why, -ENOMEM, "no memory for %d ranks", l->ranks);
    const int err = mx_link_gather(l, c, &mine, 1, all, why);
    free(all);
    return err;
}

static int collect_one(mx_link *l, int peer, char **text, mx_why *why) {
    uint64_t bytes = 0;
    int err = mx_link_get(l, peer, MX_CHANNEL_RUN, &bytes, sizeof bytes, why);
    if (err < 0) return err;
    if ((*text = calloc(1, bytes + 1)) == NULL) return mx_fail(why, -ENOMEM, "no memory for rank %d", peer);
    return mx_link_get(l, peer, MX_CHANNEL_RUN, *text, bytes, why);
}

int mx_link_collect(mx_link *l, const char *mine, char **text, mx_why *why) {
    const uint64_t bytes = strlen(mine);
    int err = 0;
    if (l->rank > 0) {
        err = mx_link_give(l, 0, MX_CHANNEL_RUN, &bytes, sizeof bytes, why);
        return err < 0 ? err : mx_link_give(l, 0, MX_CHANNEL_RUN, mine, bytes, why);
    }
    for (int i = 0; i < l->ranks; i++) text[i] = NULL;
    if ((text[0] = strdup(mine)) == NULL) err = mx_fail(why, -ENOMEM, "no memory for the ranks");
    for (int i = 1; i < l->ranks && err == 0; i++) err = collect_one(l, i, &text[i], why);
    for (int i = 0; i < l->ranks && err < 0; i++) free(text[i]), text[i] = NULL;
    return err;
}

int mx_link_hand(mx_link *l, int from, void *data, size_t bytes, mx_why *why) {
    return l->rank == from ? mx_link_give(l, 0, MX_CHANNEL_RUN, data, bytes, why)
                           : mx_link_get(l, from, MX_CHANNEL_RUN, data, bytes, why);
}

static int write_piece(int fd, const char *data, int64_t bytes) {
    while (bytes > 0) {
        const ssize_t n = write(fd, data, (size_t)bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? -errno : -EIO;
        data += n, bytes -= n;
    }
    return 0;
}

int mx_link_pour(mx_link *l, int from, int fd, mx_why *why) {
    char *piece = malloc(PIECE_BYTES);
    int64_t n = 1;
    int err = piece == NULL ? mx_fail(why, -ENOMEM, "no memory for a file of a rank") : 0;
    while (err == 0 && n > 0) {
        if (l->rank == from) {
            do n = read(fd, piece, PIECE_BYTES);
            while (n < 0 && errno == EINTR);
            const int failed = n < 0 ? -errno : 0;
            if (n < 0) n = 0; /* the other side has to get to an end as well */
            err = mx_link_give(l, 0, MX_CHANNEL_RUN, &n, sizeof n, why);
            if (err == 0 && n > 0) err = mx_link_give(l, 0, MX_CHANNEL_RUN, piece, (size_t)n, why);
            if (err == 0 && failed < 0)
                err = mx_fail(why, failed, "a file of rank %d cannot be read: %s", from, strerror(-failed));
        } else {
            err = mx_link_get(l, from, MX_CHANNEL_RUN, &n, sizeof n, why);
            if (err == 0 && n > 0) err = mx_link_get(l, from, MX_CHANNEL_RUN, piece, (size_t)n, why);
            if (err == 0 && (err = write_piece(fd, piece, n)) < 0)
                mx_fail(why, err, "the data that rank %d sends cannot be written: %s", from, strerror(-err));
        }
    }
    free(piece);
    return err;
}

/* ---- what rank 0 decides */

int mx_link_say(mx_link *l, int64_t word, mx_why *why) {
    int err = 0;
    for (int i = 1; i < l->ranks && err == 0; i++)
        err = mx_link_give(l, i, MX_CHANNEL_WORDS, &word, sizeof word, why);
    return err;
}

int mx_link_heard(mx_link *l, bool wait, int64_t *word, mx_why *why) {
    const struct iovec part = {&l->word, sizeof l->word};
    int err = l->listens ? 0 : mx_lane_post(&l->words, &part, 1, sizeof l->word, 0, why);
    if (err < 0) return err;
    l->listens = true;
    const int here = mx_lane_done(&l->words, 1, wait, why);
    if (here <= 0) return here;
    l->listens = false;
    return *word = l->word, 1;
}
