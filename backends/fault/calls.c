/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.c - system calls that fail on purpose: a table that is put before mx_sys (mx_fault_calls). */
#include "words.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdatomic.h>
#include <string.h>

static struct {
    struct mx_fault_settings set;
    const struct mx_sys *below; /* the table that makes the calls */
    atomic_uint_least64_t made, random;
} faults = {.below = &mx_sys_kernel};

/* splitmix64 (Steele, Lea, Flood 2014), of a counter that all threads share */
static bool chance(double probability) {
    uint64_t z = atomic_fetch_add(&faults.random, UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53 < probability;
}

/* The error that this call is to have, or 0. */
static int fate(const char *name, bool interruptible) {
    const struct mx_fault_settings *s = &faults.set;
    if (interruptible && s->eintr > 0 && chance(s->eintr)) return -EINTR;
    if (s->calls_from[0] != 0 && strcmp(s->calls_from, name) != 0) return 0;
    return (double)(atomic_fetch_add(&faults.made, 1) + 1) == s->call ? -(int)s->error : 0;
}

#define MADE_OR(name, interruptible, call)                                                                   \
    int err = fate(name, interruptible);                                                                     \
    return err != 0 ? err : faults.below->call

static int faulty_open(const char *path, int flags, mode_t mode) {
    MADE_OR("open", true, open(path, flags, mode));
}

static int faulty_close(int fd) {
    int err = fate("close", false), closed = faults.below->close(fd);
    return err != 0 ? err : closed;
}

static ssize_t faulty_pread(int fd, void *to, size_t bytes, off_t at) {
    MADE_OR("pread", true, pread(fd, to, bytes, at));
}

static ssize_t faulty_pwrite(int fd, const void *from, size_t bytes, off_t at) {
    MADE_OR("pwrite", true, pwrite(fd, from, bytes, at));
}

static int faulty_fdatasync(int fd) { MADE_OR("fdatasync", true, fdatasync(fd)); }
static int faulty_fsync(int fd) { MADE_OR("fsync", true, fsync(fd)); }

static int faulty_msync(void *base, size_t bytes, int flags) {
    MADE_OR("msync", true, msync(base, bytes, flags));
}

static int faulty_sync_file_range(int fd, off_t at, off_t bytes, unsigned flags) {
    MADE_OR("sync_file_range", true, sync_file_range(fd, at, bytes, flags));
}

static int faulty_fallocate(int fd, int mode, off_t at, off_t bytes) {
    MADE_OR("fallocate", true, fallocate(fd, mode, at, bytes));
}

static int faulty_ftruncate(int fd, off_t bytes) { MADE_OR("ftruncate", true, ftruncate(fd, bytes)); }

static int faulty_rename(const char *from, const char *to) { MADE_OR("rename", false, rename(from, to)); }
static int faulty_link(int fd, const char *to) { MADE_OR("link", false, link(fd, to)); }
static int faulty_unlink(const char *path) { MADE_OR("unlink", false, unlink(path)); }

static const struct mx_sys faulty = {
    .open = faulty_open,
    .close = faulty_close,
    .pread = faulty_pread,
    .pwrite = faulty_pwrite,
    .fdatasync = faulty_fdatasync,
    .fsync = faulty_fsync,
    .msync = faulty_msync,
    .sync_file_range = faulty_sync_file_range,
    .fallocate = faulty_fallocate,
    .ftruncate = faulty_ftruncate,
    .rename = faulty_rename,
    .link = faulty_link,
    .unlink = faulty_unlink,
};

static bool is_call(const char *name) {
    static const char *const names[] = {"open",   "close", "pread",           "pwrite",    "fdatasync",
                                        "fsync",  "msync", "sync_file_range", "fallocate", "ftruncate",
                                        "rename", "link",  "unlink"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

int mx_fault_calls(const char *spec, mx_why *why) {
    struct mx_fault_settings set;
    int err = mx_fault_parse(spec, why, &set);
    if (err != 0) return err;
    if (set.calls_from[0] != 0 && !is_call(set.calls_from))
        return mx_fail(why, -EINVAL,
                       "--fault calls_from=%s: give open, close, pread, pwrite, fdatasync, fsync, msync, "
                       "sync_file_range, fallocate, ftruncate, rename, link or unlink",
                       set.calls_from);
    if (mx_sys != &faulty) faults.below = mx_sys;
    faults.set = set;
    atomic_store(&faults.made, 0);
    atomic_store(&faults.random, (uint64_t)set.seed);
    mx_sys = set.has_call_word ? &faulty : faults.below;
    return 0;
}

uint64_t mx_fault_calls_made(void) { return atomic_load(&faults.made); }
