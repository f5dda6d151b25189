/* SPDX-License-Identifier: BSD-3-Clause */
/* Elastic waves, velocities and stresses, on Virieux's grid: density 1, stiffnesses lam and mu per cell, not averaged; stable for dt
 * below 1 / sqrt(3 max(lam + 2 mu)). A step makes the stresses from the velocities, then the velocities. Of cell (i, j, k): vx
 * lies at (i+1/2, j, k), sxx at (i, j, k), sxy at (i+1/2, j+1/2, k), and so on. The free surface of a half-space goes through
 * plane z = 0, where szz, sxz and syz vanish:
 *   --side z=mirror-node,fixed --side vz:z=mirror,fixed --side szz:z=odd-node,fixed --side sxz:z=odd,fixed
 *   --side syz:z=odd,fixed
 * The mirrored vz makes its derivative 0 in that plane, so sxx and syy are too large there, and the surface is of first order. */
#define MX_NAME "elastic"
#define MX_RADIUS 1
#define MX_REAL float
#define MX_FORM MX_STAGGERED
#define MX_STATE(F) F(vx, float) F(vy, float) F(vz, float)
#define MX_PARTNER(F) F(sxx, float) F(syy, float) F(szz, float) F(sxy, float) F(sxz, float) F(syz, float)
#define MX_FIXED(F) F(lam, float) F(mu, float)
#define MX_PARAMS(P) P(dt, 0.3)
#include <memext/cell.h>

#define UP(f, dx, dy, dz) (AT(f, dx, dy, dz) - AT(f, 0, 0, 0))
#define DOWN(f, dx, dy, dz) (AT(f, 0, 0, 0) - AT(f, -dx, -dy, -dz))

MX_CELL_B
    float xx = DOWN(vx, 1, 0, 0), yy = DOWN(vy, 0, 1, 0), zz = DOWN(vz, 0, 0, 1);
    float all = PARAM(dt) * AT(lam, 0, 0, 0) * (xx + yy + zz), m = PARAM(dt) * AT(mu, 0, 0, 0);
    SET(sxx, OLD(sxx) + (all + 2 * m * xx));
    SET(syy, OLD(syy) + (all + 2 * m * yy));
    SET(szz, OLD(szz) + (all + 2 * m * zz));
    SET(sxy, OLD(sxy) + m * (UP(vx, 0, 1, 0) + UP(vy, 1, 0, 0)));
    SET(sxz, OLD(sxz) + m * (UP(vx, 0, 0, 1) + UP(vz, 1, 0, 0)));
    SET(syz, OLD(syz) + m * (UP(vy, 0, 0, 1) + UP(vz, 0, 1, 0)));
MX_END

MX_CELL_A
    SET(vx, OLD(vx) + PARAM(dt) * (UP(sxx, 1, 0, 0) + DOWN(sxy, 0, 1, 0) + DOWN(sxz, 0, 0, 1)));
    SET(vy, OLD(vy) + PARAM(dt) * (DOWN(sxy, 1, 0, 0) + UP(syy, 0, 1, 0) + DOWN(syz, 0, 0, 1)));
    SET(vz, OLD(vz) + PARAM(dt) * (DOWN(sxz, 1, 0, 0) + DOWN(syz, 0, 1, 0) + UP(szz, 0, 0, 1)));
MX_END
