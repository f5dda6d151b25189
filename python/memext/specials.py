# SPDX-License-Identifier: BSD-3-Clause
"""What means something of its own in a cell: fields, and the functions that become expressions of the cell's values."""
from __future__ import annotations

import builtins
import math
from typing import Any, Callable

import numpy as np

from . import expressions as ex
from .expressions import Node, Untranslatable


class FieldRef:
    """A field as an argument: FIELD[dx, dy, dz], FIELD.old, or FIELD for FIELD[0, 0, 0]."""

    def __init__(self, name: str, dtype: str, radius: int, readable: bool = True):
        self.name, self.dtype, self.radius, self.readable = name, dtype, radius, readable


class Special:
    """A function that means something else in a cell."""

    def __init__(self, name: str, call: Callable):
        self.name, self.call = name, call


def _fold(op: str) -> Callable:
    def several(*args):
        if len(args) == 1:
            args = tuple(args[0])
        value = node_of(args[0])
        for a in args[1:]:
            value = ex.extreme(op, value, node_of(a))
        return value
    return several


def _specials() -> dict[Any, Special]:
    table: dict[Any, Special] = {}

    def add(name: str, call: Callable, *functions: Any) -> None:
        for function in functions:
            table[id(function)] = Special(name, call)

    add("where", lambda c, a, b: ex.where(node_of(c), node_of(a), node_of(b)), np.where, where)
    add("min", _fold("min"), builtins.min, np.minimum, minimum)
    add("max", _fold("max"), builtins.max, np.maximum, maximum)
    add("abs", lambda a: ex.call("abs", node_of(a)), builtins.abs, np.abs, np.fabs, math.fabs)
    add("sqrt", lambda a: ex.call("sqrt", node_of(a)), math.sqrt, np.sqrt, sqrt)
    add("float", lambda a: ex.cast(node_of(a), "f8"), builtins.float, np.float64)
    add("f4", lambda a: ex.cast(node_of(a), "f4"), np.float32)
    add("int", lambda a: ex.cast(node_of(a), "int"), builtins.int, np.int64)
    add("bool", lambda a: ex.truth(node_of(a)), builtins.bool, np.bool_)
    add("and", lambda a, b: ex.binary("&", ex.truth(node_of(a)), ex.truth(node_of(b))), np.logical_and)
    add("or", lambda a, b: ex.binary("|", ex.truth(node_of(a)), ex.truth(node_of(b))), np.logical_or)
    add("not", lambda a: ex.unary("!", node_of(a)), np.logical_not)
    for name in ex.FUNCTIONS:
        aliases = [getattr(math, name, None), getattr(np, name, None),
                   {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "pow": np.power}.get(name)]
        add(name, lambda *a, name=name: ex.call(name, *map(node_of, a)), *[a for a in aliases if a is not None])
    return table


def where(condition, a, b):
    """a where the condition holds, else b; in kernels and on arrays."""
    return np.where(condition, a, b)


def minimum(a, b):
    """The smaller of both; in kernels and on arrays."""
    return np.minimum(a, b)


def maximum(a, b):
    """The larger of both; in kernels and on arrays."""
    return np.maximum(a, b)


def sqrt(a):
    """The square root; in kernels and on arrays."""
    return np.sqrt(a)


_table: dict[Any, Special] = {}


def special(function: Any) -> Special | None:
    if not _table:
        _table.update(_specials())
    return _table.get(id(function))


def node_of(value: Any) -> Node:
    if isinstance(value, Node):
        return value
    if isinstance(value, FieldRef):
        if not value.readable:
            raise Untranslatable(f"{value.name} is computed from the other array: {value.name}.old is the value that is replaced")
        return ex.load("at", value.name, value.dtype)
    return ex.number(value)
