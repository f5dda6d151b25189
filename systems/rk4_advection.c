/* SPDX-License-Identifier: BSD-3-Clause */
/* RK4 advection: du/dt = -c . grad(u) by the classical Runge-Kutta scheme of order 4 in four stages, with central differences of order 2. cx, cy, cz are
 * the Courant numbers c dt/dx, stable while their sum is at most 2.8. Between stages v is what the slope is taken of, and s adds up the slopes. Only u is the
 * solution. Take periodic sides; fixed ones need the same frame in u and v. */
#define MX_NAME "rk4-advection"
#define MX_RADIUS 1
#define MX_STAGES 4
#define MX_STATE(F) F(u, double) F(v, double) F(s, double)
#define MX_PARAMS(P) P(cx, 0.5) P(cy, 0.3) P(cz, 0.2)
#define MX_REDUCES(R) R(mass, MX_SUM)
#include <memext/cell.h>

#define ALONG(f, x, y, z) (AT(f, -(x), -(y), -(z)) - AT(f, x, y, z))
#define SLOPE(f) (0.5 * (PARAM(cx) * ALONG(f, 1, 0, 0) + PARAM(cy) * ALONG(f, 0, 1, 0) + PARAM(cz) * ALONG(f, 0, 0, 1)))

MX_CELL_1
    double k = SLOPE(u);
    SET(v, AT(u, 0, 0, 0) + k / 2);
    SET(s, AT(u, 0, 0, 0) + k / 6);
MX_END
MX_CELL_2
    double k = SLOPE(v);
    SET(v, AT(u, 0, 0, 0) + k / 2);
    SET(s, AT(s, 0, 0, 0) + k / 3);
MX_END
MX_CELL_3
    double k = SLOPE(v);
    SET(v, AT(u, 0, 0, 0) + k);
    SET(s, AT(s, 0, 0, 0) + k / 3);
MX_END
MX_CELL_4
    double k = SLOPE(v);
    SET(u, AT(s, 0, 0, 0) + k / 6);
MX_END

MX_REDUCE(mass)
    RESULT(AT(u, 0, 0, 0));
MX_END
