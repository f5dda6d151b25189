/* check.c - kernels on poisoned rows. */
#include "kernel/private.h"

#include <errno.h>
#include <memext/backend.h>

int mx_kernel_check(const struct mx_system *system, mx_why *why) {
    return mx_fail(why, -ENOTSUP, "the kernel \"%s\" cannot be tried out by this version", system->name);
}
