/* inuse.c - who uses a block device: mounts, swap, and whatever is stacked on it. */
#include "core/safety.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <memext/backend.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct place {
    const char *root, *path;
    mx_why *why;
};

static bool is_device(const char *path, dev_t device) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISBLK(st.st_mode) && st.st_rdev == device;
}

static bool is_file(const char *path, const struct stat *file) {
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* By number, and by the name of the source: some file systems (btrfs) mount under a number of their own. */
static int check_mounts(const struct place *at, dev_t device) {
    char path[PATH_MAX], line[8192], where[4096], source[4096];
    snprintf(path, sizeof path, "%s/proc/self/mountinfo", at->root);
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    int err = 0;
    while (err == 0 && fgets(line, sizeof line, file) != NULL) {
        unsigned major_number, minor_number;
        const char *tail = strstr(line, " - ");
        if (tail == NULL || sscanf(tail, " - %*s %4095s", source) != 1 ||
            sscanf(line, "%*s %*s %u:%u %*s %4095s", &major_number, &minor_number, where) != 3)
            continue;
        if (makedev(major_number, minor_number) != device && !is_device(source, device)) continue;
        err = mx_fail(at->why, -EBUSY, "%s is mounted on %.200s; unmount it first (--force does not help)",
                      at->path, where);
    }
    fclose(file);
    return err;
}

/* A block device, or a file (file not NULL). */
static int check_swaps(const struct place *at, dev_t device, const struct stat *swap_file) {
    char path[PATH_MAX], line[4352], source[4096];
    snprintf(path, sizeof path, "%s/proc/swaps", at->root);
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    int err = 0;
    while (err == 0 && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%4095s", source) != 1) continue;
        if (swap_file != NULL ? is_file(source, swap_file) : is_device(source, device))
            err = mx_fail(at->why, -EBUSY,
                          "%.300s is swap space in use; swapoff it first (--force does not help)", at->path);
    }
    fclose(file);
    return err;
}

int mx_check_no_swap_file(const char *root, const struct stat *file, const char *path, mx_why *why) {
    struct place at = {root, path, why};
    return check_swaps(&at, 0, file);
}

static int check_holders(const struct place *at, dev_t device) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/dev/block/%u:%u/holders", at->root, major(device), minor(device));
    DIR *dir = opendir(path);
    if (dir == NULL) return 0;
    int err = 0;
    for (struct dirent *entry; err == 0 && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            err = mx_fail(at->why, -EBUSY,
                          "%s is part of %.100s (RAID, LVM or an encrypted volume); take it out "
                          "of there first (--force does not help)",
                          at->path, entry->d_name);
    closedir(dir);
    return err;
}

static int check_one(const struct place *at, dev_t device) {
    int err = check_mounts(at, device);
    if (err == 0) err = check_swaps(at, device, NULL);
    return err != 0 ? err : check_holders(at, device);
}

static bool partition_of(const char *disk_dir, const char *name, dev_t *out) {
    char path[PATH_MAX];
    unsigned major_number, minor_number;
    snprintf(path, sizeof path, "%s/%s/partition", disk_dir, name);
    if (name[0] == '.' || access(path, F_OK) != 0) return false;
    snprintf(path, sizeof path, "%s/%s/dev", disk_dir, name);
    FILE *file = fopen(path, "re");
    bool got = file != NULL && fscanf(file, "%u:%u", &major_number, &minor_number) == 2;
    if (file != NULL) fclose(file);
    if (got) *out = makedev(major_number, minor_number);
    return got;
}

int mx_check_unused(const char *root, dev_t device, const char *path, mx_why *why) {
    struct place at = {root, path, why};
    int err = check_one(&at, device);
    char disk[PATH_MAX - 300];
    snprintf(disk, sizeof disk, "%s/sys/dev/block/%u:%u", root, major(device), minor(device));
    DIR *dir = opendir(disk);
    if (dir == NULL) return err;
    for (struct dirent *entry; err == 0 && (entry = readdir(dir)) != NULL;) {
        dev_t part;
        if (partition_of(disk, entry->d_name, &part)) err = check_one(&at, part);
    }
    closedir(dir);
    return err;
}
