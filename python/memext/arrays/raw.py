# SPDX-License-Identifier: BSD-3-Clause
"""Arrays whose cells lie in a file at regular distances."""
from __future__ import annotations

import errno
import os
import pathlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _core
from ..errors import MemextError, refusal, unreadable
from .base import Array, cells_in

_GAP_BYTES = 16 << 10  # rows this near to each other are read in one piece
_PIECE_BYTES = 8 << 20


class RawArray(Array):
    """An array whose cells lie in a file at regular distances: raw files, .npy, NRRD, contiguous HDF5, and stores. offset, row_pitch and plane_pitch are in
    bytes. hashed: the checksums that --integrity keeps of the cells of a store; a read that does not match them raises MemextError with errno EBADMSG."""

    def __init__(self, path: Any, shape: tuple[int, ...], dtype: Any, offset: int = 0, row_pitch: int | None = None,
                 plane_pitch: int | None = None, name: str | None = None, check: Unchanged | None = None, hashed: Hashed | None = None):
        super().__init__(shape, dtype)
        self.path, self.offset = pathlib.Path(path), offset
        self.row_pitch = row_pitch if row_pitch is not None else self.shape[2] * self.dtype.itemsize
        self.plane_pitch = plane_pitch if plane_pitch is not None else self.shape[1] * self.row_pitch
        self.name = name or self.path.name
        self._check, self._hashed = check, hashed
        self.in_place = (self.row_pitch == self.shape[2] * self.dtype.itemsize and self.plane_pitch == self.shape[1] * self.row_pitch)

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        if self._check is not None:
            self._check.before()
        out = np.empty((cells_in(z), cells_in(y), cells_in(x)), self.dtype)
        if out.size == 0:
            return out
        self._read(z, y, x, out)
        if self._check is not None:
            self._check.after()
        return out

    def _read(self, z: slice, y: slice, x: slice, out: np.ndarray) -> None:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise refusal(f"{self.path} cannot be read: {error.strerror}", error.errno) from None
        try:
            if not out.flags.c_contiguous:
                raise AssertionError
            dense = z.step == 1 and cells_in(y) == self.shape[1] and cells_in(x) == self.shape[2] and self.in_place
            if dense:
                self._fill(fd, self.offset + z.start * self.plane_pitch, memoryview(out).cast("B"))
            else:
                for i, plane in enumerate(range(z.start, z.stop, z.step)):
                    self._plane(fd, plane, y, x, out[i])
        finally:
            os.close(fd)

    def _plane(self, fd: int, z: int, y: slice, x: slice, out: np.ndarray) -> None:
        cell = self.dtype.itemsize
        width, rows = (x.stop - x.start) * cell, range(y.start, y.stop, y.step)
        at = self.offset + z * self.plane_pitch + x.start * cell
        unit = self._hashed.unit_bytes if self._hashed is not None else 0  # is read as a whole
        near = y.step * self.row_pitch - width <= max(_GAP_BYTES, unit)
        group = max(1, max(_PIECE_BYTES, unit) // (y.step * self.row_pitch)) if near else 1
        for first in range(0, len(rows), group):
            some = rows[first:first + group]
            data = np.empty((some[-1] - some[0]) * self.row_pitch + width, "u1")
            self._fill(fd, at + some[0] * self.row_pitch, memoryview(data))
            cells = np.ndarray((len(some), -(-(x.stop - x.start) // x.step)), self.dtype, data, 0, (y.step * self.row_pitch, x.step * cell))
            out[first:first + group] = cells

    def _fill(self, fd: int, at: int, view: memoryview) -> None:
        if self._hashed is None:
            self._transfer(fd, at, view)
            return
        for low, high in self._hashed.pieces(at, len(view)):
            direct = at <= low and high <= at + len(view)
            piece = view[low - at:high - at] if direct else memoryview(bytearray(high - low))
            self._transfer(fd, low, piece)
            damage = self._hashed.damage(low, piece)
            if damage is not None:
                self._damaged(damage)
            if not direct:
                first, end = max(at, low), min(at + len(view), high)
                view[first - at:end - at] = piece[first - low:end - low]

    def _damaged(self, at: int) -> None:
        """Raises the error of a damaged unit, unless a run has continued the store meanwhile. at: the byte of the file where the unit begins."""
        if self._check is not None:
            self._check.after()
        assert self._hashed is not None
        base = self.offset - (self.offset - self._hashed.begin) % self.plane_pitch  # of the first plane, with whatever else its rows hold
        first, last = (at - base) // self.plane_pitch, (at + self._hashed.unit_bytes - 1 - base) // self.plane_pitch
        first, last = (min(max(z, 0), self.shape[0] - 1) for z in (first, last))
        where = f"{self.word} {first}" if first == last else f"{self.word}s {first} to {last}"
        raise MemextError(f"{self.path}: {self.name}, {where}, differs from what was written: the hash of the unit at byte {at} is wrong; "
                          "the device or its memory is faulty", errno.EBADMSG, 3)

    def _transfer(self, fd: int, at: int, view: memoryview) -> None:
        while view:
            try:
                n = os.preadv(fd, [view[:1 << 30]], at)
            except OSError as error:
                raise unreadable(self.path, error, errno.EIO) from error
            if n == 0:
                raise refusal(f"{self.path} ends at byte {at}, but {self.name} needs more: the file is cut short", errno.EIO)
            view, at = view[n:], at + n


_records: list[set[pathlib.Path]] = []


@contextmanager
def recorded() -> Iterator[set[pathlib.Path]]:
    """The files that any thread notes meanwhile: stores whose cells are read, and files whose identity is computed."""
    read: set[pathlib.Path] = set()
    _records.append(read)
    try:
        yield read
    finally:
        _records[:] = [r for r in _records if r is not read]


def noted(path: Any) -> None:
    for read in _records:
        read.add(pathlib.Path(path))


class Unchanged:
    """Refuses to read a store that no longer holds the state that it held when it was opened. place: the object that keeps the store's directory, if there
    is one. moment: what distinguishes the state from all others whose Buffers differ."""

    def __init__(self, path: pathlib.Path, state: bytes, place: Any = None, moment: tuple = ()):
        self.path, self.state, self.place, self.moment = path, state, place, moment

    def now(self) -> tuple[bool, bytes]:
        try:
            return _core.state_of(self.path)
        except MemextError as error:
            if error.errno != errno.ENOENT:
                raise
            raise refusal(f"{self.path} no longer exists, because a run removes its store when it ends: save the array before that, or give the run keep=True",
                          errno.ENOENT) from None

    def before(self) -> None:
        noted(self.path)
        in_use, state = self.now()
        if in_use:
            raise refusal(f"a run is working on {self.path} and changes its cells: read it when the run has ended or stopped", errno.EBUSY)
        if state != self.state:
            self.gone_on()

    def after(self) -> None:
        """Refuses what was read if a run has committed meanwhile. A run commits its next state before it writes over this one."""
        if self.now()[1] != self.state:
            self.gone_on()

    def gone_on(self) -> None:
        raise refusal(f"{self.path} has changed since it was opened, because a run has continued it: open it again", errno.ESTALE)


def moment_of(info: dict) -> tuple:
    return tuple(info.get(n) for n in ("run", "step", "edits"))


class Superseded(Unchanged):
    """The check of a store that a run of this process begins with and replaces. Its state can be read while the run works there, until its first commit."""

    def __init__(self, check: Unchanged):
        super().__init__(check.path, check.state, check.place, check.moment)

    def before(self) -> None:
        """Checks nothing: until the first commit, a reader finds the former store."""

    def after(self) -> None:
        if moment_of(_core.look(self.path)) != self.moment:
            self.gone_on()


class Hashed:
    """The checksums that --integrity keeps of a Buffer. begin: the Buffer's first byte in its store. Cells are read in whole units, and each unit is checked."""

    def __init__(self, path: pathlib.Path, buffer: str, begin: int):
        self._hashes, self.begin = _core.Hashes(path, buffer), begin
        self.unit_bytes, self.end = self._hashes.unit_bytes, begin + self._hashes.bytes

    def pieces(self, at: int, count: int) -> Iterator[tuple[int, int]]:
        """The pieces (first byte, end) of the file, in whole units, that hold these bytes."""
        unit, step = self.unit_bytes, max(1, _PIECE_BYTES // self.unit_bytes) * self.unit_bytes
        low = at - (at - self.begin) % unit
        end = min(at + count + (self.begin - at - count) % unit, self.end)
        for first in range(low, end, step):
            yield first, min(first + step, end)

    def damage(self, at: int, piece: memoryview) -> int | None:
        found = self._hashes.damage(at - self.begin, piece)
        return None if found is None else self.begin + found
