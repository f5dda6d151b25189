/* SPDX-License-Identifier: BSD-3-Clause */
#include "files/folder.h"

#include <memext/backend.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char mark[] = ".memext-made";

static int open_folder(const char *path) { return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

static bool is_there(int fd, const char *path) {
    struct stat itself, named;
    return fstat(fd, &itself) == 0 && stat(path, &named) == 0 && itself.st_ino == named.st_ino &&
           itself.st_dev == named.st_dev;
}

/* A full disk has room for no mark. */
static void set_mark(int fd) {
    const int made = openat(fd, mark, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (made >= 0) close(made);
}

/* 1 = held, 0 = somebody removed it meanwhile, or -errno. */
static int try_folder(const char *path, int *held) {
    const bool made = mkdir(path, 0777) == 0;
    if (!made && errno != EEXIST) return -errno;
    const int fd = open_folder(path);
    if (fd < 0 && errno == ENOENT) return 0;
    if (fd < 0) return made ? -errno : 1; /* no directory, or one that may not be read: its user's business */
    const bool locked = flock(fd, LOCK_SH) == 0;
    if (!is_there(fd, path)) return close(fd), 0;
    if (made) set_mark(fd);
    if (locked)
        *held = fd;
    else
        close(fd);
    return made && mx_sync_directory(path) < 0 ? -EIO : 1;
}

int mx_folder_take(const char *path, int *held) {
    enum { TRIES = 100 };
    int done = 0;
    *held = -1;
    for (int i = 0; i < TRIES && done == 0; i++) done = try_folder(path, held);
    return done == 0 ? -EBUSY : done < 0 ? done : 0;
}

static bool is_empty(int directory, bool *marked) {
    bool other = false;
    struct dirent *e;
    const int fd = fcntl(directory, F_DUPFD_CLOEXEC, 3);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    *marked = false;
    if (d == NULL && fd >= 0) close(fd);
    if (d == NULL) return false;
    while ((e = readdir(d)) != NULL)
        if (strcmp(e->d_name, mark) == 0)
            *marked = true;
        else
            other |= strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return !other;
}

bool mx_folder_is_made(const char *path) {
    const int fd = open_folder(path);
    const bool made = fd >= 0 && faccessat(fd, mark, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (fd >= 0) close(fd);
    return made;
}

void mx_folder_leave(const char *path, bool ours) {
    const int fd = open_folder(path);
    bool marked;
    if (fd < 0) return;
    if ((flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && is_there(fd, path) &&
        is_empty(fd, &marked) && (marked || ours)) {
        if (marked) unlinkat(fd, mark, 0);
        if (rmdir(path) != 0 && marked) set_mark(fd); /* somebody uses it now */
    }
    close(fd);
}
