/* SPDX-License-Identifier: BSD-3-Clause */
#include "files/writer.h"

#include "machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, UNIT_BYTES = 4096 };

enum state { FREE, FULL, BUSY };

struct piece {
    char *dram;
    uint64_t at, bytes; /* in the file */
    enum state state;
};

struct mx_writer {
    int fd, direct_fd; /* direct_fd -1: through the page cache */
    uint64_t piece_bytes, put_bytes, end;
    mx_block *block;
    struct piece *filling; /* of the thread that puts; NULL = none */
    pthread_t thread[THREADS];
    int threads;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t changed;
    struct piece piece[MX_WRITER_PIECES];
    bool stop;
    int err;
};

/* The end of a file that is not a whole unit is filled up with zeros, and cut off when the file is closed. */
static int write_direct(const struct mx_writer *w, const struct piece *p) {
    const uint64_t whole = (p->bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
    memset(p->dram + p->bytes, 0, whole - p->bytes);
    return mx_write_all(w->direct_fd, p->dram, whole, (off_t)p->at);
}

static int write_piece(const struct mx_writer *w, const struct piece *p) {
    if (w->direct_fd >= 0) return write_direct(w, p);
    const int err = mx_write_all(w->fd, p->dram, p->bytes, (off_t)p->at);
    if (err == 0) /* a hint */
        mx_sys->sync_file_range(w->fd, (off_t)p->at, (off_t)p->bytes, SYNC_FILE_RANGE_WRITE);
    return err;
}

/* Lock held. */
static struct piece *find(struct mx_writer *w, enum state state) {
    for (int i = 0; i < MX_WRITER_PIECES; i++)
        if (w->piece[i].state == state && &w->piece[i] != w->filling) return &w->piece[i];
    return NULL;
}

static void *run(void *argument) {
    struct mx_writer *w = argument;
    struct piece *p;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while ((p = find(w, FULL)) == NULL && !w->stop) pthread_cond_wait(&w->changed, &w->lock);
        if (p == NULL) break;
        p->state = BUSY;
        int err = w->err;
        pthread_mutex_unlock(&w->lock);
        if (err == 0) err = write_piece(w, p);
        pthread_mutex_lock(&w->lock);
        if (err < 0 && w->err == 0) w->err = err;
        p->state = FREE;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* A descriptor of its own: the other one stays as it is. */
static int open_direct(int fd) {
    char path[32];
    struct mx_storage s;
    if (mx_storage_facts(fd, NULL, &s) < 0 || s.direct_offset_align_bytes == 0 ||
        s.direct_offset_align_bytes > UNIT_BYTES)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return mx_retry(mx_sys->open(path, O_WRONLY | O_DIRECT | O_CLOEXEC, 0));
}

int mx_writer_open(int fd, bool direct, uint64_t piece_bytes, mx_budget *budget, mx_why *why,
                   struct mx_writer **out) {
    struct mx_writer *w = calloc(1, sizeof *w);
    const struct mx_block_options o = {.size = sizeof o, .budget = budget};
    if (w == NULL) return mx_fail(why, -ENOMEM, "no memory for a file that is written");
    w->fd = fd;
    w->direct_fd = -1;
    w->piece_bytes = piece_bytes;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    int err = mx_block_create(&o, MX_WRITER_PIECES * piece_bytes, why, &w->block);
    for (int i = 0; i < MX_WRITER_PIECES && err == 0; i++)
        w->piece[i].dram = (char *)mx_block_data(w->block) + (uint64_t)i * piece_bytes;
    if (err == 0 && direct) w->direct_fd = open_direct(fd);
    while (w->threads < THREADS && err == 0) {
        err = mx_thread_start(&w->thread[w->threads], run, w);
        w->threads += err == 0;
    }
    if (err < 0 && w->threads > 0) err = 0;
    if (err < 0 && w->block != NULL) mx_fail(why, err, "no thread that writes: %s", mx_no_thread(err).text);
    if (err == 0) return *out = w, 0;
    mx_writer_close(w, false);
    return err;
}

static void hand_on(struct mx_writer *w) {
    pthread_mutex_lock(&w->lock);
    w->filling->state = FULL;
    w->filling = NULL;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void begin_piece(struct mx_writer *w, uint64_t at) {
    pthread_mutex_lock(&w->lock);
    while ((w->filling = find(w, FREE)) == NULL) pthread_cond_wait(&w->changed, &w->lock);
    /* never: nothing that was announced as coming in order comes elsewhere */
    if (w->direct_fd >= 0 && at != w->end && w->err == 0) w->err = -EIO;
    pthread_mutex_unlock(&w->lock);
    w->filling->at = at;
    w->filling->bytes = 0;
}

void mx_writer_put(struct mx_writer *w, uint64_t at, const void *data, uint64_t bytes) {
    const char *from = data;
    w->put_bytes += bytes;
    while (bytes > 0) {
        if (w->filling != NULL && w->filling->at + w->filling->bytes != at) hand_on(w);
        if (w->filling == NULL) begin_piece(w, at);
        struct piece *p = w->filling;
        const uint64_t room = w->piece_bytes - p->bytes, n = bytes < room ? bytes : room;
        memcpy(p->dram + p->bytes, from, n);
        p->bytes += n, at += n, from += n, bytes -= n;
        if (at > w->end) w->end = at;
        if (p->bytes == w->piece_bytes) hand_on(w);
    }
}

uint64_t mx_writer_bytes(const struct mx_writer *w) { return w->put_bytes; }

int mx_writer_close(struct mx_writer *w, bool whole) {
    if (w == NULL) return 0;
    if (w->filling != NULL && whole) hand_on(w);
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    if (!whole && w->err == 0) w->err = -ECANCELED; /* what is left need not be written */
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->threads; i++) pthread_join(w->thread[i], NULL);
    int err = w->err;
    if (err == 0 && w->direct_fd >= 0) err = mx_retry(mx_sys->ftruncate(w->fd, (off_t)w->end));
    if (w->direct_fd >= 0) mx_sys->close(w->direct_fd);
    mx_block_free(w->block);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return err;
}
