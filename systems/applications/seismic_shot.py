#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A seismic shot: sound from a point near the surface, through folded layers, heard by a line of receivers.

x is depth, y across and z along the line of receivers, 10 m a cell. The velocity of each cell is a u16, a sponge of 24 cells on all
sides a u8; the source is Ricker's wavelet, put into one cell by --source; receivers are --probes. The picture has the section of
velocities, the waves in it at two times, by --snapshot, and the seismogram.

Checked at small size: traces and pressure against a plain loop in numpy, bit by bit; traces in a homogeneous medium against
s(t - r/v) / (4 pi r), and that their error falls with the square of the time step; what comes back from the sponge. At full size:
the direct wave of the nearest receivers against the same formula, before the first reflection arrives.

usage: seismic_shot.py [-n NX NY NZ] [--steps NT] [--dram SIZE] [-d DIRECTORY] [--picture FILE.png] [--only check|run]
"""
import numpy as np

import common

DX, LAYERS, INTERFACES = 10.0, (1600, 2000, 2500, 3200), (0.32, 0.52, 0.75)  # m, m/s, parts of the depth
COURANT = 0.4  # of the fastest layer; the scheme is stable up to 0.5
DAMPING, SPONGE = 0.1, 24
STRIDE = 2  # of the snapshots: every second cell
LOUD = 4 * np.pi * 1000  # so that the amplitude is about 1 at 1 km


# ---------------------------------------------------------------------- data

def ricker(t, frequency):
    a = (np.pi * frequency * (t - 1.5 / frequency)) ** 2
    return (1 - 2 * a) * np.exp(-a)


def wavelet(folder, steps, dt, frequency, velocity):
    """What is added to the cell of the source at each step, until nothing of it is left."""
    t = np.arange(min(steps, int(3 / frequency / dt) + 1)) * dt
    path = folder / "wavelet.npy"
    np.save(path, velocity**2 * dt**2 / DX**3 * LOUD * ricker(t, frequency))
    return path


def layered(n):
    """Velocities [y][x] of each plane z: interfaces are folded along and across the line."""
    nx, ny, nz = n
    x, y = np.arange(nx), np.arange(ny)[:, None]
    for z in range(nz):
        v = np.full((ny, nx), LAYERS[0], "u2")
        for i, (depth, speed) in enumerate(zip(INTERFACES, LAYERS[1:])):
            fold = 0.03 * nx * np.sin(2 * np.pi * (1.5 * z / nz + i / 3)) * np.cos(np.pi * (y / ny - 0.5)) + (0, 0.05, -0.08)[i] * nx * (z / nz - 0.5)
            v[x[None] >= depth * nx + fold] = speed
        yield v


def homogeneous(n, speed):
    for _ in range(n[2]):
        yield np.full((n[1], n[0]), speed, "u2")


def ramp(n, width):
    """0 inside to 1 at the sides, over `width` cells."""
    i = np.arange(n)
    return np.clip((width - np.minimum(i, n - 1 - i)) / max(width, 1), 0, 1)


def sponge(n, width):
    """0 inside to 255, with the square of the depth in the sponge."""
    across = np.maximum(ramp(n[1], width)[:, None], ramp(n[0], width)[None])
    for along in ramp(n[2], width):
        yield np.rint(255 * np.maximum(across, along) ** 2).astype("u1")


class Shot:
    """The files of one shot and the words that name them."""

    def __init__(self, a, n, steps, dt, frequency, speeds, width, source, receivers):
        self.n, self.steps, self.dt, self.frequency, self.source, self.receivers = tuple(n), steps, dt, frequency, source, receivers
        folder, shape = a.folder, tuple(reversed(n))
        self.v = common.write_planes(folder / "v.npy", shape, "u2", speeds)
        self.sponge = common.write_planes(folder / "sponge.npy", shape, "u1", sponge(n, width))
        self.speed = self.speed_at(source)
        self.wavelet, self.out = wavelet(folder, steps, dt, frequency, float(self.speed)), folder / "traces.npy"
        (folder / "receivers").write_text("".join(f"p {x} {y} {z}\n" for x, y, z in receivers))
        self.words = ["-n", *n, "-t", steps, "--init", "zero", "--field", f"v={self.v}", "--field", f"sponge={self.sponge}",
                      "--param", f"dt={dt}", "--param", f"dx={DX}", "--param", f"damping={DAMPING}",
                      "--source", f"p@{','.join(map(str, source))}={self.wavelet}", "--probes", folder / "receivers", "--probes-out", self.out, "--overwrite"]

    def speed_at(self, cell):
        x, y, z = cell
        return int(np.load(self.v, mmap_mode="r")[z, y, x])

    def traces(self):
        return np.load(self.out)

    def times(self):
        """Row i of the traces is the pressure after step i + 1."""
        return (np.arange(self.steps) + 1) * self.dt

    def distances(self):
        return DX * np.sqrt(((np.array(self.receivers) - np.array(self.source)) ** 2).sum(1))

    def analytic(self):
        """Pressure at the receivers if all the world had the velocity of the source's cell."""
        r = self.distances()
        return LOUD * ricker(self.times()[:, None] - r / self.speed, self.frequency) / (4 * np.pi * r)


def plain(shot):
    """The same in numpy: a loop over steps, all in float32, the source added as to any cell. Traces, and pressure with its frame."""
    f = np.float32
    v, s = np.load(shot.v).astype(f), np.load(shot.sponge).astype(f)
    c, s = v * (f(shot.dt) / f(DX)), s * (f(DAMPING) / f(255))
    now, old = (np.zeros([n + 8 for n in v.shape], f) for _ in range(2))
    weights, added, traces = [f(-205 / 24), f(8 / 5), f(-1 / 5), f(8 / 315), f(-1 / 560)], np.load(shot.wavelet), []
    inside, (sx, sy, sz) = (slice(4, -4),) * 3, shot.source

    def moved(axis, by):
        return now[tuple(slice(4 + by, n - 4 + by) if i == axis else slice(4, -4) for i, n in enumerate(now.shape))]

    for step in range(shot.steps):
        lap = weights[0] * now[inside]
        for r in range(1, 5):
            pairs = [moved(axis, -r) + moved(axis, r) for axis in (2, 1, 0)]
            lap = lap + weights[r] * (pairs[0] + pairs[1] + pairs[2])
        old[inside] = (f(2) * now[inside] - (f(1) - s) * old[inside] + c * c * lap) / (f(1) + s)
        if step < len(added):
            old[sz + 4, sy + 4, sx + 4] = f(float(old[sz + 4, sy + 4, sx + 4]) + added[step])
        now, old = old, now
        traces.append([float(now[z + 4, y + 4, x + 4]) for x, y, z in shot.receivers])
    return np.array(traces), now


def error(got, wanted, rows):
    """Of the traces together, in the rows given for each: root of the sum of squares, relative."""
    return float(np.sqrt(((got - wanted)[rows] ** 2).sum() / (wanted[rows] ** 2).sum()))


# ---------------------------------------------------------------------- the check

def check(a):
    n = a.o.small
    check_bits(a, n)
    check_formula(a, n)


def check_bits(a, n):
    """Layers, sponge, source and receivers in a quarter of the cells, whose plan cuts them into many pieces."""
    n = [max(24, i // 2) for i in n]
    source = (n[0] // 4, n[1] // 2, n[2] // 3)
    receivers = [(x, n[1] // 2 + 1, z) for x in (n[0] // 4, n[0] // 2) for z in range(2, n[2], 5)]
    dt = COURANT * DX / LAYERS[-1]
    shot = Shot(a, n, 60, dt, 25.0, layered(n), 8, source, receivers)
    a.memext(*shot.words, "-o", a.folder / "p.npy", "-d", a.folder, "--plan", f"stream by={n[1] // 2} bt=4 slab=4")
    traces, p = plain(shot)
    a.at_least("plain loop: loudest trace", abs(traces).max(), 1e-3)
    a.same_bits("plain loop: traces, bit by bit", shot.traces(), traces)
    a.same_bits("plain loop: pressure, bit by bit", np.load(a.folder / "p.npy"), p)
    (a.folder / "p.npy").unlink()


def check_formula(a, n):
    """A homogeneous medium: receivers in the axes and in a diagonal, heard until the nearest side could answer."""
    speed, frequency, source = 2000, 20.0, tuple(i // 2 for i in n)
    reach = min(n) // 4
    offsets = [(reach, 0, 0), (0, reach, 0), (0, 0, -reach), (reach // 2, reach // 2, reach // 2), (0, -reach // 2, reach // 2)]
    receivers = [tuple(s + o for s, o in zip(source, offset)) for offset in offsets]
    heard = 3 / frequency + reach * DX / speed
    errors = []
    for halves in (1, 2):
        dt = 0.2 * DX / speed / halves
        shot = Shot(a, n, int(heard / dt), dt, frequency, homogeneous(n, speed), 0, source, receivers)
        a.memext(*shot.words, "-d", a.folder)
        echo = (2 * (min(n) // 2) - reach) * DX / speed  # from the source to a side and back to a receiver
        errors.append(error(shot.traces(), shot.analytic(), shot.times() < min(echo, heard)))
        if halves == 1:
            a.at_least("formula: share of the pulse heard before an echo", min(1.0, (echo - reach * DX / speed) * frequency / 3), 0.75)
    a.note(formula_errors=errors)
    a.at_most("formula: error of the traces", errors[0], 0.02)
    a.at_least("formula: error falls with dt squared, by", errors[0] / errors[1], 3)
    check_sponge(a, n, speed, frequency, source, 2 * dt)


def check_sponge(a, n, speed, frequency, source, dt):
    """The loudest echo at the source, with a sponge of a quarter of the cells and with none."""
    back, loudest = min(n) * DX / speed, []  # seconds to a side and back
    for width in (min(n) // 4, 0):
        shot = Shot(a, n, int((1.2 * back + 3 / frequency) / dt), dt, frequency, homogeneous(n, speed), width, source, [source])
        a.memext(*shot.words, "-d", a.folder)
        loudest.append(abs(shot.traces()[shot.times() > 3 / frequency + back / 2]).max())
    a.at_most("sponge: echo of the sides, of that without one", loudest[0] / loudest[1], 0.15)


# ---------------------------------------------------------------------- the full run

def full(a):
    n, dt = a.o.size, COURANT * DX / LAYERS[-1]
    width = min(SPONGE, min(n) // 5)
    depth = width + 12  # what touches the sponge is damped by it
    source = (depth, n[1] // 2, n[2] // 2)
    receivers = [(depth, n[1] // 2, z) for z in range(width, n[2] - width, 2) if abs(z - source[2]) >= 4]
    begin = common.time.monotonic()
    a.shot = shot = Shot(a, n, a.o.steps, dt, a.o.frequency, layered(n), width, source, receivers)
    a.note(data_seconds=common.time.monotonic() - begin, receivers=len(receivers), dt=dt)
    a.every = max(1, a.o.steps // 3)
    report = a.full(*shot.words, "--snapshot", f"{a.every}:{a.folder}/waves:{STRIDE}", *(["--in-place"] if a.o.in_place else []))
    a.check_run(report, 8)
    r, t = shot.distances(), shot.times()
    echo = 2 * first_interface(shot) * DX / shot.speed  # straight down and up again
    near = [i for i in np.argsort(r) if r[i] / shot.speed + 3 / a.o.frequency < echo][:40]
    if near and t[-1] >= 3 / a.o.frequency + r[near].max() / shot.speed:
        a.direct = error(shot.traces()[:, near], shot.analytic()[:, near], t < echo)
        a.at_most(f"direct wave of the {len(near)} nearest receivers, error", a.direct, 0.03)
    else:
        a.say("the direct wave is not compared with the formula: an echo is back before it is over, or the shot ends before")


def first_interface(shot):
    """Cells from the source to the nearest cell of the second layer, whichever way."""
    sx, sy, sz = shot.source
    nearest = np.inf
    for z, v in enumerate(common.planes_of(shot.v)):
        deep = np.where(v != shot.speed, np.arange(shot.n[0]), shot.n[0]).min(1)  # of each y
        found = deep < shot.n[0]
        if found.any():
            y = np.arange(shot.n[1])[found]
            nearest = min(nearest, np.sqrt((deep[found] - sx) ** 2.0 + (y - sy) ** 2 + (z - sz) ** 2).min())
    return float(nearest)


def waves(a, step):
    """The section of a snapshot: depth downwards."""
    return np.load(a.folder / "waves" / f"p-{step:06}.npy", mmap_mode="r")[:, a.shot.source[1] // STRIDE].T


def draw(a, path):
    shot, km = a.shot, DX / 1000
    nx, _, nz = shot.n
    section = np.array([v[shot.source[1]] for v in common.planes_of(shot.v)]).T
    traces, t, where = shot.traces(), shot.times(), np.array([z for _, _, z in shot.receivers]) * km
    whole = (0, nz * km, nx * km, 0)
    with common.picture(path, 10, 10.5, layout=[["a", "a"], ["w", "v"], ["b", "b"]], height_ratios=(1, 0.75, 2)) as (figure, axes):
        image = axes["a"].imshow(section, extent=whole, cmap="viridis", aspect="auto", interpolation="nearest")
        figure.colorbar(image, ax=axes["a"], label="velocity, m/s", ticks=LAYERS, pad=0.01)
        axes["a"].plot(where[::8], [shot.receivers[0][0] * km] * len(where[::8]), "v", color="white", markeredgecolor="black", markeredgewidth=0.5, markersize=4.5, label="receivers (every 8th)")
        axes["a"].plot(shot.source[2] * km, shot.source[0] * km, "*", color="#D55E00", markersize=12, markeredgecolor="white", label="source", linestyle="")
        axes["a"].legend(loc="lower left", labelcolor="black", ncols=2, frameon=True)
        axes["a"].set(title="Velocities in the section below the line", ylabel="depth, km")
        for letter, step in zip("wv", (a.every, 2 * a.every)):
            wave = waves(a, step)
            loud = np.percentile(abs(wave), 99.5)
            axes[letter].imshow(wave, extent=whole, cmap="gray", vmin=-loud, vmax=loud, aspect="auto")
            axes[letter].contour(section, levels=[(i + j) / 2 for i, j in zip(LAYERS, LAYERS[1:])], extent=(0, nz * km, 0, nx * km), colors="#0072B2", linewidths=0.7)
            axes[letter].set(title=f"Pressure at {step * shot.dt:.2f} s", xlim=(0, nz * km), ylim=(nx * km, 0))
        axes["w"].set_ylabel("depth, km")
        seismogram(axes["b"], shot, traces, t, where)
        axes["b"].set_xlim(0, nz * km)


def seismogram(axis, shot, traces, t, where):
    gained = traces * t[:, None] ** 1.5
    loud = np.percentile(abs(gained), 98.5)
    step = np.diff(where).min()
    even = np.arange(where[0], where[-1] + step / 2, step)  # none is recorded at the source: there stands the one beside it
    nearest = abs(even[:, None] - where).argmin(1)
    axis.imshow(gained[:, nearest], extent=(where[0], where[-1], t[-1], 0), cmap="gray", vmin=-loud, vmax=loud, aspect="auto", interpolation="bilinear")
    r = abs(where - shot.source[2] * DX / 1000) * 1000
    axis.plot(where, 1.5 / shot.frequency + r / shot.speed, "--", color="#0072B2", linewidth=1, label=f"direct wave at {shot.speed} m/s")
    axis.set_facecolor("gray")
    axis.set(title=f"Seismogram: {len(where)} traces, {shot.steps} steps of {shot.dt * 1000:.3g} ms, gain t^1.5", xlabel="along the line, km", ylabel="time, s", ylim=(t[-1], 0))
    axis.legend(loc="lower left", frameon=True)


def options():
    p = common.parser(__doc__, "seismic_shot", [300, 240, 640], "80MiB", [96, 96, 96])
    p.add_argument("-t", "--steps", type=int, default=1800)
    p.add_argument("--frequency", type=float, default=12.0, help="of the wavelet, Hz (default 12)")
    p.add_argument("--in-place", action="store_true", help="one pair of Buffers instead of two: half the room, no commits")
    return p.parse_args()


if __name__ == "__main__":
    common.run(options(), check, full, draw)
