/* SPDX-License-Identifier: BSD-3-Clause */
/* device_commit.c - what makes a store durable: flushes, superblocks, notes, and the first failure. */
#include "core/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mx_device_fail(mx_device *d, int err, const char *what) {
    if (err == 0 || d->failed != 0) return err;
    d->failed = err;
    return mx_fail(&d->failure, err, "%s %.300s failed: %s; nothing more is committed", what,
                   d->inner->anonymous ? "memory" : d->found.path, strerror(-err));
}

/* Lock held. */
static int first_failure(mx_device *d, mx_why *why) {
    if (d->failed == 0) mx_device_fail(d, mx_queue_write_error(d->queue), "writing to");
    if (d->failed != 0 && why != NULL) *why = d->failure;
    return d->failed;
}

int mx_device_error(const mx_device *device, mx_why *why) {
    mx_device *d = (mx_device *)device; /* only what the mutex guards is touched */
    pthread_mutex_lock(&d->lock);
    int err = first_failure(d, why);
    pthread_mutex_unlock(&d->lock);
    return err;
}

static int flush_backend(mx_device *d) {
    int err = d->backend->flush != NULL ? mx_retry(d->backend->flush(d->state)) : -ENOSYS;
    return err != -ENOSYS ? err : mx_retry(mx_sys->fdatasync(d->found.place.fd));
}

/* With the size of the file, which is durable before a superblock relies on it. */
static int flush_data(mx_device *d) {
    int err = mx_device_error(d, NULL);
    if (err != 0) return err;
    pthread_mutex_lock(&d->lock);
    const bool longer = d->unsaved && !d->found.place.block_device;
    const uint64_t extended = d->extended;
    pthread_mutex_unlock(&d->lock);
    if (longer) err = mx_retry(mx_sys->fsync(d->found.place.fd)); /* without the lock: it takes long */
    if (err == 0 && (!longer || d->backend->flush != NULL)) err = flush_backend(d);
    pthread_mutex_lock(&d->lock);
    mx_device_fail(d, err, "flushing what was written to");
    err = first_failure(d, NULL);
    if (err == 0 && extended > d->flushed) d->flushed = extended;
    pthread_mutex_unlock(&d->lock);
    return err;
}

/* flush_data, again where another thread has made a Buffer meanwhile, which the superblock is about to tell
 * of. Returns with the lock held. */
static int flush_and_lock(mx_device *d) {
    for (;;) {
        const int err = flush_data(d);
        pthread_mutex_lock(&d->lock);
        if (err != 0 || d->flushed == d->extended) return err;
        pthread_mutex_unlock(&d->lock);
    }
}

/* Writes next as the newest superblock, unless something failed before. fd: one with O_DSYNC, or one that
 * only what this process leaves behind is written by. Lock held. */
static int store_by(mx_device *d, int fd, const struct mx_superblock *next) {
    if (d->options.read_only) return -EROFS;
    int err = first_failure(d, NULL);
    if (err != 0) return err;
    err = mx_store_commit(fd, next, &d->found.super, &d->found.slot);
    if (err == 0) d->unsaved = false;
    return mx_device_fail(d, err, "writing the superblock of");
}

static int store(mx_device *d, const struct mx_superblock *next) {
    return store_by(d, d->found.sync_fd, next);
}

int mx_device_extend(mx_device *d, const struct mx_superblock *next) {
    int err = d->options.read_only ? -EROFS : first_failure(d, NULL);
    if (err != 0) return err;
    d->found.super = *next;
    d->unsaved = !d->inner->anonymous;
    d->extended++;
    return 0;
}

int mx_device_flush(mx_device *device) {
    if (device->inner->anonymous) return 0;
    int err = flush_and_lock(device);
    struct mx_superblock next = device->found.super;
    if (err == 0 && device->unsaved && device->former == NULL) err = store(device, &next);
    pthread_mutex_unlock(&device->lock);
    return err;
}

/* A new store stands where another one was (supersede.c). Lock held. */
static void leave_former(mx_device *d) {
    if (d->former == NULL) return;
    free(d->former);
    d->former = NULL;
    d->waiting = false;
}

int mx_device_commit(mx_device *device, const void *note, size_t note_bytes) {
    if (device->inner->anonymous) return -ENOTSUP;
    if (note_bytes > MX_NOTE_BYTES || note_bytes == 0) return -EINVAL;
    if (device->options.read_only) return -EROFS;
    int err = flush_and_lock(device);
    struct mx_superblock next = device->found.super;
    memset(next.note, 0, sizeof next.note);
    memcpy(next.note, note, note_bytes);
    next.note_bytes = (uint32_t)note_bytes;
    next.finished = MX_RUN_UNDER_WAY;
    if (err == 0) err = store(device, &next);
    if (err == 0) leave_former(device);
    pthread_mutex_unlock(&device->lock);
    return err;
}

/* A file that is removed when the device is closed says that its run is done to whoever finds it after the
 * end of this process, but does not wait for stable storage: should the power be lost, the last commit is
 * there. */
int mx_device_finish(mx_device *device) {
    const bool removed = device->found.directory && !device->options.keep;
    if (device->inner->anonymous) return -ENOTSUP;
    int err = removed ? mx_device_error(device, NULL) : flush_data(device);
    if (err != 0) return err;
    pthread_mutex_lock(&device->lock);
    struct mx_superblock next = device->found.super;
    next.finished = device->options.keep ? MX_RUN_KEPT : MX_RUN_DONE;
    err = store_by(device, removed ? device->found.place.fd : device->found.sync_fd, &next);
    device->done = err == 0;
    pthread_mutex_unlock(&device->lock);
    return err;
}

int64_t mx_device_note(const mx_device *device, void *note, size_t capacity_bytes) {
    mx_device *d = (mx_device *)device; /* only the mutex is touched */
    pthread_mutex_lock(&d->lock);
    const struct mx_superblock *s = &d->found.super;
    int64_t n = s->note_bytes <= capacity_bytes ? (int64_t)s->note_bytes : -ENOSPC;
    if (n > 0) memcpy(note, s->note, (size_t)n);
    pthread_mutex_unlock(&d->lock);
    return n;
}

uint64_t mx_device_generation(const mx_device *device) {
    mx_device *d = (mx_device *)device; /* only the mutex is touched */
    pthread_mutex_lock(&d->lock);
    const uint64_t generation = d->found.super.generation;
    pthread_mutex_unlock(&d->lock);
    return generation;
}
