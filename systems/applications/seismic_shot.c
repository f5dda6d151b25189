/* SPDX-License-Identifier: BSD-3-Clause */
/* A seismic shot: acoustic waves, of order 8 in space and 2 in time, d2p/dt2 + 2 s/dt dp/dt = v^2 lap(p) + source. v: velocity in
 * m/s; sponge: 0 inside, growing to 255 towards the sides, where s is damping. dt: time step in s, dx: spacing in m; stable while
 * v dt/dx <= 0.5. */
#define MX_NAME "seismic-shot"
#define MX_RADIUS 4
#define MX_REAL float
#define MX_FORM MX_LEAPFROG
#define MX_STATE(F) F(p, float)
#define MX_FIXED(F) F(v, uint16_t) F(sponge, uint8_t)
#define MX_PARAMS(P) P(dt, 0.001) P(dx, 10) P(damping, 0.1)
#include <memext/cell.h>

#define RING(r) (AT(p, -r, 0, 0) + AT(p, r, 0, 0) + (AT(p, 0, -r, 0) + AT(p, 0, r, 0)) + (AT(p, 0, 0, -r) + AT(p, 0, 0, r)))
#define W(r) ((float)(r))

MX_CELL
    float c = (float)AT(v, 0, 0, 0) * (PARAM(dt) / PARAM(dx)), s = (float)AT(sponge, 0, 0, 0) * (PARAM(damping) / 255);
    float lap = W(-205.0 / 24) * AT(p, 0, 0, 0) + W(8.0 / 5) * RING(1) + W(-1.0 / 5) * RING(2) + W(8.0 / 315) * RING(3)
              + W(-1.0 / 560) * RING(4);
    SET(p, (2 * AT(p, 0, 0, 0) - (1 - s) * OLD(p) + c * c * lap) / (1 + s));
MX_END
