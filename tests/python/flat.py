# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of two dimensions, and the same in numpy: a step is a function of arrays with their frames."""
from dataclasses import dataclass, field
from typing import Callable

import numpy as np

NX, NY = 53, 41


def near(a, h, dx=0, dy=0):
    """The interior of a, moved: what AT(a, dx, dy) is in all cells."""
    ny, nx = a.shape[0] - 2 * h, a.shape[1] - 2 * h
    return a[h + dy:h + dy + ny, h + dx:h + dx + nx]


def sided(a, h, sides):
    """Makes the frame of a: sides are those of x and y, fixed, mirror, odd or periodic."""
    for axis, side in ((1, sides[0]), (0, sides[1])):
        v = np.swapaxes(a, 0, axis)
        n = v.shape[0] - 2 * h
        for k in range(h):
            if side in ("mirror", "odd"):
                sign = -1 if side == "odd" else 1
                v[h - 1 - k], v[h + n + k] = sign * v[h + k], sign * v[h + n - 1 - k]
            if side == "periodic":
                v[h - 1 - k], v[h + n + k] = v[h + n - 1 - k], v[h + k]
    return a


@dataclass
class Scheme:
    name: str
    h: int
    text: str
    state: dict  # name: dtype, in the order of the arrays
    fixed: dict  # name: dtype
    step: Callable  # state, fixed, t, sides -> state
    old: dict = field(default_factory=dict)  # of leapfrog: name of the step before

    def begin(self, seed=5):
        rng = np.random.default_rng(seed)
        shape = NY + 2 * self.h, NX + 2 * self.h
        state = {f: (rng.random(shape) - 0.5).astype(t) for f, t in {**self.state, **{o: self.state[f] for f, o in self.old.items()}}.items()}
        return state, {f: (rng.random(shape) * (1 if t[0] == "f" else 100)).astype(t) for f, t in self.fixed.items()}

    def run(self, nt, sides=("fixed", "fixed"), fixed=None):
        state, c = self.begin()
        c = c if fixed is None else fixed
        states = [{f: sided(a.copy(), self.h, sides) for f, a in state.items()}]
        for t in range(nt):
            states.append(self.step({f: a.copy() for f, a in states[-1].items()}, c, t, sides))
        return states


def put(a, h, values, sides):
    near(a, h)[...] = values
    return sided(a, h, sides)


Y, X = np.mgrid[0:NY, 0:NX]


def heat(s, c, t, sides):
    u, k, m = s["u"], c["k"], c["m"]
    around = near(u, 1, -1) + near(u, 1, 1) + near(u, 1, 0, -1) + near(u, 1, 0, 1)
    new = near(u, 1) + 0.1 * near(k, 1).astype("f8") * (around - 4 * near(u, 1)) + 1e-3 * (X + 3 * Y + t) + 1e-4 * near(m, 1)
    return {"u": put(u.copy(), 1, new, sides)}


def wave(s, c, t, sides):
    p, old, v = s["p"], s["p.old"], c["v"]
    lap = (near(p, 2, -2) + near(p, 2, 2)) + (near(p, 2, 0, -2) + near(p, 2, 0, 2)) + near(p, 2, -1, 1)
    new = (2 * near(p, 2) - near(old, 2)) + near(v, 2, 1, -1) * (lap - 5 * near(p, 2))
    return {"p": put(old.copy(), 2, new, sides), "p.old": p}


def water(s, c, t, sides):
    z, u, v, d = s["z"], s["u"].copy(), s["v"].copy(), c["d"]
    put(u, 1, near(u, 1) - 0.2 * (near(z, 1, 1) - near(z, 1)), sides)
    put(v, 1, near(v, 1) - 0.2 * (near(z, 1, 0, 1) - near(z, 1)), sides)
    flux = (near(u, 1) - near(u, 1, -1)) + (near(v, 1) - near(v, 1, 0, -1))
    return {"z": put(z.copy(), 1, near(z, 1) - 0.2 * near(d, 1) * flux, sides), "u": u, "v": v}


def heun(s, c, t, sides):
    u, v = s["u"], s["v"]
    first = put(v.copy(), 1, near(u, 1) + 0.2 * (near(u, 1, -1, 0) - near(u, 1)), sides)
    second = 0.5 * (near(u, 1) + near(first, 1) + 0.2 * (near(first, 1, 0, 1) - near(first, 1)))
    return {"u": put(u.copy(), 1, second, sides), "v": first}


SCHEMES = [
    Scheme("heat", 1, """#define MX_NAME "heat"
#define MX_RADII 1, 1, 0
#define MX_STATE(F) F(u, double)
#define MX_FIXED(F) F(k, float) F(m, uint8_t)
#define MX_PARAMS(P) P(dt, 0.1)
#define MX_REDUCES(R) R(sum, MX_SUM) R(top, MX_MAX)
#include <memext/cell.h>
MX_CELL
    const double around = AT(u, -1, 0) + AT(u, 1, 0) + AT(u, 0, -1) + AT(u, 0, 1, 0);
    SET(u, AT(u, 0, 0) + PARAM(dt) * AT(k, 0, 0) * (around - 4 * AT(u, 0, 0, 0)) + 1e-3 * (double)(X + 3 * Y + T) + 1e-4 * AT(m, 0, 0));
MX_END
MX_REDUCE(sum)
    RESULT(AT(u, 0, 0) * (double)(Y + NY + NZ));
MX_END
MX_REDUCE(top)
    RESULT(AT(u, 1, 1));
MX_END
""", {"u": "f8"}, {"k": "f4", "m": "u1"}, heat),
    Scheme("wave", 2, """#define MX_NAME "wave"
#define MX_RADII 2, 2, 0
#define MX_FORM MX_LEAPFROG
#define MX_STATE(F) F(p, double)
#define MX_FIXED(F) F(v, double)
#define MX_FIXED_RADIUS 1
#include <memext/cell.h>
MX_CELL
    const double lap = (AT(p, -2, 0) + AT(p, 2, 0)) + (AT(p, 0, -2) + AT(p, 0, 2)) + AT(p, -1, 1);
    SET(p, (2 * AT(p, 0, 0) - OLD(p)) + AT(v, 1, -1) * (lap - 5 * AT(p, 0, 0)));
MX_END
""", {"p": "f8"}, {"v": "f8"}, wave, {"p": "p.old"}),
    Scheme("water", 1, """#define MX_NAME "water"
#define MX_RADII 1, 1, 0
#define MX_FORM MX_STAGGERED
#define MX_STATE(F) F(z, double)
#define MX_PARTNER(F) F(u, double) F(v, double)
#define MX_FIXED(F) F(d, double)
#include <memext/cell.h>
MX_CELL_B
    SET(u, OLD(u) - 0.2 * (AT(z, 1, 0) - AT(z, 0, 0)));
    SET(v, OLD(v) - 0.2 * (AT(z, 0, 1) - AT(z, 0, 0)));
MX_END
MX_CELL_A
    const double flux = (AT(u, 0, 0) - AT(u, -1, 0)) + (AT(v, 0, 0) - AT(v, 0, -1));
    SET(z, OLD(z) - 0.2 * AT(d, 0, 0) * flux);
MX_END
""", {"z": "f8", "u": "f8", "v": "f8"}, {"d": "f8"}, water),
    Scheme("heun", 1, """#define MX_NAME "heun"
#define MX_RADII 1, 1, 0
#define MX_STAGES 2
#define MX_STATE(F) F(u, double) F(v, double)
#include <memext/cell.h>
MX_CELL_1
    SET(v, AT(u, 0, 0) + 0.2 * (AT(u, -1, 0) - AT(u, 0, 0)));
MX_END
MX_CELL_2
    SET(u, 0.5 * (AT(u, 0, 0) + AT(v, 0, 0) + 0.2 * (AT(v, 0, 1) - AT(v, 0, 0))));
MX_END
""", {"u": "f8", "v": "f8"}, {}, heun),
]
NAMES = [s.name for s in SCHEMES]
