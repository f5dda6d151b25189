# SPDX-License-Identifier: BSD-3-Clause
"""wave.c in numpy: the same operations in the same order, all in float32. Arrays are [z][y][x] with a frame of four cells."""
import numpy as np


def run(nt, p, p_old, v, damping, dt=0.001, dx=10):
    """Returns {"p", "p_old"}: p after nt steps, and one step before. All arrays are float32 and have one shape, with the frame. v: velocity; dt and dx: time
    step and spacing, in units that fit v (s and m, for m/s). damping: 0 inside, growing to about 0.1 in a sponge at the sides."""
    f, now, old = np.float32, p.copy(), p_old.copy()
    inner = (slice(4, -4),) * 3
    c, s = v[inner] * (f(dt) / f(dx)), damping[inner]
    weights = [f(-205 / 24), f(8 / 5), f(-1 / 5), f(8 / 315), f(-1 / 560)]
    for _ in range(nt):
        at = lambda x, y, z: now[4 + z : now.shape[0] - 4 + z, 4 + y : now.shape[1] - 4 + y, 4 + x : now.shape[2] - 4 + x]
        lap = weights[0] * now[inner]
        for r in range(1, 5):
            lap = lap + weights[r] * (at(-r, 0, 0) + at(r, 0, 0) + (at(0, -r, 0) + at(0, r, 0)) + (at(0, 0, -r) + at(0, 0, r)))
        old[inner] = (f(2) * now[inner] - (f(1) - s) * old[inner] + c * c * lap) / (f(1) + s)
        now, old = old, now
    return {"p": now, "p_old": old}
