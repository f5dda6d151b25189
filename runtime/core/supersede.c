/* SPDX-License-Identifier: BSD-3-Clause */
/* supersede.c - replaces a store by a new one whose run begins with the state of the old store.
 *
 *     superblock of the former store  --first commit-->  superblock of the new one
 *
 * Until the first commit, everybody finds the former store. The new store lies beside the Buffers with the
 * former state. Buffers that are written only after the first commit may overlap those.
 */
#include "core/device.h"
#include "core/size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t mx_extent_fit(const struct mx_extent *e, size_t n, uint64_t bytes) {
    uint64_t at = MX_DATA_OFFSET_BYTES;
    for (size_t i = 0; i < n;) {
        const uint64_t end = mx_round_up(e[i].offset_bytes + e[i].bytes, MX_EXTENT_ALIGN_BYTES);
        const bool meets = at < end && e[i].offset_bytes < at + bytes;
        at = meets ? end : at;
        i = meets ? 0 : i + 1;
    }
    return at;
}

/* A commit that was cut off may be in the page cache alone: the state before it is about to be overwritten.
 */
int mx_device_begin_beside(mx_device *d, mx_why *why) {
    struct mx_superblock *s = &d->found.super;
    int err = mx_place_adopt(&d->found, why);
    if (err < 0) return err;
    d->former = malloc(sizeof *d->former);
    if (d->former == NULL) return mx_fail(why, -ENOMEM, "no memory for what a store says");
    *d->former = *s;
    for (uint32_t i = 0; i < s->n_extents; i++) d->held[i] = true;
    *s = (struct mx_superblock){.magic = s->magic, .version = s->version, .generation = s->generation};
    d->waiting = true;
    return 0;
}

int64_t mx_device_former_note(const mx_device *d, void *note, size_t capacity_bytes) {
    const struct mx_superblock *s = d->former;
    if (s == NULL) return -ENOENT;
    if (s->note_bytes > capacity_bytes) return -ENOSPC;
    memcpy(note, s->note, s->note_bytes);
    return s->note_bytes;
}

void mx_device_give_former(mx_device *d, const char *name) {
    const size_t n = strlen(name);
    for (uint32_t i = 0; d->former != NULL && i < d->former->n_extents; i++) {
        const char *there = mx_extent_in(d->former, i)->name;
        if (strncmp(there, name, n) == 0 && (there[n] == 0 || strcmp(there + n, ".sum") == 0))
            d->held[i] = false;
    }
}

int mx_device_renew_former(mx_device *d, const void *note, size_t note_bytes) {
    if (d->former == NULL || note_bytes > MX_NOTE_BYTES) return -EINVAL;
    pthread_mutex_lock(&d->lock);
    struct mx_superblock next = *d->former;
    memset(next.note, 0, sizeof next.note);
    memcpy(next.note, note, note_bytes);
    next.note_bytes = (uint32_t)note_bytes;
    int err = mx_store_commit(d->found.sync_fd, &next, d->former, &d->found.slot);
    if (err == 0) d->found.super.generation = d->former->generation;
    mx_device_fail(d, err, "writing the superblock of");
    pthread_mutex_unlock(&d->lock);
    return err;
}

void mx_device_make_late(mx_device *d, bool late) {
    pthread_mutex_lock(&d->lock);
    d->late = late;
    pthread_mutex_unlock(&d->lock);
}
