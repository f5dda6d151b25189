# SPDX-License-Identifier: BSD-3-Clause
"""Random kernels: forms, stages, fields of all types, radii, two or three dimensions, reductions. Each is a text in C and a model in numpy."""
import random

import numpy as np
from drawn_cells import REALS, TABLE, TYPES, WHOLE, Cell

KINDS = {"sum": "MX_SUM", "top": "MX_MAX", "low": "MX_MIN"}


class Reduction:
    """An expression, of all cells or of those that a condition takes."""

    def __init__(self, name, cell):
        self.name, self.value, self.test = name, cell.real(2), cell.test_of_index() if cell.r.random() < 0.4 else None

    def text(self):
        return f"MX_REDUCE({self.name})\n    {f'if {self.test.text} ' if self.test else ''}RESULT({self.value.text});\nMX_END\n"

    def total(self, here):
        """As cell.h says it is taken: eight lanes of a row, rows, planes."""
        none = {"sum": 0.0, "top": -np.inf, "low": np.inf}[self.name]
        with np.errstate(all="ignore"):
            values = np.broadcast_to(np.asarray(self.value.of(here)).astype("f8"), here.shape)
            values = np.where(self.test.of(here), values, none) if self.test else values
        if self.name != "sum":
            return float(values.max() if self.name == "top" else values.min())
        for _ in here.shape[:-1]:
            values = in_order(values) if values.ndim < len(here.shape) else in_order(np.stack([in_order(values[..., k::8]) for k in range(8)], -1))
        return float(in_order(values))


def in_order(values):
    """The sum along the last axis, from left to right."""
    total = np.zeros(values.shape[:-1])
    for k in range(values.shape[-1]):
        total = total + values[..., k]
    return total


class Kernel:
    """Drawn by a seed: `flat` None draws how many dimensions there are; `size` is that of all cells, None: any."""

    def __init__(self, seed, radii=(1, 1, 1, 2, 2, 3, 4), flat=None, fixed=3, size=None):
        r = random.Random(f"kernel {seed}")
        self.form = r.choice(("jacobi", "jacobi", "leapfrog", "staggered"))
        self.stages = r.choice((1, 2, 3, 4)) if self.form == "jacobi" else 1
        self.levels = 2 if self.form == "staggered" else self.stages  # of a step
        self.h, self.flat, self.real = r.choice(radii), r.random() < 0.3 if flat is None else flat, r.choice(REALS)
        self.hc = r.randint(0, min(self.h, 2))

        def fields(letter, least, most, types):
            return {f"{letter}{i}": r.choice(types) for i in range(r.randint(least, most))}

        mixed = [t for t in r.choice((REALS, REALS * 4 + WHOLE, WHOLE + REALS)) if size in (None, int(t[1]))]
        self.state = fields("u", 1, 4, mixed)
        self.partner = fields("p", 1, 3, mixed) if self.form == "staggered" else {}
        self.fixed = fields("k", 0, fixed, [t for t in REALS * 2 + WHOLE if size in (None, int(t[1]))])
        arrays = [(self.state, self.partner), (self.partner, self.state)] if self.partner else [(self.state, self.state)] * self.stages
        self.cells = [Cell(r, self, *arrays_of).draw() for arrays_of in arrays]
        last = Cell(r, self, arrays[-1][0], {})
        last.old = False
        self.reductions = [Reduction(name, last) for name in r.sample(list(KINDS), r.choice((0, 1, 2)))]
        self.defaults = {"a": 0.75, "b": -0.3}

    @property
    def old(self):
        """{name of the step before: the field's}"""
        return {f"{f}.old": f for f in self.state} if self.form == "leapfrog" else {}

    @property
    def all_state(self):
        """{name: type} of everything that a run begins with and ends with."""
        return {**self.state, **{o: self.state[f] for o, f in self.old.items()}, **self.partner}

    def text(self):
        def list_of(names):
            return " ".join(f"F({f}, {TYPES[t]})" for f, t in names.items())

        head = ['#define MX_NAME "drawn"', f"#define MX_RADII {self.h}, {self.h}, 0" if self.flat else f"#define MX_RADIUS {self.h}", f"#define MX_FORM MX_{self.form.upper()}",
                f"#define MX_REAL {TYPES[self.real]}", "#define MX_PARAMS(P) P(a, 0.75) P(b, -0.3)", f"#define MX_STATE(F) {list_of(self.state)}"]
        head += [f"#define MX_STAGES {self.stages}"] if self.stages > 1 else []
        head += [f"#define MX_PARTNER(F) {list_of(self.partner)}"] if self.partner else []
        head += [f"#define MX_FIXED(F) {list_of(self.fixed)}", f"#define MX_FIXED_RADIUS {self.hc}"] if self.fixed else []
        head += [f"#define MX_REDUCES(R) {' '.join(f'R({one.name}, {KINDS[one.name]})' for one in self.reductions)}"] if self.reductions else []
        head += ["#include <memext/cell.h>", f"static const double table[8] = {{{', '.join(map(str, TABLE))}}};",
                 "static double below_one(double v) { return v / (1 + fabs(v)); }"]
        names = ["MX_CELL_B", "MX_CELL_A"] if self.partner else [f"MX_CELL_{i + 1}" for i in range(self.stages)] if self.stages > 1 else ["MX_CELL"]
        return "\n".join(head + [f"{name}\n    {cell.text()}\nMX_END" for name, cell in zip(names, self.cells)] + [one.text() for one in self.reductions]) + "\n"

    def drawn(self):
        """What there is of it, in words that are counted."""
        yield f"form {self.form}"
        yield f"stages {self.stages}"
        yield f"{2 if self.flat else 3} dimensions"
        yield f"radius {self.h}"
        yield f"radius of read-only fields {self.hc}" if self.fixed else "no read-only fields"
        for t in {*self.state.values(), *self.partner.values()}:
            yield f"state of {TYPES[t]}"
        yield f"fields of the state {len(self.state) + len(self.partner)}"
        for one in self.reductions:
            yield f"reduction {KINDS[one.name]}"
        text = self.text()
        for words, name in (("    if ", "SET under a condition"), (" return;", "a cell that returns"), ("for (int d", "offsets that are no constants"), ("OLD(", "OLD")):
            if words in text:
                yield name
