# SPDX-License-Identifier: BSD-3-Clause
"""diffusion.c in numpy: the same operations in the same order, and so the same bits. Arrays are [z][y][x] with a frame of one cell."""
import numpy as np


def run(nt, u, k, dt=0.1):
    """Returns {"u": u after nt steps}. u (float64) and the conductivity k (float32) have one shape, with the frame. dt: the time step over the square of the
    spacing."""
    u, k, inner = u.copy(), k.astype("f8"), (slice(1, -1),) * 3
    at = lambda a, dx, dy, dz: a[1 + dz : a.shape[0] - 1 + dz, 1 + dy : a.shape[1] - 1 + dy, 1 + dx : a.shape[2] - 1 + dx]
    for _ in range(nt):
        flux = 0
        for d in (-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1):
            flux = flux + 0.5 * (k[inner] + at(k, *d)) * (at(u, *d) - u[inner])
        u[inner] = u[inner] + dt * flux
    return {"u": u}
