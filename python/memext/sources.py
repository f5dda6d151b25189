# SPDX-License-Identifier: BSD-3-Clause
"""Hands the library the initial values of a run's fields, plane by plane, and receives its result."""
from __future__ import annotations

import errno
import hashlib
import math
import os
from typing import Any

import numpy as np

from . import _core
from .arrays import Array, ObjectArray, RawArray
from .celltypes import dtype_of, library_type, of_library
from .computed import Function, Ramp
from .errors import MemextError
from .exact import array_of, is_whole, real, rounded
from .formats import as_array
from .identity import identity_of
from .values import Constant, Values

INITS = ("random", "gauss", "linear", "corner", "zero")  # the library's own
FRAMES = ("included", "edge", "mirror", "periodic")


def ramp(axis: str, first: float, last: float, where: Any = None) -> Ramp:
    """Returns initial values that change linearly from `first` to `last` along axis "x", "y" or "z" (in two dimensions "x" or "y").

    `first` and `last` are the values in the outermost planes of the frame. where: an array with the shape of the field; the values are 0 where it is 0."""
    return Ramp(axis, first, last, where)


def as_values(value: Any, name: str, h: int) -> Values | Array | str:
    """The initial values of a field: the name of a pattern of the library, or an object that gives planes."""
    if isinstance(value, str) and value in INITS:
        return value
    if isinstance(value, Values):
        return value
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return Constant(value)
    if callable(value) and not hasattr(value, "shape"):
        return Function(value, h)
    if isinstance(value, str) and not os.path.exists(value) and value.isidentifier():
        raise MemextError(f"{name}: '{value}' is neither a file nor a pattern: the patterns are {', '.join(INITS)}", errno.ENOENT)
    array = as_array(value, name)
    if array.dtype.kind not in "biuf":
        way = f"make two fields of {name}.real and {name}.imag" if array.dtype.kind == "c" else "convert them with astype"
        raise MemextError(f"{name} has cells of {array.dtype}, but cells must be real numbers: {way}", errno.EINVAL)
    return array


def framed_shape(value: Values | Array | str, halo: tuple[int, int, int], frame: Any) -> tuple[int, int, int] | None:
    """The shape of the grid, with its frame, that an array belongs to; None for values that have no shape."""
    if isinstance(value, str):
        return None
    if isinstance(value, Values):
        return value.shape()
    return tuple(n + (0 if frame == "included" else 2 * h) for n, h in zip(value.shape, halo))  # type: ignore[return-value]


def _index(i: int, n: int, frame: Any) -> int:
    """The cell that a frame cell i (negative, or n and more) copies."""
    if frame == "periodic":
        return i % n
    if frame == "mirror":
        i %= 2 * n
        return i if i < n else 2 * n - 1 - i
    return min(max(i, 0), n - 1)


def _type_beside(dtype: np.dtype, frame: Any) -> np.dtype:
    """A type that holds the cells of an array and the number of the frame around them."""
    whole = is_whole(frame) or (math.isfinite(frame) and frame == np.trunc(frame))
    if dtype.kind in "iu" and whole:
        low, high = (min(int(np.iinfo(dtype).min), int(frame)), max(int(np.iinfo(dtype).max), int(frame)))
        wide = (np.dtype(t) for t in (dtype, "i8", "u8") if np.iinfo(t).min <= low and high <= np.iinfo(t).max)
        return next(wide, np.dtype(object))
    if is_whole(frame):
        real(frame, "frame")
    return np.dtype("f8")


def framed_plane(value: Array, z: int, shape: tuple[int, int, int], halo: tuple[int, int, int], frame: Any) -> np.ndarray:
    """Plane z of the grid with its frame, made from an array without a frame. halo: cells of frame along the three axes."""
    if frame == "included":
        return value.plane(z)
    (nz, ny, nx), (h, hy, hx) = value.shape, halo
    if not isinstance(frame, str):
        kind = _type_beside(value.dtype, frame)
        out = np.full(shape[1:], int(frame) if kind.kind in "iuO" else frame, dtype=kind)
        if h <= z < nz + h:
            plane = value.plane(z - h)
            out[hy:ny + hy, hx:nx + hx] = converted(plane, kind, value.name) if kind.kind == "f" else plane
        return out
    rows = [_index(y - hy, ny, frame) for y in range(shape[1])]
    columns = [_index(x - hx, nx, frame) for x in range(shape[2])]
    return value.plane(_index(z - h, nz, frame))[rows][:, columns]


class Source:
    """Gives the fields of a run to the library, as mx_source, in the order of planes. error: the first exception of a callback."""

    def __init__(self, fields: dict[str, Values | Array], dtypes: dict[str, np.dtype], shape: tuple[int, int, int], halo: tuple[int, int, int], frame: Any):
        """halo: cells of frame along the three axes; 0 in the middle of a grid of two dimensions (flat.py)."""
        self.fields, self.dtypes, self.shape, self.halo, self.frame = fields, dtypes, shape, halo, frame
        self.error: BaseException | None = None
        self.bare: set[str] = set()  # read-only fields whose arrays have no frame
        self.here: dict[str, str] = {}  # what is said of arrays that lie in the run's own place
        self.known: dict[str, int] = {}  # identities, which are taken once: what is in memory may change when the run has begun
        framed = frame != "included" and any(isinstance(v, Array) for v in fields.values())
        self.name = f"python, frame={frame!r}"[:63] if framed else "python"

    def struct(self) -> tuple[Any, list]:
        handle, name = _core.ffi.new_handle(self), _core.ffi.new("char[]", self.name.encode())
        lib = _core.lib
        made = _core.ffi.new("struct mx_source *", {"size": _core.ffi.sizeof("struct mx_source"), "context": handle, "name": name,
                                                    "open": lib.mxp_source_open, "region": lib.mxp_source_region,
                                                    "close": lib.mxp_source_close, "identity": lib.mxp_source_identity})
        return made, [handle, name]

    def identity(self, name: str) -> int:
        if name not in self.known:
            value = self.fields[name]
            frame = f"{self.frame!r} {name in self.bare}" if isinstance(value, Array) and self.frame != "included" else ""
            text = f"{self.here.get(name) or identity_of(value)} {self.dtypes[name].str} {frame}"
            self.known[name] = int(hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=8).hexdigest(), 16)
        return self.known[name]

    def open(self, grid: Any) -> None:
        grid.nz, grid.ny, grid.nx = self.shape
        if self.halo[1] == 0:  # the library hands out rows as such
            grid.nz, grid.ny = grid.ny, grid.nz

    def limit(self, dram_bytes: int) -> None:
        """Allows decoded groups of planes a quarter of the run's DRAM, because its sweeps have not begun yet."""
        for value in self._arrays():
            if isinstance(value, ObjectArray):
                value.group_bytes = max(4 << 20, dram_bytes // 4)
                if value.chunk_bytes > dram_bytes:
                    raise MemextError(f"{value.name} has chunks of {_core.size_text(value.chunk_bytes)}, which must be decoded whole, but the run has only "
                                      f"{_core.size_text(dram_bytes)} of DRAM: give more as dram=, or write the file in smaller chunks", errno.ENOMEM)

    def _arrays(self) -> list[Array]:
        return [a for v in self.fields.values() for a in (v, getattr(v, "where", None)) if isinstance(a, Array)]

    def region(self, box: Any) -> None:
        name = _core.ffi.string(box.field).decode() or "u"
        dtype = self.dtypes[name]
        out = [_core.box_array(box, dtype)]  # the library's memory: no error's traceback keeps it
        value = self.fields[name]
        try:
            if self.halo[1] == 0:
                for i, y in enumerate(range(box.y0, box.y1)):
                    out[0][0, i] = self._plane(name, value, y, dtype)[0, box.x0:box.x1]
                return
            for i, z in enumerate(range(box.z0, box.z1)):
                out[0][i] = self._plane(name, value, z, dtype)[box.y0:box.y1, box.x0:box.x1]
        finally:
            out.clear()

    def _plane(self, name: str, value: Values | Array, z: int, dtype: np.dtype) -> np.ndarray:
        if isinstance(value, Values):
            plane: Any = value.plane(z, self.shape)
        elif name in self.bare:
            plane = framed_plane(value, z, self.shape, self.halo, 0)
        else:
            plane = framed_plane(value, z, self.shape, self.halo, self.frame)
        cells = converted(plane, dtype, name)
        try:
            return np.broadcast_to(cells, self.shape[1:])
        except ValueError:
            what, wanted = ("row", self.shape[2:]) if self.halo[1] == 0 else ("plane", self.shape[1:])
            raise MemextError(f"field {name} is given a {what} of shape {cells.shape}: give {what}s of {wanted}, with their frame, or a shape that numpy broadcasts to this",
                              errno.EINVAL) from None

    def close(self) -> None:
        for value in self._arrays():
            value.release()


def converted(plane: Any, dtype: np.dtype, name: str) -> np.ndarray:
    """The plane as cells of this type. Refuses masked cells, and numbers that the type cannot hold."""
    plane = array_of(plane, f"field {name}")
    if plane.dtype.kind == "O" and plane.size and all(map(is_whole, plane.flat)):
        return _converted_objects(plane, dtype, name)
    if plane.dtype.kind not in "biuf":
        raise MemextError(f"field {name} is given values of {plane.dtype}, but cells must be real numbers: convert them", errno.EINVAL)
    if dtype.kind in "iu" and plane.dtype != dtype:
        limits = np.iinfo(dtype)
        if plane.size and not _fits(plane, limits):
            raise MemextError(f"field {name} has values from {plane.min()} to {plane.max()}, but {dtype.name} holds only {limits.min} to {limits.max}: convert "
                              "them, or give another dtype", errno.EINVAL)
        if plane.dtype.kind == "f" and (plane != np.trunc(plane)).any():
            value = plane[plane != np.trunc(plane)].flat[0]
            raise MemextError(f"field {name} has the value {value}, but {dtype.name} holds only integers: convert it, or give another dtype", errno.EINVAL)
    with np.errstate(over="ignore", invalid="ignore"):
        cells = plane.astype(dtype, copy=False)
        lost = _lost(plane, cells) if dtype.kind == "f" and plane.dtype.itemsize >= dtype.itemsize and plane.dtype != dtype else None
    if lost is not None and lost.any():
        raise MemextError(f"field {name} has the value {plane[lost].flat[0]}, which {dtype.name} cannot hold exactly: convert it, or give another dtype", errno.EINVAL)
    return cells


def _converted_objects(numbers: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    """Converts integers of Python, which may have any size."""
    low, high = min(map(int, numbers.flat)), max(map(int, numbers.flat))
    if dtype.kind == "f" and (lost := rounded(numbers.flat)) is not None:
        raise MemextError(f"field {name} has the value {lost}, which {dtype.name} cannot hold exactly: convert it, or give another dtype", errno.EINVAL)
    if dtype.kind == "f":
        return converted(numbers.astype("f8"), dtype, name)
    if low < np.iinfo(dtype).min or high > np.iinfo(dtype).max:
        raise MemextError(f"field {name} has values from {low} to {high}, but {dtype.name} holds only {np.iinfo(dtype).min} to {np.iinfo(dtype).max}: convert "
                          "them, or give another dtype", errno.EINVAL)
    return numbers.astype(dtype)


def _fits(plane: np.ndarray, limits: Any) -> bool:
    """Does the integer type hold all values? NaN does not fit. The limits are compared as integers of Python, which have any size."""
    ends = plane.min(), plane.max()
    return all(map(np.isfinite, ends)) and math.floor(ends[0]) >= limits.min and math.floor(ends[1]) <= limits.max


def _lost(plane: np.ndarray, cells: np.ndarray) -> np.ndarray | None:
    """The cells whose number became infinite, or whose integer changed. Fractions may be rounded. None if there are no such cells."""
    if plane.dtype.kind == "f":
        return np.isinf(cells) & np.isfinite(plane) if np.isinf(cells).any() else None
    most = 2 ** (np.finfo(cells.dtype).nmant + 1)
    if plane.dtype.kind == "b" or not plane.size or (int(plane.max()) <= most and int(plane.min()) >= -most):
        return None
    return cells.astype(plane.dtype) != plane


class Sink:
    """Keeps the result of a run in memory, as mx_sink. Backends whose Buffers end with the run need it."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.error: BaseException | None = None
        self.whole = False

    def struct(self) -> tuple[Any, list]:
        handle, lib = _core.ffi.new_handle(self), _core.lib
        made = _core.ffi.new("struct mx_sink *", {"size": _core.ffi.sizeof("struct mx_sink"), "context": handle, "open": lib.mxp_sink_open,
                                                  "region": lib.mxp_sink_region, "close": lib.mxp_sink_close})
        return made, [handle]

    def open(self, grid: Any) -> None:
        name = _core.ffi.string(grid.field).decode() or "u"
        dtype = of_library(_core.ffi.string(grid.dtype).decode())
        count = grid.nz * grid.ny * grid.nx * dtype.itemsize
        _core.require_dram(count, f"the result {name}", "give device=, and leave backend= out, so that it stays in a store")
        self.arrays[name] = np.empty((grid.nz, grid.ny, grid.nx), dtype)

    def region(self, box: Any) -> None:
        array = self.arrays[_core.ffi.string(box.field).decode() or "u"]
        array[box.z0:box.z1, box.y0:box.y1, box.x0:box.x1] = _core.box_array(box, array.dtype)

    def close(self, whole: bool) -> None:
        self.whole = bool(whole)


def file_option(name: str, value: Any, dtype: str, halo: tuple[int, int, int], frame: Any, bare_allowed: bool, shape: tuple[int, int, int]) -> str | None:
    """The option NAME=FILE[,TYPE,...] if the library can read the array's file itself; otherwise None."""
    if not isinstance(value, RawArray) or value._check is not None or not value.in_place or value.dtype != dtype_of(dtype):
        return None
    if value.dtype.str[0] == ">" or value.offset % value.dtype.itemsize != 0 or "," in str(value.path):
        return None
    with_frame = frame == "included" and value.shape == shape
    if not with_frame and not (bare_allowed and all(n == s - 2 * h for n, s, h in zip(value.shape, shape, halo))):
        return None
    return f"{name}={value.path},{library_type(dtype)},offset={value.offset},frame={'yes' if with_frame else 'no'}"
