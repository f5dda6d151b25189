/* grid_file.h - .npy files as a source and a sink of runs (memext.h): what --input and --output are. */
#ifndef MX_RUN_GRID_FILE_H
#define MX_RUN_GRID_FILE_H

#include "grid/grid.h"
#include "run/output.h"

struct mx_grid_file {
    const char *path;
    bool replace;            /* of a sink: a file that is there */
    struct mx_npy npy;       /* open while npy.fd >= 0 */
    char data[PATH_MAX];     /* of a source: the file of its cells, where a header names one; else "" */
    struct mx_output output; /* of a sink; published when the whole result is there */
};

/* file: of the caller, outlives what is made of it. */
void mx_grid_file_source(struct mx_grid_file *file, const char *path, struct mx_source *out);
void mx_grid_file_sink(struct mx_grid_file *file, const char *path, bool replace, struct mx_sink *out);

#endif
