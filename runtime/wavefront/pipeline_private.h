/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline_private.h - shared by the threads of a pipeline (pipeline.h). */
#ifndef MX_WAVEFRONT_PIPELINE_PRIVATE_H
#define MX_WAVEFRONT_PIPELINE_PRIVATE_H

#include "wavefront/pipeline.h"

#include <pthread.h>

enum { MX_WF_LINE = 64 };

struct worker {
    _Alignas(MX_WF_LINE) _Atomic int64_t progress; /* see mark() */
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

/* Returns the DRAM to which a tile of matrix m is read. */
static inline char *mx_wf_set(const struct pipeline *p, int64_t tile, int m) {
    return p->sets + tile % p->x->plan->ahead * p->set_at[MX_WF_MATRICES] + p->set_at[m];
}

/* ---- pipeline_end.c: the end, with or without an error, and events */

/* Remembers the first error and ends all threads; the first one with the lock held. */
void mx_wf_fail_locked(struct pipeline *p, int err);
void mx_wf_fail(struct pipeline *p, int err);
void mx_wf_fail_transfer(struct pipeline *p, int err, bool write, int m, int64_t row, int64_t j);
/* Has something failed, or has the user asked for the end? */
bool mx_wf_is_over(struct pipeline *p);
/* An event of tile (row, j); j -1: of a whole tile row. */
void mx_wf_tell(const struct pipeline *p, const char *name, uint64_t begin, uint64_t end, uint64_t amount,
                int64_t row, int64_t j);

/* ---- threads; each takes a pipeline, the last one a worker */

void *mx_wf_read_ahead(void *pipeline);
void *mx_wf_write_behind(void *pipeline);
void *mx_wf_work(void *worker);

#endif
