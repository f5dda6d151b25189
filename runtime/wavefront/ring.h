/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.h - converts tiles, as transfers leave them, to groups of lanes, as the kernel needs them, and back.
 */
#ifndef MX_WAVEFRONT_RING_H
#define MX_WAVEFRONT_RING_H

#include "wavefront/kernel.h"

/* Where tile row i lies in DRAM: its groups, one after another, and the border rows of the data matrix. */
struct mx_wf_rows {
    const struct mx_wf_geometry *geometry;
    int64_t i;
    struct mx_wf_record *groups;
    double *top, *bottom; /* rows 0 and rows + 1, cols + 2 doubles each */
};

/* Copies tile j of matrix m from dram to the groups. It copies border rows only of the data matrix, and only
 * if take_border. Lanes below the last row become 0. */
void mx_wf_unpack(const struct mx_wf_rows *to, enum mx_wf_matrix m, int64_t j, char *dram, bool take_border);
/* Copies tile j of the data matrix from the groups to dram, ready to be written. */
void mx_wf_pack(const struct mx_wf_rows *from, int64_t j, char *dram);

#endif
