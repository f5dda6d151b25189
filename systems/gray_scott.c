/* SPDX-License-Identifier: BSD-3-Clause */
/* Gray and Scott's reaction of two diffusing substances, u + 2v -> 3v, with patterns that depend on feed and kill. */
#define MX_NAME "gray-scott"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double) F(v, double)
#define MX_PARAMS(P) P(du, 0.1) P(dv, 0.05) P(feed, 0.035) P(kill, 0.06) P(dt, 1)
#include <memext/cell.h>

#define LAP(f) (AT(f, -1, 0, 0) + AT(f, 1, 0, 0) + AT(f, 0, -1, 0) + AT(f, 0, 1, 0) + AT(f, 0, 0, -1) + AT(f, 0, 0, 1) - 6 * AT(f, 0, 0, 0))

MX_CELL
    double u = AT(u, 0, 0, 0), v = AT(v, 0, 0, 0), reaction = u * v * v;
    SET(u, u + PARAM(dt) * (PARAM(du) * LAP(u) - reaction + PARAM(feed) * (1 - u)));
    SET(v, v + PARAM(dt) * (PARAM(dv) * LAP(v) + reaction - (PARAM(feed) + PARAM(kill)) * v));
MX_END
