/* SPDX-License-Identifier: BSD-3-Clause */
/* size.h - sizes of memory as users write them. */
#ifndef MX_ASK_SIZE_H
#define MX_ASK_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* Reads a size as users write it: "512MiB", "64 GiB", "4096" (bytes). -EINVAL. */
int mx_parse_size(const char *text, uint64_t *out);

#endif
