/* SPDX-License-Identifier: BSD-3-Clause */
/* The shallow-water equations, linear, on a rotating plane with bottom friction, in two dimensions: elevation z at the middle of a
 * cell, velocities u and v on its right and upper face (Arakawa and Lamb's grid C, 1977), z before the velocities (Sielecki, 1968).
 * depth: of the sea at rest; 0 is land, whose faces nothing flows through. drag is of the depth there. */
#define MX_NAME "shallow-water"
#define MX_RADII 1, 1, 0
#define MX_FIXED_RADIUS 1
#define MX_FORM MX_STAGGERED
#define MX_STATE(F) F(u, double) F(v, double)
#define MX_PARTNER(F) F(z, double)
#define MX_FIXED(F) F(depth, float)
#define MX_PARAMS(P) P(gravity, 9.81) P(dx, 1000) P(dt, 5) P(rotation, 1e-4) P(drag, 1e-3)
#include <memext/cell.h>

#define DEEP(dx, dy) ((double)AT(depth, dx, dy))
/* Of a face: the mean depth of its cells, 0 where one of them is land. */
#define FACE(ax, ay, bx, by) (DEEP(ax, ay) > 0 && DEEP(bx, by) > 0 ? 0.5 * (DEEP(ax, ay) + DEEP(bx, by)) : 0.0)
#define FLUX(w, x, y, ax, ay, bx, by) (FACE(ax, ay, bx, by) * AT(w, x, y))

MX_CELL_B
    const double out = FLUX(u, 0, 0, 0, 0, 1, 0) - FLUX(u, -1, 0, -1, 0, 0, 0) + (FLUX(v, 0, 0, 0, 0, 0, 1) - FLUX(v, 0, -1, 0, -1, 0, 0));
    SET(z, OLD(z) - PARAM(dt) / PARAM(dx) * out);
MX_END

MX_CELL_A
    const double right = FACE(0, 0, 1, 0), up = FACE(0, 0, 0, 1), slope = PARAM(gravity) / PARAM(dx), dt = PARAM(dt);
    const double du = PARAM(rotation) * OLD(v) - slope * (AT(z, 1, 0) - AT(z, 0, 0)) - PARAM(drag) * OLD(u) / (right > 1 ? right : 1.0);
    const double dv = -PARAM(rotation) * OLD(u) - slope * (AT(z, 0, 1) - AT(z, 0, 0)) - PARAM(drag) * OLD(v) / (up > 1 ? up : 1.0);
    SET(u, right > 0 ? OLD(u) + dt * du : 0.0);
    SET(v, up > 0 ? OLD(v) + dt * dv : 0.0);
MX_END
