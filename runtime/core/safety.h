/* SPDX-License-Identifier: BSD-3-Clause */
/* safety.h - is anybody's data in the way? Nothing here writes, but for mx_signature_wipe. */
#ifndef MX_SAFETY_H
#define MX_SAFETY_H

#include <memext/memext.h>
#include <sys/stat.h>
#include <sys/types.h>

/* A block device that is mounted, swapped on, or part of something else (RAID, LVM, dm-crypt), it or one of
 * its partitions: -EBUSY with a sentence. root is put before /proc and /sys ("" = the real ones). */
int mx_check_unused(const char *root, dev_t device, const char *path, mx_why *why);
/* The same for a file: swap space in use is -EBUSY. */
int mx_check_no_swap_file(const char *root, const struct stat *file, const char *path, mx_why *why);
/* A known file system, RAID, LVM, swap or partition table signature: 1 with its name ("ext4", "gpt partition
 * table"); 0 = none; -errno. */
int mx_signature_find(int fd, char *name, size_t capacity_bytes);
/* Erases all known signatures, as wipefs does. */
int mx_signature_wipe(int fd);

#endif
