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
#include <unistd.h>

#define STORE_NAME "memext.store"

/* ---- the path */

struct open_error {
    int from, to;
    const char *text; /* follows the path */
};

static const struct open_error open_errors[] = {
    {ENOENT, -ENOENT, ": there is no such place; make its directory first"},
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

static int name_place(const char *asked, mx_why *why, struct mx_found *out, struct stat *st) {
    if (asked == NULL || asked[0] == 0)
        return mx_fail(why, -EINVAL, "this backend needs a place: a directory, a file or a block device");
    int n = snprintf(out->path, sizeof out->path, "%s", asked);
    bool there = stat(asked, st) == 0;
    out->directory = there && S_ISDIR(st->st_mode);
    if (out->directory) {
        n = snprintf(out->path, sizeof out->path, "%s/" STORE_NAME, asked);
        there = stat(out->path, st) == 0;
    }
    if (n < 0 || (size_t)n >= sizeof out->path)
        return mx_fail(why, -ENAMETOOLONG, "the path of the place is longer than %zu bytes",
                       sizeof out->path - 1);
    if (!there) *st = (struct stat){.st_mode = S_IFREG};
    if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode)) return 0;
    return mx_fail(why, -ENOTBLK, "%.400s is no storage; name a directory, a file or a block device",
                   out->path);
}

/* ---- files */

static int lock_file(const char *path, int fd, mx_why *why) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno == EWOULDBLOCK)
        return mx_fail(why, -EBUSY, "%.400s is in use by another memext; wait for it or name another place",
                       path);
    return explain_open(path, errno, why);
}

/* 1 = opened and locked, 0 = somebody replaced it meanwhile: again, or -errno. */
static int try_file(struct mx_found *f, bool may_create, mx_why *why) {
    int fd = open(f->path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    bool created = false;
    if (fd < 0 && errno == ENOENT && may_create) {
        fd = open(f->path, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
        if (fd < 0 && errno == EEXIST) return 0;
        created = fd >= 0;
    }
    if (fd < 0) return explain_open(f->path, errno, why);
    int err = lock_file(f->path, fd, why);
    struct stat opened, named;
    bool same = err == 0 && fstat(fd, &opened) == 0 && stat(f->path, &named) == 0 &&
                opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
    if (err != 0 || !same) {
        close(fd);
        return err;
    }
    f->place.fd = fd;
    f->place.bytes = (uint64_t)opened.st_size;
    f->created = created;
    err = mx_check_no_swap_file("", &opened, f->path, why);
    if (err != 0) mx_place_leave(f, false);
    return err != 0 ? err : 1;
}

static int open_file(struct mx_found *f, bool may_create, mx_why *why) {
    for (int tries = 0; tries < 100; tries++) {
        int done = try_file(f, may_create, why);
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
    if (read_only_device(device))
        return mx_fail(why, -EROFS, "%.400s is a read-only device; name another place", f->path);
    int fd = open(f->path, O_RDWR | O_CLOEXEC | O_EXCL | O_NOCTTY);
    if (fd < 0) return explain_open(f->path, errno, why);
    struct stat st;
    err = fstat(fd, &st) != 0 || !S_ISBLK(st.st_mode) || st.st_rdev != device ? -EBUSY : 0;
    if (err != 0) mx_fail(why, err, "%.400s was replaced while it was being opened", f->path);
    if (err == 0) err = lock_file(f->path, fd, why);
    if (err != 0) {
        close(fd);
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

static int check_owner(struct mx_found *f, const struct mx_device_options *options, mx_why *why) {
    bool nothing = f->place.block_device ? f->kind == MX_STORE_NONE : f->place.bytes == 0;
    bool interrupted = f->kind == MX_STORE_INTACT && f->super.note_bytes > 0 && !f->super.finished;
    if (options->resume) {
        if (f->kind == MX_STORE_INTACT) return 0;
        if (f->kind == MX_STORE_DAMAGED)
            return mx_fail(why, -EIO,
                           "both superblocks of %.300s are damaged: nothing can be resumed; start anew "
                           "with --force",
                           f->path);
        return mx_fail(why, -ENOENT, "%.400s holds no memext store: nothing to resume", f->path);
    }
    if (options->force || nothing) return 0;
    if (interrupted)
        return mx_fail(why, -EEXIST,
                       "%.300s holds an interrupted run; --resume continues it, --force discards it",
                       f->path);
    if (f->kind == MX_STORE_DAMAGED)
        return mx_fail(why, -EEXIST, "%.300s is a damaged memext store; --force discards it", f->path);
    if (f->kind == MX_STORE_NONE)
        return mx_fail(why, -EEXIST,
                       "%.300s was not made by memext; name another place, or --force to destroy it",
                       f->path);
    return 0;
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
    int kind = mx_store_read(f->place.fd, &f->super, &f->slot);
    if (kind < 0) return mx_fail(why, kind, "%.400s cannot be read: %s", f->path, strerror(-kind));
    f->kind = (enum mx_store_kind)kind;
    return check_owner(f, options, why);
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
    int err = name_place(options->path, why, out, &st);
    if (err != 0) return err;
    err = S_ISBLK(st.st_mode) ? open_device(out, st.st_rdev, why) : open_file(out, !options->resume, why);
    if (err != 0) return err;
    err = examine(out, options, why);
    if (err != 0) {
        mx_place_leave(out, out->created);
        return err;
    }
    fill_alignment(out);
    return 0;
}

static uint64_t blocks_bytes(const struct mx_found *found) {
    struct stat st;
    return fstat(found->place.fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

uint64_t mx_place_capacity(const struct mx_found *found, uint64_t used_bytes) {
    struct mx_storage now = found->storage;
    mx_storage_facts(found->place.fd, NULL, &now);
    uint64_t held = found->place.block_device ? 0 : blocks_bytes(found);
    uint64_t bytes = now.bytes + (held > used_bytes ? held - used_bytes : 0);
    return bytes > MX_DATA_OFFSET_BYTES ? bytes - MX_DATA_OFFSET_BYTES : 0;
}

void mx_place_trim(struct mx_found *found, uint64_t used_bytes) {
    struct stat st;
    if (found->place.block_device || fstat(found->place.fd, &st) != 0) return;
    /* Space is all that is lost if this fails. */
    if ((uint64_t)st.st_size > used_bytes && ftruncate(found->place.fd, (off_t)used_bytes) != 0) return;
}

int mx_place_take(struct mx_found *found, mx_why *why) {
    int fd = found->place.fd, err = 0;
    const bool strange = !found->place.block_device && found->kind == MX_STORE_NONE;
    if (found->signature) err = mx_signature_wipe(fd);
    if (err == 0 && strange && ftruncate(fd, 0) != 0) err = -errno;
    if (err == 0) err = mx_store_make(fd, &found->super, &found->slot);
    if (err != 0) return mx_fail(why, err, "%.400s cannot be written: %s", found->path, strerror(-err));
    found->kind = MX_STORE_INTACT;
    return 0;
}

void mx_place_leave(struct mx_found *found, bool remove) {
    if (found->place.fd < 0) return;
    /* While the lock is held: whoever comes next makes a file of his own. */
    if (remove && !found->place.block_device) unlink(found->path);
    /* By name, for the kernel may hold the file a little longer than this process (io_uring). */
    flock(found->place.fd, LOCK_UN);
    close(found->place.fd);
    found->place.fd = -1;
}
