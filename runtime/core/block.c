/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/budget.h"
#include "core/device.h"
#include "core/size.h"
#include "core/sized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct mx_block {
    struct mx_block_options options;
    char *base;
    uint64_t bytes, mapped_bytes;
};

/* ---- first touch: thread i touches the i-th share, on the core where the i-th computing thread will run */

struct share {
    char *base;
    uint64_t bytes;
    int32_t index, of;
};

enum { MOST_TOUCHERS = 64 };
#define LEAST_SHARE_BYTES (16 * MX_MIB)

static void touch(const struct share *share) {
    /* One call instead of a fault per page, where the kernel has it (5.14). */
    if (madvise(share->base, share->bytes, MADV_POPULATE_WRITE) == 0) return;
    for (uint64_t i = 0; i < share->bytes; i += 4096) {
        volatile char *page = share->base + i;
        *page = *page;
    }
}

static void *touch_thread(void *argument) {
    const struct share *share = argument;
    mx_machine_place(share->index, share->of);
    touch(share);
    return NULL;
}

static unsigned count_touchers(uint64_t bytes) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t n = bytes / LEAST_SHARE_BYTES;
    if (cores > 0 && n > (uint64_t)cores) n = (uint64_t)cores;
    return n < 1 ? 1 : n > MOST_TOUCHERS ? MOST_TOUCHERS : (unsigned)n;
}

void mx_memory_touch(void *base, uint64_t bytes) {
    pthread_t threads[MOST_TOUCHERS];
    struct share shares[MOST_TOUCHERS];
    bool started[MOST_TOUCHERS] = {false};
    unsigned n = count_touchers(bytes);
    uint64_t unit = mx_round_up((bytes + n - 1) / n, n > 1 ? MX_EXTENT_ALIGN_BYTES : 4096);
    for (unsigned i = 0; i < n; i++) {
        uint64_t from = unit * i < bytes ? unit * i : bytes;
        uint64_t upto = from + unit < bytes ? from + unit : bytes;
        shares[i] = (struct share){(char *)base + from, upto - from, (int32_t)i, (int32_t)n};
        if (upto == from) continue;
        started[i] = n > 1 && mx_thread_start(&threads[i], touch_thread, &shares[i]) == 0;
        if (!started[i]) touch(&shares[i]);
    }
    for (unsigned i = 0; i < n; i++)
        if (started[i]) pthread_join(threads[i], NULL);
}

/* ---- */

static int lock_block(const mx_block *b, mx_why *why) {
    if (mlock(b->base, b->mapped_bytes) == 0) return 0;
    int err = -errno;
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    return mx_fail(
        why, err == -EAGAIN ? -ENOMEM : err,
        "a Block of %s cannot be locked in DRAM: RLIMIT_MEMLOCK allows %s; raise the limit (ulimit -l, "
        "LimitMEMLOCK=) or run as root",
        mx_size(b->mapped_bytes).text,
        limit.rlim_cur == RLIM_INFINITY ? "any amount, so memory is short" : mx_size(limit.rlim_cur).text);
}

static int place_block(mx_block *b, mx_why *why) {
    const struct mx_block_options *o = &b->options;
    void *base = NULL;
    int err = mx_map_aligned(-1, 0, b->mapped_bytes, MAP_PRIVATE | MAP_ANONYMOUS, &base);
    if (err != 0)
        return mx_fail(why, err, "there is no memory for a Block of %s: %s; lower --dram",
                       mx_size(b->bytes).text, strerror(-err));
    b->base = base;
    /* Hints: a machine without huge pages or NUMA works all the same. */
    madvise(base, b->mapped_bytes, o->no_huge ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    if (o->node_split_bytes > 0) mx_machine_spread(base, b->mapped_bytes, o->node_split_bytes);
    mx_memory_touch(base, b->mapped_bytes);
    bool lock = o->lock || (o->device != NULL && o->device->inner->locks_blocks);
    return lock ? lock_block(b, why) : 0;
}

/* ---- DRAM that transfers will use: the backend is told, and what it refuses goes to the note */

static void tell_registration(mx_device *d, int err) {
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    pthread_mutex_lock(&d->lock);
    if (!d->told_registration)
        mx_note_add(d->facts.note, sizeof d->facts.note,
                    "Blocks are not registered with the kernel: %s "
                    "(RLIMIT_MEMLOCK is %s)",
                    strerror(-err),
                    limit.rlim_cur == RLIM_INFINITY ? "unlimited" : mx_size(limit.rlim_cur).text);
    d->told_registration = true;
    pthread_mutex_unlock(&d->lock);
}

static void register_with(mx_device *device, void *base, uint64_t bytes) {
    if (device->backend->register_memory == NULL || device->options.no_register) return;
    int err = device->backend->register_memory(device->state, base, bytes);
    if (err != 0 && err != -ENOTSUP) tell_registration(device, err);
}

static void unregister_with(mx_device *device, void *base) {
    if (device->backend->unregister_memory != NULL) device->backend->unregister_memory(device->state, base);
}

/* ---- Blocks */

int mx_block_create(const struct mx_block_options *options, uint64_t bytes, mx_why *why, mx_block **out) {
    static const struct mx_block_options standard;
    if (bytes == 0 || bytes > PTRDIFF_MAX / 2)
        return mx_fail(why, -EINVAL, "a Block of %llu bytes is not possible: give 1 byte to %llu",
                       (unsigned long long)bytes, (unsigned long long)(PTRDIFF_MAX / 2));
    mx_block *b = calloc(1, sizeof *b);
    if (b == NULL) return mx_fail(why, -ENOMEM, "no memory for a Block's handle");
    mx_sized_take(&b->options, options != NULL ? options : &standard, sizeof b->options,
                  MX_END_OF(struct mx_block_options, device));
    b->bytes = bytes;
    b->mapped_bytes = mx_round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
    int err = mx_budget_take(b->options.budget, b->mapped_bytes, why);
    if (err != 0) {
        free(b);
        return err;
    }
    err = place_block(b, why);
    if (err != 0) {
        if (b->base != NULL) munmap(b->base, b->mapped_bytes);
        mx_budget_give(b->options.budget, b->mapped_bytes);
        free(b);
        return err;
    }
    if (b->options.device != NULL) register_with(b->options.device, b->base, b->mapped_bytes);
    *out = b;
    return 0;
}

void mx_block_free(mx_block *block) {
    if (block == NULL) return;
    if (block->options.device != NULL) unregister_with(block->options.device, block->base);
    munmap(block->base, block->mapped_bytes);
    mx_budget_give(block->options.budget, block->mapped_bytes);
    free(block);
}

void *mx_block_data(const mx_block *block) { return block->base; }
uint64_t mx_block_bytes(const mx_block *block) { return block->bytes; }
