/* SPDX-License-Identifier: BSD-3-Clause */
/* buffer.c - Buffers: extents of a store, handles of them, and transfers. */
#include "core/buffer.h"
#include "core/integrity.h"
#include "core/size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- extents (lock held) */

static int find_extent(const mx_device *d, const char *name) {
    const struct mx_superblock *s = &d->found.super;
    for (uint32_t i = 0; i < s->n_extents; i++)
        if (strncmp(mx_extent_in(s, i)->name, name, sizeof mx_extent_in(s, i)->name) == 0) return (int)i;
    return -1;
}

/* Beside the Buffers that there are, and those of a former store. */
static uint64_t next_offset(const mx_device *d, uint64_t bytes) {
    const struct mx_superblock *s = &d->found.super, *former = d->former;
    struct mx_extent there[2 * MX_EXTENTS];
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_extents; i++) there[n++] = *mx_extent_in(s, i);
    for (uint32_t i = 0; former != NULL && i < former->n_extents && !d->late; i++)
        if (d->held[i]) there[n++] = *mx_extent_in(former, i);
    return mx_extent_fit(there, n, bytes);
}

/* Makes the file longer if need be, without space. A former store may be longer, and stays whole until the
 * place is taken. */
static int lengthen(int fd, uint64_t bytes) {
    struct stat s;
    if (fstat(fd, &s) < 0) return -errno;
    return (uint64_t)s.st_size >= bytes ? 0 : mx_retry(mx_sys->ftruncate(fd, (off_t)bytes));
}

static int allocate(mx_device *d, const struct mx_extent *extent, mx_why *why) {
    const uint64_t room = mx_device_room(d), taken = mx_device_end(d),
                   upto = extent->offset_bytes + extent->bytes;
    const bool within = extent->offset_bytes < taken; /* in a gap that the file has already */
    if ((within ? upto - (upto < taken ? upto : taken) : extent->bytes) > room)
        return mx_fail(why, -ENOSPC,
                       "a Buffer of %s does not fit: %.300s has %s left; free space, or choose a smaller "
                       "problem or another place",
                       mx_size(extent->bytes).text, d->inner->anonymous ? "memory" : d->found.path,
                       mx_size(room).text);
    if (d->inner->anonymous || d->found.place.block_device) return 0;
    int fd = d->found.place.fd;
    int err = d->unused
                  ? lengthen(fd, extent->offset_bytes + extent->bytes)
                  : mx_retry(mx_sys->fallocate(fd, 0, (off_t)extent->offset_bytes, (off_t)extent->bytes));
    if (err == 0) return 0;
    return mx_fail(why, err,
                   "there is no room for a Buffer of %s in %.300s: %s; free space or choose another place",
                   mx_size(extent->bytes).text, d->found.path, strerror(-err));
}

static int check_new(const mx_device *d, const char *name, uint64_t bytes, mx_why *why) {
    if (name == NULL || name[0] == 0 || strlen(name) > 15)
        return mx_fail(why, -EINVAL, "a Buffer's name has 1 to 15 bytes, not \"%.40s\"", name ? name : "");
    if (bytes == 0 || bytes > (UINT64_C(1) << 60))
        return mx_fail(why, -EINVAL, "a Buffer of %llu bytes is not possible: give 1 byte to 2^60",
                       (unsigned long long)bytes);
    if (find_extent(d, name) >= 0)
        return mx_fail(why, -EEXIST, "there is a Buffer \"%s\" on this device already", name);
    if (d->options.read_only)
        return mx_fail(why, -EROFS, "%.300s is open for reading only: no Buffer can be made in it",
                       d->found.path);
    if (d->found.super.n_extents == MX_EXTENTS)
        return mx_fail(why, -ENOSPC, "a store has at most %d Buffers", MX_EXTENTS);
    return 0;
}

/* Extents in a file end with a whole page, so that the last one can be mapped and transferred to its end. */
static int add_extent(mx_device *d, const char *name, uint64_t bytes, mx_why *why) {
    struct mx_superblock next = d->found.super;
    struct mx_extent *e = mx_extent_at(&next, next.n_extents++);
    uint64_t align = d->facts.offset_align_bytes;
    const uint64_t padded_bytes = mx_round_up(bytes, align > 4096 ? align : 4096);
    *e = (struct mx_extent){.offset_bytes = next_offset(d, padded_bytes), .bytes = bytes};
    strcpy(e->name, name);
    struct mx_extent padded = *e;
    padded.bytes = padded_bytes;
    int err = allocate(d, &padded, why);
    if (err != 0) return err;
    err = mx_device_extend(d, &next);
    return err == 0 ? 0 : mx_fail(why, err, "%.300s cannot be written: %s", d->found.path, strerror(-err));
}

/* The Buffers of an anonymous device end with their handles: name and space are free again. */
static void remove_extent(mx_device *d, int i) {
    struct mx_superblock *s = &d->found.super;
    s->n_extents--;
    for (uint32_t k = (uint32_t)i; k < s->n_extents; k++) *mx_extent_at(s, k) = *mx_extent_in(s, k + 1);
    memmove(&d->extent_open[i], &d->extent_open[i + 1], s->n_extents - (uint32_t)i);
    d->extent_open[s->n_extents] = false;
}

/* ---- handles */

static int map_buffer(mx_buffer *b, mx_why *why) {
    mx_device *d = b->device;
    if (d->backend->face != MX_FACE_MAPPED) return 0;
    void *base = NULL;
    int err = d->backend->map(d->state, b->offset_bytes, b->bytes, why, &base);
    if (err != 0) return err;
    b->base = base;
    d->backend->advise(d->state, base, b->bytes, d->options.advice);
    return 0;
}

/* Lock held. */
static int make_handle(mx_device *d, int i, mx_why *why, mx_buffer **out) {
    const struct mx_extent *e = mx_extent_in(&d->found.super, (uint32_t)i);
    if (d->extent_open[i]) return mx_fail(why, -EBUSY, "the Buffer \"%.15s\" is open already", e->name);
    mx_buffer *b = calloc(1, sizeof *b);
    if (b == NULL) return mx_fail(why, -ENOMEM, "no memory for a Buffer's handle");
    b->device = d;
    memcpy(b->name, e->name, sizeof b->name);
    b->offset_bytes = e->offset_bytes;
    b->bytes = e->bytes;
    b->span_bytes = mx_round_up(e->bytes, d->facts.offset_align_bytes);
    int err = map_buffer(b, why);
    if (err != 0) {
        free(b);
        return err;
    }
    d->extent_open[i] = true;
    *out = b;
    return 0;
}

int mx_buffer_create(mx_device *device, const char *name, uint64_t bytes, mx_why *why, mx_buffer **out) {
    pthread_mutex_lock(&device->lock);
    int err = check_new(device, name, bytes, why);
    if (err == 0) err = add_extent(device, name, bytes, why);
    if (err == 0) {
        int i = (int)device->found.super.n_extents - 1;
        err = make_handle(device, i, why, out);
        if (err != 0 && device->inner->anonymous) remove_extent(device, i);
    }
    pthread_mutex_unlock(&device->lock);
    return err;
}

int mx_buffer_create_unused(mx_device *device, const char *name, uint64_t bytes, mx_why *why,
                            mx_buffer **out) {
    pthread_mutex_lock(&device->lock);
    device->unused = true;
    pthread_mutex_unlock(&device->lock);
    const int err = mx_buffer_create(device, name, bytes, why, out);
    pthread_mutex_lock(&device->lock);
    device->unused = false;
    pthread_mutex_unlock(&device->lock);
    return err;
}

int mx_buffer_allocate(mx_buffer *b, mx_why *why) {
    mx_device *d = b->device;
    if (d->inner->anonymous || d->found.place.block_device) return 0;
    const int err = mx_retry(
        mx_sys->fallocate(d->found.place.fd, 0, (off_t)b->offset_bytes, (off_t)mx_round_up(b->bytes, 4096)));
    return err == 0
               ? 0
               : mx_fail(
                     why, err,
                     "there is no room for the Buffer \"%.15s\" of %s in %.300s: %s; free space or choose "
                     "another place",
                     b->name, mx_size(b->bytes).text, d->found.path, strerror(-err));
}

int mx_buffer_open(mx_device *device, const char *name, mx_why *why, mx_buffer **out) {
    pthread_mutex_lock(&device->lock);
    int i = find_extent(device, name);
    int err = i >= 0 ? make_handle(device, i, why, out)
                     : mx_fail(why, -ENOENT, "there is no Buffer \"%.15s\" in this store", name);
    pthread_mutex_unlock(&device->lock);
    return err;
}

void mx_buffer_close(mx_buffer *buffer) {
    if (buffer == NULL) return;
    mx_device *d = buffer->device;
    mx_buffer_close(mx_integrity_free(buffer->integrity));
    if (buffer->base != NULL) d->backend->unmap(d->state, buffer->base, buffer->bytes);
    pthread_mutex_lock(&d->lock);
    int i = find_extent(d, buffer->name);
    d->extent_open[i] = false;
    if (d->inner->anonymous) remove_extent(d, i);
    pthread_mutex_unlock(&d->lock);
    free(buffer);
}

uint64_t mx_buffer_offset(const mx_buffer *b) { return b->offset_bytes; }

mx_device *mx_buffer_device(const mx_buffer *buffer) { return buffer->device; }

uint64_t mx_buffer_bytes(const mx_buffer *buffer) { return buffer->bytes; }

/* ---- transfers */

static int check_spans(const mx_buffer *b, const struct mx_span *spans, size_t n) {
    uint64_t offset_align = b->device->facts.offset_align_bytes;
    uint64_t memory_align = b->device->facts.memory_align_bytes;
    for (size_t i = 0; i < n; i++) {
        const struct mx_span *s = &spans[i];
        if (s->offset_bytes > b->span_bytes || s->bytes > b->span_bytes - s->offset_bytes) return -EINVAL;
        if (s->offset_bytes % offset_align || s->bytes % offset_align || (uintptr_t)s->dram % memory_align)
            return -EINVAL;
    }
    return 0;
}

static int transfer(mx_buffer *b, bool write, const struct mx_span *spans, size_t n, mx_ticket **out) {
    mx_ticket *ticket;
    int err = write && b->device->options.read_only ? -EROFS : check_spans(b, spans, n);
    if (err == 0) err = mx_integrity_fits(b->integrity, spans, n);
    if (err == 0) err = mx_queue_post(b->device->queue, write, spans, n, b->offset_bytes, b->base, &ticket);
    if (err != 0) return err;
    /* While it is being written, for what is in DRAM stays as it is until the ticket is done. */
    if (write) mx_integrity_take(b->integrity, spans, n);
    if (!write) mx_ticket_check(ticket, b->integrity);
    *out = ticket;
    return 0;
}

int mx_buffer_read(mx_buffer *buffer, const struct mx_span *spans, size_t n, mx_ticket **out) {
    return transfer(buffer, false, spans, n, out);
}

int mx_buffer_write(mx_buffer *buffer, const struct mx_span *spans, size_t n, mx_ticket **out) {
    return transfer(buffer, true, spans, n, out);
}

/* ---- the mapped style */

char *mx_buffer_memory(const mx_buffer *b) {
    const mx_device *d = b->device;
    const bool resident = d->inner->anonymous && !d->inner->locks_blocks;
    return resident && d->backend == d->inner && b->integrity == NULL ? b->base : NULL;
}

void mx_buffer_move_begins(mx_buffer *b, bool write) { mx_queue_move_begins(b->device->queue, write); }

void mx_buffer_move_ends(mx_buffer *b, bool write, uint64_t bytes) {
    mx_queue_move_ends(b->device->queue, write, bytes);
}

int mx_buffer_map(mx_buffer *buffer, mx_why *why, void **out) {
    if (buffer->base == NULL)
        return mx_fail(
            why, -ENOTSUP,
            "Buffers of the backend %s cannot be mapped; use Blocks, or backend dram, swap or mmap",
            buffer->device->backend_name);
    *out = buffer->base;
    return 0;
}

int mx_buffer_advise(mx_buffer *buffer, uint64_t offset_bytes, uint64_t bytes, enum mx_advice advice) {
    if (buffer->base == NULL) return -ENOTSUP;
    if (offset_bytes > buffer->bytes || bytes > buffer->bytes - offset_bytes) return -EINVAL;
    if (bytes == 0) return 0;
    mx_device *d = buffer->device;
    uint64_t start = mx_round_down(offset_bytes, (uint64_t)sysconf(_SC_PAGESIZE));
    int err = d->backend->advise(d->state, buffer->base + start, offset_bytes + bytes - start, advice);
    if (advice != MX_ADVICE_DROP || (err != -EIO && err != -ENOSPC && err != -EDQUOT)) return err;
    pthread_mutex_lock(&d->lock);
    mx_device_fail(d, err, "writing back to");
    pthread_mutex_unlock(&d->lock);
    return err;
}
