# SPDX-License-Identifier: BSD-3-Clause
"""Functions of several values of a cell in a list or tuple: extremes, sums, sorting, and the index of the smallest or largest. Sums add in the order of
the list. Sorting exchanges neighbours, so that equal values keep their order, as in Python. NaN is larger than all numbers."""
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
    """The values of a list. Lists within lists are flattened where numpy would use all of their values."""
    if isinstance(values, (Node, FieldRef)):
        if not deep:
            raise Untranslatable("this function is given one value of the cell: give it a list or a tuple of values")
        return [values]
    out: list = []
    for value in values.ravel() if isinstance(values, np.ndarray) else values:
        nested = isinstance(value, (list, tuple, np.ndarray))
        if nested and (not deep or axis is not None):
            raise Untranslatable("this function cannot use a list within a list: join the lists with +, or call it for each of them")
        out.extend(_flat(value) if nested else [value])
    if axis not in (None, 0, -1):
        raise Untranslatable(f"axis={axis!r} does not exist: a list of values of the cell has one axis, axis=0")
    if not out:
        raise Untranslatable("this function is given an empty list: give it at least one value")
    return out


def _extreme(name: str) -> Callable:
    def call(a: Any, axis: Any = None) -> Node:
        first, *others = together(*_flat(a, axis))
        for other in others:
            first = pair(name, first, other)
        return first
    return call


def _chain(local: Local, op: str, nodes: list[Node]) -> Node:
    """The nodes in their order, with the operator between them."""
    total, *others = nodes
    for other in others:
        total = ex.shallow(local, ex.binary(op, total, other))
    return total


def _fold(op: str, real: bool = False) -> Callable:
    def call(local: Local, a: Any, axis: Any = None) -> Node:
        return _chain(local, op, together(*_flat(a, axis), real=real))
    return call


def _mean(local: Local, a: Any, axis: Any = None) -> Node:
    return ex.binary("/", _fold("+", real=True)(local, a, axis), ex.number(len(_flat(a))))


def _prod(local: Local, values: Any, *, start: Any = 1) -> Node:
    first = [] if isinstance(start, int) and start == 1 else [node_of(start)]
    return _chain(local, "*", [*first, *map(node_of, _flat(values, deep=False))])


def _dot(local: Local, a: Any, b: Any) -> Node:
    if isinstance(a, (Node, FieldRef)) or isinstance(b, (Node, FieldRef)):
        return ex.binary("*", node_of(a), node_of(b))
    if any(isinstance(v, (list, tuple, np.ndarray)) for v in [*a, *b]):
        raise Untranslatable("np.dot of matrices is not supported: write a sum for each value, sum(m * v for m, v in zip(row, values))")
    if len(a) != len(b):
        raise Untranslatable(f"np.dot is given {len(a)} and {len(b)} values: give it lists of the same length")
    values = together(*a, *b)
    return _fold("+")(local, [ex.binary("*", p, q) for p, q in zip(values, values[len(a):])])


def _truths(op: str) -> Callable:
    def call(a: Any, axis: Any = None) -> Node:
        first, *others = (ex.truth(node_of(v)) for v in _flat(a, axis))
        for other in others:
            first = ex.binary(op, first, other)
        return first
    return call


def _arranged(local: Local, values: list, passes: int) -> list[Node]:
    """Sorts until `passes` of the largest values are in their places."""
    nodes = together(*values)
    if len(nodes) > MOST_SORTED:
        raise Untranslatable(f"a list of {len(nodes)} values is too long to sort: a kernel sorts at most {MOST_SORTED}")
    nodes = [n if n.op in ("local", "number") else local("unsorted", n) for n in nodes]
    for done in range(min(passes, len(nodes) - 1)):
        for k in range(len(nodes) - 1 - done):
            a, b = nodes[k], nodes[k + 1]
            nodes[k], nodes[k + 1] = local("lower", pair("first", a, b)), local("higher", pair("second", a, b))
    return nodes


def _sorted(local: Local, values: Any, *, key: Any = None, reverse: Any = False) -> list[Node]:
    if key is not None:
        raise Untranslatable("a kernel cannot sort values of the cell by key=: sort the values that the key returns")
    values = _flat(values, deep=False)
    if reverse:
        return _arranged(local, values[::-1], len(values))[::-1]
    return _arranged(local, values, len(values))


def _np_sort(local: Local, a: Any, axis: Any = -1) -> list[Node]:
    values = _flat(a, axis, deep=False)
    return _arranged(local, values, len(values))


def _middle(local: Local, values: list) -> tuple[Node, Node]:
    """The median, and the largest of all values."""
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
    ("np.sum", [np.sum], (_fold("+"), ("axis",), True)), ("np.prod", [np.prod], (_fold("*"), ("axis",), True)), ("np.mean", [np.mean], (_mean, ("axis",), True)),
    ("math.prod", [math.prod], (_prod, ("start",), True)), ("np.dot", [np.dot, np.inner, np.vdot], (_dot, (), True)),
    ("any", [builtins.any], (_truths("|"),)), ("all", [builtins.all], (_truths("&"),)),
    ("np.any", [np.any], (_truths("|"), ("axis",))), ("np.all", [np.all], (_truths("&"), ("axis",))),
    ("sorted", [builtins.sorted], (_sorted, ("key", "reverse"), True)), ("np.sort", [np.sort], (_np_sort, ("axis",), True)),
    ("statistics.median", [statistics.median], (_median, (), True)), ("np.median", [np.median], (_np_median, ("axis",), True)),
    ("np.argmin", [np.argmin], (_place("less"), ("axis",), True)), ("np.argmax", [np.argmax], (_place("more"), ("axis",), True))]
