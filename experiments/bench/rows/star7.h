/* SPDX-License-Identifier: BSD-3-Clause */
/* Seven points, weights as parameters. REAL is the type of the cells. */
#define MX_RADIUS 1
#define MX_REAL REAL
#define MX_STATE(F) F(u, REAL)
#define MX_PARAMS(P) P(centre, 0.4) P(beside, 0.1)
#include <memext/cell.h>

MX_CELL
    SET(u, PARAM(centre) * AT(u, 0, 0, 0) + PARAM(beside) * (AT(u, -1, 0, 0) + AT(u, 1, 0, 0)
         + (AT(u, 0, -1, 0) + AT(u, 0, 1, 0)) + (AT(u, 0, 0, -1) + AT(u, 0, 0, 1))));
MX_END
