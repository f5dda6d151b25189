# SPDX-License-Identifier: BSD-3-Clause
"""Random problems of a random kernel: grid, sides of every field, read-only fields and profiles, parameters, point sources; their files, and their states by numpy."""
import random

import numpy as np
from drawn_cells import Here, plus

MODES = {"mirror": "symmetric", "odd": "symmetric", "mirror-node": "reflect", "odd-node": "reflect", "edge": "edge", "periodic": "wrap"}
FRAMES = {"edge": "edge", "mirror": "symmetric", "periodic": "wrap"}  # that --frame makes
UNSIGNED = ("u1", "u2", "u4", "u8")


def framed(a, h, kinds):
    """The array with the frame that its sides make: kinds[axis] are those of the lower and the upper end, axis 0 is x."""
    a, dims = a.copy(), a.ndim
    inner = a[(slice(h, -h),) * dims]
    for axis in range(dims):
        for end in (0, 1):
            if kinds[axis][end] == "odd-node":
                inner[(slice(None),) * (dims - 1 - axis) + (-end,)] = 0
    for axis in range(dims):
        at = dims - 1 - axis
        middle = tuple(slice(h, -h) if i == at else slice(None) for i in range(dims))
        for end in (0, 1):
            if kinds[axis][end] == "fixed":
                continue
            padded = np.pad(a[middle], [(h, h) if i == at else (0, 0) for i in range(dims)], mode=MODES[kinds[axis][end]])
            there = tuple((slice(-h, None) if end else slice(h)) if i == at else slice(None) for i in range(dims))
            a[there] = np.negative(padded[there]) if kinds[axis][end].startswith("odd") else padded[there]
    return a


def values_of(rng, dtype, shape):
    if dtype[0] == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


class Problem:
    """`words` are those of the command without steps, plan and place; states[t] has all fields after t steps, traces[t] and totals[t] what probes and reductions
    say of the step that ends there."""

    def __init__(self, folder, kernel, seed, most_steps=9):
        self.folder, self.kernel, self.seed = folder, kernel, seed
        self.r, self.rng = random.Random(f"problem {seed}"), np.random.default_rng(self.hash_of(seed))
        self.dims, self.steps = 2 if kernel.flat else 3, self.r.randint(2, most_steps)
        self.words, self.counted = [], []
        self.draw_grid()
        self.draw_sides()
        self.draw_state()
        self.draw_fixed()
        self.draw_params()
        self.draw_points()
        self.states, self.traces, self.totals = [self.begin], [None], [None]
        for _ in range(self.steps):
            self.advance()
        self.finite = all(np.isfinite(a).all() for s in self.states for a in s.values() if a.dtype.kind == "f")

    @staticmethod
    def hash_of(seed):
        return int.from_bytes(str(seed).encode(), "little") % 2**63

    def say(self, *words):
        self.words += [str(w) for w in words]

    def save(self, name, array):
        path = self.folder / f"{name}.npy"
        np.save(path, array)
        return path

    # ---- what is drawn

    def draw_grid(self):
        r, h = self.r, self.kernel.h
        least = h + 1 if r.random() < 0.88 else 1  # of the outer axes
        self.n = [r.randint(1 if r.random() < 0.15 else least, 40)] + [r.randint(least, least + (20 if self.dims == 3 else 45)) for _ in range(self.dims - 1)]
        self.shape = tuple(reversed(self.n))
        self.say("-n", *self.n)
        if least == 1:
            self.counted.append("a grid of any small size")

    def draw_sides(self):
        """kinds[field][axis] = [lower, upper]"""
        r, names = self.r, [*self.kernel.state, *self.kernel.partner]
        types = {**self.kernel.state, **self.kernel.partner}
        self.kinds = {f: [] for f in names}
        quiet = r.random() < 0.3
        for axis in range(self.dims):
            n, h, likely = self.n[axis], self.kernel.h, r.random()
            allowed = ["fixed", "edge"] + (["mirror", "odd"] if n >= h else []) + (["mirror-node", "odd-node"] if n > h else [])
            all_alike = ["periodic"] * 2 if likely < 0.15 and n >= h else ["fixed"] * 2 if likely < 0.5 or quiet else [r.choice(allowed), r.choice(allowed)]
            said = []
            for f in names:
                own = all_alike if all_alike[0] == "periodic" or quiet or r.random() < 0.6 else [r.choice(allowed), r.choice(allowed)]
                if types[f] in UNSIGNED:
                    own = [k.replace("odd", "mirror") for k in own]
                self.kinds[f].append(own)
                if own != all_alike:
                    said += ["--side", f"{f}:{'xyz'[axis]}={own[0] if own[0] == own[1] else ','.join(own)}"]
                self.counted += [f"side {k}" for k in own] + (["a side of one field"] if own != all_alike else [])
            if all_alike != ["fixed"] * 2:
                self.say("--side", f"{'xyz'[axis]}={','.join(all_alike) if r.random() < 0.5 or all_alike[0] != all_alike[1] else all_alike[0]}".replace("periodic,periodic", "periodic"))
            self.say(*said)

    def periodic(self, axis):
        return next(iter(self.kinds.values()))[axis][0] == "periodic"

    def kinds_of(self, f):
        return self.kinds[self.kernel.old.get(f, f)]

    def all_fixed(self):
        return all(kind == "fixed" for ends in self.kinds.values() for pair in ends for kind in pair)

    def made_frame(self, interior, kind):
        """As --frame makes it."""
        if kind in FRAMES:
            return np.pad(interior, self.kernel.h, mode=FRAMES[kind])
        return np.pad(interior, self.kernel.h, constant_values=np.array(float(kind)).astype(interior.dtype))

    def draw_state(self):
        r, h = self.r, self.kernel.h
        full = tuple(n + 2 * h for n in self.shape)
        bare = r.random() < 0.2 and self.kernel.form != "leapfrog"
        self.begin = {}
        for f, t in self.kernel.all_state.items():
            a = values_of(self.rng, t, full)
            if bare:
                kind = r.choice(["edge", "0", "1", *(["mirror", "periodic"] if self.all_fixed() else [])])
                a = values_of(self.rng, t, self.shape)
                self.say("--frame", f"{f}={kind}", "--input", f"{f}={self.save(f, a)}")
                a = self.made_frame(a, kind)
                self.counted.append(f"state without a frame, {kind if kind in FRAMES else 'a number'}")
            else:
                self.say("--input", f"{f}={self.save(f, a)}")
            self.begin[f] = framed(a, h, self.kinds_of(f))

    def draw_fixed(self):
        r, h, hc = self.r, self.kernel.h, self.kernel.hc
        around = [["periodic" if self.periodic(axis) else "fixed"] * 2 for axis in range(self.dims)]
        self.c = {}
        for f, t in self.kernel.fixed.items():
            has_frame = r.random() < 0.5
            extents = tuple(n + 2 * h * has_frame for n in self.shape)
            axes = [i for i in range(self.dims) if r.random() < 0.5] if r.random() < 0.7 else []
            given = values_of(self.rng, t, tuple(1 if i in axes else n for i, n in enumerate(extents)))
            self.say("--field", f"{f}={self.save(f, given)}")
            a, names = np.ascontiguousarray(np.broadcast_to(given, extents)), "".join("zyx"[3 - self.dims + i] for i in axes)
            if not has_frame:
                kind = r.choice(["edge", "0", "2", *(["mirror", "periodic"] if self.all_fixed() else [])]) if hc else "0"
                self.say(*(["--frame", f"{f}={kind}"] if hc else []))
                a = self.made_frame(a, kind)
            self.c[f] = framed(a, h, around)
            self.counted.append(f"profile alike along {names}, {'with' if has_frame else 'without'} its frame" if names else f"whole read-only field {'with' if has_frame else 'without'} its frame")
        if self.kernel.fixed and r.random() < 0.15:
            self.say("--field-copy")
            self.counted.append("--field-copy")

    def draw_params(self):
        """params[name][t][level]"""
        r, levels = self.r, self.kernel.levels
        self.params = {}
        for name, default in self.kernel.defaults.items():
            kind = r.random()
            value = default if kind < 0.3 else round(r.uniform(-1, 1), 3)
            table = np.full((self.steps, levels), value)
            if kind >= 0.6:
                each = r.random() < 0.5 and levels > 1
                series = self.rng.uniform(-1, 1, (self.steps + r.randint(0, 3), *((levels,) if each else ()))).astype(r.choice(["f8", "f4"]))
                self.say("--param", f"{name}={self.save(f'series-{name}', series)}")
                table = np.broadcast_to(series[:self.steps].reshape(self.steps, -1), (self.steps, levels)).astype("f8")
                self.counted.append("series of a parameter, a value for each level" if each else "series of a parameter")
            elif kind >= 0.3:
                self.say("--param", f"{name}={value}")
            self.params[name] = table

    def draw_points(self):
        r, fields = self.r, {**self.kernel.state, **self.kernel.partner}
        self.sources, self.probes, self.check = [], [], 0
        for i in range(r.randint(1, 3) if r.random() < 0.35 else 0):
            f = r.choice(list(fields))
            cell = [r.randrange(n) for n in self.n] if i == 0 or r.random() < 0.7 else self.sources[-1][1]
            wave = (self.rng.uniform(-1, 1, r.randint(1, self.steps + 2)) * (1 if fields[f][0] == "f" else 90)).astype(r.choice(["f8", "f4"]))
            self.sources.append((f, cell, wave))
            self.say("--source", f"{f}@{','.join(map(str, cell))}={self.save(f'wave-{i}', wave)}")
            self.counted.append("point source")
        if r.random() < 0.35:
            self.probes = [(r.choice(list(fields)), [r.randrange(n) for n in self.n]) for _ in range(r.randint(1, 4))]
            (self.folder / "probes").write_text("".join(f"{f} {' '.join(map(str, cell))}\n" for f, cell in self.probes))
            self.counted.append("probes")
        if r.random() < 0.5 and (self.kernel.reductions or self.kernel.stages == 1):
            self.check = r.randint(1, self.steps)
            self.counted.append("checks of reductions" if self.kernel.reductions else "checks of change")

    def points(self):
        """Words of sources and probes, which a run that goes on is given again."""
        at = [i for i, w in enumerate(self.words) if w == "--source"]
        said = [w for i in at for w in self.words[i:i + 2]]
        return said + (["--probes", str(self.folder / "probes"), "--probes-out", str(self.folder / "traces.npy")] if self.probes else [])

    # ---- what comes of it

    def level(self, i, t, read, replaced):
        """Level i of a step: {field: array with its frame} of those that it computes."""
        kernel, h = self.kernel, self.kernel.h
        here = Here(kernel, {**read, **self.c}, replaced, {name: table[t][i] for name, table in self.params.items()}, t)
        new = {f: a.copy() for f, a in replaced.items()}
        inner = (slice(h, -h),) * self.dims
        for f, values in kernel.cells[i].run(here).items():
            new[f][inner] = values.astype(new[f].dtype)
        if kernel.form == "staggered" or i == kernel.levels - 1:
            for f, cell, wave in self.sources:
                if f in new and t < len(wave):
                    at = tuple(c + h for c in reversed(cell))
                    new[f][at] = plus(new[f][at], float(wave[t]), new[f].dtype)
        return {f: framed(a, h, self.kinds_of(f)) for f, a in new.items()}, here

    def total(self, here):
        return {one.name: one.total(here) for one in self.kernel.reductions}

    def advance(self):
        kernel, now, t = self.kernel, self.states[-1], len(self.states) - 1
        a = {f: now[f] for f in kernel.state}
        if kernel.form == "staggered":
            b, _ = self.level(0, t, a, {f: now[f] for f in kernel.partner})
            after, here = self.level(1, t, b, a)
            new, total = {**after, **b}, self.total(here)
        elif kernel.form == "leapfrog":
            new, here = self.level(0, t, a, {f: now[o] for o, f in kernel.old.items()})
            new, total = {**new, **{o: now[f] for o, f in kernel.old.items()}}, self.total(here)
        else:
            new = a
            for i in range(kernel.stages):
                new, here = self.level(i, t, new, new)
                total = self.total(here) if i == 0 else total
        self.states.append(new)
        h = kernel.h
        self.traces.append([float(new[f][tuple(c + h for c in reversed(cell))]) for f, cell in self.probes])
        self.totals.append(total)
