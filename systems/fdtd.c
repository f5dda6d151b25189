/* SPDX-License-Identifier: BSD-3-Clause */
/* Maxwell's equations on Yee's grid with a permittivity per cell, units where light crosses `courant` cells in a step (below
 * 1/sqrt(3)). A step makes H from E, then E from H. Of cell (i, j, k): ex lies at (i+1/2, j, k), hx at (i, j+1/2, k+1/2),
 * and so on; the frame is a perfect conductor where it holds 0. */
#define MX_NAME "fdtd"
#define MX_RADIUS 1
#define MX_REAL float
#define MX_FORM MX_STAGGERED
#define MX_STATE(F) F(ex, float) F(ey, float) F(ez, float)
#define MX_PARTNER(F) F(hx, float) F(hy, float) F(hz, float)
#define MX_FIXED(F) F(eps, float)
#define MX_PARAMS(P) P(courant, 0.5)
#include <memext/cell.h>

#define UP(f, dx, dy, dz) (AT(f, dx, dy, dz) - AT(f, 0, 0, 0))
#define DOWN(f, dx, dy, dz) (AT(f, 0, 0, 0) - AT(f, -dx, -dy, -dz))

MX_CELL_B
    SET(hx, OLD(hx) - PARAM(courant) * (UP(ez, 0, 1, 0) - UP(ey, 0, 0, 1)));
    SET(hy, OLD(hy) - PARAM(courant) * (UP(ex, 0, 0, 1) - UP(ez, 1, 0, 0)));
    SET(hz, OLD(hz) - PARAM(courant) * (UP(ey, 1, 0, 0) - UP(ex, 0, 1, 0)));
MX_END

MX_CELL_A
    float c = PARAM(courant) / AT(eps, 0, 0, 0);
    SET(ex, OLD(ex) + c * (DOWN(hz, 0, 1, 0) - DOWN(hy, 0, 0, 1)));
    SET(ey, OLD(ey) + c * (DOWN(hx, 0, 0, 1) - DOWN(hz, 1, 0, 0)));
    SET(ez, OLD(ez) + c * (DOWN(hy, 1, 0, 0) - DOWN(hx, 0, 1, 0)));
MX_END
