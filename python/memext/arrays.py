# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that lie somewhere else: in stores and files, read as far as they are asked for. memext.formats opens files as such arrays."""
from __future__ import annotations

import bisect
import errno
import operator
import os
import pathlib
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Callable

import numpy as np

from . import _core
from .errors import MemextError

_GAP_BYTES = 16 << 10  # rows this near to each other are read in one piece
_PIECE_BYTES = 8 << 20


def _refuse(sentence: str, number: int = errno.EINVAL) -> MemextError:
    return MemextError(sentence, number)


def unreadable(what: Any, error: BaseException, number: int = errno.EINVAL) -> MemextError:
    """What a library of a format raises is of many types: one sentence with the file and the cause."""
    own = getattr(error, "errno", None)
    cause = " ".join(str(error).split())[:400] or type(error).__name__
    return _refuse(f"{what} cannot be read: {cause}", own if isinstance(own, int) and own > 0 else number)


class Array:
    """An array of three dimensions, z, y, x, that is not in memory. shape, dtype, ndim; a[z, y, x] with whole numbers and slices reads
    what they name and no more; numpy.asarray(a) reads all of it, or refuses where DRAM does not hold that."""
    name = "array"
    path: pathlib.Path | None = None
    files: list[pathlib.Path] | None = None  # where there are several

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape, self.dtype = tuple(int(n) for n in shape), np.dtype(dtype)
        if self.dtype.kind not in "biufc":  # a file's bytes are no addresses either
            raise _refuse(f"cells of {self.dtype} are {'objects of Python, not' if self.dtype.hasobject else 'no real'} numbers: convert them")
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
        slices, drop, flip = _box(key, self.shape)
        found = self.read(*slices)
        if flip:
            found = found[tuple(slice(None, None, -1) if i in flip else slice(None) for i in range(3))]
        return found[tuple(0 if i in drop else slice(None) for i in range(3))]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"{self.name} is not in memory: it cannot be had without a copy")
        _core.require_dram(self.nbytes, self.name, "take slices of it, or save it to a file")
        return self[...] if dtype is None else self[...].astype(dtype, copy=False)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Planes in order of z."""
        return (self.plane(z) for z in range(self.shape[0]))

    def plane(self, z: int) -> np.ndarray:
        return self.read(slice(z, z + 1, 1), slice(0, self.shape[1], 1), slice(0, self.shape[2], 1))[0]

    def planes(self, z0: int, z1: int) -> np.ndarray:
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
        from .saving import save
        return save(self, path, dataset, **options)

    def pyramid(self, path: Any, levels: int = 3, **options: Any) -> dict[str, list[Array]]:
        """Coarse copies, 2, 4 and 8 times smaller, for napari and ParaView; see memext.pyramid."""
        from .pyramids import pyramid
        return pyramid(self, path, levels, **options)

    def _repr_html_(self) -> str:
        from .looking import array_html
        return array_html(self)


def _box(key: Any, shape: tuple[int, ...]) -> tuple[list[slice], set[int], set[int]]:
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


def _count(s: slice) -> int:
    return len(range(s.start, s.stop, s.step))


class RawArray(Array):
    """Cells in a file at regular distances: raw files, .npy, NRRD, contiguous HDF5, and stores. hashed: what --integrity keeps of the cells of a store."""

    def __init__(self, path: Any, shape: tuple[int, ...], dtype: Any, offset: int = 0, row_pitch: int | None = None,
                 plane_pitch: int | None = None, name: str | None = None, check: _Unchanged | None = None, hashed: _Hashed | None = None):
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
        out = np.empty((_count(z), _count(y), _count(x)), self.dtype)
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
            raise _refuse(f"{self.path} cannot be read: {error.strerror}", error.errno) from None
        try:
            if not out.flags.c_contiguous:
                raise AssertionError
            dense = z.step == 1 and _count(y) == self.shape[1] and _count(x) == self.shape[2] and self.in_place
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
        """at: of the first unit in the file that is not as it was written; or a run has gone on meanwhile."""
        if self._check is not None:
            self._check.after()
        assert self._hashed is not None
        base = self.offset - (self.offset - self._hashed.begin) % self.plane_pitch  # of the first plane, with whatever else its rows hold
        first, last = (at - base) // self.plane_pitch, (at + self._hashed.unit_bytes - 1 - base) // self.plane_pitch
        first, last = (min(max(z, 0), self.shape[0] - 1) for z in (first, last))
        where = f"plane {first}" if first == last else f"planes {first} to {last}"
        raise MemextError(f"{self.path}: {self.name}, {where}, gave other data than was written: the checksum of the unit at byte {at} differs; "
                          "the device or its memory is faulty", errno.EBADMSG, 3)

    def _transfer(self, fd: int, at: int, view: memoryview) -> None:
        while view:
            try:
                n = os.preadv(fd, [view[:1 << 30]], at)
            except OSError as error:
                raise unreadable(self.path, error, errno.EIO) from error
            if n == 0:
                raise _refuse(f"{self.path} ends at byte {at}: {self.name} needs more", errno.EIO)
            view, at = view[n:], at + n


_LIBRARIES = threading.RLock()  # HDF5 and NetCDF are for one thread at a time, whichever array it reads
_pool: list[ThreadPoolExecutor] = []


def _ahead() -> ThreadPoolExecutor:
    """One thread for all arrays: they would wait for each other."""
    if not _pool:
        _pool.append(ThreadPoolExecutor(1, "memext-ahead"))
    return _pool[0]


def _forked() -> None:
    """A child has no threads but its own: neither the one that reads ahead nor whoever held the lock."""
    global _LIBRARIES
    _LIBRARIES = threading.RLock()
    _pool.clear()


os.register_at_fork(after_in_child=_forked)


class ObjectArray(Array):
    """Anything with shape, dtype and slices: h5py and zarr datasets, arrays of numpy and dask. Planes that are read in order come in groups as deep as
    the chunks, so that chunks are decoded once and not for every plane, and where two groups have room the next one is decoded while this one is
    used: up to group_bytes, which a run makes a quarter of its DRAM. path: the file that it is read from, whose errors become sentences; objects of the
    user raise what they raise. deep: planes that come at a time where the source has no chunks."""
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
            raise unreadable(f"{self.path}: {self.name}, planes {z.start} to {max(z.start, z.stop - 1)},", error, errno.EIO) from error
        if isinstance(found, np.ma.MaskedArray):
            check_mask(found, self.name, z)
            found = found.data
        if found.shape != (_count(z), _count(y), _count(x)) or found.dtype.newbyteorder("=") != self.dtype.newbyteorder("="):
            raise _refuse(f"{self.name}: its cells are said to be {self.dtype.name}, and {found.shape} cells of {found.dtype.name} come where "
                          f"{(_count(z), _count(y), _count(x))} are asked for")
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
        """The planes that come with plane z: a row of chunks, or as much of it as has room."""
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
            warnings.warn(f"{self.name}: chunks are {end - first} planes deep, and {most} have room, so each is computed {-(-(end - first) // most)} times: "
                          f"rechunk({{0: {most}}}), or give the run more DRAM", stacklevel=2)
        first += (z - first) // most * most
        return first, min(first + most, end)

    def plane(self, z: int) -> np.ndarray:
        if not self._deep:
            return super().plane(z)
        held = self._held  # other threads may read other planes
        if held is None or not held[0] <= z < held[0] + len(held[1]):
            held = self._held = None  # this group goes before the next but one is made
            first, end = self._range(z)
            held = self._held = first, self._group(first, end)
        return held[1][z - held[0]]

    def _group(self, first: int, end: int) -> np.ndarray:
        """Planes from `first` on, that were perhaps begun already; and those after them are begun."""
        asked = self._take_next()
        planes = asked[1].result() if asked is not None and asked[0] == first else self.planes(first, end)
        if end < self.shape[0]:
            _first, after = self._range(end)
            if (end - first + max(after - end, end - first)) * self._plane_bytes() <= self.group_bytes:
                self._next = end, _ahead().submit(self.planes, end, after), os.getpid()
        return planes

    def _take_next(self) -> tuple[int, Future, int] | None:
        """What was begun, which this array has no more; nothing in a child of fork: the thread that would end it is the parent's."""
        asked, self._next = self._next, None
        return asked if asked is not None and asked[2] == os.getpid() else None

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_held": None, "_next": None}

    def release(self) -> None:
        asked, self._held = self._take_next(), None
        if asked is not None and not asked[1].cancel():
            wait([asked[1]])  # the file may be closed next


def check_mask(cells: np.ma.MaskedArray, name: str, z: slice) -> None:
    """Masked cells have no value."""
    mask = np.ma.getmaskarray(cells)
    if mask.any():
        plane = z.start + int(np.argwhere(mask)[0][0]) * z.step
        raise _refuse(f"{name} has {int(mask.sum())} cells without a value (masked) from plane {plane} on: fill them, numpy.ma.filled(a, 0) "
                      "(dask: dask.array.ma.filled)")


class Turned:
    """An array whose dimensions are stored in another order. order: of z, y, x, where they are stored. What has no chunks is as deep as it is: planes
    lie across the file, and it is gone through as seldom as memory allows."""

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
    """Planes that are read one by one: page(z) gives [y][x]."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, page: Callable[[int], np.ndarray], name: str, path: Any = None):
        super().__init__(shape, dtype)
        self.page, self.name, self.path = page, name, None if path is None else pathlib.Path(path)

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        out = np.empty((_count(z), _count(y), _count(x)), self.dtype)
        for i, plane in enumerate(range(z.start, z.stop, z.step)):
            try:
                with _LIBRARIES:
                    cells = np.asarray(self.page(plane))
            except (MemextError, MemoryError):
                raise
            except Exception as error:
                raise unreadable(f"{self.path or self.name}: plane {plane}", error, errno.EIO) from error
            if cells.shape != self.shape[1:] or cells.dtype.newbyteorder("=") != self.dtype.newbyteorder("="):
                raise _refuse(f"{self.name}: plane {plane} has {cells.shape} cells of {cells.dtype.name}, and the first one {self.shape[1:]} of {self.dtype.name}")
            out[i] = cells[y, x]
        return out


class _Unchanged:
    """Refuses what a store held when it was opened, once it holds something else. place: what keeps the store's directory, if something does."""

    def __init__(self, path: pathlib.Path, state: bytes, place: Any = None):
        self.path, self.state, self.place = path, state, place

    def now(self) -> tuple[bool, bytes]:
        try:
            return _core.state_of(self.path)
        except MemextError as error:
            if error.errno != errno.ENOENT:
                raise
            raise _refuse(f"{self.path} is gone: a run removes its store when it ends; save the array before that, or give the run keep=True",
                          errno.ENOENT) from None

    def before(self) -> None:
        in_use, state = self.now()
        if in_use:
            raise _refuse(f"{self.path} is being worked on: what it holds changes; read it when the run has ended or stopped", errno.EBUSY)
        if state != self.state:
            self.gone_on()

    def after(self) -> None:
        """A run commits its next state before it writes over this one: what was read is whole if nothing was committed meanwhile."""
        if self.now()[1] != self.state:
            self.gone_on()

    def gone_on(self) -> None:
        raise _refuse(f"{self.path} has gone on since it was opened: open it again", errno.ESTALE)


class _Hashed:
    """What --integrity keeps of a Buffer that begins at this byte of its store: cells are read in whole units, each of which is compared."""

    def __init__(self, path: pathlib.Path, buffer: str, begin: int):
        self._hashes, self.begin = _core.Hashes(path, buffer), begin
        self.unit_bytes, self.end = self._hashes.unit_bytes, begin + self._hashes.bytes

    def pieces(self, at: int, count: int) -> Iterator[tuple[int, int]]:
        """First byte and end of pieces of the file, whole units, that hold these bytes."""
        unit, step = self.unit_bytes, max(1, _PIECE_BYTES // self.unit_bytes) * self.unit_bytes
        low = at - (at - self.begin) % unit
        end = min(at + count + (self.begin - at - count) % unit, self.end)
        for first in range(low, end, step):
            yield first, min(first + step, end)

    def damage(self, at: int, piece: memoryview) -> int | None:
        found = self._hashes.damage(at - self.begin, piece)
        return None if found is None else self.begin + found


class Store:
    """A store: what it holds, and its fields as arrays, frame included. A mapping of names; shape: of the grid with its frame.

    The store of a rank has the planes of its rank: fields of the state without a frame where another rank goes on, so that those of all ranks, one
    after the other, are the grid; read-only fields with one."""

    def __init__(self, path: Any, place: Any = None):
        self.place_given = pathlib.Path(path)
        path = os.path.abspath(os.fsdecode(path))
        state, self.info = _core.state_of(path)[1], _core.look(path)
        while _core.generation_of(state) != self.info["generation"]:  # a run that is under way has committed in between
            state, self.info = _core.state_of(path)[1], _core.look(path)
        self.path = pathlib.Path(self.info["place"])
        self._unchanged = _Unchanged(self.path, state, place)
        self._hashed: dict[str, _Hashed | None] = {}
        self.state: str = self.info["state"]
        self.step: int = self.info["step"]

    @property
    def shape(self) -> tuple[int, int, int]:
        p = self._problem()
        planes = [a["planes"] for a in self.info["arrays"]]
        return min(planes, default=p["nz"] + 2 * p["h"]), p["ny"] + 2 * p["h"], p["nx"] + 2 * p["h"]

    @property
    def steps(self) -> int:
        """Steps that its run asked for."""
        return self._problem()["nt"]

    @property
    def fields(self) -> list[str]:
        return [a["name"] for a in self.info.get("arrays", [])]

    @property
    def frame(self) -> int:
        """Cells of frame on every side."""
        return self._problem()["h"]

    def _problem(self) -> dict:
        if "problem" not in self.info:
            raise _refuse(f"{self.path} holds no state: {self.info['why']}")
        return self.info["problem"]

    def keys(self) -> list[str]:
        return self.fields

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, name: str) -> RawArray:
        a = self._described(name)
        return self._array(a, 0, a["frame_low"], a["frame_high"])

    def part(self, name: str, frame: bool) -> RawArray:
        """A field where it lies, without its frame, or with as much of it as all fields have."""
        arrays = self.info["arrays"]
        low, high = (min(a[n] for a in arrays) if frame else 0 for n in ("frame_low", "frame_high"))
        return self._array(self._described(name), 0 if frame else self.frame, low, high)

    def _described(self, name: str) -> dict:
        for a in self.info.get("arrays", []):
            if a["name"] == name:
                return a
        self._problem()
        raise KeyError(f"{name} is no field of {self.path}: it has {', '.join(self.fields)}")

    def _array(self, a: dict, off: int, low: int, high: int) -> RawArray:
        """off: cells of frame left out in y and x; low, high: planes of it that are taken along."""
        from .kernel import type_name
        dtype, row, plane = np.dtype("<" + type_name(a["dtype"])), a["row_pitch_bytes"], a["plane_pitch_bytes"]
        shape = a["planes"] - a["frame_low"] - a["frame_high"] + low + high, *(n - 2 * off for n in self.shape[1:])
        offset = a["offset_bytes"] + (a["frame_low"] - low) * plane + off * (row + dtype.itemsize)
        return RawArray(self.path, shape, dtype, offset, row, plane, a["name"], self._unchanged, self._hashes(a["buffer"]))

    def _hashes(self, buffer: str) -> _Hashed | None:
        """None without --integrity, and of a read-only field of which an older memext kept none."""
        if not self.info.get("integrity_unit_bytes"):
            return None
        if buffer not in self._hashed:
            begin = next(e["offset_bytes"] for e in self.info["extents"] if e["name"] == buffer)
            try:
                self._hashed[buffer] = _Hashed(self.path, buffer, begin)
            except MemextError as error:
                if self._unchanged.now()[1] != self._unchanged.state:
                    self._unchanged.gone_on()
                if error.errno != errno.ENODATA or not buffer.startswith("field-"):
                    raise
                self._hashed[buffer] = None
        return self._hashed[buffer]

    def discard(self, no_lock: bool = False) -> None:
        """Gives the store up: its file in a directory is removed; a file or block device may be overwritten from then on. What a run has made of it
        since it was opened stays. no_lock: also where the file system has no locks, if nobody else uses the store."""
        _core.discard(self.place_given, *_core.mark(self.info), no_lock)

    def link(self, path: Any, **options: Any) -> pathlib.Path:
        """A small .h5 (and .xdmf) beside the store that shows its fields without a copy; see memext.link."""
        from .saving import link
        return link(self, path, **options)

    def pyramid(self, path: Any, levels: int = 3, **options: Any) -> dict[str, list[Array]]:
        """Coarse copies, 2, 4 and 8 times smaller, for napari and ParaView; see memext.pyramid."""
        from .pyramids import pyramid
        return pyramid(self, path, levels, **options)

    def __repr__(self) -> str:
        return f"<memext Store {self.path}: {self.state}, step {self.step}, fields {', '.join(self.fields)}>"

    def _repr_html_(self) -> str:
        from .looking import store_html
        return store_html(self)
