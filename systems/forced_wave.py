# SPDX-License-Identifier: BSD-3-Clause
"""forced_wave.c in numpy: the same operations in the same order. Arrays are [z][y][x] with a frame of one cell."""
import numpy as np


def run(nt, u, u_old, drive, courant=0.4):
    """Returns {"u", "u_old"}: u after nt steps, and one step before. u and u_old are float64, with the frame. drive: for each step, the number that is added
    on the middle plane. courant: the wave's speed in cells for each step."""
    now, old = u.copy(), u_old.copy()
    inner = (slice(1, -1),) * 3
    plate = np.zeros((now.shape[0] - 2, 1, 1))
    plate[plate.shape[0] // 2] = 1
    for t in range(nt):
        near = now[1:-1, 1:-1, :-2] + now[1:-1, 1:-1, 2:] + now[1:-1, :-2, 1:-1] + now[1:-1, 2:, 1:-1] + now[:-2, 1:-1, 1:-1] + now[2:, 1:-1, 1:-1]
        new = 2 * now[inner] - old[inner] + courant * courant * (near - 6 * now[inner])
        old[inner] = np.where(plate == 1, new + drive[t], new)
        now, old = old, now
    return {"u": now, "u_old": old}
