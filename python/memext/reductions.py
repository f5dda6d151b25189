# SPDX-License-Identifier: BSD-3-Clause
"""Reductions: the sum, maximum or minimum of an expression over cells."""
from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from typing import Any, Callable

import numpy as np

from .errors import KernelError
from .exact import real
from .known import Taker
from .part import Part
from .translate import Cell

OPERATIONS = ("sum", "max", "min")


class Reduction:
    """The sum, maximum or minimum (op "sum", "max", "min") of a function over cells: one value for the grid (per None), or one for every plane (per "z")."""

    def __init__(self, function: Callable, per: str | None, op: str, params: Mapping[str, float] | None):
        if op not in OPERATIONS:
            raise KernelError(f"op={op!r} is not known: give one of {', '.join(OPERATIONS)}")
        if per not in (None, "z"):
            raise KernelError(f"per={per!r} is not known: give None (one number) or 'z' (one for every plane)")
        self.function, self.per, self.op, self.params = function, per, op, {n: real(v, f"params[{n!r}]") for n, v in (params or {}).items()}
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

    def part(self, kernel: Any) -> Part:
        fixed = {n: d for n, d in kernel._fixed.items() if n in inspect.signature(self.function).parameters}
        part = Part(self.function, fixed, {**kernel.params, **self.params}, self._taken)
        unknown = [n for n in part.fields if n not in kernel.state + kernel.partner]
        if unknown:
            raise KernelError(f"{', '.join(unknown)} of {self.name} is not a field of {kernel.name}: its fields are "
                              f"{', '.join([*kernel.state, *kernel.partner, *kernel.fixed])}", part.file, part.line)
        return part

    def translate(self, code: Any) -> Cell:
        part = self.part(code.kernel)
        cell = part.translate(code.dtypes, code.real, None)
        far = cell.reach(set(code.dtypes))
        if far > code.radius:
            raise KernelError(f"{self.name} reads neighbours {far} cells away: a reduction of {code.kernel.name} can read at most {code.radius}, the width of its frame",
                              part.file, part.line)
        if cell.reads_old():
            raise KernelError(f"{self.name} reads .old, the value that a step replaces: a reduction can read only the present state", part.file, part.line)
        return cell


class Reduced(np.ndarray):
    """The values of a reduction: an array (f8) with one value for each plane, or a single one, and the properties `total` and `spread`. floor: `spread`
    is relative to it if the mean is smaller; 0: always to the mean."""

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
        """The absolute mean of the planes that `spread` uses."""
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
        """(largest - smallest) / |mean| of the planes, or / floor if that is greater than |mean|. The criterion NAME-spread of `until` compares this
        number. It leaves out the first and the last of three or more planes if they are exactly 0, as long as two remain: a flux to the next plane has
        no value at an end. It is inf if the mean and the floor are 0. Without a floor, the spread of a flux that goes to 0 consists of rounding errors,
        and may never fall."""
        values, mean = self._ends_left_out(), max(self.mean_size, self.floor)
        return float((values.max() - values.min()) / mean) if len(values) and mean != 0 else float("inf")
