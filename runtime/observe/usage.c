/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/usage.h"
#include "machine/machine.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define FIELD(name) offsetof(struct mx_usage, name)
static const struct mx_named io_names[] = {{"read_bytes:", FIELD(storage_read_bytes), 1},
                                           {"write_bytes:", FIELD(storage_write_bytes), 1}};
/* In pages; values of one field add up. */
static const struct {
    const char *name;
    size_t field;
} vmstat_names[] = {{"pswpin", FIELD(swap_in_bytes)},
                    {"pswpout", FIELD(swap_out_bytes)},
                    {"pgsteal_anon", FIELD(reclaimed_bytes)},
                    {"pgsteal_file", FIELD(reclaimed_bytes)},
                    {"workingset_refault_anon", FIELD(refault_bytes)},
                    {"workingset_refault_file", FIELD(refault_bytes)}};
enum { N_VMSTAT = sizeof vmstat_names / sizeof vmstat_names[0] };

struct mx_usage_files mx_usage_open(void) {
    return (struct mx_usage_files){open("/proc/self/io", O_RDONLY | O_CLOEXEC),
                                   open("/proc/vmstat", O_RDONLY | O_CLOEXEC)};
}

void mx_usage_close(struct mx_usage_files *f) {
    if (f->io >= 0) close(f->io);
    if (f->vmstat >= 0) close(f->vmstat);
    f->io = f->vmstat = -1;
}

struct mx_usage mx_usage_now(const struct mx_usage_files *f) {
    struct mx_named in_pages[N_VMSTAT];
    struct mx_usage u = {0};
    struct rusage r;
    for (size_t i = 0; i < N_VMSTAT; i++)
        in_pages[i] =
            (struct mx_named){vmstat_names[i].name, vmstat_names[i].field, (uint64_t)sysconf(_SC_PAGESIZE)};
    mx_machine_named(f->io, io_names, sizeof io_names / sizeof io_names[0], &u);
    mx_machine_named(f->vmstat, in_pages, N_VMSTAT, &u);
    if (getrusage(RUSAGE_SELF, &r) == 0) {
        u.major_faults = (uint64_t)r.ru_majflt;
        u.minor_faults = (uint64_t)r.ru_minflt;
        u.user_us = (uint64_t)r.ru_utime.tv_sec * 1000000 + (uint64_t)r.ru_utime.tv_usec;
        u.system_us = (uint64_t)r.ru_stime.tv_sec * 1000000 + (uint64_t)r.ru_stime.tv_usec;
    }
    return u;
}

struct mx_usage mx_usage_since(const struct mx_usage_files *f, const struct mx_usage *s) {
    struct mx_usage n = mx_usage_now(f);
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
