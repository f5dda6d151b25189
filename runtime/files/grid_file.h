/* SPDX-License-Identifier: BSD-3-Clause */
/* grid_file.h - .npy files, and of raw cells, as a source of runs (memext.h), .npy files as a sink: what
 * --input and --output are. */
#ifndef MX_FILES_GRID_FILE_H
#define MX_FILES_GRID_FILE_H

#include "files/output.h"
#include "files/raw.h"
#include "grid/grid.h"

struct mx_grid_file {
    const char *path, *raw;  /* raw: what follows the name of a file of raw cells (raw.h); "" = .npy */
    int32_t h;               /* of a raw source: cells of a frame, if it has one */
    bool replace;            /* of a sink: a file that is there */
    bool flat;               /* of a sink: of two dimensions */
    struct mx_npy npy;       /* open while npy.fd >= 0 */
    char data[PATH_MAX];     /* of a source: the file of its cells, where a header names one; else "" */
    bool joined;             /* of a sink: another rank's file */
    struct mx_output output; /* of a sink; published when the whole result is there */
};

/* file: of the caller, outlives what is made of it, as path and raw do. */
void mx_grid_file_source(struct mx_grid_file *file, const char *path, const char *raw, struct mx_source *out);
void mx_grid_file_sink(struct mx_grid_file *file, const char *path, bool replace, struct mx_sink *out);
/* How the ranks of a run find the file that one of them has made: by a name that it has for the time being,
 * or on one machine without one, so that nothing is left of it should all be killed. */
struct mx_grid_file_place {
    char path[PATH_MAX];
    uint64_t device, inode; /* the file that the path has to lead to; inode 0: whatever it leads to */
};
/* named: by a name. path "" = it has none. */
void mx_grid_file_find(struct mx_grid_file *file, bool named, struct mx_grid_file_place *out);
/* A rank joins in: closed whole the file is durable, and its name is the other's business. */
int mx_grid_file_join(struct mx_grid_file *file, const struct mx_grid_file_place *place,
                      const struct mx_grid *grid, mx_why *why);
/* It has not, or not all of them have. */
void mx_grid_file_part(struct mx_grid_file *file);

#endif
