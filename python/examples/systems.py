# SPDX-License-Identifier: BSD-3-Clause
"""The systems of ../../systems as Python functions: the same operations in the same order, so the same bits as the C files."""
import numpy as np

import memext as mx

# ------------------------------------------------------------------ diffusion with a conductivity per cell (k: float32)


def flux(u, k, dx, dy, dz):
    return 0.5 * (float(k) + float(k[dx, dy, dz])) * (u[dx, dy, dz] - u)


@mx.kernel(fixed={"k": "f4"}, params={"dt": 0.1})
def diffusion(u, k, dt):
    sides = (-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)
    return u + dt * sum(flux(u, k, *side) for side in sides)


# ------------------------------------------------------------------ acoustic waves of order 8, a velocity and a sponge (float32)

WEIGHTS = [-205 / 24, 8 / 5, -1 / 5, 8 / 315, -1 / 560]


@mx.kernel(fixed="v damping", params={"dt": 0.001, "dx": 10})
def wave(p, v, damping, dt, dx):
    c = v * (dt / dx)
    lap = WEIGHTS[0] * p
    for r in range(1, 5):
        lap += WEIGHTS[r] * (p[-r, 0, 0] + p[r, 0, 0] + (p[0, -r, 0] + p[0, r, 0]) + (p[0, 0, -r] + p[0, 0, r]))
    return (2 * p - (1 - damping) * p.old + c * c * lap) / (1 + damping)


# ------------------------------------------------------------------ Maxwell's equations on Yee's grid (float32)


def up(f, dx, dy, dz):
    return f[dx, dy, dz] - f


def down(f, dx, dy, dz):
    return f - f[-dx, -dy, -dz]


def magnetic(hx, hy, hz, ex, ey, ez, courant):
    return (hx.old - courant * (up(ez, 0, 1, 0) - up(ey, 0, 0, 1)),
            hy.old - courant * (up(ex, 0, 0, 1) - up(ez, 1, 0, 0)),
            hz.old - courant * (up(ey, 1, 0, 0) - up(ex, 0, 1, 0)))


def electric(ex, ey, ez, hx, hy, hz, eps, courant):
    c = courant / eps
    return (ex.old + c * (down(hz, 0, 1, 0) - down(hy, 0, 0, 1)),
            ey.old + c * (down(hx, 0, 0, 1) - down(hz, 1, 0, 0)),
            ez.old + c * (down(hy, 1, 0, 0) - down(hx, 0, 1, 0)))


fdtd = mx.staggered(magnetic, electric, fixed="eps", params={"courant": 0.5}, name="fdtd")

# ------------------------------------------------------------------ Gray and Scott's reaction


def laplace(f):
    return f[-1, 0, 0] + f[1, 0, 0] + f[0, -1, 0] + f[0, 1, 0] + f[0, 0, -1] + f[0, 0, 1] - 6 * f


@mx.kernel(params={"du": 0.1, "dv": 0.05, "feed": 0.035, "kill": 0.06, "dt": 1})
def gray_scott(u, v, du, dv, feed, kill, dt):
    reaction = u * v * v
    return (u + dt * (du * laplace(u) - reaction + feed * (1 - u)),
            v + dt * (dv * laplace(v) + reaction - (feed + kill) * v))


# ------------------------------------------------------------------ lattice Boltzmann, D3Q19 in pull form, with walls (float32, wall: uint8)

FACES = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]
EDGES = [tuple(s if i == a else t if i == b else 0 for i in range(3)) for a, b in ((0, 1), (0, 2), (1, 2))
         for s, t in ((1, 1), (-1, -1), (1, -1), (-1, 1))]
DIRECTIONS = [(0, 0, 0), *FACES, *EDGES]
OPPOSITE = [DIRECTIONS.index(tuple(-c for c in d)) for d in DIRECTIONS]


def signed_sum(values, signs):
    total = 0
    for value, sign in zip(values, signs):
        if sign > 0:
            total = total + value
        if sign < 0:
            total = total - value
    return total


@mx.kernel(fixed={"wall": "u1"}, params={"omega": 1.2, "push": 1e-5})
def lattice_boltzmann(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, wall, omega, push):
    f = (f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18)
    solid = wall != 0
    g = [f0]
    for i in range(1, 19):
        dx, dy, dz = DIRECTIONS[i]
        came = mx.where(wall[-dx, -dy, -dz] != 0, f[OPPOSITE[i]], f[i][-dx, -dy, -dz])
        g = g + [came]
    rho = sum(g)
    ux = signed_sum(g, [d[0] for d in DIRECTIONS]) / rho + push
    uy = signed_sum(g, [d[1] for d in DIRECTIONS]) / rho
    uz = signed_sum(g, [d[2] for d in DIRECTIONS]) / rho
    one = 1 - 1.5 * (ux * ux + uy * uy + uz * uz)
    new = [mx.where(solid, f0, f0 + omega * (rho / 3 * one - f0))]
    for i in range(1, 19):
        c = signed_sum((ux, uy, uz), DIRECTIONS[i])
        weight = 1 / 18 if i <= 6 else 1 / 36
        new = new + [mx.where(solid, f[i], g[i] + omega * (weight * rho * (one + 3 * c + 4.5 * (c * c)) - g[i]))]
    return tuple(new)

# ------------------------------------------------------------------ Conway's Life in every plane (uint8)


@mx.kernel(dtype="uint8")
def life(u):
    around = sum(u[dx, dy, 0] for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dx, dy) != (0, 0))
    return (around == 3) | ((around == 2) & (u == 1))


# ------------------------------------------------------------------ the Ising model by Metropolis, the cells of a chessboard one colour after the other (int8)


def mixed(h):
    h = np.uint64(h)
    h = (h ^ (h >> 16)) * 0x7FEB352D & 0xFFFFFFFF
    h = (h ^ (h >> 15)) * 0x846CA68B & 0xFFFFFFFF
    return h ^ (h >> 16)


def spin(s, *at):
    return mx.where(s[at] > 0, 1, -1)


def update(s, w, seed, x, y, z, t, colour):
    own, around = spin(s, 0, 0, 0), sum(spin(s, *side) for side in FACES)
    bonds = own * around
    chance = np.select([bonds <= 0, bonds == 2, bonds == 4], [1.0, w, w * w], w * w * w)
    h = mixed(x + mixed(y + mixed(z + mixed(t + int(seed)) & 0xFFFFFFFF) & 0xFFFFFFFF) & 0xFFFFFFFF)
    return mx.where(((x + y + z) % 2 == colour) & (h * 2.0**-32 < chance), -own, own)


def white(s, w, seed, x, y, z, t):
    return update(s, w, seed, x, y, z, t, 0)


def black(s, w, seed, x, y, z, t):
    return update(s, w, seed, x, y, z, t, 1)


ising = mx.stages(white, black, params={"w": 0.41204, "seed": 1}, dtype="int8", name="ising")
