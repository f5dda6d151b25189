# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of two dimensions, y, x. In the library their rows are planes of one row, arrays (ny, 1, nx)."""
from __future__ import annotations

from typing import Any

import numpy as np

from .base import Array, box_of


class Rows(Array):
    """An array of two dimensions, y, x, that is not in memory. a[y, x] reads only the cells that it names."""

    def __init__(self, planes: Array):
        """planes: (ny, 1, nx)."""
        super().__init__((planes.shape[0], planes.shape[2]), planes.dtype)
        self.planes_of, self.name, self.path = planes, planes.name, planes.path
        planes.word = self.word = "row"

    def read(self, y: slice, x: slice) -> np.ndarray:  # type: ignore[override]
        return self.planes_of.read(y, slice(0, 1, 1), x)[:, 0]

    def __getitem__(self, key: Any) -> Any:
        (y, x), drop, flip = box_of(key, self.shape)
        found = self.read(y, x)[tuple(slice(None, None, -1) if i in flip else slice(None) for i in range(2))]
        return found[tuple(0 if i in drop else slice(None) for i in range(2))]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.planes_of[key] = value

    def plane(self, z: int) -> np.ndarray:
        """Reads row z, as [x]; -1 is the last one. Raises IndexError beyond the array."""
        return self.planes_of.plane(z)[0]

    def planes(self, z0: int, z1: int) -> np.ndarray:
        """Reads rows z0 to z1 - 1, as [y][x]. Raises IndexError unless 0 <= z0 <= z1 <= shape[0]."""
        return self.planes_of.planes(z0, z1)[:, 0]

    def release(self) -> None:
        self.planes_of.release()

    def slices(self, most: int = 256) -> list[np.ndarray]:
        """Reads one picture [y][x] of the whole array, thinned to at most `most` cells a side."""
        return [self.read(*(slice(0, n, max(1, -(-n // most))) for n in self.shape))]


class AsPlanes:
    """Shows an object of two dimensions with shape, dtype and slices as one of three, whose planes are its rows."""

    def __init__(self, source: Any):
        self.source, self.dtype, self.name = source, np.dtype(source.dtype), getattr(source, "name", "")
        self.shape = (source.shape[0], 1, source.shape[1])
        chunks = getattr(source, "chunks", None)
        self.chunks = (chunks[0], 1 if isinstance(chunks[0], int) else (1,), chunks[1]) if isinstance(chunks, tuple) and len(chunks) == 2 else None
        self.computed = hasattr(source, "compute") or getattr(source, "computed", False)

    def __getitem__(self, key: Any) -> np.ndarray:
        (z, y, x), _, _ = box_of(key, self.shape)
        found = self.source[z, x]
        return np.asanyarray(found.compute() if hasattr(found, "compute") else found)[:, None][:, y]


class Onto:
    """Writes planes of one row into a dataset of two dimensions, as its rows."""

    def __init__(self, data: Any):
        self.data, self.chunks = data, None if data.chunks is None else (data.chunks[0], 1, data.chunks[1])

    def __setitem__(self, key: Any, cells: np.ndarray) -> None:
        self.data[(key[0], key[2]) if isinstance(key, tuple) else (key, slice(None))] = cells[:, 0]


def shape_of(shape: tuple, flat: bool) -> tuple:
    """The shape as users see it: (ny, nx) if flat."""
    return (shape[0], shape[2]) if flat else shape


def planes_of(array: Any) -> Any:
    """The array as the library stores it: (ny, 1, nx) in two dimensions."""
    return array.planes_of if isinstance(array, Rows) else array


def as_users_have(planes: Array, flat: bool) -> Array:
    return Rows(planes) if flat else planes
