# SPDX-License-Identifier: BSD-3-Clause
"""Random cells of kernels. Every expression is drawn once, as a text in C and as a function of numpy: what a kernel computes is known without memext."""
from dataclasses import dataclass
from typing import Callable

import numpy as np

TYPES = {"f8": "double", "f4": "float", "i1": "int8_t", "u1": "uint8_t", "i2": "int16_t", "u2": "uint16_t", "i4": "int32_t", "u4": "uint32_t", "i8": "int64_t", "u8": "uint64_t"}
REALS, WHOLE = ("f8", "f4"), tuple(t for t in TYPES if t[0] != "f")
TABLE = (1, -0.5, 0.25, 2, 0.125, -1, 0.5, 3)


def stored(values, dtype):
    """What SET leaves of values in cells of this type."""
    if dtype[0] == "f" or values.dtype.kind != "f":
        return values.astype(dtype)
    limits, values = np.iinfo(dtype), np.where(np.isnan(values), 0, values.astype("f8"))
    below, above = values <= float(limits.min), values >= float(limits.max)
    inside = np.where(below | above, 0, np.trunc(values)).astype(dtype)
    return np.where(above, np.array(limits.max, dtype), np.where(below, np.array(limits.min, dtype), inside))


def plus(cell, more, dtype):
    """What a cell holds when a real is added to it. Of 64 bits, beyond 2^53, the real is truncated and the sum is exact."""
    total = float(cell) + more
    if dtype.itemsize < 8 or dtype.kind == "f" or np.isnan(more) or max(abs(float(cell)), abs(total)) < 2.0**53:
        return stored(np.array([total]), dtype.str[1:])[0]
    limits = np.iinfo(dtype)
    return dtype.type(min(max(int(cell) + int(np.clip(more, -(2.0**64), 2.0**64)), limits.min), limits.max))


@dataclass
class Value:
    """An expression: its text, its type (f8, f4, u8, or b of a condition), and its value for all cells of a Here."""
    text: str
    type: str
    of: Callable


def wider(a, b):
    return "f8" if "f8" in (a.type, b.type) else a.type


def both(form, a, b, of, result=None):
    """Of two values, which are converted as C does."""
    t = wider(a, b)
    return Value(form.format(a.text, b.text), result or t, lambda here: of(np.asarray(a.of(here)).astype(t), np.asarray(b.of(here)).astype(t)))


def chosen(test, a, b):
    t = wider(a, b)
    return Value(f"({test.text} ? {a.text} : {b.text})", t, lambda here: np.where(test.of(here), np.asarray(a.of(here)).astype(t), np.asarray(b.of(here)).astype(t)))


def wide(a, form, of):
    """A function of <math.h>, in double."""
    return Value(form.format(a.text), "f8", lambda here: of(np.asarray(a.of(here)).astype("f8")))


def number(text, value, t="f8"):
    return Value(text, t, lambda here: np.array(value, t))


def place(text, of, t="f8"):
    """Of the cell's index."""
    return Value(text, t, lambda here: np.asarray(of(here)).astype(t))


class Here:
    """What a cell sees, for all cells at once: fields with their frames, the level that is replaced, parameters, indices."""

    def __init__(self, kernel, fields, old, params, t):
        self.fields, self.old_fields, self.params, self.t = fields, old, params, t
        self.h, first = kernel.h, next(iter(fields.values()))
        self.shape = tuple(n - 2 * self.h for n in first.shape)
        indices = np.meshgrid(*(np.arange(n) for n in self.shape), indexing="ij")
        self.x, self.y, self.z = indices[-1], indices[-2], indices[0] if len(self.shape) == 3 else np.zeros(self.shape, "i8")
        self.nx, self.ny, self.nz = self.shape[-1], self.shape[-2], self.shape[0] if len(self.shape) == 3 else 1
        self.names, self.active, self.new = {}, np.ones(self.shape, bool), {}

    def at(self, name, d=None):
        d = d or (0,) * len(self.shape)
        return self.fields[name][tuple(slice(self.h + o, self.h + o + n) for o, n in zip(reversed(d), self.shape))]

    def old(self, name):
        return self.old_fields[name][(slice(self.h, -self.h),) * len(self.shape)]

    def put(self, name, values, where=True):
        self.new[name] = np.where(self.active & where, values, self.new[name])


class Cell:
    """Draws the body of one level: of the fields `reads` it computes those of `writes`, {name: type} both, with read-only fields `fixed`."""

    def __init__(self, r, kernel, reads, writes):
        self.r, self.kernel, self.reads, self.writes, self.fixed = r, kernel, reads, writes, kernel.fixed
        self.dims, self.old = 2 if kernel.flat else 3, kernel.form != "jacobi"
        self.names, self.steps = [], []

    # ---- values

    def offset(self, reach):
        d = [0] * self.dims
        for i in self.r.sample(range(self.dims), self.r.choice((1, 1, 1, 2, self.dims))):
            d[i] = self.r.choice((-reach, reach, self.r.randint(-reach, reach)))
        return tuple(d)

    def field(self, whole):
        """(name, type, reach) of a field of reals or of whole numbers; None: there is none."""
        near = [(f, t, self.kernel.h) for f, t in self.reads.items() if (t[0] != "f") == whole]
        fixed = [(f, t, self.kernel.hc) for f, t in self.fixed.items() if (t[0] != "f") == whole]
        found = fixed if fixed and (not near or self.r.random() < 0.35) else near
        return self.r.choice(found) if found else None

    def text_at(self, name, d):
        return f"AT({name}, {', '.join(map(str, d))})"

    def at_real(self):
        found = self.field(False)
        if found is None or self.r.random() < 0.12:
            return self.scaled()
        name, t, reach = found
        d = self.offset(reach)
        return Value(self.text_at(name, d), t, lambda here: here.at(name, d))

    def scaled(self):
        """A field of whole numbers as a real of -1 to 1."""
        found = self.field(True)
        if found is None:
            return number("0.375", 0.375)
        name, t, reach = found
        d, bits = self.offset(reach), 8 * int(t[1])
        return Value(f"((double){self.text_at(name, d)} * 0x1p-{bits})", "f8", lambda here: here.at(name, d).astype("f8") * 2.0**-bits)

    def real(self, deep):
        r = self.r
        if deep == 0 or r.random() < 0.1:
            return self.leaf()
        a, b = self.real(deep - 1), self.real(deep - 1)
        kind = r.randrange(8)
        if kind < 4:
            return both(f"({{}} {'+-+*'[kind]} {{}})", a, b, (np.add, np.subtract, np.add, np.multiply)[kind])
        if kind == 4:
            t, below = wider(a, b), wide(b, "(2 + fabs({}))", lambda v: 2 + abs(v))
            return both("({} / {})", Value(a.text, t, a.of), below, np.divide)
        if kind == 5:
            return wide(a, "sqrt(fabs({}))", lambda v: np.sqrt(abs(v)))
        if kind == 6:
            return chosen(self.test(0), a, b)
        a, b = self.leaf(), self.leaf()
        return both("({0} < {1} ? {0} : {1})", a, b, lambda u, v: np.where(u < v, u, v))

    def leaf(self):
        r, k = self.r, self.r.random()
        if k < 0.62:
            return self.at_real()
        if k < 0.7 and self.old and (known := [(f, t) for f, t in self.writes.items() if t[0] == "f"]):
            name, t = r.choice(known)
            return Value(f"OLD({name})", t, lambda here: here.old(name))
        if k < 0.8 and self.names:
            name, t = r.choice(self.names)
            return Value(name, t, lambda here: here.names[name])
        if k < 0.88:
            name, t = r.choice("ab"), self.kernel.real
            return Value(f"PARAM({name})", t, lambda here: np.array(here.params[name], t))
        return r.choice([lambda: number("0.5", 0.5), lambda: number("0.25f", 0.25, "f4"), lambda: number("-1.75f", -1.75, "f4"), lambda: place("(double)(X % 5)", lambda w: w.x % 5),
                         lambda: place("(double)(Y & 3)", lambda w: w.y & 3), lambda: place("((float)(Z - T) * 0.0625f)", lambda w: (w.z - w.t) * 0.0625, "f4"),
                         lambda: place("table[(Y + 2 * X) & 7]", lambda w: np.array(TABLE)[(w.y + 2 * w.x) & 7]),
                         lambda: place("((double)(NX - X) / (double)(NY + NZ))", lambda w: (w.nx - w.x) / (w.ny + w.nz))])()

    def test(self, deep):
        r, k = self.r, self.r.random()
        if k < 0.4:
            a, b = self.real(deep), self.real(deep)
            sign, of = r.choice([("<", np.less), (">=", np.greater_equal), (">", np.greater)])
            return both(f"({{}} {sign} {{}})", a, b, of, "b")
        if k < 0.55:
            whole, bit = self.whole(0), r.choice((1, 2, 64))
            return Value(f"(({whole.text} & {bit}ull) != 0)", "b", lambda here: (whole.of(here) & np.uint64(bit)) != 0)
        return self.test_of_index() if k < 0.9 else place("(T % 2 == 0)", lambda w: w.t % 2 == 0, "?")

    def test_of_index(self):
        return self.r.choice([lambda: place("(X % 3 == 0)", lambda w: w.x % 3 == 0, "?"), lambda: place("((X + Y) % 3 == 1)", lambda w: (w.x + w.y) % 3 == 1, "?"),
                              lambda: place("(X < NX / 2)", lambda w: w.x < w.nx // 2, "?"), lambda: place("(X != NX - 1)", lambda w: w.x != w.nx - 1, "?"),
                              lambda: place("(Z == NZ - 1 || Y == 0)", lambda w: (w.z == w.nz - 1) | (w.y == 0), "?")])()

    def whole_leaf(self):
        r, k = self.r, self.r.random()
        if k < 0.6 and (found := self.field(True)):
            name, t, reach = found
            d = self.offset(reach)
            return Value(f"(uint64_t){self.text_at(name, d)}", "u8", lambda here: here.at(name, d).astype("i8" if t[0] == "i" else "u8").astype("u8"))
        if k < 0.7 and self.old and (known := [(f, t) for f, t in self.writes.items() if t[0] != "f"]):
            name, t = r.choice(known)
            return Value(f"(uint64_t)OLD({name})", "u8", lambda here: here.old(name).astype("i8" if t[0] == "i" else "u8").astype("u8"))
        if k < 0.8:
            a = self.at_real()
            return Value(f"(uint64_t)(int64_t)({a.text} * 1000.0)", "u8", lambda here: (np.asarray(a.of(here)).astype("f8") * 1000.0).astype("i8").astype("u8"))
        return r.choice([lambda: place("(uint64_t)X", lambda w: w.x, "u8"), lambda: place("(uint64_t)(Y + 3 * Z)", lambda w: w.y + 3 * w.z, "u8"),
                         lambda: place("(uint64_t)(T + 1)", lambda w: w.t + 1, "u8"), lambda: number("0x9e3779b97f4a7c15ull", 0x9E3779B97F4A7C15, "u8"), lambda: number("5ull", 5, "u8")])()

    def whole(self, deep):
        """In uint64_t, where all that overflows wraps by C itself."""
        r = self.r
        if deep == 0 or r.random() < 0.1:
            return self.whole_leaf()
        a, b = self.whole(deep - 1), self.whole(deep - 1)
        kind = r.randrange(9)
        if kind < 6:
            return both(f"({{}} {'+-*&|^'[kind]} {{}})", a, b, (np.add, np.subtract, np.multiply, np.bitwise_and, np.bitwise_or, np.bitwise_xor)[kind])
        by = (r.choice((1, 7, 13, 40)), r.choice((1, 13, 40)), r.choice((3, 1000)))[kind - 6]
        return Value(f"({a.text} {('<<', '>>', '%')[kind - 6]} {by}{'ull' if kind == 8 else ''})", "u8", lambda here: (np.left_shift, np.right_shift, np.remainder)[kind - 6](a.of(here), np.uint64(by)))

    # ---- statements

    def say(self, text, do):
        self.steps.append((text, do))

    def declare(self, i):
        t, value, name = self.r.choice(REALS), self.real(2), f"w{i}"
        self.say(f"const {TYPES[t]} {name} = {value.text};", lambda here: here.names.__setitem__(name, np.asarray(value.of(here)).astype(t)))
        self.names.append((name, t))

    def declare_sum(self):
        """Offsets that are no constants."""
        found = self.field(False)
        if found is None:
            return
        name, _, reach = found
        along = self.r.randrange(self.dims)

        def all_of(here):
            total = np.zeros(here.shape)
            for d in range(-reach, reach + 1):
                total = total + here.at(name, tuple(d if i == along else 0 for i in range(self.dims))).astype("f8")
            here.names["sum"] = total

        at = self.text_at(name, ["d" if i == along else 0 for i in range(self.dims)])
        self.say(f"double sum = 0; for (int d = -{reach}; d <= {reach}; d++) sum += {at};", all_of)
        self.names.append(("sum", "f8"))

    def value_for(self, t):
        """Of a field of this type: reals stay below 1, whole numbers wrap, or are what a real of any size is cut to."""
        r = self.r
        if t[0] == "f":
            if r.random() < 0.15:
                a = self.whole(2)
                # + 0.0: to gcc 12 (double)(int64_t)-0.25 is -0.0, and 0.0 to all others
                return Value(f"((double)(int64_t){a.text} * 0x1p-63 + 0.0)", "f8", lambda here: np.asarray(a.of(here)).astype("i8").astype("f8") * 2.0**-63 + 0.0)
            return wide(self.real(3), "below_one({})", lambda v: v / (1 + abs(v)))
        if r.random() < 0.65:
            return self.whole(3)
        scale = r.choice((1.0, 50.0, 300.0, 1e5, 1e10, 1e19, 1e300))
        a = self.real(2)
        made = Value(f"({a.text} * {scale!r})", "f8", lambda here: np.asarray(a.of(here)).astype("f8") * scale)
        return chosen(self.test(0), wide(self.real(0), "sqrt(-1.0 - fabs({}))", lambda v: np.sqrt(-1.0 - abs(v))), made) if r.random() < 0.2 else made

    def set(self, name, t):
        value, test = self.value_for(t), self.test(1) if self.r.random() < 0.3 else None
        self.say(f"{f'if {test.text} ' if test else ''}SET({name}, {value.text});",
                 lambda here: here.put(name, stored(np.asarray(value.of(here)), t), test.of(here) if test else True))

    def draw(self):
        r = self.r
        for i in range(r.randint(0, 3)):
            self.declare(i)
        if r.random() < 0.25:
            self.declare_sum()
        for name, t in self.writes.items():
            if r.random() < 0.12:
                test = self.test(1)
                self.say(f"if {test.text} return;", lambda here, test=test: here.__setattr__("active", here.active & ~test.of(here)))
            for _ in range(r.choice((0, 1, 1, 1, 1, 1, 1, 1, 1, 2))):
                self.set(name, t)
        if not any("SET" in text for text, _ in self.steps):
            self.set(*next(iter(self.writes.items())))
        return self

    def text(self):
        return "\n    ".join(text for text, _ in self.steps)

    def run(self, here):
        """{field: interior} of the level: where a cell does not SET a field it keeps its value."""
        here.new = {name: here.old(name) if self.kernel.form == "staggered" else here.at(name) for name in self.writes}
        with np.errstate(all="ignore"):
            for _, do in self.steps:
                do(here)
        return here.new
