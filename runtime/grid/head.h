/* SPDX-License-Identifier: BSD-3-Clause */
/* head.h - inside grid/ only: what formats of arrays (array.h) share, above all the reading of headers of
 * text. */
#ifndef MX_GRID_HEAD_H
#define MX_GRID_HEAD_H

#include "grid/array.h"

/* What a header of text says. */
struct mx_array_head {
    enum mx_dtype dtype;
    int rank;        /* dimensions that are wanted, 3 or 2: given to who parses, and left as it is */
    int64_t size[3]; /* x first; of two dimensions 0 at the end */
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
/* So many whole numbers from 1 on and nothing else. */
bool mx_array_sizes(const char *text, int rank, int64_t size[3]);
/* Is this the number of dimensions that is wanted? */
bool mx_array_has_rank(const struct mx_array_head *head, const char *text);
bool mx_array_whole(const char *text, int64_t low, int64_t *out);
/* Is this a pattern of several files' names, as b%03d.raw 1 4 1? */
bool mx_array_several(const char *name);
/* Do names of dimensions, slowest first, say that they are not z, y, x? Of other names nothing is said. */
bool mx_array_turned(const char *const names[3]);
/* The same of two dimensions, which are y, x, or z before one of them. */
bool mx_array_rows_turned(const char *const names[2]);
/* Is this how MetaImage says that cells follow the header? */
bool mx_metaimage_local(const char *value);

int mx_hdf5_open(int fd, const char *path, const char *inside, bool any, int rank, mx_why *why,
                 struct mx_npy *out, char data[PATH_MAX]);
/* Are the extents possible, and all cells in the file? */
int mx_array_check_length(const char *path, const struct mx_npy *npy, mx_why *why);
/* Which cells of a file stand for no value. */
struct mx_array_missing {
    /* Which has all whole numbers of 64 bits. A NaN is one too; cells below low or above high. */
    long double fill[16], low, high;
    int n_fills;
    bool has_low, has_high;
};
/* Are all cells values? rank: dimensions that users have. Reads all of them, unless this process did before
 * and the file has not changed since. -EINVAL with a sentence that says where the first is that is none. */
int mx_array_check_values(const char *word, const struct mx_npy *npy, int rank,
                          const struct mx_array_missing *missing, mx_why *why);
/* Is the type one of those that are asked for? */
int mx_array_check_type(const char *path, enum mx_dtype dtype, bool any, mx_why *why);

#endif
