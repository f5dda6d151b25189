/* SPDX-License-Identifier: BSD-3-Clause */
/* sys.c - the table of system calls and the few loops around it. */
#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int result(int value) { return value >= 0 ? value : -errno; }

static int kernel_open(const char *path, int flags, mode_t mode) { return result(open(path, flags, mode)); }
static int kernel_close(int fd) { return result(close(fd)); }

static ssize_t kernel_pread(int fd, void *to, size_t bytes, off_t at) {
    ssize_t n = pread(fd, to, bytes, at);
    return n >= 0 ? n : -errno;
}

static ssize_t kernel_pwrite(int fd, const void *from, size_t bytes, off_t at) {
    ssize_t n = pwrite(fd, from, bytes, at);
    return n >= 0 ? n : -errno;
}

static int kernel_fdatasync(int fd) { return result(fdatasync(fd)); }
static int kernel_fsync(int fd) { return result(fsync(fd)); }

static int kernel_msync(void *base, size_t bytes, int flags) { return result(msync(base, bytes, flags)); }

static int kernel_sync_file_range(int fd, off_t at, off_t bytes, unsigned flags) {
    return result(sync_file_range(fd, at, bytes, flags));
}

/* posix_fallocate writes where the file system cannot allocate, and gives its error as its value. */
static int kernel_fallocate(int fd, int mode, off_t at, off_t bytes) {
    return mode == 0 ? -posix_fallocate(fd, at, bytes) : result(fallocate(fd, mode, at, bytes));
}

static int kernel_ftruncate(int fd, off_t bytes) { return result(ftruncate(fd, bytes)); }
static int kernel_rename(const char *from, const char *to) { return result(rename(from, to)); }

static int kernel_link(int fd, const char *to) {
    char from[64];
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    return result(linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW));
}

static int kernel_unlink(const char *path) { return result(unlink(path)); }

const struct mx_sys mx_sys_kernel = {
    .open = kernel_open,
    .close = kernel_close,
    .pread = kernel_pread,
    .pwrite = kernel_pwrite,
    .fdatasync = kernel_fdatasync,
    .fsync = kernel_fsync,
    .msync = kernel_msync,
    .sync_file_range = kernel_sync_file_range,
    .fallocate = kernel_fallocate,
    .ftruncate = kernel_ftruncate,
    .rename = kernel_rename,
    .link = kernel_link,
    .unlink = kernel_unlink,
};

const struct mx_sys *mx_sys = &mx_sys_kernel;

int mx_read_all(int fd, void *to, size_t bytes, off_t at) {
    for (size_t got = 0; got < bytes;) {
        ssize_t n = mx_retry(mx_sys->pread(fd, (char *)to + got, bytes - got, at + (off_t)got));
        if (n < 0) return (int)n;
        if (n == 0) return -ENODATA;
        got += (size_t)n;
    }
    return 0;
}

int mx_write_all(int fd, const void *from, size_t bytes, off_t at) {
    for (size_t put = 0; put < bytes;) {
        ssize_t n = mx_retry(mx_sys->pwrite(fd, (const char *)from + put, bytes - put, at + (off_t)put));
        if (n < 0) return (int)n;
        if (n == 0) return -EIO;
        put += (size_t)n;
    }
    return 0;
}

int mx_sync_directory(const char *path) {
    const char *slash = strrchr(path, '/');
    char *directory = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (directory == NULL) return -ENOMEM;
    int fd = mx_retry(mx_sys->open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    free(directory);
    if (fd < 0) return fd == -EACCES ? 0 : fd; /* one that may be written and not read has no fsync */
    int err = mx_retry(mx_sys->fsync(fd));
    mx_sys->close(fd);
    return err == -EINVAL ? 0 : err; /* a file system whose directories need no call */
}
