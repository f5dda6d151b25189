/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow of a fluid: lattice Boltzmann with 19 directions (D3Q19), one relaxation rate, in pull form. wall is 0 where there is
 * fluid and 1 in walls, off which what arrives is bounced back; the frame has values of both. omega: relaxation rate, 0 to 2;
 * push: what is added to the velocity in x at every step. */
#define MX_NAME "lattice-boltzmann"
#define MX_RADIUS 1
#define MX_FIXED_RADIUS 1
#define MX_REAL float
#define MX_STATE(F) \
    F(f0, float) F(f1, float) F(f2, float) F(f3, float) F(f4, float) F(f5, float) F(f6, float) \
    F(f7, float) F(f8, float) F(f9, float) F(f10, float) F(f11, float) F(f12, float) F(f13, float) \
    F(f14, float) F(f15, float) F(f16, float) F(f17, float) F(f18, float)
#define MX_FIXED(F) F(wall, uint8_t)
#define MX_PARAMS(P) P(omega, 1.2) P(push, 1e-5)
#include <memext/cell.h>

#define FACE (1.0f / 18)
#define EDGE (1.0f / 36)
/* number, direction, number of the opposite one, velocity along it, weight */
#define DIRECTIONS(D) \
    D(1, 1, 0, 0, 2, ux, FACE) D(2, -1, 0, 0, 1, -ux, FACE) D(3, 0, 1, 0, 4, uy, FACE) \
    D(4, 0, -1, 0, 3, -uy, FACE) D(5, 0, 0, 1, 6, uz, FACE) D(6, 0, 0, -1, 5, -uz, FACE) \
    D(7, 1, 1, 0, 8, ux + uy, EDGE) D(8, -1, -1, 0, 7, -ux - uy, EDGE) D(9, 1, -1, 0, 10, ux - uy, EDGE) \
    D(10, -1, 1, 0, 9, -ux + uy, EDGE) D(11, 1, 0, 1, 12, ux + uz, EDGE) D(12, -1, 0, -1, 11, -ux - uz, EDGE) \
    D(13, 1, 0, -1, 14, ux - uz, EDGE) D(14, -1, 0, 1, 13, -ux + uz, EDGE) D(15, 0, 1, 1, 16, uy + uz, EDGE) \
    D(16, 0, -1, -1, 15, -uy - uz, EDGE) D(17, 0, 1, -1, 18, uy - uz, EDGE) D(18, 0, -1, 1, 17, -uy + uz, EDGE)
#define PULL(i, dx, dy, dz, opposite, along, weight) \
    const float here##i = AT(f##i, 0, 0, 0), bounced##i = AT(f##opposite, 0, 0, 0), came##i = AT(f##i, -(dx), -(dy), -(dz)); \
    const float g##i = AT(wall, -(dx), -(dy), -(dz)) ? bounced##i : came##i;
#define COLLIDE(i, dx, dy, dz, opposite, along, weight) \
    const float c##i = along, new##i = g##i + PARAM(omega) * (weight * rho * (one + 3 * c##i + 4.5f * (c##i * c##i)) - g##i); \
    SET(f##i, solid ? here##i : new##i);

MX_CELL
    const int solid = AT(wall, 0, 0, 0) != 0;
    const float g0 = AT(f0, 0, 0, 0);
    DIRECTIONS(PULL)
    const float rho = g0 + g1 + g2 + g3 + g4 + g5 + g6 + g7 + g8 + g9 + g10
                    + g11 + g12 + g13 + g14 + g15 + g16 + g17 + g18;
    const float ux = (g1 - g2 + g7 - g8 + g9 - g10 + g11 - g12 + g13 - g14) / rho + PARAM(push);
    const float uy = (g3 - g4 + g7 - g8 - g9 + g10 + g15 - g16 + g17 - g18) / rho;
    const float uz = (g5 - g6 + g11 - g12 - g13 + g14 + g15 - g16 - g17 + g18) / rho;
    const float one = 1 - 1.5f * (ux * ux + uy * uy + uz * uz);
    SET(f0, solid ? g0 : g0 + PARAM(omega) * (rho / 3 * one - g0));
    DIRECTIONS(COLLIDE)
MX_END
