# SPDX-License-Identifier: BSD-3-Clause
"""Functions of several values of a cell, in lists and tuples: extremes, sums, sorting, and which of them is the smallest. The order of sums is that of
the list. Sorting is done by neighbours that change places, so that equal values stay in their order, as in Python; NaN is larger than all."""
from __future__ import annotations

import builtins
import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from . import expressions as ex
from .expressions import Node, Untranslatable
from .functions import pair, together
from .specials import FieldRef, node_of

MOST_SORTED = 64
Local = Callable[[str, Node], Node]


def _flat(values: Any, axis: Any = None, deep: bool = True) -> list:
    """The values of a list; of lists in lists too, where numpy takes all of them."""
    if isinstance(values, (Node, FieldRef)):
        if not deep:
            raise Untranslatable("one value where a list or a tuple of values is needed")
        return [values]
    out: list = []
    for value in values.ravel() if isinstance(values, np.ndarray) else values:
        nested = isinstance(value, (list, tuple, np.ndarray))
        if nested and (not deep or axis is not None):
            raise Untranslatable("a list within the list: join them before, or take one after the other")
        out.extend(_flat(value) if nested else [value])
    if axis not in (None, 0, -1):
        raise Untranslatable(f"axis={axis!r}: lists of values of the cell have one axis")
    if not out:
        raise Untranslatable("an empty list")
    return out


def _extreme(name: str) -> Callable:
    def call(a: Any, axis: Any = None) -> Node:
        first, *others = together(*_flat(a, axis))
        for other in others:
            first = pair(name, first, other)
        return first
    return call


def _fold(op: str, real: bool = False) -> Callable:
    def call(a: Any, axis: Any = None) -> Node:
        total, *others = together(*_flat(a, axis), real=real)
        for other in others:
            total = ex.binary(op, total, other)
        return total
    return call


def _mean(a: Any, axis: Any = None) -> Node:
    return ex.binary("/", _fold("+", real=True)(a, axis), ex.number(len(_flat(a))))


def _prod(values: Any, *, start: Any = 1) -> Node:
    total = None if isinstance(start, int) and start == 1 else node_of(start)
    for value in _flat(values, deep=False):
        total = node_of(value) if total is None else ex.binary("*", total, node_of(value))
    return total  # type: ignore[return-value]


def _dot(a: Any, b: Any) -> Node:
    if isinstance(a, (Node, FieldRef)) or isinstance(b, (Node, FieldRef)):
        return ex.binary("*", node_of(a), node_of(b))
    if any(isinstance(v, (list, tuple, np.ndarray)) for v in [*a, *b]):
        raise Untranslatable("np.dot of matrices: write a sum for each value, sum(m * v for m, v in zip(row, values))")
    if len(a) != len(b):
        raise Untranslatable(f"np.dot of {len(a)} and {len(b)} values")
    values = together(*a, *b)
    return _fold("+")([ex.binary("*", p, q) for p, q in zip(values, values[len(a):])])


def _truths(op: str) -> Callable:
    def call(a: Any, axis: Any = None) -> Node:
        first, *others = (ex.truth(node_of(v)) for v in _flat(a, axis))
        for other in others:
            first = ex.binary(op, first, other)
        return first
    return call


def _arranged(local: Local, values: list, passes: int) -> list[Node]:
    """Sorted, as far as so many of the largest are in their places."""
    nodes = together(*values)
    if len(nodes) > MOST_SORTED:
        raise Untranslatable(f"{len(nodes)} values to sort; {MOST_SORTED} at most")
    nodes = [n if n.op in ("local", "number") else local("unsorted", n) for n in nodes]
    for done in range(min(passes, len(nodes) - 1)):
        for k in range(len(nodes) - 1 - done):
            a, b = nodes[k], nodes[k + 1]
            nodes[k], nodes[k + 1] = local("lower", pair("first", a, b)), local("higher", pair("second", a, b))
    return nodes


def _sorted(local: Local, values: Any, *, key: Any = None, reverse: Any = False) -> list[Node]:
    if key is not None:
        raise Untranslatable("sorted with a key that depends on the cell: sort what the key gives")
    values = _flat(values, deep=False)
    if reverse:
        return _arranged(local, values[::-1], len(values))[::-1]
    return _arranged(local, values, len(values))


def _np_sort(local: Local, a: Any, axis: Any = -1) -> list[Node]:
    values = _flat(a, axis, deep=False)
    return _arranged(local, values, len(values))


def _middle(local: Local, values: list) -> tuple[Node, Node]:
    """The median, and the largest of all."""
    n = len(values)
    nodes = _arranged(local, values, n - (n - 1) // 2)
    if n % 2:
        return nodes[n // 2], nodes[-1]
    return ex.binary("/", ex.binary("+", nodes[n // 2 - 1], nodes[n // 2]), ex.number(2)), nodes[-1]


def _median(local: Local, data: Any) -> Node:
    return _middle(local, _flat(data, deep=False))[0]


def _np_median(local: Local, a: Any, axis: Any = None) -> Node:
    median, largest = _middle(local, together(*_flat(a, axis), real=True))
    return ex.where(ex.helper("isnan", largest), largest, median)


def _place(name: str) -> Callable:
    def call(local: Local, a: Any, axis: Any = None) -> Node:
        best, *others = (n if n.op in ("local", "number") else local("one", n) for n in together(*_flat(a, axis)))
        place = ex.number(0)
        for k, other in enumerate(others, 1):
            better = local("better", ex.helper(name, other, best))
            place = local("place", ex.where(better, ex.number(k), place))
            if k < len(others):
                best = local("best", ex.where(better, other, best))
        return place
    return call


TABLE: list[tuple] = [
    ("np.min", [np.min, np.amin], (_extreme("lower"), ("axis",))), ("np.max", [np.max, np.amax], (_extreme("higher"), ("axis",))),
    ("np.sum", [np.sum], (_fold("+"), ("axis",))), ("np.prod", [np.prod], (_fold("*"), ("axis",))), ("np.mean", [np.mean], (_mean, ("axis",))),
    ("math.prod", [math.prod], (_prod, ("start",))), ("np.dot", [np.dot, np.inner, np.vdot], (_dot,)),
    ("any", [builtins.any], (_truths("|"),)), ("all", [builtins.all], (_truths("&"),)),
    ("np.any", [np.any], (_truths("|"), ("axis",))), ("np.all", [np.all], (_truths("&"), ("axis",))),
    ("sorted", [builtins.sorted], (_sorted, ("key", "reverse"), True)), ("np.sort", [np.sort], (_np_sort, ("axis",), True)),
    ("statistics.median", [statistics.median], (_median, (), True)), ("np.median", [np.median], (_np_median, ("axis",), True)),
    ("np.argmin", [np.argmin], (_place("less"), ("axis",), True)), ("np.argmax", [np.argmax], (_place("more"), ("axis",), True))]
