# SPDX-License-Identifier: BSD-3-Clause
"""Burgers' equation with the time step of the CFL condition: adaptive_dt.py [DEVICE] [CELLS]

dt follows from the largest speed, which the sweeps take along as they store the state: no byte is read for it."""
import sys

import numpy as np

import memext as mx

COURANT, CHECK = 0.4, 4


@mx.kernel(params={"dt": 0.0})
def burgers(u, dt):
    flux = mx.where(u > 0, u * (u - u[-1, 0, 0]), u * (u[1, 0, 0] - u))
    return u - dt * flux


@mx.reduce(op="max")
def speed(u):
    return abs(u)


def begin(n):
    x = np.arange(n + 2) / (n + 1)
    return np.ones((n + 2, n + 2, 1)) * (0.3 + np.sin(2 * np.pi * x))


def compute(device, n=62, steps=40):
    u = begin(n)
    with mx.Run(burgers, u=u, reductions=[speed], device=device, dram="64MiB", params={"dt": COURANT / np.abs(u).max()}) as run:
        for _ in run.steps(steps, check=CHECK):
            run.params["dt"] = COURANT / run.reduce(speed).total
        return run["u"][...]


if __name__ == "__main__":
    result = compute(*sys.argv[1:2] or ["."], *map(int, sys.argv[2:3]))
    print(f"largest speed {np.abs(result).max():.4f}")
