/* SPDX-License-Identifier: BSD-3-Clause */
/* The Ising model of ferromagnets, by Metropolis: spins of -1 and 1, one byte each, of which those with X + Y + Z even are updated in the first stage and
 * the others in the second. w is exp(-4 J / kT), 0.41204 where the magnet loses its order. The random numbers are a hash of the cell, the step and `seed`
 * (lowbias32, C. Wellons 2018), so that they are the same however the grid is cut. Cells of 0 count as -1: --init random will do. Take periodic sides and
 * even extents. `spin` is the magnetisation, `bonds` minus the energy. */
#define MX_NAME "ising"
#define MX_RADIUS 1
#define MX_STAGES 2
#define MX_STATE(F) F(s, int8_t)
#define MX_PARAMS(P) P(w, 0.41204) P(seed, 1)
#define MX_REDUCES(R) R(spin, MX_SUM) R(bonds, MX_SUM)
#include <memext/cell.h>

static inline uint32_t mixed(uint32_t h) {
    h = (h ^ (h >> 16)) * 0x7feb352du;
    h = (h ^ (h >> 15)) * 0x846ca68bu;
    return h ^ (h >> 16);
}

#define SPIN(x, y, z) (AT(s, x, y, z) > 0 ? 1 : -1)
#define UPDATE(colour)                                                                                                       \
    const int own = SPIN(0, 0, 0), around = SPIN(-1, 0, 0) + SPIN(1, 0, 0) + SPIN(0, -1, 0) + SPIN(0, 1, 0) + SPIN(0, 0, -1) + SPIN(0, 0, 1); \
    const int bonds = own * around; /* half the energy that turning it costs */                                              \
    const double w = PARAM(w), chance = bonds <= 0 ? 1 : bonds == 2 ? w : bonds == 4 ? w * w : w * w * w;                     \
    const uint32_t h = mixed((uint32_t)X + mixed((uint32_t)Y + mixed((uint32_t)Z + mixed((uint32_t)T + (uint32_t)PARAM(seed))))); \
    SET(s, ((X + Y + Z) & 1) == (colour) && h * 0x1p-32 < chance ? -own : own);

MX_CELL_1
    UPDATE(0)
MX_END
MX_CELL_2
    UPDATE(1)
MX_END

MX_REDUCE(spin)
    RESULT(SPIN(0, 0, 0));
MX_END
MX_REDUCE(bonds)
    RESULT(SPIN(0, 0, 0) * (SPIN(1, 0, 0) + SPIN(0, 1, 0) + SPIN(0, 0, 1)));
MX_END
