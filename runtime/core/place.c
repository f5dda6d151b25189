/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - opens the file or block device that a path names, takes it for a store, and leaves it. */
#include "core/place_private.h"
#include "core/safety.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- files */

static bool is_named(const struct mx_found *f) {
    struct stat named;
    return lstat(f->path, &named) == 0 && named.st_dev == f->device && named.st_ino == f->inode;
}

static int open_named(struct mx_found *f, bool may_create) {
    /* Not to wait, should the name have become that of a pipe meanwhile; not through a link that was put
     * there. */
    const int flags = mx_place_access(f->place.options) | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;
    int fd = mx_retry(mx_sys->open(f->path, flags, 0));
    if (fd != -ENOENT || !may_create || !mx_place_is_new_store(f->path)) return fd;
    fd = mx_retry(mx_sys->open(f->path, flags | O_CREAT | O_EXCL, 0666));
    f->created = fd >= 0;
    return fd;
}

int mx_place_check_file(struct mx_found *f, const struct stat *st, bool force, mx_why *why) {
    if (f->place.options->read_only) return 0;
    if (st->st_nlink > 1)
        return mx_fail(why, -EMLINK,
                       "%.300s is one of %llu names of one file (hard links), and a store would change the "
                       "file under all names; choose a file with one name",
                       f->path, (unsigned long long)st->st_nlink);
    if (st->st_uid != geteuid() && !f->created && !force)
        return mx_fail(why, -EPERM,
                       "%.300s belongs to user %u, but this is user %u; run as its owner, change the "
                       "owner (chown), or overwrite it with --force",
                       f->path, st->st_uid, geteuid());
    return mx_check_no_swap_file("", st, f->path, why);
}

/* A file system such as btrfs writes all that is rewritten to a new place, and needs room for it. A store is
 * rewritten sweep by sweep: without copies it keeps its places and its room. btrfs takes this flag only for
 * empty files. Other file systems refuse it, and nothing changes. A file that was there keeps its flags. */
static void rewrite_in_place(int fd) {
    int flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return;
    flags |= FS_NOCOW_FL;
    (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

/* 1 = opened and locked, 0 = somebody made, removed or replaced it meanwhile: again, or -errno. */
static int try_file(struct mx_found *f, const struct mx_device_options *options, mx_why *why) {
    f->created = false;
    int fd = open_named(f, !options->resume);
    if (fd == -EEXIST) return 0;
    if (fd == -ELOOP) return mx_place_refuse_link(f->path, why);
    if (fd < 0) return mx_place_explain(f->path, -fd, why);
    struct stat st = {0};
    int err = fstat(fd, &st) == 0 ? 0 : mx_place_explain(f->path, errno, why);
    if (err == 0 && !S_ISREG(st.st_mode))
        err = mx_fail(why, -EBUSY, "%.400s was replaced while it was being opened", f->path);
    if (err == 0) err = mx_place_lock(f->path, fd, options->read_only, options->no_lock, why);
    f->device = st.st_dev;
    f->inode = st.st_ino;
    if (err != 0 || !is_named(f)) {
        /* The file system has no locks, so no process waits for one of this file. */
        if (err == -ENOLCK && f->created && is_named(f)) mx_sys->unlink(f->path);
        mx_sys->close(fd);
        return err;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); /* io_uring would give EAGAIN instead of waiting */
    f->place.fd = fd;
    /* Only now that it is locked nobody else changes it. */
    err = fstat(fd, &st) == 0 ? mx_place_wait(f->path, fd, options->read_only, why) : -errno;
    f->place.bytes = (uint64_t)st.st_size;
    if (err == 0) err = mx_place_check_file(f, &st, options->force, why);
    if (err == 0 && f->created) rewrite_in_place(fd);
    return err != 0 ? err : 1;
}

static int open_file(struct mx_found *f, const struct mx_device_options *options, mx_why *why) {
    for (int tries = 0; tries < 100; tries++) {
        int done = try_file(f, options, why);
        if (done != 0) return done < 0 ? done : 0;
    }
    return mx_fail(why, -EBUSY, "other programs replace %.400s again and again; choose another place",
                   f->path);
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

int mx_place_check_device(const struct mx_found *f, dev_t device, mx_why *why) {
    int err = mx_check_unused("", device, f->path, why);
    if (err == 0 && !f->place.options->read_only && read_only_device(device))
        err = mx_fail(why, -EROFS, "%.400s is a read-only device; name another place", f->path);
    return err;
}

/* O_EXCL: refused while the kernel holds the device or a partition of it, and keeps others from mounting it.
 */
static int open_device(struct mx_found *f, dev_t device, mx_why *why) {
    int err = mx_place_check_device(f, device, why);
    if (err != 0) return err;
    int fd =
        mx_retry(mx_sys->open(f->path, mx_place_access(f->place.options) | O_CLOEXEC | O_EXCL | O_NOCTTY, 0));
    if (fd < 0) return mx_place_explain(f->path, -fd, why);
    struct stat st;
    err = fstat(fd, &st) != 0 || !S_ISBLK(st.st_mode) || st.st_rdev != device ? -EBUSY : 0;
    if (err != 0) mx_fail(why, err, "%.400s was replaced while it was being opened", f->path);
    const bool read_only = f->place.options->read_only;
    if (err == 0) err = mx_place_lock(f->path, fd, read_only, f->place.options->no_lock, why);
    if (err == 0) err = mx_place_wait(f->path, fd, read_only, why);
    if (err != 0) {
        mx_sys->close(fd);
        return err;
    }
    f->place.fd = fd;
    f->place.block_device = true;
    return 0;
}

/* ---- any place */

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
    const bool beside = out->beside;
    memset(out, 0, sizeof *out);
    out->beside = beside;
    out->place = (struct mx_place){.fd = -1, .path = out->path, .options = options};
    out->sync_fd = -1;
    int err = mx_place_name(options->path, why, out->path, &out->directory, &st);
    if (err != 0) return err;
    err = S_ISBLK(st.st_mode) ? open_device(out, st.st_rdev, why) : open_file(out, options, why);
    if (err == 0) err = mx_place_examine(out, options, why);
    if (err == 0 && !options->read_only) out->sync_fd = mx_place_reopen(&out->place, O_DSYNC);
    if (err == 0 && !options->read_only && out->sync_fd < 0)
        err = mx_place_explain(out->path, -out->sync_fd, why);
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
    if (!S_ISREG(st.st_mode)) return mx_fail(why, -ENOTBLK, "%.400s is not a regular file", f->path);
    int err = mx_storage_facts(fd, why, &f->storage);
    if (err != 0) return err;
    f->place.bytes = (uint64_t)st.st_size;
    f->place.block_bytes = 1;
    f->place.direct_offset_align_bytes = f->storage.direct_offset_align_bytes;
    f->place.direct_memory_align_bytes = f->storage.direct_memory_align_bytes;
    f->device = st.st_dev;
    f->inode = st.st_ino;
    f->super.n_extents = 1;
    f->super.first_extents[0] = (struct mx_extent){.name = MX_FILE_BUFFER, .bytes = (uint64_t)st.st_size};
    f->place.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return f->place.fd >= 0 ? 0 : mx_fail(why, -errno, "%.400s cannot be read: %s", f->path, strerror(errno));
}

int mx_place_take_file(int fd, const struct mx_device_options *options, mx_why *why, struct mx_found *out) {
    memset(out, 0, sizeof *out);
    out->place = (struct mx_place){.fd = -1, .path = out->path, .options = options, .user_file = true};
    out->sync_fd = -1;
    int err = mx_place_join(out->path, options->path, "", why);
    return err == 0 ? take_file(out, fd, why) : err;
}

/* ---- room */

static uint64_t blocks_bytes(const struct mx_found *found) {
    struct stat st;
    return fstat(found->place.fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

uint64_t mx_place_room_in(const struct mx_storage *s, uint64_t held_bytes, uint64_t used_bytes) {
    const uint64_t held = s->block_device ? 0 : held_bytes;
    const uint64_t bytes = s->bytes + (held > used_bytes ? held - used_bytes : 0);
    return bytes > MX_DATA_OFFSET_BYTES ? bytes - MX_DATA_OFFSET_BYTES : 0;
}

uint64_t mx_place_capacity(const struct mx_found *found, uint64_t used_bytes) {
    struct mx_storage now = found->storage;
    if (!now.block_device) mx_storage_free(found->place.fd, &now.bytes);
    return mx_place_room_in(&now, blocks_bytes(found), used_bytes);
}

void mx_place_trim(struct mx_found *found, uint64_t used_bytes) {
    struct stat st;
    if (found->place.block_device || fstat(found->place.fd, &st) != 0) return;
    if ((uint64_t)st.st_size <= used_bytes) return;
    /* Space is all that is lost if this fails. */
    (void)mx_retry(mx_sys->ftruncate(found->place.fd, (off_t)used_bytes));
}

/* ---- a store is made or gone on with */

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
    return mx_sync_directory(found->path);
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

/* ---- the end */

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
