#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Effective diffusivity of a pore space, by relaxing its concentration field to steady state.

The pore space is an image of a u8 a voxel: grains (spheres that overlap) are solid, and so are pores that are not connected with both
ends. Concentration is 1 before the first plane of z and 0 behind the last; nothing flows through grains or the other sides. A red-black
relaxation (cells with x + y + z + t even at step t) runs until the fluxes through all slices agree: the spread of the kernel's reduction
`flux`. D/D0 is flux * length / area; porosity / (D/D0) is the tortuosity factor. The picture has a slice of pores and
concentration, the flux of each slice, and how the spread fell.

Checked at small size: straight channels, where D/D0 is the porosity; a random pore space against the solution of its equations by
scipy.sparse; steps against a plain loop, bit by bit; the reduction against sums by numpy. At full size: fluxes of all slices once more
from the result, and Dirichlet's principle, by which the energy of the result is an upper bound that the flux must nearly meet.

usage: pore_diffusivity.py [-n NX NY NZ] [--spread 1e-3] [--dram SIZE] [-d DIRECTORY] [--picture FILE.png] [--only check|run]
       pore_diffusivity.py --only check --small 100 100 100
"""
import numpy as np

import common


# ---------------------------------------------------------------------- data

def grains(n, porosity, radius, seed):
    """Planes [y][x] of an image, 1 = pore, around spheres of 0.6 to 1.4 of that radius that overlap at random."""
    nx, ny, nz = n
    rng = np.random.default_rng(seed)
    volume = 4 / 3 * np.pi * radius**3 * 1.16  # mean of (0.6..1.4)^3
    room = np.prod([i + 2 * radius for i in n])
    count = int(-np.log(porosity) * room / volume)
    centre = rng.random((count, 3)) * (np.array(n) + 2 * radius) - radius
    r = radius * rng.uniform(0.6, 1.4, count)
    for z in range(nz):
        plane = np.ones((ny, nx), "u1")
        for (cx, cy, cz), ri in zip(centre[abs(centre[:, 2] - z) < r], r[abs(centre[:, 2] - z) < r]):
            reach = np.sqrt(ri**2 - (cz - z) ** 2)
            x0, x1, y0, y1 = (int(max(0, v)) for v in (np.ceil(cx - reach), cx + reach + 1, np.ceil(cy - reach), cy + reach + 1))
            y, x = np.ogrid[y0:min(y1, ny), x0:min(x1, nx)]
            plane[y0:y1, x0:x1][(x - cx) ** 2 + (y - cy) ** 2 < reach**2] = 0
        yield plane


def channels(n):
    """Straight channels along z, of several sections: D/D0 is the porosity."""
    plane = np.zeros((n[1], n[0]), "u1")
    plane[2:5, 1:-1] = 1
    plane[7:, 3:7] = 1
    plane[n[1] // 2 :, n[0] // 2 : n[0] // 2 + 1] = 1
    for _ in range(n[2]):
        yield plane


class Pieces:
    """Connected pieces of an image that comes plane by plane, twice: labels of each plane, joined where planes touch."""

    def __init__(self, planes):
        from scipy import ndimage
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        self.label, self.first, joins, before = ndimage.label, [0], [], None
        for plane in planes:
            labels, count = self.label(plane)
            labels = np.where(labels > 0, labels + self.first[-1], 0)
            if before is not None:
                both = (before > 0) & (labels > 0)
                joins.append(np.unique(np.stack([before[both], labels[both]]), axis=1))
            self.first.append(self.first[-1] + count)
            before = labels
        a, b = np.concatenate(joins, axis=1) if joins else np.zeros((2, 0), int)
        total = self.first[-1] + 1
        _, piece = connected_components(coo_matrix((np.ones(len(a), bool), (a, b)), (total, total)), directed=False)
        ends = [set(piece[self.first[z] + 1 : self.first[z + 1] + 1]) for z in (0, len(self.first) - 2)]
        self.through = np.isin(piece, list(ends[0] & ends[1]))
        self.through[0] = False

    def connected(self, planes):
        """The image without what does not reach from the first plane to the last."""
        for z, plane in enumerate(planes):
            labels, _ = self.label(plane)
            yield self.through[np.where(labels > 0, labels + self.first[z], 0)].astype("u1")


def framed(planes, n):
    """With the frame: solid at the sides, pore before and behind."""
    nx, ny, _ = n
    yield np.ones((ny + 2, nx + 2), "u1")
    for plane in planes:
        yield np.pad(plane, 1)
    yield np.ones((ny + 2, nx + 2), "u1")


def falling(n, straight=True):
    """Concentrations with their frame: from 1 before the first plane to 0 behind the last; else 0 between the two."""
    nx, ny, nz = n
    for z in range(nz + 2):
        yield np.full((ny + 2, nx + 2), 1 - z / (nz + 1) if straight else float(z == 0))


class Space:
    """Files of a pore space and the words that name them."""

    def __init__(self, a, n, image, straight=True):
        """image: makes its planes, as often as it is called."""
        folder, shape = a.folder, [i + 2 for i in reversed(n)]
        self.n, self.area, self.length = n, n[0] * n[1], n[2] + 1
        pieces = Pieces(image())
        self.image = common.write_planes(folder / "pore.npy", shape, "u1", framed(pieces.connected(image()), n))
        self.start = common.write_planes(folder / "start.npy", shape, "f8", falling(n, straight))
        self.result = folder / "result.npy"
        self.pores = sum(int(p[1:-1, 1:-1].sum()) for p in list(common.planes_of(self.image))[1:-1])
        self.porosity = self.pores / np.prod(n)
        self.words = ["--field", f"pore={self.image}", "--input", f"c={self.start}", "--output", f"c={self.result}", "--overwrite"]

    def fluxes(self, path):
        """Through the faces before each plane and behind the last, and the energy: sum of squares over all open faces."""
        through, energy, before = [], 0.0, None
        for z, (c, p) in enumerate(zip(common.planes_of(path), common.planes_of(self.image))):
            if before is not None:
                face = np.where(p[1:-1, 1:-1] & before[1][1:-1, 1:-1], before[0][1:-1, 1:-1] - c[1:-1, 1:-1], 0)
                through.append(face.sum())
                energy += (face**2).sum()
            if 0 < z <= self.n[2]:
                for axis in (0, 1):
                    inner, walls = (v[1:-1, 1:-1] for v in (c, p))
                    d, both = np.diff(inner, axis=axis), np.diff(walls.astype("i1"), axis=axis) == 0
                    low = walls[:-1] if axis == 0 else walls[:, :-1]
                    energy += (d[both & (low != 0)] ** 2).sum()
            before = c, p
        return np.array(through), energy

    def diffusivity(self, flux):
        return flux * self.length / self.area


def spread(flux):
    return float((flux.max() - flux.min()) / abs(flux.mean()))


def factor(nz):
    """Relaxation factor: best for a straight pore of about twice the length, as pores wind and end."""
    return 2 / (1 + np.pi / (2.0 * (nz + 1)))


# ---------------------------------------------------------------------- independent programs

def plain(c, pore, nt, omega):
    """The kernel in numpy, arrays with their frame."""
    c, inner = c.copy(), (slice(1, -1),) * 3
    moved = lambda v, dx, dy, dz: v[tuple(slice(1 + d, i - 1 + d) for d, i in zip((dz, dy, dx), v.shape))]
    sides = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)]
    walls = pore.astype("f8")
    open_ = sum((moved(walls, *d) for d in sides[1:]), moved(walls, *sides[0]))
    z, y, x = np.indices(c[inner].shape)
    for t in range(nt):
        sum_ = 0
        for i, d in enumerate(sides):
            part = moved(walls, *d) * moved(c, *d)
            sum_ = sum_ + part if i else part
        mine = pore[inner] * ((x + y + z + t) % 2 == 0)
        mean = sum_ / np.where(open_ > 0, open_, 1)
        c[inner] = c[inner] + mine.astype("f8") * np.where(open_ > 0, omega, 0) * (mean - c[inner])
    return c


def solve(pore, direct_up_to=60_000):
    """Concentrations by the linear equations of all pores, frame included: by elimination where they are few enough for its memory, else
    by conjugate gradients to a residual of 1e-12. Also which it was."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.linalg import LinearOperator, cg, splu

    shape, inside = pore.shape, np.zeros(pore.shape, bool)
    inside[1:-1, 1:-1, 1:-1] = pore[1:-1, 1:-1, 1:-1] != 0
    number = np.full(shape, -1)
    number[inside] = np.arange(inside.sum())
    known = np.zeros(shape)
    known[0] = 1
    rows, columns, values, b = [], [], [], np.zeros(inside.sum())
    diagonal = np.zeros(inside.sum())
    for axis in range(3):
        low = tuple(slice(0, -1) if i == axis else slice(None) for i in range(3))
        high = tuple(slice(1, None) if i == axis else slice(None) for i in range(3))
        for here, there in ((low, high), (high, low)):
            face = inside[here] & (pore[there] != 0)
            i, j = number[here][face], number[there][face]
            diagonal += np.bincount(i, minlength=len(b))
            b += np.bincount(i[j < 0], known[there][face][j < 0], minlength=len(b))
            rows.append(i[j >= 0]), columns.append(j[j >= 0]), values.append(-np.ones((j >= 0).sum()))
    own = np.arange(len(b))
    matrix = coo_matrix((np.concatenate([*values, diagonal]), (np.concatenate([*rows, own]), np.concatenate([*columns, own])))).tocsc()
    c = known.copy()
    if len(b) <= direct_up_to:
        c[inside] = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).solve(b)
        how = "elimination"
    else:
        c[inside], failed = cg(matrix.tocsr(), b, tol=1e-12, maxiter=100_000, M=LinearOperator(matrix.shape, lambda v: v / diagonal))
        how = "conjugate gradients" if failed == 0 else "conjugate gradients, not converged"
    return c, how


# ---------------------------------------------------------------------- the check

def relax(a, space, omega, until, most, every=10):
    report = a.memext(*space.words, "-t", most, "--param", f"omega={omega}", "--until", f"flux-spread={until}", "--check", every, "-d", a.folder)
    flux, energy = space.fluxes(space.result)
    return report, flux, energy


def check(a):
    n = a.o.small
    check_bits(a)
    check_channels(a)
    check_solution(a, n)


def check_bits(a):
    n = (141, 15, 22)  # rows in more than one piece
    space = Space(a, n, lambda: grains(n, 0.5, 5, 3))
    report = a.memext(*space.words, "-t", 13, "--param", "omega=1.7", "--check", 13, "-d", a.folder, "--plan", "stream by=9 bt=4 slab=4")
    start, pore = np.load(space.start), np.load(space.image)
    a.same_bits("plain loop: concentrations, bit by bit", np.load(space.result), plain(start, pore, 13, 1.7))
    np.save(a.folder / "before.npy", plain(start, pore, 12, 1.7))
    flux = space.fluxes(a.folder / "before.npy")[0][:-1]  # the kernel's: of the step before, at the faces before each plane
    (_, total), (_, apart) = *common.history(report, "flux"), *common.history(report, "flux-spread")
    a.at_most("reduction: sum of the fluxes, relative difference", abs(total / flux.sum() - 1), 1e-12)
    a.at_most("reduction: spread of the fluxes, relative difference", abs(apart / spread(flux) - 1), 1e-9)


def check_channels(a):
    n = (20, 18, 30)
    space = Space(a, n, lambda: channels(n), straight=False)
    report, flux, _ = relax(a, space, factor(n[2]), 1e-9, 2000)
    found = space.diffusivity(flux.mean())
    a.note(channels={"porosity": space.porosity, "diffusivity": found, "steps": report["steps_done"]})
    a.at_most("straight channels: D/D0 less porosity", abs(found - space.porosity), 1e-8)
    a.at_least("straight channels: steps that it took", report["steps_done"], 50)


def check_solution(a, n):
    space = Space(a, n, lambda: grains(n, a.o.porosity, min(n) / 8, a.o.seed), straight=False)
    report, flux, _ = relax(a, space, factor(n[2]), 1e-8, 60 * n[2] + 600, 50)
    pore = np.load(space.image)
    wanted, how = solve(pore)
    np.save(a.folder / "solved.npy", wanted)
    solved, _ = space.fluxes(a.folder / "solved.npy")
    got, of_solution = space.diffusivity(flux.mean()), space.diffusivity(solved.mean())
    a.note(solution={"n": list(n), "by": how, "porosity": space.porosity, "diffusivity": got, "of_solution": of_solution, "steps": report["steps_done"],
                     "tortuosity": space.porosity / got})
    a.at_most(f"solution by {how}: D/D0 {of_solution:.9f}, relative difference", abs(got / of_solution - 1), 1e-7)
    inside = pore[1:-1, 1:-1, 1:-1] != 0
    apart = abs(np.load(space.result)[1:-1, 1:-1, 1:-1] - wanted[1:-1, 1:-1, 1:-1])[inside].max()
    a.at_most(f"solution by {how}: concentrations apart by", apart, 1e-6)


# ---------------------------------------------------------------------- the full run

def full(a):
    n, o = a.o.size, a.o
    begin = common.time.monotonic()
    a.space = space = Space(a, n, lambda: grains(n, o.porosity, o.radius, o.seed))
    a.note(data_seconds=common.time.monotonic() - begin, porosity=space.porosity)
    a.report = report = a.full(*space.words, "-t", o.steps, "--param", f"omega={o.omega or factor(n[2])}", "--until", f"flux-spread={o.spread}", "--check", o.check)
    a.check_run(report, 16)
    a.flux, energy = space.fluxes(space.result)
    found, bound = space.diffusivity(a.flux.mean()), space.diffusivity(1) * energy
    a.note(diffusivity=found, tortuosity=space.porosity / found, upper_bound=bound, spread=spread(a.flux))
    a.say(f"porosity {space.porosity:.4f}, D/D0 {found:.5f}, tortuosity factor {space.porosity / found:.4f}")
    a.at_most("spread of the fluxes of the result", spread(a.flux), 1.05 * o.spread)
    a.at_most("D/D0 above its bound by the energy, relative", (found - bound) / bound, o.spread)
    a.at_most("D/D0 below its bound by the energy, relative", (bound - found) / bound, o.spread)


def draw(a, path):
    space, nz = a.space, a.space.n[2]
    y = space.n[1] // 2 + 1
    section = lambda file: np.array([p[y, 1:-1] for p in common.planes_of(file)])[1:-1].T  # x upwards, z to the right
    c, pore = section(space.result), section(space.image)
    with common.picture(path, 11, 5.6, layout=[["a", "b"], ["a", "c"]], width_ratios=(1.5, 1)) as (figure, axes):
        figure.suptitle(f"{' x '.join(map(str, space.n))} voxels: porosity {space.porosity:.3f}, D/D0 = {a.figures['diffusivity']:.4f}, tortuosity factor {a.figures['tortuosity']:.3f}")
        shown = axes["a"].imshow(np.ma.masked_where(pore == 0, c), cmap="viridis", vmin=0, vmax=1, origin="lower", aspect="equal", interpolation="nearest")
        axes["a"].set_facecolor("#3a3a3a")
        axes["a"].contour(np.where(pore == 0, np.nan, c), levels=np.arange(0.1, 0.95, 0.1), colors="white", linewidths=0.7)
        figure.colorbar(shown, ax=axes["a"], label="concentration", pad=0.01, shrink=0.8)
        axes["a"].set(title=f"Concentration in the pores at y = {y - 1} (grains are dark)", xlabel="z, voxels", ylabel="x, voxels")
        axes["b"].plot(np.arange(nz + 1), 100 * (a.flux / a.flux.mean() - 1), color="#0072B2")
        axes["b"].set(title="Flux through each slice, of the mean", xlabel="z, voxels", ylabel="percent off", xlim=(0, nz))
        steps, spreads = np.array(common.history(a.report, "flux-spread")).T
        axes["c"].semilogy(steps, spreads, "o-", color="#0072B2", markersize=3)
        axes["c"].axhline(a.o.spread, color="#D55E00", linestyle="--", label="where it stops")
        axes["c"].set(title="Spread of the fluxes", xlabel="step", ylabel="(greatest - least) / mean")
        axes["c"].legend()
        for letter in "bc":
            axes[letter].grid(axis="y", color="#dddddd")


def options():
    p = common.parser(__doc__, "pore_diffusivity", [320, 304, 400], "128MiB", [40, 40, 40])
    p.add_argument("-t", "--steps", type=int, default=6000, help="at most (default 6000)")
    p.add_argument("--spread", type=float, default=1e-3, help="stop when the fluxes of all slices agree within this part of their mean (default 1e-3)")
    p.add_argument("--check", type=int, default=100, help="steps from one look at the fluxes to the next (default 100)")
    p.add_argument("--omega", type=float, help="relaxation factor (default: from the length)")
    p.add_argument("--porosity", type=float, default=0.5, help="of the spheres' gaps (default 0.5)")
    p.add_argument("--radius", type=float, default=18.0, help="of a grain, voxels (default 18)")
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


if __name__ == "__main__":
    common.run(options(), check, full, draw)
