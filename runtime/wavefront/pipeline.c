/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline.c - makes a pipeline, runs its threads, and takes what they did. */
#include "wavefront/kernel.h"
#include "wavefront/pipeline_private.h"
#include "wavefront/ring.h"

#include "machine/clock.h"
#include "machine/machine.h"
#include "machine/minmax.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    p->workers = aligned_alloc(MX_WF_LINE, (size_t)p->threads * sizeof *p->workers);
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
    int err = mx_thread_start(&reader, mx_wf_read_ahead, p);
    const bool reads = err == 0;
    if (err == 0) err = mx_thread_start(&writer, mx_wf_write_behind, p);
    const bool writes = reads && err == 0;
    for (int32_t k = 0; k < p->threads && err == 0; k++) {
        err = mx_thread_start(&p->workers[k].thread, mx_wf_work, &p->workers[k]);
        p->workers[k].started = err == 0;
    }
    if (err < 0) {
        mx_fail(p->why, err, "the threads of the pipeline cannot be started: %s", mx_no_thread(err).text);
        mx_wf_fail(p, err);
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
