/* SPDX-License-Identifier: BSD-3-Clause */
/* Maxwell's equations on Yee's grid (fdtd.c) with an absorbing layer: the perfectly matched layer of Berenger (1994), whose components are
 * split by the axis of their derivative. Along x, E becomes ax E + bx difference, and H px H + qx difference, with profiles of shape
 * (1, 1, nx), and so on for y and z. Inside they are 1 and the courant number; pml.py has those of a layer. */
#define MX_NAME "pml"
#define MX_RADIUS 1
#define MX_REAL float
#define MX_FORM MX_STAGGERED
#define MX_STATE(F) F(exy, float) F(exz, float) F(eyz, float) F(eyx, float) F(ezx, float) F(ezy, float)
#define MX_PARTNER(F) F(hxy, float) F(hxz, float) F(hyz, float) F(hyx, float) F(hzx, float) F(hzy, float)
#define MX_FIXED(F) F(ax, float) F(ay, float) F(az, float) F(bx, float) F(by, float) F(bz, float) \
                    F(px, float) F(py, float) F(pz, float) F(qx, float) F(qy, float) F(qz, float)
#include <memext/cell.h>

#define SUM(f, g, x, y, z) (AT(f, x, y, z) + AT(g, x, y, z))
#define UP(f, g, x, y, z) (SUM(f, g, x, y, z) - SUM(f, g, 0, 0, 0))
#define DOWN(f, g, x, y, z) (SUM(f, g, 0, 0, 0) - SUM(f, g, -(x), -(y), -(z)))
#define NEXT(f, keep, gain, difference) SET(f, AT(keep, 0, 0, 0) * OLD(f) + AT(gain, 0, 0, 0) * (difference))

MX_CELL_B
    NEXT(hxy, py, qy, -UP(ezx, ezy, 0, 1, 0));
    NEXT(hxz, pz, qz, UP(eyz, eyx, 0, 0, 1));
    NEXT(hyz, pz, qz, -UP(exy, exz, 0, 0, 1));
    NEXT(hyx, px, qx, UP(ezx, ezy, 1, 0, 0));
    NEXT(hzx, px, qx, -UP(eyz, eyx, 1, 0, 0));
    NEXT(hzy, py, qy, UP(exy, exz, 0, 1, 0));
MX_END

MX_CELL_A
    NEXT(exy, ay, by, DOWN(hzx, hzy, 0, 1, 0));
    NEXT(exz, az, bz, -DOWN(hyz, hyx, 0, 0, 1));
    NEXT(eyz, az, bz, DOWN(hxy, hxz, 0, 0, 1));
    NEXT(eyx, ax, bx, -DOWN(hzx, hzy, 1, 0, 0));
    NEXT(ezx, ax, bx, DOWN(hyz, hyx, 1, 0, 0));
    NEXT(ezy, ay, by, -DOWN(hxy, hxz, 0, 1, 0));
MX_END
