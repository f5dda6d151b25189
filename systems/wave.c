/* SPDX-License-Identifier: BSD-3-Clause */
/* Acoustic waves, of order 8 in space and 2 in time, with a velocity per cell and a sponge: d2p/dt2 + 2 s/dt dp/dt = v^2 lap(p).
 * damping is s: 0 inside, growing to about 0.1 towards the sides. dt: time step, dx: spacing; stable while v dt/dx <= 0.5. */
#define MX_NAME "wave"
#define MX_RADIUS 4
#define MX_REAL float
#define MX_FORM MX_LEAPFROG
#define MX_STATE(F) F(p, float)
#define MX_FIXED(F) F(v, float) F(damping, float)
#define MX_PARAMS(P) P(dt, 0.001) P(dx, 10)
#include <memext/cell.h>

#define RING(r) (AT(p, -r, 0, 0) + AT(p, r, 0, 0) + (AT(p, 0, -r, 0) + AT(p, 0, r, 0)) + (AT(p, 0, 0, -r) + AT(p, 0, 0, r)))
#define W(r) ((float)(r))

MX_CELL
    float c = AT(v, 0, 0, 0) * (PARAM(dt) / PARAM(dx)), s = AT(damping, 0, 0, 0);
    float lap = W(-205.0 / 24) * AT(p, 0, 0, 0) + W(8.0 / 5) * RING(1) + W(-1.0 / 5) * RING(2) + W(8.0 / 315) * RING(3)
              + W(-1.0 / 560) * RING(4);
    SET(p, (2 * AT(p, 0, 0, 0) - (1 - s) * OLD(p) + c * c * lap) / (1 + s));
MX_END
