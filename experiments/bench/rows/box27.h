/* SPDX-License-Identifier: BSD-3-Clause */
/* Twenty-seven points with four weights. REAL is the type of the cells. */
#define MX_RADIUS 1
#define MX_REAL REAL
#define MX_STATE(F) F(u, REAL)
#define MX_PARAMS(P) P(centre, 0.4) P(face, 0.05) P(edge, 0.02) P(corner, 0.0075)
#include <memext/cell.h>

#define PAIR(dy, dz) (AT(u, -1, dy, dz) + AT(u, 1, dy, dz))

MX_CELL
    REAL faces = PAIR(0, 0) + (AT(u, 0, -1, 0) + AT(u, 0, 1, 0)) + (AT(u, 0, 0, -1) + AT(u, 0, 0, 1));
    REAL edges = PAIR(-1, 0) + PAIR(1, 0) + (PAIR(0, -1) + PAIR(0, 1)) + (AT(u, 0, -1, -1) + AT(u, 0, 1, -1))
               + (AT(u, 0, -1, 1) + AT(u, 0, 1, 1));
    REAL corners = PAIR(-1, -1) + PAIR(1, -1) + (PAIR(-1, 1) + PAIR(1, 1));
    SET(u, PARAM(centre) * AT(u, 0, 0, 0) + PARAM(face) * faces + PARAM(edge) * edges + PARAM(corner) * corners);
MX_END
