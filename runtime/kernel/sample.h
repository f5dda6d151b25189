/* SPDX-License-Identifier: BSD-3-Clause */
/* sample.h - a small tile in cache, on which the row functions of a system are timed. */
#ifndef MX_SAMPLE_H
#define MX_SAMPLE_H

#include "system/system.h"

/* Arrays A, B and C of n[0] x n[1] x n[2] cells and their frames, with harmless values. */
struct mx_sample {
    int64_t n[3], grid[3];           /* grid: NX, NY and NZ of its cells; n unless they are changed */
    int32_t h, hy, hc;               /* hy: halo in y (system.h, mx_halo_y) */
    int64_t row_pitch, rows, planes; /* of A and B, frame counted */
    int64_t offset[2][MX_MAX_FIELDS];
    int64_t fixed_pitch[MX_MAX_FIXED];
    char *array[2], *fixed[MX_MAX_FIXED];
};

/* Returns the bytes of all arrays. */
int64_t mx_sample_bytes(const struct mx_system *system, const int64_t n[3]);
/* Makes a sample with values between 0.5 and 1. -ENOMEM. */
int mx_sample_make(const struct mx_system *system, const int64_t n[3], struct mx_sample *out);
/* Puts other values into all arrays. The same range always gives the same values. */
void mx_sample_fill(const struct mx_sample *sample, const struct mx_system *system, const double range[2]);
/* Returns the bytes of one array, A or B. */
int64_t mx_sample_array_bytes(const struct mx_sample *sample);
void mx_sample_free(struct mx_sample *sample);
/* Computes level `level` of all cells, of array A or B from the other: some rows in each call, of several
 * planes where the system has functions for them.
 * `system` has the fields of the sample's.
 */
void mx_sample_level(const struct mx_sample *sample, const struct mx_system *system, int level, int64_t rows);

#endif
