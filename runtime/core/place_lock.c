/* SPDX-License-Identifier: BSD-3-Clause */
/* place_lock.c - the locks of a place.
 *
 * There are two, on the file or device itself. flock keeps all others out. Every descriptor that carries
 * requests also holds a shared record lock. It belongs to the open file description, so it lasts until Linux
 * has ended the last request, even of a process that was killed. The next user of the place waits until these
 * locks are gone. They can be queried without being taken, so a look at a store sees that it is in use. On
 * file systems without record locks there is only flock.
 *
 * A process that was killed keeps its locks until Linux has freed its resources, which takes a moment with
 * much memory or many requests. So a place whose holder is ending is not refused: the next user waits.
 */
#include "core/place_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WAITS = 1000, MOST_WAITS_UNSEEN = 200, WAIT_NS = 10000000 };

static int record_lock(int fd, int command, short type, short *found) {
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    if (fcntl(fd, command, &whole) != 0) return -errno;
    if (found != NULL) *found = whole.l_type;
    return 0;
}

static bool is_recorded(int fd) {
    short found = F_UNLCK;
    return record_lock(fd, F_OFD_GETLK, F_WRLCK, &found) == 0 && found != F_UNLCK;
}

/* Has this process a lock on the file itself? Its own descriptors tell (proc(5), fdinfo) at once; a look at
 * /proc/locks makes Linux wait until no processor changes a lock, which takes up to 15 ms. */
static bool is_own(int fd) {
    struct stat ours, theirs;
    const struct dirent *entry;
    char path[64], line[256];
    bool own = false;
    DIR *all = fstat(fd, &ours) == 0 ? opendir("/proc/self/fd") : NULL;
    while (all != NULL && !own && (entry = readdir(all)) != NULL) {
        const int other = (int)strtol(entry->d_name, NULL, 10);
        if (entry->d_name[0] == '.' || other == fd || fstat(other, &theirs) != 0 ||
            ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
            continue;
        snprintf(path, sizeof path, "/proc/self/fdinfo/%d", other);
        FILE *f = fopen(path, "re");
        while (f != NULL && !own && fgets(line, sizeof line, f) != NULL)
            own = strncmp(line, "lock:", 5) == 0 && strstr(line, "FLOCK") != NULL;
        if (f != NULL) fclose(f);
    }
    if (all != NULL) closedir(all);
    return own;
}

enum holder { UNSEEN, ENDING, LIVING, UNKNOWN };

/* Of a process, by proc(5): a zombie, one that exits, or one that SIGKILL is on its way to, is ending. */
static enum holder holder_of(int pid) {
    enum { FLAGS_TO_SIGNALS = 21, EXITING = 0x4, KILLED = 1 << (SIGKILL - 1) };
    char path[32], line[1024], state = 0;
    unsigned flags = 0;
    int at = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) return kill(pid, 0) == 0 || errno == EPERM ? LIVING : ENDING; /* /proc may hide it */
    const size_t n = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[n] = 0;
    const char *rest = strrchr(line, ')'); /* of its name, which may hold anything */
    if (rest == NULL || sscanf(rest, ") %c %*d %*d %*d %*d %*d %u%n", &state, &flags, &at) < 2) return ENDING;
    rest += at;
    for (int i = 0; i < FLAGS_TO_SIGNALS && *rest == ' '; i++) rest += 1 + strcspn(rest + 1, " ");
    const bool killed = (strtoul(rest, NULL, 10) & KILLED) != 0;
    return state == 'Z' || state == 'X' || (flags & EXITING) != 0 || killed ? ENDING : LIVING;
}

/* Is it the file of a line of /proc/locks? Such lines have the number of the file system, which is not the
 * one of stat in btrfs and overlays; neither number is of a device then. */
static bool is_locked_file(const struct stat *st, unsigned major_of, unsigned minor_of, unsigned long inode) {
    const bool same = major(st->st_dev) == major_of && minor(st->st_dev) == minor_of;
    return inode == st->st_ino && (same || (major(st->st_dev) == 0 && major_of == 0));
}

/* Who holds the flock of this file. Unseen: nobody, a process of another machine or container, or one that is
 * gone while its requests are not. Unknown: nothing here tells. */
static enum holder holder_of_flock(int fd) {
    struct stat st;
    char *line = NULL;
    size_t capacity = 0;
    enum holder found = UNSEEN;
    FILE *f = fopen("/proc/locks", "re");
    if (f == NULL || fstat(fd, &st) != 0) {
        found = UNKNOWN;
        goto out;
    }
    while (found != LIVING && getline(&line, &capacity, f) > 0) {
        unsigned long inode = 0;
        unsigned at[2];
        int pid = 0;
        if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &at[0], &at[1], &inode) == 4 && pid > 0 &&
            is_locked_file(&st, at[0], at[1], inode))
            found = holder_of(pid);
    }
out:
    if (f != NULL) fclose(f);
    free(line);
    return found;
}

/* Is it over with waiting for who holds the locks of this file, after so many waits? Else one more. */
static bool is_to_be_refused(int fd, int waits) {
    static const int most[] = {
        [UNSEEN] = MOST_WAITS_UNSEEN, [ENDING] = MOST_WAITS, [LIVING] = 0, [UNKNOWN] = 0};
    if (is_own(fd) || waits >= most[holder_of_flock(fd)]) return true;
    nanosleep(&(struct timespec){0, WAIT_NS}, NULL);
    return false;
}

bool mx_place_in_use(int fd) {
    for (int i = 0; is_recorded(fd); i++)
        if (flock(fd, LOCK_UN) != 0 || is_to_be_refused(fd, i))
            return true; /* without flock nobody can be seen */
    return false;
}

/* Who only reads waits for nobody: requests of a process that was killed are not for what it had committed,
 * and other readers change nothing. */
int mx_place_wait(const char *path, int fd, bool read_only, mx_why *why) {
    for (int i = 0; !read_only && is_recorded(fd); i++) {
        if (i == MOST_WAITS)
            return mx_fail(
                why, -EBUSY,
                "requests of a memext that has ended are still under way on %.300s; try again later, "
                "or name another place",
                path);
        nanosleep(&(struct timespec){0, WAIT_NS}, NULL);
    }
    record_lock(fd, F_OFD_SETLK, F_RDLCK, NULL);
    return 0;
}

enum { NO_LOCKS_OF_KERNEL = 524 }; /* ENOTSUPP, which file systems let out by mistake */

bool mx_place_has_no_locks(int err) {
    return err == -ENOSYS || err == -EOPNOTSUPP || err == -ENOLCK || err == -NO_LOCKS_OF_KERNEL;
}

/* Several may read a store at a time, as ranks do that go on from the stores of others. */
int mx_place_lock(const char *path, int fd, bool read_only, bool no_lock, mx_why *why) {
    const int how = read_only ? LOCK_SH : LOCK_EX;
    int err = mx_retry(flock(fd, how | LOCK_NB) == 0 ? 0 : -errno);
    for (int i = 0; err == -EWOULDBLOCK && !is_to_be_refused(fd, i); i++)
        err = mx_retry(flock(fd, how | LOCK_NB) == 0 ? 0 : -errno);
    if (err == 0) return 0;
    if (err == -EWOULDBLOCK)
        return mx_fail(why, -EBUSY, "%.400s is in use by another memext; wait for it or name another place",
                       path);
    if (!mx_place_has_no_locks(err)) return mx_place_explain(path, -err, why);
    if (no_lock) return 0;
    return mx_fail(
        why, -ENOLCK,
        "%.300s: the file system has no locks (flock: %s), which keep two memexts apart; name another "
        "place, or give --no-lock if no other memext uses this one",
        path, err == -NO_LOCKS_OF_KERNEL ? "not supported" : strerror(-err));
}

/* A store that is only read may be on a file system or device that is read-only. */
int mx_place_access(const struct mx_device_options *options) {
    return options != NULL && options->read_only ? O_RDONLY : O_RDWR;
}

/* By its name, where there is no /proc, if that is still the name of the same. */
static int reopen_by_name(const struct mx_place *place, int flags) {
    struct stat ours, named;
    const int fd = mx_retry(mx_sys->open(place->path, flags, 0));
    if (fd < 0) return fd;
    const bool block = fstat(place->fd, &ours) == 0 && S_ISBLK(ours.st_mode);
    const bool same =
        fstat(fd, &named) == 0 && (block ? named.st_rdev == ours.st_rdev && S_ISBLK(named.st_mode)
                                         : named.st_dev == ours.st_dev && named.st_ino == ours.st_ino);
    if (same) return fd;
    mx_sys->close(fd);
    return -ESTALE;
}

int mx_place_reopen(const struct mx_place *place, int flags) {
    char again[64];
    flags |= mx_place_access(place->options) | O_CLOEXEC;
    snprintf(again, sizeof again, "/proc/self/fd/%d", place->fd);
    int fd = mx_retry(mx_sys->open(again, flags, 0));
    if (fd == -ENOENT) fd = reopen_by_name(place, flags);
    if (fd >= 0 && !place->user_file) record_lock(fd, F_OFD_SETLK, F_RDLCK, NULL);
    return fd;
}

/* Unlocked by name: io_uring may hold the description a little longer, with no request under way. */
void mx_place_close_again(int fd) {
    if (fd < 0) return;
    record_lock(fd, F_OFD_SETLK, F_UNLCK, NULL);
    mx_sys->close(fd);
}
