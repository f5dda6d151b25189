/* SPDX-License-Identifier: BSD-3-Clause */
/* look.c - what a store holds, seen from outside. */
#include "core/place.h"
#include "core/sized.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

enum { MOST_LOOKS = 20, BETWEEN_LOOKS_NS = 5000000 };

static int open_place(const char *path, bool block_device, mx_why *why) {
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (block_device ? 0 : O_NOFOLLOW);
    int fd = mx_retry(mx_sys->open(path, flags, 0));
    if (fd >= 0) return fd;
    return mx_fail(why,
                   fd == -EPERM     ? -EACCES
                   : fd == -ENOTDIR ? -ENOENT
                                    : fd,
                   "%.400s: %s", path, strerror(-fd));
}

static int measure(int fd, const char *path, mx_why *why, struct mx_store_facts *out) {
    struct stat st;
    if (fstat(fd, &st) != 0) return mx_fail(why, -errno, "%.400s: %s", path, strerror(errno));
    out->block_device = S_ISBLK(st.st_mode);
    out->file_bytes = (uint64_t)st.st_size;
    if (S_ISREG(st.st_mode) || (out->block_device && ioctl(fd, BLKGETSIZE64, &out->file_bytes) == 0))
        return 0;
    return mx_fail(why, -ENOTBLK, "%.400s is not storage: name a directory, a file or a block device", path);
}

static void take(const struct mx_superblock *s, struct mx_store_facts *out) {
    out->generation = s->generation;
    out->finished = s->finished;
    out->note_bytes = s->note_bytes;
    memcpy(out->note, s->note, s->note_bytes);
    out->n_extents = s->n_extents;
    for (uint32_t i = 0; i < s->n_extents; i++)
        memcpy(&out->extents[i], mx_extent_in(s, i), sizeof out->extents[i]);
}

static int read_store(int fd, mx_why *why, struct mx_store_facts *out) {
    struct mx_superblock super;
    int slot, kind = MX_STORE_DAMAGED;
    /* A commit under way may be seen half done. */
    for (int i = 0; i < MOST_LOOKS && kind == MX_STORE_DAMAGED; i++) {
        if (i > 0) nanosleep(&(struct timespec){0, BETWEEN_LOOKS_NS}, NULL);
        kind = mx_store_read(fd, &super, &slot);
        if (!out->in_use) break;
    }
    if (kind < 0) return mx_fail(why, kind, "%.400s cannot be read: %s", out->place, strerror(-kind));
    if (kind == MX_STORE_NONE) return mx_fail(why, -ENOENT, "%.400s holds no memext store", out->place);
    if (kind == MX_STORE_DAMAGED)
        return mx_fail(why, -EIO, "all superblocks of %.400s are damaged: nothing in the store can be read",
                       out->place);
    if (kind == MX_STORE_OTHER)
        return mx_fail(
            why, -ENOTSUP,
            "%.300s is a store of format %u, but this program knows only format %d; use the memext that "
            "made it",
            out->place, super.version, MX_STORE_FORMAT);
    int err = mx_store_check(&super, out->file_bytes, out->place, why);
    if (err == 0) take(&super, out);
    return err;
}

int mx_store_see(const char *path, mx_why *why, struct mx_store_facts *out) {
    struct mx_store_facts facts = {.size = sizeof facts};
    struct stat st;
    bool directory;
    int err = mx_place_name(path, why, facts.place, &directory, &st);
    if (err != 0) return err;
    int fd = open_place(facts.place, S_ISBLK(st.st_mode), why);
    if (fd < 0) return fd;
    facts.in_use = mx_place_in_use(fd);
    err = measure(fd, facts.place, why, &facts);
    if (err == 0) err = read_store(fd, why, &facts);
    mx_sys->close(fd);
    if (err == 0) *out = facts;
    return err;
}

/* Programs of before may have room for fewer extents. */
int mx_store_look(const char *path, mx_why *why, struct mx_store_facts *out) {
    const size_t before = offsetof(struct mx_store_facts, extents), each = sizeof out->extents[0],
                 first = before + MX_FIRST_EXTENTS * each;
    struct mx_store_facts facts;
    const int err = mx_store_see(path, why, &facts);
    if (err < 0) return err;
    const size_t room = (mx_sized(out, sizeof facts, first) - before) / each;
    if (facts.n_extents > room) facts.n_extents = (uint32_t)room;
    mx_sized_give(out, &facts, sizeof facts, first);
    return 0;
}
