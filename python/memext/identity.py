# SPDX-License-Identifier: BSD-3-Clause
"""Identities of initial values, so that no run resumes another one by mistake. A function's identity is what it computes, an array's its cells or files."""
from __future__ import annotations

import copyreg
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

from .arrays import Array, Unchanged, noted
from .errors import MemextError
from .formats import as_array
from .values import Values


class Texts:
    """Texts that say what functions compute, without addresses. A text is the same in every process of a program. It differs if the code, a default, a
    closure, a global or an attribute that the function uses differs. Objects that cannot be described count by their type. Each function, class and object
    is described once, and then named with its number in the order of descriptions. Parts of Python and of installed packages are only named."""

    def __init__(self) -> None:
        self.told: dict[int, int] = {}
        self.kept: list[Any] = []  # so that no later object has the id of one that was told

    def _tell(self, value: Any) -> None:
        self.told[id(value)] = len(self.told) + 1
        self.kept.append(value)

    def of(self, value: Any, within: tuple[int, ...] = ()) -> str:
        """The text of a value. within: the ids of the objects that contain it."""
        if id(value) in within:
            return "..."
        if type(value) in (bytes, bytearray) and len(value) > 4096:
            return f"{type(value).__qualname__} {len(value)} {hashlib.blake2b(value, digest_size=8).hexdigest()}"
        if value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str, bytes, bytearray, range) or isinstance(value, np.generic) and value.dtype.kind != "O":
            return repr(value)
        within = (*within, id(value))
        for kinds, text in self._kinds:
            if isinstance(value, kinds):
                return text(self, value, within)
        if isinstance(value, Unchanged):  # of a store, or of an array in one
            noted(value.path)
        if isinstance(value, np.memmap) and value.filename is not None:
            noted(value.filename)
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
            return f"function {f.__qualname__} #{self.told[id(f)]}"
        self._tell(f)
        names = sorted(_names_in(f.__code__))
        cells = [self._used(c.cell_contents, names, within) for c in f.__closure__ or () if not _is_empty(c)]
        known = [f"{n}={self._used(f.__globals__[n], names, within)}" for n in names if n in f.__globals__]
        return f"{self._code(f.__code__, within)} {self._all((f.__defaults__, f.__kwdefaults__), within)} {cells} {known}"

    def _used(self, value: Any, names: list[str], within: tuple[int, ...]) -> str:
        """The text of a value; of the program's own modules only the names that the code uses."""
        if not isinstance(value, types.ModuleType) or _is_installed(value.__name__) or id(value) in within:
            return self.of(value, within)
        return f"module {[f'{n}={self._used(getattr(value, n), names, (*within, id(value)))}' for n in names if hasattr(value, n)]}"

    def _code(self, code: types.CodeType, within: tuple[int, ...]) -> str:
        return f"{code.co_code!r} {self.of(code.co_consts, within)} {code.co_names!r}"

    def _tuple(self, value: tuple, within: tuple[int, ...]) -> str:
        return f"({', '.join(self._all(value, within))}{',' if len(value) == 1 else ''})"

    def _set(self, value: Any, within: tuple[int, ...]) -> str:
        """The text of a set. It is sorted, because the order of a set differs between processes."""
        texts = []
        for v in value:
            one = Texts()
            one.told = dict(self.told)
            texts.append(one.of(v, within))
        return f"{type(value).__qualname__} {sorted(texts)}"

    def _dict(self, value: dict, within: tuple[int, ...]) -> str:
        plain = all(type(k) is str for k in value)
        return f"dict {[(k, self.of(value[k], within)) for k in sorted(value)] if plain else self._set(value.items(), within)}"

    def _class(self, value: type, within: tuple[int, ...]) -> str:
        name = f"{type(value).__qualname__} {value.__qualname__}"
        if _is_installed(value.__module__):
            return name
        if id(value) in self.told:
            return f"{name} #{self.told[id(value)]}"
        self._tell(value)
        own = {n: v for n, v in vars(value).items() if not n.startswith("__") or isinstance(v, types.FunctionType)}
        return f"{name} {self._all(value.__bases__, within)} {[(n, self.of(own[n], within)) for n in sorted(own)]}"

    def _object(self, value: Any, within: tuple[int, ...]) -> str:
        kind = type(value)
        name, wrapped = kind.__qualname__, getattr(value, "__wrapped__", None)
        if id(value) in self.told:
            return f"{name} #{self.told[id(value)]}"
        self._tell(value)
        if callable(wrapped):  # of functools.cache, numba.jit ...
            return f"{name} {self.of(wrapped, within)}"
        slots = [n for c in kind.__mro__ for n in _as_names(c.__dict__.get("__slots__", ()))]
        state = {**{n: getattr(value, n) for n in slots if n not in ("__dict__", "__weakref__") and hasattr(value, n)}, **getattr(value, "__dict__", {})}
        return f"{name} {'' if _is_installed(kind.__module__) else self.of(kind, within)} {self._dict(state, within) if state else self._pickled(value, within)}"

    def _pickled(self, value: Any, within: tuple[int, ...]) -> str:
        """What pickle would need to make an object again that has no attributes: decimal.Decimal, datetime, collections.deque, re.Pattern ... "" if it cannot be pickled. Of what has a buffer, such
        as array.array, a hash of it."""
        try:
            with memoryview(value) as view:
                if view.format.lstrip("@") not in set("?cbBhHiIlLqQnNefd"):  # which have addresses or padding
                    raise TypeError
                return f"buffer {view.format} {view.shape} {hashlib.blake2b(view if view.c_contiguous else view.tobytes(), digest_size=8).hexdigest()}"
        except (TypeError, ValueError, BufferError):
            pass
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            parts = reduce(value) if reduce is not None else value.__reduce_ex__(2)
            return parts if isinstance(parts, str) else f"{[self.of(list(p) if i > 2 and p is not None else p, within) for i, p in enumerate(parts[:5])]}"
        except MemextError:  # of a file that has changed
            raise
        except Exception:  # an object's own code may raise anything
            return ""

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
    """The names of globals and attributes that the code uses, also in inner functions."""
    return set(code.co_names).union(*(_names_in(c) for c in code.co_consts if isinstance(c, types.CodeType)))


def _is_installed(module: str | None) -> bool:
    """Does the module belong to Python or to an installed package? Their versions do not count."""
    root = (module or "builtins").partition(".")[0]
    if root == "__main__":
        return False
    file = getattr(sys.modules.get(root), "__file__", None)
    return root in sys.stdlib_module_names or root == __package__ or file is not None and ("site-packages" in file or "dist-packages" in file)


_SAMPLE_PAGES, _PAGE_BYTES = 64, 4096


def _hash_of(array: np.ndarray) -> str:
    """A hash of all cells, independent of their order in memory. Several threads hash pieces, because a copy of the array may not fit into memory."""
    def one(piece: np.ndarray) -> bytes:
        return hashlib.blake2b(np.ascontiguousarray(piece).reshape(-1).view("u1").data, digest_size=8).digest()
    if array.ndim == 0 or array.size == 0:
        return one(array).hex()
    deep = max(1, (16 << 20) // max(1, array.nbytes // array.shape[0]))
    with ThreadPoolExecutor(min(8, len(os.sched_getaffinity(0)))) as pool:
        return one(np.frombuffer(b"".join(pool.map(one, (array[i:i + deep] for i in range(0, array.shape[0], deep)))), "u1")).hex()


def _file_text(path: pathlib.Path) -> str:
    """The identity of a file: its size and a sample of its content, and its name and time if the sample is not all of it. A directory counts by all its files."""
    noted(path)
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


def _innermost(source: Any) -> Any:
    """The object behind a variable that is converted, or turned."""
    while hasattr(source, "source"):
        source = source.source
    return source


def _lazy_file(inner: Any) -> Any:
    """The file of a variable of xarray whose cells are not in memory, and not computed by dask; or of one of netCDF4. None: nobody knows."""
    variable = getattr(inner, "variable", None)
    if variable is not None and getattr(inner, "chunks", None) is None and not isinstance(getattr(variable, "_data", None), np.ndarray):
        return getattr(variable, "encoding", {}).get("source")
    try:
        return inner.group().filepath()
    except Exception:  # of any library
        return None


def files_of(value: Any) -> list[pathlib.Path]:
    """The files that an array is read from."""
    where = getattr(value, "where", None)
    if isinstance(where, Array):
        return files_of(where)
    if not isinstance(value, Array):
        return []
    source = getattr(value, "source", None)
    paths = list(value.files or ([] if value.path is None else [value.path]))
    inner = _innermost(source)
    if hasattr(inner, "is_virtual"):
        paths += _cells_of(inner)
    file = getattr(inner, "file", None)
    for name in (getattr(inner, "filename", None), getattr(file, "filename", None), getattr(getattr(inner, "store", None), "path", None),
                 getattr(getattr(inner, "store", None), "root", None), _lazy_file(inner)):  # a memory map, datasets of h5py, zarr, xarray and netCDF4
        if isinstance(name, (str, os.PathLike)) and pathlib.Path(name) not in paths:
            paths.append(pathlib.Path(name))
    return [p for p in paths if p.exists()]


def _cells_of(dataset: Any) -> list[pathlib.Path]:
    """Other files with cells of an HDF5 dataset: external files, and the files of the datasets that a virtual one combines."""
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
    """A text that identifies initial values, so that a run does not resume with other values by mistake. Arrays in memory, and what is computed, count by
    all their cells. Files count by size, a sample of their content, and the place of the array in the file; large ones also by name and time."""
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
        if not isinstance(source, np.memmap) and _lazy_file(_innermost(source)) is None:
            return text
    digest = hashlib.blake2b(digest_size=8)
    step = max(1, array.nbytes // (64 << 20)) if files else 1  # a sample of what a file holds
    for z in range(0, array.shape[0], step):
        digest.update(np.ascontiguousarray(array.plane(z)).tobytes())
    return f"{text} {digest.hexdigest()}"
