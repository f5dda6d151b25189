# SPDX-License-Identifier: BSD-3-Clause
"""gray_scott.c in numpy: the same operations in the same order. Arrays are [z][y][x], float64, with a frame of one cell."""
import numpy as np


def run(nt, u, v, du=0.1, dv=0.05, feed=0.035, kill=0.06, dt=1.0):
    """Returns {"u", "v"} after nt steps. u and v have one shape, with the frame; the parameters are those of gray_scott.c, for spacing 1."""
    u, v, inner = u.copy(), v.copy(), (slice(1, -1),) * 3
    at = lambda f, dx, dy, dz: f[1 + dz : f.shape[0] - 1 + dz, 1 + dy : f.shape[1] - 1 + dy, 1 + dx : f.shape[2] - 1 + dx]
    lap = lambda f: (at(f, -1, 0, 0) + at(f, 1, 0, 0) + at(f, 0, -1, 0) + at(f, 0, 1, 0) + at(f, 0, 0, -1) + at(f, 0, 0, 1) - 6 * f[inner])
    for _ in range(nt):
        a, b = u[inner], v[inner]
        reaction = a * b * b
        new_u = a + dt * (du * lap(u) - reaction + feed * (1 - a))
        new_v = b + dt * (dv * lap(v) + reaction - (feed + kill) * b)
        u[inner], v[inner] = new_u, new_v
    return {"u": u, "v": v}
