/* SPDX-License-Identifier: BSD-3-Clause */
/* Diffusion of heat with a conductivity per cell: du/dt = div(k grad u). The flux between two cells has the mean of their
 * conductivities. dt is the time step over the square of the spacing; stable while dt * max(k) <= 1/6. */
#define MX_NAME "diffusion"
#define MX_RADIUS 1
#define MX_FIXED_RADIUS 1
#define MX_STATE(F) F(u, double)
#define MX_FIXED(F) F(k, float)
#define MX_PARAMS(P) P(dt, 0.1)
#include <memext/cell.h>

#define FLUX(dx, dy, dz) (0.5 * ((double)AT(k, 0, 0, 0) + (double)AT(k, dx, dy, dz)) * (AT(u, dx, dy, dz) - AT(u, 0, 0, 0)))

MX_CELL
    double flux = FLUX(-1, 0, 0) + FLUX(1, 0, 0) + FLUX(0, -1, 0) + FLUX(0, 1, 0) + FLUX(0, 0, -1) + FLUX(0, 0, 1);
    SET(u, AT(u, 0, 0, 0) + PARAM(dt) * flux);
MX_END
