/* SPDX-License-Identifier: BSD-3-Clause */
/* integrity.c - the table of a Buffer's sums: made, saved with a commit, and loaded again. */
#include "core/buffer.h"
#include "core/integrity_private.h"
#include "core/place.h"
#include "core/size.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { NAME_BYTES = 16 };

static const char magic[8] = MX_SUMS_MAGIC;

/* ---- set-up */

/* One that is there belongs to an earlier run in this store, unless it has another size. */
static int open_extent(struct mx_integrity *t, mx_device *device, const char *name, mx_why *why) {
    struct mx_device_facts facts = {.size = sizeof facts};
    char extent[NAME_BYTES];
    mx_device_facts(device, &facts);
    if (!facts.durable) return 0;
    if (snprintf(extent, sizeof extent, "%s.sum", name) >= NAME_BYTES)
        return mx_fail(why, -EINVAL,
                       "the hashes of the Buffer \"%s\" need the name \"%s.sum\", which is longer than %d "
                       "bytes; choose a shorter name",
                       name, name, NAME_BYTES - 1);
    int err = mx_buffer_open(device, extent, why, &t->extent);
    if (err == -ENOENT) return mx_buffer_create(device, extent, t->block_bytes, why, &t->extent);
    if (err == 0 && mx_buffer_bytes(t->extent) < t->block_bytes) {
        uint64_t has = mx_buffer_bytes(t->extent);
        mx_buffer_close(t->extent);
        t->extent = NULL;
        return mx_fail(why, -ENOSPC,
                       "the hashes of the Buffer \"%s\" need %s, but this store has only %s for them; "
                       "continue without --integrity, or start again with --force",
                       name, mx_size(t->block_bytes).text, mx_size(has).text);
    }
    return err;
}

static int set_up(struct mx_integrity *t, mx_device *device, const char *name, mx_budget *budget,
                  mx_why *why) {
    struct mx_device_facts facts = {.size = sizeof facts};
    struct mx_block_options options = {.budget = budget};
    mx_device_facts(device, &facts);
    uint64_t align =
        facts.offset_align_bytes > MX_SUMS_HEADER_BYTES ? facts.offset_align_bytes : MX_SUMS_HEADER_BYTES;
    t->block_bytes = mx_round_up(MX_SUMS_HEADER_BYTES + t->n_units * sizeof *t->sums, align);
    int err = mx_block_create(&options, t->block_bytes, why, &t->block);
    if (err < 0) return err;
    t->sums = (uint32_t *)((char *)mx_block_data(t->block) + MX_SUMS_HEADER_BYTES);
    return open_extent(t, device, name, why);
}

int mx_integrity_create(mx_device *device, const char *name, uint64_t bytes, uint64_t unit_bytes,
                        mx_budget *budget, mx_why *why, struct mx_integrity **out) {
    struct mx_device_facts facts = {.size = sizeof facts};
    mx_device_facts(device, &facts);
    if (unit_bytes == 0 || unit_bytes > bytes ||
        (unit_bytes % facts.offset_align_bytes != 0 && facts.offset_align_bytes % unit_bytes != 0))
        return mx_fail(
            why, -EINVAL,
            "units of %llu bytes cannot have hashes: give a multiple or a part of %u bytes, and at "
            "most the %llu bytes of the Buffer",
            (unsigned long long)unit_bytes, facts.offset_align_bytes, (unsigned long long)bytes);
    struct mx_integrity *t = calloc(1, sizeof *t);
    if (t == NULL) return mx_fail(why, -ENOMEM, "no memory for a Buffer's hashes");
    t->bytes = bytes;
    t->unit_bytes = unit_bytes;
    t->n_units = (bytes + unit_bytes - 1) / unit_bytes;
    atomic_init(&t->damage, -1);
    int err = set_up(t, device, name, budget, why);
    if (err < 0) {
        mx_buffer_close(mx_integrity_free(t));
        return err;
    }
    *out = t;
    return 0;
}

/* ---- saved with a commit */

static int move(struct mx_integrity *t,
                int (*start)(mx_buffer *, const struct mx_span *, size_t, mx_ticket **)) {
    struct mx_span all = {0, t->block_bytes, mx_block_data(t->block)};
    mx_ticket *ticket;
    int err = start(t->extent, &all, 1, &ticket);
    return err < 0 ? err : mx_wait(ticket);
}

static struct mx_sums_header header_of(const struct mx_integrity *t) {
    struct mx_sums_header h = {.unit_bytes = t->unit_bytes,
                               .n_units = t->n_units,
                               .sums_hash = XXH3_64bits(t->sums, t->n_units * sizeof *t->sums),
                               .bytes = t->bytes};
    memcpy(h.magic, magic, sizeof magic);
    return h;
}

int mx_integrity_save(struct mx_integrity *t) {
    if (t == NULL) return -EINVAL;
    if (t->extent == NULL) return -ENOTSUP;
    const struct mx_sums_header h = header_of(t);
    memcpy(mx_block_data(t->block), &h, sizeof h);
    return move(t, mx_buffer_write);
}

uint64_t mx_integrity_bytes(const struct mx_integrity *t) {
    return t == NULL || t->extent == NULL ? 0 : t->block_bytes;
}

static int check_header(const struct mx_integrity *t) {
    struct mx_sums_header expected = header_of(t), found;
    memcpy(&found, mx_block_data(t->block), sizeof found);
    if (memcmp(found.magic, magic, sizeof magic) != 0 || found.unit_bytes != t->unit_bytes ||
        found.n_units != t->n_units)
        return -ENODATA;
    return found.sums_hash == expected.sums_hash ? 0 : -EBADMSG;
}

int mx_integrity_load(struct mx_integrity *t) {
    if (t == NULL) return -EINVAL;
    if (t->extent == NULL) return -ENOTSUP;
    int err = move(t, mx_buffer_read);
    if (err == 0) err = check_header(t);
    if (err < 0) memset(t->sums, 0, t->n_units * sizeof *t->sums);
    return err;
}

/* ---- Buffers */

int mx_buffer_integrity(mx_buffer *b, uint64_t unit_bytes, mx_budget *budget, mx_why *why) {
    if (b->integrity != NULL)
        return mx_fail(why, -EEXIST, "the Buffer \"%.15s\" has hashes already", b->name);
    return mx_integrity_create(b->device, b->name, b->span_bytes, unit_bytes, budget, why, &b->integrity);
}

int64_t mx_buffer_damage(const mx_buffer *buffer) { return mx_integrity_damage(buffer->integrity); }

int mx_buffer_integrity_save(mx_buffer *buffer) { return mx_integrity_save(buffer->integrity); }

uint64_t mx_buffer_integrity_bytes(const mx_buffer *buffer) { return mx_integrity_bytes(buffer->integrity); }

int mx_buffer_integrity_load(mx_buffer *buffer) { return mx_integrity_load(buffer->integrity); }
