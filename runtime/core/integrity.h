/* SPDX-License-Identifier: BSD-3-Clause */
/* integrity.h - what was written to a Buffer, in 32 bits a unit: data that comes back different is found. */
#ifndef MX_INTEGRITY_H
#define MX_INTEGRITY_H

#include <memext/memext.h>

struct mx_integrity;

/* The table of a Buffer of `bytes` (to which transfers may reach), none of its units known; on a device that
 * is durable with the extent "NAME.sum", opened or made. */
int mx_integrity_create(mx_device *device, const char *name, uint64_t bytes, uint64_t unit_bytes,
                        mx_budget *budget, mx_why *why, struct mx_integrity **out);
/* Returns the extent, which the caller closes, or NULL. NULL allowed. */
mx_buffer *mx_integrity_free(struct mx_integrity *table);

/* -EINVAL where spans do not consist of whole units. NULL table: 0. */
int mx_integrity_fits(const struct mx_integrity *table, const struct mx_span *spans, size_t n);
/* Takes the sums of what is written. Different units: any threads at once. NULL table: nothing. */
void mx_integrity_take(struct mx_integrity *table, const struct mx_span *spans, size_t n);
/* Compares what was read: 0 or -EBADMSG. Takes the sums of units that nothing is known of. Any thread. NULL
 * table: 0. */
int mx_integrity_check(struct mx_integrity *table, const struct mx_span *spans, size_t n);

/* See mx_buffer_damage, mx_buffer_integrity_save and _load. NULL table: -1, -EINVAL, -EINVAL. */
int64_t mx_integrity_damage(const struct mx_integrity *table);
int mx_integrity_save(struct mx_integrity *table);
int mx_integrity_load(struct mx_integrity *table);
/* See mx_buffer_integrity_bytes. NULL table: 0. */
uint64_t mx_integrity_bytes(const struct mx_integrity *table);

#endif
