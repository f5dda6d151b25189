/* SPDX-License-Identifier: BSD-3-Clause */
/* inuse.c - who uses a block device: mounts, swap, and whatever is stacked on it. */
#include "core/safety.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct place {
    const char *root, *path;
    mx_why *why;
    dev_t device;
    const struct stat *swap_file; /* a file is asked about, not the device */
};

static bool is_device(const char *path, dev_t device) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISBLK(st.st_mode) && st.st_rdev == device;
}

static bool is_file(const char *path, const struct stat *file) {
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* The kernel writes blanks and the like in names as a backslash and three octal digits. */
static void unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from != 0;) {
        unsigned value = 0;
        int used = 0;
        if (*from == '\\' && sscanf(from + 1, "%3o%n", &value, &used) == 1 && used == 3) {
            *to++ = (char)value;
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = 0;
}

/* Calls check with every line of a file below the root; its result ends the walk unless it is 0. A file that
 * is not there has no lines. */
static int each_line(const struct place *at, const char *name, int (*check)(const struct place *, char *)) {
    char path[PATH_MAX], *line = NULL;
    size_t capacity = 0;
    int n = snprintf(path, sizeof path, "%s%s", at->root, name), err = 0;
    FILE *file = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (file == NULL) return 0;
    while (err == 0 && getline(&line, &capacity, file) > 0) err = check(at, line);
    free(line);
    fclose(file);
    return err;
}

/* The n-th word from 0 on, ended by a zero, unescaped; NULL if there is none. The line is cut in pieces. */
static char *word_of(char *line, int n) {
    char *rest, *word = strtok_r(line, " \t\n", &rest);
    while (word != NULL && n-- > 0) word = strtok_r(NULL, " \t\n", &rest);
    if (word != NULL) unescape(word);
    return word;
}

/* By number, and by the name of the source: some file systems (btrfs) mount under a number of their own. */
static int check_mount(const struct place *at, char *line) {
    unsigned major_number, minor_number;
    char *tail = strstr(line, " - ");
    if (tail == NULL || sscanf(line, "%*s %*s %u:%u", &major_number, &minor_number) != 2) return 0;
    *tail = 0;
    const char *source = word_of(tail + 3, 1), *where = word_of(line, 4);
    if (source == NULL || where == NULL) return 0;
    if (makedev(major_number, minor_number) != at->device && !is_device(source, at->device)) return 0;
    return mx_fail(at->why, -EBUSY, "%.200s is mounted on %.200s; unmount it first (--force does not help)",
                   at->path, where);
}

static int check_swap(const struct place *at, char *line) {
    const char *source = word_of(line, 0);
    if (source == NULL) return 0;
    if (at->swap_file != NULL ? !is_file(source, at->swap_file) : !is_device(source, at->device)) return 0;
    return mx_fail(at->why, -EBUSY,
                   "%.300s is swap space in use; run swapoff on it first (--force does not help)", at->path);
}

int mx_check_no_swap_file(const char *root, const struct stat *file, const char *path, mx_why *why) {
    struct place at = {.root = root, .path = path, .why = why, .swap_file = file};
    return each_line(&at, "/proc/swaps", check_swap);
}

static int check_holders(const struct place *at) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/dev/block/%u:%u/holders", at->root, major(at->device),
             minor(at->device));
    DIR *dir = opendir(path);
    if (dir == NULL) return 0;
    int err = 0;
    for (struct dirent *entry; err == 0 && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            err = mx_fail(at->why, -EBUSY,
                          "%.200s is part of %.100s (RAID, LVM or an encrypted volume); take it out "
                          "of there first (--force does not help)",
                          at->path, entry->d_name);
    closedir(dir);
    return err;
}

static int check_one(const struct place *at) {
    int err = each_line(at, "/proc/self/mountinfo", check_mount);
    if (err == 0) err = each_line(at, "/proc/swaps", check_swap);
    return err != 0 ? err : check_holders(at);
}

/* One of the small files of a partition, below the directory of its disk. */
static FILE *open_attribute(int disk, const char *name, const char *attribute) {
    char path[NAME_MAX + 32];
    int n = snprintf(path, sizeof path, "%s/%s", name, attribute);
    int fd = n > 0 && (size_t)n < sizeof path ? openat(disk, path, O_RDONLY | O_CLOEXEC) : -1;
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL && fd >= 0) close(fd);
    return file;
}

static bool partition_of(int disk, const char *name, dev_t *out) {
    unsigned major_number, minor_number;
    FILE *mark = name[0] != '.' ? open_attribute(disk, name, "partition") : NULL;
    FILE *file = mark != NULL ? open_attribute(disk, name, "dev") : NULL;
    bool got = file != NULL && fscanf(file, "%u:%u", &major_number, &minor_number) == 2;
    if (file != NULL) fclose(file);
    if (mark != NULL) fclose(mark);
    if (got) *out = makedev(major_number, minor_number);
    return got;
}

int mx_check_unused(const char *root, dev_t device, const char *path, mx_why *why) {
    struct place at = {.root = root, .path = path, .why = why, .device = device};
    char disk[PATH_MAX];
    int err = check_one(&at);
    snprintf(disk, sizeof disk, "%s/sys/dev/block/%u:%u", root, major(device), minor(device));
    DIR *dir = opendir(disk);
    if (dir == NULL) return err;
    for (struct dirent *entry; err == 0 && (entry = readdir(dir)) != NULL;)
        if (partition_of(dirfd(dir), entry->d_name, &at.device)) err = check_one(&at);
    closedir(dir);
    return err;
}
