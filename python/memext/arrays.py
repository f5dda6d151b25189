# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that lie somewhere else: in stores and files, read as far as they are asked for."""
from __future__ import annotations

import errno
import glob
import math
import operator
import os
import pathlib
import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Callable

import numpy as np

from . import _core
from .errors import MemextError

_GAP_BYTES = 16 << 10  # rows this near to each other are read in one piece


def _refuse(sentence: str, number: int = errno.EINVAL) -> MemextError:
    return MemextError(sentence, number)


class Array:
    """An array of three dimensions, z, y, x, that is not in memory. shape, dtype, ndim; a[z, y, x] with whole numbers and slices reads
    what they name and no more; numpy.asarray(a) reads all of it, or refuses where DRAM does not hold that."""
    name = "array"
    path: pathlib.Path | None = None
    files: list[pathlib.Path] | None = None  # where there are several

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape, self.dtype = tuple(int(n) for n in shape), np.dtype(dtype)
        if self.dtype.hasobject:  # a file's bytes are no addresses
            raise _refuse(f"cells of {self.dtype} are objects of Python, not numbers: convert them")
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
    """Cells in a file at regular distances: raw files, .npy, NRRD, contiguous HDF5, and stores."""

    def __init__(self, path: Any, shape: tuple[int, ...], dtype: Any, offset: int = 0, row_pitch: int | None = None,
                 plane_pitch: int | None = None, name: str | None = None, check: _Unchanged | None = None):
        super().__init__(shape, dtype)
        self.path, self.offset = pathlib.Path(path), offset
        self.row_pitch = row_pitch if row_pitch is not None else self.shape[2] * self.dtype.itemsize
        self.plane_pitch = plane_pitch if plane_pitch is not None else self.shape[1] * self.row_pitch
        self.name = name or self.path.name
        self._check = check
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
        near = y.step * self.row_pitch - width <= _GAP_BYTES
        group = max(1, (8 << 20) // (y.step * self.row_pitch)) if near else 1
        for first in range(0, len(rows), group):
            some = rows[first:first + group]
            data = np.empty((some[-1] - some[0]) * self.row_pitch + width, "u1")
            self._fill(fd, at + some[0] * self.row_pitch, memoryview(data))
            cells = np.ndarray((len(some), -(-(x.stop - x.start) // x.step)), self.dtype, data, 0, (y.step * self.row_pitch, x.step * cell))
            out[first:first + group] = cells

    def _fill(self, fd: int, at: int, view: memoryview) -> None:
        while view:
            n = os.preadv(fd, [view[:1 << 30]], at)
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
    """Anything with shape, dtype and slices: h5py and zarr datasets, arrays of numpy. Planes that are read in order come in groups as deep as
    the chunks, so that chunks are decoded once and not for every plane, and where two groups have room the next one is decoded while this one is
    used: up to group_bytes, which a run makes a quarter of its DRAM."""
    group_bytes = 32 << 20

    def __init__(self, source: Any, name: str = "array", path: Any = None, keep: Any = None):
        super().__init__(source.shape, source.dtype)
        self.source, self.name, self.path, self.keep = source, name, None if path is None else pathlib.Path(path), keep
        chunks = getattr(source, "chunks", None)
        self._chunked = isinstance(chunks, tuple) and isinstance(chunks[0], int)
        self._deep = chunks[0] if self._chunked else 1  # type: ignore[index]
        self.chunk_bytes = self.dtype.itemsize * int(np.prod(chunks, dtype=object)) if self._chunked else 0  # which are decoded at once
        self._held: tuple[int, np.ndarray] | None = None
        self._next: tuple[int, Future, int] | None = None

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        if isinstance(self.source, np.ndarray):
            return np.ascontiguousarray(self.source[z, y, x])
        with _LIBRARIES:
            return np.ascontiguousarray(self.source[z, y, x])

    def plane(self, z: int) -> np.ndarray:
        if not self._chunked:
            return super().plane(z)
        a_plane = max(1, self.nbytes // max(1, self.shape[0]))
        depth = max(1, min(self._deep, self.group_bytes // a_plane))
        held = self._held  # other threads may read other planes
        if held is None or not held[0] <= z < held[0] + len(held[1]):
            held = self._held = None  # this group goes before the next but one is made
            first = z - z % depth
            held = self._held = first, self._group(first, depth, 2 * depth * a_plane <= self.group_bytes)
        return held[1][z - held[0]]

    def _group(self, first: int, depth: int, ahead: bool) -> np.ndarray:
        """Planes from `first` on, that were perhaps begun already; and those after them are begun."""
        asked = self._take_next()
        planes = asked[1].result() if asked is not None and asked[0] == first else self.planes(first, min(first + depth, self.shape[0]))
        after = first + depth
        if ahead and after < self.shape[0]:
            self._next = after, _ahead().submit(self.planes, after, min(after + depth, self.shape[0])), os.getpid()
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


class PagesArray(Array):
    """Planes that are read one by one: page(z) gives [y][x]."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, page: Callable[[int], np.ndarray], name: str, path: Any = None):
        super().__init__(shape, dtype)
        self.page, self.name, self.path = page, name, None if path is None else pathlib.Path(path)

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        out = np.empty((_count(z), _count(y), _count(x)), self.dtype)
        for i, plane in enumerate(range(z.start, z.stop, z.step)):
            with _LIBRARIES:
                cells = np.asarray(self.page(plane))
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
        return RawArray(self.path, shape, dtype, offset, row, plane, a["name"], self._unchanged)

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


# ------------------------------------------------------------------ files

def _npy(path: pathlib.Path, **_: Any) -> Array:
    try:
        view = np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise _refuse(f"{path} is no whole .npy file of numbers: {error}") from None
    if view.ndim != 3:
        raise _refuse(f"{path} has {view.ndim} dimensions: grids have three, z, y, x")
    if view.flags.c_contiguous:
        return RawArray(path, view.shape, view.dtype, view.offset)
    return ObjectArray(view, path.name, path)


_NRRD_TYPES = {"signed char": "i1", "int8": "i1", "int8_t": "i1", "uchar": "u1", "unsigned char": "u1", "uint8": "u1", "uint8_t": "u1",
               "short": "i2", "short int": "i2", "signed short": "i2", "signed short int": "i2", "int16": "i2", "int16_t": "i2", "ushort": "u2",
               "unsigned short": "u2", "unsigned short int": "u2", "uint16": "u2", "uint16_t": "u2", "int": "i4", "signed int": "i4",
               "int32": "i4", "int32_t": "i4", "uint": "u4", "unsigned int": "u4", "uint32": "u4", "uint32_t": "u4", "float": "f4",
               "double": "f8"}
_META_TYPES = {"MET_CHAR": "i1", "MET_UCHAR": "u1", "MET_SHORT": "i2", "MET_USHORT": "u2", "MET_INT": "i4", "MET_UINT": "u4",
               "MET_FLOAT": "f4", "MET_DOUBLE": "f8"}


def _positive(words: str, n: int, what: str, path: pathlib.Path) -> list[int]:
    try:
        numbers = [int(word) for word in words.split()]
    except ValueError:
        numbers = []
    if len(numbers) != n or min(numbers, default=0) < 1:
        raise _refuse(f"{path}: {what} '{words}' are not {n} positive whole numbers: an array of {n} dimensions is needed")
    return numbers


def _check_length(array: RawArray) -> RawArray:
    there = os.stat(array.path).st_size - array.offset
    if there < array.nbytes:
        raise _refuse(f"{array.path} has {max(there, 0)} bytes from byte {array.offset} on; {array.shape} cells of {array.dtype.name} are "
                      f"{array.nbytes}", errno.EIO)
    return array


def _nrrd(path: pathlib.Path, **_: Any) -> Array:
    """NRRD with raw cells, attached (.nrrd) or detached (.nhdr); x is the first axis of the header."""
    header: dict[str, str] = {}
    with path.open("rb") as file:
        if not file.readline(64).startswith(b"NRRD000"):
            raise _refuse(f"{path} is no NRRD file: it does not begin with NRRD000")
        while (line := file.readline(65536)) not in (b"", b"\n", b"\r\n"):
            text = line.decode("latin1").strip()
            if text and not text.startswith("#") and ": " in text + " ":
                key, _, value = text.partition(":")
                header.setdefault(key.strip().lower(), value.lstrip("=").strip())
        end = file.tell()
    if header.get("encoding", "").lower() != "raw":
        raise _refuse(f"{path} is encoded as '{header.get('encoding')}': only raw cells can be read in place; convert it (unu save -e raw)")
    if header.get("dimension") != "3":
        raise _refuse(f"{path} has {header.get('dimension')} dimensions: 3 are needed")
    kind = _NRRD_TYPES.get(header.get("type", "").lower())
    if kind is None:
        raise _refuse(f"{path}: the type '{header.get('type')}' is not known")
    shape = _positive(header.get("sizes", ""), 3, "the sizes", path)[::-1]
    order = ">" if header.get("endian", "little").lower() == "big" else "<"
    data, offset = path, end
    detached = header.get("data file") or header.get("datafile")
    if detached:
        if detached.upper().startswith("LIST") or "%" in detached:
            raise _refuse(f"{path} names several data files: one is needed")
        data, offset = path.parent / detached, 0
    skip, lines = int(header.get("byte skip", header.get("byteskip", 0))), int(header.get("line skip", header.get("lineskip", 0)))
    dtype = np.dtype(order + kind)
    if lines > 0:
        with _core.regular(data).open("rb") as file:
            file.seek(offset)
            for _line in range(lines):
                file.readline()
            offset = file.tell()
    if skip == -1:
        offset = data.stat().st_size - int(np.prod(shape, dtype=object)) * dtype.itemsize
    else:
        offset += skip
    return _check_length(RawArray(data, tuple(shape), dtype, offset, name=path.name))


def _mhd(path: pathlib.Path, **_: Any) -> Array:
    """MetaImage with raw cells, attached (.mha) or detached (.mhd)."""
    header: dict[str, str] = {}
    with path.open("rb") as file:
        for line in file:
            key, _, value = line.decode("latin1").partition("=")
            header[key.strip()] = value.strip()
            if key.strip() == "ElementDataFile":
                break
        end = file.tell()
    if header.get("CompressedData", "False").lower() in ("true", "1"):
        raise _refuse(f"{path} is compressed: only raw cells can be read in place; convert it")
    kind = _META_TYPES.get(header.get("ElementType", ""))
    if header.get("NDims") != "3" or kind is None or int(header.get("ElementNumberOfChannels", 1)) != 1:
        raise _refuse(f"{path}: {header.get('NDims')} dimensions of {header.get('ElementType')}; three of one number a cell are needed")
    shape = tuple(_positive(header.get("DimSize", ""), 3, "the sizes", path)[::-1])
    big = any(header.get(key, "False").lower() in ("true", "1") for key in ("BinaryDataByteOrderMSB", "ElementByteOrderMSB"))
    dtype = np.dtype((">" if big else "<") + kind)
    name = header.get("ElementDataFile", "")
    if name in ("", "LIST"):
        raise _refuse(f"{path} names {'several data files' if name else 'no ElementDataFile'}: one is needed")
    data, offset = (path, end) if name.upper() == "LOCAL" else (path.parent / name, 0)
    skip = int(header.get("HeaderSize", 0))
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    return _check_length(RawArray(data, shape, dtype, data.stat().st_size - size if skip == -1 else offset + skip, name=path.name))


def _module(name: str, what: Any) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise _refuse(f"{what} is read by the package {name}, which is not installed: pip install {name}", errno.ENOTSUP) from None


def _choose(names: list[str], wanted: str | None, path: Any) -> str:
    if isinstance(wanted, str) and wanted.strip("/") in names:
        return wanted.strip("/")
    if wanted is None and len(names) == 1:
        return names[0]
    raise _refuse(f"{path} has the arrays {', '.join(names) or '(none of three dimensions)'}: name one of them, open(path, NAME)")


def _hdf5(path: pathlib.Path, dataset: str | None = None, **_: Any) -> Array:
    """HDF5; contiguous datasets are read without the library, others through it."""
    h5py = _module("h5py", path)
    file = h5py.File(path, "r")
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) and item.ndim == 3 else None)
    linked = isinstance(dataset, str) and isinstance(file.get(dataset), h5py.Dataset) and file[dataset].ndim == 3  # links are not visited
    name = dataset if linked else _choose(names, dataset, path)
    data = file[name]
    made = _raw_dataset(data, name, path)
    if made is not None:
        file.close()
        return made
    return ObjectArray(data, name, path, file)


def _raw_dataset(data: Any, name: str, path: pathlib.Path) -> Array | None:
    h5d, offset = _module("h5py", path).h5d, data.id.get_offset()
    # Cells that nobody wrote are nowhere, and have an offset all the same behind a block of the user's.
    there = data.id.get_space_status() == h5d.SPACE_STATUS_ALLOCATED and os.path.samefile(data.file.filename, path)
    plain = there and data.chunks is None and offset is not None and data.id.get_create_plist().get_external_count() == 0 and not data.is_virtual
    return RawArray(path, data.shape, data.dtype, offset, name=name) if plain and data.dtype.kind in "fiu" else None


_FLOAT_FILL = 9.969209968386869e36  # NC_FILL_FLOAT and NC_FILL_DOUBLE, netcdf.h: cells that nobody wrote


class _Variable:
    """A variable of NetCDF as the array of numbers that it stands for (CF conventions 1.11, section 8.1 packed data and 2.5.1 missing data):
    scale_factor and add_offset are applied, and cells without a value are refused. index: of a first dimension, time, that is not taken along."""

    def __init__(self, source: Any, attributes: dict[str, Any], chunks: Any, index: int | None, name: str, path: pathlib.Path):
        self.source, self.index, self.name, self.path = source, index, name, path
        self.shape = tuple(source.shape[1:] if index is not None else source.shape)
        stored = np.dtype(source.dtype)
        self.unsigned = stored.kind == "i" and str(attributes.get("_Unsigned", "")).lower() == "true"
        fills = [np.asarray(attributes[key]).ravel() for key in ("_FillValue", "missing_value") if key in attributes]
        self.fills = np.concatenate(fills) if fills else np.asarray([_FLOAT_FILL] if stored.kind == "f" else [], stored)
        packed = [attributes[key] for key in ("scale_factor", "add_offset") if key in attributes]
        self.scale, self.offset = attributes.get("scale_factor"), attributes.get("add_offset")
        self.dtype = np.result_type(*[np.asarray(p).dtype for p in packed]) if packed else np.dtype(stored.str.replace("i", "u") if self.unsigned else stored)
        self.chunks = tuple(int(c) for c in chunks)[-3:] if chunks else None

    def __getitem__(self, key: Any) -> np.ndarray:
        stored = np.asarray(self.source[key if self.index is None else (self.index, *key)])
        for fill in self.fills:
            missing = np.isnan(stored) if fill != fill else stored == fill
            if missing.any():
                where = np.argwhere(missing)[0]
                z = key[0].start + int(where[0]) * key[0].step
                raise _refuse(f"{self.path}: {self.name} has {int(missing.sum())} cells without a value ({fill}) from plane {z} on: fill them in a copy")
        if self.unsigned:
            stored = stored.view(stored.dtype.str.replace("i", "u"))
        if self.scale is None and self.offset is None:
            return stored
        out = stored.astype(self.dtype)
        if self.scale is not None:
            out *= self.dtype.type(self.scale)
        if self.offset is not None:
            out += self.dtype.type(self.offset)
        return out


def _netcdf_file(path: pathlib.Path) -> tuple[Any, dict[str, tuple[Any, dict[str, Any], Any]]]:
    """{name: (variable, attributes, chunks)}, by netCDF4, h5netcdf or h5py, which is there; what they convert of their own is turned off."""
    try:
        import netCDF4
    except ImportError:
        netCDF4 = None
    found: dict[str, tuple[Any, dict[str, Any], Any]] = {}
    if netCDF4 is not None:
        file = netCDF4.Dataset(path, "r")
        file.set_auto_maskandscale(False)

        def visit(group: Any, before: str) -> None:
            for name, v in group.variables.items():
                chunks = v.chunking() if file.data_model.startswith("NETCDF4") else None
                if chunks not in (None, "contiguous"):
                    v.set_var_chunk_cache(1 << 20)  # chunks are read once, in groups of their own; its default is 64 MiB for each variable
                found[before + name] = v, {k: v.getncattr(k) for k in v.ncattrs()}, None if chunks in (None, "contiguous") else chunks
            for name, inner in group.groups.items():
                visit(inner, f"{before}{name}/")
        visit(file, "")
        return file, found
    try:
        import h5netcdf
    except ImportError:
        h5py = _module("h5py", path)
        if not h5py.is_hdf5(path):
            raise _refuse(f"{path} is no NetCDF4 file but an older one, which the package netCDF4 reads: pip install netCDF4", errno.ENOTSUP) from None
        file = h5py.File(path, "r")
        file.visititems(lambda name, item: found.update({name: (item, dict(item.attrs), item.chunks)}) if isinstance(item, h5py.Dataset) else None)
        return file, found
    file = h5netcdf.File(path, "r")
    for name, v in file.variables.items():
        found[name] = v, dict(v.attrs), v.chunks
    return file, found


def _netcdf(path: pathlib.Path, dataset: str | None = None, **_: Any) -> Array:
    """Variables of three dimensions, or NAME[STEP] of one of four; contiguous ones without packing are read without the library, in place."""
    try:
        file, variables = _netcdf_file(path)
    except OSError as error:
        raise _refuse(f"{path} cannot be read as NetCDF: {error}", error.errno if error.errno and error.errno > 0 else errno.EINVAL) from None
    wanted, index = dataset, None
    if dataset is not None and dataset not in variables and dataset.endswith("]") and "[" in dataset:
        wanted, _, step = dataset[:-1].rpartition("[")
        index = int(step) if step.isdigit() else -1
    ranks = {n: len(v.shape) for n, (v, _attributes, _chunks) in variables.items()}
    if wanted in ranks and ranks[wanted] == 4 and index is None:
        steps = variables[wanted][0].shape[0]
        if steps != 1:
            raise _refuse(f"{path}: {wanted} has four dimensions: name one of its {steps} steps, open(path, '{wanted}[0]')")
        index = 0
    if index is None:
        name = _choose([n for n, rank in ranks.items() if rank == 3], wanted, path)
    else:
        name = _choose([n for n, rank in ranks.items() if rank == 4], wanted, path)
        if not 0 <= index < variables[name][0].shape[0]:
            raise _refuse(f"{path}: {dataset}: {name} has steps 0 to {variables[name][0].shape[0] - 1}")
    source, attributes, chunks = variables[name]
    plain = not {"scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned"} & set(attributes)
    if plain and index is None and chunks is None and np.dtype(source.dtype).kind in "iu":
        raw = _contiguous(path, name)
        if raw is not None:
            file.close()
            return raw
    made = ObjectArray(_Variable(source, attributes, chunks, index, name, path), name, path, file)
    return made


def _contiguous(path: pathlib.Path, name: str) -> Array | None:
    """A dataset of an HDF5 file where it lies; None where it is no plain piece of the file."""
    try:
        import h5py
    except ImportError:
        return None
    if not h5py.is_hdf5(path):
        return None
    with h5py.File(path, "r") as file:
        return _raw_dataset(file[name], name, path)


def _zarr(path: pathlib.Path, dataset: str | None = None, **_: Any) -> Array:
    zarr = _module("zarr", path)
    data = zarr.open(str(path), mode="r")
    if hasattr(data, "shape"):
        if dataset is not None:
            raise _refuse(f"{path} is one array and has none that is called {dataset}: leave the name out")
        return ObjectArray(data, path.name, path)
    names: list[str] = []

    def visit(group: Any, before: str) -> None:
        names.extend(before + n for n, a in group.arrays() if a.ndim == 3)
        for n, inner in group.groups():
            visit(inner, f"{before}{n}/")
    visit(data, "")
    name = _choose(names, dataset, path)
    return ObjectArray(data[name], name, path)


def _tiff(path: pathlib.Path, **_: Any) -> Array:
    """A stack of pages in one file."""
    tifffile = _module("tifffile", path)
    file = tifffile.TiffFile(path)
    pages, series = file.pages, file.series
    if len(series) != 1 or len(pages[0].shape) != 2 or series[0].shape[-2:] != pages[0].shape:
        raise _refuse(f"{path}: its pages are not images of one size with one number a pixel")
    planes, shape, kind = len(pages), series[0].shape, pages[0].dtype
    if len(shape) > 3:
        raise _refuse(f"{path} has {len(shape)} dimensions, {series[0].axes}: write one stack of images into a file of its own")
    if planes == 1 and len(shape) == 3:  # ImageJ's way beyond 4 GiB: one page says where all of them lie, one behind the other
        if series[0].dataoffset is None:
            raise _refuse(f"{path}: one page stands for {shape[0]} planes, which do not lie one behind the other")
        file.close()
        return _check_length(RawArray(path, shape, kind.newbyteorder(file.byteorder), series[0].dataoffset))
    if planes != math.prod(shape[:-2]):
        raise _refuse(f"{path} has {planes} pages of {shape[0]} planes: the others are in other files")
    return PagesArray((planes, *pages[0].shape), kind, lambda z: pages[z].asarray(), path.name, path)


def _tiffs(paths: list[str], path: Any) -> Array:
    """A file for every plane."""
    tifffile = _module("tifffile", path)
    first = tifffile.imread(paths[0])
    if first.ndim != 2:
        raise _refuse(f"{paths[0]} has {first.ndim} dimensions: a file for each plane is needed")
    return PagesArray((len(paths), *first.shape), first.dtype, lambda z: tifffile.imread(paths[z]), pathlib.Path(path).name, paths[0])


def _segy(path: pathlib.Path, **_: Any) -> Array:
    """SEG-Y as a cube: z are inlines, y crosslines, x samples."""
    segyio = _module("segyio", path)
    file = segyio.open(str(path))
    if len(file.offsets) != 1:
        raise _refuse(f"{path} has {len(file.offsets)} offsets for each inline and crossline: stack it, or write one offset into a file of its own")
    lines = list(file.ilines)
    return PagesArray((len(lines), len(file.xlines), len(file.samples)), file.dtype, lambda z: file.iline[lines[z]], path.name, path)


def _raw(path: pathlib.Path, dtype: Any = None, shape: Any = None, offset: int = 0, **_: Any) -> Array:
    if dtype is None or shape is None:
        raise _refuse(f"{path} says nothing of what it holds: open it with dtype and shape=(nz, ny, nx), and offset if cells do not begin "
                      "with it")
    try:
        numbers, kind, begin = [operator.index(n) for n in shape], np.dtype(dtype), operator.index(offset)
    except TypeError as error:
        raise _refuse(f"{path}: dtype={dtype!r}, shape={shape!r}, offset={offset!r}: {error}") from None
    if len(numbers) != 3 or min(numbers) < 0 or begin < 0:
        raise _refuse(f"{path}: shape={shape!r}, offset={offset!r}: (nz, ny, nx) and bytes, none of them below 0, are needed")
    return _check_length(RawArray(path, tuple(numbers), kind, begin))


_READERS: dict[str, Callable[..., Array]] = {
    ".npy": _npy, ".nhdr": _nrrd, ".nrrd": _nrrd, ".mhd": _mhd, ".mha": _mhd, ".h5": _hdf5, ".hdf5": _hdf5, ".hdf": _hdf5, ".nc": _netcdf,
    ".nc4": _netcdf, ".cdf": _netcdf, ".zarr": _zarr, ".tif": _tiff, ".tiff": _tiff, ".sgy": _segy, ".segy": _segy}


def _in_order(path: str) -> list:
    """Numbers in names count as numbers: slice-9 is before slice-10."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", path))]


def open(path: Any, dataset: str | None = None, *, dtype: Any = None, shape: Any = None, offset: int = 0) -> Any:
    """Opens a store, or a file of an array, without reading it: .npy, .nhdr .nrrd .mhd .mha (raw cells), HDF5 (h5py), NetCDF (netCDF4, h5netcdf or h5py), Zarr, TIFF
    stacks (tifffile; a pattern like 'slices/*.tif' is a plane a file, in order of the numbers in their names), SEG-Y (segyio), and raw cells with dtype and shape.

    dataset: which array of a file that has several. What is not three-dimensional is refused."""
    text = os.path.abspath(os.fsdecode(path))  # which a chdir does not change
    if dtype is None and any(c in text for c in "*?[") and not os.path.exists(text):
        paths = sorted(glob.glob(text), key=_in_order)
        if not paths:
            raise _refuse(f"no file is called {text}", errno.ENOENT)
        array = _read_by(_tiffs, paths, text)
        array.files = [pathlib.Path(p) for p in paths]
    else:
        found = pathlib.Path(text)
        if not found.exists():
            raise _refuse(f"{found} is not there", errno.ENOENT)
        if dtype is not None or shape is not None:
            array = _raw(found, dtype, shape, offset)
        elif found.suffix.lower() in _READERS and (found.is_file() or found.suffix.lower() == ".zarr"):
            array = _read_by(_READERS[found.suffix.lower()], found, dataset=dataset)
        elif found.is_dir() and any((found / name).exists() for name in (".zarray", ".zgroup", "zarr.json")):
            array = _read_by(_zarr, found, dataset=dataset)
        else:
            store = Store(found)
            return store if dataset is None else store[dataset]
    if array.ndim != 3:
        raise _refuse(f"{text} has {array.ndim} dimensions: grids have three, z, y, x")
    return array


def _read_by(reader: Callable[..., Array], what: Any, *more: Any, **options: Any) -> Array:
    """What the libraries of formats raise is of many types: one sentence."""
    try:
        return reader(what, *more, **options)
    except (MemextError, MemoryError):
        raise
    except Exception as error:
        number = getattr(error, "errno", None)
        shown = more[0] if more else what
        raise _refuse(f"{shown} cannot be read: {str(error) or type(error).__name__}",
                      number if isinstance(number, int) and number > 0 else errno.EINVAL) from error


def as_array(value: Any, name: str) -> Array:
    """Any three-dimensional array as one of ours."""
    if isinstance(value, Array):
        return value
    if isinstance(value, (str, bytes, os.PathLike)):
        return open(value)
    if not hasattr(value, "shape") or not isinstance(getattr(value, "dtype", None), np.dtype):  # lists; tensors, whose types are not numpy's
        value = np.asarray(value)
    if isinstance(value, np.ma.MaskedArray):
        masked = int(np.ma.getmaskarray(value).sum())
        if masked:
            raise _refuse(f"{name} has {masked} cells without a value (masked): fill them, {name}.filled(0)")
        value = value.data
    if len(value.shape) != 3:
        raise _refuse(f"{name} has {len(value.shape)} dimensions: a grid has three, z, y, x")
    return ObjectArray(value, name)
