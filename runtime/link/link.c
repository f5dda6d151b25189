/* SPDX-License-Identifier: BSD-3-Clause */
/* link.c - what all links share: collectives, and messages that are posted and done by threads. */
#include "link/link.h"
#include "machine/clock.h"

#include "machine/bell.h"
#include "machine/machine.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern const struct mx_link_ops mx_link_local, mx_link_mpi;
const struct mx_link_ops *const mx_links[] = {&mx_link_local, &mx_link_mpi, NULL};

const struct mx_link_ops *mx_link_find(const char *name) {
    for (int i = 0; mx_links[i] != NULL; i++)
        if (strcmp(mx_links[i]->name, name) == 0) return mx_links[i];
    return NULL;
}

enum { MOST_PARTS = 2 };
enum { PIECE_BYTES = 1 << 20 };
enum { TRIAL_PIECE_BYTES = 256 << 10 }; /* about as those of a run */
enum { LEAST_TRIAL = 64 << 10, MOST_TRIAL = 16 << 20, SHORT_TRIALS = 20 };

/* One direction at one end: a thread that does one message after the other. */
struct lane {
    struct mx_link *link;
    pthread_t thread;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t changed;
    bool begun, ending, busy, stopped;
    struct iovec part[MOST_PARTS];
    size_t piece_bytes;
    int64_t pieces, ready, done; /* of the message: all, those that may go, those that have gone or come */
    int64_t asked;               /* so many of them somebody has asked for, and not got */
    struct mx_bell *bell;        /* who is to hear of those */
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

enum { LANES = 5 };

static struct lane *lane_of(mx_link *l, int i) { return i < 4 ? &l->lane[i / 2][i % 2] : &l->words; }

/* ------------------------------------------------------------------ lanes */

static int agree(const struct mx_link *l, int peer, enum mx_channel c, size_t bytes, bool sends) {
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
    int err = agree(n->link, n->peer, n->channel, bytes, n->sends);
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

static int gone(const mx_link *l, int peer, int err, mx_why *why) {
    if (err == -ECANCELED) return mx_fail(why, err, "the exchange with rank %d was given up", peer);
    if (err == -ECONNRESET)
        return mx_fail(why, err, "rank %d of %d has ended, so this one ends too", peer, l->ranks);
    return mx_fail(why, err, "the link %s to rank %d of %d failed: %s", l->ops->name, peer, l->ranks,
                   strerror(-err));
}

static int64_t pieces_of(const struct iovec *part, int parts, size_t piece_bytes) {
    size_t most = 0;
    for (int i = 0; i < parts; i++)
        if (part[i].iov_len > most) most = part[i].iov_len;
    return (int64_t)(most / piece_bytes + (most % piece_bytes > 0));
}

static int post(struct lane *n, const struct iovec *part, int parts, size_t piece_bytes, int64_t ready,
                mx_why *why) {
    int err = 0;
    pthread_mutex_lock(&n->lock);
    if (!n->begun) {
        err = mx_thread_start(&n->thread, work, n);
        n->begun = err == 0;
    }
    if (err == 0 && n->err < 0) {
        err = gone(n->link, n->peer, n->err, why);
    } else if (err < 0) {
        mx_fail(why, err, "no thread for the link to rank %d: %s", n->peer, mx_no_thread(err).text);
    } else if (n->busy || parts > MOST_PARTS) {
        err = mx_fail(why, -EBUSY, "a message to or from rank %d is under way already", n->peer);
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

static int done(struct lane *n, int64_t pieces, bool wait, mx_why *why) {
    pthread_mutex_lock(&n->lock);
    while (n->busy && n->done < pieces && wait) pthread_cond_wait(&n->changed, &n->lock);
    const bool through = !n->busy || n->done >= pieces;
    if (!through && pieces < n->asked) n->asked = pieces;
    const int err = n->busy || n->done >= pieces ? 0 : n->err;
    pthread_mutex_unlock(&n->lock);
    return err < 0 ? gone(n->link, n->peer, err, why) : through;
}

static int more(struct lane *n, int64_t ready, mx_why *why) {
    pthread_mutex_lock(&n->lock);
    const int err = n->err;
    if (ready > n->ready) n->ready = ready, pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    return err < 0 ? gone(n->link, n->peer, err, why) : 0;
}

int mx_link_send(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, int64_t ready,
                 mx_why *why) {
    return post(&((mx_link *)link)->lane[end][1], part, n, piece_bytes, ready, why);
}
int mx_link_more(void *link, int end, int64_t ready, mx_why *why) {
    return more(&((mx_link *)link)->lane[end][1], ready, why);
}
int mx_link_receive(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, mx_why *why) {
    return post(&((mx_link *)link)->lane[end][0], part, n, piece_bytes, 0, why);
}
int mx_link_sent(void *link, int end, bool wait, mx_why *why) {
    return done(&((mx_link *)link)->lane[end][1], INT64_MAX, wait, why);
}
int mx_link_received(void *link, int end, int64_t pieces, bool wait, mx_why *why) {
    return done(&((mx_link *)link)->lane[end][0], pieces, wait, why);
}
void mx_link_quit(void *link) { mx_link_stop(link); }

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

/* ------------------------------------------------------------------ open, close */

static void make_lane(mx_link *l, struct lane *n, bool sends, int peer, enum mx_channel channel) {
    n->link = l;
    n->sends = sends;
    n->peer = peer;
    n->channel = channel;
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->changed, NULL);
}

int mx_link_open(const struct mx_link_ops *ops, mx_why *why, mx_link **out) {
    mx_link *l = calloc(1, sizeof *l);
    if (l == NULL) return mx_fail(why, -ENOMEM, "no memory for the link %s", ops->name);
    l->ops = ops;
    int err = ops->open(why, &l->state, &l->rank, &l->ranks);
    if (err < 0) return free(l), err;
    for (int end = 0; end < 2; end++)
        for (int sends = 0; sends < 2; sends++)
            make_lane(l, &l->lane[end][sends], sends, (l->rank + (end == 0 ? l->ranks - 1 : 1)) % l->ranks,
                      (end == 1) == (sends == 1) ? MX_CHANNEL_UP : MX_CHANNEL_DOWN);
    make_lane(l, &l->words, false, 0, MX_CHANNEL_WORDS);
    return *out = l, 0;
}

static void end_lane(struct lane *n) {
    pthread_mutex_lock(&n->lock);
    n->ending = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    if (n->begun) pthread_join(n->thread, NULL);
    n->begun = false;
}

void mx_link_stop(mx_link *l) {
    if (l == NULL) return;
    l->ops->stop(l->state);
    for (int i = 0; i < LANES; i++) {
        struct lane *n = lane_of(l, i);
        pthread_mutex_lock(&n->lock);
        n->stopped = true; /* pieces that it waits for will not be ready */
        pthread_cond_broadcast(&n->changed);
        while (n->busy) pthread_cond_wait(&n->changed, &n->lock);
        pthread_mutex_unlock(&n->lock);
    }
}

bool mx_link_leaves(const mx_link *l) { return l->ops->leave != NULL; }

void mx_link_leave(mx_link *l, int status, bool stopped) {
    if (l == NULL || l->ops->leave == NULL) return;
    mx_link_stop(l);
    l->ops->leave(l->state, status, stopped);
}

void mx_link_close(mx_link *l, int status) {
    if (l == NULL) return;
    if (status != 0) l->ops->stop(l->state);
    for (int i = 0; i < LANES; i++) {
        struct lane *n = lane_of(l, i);
        end_lane(n);
        pthread_cond_destroy(&n->changed);
        pthread_mutex_destroy(&n->lock);
    }
    l->ops->close(l->state, status);
    free(l);
}

const char *mx_link_name(const mx_link *l) { return l->ops->name; }
int mx_link_rank(const mx_link *l) { return l->rank; }
int mx_link_ranks(const mx_link *l) { return l->ranks; }

/* ------------------------------------------------------------------ collectives */

static int give(mx_link *l, int peer, enum mx_channel c, const void *data, size_t bytes, mx_why *why) {
    int err = agree(l, peer, c, bytes, true);
    if (err == 0) err = l->ops->send(l->state, peer, c, data, bytes);
    return err < 0 ? gone(l, peer, err, why) : 0;
}

static int take(mx_link *l, int peer, enum mx_channel c, void *data, size_t bytes, mx_why *why) {
    int err = agree(l, peer, c, bytes, false);
    if (err == 0) err = l->ops->receive(l->state, peer, c, data, bytes);
    return err < 0 ? gone(l, peer, err, why) : 0;
}

int mx_link_gather(mx_link *l, enum mx_channel c, const void *mine, size_t bytes, void *all, mx_why *why) {
    char *to = all;
    int err = 0;
    if (l->rank > 0) err = give(l, 0, c, mine, bytes, why);
    if (l->rank > 0) return err < 0 ? err : take(l, 0, c, all, bytes * (size_t)l->ranks, why);
    memmove(to, mine, bytes);
    for (int i = 1; i < l->ranks && err == 0; i++) err = take(l, i, c, to + (size_t)i * bytes, bytes, why);
    for (int i = 1; i < l->ranks && err == 0; i++) err = give(l, i, c, all, bytes * (size_t)l->ranks, why);
    return err;
}

int mx_link_share(mx_link *l, enum mx_channel c, int from, void *data, size_t bytes, mx_why *why) {
    int err = 0;
    if (l->rank != from) return take(l, from, c, data, bytes, why);
    for (int i = 0; i < l->ranks && err == 0; i++)
        if (i != from) err = give(l, i, c, data, bytes, why);
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
    int err = take(l, peer, MX_CHANNEL_RUN, &bytes, sizeof bytes, why);
    if (err < 0) return err;
    if ((*text = calloc(1, bytes + 1)) == NULL) return mx_fail(why, -ENOMEM, "no memory for rank %d", peer);
    return take(l, peer, MX_CHANNEL_RUN, *text, bytes, why);
}

int mx_link_collect(mx_link *l, const char *mine, char **text, mx_why *why) {
    const uint64_t bytes = strlen(mine);
    int err = 0;
    if (l->rank > 0) {
        err = give(l, 0, MX_CHANNEL_RUN, &bytes, sizeof bytes, why);
        return err < 0 ? err : give(l, 0, MX_CHANNEL_RUN, mine, bytes, why);
    }
    for (int i = 0; i < l->ranks; i++) text[i] = NULL;
    if ((text[0] = strdup(mine)) == NULL) err = mx_fail(why, -ENOMEM, "no memory for the ranks");
    for (int i = 1; i < l->ranks && err == 0; i++) err = collect_one(l, i, &text[i], why);
    for (int i = 0; i < l->ranks && err < 0; i++) free(text[i]), text[i] = NULL;
    return err;
}

int mx_link_hand(mx_link *l, int from, void *data, size_t bytes, mx_why *why) {
    return l->rank == from ? give(l, 0, MX_CHANNEL_RUN, data, bytes, why)
                           : take(l, from, MX_CHANNEL_RUN, data, bytes, why);
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
            err = give(l, 0, MX_CHANNEL_RUN, &n, sizeof n, why);
            if (err == 0 && n > 0) err = give(l, 0, MX_CHANNEL_RUN, piece, (size_t)n, why);
            if (err == 0 && failed < 0)
                err = mx_fail(why, failed, "a file of rank %d cannot be read: %s", from, strerror(-failed));
        } else {
            err = take(l, from, MX_CHANNEL_RUN, &n, sizeof n, why);
            if (err == 0 && n > 0) err = take(l, from, MX_CHANNEL_RUN, piece, (size_t)n, why);
            if (err == 0 && (err = write_piece(fd, piece, n)) < 0)
                mx_fail(why, err, "what rank %d sends cannot be written: %s", from, strerror(-err));
        }
    }
    free(piece);
    return err;
}

/* ------------------------------------------------------------------ what rank 0 decides */

int mx_link_say(mx_link *l, int64_t word, mx_why *why) {
    int err = 0;
    for (int i = 1; i < l->ranks && err == 0; i++)
        err = give(l, i, MX_CHANNEL_WORDS, &word, sizeof word, why);
    return err;
}

int mx_link_heard(mx_link *l, bool wait, int64_t *word, mx_why *why) {
    const struct iovec part = {&l->word, sizeof l->word};
    int err = l->listens ? 0 : post(&l->words, &part, 1, sizeof l->word, 0, why);
    if (err < 0) return err;
    l->listens = true;
    const int here = done(&l->words, 1, wait, why);
    if (here <= 0) return here;
    l->listens = false;
    return *word = l->word, 1;
}

/* ------------------------------------------------------------------ what it does */

/* A byte there and back: seconds, the least of some. */
static int turn_around(mx_link *l, int peer, int times, mx_why *why, double *seconds) {
    char byte = 0;
    *seconds = 1e9;
    for (int i = 0; i < times; i++) {
        const double begin = mx_clock_s();
        int err = l->rank < peer ? give(l, peer, MX_CHANNEL_RUN, &byte, 1, why)
                                 : take(l, peer, MX_CHANNEL_RUN, &byte, 1, why);
        if (err == 0)
            err = l->rank < peer ? take(l, peer, MX_CHANNEL_RUN, &byte, 1, why)
                                 : give(l, peer, MX_CHANNEL_RUN, &byte, 1, why);
        if (err < 0) return err;
        const double s = mx_clock_s() - begin;
        if (s < *seconds) *seconds = s;
    }
    return 0;
}

/* A message each way at the same time, as sweeps send them: seconds, the lesser of two. data: [2 * bytes] */
static int both_ways(mx_link *l, int peer, char *data, size_t bytes, mx_why *why, double *seconds) {
    const int end = l->rank < peer ? 1 : 0;
    const struct iovec out = {data, bytes}, in = {data + bytes, bytes};
    double nothing;
    *seconds = 1e9;
    for (int i = 0; i < 2; i++) {
        int err = turn_around(l, peer, 1, why, &nothing);
        const double begin = mx_clock_s();
        if (err == 0) err = mx_link_receive(l, end, &in, 1, TRIAL_PIECE_BYTES, why);
        if (err == 0) err = mx_link_send(l, end, &out, 1, TRIAL_PIECE_BYTES, INT64_MAX, why);
        if (err == 0) err = mx_link_received(l, end, INT64_MAX, true, why);
        if (err >= 0) err = mx_link_sent(l, end, true, why);
        if (err < 0) return err;
        const double s = mx_clock_s() - begin;
        if (s < *seconds) *seconds = s;
    }
    return 0;
}

/* As many bytes as take a while; the lower rank says when it is enough. The rate is that of the bytes by
 * which the longest message was longer than the one before it: the first ones of a link may pass faster than
 * it goes on. */
static int measure_pair(mx_link *l, int peer, char *data, double *bytes_per_s, double *latency_s,
                        mx_why *why) {
    static const double enough_s = 0.05;
    double before_s = 0, last_s = 0, shortest;
    size_t bytes = LEAST_TRIAL / 4;
    char more = 1;
    int err = turn_around(l, peer, SHORT_TRIALS, why, &shortest);
    while (err == 0 && more) {
        bytes *= 4;
        before_s = last_s;
        err = both_ways(l, peer, data, bytes, why, &last_s);
        more = bytes == LEAST_TRIAL || (last_s < enough_s && bytes * 4 <= MOST_TRIAL);
        if (err == 0)
            err = l->rank < peer ? give(l, peer, MX_CHANNEL_RUN, &more, 1, why)
                                 : take(l, peer, MX_CHANNEL_RUN, &more, 1, why);
    }
    if (err < 0) return err;
    const double moving = last_s - before_s;
    const double rate = (double)(bytes - bytes / 4) / (moving > last_s / 4 ? moving : last_s / 4);
    if (rate < *bytes_per_s) *bytes_per_s = rate;
    if (shortest / 2 > *latency_s) *latency_s = shortest / 2;
    return 0;
}

/* What was sent to measure is no message of the run. */
static void count_anew(mx_link *l) {
    for (int i = 0; i < 4; i++) {
        struct lane *n = &l->lane[i / 2][i % 2];
        pthread_mutex_lock(&n->lock);
        n->bytes = 0;
        pthread_mutex_unlock(&n->lock);
    }
}

int mx_link_measure(mx_link *l, double *bytes_per_s, double *latency_s, mx_why *why) {
    struct found {
        double bytes_per_s, latency_s;
    } mine = {1e15, 0}, *all = calloc((size_t)l->ranks, sizeof *all);
    char *data = calloc(2, MOST_TRIAL);
    int err = all == NULL || data == NULL ? mx_fail(why, -ENOMEM, "no memory to measure the link") : 0;
    for (int odd = 0; odd < 2 && err == 0; odd++) { /* 0-1, 2-3, ... and then 1-2, 3-4, ... */
        const int peer = (l->rank & 1) == odd ? l->rank + 1 : l->rank - 1;
        if (peer >= 0 && peer < l->ranks)
            err = measure_pair(l, peer, data, &mine.bytes_per_s, &mine.latency_s, why);
    }
    if (err == 0) err = mx_link_gather(l, MX_CHANNEL_RUN, &mine, sizeof mine, all, why);
    for (int i = 0; i < l->ranks && err == 0; i++) {
        if (all[i].bytes_per_s < mine.bytes_per_s) mine.bytes_per_s = all[i].bytes_per_s;
        if (all[i].latency_s > mine.latency_s) mine.latency_s = all[i].latency_s;
    }
    if (err < 0) mx_link_stop(l); /* a lane may be at the data still */
    free(all);
    free(data);
    count_anew(l);
    if (err == 0) *bytes_per_s = mine.bytes_per_s, *latency_s = mine.latency_s;
    return err;
}

/* ------------------------------------------------------------------ in turns */

int mx_link_take_turn(mx_link *l, void *data, size_t bytes, mx_why *why) {
    return l->rank == 0 ? 0 : take(l, l->rank - 1, MX_CHANNEL_RUN, data, bytes, why);
}

int mx_link_pass_turn(mx_link *l, const void *data, size_t bytes, mx_why *why) {
    return l->rank == l->ranks - 1 ? 0 : give(l, l->rank + 1, MX_CHANNEL_RUN, data, bytes, why);
}
