# SPDX-License-Identifier: BSD-3-Clause
"""Read-only fields that are alike along axes: arrays with an extent of 1 there. The library holds one plane or fewer rows of them in DRAM."""
from __future__ import annotations

import hashlib
import os
import pathlib
import tempfile
from typing import Any

import numpy as np

from .arrays import Array, ObjectArray
from .sources import converted, framed_plane
from .values import Values

_PADS = {"edge": "edge", "mirror": "symmetric", "periodic": "wrap"}


def three_extents(value: Any) -> Any:
    """numpy's rule for arrays of fewer dimensions: the extents that are missing are 1, and come first."""
    few = isinstance(value, np.ndarray) and value.ndim in (1, 2)
    return value.reshape((1,) * (3 - value.ndim) + value.shape) if few else value


def whole_shape(shape: tuple, interior: tuple, h: int, frame: Any, bare_allowed: bool) -> tuple | None:
    """The shape that a profile has when it is written out, with its frame or without; None where this is none of a grid with these interior cells."""
    framed, bare = tuple(n + 2 * h for n in interior), tuple(interior)
    if tuple(shape) in (framed, bare):
        return None
    for whole in ([framed] if frame == "included" else []) + ([bare] if frame != "included" or bare_allowed else []):
        if all(s in (1, n) for s, n in zip(shape, whole)):
            return whole
    return None


class Profile(Values):
    """given: an array with extents of 1; whole: its extents when it is written out; bare: it has no frame, and nobody reads one."""

    def __init__(self, given: Array, whole: tuple, dtype: np.dtype, h: int, frame: Any, bare: bool):
        self.given, self.bare = given, bare
        self._cells = np.array(converted(given[...], dtype, given.name))  # as they are now
        self._whole, self._h, self._frame = whole, h, 0 if bare else frame
        self._all = ObjectArray(np.broadcast_to(self._cells, whole), given.name)

    def plane(self, z: int, shape: tuple[int, int, int]) -> np.ndarray:
        return framed_plane(self._all, z, shape, self._h, self._frame)

    def identity(self) -> str:
        return f"profile {self._cells.shape} {self._cells.dtype.str} {self._frame!r} {_digest(self._cells)}"

    def file(self, folder: pathlib.Path) -> pathlib.Path | None:
        """What the library reads: a file in `folder` that is called after its content and stays, since stores name it. Its time is always the same, so
        that a store finds it again after the folder was emptied. None where the library would write the field out anyhow."""
        if self._cells.shape[0] != 1 and self._cells.shape[1] != 1 or not (self.bare or isinstance(self._frame, str)):
            return None
        cells = self._cells
        if not self.bare and self._frame in _PADS:
            more = [(0, 0) if n == 1 else (self._h, self._h) for n in cells.shape]
            cells = np.pad(cells, more, mode=_PADS[self._frame])  # type: ignore[call-overload]
        path = folder / f"profile-{'x'.join(map(str, cells.shape))}-{cells.dtype.str[1:]}-{_digest(cells)}.npy"
        if not path.exists():
            handle, temporary = tempfile.mkstemp(dir=folder, suffix=".npy")
            with os.fdopen(handle, "wb") as file:
                np.save(file, np.ascontiguousarray(cells))
            os.utime(temporary, (1, 1))
            os.replace(temporary, path)
        return path


def _digest(cells: np.ndarray) -> str:
    return hashlib.blake2b(np.ascontiguousarray(cells).tobytes(), digest_size=12).hexdigest()


def written_out(array: np.ndarray, interior: list[int], h: int) -> np.ndarray:
    """A read-only field for numpy: what is alike along an axis is repeated along it."""
    array = three_extents(array)
    whole = whole_shape(array.shape, tuple(interior), h, "included", True)
    return array if whole is None else np.broadcast_to(array, whole)
