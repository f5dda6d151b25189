# SPDX-License-Identifier: BSD-3-Clause
"""Makes coarse copies of an array, 2, 4 and 8 times smaller, in one pass over it. The format in which they are written does not matter."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from .arrays import Array
from .pieces import chunks_of, groups


def _pairs(a: np.ndarray, axis: int) -> np.ndarray:
    """The means of cells 0 and 1, 2 and 3, and so on. A last cell without a partner stays as it is."""
    n = a.shape[axis]
    first, second = [slice(None)] * 2, [slice(None)] * 2
    first[axis], second[axis] = slice(0, n - n % 2, 2), slice(1, n, 2)
    half = a.dtype.type(0.5)
    mean = a[tuple(first)] * half + a[tuple(second)] * half  # a sum might overflow
    if n % 2 == 0:
        return mean
    first[axis] = slice(n - 1, n)
    return np.concatenate([mean, a[tuple(first)]], axis=axis)


class _Halver:
    """Gets planes in order, and passes on the planes of an array with half the extents, rounded up. Each cell is the mean of the 2 x 2 x 2 cells that it
    covers, or of fewer at the ends."""

    def __init__(self, take: Callable[[np.ndarray], None]):
        self.take, self.held = take, None

    def put(self, plane: np.ndarray) -> None:
        half = _pairs(_pairs(plane, 1), 0)
        if self.held is None:
            self.held = half
            return
        half *= half.dtype.type(0.5)
        half += self.held * half.dtype.type(0.5)
        self.held = None
        self.take(half)

    def end(self) -> None:
        if self.held is not None:
            held, self.held = self.held, None
            self.take(held)


def _rounded(plane: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The nearest integers of the type. A mean of its largest integers, as a double, may be beyond them."""
    whole, ends = np.rint(plane), np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        cells = whole.astype(dtype)
    cells[whole >= float(ends.max)], cells[whole <= float(ends.min)] = ends.max, ends.min
    return cells


class _Level:
    """Writes planes into a dataset, in groups as deep as its chunks."""

    def __init__(self, data: Any, dtype: np.dtype):
        self.data, self.dtype, self.z, self.held = data, dtype, 0, []
        self.deep = data.chunks[0]

    def put(self, plane: np.ndarray) -> None:
        self.held.append(_rounded(plane, self.dtype) if self.dtype.kind in "iu" else plane.astype(self.dtype, copy=False))
        if len(self.held) == self.deep:
            self.end()

    def end(self) -> None:
        if self.held:
            self.data[self.z:self.z + len(self.held)] = np.stack(self.held)
            self.z, self.held = self.z + len(self.held), []


def _coarsen(array: Array, levels: list[_Level]) -> None:
    """Makes all levels in one pass: every plane is read once."""
    halvers: list[_Halver] = []
    for level in reversed(levels):
        after = halvers[-1] if halvers else None

        def take(plane: np.ndarray, level: _Level = level, after: _Halver | None = after) -> None:
            level.put(plane)
            if after is not None:
                after.put(plane)
        halvers.append(_Halver(take))
    wide = np.dtype("f4") if array.dtype.str[1:] in ("f4", "u1", "i1", "u2", "i2") else np.dtype("f8")
    for _box, planes in groups(array, (1, max(1, array.shape[1]))):  # whole planes
        for plane in planes:
            halvers[-1].put(plane.astype(wide))
    for halver, level in zip(reversed(halvers), levels):
        halver.end()
        level.end()


def shapes(array: Array, levels: int) -> list[tuple[int, ...]]:
    return [tuple(-(-n // 2**k) for n in array.shape) for k in range(1, levels + 1)]


def fill(make: Callable[[str, tuple[int, ...], np.dtype], Any], array: Array, levels: int) -> None:
    dtype = coarse_type(array)
    _coarsen(array, [_Level(make(f"{2**k}x", shape, dtype), dtype) for k, shape in enumerate(shapes(array, levels), 1)])


def coarse_type(array: Array) -> np.dtype:
    return np.dtype("u1") if array.dtype.kind == "b" else array.dtype


def chunks_of_shape(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, int, int]:
    return chunks_of(Array(shape, dtype))
