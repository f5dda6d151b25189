# SPDX-License-Identifier: BSD-3-Clause
"""Grids of two dimensions, (ny, nx). Within the package, as in the library, their rows are planes of one row: arrays (ny, 1, nx), without a frame in the
middle. Here is what turns what users have into that, and back."""
from __future__ import annotations

import errno
import os
import pathlib
from typing import Any

import numpy as np

from .arrays import Array, RawArray
from .arrays.base import box_of
from .errors import MemextError, refusal

MOST_BYTES = 64 << 20  # of rows that are copied at a time


class Rows(Array):
    """An array of two dimensions, y, x, that is not in memory: a[y, x] reads what it names and no more."""

    def __init__(self, planes: Array):
        """planes: (ny, 1, nx)."""
        super().__init__((planes.shape[0], planes.shape[2]), planes.dtype)
        self.planes_of, self.name, self.path = planes, planes.name, planes.path

    def read(self, y: slice, x: slice) -> np.ndarray:  # type: ignore[override]
        return self.planes_of.read(y, slice(0, 1, 1), x)[:, 0]

    def __getitem__(self, key: Any) -> Any:
        (y, x), drop, flip = box_of(key, self.shape)
        found = self.read(y, x)[tuple(slice(None, None, -1) if i in flip else slice(None) for i in range(2))]
        return found[tuple(0 if i in drop else slice(None) for i in range(2))]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.planes_of[key] = value

    def plane(self, z: int) -> np.ndarray:
        """Row z."""
        return self.planes_of.plane(z)[0]

    def planes(self, z0: int, z1: int) -> np.ndarray:
        """Some rows."""
        return self.planes_of.planes(z0, z1)[:, 0]

    def save(self, path: Any, dataset: str | None = None, **options: Any) -> pathlib.Path:
        """Writes .npy, some rows at a time."""
        path = pathlib.Path(path)
        if path.suffix != ".npy" or dataset is not None or options:
            raise refusal(f"{path}: an array of two dimensions is saved as .npy, without options", errno.ENOTSUP)
        out = np.lib.format.open_memmap(path, "w+", self.dtype, self.shape)
        step = max(1, MOST_BYTES // max(1, self.shape[1] * self.dtype.itemsize))
        for y in range(0, self.shape[0], step):
            out[y:y + step] = self[y:y + step]
        out.flush()
        return path

    def slices(self, most: int = 256) -> list[np.ndarray]:
        raise refusal(f"{self.name} has two dimensions: take a[::n, ::n] of it", errno.ENOTSUP)

    def pyramid(self, path: Any, levels: int = 3, **options: Any) -> Any:
        raise refusal(f"{self.name} has two dimensions, and pyramids have three", errno.ENOTSUP)

    def _repr_html_(self) -> str:
        return f"<code>{repr(self).replace('<', '&lt;')}</code>"


class _Object:
    """Anything of two dimensions with shape, dtype and slices, as one of three."""

    def __init__(self, source: Any):
        self.source, self.dtype = source, np.dtype(source.dtype)
        self.shape = (source.shape[0], 1, source.shape[1])

    def __getitem__(self, key: Any) -> np.ndarray:
        (z, y, x), _, _ = box_of(key, self.shape)
        return np.asarray(self.source[z, x])[:, None][:, y]


def _npy(path: pathlib.Path, name: str) -> RawArray:
    """Where the cells of a .npy file lie."""
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
            offset = file.tell()
    except (OSError, ValueError) as error:
        raise MemextError(f"{name}: {path} cannot be read: {error}", getattr(error, "errno", None) or errno.EINVAL) from None
    if fortran and len(shape) > 1:
        raise MemextError(f"{path} is in Fortran order; save it with numpy.ascontiguousarray(a)", errno.EINVAL)
    if dtype.hasobject or path.stat().st_size < offset + int(np.prod(shape, dtype=object)) * dtype.itemsize:
        raise MemextError(f"{path} holds objects, or is cut short", errno.EINVAL)
    return RawArray(path, _extents(shape, name), dtype, offset, name=name)


def _extents(shape: tuple, name: str) -> tuple[int, int, int]:
    """Of one dimension: along x."""
    if len(shape) not in (1, 2):
        raise MemextError(f"{name} has {len(shape)} dimensions, and the kernel computes grids of two: (ny, nx)", errno.EINVAL)
    return (shape[0] if len(shape) == 2 else 1), 1, shape[-1]


def of_user(value: Any, name: str) -> Any:
    """A field's values, where they have two dimensions: (ny, 1, nx). All else stays as it is."""
    if isinstance(value, Rows):
        return value.planes_of
    if isinstance(value, os.PathLike) or (isinstance(value, str) and os.path.isfile(value)):
        path = pathlib.Path(value)
        if path.suffix != ".npy":
            raise MemextError(f"{name}: {path}: files of two dimensions are .npy so far; give an array", errno.ENOTSUP)
        return _npy(path.absolute(), name)
    if isinstance(value, Array):
        raise MemextError(f"{name} has {value.ndim} dimensions, and the kernel computes grids of two: (ny, nx)", errno.EINVAL)
    if not hasattr(value, "shape") or np.ndim(value) == 0 and not hasattr(value, "chunks"):
        return value
    extents = _extents(tuple(value.shape), name)
    if isinstance(value, np.ndarray):
        return value.reshape(extents)
    return _Object(value) if len(value.shape) == 2 else np.asarray(value).reshape(extents)


def halo_of(radius: int, flat: bool) -> tuple[int, int, int]:
    """Cells of frame before and behind the array's three axes."""
    return radius, 0 if flat else radius, radius


def shape_of(shape: tuple, flat: bool) -> tuple:
    """As users have it."""
    return (shape[0], shape[2]) if flat else shape


def planes_of(array: Any) -> Any:
    """As the library has it."""
    return array.planes_of if isinstance(array, Rows) else array
