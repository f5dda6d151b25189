/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline_end.c - how a pipeline ends, wanted or not, and what it tells of its events. */
#include "wavefront/pipeline_private.h"

#include <memext/backend.h>

#include <errno.h>
#include <string.h>

/* Lock held. */
void mx_wf_fail_locked(struct pipeline *p, int err) {
    if (p->error == 0) p->error = err;
    atomic_store(&p->over, true);
    pthread_cond_broadcast(&p->changed);
}

void mx_wf_fail(struct pipeline *p, int err) {
    pthread_mutex_lock(&p->lock);
    mx_wf_fail_locked(p, err);
    pthread_mutex_unlock(&p->lock);
}

void mx_wf_fail_transfer(struct pipeline *p, int err, bool write, int m, int64_t row, int64_t j) {
    pthread_mutex_lock(&p->lock);
    if (p->error == 0)
        mx_fail(p->why, err, "%s tile (%lld, %lld) of matrix %s failed: %s", write ? "writing" : "reading",
                (long long)(row % p->g->tile_rows), (long long)j, mx_wf_names[m], strerror(-err));
    mx_wf_fail_locked(p, err);
    pthread_mutex_unlock(&p->lock);
}

bool mx_wf_is_over(struct pipeline *p) {
    if (atomic_load(&p->over)) return true;
    if (p->x->stop == NULL || *p->x->stop == 0) return false;
    mx_wf_fail(p, -EINTR);
    return true;
}

void mx_wf_tell(const struct pipeline *p, const char *name, uint64_t begin, uint64_t end, uint64_t amount,
                int64_t row, int64_t j) {
    if (p->x->event == NULL) return;
    const struct mx_wf_tile t = mx_wf_tile(p->g, row % p->g->tile_rows, j < 0 ? 0 : j);
    const struct mx_wf_event e = {name,   begin,        end,
                                  amount, {t.r0, t.r1}, {t.c0, j < 0 ? p->g->cols + 2 : t.c1}};
    p->x->event(p->x->context, &e);
}
