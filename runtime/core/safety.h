/* SPDX-License-Identifier: BSD-3-Clause */
/* safety.h - does a place hold somebody's data? Only mx_signature_wipe writes. */
#ifndef MX_SAFETY_H
#define MX_SAFETY_H

#include <memext/memext.h>
#include <sys/stat.h>
#include <sys/types.h>

/* -EBUSY with a sentence if a block device, or one of its partitions, is mounted, is swap space in use, or is
 * part of something else (RAID, LVM, dm-crypt). root is put before /proc and /sys ("" = the real ones). */
int mx_check_unused(const char *root, dev_t device, const char *path, mx_why *why);
/* -EBUSY with a sentence if a file is swap space in use. */
int mx_check_no_swap_file(const char *root, const struct stat *file, const char *path, mx_why *why);
/* Finds a known signature of a file system, RAID, LVM, swap space or partition table: 1 with its name
 * ("ext4", "gpt partition table"); 0 = none; -errno. */
int mx_signature_find(int fd, char *name, size_t capacity_bytes);
/* Erases all known signatures, as wipefs does. */
int mx_signature_wipe(int fd);

#endif
