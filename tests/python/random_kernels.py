# SPDX-License-Identifier: BSD-3-Clause
"""Random kernels in Python, with tables, closures, helpers, objects, conditions and functions of numpy outside; and what they compute, cell by cell, by
Python itself: the function is called with numbers. text(seed) is a module that defines cell(), a function of the fields u, v, c and x, y, z, t, nx, and change(),
which changes all that cell() uses. A flat one is of a grid of two dimensions."""
import random
import re

import numpy as np

OUTSIDE = """
import functools, itertools, math, operator, statistics, types
import numpy as np, memext as mx
A, B, N = {a!r}, {b!r}, {n}
LIST, NESTED, TUPLE = [{l0!r}, {l1!r}, {l2!r}], [[{l1!r}, 2], {{"k": {l0!r}}}], ({l2!r}, 0.5, -0.25)
TABLE = np.array([{l0!r}, {l1!r}, {l2!r}, {a!r}])
WHOLE = np.array([3, 1, 2, 5], "i2")
BY_NAME = {{"a": {a!r}, "b": {b!r}, 3: 0.125}}
class Model:
    shared = {b!r}
    def __init__(self, gain): self.gain, self.inner = gain, types.SimpleNamespace(offsets=[(1, 0, 0), (0, -1, 0), (0, 0, 1)], beta={l1!r})
    def scaled(self, value, by=1.0): return value * self.gain * by + self.shared
    def total(self, field): return sum(field[o] for o in self.inner.offsets)
MODEL = Model({l2!r})
def weights(n, base=A):
    out = []
    for k in range(n):
        if k % 3 == 2:
            continue
        out.append(base / (k + 1))
    while len(out) < 2:
        out.append(TABLE[1])
    return out
def blend(a, b, *more, by=0.5):
    total = by * a + (1 - by) * b
    for w, m in zip(itertools.cycle(LIST) if False else LIST * 2, more):
        total += w * m
    return total
def clamp(value, low=-3.0, high=3.0): return max(low, min(high, value))
def pick(value):
    if value > B:
        result = value * A
    elif value < -A:
        result = value - B
    else:
        result = abs(value) + TUPLE[1]
    return result
def filled(n):
    made = np.zeros(n)
    made[0], made[1:] = A, B
    made *= 0.5
    return made
def twice(function):
    @functools.wraps(function)
    def inner(*args, **named): return 2 * function(*args, **named)
    return inner
@twice
def shifted(value): return value - LIST[1]
def make(local, table):
    def inner(value): return value * local + table[N % len(table)]
    return inner
CLOSED = make({l0!r}, [0.25, {l1!r}, 0.5])
PART = functools.partial(blend, by=0.25)
half = lambda value, by=0.5: value * by
"""

CHANGE = """
def change():
    global A, B, N, LIST, TUPLE, TABLE, CLOSED, PART, pick, weights
    LIST[:] = [99.0] * 3
    NESTED[0][0] = NESTED[1]["k"] = 99.0
    TABLE[:] = 99.0
    WHOLE[:] = 99
    BY_NAME.update(a=99.0, b=99.0)
    MODEL.gain, MODEL.inner.beta, MODEL.inner.offsets, Model.shared = 99.0, 99.0, [(0, 0, 0)], 99.0
    CLOSED.__closure__[0].cell_contents = 99.0
    A = B = 99.0
    N, TUPLE, TABLE, CLOSED, PART, pick, weights = 9, (99.0,) * 3, [99.0] * 4, abs, max, abs, list
"""


class Maker:
    """Draws one function. Values stay within a few units: a number too large would hide the others."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.names, self.lines, self.n = ["u", "v", "c"], [], 0

    def number(self):
        r = self.r
        return r.choice(["A", "B", "0.5", "2", "LIST[1]", "TUPLE[-1]", "TABLE[2]", "NESTED[0][0]", "NESTED[1]['k']", "BY_NAME['a']", "BY_NAME[3]", "BY_NAME[f'{'b'}']".replace("'b'", '"b"'),
                         "MODEL.gain", "MODEL.inner.beta", "Model.shared", "weights(4)[1]", "sum(weights(3))", "float(np.cumsum(TABLE)[1]) / 4", "len(LIST) / 4", "max(LIST)",
                         "np.linspace(0, 1, 5)[3]", "filled(3)[1]", "math.comb(4, 2) / 8", "WHOLE[1] / 4", "getattr(MODEL, 'gain')", "TABLE[1:3].sum() / 2", "sorted({3, 1, 2})[0] / 2",
                         "functools.reduce(operator.mul, TUPLE)", "[w for w in LIST if w < 9][0]", "sum(a * b for a, b in itertools.product((1, 2), (0.125, 0.25)))"])

    def whole(self):
        return self.r.choice(["x", "y", "z", "t", "x + 2 * y", "z - t", "nx - x", "x * y", "x // 3", "(x - 5) // 2", "(y - 3) % 4", "x % N", "(x ^ z) & 3", "int(WHOLE[2])", "(x << 1) | 1"])

    def leaf(self):
        r = self.r
        kind = r.random()
        if kind < 0.45:
            d = [r.randint(-1, 1) for _ in range(3)]
            return f"{r.choice('uv')}[{d[0]}, {d[1]}, {d[2]}]"
        if kind < 0.65:
            return r.choice(self.names)
        return self.number() if kind < 0.85 else f"({self.whole()}) / 8"

    def test(self, deep):
        r = self.r
        a, b = self.value(deep - 1), self.value(deep - 1)
        return r.choice([f"{a} < {b}", f"{a} >= {self.number()}", f"{self.whole()} % 2 == 0", f"-1 < {a} <= {b}", f"not {a} > {b}", f"{a} > {b} and {self.whole()} > 2",
                         f"{a} < {b} or c > 0.5", f"({a} > 0) & ({b} > 0)", f"({a} > {b}) == (c > 0.25)", "A > B", "N % 2 and u > v", f"any([{a} > {b}, c > 0.5])", f"all(({a} > {b}, {a} < 1))",
                         f"np.isfinite({a})", f"np.signbit({a} or 1.0)", f"np.argmax([{a}, {b}, c]) == {r.randint(0, 2)}"])

    def value(self, deep):
        r = self.r
        if deep <= 0 or r.random() < 0.15:
            return self.leaf()
        def v():
            return self.value(deep - 1)
        if r.random() < 0.35:
            return self.called(v)
        kind = r.randrange(20)
        if kind < 6:
            return f"({v()} {r.choice('+-*')} {v()})"
        return [lambda: f"{v()} / (2 + abs({v()}))", lambda: f"max({v()}, {v()}, {self.number()})", lambda: f"min({v()}, {v()})", lambda: f"abs({v()})",
                lambda: f"np.sqrt(abs({v()}))", lambda: f"mx.where({self.test(1)}, {v()}, {v()})", lambda: f"({v()} if {self.test(1)} else {v()})", lambda: f"pick({v()})",
                lambda: f"blend({v()}, {v()}, {v()})", lambda: f"PART({v()}, {v()})", lambda: f"MODEL.scaled({v()}, by={self.number()})", lambda: f"CLOSED({v()})",
                lambda: f"shifted({v()})", lambda: f"({v()} {r.choice(['or', 'and'])} {v()})"][kind - 6]()

    def called(self, v):
        """Of numpy, math and Python; where they may give either zero, nothing asks for its sign."""
        r = self.r
        return r.choice([
            lambda: f"np.clip({v()}, {r.choice(['-1.5', 'LIST[0] - 2', v()])}, {self.number()})", lambda: f"np.sign({v()})", lambda: f"np.square(clamp({v()}))",
            lambda: f"{r.choice(['np.rint', 'np.trunc', 'np.fix', 'round', 'np.round', 'np.floor', 'np.ceil'])}({v()})", lambda: f"np.round({v()}, 2)",
            lambda: f"({v()} % {self.nonzero(v)})", lambda: f"({v()} // {self.nonzero(v)})", lambda: f"divmod({v()}, {self.nonzero(v)})[{r.randint(0, 1)}]",
            lambda: f"{r.choice(['np.fmod', 'math.fmod', 'np.mod', 'np.floor_divide'])}({v()}, {self.nonzero(v)})", lambda: f"np.copysign({v()}, {v()} or 1.0)",
            lambda: f"{r.choice(['np.fmax', 'np.fmin', 'np.heaviside'])}({v()}, {v()})", lambda: f"np.reciprocal(2.0 + abs({v()}))",
            lambda: f"np.select([bool({self.test(1)}), bool({self.test(1)})], [{v()}, {v()}], {v()})",
            lambda: f"{r.choice(['np.min', 'np.amax', 'np.sum', 'np.mean', 'np.prod', 'math.prod'])}([{v()}, {self.number()}, {v()}])", lambda: f"np.dot([{v()}, {v()}], TABLE[:2])",
            lambda: f"{r.choice(['np.median', 'statistics.median'])}([{', '.join(v() for _ in range(r.randint(2, 5)))}])",
            lambda: f"{r.choice(['sorted', 'np.sort'])}([{v()}, {v()}, {v()}])[{r.randint(0, 2)}]", lambda: f"sorted(({v()}, {v()}), reverse=True)[{r.randint(0, 1)}]",
            lambda: f"[{v()}, {v()}, {v()}][np.{r.choice(['argmin', 'argmax'])}([{v()}, {v()}, {v()}])]", lambda: f"TABLE[({self.whole()}) % 4]", lambda: f"LIST[{r.choice('xyz')} % 3 - 3]",
            lambda: f"WHOLE[({self.whole()}) % 4] / 4", lambda: f"[{v()}, {v()}][{r.choice('xyzt')} % 2]", lambda: f"(lambda a, b=A: a * b - {v()})({v()})", lambda: f"half({v()})",
            lambda: f"within({v()})"])()

    def nonzero(self, v):
        return self.r.choice(["1.5", "-0.75", f"(1 + abs({v()}))", f"(-1.25 - abs({v()}))", "N", "(0.1 + abs(B))"])

    def name(self):
        self.n += 1
        return f"w{self.n}"

    def block(self, deep, indent):
        """Statements; names that they make on every way are known afterwards."""
        r = self.r
        for _ in range(r.randint(1, 3)):
            kind = r.random()
            if kind < 0.4 or deep == 0:
                name = self.name()
                self.lines.append(f"{indent}{name} = clamp({self.value(3)})")
                self.names.append(name)
            elif kind < 0.7:
                name, before, test = self.name(), list(self.names), self.test(2)
                self.lines.append(f"{indent}{name} = {self.leaf()}")
                self.lines.append(f"{indent}if {test}:")
                self.block(deep - 1, indent + "    ")
                self.lines.append(f"{indent}    {name} = clamp({self.value(2)})")
                self.names = list(before)
                if r.random() < 0.6:
                    self.lines.append(f"{indent}{'else' if r.random() < 0.6 else 'elif ' + self.test(1)}:")
                    self.lines.append(f"{indent}    {name} {r.choice(['=', '+=', '-='])} clamp({self.value(2)})")
                self.names = [*before, name]
            elif kind < 0.85:
                name = self.name()
                self.lines += [f"{indent}{name} = 0.0", f"{indent}for k, w in enumerate(weights({r.randint(2, 4)})):", f"{indent}    if k == {r.randint(1, 3)}:",
                               f"{indent}        {r.choice(['break', 'continue'])}", f"{indent}    {name} += w * {self.leaf()}"]
                self.names.append(name)
            else:
                name = self.name()
                self.lines += [f"{indent}{name} = [clamp({self.value(1)}) for o in MODEL.inner.offsets[:2]]", f"{indent}{name}.append({self.leaf()})",
                               f"{indent}{name} = sum({name}) + MODEL.total({r.choice('uv')})"]
                self.names.append(name)


def text(seed, flat=False):
    made = _text(seed)
    return re.sub(r"([\[(]-?\d, -?\d), -?\d([\])])", r"\1\2", made) if flat else made


def _text(seed):
    r, maker = random.Random(f"outside {seed}"), Maker(seed)
    numbers = {name: round(r.uniform(-1.5, 1.5) * 64) / 64 or 0.5 for name in ("a", "b", "l0", "l1", "l2")}
    maker.block(2, "    ")
    body = "\n".join(maker.lines)
    within = "    import math\n    def within(a, gain=B):\n        if a > c:\n            return a - shift\n        return a * gain + (v if x > 2 else u)\n    shift = u * 0.5\n"
    return OUTSIDE.format(n=r.randint(2, 5), **numbers) + f"def cell(u, v, c, x, y, z, t, nx):\n{within}{body}\n    return clamp({maker.value(3)}), clamp({maker.value(2)})\n" + CHANGE


class Cell(float):
    """A cell of a field of which neighbours can be asked for."""

    def __new__(cls, array, at):
        made = super().__new__(cls, array[at])
        made.array, made.at = array, at
        return made

    def __getitem__(self, offset):
        return float(self.array[tuple(a + d for a, d in zip(self.at, reversed(offset), strict=True))])


def plain(cell, steps, u, v, c):
    """The fields after so many steps, each cell by a call of the function with numbers."""
    u, v = u.copy(), v.copy()
    for t in range(steps):
        before = u.copy(), v.copy()
        for cells in np.ndindex(*(n - 2 for n in u.shape)):
            at, (x, y, z) = tuple(i + 1 for i in cells), (*reversed(cells), 0)[:3]
            u[at], v[at] = cell(Cell(before[0], at), Cell(before[1], at), Cell(c, at), x, y, z, t, u.shape[-1] - 2)
    return u, v


def grids(seed, shape=(6, 7, 9)):
    rng = np.random.default_rng(seed)
    u, v = (np.round(rng.uniform(-2, 2, shape) * 64) / 64 for _ in range(2))
    u[rng.random(shape) < 0.1] = 0  # for and, or
    return u, v, rng.random(shape)


PLANS = [{"backend": "dram", "threads": 2}, {"plan": "stream by=5 bt=2 slab=2"}, {"plan": "redundant by=4 bz=3 bt=3"}, {"plan": "stream by=3 bt=2 slab=2 faces=side-file"}]
