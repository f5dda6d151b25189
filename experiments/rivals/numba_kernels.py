# SPDX-License-Identifier: BSD-3-Clause
"""The kernels of star7.c and systems/wave.c for numba: the same operations in the same order and types. No fastmath: nothing is contracted or
reordered, and the bits are those of C; run.py compares them."""
import numpy as np
from numba import njit, prange

f = np.float32
C0, C1, C2, C3, C4 = f(-205.0 / 24), f(8.0 / 5), f(-1.0 / 5), f(8.0 / 315), f(-1.0 / 560)
ONE, TWO, DT_BY_DX = f(1), f(2), f(0.001) / f(10)


@njit(parallel=True, cache=True, nogil=True)
def star7(b, a, z0, z1):
    _, ny, nx = a.shape
    for z in prange(z0, z1):
        for y in range(1, ny - 1):
            for x in range(1, nx - 1):
                b[z, y, x] = 0.4 * a[z, y, x] + 0.1 * ((a[z, y, x - 1] + a[z, y, x + 1]) + ((a[z, y - 1, x] + a[z, y + 1, x]) + (a[z - 1, y, x] + a[z + 1, y, x])))


@njit(inline="always")
def ring(p, z, y, x, r):
    return p[z, y, x - r] + p[z, y, x + r] + (p[z, y - r, x] + p[z, y + r, x]) + (p[z - r, y, x] + p[z + r, y, x])


@njit(parallel=True, cache=True, nogil=True)
def wave(out, p, v, damping, z0, z1):
    _, ny, nx = p.shape
    for z in prange(z0, z1):
        for y in range(4, ny - 4):
            for x in range(4, nx - 4):
                c, s = v[z, y, x] * DT_BY_DX, damping[z, y, x]
                lap = C0 * p[z, y, x] + C1 * ring(p, z, y, x, 1) + C2 * ring(p, z, y, x, 2) + C3 * ring(p, z, y, x, 3) + C4 * ring(p, z, y, x, 4)
                out[z, y, x] = (TWO * p[z, y, x] - (ONE - s) * out[z, y, x] + c * c * lap) / (ONE + s)
