/* SPDX-License-Identifier: BSD-3-Clause */
/* digest.h - the checksum of a grid: XXH3-64 of each row of the interior (of each field, in the order of the
 * kernel), folded over the rows of a plane, and these over the planes; of a staggered system first the planes
 * of array A, then those of B.
 *
 *     fold(before, item) = XXH3-64 of both, 8 bytes each, big endian; the first `before` is 0
 *
 * So each thread or rank can hash the planes that it has, at any time.
 */
#ifndef MX_RUN_DIGEST_H
#define MX_RUN_DIGEST_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

static inline uint64_t mx_digest_fold(uint64_t before, uint64_t item) {
    const uint64_t both[2] = {htobe64(before), htobe64(item)};
    return XXH3_64bits(both, sizeof both);
}

/* The next row of a plane. */
static inline void mx_digest_row(uint64_t *plane, const void *row, size_t bytes) {
    *plane = mx_digest_fold(*plane, XXH3_64bits(row, bytes));
}

#endif
