/* SPDX-License-Identifier: BSD-3-Clause */
/* points_private.h - shared by the files of points (points.h). */
#ifndef MX_POINTS_PRIVATE_H
#define MX_POINTS_PRIVATE_H

#include "system/points.h"

/* Makes room for one more element. -ENOMEM with a sentence. */
int mx_points_grow(void **array, int64_t n, int64_t *capacity, size_t element, mx_why *why);

/* Hashes of lists: FNV-1a, 64 bits, over words. */
#define MX_POINTS_HASH UINT64_C(0xcbf29ce484222325)
uint64_t mx_points_mix(uint64_t hash, uint64_t word);
uint64_t mx_points_mix_point(uint64_t hash, const struct mx_point *point);

/* Returns the number of the wavelet of this file in *out; reads the file the first time. -errno with a
 * sentence. */
int mx_sources_wavelet(struct mx_sources *sources, const char *path, int64_t *out, mx_why *why);

#endif
