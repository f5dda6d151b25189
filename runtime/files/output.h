/* SPDX-License-Identifier: BSD-3-Clause */
/* output.h - files that a run leaves: checked and begun before the work, and under their own name only when
 * they are whole.
 *
 *     open:     a nameless file in the directory of PATH       (or .NAME.memext-PID where nameless files
 * cannot be had) publish:  fsync, name it, fsync of the directory         (rename over an existing file:
 * readers see the old one or the new one)
 *
 * So a run that ends early, or the machine with it, leaves the former file as it was.
 * A temporary name, which some of them have for a while, is locked (flock) as long as its process lives: what
 * killed processes left of an output is removed when that output is opened the next time.
 */
#ifndef MX_FILES_OUTPUT_H
#define MX_FILES_OUTPUT_H

#include <memext/backend.h>

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

struct mx_output {
    int fd;                   /* to write to; -1 = not open */
    char path[PATH_MAX];      /* of the file to be; a link's target */
    char temporary[PATH_MAX]; /* "" = nameless */
    bool replace, direct;     /* direct: /dev/null or /dev/full, written as it is */
    mode_t mode;              /* of the file that it replaces, 0 = a new one */
};

enum {
    MX_OUTPUT_REPLACE = 1, /* an existing file is replaced; without it one is -EEXIST */
    MX_OUTPUT_SEEK = 2,    /* written in any order: /dev/null is -ESPIPE too */
    MX_OUTPUT_SWEPT = 4,   /* one of many in a directory from which nothing has to be removed */
};

/* Words of a command line that name files; path NULL or "-" = none. */
enum mx_file_use { MX_FILE_READ, MX_FILE_PLACE, MX_FILE_WRITTEN, MX_FILE_NPY };
struct mx_file_word {
    const char *option, *path;
    /* PLACE: of a store; in a directory the file memext.store is meant. NPY: written as a .npy file */
    enum mx_file_use use;
};
/* -EINVAL where the name of a .npy file says that it is of another format.
 * -EINVAL or -ENOTBLK where one is a pipe, a terminal or another device that is no storage, of whichever
 * option. -EINVAL where one that is written, or a place, is the same file as another one, by whatever name,
 * or where one that is written is a store that is there. To be called before any is opened. A header that is
 * read stands for the file of its cells too. /dev/null may be named twice. */
int mx_output_check_names(const struct mx_file_word *words, size_t n, mx_why *why);

/* Nothing is written to an existing file. A pipe, terminal, socket or device is -ESPIPE, at once. -EEXIST
 * names --overwrite; -EISDIR, -ENOENT, -EACCES, -EROFS ... with a sentence. what: "the result", "the report"
 * ... for the sentences. The output must not move: paths in it are used until it is published or dropped. */
int mx_output_open(const char *path, const char *what, unsigned flags, mx_why *why, struct mx_output *out);
/* Would it be refused? Nothing is opened. */
int mx_output_ask(const char *path, const char *what, unsigned flags, mx_why *why);
/* A path by which other processes of this machine open the file, nameless or not; false: it has none. */
bool mx_output_path(const struct mx_output *output, char out[PATH_MAX]);
/* Gives the file its temporary name now, so that one can look into it while it grows. Errors change nothing.
 */
void mx_output_show(struct mx_output *output);
/* Takes room for so many bytes now, so that the end of a long run does not find a full disk. -ENOSPC; 0 where
 * the file system cannot say. */
int mx_output_reserve(struct mx_output *output, uint64_t bytes, const char *what, mx_why *why);
/* Makes the file durable and gives it its name. Closes the output in every case. */
int mx_output_publish(struct mx_output *output, const char *what, mx_why *why);
/* Closes it; nothing remains of it. Allowed for one that is not open. */
void mx_output_drop(struct mx_output *output);
/* Writes a text, which what names in sentences, and a newline to an open output, and publishes it; NULL = to
 * the standard output. The output is closed in every case. 0 or -EIO: it was begun, so whatever keeps it from
 * being written is no request that could be put right. */
int mx_output_text(struct mx_output *output, const char *what, const char *text, mx_why *why);
/* A stream of its own on the output's descriptor, which stays open when the stream is closed; NULL with
 * errno. */
FILE *mx_output_stream(const struct mx_output *output);

#endif
