#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes tests/unit/after_golden.inc: what small systems with sides, points and norms come to by the Python model.

usage: make_after_golden.py MODELS_DIRECTORY > tests/unit/after_golden.inc
MODELS_DIRECTORY holds pair_systems.py, a model that is not part of this repository: the tests need only what it gave. Numbers,
cells and points are those of test_after.c (state, real, pick, new_value,
make_points); a row is what the system is, and a hash over all cells, traces and norms."""
import struct
import sys

import numpy as np

sys.path.insert(0, sys.argv[1])
import pair_systems as model

STEPS, POINTS, WORDS = 5, 24, 2**64 - 1
SIDES = ("fixed", "mirror", "periodic")


class Random:
    def __init__(self, state):
        self.state = state

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & WORDS
        return self.state >> 33

    def pick(self, a, b):
        return a + self.next() % (b - a + 1)

    def real(self):
        return self.next() / 2147483648.0 - 0.5


def new_value(form, fields, h, f, at, old, fixed, z, t, shape):
    """at(f, dx, dy, dz): arrays of f64 over a plane, or more."""
    a = lambda f, *d: at(f % fields, *d)
    g = f + 1
    zz, yy, xx = np.broadcast_arrays(z, *np.meshgrid(np.arange(shape[0]), np.arange(shape[1]), indexing="ij"))
    v = (0.4 * a(f, 0, 0, 0) + 0.1 * (a(f, -h, 0, 0) + a(f, h, 0, 0)) + 0.06 * (a(g, 0, -h, 0) - a(g, 0, h, 0)) + 0.07 * (a(f, 0, 0, -h) + a(f, 0, 0, h))
         + 0.05 * a(g, h, -h, h) + 0.04 * a(f, -1, 1, -1) + 0.03 * fixed + 1e-4 * (xx + 2 * yy + 3 * zz + t).astype("f8"))
    return v if form == "jacobi" else v - 0.5 * old


def points(rnd, form, fields, n):
    sources, probes, xyz = [], [], [0, 0, 0]
    for i in range(POINTS):
        a = rnd.pick(0, 1) if form == "staggered" else 0
        f = rnd.pick(0, fields[a] - 1)
        if i % 3 != 2:
            xyz = [rnd.pick(0, n[2 - d] - 1) for d in range(3)]
        length = rnd.pick(0, STEPS + 1)
        amplitude = [rnd.real() for _ in range(STEPS + 1)]
        which = a if form == "staggered" else None
        sources.append((which, f, *xyz, amplitude[:length] + [0.0] * (STEPS + 1 - length)))
        if i % 2:
            xyz[0] = rnd.pick(0, n[2] - 1)
        probes.append((which, f, *xyz))
    return sources, probes


def case(number, rnd):
    form, h = model.FORMS[number % 3], rnd.pick(1, 3)
    n = tuple(rnd.pick(h, most) for most in (7, 8, 21))
    fields = [rnd.pick(1, 3)] * 2 if form != "staggered" else [rnd.pick(1, 3), rnd.pick(1, 3)]
    nt, narrow, seed = rnd.pick(1, STEPS), rnd.pick(0, 1), rnd.pick(1, 10**9)
    sides = [(2, 2) if rnd.pick(0, 2) == 0 else (rnd.pick(0, 1), rnd.pick(0, 1)) for _ in range(3)]
    dtype = "f4" if narrow else "f8"

    numbers = Random(seed)
    sources, probes = points(numbers, form, fields, n)
    shape = tuple(x + 2 * h for x in n)
    arrays = [np.array([numbers.real() for _ in range(f * int(np.prod(shape)))]).reshape(f, *shape).astype(dtype) for f in fields]
    fixed = np.array([numbers.real() for _ in range(int(np.prod(shape)))]).reshape(1, *shape).astype("f4").astype("f8")

    def cell(to):
        def compute(at, old, c, z, t):
            wide = lambda f, dx, dy, dz: at(f, dx, dy, dz).astype("f8")
            return [new_value(form, fields[1 - to], h, f, wide, old(f).astype("f8"), c(0), z, t, n[1:]) for f in range(fields[to])]
        return compute

    s = model.System(form, h, n, cell(1), cell(0))
    words = dict(zip("xyz", [tuple(SIDES[k] for k in side) for side in sides]))
    state = model.start(s, words, arrays[0], None if form == "jacobi" else arrays[1])
    inner = lambda a, f, dx, dy, dz: a[f, h + dz : h + dz + n[0], h + dy : h + dy + n[1], h + dx : h + dx + n[2]].astype("f8")
    traces, norms, a_step = [], [], s.levels(1)
    for step in range(nt):
        before = state[0 if form == "staggered" else step % 2].copy()
        for level in range(step * a_step, (step + 1) * a_step):
            for z in range(h, n[0] + h):
                model.do_plane(s, words, sources, state, fixed, level, z)
        now = 1 - level % 2
        for which, f, x, y, z in probes:
            traces.append(float(state[now if which is None else which][f, z + h, y + h, x + h]))
        read = state[1 - now]
        k = read.shape[0]
        flux = fixed[0, h : h + n[0], h : h + n[1], h : h + n[2]] * (inner(read, 0, h, 0, 0) - inner(read, 0, 0, 0, 0)) + inner(read, 1 % k, 0, -h, 1) + 1e-3 * step
        norms += [*model.change(state[now], before, h), model.ordered_sum(flux)]

    digest = 0xCBF29CE484222325
    every = [np.concatenate([state[0].astype("f8").ravel(), state[1].astype("f8").ravel()]).tobytes(), struct.pack(f"<{len(traces) + len(norms)}d", *traces, *norms)]
    for byte in b"".join(every):
        digest = ((digest ^ byte) * 0x100000001B3) & WORDS
    flat = ", ".join("{" + ", ".join(map(str, side)) + "}" for side in sides)
    return f"{{{number % 3}, {h}, {{{n[2]}, {n[1]}, {n[0]}}}, {{{fields[0]}, {fields[1]}}}, {nt}, {narrow}, {seed}, {{{flat}}}, UINT64_C({digest:#018x})}},"


rnd = Random(5)
print("/* SPDX-License-Identifier: BSD-3-Clause */\n/* made by make_after_golden.py */")
for number in range(36):
    print(case(number, rnd))
