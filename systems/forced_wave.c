/* SPDX-License-Identifier: BSD-3-Clause */
/* Waves that a plate sends out: d2u/dt2 = lap(u) + drive(t) on the plane in the middle of the grid, of order 2 in space and time. drive is a parameter over
 * time (--param drive=FILE.npy): what is added in each step. courant: dt/dx; stable while it is at most 0.57. */
#define MX_NAME "forced-wave"
#define MX_RADIUS 1
#define MX_FORM MX_LEAPFROG
#define MX_STATE(F) F(u, double)
#define MX_PARAMS(P) P(courant, 0.4) P(drive, 0)
#include <memext/cell.h>

MX_CELL
    double near = AT(u, -1, 0, 0) + AT(u, 1, 0, 0) + AT(u, 0, -1, 0) + AT(u, 0, 1, 0) + AT(u, 0, 0, -1) + AT(u, 0, 0, 1);
    double next = 2 * AT(u, 0, 0, 0) - OLD(u) + PARAM(courant) * PARAM(courant) * (near - 6 * AT(u, 0, 0, 0));
    SET(u, Z == NZ / 2 ? next + PARAM(drive) : next);
MX_END
