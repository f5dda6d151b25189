# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of several stages in C, and the same schemes in numpy, written by hand: fields, sides, point sources, probes, parameters over time."""
import numpy as np

N = (19, 21, 26)  # interior x, y, z
SHAPE = N[::-1]

RK3 = """#define MX_NAME "rk3"
#define MX_RADIUS 1
#define MX_STAGES 3
#define MX_STATE(F) F(u, double) F(q, double)
#define MX_PARAMS(P) P(dt, 0.4) P(amp, 0.125)
#define MX_REDUCES(R) R(mass, MX_SUM) R(top, MX_MAX)
#include <memext/cell.h>
#define D(x, y, z) (AT(u, 0, 0, 0) - AT(u, -(x), -(y), -(z)))
#define STAGE(a, b) \\
    double q = (a) * AT(q, 0, 0, 0) + PARAM(dt) * (PARAM(amp) - (D(1, 0, 0) + 0.5 * D(0, 1, 0) + 0.25 * D(0, 0, 1))); \\
    SET(q, q); \\
    SET(u, AT(u, 0, 0, 0) + (b) * q);
MX_CELL_1
    STAGE(0.0, 1.0 / 3)
MX_END
MX_CELL_2
    STAGE(-5.0 / 9, 15.0 / 16)
MX_END
MX_CELL_3
    STAGE(-153.0 / 128, 8.0 / 15)
MX_END
MX_REDUCE(mass)
    RESULT(AT(u, 0, 0, 0) + PARAM(amp) * T);
MX_END
MX_REDUCE(top)
    RESULT(AT(u, 0, 0, 0) - AT(u, 1, 0, 0));
MX_END
"""

HEUN = """#define MX_NAME "heun"
#define MX_RADIUS 1
#define MX_STAGES 2
#define MX_STATE(F) F(v, float) F(u, double)
#define MX_PARAMS(P) P(dt, 0.25) P(amp, 0.5)
#include <memext/cell.h>
#define RATE(f) (PARAM(amp) * (double)(AT(f, 1, 0, 0) + AT(f, 0, -1, 0) - AT(f, 0, 0, 1)) - (double)AT(f, 0, 0, 0))
MX_CELL_1
    SET(v, AT(u, 0, 0, 0) + PARAM(dt) * RATE(u));
MX_END
MX_CELL_2
    SET(u, 0.5 * (AT(u, 0, 0, 0) + (double)AT(v, 0, 0, 0) + PARAM(dt) * RATE(v)));
MX_END
"""

STRANG = """#define MX_NAME "strang"
#define MX_RADIUS 2
#define MX_FIXED_RADIUS 1
#define MX_STAGES 3
#define MX_REAL float
#define MX_STATE(F) F(u, float)
#define MX_FIXED(F) F(k, float)
#define MX_PARAMS(P) P(dt, 0.125) P(amp, 0.5)
#include <memext/cell.h>
#define REACTION \\
    float u = AT(u, 0, 0, 0); \\
    SET(u, u + 0.5f * PARAM(dt) * u * (PARAM(amp) - u));
MX_CELL_1
    REACTION
MX_END
MX_CELL_2
    float near = (AT(u, -2, 0, 0) + AT(u, 2, 0, 0)) + (AT(u, 0, -1, 0) + AT(u, 0, 1, 0)) + (AT(u, 0, 0, -2) + AT(u, 0, 0, 2));
    float k = 0.5f * (AT(k, 0, 0, 0) + AT(k, 1, 0, 0));
    SET(u, AT(u, 0, 0, 0) + PARAM(dt) * k * (near - 6.0f * AT(u, 0, 0, 0)) + 0.0001 * (double)(X + T));
MX_END
MX_CELL_3
    REACTION
MX_END
"""


class At:
    """at(field, dx, dy, dz): the interior, moved."""

    def __init__(self, arrays, h):
        self.arrays, self.h = arrays, h

    def __call__(self, name, dx=0, dy=0, dz=0):
        a, h = self.arrays[name], self.h
        return a[tuple(slice(h + d, n - h + d) for n, d in zip(a.shape, (dz, dy, dx)))]


def rk3(a, b):
    def stage(at, p, t):
        def d(x, y, z):
            return at("u") - at("u", -x, -y, -z)

        q = a * at("q") + p["dt"] * (p["amp"] - (d(1, 0, 0) + 0.5 * d(0, 1, 0) + 0.25 * d(0, 0, 1)))
        return {"q": q, "u": at("u") + b * q}

    return stage


def heun_rate(at, p, f):
    return p["amp"] * (at(f, 1, 0, 0) + at(f, 0, -1, 0) - at(f, 0, 0, 1)).astype("f8") - at(f).astype("f8")


def predict(at, p, t):
    return {"v": at("u") + p["dt"] * heun_rate(at, p, "u")}


def correct(at, p, t):
    return {"u": 0.5 * (at("u") + at("v").astype("f8") + p["dt"] * heun_rate(at, p, "v"))}


F = np.float32


def react(at, p, t):
    u = at("u")
    return {"u": u + F(0.5) * F(p["dt"]) * u * (F(p["amp"]) - u)}


def diffuse(at, p, t):
    near = (at("u", -2) + at("u", 2)) + (at("u", 0, -1) + at("u", 0, 1)) + (at("u", 0, 0, -2) + at("u", 0, 0, 2))
    k = F(0.5) * (at("k") + at("k", 1))
    x = np.arange(at("u").shape[2])
    return {"u": at("u") + F(p["dt"]) * k * (near - F(6) * at("u")) + 0.0001 * (x + t)}


class Scheme:
    def __init__(self, name, text, h, state, fixed, params, stages):
        self.name, self.text, self.h, self.state, self.fixed, self.params, self.stages = name, text, h, state, fixed, params, stages
        self.n = len(stages)
        shape = tuple(n + 2 * h for n in SHAPE)
        rng = np.random.default_rng(len(text))
        self.given = {f: rng.random(shape).astype(t) for f, t in state.items()}
        self.c = {f: rng.random(shape).astype(t) for f, t in fixed.items()}

    def run(self, nt, params=(), periodic=False, source=None, probes=()):
        """The fields after each of nt steps, from 0 on, and the values of probes after each step. source: (field, (x, y, z), amplitudes)."""
        h, values = self.h, {**self.params, **dict(params)}
        inner = (slice(h, -h),) * 3

        def framed(a):
            return np.pad(a[inner], h, mode="wrap") if periodic else a

        fields = {f: framed(a.copy()) for f, a in self.given.items()}
        c = {f: framed(a) for f, a in self.c.items()}
        states, traces = [fields], []
        for t in range(nt):
            for i, stage in enumerate(self.stages):
                p = {n: v if np.ndim(v) == 0 else v[t] if np.ndim(v) == 1 else v[t][i] for n, v in values.items()}
                new = stage(At({**fields, **c}, h), p, t)
                fields = {f: a.copy() for f, a in fields.items()}
                for f, a in new.items():
                    fields[f][inner] = a.astype(fields[f].dtype)
                if i == self.n - 1 and source is not None:
                    field, (x, y, z), amplitudes = source
                    fields[field][z + h, y + h, x + h] += amplitudes[t]
                fields = {f: framed(a) for f, a in fields.items()}
            traces.append([float(fields[f][z + h, y + h, x + h]) for f, x, y, z in probes])
            states.append(fields)
        return states, np.array(traces)


SCHEMES = {s.name: s for s in (
    Scheme("rk3", RK3, 1, {"u": "f8", "q": "f8"}, {}, {"dt": 0.4, "amp": 0.125}, [rk3(0.0, 1 / 3), rk3(-5 / 9, 15 / 16), rk3(-153 / 128, 8 / 15)]),
    Scheme("heun", HEUN, 1, {"v": "f4", "u": "f8"}, {}, {"dt": 0.25, "amp": 0.5}, [predict, correct]),
    Scheme("strang", STRANG, 2, {"u": "f4"}, {"k": "f4"}, {"dt": 0.125, "amp": 0.5}, [react, diffuse, react]),
)}


def plans(s):
    """(backend, plan line) for a scheme: every algorithm, engines, one and several steps in a sweep."""
    n, (_, ny, nz) = s.n, N
    return [("uring", f"stream by={ny} bt={2 * n} slab=4"), ("aio", f"stream by=9 bt={n} slab=2"), ("uring", f"stream by=9 bt={n} slab=2 faces=side-file"),
            ("uring", f"stream by={ny} bt={3 * n} engine=iblock"), ("mmap", f"stream by={ny} bt={n}"), ("uring", f"redundant by=9 bz=7 bt={n}"),
            ("aio", f"redundant by={ny} bz={nz} bt={2 * n} engine=tiled"), ("uring", f"skewed by={ny} bz=16 bt={n}"), ("aio", f"skewed-y by=16 bz=17 bt={n}"),
            ("uring", f"skewed-min by={ny} bz=16 bt={n}"), ("mmap", f"direct by={ny} bz={nz} bt={n} engine=iblock"),
            ("dram", f"direct by={ny} bz={nz} bt={2 * n} engine=tiled"), ("mmap", f"direct-skewed by=16 bz=16 bt={n}")]
