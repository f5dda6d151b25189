# SPDX-License-Identifier: BSD-3-Clause
"""Effective diffusivity of a made-up rock: steady diffusion through its pores from z = 0 to the other end, closed sides.

    effective_diffusivity.py [--cells 320] [--device .] [--dram 64MiB] [--picture rock.png]

The rock is thresholded noise, stored as a NRRD file with the number of open neighbours of each pore cell, which is what the relaxation needs; it
is read where it lies; with the two Buffers it has by default 4 times the DRAM. Red-black over-relaxation stops when the flux through all slices
agrees to 1 %. The effective diffusivity, relative to that of the free fluid, is the mean flux times the length over the area and the difference
of concentration."""
import argparse
import pathlib

import numpy as np

import memext as mx


def noise(n: int, smooth: int, seed: int) -> np.ndarray:
    """Smoothed white noise [z][y][x] in a cube of n cells."""
    values = np.random.default_rng(seed).normal(size=(n, n, n)).astype("f4")
    for axis in range(3):
        total = np.cumsum(np.concatenate([np.take(values, range(-smooth, 0), axis), values], axis), axis, dtype="f8")
        values = (np.take(total, range(smooth, n + smooth), axis) - np.take(total, range(n), axis)).astype("f4")
    return values


def make_rock(path: pathlib.Path, n: int, porosity: float = 0.5) -> float:
    """Writes path and its raw cells: open neighbours of pore cells, 0 in the rock, with the frame: walls at the sides, an open plane at either
    end. Returns the porosity."""
    field = noise(n, max(2, n // 25), 7)
    pore = np.zeros((n + 2,) * 3, bool)
    pore[1:-1, 1:-1, 1:-1] = field > np.quantile(field, 1 - porosity)
    pore[0, 1:-1, 1:-1] = pore[-1, 1:-1, 1:-1] = True
    padded = np.pad(pore, 1)
    count = sum(np.roll(padded, d, axis)[1:-1, 1:-1, 1:-1].astype("u1") for axis in range(3) for d in (-1, 1)) * pore
    count[0], count[-1] = pore[0], pore[-1]
    count.tofile(path.with_suffix(".raw"))
    path.write_text(f"NRRD0004\ntype: uchar\ndimension: 3\nsizes: {n + 2} {n + 2} {n + 2}\nencoding: raw\ndata file: {path.stem}.raw\n")
    return float(pore[1:-1, 1:-1, 1:-1].mean())


@mx.kernel(fixed="c", params={"w": 1.9})
def relax(u, c, w, x, y, z, t):
    s = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    return mx.where((c > 0) & ((x + y + z + t) % 2 == 0), u + w * (s / c - u), u)


@mx.reduce(per="z", op="sum")
def flux(u, c):
    return mx.where((c > 0) & (u[0, 0, 1] > 0), u - u[0, 0, 1], 0)


def draw(run: mx.Run, path: pathlib.Path, title: str) -> None:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    n = run["u"].shape[1]
    u, c = run["u"][:, n // 2], run["c"][:, n // 2]
    figure, axis = plt.subplots(figsize=(7, 6), constrained_layout=True)
    shown = axis.imshow(np.ma.masked_where(c == 0, u), origin="lower", cmap="viridis", vmin=0, vmax=1)
    axis.set(xlabel="x", ylabel="z", title=title, facecolor="0.3")
    figure.colorbar(shown, label="concentration")
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cells", type=int, default=320, help="of an edge")
    parser.add_argument("--device", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--dram", default="64MiB")
    parser.add_argument("--picture", type=pathlib.Path, default=pathlib.Path("rock.png"))
    words = parser.parse_args()
    n, path = words.cells, words.device / "rock.nhdr"
    porosity = make_rock(path, n)
    count = mx.open(path)
    with mx.Run(relax, u=mx.ramp("z", 1, 0, where=count), c=count, dtype="f4", device=words.device, dram=words.dram) as run:
        print(run.plan(100))
        for step in run.steps(20_000, check=200, progress=True):
            fluxes = run.reduce(flux)
            if fluxes.spread < 0.01:
                break
        mean = float(np.asarray(fluxes)[:-1].mean())  # past the last slice u is 0
        diffusivity = mean * (n + 1) / n**2
        print(f"step {step}: porosity {porosity:.4f}, effective diffusivity {diffusivity:.5f}, spread of the fluxes {fluxes.spread:.4f}")
        draw(run, words.picture, f"{n}$^3$ cells, porosity {porosity:.3f}, effective diffusivity {diffusivity:.4f}")


if __name__ == "__main__":
    main()
