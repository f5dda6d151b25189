/* SPDX-License-Identifier: BSD-3-Clause */
/* grid_file.h - the files of --input and --output: .npy files and raw cells as a source of runs (memext.h),
 * .npy files as a sink. */
#ifndef MX_FILES_GRID_FILE_H
#define MX_FILES_GRID_FILE_H

#include "files/output.h"
#include "files/raw.h"
#include "grid/grid.h"

struct mx_grid_file {
    const char *path, *raw;  /* raw: what follows the name of a file of raw cells (raw.h); "" = .npy */
    int32_t h;               /* of a raw source: width of the frame in cells, if it has a frame */
    bool replace;            /* of a sink: replace an existing file */
    bool flat;               /* of a sink: the grid has two dimensions */
    struct mx_npy npy;       /* open while npy.fd >= 0 */
    char data[PATH_MAX];     /* of a source: the file of its cells, where a header names one; else "" */
    bool joined;             /* of a sink: another rank's file */
    struct mx_output output; /* of a sink; published when the whole result is there */
};

/* Make a source and a sink of a file. `file`, path and raw belong to the caller, and must stay valid as long
 * as these. */
void mx_grid_file_source(struct mx_grid_file *file, const char *path, const char *raw, struct mx_source *out);
void mx_grid_file_sink(struct mx_grid_file *file, const char *path, bool replace, struct mx_sink *out);
/* How the ranks of a run find the file that one of them has made: by a temporary name; or on one machine
 * without a name, so that nothing remains if all ranks are killed. */
struct mx_grid_file_place {
    char path[PATH_MAX];
    uint64_t device, inode; /* the file to which the path must lead; inode 0 = any file */
};
/* Says how other ranks find the file. named: by a temporary name. out->path "" = it has no path. */
void mx_grid_file_find(struct mx_grid_file *file, bool named, struct mx_grid_file_place *out);
/* Lets a rank write to the file too. When it closes the file as whole, its data is durable; the rank that
 * made the file gives it its name. */
int mx_grid_file_join(struct mx_grid_file *file, const struct mx_grid_file_place *place,
                      const struct mx_grid *grid, mx_why *why);
/* Gives the file up, since this rank or another one could not join. */
void mx_grid_file_part(struct mx_grid_file *file);

#endif
