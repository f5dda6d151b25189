/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/file.h"

#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>

const char *mx_file_kind(mode_t mode) {
    static const struct {
        mode_t type;
        const char *name;
    } kinds[] = {{S_IFDIR, "a directory"},
                 {S_IFIFO, "a pipe"},
                 {S_IFSOCK, "a socket"},
                 {S_IFCHR, "a character device (a terminal, for example)"},
                 {S_IFBLK, "a block device"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if ((mode & S_IFMT) == kinds[i].type) return kinds[i].name;
    return S_ISREG(mode) ? NULL : "something else";
}

static int refuse(const char *path, mode_t mode, mx_why *why) {
    return mx_fail(why, -EINVAL, "%.300s is not a regular file but %s: %s", path, mx_file_kind(mode),
                   S_ISDIR(mode) ? "name a file in it" : "copy its content into a file and name the file");
}

int mx_file_check(const char *path, mx_why *why) {
    struct stat st;
    return stat(path, &st) != 0 || S_ISREG(st.st_mode) ? 0 : refuse(path, st.st_mode, why);
}

int mx_file_open(const char *path, mx_why *why) {
    struct stat st;
    int err = mx_file_check(path, why);
    if (err < 0) return err;
    /* It may have become something else meanwhile: not to wait, nor to get a terminal that controls us. */
    const int fd = mx_retry(mx_sys->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0));
    if (fd < 0) return mx_fail(why, fd, "cannot open %.300s: %s", path, strerror(-fd));
    if (fstat(fd, &st) != 0)
        err = mx_fail(why, -errno, "cannot open %.300s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        err = refuse(path, st.st_mode, why);
    if (err < 0) mx_sys->close(fd);
    return err < 0 ? err : fd;
}

FILE *mx_file_stream(const char *path, mx_why *why, int *err) {
    const int fd = mx_file_open(path, why);
    FILE *stream = fd >= 0 ? fdopen(fd, "r") : NULL;
    *err = fd < 0 ? fd : 0;
    if (fd >= 0 && stream == NULL) {
        *err = mx_fail(why, -errno, "cannot open %.300s: %s", path, strerror(errno));
        mx_sys->close(fd);
    }
    return stream;
}
