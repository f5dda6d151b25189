#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Flow through a made-up rock by lattice Boltzmann (D3Q19), and its permeability.

    rock_flow.py [--cells 128] [--steps 2000] [--device .] [--dram 64MiB] [--picture flow.png] [--check]

The rock is thresholded noise that goes on from its end to its beginning: x is periodic, the other sides are walls. The fluid is pushed along x until the mean
velocity changes by less than 0.2 % from check to check. Nineteen fields of float32 in two Buffers, by default 5 times the DRAM. Permeability is viscosity times
mean velocity over the push, in squares of a cell. --check: the same program with two plates in place of the rock, whose flow is known: g H^2 / (12 nu) in the mean,
which owes nothing to this program; exit status 1 where they differ by more than 2 %."""
import argparse
import pathlib
import sys

import numpy as np

import memext as mx

OMEGA, PUSH = 1.2, 1e-5
NU = (1 / OMEGA - 0.5) / 3  # viscosity, cells^2 a step
FORCE = OMEGA * PUSH  # momentum that a step adds to a mass of 1
DIRECTIONS = [(0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1), (1, 1, 0), (-1, -1, 0), (1, -1, 0), (-1, 1, 0),
              (1, 0, 1), (-1, 0, -1), (1, 0, -1), (-1, 0, 1), (0, 1, 1), (0, -1, -1), (0, 1, -1), (0, -1, 1)]
OPPOSITE = [0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15, 18, 17]
WEIGHTS = [1 / 3] + 6 * [1 / 18] + 12 * [1 / 36]
NAMES = [f"f{i}" for i in range(19)]


def signed_sum(values, signs):
    total = 0
    for value, sign in zip(values, signs):
        if sign == 1:
            total = total + value
        if sign == -1:
            total = total - value
    return total


@mx.kernel(fixed={"wall": "u1"}, params={"omega": OMEGA, "push": PUSH})
def flow(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, wall, omega, push):
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


@mx.reduce(per="z", op="sum")
def momentum(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, wall):
    along = (f1 - f2 + f7 - f8 + f9 - f10) + (f11 - f12 + f13 - f14)
    return mx.where(wall != 0, 0, along)


def framed(solid: np.ndarray) -> np.ndarray:
    """u1 with a frame: periodic in x, walls elsewhere."""
    around = np.pad(solid, ((1, 1), (1, 1), (0, 0)), constant_values=1)
    return np.pad(around, ((0, 0), (0, 0), (1, 1)), mode="wrap").astype("u1")


def rock(n: int, porosity: float = 0.6, seed: int = 7) -> np.ndarray:
    """Solid cells [z][y][x]: thresholded noise, smoothed around the corners of the cube."""
    values, smooth = np.random.default_rng(seed).normal(size=(n, n, n)).astype("f4"), max(2, n // 14)
    for axis in range(3):
        total = np.cumsum(np.concatenate([np.take(values, range(-smooth, 0), axis), values], axis), axis, dtype="f8")
        values = (np.take(total, range(smooth, n + smooth), axis) - np.take(total, range(n), axis)).astype("f4")
    return values <= np.quantile(values, 1 - porosity)


def plates(n: int) -> np.ndarray:
    """All fluid: the walls at y = 0 and at the other end are plates, and those in z are far away."""
    return np.zeros((8 * n, n, 8), bool)


def run_flow(words: argparse.Namespace, solid: np.ndarray, until: float, every: int = 100) -> tuple[float, np.ndarray, int]:
    """Mean velocity over all cells, the velocity along x in the middle plane of z, steps."""
    before, shape = 0.0, solid.shape
    start = {name: weight for name, weight in zip(NAMES, WEIGHTS)}
    with mx.Run(flow, **start, wall=framed(solid), shape=shape, dtype="f4", device=words.device, dram=words.dram, side="x=periodic") as run:
        print(run.plan(words.steps))
        for step in run.steps(words.steps, check=every, progress=True):
            total = np.asarray(run.reduce(momentum))
            now = float(total.sum()) / solid.size + FORCE / 2 * (1 - solid.mean())
            if abs(now - before) < until * abs(now):
                break
            before = now
        z = shape[0] // 2 + 1
        planes = [run[name][z, 1:-1, 1:-1].astype("f8") for name in NAMES]
    along = signed_sum(planes, [d[0] for d in DIRECTIONS]) / sum(planes) + FORCE / 2
    return now, np.where(solid[z - 1], np.nan, along), step


def check(words: argparse.Namespace) -> int:
    """The flow between plates, in the middle, where the walls in z are far."""
    n = 12
    _, along, step = run_flow(words, plates(n), 1e-4, 500)
    found, wanted = float(np.mean(along)), FORCE * n**2 / (12 * NU)
    print(f"between plates, {step} steps: mean velocity {found:.5e}, of the formula {wanted:.5e}, {abs(found / wanted - 1):.2%} apart")
    return 0 if abs(found / wanted - 1) < 0.02 else 1


def draw(path: pathlib.Path, along: np.ndarray, title: str) -> None:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, axis = plt.subplots(figsize=(7, 6), constrained_layout=True)
    shown = axis.imshow(np.ma.masked_invalid(along), origin="lower", cmap="viridis", vmax=np.nanquantile(along, 0.998))
    axis.set(xlabel="x", ylabel="y", title=title, facecolor="0.3")
    figure.colorbar(shown, label="velocity along x, cells a step")
    figure.savefig(path, dpi=100)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cells", type=int, default=128, help="of an edge")
    parser.add_argument("--steps", type=int, default=2000, help="at most")
    parser.add_argument("--device", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--dram", default="64MiB")
    parser.add_argument("--picture", type=pathlib.Path, default=pathlib.Path("flow.png"))
    parser.add_argument("--check", action="store_true", help="two plates, whose flow is known, in place of the rock")
    words = parser.parse_args()
    if words.check:
        return check(words)
    n = words.cells
    solid = rock(n)
    mean, along, step = run_flow(words, solid, 2e-3)
    permeability = NU * mean / FORCE
    print(f"step {step}: porosity {1 - solid.mean():.4f}, mean velocity {mean:.4e} cells a step, permeability {permeability:.4f} cells^2")
    draw(words.picture, along, f"{n}$^3$ cells, porosity {1 - solid.mean():.3f}, permeability {permeability:.3f} cells$^2$")
    return 0


if __name__ == "__main__":
    sys.exit(main())
