# SPDX-License-Identifier: BSD-3-Clause
"""Kernels in Python: a function over one cell becomes the C file that a user would write by hand with memext/cell.h."""
from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Callable

import numpy as np

from .celltypes import type_name
from .code import Code
from .errors import KernelError
from .exact import real
from .part import Part, check_name, types_by_name
from .reductions import Reduced, Reduction
from .series import take
from .symbolic import SymbolicPart, is_symbolic

__all__ = ["Kernel", "Reduced", "Reduction", "kernel", "reduce", "staggered", "stages"]

MOST_NAME = 63  # bytes, as in memext/cell.h
MOST_STAGES = 16  # of a step, as in memext/cell.h


class Kernel:
    """A kernel: a Python function (or several) that computes one cell. memext.kernel, stages and staggered make one.

    source is its C text, radius the cells that it reads on each side. A call of the kernel calls its first Python function."""

    def __init__(self, functions: list[Part], fixed: dict[str, str | None], params: dict[str, float], name: str, state: list[str],
                 partner: list[str], form: str | None, outputs: list[list[str]] | None = None, dtype: Any = None):
        """outputs: the fields that each function computes. dtype: the types of the state unless a run gives others."""
        self._parts, self._fixed, self.params, self.name = functions, fixed, params, name
        self._outputs = outputs or [state]
        self.state, self.partner, self._form, self._dtype = state, partner, form, dtype
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.encode(errors="replace")) <= MOST_NAME:
            raise KernelError(f"a kernel cannot be called {name!r}: give it a name of 1 to {MOST_NAME} printable bytes, name='...'",
                              functions[0].file, functions[0].line)
        unknown = [n for n in dtype if n not in state + partner] if isinstance(dtype, Mapping) else []
        if unknown:
            raise KernelError(f"dtype names {', '.join(map(str, unknown))}, which is not in the state of {name}: its fields are {', '.join(state + partner)}",
                              functions[0].file, functions[0].line)
        self.fixed = list(fixed)
        self.__doc__ = functions[0].function.__doc__
        self.__name__ = name
        self.__module__ = functions[0].function.__module__
        for what, names in (("a read-only field", fixed), ("a parameter", params)):
            for one in names:
                check_name(one, what, name)
        used = {a for p in functions for a in p.arguments}
        for one in [*fixed, *params]:
            if one not in used:
                raise KernelError(f"{one} is not an argument of {name}: remove it from fixed or params", functions[0].file, functions[0].line)
        self._forms: dict[tuple, Code] = {}
        self._undeclared = "f8"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._parts[0].function(*args, **keywords)

    def __reduce__(self) -> Any:
        """Pickles the kernel by its name if a module has it, as functions are pickled; otherwise by its functions."""
        first = self._parts[0]
        if isinstance(first, SymbolicPart):
            raise TypeError(f"the kernel {self.name} is made of expressions and cannot be pickled: pickle the expressions, and make it again")
        if _found(self.__module__, first.function.__qualname__) is self:
            return str(first.function.__qualname__)
        return _again, ([p.function for p in self._parts], self._fixed, self.params, self.name, self._form, self._dtype)

    def __repr__(self) -> str:
        return f"<memext kernel {self.name}: {self.form} of {', '.join(self.state + self.partner)}>"

    def dtypes(self, dtype: Any = None, **fields: Any) -> dict[str, str]:
        """Returns the types of all fields. dtype: of the state, for all its fields or by name; None: the kernel's own. fields: types of read-only fields."""
        found = {name: state_type(name, dtype, self._dtype) for name in self.state + self.partner}
        for name, declared in self._fixed.items():
            given = type_name(fields[name], name) if fields.get(name) is not None else None
            if declared is not None and given is not None and declared != given:
                raise KernelError(f"{name} of {self.name} is declared as {declared}, but the array given has the type {given}: convert the array")
            found[name] = declared or given or self._undeclared
        return found

    def has_field(self, name: str) -> bool:
        return name in self.state or name in self.partner or name in self.fixed

    def try_types(self) -> None:
        """Refuses code that cannot be translated here, not when a run begins. Read-only fields are float64 for this; they are uint8 if the code can be
        translated only so, or if only so its // and % are operations on integers."""
        try:
            if not any(cell.divides_reals() for cell in self.code().cells) or None not in self._fixed.values():
                return
            failed = None
        except KernelError as error:
            failed = error
        self._undeclared = "u1"
        try:
            if failed is not None or not any(cell.divides_reals() for cell in self.code().cells):
                self.code()
                return
        except KernelError:
            pass
        self._undeclared = "f8"
        if failed is not None:
            raise failed

    def code(self, dtype: Any = None, **fields: Any) -> Code:
        return self.code_with((), dtype, **fields)

    def code_with(self, reductions: Iterable[Reduction], dtype: Any = None, **fields: Any) -> Code:
        """The Code for these types, with reductions that a run computes during its steps (options check and until)."""
        types_, reductions = self.dtypes(dtype, **fields), tuple(reductions)
        key = (*types_.items(), *map(id, reductions))
        if key not in self._forms:
            try:
                self._forms[key] = Code(self, types_, reductions)
            except RecursionError:
                raise KernelError(f"{self.name} nests more operations within each other than Python's functions can call themselves: give parts of the expression names",
                                  getattr(self._parts[0], "file", ""), getattr(self._parts[0], "line", 0)) from None
        return self._forms[key]

    def c_source(self, dtype: Any = None, **fields: Any) -> str:
        """Returns the C text for these types of the state and of read-only fields: c_source("f4", c="u1")."""
        return self.code(dtype, **fields).text

    @property
    def source(self) -> str:
        """The C text for the kernel's own types; fields without a declared type are float64."""
        return self.c_source()

    @property
    def form(self) -> str:
        return self.code().form

    @property
    def stages(self) -> int:
        """The number of stages of a step, each of which computes from the one before: 1 unless memext.stages made the kernel."""
        return len(self._parts) if self._form == "jacobi" else 1

    @property
    def radius(self) -> int:
        return self.code().radius

    @property
    def flat(self) -> bool:
        """Does it compute grids of two dimensions? Its neighbours then have two offsets, u[dx, dy]."""
        return self.code().flat

    def write(self, folder: Any = None, dtype: Any = None, **fields: Any) -> pathlib.Path:
        """Writes the C file into `folder` (default: memext's cache) and returns its path. The name follows from the text. The file stays, because stores refer to it."""
        return self.code(dtype, **fields).write(folder)

    def reference(self, steps: int, dtype: Any = None, params: Mapping[str, Any] | None = None, **arrays: np.ndarray) -> dict[str, np.ndarray]:
        """Computes the same steps with numpy, in memory, to check results. Returns {name: array} of the state after `steps` steps, with frames; the step before
        of leapfrog kernels is NAME_old. arrays: all fields by name, with their frames. params: numbers, or arrays with a value for each step or level."""
        return self.code(dtype or {n: arrays[n].dtype for n in self.state + self.partner}, **{n: arrays[n].dtype for n in self.fixed}).run(
            steps, {**self.params, **take(params or {}, os.getcwd())}, arrays)


def state_type(name: str, *dtypes: Any) -> str:
    """The type of a field of the state: the first one given in dtypes, else f8."""
    for dtype in dtypes:
        own = dtype.get(name) if isinstance(dtype, Mapping) else dtype
        if own is not None:
            return type_name(own, name)
    return "f8"


def kernel(function: Callable | Mapping[Any, Any] | None = None, *, fixed: Any = (), params: Mapping[str, float] | None = None, name: str | None = None,
           dtype: Any = None) -> Any:
    """Makes a kernel of a function over one cell, and returns it; usable as a decorator. Raises KernelError if the function cannot be translated.

    The arguments of the function are fields, numbers that a run may set (`params`: names and defaults), and x, y, z, t, nx, ny, nz: the index of the
    cell from 0, the step to compute from, and the extents of the interior in cells. Fields named in `fixed` ("c", "v damping", or {"c": "u1"} with types)
    are read-only. The function returns the new value; for several fields it returns a tuple in their order. u is the value of the cell, and u[dx, dy, dz]
    that of a neighbour up to 8 cells away. u.old is the value one step before u; reading it makes the form leapfrog. If a path through the function
    returns nothing, the cell keeps its values. If all neighbours have two offsets, u[dx, dy], the kernel computes grids of two dimensions, arrays (ny, nx).

        @memext.kernel(fixed="k", params={"dt": 0.1})
        def heat(u, k, dt):
            return u + dt * k * (u[-1,0,0] + u[1,0,0] + u[0,-1,0] + u[0,1,0] + u[0,0,-1] + u[0,0,1] - 6 * u)

    dtype: the type of the state unless a run gives another, for all fields or by name; default float64. Integer fields are "int8", "uint8" and so on up
    to "uint64". Such a field keeps the lowest bits of an integer that is returned for it. A floating-point value is truncated, and limited to the type's range.

    Names from outside the function are looked up once, when it is decorated: later changes do not change the kernel. Functions that it calls
    are translated too, or must be known to be pure. Others, such as np.random.normal, are refused.

    Instead of a function it accepts SymPy expressions, {field: its new value}. Fields are sympy.IndexedBase("u")[dx, dy, dz], symbols u for u[0, 0, 0]
    and u_old, or functions u(x + 1, y, z), as sympy writes finite differences. Parameters and coordinates are symbols with their names.

        u, k = sympy.IndexedBase("u"), sympy.IndexedBase("k")
        heat = memext.kernel({u: u[0,0,0] + dt * k[0,0,0] * (...)}, fixed="k", params={"dt": 0.1}, name="heat")
    """
    def make(function: Any) -> Kernel:
        values = {n: real(v, f"params[{n!r}]") for n, v in (params or {}).items()}
        names = types_by_name(fixed)
        part: Any = SymbolicPart(function, names, values, name) if is_symbolic(function) else Part(function, names, values)
        for field in part.fields:
            check_name(field, "a field", part.name)
        if not part.fields:
            raise KernelError(f"{part.name} computes no field: give it an argument for the field, u", part.file, part.line)
        if name is None and part.name == "<lambda>":
            raise KernelError("a kernel of a lambda needs a name: kernel(lambda ..., name='...')", part.file, part.line)
        made = Kernel([part], names, values, name or part.name, part.fields, [], None, dtype=dtype)
        made.try_types()
        return made

    return make if function is None else make(function)


def staggered(first: Callable, second: Callable, *, fixed: Any = (), params: Mapping[str, float] | None = None, name: str | None = None,
              dtype: Any = None) -> Kernel:
    """Makes a staggered kernel of two functions, and returns it. A step computes the fields that `first` returns from those of `second`, and then the
    fields of `second` from these new values.

    The first arguments of each function are the fields that it computes; u.old is the value before the step. Then come the other fields, parameters
    and so on. The other keywords are those of memext.kernel.

        def h(hx, hy, hz, ex, ey, ez, s): return hx.old - s * (...), hy.old - ..., hz.old - ...
        def e(ex, ey, ez, hx, hy, hz, eps, s): ...
        fdtd = memext.staggered(h, e, fixed="eps", params={"s": 0.5})
    """
    values = {n: real(v, f"params[{n!r}]") for n, v in (params or {}).items()}
    names = types_by_name(fixed)
    parts = [Part(f, names, values) for f in (first, second)]
    fields = [_computed(part, dtype) for part in parts]
    if set(fields[0]) & set(fields[1]):
        raise KernelError(f"both functions compute {', '.join(sorted(set(fields[0]) & set(fields[1])))}: let each compute fields of its own", parts[1].file, parts[1].line)
    for part in parts:
        unknown = [f for f in part.fields if f not in fields[0] and f not in fields[1]]
        if unknown:
            raise KernelError(f"neither function computes {', '.join(unknown)} of {part.name}: name read-only fields in fixed", part.file, part.line)
    made = Kernel(parts, names, values, name or first.__name__, fields[1], fields[0], "staggered", fields, dtype)
    made.try_types()
    return made


def stages(*functions: Callable, fixed: Any = (), params: Mapping[str, float] | None = None, name: str | None = None, dtype: Any = None) -> Kernel:
    """Makes a kernel of several functions, the stages of a step, and returns it. A step applies each function to the whole grid, in order; each reads the
    values that the one before has left.

    The first arguments of each function are the fields that it computes. Then come the other fields that it reads, parameters and so on. A field that
    a function does not compute keeps its values, so a Runge-Kutta scheme can have its registers as fields. The keywords are those of memext.kernel.

        def predict(v, u, dt): return u - dt * (u - u[-1, 0, 0])
        def correct(u, v, dt): return 0.5 * (u + v - dt * (v - v[-1, 0, 0]))
        heun = memext.stages(predict, correct, params={"dt": 0.1}, name="heun")

    t is the same in all functions of a step. A parameter over time may have shape (steps, stages).
    """
    if not 1 <= len(functions) <= MOST_STAGES:
        raise KernelError(f"memext.stages has {len(functions)} functions: give it 1 to {MOST_STAGES}, one for each stage of a step")
    if any(is_symbolic(function) for function in functions):
        raise KernelError("memext.stages cannot use expressions: give it a Python function for each stage")
    values = {n: real(v, f"params[{n!r}]") for n, v in (params or {}).items()}
    names = types_by_name(fixed)
    parts = [Part(f, names, values) for f in functions]
    for part in parts:
        if not part.fields:
            raise KernelError(f"{part.name} computes no field: give it an argument for the field, u", part.file, part.line)
    outputs = [_computed(part, dtype) for part in parts]
    computed = {field for fields in outputs for field in fields}
    for part in parts:
        unknown = [f for f in part.fields if f not in computed]
        if unknown:
            raise KernelError(f"no stage computes {', '.join(unknown)} of {part.name}: name read-only fields in fixed", part.file, part.line)
    fields = list(dict.fromkeys(field for part in parts for field in part.fields))
    if name is None and parts[0].name == "<lambda>":
        raise KernelError("a kernel of lambdas needs a name: stages(..., name='...')", parts[0].file, parts[0].line)
    made = Kernel(parts, names, values, name or parts[0].name, fields, [], "jacobi", outputs, dtype)
    made.try_types()
    return made


def _found(module: str, name: str) -> Any:
    """The object of this name in a module; None if it has none."""
    at: Any = sys.modules.get(module)
    for word in name.split("."):
        at = getattr(at, word, None)
    return at


def _again(functions: list[Callable], fixed: Any, params: Mapping[str, float], name: str, form: str | None = None, dtype: Any = None) -> Kernel:
    """Makes a kernel again that was pickled."""
    if form == "jacobi":
        return stages(*functions, fixed=fixed, params=params, name=name, dtype=dtype)
    if len(functions) == 1:
        return kernel(functions[0], fixed=fixed, params=params, name=name, dtype=dtype)
    return staggered(*functions, fixed=fixed, params=params, name=name, dtype=dtype)


def _computed(part: Part, dtype: Any) -> list[str]:
    """The fields that the function computes: as many of its first arguments as it returns values."""
    dtypes = {**{n: state_type(n, dtype) for n in part.fields}, **{n: "f8" for n in part.fixed}}
    for count in range(1, len(part.fields) + 1):
        try:
            part.translate(dtypes, "f8", part.fields[:count])
        except KernelError as error:
            if "returns" in str(error) and "values; it computes" in str(error):
                continue
            raise
        return part.fields[:count]
    raise KernelError(f"{part.name} returns more values than it has fields", part.file, part.line)


def reduce(function: Callable | None = None, *, per: str | None = None, op: str = "sum", params: Mapping[str, float] | None = None) -> Any:
    """Makes a reduction of a function over one cell that returns a number, and returns it; usable as a decorator.

    op: "sum", "max" or "min". per: None: one value for the grid; "z": one for every plane. Its arguments are fields, parameters and coordinates of
    the run's kernel, by name. params: further parameters of its own. Run.reduce gives the values. Raises KernelError."""
    def make(function: Callable) -> Reduction:
        return Reduction(function, per, op, params)

    return make if function is None else make(function)
