/* SPDX-License-Identifier: BSD-3-Clause */
#include "execute/take.h"
#include "engine/work.h"
#include "machine/bell.h"
#include "machine/machine.h"

#include <memext/backend.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static int take_rows(const struct mx_taking *t, const struct mx_problem *p, const struct mx_layout *layout,
                     const struct mx_taken_box *box, mx_why *why) {
    const int64_t h = p->h;
    struct mx_state_rows rows = {.problem = p,
                                 .layout = layout,
                                 .array = box->of,
                                 .y0 = mx_max(box->region.y0, mx_halo_y(p)),
                                 .y1 = mx_min(box->region.y1, p->ny + mx_halo_y(p)),
                                 .row_pitch_bytes = box->view.row_pitch_bytes};
    const int64_t z0 = mx_max(box->region.z0, h), z1 = mx_min(box->region.z1, p->nz + h);
    int err = 0;
    if (box->buffer_y != 0 || box->buffer_z != 0) return 0; /* a frame that copies the interior */
    for (int64_t z = z0; z < z1 && rows.y0 < rows.y1 && err == 0; z++) {
        if ((z - h + p->first_plane) % t->stride != 0) continue;
        rows.z = z;
        rows.rows = mx_view_row(&box->view, box->array, rows.y0, z);
        err = t->rows(t->context, box->step, &rows, why);
    }
    return err;
}

int mx_take_box(const struct mx_taking *const *taking, const struct mx_problem *p,
                const struct mx_layout *layout, const struct mx_taken_box *box, mx_why *why) {
    int err = 0;
    for (; *taking != NULL && err == 0; taking++)
        if (mx_taking_is_due(*taking, box->step))
            err = (*taking)->box != NULL ? (*taking)->box((*taking)->context, box, why)
                                         : take_rows(*taking, p, layout, box, why);
    return err;
}

int mx_take_whole(const struct mx_taking *const *taking, int64_t step, mx_why *why) {
    int err = 0;
    for (; *taking != NULL && err == 0; taking++)
        if ((*taking)->whole != NULL && mx_taking_is_due(*taking, step))
            err = (*taking)->whole((*taking)->context, step, why);
    return err;
}

struct mx_take {
    struct mx_taken_box box;
    bool end; /* of a step: freed by the thread */
    _Atomic bool done;
    struct mx_take *next;
};

struct mx_taker {
    const struct mx_taking *const *taking;
    const struct mx_problem *problem;
    const struct mx_layout *layout;
    pthread_t thread;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t changed;
    struct mx_take *first, **last;
    bool stop;
    int err;
    mx_why why;
    struct mx_bell *bell; /* of the thread that started it, and posts */
};

/* Whatever comes after an error is let go. */
static int work_on(struct mx_taker *t, const struct mx_take *take) {
    if (t->err < 0) return t->err;
    if (take->end) return mx_take_whole(t->taking, take->box.step, &t->why);
    return mx_take_box(t->taking, t->problem, t->layout, &take->box, &t->why);
}

static void *run(void *argument) {
    struct mx_taker *t = argument;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->first == NULL && !t->stop) pthread_cond_wait(&t->changed, &t->lock);
        struct mx_take *take = t->first;
        if (take == NULL) break;
        t->first = take->next;
        if (t->first == NULL) t->last = &t->first;
        pthread_mutex_unlock(&t->lock);
        const int err = work_on(t, take);
        pthread_mutex_lock(&t->lock);
        t->err = err;
        if (take->end)
            free(take);
        else
            atomic_store_explicit(&take->done, true, memory_order_release);
        mx_bell_ring(t->bell);
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

int mx_taker_start(const struct mx_taking *const *taking, const struct mx_problem *problem,
                   const struct mx_layout *layout, mx_why *why, struct mx_taker **out) {
    struct mx_taker *t = calloc(1, sizeof *t);
    if (t == NULL) return mx_fail(why, -ENOMEM, "no memory for the thread that takes snapshots");
    t->taking = taking;
    t->bell = mx_bell_mine();
    t->problem = problem;
    t->layout = layout;
    t->last = &t->first;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    const int err = mx_thread_start(&t->thread, run, t);
    if (err == 0) return *out = t, 0;
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return mx_fail(why, err, "no thread for what is written along with the sweeps: %s",
                   mx_no_thread(err).text);
}

static struct mx_take *post(struct mx_taker *t, const struct mx_taken_box *box, bool end) {
    struct mx_take *take = calloc(1, sizeof *take);
    if (take == NULL) return NULL;
    take->box = *box;
    take->end = end;
    pthread_mutex_lock(&t->lock);
    *t->last = take;
    t->last = &take->next;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return take;
}

struct mx_take *mx_taker_post(struct mx_taker *t, const struct mx_taken_box *box) {
    return post(t, box, false);
}

int mx_taker_end_step(struct mx_taker *t, int64_t step) {
    const struct mx_taken_box box = {.step = step};
    return post(t, &box, true) != NULL ? 0 : -ENOMEM;
}

bool mx_take_done(const struct mx_take *take) {
    return take == NULL || atomic_load_explicit(&take->done, memory_order_acquire);
}

int mx_taker_finish(struct mx_taker *t, struct mx_take *take, mx_why *why) {
    if (take == NULL) return 0;
    pthread_mutex_lock(&t->lock);
    while (!mx_take_done(take)) pthread_cond_wait(&t->changed, &t->lock);
    const int err = t->err;
    if (err < 0 && why != NULL) *why = t->why;
    pthread_mutex_unlock(&t->lock);
    free(take);
    return err;
}

int mx_taker_stop(struct mx_taker *t, int err, mx_why *why) {
    if (t == NULL) return err;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    if ((err == 0 || err == -EINTR) && t->err < 0) {
        err = t->err;
        if (why != NULL) *why = t->why;
    }
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return err;
}
