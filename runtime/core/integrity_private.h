/* SPDX-License-Identifier: BSD-3-Clause */
/* integrity_private.h - the checksums of a Buffer's units, for the files that keep them.
 *
 *     0 KiB header    4 KiB sums: 32 bits a unit, 0 = not known
 *
 * This is the table in DRAM and, as it was at the last save, in the extent. The header distinguishes a table
 * that was saved whole from any other content of the extent.
 */
#ifndef MX_INTEGRITY_PRIVATE_H
#define MX_INTEGRITY_PRIVATE_H

#include "core/integrity.h"

#include <stdatomic.h>

enum { MX_SUMS_HEADER_BYTES = 4096 };
#define MX_SUMS_MAGIC "mx-sums"

struct mx_sums_header {
    char magic[8];
    uint64_t unit_bytes, n_units;
    uint64_t sums_hash; /* XXH3-64 of the sums */
    uint64_t bytes;     /* length of all units; 0 (older versions of memext): that of the Buffer */
};

struct mx_integrity {
    uint64_t bytes, unit_bytes, n_units;
    mx_block *block; /* header and sums */
    uint64_t block_bytes;
    uint32_t *sums;         /* in `block` */
    mx_buffer *extent;      /* NULL: the device is not durable */
    _Atomic int64_t damage; /* first byte of the first unit found damaged, -1 = none */
};

/* Returns the checksum of one unit, never 0. */
uint32_t mx_sum_of(const void *unit, uint64_t bytes);

#endif
