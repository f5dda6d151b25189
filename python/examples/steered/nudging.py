# SPDX-License-Identifier: BSD-3-Clause
"""Data assimilation by nudging: every 50 steps a passive tracer is pulled towards what was measured in some columns: nudging.py [DEVICE] [CELLS]"""
import sys

import numpy as np

import memext as mx

CHECK, GAIN = 50, 0.25


@mx.kernel(params={"wind": 0.2, "mixing": 0.05})
def tracer(u, wind, mixing):
    around = u[1, 0, 0] + u[-1, 0, 0] + u[0, 1, 0] + u[0, -1, 0] + u[0, 0, 1] + u[0, 0, -1]
    return u - wind * (u - u[-1, 0, 0]) + mixing * (around - 6 * u)


def measured(n, step):
    """What the stations say at this step, and where they are."""
    there = np.zeros((n, n), bool)
    there[4::8, 4::8] = True
    height = np.arange(n)[:, None, None]
    return there, np.exp(-((height - n / 2) ** 2) / n) * (1 + 0.1 * np.sin(step / 40))


def compute(device, n=30, steps=200):
    with mx.Run(tracer, u=0.0, shape=(n, n, n), device=device, dram="64MiB") as run:
        for step in run.steps(steps, check=CHECK):
            there, values = measured(n, step)
            run.apply(lambda u, z: np.where(there, u + GAIN * (values[z] - u), u))
        return run["u"][...]


if __name__ == "__main__":
    result = compute(*sys.argv[1:2] or ["."], *map(int, sys.argv[2:3]))
    print(f"tracer {result.sum():.4f}")
