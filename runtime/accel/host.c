/* SPDX-License-Identifier: BSD-3-Clause */
/* host.c - a simulated accelerator: DRAM with a capacity, and a bus with a rate in each direction. With it
 * the code for accelerators can be tested on any machine, and the models of the plan can be compared with
 * measurements. Its kernels are the engines of this process.
 *
 * Each direction of the bus is a thread that copies in order. With a rate, a copy lasts as long as its bytes
 * take at that rate. That time begins with the end of the copy before, or when the copy was handed over if
 * that is later. It does not depend on when the thread gets a core, since copies on a real bus follow one
 * another without a pause.
 */
#include "accel/accel.h"
#include "accel/spec.h"

#include "machine/clock.h"
#include "machine/machine.h"

#include <memext/backend.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { PENDING = 64 }; /* copies that a lane holds */

struct job {
    struct mx_accel_span *span;
    size_t n;
    double taken_s; /* when it was handed over */
};

struct lane {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool started, stop, from_device;
    struct job job[PENDING];
    int64_t taken;
    _Atomic int64_t done;
    double bytes_per_s; /* 0 = as fast as it goes */
    double free_s;      /* when the bus is free */
};

enum { MOST = MX_ACCEL_ALLOCATIONS };

struct host {
    struct lane lane[2]; /* MX_ACCEL_PUT, MX_ACCEL_GET */
    int64_t copies;
    uint64_t memory_bytes;
    mx_block *allocation[MOST];
};

/* ---- the bus */

static void sleep_until(double s) {
    const struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
}

/* What a bus moves is used much later, if by this process at all: it is written past the caches, as a device
 * would. The engines' tiles stay in L3, and lines that are replaced whole are not read before. */
static void copy_past_caches(char *to, const char *from, size_t bytes) {
#if defined(__SSE2__)
    enum { LINE = 64 };
    const size_t lead = (LINE - (uintptr_t)to % LINE) % LINE;
    if (bytes < 4 * LINE + lead) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, lead);
    to += lead, from += lead, bytes -= lead;
    for (; bytes >= LINE; to += LINE, from += LINE, bytes -= LINE) {
        const __m128i *f = (const __m128i *)(const void *)from;
        __m128i *t = (__m128i *)(void *)to;
        const __m128i a = _mm_loadu_si128(f), b = _mm_loadu_si128(f + 1);
        const __m128i c = _mm_loadu_si128(f + 2), d = _mm_loadu_si128(f + 3);
        _mm_stream_si128(t, a), _mm_stream_si128(t + 1, b);
        _mm_stream_si128(t + 2, c), _mm_stream_si128(t + 3, d);
    }
    _mm_sfence(); /* seen by who learns that the copy is done */
#endif
    memcpy(to, from, bytes);
}

static void move(struct lane *l, const struct job *job) {
    double begin = job->taken_s, bytes = 0;
    for (size_t i = 0; i < job->n; i++) {
        const struct mx_accel_span *s = &job->span[i];
        copy_past_caches(l->from_device ? s->host : s->device, l->from_device ? s->device : s->host,
                         s->bytes);
        bytes += (double)s->bytes;
    }
    if (l->bytes_per_s <= 0) return;
    if (begin < l->free_s) begin = l->free_s;
    l->free_s = begin + bytes / l->bytes_per_s;
    sleep_until(l->free_s);
}

static void *work(void *argument) {
    struct lane *l = argument;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        const int64_t done = atomic_load(&l->done);
        if (done == l->taken) {
            if (l->stop) break;
            pthread_cond_wait(&l->change, &l->lock);
            continue;
        }
        struct job job = l->job[done % PENDING];
        pthread_mutex_unlock(&l->lock);
        move(l, &job);
        free(job.span);
        pthread_mutex_lock(&l->lock);
        atomic_store(&l->done, done + 1);
        pthread_cond_broadcast(&l->change);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static int hand_over(struct lane *l, const struct mx_accel_span *span, size_t n, mx_why *why) {
    struct job job = {malloc((n > 0 ? n : 1) * sizeof *span), n, mx_clock_s()};
    if (job.span == NULL) return mx_fail(why, -ENOMEM, "no memory for a copy");
    memcpy(job.span, span, n * sizeof *span);
    pthread_mutex_lock(&l->lock);
    while (l->taken - atomic_load(&l->done) == PENDING) pthread_cond_wait(&l->change, &l->lock);
    l->job[l->taken++ % PENDING] = job;
    pthread_cond_broadcast(&l->change);
    pthread_mutex_unlock(&l->lock);
    return 0;
}

static int put(void *state, const struct mx_accel_span *span, size_t n, mx_why *why) {
    return hand_over(&((struct host *)state)->lane[MX_ACCEL_PUT], span, n, why);
}
static int get(void *state, const struct mx_accel_span *span, size_t n, mx_why *why) {
    return hand_over(&((struct host *)state)->lane[MX_ACCEL_GET], span, n, why);
}

/* Within the memory: done at once, whatever the queue is. */
static int copy(void *state, enum mx_accel_queue queue, const struct mx_accel_copy *c, mx_why *why) {
    struct host *h = state;
    (void)why;
    for (int64_t i = 0; i < c->n; i++)
        memcpy(c->to + i * c->to_pitch, c->from + i * c->from_pitch, (size_t)c->bytes);
    if (queue == MX_ACCEL_COPY) h->copies++;
    return 0;
}

static int64_t done(void *state, enum mx_accel_queue queue, mx_why *why) {
    struct host *h = state;
    (void)why;
    return queue <= MX_ACCEL_GET    ? atomic_load(&h->lane[queue].done)
           : queue == MX_ACCEL_COPY ? h->copies
                                    : INT64_MAX;
}

static int wait(void *state, enum mx_accel_queue queue, int64_t number, mx_why *why) {
    struct host *h = state;
    (void)why;
    if (queue > MX_ACCEL_GET) return 0;
    struct lane *l = &h->lane[queue];
    pthread_mutex_lock(&l->lock);
    while (atomic_load(&l->done) < number) pthread_cond_wait(&l->change, &l->lock);
    pthread_mutex_unlock(&l->lock);
    return 0;
}

/* ---- memory */

/* There at once, like that of a device: pages that come while a run computes cost it as much as a copy. */
static int allocate(void *state, uint64_t bytes, mx_why *why, char **address) {
    struct host *h = state;
    int i = 0;
    while (i < MOST && h->allocation[i] != NULL) i++;
    if (i == MOST) return mx_fail(why, -ENOMEM, "host has at most %d allocations (an internal limit)", MOST);
    const int err = mx_block_create(NULL, bytes, why, &h->allocation[i]);
    if (err < 0) return err;
    return *address = mx_block_data(h->allocation[i]), 0;
}

static void release(void *state, char *address) {
    struct host *h = state;
    for (int i = 0; i < MOST; i++)
        if (h->allocation[i] != NULL && mx_block_data(h->allocation[i]) == address) {
            mx_block_free(h->allocation[i]);
            h->allocation[i] = NULL;
        }
}

/* ---- open and close */

static int probe(char *device, mx_why *why) {
    (void)why;
    if (device != NULL) strcpy(device, "DRAM and the cores of this machine");
    return 0;
}

static void host_close(void *state) {
    struct host *h = state;
    for (int i = 0; i < 2; i++) {
        struct lane *l = &h->lane[i];
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_broadcast(&l->change);
        pthread_mutex_unlock(&l->lock);
        if (l->started) pthread_join(l->thread, NULL);
        pthread_cond_destroy(&l->change);
        pthread_mutex_destroy(&l->lock);
    }
    for (int i = 0; i < MOST; i++) mx_block_free(h->allocation[i]);
    free(h);
}

static int host_open(const char *keys, uint64_t memory_bytes, mx_why *why, void **state) {
    char text[64];
    double rate = 0, memory = 0;
    (void)memory_bytes;
    if (mx_accel_key(keys, "rate", text, sizeof text) && mx_accel_quantity(text, &rate) < 0)
        return mx_fail(why, -EINVAL, "--accel host: rate=%.40s is not a rate: write it like 2GB/s", text);
    if (mx_accel_key(keys, "memory", text, sizeof text) && mx_accel_quantity(text, &memory) < 0)
        return mx_fail(why, -EINVAL, "--accel host: memory=%.40s is not a size: write it like 128MiB", text);
    struct host *h = calloc(1, sizeof *h);
    if (h == NULL) return mx_fail(why, -ENOMEM, "no memory for an accelerator");
    h->memory_bytes = memory > 0 ? (uint64_t)memory : UINT64_MAX;
    int err = 0;
    for (int i = 0; i < 2; i++) {
        struct lane *l = &h->lane[i];
        pthread_mutex_init(&l->lock, NULL);
        pthread_cond_init(&l->change, NULL);
        l->from_device = i == MX_ACCEL_GET;
        l->bytes_per_s = rate;
    }
    for (int i = 0; i < 2 && err == 0; i++) {
        err = mx_thread_start(&h->lane[i].thread, work, &h->lane[i]);
        h->lane[i].started = err == 0;
    }
    if (err < 0) {
        host_close(h);
        return mx_fail(why, err, "no thread for the bus of an accelerator: %s", mx_no_thread(err).text);
    }
    return *state = h, 0;
}

static void facts(const void *state, struct mx_accel_facts *out) {
    const struct host *h = state;
    *out = (struct mx_accel_facts){.device = "host (DRAM of this machine)",
                                   .memory_bytes = h->memory_bytes,
                                   .most_bytes = h->memory_bytes,
                                   .here = true,
                                   .put_bytes_per_s = h->lane[0].bytes_per_s,
                                   .get_bytes_per_s = h->lane[1].bytes_per_s};
}

const struct mx_accel_ops mx_accel_host = {
    .name = "host",
    .summary = "a simulated device, for tests and models",
    .probe = probe,
    .open = host_open,
    .facts = facts,
    .alloc = allocate,
    .release = release,
    .put = put,
    .get = get,
    .copy = copy,
    .done = done,
    .wait = wait,
    .close = host_close,
};
