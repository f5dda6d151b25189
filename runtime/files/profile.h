/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.h - files of fields of C that are constant along axes (system/profile.h): the extent of such an
 * axis is 1. */
#ifndef MX_FILES_PROFILE_H
#define MX_FILES_PROFILE_H

#include "files/fields.h"
#include "system/profile.h"

/* Do these extents, z y x, say that a field of C is constant along axes? *frame: the other axes have the
 * frame. A single cell counts as having it, unless a frame is to be made (`made`). A file with all cells of
 * the grid is not constant, even if the grid has one plane. If the answer is no, nothing is written. */
bool mx_field_is_alike(const int64_t shape[3], const struct mx_problem *problem, bool made, bool *frame,
                       uint8_t *alike);

/* Can DRAM hold this field whole, as a profile? No if it is constant along x alone and the kernel is a .so of
 * the user, and no if a frame with another value is read. Such a file is copied into the store. */
bool mx_field_is_profile(const struct mx_run_field *field, const struct mx_system *system);

/* Reads the open file of a field that is a profile. `whole`: the problem of all ranks. The caller frees
 * out->memory with free(). -ENOMEM, or an error of reading, with a sentence. */
int mx_field_read_profile(const struct mx_run_field *field, const struct mx_problem *whole, mx_why *why,
                          struct mx_profile *out);

/* Completes a plane of a field that is constant along x or y: the file gave only row 0, or only cell 0 of
 * each row. Rows have `cells` cells. */
void mx_field_spread(uint8_t alike, int64_t element_bytes, int64_t cells, int64_t rows,
                     int64_t row_pitch_bytes, char *plane);

#endif
