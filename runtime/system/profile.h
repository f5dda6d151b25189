/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.h - profiles: read-only fields (of C) that are constant along axes, such as the damping of a
 * boundary layer or the depth of a medium.
 *
 * The extents of a file show that it is a profile: an extent is 1 if the field is constant along that axis.
 *
 *     extents        constant in    in DRAM
 *     (nz, 1, 1)     x, y           nz + 2h rows: each stands for a plane
 *     (1, ny, 1)     x, z           ny + 2h rows: one plane, which stands for all
 *     (1, 1, nx)     y, z           one row
 *     (1, ny, nx)    z              one plane
 *     (nz, 1, nx)    y              nz + 2h rows
 *     (1, 1, 1)      x, y, z        one row
 *     (nz, ny, 1)    x              one cell of each row
 *
 * DRAM holds a profile whole, from the beginning of a run to its end. So schedules, Buffers and rings do not
 * handle it. A view of it has pitch 0 along y or z (engine.h). Its rows have their full length, so that row
 * functions need not know that it is a profile. The exception is a field that is constant along x alone: DRAM
 * has one cell of each row, and memext compiles the kernel anew for it (mx_kernel_take_profiles).
 *
 * Frames come from the file or are made; at periodic ends they are the other end's cells. If y is periodic,
 * there is one more period of rows on each side, for ghost rows. Ghost planes are looked up by index.
 */
#ifndef MX_PROFILE_H
#define MX_PROFILE_H

#include "system/sides.h"

enum { MX_ALIKE_X = 1 << MX_DIM_X, MX_ALIKE_Y = 1 << MX_DIM_Y, MX_ALIKE_Z = 1 << MX_DIM_Z };

/* Does DRAM hold one cell of each row? */
static inline bool mx_has_one_cell(const struct mx_profile *profile) { return profile->alike == MX_ALIKE_X; }

/* Computes how a profile lies in memory, without allocating it. `whole`: the problem of all ranks. */
void mx_profile_lay(const struct mx_problem *whole, enum mx_dtype dtype, uint8_t alike,
                    struct mx_profile *out);

/* The rows and planes of a profile in the whole grid, frame counted; [0,1) along an axis where it is
 * constant. */
struct mx_profile_range {
    int64_t first, end;
};
struct mx_profile_range mx_profile_rows(const struct mx_problem *whole, uint8_t alike);
struct mx_profile_range mx_profile_planes(const struct mx_problem *whole, uint8_t alike);

/* Returns the cell of the grid, frame counted, that is at i of a dimension; at periodic ends an interior one.
 */
int64_t mx_profile_source(const struct mx_problem *whole, int dim, int64_t i);

/* Returns the bytes of all profiles of a problem: in DRAM, and also in an accelerator with memory of its own.
 */
uint64_t mx_profile_bytes(const struct mx_problem *problem);

/* Writes the axes, such as "xy", and returns text. */
const char *mx_alike_text(uint8_t alike, char text[4]);
/* The same with the user's names: in two dimensions z is called y. */
const char *mx_alike_told(const struct mx_problem *problem, uint8_t alike, char text[4]);
/* Reads what mx_alike_text writes; 0 for any other text, and for NULL. */
uint8_t mx_alike_parse(const char *text);

#endif
