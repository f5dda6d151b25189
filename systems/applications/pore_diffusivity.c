/* SPDX-License-Identifier: BSD-3-Clause */
/* Diffusion through a pore space in steady state: lap(c) = 0 in the pores, no flux into what is solid, relaxed in red-black order.
 * pore: 1 where there is pore, 0 where there is none; its frame is read too, and says what is beyond the sides. omega: relaxation
 * factor, 0 to 2. Each step is half an iteration: of cells whose x + y + z + t is even. flux: through the face before each cell in z. */
#define MX_NAME "pore-diffusivity"
#define MX_RADIUS 1
#define MX_FIXED_RADIUS 1
#define MX_STATE(F) F(c, double)
#define MX_FIXED(F) F(pore, uint8_t)
#define MX_PARAMS(P) P(omega, 1.9)
#define MX_REDUCES(R) R(flux, MX_SUM)
#include <memext/cell.h>

#define OPEN(dx, dy, dz) ((double)AT(pore, dx, dy, dz))
#define FROM(dx, dy, dz) (OPEN(dx, dy, dz) * AT(c, dx, dy, dz))

MX_CELL
    const double here = AT(c, 0, 0, 0);
    const double open = OPEN(-1, 0, 0) + OPEN(1, 0, 0) + OPEN(0, -1, 0) + OPEN(0, 1, 0) + OPEN(0, 0, -1) + OPEN(0, 0, 1);
    const double sum = FROM(-1, 0, 0) + FROM(1, 0, 0) + FROM(0, -1, 0) + FROM(0, 1, 0) + FROM(0, 0, -1) + FROM(0, 0, 1);
    const double mean = sum / (open > 0 ? open : 1);
    const int mine = AT(pore, 0, 0, 0) & ~(int)(X + Y + Z + T) & 1; /* arithmetic, not choices: these are vectorised */
    SET(c, here + (double)mine * (open > 0 ? PARAM(omega) : 0) * (mean - here));
MX_END

MX_REDUCE(flux)
    RESULT(OPEN(0, 0, 0) * OPEN(0, 0, -1) * (AT(c, 0, 0, -1) - AT(c, 0, 0, 0)));
MX_END
