# SPDX-License-Identifier: BSD-3-Clause
"""Array: cells in a store or a file, of which no more is read than what is asked for."""
from __future__ import annotations

import operator
import pathlib
from collections.abc import Iterator
from typing import Any, Callable

import numpy as np

from .. import _core
from ..errors import refusal

# What is done with arrays and stores by files that stand above this folder: the one table, which memext/__init__.py fills.
ACTIONS: dict[str, Callable[..., Any]] = {}


class Array:
    """An array of three dimensions, z, y, x, that is not in memory. shape, dtype, ndim; a[z, y, x] with whole numbers and slices reads
    what they name and no more; numpy.asarray(a) reads all of it, or refuses where DRAM does not hold that."""
    name = "array"
    path: pathlib.Path | None = None
    files: list[pathlib.Path] | None = None  # where there are several
    word = "plane"  # what the first dimension counts; of two dimensions "row"

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape, self.dtype = tuple(int(n) for n in shape), np.dtype(dtype)
        if self.dtype.kind not in "biufc":  # a file's bytes are no addresses either
            raise refusal(f"cells of {self.dtype} are {'objects of Python, not' if self.dtype.hasobject else 'no real'} numbers: convert them")
        self.ndim, self.size = len(self.shape), int(np.prod([int(n) for n in self.shape], dtype=object))
        self.nbytes = self.size * self.dtype.itemsize

    # ---- what subclasses have

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        """The cells of three slices with positive steps, within the shape."""
        raise NotImplementedError

    def release(self) -> None:
        """Gives up what is held in memory to be read again."""

    # ---- what all have

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
        raise refusal(f"the cells of {self.name} are only read: a program assigns to fields of the state of a Run that has a store, between its steps")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"{self.name} is not in memory: it cannot be had without a copy")
        _core.require_dram(self.nbytes, self.name, "take slices of it, or save it to a file")
        return self[...] if dtype is None else self[...].astype(dtype, copy=False)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Planes in order of z."""
        return (self.plane(z) for z in range(self.shape[0]))

    def plane(self, z: int) -> np.ndarray:
        z = operator.index(z)
        return self.read(slice(z, z + 1, 1), slice(0, self.shape[1], 1), slice(0, self.shape[2], 1))[0]

    def planes(self, z0: int, z1: int) -> np.ndarray:
        z0, z1 = operator.index(z0), operator.index(z1)  # numpy's unsigned numbers become reals in sums
        return self.read(slice(z0, z1, 1), slice(0, self.shape[1], 1), slice(0, self.shape[2], 1))

    def slices(self, most: int = 256) -> list[np.ndarray]:
        """Three orthogonal slices through the middle, thinned to at most so many cells a side: [y][x], [z][x], [z][y]."""
        step = [max(1, -(-n // most)) for n in self.shape]
        whole = [slice(0, n, s) for n, s in zip(self.shape, step)]
        out = []
        for axis in range(3):
            middle = self.shape[axis] // 2
            key = [slice(middle, middle + 1, 1) if i == axis else whole[i] for i in range(3)]
            out.append(np.squeeze(self.read(*key), axis=axis))
        return out

    def save(self, path: Any, dataset: str | None = None, **options: Any) -> pathlib.Path:
        """Writes .npy, .h5, .zarr or raw cells, plane by plane; see memext.save."""
        return ACTIONS["save"](self, path, dataset, **options)

    def pyramid(self, path: Any, levels: int = 3, **options: Any) -> dict[str, list[Array]]:
        """Coarse copies, 2, 4 and 8 times smaller, for napari and ParaView; see memext.pyramid."""
        return ACTIONS["pyramid"](self, path, levels, **options)

    def _repr_html_(self) -> str:
        return ACTIONS["array_html"](self)


def box_of(key: Any, shape: tuple[int, ...]) -> tuple[list[slice], set[int], set[int]]:
    """Slices with positive steps, the dimensions that go, and those to be turned round."""
    key = key if isinstance(key, tuple) else (key,)
    if any(k is None or isinstance(k, (list, np.ndarray, bool, np.bool_)) for k in key):
        raise IndexError("an array that is not in memory takes whole numbers, slices and ...; read a part, and index that")
    if sum(k is Ellipsis for k in key) > 1:
        raise IndexError("... stands once in an index")
    if Ellipsis in key:
        at = key.index(Ellipsis)
        key = key[:at] + (slice(None),) * (len(shape) - len(key) + 1) + key[at + 1:]
    if len(key) > len(shape):
        raise IndexError(f"{len(key)} indices for an array of {len(shape)} dimensions")
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
            raise IndexError(f"{k!r} is no index: whole numbers, slices and ... are") from None
        if not -n <= k < n:
            raise IndexError(f"index {k} is outside the {n} cells of dimension {i}")
        slices.append(slice(k % n, k % n + 1, 1))
        drop.add(i)
    return slices, drop, flip


def cells_in(s: slice) -> int:
    return len(range(s.start, s.stop, s.step))
