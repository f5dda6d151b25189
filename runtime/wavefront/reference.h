/* SPDX-License-Identifier: BSD-3-Clause */
/* reference.h - the plain loop, row after row. It shares only the source with the pipeline. --verify compares
 * with it, and --sequential runs it in memory. */
#ifndef MX_WAVEFRONT_REFERENCE_H
#define MX_WAVEFRONT_REFERENCE_H

#include "wavefront/source.h"

#include <stdatomic.h>

/* Makes all iterations in one walk from the first row to the last; iteration w is w rows after the first one.
 * DRAM holds iterations + 2 rows of the six matrices. If that is too much, there are several walks, and a
 * scratch Buffer holds the data between two walks, row-major. */
struct mx_wf_walk;
struct mx_wf_walk_options {
    const struct mx_wf_source *source;
    int64_t iterations;
    mx_budget *budget;
    uint64_t dram_bytes; /* at most; two waves must fit */
    mx_device *device;
    mx_buffer *scratch;   /* mx_wf_scratch_bytes long; overwritten if one walk is not enough */
    uint32_t align_bytes; /* of its transfers */
    const atomic_int *stop;
    void (*progress)(void *context, int64_t updates);
    void *context;
    mx_why *why;
};
int64_t mx_wf_scratch_bytes(int64_t rows, int64_t cols, uint32_t align_bytes);
/* Makes all walks but the last one. */
int mx_wf_walk_open(const struct mx_wf_walk_options *options, struct mx_wf_walk **out);
/* Returns the next row of the result, from row 0 on, cols + 2 doubles; valid until the next call. */
int mx_wf_walk_next(struct mx_wf_walk *walk, const double **row);
void mx_wf_walk_close(struct mx_wf_walk *walk); /* NULL allowed */

/* Runs the sequential loop with all six matrices in memory, one after another in *block, za first. The caller
 * frees *block in any case. The options scratch, device and dram_bytes are ignored. *fill_ns, *loop_ns: how
 * long reading and computing took. */
int mx_wf_run_sequential(const struct mx_wf_walk_options *options, mx_block **block, uint64_t *fill_ns,
                         uint64_t *loop_ns);

#endif
