/* SPDX-License-Identifier: BSD-3-Clause */
/* convert.h - converts between row-major matrices and the layouts on the device, out of core: the pre- and
 * postprocessing of the paper (section 4, Fig. 4). */
#ifndef MX_WAVEFRONT_CONVERT_H
#define MX_WAVEFRONT_CONVERT_H

#include "wavefront/layout.h"
#include "wavefront/source.h"

#include <stdatomic.h>

struct mx_wf_conversion {
    const struct mx_wf_geometry *geometry;
    enum mx_wf_matrix matrix;
    mx_device *device;
    mx_buffer *buffer;
    mx_budget *budget;
    const atomic_int *stop; /* NULL = none; -EINTR */
    mx_why *why;
};

/* Returns the DRAM of a conversion: two tile rows of one matrix, and some rows. */
int64_t mx_wf_conversion_bytes(const struct mx_wf_geometry *geometry);
/* Writes the whole matrix, tile row after tile row; the next one is cut while one is written. */
int mx_wf_store_matrix(const struct mx_wf_conversion *c, const struct mx_wf_source *source);
/* Hands all rows in order to sink, n dense rows of cols + 2 doubles from row r0 on; the next tile row is read
 * meanwhile. An error of sink ends it. */
typedef int mx_wf_sink_fn(void *context, int64_t r0, int64_t n, double *rows);
int mx_wf_fetch_matrix(const struct mx_wf_conversion *c, mx_wf_sink_fn *sink, void *context);

#endif
