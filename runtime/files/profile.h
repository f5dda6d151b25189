/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.h - files of fields of C whose cells are alike along axes (system/profile.h): the extent of such an
 * axis is 1. */
#ifndef MX_FILES_PROFILE_H
#define MX_FILES_PROFILE_H

#include "files/fields.h"
#include "system/profile.h"

/* Do these extents, z y x, say that a field of C is alike along axes? The others have the frame (*frame) or
 * not. A single cell has it unless one is to be made (`made`). A whole field is not alike, also of a grid of
 * one plane. If they do not say so, nothing is written. */
bool mx_field_is_alike(const int64_t shape[3], const struct mx_problem *problem, bool made, bool *frame,
                       uint8_t *alike);

/* Can DRAM hold this field whole, as a profile? Not where it is alike along x alone and the kernel was built
 * elsewhere, and not where a frame of another value is read, which makes cells differ. Such a file is copied
 * into the store. */
bool mx_field_is_profile(const struct mx_run_field *field, const struct mx_system *system);

/* Reads the open file of a field that is a profile. `whole`: the problem of all ranks. out->memory is for
 * free(). -ENOMEM, or what reading gives, with a sentence. */
int mx_field_read_profile(const struct mx_run_field *field, const struct mx_problem *whole, mx_why *why,
                          struct mx_profile *out);

/* Rows of a plane, of which the file gave row 0, or cell 0 of each, where they are alike along x or y. Rows
 * have `cells` cells. */
void mx_field_spread(uint8_t alike, int64_t element_bytes, int64_t cells, int64_t rows,
                     int64_t row_pitch_bytes, char *plane);

#endif
