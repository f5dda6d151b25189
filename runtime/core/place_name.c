/* SPDX-License-Identifier: BSD-3-Clause */
/* place_name.c - what a path names, and why it cannot be opened. */
#include "core/place_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STORE_NAME "memext.store"

struct open_error {
    int from, to;
    const char *text; /* follows the path */
};

static const struct open_error open_errors[] = {
    {ENOENT, -ENOENT,
     ": there is no such place; make the directory first, or end the name of a new store in .memext"},
    {ENOTDIR, -ENOENT, ": a part of this path is not a directory"},
    {EACCES, -EACCES, ": no permission to read and write; change its permissions or name another place"},
    {EPERM, -EACCES, ": the system forbids writing; name another place"},
    {EROFS, -EROFS, " is on a read-only file system; name another place"},
    {ETXTBSY, -EBUSY, " is in use by the system (swap file or running program); name another place"},
    {EBUSY, -EBUSY, " is held by the system or another program; release it first (--force does not help)"},
    {ENXIO, -ENOTBLK, ": there is no device behind this name"},
    {ENODEV, -ENOTBLK, ": there is no device behind this name"},
    {ENOMEDIUM, -ENOTBLK, ": there is no medium in this device"},
    {ENOSPC, -ENOSPC, ": the file system is full; free space or name another place"},
    {EDQUOT, -ENOSPC, ": the disk quota is used up; free space or name another place"},
};

int mx_place_explain(const char *path, int error, mx_why *why) {
    for (size_t i = 0; i < sizeof open_errors / sizeof open_errors[0]; i++)
        if (open_errors[i].from == error)
            return mx_fail(why, open_errors[i].to, "%.400s%s", path, open_errors[i].text);
    return mx_fail(why, -error, "%.400s: %s", path, strerror(error));
}

int mx_place_refuse_link(const char *path, mx_why *why) {
    char to[256];
    ssize_t n = readlink(path, to, sizeof to - 1);
    to[n > 0 ? n : 0] = 0;
    return mx_fail(why, -ELOOP,
                   "%.200s is a symbolic link to %.200s: links to files are not followed; name the file "
                   "itself",
                   path, n > 0 ? to : "something else");
}

int mx_place_join(char out[4096], const char *asked, const char *name, mx_why *why) {
    int n = snprintf(out, 4096, "%s%s", asked, name);
    return n >= 0 && n < 4096
               ? 0
               : mx_fail(why, -ENAMETOOLONG, "the path of the place is longer than 4095 bytes");
}

/* The file or the device itself; a link only if it leads to a block device. */
static int stat_place(const char *path, bool in_directory, mx_why *why, struct stat *st) {
    *st = (struct stat){.st_mode = S_IFREG};
    struct stat itself;
    if (lstat(path, &itself) != 0) return 0; /* nothing there; opening it will tell more */
    if (!S_ISLNK(itself.st_mode)) {
        *st = itself;
        return 0;
    }
    if (!in_directory && stat(path, st) == 0 && S_ISBLK(st->st_mode)) return 0;
    return mx_place_refuse_link(path, why);
}

int mx_place_name(const char *asked, mx_why *why, char path[4096], bool *directory, struct stat *st) {
    if (asked == NULL || asked[0] == 0)
        return mx_fail(why, -EINVAL, "%s: give a directory, file or block device on a disk with -d PATH",
                       asked == NULL ? "the run needs a place for its store"
                                     : "-d names no place, its argument is empty");
    *directory = stat(asked, st) == 0 && S_ISDIR(st->st_mode);
    int err = mx_place_join(path, asked, *directory ? "/" STORE_NAME : "", why);
    if (err == 0) err = stat_place(path, *directory, why, st);
    if (err != 0) return err;
    if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode)) return 0;
    return mx_fail(why, -ENOTBLK, "%.400s is not storage; name a directory, a file or a block device", path);
}

bool mx_place_is_new_store(const char *path) {
    static const char *const ends[] = {".memext", ".store"};
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const size_t n = strlen(ends[i]);
        if (strlen(name) > n && strcmp(name + strlen(name) - n, ends[i]) == 0) return true;
    }
    return false;
}

int mx_place_check(const char *path, mx_why *why) {
    char whole[4096];
    bool directory;
    struct stat st;
    int err = mx_place_name(path, why, whole, &directory, &st);
    if (err < 0 || directory || stat(path, &st) == 0) return err;
    err = errno;
    char *slash = strrchr(whole, '/');
    if (err == ENOENT && mx_place_is_new_store(path)) {
        if (slash != NULL) slash[slash == whole] = 0;
        err = slash == NULL || stat(whole, &st) == 0 ? 0 : errno;
    }
    return err != 0 ? mx_place_explain(path, err, why) : 0;
}
