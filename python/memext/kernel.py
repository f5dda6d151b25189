# SPDX-License-Identifier: BSD-3-Clause
"""Kernels in Python: a function over one cell becomes the C file that one would write by hand (memext/cell.h)."""
from __future__ import annotations

import hashlib
import inspect
import os
import pathlib
import sys
import tempfile
import types
from collections.abc import Iterable, Mapping
from typing import Any, Callable

import numpy as np

from . import expressions as ex
from .celltypes import type_name
from .errors import KernelError
from .expressions import Untranslatable
from .known import Taker
from .specials import FieldRef, node_of
from .symbolic import SymbolicPart, is_symbolic
from .translate import RESERVED, Cell, Translator

FORMS = {"jacobi": None, "leapfrog": "MX_LEAPFROG", "staggered": "MX_STAGGERED"}


def _words(names: str | Iterable[str] | Mapping[str, Any]) -> dict[str, str | None]:
    """Names with their types, if any are given."""
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    if isinstance(names, Mapping):
        return {name: None if dtype is None else type_name(dtype, name) for name, dtype in names.items()}
    return {name: None for name in names}


def _check_name(name: str, what: str, source: str) -> None:
    if name in RESERVED or name.startswith(("mx_", "MX_", "M_", "_")):
        raise KernelError(f"{what} cannot be called {name} in {source}: C or memext/cell.h has that word; choose another name")
    if len(name) > 23:
        raise KernelError(f"{what} {name} of {source} has {len(name)} characters; 23 at most")


class _Part:
    """One function: the cell of a level, or a reduction."""

    def __init__(self, function: Callable, fixed: dict[str, str | None], params: dict[str, float], taken: Any = None):
        """taken: the function as it was when it was decorated, if that was before (known.py)."""
        if not isinstance(function, types.FunctionType):
            raise KernelError(f"{function!r} is no Python function")
        self.function, self.name = function, function.__name__
        self.file, self.line = inspect.getsourcefile(function) or "?", function.__code__.co_firstlineno
        arguments = inspect.signature(function, follow_wrapped=False).parameters.values()
        for a in arguments:
            if a.kind not in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD) or a.default is not a.empty:
                raise KernelError(f"the argument {a.name} of {self.name}: fields, parameters and x, y, z, t alone, without defaults",
                                  self.file, self.line)
        self.arguments = [a.name for a in arguments]
        self.fixed = [name for name in self.arguments if name in fixed]
        self.params = [name for name in self.arguments if name in params and name not in fixed]
        self.coordinates = [n for n in self.arguments if n in ex.COORDINATES and n not in fixed and n not in params]
        known = {*self.fixed, *self.params, *self.coordinates}
        self.fields = [name for name in self.arguments if name not in known]
        for name in self.fields:
            _check_name(name, "a field", self.name)
        self.taken = Taker().function(function) if taken is None else taken

    def translate(self, dtypes: Mapping[str, str], real: str, computed: list[str] | None, readable: Iterable[str] | None = None) -> Cell:
        """computed: fields that the function returns values of, None = one value of its own; readable: None = all."""
        translator = Translator()
        given: dict[str, Any] = {}
        for name in self.fields:
            given[name] = FieldRef(name, dtypes[name], 0, readable is None or name in readable)
        for name in self.fixed:
            given[name] = FieldRef(name, dtypes[name], -1)
        for name in self.params:
            given[name] = ex.Node("param", (), real, data=name)
        for name in self.coordinates:
            given[name] = ex.coordinate(name)
        translator.taken.update(self.arguments)
        count = 1 if computed is None else len(computed)

        def shape(value: Any) -> tuple:
            if value is None and computed is not None:  # the cell keeps its values
                return tuple(ex.load("at" if readable is None or n in readable else "old", n, dtypes[n]) for n in computed)
            if value is None:
                raise Untranslatable(f"{self.name} returns nothing")
            several = tuple(value) if isinstance(value, (tuple, list)) else (value,)
            if len(several) != count:
                fields = "" if computed is None else f" of {', '.join(computed)}"
                raise KernelError(f"{self.name} returns {len(several)} values; it computes {count}{fields}", self.file, self.line)
            try:
                return tuple(map(node_of, several))
            except Untranslatable as error:
                raise KernelError(f"what {self.name} returns: {error}", self.file, self.line) from None

        translator.cell.values = list(translator.function(self.taken, given, shape))
        return translator.cell


class Kernel:
    """A function over one cell, as a kernel of the library.

    source: its C text. Called, it is the Python function that it was made from."""

    def __init__(self, functions: list[_Part], fixed: dict[str, str | None], params: dict[str, float], name: str, state: list[str],
                 partner: list[str], form: str | None):
        self._parts, self._fixed, self.params, self.name = functions, fixed, params, name
        self.state, self.partner, self._form = state, partner, form
        self.fixed = list(fixed)
        self.__doc__ = functions[0].function.__doc__
        self.__name__ = name
        self.__module__ = functions[0].function.__module__
        for what, names in (("a read-only field", fixed), ("a parameter", params)):
            for one in names:
                _check_name(one, what, name)
        used = {a for p in functions for a in p.arguments}
        for one in [*fixed, *params]:
            if one not in used:
                raise KernelError(f"{one} is no argument of {name}", functions[0].file, functions[0].line)
        self._forms: dict[tuple, _Code] = {}
        self._undeclared = "f8"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._parts[0].function(*args, **keywords)

    def __reduce__(self) -> Any:
        """By name where a module has it, as functions are pickled; else by the functions that it is made of."""
        first = self._parts[0]
        if isinstance(first, SymbolicPart):
            raise TypeError(f"the kernel {self.name} is made of expressions: pickle those and make it again")
        if _found(self.__module__, first.function.__qualname__) is self:
            return str(first.function.__qualname__)
        return _again, ([p.function for p in self._parts], self._fixed, self.params, self.name)

    def __repr__(self) -> str:
        return f"<memext kernel {self.name}: {self.form} of {', '.join(self.state + self.partner)}>"

    def dtypes(self, dtype: Any = "f8", **fields: Any) -> dict[str, str]:
        """The types of all fields: `dtype` of the state (one for all, or by name), `fields` of those that are only read."""
        found = {}
        for name in self.state + self.partner:
            found[name] = type_name(dtype.get(name, "f8") if isinstance(dtype, Mapping) else dtype, name)
            if found[name] not in ("f8", "f4"):
                raise KernelError(f"the field {name} of {self.name} is computed: float64 or float32, not {found[name]}")
        for name, declared in self._fixed.items():
            given = type_name(fields[name], name) if fields.get(name) is not None else None
            if declared is not None and given is not None and declared != given:
                raise KernelError(f"{name} of {self.name} is declared as {declared} and given as {given}: convert it")
            found[name] = declared or given or self._undeclared
        return found

    def has_field(self, name: str) -> bool:
        return name in self.state or name in self.partner or name in self.fixed

    def try_types(self) -> None:
        """What cannot be translated is refused here, not when a run begins: with read-only fields of float64, or else of uint8."""
        try:
            self.code()
        except KernelError:
            self._undeclared = "u1"
            try:
                self.code()
                return
            except KernelError:
                pass
            raise

    def code(self, dtype: Any = "f8", **fields: Any) -> _Code:
        return self.code_with((), dtype, **fields)

    def code_with(self, reductions: Iterable[Reduction], dtype: Any = "f8", **fields: Any) -> _Code:
        """With reductions that a run takes along with its steps (options check and until)."""
        types_, reductions = self.dtypes(dtype, **fields), tuple(reductions)
        key = (*types_.items(), *map(id, reductions))
        if key not in self._forms:
            self._forms[key] = _Code(self, types_, reductions)
        return self._forms[key]

    def c_source(self, dtype: Any = "f8", **fields: Any) -> str:
        """The C text for these types of the state and of read-only fields: c_source("f4", c="u1")."""
        return self.code(dtype, **fields).text

    @property
    def source(self) -> str:
        """The C text for a state of float64; read-only fields have their declared types, or float64."""
        return self.c_source()

    @property
    def form(self) -> str:
        return self.code().form

    @property
    def radius(self) -> int:
        return self.code().radius

    def write(self, folder: Any = None, dtype: Any = "f8", **fields: Any) -> pathlib.Path:
        """The C file, in the cache or another folder; its name follows from its text. Stores name it: it stays."""
        return self.code(dtype, **fields).write(folder)

    def reference(self, steps: int, dtype: Any = None, params: Mapping[str, float] | None = None, **arrays: np.ndarray) -> dict[str, np.ndarray]:
        """The same in numpy, all in memory: arrays by name with their frames; leapfrog's step before as NAME_old. For checks."""
        return self.code(dtype or {n: arrays[n].dtype for n in self.state + self.partner}, **{n: arrays[n].dtype for n in self.fixed}).run(
            steps, {**self.params, **(params or {})}, arrays)


class _Code:
    """A kernel for given types of its fields."""

    def __init__(self, kernel: Kernel, dtypes: dict[str, str], reductions: tuple[Reduction, ...] = ()):
        self.kernel, self.dtypes, self.reductions = kernel, dtypes, reductions
        self.real = dtypes[kernel.state[0]]
        parts = kernel._parts
        if kernel._form == "staggered":
            self.cells = [parts[0].translate(dtypes, self.real, kernel.partner, kernel.state),
                          parts[1].translate(dtypes, self.real, kernel.state, kernel.partner)]
        else:
            self.cells = [parts[0].translate(dtypes, self.real, kernel.state)]
        old = any(cell.reads_old() for cell in self.cells)
        self.form = kernel._form or ("leapfrog" if old else "jacobi")
        taken = [n for n in kernel.state if self.form == "leapfrog" and kernel.has_field(f"{n}_old")]
        if taken:
            raise KernelError(f"{kernel.name} has a field {taken[0]}_old and reads {taken[0]}.old, and a run calls both {taken[0]}_old: "
                              "give the field another name", parts[0].file, parts[0].line)
        state = set(kernel.state + kernel.partner)
        self.radius = max(1, *(cell.reach(state) for cell in self.cells))
        self.fixed_radius = max(cell.reach(set(kernel.fixed)) for cell in self.cells)
        self.radius = max(self.radius, self.fixed_radius)
        for reduction in reductions:
            self.fixed_radius = max(self.fixed_radius, reduction.translate(self).reach(set(kernel.fixed)))
        self.text = self._write()

    # ---- C

    def _fields(self, macro: str, names: list[str]) -> str:
        return _list(macro, "F", {n: ex.C_TYPES[self.dtypes[n]] for n in names})

    def _write(self) -> str:
        k, writer = self.kernel, ex.Writer()
        params = dict(k.params)
        for reduction in self.reductions:
            params = {**reduction.params, **params}
        macros = ["MX_CELL"] if len(self.cells) == 1 else ["MX_CELL_B", "MX_CELL_A"]
        outputs = [k.state] if len(self.cells) == 1 else [k.partner, k.state]
        bodies = [f"{macro}\n{self._body(cell, fields, writer)}MX_END\n" for macro, cell, fields in zip(macros, self.cells, outputs)]
        for reduction in self.reductions:
            statements, values = _named(reduction.translate(self))
            body = [f"    const {ex.c_type(node)} {name} = {writer.text(node)};" for name, node in statements]
            bodies.append("\n".join([f"MX_REDUCE({reduction.name})", *body, f"    RESULT({writer.text(values[0])});", "MX_END\n"]))
        made_from = "SymPy expressions" if isinstance(k._parts[0], SymbolicPart) else "a Python function"
        lines = [f"/* {k.name}: made from {made_from} by the package memext. */", f'#define MX_NAME "{k.name}"',
                 f"#define MX_RADIUS {self.radius}"]
        if self.fixed_radius > 0:
            lines.append(f"#define MX_FIXED_RADIUS {self.fixed_radius}")
        if self.real == "f4":
            lines.append("#define MX_REAL float")
        if FORMS[self.form]:
            lines.append(f"#define MX_FORM {FORMS[self.form]}")
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

    @staticmethod
    def _body(cell: Cell, fields: list[str], writer: ex.Writer) -> str:
        """Loads and choices get names: what is loaded under a condition, compilers do not vectorise."""
        statements, values = _named(cell)
        lines = [f"    const {ex.c_type(node)} {name} = {writer.text(node)};" for name, node in statements]
        lines += [f"    SET({field}, {writer.text(value)});" for field, value in zip(fields, values)]
        return "\n".join(lines) + "\n"

    def write(self, folder: Any = None) -> pathlib.Path:
        digest = hashlib.blake2b(self.text.encode(), digest_size=8).hexdigest()
        folder = pathlib.Path(folder) if folder is not None else _cache()
        path = folder / f"{self.kernel.name}-{digest}.c"
        if not path.exists() or path.read_text() != self.text:
            handle, temporary = tempfile.mkstemp(dir=folder, suffix=".c")
            with os.fdopen(handle, "w") as file:
                file.write(self.text)
            os.replace(temporary, path)
        return path

    # ---- numpy

    def evaluate(self, cell: Cell, at: Callable, params: Mapping[str, float], coordinates: Callable, old: Callable | None = None) -> list:
        """Values of a cell's function over a box; at(field, dx, dy, dz), old(field), coordinates(name) give its arrays."""
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
            return ex.evaluate(known[node.data], leaf, memo)

        return [ex.evaluate(v, leaf, memo) for v in cell.values]

    def run(self, steps: int, params: Mapping[str, float], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        k, h = self.kernel, self.radius
        a = {n: np.array(arrays[n], dtype=self.dtypes[n]) for n in k.state}
        c = {n: np.asarray(arrays[n]).astype(self.dtypes[n], copy=False) for n in k.fixed}
        b = ({n: np.array(arrays[n], dtype=self.dtypes[n]) for n in k.partner} if k.partner else
             {n: np.array(arrays[n] if k.has_field(f"{n}_old") else arrays.get(f"{n}_old", arrays[n]), dtype=self.dtypes[n]) for n in k.state})
        shape = next(iter(a.values())).shape
        inner = tuple(slice(h, n - h) for n in shape)
        size = [n - 2 * h for n in shape]

        def level(cell: Cell, read: dict, write: dict, names: list[str], t: int) -> None:
            def at(field, dx, dy, dz):
                array = read[field] if field in read else c[field]
                off = [(n - s) // 2 for n, s in zip(array.shape, size)]
                return array[tuple(slice(o + d, o + d + s) for o, d, s in zip(off, (dz, dy, dx), size))]

            def coordinates(name):
                if name == "t":
                    return np.int64(t)
                if name in ("nx", "ny", "nz"):
                    return np.int64(size["zyx".index(name[1])])
                axis = "zyx".index(name)
                return np.arange(size[axis]).reshape([-1 if i == axis else 1 for i in range(3)])

            values = self.evaluate(cell, at, params, coordinates, lambda field: write[field][inner])
            for name, value in zip(names, values):
                write[name][inner] = np.asarray(value).astype(self.dtypes[name])

        for t in range(steps):
            if self.form == "staggered":
                level(self.cells[0], a, b, k.partner, t)
                level(self.cells[1], b, a, k.state, t)
            else:
                level(self.cells[0], a, b, k.state, t)
                a, b = b, a
                if self.form == "jacobi" and t == 0:  # the frame of the second array
                    for n in k.state:
                        frame = np.array(b[n])
                        frame[inner] = a[n][inner]
                        a[n] = frame
        old = b if k.partner else {f"{n}_old": v for n, v in b.items()} if self.form == "leapfrog" else {}
        return {**a, **old}


def _list(macro: str, argument: str, items: Mapping[str, str]) -> str:
    """#define MX_STATE(F) F(u, double) ...; the argument is a name that none of the items has."""
    while argument in items:
        argument += "_"
    return f"#define {macro}({argument}) " + " ".join(f"{argument}({n}, {value})" for n, value in items.items())


def _named(cell: Cell) -> tuple[list[tuple[str, ex.Node]], list[ex.Node]]:
    """Statements and values in which every load below a choice, and every branch of one that is more than a name, has a name of its own."""
    known, needed = dict(cell.locals), []
    seen: set[str] = set()

    def need(node: ex.Node) -> None:
        if node.op == "local" and node.data not in seen:
            seen.add(node.data)
            need(known[node.data])
            needed.append(node.data)
        for a in node.args:
            need(a)

    for value in cell.values:
        need(value)
    statements: list[tuple[str, ex.Node]] = []
    taken, names, memo = set(known), {}, {}

    def name_of(node: ex.Node, stem: str) -> ex.Node:
        if id(node) not in names:
            text, n = stem, 1
            while text in taken or text in RESERVED:
                n += 1
                text = f"{stem}_{n}"
            taken.add(text)
            statements.append((text, node))
            names[id(node)] = (ex.Node("local", (), node.type, node.lo, node.hi, text), node)
        return names[id(node)][0]

    loads: dict[tuple, ex.Node] = {}

    def choose(condition: ex.Node, a: ex.Node, b: ex.Node, like: ex.Node) -> ex.Node:
        """Choices one after the other for & and |: compilers vectorise those, and not conditions joined across types of different sizes."""
        while condition.op == "local" and condition.type == "bool":
            condition = known[condition.data]
        if condition.op in ("&", "|"):
            first, second = condition.args
            inner = name_of(choose(second, a, b, like), "chosen")
            return choose(first, inner, b, like) if condition.op == "&" else choose(first, a, inner, like)
        if condition.op == "!":
            return choose(condition.args[0], b, a, like)
        return ex.Node("where", (rewrite(condition, True), a, b), like.type, like.lo, like.hi)

    def rewrite(node: ex.Node, chosen: bool) -> ex.Node:
        if node.op in ("at", "old") and chosen:
            key = (node.op, *node.data)
            if key not in loads:
                offsets = [str(d).replace("-", "m") for d in node.data[1:]]
                here = "_old" if node.op == "old" else "" if offsets == ["0"] * 3 else "_" + "_".join(offsets)
                loads[key] = name_of(node, f"{node.data[0]}{here or '_here'}")
            return loads[key]
        if not node.args:
            return node
        if (id(node), chosen) in memo:
            return memo[id(node), chosen][0]
        if node.op == "where":
            parts = [rewrite(a, True) for a in node.args[1:]]
            parts = [name_of(part, stem) if part.args else part for part, stem in zip(parts, ("then", "other"))]
            made = choose(node.args[0], parts[0], parts[1], node)
        else:
            made = ex.Node(node.op, tuple(rewrite(a, chosen) for a in node.args), node.type, node.lo, node.hi, node.data)
        memo[id(node), chosen] = (made, node)
        return made

    for name in needed:
        made = rewrite(known[name], False)
        statements.append((name, made))
    values = [rewrite(v, False) for v in cell.values]
    made_by = dict(statements)
    used: set[str] = set()

    def use(node: ex.Node) -> None:
        if node.op == "local" and node.data not in used:
            used.add(node.data)
            use(made_by[node.data])
        for a in node.args:
            use(a)

    for value in values:
        use(value)
    return [(name, node) for name, node in statements if name in used], values


def _cache() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (pathlib.Path(base) if base and os.path.isabs(base) else pathlib.Path.home() / ".cache") / "memext" / "python"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def kernel(function: Callable | Mapping[Any, Any] | None = None, *, fixed: Any = (), params: Mapping[str, float] | None = None, name: str | None = None) -> Any:
    """Makes a kernel of a function over one cell.

    Its arguments are fields, numbers that a run may set (`params`: names and defaults), and x, y, z, t, nx, ny, nz: index of the cell from 0,
    the step computed from, and the extents. Fields named in `fixed` ("c", "v damping", or {"c": "u1"} with their types) are only read. It
    returns the new value, of several fields a tuple in their order. u is the value of the cell, u[dx, dy, dz] that of a neighbour, and
    u.old the value that is replaced, which makes the form leapfrog: u.old is then u a step before. A way through the function that returns
    nothing keeps the values of the cell.

        @memext.kernel(fixed="k", params={"dt": 0.1})
        def heat(u, k, dt):
            return u + dt * k * (u[-1,0,0] + u[1,0,0] + u[0,-1,0] + u[0,1,0] + u[0,0,-1] + u[0,0,1] - 6 * u)

    Names from outside the function are taken once, when it is decorated: what changes afterwards does not change the kernel. Functions that it calls
    are translated too, or must be known to be pure; others, such as np.random.normal, are refused.

    Or of SymPy expressions, {field: its new value}: fields are sympy.IndexedBase("u")[dx, dy, dz], symbols u for u[0, 0, 0] and u_old, or
    functions u(x + 1, y, z), as finite differences come; params and coordinates are symbols of their names.

        u, k = sympy.IndexedBase("u"), sympy.IndexedBase("k")
        heat = memext.kernel({u: u[0,0,0] + dt * k[0,0,0] * (...)}, fixed="k", params={"dt": 0.1}, name="heat")
    """
    def make(function: Any) -> Kernel:
        values = {n: float(v) for n, v in (params or {}).items()}
        names = _words(fixed)
        part: Any = SymbolicPart(function, names, values, name) if is_symbolic(function) else _Part(function, names, values)
        for field in part.fields:
            _check_name(field, "a field", part.name)
        if not part.fields:
            raise KernelError(f"{part.name} has no field to compute", part.file, part.line)
        made = Kernel([part], names, values, name or part.name, part.fields, [], None)
        made.try_types()
        return made

    return make if function is None else make(function)


def staggered(first: Callable, second: Callable, *, fixed: Any = (), params: Mapping[str, float] | None = None, name: str | None = None) -> Kernel:
    """A kernel of two functions: a step computes the fields that `first` returns from those of `second`, then those of `second` from them.

    Each function takes the fields that it computes first, whose .old is the value that is replaced, then the others, parameters and so on:

        def h(hx, hy, hz, ex, ey, ez, s): return hx.old - s * (...), hy.old - ..., hz.old - ...
        def e(ex, ey, ez, hx, hy, hz, eps, s): ...
        fdtd = memext.staggered(h, e, fixed="eps", params={"s": 0.5})
    """
    values = {n: float(v) for n, v in (params or {}).items()}
    names = _words(fixed)
    parts = [_Part(f, names, values) for f in (first, second)]
    fields = [_computed(part) for part in parts]
    if set(fields[0]) & set(fields[1]):
        raise KernelError(f"{', '.join(sorted(set(fields[0]) & set(fields[1])))} is computed by both functions", parts[1].file, parts[1].line)
    for part in parts:
        unknown = [f for f in part.fields if f not in fields[0] and f not in fields[1]]
        if unknown:
            raise KernelError(f"{', '.join(unknown)} of {part.name} is computed by neither function; name read-only fields in fixed", part.file,
                              part.line)
    made = Kernel(parts, names, values, name or first.__name__, fields[1], fields[0], "staggered")
    made.try_types()
    return made


def _found(module: str, name: str) -> Any:
    """What a module calls so, None without it."""
    at: Any = sys.modules.get(module)
    for word in name.split("."):
        at = getattr(at, word, None)
    return at


def _again(functions: list[Callable], fixed: Any, params: Mapping[str, float], name: str) -> Kernel:
    """A kernel that was pickled."""
    if len(functions) == 1:
        return kernel(functions[0], fixed=fixed, params=params, name=name)
    return staggered(*functions, fixed=fixed, params=params, name=name)


def _computed(part: _Part) -> list[str]:
    """As many of the first arguments as the function returns values."""
    dtypes = {n: "f8" for n in part.fields + part.fixed}
    for count in range(1, len(part.fields) + 1):
        try:
            part.translate(dtypes, "f8", part.fields[:count])
        except KernelError as error:
            if "returns" in str(error) and "values; it computes" in str(error):
                continue
            raise
        return part.fields[:count]
    raise KernelError(f"{part.name} returns more values than it has fields", part.file, part.line)


# ------------------------------------------------------------------ reductions

OPERATIONS = ("sum", "max", "min")


class Reduction:
    """An expression over cells, added up or its extreme, for the grid or for every plane: per "z", op "sum", "max" or "min"."""

    def __init__(self, function: Callable, per: str | None, op: str, params: Mapping[str, float] | None):
        if op not in OPERATIONS:
            raise KernelError(f"op {op!r} is not known: {', '.join(OPERATIONS)}")
        if per not in (None, "z"):
            raise KernelError(f"per {per!r} is not known: None (one number) or 'z' (one for every plane)")
        self.function, self.per, self.op, self.params = function, per, op, {n: float(v) for n, v in (params or {}).items()}
        self.name = self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._taken = Taker().function(function) if isinstance(function, types.FunctionType) else None

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function(*args, **keywords)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_taken": None}  # another process takes what it has itself

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._taken = Taker().function(self.function) if isinstance(self.function, types.FunctionType) else None

    def part(self, kernel: Kernel) -> _Part:
        fixed = {n: d for n, d in kernel._fixed.items() if n in inspect.signature(self.function).parameters}
        part = _Part(self.function, fixed, {**kernel.params, **self.params}, self._taken)
        unknown = [n for n in part.fields if n not in kernel.state + kernel.partner]
        if unknown:
            raise KernelError(f"{', '.join(unknown)} of {self.name} is no field of {kernel.name}", part.file, part.line)
        return part

    def translate(self, code: _Code) -> Cell:
        part = self.part(code.kernel)
        cell = part.translate(code.dtypes, code.real, None)
        far = cell.reach(set(code.dtypes))
        if far > code.radius:
            raise KernelError(f"{self.name} reads {far} cells around a cell, and {code.kernel.name} {code.radius}: no farther than the frame",
                              part.file, part.line)
        if cell.reads_old():
            raise KernelError(f"{self.name} reads what a step replaces: a reduction is of one state", part.file, part.line)
        return cell


class Reduced(np.ndarray):
    """The values of a reduction, one for each plane (or a single one): an array with `total` and `spread`. floor: what `spread` is relative to
    where the mean is smaller; 0: always the mean."""

    def __new__(cls, values: Any, op: str = "sum", floor: float = 0.0):
        made = np.asarray(values, dtype="f8").view(cls)
        made.op, made.floor = op, floor
        return made

    def __array_finalize__(self, other: Any) -> None:
        self.op, self.floor = getattr(other, "op", "sum"), getattr(other, "floor", 0.0)

    def _ends_left_out(self) -> np.ndarray:
        values = np.asarray(self).ravel()
        if len(values) > 2 and values[0] == 0:
            values = values[1:]
        return values[:-1] if len(values) > 2 and values[-1] == 0 else values

    @property
    def mean_size(self) -> float:
        """|mean| of the planes that `spread` is of."""
        values, total = self._ends_left_out(), 0.0
        for value in values:  # in the library's order
            total += value
        return float(abs(total / len(values))) if len(values) else 0.0

    @property
    def total(self) -> float:
        values = np.asarray(self)
        return float(values.sum() if self.op == "sum" else values.max() if self.op == "max" else values.min())

    @property
    def spread(self) -> float:
        """(largest - smallest) / mean of the planes, or / floor where that is greater than the mean: the number that the criterion NAME-spread of
        `until` compares. Of three or more planes the first and the last are left out where they are exactly 0, as long as two remain: a flux
        to the next plane has none at an end. inf where the mean and the floor are 0; without a floor the spread of a flux that goes to 0
        is that of its rounding errors, and may stay where it is for ever."""
        values, mean = self._ends_left_out(), max(self.mean_size, self.floor)
        return float((values.max() - values.min()) / mean) if len(values) and mean != 0 else float("inf")


def reduce(function: Callable | None = None, *, per: str | None = None, op: str = "sum", params: Mapping[str, float] | None = None) -> Any:
    """Makes a reduction of a function over one cell that returns a number: its sum, maximum or minimum over the grid, or per "z" over
    every plane. Its arguments are those of the run's kernel, by name."""
    def make(function: Callable) -> Reduction:
        return Reduction(function, per, op, params)

    return make if function is None else make(function)
