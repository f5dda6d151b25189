/* SPDX-License-Identifier: BSD-3-Clause */
#include "execute/feed.h"
#include "engine/work.h"
#include "machine/bell.h"
#include "machine/machine.h"

#include <memext/backend.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64 };

struct mx_feed {
    struct mx_region region;
    struct mx_view view;
    int32_t array;
    int64_t buffer_y, buffer_z;
    int64_t next, left; /* plane that nobody has taken; planes that are not there yet */
    _Atomic bool done;
    struct mx_feed *after;
};

struct mx_feeder {
    const struct mx_feeding *feeding;
    pthread_t thread[MOST_THREADS];
    int32_t threads, begun; /* begun: the next thread's number */
    pthread_mutex_t lock;   /* the rest, and what stands in a feed but `done` */
    pthread_cond_t changed;
    struct mx_feed *first, *last; /* of which planes are left to take */
    bool stop;
    int err;
    mx_why why;
    struct mx_bell *bell; /* of the thread that started it, and posts */
};

/* Lock held. */
static void take_plane(struct mx_feeder *f, struct mx_feed **feed, int64_t *z) {
    *feed = f->first;
    *z = (*feed)->next++;
    if ((*feed)->next < (*feed)->region.z1) return;
    f->first = (*feed)->after;
    if (f->first == NULL) f->last = NULL;
}

static int fill(const struct mx_feeder *f, int32_t thread, const struct mx_feed *feed, int64_t z,
                mx_why *why) {
    const struct mx_region g = feed->region;
    return f->feeding->rows(f->feeding->context, thread, z + feed->buffer_z, g.y0 + feed->buffer_y,
                            g.y1 + feed->buffer_y, mx_view_row(&feed->view, feed->array, g.y0, z),
                            feed->view.row_pitch_bytes, why);
}

/* Planes that come after an error stay empty. */
static void *run(void *argument) {
    struct mx_feeder *f = argument;
    pthread_mutex_lock(&f->lock);
    const int32_t thread = f->begun++;
    for (;;) {
        struct mx_feed *feed;
        int64_t z;
        mx_why why = {""};
        while (f->first == NULL && !f->stop) pthread_cond_wait(&f->changed, &f->lock);
        if (f->first == NULL) break;
        take_plane(f, &feed, &z);
        int err = f->err;
        pthread_mutex_unlock(&f->lock);
        if (err == 0) err = fill(f, thread, feed, z, &why);
        pthread_mutex_lock(&f->lock);
        if (err < 0 && f->err == 0) f->err = err, f->why = why;
        if (--feed->left > 0) continue;
        atomic_store_explicit(&feed->done, true, memory_order_release);
        mx_bell_ring(f->bell);
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

int mx_feeder_start(const struct mx_feeding *feeding, mx_why *why, struct mx_feeder **out) {
    struct mx_feeder *f = calloc(1, sizeof *f);
    if (f == NULL) return mx_fail(why, -ENOMEM, "no memory for the threads that feed the first sweep");
    f->feeding = feeding;
    f->bell = mx_bell_mine();
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    int err = 0;
    while (f->threads < feeding->threads && f->threads < MOST_THREADS && err == 0) {
        err = mx_thread_start(&f->thread[f->threads], run, f);
        f->threads += err == 0;
    }
    if (f->threads > 0) return *out = f, 0; /* fewer will do */
    mx_feeder_stop(f);
    return mx_fail(why, err, "no thread to feed the first sweep: %s", mx_no_thread(err).text);
}

struct mx_feed *mx_feeder_post(struct mx_feeder *f, const struct mx_step *s, const struct mx_view *view) {
    struct mx_feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL) return NULL;
    feed->region = s->region;
    feed->view = *view;
    feed->array = s->array;
    feed->buffer_y = s->buffer_y;
    feed->buffer_z = s->buffer_z;
    feed->next = s->region.z0;
    feed->left = s->region.z1 - s->region.z0;
    pthread_mutex_lock(&f->lock);
    if (f->last == NULL)
        f->first = feed;
    else
        f->last->after = feed;
    f->last = feed;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return feed;
}

bool mx_feed_done(const struct mx_feed *feed) {
    return atomic_load_explicit(&feed->done, memory_order_acquire);
}

int mx_feeder_finish(struct mx_feeder *f, struct mx_feed *feed, mx_why *why) {
    pthread_mutex_lock(&f->lock);
    while (!mx_feed_done(feed)) pthread_cond_wait(&f->changed, &f->lock);
    const int err = f->err;
    if (err < 0 && why != NULL) *why = f->why;
    pthread_mutex_unlock(&f->lock);
    free(feed);
    return err;
}

void mx_feeder_stop(struct mx_feeder *f) {
    if (f == NULL) return;
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    for (int32_t i = 0; i < f->threads; i++) pthread_join(f->thread[i], NULL);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
