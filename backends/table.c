/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - the only place that names a backend. From the simple to the fast: the last one with a transfer
 * style that works is the default. */
#include <memext/backend.h>

extern const struct mx_backend mx_dram, mx_swap, mx_mmap, mx_aio, mx_uring;

const struct mx_backend *const mx_backends[] = {&mx_dram, &mx_swap, &mx_mmap, &mx_aio, &mx_uring, NULL};
