/* SPDX-License-Identifier: BSD-3-Clause */
/* Stars of order 8 and 16 (ORDER), as they are, or as a wave with its old value and a velocity for each cell (WAVE). REAL is
 * the type of the cells. */
#define MX_RADIUS (ORDER / 2)
#define MX_REAL REAL
#define MX_STATE(F) F(u, REAL)
#if WAVE
#define MX_FORM MX_LEAPFROG
#define MX_FIXED(F) F(v, REAL)
#endif
#include <memext/cell.h>

#define W(w) ((REAL)(w))
#define RING(r) (AT(u, -r, 0, 0) + AT(u, r, 0, 0) + (AT(u, 0, -r, 0) + AT(u, 0, r, 0)) + (AT(u, 0, 0, -r) + AT(u, 0, 0, r)))

MX_CELL
#if ORDER == 8
    REAL lap = W(-205.0 / 24) * AT(u, 0, 0, 0) + W(8.0 / 5) * RING(1) + W(-1.0 / 5) * RING(2) + W(8.0 / 315) * RING(3)
             + W(-1.0 / 560) * RING(4);
#else
    REAL lap = W(-9.164) * AT(u, 0, 0, 0) + W(16.0 / 9) * RING(1) + W(-14.0 / 45) * RING(2) + W(112.0 / 1485) * RING(3)
             + W(-7.0 / 396) * RING(4) + W(112.0 / 32175) * RING(5) + W(-2.0 / 3861) * RING(6) + W(16.0 / 315315) * RING(7)
             + W(-1.0 / 411840) * RING(8);
#endif
#if WAVE
    SET(u, 2 * AT(u, 0, 0, 0) - OLD(u) + AT(v, 0, 0, 0) * lap);
#else
    SET(u, AT(u, 0, 0, 0) + W(0.1) * lap);
#endif
MX_END
