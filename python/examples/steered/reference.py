# SPDX-License-Identifier: BSD-3-Clause
"""The four programs of this folder as plain loops of numpy, which give the same bits."""
import adaptive_dt
import coupled_pipe
import nudging
import numpy as np
import volume_preserving

INSIDE = (slice(1, -1),) * 3


def near(u, dx, dy, dz):
    return u[1 + dz:u.shape[0] - 1 + dz, 1 + dy:u.shape[1] - 1 + dy, 1 + dx:u.shape[2] - 1 + dx]


def around(u):
    return near(u, 1, 0, 0) + near(u, -1, 0, 0) + near(u, 0, 1, 0) + near(u, 0, -1, 0) + near(u, 0, 0, 1) + near(u, 0, 0, -1)


def total(values):
    """The sum in memext's order: cells of a row in eight lanes, lanes, rows, planes."""
    nz, ny, nx = values.shape
    padded = np.zeros((nz, ny, -(-nx // 8) * 8))
    padded[..., :nx] = values
    found = 0.0
    for plane in padded:
        lanes = np.zeros((ny, 8))
        for i in range(0, padded.shape[2], 8):
            lanes += plane[:, i:i + 8]
        of_plane = 0.0
        for row in lanes:
            of_row = 0.0
            for lane in row:
                of_row += lane
            of_plane += of_row
        found += of_plane
    return found


def burgers(n=62, steps=40):
    u = adaptive_dt.begin(n)
    dt = adaptive_dt.COURANT / np.abs(u).max()
    for step in range(1, steps + 1):
        c = u[INSIDE]
        new = u.copy()
        new[INSIDE] = c - dt * np.where(c > 0, c * (c - near(u, -1, 0, 0)), c * (near(u, 1, 0, 0) - c))
        u = new
        if step % adaptive_dt.CHECK == 0:
            dt = adaptive_dt.COURANT / np.abs(u[INSIDE]).max()
    return u


def allen_cahn(n=30, steps=20):
    c, multiplier = volume_preserving.begin(n), 0.0
    for step in range(steps):
        if step % volume_preserving.CHECK == 0 and step > 0:
            multiplier = total(c * c * c - c) / n**3
        c = c + volume_preserving.DT * (0.5 * (around(np.pad(c, 1, "wrap")) - 6 * c) + c - c * c * c + multiplier)
    return c


def pipe(n=30, steps=60):
    u, c, water = np.full((n + 2,) * 3, coupled_pipe.HOT), (n + 2) // 2, np.full(n, coupled_pipe.COLD)
    for step in range(1, steps + 1):
        new = u.copy()
        new[INSIDE] = u[INSIDE] + 0.15 * (around(u) - 6 * u[INSIDE])
        u = new
        if step % coupled_pipe.CHECK == 0:
            water = coupled_pipe.flow(water, coupled_pipe.around(u, c))
            u[1:-1, c, c] = water
    return u, water


def tracer(n=30, steps=200):
    u = np.zeros((n + 2,) * 3)
    for step in range(1, steps + 1):
        new, c = u.copy(), u[INSIDE]
        new[INSIDE] = c - 0.2 * (c - near(u, -1, 0, 0)) + 0.05 * (around(u) - 6 * c)
        u = new
        if step % nudging.CHECK == 0:
            there, values = nudging.measured(n, step)
            u[INSIDE] = np.where(there, u[INSIDE] + nudging.GAIN * (values - u[INSIDE]), u[INSIDE])
    return u
