# SPDX-License-Identifier: BSD-3-Clause
"""One function of a kernel (of a level of a step, or of a reduction) and its names."""
from __future__ import annotations

import inspect
import types
from collections.abc import Iterable, Mapping
from typing import Any, Callable

from . import expressions as ex
from .celltypes import type_name
from .errors import KernelError
from .expressions import Untranslatable
from .known import Taker
from .specials import FieldRef
from .translate import RESERVED, Cell, Translator, node_of


def types_by_name(names: str | Iterable[str] | Mapping[str, Any]) -> dict[str, str | None]:
    """Names with their types; None for a name without a type."""
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    if isinstance(names, Mapping):
        return {name: None if dtype is None else type_name(dtype, name) for name, dtype in names.items()}
    return {name: None for name in names}


def check_name(name: str, what: str, source: str) -> None:
    if name in RESERVED or name.startswith(("mx_", "MX_", "M_", "_")):
        raise KernelError(f"{what} cannot be called {name} in {source}: C or memext/cell.h uses that word; choose another name")
    if len(name) > 23:
        raise KernelError(f"the name of {what}, {name} of {source}, has {len(name)} characters: use at most 23")


class Part:
    """One function: it computes the cells of a level of a step, or a reduction."""

    def __init__(self, function: Callable, fixed: dict[str, str | None], params: dict[str, float], taken: Any = None):
        """taken: the function as it was when it was decorated, if that happened earlier (known.py)."""
        if not isinstance(function, types.FunctionType):
            raise KernelError(f"{function!r} is not a Python function: write one with def or lambda")
        self.function, self.name = function, function.__name__
        self.file, self.line = inspect.getsourcefile(function) or "?", function.__code__.co_firstlineno
        arguments = inspect.signature(function, follow_wrapped=False).parameters.values()
        for a in arguments:
            if a.kind not in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD) or a.default is not a.empty:
                raise KernelError(f"the argument {a.name} of {self.name} is not supported: arguments are fields, parameters and x, y, z, t, nx, ny, nz, without defaults",
                                  self.file, self.line)
        self.arguments = [a.name for a in arguments]
        self.fixed = [name for name in self.arguments if name in fixed]
        self.params = [name for name in self.arguments if name in params and name not in fixed]
        self.coordinates = [n for n in self.arguments if n in ex.COORDINATES and n not in fixed and n not in params]
        known = {*self.fixed, *self.params, *self.coordinates}
        self.fields = [name for name in self.arguments if name not in known]
        for name in self.fields:
            check_name(name, "a field", self.name)
        self.taken = Taker().function(function) if taken is None else taken

    def translate(self, dtypes: Mapping[str, str], real: str, computed: list[str] | None, readable: Iterable[str] | None = None) -> Cell:
        """computed: the fields whose values the function returns; None: it returns one value of its own. readable: fields that it may read; None: all."""
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
                raise Untranslatable(f"{self.name} returns nothing: end it with return VALUE")
            several = tuple(value) if isinstance(value, (tuple, list)) else (value,)
            if len(several) != count:
                fields = "" if computed is None else f" of {', '.join(computed)}"
                raise KernelError(f"{self.name} returns {len(several)} values; it computes {count}{fields}", self.file, self.line)
            try:
                return tuple(map(node_of, several))
            except Untranslatable as error:
                raise KernelError(f"{self.name} returns a value that cannot be used: {error}", self.file, self.line) from None

        translator.cell.values = list(translator.function(self.taken, given, shape))
        return translator.cell
