/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline_work.c - the workers: they unpack tile rows, advance them wave by wave, and hand them on to be
 * written. */
#include "wavefront/kernel.h"
#include "wavefront/pipeline_private.h"
#include "wavefront/ring.h"

#include "machine/clock.h"
#include "machine/minmax.h"

#include <errno.h>
#include <stdlib.h>

enum { CHUNK = 384, SPINS = 200 };

/* ---- how far workers are */

/* Record t of task w of a stage is to be computed next: task 0 unpacks, w is wave w, waves + 1 writes. A
 * larger one is later. */
static int64_t mark(const struct pipeline *p, int64_t stage, int64_t task, int64_t t) {
    return (stage * (p->waves + 3) + task) * (p->end + 1) + mx_min(t, p->end);
}

static void publish(struct worker *w, int64_t value) {
    struct pipeline *p = w->p;
    atomic_store(&w->progress, value);
    if (atomic_load(&p->sleepers) == 0) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Waits until the worker of `stage` is at that mark or later; true: it is. */
static bool await(struct worker *w, int64_t stage, int64_t task, int64_t t) {
    struct pipeline *p = w->p;
    const int64_t value = mark(p, stage, task, t);
    _Atomic int64_t *progress = &p->workers[stage % p->threads].progress;
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(progress) >= value) return true;
        relax();
    }
    const uint64_t begin = mx_clock_ns();
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(progress) < value && !atomic_load(&p->over)) pthread_cond_wait(&p->changed, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
    w->wait_ns += mx_clock_ns() - begin;
    return atomic_load(progress) >= value;
}

/* ---- DRAM */

static struct mx_wf_record *group_at(const struct pipeline *p, int64_t row, int64_t group) {
    const int64_t slot = row % p->slots;
    char *base = (char *)mx_block_data(p->ring) + slot * mx_wf_slot_bytes(p->g);
    return (struct mx_wf_record *)(void *)base + group * mx_wf_records(p->g->cols);
}

static struct mx_wf_rows rows_of(const struct pipeline *p, int64_t row) {
    return (struct mx_wf_rows){p->g, row % p->g->tile_rows, group_at(p, row, 0), p->top, p->bottom};
}

/* ---- tasks of a stage */

static bool take_tile(struct worker *w, int64_t tile) {
    struct pipeline *p = w->p;
    const uint64_t begin = mx_clock_ns();
    pthread_mutex_lock(&p->lock);
    while (p->loaded <= tile && !atomic_load(&p->over)) pthread_cond_wait(&p->changed, &p->lock);
    const bool there = p->loaded > tile;
    pthread_mutex_unlock(&p->lock);
    w->wait_ns += mx_clock_ns() - begin;
    return there;
}

static bool unpack_row(struct worker *w, int64_t row) {
    struct pipeline *p = w->p;
    const struct mx_wf_rows rows = rows_of(p, row);
    for (int64_t j = 0; j < p->g->tile_cols; j++) {
        const int64_t tile = row * p->g->tile_cols + j;
        if (mx_wf_is_over(p) || !take_tile(w, tile)) return false;
        const uint64_t begin = mx_clock_ns();
        for (int m = 0; m < MX_WF_MATRICES; m++)
            mx_wf_unpack(&rows, (enum mx_wf_matrix)m, j, mx_wf_set(p, tile, m), row < p->g->tile_rows);
        w->copy_ns += mx_clock_ns() - begin;
        pthread_mutex_lock(&p->lock);
        p->used[tile % p->x->plan->ahead]++;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
    }
    return true;
}

static int64_t groups_of(const struct pipeline *p, int64_t i) {
    return (mx_wf_end_row(p->g, i) - mx_wf_first_row(p->g, i) - 1) / MX_WF_LANES + 1;
}

/* Groups of a tile row with their neighbours above and below. */
static int64_t make_groups(const struct pipeline *p, int64_t row, struct mx_wf_group *out) {
    const int64_t i = row % p->g->tile_rows, n = groups_of(p, i), mb = p->g->mb;
    const int64_t height = mx_wf_end_row(p->g, i) - mx_wf_first_row(p->g, i);
    for (int64_t k = 0; k < n; k++)
        out[k] = (struct mx_wf_group){.at = group_at(p, row, k),
                                      .cols = p->g->cols,
                                      .last = k + 1 < n ? MX_WF_LANES - 1 : (height - 1) % MX_WF_LANES,
                                      .north_step = MX_WF_LANE_STEP,
                                      .south_step = MX_WF_LANE_STEP};
    for (int64_t k = 1; k < n; k++) {
        out[k].north = mx_wf_lane(out[k - 1].at, MX_WF_LANES - 1);
        out[k - 1].south = mx_wf_lane(out[k].at, 0);
    }
    if (i > 0)
        out[0].north = mx_wf_lane(group_at(p, row - 1, (mb - 1) / MX_WF_LANES), (mb - 1) % MX_WF_LANES);
    else
        out[0].north = p->top, out[0].north_step = 1;
    if (i + 1 < p->g->tile_rows)
        out[n - 1].south = mx_wf_lane(group_at(p, row + 1, 0), 0);
    else
        out[n - 1].south = p->bottom, out[n - 1].south_step = 1;
    return n;
}

/* Before records up to t1 of `wave` on a tile row: the row above has them by the same wave, which is the
 * stage before; the first tile row has none above, but that stage computed it by the wave before. */
static bool may_advance(struct worker *w, int64_t i, int64_t wave, int64_t t1) {
    const struct pipeline *p = w->p;
    const int64_t ahead = t1 + MX_WF_LANES + MX_WF_LAG * (i > 0 ? groups_of(p, i - 1) : 1);
    if (i == 0) wave--;
    if (wave == 0 || ahead >= p->end) return await(w, w->stage - 1, wave + 1, 0);
    return await(w, w->stage - 1, wave, ahead);
}

static void count_updates(struct worker *w, int64_t cells) {
    struct pipeline *p = w->p;
    w->updates += cells;
    if (p->x->progress == NULL) return;
    pthread_mutex_lock(&p->lock);
    p->updates += cells;
    p->x->progress(p->x->context, p->updates);
    pthread_mutex_unlock(&p->lock);
}

static bool advance_row(struct worker *w, int64_t row, int64_t wave, struct mx_wf_group *groups) {
    struct pipeline *p = w->p;
    const int64_t i = row % p->g->tile_rows, n = make_groups(p, row, groups);
    const int64_t end = mx_wf_end(p->g->cols, n);
    const uint64_t begin = mx_clock_ns(), waited = w->wait_ns;
    for (int64_t t = 0; t < end; t += CHUNK) {
        const int64_t t1 = mx_min(t + CHUNK, end);
        if (mx_wf_is_over(p) || !may_advance(w, i, wave, t1)) return false;
        mx_wf_advance(groups, n, t, t1);
        publish(w, mark(p, w->stage, wave, t1));
    }
    const uint64_t ended = mx_clock_ns();
    const int64_t cells = (mx_wf_end_row(p->g, i) - mx_wf_first_row(p->g, i)) * p->g->cols;
    w->update_ns += ended - begin - (w->wait_ns - waited);
    mx_wf_tell(p, "advance", begin, ended, (uint64_t)cells, row, -1);
    count_updates(w, cells);
    return true;
}

/* Staging for a tile that is to be written, once the Buffer may be overwritten. -1: it is over. */
static int64_t take_slot(struct worker *w, int64_t pass) {
    struct pipeline *p = w->p;
    const uint64_t begin = mx_clock_ns();
    pthread_mutex_lock(&p->lock);
    while ((p->committed_passes < pass || p->n_free == 0) && !atomic_load(&p->over))
        pthread_cond_wait(&p->changed, &p->lock);
    const int64_t slot = atomic_load(&p->over) ? -1 : p->free_slots[--p->n_free];
    pthread_mutex_unlock(&p->lock);
    w->wait_ns += mx_clock_ns() - begin;
    return slot;
}

static bool post_store(struct worker *w, int64_t row, int64_t j, int64_t slot, struct mx_span *spans) {
    struct pipeline *p = w->p;
    const struct mx_wf_execution *x = p->x;
    const int64_t pass = row / p->g->tile_rows, i = row % p->g->tile_rows;
    struct store s = {.slot = slot, .row = row, .j = j, .begin_ns = mx_clock_ns()};
    const int64_t n = mx_wf_spans(p->g, MX_WF_ZA, i, j, p->stores + slot * p->store_bytes, spans);
    int err = mx_buffer_write(x->data[(x->source + pass + 1) % 2], spans, (size_t)n, &s.ticket);
    if (err < 0) return mx_wf_fail_transfer(p, err, true, MX_WF_ZA, row, j), false;
    pthread_mutex_lock(&p->lock);
    p->queue[(p->queue_first + p->queue_n++) % x->plan->behind] = s;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return true;
}

static bool store_row(struct worker *w, int64_t row, struct mx_span *spans) {
    struct pipeline *p = w->p;
    const struct mx_wf_rows rows = rows_of(p, row);
    for (int64_t j = 0; j < p->g->tile_cols; j++) {
        const int64_t slot = take_slot(w, row / p->g->tile_rows);
        if (slot < 0) return false;
        const uint64_t begin = mx_clock_ns();
        mx_wf_pack(&rows, j, p->stores + slot * p->store_bytes);
        w->copy_ns += mx_clock_ns() - begin;
        if (!post_store(w, row, j, slot, spans)) return false;
    }
    return true;
}

/* ---- stages */

struct scratch {
    struct mx_wf_group *groups;
    struct mx_span *spans;
};

static bool in_pass(const struct pipeline *p, int64_t i) { return i >= 0 && i < p->g->tile_rows; }

/* Stage -1 + (number within the pass). A stage ends after the one before it: then all earlier ones are over,
 * and the rows that they read may be overwritten P stages later (mx_wf_slots). */
static bool run_stage(struct worker *w, struct scratch *s) {
    struct pipeline *p = w->p;
    const int64_t pass = w->stage / p->stages_a_pass, at = w->stage % p->stages_a_pass - 1;
    const int64_t first = pass * p->g->tile_rows;
    const int64_t waves = mx_min(p->waves, p->x->iterations - pass * p->waves);
    if (in_pass(p, at + 1) && !unpack_row(w, first + at + 1)) return false;
    publish(w, mark(p, w->stage, 1, 0));
    for (int64_t wave = 1; wave <= waves; wave++) {
        const int64_t i = at - wave + 1;
        if (in_pass(p, i) && !advance_row(w, first + i, wave, s->groups)) return false;
        publish(w, mark(p, w->stage, wave + 1, 0));
    }
    if (in_pass(p, at - waves + 1) && !store_row(w, first + at - waves + 1, s->spans)) return false;
    if (w->stage > 0 && !await(w, w->stage - 1, p->waves + 2, 0)) return false;
    publish(w, mark(p, w->stage, p->waves + 2, 0));
    return true;
}

void *mx_wf_work(void *argument) {
    struct worker *w = argument;
    struct pipeline *p = w->p;
    struct scratch s = {calloc((size_t)((p->g->mb - 1) / MX_WF_LANES + 1), sizeof *s.groups),
                        calloc((size_t)mx_wf_most_spans(p->g, MX_WF_ZA), sizeof *s.spans)};
    if (s.groups == NULL || s.spans == NULL)
        mx_wf_fail(p, -ENOMEM);
    else
        for (w->stage = w->index; w->stage < p->passes * p->stages_a_pass; w->stage += p->threads)
            if (!run_stage(w, &s)) break;
    free(s.groups);
    free(s.spans);
    return NULL;
}
