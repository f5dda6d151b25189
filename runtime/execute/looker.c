/* SPDX-License-Identifier: BSD-3-Clause */
#include "execute/looker.h"

#include "machine/bell.h"
#include "machine/machine.h"
#include "machine/minmax.h"

#include <memext/backend.h>

#include <pthread.h>
#include <stdlib.h>

enum { MOST_LOOKERS = 8 };
/* What a thread takes at a time. */
#define PIECE_BYTES (1 << 20)

struct mx_looker {
    const struct mx_problem *problem;
    const struct mx_layout *layout;
    struct mx_bell *bell; /* of the thread that posts */
    pthread_t threads[MOST_LOOKERS];
    int32_t n_threads;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t work, ended;
    struct mx_looking *head, **tail; /* with pieces left to take */
    bool stop;
};

/* Piece i of the rows: plane after plane. */
static void look_at_piece(const struct mx_problem *p, const struct mx_layout *layout,
                          const struct mx_looking *l, int64_t i) {
    const int64_t pieces = mx_ceil_div(l->region.y1 - l->region.y0, l->rows);
    const int64_t z = l->region.z0 + i / pieces, y0 = l->region.y0 + i % pieces * l->rows;
    const struct mx_state_rows rows = {.problem = p,
                                       .layout = layout,
                                       .array = l->array,
                                       .z = z,
                                       .y0 = y0,
                                       .y1 = mx_min(y0 + l->rows, l->region.y1),
                                       .rows = mx_view_row(&l->view, l->view_array, y0, z),
                                       .row_pitch_bytes = l->view.row_pitch_bytes};
    struct mx_nonfinite found = {.cells = 0};
    mx_nonfinite_rows(&rows, &found);
    if (found.cells == 0) return;
    pthread_mutex_lock(&l->finding->lock);
    mx_nonfinite_add(&l->finding->found, &found);
    pthread_mutex_unlock(&l->finding->lock);
}

static int64_t count_pieces(const struct mx_looking *l) {
    return mx_ceil_div(l->region.y1 - l->region.y0, l->rows) * (l->region.z1 - l->region.z0);
}

static int64_t rows_of_piece(const struct mx_looking *l) {
    return mx_max(PIECE_BYTES / l->view.row_pitch_bytes, 1);
}

void mx_look_at(const struct mx_problem *p, const struct mx_layout *layout,
                const struct mx_looking *looking) {
    struct mx_looking l = *looking;
    l.rows = rows_of_piece(&l);
    for (int64_t i = 0, n = count_pieces(&l); i < n; i++) look_at_piece(p, layout, &l, i);
}

/* Lock held: a piece of the oldest that has some left. */
static struct mx_looking *take(struct mx_looker *k, int64_t *piece) {
    struct mx_looking *l = k->head;
    *piece = l->next++;
    if (l->next == count_pieces(l)) {
        k->head = l->following;
        if (k->head == NULL) k->tail = &k->head;
    }
    return l;
}

/* Lock held. Whoever waits may take it away once it is not under way. */
static void end(struct mx_looker *k, struct mx_looking *l) {
    atomic_store_explicit(&l->under_way, false, memory_order_release);
    pthread_cond_broadcast(&k->ended);
    mx_bell_ring(k->bell);
}

static void *run(void *looker) {
    struct mx_looker *k = looker;
    int64_t piece;
    mx_machine_unpin();
    pthread_mutex_lock(&k->lock);
    for (;;) {
        while (k->head == NULL && !k->stop) pthread_cond_wait(&k->work, &k->lock);
        if (k->head == NULL) break;
        struct mx_looking *l = take(k, &piece);
        pthread_mutex_unlock(&k->lock);
        look_at_piece(k->problem, k->layout, l, piece);
        pthread_mutex_lock(&k->lock);
        if (--l->left == 0) end(k, l);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

struct mx_looker *mx_looker_start(int32_t threads, const struct mx_problem *problem,
                                  const struct mx_layout *layout) {
    struct mx_looker *k = calloc(1, sizeof *k);
    if (k == NULL) return NULL;
    k->problem = problem;
    k->layout = layout;
    k->bell = mx_bell_mine();
    k->tail = &k->head;
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->work, NULL);
    pthread_cond_init(&k->ended, NULL);
    while (k->n_threads < mx_min(threads, MOST_LOOKERS) &&
           mx_thread_start(&k->threads[k->n_threads], run, k) == 0)
        k->n_threads++;
    if (k->n_threads > 0) return k;
    mx_looker_stop(k);
    return NULL;
}

void mx_looker_stop(struct mx_looker *k) {
    if (k == NULL) return;
    pthread_mutex_lock(&k->lock);
    k->stop = true;
    pthread_cond_broadcast(&k->work);
    pthread_mutex_unlock(&k->lock);
    for (int32_t i = 0; i < k->n_threads; i++) pthread_join(k->threads[i], NULL);
    pthread_cond_destroy(&k->ended);
    pthread_cond_destroy(&k->work);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

void mx_looker_post(struct mx_looker *k, struct mx_looking *l) {
    l->rows = rows_of_piece(l);
    l->next = 0;
    l->left = count_pieces(l);
    l->following = NULL;
    if (l->left == 0) return;
    atomic_store_explicit(&l->under_way, true, memory_order_relaxed);
    pthread_mutex_lock(&k->lock);
    *k->tail = l;
    k->tail = &l->following;
    pthread_cond_broadcast(&k->work);
    pthread_mutex_unlock(&k->lock);
}

void mx_looker_wait(struct mx_looker *k, struct mx_looking *l) {
    if (k == NULL) return;
    pthread_mutex_lock(&k->lock);
    while (!mx_looking_done(l)) pthread_cond_wait(&k->ended, &k->lock);
    pthread_mutex_unlock(&k->lock);
}
