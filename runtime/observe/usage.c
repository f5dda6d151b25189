#include "observe/usage.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* One line of a small /proc file: a name and its value. */
struct line {
    const char *name;
    size_t field; /* offset in struct mx_usage; values of one field add up */
};

#define FIELD(name) offsetof(struct mx_usage, name)
static const struct line io_lines[] = {{"read_bytes:", FIELD(storage_read_bytes)},
                                       {"write_bytes:", FIELD(storage_write_bytes)}};
/* In pages. */
static const struct line vmstat_lines[] = {{"pswpin", FIELD(swap_in_bytes)},
                                           {"pswpout", FIELD(swap_out_bytes)},
                                           {"pgsteal_anon", FIELD(reclaimed_bytes)},
                                           {"pgsteal_file", FIELD(reclaimed_bytes)},
                                           {"workingset_refault_anon", FIELD(refault_bytes)},
                                           {"workingset_refault_file", FIELD(refault_bytes)}};

static void take(const char *path, const struct line *lines, size_t n, uint64_t unit, struct mx_usage *out) {
    char text[256];
    FILE *f = fopen(path, "re");
    if (f == NULL) return;
    while (fgets(text, sizeof text, f) != NULL)
        for (size_t i = 0; i < n; i++) {
            size_t length = strlen(lines[i].name);
            if (strncmp(text, lines[i].name, length) == 0 && text[length] == ' ')
                *(uint64_t *)((char *)out + lines[i].field) += unit * strtoull(text + length, NULL, 10);
        }
    fclose(f);
}

struct mx_usage mx_usage_now(void) {
    struct mx_usage u = {0};
    struct rusage r;
    take("/proc/self/io", io_lines, sizeof io_lines / sizeof io_lines[0], 1, &u);
    take("/proc/vmstat", vmstat_lines, sizeof vmstat_lines / sizeof vmstat_lines[0],
         (uint64_t)sysconf(_SC_PAGESIZE), &u);
    if (getrusage(RUSAGE_SELF, &r) == 0) {
        u.major_faults = (uint64_t)r.ru_majflt;
        u.minor_faults = (uint64_t)r.ru_minflt;
        u.user_us = (uint64_t)r.ru_utime.tv_sec * 1000000 + (uint64_t)r.ru_utime.tv_usec;
        u.system_us = (uint64_t)r.ru_stime.tv_sec * 1000000 + (uint64_t)r.ru_stime.tv_usec;
    }
    return u;
}

struct mx_usage mx_usage_since(const struct mx_usage *s) {
    struct mx_usage n = mx_usage_now();
    return (struct mx_usage){n.storage_read_bytes - s->storage_read_bytes,
                             n.storage_write_bytes - s->storage_write_bytes,
                             n.swap_in_bytes - s->swap_in_bytes,
                             n.swap_out_bytes - s->swap_out_bytes,
                             n.reclaimed_bytes - s->reclaimed_bytes,
                             n.refault_bytes - s->refault_bytes,
                             n.major_faults - s->major_faults,
                             n.minor_faults - s->minor_faults,
                             n.user_us - s->user_us,
                             n.system_us - s->system_us};
}

uint64_t mx_usage_peak_rss_bytes(void) {
    unsigned long long kib = 0;
    char text[256];
    FILE *f = fopen("/proc/self/status", "re");
    if (f == NULL) return 0;
    while (fgets(text, sizeof text, f) != NULL && sscanf(text, "VmHWM: %llu", &kib) != 1) {
    }
    fclose(f);
    return kib * 1024;
}
