/* SPDX-License-Identifier: BSD-3-Clause */
/* output.h - files that a run writes. They are checked and opened before the work, and get their own name
 * only when they are complete.
 *
 *     open       makes a nameless file in the directory of PATH, or the file .NAME.memext-PID if the file
 *                system has no nameless files
 *     publish    fsync; gives the file its name; fsync of the directory. It is renamed over an existing
 *                file: readers see the old file or the new one
 *
 * So if a run or the machine ends early, the former file is unchanged. A temporary name is locked (flock) as
 * long as its process lives. When the output is opened the next time, temporary files of killed processes are
 * removed.
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
    char path[PATH_MAX];      /* path of the file to be; of a link its target */
    char temporary[PATH_MAX]; /* temporary name; "" = nameless */
    bool replace, direct;     /* direct: /dev/null or /dev/full, written directly */
    mode_t mode;              /* mode of the file that it replaces; 0 = a new file */
};

enum {
    MX_OUTPUT_REPLACE = 1, /* replace an existing file; without this flag it is -EEXIST */
    MX_OUTPUT_SEEK = 2,    /* written in any order: /dev/null is -ESPIPE too */
    MX_OUTPUT_SWEPT = 4,   /* one of many files in a directory; nothing there has to be removed */
};

/* Words of a command line that name files; path NULL or "-" = none. */
enum mx_file_use { MX_FILE_READ, MX_FILE_PLACE, MX_FILE_WRITTEN, MX_FILE_NPY };
struct mx_file_word {
    const char *option, *path;
    /* PLACE: a store; in a directory the file memext.store. NPY: written as a .npy file */
    enum mx_file_use use;
};
/* Checks the names of all files, before any is opened. -EINVAL if a .npy file has the name of another format.
 * -EINVAL or -ENOTBLK if a file is a pipe, a terminal or another device that is not storage. -EINVAL if a
 * written file or a place is the same file as another one, under any name, or if a written file is an
 * existing store. A header that is read stands for the file of its cells too. /dev/null may be named twice.
 */
int mx_output_check_names(const struct mx_file_word *words, size_t n, mx_why *why);

/* Opens an output. It writes nothing to an existing file. -ESPIPE: a pipe, terminal, socket or device.
 * -EEXIST, whose sentence names --overwrite; -EISDIR, -ENOENT, -EACCES, -EROFS ... with a sentence. what:
 * "the result", "the report" ... for the sentences. *out must not be moved until it is published or dropped.
 */
int mx_output_open(const char *path, const char *what, unsigned flags, mx_why *why, struct mx_output *out);
/* Says whether mx_output_open would fail. Opens nothing. */
int mx_output_ask(const char *path, const char *what, unsigned flags, mx_why *why);
/* Gives a path by which other processes of this machine can open the file, nameless or not; false = there is
 * none. */
bool mx_output_path(const struct mx_output *output, char out[PATH_MAX]);
/* Gives the file its temporary name now, so that users can look into it while it grows. Errors are ignored.
 */
void mx_output_show(struct mx_output *output);
/* Reserves space for `bytes` bytes, so that a long run does not end with a full disk. -ENOSPC; 0 if the file
 * system cannot reserve. */
int mx_output_reserve(struct mx_output *output, uint64_t bytes, const char *what, mx_why *why);
/* Makes the file durable and gives it its name. Closes the output in every case. */
int mx_output_publish(struct mx_output *output, const char *what, mx_why *why);
/* Closes an output without leaving a file. It need not be open. */
void mx_output_drop(struct mx_output *output);
/* Writes a text and a newline to an open output, and publishes it; output NULL = standard output. `what`
 * names the text in sentences. The output is closed in every case. 0 or -EIO: since it was open, every error
 * counts as one of I/O, and not as a wrong request. */
int mx_output_text(struct mx_output *output, const char *what, const char *text, mx_why *why);
/* Opens a stream on the output's descriptor, which stays open when the stream is closed. NULL with errno. */
FILE *mx_output_stream(const struct mx_output *output);

#endif
