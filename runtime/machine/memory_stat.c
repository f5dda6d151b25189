/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/cgroup.h"
#include "machine/machine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 16384 }; /* the longest of these files, /proc/vmstat, has about 5000 */

#define FIELD(name) offsetof(struct mx_memory_stat, name)
/* Of a cgroup v1, of a cgroup v2, of /proc/meminfo. */
static const struct mx_named names[] = {
    {"total_rss", FIELD(anon_bytes), 1},     {"total_cache", FIELD(cache_bytes), 1},
    {"total_dirty", FIELD(dirty_bytes), 1},  {"total_writeback", FIELD(writeback_bytes), 1},
    {"anon", FIELD(anon_bytes), 1},          {"file", FIELD(cache_bytes), 1},
    {"file_dirty", FIELD(dirty_bytes), 1},   {"file_writeback", FIELD(writeback_bytes), 1},
    {"AnonPages:", FIELD(anon_bytes), 1024}, {"Cached:", FIELD(cache_bytes), 1024},
    {"Dirty:", FIELD(dirty_bytes), 1024},    {"Writeback:", FIELD(writeback_bytes), 1024}};

/* From the start at every call: the kernel writes such a file anew when it is read from offset 0. */
static size_t text_of(int fd, char text[TEXT_BYTES]) {
    size_t length = 0;
    ssize_t n = 0;
    while (length < TEXT_BYTES - 1 &&
           (n = pread(fd, text + length, TEXT_BYTES - 1 - length, (off_t)length)) > 0)
        length += (size_t)n;
    text[length] = 0;
    return length;
}

int mx_machine_named(int fd, const struct mx_named *wanted, size_t n, void *out) {
    char text[TEXT_BYTES];
    int found = 0;
    if (fd < 0 || text_of(fd, text) == 0) return 0;
    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        size_t length = strcspn(line, " \n");
        for (size_t i = 0; i < n; i++) {
            if (wanted[i].name[0] != line[0] || strncmp(wanted[i].name, line, length) != 0 ||
                wanted[i].name[length] != 0)
                continue;
            *(uint64_t *)((char *)out + wanted[i].field) +=
                wanted[i].unit * strtoull(line + length, NULL, 10);
            found++;
        }
    }
    return found;
}

int mx_machine_memory_open(void) {
    char path[8300];
    int fd = mx_cgroup_stat_path("", path, sizeof path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    struct mx_memory_stat m;
    if (fd >= 0 && mx_machine_memory_stat(fd, &m) > 0) return fd;
    if (fd >= 0) close(fd);
    return open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
}

int mx_machine_memory_stat(int fd, struct mx_memory_stat *out) {
    *out = (struct mx_memory_stat){0};
    return mx_machine_named(fd, names, sizeof names / sizeof names[0], out);
}
