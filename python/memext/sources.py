# SPDX-License-Identifier: BSD-3-Clause
"""What the fields of a run begin with: arrays, files, numbers, ramps, functions; handed to the library plane by plane."""
from __future__ import annotations

import errno
import functools
import hashlib
import os
import pathlib
import random
import sys
import types
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

import numpy as np

from . import _core
from .arrays import Array, ObjectArray, RawArray
from .celltypes import library_type, type_name
from .errors import MemextError
from .formats import as_array

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
            self._identity = f"function {_Texts().of(self.function)}"
        return self._identity


class _Texts:
    """What functions compute, as far as it can be told, without addresses: the same in every process of a program, and another one where the code, a
    default, a closure, a global or an attribute that they use is another one. Of what cannot be told, its type. Functions, classes and objects are told
    once, and named after that; what Python and installed packages have is named."""

    def __init__(self) -> None:
        self.told: set[int] = set()

    def of(self, value: Any, within: tuple[int, ...] = ()) -> str:
        """within: what this is part of, by id."""
        if id(value) in within:
            return "..."
        if value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str, bytes) or isinstance(value, np.generic) and value.dtype.kind != "O":
            return repr(value)
        within = (*within, id(value))
        for kinds, text in self._kinds:
            if isinstance(value, kinds):
                return text(self, value, within)
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return f"array {value.shape} {value.dtype.str} {_hash_of(value)}"
        return self._object(value, within)

    def _all(self, values: Iterable, within: tuple[int, ...]) -> list[str]:
        return [self.of(v, within) for v in values]

    def _function(self, f: types.FunctionType, within: tuple[int, ...]) -> str:
        name = f"function {f.__module__}.{f.__qualname__}"
        if _is_installed(f.__module__):
            return name
        if id(f) in self.told:
            return f"function {f.__qualname__}"
        self.told.add(id(f))
        names = sorted(_names_in(f.__code__))
        cells = [self._used(c.cell_contents, names, within) for c in f.__closure__ or () if not _is_empty(c)]
        known = [f"{n}={self._used(f.__globals__[n], names, within)}" for n in names if n in f.__globals__]
        return f"{self._code(f.__code__, within)} {self._all((f.__defaults__, f.__kwdefaults__), within)} {cells} {known}"

    def _used(self, value: Any, names: list[str], within: tuple[int, ...]) -> str:
        """Of a module of the program's own what is asked of it."""
        if not isinstance(value, types.ModuleType) or _is_installed(value.__name__) or id(value) in within:
            return self.of(value, within)
        return f"module {[f'{n}={self._used(getattr(value, n), names, (*within, id(value)))}' for n in names if hasattr(value, n)]}"

    def _code(self, code: types.CodeType, within: tuple[int, ...]) -> str:
        return f"{code.co_code!r} {self.of(code.co_consts, within)} {code.co_names!r}"

    def _tuple(self, value: tuple, within: tuple[int, ...]) -> str:
        return f"({', '.join(self._all(value, within))}{',' if len(value) == 1 else ''})"

    def _set(self, value: Any, within: tuple[int, ...]) -> str:
        """Its order is another one in every process."""
        texts = []
        for v in value:
            one = _Texts()
            one.told = set(self.told)
            texts.append(one.of(v, within))
        return f"{type(value).__qualname__} {sorted(texts)}"

    def _dict(self, value: dict, within: tuple[int, ...]) -> str:
        plain = all(type(k) is str for k in value)
        return f"dict {[(k, self.of(value[k], within)) for k in sorted(value)] if plain else self._set(value.items(), within)}"

    def _class(self, value: type, within: tuple[int, ...]) -> str:
        name = f"{type(value).__qualname__} {value.__qualname__}"
        if _is_installed(value.__module__) or id(value) in self.told:
            return name
        self.told.add(id(value))
        own = {n: v for n, v in vars(value).items() if not n.startswith("__") or isinstance(v, types.FunctionType)}
        return f"{name} {self._all(value.__bases__, within)} {[(n, self.of(own[n], within)) for n in sorted(own)]}"

    def _object(self, value: Any, within: tuple[int, ...]) -> str:
        kind = type(value)
        name, wrapped = kind.__qualname__, getattr(value, "__wrapped__", None)
        if id(value) in self.told:
            return name
        self.told.add(id(value))
        if callable(wrapped):  # of functools.cache, numba.jit ...
            return f"{name} {self.of(wrapped, within)}"
        slots = [n for c in kind.__mro__ for n in _as_names(c.__dict__.get("__slots__", ()))]
        state = {**{n: getattr(value, n) for n in slots if n not in ("__dict__", "__weakref__") and hasattr(value, n)}, **getattr(value, "__dict__", {})}
        return f"{name} {'' if _is_installed(kind.__module__) else self.of(kind, within)} {self._dict(state, within) if state else ''}"

    _kinds: list[tuple[Any, Callable]] = [
        (types.FunctionType, _function), (types.CodeType, _code), (tuple, _tuple), ((set, frozenset), _set), (dict, _dict),
        (list, lambda t, v, w: f"[{', '.join(t._all(v, w))}]"), (slice, lambda t, v, w: f"slice {t._all((v.start, v.stop, v.step), w)}"),
        (functools.partial, lambda t, v, w: f"partial {t._all((v.func, v.args, v.keywords), w)}"),
        (np.vectorize, lambda t, v, w: f"vectorize {t.of(v.pyfunc, w)}"), (types.MethodType, lambda t, v, w: f"method {t._all((v.__func__, v.__self__), w)}"),
        (types.ModuleType, lambda t, v, w: f"module {v.__name__}"), (type, _class), ((np.random.Generator), lambda t, v, w: t.of(v.bit_generator, w)),
        (np.random.BitGenerator, lambda t, v, w: f"{type(v).__qualname__} {t.of(v.state, w)}"),
        (np.random.RandomState, lambda t, v, w: f"RandomState {t.of(v.get_state(), w)}"), (random.Random, lambda t, v, w: f"Random {t.of(v.getstate(), w)}"),
        ((types.BuiltinFunctionType, np.ufunc), lambda t, v, w: f"{type(v).__qualname__} {getattr(v, '__qualname__', v.__name__)}"),
        ((staticmethod, classmethod), lambda t, v, w: f"{type(v).__qualname__} {t.of(v.__func__, w)}"),
        (property, lambda t, v, w: f"property {t._all((v.fget,), w)}"), (Values, lambda t, v, w: v.identity()), (Array, lambda t, v, w: identity_of(v))]


def _is_empty(cell: types.CellType) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return True
    return False


def _as_names(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def _names_in(code: types.CodeType) -> set[str]:
    """Of globals and attributes, also of the functions within."""
    return set(code.co_names).union(*(_names_in(c) for c in code.co_consts if isinstance(c, types.CodeType)))


def _is_installed(module: str | None) -> bool:
    """Is it Python's, or an installed package's? Their versions are theirs."""
    root = (module or "builtins").partition(".")[0]
    if root == "__main__":
        return False
    file = getattr(sys.modules.get(root), "__file__", None)
    return root in sys.stdlib_module_names or root == __package__ or file is not None and ("site-packages" in file or "dist-packages" in file)


def ramp(axis: str, first: float, last: float, where: Any = None) -> Ramp:
    """Initial values that go linearly from `first` to `last` along "x", "y" or "z", frame included; 0 where the array `where` is 0."""
    return Ramp(axis, first, last, where)


_SAMPLE_PAGES, _PAGE_BYTES = 64, 4096


def _hash_of(array: np.ndarray) -> str:
    """Of all cells, whatever their order in memory; in pieces, by several threads, for a copy of it may not fit into memory."""
    def one(piece: np.ndarray) -> bytes:
        return hashlib.blake2b(np.ascontiguousarray(piece).reshape(-1).view("u1").data, digest_size=8).digest()
    if array.ndim == 0 or array.size == 0:
        return one(array).hex()
    deep = max(1, (16 << 20) // max(1, array.nbytes // array.shape[0]))
    with ThreadPoolExecutor(min(8, len(os.sched_getaffinity(0)))) as pool:
        return one(np.frombuffer(b"".join(pool.map(one, (array[i:i + deep] for i in range(0, array.shape[0], deep)))), "u1")).hex()


def _file_text(path: pathlib.Path) -> str:
    """A file by its bytes and a sample of its content, and where that is not all of it by name and time; a directory by all that is in it."""
    if path.is_dir():
        digest = hashlib.blake2b(digest_size=8)
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                s = os.stat(os.path.join(folder, name))
                digest.update(f"{os.path.relpath(folder, path)} {name} {s.st_size} {s.st_mtime_ns}\n".encode(errors="surrogateescape"))
        return f"{path.resolve()} {digest.hexdigest()}"
    digest, size = hashlib.blake2b(digest_size=8), os.stat(path).st_size
    last = max(0, size - _PAGE_BYTES)
    with open(path, "rb") as file:
        for i in range(_SAMPLE_PAGES):
            file.seek(last * i // (_SAMPLE_PAGES - 1))
            digest.update(file.read(_PAGE_BYTES))
    whole = size <= _SAMPLE_PAGES * _PAGE_BYTES
    return f"{size} {digest.hexdigest()} {'' if whole else f'{path.resolve()} {os.stat(path).st_mtime_ns}'}"


def files_of(value: Any) -> list[pathlib.Path]:
    """The files that an array is read from."""
    where = getattr(value, "where", None)
    if isinstance(where, Array):
        return files_of(where)
    if not isinstance(value, Array):
        return []
    source = getattr(value, "source", None)
    paths = list(value.files or ([] if value.path is None else [value.path]))
    inner = source
    while hasattr(inner, "source"):  # of a variable that is converted, or turned
        inner = inner.source
    if hasattr(inner, "is_virtual"):
        paths += _cells_of(inner)
    file = getattr(inner, "file", None)
    for name in (getattr(inner, "filename", None), getattr(file, "filename", None), getattr(getattr(inner, "store", None), "path", None),
                 getattr(getattr(inner, "store", None), "root", None)):  # a memory map, datasets of h5py and zarr
        if isinstance(name, (str, os.PathLike)) and pathlib.Path(name) not in paths:
            paths.append(pathlib.Path(name))
    return [p for p in paths if p.exists()]


def _cells_of(dataset: Any) -> list[pathlib.Path]:
    """Other files that an HDF5 dataset has its cells in: external ones, and those of the datasets that a virtual one is made of."""
    import h5py
    folder = pathlib.Path(dataset.file.filename).parent
    paths = [folder / os.fsdecode(name) for name, *_ in dataset.external or ()]
    for one in dataset.virtual_sources() if dataset.is_virtual else ():
        if one.file_name != ".":
            paths.append(folder / one.file_name)
        elif isinstance(dataset.file.get(one.dset_name), h5py.Dataset):
            paths += _cells_of(dataset.file[one.dset_name])
    return paths


def identity_of(value: Any) -> str:
    """Tells other initial values from these, so that a run is not gone on with by mistake: arrays in memory by their cells, files by their bytes and a
    sample of their content, large ones by name and time besides, and where in them the array lies."""
    if isinstance(value, Values):
        return value.identity()
    array = as_array(value, "array")
    source = getattr(array, "source", None)
    text = f"{array.shape} {array.dtype.str}"
    if isinstance(source, np.ndarray) and not isinstance(source, np.memmap):
        return f"{text} {_hash_of(source)}"
    files = files_of(array)
    if files:
        inner = getattr(source, "name", "")
        where = [getattr(array, n, 0) for n in ("offset", "row_pitch", "plane_pitch")]
        text += f" {array.name if array.name != files[0].name else ''} {inner if isinstance(inner, str) else ''} {where} {[_file_text(p) for p in files]}"
        if not isinstance(source, np.memmap):
            return text
    digest = hashlib.blake2b(digest_size=8)  # a sample of what may be long to read
    step = max(1, array.nbytes // (64 << 20))
    for z in range(0, array.shape[0], step):
        digest.update(np.ascontiguousarray(array.plane(z)).tobytes())
    return f"{text} {digest.hexdigest()}"


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
            text = f"{identity_of(value)} {self.dtypes[name].str} {frame}"
            self.known[name] = int(hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=8).hexdigest(), 16)
        return self.known[name]

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
    if not isinstance(value, RawArray) or value._check is not None or not value.in_place or value.dtype.str[1:] != dtype:
        return None
    if value.dtype.str[0] == ">" or value.offset % value.dtype.itemsize != 0 or "," in str(value.path):
        return None
    with_frame = frame == "included" and value.shape == shape
    if not with_frame and not (bare_allowed and all(n == s - 2 * h for n, s in zip(value.shape, shape))):
        return None
    return f"{name}={value.path},{library_type(dtype)},offset={value.offset},frame={'yes' if with_frame else 'no'}"
