/* SPDX-License-Identifier: BSD-3-Clause */
#include "wavefront/pipeline.h"
#include "machine/clock.h"
#include "machine/minmax.h"

#include "machine/machine.h"
#include "wavefront/kernel.h"
#include "wavefront/ring.h"

#include <memext/backend.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 384, SPINS = 200, LINE = 64 };

struct worker {
    _Alignas(LINE) _Atomic int64_t progress; /* see mark() */
    struct pipeline *p;
    pthread_t thread;
    int32_t index;
    bool started;
    int64_t stage; /* the one it works on, counted through all passes */
    uint64_t update_ns, copy_ns, wait_ns;
    int64_t updates;
};

/* A write under way. */
struct store {
    mx_ticket *ticket;
    int64_t slot, row, j; /* staging; tile row, counted through all passes */
    uint64_t begin_ns;
};

struct load {
    mx_ticket *tickets[MX_WF_MATRICES];
    uint64_t begin_ns;
};

struct pipeline {
    const struct mx_wf_execution *x;
    const struct mx_wf_geometry *g;
    mx_why *why;
    int64_t waves, passes, slots, stages_a_pass, end; /* end: a row's last record and one */
    int32_t threads;
    mx_block *ring, *staging;
    char *sets, *stores;                /* in staging */
    int64_t set_at[MX_WF_MATRICES + 1]; /* where a matrix's tile begins in a set */
    int64_t store_bytes;
    double *top, *bottom;
    struct worker *workers;
    struct mx_span *load_spans; /* scratch of the loader */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Atomic int sleepers; /* workers that wait for another one's progress */
    _Atomic bool over;    /* something failed */
    int error;
    int64_t loaded;  /* tiles that are in DRAM, in order */
    int64_t *used;   /* by set: how often it was emptied */
    int64_t *stored; /* by slot of the ring: tiles of its row that are written */
    int64_t stored_rows, committed_passes;
    int64_t *free_slots, n_free; /* staging of stores */
    struct store *queue;         /* ring of plan->behind */
    int64_t queue_first, queue_n;
    bool all_stored;
    int64_t updates;
};

/* ------------------------------------------------------------------ the end, wanted or not */

/* Lock held. */
static void fail_locked(struct pipeline *p, int err) {
    if (p->error == 0) p->error = err;
    atomic_store(&p->over, true);
    pthread_cond_broadcast(&p->changed);
}

static void fail(struct pipeline *p, int err) {
    pthread_mutex_lock(&p->lock);
    fail_locked(p, err);
    pthread_mutex_unlock(&p->lock);
}

static void fail_transfer(struct pipeline *p, int err, bool write, int m, int64_t row, int64_t j) {
    pthread_mutex_lock(&p->lock);
    if (p->error == 0)
        mx_fail(p->why, err, "%s tile (%lld, %lld) of matrix %s failed: %s", write ? "writing" : "reading",
                (long long)(row % p->g->tile_rows), (long long)j, mx_wf_names[m], strerror(-err));
    fail_locked(p, err);
    pthread_mutex_unlock(&p->lock);
}

static bool is_over(struct pipeline *p) {
    if (atomic_load(&p->over)) return true;
    if (p->x->stop == NULL || *p->x->stop == 0) return false;
    fail(p, -EINTR);
    return true;
}

static void report(const struct pipeline *p, const char *name, uint64_t begin, uint64_t end, uint64_t amount,
                   int64_t row, int64_t j) {
    if (p->x->event == NULL) return;
    const struct mx_wf_tile t = mx_wf_tile(p->g, row % p->g->tile_rows, j < 0 ? 0 : j);
    const struct mx_wf_event e = {name,   begin,        end,
                                  amount, {t.r0, t.r1}, {t.c0, j < 0 ? p->g->cols + 2 : t.c1}};
    p->x->event(p->x->context, &e);
}

/* ------------------------------------------------------------------ how far workers are */

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

/* ------------------------------------------------------------------ DRAM */

static struct mx_wf_record *group_at(const struct pipeline *p, int64_t row, int64_t group) {
    const int64_t slot = row % p->slots;
    char *base = (char *)mx_block_data(p->ring) + slot * mx_wf_slot_bytes(p->g);
    return (struct mx_wf_record *)(void *)base + group * mx_wf_records(p->g->cols);
}

static struct mx_wf_rows rows_of(const struct pipeline *p, int64_t row) {
    return (struct mx_wf_rows){p->g, row % p->g->tile_rows, group_at(p, row, 0), p->top, p->bottom};
}

static char *set_of(const struct pipeline *p, int64_t tile, int m) {
    return p->sets + tile % p->x->plan->ahead * p->set_at[MX_WF_MATRICES] + p->set_at[m];
}

/* ------------------------------------------------------------------ reading ahead */

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
        int64_t n = mx_wf_spans(p->g, (enum mx_wf_matrix)m, i, j, set_of(p, tile, m), p->load_spans);
        int err = mx_buffer_read(b, p->load_spans, (size_t)n, &l->tickets[m]);
        if (err < 0) return fail_transfer(p, err, false, m, row, j), err;
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
        if (err < 0 && first == 0) fail_transfer(p, first = err, false, m, row, j);
    }
    report(p, "load", l->begin_ns, mx_clock_ns(), bytes, row, j);
    return first;
}

/* Tiles first..next-1 are being read. */
static void *read_ahead(void *argument) {
    struct pipeline *p = argument;
    const int64_t most = p->x->plan->ahead, n = p->passes * p->g->tile_rows * p->g->tile_cols;
    struct load *loads = calloc((size_t)most, sizeof *loads);
    int64_t first = 0, next = 0;
    if (loads == NULL) fail(p, -ENOMEM);
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

/* ------------------------------------------------------------------ writing behind, commits */

static int commit_pass(struct pipeline *p, int64_t pass) {
    const struct mx_wf_execution *x = p->x;
    const int64_t done = mx_min((pass + 1) * p->waves, x->iterations);
    const uint64_t begin = mx_clock_ns();
    int err = x->commit == NULL ? 0 : x->commit(x->context, done, (int32_t)((x->source + pass + 1) % 2));
    report(p, "commit", begin, mx_clock_ns(), (uint64_t)done, 0, -1);
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
        fail_locked(p, err);
    else
        p->committed_passes = pass + 1;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static void *write_behind(void *argument) {
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
        if (err < 0) fail_transfer(p, err, true, MX_WF_ZA, s.row, s.j);
        report(p, "store", s.begin_ns, mx_clock_ns(),
               (uint64_t)mx_wf_tile_bytes(p->g, MX_WF_ZA, s.row % p->g->tile_rows, s.j), s.row, s.j);
        if (err == 0 && count_store(p, &s) && !atomic_load(&p->over)) end_pass(p);
    }
}

/* ------------------------------------------------------------------ workers: tasks of a stage */

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
        if (is_over(p) || !take_tile(w, tile)) return false;
        const uint64_t begin = mx_clock_ns();
        for (int m = 0; m < MX_WF_MATRICES; m++)
            mx_wf_unpack(&rows, (enum mx_wf_matrix)m, j, set_of(p, tile, m), row < p->g->tile_rows);
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
        if (is_over(p) || !may_advance(w, i, wave, t1)) return false;
        mx_wf_advance(groups, n, t, t1);
        publish(w, mark(p, w->stage, wave, t1));
    }
    const uint64_t ended = mx_clock_ns();
    const int64_t cells = (mx_wf_end_row(p->g, i) - mx_wf_first_row(p->g, i)) * p->g->cols;
    w->update_ns += ended - begin - (w->wait_ns - waited);
    report(p, "advance", begin, ended, (uint64_t)cells, row, -1);
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
    if (err < 0) return fail_transfer(p, err, true, MX_WF_ZA, row, j), false;
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

/* ------------------------------------------------------------------ workers: stages */

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

static void *work(void *argument) {
    struct worker *w = argument;
    struct pipeline *p = w->p;
    struct scratch s = {calloc((size_t)((p->g->mb - 1) / MX_WF_LANES + 1), sizeof *s.groups),
                        calloc((size_t)mx_wf_most_spans(p->g, MX_WF_ZA), sizeof *s.spans)};
    if (s.groups == NULL || s.spans == NULL)
        fail(p, -ENOMEM);
    else
        for (w->stage = w->index; w->stage < p->passes * p->stages_a_pass; w->stage += p->threads)
            if (!run_stage(w, &s)) break;
    free(s.groups);
    free(s.spans);
    return NULL;
}

/* ------------------------------------------------------------------ making and ending it */

static int make_blocks(struct pipeline *p) {
    const struct mx_wf_plan *plan = p->x->plan;
    struct mx_block_options o = {.budget = p->x->budget, .lock = p->x->lock};
    for (int m = 0; m < MX_WF_MATRICES; m++)
        p->set_at[m + 1] = p->set_at[m] + mx_wf_most_tile_bytes(p->g, (enum mx_wf_matrix)m);
    p->store_bytes = mx_wf_most_tile_bytes(p->g, MX_WF_ZA);
    const int64_t border = 2 * (p->g->cols + 2) * (int64_t)sizeof(double);
    const int64_t ring = p->slots * mx_wf_slot_bytes(p->g);
    int err = mx_block_create(&o, (uint64_t)(ring + border), p->why, &p->ring);
    o.device = p->x->device;
    const int64_t sets = plan->ahead * p->set_at[MX_WF_MATRICES];
    if (err == 0)
        err = mx_block_create(&o, (uint64_t)(sets + plan->behind * p->store_bytes), p->why, &p->staging);
    if (err < 0) return err;
    p->top = (double *)(void *)((char *)mx_block_data(p->ring) + ring);
    p->bottom = p->top + p->g->cols + 2;
    p->sets = mx_block_data(p->staging);
    p->stores = p->sets + sets;
    return 0;
}

static int make_tables(struct pipeline *p) {
    const struct mx_wf_plan *plan = p->x->plan;
    p->used = calloc((size_t)plan->ahead, sizeof *p->used);
    p->stored = calloc((size_t)p->slots, sizeof *p->stored);
    p->free_slots = calloc((size_t)plan->behind, sizeof *p->free_slots);
    p->queue = calloc((size_t)plan->behind, sizeof *p->queue);
    p->load_spans = calloc((size_t)mx_wf_most_spans(p->g, MX_WF_ZA), sizeof *p->load_spans);
    p->workers = aligned_alloc(LINE, (size_t)p->threads * sizeof *p->workers);
    if (p->used == NULL || p->stored == NULL || p->free_slots == NULL || p->queue == NULL ||
        p->load_spans == NULL || p->workers == NULL)
        return mx_fail(p->why, -ENOMEM, "no memory for the tables of the pipeline");
    memset(p->workers, 0, (size_t)p->threads * sizeof *p->workers);
    for (int64_t k = 0; k < plan->behind; k++) p->free_slots[p->n_free++] = k;
    for (int32_t k = 0; k < p->threads; k++) {
        p->workers[k].p = p;
        p->workers[k].index = k;
        atomic_init(&p->workers[k].progress, -1);
    }
    return 0;
}

static void run_threads(struct pipeline *p) {
    pthread_t reader, writer;
    int err = mx_thread_start(&reader, read_ahead, p);
    const bool reads = err == 0;
    if (err == 0) err = mx_thread_start(&writer, write_behind, p);
    const bool writes = reads && err == 0;
    for (int32_t k = 0; k < p->threads && err == 0; k++) {
        err = mx_thread_start(&p->workers[k].thread, work, &p->workers[k]);
        p->workers[k].started = err == 0;
    }
    if (err < 0) {
        mx_fail(p->why, err, "the threads of the pipeline cannot be started: %s", mx_no_thread(err).text);
        fail(p, err);
    }
    for (int32_t k = 0; k < p->threads; k++)
        if (p->workers[k].started) pthread_join(p->workers[k].thread, NULL);
    if (reads) pthread_join(reader, NULL);
    pthread_mutex_lock(&p->lock);
    p->all_stored = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (writes) pthread_join(writer, NULL);
}

static void take_results(const struct pipeline *p, struct mx_wf_executed *out) {
    for (int32_t k = 0; k < p->threads; k++) {
        out->update_ns += p->workers[k].update_ns;
        out->copy_ns += p->workers[k].copy_ns;
        out->wait_ns += p->workers[k].wait_ns;
        out->updates += p->workers[k].updates;
    }
    out->done = mx_min(p->committed_passes * p->waves, p->x->iterations);
    out->result = (int32_t)((p->x->source + p->committed_passes) % 2);
    out->block_bytes = mx_block_bytes(p->ring) + mx_block_bytes(p->staging);
}

static void free_pipeline(struct pipeline *p) {
    mx_block_free(p->ring);
    mx_block_free(p->staging);
    free(p->used);
    free(p->stored);
    free(p->free_slots);
    free(p->queue);
    free(p->load_spans);
    free(p->workers);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
}

int mx_wf_execute(const struct mx_wf_execution *x, mx_why *why, struct mx_wf_executed *out) {
    const struct mx_wf_plan *plan = x->plan;
    struct pipeline p = {.x = x,
                         .g = &plan->geometry,
                         .why = why,
                         .waves = plan->waves,
                         .passes = (x->iterations + plan->waves - 1) / plan->waves,
                         .slots = mx_wf_slots(plan),
                         .threads = plan->threads};
    const uint64_t begin = mx_clock_ns();
    *out = (struct mx_wf_executed){.result = x->source};
    p.stages_a_pass = p.g->tile_rows + p.waves;
    p.end = mx_wf_end(p.g->cols, (p.g->mb - 1) / MX_WF_LANES + 1) + 1;
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.changed, NULL);
    int err = make_tables(&p);
    if (err == 0) err = make_blocks(&p);
    if (err == 0) {
        if (p.passes > 0) run_threads(&p);
        take_results(&p, out);
        err = p.error;
        if (err == -EINTR && why != NULL) why->text[0] = 0;
    }
    free_pipeline(&p);
    out->total_ns = mx_clock_ns() - begin;
    return err;
}
