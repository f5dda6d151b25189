# SPDX-License-Identifier: BSD-3-Clause
"""rk4_advection.c in numpy: the same operations in the same order. Arrays are [z][y][x] with a frame of one cell."""
import numpy as np

INNER = (slice(1, -1),) * 3


def slope(f, cx, cy, cz):
    along_x = f[1:-1, 1:-1, :-2] - f[1:-1, 1:-1, 2:]
    along_y = f[1:-1, :-2, 1:-1] - f[1:-1, 2:, 1:-1]
    along_z = f[:-2, 1:-1, 1:-1] - f[2:, 1:-1, 1:-1]
    return 0.5 * (cx * along_x + cy * along_y + cz * along_z)


def run(nt, u, v, s, cx=0.5, cy=0.3, cz=0.2):
    """Returns {"u", "v", "s"} after nt steps: u is the solution, v and s are the registers that the last step leaves. They are float64 and keep their frames.
    cx, cy, cz: Courant numbers."""
    u, v, s = u.copy(), v.copy(), s.copy()
    for _ in range(nt):
        k = slope(u, cx, cy, cz)
        v[INNER] = u[INNER] + k / 2
        s[INNER] = u[INNER] + k / 6
        k = slope(v, cx, cy, cz)
        v[INNER] = u[INNER] + k / 2
        s[INNER] = s[INNER] + k / 3
        k = slope(v, cx, cy, cz)
        v[INNER] = u[INNER] + k
        s[INNER] = s[INNER] + k / 3
        k = slope(v, cx, cy, cz)
        u[INNER] = s[INNER] + k / 6
    return {"u": u, "v": v, "s": s}
