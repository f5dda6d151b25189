/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline_write.c - the thread that sees writes end, and commits passes. */
#include "wavefront/pipeline_private.h"

#include "machine/clock.h"
#include "machine/minmax.h"

static int commit_pass(struct pipeline *p, int64_t pass) {
    const struct mx_wf_execution *x = p->x;
    const int64_t done = mx_min((pass + 1) * p->waves, x->iterations);
    const uint64_t begin = mx_clock_ns();
    int err = x->commit == NULL ? 0 : x->commit(x->context, done, (int32_t)((x->source + pass + 1) % 2));
    mx_wf_tell(p, "commit", begin, mx_clock_ns(), (uint64_t)done, 0, -1);
    return err;
}

/* A tile is on the device. Returns true when its row ends a pass. */
static bool count_store(struct pipeline *p, const struct store *s) {
    bool ends = false;
    pthread_mutex_lock(&p->lock);
    p->free_slots[p->n_free++] = s->slot;
    p->stored[s->row % p->slots]++;
    while (p->stored[p->stored_rows % p->slots] == p->g->tile_cols) {
        p->stored[p->stored_rows % p->slots] = 0;
        p->stored_rows++;
        ends |= p->stored_rows % p->g->tile_rows == 0;
    }
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return ends;
}

static void end_pass(struct pipeline *p) {
    const int64_t pass = p->stored_rows / p->g->tile_rows - 1;
    int err = commit_pass(p, pass);
    pthread_mutex_lock(&p->lock);
    if (err < 0)
        mx_wf_fail_locked(p, err);
    else
        p->committed_passes = pass + 1;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

void *mx_wf_write_behind(void *argument) {
    struct pipeline *p = argument;
    const int64_t most = p->x->plan->behind;
    for (;;) {
        pthread_mutex_lock(&p->lock);
        while (p->queue_n == 0 && !p->all_stored) pthread_cond_wait(&p->changed, &p->lock);
        const bool any = p->queue_n > 0;
        struct store s = {0};
        if (any) {
            s = p->queue[p->queue_first];
            p->queue_first = (p->queue_first + 1) % most;
            p->queue_n--;
        }
        pthread_mutex_unlock(&p->lock);
        if (!any) return NULL;
        int err = mx_wait(s.ticket);
        if (err < 0) mx_wf_fail_transfer(p, err, true, MX_WF_ZA, s.row, s.j);
        mx_wf_tell(p, "store", s.begin_ns, mx_clock_ns(),
                   (uint64_t)mx_wf_tile_bytes(p->g, MX_WF_ZA, s.row % p->g->tile_rows, s.j), s.row, s.j);
        if (err == 0 && count_store(p, &s) && !atomic_load(&p->over)) end_pass(p);
    }
}
