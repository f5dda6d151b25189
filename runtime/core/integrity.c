/* SPDX-License-Identifier: BSD-3-Clause */
/* integrity.c - the sums of a Buffer's units.
 *
 *     0 KiB header    4 KiB sums: 32 bits a unit, 0 = not known
 *
 * This is the table in DRAM and, as it was at the last save, the extent. The header tells a table that was
 * saved whole from anything else that may lie there.
 */
#include "core/integrity.h"
#include "core/place.h"
#include "core/size.h"

#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <xxh_x86dispatch.h> /* the same sums, by the widest vectors that the processor has */
#else
#include <xxhash.h>
#endif

enum { HEADER_BYTES = 4096, NAME_BYTES = 16 };

struct header {
    char magic[8];
    uint64_t unit_bytes, n_units;
    uint64_t sums_hash; /* XXH3-64 of the sums */
    uint64_t bytes;     /* of the units; 0: of an older memext, the Buffer's */
};
static const char magic[8] = "mx-sums";

struct mx_integrity {
    uint64_t bytes, unit_bytes, n_units;
    mx_block *block; /* header and sums */
    uint64_t block_bytes;
    uint32_t *sums;         /* in it */
    mx_buffer *extent;      /* NULL: nothing outlives the process here */
    _Atomic int64_t damage; /* first byte of the first unit found damaged, -1 = none */
};

/* ---- set-up */

/* One that is there belongs to an earlier run in this store, unless it has another size. */
static int open_extent(struct mx_integrity *t, mx_device *device, const char *name, mx_why *why) {
    struct mx_device_facts facts = {.size = sizeof facts};
    char extent[NAME_BYTES];
    mx_device_facts(device, &facts);
    if (!facts.durable) return 0;
    if (snprintf(extent, sizeof extent, "%s.sum", name) >= NAME_BYTES)
        return mx_fail(why, -EINVAL,
                       "the sums of the Buffer \"%s\" would be kept as \"%s.sum\", which is longer than %d "
                       "bytes; choose a shorter name",
                       name, name, NAME_BYTES - 1);
    int err = mx_buffer_open(device, extent, why, &t->extent);
    if (err == -ENOENT) return mx_buffer_create(device, extent, t->block_bytes, why, &t->extent);
    if (err == 0 && mx_buffer_bytes(t->extent) < t->block_bytes) {
        uint64_t has = mx_buffer_bytes(t->extent);
        mx_buffer_close(t->extent);
        t->extent = NULL;
        return mx_fail(why, -ENOSPC,
                       "the sums of the Buffer \"%s\" need %s, and this store was made with %s for them; go "
                       "on without checking, or start anew",
                       name, mx_size(t->block_bytes).text, mx_size(has).text);
    }
    return err;
}

static int set_up(struct mx_integrity *t, mx_device *device, const char *name, mx_budget *budget,
                  mx_why *why) {
    struct mx_device_facts facts = {.size = sizeof facts};
    struct mx_block_options options = {.budget = budget};
    mx_device_facts(device, &facts);
    uint64_t align = facts.offset_align_bytes > HEADER_BYTES ? facts.offset_align_bytes : HEADER_BYTES;
    t->block_bytes = mx_round_up(HEADER_BYTES + t->n_units * sizeof *t->sums, align);
    int err = mx_block_create(&options, t->block_bytes, why, &t->block);
    if (err < 0) return err;
    t->sums = (uint32_t *)((char *)mx_block_data(t->block) + HEADER_BYTES);
    return open_extent(t, device, name, why);
}

int mx_integrity_create(mx_device *device, const char *name, uint64_t bytes, uint64_t unit_bytes,
                        mx_budget *budget, mx_why *why, struct mx_integrity **out) {
    struct mx_device_facts facts = {.size = sizeof facts};
    mx_device_facts(device, &facts);
    if (unit_bytes == 0 || unit_bytes > bytes ||
        (unit_bytes % facts.offset_align_bytes != 0 && facts.offset_align_bytes % unit_bytes != 0))
        return mx_fail(why, -EINVAL,
                       "units of %llu bytes cannot be checked: they are multiples or parts of %u bytes here, "
                       "and at most the Buffer's %llu",
                       (unsigned long long)unit_bytes, facts.offset_align_bytes, (unsigned long long)bytes);
    struct mx_integrity *t = calloc(1, sizeof *t);
    if (t == NULL) return mx_fail(why, -ENOMEM, "no memory for a Buffer's sums");
    t->bytes = bytes;
    t->unit_bytes = unit_bytes;
    t->n_units = (bytes + unit_bytes - 1) / unit_bytes;
    atomic_init(&t->damage, -1);
    int err = set_up(t, device, name, budget, why);
    if (err < 0) {
        mx_integrity_free(t);
        return err;
    }
    *out = t;
    return 0;
}

void mx_integrity_free(struct mx_integrity *t) {
    if (t == NULL) return;
    mx_buffer_close(t->extent);
    mx_block_free(t->block);
    free(t);
}

/* ---- sums */

static uint32_t sum_of(const void *unit, uint64_t bytes) {
    const uint32_t sum = (uint32_t)XXH3_64bits(unit, bytes);
    return sum != 0 ? sum : 1;
}

int mx_integrity_fits(const struct mx_integrity *t, const struct mx_span *spans, size_t n) {
    for (size_t i = 0; t != NULL && i < n; i++) {
        const uint64_t end = spans[i].offset_bytes + spans[i].bytes;
        if (spans[i].offset_bytes % t->unit_bytes != 0) return -EINVAL;
        if (end % t->unit_bytes != 0 && end != t->bytes) return -EINVAL;
    }
    return 0;
}

/* Calls with every unit of a span: its number, where it is in DRAM, and its length. */
struct unit {
    uint64_t number, bytes;
    const char *dram;
};

static bool next_unit(const struct mx_integrity *t, const struct mx_span *s, uint64_t *at, struct unit *out) {
    if (*at >= s->bytes) return false;
    const uint64_t left = s->bytes - *at;
    *out = (struct unit){(s->offset_bytes + *at) / t->unit_bytes, left < t->unit_bytes ? left : t->unit_bytes,
                         (const char *)s->dram + *at};
    *at += out->bytes;
    return true;
}

void mx_integrity_take(struct mx_integrity *t, const struct mx_span *spans, size_t n) {
    struct unit u;
    for (size_t i = 0; t != NULL && i < n; i++)
        for (uint64_t at = 0; next_unit(t, &spans[i], &at, &u);)
            __atomic_store_n(&t->sums[u.number], sum_of(u.dram, u.bytes), __ATOMIC_RELAXED);
}

int mx_integrity_check(struct mx_integrity *t, const struct mx_span *spans, size_t n) {
    struct unit u;
    for (size_t i = 0; t != NULL && i < n; i++)
        for (uint64_t at = 0; next_unit(t, &spans[i], &at, &u);) {
            const uint32_t known = __atomic_load_n(&t->sums[u.number], __ATOMIC_RELAXED);
            const uint32_t found = sum_of(u.dram, u.bytes);
            int64_t none = -1;
            if (known == 0) __atomic_store_n(&t->sums[u.number], found, __ATOMIC_RELAXED);
            if (known == 0 || known == found) continue;
            atomic_compare_exchange_strong(&t->damage, &none, (int64_t)(u.number * t->unit_bytes));
            return -EBADMSG;
        }
    return 0;
}

int64_t mx_integrity_damage(const struct mx_integrity *t) {
    return t == NULL ? -1 : atomic_load(&((struct mx_integrity *)t)->damage);
}

/* ---- saved with a commit */

static int move(struct mx_integrity *t,
                int (*start)(mx_buffer *, const struct mx_span *, size_t, mx_ticket **)) {
    struct mx_span all = {0, t->block_bytes, mx_block_data(t->block)};
    mx_ticket *ticket;
    int err = start(t->extent, &all, 1, &ticket);
    return err < 0 ? err : mx_wait(ticket);
}

static struct header header_of(const struct mx_integrity *t) {
    struct header h = {.unit_bytes = t->unit_bytes,
                       .n_units = t->n_units,
                       .sums_hash = XXH3_64bits(t->sums, t->n_units * sizeof *t->sums),
                       .bytes = t->bytes};
    memcpy(h.magic, magic, sizeof magic);
    return h;
}

int mx_integrity_save(struct mx_integrity *t) {
    if (t == NULL) return -EINVAL;
    if (t->extent == NULL) return -ENOTSUP;
    const struct header h = header_of(t);
    memcpy(mx_block_data(t->block), &h, sizeof h);
    return move(t, mx_buffer_write);
}

uint64_t mx_integrity_bytes(const struct mx_integrity *t) {
    return t == NULL || t->extent == NULL ? 0 : t->block_bytes;
}

static int check_header(const struct mx_integrity *t) {
    struct header expected = header_of(t), found;
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

/* ---- seen from outside */

struct mx_hashes {
    uint64_t bytes, unit_bytes, n_units;
    uint32_t sums[];
};

static const struct mx_store_extent *extent_of(const struct mx_store_facts *f, const char *name,
                                               const char *ending) {
    const size_t n = strlen(name);
    for (uint32_t i = 0; i < f->n_extents; i++)
        if (strncmp(f->extents[i].name, name, n) == 0 && strcmp(f->extents[i].name + n, ending) == 0)
            return &f->extents[i];
    return NULL;
}

/* A table is what its header says of a Buffer of this length, or none was ever saved. */
static bool is_table(const struct header *h, const struct mx_store_extent *data, uint64_t extent_bytes) {
    return memcmp(h->magic, magic, sizeof magic) == 0 && h->unit_bytes > 0 && h->bytes >= data->bytes &&
           h->bytes - data->bytes < HEADER_BYTES &&
           h->n_units == h->bytes / h->unit_bytes + (h->bytes % h->unit_bytes != 0) &&
           h->n_units <= (extent_bytes - HEADER_BYTES) / sizeof(uint32_t);
}

static int read_at(int fd, void *to, uint64_t bytes, uint64_t at) {
    const int err = mx_read_all(fd, to, bytes, (off_t)at);
    return err == -ENODATA ? -EIO : err;
}

static int read_hashes(int fd, const struct mx_store_extent *data, const struct mx_store_extent *table,
                       struct mx_hashes **out) {
    struct header h;
    int err = read_at(fd, &h, sizeof h, table->offset_bytes);
    if (err == 0 && h.bytes == 0) h.bytes = data->bytes;
    if (err == 0 && (table->bytes < HEADER_BYTES || !is_table(&h, data, table->bytes))) err = -ENODATA;
    if (err < 0) return err;
    const uint64_t bytes = h.n_units * sizeof(uint32_t);
    struct mx_hashes *x = malloc(sizeof *x + bytes);
    if (x == NULL) return -ENOMEM;
    x->bytes = h.bytes, x->unit_bytes = h.unit_bytes, x->n_units = h.n_units;
    err = read_at(fd, x->sums, bytes, table->offset_bytes + HEADER_BYTES);
    if (err == 0 && XXH3_64bits(x->sums, bytes) != h.sums_hash) err = -EBADMSG;
    if (err < 0) return free(x), err;
    return *out = x, 0;
}

int mx_hashes_open(const char *path, const char *buffer, mx_why *why, mx_hashes **out) {
    struct mx_store_facts *f = calloc(1, sizeof *f);
    if (f == NULL) return mx_fail(why, -ENOMEM, "no memory for a store's note");
    f->size = sizeof *f;
    if (why != NULL) why->text[0] = 0;
    int fd = -1, err = mx_store_look(path, why, f);
    if (err == 0)
        err = fd = mx_retry(mx_sys->open(f->place, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0));
    if (fd >= 0) {
        const struct mx_store_extent *data = extent_of(f, buffer, ""), *table = extent_of(f, buffer, ".sum");
        err = data == NULL || table == NULL ? -ENODATA : read_hashes(fd, data, table, out);
        mx_sys->close(fd);
    }
    if (err < 0 && (why == NULL || why->text[0] == 0))
        mx_fail(why, err, "the hashes of the Buffer \"%.15s\" of %.300s %s%s", buffer, f->place,
                err == -EBADMSG   ? "have changed: the store is damaged"
                : err == -ENODATA ? "are not kept"
                                  : "cannot be read: ",
                err == -EBADMSG || err == -ENODATA ? "" : strerror(-err));
    free(f);
    return err;
}

void mx_hashes_free(mx_hashes *hashes) { free(hashes); }

uint64_t mx_hashes_unit_bytes(const mx_hashes *hashes) { return hashes->unit_bytes; }

uint64_t mx_hashes_bytes(const mx_hashes *hashes) { return hashes->bytes; }

int mx_hashes_check(const mx_hashes *hashes, uint64_t offset_bytes, uint64_t bytes, const void *data,
                    uint64_t *damage) {
    const uint64_t unit = hashes->unit_bytes, all = hashes->bytes;
    if (offset_bytes % unit != 0 || offset_bytes > all || bytes > all - offset_bytes ||
        (bytes % unit != 0 && offset_bytes + bytes != all))
        return -EINVAL;
    for (uint64_t at = 0; at < bytes; at += unit) {
        const uint64_t length = bytes - at < unit ? bytes - at : unit;
        const uint32_t known = hashes->sums[(offset_bytes + at) / unit];
        if (known == 0 || known == sum_of((const char *)data + at, length)) continue;
        *damage = offset_bytes + at;
        return -EBADMSG;
    }
    return 0;
}
