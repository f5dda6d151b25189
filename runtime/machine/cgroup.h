/* cgroup.h - the memory limit of this process's cgroups, v1 and v2. Private to machine/. */
#ifndef MX_CGROUP_H
#define MX_CGROUP_H

#include <stdint.h>

struct mx_cgroup {
    char kind[8];         /* "v1" "v2": where the memory controller of this process lives; "none" */
    uint64_t limit_bytes; /* the smallest of the process's group and all its parents; 0 = unlimited */
};

/* root is put before every path that is read ("" = the real files): /proc/self/cgroup, /proc/self/mountinfo
 * and the mount points named there. Files that are missing mean no limit. */
void mx_cgroup_limit(const char *root, struct mx_cgroup *out);

#endif
