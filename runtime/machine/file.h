/* SPDX-License-Identifier: BSD-3-Clause */
/* file.h - files that whoever uses memext names, opened without waiting for anybody. Opening a pipe waits for
 * its other end, reading a terminal for its user, and opening a device may do something: so a name is looked
 * at first, and what is no regular file is refused. Every option that names a file to read opens it here. */
#ifndef MX_FILE_H
#define MX_FILE_H

#include <memext/memext.h>

#include <stdio.h>
#include <sys/stat.h>

/* "a pipe", "a socket", "a device of characters" ... for sentences; NULL = a regular file. */
const char *mx_file_kind(mode_t mode);
/* 0, also where nothing is there yet, or -EINVAL: it is no regular file. */
int mx_file_check(const char *path, mx_why *why);
/* A descriptor to read from; -EINVAL: it is no regular file; -errno. */
int mx_file_open(const char *path, mx_why *why);
/* The same as a stream, which is closed by fclose; NULL with the error in *err. */
FILE *mx_file_stream(const char *path, mx_why *why, int *err);

#endif
