/* SPDX-License-Identifier: BSD-3-Clause */
/* probes.c - the probes of all ranks, and the one file of their traces. */
#include "run/ranks/ranks.h"

#include "machine/file.h"
#include "run/state.h"

#include <stdlib.h>
#include <string.h>

int mx_run_split_probes(struct mx_run *r) {
    struct mx_run_points *q = &r->parts.points;
    const struct mx_problem *p = &r->o.problem;
    const int ranks = r->ranks.ranks;
    if (mx_run_alone(r)) return 0;
    int64_t n = 0, *counts = calloc((size_t)ranks, sizeof *counts), *mine = NULL;
    int64_t *numbers = calloc((size_t)q->probes.n + 1, sizeof *numbers);
    int err = counts == NULL || numbers == NULL ? mx_fail(&r->why, -ENOMEM, "no memory for the probes") : 0;
    for (int64_t i = 0; i < q->all && err == 0; i++) {
        struct mx_point point = q->probes.point[i];
        if (point.z < p->first_plane || point.z >= p->first_plane + p->nz) continue;
        numbers[n] = point.number;
        point.number = n;
        q->probes.point[n++] = point;
    }
    q->probes.n = n;
    if (err == 0) err = mx_points_index(&q->probes, p, &r->why);
    if (err == 0) err = mx_link_gather(r->ranks.link, MX_CHANNEL_RUN, &n, sizeof n, counts, &r->why);
    for (int i = 0; i < ranks && err == 0; i++)
        if (counts[i] > q->most) q->most = counts[i];
    if (err == 0) {
        mine = malloc((size_t)(q->most + 1) * sizeof *mine);
        q->column = malloc((size_t)(q->most * ranks + 1) * sizeof *q->column);
        if (mine == NULL || q->column == NULL) err = mx_fail(&r->why, -ENOMEM, "no memory for the probes");
    }
    for (int64_t i = 0; i < q->most && err == 0; i++) mine[i] = i < n ? numbers[i] : -1;
    if (err == 0)
        err = mx_link_gather(r->ranks.link, MX_CHANNEL_RUN, mine, (size_t)q->most * sizeof *mine, q->column,
                             &r->why);
    free(mine);
    free(numbers);
    free(counts);
    return err;
}

/* Rows of some steps of all ranks' probes, put together by the first one. */
static int write_together(struct mx_run *r, int64_t from, int64_t steps, const double *mine, mx_why *why) {
    struct mx_run_points *q = &r->parts.points;
    const int64_t block = steps * q->most;
    const int ranks = r->ranks.ranks;
    double *all = calloc((size_t)(block * ranks) + 1, sizeof *all),
           *rows = calloc((size_t)(steps * q->all) + 1, sizeof *rows);
    int err = all == NULL || rows == NULL ? mx_fail(why, -ENOMEM, "no memory for rows of traces") : 0;
    if (err == 0)
        err = mx_link_gather(r->ranks.link, MX_CHANNEL_RUN, mine, (size_t)block * sizeof *mine, all, why);
    for (int64_t i = 0; i < ranks * q->most && err == 0; i++)
        for (int64_t s = 0; s < steps && q->column[i] >= 0; s++)
            rows[s * q->all + q->column[i]] = all[i / q->most * block + s * q->most + i % q->most];
    if (err == 0 && q->fd >= 0) {
        err = mx_write_all(q->fd, rows, (size_t)(steps * q->all) * sizeof *rows,
                           MX_TRACES_HEAD_BYTES + 8 * from * q->all);
        if (err < 0) mx_fail(why, err, "traces could not be written: %s", strerror(-err));
    }
    free(all);
    free(rows);
    return err;
}

/* So many steps at a time that the rows of all are of moderate size; all ranks in the same pieces. */
int mx_run_write_traces(struct mx_run *r, int64_t end, mx_why *why) {
    enum { MOST_ROWS = 1 << 16 };
    struct mx_run_points *q = &r->parts.points;
    struct mx_traces *t = &q->traces;
    if (mx_run_alone(r)) return mx_traces_file_write(q->fd, t, end, why);
    const int64_t most = MOST_ROWS / (q->most * r->ranks.ranks + 1) + 1;
    double *own = calloc((size_t)(most * q->most) + 1, sizeof *own),
           *packed = calloc((size_t)(most * q->most) + 1, sizeof *packed);
    int err = own == NULL || packed == NULL ? mx_fail(why, -ENOMEM, "no memory for rows of traces") : 0;
    while (err == 0 && atomic_load(&t->taken) < end) {
        const int64_t from = atomic_load(&t->taken), to = from + most < end ? from + most : end;
        err = mx_traces_take(t, to, own, why);
        for (int64_t s = 0; s < to - from && err == 0; s++)
            memcpy(packed + s * q->most, own + s * t->n, (size_t)t->n * sizeof *own);
        if (err == 0) err = write_together(r, from, to - from, packed, why);
    }
    free(own);
    free(packed);
    return err;
}
