# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of objects of other libraries, and of planes that are read one by one."""
from __future__ import annotations

import bisect
import errno
import os
import pathlib
import threading
import warnings
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Callable

import numpy as np

from .. import _core
from ..errors import MemextError, refusal, unreadable
from .base import Array, cells_in

_LIBRARIES = threading.RLock()  # only one thread at a time may call HDF5 and NetCDF, for any array
_pool: list[ThreadPoolExecutor] = []


def _ahead() -> ThreadPoolExecutor:
    """One thread that reads ahead for all arrays. Several threads would only wait for each other."""
    if not _pool:
        _pool.append(ThreadPoolExecutor(1, "memext-ahead"))
    return _pool[0]


def _forked() -> None:
    """Makes a new lock in a child of fork, and drops the thread that reads ahead: a child has no threads but its own."""
    global _LIBRARIES
    _LIBRARIES = threading.RLock()
    _pool.clear()


os.register_at_fork(after_in_child=_forked)


class ObjectArray(Array):
    """An array that reads from any object with shape, dtype and slices: datasets of h5py and zarr, arrays of numpy and dask.

    Planes that are read in order come in groups as deep as the chunks, so each chunk is decoded once. The next group is decoded while this one is
    used if both fit into group_bytes; a run sets that to a quarter of its DRAM. path: the file that the object reads; its errors become MemextError.
    Without it, exceptions of the object pass unchanged. deep: planes in a group if the source has no chunks."""
    failed: BaseException | None = None  # what the user's own object raised last

    def __init__(self, source: Any, name: str = "array", path: Any = None, keep: Any = None, deep: int = 0):
        super().__init__(source.shape, source.dtype)
        self.source, self.name, self.path, self.keep = source, name, None if path is None else pathlib.Path(path), keep
        chunks = getattr(source, "chunks", None)
        regular = isinstance(chunks, tuple) and len(chunks) > 0 and isinstance(chunks[0], int)
        self._computed = hasattr(source, "compute") or getattr(source, "computed", False)  # dask: a chunk costs what its graph costs
        self._ends: list[int] | None = None  # where groups of planes end, if they are not all as deep
        self._deep = chunks[0] if regular else deep  # type: ignore[index]
        self.chunk_bytes = self.dtype.itemsize * int(np.prod(chunks, dtype=object)) if regular else 0  # which are decoded at once
        if isinstance(chunks, tuple) and len(chunks) > 0 and isinstance(chunks[0], tuple):
            self._ends = [sum(chunks[0][:i + 1]) for i in range(len(chunks[0]))]
            self._deep = max(chunks[0], default=1)
            self.chunk_bytes = self.dtype.itemsize * int(np.prod([max(c, default=1) for c in chunks], dtype=object))
        self._group_bytes = 32 << 20
        if self._computed:  # as long as a run has not said how much, what a row of chunks needs
            self._group_bytes = max(self._group_bytes, min(self._deep * self._plane_bytes(), _core.dram_bytes() // 4))
        self._told = False
        self._held: tuple[int, np.ndarray] | None = None
        self._next: tuple[int, Future, int] | None = None

    @property
    def group_bytes(self) -> int:
        return self._group_bytes

    @group_bytes.setter
    def group_bytes(self, most: int) -> None:
        self._group_bytes = most
        if self._held is not None and self._held[1].nbytes > most:
            self._held = None

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        try:
            found = self._find((z, y, x))
        except (MemextError, MemoryError):
            raise
        except Exception as error:
            if self.path is None:
                self.failed = error
                raise
            raise unreadable(f"{self.path}: {self.name}, {self.word}s {z.start} to {max(z.start, z.stop - 1)},", error, errno.EIO) from error
        if isinstance(found, np.ma.MaskedArray):
            check_mask(found, self.name, z, self.word)
            found = found.data
        if found.shape != (cells_in(z), cells_in(y), cells_in(x)) or found.dtype.newbyteorder("=") != self.dtype.newbyteorder("="):
            raise refusal(f"{self.name} returned {found.dtype.name} cells of shape {found.shape}, but {self.dtype.name} cells of shape "
                          f"{(cells_in(z), cells_in(y), cells_in(x))} were read: its dtype and slices must agree")
        return np.ascontiguousarray(found, self.dtype)

    def _find(self, key: tuple[slice, slice, slice]) -> np.ndarray:
        if isinstance(self.source, np.ndarray):
            return self.source[key]
        if self._computed:  # by threads that may read arrays of ours: they would wait for the lock
            found = self.source[key]
            return np.asanyarray(found.compute() if hasattr(found, "compute") else found)
        with _LIBRARIES:
            return np.asanyarray(self.source[key])

    def _plane_bytes(self) -> int:
        return max(1, self.nbytes // max(1, self.shape[0]))

    def _range(self, z: int) -> tuple[int, int]:
        """The group of planes (first, end) that is read with plane z: a row of chunks, or as many of its planes as fit into group_bytes."""
        if self._ends is not None:
            at = bisect.bisect_right(self._ends, z)
            first, end = self._ends[at - 1] if at > 0 else 0, self._ends[at]
        else:
            first = z - z % self._deep
            end = min(first + self._deep, self.shape[0])
        most = max(1, self.group_bytes // self._plane_bytes())
        if end - first <= most:
            return first, end
        if self._computed and not self._told:
            self._told = True
            warnings.warn(f"{self.name}: its chunks are {end - first} {self.word}s deep, but only {most} fit into memory, so each chunk is computed "
                          f"{-(-(end - first) // most)} times: use rechunk({{0: {most}}}), or give the run more DRAM", stacklevel=2)
        first += (z - first) // most * most
        return first, min(first + most, end)

    def plane(self, z: int) -> np.ndarray:
        if not self._deep:
            return super().plane(z)
        z = self._within(z)
        held = self._held  # other threads may read other planes
        if held is None or not held[0] <= z < held[0] + len(held[1]):
            held = self._held = None  # this group goes before the next but one is made
            first, end = self._range(z)
            held = self._held = first, self._group(first, end)
        return held[1][z - held[0]].copy()  # a program may change it

    def _group(self, first: int, end: int) -> np.ndarray:
        """Reads the planes from `first` on, or waits for them if that has begun. Begins to read the next group."""
        asked = self._take_next()
        planes = asked[1].result() if asked is not None and asked[0] == first else self.planes(first, end)
        if end < self.shape[0]:
            _first, after = self._range(end)
            if (end - first + max(after - end, end - first)) * self._plane_bytes() <= self.group_bytes:
                self._next = end, _ahead().submit(self.planes, end, after), os.getpid()
        return planes

    def _take_next(self) -> tuple[int, Future, int] | None:
        """Takes the group whose reading has begun away from the array. None in a child of fork, because the thread that reads it is the parent's."""
        asked, self._next = self._next, None
        return asked if asked is not None and asked[2] == os.getpid() else None

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_held": None, "_next": None}

    def release(self) -> None:
        asked, self._held = self._take_next(), None
        if asked is not None and not asked[1].cancel():
            wait([asked[1]])  # the file may be closed next


def check_mask(cells: np.ma.MaskedArray, name: str, z: slice, word: str = "plane") -> None:
    """Refuses masked cells, which have no value."""
    mask = np.ma.getmaskarray(cells)
    if mask.any():
        plane = z.start + int(np.argwhere(mask)[0][0]) * z.step
        raise refusal(f"{name} has {int(mask.sum())} cells without a value (masked) from {word} {plane} on: fill them, numpy.ma.filled(a, 0) "
                      "(dask: dask.array.ma.filled)")


class Turned:
    """An array whose dimensions are stored in another order. order: the stored dimensions of z, y and x. Planes lie across the file, so an array without
    chunks is read in groups as deep as memory allows."""

    def __init__(self, source: Any, order: tuple[int, ...]):
        self.source, self.order, self.dtype, self.name = source, order, source.dtype, getattr(source, "name", "")
        self.shape = tuple(source.shape[i] for i in order)
        chunks = getattr(source, "chunks", None)
        self.chunks = tuple(chunks[i] for i in order) if chunks else None
        self.computed = hasattr(source, "compute") or getattr(source, "computed", False)

    def __getitem__(self, key: Any) -> Any:
        stored = tuple(key[self.order.index(i)] for i in range(3))
        return self.source[stored].transpose(self.order)


class PagesArray(Array):
    """An array whose planes are read one by one. page(z) gives plane z, [y][x]."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, page: Callable[[int], np.ndarray], name: str, path: Any = None):
        super().__init__(shape, dtype)
        self.page, self.name, self.path = page, name, None if path is None else pathlib.Path(path)

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        out = np.empty((cells_in(z), cells_in(y), cells_in(x)), self.dtype)
        for i, plane in enumerate(range(z.start, z.stop, z.step)):
            try:
                with _LIBRARIES:
                    cells = np.asarray(self.page(plane))
            except (MemextError, MemoryError):
                raise
            except Exception as error:
                raise unreadable(f"{self.path or self.name}: plane {plane}", error, errno.EIO) from error
            if cells.shape != self.shape[1:] or cells.dtype.newbyteorder("=") != self.dtype.newbyteorder("="):
                raise refusal(f"{self.name}: plane {plane} has shape {cells.shape} and type {cells.dtype.name}, but the first plane has {self.shape[1:]} and "
                              f"{self.dtype.name}: give planes of one shape and type")
            out[i] = cells[y, x]
        return out
