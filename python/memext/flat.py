# SPDX-License-Identifier: BSD-3-Clause
"""Grids of two dimensions, (ny, nx). Within the package, as in the library, their rows are planes of one row: arrays (ny, 1, nx), without a frame along
the middle axis. The functions here convert the arrays of users into this form."""
from __future__ import annotations

import errno
import os
import pathlib
from typing import Any

import numpy as np

from .arrays import Array, ObjectArray, RawArray, Rows, Turned
from .errors import MemextError
from .exact import unmasked
from .formats import of_object, open_of


def _npy(path: pathlib.Path, name: str) -> RawArray:
    """The cells of a .npy file, read from where they lie."""
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
            offset = file.tell()
    except (OSError, ValueError) as error:
        raise MemextError(f"{name}: {path} cannot be read: {error}", getattr(error, "errno", None) or errno.EINVAL) from None
    if fortran and len(shape) > 1:
        raise MemextError(f"{path} is in Fortran order: save it with numpy.ascontiguousarray(a)", errno.EINVAL)
    if dtype.hasobject or path.stat().st_size < offset + int(np.prod(shape, dtype=object)) * dtype.itemsize:
        raise MemextError(f"{path} holds Python objects: save numbers" if dtype.hasobject else f"{path} is shorter than its header says: write it again", errno.EINVAL)
    return RawArray(path, _extents(shape, name), dtype, offset, name=name)


def _extents(shape: tuple, name: str) -> tuple[int, int, int]:
    """The shape (ny, 1, nx) of an array of two dimensions, or of one, which lies along x."""
    if len(shape) not in (1, 2):
        raise MemextError(f"{name} has {len(shape)} dimensions, but the kernel computes grids of two: give an array (ny, nx)", errno.EINVAL)
    return (shape[0] if len(shape) == 2 else 1), 1, shape[-1]


def of_user(value: Any, name: str) -> Any:
    """The values of a field; arrays of two dimensions become (ny, 1, nx), everything else stays as it is."""
    if isinstance(value, Rows):
        return value.planes_of
    if isinstance(value, os.PathLike) or (isinstance(value, str) and os.path.exists(value)):
        path = pathlib.Path(value)
        if path.suffix == ".npy":
            return _npy(path.absolute(), name)
        value = of_object(open_of(path, rank=2), name)
        if value.ndim == 3 and value.shape[0] == 1:  # a page of a picture
            return ObjectArray(Turned(value, (1, 0, 2)), value.name, value.path, value, deep=value.shape[1])
        return of_user(value, name)
    if isinstance(value, Array):
        raise MemextError(f"{name} has {value.ndim} dimensions, but the kernel computes grids of two: give an array (ny, nx)", errno.EINVAL)
    if not hasattr(value, "shape") or np.ndim(value) == 0 and not hasattr(value, "chunks"):
        return value
    extents = _extents(tuple(value.shape), name)
    if isinstance(value, np.ndarray):
        unmasked(value, name)
        return value.reshape(extents)
    return of_object(value, name).planes_of if len(value.shape) == 2 else np.asarray(value).reshape(extents)


def halo_of(radius: int, flat: bool) -> tuple[int, int, int]:
    """The cells of frame at each end of the array's three axes."""
    return radius, 0 if flat else radius, radius
