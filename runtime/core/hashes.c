/* SPDX-License-Identifier: BSD-3-Clause */
/* hashes.c - reads the checksums of a store without opening a device, for programs that read its Buffers as
 * files. */
#include "core/integrity_private.h"

#include "core/store.h"

#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const char magic[8] = MX_SUMS_MAGIC;

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
static bool is_table(const struct mx_sums_header *h, const struct mx_store_extent *data,
                     uint64_t extent_bytes) {
    return memcmp(h->magic, magic, sizeof magic) == 0 && h->unit_bytes > 0 && h->bytes >= data->bytes &&
           h->bytes - data->bytes < MX_SUMS_HEADER_BYTES &&
           h->n_units == h->bytes / h->unit_bytes + (h->bytes % h->unit_bytes != 0) &&
           h->n_units <= (extent_bytes - MX_SUMS_HEADER_BYTES) / sizeof(uint32_t);
}

static int read_at(int fd, void *to, uint64_t bytes, uint64_t at) {
    const int err = mx_read_all(fd, to, bytes, (off_t)at);
    return err == -ENODATA ? -EIO : err;
}

static int read_hashes(int fd, const struct mx_store_extent *data, const struct mx_store_extent *table,
                       struct mx_hashes **out) {
    struct mx_sums_header h;
    int err = read_at(fd, &h, sizeof h, table->offset_bytes);
    if (err == 0 && h.bytes == 0) h.bytes = data->bytes;
    if (err == 0 && (table->bytes < MX_SUMS_HEADER_BYTES || !is_table(&h, data, table->bytes)))
        err = -ENODATA;
    if (err < 0) return err;
    const uint64_t bytes = h.n_units * sizeof(uint32_t);
    struct mx_hashes *x = malloc(sizeof *x + bytes);
    if (x == NULL) return -ENOMEM;
    x->bytes = h.bytes, x->unit_bytes = h.unit_bytes, x->n_units = h.n_units;
    err = read_at(fd, x->sums, bytes, table->offset_bytes + MX_SUMS_HEADER_BYTES);
    if (err == 0 && XXH3_64bits(x->sums, bytes) != h.sums_hash) err = -EBADMSG;
    if (err < 0) return free(x), err;
    return *out = x, 0;
}

int mx_hashes_open(const char *path, const char *buffer, mx_why *why, mx_hashes **out) {
    struct mx_store_facts *f = calloc(1, sizeof *f);
    if (f == NULL) return mx_fail(why, -ENOMEM, "no memory for a store's note");
    f->size = sizeof *f;
    if (why != NULL) why->text[0] = 0;
    int fd = -1, err = mx_store_see(path, why, f);
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
        if (known == 0 || known == mx_sum_of((const char *)data + at, length)) continue;
        *damage = offset_bytes + at;
        return -EBADMSG;
    }
    return 0;
}
