/* SPDX-License-Identifier: BSD-3-Clause */
/* npy_head.h - inside system/ and grid/ only: the head of a .npy file of floating-point numbers. */
#ifndef MX_NPY_HEAD_H
#define MX_NPY_HEAD_H

#include <memext/memext.h>

#include <stdint.h>

/* Reads the head (at most 64 KiB): where the numbers begin, the bytes of one (8 or 4), and the extents in
 * shape[0..1] (1 if there are fewer). Returns the number of extents, up to 3, or -errno with a sentence. */
int mx_npy_head(int fd, const char *path, int64_t *data_at, int64_t *element, int64_t shape[2], mx_why *why);

/* Returns the length of the word with which a type begins in a head, quotes included: "'<i4'"; for a
 * structured type that of its beginning. For messages. */
int mx_npy_type_bytes(const char *descr);

#endif
