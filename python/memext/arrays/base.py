# SPDX-License-Identifier: BSD-3-Clause
"""Array: cells in a store or a file. Only the cells that a program asks for are read."""
from __future__ import annotations

import operator
import pathlib
from collections.abc import Iterator
from typing import Any, Callable

import numpy as np

from .. import _core
from ..errors import refusal

# Functions for arrays and stores from files above this folder. memext/__init__.py fills this table.
ACTIONS: dict[str, Callable[..., Any]] = {}


class Array:
    """An array of three dimensions, z, y, x, that is not in memory, with shape, dtype, ndim, size and nbytes.

    a[z, y, x] reads only the cells that its integers and slices name, and returns a numpy array. numpy.asarray(a) reads all cells; it raises
    MemoryRefused if DRAM cannot hold them. A loop over the array reads plane by plane. plane(z) and planes(z0, z1) read planes.
    An assignment raises MemextError, except to fields of the state of a Run (see Run.steps)."""
    name = "array"
    path: pathlib.Path | None = None
    files: list[pathlib.Path] | None = None  # where there are several
    word = "plane"  # what the first dimension counts; of two dimensions "row"

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape, self.dtype = tuple(int(n) for n in shape), np.dtype(dtype)
        if self.dtype.kind not in "biufc":  # a file's bytes are no addresses either
            raise refusal(f"cells of {self.dtype} are {'Python objects, ' if self.dtype.hasobject else ''}not numbers: convert them with astype")
        self.ndim, self.size = len(self.shape), int(np.prod([int(n) for n in self.shape], dtype=object))
        self.nbytes = self.size * self.dtype.itemsize

    # ---- for subclasses to define

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        """Reads the cells of three slices with positive steps, within the shape."""
        raise NotImplementedError

    def release(self) -> None:
        """Frees cells that are held in memory; they are read again when they are needed."""

    # ---- common to all arrays

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<memext {type(self).__name__} {self.name}: {self.dtype.name} {self.shape}, {_core.size_text(self.nbytes)}>"

    def __getitem__(self, key: Any) -> Any:
        slices, drop, flip = box_of(key, self.shape)
        found = self.read(*slices)
        if flip:
            found = found[tuple(slice(None, None, -1) if i in flip else slice(None) for i in range(3))]
        return found[tuple(0 if i in drop else slice(None) for i in range(3))]

    def __setitem__(self, key: Any, value: Any) -> None:
        raise refusal(f"{self.name} is read-only: only fields of the state of a Run with a store can be assigned to, between its steps")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"{self.name} is not in memory, so numpy cannot use it without a copy: leave copy=False out")
        _core.require_dram(self.nbytes, self.name, "read slices of it, or save it to a file")
        return self[...] if dtype is None else self[...].astype(dtype, copy=False)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Reads the planes in order of z."""
        return (self.plane(z) for z in range(self.shape[0]))

    def _within(self, z: Any) -> int:
        """The number of a plane, from 0."""
        z, n = operator.index(z), self.shape[0]
        if not -n <= z < n:
            raise IndexError(f"{self.name} has no {self.word} {z}: it has {n}")
        return z % n

    def _both_within(self, z0: Any, z1: Any) -> tuple[int, int]:
        """The first plane of some, and the one behind the last."""
        z0, z1 = operator.index(z0), operator.index(z1)  # a sum of numpy's unsigned and signed integers would be float64
        if not 0 <= z0 <= z1 <= self.shape[0]:
            raise IndexError(f"{self.name} has no {self.word}s {z0} to {z1}: it has {self.shape[0]}")
        return z0, z1

    def plane(self, z: int) -> np.ndarray:
        """Reads plane z, as [y][x]; -1 is the last one. Raises IndexError beyond the array."""
        z = self._within(z)
        return self.read(slice(z, z + 1, 1), slice(0, self.shape[1], 1), slice(0, self.shape[2], 1))[0]

    def planes(self, z0: int, z1: int) -> np.ndarray:
        """Reads planes z0 to z1 - 1, as [z][y][x]. Raises IndexError unless 0 <= z0 <= z1 <= shape[0]."""
        z0, z1 = self._both_within(z0, z1)
        return self.read(slice(z0, z1, 1), slice(0, self.shape[1], 1), slice(0, self.shape[2], 1))

    def slices(self, most: int = 256) -> list[np.ndarray]:
        """Reads three orthogonal slices through the middle, [y][x], [z][x] and [z][y], thinned to at most `most` cells a side."""
        step = [max(1, -(-n // most)) for n in self.shape]
        whole = [slice(0, n, s) for n, s in zip(self.shape, step)]
        out = []
        for axis in range(3):
            middle = self.shape[axis] // 2
            key = [slice(middle, middle + 1, 1) if i == axis else whole[i] for i in range(3)]
            out.append(np.squeeze(self.read(*key), axis=axis))
        return out

    def save(self, path: Any, dataset: str | None = None, **options: Any) -> pathlib.Path:
        """Writes the array to .npy, .h5, .zarr or raw cells, plane by plane, and returns the path; see memext.save."""
        return ACTIONS["save"](self, path, dataset, **options)

    def pyramid(self, path: Any, levels: int = 3, **options: Any) -> dict[str, list[Array]]:
        """Writes coarse copies, 2, 4 and 8 times smaller, for napari and ParaView; see memext.pyramid."""
        return ACTIONS["pyramid"](self, path, levels, **options)

    def _repr_html_(self) -> str:
        return ACTIONS["array_html"](self)


def box_of(key: Any, shape: tuple[int, ...]) -> tuple[list[slice], set[int], set[int]]:
    """An index as slices with positive steps, the dimensions that disappear, and the dimensions to reverse."""
    key = key if isinstance(key, tuple) else (key,)
    if any(k is None or isinstance(k, (list, np.ndarray, bool, np.bool_)) for k in key):
        raise IndexError("the index of an array that is not in memory can hold only integers, slices and ...: read a part, and index that")
    if sum(k is Ellipsis for k in key) > 1:
        raise IndexError("an index can hold ... only once")
    if Ellipsis in key:
        at = key.index(Ellipsis)
        key = key[:at] + (slice(None),) * (len(shape) - len(key) + 1) + key[at + 1:]
    if len(key) > len(shape):
        raise IndexError(f"an array of {len(shape)} dimensions cannot have {len(key)} indices")
    key += (slice(None),) * (len(shape) - len(key))
    slices, drop, flip = [], set(), set()
    for i, (k, n) in enumerate(zip(key, shape)):
        if isinstance(k, slice):
            start, stop, step = k.indices(n)
            count = len(range(start, stop, step))
            if step < 0:
                start, step = start + (count - 1) * step, -step
                flip.add(i)
            slices.append(slice(start, start + (count - 1) * step + 1, step) if count > 0 else slice(0, 0, 1))
            continue
        try:
            k = operator.index(k)
        except TypeError:
            raise IndexError(f"{k!r} is not an index: give integers, slices and ...") from None
        if not -n <= k < n:
            raise IndexError(f"index {k} is outside dimension {i}, which has {n} cells")
        slices.append(slice(k % n, k % n + 1, 1))
        drop.add(i)
    return slices, drop, flip


def cells_in(s: slice) -> int:
    return len(range(s.start, s.stop, s.step))
