#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A half-wave dipole in free space: Maxwell's equations on Yee's grid (FDTD), and the antenna's pattern beside the textbook's.

    antenna.py [--cells 200] [--wave 20] [--device .] [--dram 48MiB] [--picture antenna.png]

A perfectly conducting wire of half a wavelength along z, with a gap in the middle that is driven by a sine. The outermost cells are a sponge that swallows
what reaches them. Six fields of float32 on a cube, by default 4 times the DRAM. The amplitude of the far field in a plane through the wire comes from two states
a quarter of a period apart, and is compared on a circle with cos(pi/2 cos a) / sin a, which owes nothing to this program; exit status 1 where they differ by more
than a tenth of the maximum."""
import argparse
import pathlib
import sys

import numpy as np

import memext as mx

COURANT, SPONGE = 0.5, 24  # cells that light crosses in a step; cells of sponge at each side


def up(f, dx, dy, dz):
    return f[dx, dy, dz] - f


def down(f, dx, dy, dz):
    return f - f[-dx, -dy, -dz]


def magnetic(hx, hy, hz, ex, ey, ez, sponge, courant, damping):
    s = sponge * damping
    return ((hx.old * (1 - s) - courant * (up(ez, 0, 1, 0) - up(ey, 0, 0, 1))) / (1 + s),
            (hy.old * (1 - s) - courant * (up(ex, 0, 0, 1) - up(ez, 1, 0, 0))) / (1 + s),
            (hz.old * (1 - s) - courant * (up(ey, 1, 0, 0) - up(ex, 0, 1, 0))) / (1 + s))


def electric(ex, ey, ez, hx, hy, hz, wire, sponge, courant, damping):
    s = sponge * damping
    along = (ez.old * (1 - s) + courant * (down(hy, 1, 0, 0) - down(hx, 0, 1, 0))) / (1 + s)
    return ((ex.old * (1 - s) + courant * (down(hz, 0, 1, 0) - down(hy, 0, 0, 1))) / (1 + s),
            (ey.old * (1 - s) + courant * (down(hx, 0, 0, 1) - down(hz, 1, 0, 0))) / (1 + s),
            mx.where(wire > 0, 0.0, along))


fields = mx.staggered(magnetic, electric, fixed={"wire": "u1", "sponge": "u1"}, params={"courant": COURANT, "damping": 0.25 / 255}, name="antenna")


def sponge_of(n: int, width: int) -> np.ndarray:
    """u1 [z][y][x] with its frame: 0 inside, growing with the cube of the depth in the outermost cells."""
    i = np.arange(n + 2)
    depth = np.clip((width + 1 - np.minimum(i, n + 1 - i)) / width, 0, 1)
    return np.round(255 * np.maximum(depth[:, None, None], np.maximum(depth[:, None], depth)) ** 3).astype("u1")


def wire_of(n: int, length: int) -> np.ndarray:
    wire = np.zeros((n + 2,) * 3, "u1")
    wire[n // 2 - length // 2:n // 2 - length // 2 + length, n // 2, n // 2] = 1
    wire[n // 2, n // 2, n // 2] = 0  # the gap
    return wire


def amplitude(states: list[np.ndarray]) -> np.ndarray:
    return np.sqrt(sum(s.astype("f8") ** 2 for s in states))


def pattern(ex: list[np.ndarray], ez: list[np.ndarray], n: int, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Angle to the wire and amplitude of the field across the line of sight, on a circle; its largest is 1. ex, ez: planes [z][x] at two times."""
    from scipy.ndimage import map_coordinates
    angle, middle = (np.arange(360) + 0.5) * np.pi / 180, n // 2  # none along the wire, where the formula is 0 / 0
    x, z = middle + radius * np.sin(angle), middle + radius * np.cos(angle)
    # Of a cell (i, j, k) ex lies at (i+1/2, j, k) and ez at (i, j, k+1/2): the wire's middle is half a cell up.
    across = [map_coordinates(a, [z + 0.5, x - 0.5], order=3) * np.cos(angle) - map_coordinates(c, [z, x], order=3) * np.sin(angle) for a, c in zip(ex, ez)]
    found = amplitude(across)
    return angle, found / found.max()


def draw(path: pathlib.Path, ez: list[np.ndarray], angle: np.ndarray, found: np.ndarray, wanted: np.ndarray, title: str) -> None:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure = plt.figure(figsize=(11, 5), constrained_layout=True)
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2, projection="polar")
    top = np.quantile(np.abs(ez[-1]), 0.995)
    shown = left.imshow(ez[-1], origin="lower", cmap="RdBu", vmin=-top, vmax=top)
    left.set(xlabel="x", ylabel="z", title=title)
    figure.colorbar(shown, ax=left, label="E along the wire")
    right.set_theta_zero_location("N")
    right.plot(angle, found, color="#0072B2", label="computed")
    right.plot(angle, wanted, color="#D55E00", linestyle="--", label="thin half-wave dipole")
    right.set_title("Amplitude around the wire")
    right.legend(loc="lower left", bbox_to_anchor=(-0.15, -0.15))
    figure.savefig(path, dpi=100)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cells", type=int, default=200, help="of an edge")
    parser.add_argument("--wave", type=int, default=20, help="cells of a wavelength, a multiple of 4")
    parser.add_argument("--device", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--dram", default="48MiB")
    parser.add_argument("--picture", type=pathlib.Path, default=pathlib.Path("antenna.png"))
    words = parser.parse_args()
    n, period = words.cells, int(words.wave / COURANT)
    steps = int(1.2 * n / COURANT) // period * period
    drive = words.device / f"antenna-drive-{n}.npy"
    t = np.arange(steps)
    np.save(drive, np.sin(2 * np.pi * t / period) * np.clip(t / (2 * period), 0, 1))
    start = {name: 0.0 for name in ("ex", "ey", "ez", "hx", "hy", "hz")}
    kept: dict[str, list[np.ndarray]] = {"ex": [], "ez": []}
    middle = n // 2 - 1  # interior index of the gap
    try:
        with mx.Run(fields, **start, wire=wire_of(n, words.wave // 2 - 1), sponge=sponge_of(n, min(SPONGE, n // 6)), shape=(n, n, n), dtype="f4", device=words.device,
                    dram=words.dram, source=f"ez@{middle},{middle},{middle}={drive}") as run:
            print(run.plan(steps))
            for step in run.steps(steps, check=period // 4, progress=True):
                if step >= steps - period // 4:
                    for name, planes in kept.items():
                        planes.append(run[name][:, n // 2])
    finally:
        drive.unlink()
    radius = n / 2 - min(SPONGE, n // 6) - 4
    angle, found = pattern(kept["ex"], kept["ez"], n, radius)
    wanted = np.abs(np.cos(np.pi / 2 * np.cos(angle)) / np.sin(angle))
    apart = float(np.abs(found - wanted).max())
    print(f"{n}^3 cells, {steps} steps: pattern at {radius / words.wave:.1f} wavelengths within {apart:.3f} of the thin half-wave dipole's")
    draw(words.picture, kept["ez"], angle, found, wanted, f"{n}$^3$ cells, {words.wave} a wavelength, step {steps}")
    return 0 if apart <= 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())
