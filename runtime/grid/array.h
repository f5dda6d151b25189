/* SPDX-License-Identifier: BSD-3-Clause */
/* array.h - files that hold an array of three dimensions as it lies in memory, in whatever format: where its
 * cells are. What every format gives is a struct mx_npy (grid.h). Adding one is a row of the table in
 * array.c. */
#ifndef MX_ARRAY_H
#define MX_ARRAY_H

#include "grid/grid.h"

#include <limits.h>

/* Opens an array of three dimensions: f64 or f32, or, where any is set, of every mx_dtype. The format is
 * known by how the file begins. inside: the dataset of an HDF5 file, "" of others. out->fd is of the file
 * with the cells, which a header may name: its absolute path goes to data (may be NULL), "" where it is the
 * file itself. -errno, -EINVAL with a sentence: no such file, a format or a form of it that is not as in
 * memory (compressed, chunked, big endian, several files), other types or ranks, cut short. */
int mx_array_open(const char *path, const char *inside, bool any, mx_why *why, struct mx_npy *out,
                  char data[PATH_MAX]);
/* The file of a word FILE or FILE:/DATASET: where the whole word is no file, what comes before a ":/" and is
 * one. Returns where the dataset begins in word, "" if there is none. */
const char *mx_array_split(const char *word, char file[PATH_MAX]);
/* The same word with the file's absolute path. -errno. */
int mx_array_real(const char *word, char out[PATH_MAX]);

/* The file that a header of text says its cells are in, for comparison with other names: also where the
 * header could not be used otherwise. out: absolute as far as it is there. false: path is no such header, or
 * holds the cells itself. */
bool mx_array_data(const char *path, char out[PATH_MAX]);

struct mx_array_format {
    const char *name, *summary; /* for `memext info` */
    bool built;
    bool (*is)(const char *head, size_t bytes);
    /* fd is open for reading and is taken over: closed, or in out. */
    int (*open)(int fd, const char *path, const char *inside, bool any, mx_why *why, struct mx_npy *out,
                char data[PATH_MAX]);
};
extern const struct mx_array_format mx_array_formats[]; /* ends with name NULL */

/* ------------------------------------------------------------------ for the formats */

/* What a header of text says. */
struct mx_array_head {
    enum mx_dtype dtype;
    int64_t size[3]; /* x first */
    bool big_endian;
    char
        data[PATH_MAX]; /* name of the file with the cells, as it is said; "" = this one, behind the header */
    int64_t begin;      /* byte behind the header */
    int64_t skip_lines, skip_bytes; /* of the data, lines first; -1 bytes: the cells end with the file */
};
/* bytes of the file's beginning, without a 0 at the end. -EINVAL with a sentence that names path. */
int mx_nrrd_parse(const char *path, const char *text, size_t bytes, mx_why *why, struct mx_array_head *out);
int mx_metaimage_parse(const char *path, const char *text, size_t bytes, mx_why *why,
                       struct mx_array_head *out);

/* One line of text from *at on, ends of lines (\n, \r\n) left out; false behind the last. */
struct mx_line {
    const char *text;
    size_t bytes;
};
bool mx_array_line(const char *text, size_t bytes, size_t *at, struct mx_line *out);
/* "KEY<separator>VALUE" of a line, blanks around both left out; false where there is no separator. */
bool mx_array_pair(struct mx_line line, const char *separator, char key[64], char value[PATH_MAX]);
/* Three whole numbers from 1 on and nothing else. */
bool mx_array_sizes(const char *text, int64_t size[3]);
bool mx_array_whole(const char *text, int64_t low, int64_t *out);
/* Is this a pattern of several files' names, as b%03d.raw 1 4 1? */
bool mx_array_several(const char *name);
/* Do names of dimensions, slowest first, say that they are not z, y, x? Of other names nothing is said. */
bool mx_array_turned(const char *const names[3]);
/* Is this how MetaImage says that cells follow the header? */
bool mx_metaimage_local(const char *value);

int mx_npy_open_fd(int fd, const char *path, bool any, int rank, mx_why *why, struct mx_npy *out);
int mx_hdf5_open(int fd, const char *path, const char *inside, bool any, mx_why *why, struct mx_npy *out,
                 char data[PATH_MAX]);
/* Are the extents possible, and all cells in the file? */
int mx_array_check_length(const char *path, const struct mx_npy *npy, mx_why *why);
/* Which cells of a file stand for no value. */
struct mx_array_missing {
    double fill[16], low, high; /* a NaN is one too; cells below low or above high */
    int n_fills;
    bool has_low, has_high;
};
/* Are all cells values? Reads all of them, unless this process did before and the file has not changed since.
 * -EINVAL with a sentence that says where the first is that is none. */
int mx_array_check_values(const char *word, const struct mx_npy *npy, const struct mx_array_missing *missing,
                          mx_why *why);
/* Is the type one of those that are asked for? */
int mx_array_check_type(const char *path, enum mx_dtype dtype, bool any, mx_why *why);

#endif
