/* SPDX-License-Identifier: BSD-3-Clause */
/* cgroup.h - the memory limit of this process's cgroups, v1 and v2. Private to machine/. */
#ifndef MX_CGROUP_H
#define MX_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mx_cgroup {
    char kind[8];         /* "v1" "v2": where the memory controller of this process lives; "none" */
    uint64_t limit_bytes; /* the smallest of the process's group and all its parents; 0 = unlimited */
};

/* Finds the memory limit. root is put before every path that is read ("" = the real files):
 * /proc/self/cgroup, /proc/self/mountinfo and the mount points named there. Missing files mean no limit. */
void mx_cgroup_limit(const char *root, struct mx_cgroup *out);

/* Finds the path of memory.stat of this process's group; false = there is none. */
bool mx_cgroup_stat_path(const char *root, char *path, size_t capacity_bytes);

#endif
