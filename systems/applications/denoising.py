#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Total-variation denoising of a volume: what is flat is made smooth, edges stay.

The image is a u8 a voxel (a tomogram: bodies of several densities, and noise). E(u), the sum over voxels of sqrt(epsilon^2 + half the
squared differences to the six neighbours) + lambda/2 (u - image)^2, is made smaller by steps along its gradient, of a stencil of radius 2
with sides that mirror. The kernel's reduction `energy` must fall at every check. The picture has a slice before, after and without noise, and the energy.

Checked at small size: the minimiser that scipy.optimize (L-BFGS-B) finds for an energy written in numpy; steps against a plain loop, bit by
bit; the reduction against a sum by numpy. At full size: energy and gradient once more by numpy, plane by plane. E is
convex, and lambda at least: so the result is no farther from the minimiser than |gradient| / lambda.

usage: denoising.py [-n NX NY NZ] [--change 2e-6] [--dram SIZE] [-d DIRECTORY] [--picture FILE.png] [--only check|run]
"""
import numpy as np

import common

EPSILON, LAMBDA, NOISE = 0.02, 16.0, 0.1
TAU = 1 / (12 / EPSILON + LAMBDA)  # the gradient's Lipschitz constant is at most 12/epsilon + lambda
MIRROR = [word for axis in "xyz" for word in ("--side", f"{axis}=mirror")]


# ---------------------------------------------------------------------- data

def bodies(n, seed, count=60):
    """Planes [y][x] of densities in 0..1: ellipsoids and boxes, later ones over earlier ones."""
    rng, size = np.random.default_rng(seed), np.array(n, float)
    made = [(rng.random(3) * size, rng.uniform(0.05, 0.2, 3) * size, rng.choice([0.25, 0.4, 0.6, 0.75, 0.9]), rng.random() < 0.35) for _ in range(count)]
    for z in range(n[2]):
        plane = np.full((n[1], n[0]), 0.1, "f4")
        x, y = np.arange(n[0])[None], np.arange(n[1])[:, None]
        for centre, half, density, box in made:
            dx, dy, dz = (x - centre[0]) / half[0], (y - centre[1]) / half[1], (z - centre[2]) / half[2]
            if abs(dz) < 1:
                plane[(np.maximum(abs(dx), abs(dy)) < 0.8) if box else dx**2 + dy**2 + dz**2 < 1] = density
        yield plane


def noisy(planes, seed):
    for z, plane in enumerate(planes):
        noise = np.random.default_rng((seed, z)).standard_normal(plane.shape, "f4")
        yield np.clip(np.rint(255 * (plane + NOISE * noise)), 0, 255).astype("u1")


def as_start(planes, n):
    """The image as numbers, with a frame of two cells that does not count."""
    nothing = np.zeros((n[1] + 4, n[0] + 4), "f4")
    yield from (nothing, nothing)
    for plane in planes:
        yield np.pad(plane.astype("f4") / np.float32(255), 2)
    yield from (nothing, nothing)


class Volume:
    """Files of an image and the words that name them."""

    def __init__(self, a, n, seed):
        shape = tuple(reversed(n))
        self.n, self.seed = n, seed
        self.image = common.write_planes(a.folder / "image.npy", shape, "u1", noisy(bodies(n, seed), seed))
        self.start = common.write_planes(a.folder / "start.npy", [i + 4 for i in shape], "f4", as_start(common.planes_of(self.image), n))
        self.result = a.folder / "result.npy"
        self.words = ["--field", f"f={self.image}", "--input", f"u={self.start}", "--output", f"u={self.result}", "--overwrite", *MIRROR,
                      "--param", f"tau={TAU!r}", "--param", f"lambda={LAMBDA}", "--param", f"epsilon={EPSILON}"]

    def result_planes(self):
        """Without the frame."""
        for z, plane in enumerate(common.planes_of(self.result)):
            if 2 <= z < self.n[2] + 2:
                yield plane[2:-2, 2:-2]


# ---------------------------------------------------------------------- independent programs

def energy_and_gradient(u, f):
    """Of a whole image in memory, float64, by differences between voxels: nothing is beyond the sides."""
    squares, gradient = np.zeros_like(u), LAMBDA * (u - f)
    cuts = [(tuple(slice(0, -1) if i == axis else slice(None) for i in range(3)), tuple(slice(1, None) if i == axis else slice(None) for i in range(3)))
            for axis in range(3)]
    for low, high in cuts:
        d = (u[high] - u[low]) ** 2
        squares[low] += d
        squares[high] += d
    n = np.sqrt(EPSILON**2 + squares / 2)
    for low, high in cuts:
        flow = (1 / n[low] + 1 / n[high]) / 2 * (u[high] - u[low])
        gradient[low] -= flow
        gradient[high] += flow
    return (n + LAMBDA / 2 * (u - f) ** 2).sum(), gradient


def minimise(f):
    """By L-BFGS-B, from 1/2 everywhere."""
    from scipy.optimize import minimize

    def both(x):
        e, g = energy_and_gradient(x.reshape(f.shape), f)
        return e, g.ravel()

    done = minimize(both, np.full(f.size, 0.5), jac=True, method="L-BFGS-B", options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 20})
    return done.x.reshape(f.shape), done.fun


def plain(u, image, nt):
    """The kernel in numpy, in float32 and in its order; u: with its frame, which is mirrored before every step."""
    one = np.float32
    u, f = u.copy(), image.astype("f4") / one(255)
    tau, lam, eps = one(TAU), one(LAMBDA), one(EPSILON)
    sides = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)]
    moved = lambda v, margin, d: v[tuple(slice(margin + e, n - margin + e) for e, n in zip(reversed(d), v.shape))]
    inner = (slice(2, -2),) * 3
    for _ in range(nt):
        u = np.pad(u[inner], 2, "symmetric")
        middle = moved(u, 1, (0, 0, 0))
        squares = None
        for d in sides:
            s = (moved(u, 1, d) - middle) * (moved(u, 1, d) - middle)
            squares = s if squares is None else squares + s
        inverse = one(1) / np.sqrt(eps * eps + one(0.5) * squares)
        here, flow = moved(inverse, 1, (0, 0, 0)), None
        for d in sides:
            part = (here + moved(inverse, 1, d)) * (moved(middle, 1, d) - u[inner])
            flow = part if flow is None else flow + part
        u[inner] = u[inner] + tau * (one(0.5) * flow + lam * (f - u[inner]))
    return u[inner]


def energy_by_planes(volume):
    """(energy, sum of squares of its gradient) of a result that memory need not hold: five planes of it at a time."""
    energy = gradient = 0.0
    u, f, nz = [], [], volume.n[2]
    planes, images = volume.result_planes(), (p / 255 for p in common.planes_of(volume.image))
    for z in range(nz + 2):  # the window is z-4 .. z, its middle the plane z-2
        if z < nz:
            u.append(next(planes).astype("f8")), f.append(next(images))
        first = max(0, z - 4)
        if len(u) > min(z, nz - 1) - first + 1:
            u.pop(0), f.pop(0)
        if z >= 2:
            e, g = of_plane(np.array(u), np.array(f), z - 2 - first)
            energy, gradient = energy + e, gradient + g
    return energy, gradient


def of_plane(u, f, i):
    """Energy and squared gradient of plane i of a few planes, of which two on either side are there unless the image ends."""
    squares = np.zeros_like(u)
    for axis in range(3):
        low, high = (tuple(s if k == axis else slice(None) for k in range(3)) for s in (slice(0, -1), slice(1, None)))
        d = (u[high] - u[low]) ** 2
        squares[low] += d
        squares[high] += d
    n = np.sqrt(EPSILON**2 + squares / 2)
    gradient = LAMBDA * (u[i] - f[i])
    for axis in range(2):
        low, high = (tuple(s if k == axis else slice(None) for k in range(2)) for s in (slice(0, -1), slice(1, None)))
        flow = (1 / n[i][low] + 1 / n[i][high]) / 2 * (u[i][high] - u[i][low])
        gradient[low] -= flow
        gradient[high] += flow
    for j in (i - 1, i + 1):
        if 0 <= j < len(u):
            gradient -= (1 / n[i] + 1 / n[j]) / 2 * (u[j] - u[i])
    return (n[i] + LAMBDA / 2 * (u[i] - f[i]) ** 2).sum(), (gradient**2).sum()


# ---------------------------------------------------------------------- the check

def check(a):
    n = a.o.small
    check_bits(a)
    check_minimiser(a, n)


def check_bits(a):
    n = (141, 12, 17)  # rows in more than one piece
    volume = Volume(a, n, 3)
    image, start = np.load(volume.image), np.load(volume.start)
    report = a.memext(*volume.words, "-t", 10, "--check", 10, "-d", a.folder, "--plan", f"stream by={n[1]} bt=5 slab=2")
    a.same_bits("plain loop: image, bit by bit", np.load(volume.result)[2:-2, 2:-2, 2:-2], plain(start, image, 10))
    before, _ = energy_and_gradient(plain(start, image, 9).astype("f8"), image / 255)
    (_, energy), = common.history(report, "energy")
    a.at_most("energy of the step before, relative difference", abs(energy / before - 1), 1e-7)


def check_minimiser(a, n):
    volume = Volume(a, n, a.o.seed)
    report = a.memext(*volume.words, "-t", 20_000, "--until", "rms-change=2e-8", "--check", 10, "-d", a.folder)
    image = np.load(volume.image) / 255
    wanted, energy = minimise(image)
    got = np.array(list(volume.result_planes()), "f8")
    reached, _ = energy_and_gradient(got, image)
    a.note(minimiser={"n": list(n), "energy": energy, "reached": reached, "steps": report["steps_done"], "image": energy_and_gradient(image, image)[0]})
    a.at_most(f"minimiser by L-BFGS-B after {report['steps_done']} steps: images apart by", abs(got - wanted).max(), 2e-5)
    a.at_most("minimiser by L-BFGS-B: energy above its, relative", abs(reached - energy) / energy, 1e-8)
    falls(a, report)


def falls(a, report):
    steps, energy = np.array(common.history(report, "energy")).T
    a.energy = steps, energy
    a.at_least("checks of the energy", len(energy), 5)
    a.hold("energy falls from check to check", (np.diff(energy) < 0).all(), f"{energy[0]:.9g} to {energy[-1]:.9g} in {len(energy)} checks, {(np.diff(energy) >= 0).sum()} of them not lower")


# ---------------------------------------------------------------------- the full run

def quality(planes, truth):
    """Peak signal to noise, dB, of values 0..1."""
    total = count = 0
    for p, t in zip(planes, truth):
        total, count = total + ((p - t) ** 2.0).sum(dtype="f8"), count + p.size
    return float(-10 * np.log10(total / count))


def full(a):
    n, o = a.o.size, a.o
    begin = common.time.monotonic()
    a.volume = volume = Volume(a, n, o.seed)
    a.note(data_seconds=common.time.monotonic() - begin)
    report = a.full(*volume.words, "-t", o.steps, "--until", f"rms-change={o.change}", "--check", o.check)
    a.check_run(report, 8)
    falls(a, report)
    energy, gradient = energy_by_planes(volume)
    voxels = np.prod(n)
    a.at_most("energy of the result above that of the last check, relative", energy / a.energy[1][-1] - 1, 1e-9)
    far = float(np.sqrt(gradient / voxels)) / LAMBDA
    a.at_most("distance to the minimiser (root of mean square), at most", far, 1e-3)
    before = quality((p / 255 for p in common.planes_of(volume.image)), bodies(n, o.seed))
    after = quality(volume.result_planes(), bodies(n, o.seed))
    a.note(energy=energy, distance_to_minimiser=far, psnr_before=before, psnr_after=after)
    a.say(f"peak signal to noise {before:.1f} dB before, {after:.1f} dB after")
    a.at_least("decibels won", after - before, 6)


def draw(a, path):
    n, z = a.volume.n, a.volume.n[2] // 2
    at = lambda planes: next(p for i, p in enumerate(planes) if i == z)
    slices = {"noisy": at(common.planes_of(a.volume.image)) / 255, "denoised": at(a.volume.result_planes()), "without noise": at(bodies(n, a.o.seed))}
    with common.picture(path, 10, 6.6, layout=[["a", "b", "c"], ["d", "d", "e"]], height_ratios=(1.35, 1)) as (figure, axes):
        for letter, (name, plane) in zip("abc", slices.items()):
            axes[letter].imshow(plane, cmap="gray", vmin=0, vmax=1, origin="lower")
            decibels = {"noisy": a.figures["psnr_before"], "denoised": a.figures["psnr_after"]}.get(name)
            axes[letter].set(title=name + (f", {decibels:.1f} dB" if decibels else "") + f" (z = {z})", xlabel="x")
        axes["a"].set_ylabel("y")
        y = n[1] // 2
        for (name, plane), style in zip(slices.items(), ({"color": "#bbbbbb", "linewidth": 0.8}, {"color": "#0072B2"}, {"color": "#D55E00", "linestyle": "--"})):
            axes["d"].plot(plane[y], label=name, **style)
        axes["d"].set(title=f"along x at y = {y}", xlabel="x", ylabel="density", xlim=(0, n[0] - 1), ylim=(-0.1, 1.25))
        axes["d"].legend(ncols=3, loc="upper left")
        steps, energy = a.energy
        axes["e"].semilogy(steps[:-1], energy[:-1] - energy[-1], "o-", color="#0072B2", markersize=3)
        axes["e"].set(title="energy above that of the last check", xlabel="step")
        axes["e"].grid(axis="y", color="#dddddd")


def options():
    p = common.parser(__doc__, "denoising", [400, 384, 416], "112MiB", [24, 22, 26])
    p.add_argument("-t", "--steps", type=int, default=400, help="at most (default 400)")
    p.add_argument("--change", type=float, default=2e-6, help="stop when a step changes voxels by no more than this, root of mean square (default 2e-6)")
    p.add_argument("--check", type=int, default=20, help="steps from one look at the energy to the next (default 20)")
    p.add_argument("--seed", type=int, default=5)
    return p.parse_args()


if __name__ == "__main__":
    common.run(options(), check, full, draw)
