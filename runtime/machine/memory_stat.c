#include "machine/cgroup.h"
#include "machine/machine.h"

#include <stdio.h>
#include <string.h>

/* Names of the four figures in one source; sums where a name comes twice. */
struct source {
    const char *key;
    size_t field; /* offset in struct mx_memory_stat */
};

#define FIELD(name) offsetof(struct mx_memory_stat, name)
static const struct source v1[] = {{"total_rss", FIELD(anon_bytes)},
                                   {"total_cache", FIELD(cache_bytes)},
                                   {"total_dirty", FIELD(dirty_bytes)},
                                   {"total_writeback", FIELD(writeback_bytes)}};
static const struct source v2[] = {{"anon", FIELD(anon_bytes)},
                                   {"file", FIELD(cache_bytes)},
                                   {"file_dirty", FIELD(dirty_bytes)},
                                   {"file_writeback", FIELD(writeback_bytes)}};
static const struct source machine[] = {{"AnonPages:", FIELD(anon_bytes)},
                                        {"Cached:", FIELD(cache_bytes)},
                                        {"Dirty:", FIELD(dirty_bytes)},
                                        {"Writeback:", FIELD(writeback_bytes)}};

static int take(FILE *file, const struct source sources[4], uint64_t unit, struct mx_memory_stat *out) {
    char key[64];
    unsigned long long value;
    int found = 0;
    rewind(file);
    while (fscanf(file, "%63s %llu%*[^\n]", key, &value) == 2)
        for (int i = 0; i < 4; i++)
            if (strcmp(key, sources[i].key) == 0) {
                *(uint64_t *)((char *)out + sources[i].field) = value * unit;
                found++;
            }
    return found;
}

void mx_machine_memory_stat(struct mx_memory_stat *out) {
    char path[8300];
    *out = (struct mx_memory_stat){0};
    FILE *file = mx_cgroup_stat_path("", path, sizeof path) ? fopen(path, "re") : NULL;
    int found = 0;
    if (file != NULL) {
        found = take(file, v1, 1, out);
        if (found == 0) found = take(file, v2, 1, out);
        fclose(file);
    }
    file = found == 0 ? fopen("/proc/meminfo", "re") : NULL;
    if (file == NULL) return;
    take(file, machine, 1024, out);
    fclose(file);
}
