/* SPDX-License-Identifier: BSD-3-Clause */
/* file.h - opens files that users name, without waiting. Opening a pipe would wait for its other end, reading
 * a terminal for its user, and opening a device may have an effect. So the name is looked at first, and
 * anything but a regular file is refused. Every option that names a file to read opens it here. */
#ifndef MX_FILE_H
#define MX_FILE_H

#include <memext/memext.h>

#include <stdio.h>
#include <sys/stat.h>

/* Returns the kind of a file for sentences: "a pipe", "a socket", "a device of characters" ...; NULL = a
 * regular file. */
const char *mx_file_kind(mode_t mode);
/* Checks a name: 0 for a regular file, or if nothing is there yet; -EINVAL = it is not a regular file. */
int mx_file_check(const char *path, mx_why *why);
/* Opens a file for reading and returns its descriptor; -EINVAL: it is not a regular file; -errno. */
int mx_file_open(const char *path, mx_why *why);
/* Opens it as a stream, which the caller closes with fclose; NULL with the error in *err. */
FILE *mx_file_stream(const char *path, mx_why *why, int *err);

#endif
