/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline_read.c - the thread that reads tiles ahead, in the order in which they are needed. */
#include "wavefront/pipeline_private.h"

#include "machine/clock.h"

#include <errno.h>
#include <stdlib.h>

struct load {
    mx_ticket *tickets[MX_WF_MATRICES];
    uint64_t begin_ns;
};

/* Lock held. The Buffer that the pass reads must hold the row, and the set must be empty. */
static bool may_load(const struct pipeline *p, int64_t tile) {
    const int64_t row = tile / p->g->tile_cols, pass = row / p->g->tile_rows;
    if (p->used[tile % p->x->plan->ahead] < tile / p->x->plan->ahead) return false;
    if (pass == 0) return true;
    if (p->x->plan->unchained) return p->committed_passes >= pass;
    return p->stored_rows > row - p->g->tile_rows;
}

static int start_load(struct pipeline *p, int64_t tile, struct load *l) {
    const struct mx_wf_execution *x = p->x;
    const int64_t row = tile / p->g->tile_cols, j = tile % p->g->tile_cols;
    const int64_t pass = row / p->g->tile_rows, i = row % p->g->tile_rows;
    *l = (struct load){.begin_ns = mx_clock_ns()};
    for (int m = 0; m < MX_WF_MATRICES; m++) {
        mx_buffer *b = m == MX_WF_ZA ? x->data[(x->source + pass) % 2] : x->fixed[m];
        int64_t n = mx_wf_spans(p->g, (enum mx_wf_matrix)m, i, j, mx_wf_set(p, tile, m), p->load_spans);
        int err = mx_buffer_read(b, p->load_spans, (size_t)n, &l->tickets[m]);
        if (err < 0) return mx_wf_fail_transfer(p, err, false, m, row, j), err;
    }
    return 0;
}

static int finish_load(struct pipeline *p, int64_t tile, struct load *l) {
    const int64_t row = tile / p->g->tile_cols, j = tile % p->g->tile_cols;
    uint64_t bytes = 0;
    int first = 0;
    for (int m = 0; m < MX_WF_MATRICES; m++) {
        int err = mx_wait(l->tickets[m]);
        l->tickets[m] = NULL;
        bytes += (uint64_t)mx_wf_tile_bytes(p->g, (enum mx_wf_matrix)m, row % p->g->tile_rows, j);
        if (err < 0 && first == 0) mx_wf_fail_transfer(p, first = err, false, m, row, j);
    }
    mx_wf_tell(p, "load", l->begin_ns, mx_clock_ns(), bytes, row, j);
    return first;
}

/* Tiles first..next-1 are being read. */
void *mx_wf_read_ahead(void *argument) {
    struct pipeline *p = argument;
    const int64_t most = p->x->plan->ahead, n = p->passes * p->g->tile_rows * p->g->tile_cols;
    struct load *loads = calloc((size_t)most, sizeof *loads);
    int64_t first = 0, next = 0;
    if (loads == NULL) mx_wf_fail(p, -ENOMEM);
    while (first < n && loads != NULL && !atomic_load(&p->over)) {
        pthread_mutex_lock(&p->lock);
        bool may = next < n && next - first < most && may_load(p, next);
        while (!may && next == first && !atomic_load(&p->over)) {
            pthread_cond_wait(&p->changed, &p->lock);
            may = may_load(p, next);
        }
        pthread_mutex_unlock(&p->lock);
        if (atomic_load(&p->over)) break;
        if (may) {
            start_load(p, next, &loads[next % most]);
            next++; /* also of one that failed: what was started of it is waited for */
            continue;
        }
        if (finish_load(p, first, &loads[first % most]) == 0) {
            pthread_mutex_lock(&p->lock);
            p->loaded = first + 1;
            pthread_cond_broadcast(&p->changed);
            pthread_mutex_unlock(&p->lock);
        }
        first++;
    }
    for (; first < next; first++) finish_load(p, first, &loads[first % most]);
    free(loads);
    return NULL;
}
