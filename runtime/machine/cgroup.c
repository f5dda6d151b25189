/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

/* The kernel writes "no limit" as a page-rounded LONG_MAX (v1) or "max" (v2). */
#define UNLIMITED_BYTES (UINT64_C(1) << 60)

struct hierarchy {
    const char *kind, *fs_type;
    const char *files[3]; /* limits, in bytes; NULL-terminated */
};

static const struct hierarchy v1 = {"v1", "cgroup", {"memory.limit_in_bytes", NULL}};
/* memory.high does not kill, but a run above it is throttled to a crawl: a limit all the same. */
static const struct hierarchy v2 = {"v2", "cgroup2", {"memory.max", "memory.high", NULL}};

static FILE *open_under(const char *root, const char *path) {
    char full[PATH_BYTES];
    int n = snprintf(full, sizeof full, "%s%s", root, path);
    return n < 0 || n >= PATH_BYTES ? NULL : fopen(full, "re");
}

/* True if `word` is one of the comma-separated words of `list`. */
static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *p = list; p != NULL && *p != 0; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, word, n) == 0 && (p[n] == 0 || p[n] == ',')) return true;
    }
    return false;
}

/* The group of this process: lines "id:controllers:path"; v2 is "0::path". */
static bool find_group(const char *root, const struct hierarchy *h, char *out) {
    FILE *file = open_under(root, "/proc/self/cgroup");
    char line[PATH_BYTES];
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL) continue;
        *controllers++ = 0;
        *path++ = 0;
        found = h == &v2 ? strcmp(line, "0") == 0 && *controllers == 0 : has_word(controllers, "memory");
        if (found) strcpy(out, path);
    }
    if (file != NULL) fclose(file);
    return found;
}

/* mountinfo writes blanks in paths as octal: \040 */
static void unescape(char *text) {
    char *to = text;
    for (const char *p = text; *p != 0; to++) {
        unsigned code;
        int used = 0;
        if (p[0] == '\\' && sscanf(p + 1, "%3o%n", &code, &used) == 1 && used == 3) {
            *to = (char)code;
            p += 4;
        } else {
            *to = *p++;
        }
    }
    *to = 0;
}

/* Where the hierarchy is mounted, and which of its directories is the root of that mount. Line:
 * "id parent dev root mountpoint options [fields] - type source superoptions" */
static bool find_mount(const char *root, const struct hierarchy *h, char *mount_root, char *mount_point) {
    FILE *file = open_under(root, "/proc/self/mountinfo");
    char line[2 * PATH_BYTES];
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char type[64], options[1024];
        const char *tail = strstr(line, " - ");
        if (tail == NULL || sscanf(tail, " - %63s %*s %1023s", type, options) != 2) continue;
        if (strcmp(type, h->fs_type) != 0 || (h == &v1 && !has_word(options, "memory"))) continue;
        found = sscanf(line, "%*s %*s %*s %4095s %4095s", mount_root, mount_point) == 2;
    }
    if (file != NULL) fclose(file);
    if (found) {
        unescape(mount_root);
        unescape(mount_point);
    }
    return found;
}

static void lower(uint64_t *limit, const char *text) {
    char *end;
    const unsigned long long value = strtoull(text, &end, 10);
    if (end != text && value < UNLIMITED_BYTES && (*limit == 0 || value < *limit)) *limit = value;
}

/* The smallest limit of a group of v1 and all above it, also of those that a container does not see. */
static void take_hierarchical(const char *root, const char *dir, uint64_t *limit) {
    static const char name[] = "hierarchical_memory_limit ";
    char path[2 * PATH_BYTES + 64], line[256];
    snprintf(path, sizeof path, "%s/memory.stat", dir);
    FILE *file = open_under(root, path);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, sizeof name - 1) == 0) lower(limit, line + sizeof name - 1);
    if (file != NULL) fclose(file);
}

/* Lowers *limit to the value of one file; false if there is no such file. */
static bool take_limit(const char *root, const char *dir, const char *name, uint64_t *limit) {
    char path[2 * PATH_BYTES + 64], text[64] = "";
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = open_under(root, path);
    if (file == NULL) return false;
    bool got = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    if (got) lower(limit, text);
    return got;
}

/* The group's path below the mount point. In a container the mount shows only the container's part of the
 * tree, while the path may be told from the host's root; outside that part (a cgroup namespace) the mount's
 * top is ours.
 */
static const char *below_mount(const char *group, const char *mount_root) {
    size_t n = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    bool inside = strncmp(group, mount_root, n) == 0 && (group[n] == '/' || group[n] == 0);
    return inside && strstr(group, "/..") == NULL ? group + n : "";
}

/* The directory of the process's group; *top is the length of its mount point. */
static bool find_dir(const char *root, const struct hierarchy *h, char dir[2 * PATH_BYTES], size_t *top) {
    char group[PATH_BYTES], mount_root[PATH_BYTES], mount_point[PATH_BYTES];
    if (!find_group(root, h, group) || !find_mount(root, h, mount_root, mount_point)) return false;
    snprintf(dir, 2 * PATH_BYTES, "%s%s", mount_point, below_mount(group, mount_root));
    *top = strlen(mount_point);
    return true;
}

static bool limit_of(const char *root, const struct hierarchy *h, struct mx_cgroup *out) {
    char dir[2 * PATH_BYTES];
    size_t top;
    if (!find_dir(root, h, dir, &top)) return false;
    uint64_t limit = 0;
    bool any = false;
    if (h == &v1) take_hierarchical(root, dir, &limit);
    for (;;) {
        for (const char *const *name = h->files; *name != NULL; name++)
            any |= take_limit(root, dir, *name, &limit);
        char *slash = strrchr(dir, '/');
        if (slash == NULL || (size_t)(slash - dir) < top) break;
        *slash = 0;
    }
    if (!any) return false;
    strcpy(out->kind, h->kind);
    out->limit_bytes = limit;
    return true;
}

void mx_cgroup_limit(const char *root, struct mx_cgroup *out) {
    *out = (struct mx_cgroup){.kind = "none"};
    /* A process has its memory controller in one hierarchy, never in both. */
    if (!limit_of(root, &v1, out)) limit_of(root, &v2, out);
}

bool mx_cgroup_stat_path(const char *root, char *path, size_t capacity_bytes) {
    char dir[2 * PATH_BYTES];
    size_t top;
    for (int i = 0; i < 2; i++) {
        if (!find_dir(root, i == 0 ? &v1 : &v2, dir, &top)) continue;
        int n = snprintf(path, capacity_bytes, "%s%s/memory.stat", root, dir);
        FILE *file = n > 0 && (size_t)n < capacity_bytes ? fopen(path, "re") : NULL;
        if (file == NULL) continue;
        fclose(file);
        return true;
    }
    return false;
}
