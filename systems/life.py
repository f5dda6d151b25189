# SPDX-License-Identifier: BSD-3-Clause
"""life.c in numpy: Conway's Life in every plane of z. Arrays are [z][y][x] with a frame of one cell."""
import numpy as np

INNER = (slice(1, -1),) * 3


def run(nt, u):
    """Returns {"u": u after nt steps}. u: uint8, 0 or 1, with the frame, which keeps its values."""
    u = u.copy()
    for _ in range(nt):
        around = sum(np.roll(u.astype(int), (dy, dx), (1, 2)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0))
        u[INNER] = ((around == 3) | ((around == 2) & (u == 1)))[INNER]
    return {"u": u}
