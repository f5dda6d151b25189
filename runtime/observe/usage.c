#include "observe/usage.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Value after `key` at the start of a line of a small /proc file; 0 if it is not there. */
static uint64_t proc_value(const char *path, const char *key) {
    char line[256];
    unsigned long long value = 0;
    size_t n = strlen(key);
    FILE *f = fopen(path, "re");
    if (f == NULL) return 0;
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, n) == 0 && sscanf(line + n, " %llu", &value) == 1) break;
    fclose(f);
    return value;
}

struct mx_usage mx_usage_now(void) {
    struct mx_usage u = {0};
    struct rusage r;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    u.storage_read_bytes = proc_value("/proc/self/io", "read_bytes:");
    u.storage_write_bytes = proc_value("/proc/self/io", "write_bytes:");
    u.swap_in_bytes = proc_value("/proc/vmstat", "pswpin") * page;
    u.swap_out_bytes = proc_value("/proc/vmstat", "pswpout") * page;
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
                             n.major_faults - s->major_faults,
                             n.minor_faults - s->minor_faults,
                             n.user_us - s->user_us,
                             n.system_us - s->system_us};
}

uint64_t mx_usage_peak_rss_bytes(void) { return proc_value("/proc/self/status", "VmHWM:") * 1024; }
