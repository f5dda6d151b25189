# SPDX-License-Identifier: BSD-3-Clause
"""Heat in rock around a pipe, whose water is a model in one dimension of its own: coupled_pipe.py [DEVICE] [CELLS]

At every check the rock heats the water, the water flows on, and the cells on the axis get its temperature. The store lacks the water: it begins anew."""
import sys

import numpy as np

import memext as mx

CHECK, COLD, HOT, EXCHANGE, FLOW = 5, 10.0, 60.0, 0.3, 0.8


@mx.kernel
def heat(u):
    around = u[1, 0, 0] + u[-1, 0, 0] + u[0, 1, 0] + u[0, -1, 0] + u[0, 0, 1] + u[0, 0, -1]
    return u + 0.15 * (around - 6 * u)


def flow(water, rock):
    """One step of the water: heat from the rock around, then downstream."""
    water = water + EXCHANGE * (rock - water)
    return water - FLOW * (water - np.concatenate([[COLD], water[:-1]]))


def around(u, c):
    return 0.25 * (u[1:-1, c, c - 1] + u[1:-1, c, c + 1] + u[1:-1, c - 1, c] + u[1:-1, c + 1, c])


def compute(device, n=30, steps=60):
    c, water = (n + 2) // 2, np.full(n, COLD)
    with mx.Run(heat, u=HOT, shape=(n, n, n), device=device, dram="64MiB", resume=False) as run:
        for _ in run.steps(steps, check=CHECK):
            water = flow(water, around(run["u"], c))
            run["u"][1:-1, c, c] = water
        return run["u"][...], water


if __name__ == "__main__":
    print(f"the water leaves with {compute(*sys.argv[1:2] or ['pipe.memext'], *map(int, sys.argv[2:3]))[1][-1]:.2f} degrees")
