# SPDX-License-Identifier: BSD-3-Clause
"""lattice_boltzmann.c in numpy: the same operations in the same order, all in float32. Arrays are [z][y][x] with a frame of one cell."""
import numpy as np

FACES = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]
EDGES = [tuple(s if i == a else t if i == b else 0 for i in range(3)) for a, b in ((0, 1), (0, 2), (1, 2))
         for s, t in ((1, 1), (-1, -1), (1, -1), (-1, 1))]
DIRECTIONS = [(0, 0, 0)] + FACES + EDGES
OPPOSITE = [DIRECTIONS.index(tuple(-c for c in d)) for d in DIRECTIONS]


def signed_sum(values, signs):
    total = None
    for value, sign in zip(values, signs):
        if sign != 0:
            total = value * np.float32(sign) if total is None else total + value if sign > 0 else total - value
    return total


def run(nt, wall, omega=1.2, push=1e-5, **f):
    """Returns {"f0" to "f18"} after nt steps. f: these 19 arrays (float32) by name, with the frame. wall: uint8, 0 in fluid. omega: relaxation rate, 0 to 2.
    push: added to the velocity in x at every step."""
    number, inner = np.float32, (slice(1, -1),) * 3
    f, omega, push = [f[f"f{i}"].copy() for i in range(19)], np.float32(omega), np.float32(push)
    weights = [number(1) / number(18)] * 6 + [number(1) / number(36)] * 12
    from_ = lambda a, d: a[tuple(slice(1 - d[2 - i], a.shape[i] - 1 - d[2 - i]) for i in range(3))]
    solid = wall[inner] != 0
    for _ in range(nt):
        g = [np.where(from_(wall, d) != 0, f[OPPOSITE[i]][inner], from_(f[i], d)) if i else f[0][inner] for i, d in enumerate(DIRECTIONS)]
        rho = signed_sum(g, [1] * 19)
        u = [signed_sum(g, [d[axis] for d in DIRECTIONS]) / rho for axis in range(3)]
        u[0] = u[0] + push
        one = number(1) - number(1.5) * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2])
        new = [g[0] + omega * (rho / number(3) * one - g[0])]
        for i in range(1, 19):
            c = signed_sum(u, DIRECTIONS[i])
            new.append(g[i] + omega * (weights[i - 1] * rho * (one + number(3) * c + number(4.5) * (c * c)) - g[i]))
        for i in range(19):
            f[i][inner] = np.where(solid, f[i][inner], new[i])
    return {f"f{i}": f[i] for i in range(19)}
