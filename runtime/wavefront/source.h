/* SPDX-License-Identifier: BSD-3-Clause */
/* source.h - the sources of the six matrices: .npy files, or values computed from the position. */
#ifndef MX_WAVEFRONT_SOURCE_H
#define MX_WAVEFRONT_SOURCE_H

#include "ask/options.h"
#include "grid/grid.h"
#include "wavefront/layout.h"

/* Values of all matrices; cell (i, j) counts the border. Any thread, any order. */
struct mx_wf_init {
    const char *name, *summary;
    double (*value)(enum mx_wf_matrix m, int64_t i, int64_t j);
};
extern const struct mx_wf_init mx_wf_inits[]; /* ends with name NULL; the first is the default */
const struct mx_wf_init *mx_wf_init_find(const char *name);

/* Words "NAME=FILE" of an option; a word without a matrix's name before a '=' is the file of za. -EINVAL. */
int mx_wf_take_files(const char *option, const struct mx_words *words, const char *files[MX_WF_MATRICES],
                     mx_why *why);

struct mx_wf_source {
    int64_t rows, cols; /* interior */
    const struct mx_wf_init *init;
    struct mx_npy files[MX_WF_MATRICES]; /* fd -1: by init */
};

/* Opens the named files (paths[m] may be NULL) and takes the extents from them. rows and cols: what the files
 * must have, or 0. -EINVAL: files that do not agree, element types other than f64, no interior.
 */
int mx_wf_source_open(const char *const paths[MX_WF_MATRICES], const struct mx_wf_init *init, int64_t rows,
                      int64_t cols, mx_why *why, struct mx_wf_source *out);
void mx_wf_source_close(struct mx_wf_source *source);
/* Gives rows r0..r0+n-1 of a matrix, cols + 2 doubles each, without gaps. */
int mx_wf_source_rows(const struct mx_wf_source *source, enum mx_wf_matrix m, int64_t r0, int64_t n,
                      double *rows, mx_why *why);

#endif
