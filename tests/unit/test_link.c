/* SPDX-License-Identifier: BSD-3-Clause */
/* test_link.c - ranks as threads over the link local: what each gives is what the others get, whole and in
 * order; a rank that is gone, and one that has stopped, end every transfer with their own error, and nobody
 * hangs. */
#include "link/link.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, ROUNDS = 20, BYTES = 300000 };

struct rank {
    pthread_t thread;
    struct mx_local_end *ends;
    int number, err;
    bool leaves;
    mx_why why;
};

static char byte_of(int rank, int round, int end, int64_t i) {
    return (char)(rank * 31 + round * 7 + end * 3 + i);
}

/* One message to each side and from each, all under way at once. */
static int exchange(mx_link *l, int round, char *out[2], char *in[2], mx_why *why) {
    const int rank = mx_link_rank(l), ranks = mx_link_ranks(l);
    int err = 0;
    for (int end = 0; end < 2 && err == 0; end++) {
        const struct iovec to[2] = {{out[end], BYTES / 3}, {out[end] + BYTES / 3, BYTES - BYTES / 3}};
        const struct iovec from[2] = {{in[end], BYTES / 2}, {in[end] + BYTES / 2, BYTES - BYTES / 2}};
        for (int64_t i = 0; i < BYTES; i++) out[end][i] = byte_of(rank, round, end, i);
        err = mx_link_receive(l, end, from, 2, SIZE_MAX, why);
        if (err == 0) err = mx_link_send(l, end, to, 2, SIZE_MAX, INT64_MAX, why);
    }
    for (int end = 0; end < 2 && err >= 0; end++) {
        const int peer = (rank + (end == 0 ? ranks - 1 : 1)) % ranks;
        err = mx_link_received(l, end, INT64_MAX, true, why);
        if (err > 0) err = mx_link_sent(l, end, true, why);
        for (int64_t i = 0; i < BYTES && err > 0; i++)
            if (in[end][i] != byte_of(peer, round, 1 - end, i)) err = -EBADMSG;
    }
    return err < 0 ? err : 0;
}

static int collect(mx_link *l, mx_why *why) {
    const int64_t mine = 100 + mx_link_rank(l);
    int64_t all[RANKS], shared = mine;
    char text[16], *texts[RANKS] = {NULL};
    int err = mx_link_gather(l, MX_CHANNEL_RUN, &mine, sizeof mine, all, why);
    for (int i = 0; i < RANKS && err == 0; i++)
        if (all[i] != 100 + i) err = -EBADMSG;
    if (err == 0) err = mx_link_share(l, MX_CHANNEL_COMMIT, 2, &shared, sizeof shared, why);
    if (err == 0 && shared != 102) err = -EBADMSG;
    snprintf(text, sizeof text, "rank %d", mx_link_rank(l));
    if (err == 0) err = mx_link_collect(l, text, texts, why);
    for (int i = 0; i < RANKS && err == 0 && mx_link_rank(l) == 0; i++)
        if (texts[i][5] != '0' + i) err = -EBADMSG;
    for (int i = 0; i < RANKS; i++) free(texts[i]);
    int64_t word = 3 * BYTES;
    if (err == 0 && mx_link_rank(l) == 0) err = mx_link_say(l, word, why);
    if (err == 0 && mx_link_rank(l) > 0) {
        int here = 0;
        for (word = 0; here == 0;) here = mx_link_heard(l, mx_link_rank(l) == 1, &word, why);
        err = here < 0 ? here : 0;
    }
    if (err == 0 && word != 3 * BYTES) err = -EBADMSG;
    return err < 0 ? err : mx_link_meet(l, MX_CHANNEL_RUN, why);
}

static void *work(void *argument) {
    struct rank *r = argument;
    char *memory = malloc(4 * (size_t)BYTES), *out[2] = {memory, memory + BYTES},
         *in[2] = {memory + 2 * BYTES, memory + 3 * BYTES};
    mx_link *l = NULL;
    mx_local_use(r->ends, r->number);
    r->err = mx_link_open(mx_link_of_process(), &r->why, &l);
    for (int round = 0; round < ROUNDS && r->err == 0; round++) {
        if (r->leaves && round == ROUNDS / 2) break;
        r->err = exchange(l, round, out, in, &r->why);
        if (r->err == 0) r->err = collect(l, &r->why);
    }
    uint64_t sent, received;
    mx_link_counters(l, &sent, &received);
    if (r->err == 0 && !r->leaves && (sent != 2ull * ROUNDS * BYTES || received != sent)) r->err = -EPROTO;
    mx_link_close(l, r->err == 0 ? 0 : 3);
    free(memory);
    return NULL;
}

static void run(struct rank rank[RANKS], int leaves) {
    mx_why why = {""};
    struct mx_local_end *ends;
    cr_assert(mx_local_make(RANKS, &why, &ends) == 0, "%s", why.text);
    for (int i = 0; i < RANKS; i++) {
        rank[i] = (struct rank){.ends = ends, .number = i, .leaves = i == leaves};
        cr_assert_eq(pthread_create(&rank[i].thread, NULL, work, &rank[i]), 0);
    }
    for (int i = 0; i < RANKS; i++) pthread_join(rank[i].thread, NULL);
    free(ends);
}

Test(link, all_get_what_all_give) {
    struct rank rank[RANKS];
    run(rank, -1);
    for (int i = 0; i < RANKS; i++)
        cr_assert_eq(rank[i].err, 0, "rank %d: %d %s", i, rank[i].err, rank[i].why.text);
}

Test(link, a_rank_that_leaves_ends_all) {
    for (int leaves = 0; leaves < RANKS; leaves++) {
        struct rank rank[RANKS];
        run(rank, leaves);
        for (int i = 0; i < RANKS; i++) {
            if (i == leaves) continue;
            cr_assert_eq(rank[i].err, -ECONNRESET, "rank %d: %d %s", i, rank[i].err, rank[i].why.text);
            cr_assert(strstr(rank[i].why.text, "has ended") != NULL, "%s", rank[i].why.text);
        }
    }
}

Test(link, refusals) {
    struct mx_local_end *ends = NULL;
    mx_why why = {""};
    mx_link *l = NULL;
    cr_assert_eq(mx_local_make(65, &why, &ends), -EINVAL);
    cr_assert(strstr(why.text, "1 to 64") != NULL);
    cr_assert_eq(mx_link_open(mx_link_find("local"), &why, &l), -ENOTSUP);
    cr_assert_eq(mx_link_open(mx_link_find("mpi"), &why, &l), -ENOTSUP);
    cr_assert_null(mx_link_find("pigeon"));
}
