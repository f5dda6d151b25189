# SPDX-License-Identifier: BSD-3-Clause
"""What the fields of a run begin with: arrays, files, numbers, ramps, functions; handed to the library plane by plane."""
from __future__ import annotations

import errno
import functools
import hashlib
import os
import types
from collections.abc import Iterable
from typing import Any, Callable

import numpy as np

from . import _core
from .arrays import Array, ObjectArray, RawArray, as_array
from .errors import MemextError

INITS = ("random", "gauss", "linear", "corner", "zero")  # the library's own
FRAMES = ("included", "edge", "mirror", "periodic")


class Values:
    """Cells that are computed: plane(z, shape) gives [y][x] of a grid of that shape, its frame counted."""

    def shape(self) -> tuple[int, int, int] | None:
        return None

    def plane(self, z: int, shape: tuple[int, int, int]) -> Any:
        raise NotImplementedError

    def identity(self) -> str:
        raise NotImplementedError


class Constant(Values):
    def __init__(self, value: float):
        self.value = float(value)

    def plane(self, z: int, shape: tuple[int, int, int]) -> float:
        return self.value

    def identity(self) -> str:
        return f"constant {self.value!r}"


class Ramp(Values):
    """Linear along an axis, from `first` in the first plane of the frame to `last` in the last; 0 where `where` is 0."""

    def __init__(self, axis: str, first: float, last: float, where: Any = None):
        if axis not in ("x", "y", "z"):
            raise MemextError(f"the axis {axis!r} of a ramp: x, y or z")
        self.axis, self.first, self.last = "zyx".index(axis), float(first), float(last)
        self.where = None if where is None else as_array(where, "where")

    def shape(self) -> tuple[int, int, int] | None:
        return None if self.where is None else self.where.shape

    def plane(self, z: int, shape: tuple[int, int, int]) -> Any:
        if self.axis == 0:
            values: Any = np.linspace(self.first, self.last, shape[0])[z]
        else:
            line = np.linspace(self.first, self.last, shape[self.axis])
            values = line[:, None] if self.axis == 1 else line
        if self.where is None:
            return values
        return np.where(self.where.plane(z) != 0, values, 0.0)

    def identity(self) -> str:
        return f"ramp {self.axis} {self.first!r} {self.last!r} {identity_of(self.where) if self.where is not None else ''}"


class Function(Values):
    """function(x, y, z) of interior indices, arrays that broadcast; the frame has negative ones and those from n on."""

    def __init__(self, function: Callable, frame: int = 0):
        self.function, self.frame = function, frame
        self._identity: str | None = None

    def plane(self, z: int, shape: tuple[int, int, int]) -> Any:
        h = self.frame
        y, x = np.arange(-h, shape[1] - h)[:, None], np.arange(-h, shape[2] - h)[None, :]
        return self.function(x, y, z - h)

    def identity(self) -> str:
        if self._identity is None:  # as it is at first: what it holds may change when it is called
            self._identity = f"function {_text_of(self.function)}"
        return self._identity


def _text_of(value: Any, within: tuple[int, ...] = ()) -> str:
    """What a function computes, as far as it can be told, without addresses: the same in every process of a program. Of what cannot be told, its
    type. within: what this is part of, by id."""
    if id(value) in within:
        return "..."
    within = (*within, id(value))

    def texts(values: Iterable) -> list[str]:
        return [_text_of(v, within) for v in values]
    if isinstance(value, types.FunctionType):
        return _text_of(value.__code__, within)
    if isinstance(value, types.CodeType):
        return f"{value.co_code!r} {_text_of(value.co_consts, within)} {value.co_names!r}"
    if value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str, bytes) or isinstance(value, np.generic) and value.dtype.kind != "O":
        return repr(value)
    if type(value) is tuple:
        return f"({', '.join(texts(value))}{',' if len(value) == 1 else ''})"
    if type(value) is list:
        return f"[{', '.join(texts(value))}]"
    if isinstance(value, (set, frozenset)):  # their order is another one in every process
        return f"{type(value).__qualname__} {sorted(texts(value))}"
    if type(value) is dict:
        return f"dict {sorted(zip(texts(value), texts(value.values())))}"
    if type(value) is slice:
        return f"slice {texts((value.start, value.stop, value.step))}"
    if isinstance(value, functools.partial):
        return f"partial {texts((value.func, value.args, value.keywords))}"
    if isinstance(value, np.vectorize):
        return f"vectorize {_text_of(value.pyfunc, within)}"
    if isinstance(value, types.MethodType):
        return f"method {texts((value.__func__, value.__self__))}"
    if isinstance(value, (type, types.BuiltinFunctionType, np.ufunc)):
        return f"{type(value).__qualname__} {getattr(value, '__qualname__', value.__name__)}"
    if isinstance(value, Values):
        return value.identity()
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        step = max(1, value.nbytes // (64 << 20))
        cells = np.ascontiguousarray(value.reshape(-1)[::step])
        return f"array {value.shape} {value.dtype.str} {hashlib.blake2b(cells.tobytes(), digest_size=8).hexdigest()}"
    wrapped = getattr(value, "__wrapped__", None)  # of functools.cache, numba.jit ...
    return f"{type(value).__qualname__} {_text_of(wrapped, within) if callable(wrapped) else ''}"


def ramp(axis: str, first: float, last: float, where: Any = None) -> Ramp:
    """Initial values that go linearly from `first` to `last` along "x", "y" or "z", frame included; 0 where the array `where` is 0."""
    return Ramp(axis, first, last, where)


def identity_of(value: Any) -> str:
    """Tells other initial values from these, so that a run is not gone on with by mistake: files by name, size and time, arrays in memory by
    their cells (of large ones a sample)."""
    if isinstance(value, Values):
        return value.identity()
    if isinstance(value, Array) and value.path is not None and os.path.exists(value.path):
        s = os.stat(value.path)
        return f"{value.path.resolve()} {value.name} {s.st_size} {s.st_mtime_ns} {value.shape} {value.dtype.str}"
    array = as_array(value, "array")
    digest = hashlib.blake2b(f"{array.shape} {array.dtype.str}".encode(), digest_size=8)
    step = max(1, array.nbytes // (64 << 20))
    for z in range(0, array.shape[0], step):
        digest.update(np.ascontiguousarray(array.plane(z)).tobytes())
    return digest.hexdigest()


def as_values(value: Any, name: str, h: int) -> Values | Array | str:
    """What a field begins with: an init of the library as its name, or something that has planes."""
    if isinstance(value, str) and value in INITS:
        return value
    if isinstance(value, Values):
        return value
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return Constant(float(value))
    if callable(value) and not hasattr(value, "shape"):
        return Function(value, h)
    if isinstance(value, str) and not os.path.exists(value) and value.isidentifier():
        raise MemextError(f"{name}: neither a file nor a way to begin is called {value}: there are {', '.join(INITS)}", errno.ENOENT)
    array = as_array(value, name)
    if array.dtype.kind not in "biuf":
        way = f": {name}.real and {name}.imag can be two fields" if array.dtype.kind == "c" else ""
        raise MemextError(f"{name} has cells of {array.dtype}; cells are real numbers{way}", errno.EINVAL)
    return array


def framed_shape(value: Values | Array | str, h: int, frame: Any) -> tuple[int, int, int] | None:
    """Shape of the grid with its frame that an array belongs to; None where it says nothing."""
    if isinstance(value, str):
        return None
    if isinstance(value, Values):
        return value.shape()
    more = 0 if frame == "included" else 2 * h
    return tuple(n + more for n in value.shape)  # type: ignore[return-value]


def _index(i: int, n: int, frame: Any) -> int:
    """The cell that a frame cell i (negative, or n and more) copies."""
    if frame == "periodic":
        return i % n
    if frame == "mirror":
        i %= 2 * n
        return i if i < n else 2 * n - 1 - i
    return min(max(i, 0), n - 1)


def framed_plane(value: Array, z: int, shape: tuple[int, int, int], h: int, frame: Any) -> np.ndarray:
    """Plane z of the grid with its frame, of an array without one."""
    if frame == "included":
        return value.plane(z)
    nz, ny, nx = value.shape
    if not isinstance(frame, str):
        kind = value.dtype if value.dtype.kind in "iu" and frame == np.trunc(frame) and np.iinfo(value.dtype).min <= frame <= np.iinfo(value.dtype).max else "f8"
        out = np.full(shape[1:], frame, dtype=kind)
        if h <= z < nz + h:
            out[h:ny + h, h:nx + h] = value.plane(z - h)
        return out
    rows = [_index(y - h, ny, frame) for y in range(shape[1])]
    columns = [_index(x - h, nx, frame) for x in range(shape[2])]
    return value.plane(_index(z - h, nz, frame))[rows][:, columns]


class Source:
    """The fields of a run for the library, as mx_source: planes in order. error: the first exception of a callback."""

    def __init__(self, fields: dict[str, Values | Array], dtypes: dict[str, np.dtype], shape: tuple[int, int, int], h: int, frame: Any):
        self.fields, self.dtypes, self.shape, self.h, self.frame = fields, dtypes, shape, h, frame
        self.error: BaseException | None = None
        self.bare: set[str] = set()  # read-only fields whose arrays have no frame
        text = " ".join(f"{n}={identity_of(v)}:{self.dtypes[n].str}" for n, v in fields.items()) + f" {shape} {frame}"
        self.name = "python " + hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def struct(self) -> tuple[Any, list]:
        handle, name = _core.ffi.new_handle(self), _core.ffi.new("char[]", self.name.encode())
        lib = _core.lib
        made = _core.ffi.new("struct mx_source *", {"size": _core.ffi.sizeof("struct mx_source"), "context": handle, "name": name,
                                                    "open": lib.mxp_source_open, "region": lib.mxp_source_region,
                                                    "close": lib.mxp_source_close})
        return made, [handle, name]

    def open(self, grid: Any) -> None:
        grid.nz, grid.ny, grid.nx = self.shape

    def limit(self, dram_bytes: int) -> None:
        """A quarter of a run's DRAM for what is decoded at a time: the sweeps have not begun yet."""
        for value in self._arrays():
            if isinstance(value, ObjectArray):
                value.group_bytes = max(4 << 20, dram_bytes // 4)
                if value.chunk_bytes > dram_bytes:
                    raise MemextError(f"{value.name} has chunks of {_core.size_text(value.chunk_bytes)}, each of which is decoded at once, and the run has "
                                      f"{_core.size_text(dram_bytes)} of DRAM: give it more, or write the file in smaller chunks", errno.ENOMEM)

    def _arrays(self) -> list[Array]:
        return [a for v in self.fields.values() for a in (v, getattr(v, "where", None)) if isinstance(a, Array)]

    def region(self, box: Any) -> None:
        name = _core.ffi.string(box.field).decode() or "u"
        dtype = self.dtypes[name]
        out = _core.box_array(box, dtype)
        value = self.fields[name]
        for i, z in enumerate(range(box.z0, box.z1)):
            out[i] = self._plane(name, value, z, dtype)[box.y0:box.y1, box.x0:box.x1]

    def _plane(self, name: str, value: Values | Array, z: int, dtype: np.dtype) -> np.ndarray:
        if isinstance(value, Values):
            plane: Any = value.plane(z, self.shape)
        elif name in self.bare:
            plane = framed_plane(value, z, self.shape, self.h, 0)
        else:
            plane = framed_plane(value, z, self.shape, self.h, self.frame)
        cells = _converted(plane, dtype, name)
        try:
            return np.broadcast_to(cells, self.shape[1:])
        except ValueError:
            raise MemextError(f"field {name} is given a plane of {cells.shape}; planes of {self.shape[1:]} are needed, frame included, or what "
                              "numpy broadcasts to them", errno.EINVAL) from None

    def close(self) -> None:
        for value in self._arrays():
            value.release()


def _converted(plane: Any, dtype: np.dtype, name: str) -> np.ndarray:
    """Whole numbers are checked, so that nothing wraps round unseen."""
    plane = np.asarray(plane)
    if plane.dtype.kind not in "biuf":
        raise MemextError(f"field {name} is given values of {plane.dtype}; cells are real numbers", errno.EINVAL)
    if dtype.kind in "iu" and plane.dtype != dtype:
        limits = np.iinfo(dtype)
        if plane.size and not (plane.min() >= limits.min and plane.max() <= limits.max):  # not so with a NaN either
            raise MemextError(f"field {name} has values from {plane.min()} to {plane.max()}; {dtype.name} holds {limits.min} to {limits.max}",
                              errno.EINVAL)
        if plane.dtype.kind == "f" and (plane != np.trunc(plane)).any():
            value = plane[plane != np.trunc(plane)].flat[0]
            raise MemextError(f"field {name} has the value {value}; {dtype.name} holds whole numbers: convert it", errno.EINVAL)
    with np.errstate(over="ignore", invalid="ignore"):
        cells = plane.astype(dtype, copy=False)
        lost = _lost(plane, cells) if dtype.kind == "f" and plane.dtype.itemsize >= dtype.itemsize and plane.dtype != dtype else None
    if lost is not None and lost.any():
        raise MemextError(f"field {name} has the value {plane[lost].flat[0]}, which {dtype.name} does not hold: convert it, or give another dtype", errno.EINVAL)
    return cells


def _lost(plane: np.ndarray, cells: np.ndarray) -> np.ndarray | None:
    """Where numbers became infinite, or whole numbers others; fractions are rounded as ever."""
    if plane.dtype.kind == "f":
        return np.isinf(cells) & np.isfinite(plane) if np.isinf(cells).any() else None
    most = 2 ** (np.finfo(cells.dtype).nmant + 1)
    if plane.dtype.kind == "b" or not plane.size or (int(plane.max()) <= most and int(plane.min()) >= -most):
        return None
    return cells.astype(plane.dtype) != plane


class Sink:
    """The result of a run in memory, as mx_sink: for backends whose Buffers end with it."""

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
        from .kernel import type_name
        name = _core.ffi.string(grid.field).decode() or "u"
        dtype = np.dtype(type_name(_core.ffi.string(grid.dtype).decode()))
        count = grid.nz * grid.ny * grid.nx * dtype.itemsize
        _core.require_dram(count, f"the result {name}", "give a device, so that it stays in a store")
        self.arrays[name] = np.empty((grid.nz, grid.ny, grid.nx), dtype)

    def region(self, box: Any) -> None:
        array = self.arrays[_core.ffi.string(box.field).decode() or "u"]
        array[box.z0:box.z1, box.y0:box.y1, box.x0:box.x1] = _core.box_array(box, array.dtype)

    def close(self, whole: bool) -> None:
        self.whole = bool(whole)


def file_option(name: str, value: Any, dtype: str, h: int, frame: Any, bare_allowed: bool, shape: tuple[int, int, int]) -> str | None:
    """NAME=FILE[,TYPE,...] where the library can read the array's file itself, in place where it does so; None where not."""
    from .kernel import library_type
    if not isinstance(value, RawArray) or value._check is not None or not value.in_place or value.dtype.str[1:] != dtype:
        return None
    if value.dtype.str[0] == ">" or value.offset % value.dtype.itemsize != 0 or "," in str(value.path):
        return None
    with_frame = frame == "included" and value.shape == shape
    if not with_frame and not (bare_allowed and all(n == s - 2 * h for n, s in zip(value.shape, shape))):
        return None
    return f"{name}={value.path},{library_type(dtype)},offset={value.offset},frame={'yes' if with_frame else 'no'}"
