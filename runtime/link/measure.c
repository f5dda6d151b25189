/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.c - measures the bytes per second of a link, and the least time of a message. */
#include "link/link_private.h"

#include "machine/clock.h"

#include <errno.h>
#include <stdlib.h>

enum { TRIAL_PIECE_BYTES = 256 << 10 }; /* about as those of a run */
enum { LEAST_TRIAL = 64 << 10, MOST_TRIAL = 16 << 20, SHORT_TRIALS = 20 };

/* A byte there and back: seconds, the least of some. */
static int turn_around(mx_link *l, int peer, int times, mx_why *why, double *seconds) {
    char byte = 0;
    *seconds = 1e9;
    for (int i = 0; i < times; i++) {
        const double begin = mx_clock_s();
        int err = l->rank < peer ? mx_link_give(l, peer, MX_CHANNEL_RUN, &byte, 1, why)
                                 : mx_link_get(l, peer, MX_CHANNEL_RUN, &byte, 1, why);
        if (err == 0)
            err = l->rank < peer ? mx_link_get(l, peer, MX_CHANNEL_RUN, &byte, 1, why)
                                 : mx_link_give(l, peer, MX_CHANNEL_RUN, &byte, 1, why);
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
            err = l->rank < peer ? mx_link_give(l, peer, MX_CHANNEL_RUN, &more, 1, why)
                                 : mx_link_get(l, peer, MX_CHANNEL_RUN, &more, 1, why);
    }
    if (err < 0) return err;
    const double moving = last_s - before_s;
    const double rate = (double)(bytes - bytes / 4) / (moving > last_s / 4 ? moving : last_s / 4);
    if (rate < *bytes_per_s) *bytes_per_s = rate;
    if (shortest / 2 > *latency_s) *latency_s = shortest / 2;
    return 0;
}

/* Bytes that were sent for the measurement do not count as messages of the run. */
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
