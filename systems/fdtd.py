# SPDX-License-Identifier: BSD-3-Clause
"""fdtd.c in numpy: the same operations in the same order, all in float32. Arrays are [z][y][x] with a frame of one cell."""
import numpy as np


def run(nt, ex, ey, ez, hx, hy, hz, eps, courant=0.5):
    """Returns {name: array} of E and H after nt steps. All arrays are float32 and have one shape, with the frame. eps: relative permittivity; light in
    vacuum crosses `courant` cells in a step."""
    e, h = [f.copy() for f in (ex, ey, ez)], [f.copy() for f in (hx, hy, hz)]
    inner, s = (slice(1, -1),) * 3, np.float32(courant)
    c = s / eps[inner]

    def at(f, axis, d):  # axis 0: x
        return f[tuple(slice(1 + d * (2 - i == axis), f.shape[i] - 1 + d * (2 - i == axis)) for i in range(3))]

    for _ in range(nt):
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            h[i][inner] = h[i][inner] - s * ((at(e[k], j, 1) - e[k][inner]) - (at(e[j], k, 1) - e[j][inner]))
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            e[i][inner] = e[i][inner] + c * ((h[k][inner] - at(h[k], j, -1)) - (h[j][inner] - at(h[j], k, -1)))
    return dict(zip(("ex", "ey", "ez", "hx", "hy", "hz"), e + h))
