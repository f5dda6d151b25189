# SPDX-License-Identifier: BSD-3-Clause
"""The Allen-Cahn equation with a Lagrange multiplier that nearly keeps the volume: volume_preserving.py [DEVICE] [CELLS]

The multiplier is the mean of the reaction, taken every two steps (Rubinstein and Sternberg, 1992)."""
import sys

import numpy as np

import memext as mx

DT, CHECK = 0.1, 2


@mx.kernel(params={"dt": DT, "multiplier": 0.0})
def allen_cahn(u, dt, multiplier):
    around = u[1, 0, 0] + u[-1, 0, 0] + u[0, 1, 0] + u[0, -1, 0] + u[0, 0, 1] + u[0, 0, -1]
    return u + dt * (0.5 * (around - 6 * u) + u - u * u * u + multiplier)


@mx.reduce(op="sum")
def reaction(u):
    return u * u * u - u


def begin(n):
    return np.random.default_rng(1).random((n, n, n)) - 0.4


def compute(device, n=30, steps=20):
    periodic = {"frame": "periodic", "side": {"x": "periodic", "y": "periodic", "z": "periodic"}}
    with mx.Run(allen_cahn, u=begin(n), device=device, dram="64MiB", reductions=[reaction], **periodic) as run:
        for _ in run.steps(steps, check=CHECK):
            run.params["multiplier"] = run.reduce(reaction).total / n**3
        return run["u"][1:-1, 1:-1, 1:-1]


if __name__ == "__main__":
    result = compute(*sys.argv[1:2] or ["."], *map(int, sys.argv[2:3]))
    print(f"mean {result.mean():.6f}")
