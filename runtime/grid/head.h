/* SPDX-License-Identifier: BSD-3-Clause */
/* head.h - inside grid/ only: shared by the formats of arrays (array.h), above all the reading of text
 * headers. */
#ifndef MX_GRID_HEAD_H
#define MX_GRID_HEAD_H

#include "grid/array.h"

/* What a text header says. */
struct mx_array_head {
    enum mx_dtype dtype;
    int rank;        /* dimensions that are wanted, 3 or 2: set by the caller of the parser */
    int64_t size[3]; /* x first; in two dimensions the last one is 0 */
    bool big_endian;
    char data[PATH_MAX]; /* name of the file with the cells, as in the header; "" = this file, after the
                            header */
    int64_t begin;       /* offset of the first byte after the header */
    int64_t skip_lines, skip_bytes; /* of the data, lines first; -1 bytes: the cells end with the file */
};
/* Parse the beginning of a file, `bytes` bytes without a 0 at the end. -EINVAL with a sentence that names
 * path. */
int mx_nrrd_parse(const char *path, const char *text, size_t bytes, mx_why *why, struct mx_array_head *out);
int mx_metaimage_parse(const char *path, const char *text, size_t bytes, mx_why *why,
                       struct mx_array_head *out);

/* Reads one line of text from *at on, without its end (\n, \r\n); false after the last line. */
struct mx_line {
    const char *text;
    size_t bytes;
};
bool mx_array_line(const char *text, size_t bytes, size_t *at, struct mx_line *out);
/* Splits a line "KEY<separator>VALUE", without blanks around either; false = there is no separator. */
bool mx_array_pair(struct mx_line line, const char *separator, char key[64], char value[PATH_MAX]);
/* Reads `rank` integers of 1 or more; false = anything else. */
bool mx_array_sizes(const char *text, int rank, int64_t size[3]);
/* Is this text the number of dimensions that is wanted? */
bool mx_array_has_rank(const struct mx_array_head *head, const char *text);
bool mx_array_whole(const char *text, int64_t low, int64_t *out);
/* Is this a pattern for names of several files, such as b%03d.raw 1 4 1? */
bool mx_array_several(const char *name);
/* Do names of dimensions, slowest first, say that the order is not z, y, x? false for unknown names. */
bool mx_array_turned(const char *const names[3]);
/* The same of two dimensions, which are y, x, or z before one of them. */
bool mx_array_rows_turned(const char *const names[2]);
/* Does this value of MetaImage say that cells follow the header? */
bool mx_metaimage_local(const char *value);

int mx_hdf5_open(int fd, const char *path, const char *inside, bool any, int rank, mx_why *why,
                 struct mx_npy *out, char data[PATH_MAX]);
/* Checks that the extents are possible, and that the file has all cells. */
int mx_array_check_length(const char *path, const struct mx_npy *npy, mx_why *why);
/* Which cells of a file mean that a value is missing. */
struct mx_array_missing {
    /* Cells that equal one of `fill`, are below low or above high, or are NaN. long double holds all 64-bit
     * integers. */
    long double fill[16], low, high;
    int n_fills;
    bool has_low, has_high;
};
/* Checks that no cell is missing. rank: dimensions as users have them. Reads all cells, unless this process
 * did so before and the file has not changed since. -EINVAL with a sentence that names the first missing
 * cell. */
int mx_array_check_values(const char *word, const struct mx_npy *npy, int rank,
                          const struct mx_array_missing *missing, mx_why *why);
/* Checks that the type is one that is asked for. */
int mx_array_check_type(const char *path, enum mx_dtype dtype, bool any, mx_why *why);

#endif
