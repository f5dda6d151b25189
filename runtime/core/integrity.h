/* SPDX-License-Identifier: BSD-3-Clause */
/* integrity.h - checksums of the units of a Buffer, 32 bits each, which find data that was read back
 * differently. */
#ifndef MX_INTEGRITY_H
#define MX_INTEGRITY_H

#include <memext/memext.h>

struct mx_integrity;

/* Makes the table of a Buffer of `bytes` bytes (the end of the longest transfer). No unit has a known
 * checksum yet. On a durable device it opens or makes the extent "NAME.sum" too. Errors as of
 * mx_buffer_integrity. */
int mx_integrity_create(mx_device *device, const char *name, uint64_t bytes, uint64_t unit_bytes,
                        mx_budget *budget, mx_why *why, struct mx_integrity **out);
/* Frees the table, and returns its extent, which the caller closes, or NULL. NULL allowed. */
mx_buffer *mx_integrity_free(struct mx_integrity *table);

/* -EINVAL if spans do not consist of whole units. NULL table: 0. */
int mx_integrity_fits(const struct mx_integrity *table, const struct mx_span *spans, size_t n);
/* Records the checksums of data that is written. Several threads may do so at once for different units. NULL
 * table: does nothing. */
void mx_integrity_take(struct mx_integrity *table, const struct mx_span *spans, size_t n);
/* Compares data that was read: 0 or -EBADMSG. Records the checksums of units without a known one. Any thread.
 * NULL table: 0. */
int mx_integrity_check(struct mx_integrity *table, const struct mx_span *spans, size_t n);

/* See mx_buffer_damage, mx_buffer_integrity_save and _load. NULL table: -1, -EINVAL, -EINVAL. */
int64_t mx_integrity_damage(const struct mx_integrity *table);
int mx_integrity_save(struct mx_integrity *table);
int mx_integrity_load(struct mx_integrity *table);
/* See mx_buffer_integrity_bytes. NULL table: 0. */
uint64_t mx_integrity_bytes(const struct mx_integrity *table);

#endif
