/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.h - fields of C that are alike along axes, such as the damping of a boundary layer or the depth of
 * a medium.
 *
 * A file says by its extents that it is a profile: an extent is 1 where all cells along that axis are alike.
 *
 *     extents        alike along    in DRAM
 *     (nz, 1, 1)     x, y           nz + 2h rows: each stands for a plane
 *     (1, ny, 1)     x, z           ny + 2h rows: one plane, which stands for all
 *     (1, 1, nx)     y, z           one row
 *     (1, ny, nx)    z              one plane
 *     (nz, 1, nx)    y              nz + 2h rows
 *     (1, 1, 1)      x, y, z        one row
 *     (nz, ny, 1)    x              one cell of each row
 *
 * DRAM has a profile whole, from the beginning of a run to its end. So schedules, Buffers and rings do not
 * know of it. A view of it has pitch 0 along y or z (engine.h). Its rows have their full length, so that row
 * functions do not know of it either. Only of a field that is alike along x alone DRAM has one cell of each
 * row, and memext compiles the kernel anew for it (mx_kernel_take_profiles).
 *
 * Frames are those of the file, or made, or, at periodic ends, the other end. Rows beyond those of the grid
 * are there where y is periodic: one period on each side, for ghost rows. Ghost planes are looked up by
 * index.
 */
#ifndef MX_PROFILE_H
#define MX_PROFILE_H

#include "system/sides.h"

enum { MX_ALIKE_X = 1 << MX_DIM_X, MX_ALIKE_Y = 1 << MX_DIM_Y, MX_ALIKE_Z = 1 << MX_DIM_Z };

/* Has it one cell of each row? */
static inline bool mx_has_one_cell(const struct mx_profile *profile) { return profile->alike == MX_ALIKE_X; }

/* How it lies, its memory not yet there. `whole`: the problem of all ranks. */
void mx_profile_lay(const struct mx_problem *whole, enum mx_dtype dtype, uint8_t alike,
                    struct mx_profile *out);

/* The rows and planes that it has, of the whole grid, frame counted; [0,1) where they are alike. */
struct mx_profile_range {
    int64_t first, end;
};
struct mx_profile_range mx_profile_rows(const struct mx_problem *whole, uint8_t alike);
struct mx_profile_range mx_profile_planes(const struct mx_problem *whole, uint8_t alike);

/* The cell of the grid, frame counted, that stands at i of a dimension: of periodic ends an interior one. */
int64_t mx_profile_source(const struct mx_problem *whole, int dim, int64_t i);

/* Bytes of all profiles of a problem: of DRAM, and of an accelerator that has memory of its own. */
uint64_t mx_profile_bytes(const struct mx_problem *problem);

/* "xy": the axes, in a text of 4 bytes. */
const char *mx_alike_text(uint8_t alike, char text[4]);
/* The same as users call the axes: of grids of two dimensions z is y to them. */
const char *mx_alike_told(const struct mx_problem *problem, uint8_t alike, char text[4]);
/* 0 for anything that mx_alike_text does not give; text may be NULL. */
uint8_t mx_alike_parse(const char *text);

#endif
