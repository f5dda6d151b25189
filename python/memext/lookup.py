# SPDX-License-Identifier: BSD-3-Clause
"""Elements of arrays and lists at an index that depends on the cell, TABLE[x] or T3[z, y, x]. It also checks that a grid fits these arrays."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

import numpy as np

from . import expressions as ex
from .expressions import Node, Untranslatable
from .specials import node_of, symbolic
from .tables import MOST_ELEMENTS, Table

MOST_CHOICES = 64  # of values of the cell
PLACES = {"x": "nx", "y": "ny", "z": "nz"}


def element(cell: Any, local: Callable[[str, Node], Node], value: Any, index: Any, shown: str) -> Node:
    """value[index], where value holds known numbers or values of the cell. local: gives a value a name in the kernel."""
    indices = [node_of(i) for i in (index if isinstance(index, tuple) else (index,))]
    if any(i.type not in ("int", "bool") for i in indices):
        raise Untranslatable(f"an index of {shown} is not an integer: write int(...)")
    indices = [ex.cast(i, "int") for i in indices]
    indices = [i if i.op in ("local", "number", "coordinate") else local("index", i) for i in indices]
    if isinstance(value, (list, tuple)) and symbolic(value):
        return _one_of(value, indices, shown)
    table = _array(value, shown)
    if len(indices) != table.ndim:
        raise Untranslatable(f"{shown} has {table.ndim} dimensions and is given {len(indices)} indices: give one for each dimension, "
                             f"{shown}[{', '.join('zyx'[-table.ndim:] if table.ndim < 4 else '...')}]")
    safe = False
    for axis, (i, n) in enumerate(zip(indices, table.shape)):
        if not -n <= i.lo <= i.hi < n:
            lo, hi = bounds(i, dict(cell.locals), dict.fromkeys(PLACES.values(), 1))
            if not -n <= lo <= hi < n:  # in the smallest grid already
                raise Untranslatable(_too_small(shown, table.ndim, axis, n, lo, hi) + ": keep the index within it by min, max or %")
            safe = True
    asked, indices = indices, [_from_the_end(i, n) for i, n in zip(indices, table.shape)]
    kind = {"b": "bool", "i": "int", "u": "int", "f": "f8" if table.dtype.itemsize == 8 else "f4"}[table.dtype.kind]
    lo, hi = (int(table.min()), int(table.max())) if kind in ("int", "bool") else (0, 0)
    made = Node("table", tuple(indices), kind, min(lo, 0) if safe else lo, max(hi, 0) if safe else hi)
    made.data = Table(table, shown, ex.c_type(made), safe, asked)
    return made


def _array(value: Any, shown: str) -> np.ndarray:
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise Untranslatable(f"{shown} is of type {type(value).__name__}: only an array, a list or a tuple of numbers can have an index that depends on the cell")
    try:
        table = np.array(value)
    except ValueError:
        table = np.array(None)
    if table.dtype.kind not in "biuf" or table.dtype.itemsize > 8 or table.ndim == 0 or table.size == 0:
        raise Untranslatable(f"{shown} is not an array of integers or floating-point numbers: a value of the cell cannot be its index")
    if table.size > MOST_ELEMENTS:
        raise Untranslatable(f"{shown} has {table.size} elements, and a table of a kernel at most {MOST_ELEMENTS}: make it a read-only field (fixed)")
    if table.dtype.kind == "u" and table.dtype.itemsize == 8 and int(table.max()) >= 2**62:
        raise Untranslatable(f"{shown} holds {int(table.max())}, and a table of a kernel only integers below 2^62")
    return table.astype("f4") if table.dtype == np.float16 else table.astype(table.dtype.newbyteorder("="))


def _from_the_end(i: Node, n: int) -> Node:
    """The index from the beginning: negative ones count from the end."""
    if ex.is_number(i):
        return ex.number(i.data + n if i.data < 0 else i.data)
    if i.lo >= 0:
        return i
    return ex.where(ex.binary("<", i, ex.number(0)), ex.binary("+", i, ex.number(n)), i)


def _one_of(values: Any, indices: list[Node], shown: str) -> Node:
    n = len(values)
    if len(indices) != 1 or n > MOST_CHOICES or any(isinstance(v, (list, tuple, dict)) for v in values):
        raise Untranslatable(f"{shown} holds values of the cell: an index that depends on the cell can choose from a flat list of at most {MOST_CHOICES}")
    i = indices[0]
    if not -n <= i.lo <= i.hi < n:
        raise Untranslatable(_too_small(shown, 1, 0, n, i.lo, i.hi) + ": keep the index within it by min, max or %")
    nodes = list(map(node_of, values))
    kind = ex.common(*nodes)
    nodes = [ex.cast(v, "f8" if kind == "float" else kind) if kind != "bool" else v for v in nodes]
    i, made = _from_the_end(i, n), nodes[-1]
    for k in range(n - 2, -1, -1):
        made = ex.where(ex.binary("==", i, ex.number(k)), nodes[k], made)
    return made


def _too_small(shown: str, axes: int, axis: int, n: int, lo: int, hi: int) -> str:
    where = f" along axis {axis}" if axes > 1 else ""
    needed = f"{hi + 1} are needed" if lo >= -n else f"the index goes down to {lo}"
    return f"{shown} has {n} elements{where}, and {needed}" if hi < 2**31 else f"{shown} has {n} elements{where}, and the index may be any integer"


# ------------------------------------------------------------------ in a grid

def bounds(node: Node, known: Mapping[str, Node], extents: Mapping[str, int]) -> tuple[int, int]:
    """The smallest and the largest value of an integer expression in a grid of these extents (cells)."""
    def of(n: Node) -> tuple[int, int]:
        return bounds(n, known, extents)

    if node.op == "coordinate":
        if node.data in PLACES:
            return 0, extents[PLACES[node.data]] - 1
        return (extents[node.data],) * 2 if node.data in extents else (node.lo, node.hi)
    if node.op == "local":
        return of(known[node.data])
    if node.type not in ("int", "bool") or not node.args:
        return node.lo, node.hi
    if node.op == "where":
        a, b = of(node.args[1]), of(node.args[2])
        return min(a[0], b[0]), max(a[1], b[1])
    if node.op == "cast" and node.args[0].type in ("int", "bool"):
        return of(node.args[0])
    spans = [of(a) for a in node.args if a.type in ("int", "bool")]
    if len(spans) == len(node.args) == 1 and node.op == "neg":
        return -spans[0][1], -spans[0][0]
    if len(spans) == len(node.args) == 2 and node.op in ("+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "min", "max"):
        a, b = (arg if ex.is_number(arg) else Node("at", (), "int", *span, data=("", 0, 0, 0)) for arg, span in zip(node.args, spans))
        made = ex.extreme(node.op, a, b) if node.op in ("min", "max") else ex.binary(node.op, a, b)
        if node.op == "%" and a.lo >= 0 and b.lo > 0:
            return 0, min(a.hi, made.hi)
        return max(made.lo, node.lo), min(made.hi, node.hi)
    return node.lo, node.hi


def misfits(cell: Any, shape: tuple[int, int, int]) -> list[str]:
    """Names each table of a kernel that is too small for a grid of `shape` (nz, ny, nx) interior cells, with its size and the size needed."""
    extents, known, found = dict(zip(("nz", "ny", "nx"), shape)), dict(cell.locals), []
    for node in cell.nodes():
        if node.op != "table" or not node.data.safe:
            continue
        for axis, (i, n) in enumerate(zip(node.data.asked, node.data.values.shape)):
            lo, hi = bounds(i, known, extents)
            if lo < -n or hi >= n:
                found.append(_too_small(node.data.shown, node.data.values.ndim, axis, n, lo, hi) + f" in a grid of {' x '.join(map(str, shape))} cells (z, y, x)")
    return found
