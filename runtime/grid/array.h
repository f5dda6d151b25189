/* SPDX-License-Identifier: BSD-3-Clause */
/* array.h - finds the cells in files of any format that hold an array of three dimensions as it lies in
 * memory. Every format gives a struct mx_npy (grid.h). To add a format, add a row to the table in array.c. */
#ifndef MX_ARRAY_H
#define MX_ARRAY_H

#include "grid/grid.h"

#include <limits.h>

/* Opens an array of three dimensions: f64 or f32, or with `any` every mx_dtype. The beginning of the file
 * tells the format. inside: the dataset of an HDF5 file, "" for others. out->fd is the file with the cells,
 * which a header may name: its absolute path goes to data (may be NULL), "" if it is the file itself. -errno,
 * -EINVAL with a sentence: no such file; cells that do not lie as in memory (compressed, chunked, big endian,
 * several files); other types or ranks; a file that is cut short. */
int mx_array_open(const char *path, const char *inside, bool any, mx_why *why, struct mx_npy *out,
                  char data[PATH_MAX]);
/* The same of a grid that may have two dimensions: (ny, nx) becomes planes of one row, shape {ny, 1, nx}. */
int mx_array_open_grid(const char *path, const char *inside, bool any, bool flat, mx_why *why,
                       struct mx_npy *out, char data[PATH_MAX]);
/* Opens a .npy file of `rank` dimensions by a descriptor, which this function takes over: it is closed, or in
 * *out. */
int mx_npy_open_fd(int fd, const char *path, bool any, int rank, mx_why *why, struct mx_npy *out);
/* Splits a word FILE or FILE:/DATASET. If the whole word is not a file, `file` is the part before a ":/" that
 * is one. Returns where the dataset begins in word; "" = there is none. */
const char *mx_array_split(const char *word, char file[PATH_MAX]);
/* Writes the same word with the file's absolute path. -errno. */
int mx_array_real(const char *word, char out[PATH_MAX]);

/* The file that a header of text says its cells are in, for comparison with other names: also where the
 * header could not be used otherwise. out: absolute as far as it is there. false: path is no such header, or
 * holds the cells itself. */
bool mx_array_data(const char *path, char out[PATH_MAX]);

struct mx_array_format {
    const char *name, *summary; /* for `memext info` */
    bool built;
    bool (*is)(const char *head, size_t bytes);
    /* fd is open for reading and is taken over: closed, or in out. rank: dimensions, 3 or 2. */
    int (*open)(int fd, const char *path, const char *inside, bool any, int rank, mx_why *why,
                struct mx_npy *out, char data[PATH_MAX]);
};
extern const struct mx_array_format mx_array_formats[]; /* ends with name NULL */

#endif
