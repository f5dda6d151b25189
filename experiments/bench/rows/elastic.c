/* SPDX-License-Identifier: BSD-3-Clause */
/* Elastic waves as velocities and stresses on a staggered grid, of order 4, with a density and two moduli for each cell. */
#define MX_NAME "elastic"
#define MX_RADIUS 2
#define MX_REAL float
#define MX_FORM MX_STAGGERED
#define MX_STATE(F) F(vx, float) F(vy, float) F(vz, float)
#define MX_PARTNER(F) F(sxx, float) F(syy, float) F(szz, float) F(sxy, float) F(sxz, float) F(syz, float)
#define MX_FIXED(F) F(lambda, float) F(mu, float) F(light, float)
#define MX_PARAMS(P) P(courant, 0.2)
#include <memext/cell.h>

#define NEAR (9.0f / 8)
#define FAR (1.0f / 24)
#define UP(f, x, y, z) \
    (NEAR * (AT(f, x, y, z) - AT(f, 0, 0, 0)) - FAR * (AT(f, 2 * (x), 2 * (y), 2 * (z)) - AT(f, -(x), -(y), -(z))))
#define DOWN(f, x, y, z) \
    (NEAR * (AT(f, 0, 0, 0) - AT(f, -(x), -(y), -(z))) - FAR * (AT(f, x, y, z) - AT(f, -2 * (x), -2 * (y), -2 * (z))))

MX_CELL_B
    const float l = PARAM(courant) * AT(lambda, 0, 0, 0), m = PARAM(courant) * AT(mu, 0, 0, 0);
    const float xx = DOWN(vx, 1, 0, 0), yy = DOWN(vy, 0, 1, 0), zz = DOWN(vz, 0, 0, 1), all = l * (xx + yy + zz);
    SET(sxx, OLD(sxx) + (all + 2 * m * xx));
    SET(syy, OLD(syy) + (all + 2 * m * yy));
    SET(szz, OLD(szz) + (all + 2 * m * zz));
    SET(sxy, OLD(sxy) + m * (UP(vx, 0, 1, 0) + UP(vy, 1, 0, 0)));
    SET(sxz, OLD(sxz) + m * (UP(vx, 0, 0, 1) + UP(vz, 1, 0, 0)));
    SET(syz, OLD(syz) + m * (UP(vy, 0, 0, 1) + UP(vz, 0, 1, 0)));
MX_END

MX_CELL_A
    const float c = PARAM(courant) * AT(light, 0, 0, 0);
    SET(vx, OLD(vx) + c * (UP(sxx, 1, 0, 0) + DOWN(sxy, 0, 1, 0) + DOWN(sxz, 0, 0, 1)));
    SET(vy, OLD(vy) + c * (DOWN(sxy, 1, 0, 0) + UP(syy, 0, 1, 0) + DOWN(syz, 0, 0, 1)));
    SET(vz, OLD(vz) + c * (DOWN(sxz, 1, 0, 0) + DOWN(syz, 0, 1, 0) + UP(szz, 0, 0, 1)));
MX_END
