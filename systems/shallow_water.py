# SPDX-License-Identifier: BSD-3-Clause
"""shallow_water.c in numpy: the same operations in the same order. Arrays are [y][x] with a frame of one cell; depth is float32, the others float64."""
import numpy as np


def near(a, dx=0, dy=0):
    """The interior cells of a, moved by (dx, dy) cells."""
    ny, nx = a.shape
    return a[1 + dy:ny - 1 + dy, 1 + dx:nx - 1 + dx]


def face(depth, a, b):
    """The mean depth of two neighbouring cells, at offsets a and b; 0 if one of them is land."""
    one, other = near(depth, *a).astype("f8"), near(depth, *b).astype("f8")
    return np.where((one > 0) & (other > 0), 0.5 * (one + other), 0.0)


def step(u, v, z, depth, gravity=9.81, dx=1000, dt=5, rotation=1e-4, drag=1e-3):
    """Computes one step, and returns the new (u, v, z), whose frames stay as they are. All arrays have the shape (ny + 2, nx + 2).

    z: elevation in m, in the middle of a cell; u, v: velocities in m/s, on its right and upper face; depth: of the sea at rest in m, 0 on land.
    gravity in m/s2, dx (spacing) in m, dt in s, rotation (Coriolis parameter) in 1/s, drag (bottom friction) in m/s."""
    right, up = face(depth, (0, 0), (1, 0)), face(depth, (0, 0), (0, 1))
    out = right * near(u) - face(depth, (-1, 0), (0, 0)) * near(u, -1) + (up * near(v) - face(depth, (0, -1), (0, 0)) * near(v, 0, -1))
    z = z.copy()
    near(z)[...] = near(z) - dt / dx * out
    slope, old_u, old_v = gravity / dx, near(u), near(v)
    du = rotation * old_v - slope * (near(z, 1) - near(z)) - drag * old_u / np.where(right > 1, right, 1.0)
    dv = -rotation * old_u - slope * (near(z, 0, 1) - near(z)) - drag * old_v / np.where(up > 1, up, 1.0)
    new_u, new_v = u.copy(), v.copy()
    near(new_u)[...] = np.where(right > 0, old_u + dt * du, 0.0)
    near(new_v)[...] = np.where(up > 0, old_v + dt * dv, 0.0)
    return new_u, new_v, z
