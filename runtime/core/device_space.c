/* SPDX-License-Identifier: BSD-3-Clause */
/* device_space.c - room for Buffers, and what a device is. */
#include "core/device.h"
#include "core/size.h"
#include "core/sized.h"
#include "machine/minmax.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of a line "Name:   123 kB" of /proc/meminfo, in bytes. */
static uint64_t meminfo_bytes(const char *name) {
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    uint64_t kib = 0;
    size_t n = strlen(name);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, n) == 0 && line[n] == ':') kib = strtoull(line + n + 1, NULL, 10);
    if (file != NULL) fclose(file);
    return kib * 1024;
}

/* What anonymous Buffers may fill: the memory that is available now or the cgroup's limit, whichever is less;
 * plus free swap where the backend lives on it. */
static int memory_room(const struct mx_backend *backend, mx_why *why, uint64_t *bytes) {
    struct mx_machine machine;
    int err = mx_machine_detect_memory(why, &machine);
    if (err != 0) return err;
    uint64_t dram = mx_machine_dram_bytes(&machine), available = meminfo_bytes("MemAvailable");
    if (available != 0 && available < dram) dram = available;
    *bytes = dram + (backend->locks_blocks ? meminfo_bytes("SwapFree") : 0);
    return 0;
}

int mx_device_memory(mx_device *d, mx_why *why) {
    d->found.place = (struct mx_place){.fd = -1, .path = "", .options = &d->options};
    return memory_room(d->inner, why, &d->found.place.bytes);
}

uint64_t mx_device_end(const mx_device *d) {
    uint64_t end = 0;
    const struct mx_superblock *s = &d->found.super;
    for (uint32_t i = 0; i < s->n_extents; i++)
        end = mx_max_u64(end, mx_extent_in(s, i)->offset_bytes + mx_extent_in(s, i)->bytes);
    for (uint32_t i = 0; d->former != NULL && i < d->former->n_extents; i++) {
        const struct mx_extent *e = mx_extent_in(d->former, i);
        if (d->held[i]) end = mx_max_u64(end, e->offset_bytes + e->bytes);
    }
    return end;
}

static uint64_t anonymous_bytes(const mx_device *d) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < d->found.super.n_extents; i++) sum += mx_extent_in(&d->found.super, i)->bytes;
    return sum;
}

uint64_t mx_device_room(const mx_device *d) {
    uint64_t bytes = d->found.place.bytes, used;
    if (!d->inner->anonymous && !d->found.place.block_device)
        return mx_place_capacity(&d->found, mx_device_end(d));
    used = d->inner->anonymous ? anonymous_bytes(d) : mx_round_up(mx_device_end(d), MX_EXTENT_ALIGN_BYTES);
    if (!d->inner->anonymous && used < MX_DATA_OFFSET_BYTES) used = MX_DATA_OFFSET_BYTES;
    return bytes > used ? bytes - used : 0;
}

static int refuse_for_space(const struct mx_backend *b, const char *path, uint64_t need, uint64_t room,
                            mx_why *why) {
    if (need <= room) return 0;
    return mx_fail(why, -ENOSPC, "the Buffers need %s, but %.300s has %s for them; %s", mx_size(need).text,
                   !b->anonymous     ? path
                   : b->locks_blocks ? "memory and swap together"
                                     : "memory",
                   mx_size(room).text,
                   b->anonymous ? "choose a smaller problem or another backend"
                                : "free space, name another place, or choose a smaller problem");
}

int mx_device_check_space(mx_device *d, mx_why *why) {
    const uint64_t need = d->options.expect_bytes;
    if (need == 0 || d->options.resume) return 0;
    const uint64_t room = d->inner->anonymous ? d->found.place.bytes : mx_place_capacity(&d->found, 0);
    return refuse_for_space(d->inner, d->found.path, need, room, why);
}

int mx_device_check_storage(const struct mx_backend *backend, const struct mx_storage *s, const char *path,
                            mx_why *why) {
    if (!s->is_memory || backend->face != MX_FACE_TRANSFER) return 0;
    return mx_fail(why, -ENOTSUP,
                   "%.300s is on %s, which is memory and not storage; name a directory on a disk", path,
                   s->filesystem);
}

int mx_device_ask(const struct mx_device_options *options, bool beside, mx_why *why) {
    const struct mx_backend *b = mx_backend_find(options->backend);
    struct mx_storage s = {.bytes = 0};
    char path[4096] = "";
    uint64_t room = 0;
    if (b == NULL) return 0;
    int err = b->probe != NULL ? b->probe(NULL, why) : 0;
    if (err == 0)
        err = b->anonymous ? memory_room(b, why, &room) : mx_place_ask(options, beside, why, path, &s, &room);
    if (err == 0) err = mx_device_check_storage(b, &s, path, why);
    return err < 0 ? err : refuse_for_space(b, path, options->expect_bytes, room, why);
}

void mx_device_facts(const mx_device *device, struct mx_device_facts *out) {
    mx_device *d = (mx_device *)device; /* only the mutex is touched */
    struct mx_device_facts f = {.size = sizeof f};
    snprintf(f.backend, sizeof f.backend, "%.23s", d->backend_name);
    snprintf(f.place, sizeof f.place, "%.511s", d->inner->anonymous ? "anonymous memory" : d->found.path);
    f.mapped = d->backend->face == MX_FACE_MAPPED;
    f.bypasses_page_cache = d->facts.bypasses_page_cache;
    f.durable = !d->inner->anonymous;
    f.offset_align_bytes = d->facts.offset_align_bytes;
    f.memory_align_bytes = d->facts.memory_align_bytes;
    pthread_mutex_lock(&d->lock);
    memcpy(f.note, d->facts.note, sizeof f.note);
    f.capacity_bytes = mx_device_room(d);
    pthread_mutex_unlock(&d->lock);
    mx_sized_give(out, &f, sizeof f, MX_END_OF(struct mx_device_facts, capacity_bytes));
}
