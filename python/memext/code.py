# SPDX-License-Identifier: BSD-3-Clause
"""A kernel for given types of its fields: its C text, and the same computation in numpy."""
from __future__ import annotations

import hashlib
import os
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any, Callable

import numpy as np

from . import expressions as ex
from . import lookup
from .celltypes import REALS, stored
from .errors import KernelError
from .evaluating import evaluate
from .profiles import written_out
from .series import AtStep
from .symbolic import SymbolicPart
from .translate import RESERVED, Cell

FORMS = {"jacobi": None, "leapfrog": "MX_LEAPFROG", "staggered": "MX_STAGGERED"}


class Code:
    """A kernel for given types of its fields."""

    def __init__(self, kernel: Any, dtypes: dict[str, str], reductions: tuple = ()):
        self.kernel, self.dtypes, self.reductions = kernel, dtypes, reductions
        self.real = "f4" if dtypes[kernel.state[0]] == "f4" else "f8"
        parts = kernel._parts
        self.outputs = kernel._outputs
        if kernel._form == "staggered":
            self.cells = [parts[0].translate(dtypes, self.real, kernel.partner, kernel.state),
                          parts[1].translate(dtypes, self.real, kernel.state, kernel.partner)]
        else:
            self.cells = [part.translate(dtypes, self.real, fields) for part, fields in zip(parts, self.outputs)]
        old = any(cell.reads_old() for cell in self.cells)
        for part, cell in zip(parts, self.cells):
            if kernel._form == "jacobi" and cell.reads_old():
                raise KernelError(f"{part.name} is a stage and cannot read .old, because it reads what the stage before has left: keep older values in a field",
                                  part.file, part.line)
        self.form = kernel._form or ("leapfrog" if old else "jacobi")
        taken = [n for n in kernel.state if self.form == "leapfrog" and kernel.has_field(f"{n}_old")]
        if taken:
            raise KernelError(f"{kernel.name} has a field {taken[0]}_old and reads {taken[0]}.old, which a run calls {taken[0]}_old too: "
                              "give the field another name", parts[0].file, parts[0].line)
        state = set(kernel.state + kernel.partner)
        self.radius = max(1, *(cell.reach(state) for cell in self.cells))
        self.fixed_radius = max(cell.reach(set(kernel.fixed)) for cell in self.cells)
        self.radius = max(self.radius, self.fixed_radius)
        for reduction in reductions:
            self.fixed_radius = max(self.fixed_radius, reduction.translate(self).reach(set(kernel.fixed)))
            self._check_taken_along(reduction)
        self.flat = self._is_flat()
        self.text = self._write()

    def _check_taken_along(self, reduction: Any) -> None:
        """Refuses a reduction that a run of a staggered kernel cannot compute during its steps: it may read only fields that the first function computes."""
        part = reduction.part(self.kernel)
        others = [n for n in part.fields if n in self.kernel.state] if self.form == "staggered" else []
        if others:
            raise KernelError(f"{reduction.name} reads {', '.join(others)}. In reductions= of a staggered kernel, a reduction may read only what the first function "
                              f"computes, {', '.join(self.kernel.partner)}: leave it out of reductions=, and call run.reduce({reduction.name}) between steps",
                              part.file, part.line)

    def _is_flat(self) -> bool:
        """Does it compute grids of two dimensions? Then all its neighbours have two offsets."""
        parts = [*self.kernel._parts, *self.reductions]
        cells = [*self.cells, *(r.translate(self) for r in self.reductions)]
        offsets = set().union(*(getattr(cell, "offsets", set()) for cell in cells))
        if len(offsets) > 1:
            at = next((p for p in parts if hasattr(p, "file")), parts[0])
            raise KernelError(f"{self.kernel.name} has neighbours with two offsets and neighbours with three: write u[dx, dy] in grids of two dimensions, "
                              "or u[dx, dy, dz] in grids of three", getattr(at, "file", "?"), getattr(at, "line", 0))
        return offsets == {2}

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuses a grid of nz, ny, nx (or ny, nx) interior cells if a table of the kernel is too small for it."""
        shape = (1, *shape) if len(shape) == 2 else shape
        for cell in [*self.cells, *(r.translate(self) for r in self.reductions)]:
            for reason in lookup.misfits(cell, shape):
                raise KernelError(f"{self.kernel.name}: {reason}", self.kernel._parts[0].file, self.kernel._parts[0].line)

    # ---- C

    def _fields(self, macro: str, names: list[str]) -> str:
        return _list(macro, "F", {n: ex.C_TYPES[self.dtypes[n]] for n in names})

    def _write(self) -> str:
        k, writer = self.kernel, ex.Writer()
        params = dict(k.params)
        for reduction in self.reductions:
            params = {**reduction.params, **params}
        macros = (["MX_CELL"] if len(self.cells) == 1 else ["MX_CELL_B", "MX_CELL_A"] if self.form == "staggered" else
                  [f"MX_CELL_{i + 1}" for i in range(len(self.cells))])
        bodies = [f"{macro}\n{self._body(cell, fields, writer)}MX_END\n" for macro, cell, fields in zip(macros, self.cells, self.outputs)]
        for reduction in self.reductions:
            statements, values = _named(reduction.translate(self))
            body = [f"    const {ex.c_type(node)} {name} = {writer.text(node)};" for name, node in statements]
            bodies.append("\n".join([f"MX_REDUCE({reduction.name})", *body, f"    RESULT({writer.text(values[0])});", "MX_END\n"]))
        made_from = "SymPy expressions" if isinstance(k._parts[0], SymbolicPart) else "a Python function"
        comment, quoted = k.name.replace("*/", "* /"), k.name.replace("\\", "\\\\").replace('"', '\\"')
        lines = [f"/* {comment}: made from {made_from} by the package memext. */", f'#define MX_NAME "{quoted}"',
                 f"#define MX_RADII {self.radius}, {self.radius}, 0" if self.flat else f"#define MX_RADIUS {self.radius}"]
        if self.fixed_radius > 0:
            lines.append(f"#define MX_FIXED_RADIUS {self.fixed_radius}")
        if self.real == "f4":
            lines.append("#define MX_REAL float")
        if FORMS[self.form]:
            lines.append(f"#define MX_FORM {FORMS[self.form]}")
        if k.stages > 1:
            lines.append(f"#define MX_STAGES {k.stages}")
        lines.append(self._fields("MX_STATE", k.state))
        if k.partner:
            lines.append(self._fields("MX_PARTNER", k.partner))
        if k.fixed:
            lines.append(self._fields("MX_FIXED", k.fixed))
        if params:
            lines.append(_list("MX_PARAMS", "P", {n: repr(v) for n, v in params.items()}))
        if self.reductions:
            lines.append(_list("MX_REDUCES", "R", {r.name: f"MX_{r.op.upper()}" for r in self.reductions}))
        text = "\n".join(lines) + "\n#include <memext/cell.h>\n\n"
        if writer.helpers:
            text += "\n".join(writer.helpers.values()) + "\n\n"
        return text + "\n".join(bodies)

    def _body(self, cell: Cell, fields: list[str], writer: ex.Writer) -> str:
        """The C statements of a cell. Loads and choices get names, because compilers do not vectorise loads under a condition. Floating-point numbers that
        are written as integers are cast, because SET treats the two differently."""
        statements, values = _named(cell)
        lines = [f"    const {ex.c_type(node)} {name} = {writer.text(node)};" for name, node in statements]
        for field, value in zip(fields, values):
            real = self.dtypes[field] not in REALS and ex.is_number(value) and value.type not in (*ex.WHOLE, "bool")
            lines.append(f"    SET({field}, {'(double)' if real else ''}{writer.text(value)});")
        return "\n".join(lines) + "\n"

    def write(self, folder: Any = None) -> pathlib.Path:
        digest = hashlib.blake2b(self.text.encode(), digest_size=8).hexdigest()
        folder = pathlib.Path(folder) if folder is not None else cache_folder()
        path = folder / f"{self.kernel.name.replace('/', '_')}-{digest}.c"
        if not path.exists() or path.read_text() != self.text:
            handle, temporary = tempfile.mkstemp(dir=folder, suffix=".c")
            with os.fdopen(handle, "w") as file:
                file.write(self.text)
            os.replace(temporary, path)
        return path

    # ---- numpy

    def evaluate(self, cell: Cell, at: Callable, params: Mapping[str, float], coordinates: Callable, old: Callable | None = None) -> list:
        """The values of a kernel's function over a box. at(field, dx, dy, dz), old(field) and coordinates(name) give its arrays."""
        known = {name: node for name, node in cell.locals}
        memo: dict[int, Any] = {}

        def leaf(node: ex.Node) -> Any:
            if node.op == "at":
                return at(*node.data)
            if node.op == "old":
                return old(node.data[0])
            if node.op == "param":
                return params[node.data]
            if node.op == "coordinate":
                return coordinates(node.data)
            return named[node.data]

        named: dict[str, Any] = {}  # each value before those that use it: a chain of locals may be longer than functions can call themselves
        for name in _locals_of(cell.values, known):
            named[name] = evaluate(known[name], leaf, memo)
        return [evaluate(v, leaf, memo) for v in cell.values]

    def run(self, steps: int, params: Mapping[str, float], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        k, h = self.kernel, self.radius
        a = {n: np.array(arrays[n], dtype=self.dtypes[n]) for n in k.state}
        b = ({n: np.array(arrays[n], dtype=self.dtypes[n]) for n in k.partner} if k.partner else
             {n: np.array(arrays[n] if k.has_field(f"{n}_old") else arrays.get(f"{n}_old", arrays[n]), dtype=self.dtypes[n]) for n in k.state})
        shape = next(iter(a.values())).shape
        inner = tuple(slice(h, n - h) for n in shape)
        size = [n - 2 * h for n in shape]
        self.check(tuple(size))  # type: ignore[arg-type]
        c = {n: np.broadcast_to(arrays[n], _frame_or_not(arrays[n], shape, size)).astype(self.dtypes[n]) if self.flat else
             written_out(np.asarray(arrays[n]).astype(self.dtypes[n], copy=False), size, h) for n in k.fixed}

        def level(i: int, read: dict, write: dict, t: int) -> None:
            def at(field, dx, dy, dz):
                array = read[field] if field in read else c[field]
                off = [(n - s) // 2 for n, s in zip(array.shape, size)]
                return array[tuple(slice(o + d, o + d + s) for o, d, s in zip(off, (dy, dx) if self.flat else (dz, dy, dx), size))]

            def coordinates(name):
                if name == "t":
                    return np.int64(t)
                axes = "yx" if self.flat else "zyx"
                if name[-1] not in axes:
                    return np.int64(len(name) - 1)  # nz is 1, and z is 0
                if name in ("nx", "ny", "nz"):
                    return np.int64(size[axes.index(name[1])])
                axis = axes.index(name)
                return np.arange(size[axis]).reshape([-1 if i == axis else 1 for i in range(len(size))])

            values = self.evaluate(self.cells[i], at, AtStep(params, t, i, len(self.cells)), coordinates, lambda field: write[field][inner])
            for name in write if self.form == "jacobi" else ():  # what is not computed is kept
                write[name][...] = read[name]
            for name, value in zip(self.outputs[i], values):
                write[name][inner] = stored(value, self.dtypes[name])

        for t in range(steps):
            if self.form == "staggered":
                level(0, a, b, t)
                level(1, b, a, t)
            else:
                for i in range(len(self.cells)):
                    level(i, a, b, t)
                    a, b = b, a
        old = b if k.partner else {f"{n}_old": v for n, v in b.items()} if self.form == "leapfrog" else {}
        return {**a, **old}


def _frame_or_not(array: Any, framed: tuple, size: list[int]) -> tuple:
    """The shape of a read-only array of two dimensions after broadcasting, with or without the frame."""
    extents = (1, 1, *np.shape(array))[-2:]
    return framed if all(s in (1, n) for s, n in zip(extents, framed)) and extents != tuple(size) else tuple(size)


def _list(macro: str, argument: str, items: Mapping[str, str]) -> str:
    """The line #define MX_STATE(F) F(u, double) ...; the macro's argument has a name that no item has."""
    while argument in items:
        argument += "_"
    return f"#define {macro}({argument}) " + " ".join(f"{argument}({n}, {value})" for n, value in items.items())


def _named(cell: Cell) -> tuple[list[tuple[str, ex.Node]], list[ex.Node]]:
    """The statements and values of a cell. Every load within a choice, and every branch of a choice that is more than a name, gets a name of its own."""
    known, namer = dict(cell.locals), _Namer(cell)
    for name in _locals_of(cell.values, known):
        namer.statements.append((name, namer.rewrite(known[name], False)))
    values = [namer.rewrite(v, False) for v in cell.values]
    used = set(_locals_of(values, dict(namer.statements)))
    return [(name, node) for name, node in namer.statements if name in used], values


def _locals_of(values: list[ex.Node], known: Mapping[str, ex.Node]) -> list[str]:
    """The local names that the values use, each after the names that it uses itself."""
    needed: dict[str, None] = {}
    looked: set[int] = set()
    stack: list[Any] = [*reversed(values)]
    while stack:
        item = stack.pop()
        if isinstance(item, str):  # all that it uses is needed already
            needed.setdefault(item)
        elif id(item) not in looked:
            looked.add(id(item))
            if item.op == "local" and item.data not in needed:
                stack += [item.data, known[item.data]]
            stack.extend(reversed(item.args))
    return list(needed)


class _Namer:
    """Rewrites expressions of a cell. statements: the names that it has given."""

    def __init__(self, cell: Cell):
        self.known = dict(cell.locals)
        self.statements: list[tuple[str, ex.Node]] = []
        self.taken, self.names, self.memo = set(self.known), {}, {}
        self.loads: dict[tuple, ex.Node] = {}

    def name_of(self, node: ex.Node, stem: str) -> ex.Node:
        if id(node) not in self.names:
            text, n = stem, 1
            while text in self.taken or text in RESERVED:
                n += 1
                text = f"{stem}_{n}"
            self.taken.add(text)
            self.statements.append((text, node))
            self.names[id(node)] = (ex.Node("local", (), node.type, node.lo, node.hi, text, node.of_cells), node)
        return self.names[id(node)][0]

    def choose(self, condition: ex.Node, a: ex.Node, b: ex.Node, like: ex.Node) -> ex.Node:
        """Writes & and | as one choice after the other. Compilers vectorise these, but not conditions joined across types of different sizes."""
        while condition.op == "local" and condition.type == "bool":
            condition = self.known[condition.data]
        if condition.op in ("&", "|"):
            first, second = condition.args
            inner = self.name_of(self.choose(second, a, b, like), "chosen")
            return self.choose(first, inner, b, like) if condition.op == "&" else self.choose(first, a, inner, like)
        if condition.op == "!":
            return self.choose(condition.args[0], b, a, like)
        return ex.Node("where", (self.rewrite(condition, True), a, b), like.type, like.lo, like.hi)

    def load(self, node: ex.Node) -> ex.Node:
        key = (node.op, *node.data)
        if key not in self.loads:
            offsets = [str(d).replace("-", "m") for d in node.data[1:]]
            here = "_old" if node.op == "old" else "" if offsets == ["0"] * 3 else "_" + "_".join(offsets)
            self.loads[key] = self.name_of(node, f"{node.data[0]}{here or '_here'}")
        return self.loads[key]

    def rewrite(self, node: ex.Node, chosen: bool) -> ex.Node:
        """The rewritten node. chosen: it is part of a choice."""
        if node.op in ("at", "old") and chosen:
            return self.load(node)
        if not node.args:
            return node
        if (id(node), chosen) in self.memo:
            return self.memo[id(node), chosen][0]
        if node.op == "where":
            parts = [self.rewrite(a, True) for a in node.args[1:]]
            parts = [self.name_of(part, stem) if part.args else part for part, stem in zip(parts, ("then", "other"))]
            made = self.choose(node.args[0], parts[0], parts[1], node)
        else:
            made = ex.Node(node.op, tuple(self.rewrite(a, chosen) for a in node.args), node.type, node.lo, node.hi, node.data)
        self.memo[id(node), chosen] = (made, node)
        return made


def cache_folder() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (pathlib.Path(base) if base and os.path.isabs(base) else pathlib.Path.home() / ".cache") / "memext" / "python"
    for part in (*reversed(folder.parents), folder):  # mkdir(parents=True) gives the parents another mode, and kernel/cache.c refuses a directory that others can write to
        if not part.exists():
            part.mkdir(mode=0o700, exist_ok=True)
    return folder
