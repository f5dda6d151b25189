/* SPDX-License-Identifier: BSD-3-Clause */
/* text.c - reads a file into memory, with a sentence for the user if that fails. */
#include "kernel/private.h"

#include "machine/file.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int mx_text_read(const char *path, const char *what, mx_why *why, struct mx_text *out) {
    const int64_t most = 64 << 20;
    mx_why reason = {""};
    int fd = mx_file_open(path, &reason);
    struct stat s;
    if (fd == -EINVAL) return mx_fail(why, fd, "%s: %.600s", what, reason.text);
    if (fd < 0 || fstat(fd, &s) < 0) {
        const int err = fd < 0 ? fd : -errno;
        if (fd >= 0) close(fd);
        return mx_fail(why, err, "%s %.300s cannot be read: %s", what, path, strerror(-err));
    }
    if (s.st_size > most) {
        close(fd);
        return mx_fail(why, -EINVAL, "%s %.300s is larger than 64 MiB", what, path);
    }
    struct mx_text text = {.data = malloc((size_t)s.st_size + 1), .bytes = (size_t)s.st_size};
    int err = text.data == NULL ? -ENOMEM : mx_read_all(fd, text.data, text.bytes, 0);
    close(fd);
    if (err < 0) {
        free(text.data);
        return mx_fail(why, err, "%s %.300s cannot be read: %s", what, path, strerror(-err));
    }
    text.data[text.bytes] = 0;
    *out = text;
    return 0;
}
