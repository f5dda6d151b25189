/* SPDX-License-Identifier: BSD-3-Clause */
/* storage.c - what a file or block device can do. */
#include "machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <memext/backend.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

struct fs_name {
    uint32_t magic;
    const char *name;
    bool is_memory;
};

static const struct fs_name fs_names[] = {
    {0x0000ef53, "ext4", false},   {0x58465342, "xfs", false},       {0x9123683e, "btrfs", false},
    {0xf2f52010, "f2fs", false},   {0x2fc12fc1, "zfs", false},       {0xca451a4e, "bcachefs", false},
    {0x01021994, "tmpfs", true},   {0x858458f6, "ramfs", true},      {0x958458f6, "hugetlbfs", true},
    {0x00006969, "nfs", false},    {0x794c7630, "overlayfs", false}, {0x65735546, "fuse", false},
    {0x01021997, "9p", false},     {0x00004d44, "vfat", false},      {0x2011bab0, "exfat", false},
    {0x7366746e, "ntfs3", false},  {0xff534d42, "cifs", false},      {0xfe534d42, "smb2", false},
    {0x0bd00bd0, "lustre", false}, {0x00c36400, "ceph", false},      {0x47504653, "gpfs", false},
    {0x01161970, "gfs2", false},   {0x7461636f, "ocfs2", false},     {0x73717368, "squashfs", false},
    {0x61756673, "aufs", false},   {0x19830326, "beegfs", false},    {0x00009fa0, "proc", true},
    {0x62656572, "sysfs", true},
};

static void name_file_system(uint32_t magic, struct mx_storage *out) {
    snprintf(out->filesystem, sizeof out->filesystem, "0x%x", magic);
    for (size_t i = 0; i < sizeof fs_names / sizeof fs_names[0]; i++)
        if (fs_names[i].magic == magic) {
            snprintf(out->filesystem, sizeof out->filesystem, "%s", fs_names[i].name);
            out->is_memory = fs_names[i].is_memory;
        }
}

/* Kernels before 6.1 do not tell the alignments: O_DIRECT is tried, and a page always suffices. */
static void guess_direct(int fd, uint32_t logical, struct mx_storage *out) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int direct = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (direct < 0) return;
    close(direct);
    out->direct_offset_align_bytes = logical != 0 ? logical : 4096;
    out->direct_memory_align_bytes = logical != 0 ? logical : 4096;
}

static void find_direct(int fd, uint32_t logical, struct mx_storage *out) {
#ifdef STATX_DIOALIGN
    struct statx facts;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &facts) == 0 && (facts.stx_mask & STATX_DIOALIGN)) {
        out->direct_offset_align_bytes = facts.stx_dio_offset_align;
        out->direct_memory_align_bytes = facts.stx_dio_mem_align;
        return;
    }
#endif
    guess_direct(fd, logical, out);
}

static int device_facts(int fd, mx_why *why, struct mx_storage *out) {
    int logical = 0;
    unsigned physical = 0;
    uint64_t bytes = 0;
    if (ioctl(fd, BLKGETSIZE64, &bytes) != 0 || ioctl(fd, BLKSSZGET, &logical) != 0) {
        int err = -errno;
        return mx_fail(why, err, "the size of the block device of the store cannot be read: %s",
                       strerror(-err));
    }
    if (ioctl(fd, BLKPBSZGET, &physical) != 0) physical = (unsigned)logical;
    out->block_device = true;
    out->bytes = bytes;
    out->logical_block_bytes = (uint32_t)logical;
    out->physical_block_bytes = physical;
    find_direct(fd, (uint32_t)logical, out);
    return 0;
}

/* Without the file system's own reserve, though root could often dig into it. */
int mx_storage_free(int fd, uint64_t *bytes) {
    struct statvfs space;
    if (fstatvfs(fd, &space) != 0) return -errno;
    return *bytes = (uint64_t)space.f_bavail * space.f_frsize, 0;
}

static int file_facts(int fd, const struct stat *st, mx_why *why, struct mx_storage *out) {
    struct statvfs space;
    struct statfs fs;
    if (fstatvfs(fd, &space) != 0 || fstatfs(fd, &fs) != 0) {
        int err = -errno;
        return mx_fail(why, err, "the free space of the file system of the store cannot be read: %s",
                       strerror(-err));
    }
    name_file_system((uint32_t)fs.f_type, out);
    mx_storage_free(fd, &out->bytes);
    out->logical_block_bytes = (uint32_t)space.f_frsize;
    out->physical_block_bytes = (uint32_t)st->st_blksize;
    if (!out->is_memory) find_direct(fd, 0, out);
    return 0;
}

int mx_storage_facts(int fd, mx_why *why, struct mx_storage *out) {
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int err = -errno;
        return mx_fail(why, err, "the properties of the store's file cannot be read: %s", strerror(-err));
    }
    struct mx_storage facts = {.block_device = S_ISBLK(st.st_mode)};
    int err = S_ISBLK(st.st_mode) ? device_facts(fd, why, &facts) : file_facts(fd, &st, why, &facts);
    if (err == 0) *out = facts;
    return err;
}
