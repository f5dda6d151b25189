/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of systems/ as plain loops: what somebody writes who has the update of a cell, OpenMP and no more. Arrays
 * whole in DRAM, a field after the other, planes shared among threads, one pass over everything a level. experiments/systems.py
 * compiles plain.c with this header in place of memext's, with -DGRID_X, GRID_Y, GRID_Z. */
#include <math.h>
#include <stdint.h>

enum { MX_JACOBI, MX_LEAPFROG, MX_STAGGERED };
#ifndef MX_PARTNER
#define MX_PARTNER(F)
#endif
#ifndef MX_FIXED
#define MX_FIXED(F)
#endif
#ifndef MX_PARAMS
#define MX_PARAMS(P)
#endif
#ifndef MX_FORM
#define MX_FORM MX_JACOBI
#endif
#ifndef MX_REAL
#define MX_REAL double
#endif

#define MX_INDEX(name, type) mx_index_##name,
enum { MX_STATE(MX_INDEX) mx_n_state };
enum { MX_PARTNER(MX_INDEX) mx_n_partner };
enum { MX_FIXED(MX_INDEX) mx_n_fixed };
#define MX_TYPE(name, type) typedef type mx_type_##name;
MX_STATE(MX_TYPE) MX_PARTNER(MX_TYPE) MX_FIXED(MX_TYPE)
#define MX_VALUE(name, value) static const MX_REAL mx_value_##name = (MX_REAL)(value);
MX_PARAMS(MX_VALUE)
#define MX_BYTES(name, type) sizeof(type),
static const size_t mx_state_bytes[] = {MX_STATE(MX_BYTES) 0}, mx_partner_bytes[] = {MX_PARTNER(MX_BYTES) 0},
                    mx_fixed_bytes[] = {MX_FIXED(MX_BYTES) 0};

/* One array with a frame of MX_RADIUS cells for each field; rows are whole lines. */
enum { ROW = (GRID_X + 2 * MX_RADIUS + 15) / 16 * 16, PLANE_ROWS = GRID_Y + 2 * MX_RADIUS };
static const int64_t mx_plane = (int64_t)ROW * PLANE_ROWS;

#define AT(name, dx, dy, dz) mx_at_##name[mx_i + (dx) + (dy) * ROW + (dz) * mx_plane]
#define OLD(name) mx_out_##name[mx_i]
#define SET(name, value) ((void)(mx_out_##name[mx_i] = (value)))
#define PARAM(name) mx_value_##name
#define X (mx_x - MX_RADIUS)
#define Y (mx_y - MX_RADIUS)
#define Z (mx_z - MX_RADIUS)
#define T mx_t
#define NX GRID_X
#define NY GRID_Y
#define NZ GRID_Z
#define MX_IN(name, type) const type *restrict mx_at_##name = mx_in[mx_index_##name];
#define MX_OUT(name, type) type *restrict mx_out_##name = mx_out[mx_index_##name];
#define MX_C(name, type) const type *restrict mx_at_##name = mx_fixed[mx_index_##name];

#define MX_LEVEL(function, READS, WRITES)                                                                    \
    static void function(void *const *mx_in, void *const *mx_out, void *const *mx_fixed, int64_t mx_t) {     \
        READS(MX_IN) WRITES(MX_OUT) MX_FIXED(MX_C)                                                           \
        (void)mx_t, (void)mx_fixed;                                                                          \
        _Pragma("omp parallel for schedule(static)") for (int64_t mx_z = MX_RADIUS; mx_z < GRID_Z + MX_RADIUS; mx_z++) \
            for (int64_t mx_y = MX_RADIUS; mx_y < GRID_Y + MX_RADIUS; mx_y++) {                              \
                _Pragma("omp simd") for (int64_t mx_x = MX_RADIUS; mx_x < GRID_X + MX_RADIUS; mx_x++) {      \
                    const int64_t mx_i = mx_z * mx_plane + mx_y * ROW + mx_x;
#define MX_CELL MX_LEVEL(level, MX_STATE, MX_STATE)
#define MX_CELL_B MX_LEVEL(level_b, MX_STATE, MX_PARTNER)
#define MX_CELL_A MX_LEVEL(level_a, MX_PARTNER, MX_STATE)
#define MX_END                                                                                               \
    }                                                                                                        \
    }                                                                                                        \
    }
