/* SPDX-License-Identifier: BSD-3-Clause */
/* link.c - the table of links; opening, stopping and closing one. */
#include "link/link_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const struct mx_link_ops mx_link_local, mx_link_mpi;
const struct mx_link_ops *const mx_links[] = {&mx_link_local, &mx_link_mpi, NULL};

const struct mx_link_ops *mx_link_find(const char *name) {
    for (int i = 0; mx_links[i] != NULL; i++)
        if (strcmp(mx_links[i]->name, name) == 0) return mx_links[i];
    return NULL;
}

int mx_link_open(const struct mx_link_ops *ops, mx_why *why, mx_link **out) {
    mx_link *l = calloc(1, sizeof *l);
    if (l == NULL) return mx_fail(why, -ENOMEM, "no memory for the link %s", ops->name);
    l->ops = ops;
    int err = ops->open(why, &l->state, &l->rank, &l->ranks);
    if (err < 0) return free(l), err;
    for (int end = 0; end < 2; end++)
        for (int sends = 0; sends < 2; sends++)
            mx_lane_make(l, &l->lane[end][sends], sends, (l->rank + (end == 0 ? l->ranks - 1 : 1)) % l->ranks,
                         (end == 1) == (sends == 1) ? MX_CHANNEL_UP : MX_CHANNEL_DOWN);
    mx_lane_make(l, &l->words, false, 0, MX_CHANNEL_WORDS);
    return *out = l, 0;
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

void mx_link_quit(void *link) { mx_link_stop(link); }

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
        mx_lane_end(n);
        pthread_cond_destroy(&n->changed);
        pthread_mutex_destroy(&n->lock);
    }
    l->ops->close(l->state, status);
    free(l);
}

const char *mx_link_name(const mx_link *l) { return l->ops->name; }
int mx_link_rank(const mx_link *l) { return l->rank; }
int mx_link_ranks(const mx_link *l) { return l->ranks; }
