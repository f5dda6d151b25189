# SPDX-License-Identifier: BSD-3-Clause
"""Read-only fields that are constant along an axis: arrays with an extent of 1 there. The library holds their rows in DRAM (runtime/system/profile.h)."""
from __future__ import annotations

import errno
import hashlib
import os
import pathlib
import tempfile
from typing import Any

import numpy as np

from .arrays import Array, ObjectArray
from .errors import MemextError
from .sources import converted, framed_plane
from .values import Values

_PADS = {"edge": "edge", "mirror": "symmetric", "periodic": "wrap"}


def three_extents(value: Any) -> Any:
    """The array with three dimensions. By numpy's rule the missing extents come first and are 1."""
    few = isinstance(value, np.ndarray) and value.ndim in (1, 2)
    return value.reshape((1,) * (3 - value.ndim) + value.shape) if few else value


def whole_shape(shape: tuple, interior: tuple, halo: tuple[int, int, int], frame: Any, bare_allowed: bool) -> tuple | None:
    """The shape of a profile after broadcasting, with its frame or without; None if it does not belong to a grid with these interior cells."""
    framed, bare = tuple(n + 2 * h for n, h in zip(interior, halo)), tuple(interior)
    if tuple(shape) in (framed, bare):
        return None
    for whole in ([framed] if frame == "included" else []) + ([bare] if frame != "included" or bare_allowed else []):
        if all(s in (1, n) for s, n in zip(shape, whole)):
            return whole
    return None


class Profile(Values):
    """given: an array with extents of 1. whole: its shape after broadcasting. bare: it has no frame, and none is read. around: the axes with periodic
    sides, where the frame copies the other end. The cells are copied now, into a file in `folder`. Its name follows from its content. It stays, because
    stores refer to it."""

    def __init__(self, given: Array, whole: tuple, dtype: np.dtype, halo: tuple[int, int, int], frame: Any, bare: bool, around: set[int], folder: pathlib.Path):
        self.given, self.bare = given, bare
        self._halo, self._frame, self._around = halo, 0 if bare else frame, around
        cells = np.ascontiguousarray(converted(given[...], dtype, given.name))
        self._text = f"profile {cells.shape} {cells.dtype.str} {self._frame!r} {_digest(cells)}"
        one_plane_or_column = (cells.shape[0] == 1 or cells.shape[1] == 1) and halo[1] > 0  # of two dimensions the library gets rows
        self.path: pathlib.Path | None = None  # None: the library writes the field out
        if one_plane_or_column and (bare or isinstance(self._frame, str)):
            if self._frame in _PADS:
                cells = np.pad(cells, [(0, 0) if n == 1 else (h, h) for n, h in zip(cells.shape, halo)], mode=_PADS[self._frame])  # type: ignore[call-overload]
                self._frame, whole = "included", tuple(n + 2 * h for n, h in zip(whole, halo))
            self.path = _file(cells, folder, given.name)
            cells = np.load(self.path, mmap_mode="r")
        else:
            cells = np.array(cells)
        self._all = ObjectArray(np.broadcast_to(cells, whole), given.name)

    def plane(self, z: int, shape: tuple[int, int, int]) -> np.ndarray:
        where = [np.arange(n) for n in shape]
        for axis in self._around:
            h = self._halo[axis]
            where[axis] = h + (where[axis] - h) % (shape[axis] - 2 * h)
        plane = framed_plane(self._all, int(where[0][z]), shape, self._halo, self._frame)
        return plane[where[1]][:, where[2]] if self._around else plane

    def identity(self) -> str:
        return self._text


def _digest(cells: np.ndarray) -> str:
    return hashlib.blake2b(cells.tobytes(), digest_size=12).hexdigest()


def _file(cells: np.ndarray, folder: pathlib.Path, name: str) -> pathlib.Path:
    path = folder / f"profile-{'x'.join(map(str, cells.shape))}-{cells.dtype.str[1:]}-{_digest(cells)}.npy"
    try:
        found = np.load(path, mmap_mode="r")
        if found.dtype == cells.dtype and found.shape == cells.shape and found.tobytes() == cells.tobytes():
            return path
    except (OSError, ValueError, EOFError):  # not there, or cut short
        pass
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".npy")
        with os.fdopen(handle, "wb") as file:
            np.save(file, cells)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            pathlib.Path(temporary).unlink(missing_ok=True)
        raise MemextError(f"{name}: its file {path} cannot be written: {error}", error.errno or errno.EIO) from error
    return path


def written_out(array: np.ndarray, interior: list[int], h: int) -> np.ndarray:
    """A read-only field for numpy. An extent of 1 is repeated along its axis."""
    array = three_extents(array)
    whole = whole_shape(array.shape, tuple(interior), (h, h, h), "included", True)
    return array if whole is None else np.broadcast_to(array, whole)
