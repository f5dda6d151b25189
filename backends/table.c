/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - the only place that names a backend. They go from the simple to the fast: the default is the last
 * one that transfers, works here, and is not used by_name alone. */
#include <memext/backend.h>

extern const struct mx_backend mx_dram;
extern const struct mx_backend mx_swap;
extern const struct mx_backend mx_mmap;
extern const struct mx_backend mx_aio;
extern const struct mx_backend mx_uring;
extern const struct mx_backend mx_skeleton;

const struct mx_backend *const mx_backends[] = {
    &mx_dram,  /* memory */
    &mx_swap,  /* page faults, swap space */
    &mx_mmap,  /* page faults, page cache */
    &mx_aio,   /* libaio, O_DIRECT */
    &mx_uring, /* io_uring */
    NULL,
};

const struct mx_backend *const mx_backend_skeleton = &mx_skeleton;
