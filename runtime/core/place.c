/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/place.h"

#include "core/safety.h"
#include "core/size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define STORE_NAME "memext.store"

/* ---- the path */

struct open_error {
    int from, to;
    const char *text; /* follows the path */
};

static const struct open_error open_errors[] = {
    {ENOENT, -ENOENT,
     ": there is no such place; make the directory first, or name a new store with .memext at its end"},
    {ENOTDIR, -ENOENT, ": a part of this path is no directory"},
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

static int explain_open(const char *path, int error, mx_why *why) {
    for (size_t i = 0; i < sizeof open_errors / sizeof open_errors[0]; i++)
        if (open_errors[i].from == error)
            return mx_fail(why, open_errors[i].to, "%.400s%s", path, open_errors[i].text);
    return mx_fail(why, -error, "%.400s: %s", path, strerror(error));
}

static int refuse_link(const char *path, mx_why *why) {
    char to[256];
    ssize_t n = readlink(path, to, sizeof to - 1);
    to[n > 0 ? n : 0] = 0;
    return mx_fail(why, -ELOOP,
                   "%.200s is a symbolic link to %.200s: links to files are not followed; name %s", path,
                   n > 0 ? to : "something else", "the file itself");
}

static int join(char out[4096], const char *asked, const char *name, mx_why *why) {
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
    return refuse_link(path, why);
}

int mx_place_name(const char *asked, mx_why *why, char path[4096], bool *directory, struct stat *st) {
    if (asked == NULL || asked[0] == 0)
        return mx_fail(why, -EINVAL, "this backend needs a place: a directory, a file or a block device");
    *directory = stat(asked, st) == 0 && S_ISDIR(st->st_mode);
    int err = join(path, asked, *directory ? "/" STORE_NAME : "", why);
    if (err == 0) err = stat_place(path, *directory, why, st);
    if (err != 0) return err;
    if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode)) return 0;
    return mx_fail(why, -ENOTBLK, "%.400s is no storage; name a directory, a file or a block device", path);
}

/* ---- locks
 *
 * Two of them, on the file or device itself. flock keeps all others out. Every descriptor that carries
 * requests holds a shared record lock besides (of its open file description, so that it lasts until the
 * kernel has let go of the last request, even of a process that was killed): whoever comes next waits for
 * these to go, and a look at a store sees that it is in use, for they can be asked about without being taken.
 * File systems without record locks have flock alone.
 */

enum { MOST_WAITS = 1000, WAIT_NS = 10000000 };

static int record_lock(int fd, int command, short type, short *found) {
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    if (fcntl(fd, command, &whole) != 0) return -errno;
    if (found != NULL) *found = whole.l_type;
    return 0;
}

bool mx_place_in_use(int fd) {
    short found = F_UNLCK;
    return record_lock(fd, F_OFD_GETLK, F_WRLCK, &found) == 0 && found != F_UNLCK;
}

/* Who only reads waits for nobody: requests of a process that was killed are not for what it had committed,
 * and other readers change nothing. */
static int wait_for_requests(const char *path, int fd, bool read_only, mx_why *why) {
    for (int i = 0; !read_only && mx_place_in_use(fd); i++) {
        if (i == MOST_WAITS)
            return mx_fail(
                why, -EBUSY,
                "requests of a memext that has ended are still under way on %.300s; wait for them, "
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
static int lock_file(const char *path, int fd, bool read_only, bool no_lock, mx_why *why) {
    const int how = read_only ? LOCK_SH : LOCK_EX;
    int err = mx_retry(flock(fd, how | LOCK_NB) == 0 ? 0 : -errno);
    if (err == 0) return 0;
    if (err == -EWOULDBLOCK)
        return mx_fail(why, -EBUSY, "%.400s is in use by another memext; wait for it or name another place",
                       path);
    if (!mx_place_has_no_locks(err)) return explain_open(path, -err, why);
    if (no_lock) return 0;
    return mx_fail(
        why, -ENOLCK,
        "%.300s: its file system has no locks (flock: %s), so that another memext could write here "
        "too; name another place, or --no-lock if none does",
        path, err == -NO_LOCKS_OF_KERNEL ? "not supported" : strerror(-err));
}

/* A store that is only read may be on a file system or device that is read-only. */
static int access_mode(const struct mx_device_options *options) {
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
    flags |= access_mode(place->options) | O_CLOEXEC;
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

/* ---- files */

static bool is_named(const struct mx_found *f) {
    struct stat named;
    return lstat(f->path, &named) == 0 && named.st_dev == f->device && named.st_ino == f->inode;
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
    return err != 0 ? explain_open(path, err, why) : 0;
}

static int open_named(struct mx_found *f, bool may_create) {
    /* Not to wait, should the name have become that of a pipe meanwhile; not through a link that was put
     * there. */
    const int flags = access_mode(f->place.options) | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;
    int fd = mx_retry(mx_sys->open(f->path, flags, 0));
    if (fd != -ENOENT || !may_create || !mx_place_is_new_store(f->path)) return fd;
    fd = mx_retry(mx_sys->open(f->path, flags | O_CREAT | O_EXCL, 0666));
    f->created = fd >= 0;
    return fd;
}

static int check_file(struct mx_found *f, const struct stat *st, bool force, mx_why *why) {
    if (f->place.options->read_only) return 0;
    if (st->st_nlink > 1)
        return mx_fail(why, -EMLINK,
                       "%.300s is one of %llu names of one file (hard links): what is stored would change "
                       "under all of them; name a file of its own",
                       f->path, (unsigned long long)st->st_nlink);
    if (st->st_uid != geteuid() && !f->created && !force)
        return mx_fail(why, -EPERM,
                       "%.300s belongs to the user %u, and this is the user %u; run as its owner, change the "
                       "owner (chown), or --force to destroy it",
                       f->path, st->st_uid, geteuid());
    return mx_check_no_swap_file("", st, f->path, why);
}

/* 1 = opened and locked, 0 = somebody made, removed or replaced it meanwhile: again, or -errno. */
static int try_file(struct mx_found *f, const struct mx_device_options *options, mx_why *why) {
    f->created = false;
    int fd = open_named(f, !options->resume);
    if (fd == -EEXIST) return 0;
    if (fd == -ELOOP) return refuse_link(f->path, why);
    if (fd < 0) return explain_open(f->path, -fd, why);
    struct stat st = {0};
    int err = fstat(fd, &st) == 0 ? 0 : explain_open(f->path, errno, why);
    if (err == 0 && !S_ISREG(st.st_mode))
        err = mx_fail(why, -EBUSY, "%.400s was replaced while it was being opened", f->path);
    if (err == 0) err = lock_file(f->path, fd, options->read_only, options->no_lock, why);
    f->device = st.st_dev;
    f->inode = st.st_ino;
    if (err != 0 || !is_named(f)) {
        /* Nobody waits for a lock that there is none of. */
        if (err == -ENOLCK && f->created && is_named(f)) mx_sys->unlink(f->path);
        mx_sys->close(fd);
        return err;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); /* io_uring would give EAGAIN instead of waiting */
    f->place.fd = fd;
    /* Only now that it is locked nobody else changes it. */
    err = fstat(fd, &st) == 0 ? wait_for_requests(f->path, fd, options->read_only, why) : -errno;
    f->place.bytes = (uint64_t)st.st_size;
    if (err == 0) err = check_file(f, &st, options->force, why);
    return err != 0 ? err : 1;
}

static int open_file(struct mx_found *f, const struct mx_device_options *options, mx_why *why) {
    for (int tries = 0; tries < 100; tries++) {
        int done = try_file(f, options, why);
        if (done != 0) return done < 0 ? done : 0;
    }
    return mx_fail(why, -EBUSY, "%.400s is replaced again and again by other programs", f->path);
}

/* ---- block devices */

static bool read_only_device(dev_t device) {
    char path[96];
    int flag = 0;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/ro", major(device), minor(device));
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%d", &flag) != 1) flag = 0;
        fclose(file);
    }
    return flag != 0;
}

/* O_EXCL: refused while the kernel holds the device or a partition of it, and keeps others from mounting it.
 */
static int open_device(struct mx_found *f, dev_t device, mx_why *why) {
    int err = mx_check_unused("", device, f->path, why);
    if (err != 0) return err;
    if (!f->place.options->read_only && read_only_device(device))
        return mx_fail(why, -EROFS, "%.400s is a read-only device; name another place", f->path);
    int fd =
        mx_retry(mx_sys->open(f->path, access_mode(f->place.options) | O_CLOEXEC | O_EXCL | O_NOCTTY, 0));
    if (fd < 0) return explain_open(f->path, -fd, why);
    struct stat st;
    err = fstat(fd, &st) != 0 || !S_ISBLK(st.st_mode) || st.st_rdev != device ? -EBUSY : 0;
    if (err != 0) mx_fail(why, err, "%.400s was replaced while it was being opened", f->path);
    const bool read_only = f->place.options->read_only;
    if (err == 0) err = lock_file(f->path, fd, read_only, f->place.options->no_lock, why);
    if (err == 0) err = wait_for_requests(f->path, fd, read_only, why);
    if (err != 0) {
        mx_sys->close(fd);
        return err;
    }
    f->place.fd = fd;
    f->place.block_device = true;
    return 0;
}

/* ---- whose data is it? */

static int check_signature(struct mx_found *f, bool force, mx_why *why) {
    char name[64];
    int found = mx_signature_find(f->place.fd, name, sizeof name);
    if (found < 0)
        return mx_fail(why, found, "%.400s cannot be examined for data: %s", f->path, strerror(-found));
    f->signature = found == 1;
    if (found == 0 || force) return 0;
    return mx_fail(why, -EEXIST,
                   "%.300s holds data (signature: %s); name another device, or --force to destroy it",
                   f->path, name);
}

static int refuse_other_format(const struct mx_found *f, mx_why *why) {
    return mx_fail(
        why, f->place.options->resume ? -ENOTSUP : -EEXIST,
        "%.300s is a store of format %u, and this program knows format %d; use the memext that made "
        "it%s",
        f->path, f->super.version, MX_STORE_FORMAT,
        f->place.options->resume ? "" : ", or --force to discard it");
}

/* The store is to be resumed. checked: what mx_store_check said, with its sentence in why. */
static int check_resume(const struct mx_found *f, int checked, mx_why *why) {
    if (f->kind == MX_STORE_INTACT) return checked;
    if (f->kind == MX_STORE_OTHER) return refuse_other_format(f, why);
    if (f->kind == MX_STORE_DAMAGED)
        return mx_fail(
            why, -EIO,
            "all superblocks of %.300s are damaged: nothing can be resumed; start anew with --force",
            f->path);
    return mx_fail(why, -ENOENT, "%.400s holds no memext store: nothing to resume", f->path);
}

static int refuse_run(const struct mx_found *f, mx_why *why) {
    static const char *const texts[] = {
        [MX_RUN_UNDER_WAY] = "an interrupted run; --resume continues it, --force discards it",
        [MX_RUN_DONE] = "a finished run; memext export gets it out, --force discards it",
        [MX_RUN_KEPT] = "a finished run that was kept; memext export gets it out, --force discards it",
    };
    return mx_fail(why, -EEXIST, "%.300s holds %s", f->path, texts[f->super.finished]);
}

/* A new store is to be made. */
static int check_overwrite(struct mx_found *f, bool damaged, mx_why *why) {
    bool nothing = f->place.block_device ? f->kind == MX_STORE_NONE : f->place.bytes == 0;
    if (f->place.options->force || nothing) return 0;
    if (f->kind == MX_STORE_OTHER) return refuse_other_format(f, why);
    if (f->kind == MX_STORE_DAMAGED || damaged)
        return mx_fail(why, -EEXIST, "%.300s is a damaged memext store; --force discards it", f->path);
    if (f->kind == MX_STORE_NONE)
        return mx_fail(why, -EEXIST,
                       "%.300s was not made by memext; name another place, or --force to destroy it",
                       f->path);
    if (f->super.note_bytes == 0) return 0;
    if (f->directory || f->super.finished != MX_RUN_DONE) return refuse_run(f, why);
    f->finished_lost = true;
    return 0;
}

static int check_contents(struct mx_found *f, mx_why *why) {
    int kind = mx_store_read(f->place.fd, &f->super, &f->slot);
    if (kind < 0) return mx_fail(why, kind, "%.400s cannot be read: %s", f->path, strerror(-kind));
    f->kind = (enum mx_store_kind)kind;
    mx_why damage = {""};
    int checked =
        f->kind == MX_STORE_INTACT ? mx_store_check(&f->super, f->place.bytes, f->path, &damage) : 0;
    if (!f->place.options->resume) return check_overwrite(f, checked != 0, why);
    if (checked != 0 && why != NULL) *why = damage;
    return check_resume(f, checked, why);
}

static int examine(struct mx_found *f, const struct mx_device_options *options, mx_why *why) {
    int err = mx_storage_facts(f->place.fd, why, &f->storage);
    if (err != 0) return err;
    if (f->place.block_device) {
        f->place.bytes = f->storage.bytes;
        if (f->place.bytes <= MX_DATA_OFFSET_BYTES + MX_EXTENT_ALIGN_BYTES)
            return mx_fail(why, -ENOTBLK, "%.300s has only %s: too small for a store", f->path,
                           mx_size(f->place.bytes).text);
        err = check_signature(f, options->force, why);
        if (err != 0) return err;
    }
    return check_contents(f, why);
}

static void fill_alignment(struct mx_found *f) {
    enum { LARGEST_BLOCK_BYTES = 65536, PAGE_BYTES = 4096 };
    uint32_t block = f->storage.physical_block_bytes;
    bool usable = block >= 512 && block <= LARGEST_BLOCK_BYTES && (block & (block - 1)) == 0;
    f->place.block_bytes = usable ? block : PAGE_BYTES;
    f->place.direct_offset_align_bytes = f->storage.direct_offset_align_bytes;
    f->place.direct_memory_align_bytes = f->storage.direct_memory_align_bytes;
}

int mx_place_find(const struct mx_device_options *options, mx_why *why, struct mx_found *out) {
    struct stat st;
    memset(out, 0, sizeof *out);
    out->place = (struct mx_place){.fd = -1, .path = out->path, .options = options};
    out->sync_fd = -1;
    int err = mx_place_name(options->path, why, out->path, &out->directory, &st);
    if (err != 0) return err;
    err = S_ISBLK(st.st_mode) ? open_device(out, st.st_rdev, why) : open_file(out, options, why);
    if (err == 0) err = examine(out, options, why);
    if (err == 0 && !options->read_only) out->sync_fd = mx_place_reopen(&out->place, O_DSYNC);
    if (err == 0 && !options->read_only && out->sync_fd < 0)
        err = explain_open(out->path, -out->sync_fd, why);
    if (err != 0) {
        mx_place_leave(out, out->created);
        return err;
    }
    fill_alignment(out);
    return 0;
}

/* Reads of less than a block of the file system cost no more than a block, so only what O_DIRECT demands is
 * asked for. */
static int take_file(struct mx_found *f, int fd, mx_why *why) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return mx_fail(why, -errno, "%.400s cannot be read: %s", f->path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return mx_fail(why, -ENOTBLK, "%.400s is no regular file", f->path);
    int err = mx_storage_facts(fd, why, &f->storage);
    if (err != 0) return err;
    f->place.bytes = (uint64_t)st.st_size;
    f->place.block_bytes = 1;
    f->place.direct_offset_align_bytes = f->storage.direct_offset_align_bytes;
    f->place.direct_memory_align_bytes = f->storage.direct_memory_align_bytes;
    f->device = st.st_dev;
    f->inode = st.st_ino;
    f->super.n_extents = 1;
    f->super.extents[0] = (struct mx_extent){.name = MX_FILE_BUFFER, .bytes = (uint64_t)st.st_size};
    f->place.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return f->place.fd >= 0 ? 0 : mx_fail(why, -errno, "%.400s cannot be read: %s", f->path, strerror(errno));
}

int mx_place_take_file(int fd, const struct mx_device_options *options, mx_why *why, struct mx_found *out) {
    memset(out, 0, sizeof *out);
    out->place = (struct mx_place){.fd = -1, .path = out->path, .options = options, .user_file = true};
    out->sync_fd = -1;
    int err = join(out->path, options->path, "", why);
    return err == 0 ? take_file(out, fd, why) : err;
}

static uint64_t blocks_bytes(const struct mx_found *found) {
    struct stat st;
    return fstat(found->place.fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

/* What a file holds already, behind its first used_bytes, and what its file system or the device has. */
static uint64_t room_in(const struct mx_storage *s, uint64_t held_bytes, uint64_t used_bytes) {
    const uint64_t held = s->block_device ? 0 : held_bytes;
    const uint64_t bytes = s->bytes + (held > used_bytes ? held - used_bytes : 0);
    return bytes > MX_DATA_OFFSET_BYTES ? bytes - MX_DATA_OFFSET_BYTES : 0;
}

uint64_t mx_place_capacity(const struct mx_found *found, uint64_t used_bytes) {
    struct mx_storage now = found->storage;
    mx_storage_facts(found->place.fd, NULL, &now);
    return room_in(&now, blocks_bytes(found), used_bytes);
}

int mx_place_room(const char *path, const struct stat *st, uint64_t *bytes) {
    char name[4096];
    struct mx_storage s;
    snprintf(name, sizeof name, "%s", path);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) { /* the directory that it would be in */
        char *slash = strrchr(name, '/');
        if (slash != NULL) slash[slash == name] = 0;
        fd = open(slash != NULL ? name : ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    }
    if (fd < 0) return -errno;
    const int err = mx_storage_facts(fd, NULL, &s);
    close(fd);
    if (err < 0) return err;
    return *bytes = room_in(&s, (uint64_t)st->st_blocks * 512, 0), 0;
}

void mx_place_trim(struct mx_found *found, uint64_t used_bytes) {
    struct stat st;
    if (found->place.block_device || fstat(found->place.fd, &st) != 0) return;
    if ((uint64_t)st.st_size <= used_bytes) return;
    /* Space is all that is lost if this fails. */
    (void)mx_retry(mx_sys->ftruncate(found->place.fd, (off_t)used_bytes));
}

/* No commit shall fail for want of space. A file system that cannot allocate may do without. */
static int allocate_slots(const struct mx_found *found) {
    if (found->place.block_device) return 0;
    int err = mx_retry(mx_sys->fallocate(found->place.fd, 0, 0, (off_t)MX_SLOTS_BYTES));
    return err == -EOPNOTSUPP || err == -EINVAL ? 0 : err;
}

/* Of a file that was not there the name, where we may read its directory: what is in it was written by a
 * descriptor of O_DSYNC. */
static int sync_new_file(const struct mx_found *found) {
    if (!found->created) return mx_retry(mx_sys->fsync(found->place.fd));
    int err = mx_sync_directory(found->path);
    return err == -EACCES ? 0 : err;
}

int mx_place_take(struct mx_found *found, mx_why *why) {
    int fd = found->place.fd, err = 0;
    const bool strange =
        !found->place.block_device && found->kind == MX_STORE_NONE && found->super.n_extents == 0;
    if (found->signature) err = mx_signature_wipe(fd);
    if (err == 0 && strange) err = mx_retry(mx_sys->ftruncate(fd, 0));
    if (err == 0) err = allocate_slots(found);
    if (err == 0) err = mx_store_make(found->sync_fd, found->kind, &found->super, &found->slot);
    if (err == 0) err = sync_new_file(found);
    if (err != 0) return mx_fail(why, err, "%.400s cannot be written: %s", found->path, strerror(-err));
    found->kind = MX_STORE_INTACT;
    return 0;
}

/* A commit that was cut off by the end of its process may be in the page cache alone, or in one copy. Were it
 * lost after the run has gone on from it, the state before would be found, whose Buffer is being overwritten.
 */
int mx_place_adopt(struct mx_found *found, mx_why *why) {
    int err = mx_store_mend(found->sync_fd, &found->super, found->slot);
    if (err == 0) err = mx_retry(mx_sys->fsync(found->place.fd));
    return err == 0 ? 0 : mx_fail(why, err, "%.400s cannot be written: %s", found->path, strerror(-err));
}

void mx_place_remove(const struct mx_found *found) {
    if (found->place.user_file) return;
    if (found->place.fd >= 0 && !found->place.block_device && is_named(found)) mx_sys->unlink(found->path);
}

void mx_place_leave(struct mx_found *found, bool remove) {
    if (found->sync_fd >= 0) mx_place_close_again(found->sync_fd);
    found->sync_fd = -1;
    if (found->place.fd < 0) return;
    /* While the lock is held: whoever comes next makes a file of his own. */
    if (remove) mx_place_remove(found);
    /* By name, for the kernel may hold the file a little longer than this process (io_uring). */
    if (!found->place.user_file) flock(found->place.fd, LOCK_UN);
    mx_place_close_again(found->place.fd);
    found->place.fd = -1;
}
