# SPDX-License-Identifier: BSD-3-Clause
"""elastic.c in numpy: the same operations in the same order, all in float32. Arrays are [z][y][x] with a frame of one cell."""
import numpy as np

STRESSES = ["sxx", "syy", "szz", "sxy", "sxz", "syz"]


def run(nt, vx, vy, vz, sxx, syy, szz, sxy, sxz, syz, lam, mu, dt=0.3, surface=False):
    """Returns {name: array} of the velocities and stresses after nt steps. All arrays are float32 and have one shape, with the frame; lam and mu are the
    stiffnesses, for density 1 and spacing 1. surface: plane z = 0 is a free surface; otherwise every frame keeps its values."""
    v, s = [f.copy() for f in (vx, vy, vz)], {n: f.copy() for n, f in zip(STRESSES, (sxx, syy, szz, sxy, sxz, syz))}
    inner, dt = (slice(1, -1),) * 3, np.float32(dt)
    m, la = dt * mu[inner], dt * lam[inner]

    def at(f, axis, d):  # axis 0: x
        return f[tuple(slice(1 + d * (2 - i == axis), f.shape[i] - 1 + d * (2 - i == axis)) for i in range(3))]

    def up(f, axis):
        return at(f, axis, 1) - f[inner]

    def down(f, axis):
        return f[inner] - at(f, axis, -1)

    def free():
        if surface:
            s["szz"][1, 1:-1, 1:-1] = 0
            s["szz"][0], s["sxz"][0], s["syz"][0] = -s["szz"][2], -s["sxz"][1], -s["syz"][1]
            v[0][0], v[1][0], v[2][0] = v[0][2], v[1][2], v[2][1]
            s["sxx"][0], s["syy"][0], s["sxy"][0] = s["sxx"][2], s["syy"][2], s["sxy"][2]

    free()
    for _ in range(nt):
        strain = [down(v[i], i) for i in range(3)]
        all_ = la * (strain[0] + strain[1] + strain[2])
        for i, name in enumerate(("sxx", "syy", "szz")):
            s[name][inner] = s[name][inner] + (all_ + 2 * m * strain[i])
        for name, i, j in (("sxy", 0, 1), ("sxz", 0, 2), ("syz", 1, 2)):
            s[name][inner] = s[name][inner] + m * (up(v[i], j) + up(v[j], i))
        free()
        v[0][inner] = v[0][inner] + dt * (up(s["sxx"], 0) + down(s["sxy"], 1) + down(s["sxz"], 2))
        v[1][inner] = v[1][inner] + dt * (down(s["sxy"], 0) + up(s["syy"], 1) + down(s["syz"], 2))
        v[2][inner] = v[2][inner] + dt * (down(s["sxz"], 0) + down(s["syz"], 1) + up(s["szz"], 2))
        free()
    return {**dict(zip(("vx", "vy", "vz"), v)), **s}
