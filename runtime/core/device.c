/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - opens a place with a backend and a queue, and closes it. */
#include "core/device.h"
#include "core/size.h"
#include "core/sized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_place(mx_device *d, mx_why *why) {
    if (d->inner->anonymous) {
        if (d->options.resume)
            return mx_fail(why, -ENOTSUP,
                           "the Buffers of the backend %s end with the process: nothing to resume",
                           d->inner->name);
        return mx_device_memory(d, why);
    }
    int err = mx_place_find(&d->options, why, &d->found);
    if (err != 0) return err;
    if ((err = mx_device_check_storage(d->inner, &d->found.storage, d->found.path, why)) != 0) return err;
    if (d->found.storage.is_memory)
        mx_note_add(d->facts.note, sizeof d->facts.note, "%s is memory, not storage",
                    d->found.storage.filesystem);
    return 0;
}

static int open_backend(mx_device *d, mx_why *why) {
    char note[sizeof d->facts.note];
    memcpy(note, d->facts.note, sizeof note);
    int err = d->backend->probe != NULL ? d->backend->probe(&d->found.place, why) : 0;
    if (err == 0) err = d->backend->open(&d->found.place, why, &d->facts, &d->state);
    if (err != 0) return err;
    if (note[0] != 0) mx_note_add(d->facts.note, sizeof d->facts.note, "%s", note);
    uint32_t align = d->facts.offset_align_bytes, most = d->options.max_request_bytes / align * align;
    if (most == 0)
        return mx_fail(why, -EINVAL,
                       "--request-size %u is below the %u bytes that transfers are aligned to here; raise it",
                       d->options.max_request_bytes, align);
    d->options.max_request_bytes = most;
    return 0;
}

static int start_queue(mx_device *d, mx_why *why) {
    struct mx_queue_setup setup = {.backend = d->backend,
                                   .state = d->state,
                                   .depth = d->options.queue_depth,
                                   .max_request_bytes = d->options.max_request_bytes,
                                   .align_bytes = d->facts.offset_align_bytes,
                                   .workers = d->options.workers,
                                   .end_bytes = d->found.place.user_file ? d->found.place.bytes : 0,
                                   .schedule = d->options.advice == MX_ADVICE_SCHEDULE};
    return mx_queue_create(&setup, why, &d->queue);
}

/* A note of a run that is not done, or that was kept, must survive, and whatever a resumed run found until it
 * is done itself; anything else in a directory is a temporary file. */
static bool worth_keeping(const mx_device *d) {
    const struct mx_superblock *s = &d->found.super;
    if (d->waiting) return !d->found.created;
    const bool wanted = s->finished != MX_RUN_DONE || (d->options.resume && !d->done);
    return !d->found.directory || d->options.keep || (s->note_bytes > 0 && wanted);
}

static void dismantle(mx_device *d, bool remove) {
    mx_queue_free(d->queue);
    if (d->state != NULL && d->backend->close != NULL) d->backend->close(d->state);
    if (d->inner != NULL && !d->inner->anonymous) mx_place_leave(&d->found, remove);
    pthread_mutex_destroy(&d->lock);
    free(d->former);
    free(d);
}

/* In memory alone: what a new store begins with. What was found there stays as it is, and so does the
 * generation, on top of which mx_place_take makes the new one. */
static void begin_waiting(mx_device *d) {
    const uint64_t generation = d->found.kind == MX_STORE_INTACT ? d->found.super.generation : 0;
    d->found.super = (struct mx_superblock){.generation = generation};
    d->waiting = true;
}

/* When the old content of a place goes. */
enum opening { AT_ONCE, WHEN_TAKEN, WITH_THE_FIRST_COMMIT };

static int begin_store(mx_device *d, enum opening opening, mx_why *why) {
    if (d->options.read_only) return 0;
    if (d->options.resume) return mx_place_adopt(&d->found, why);
    if (opening == WITH_THE_FIRST_COMMIT) return mx_device_begin_beside(d, why);
    return opening == WHEN_TAKEN ? (begin_waiting(d), 0) : mx_place_take(&d->found, why);
}

static int open_with(const struct mx_device_options *options, const char *name, enum opening opening,
                     mx_why *why, mx_device **out) {
    mx_device *d = calloc(1, sizeof *d);
    if (d == NULL) return mx_fail(why, -ENOMEM, "no memory for a device");
    d->found.place.fd = d->found.sync_fd = -1;
    d->found.beside = opening == WITH_THE_FIRST_COMMIT;
    pthread_mutex_init(&d->lock, NULL);
    int err = mx_device_options_take(d, options, name, why);
    if (err == 0) err = open_place(d, why);
    if (err == 0) err = mx_device_check_space(d, why);
    if (err == 0) err = open_backend(d, why);
    if (err == 0) err = start_queue(d, why);
    /* All checks are passed: now, and not before, something is written. */
    if (err == 0 && !d->inner->anonymous) err = begin_store(d, opening, why);
    if (err != 0) {
        dismantle(d, d->found.created);
        return err;
    }
    if (d->found.finished_lost)
        mx_note_add(d->facts.note, sizeof d->facts.note,
                    "the finished run that was stored here is overwritten");
    *out = d;
    return 0;
}

int mx_device_open_file(int fd, const struct mx_device_options *options, mx_why *why, mx_device **out) {
    struct mx_device_options o;
    mx_device *d = calloc(1, sizeof *d);
    if (d == NULL) return mx_fail(why, -ENOMEM, "no memory for a device");
    d->found.place.fd = d->found.sync_fd = -1;
    pthread_mutex_init(&d->lock, NULL);
    mx_sized_take(&o, options, sizeof o, MX_END_OF(struct mx_device_options, fault));
    o.resume = o.read_only = o.keep = true;
    o.force = false;
    int err = mx_device_options_take(d, &o, o.backend, why);
    if (err == 0 && d->inner->anonymous)
        err = mx_fail(why, -ENOTSUP, "the backend %s keeps everything in memory and cannot open a file",
                      d->inner->name);
    if (err == 0) err = mx_place_take_file(fd, &d->options, why, &d->found);
    if (err == 0) err = open_backend(d, why);
    if (err == 0) err = start_queue(d, why);
    if (err != 0) {
        dismantle(d, false);
        return err;
    }
    *out = d;
    return 0;
}

/* The last of the table with a transfer style comes first: the table goes from the simple to the fast. */
static int open_best(const struct mx_device_options *options, enum opening opening, mx_why *why,
                     mx_device **out) {
    size_t n = 0;
    while (mx_backends[n] != NULL) n++;
    int err = mx_fail(why, -ENOTSUP, "memext was built without asynchronous I/O; choose --backend mmap");
    while (n-- > 0) {
        const struct mx_backend *b = mx_backends[n];
        if (b->face != MX_FACE_TRANSFER || b->anonymous || b->by_name) continue;
        err = open_with(options, b->name, opening, why, out);
        if (err != -ENOTSUP) break;
    }
    return err;
}

static int open_any(const struct mx_device_options *options, enum opening opening, mx_why *why,
                    mx_device **out) {
    struct mx_device_options o;
    mx_sized_take(&o, options, sizeof o, MX_END_OF(struct mx_device_options, fault));
    if (o.backend == NULL) return open_best(&o, opening, why, out);
    return open_with(&o, o.backend, opening, why, out);
}

int mx_device_open(const struct mx_device_options *options, mx_why *why, mx_device **out) {
    return open_any(options, AT_ONCE, why, out);
}

int mx_device_open_waiting(const struct mx_device_options *options, mx_why *why, mx_device **out) {
    return open_any(options, WHEN_TAKEN, why, out);
}

int mx_device_open_beside(const struct mx_device_options *options, mx_why *why, mx_device **out) {
    return open_any(options, WITH_THE_FIRST_COMMIT, why, out);
}

int mx_device_take(mx_device *d, mx_why *why) {
    pthread_mutex_lock(&d->lock);
    struct mx_superblock *s = &d->found.super;
    const struct mx_superblock made = *s;
    const bool take = d->waiting && d->former == NULL;
    const int err = take ? mx_place_take(&d->found, why) : 0;
    if (take) { /* of a store that was made and could not be made durable too: its Buffers are open */
        s->n_extents = made.n_extents;
        for (uint32_t i = 0; i < made.n_extents; i++) *mx_extent_at(s, i) = *mx_extent_in(&made, i);
        d->waiting = err != 0;
    }
    pthread_mutex_unlock(&d->lock);
    return err;
}

bool mx_device_is(const mx_device *d, const struct stat *file) {
    if (d->inner->anonymous) return false;
    if (!d->found.place.block_device)
        return file->st_dev == d->found.device && file->st_ino == d->found.inode;
    struct stat st;
    return S_ISBLK(file->st_mode) && fstat(d->found.place.fd, &st) == 0 && st.st_rdev == file->st_rdev;
}

void mx_device_close(mx_device *device) {
    if (device == NULL) return;
    const bool keep = worth_keeping(device);
    if (device->waiting) { /* Buffers may have made the file longer */
        /* Of a commit that failed nobody knows whether it is there: then its Buffers stay too. */
        if (device->former == NULL || device->failed == 0)
            mx_place_trim(&device->found, device->found.place.bytes);
        dismantle(device, !keep);
        return;
    }
    const uint64_t end = mx_round_up(mx_device_end(device), MX_EXTENT_ALIGN_BYTES);
    if (keep && device->unsaved)
        mx_device_flush(device); /* of what was never committed nothing is promised */
    if (keep && !device->inner->anonymous && !device->options.resume)
        mx_place_trim(&device->found, end > MX_DATA_OFFSET_BYTES ? end : MX_DATA_OFFSET_BYTES);
    dismantle(device, !keep);
}

void mx_device_abandon(mx_device *device) {
    if (device != NULL && !device->inner->anonymous && !worth_keeping(device))
        mx_place_remove(&device->found);
}

void mx_device_counters(const mx_device *device, struct mx_counters *out) {
    struct mx_counters c;
    mx_queue_counters(device->queue, &c);
    mx_sized_give(out, &c, sizeof c, MX_END_OF(struct mx_counters, peak_in_flight));
}
