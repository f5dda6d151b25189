# SPDX-License-Identifier: BSD-3-Clause
"""Coarse copies of an array, 2, 4 and 8 times smaller, for those who look at it: napari, ParaView and what reads OME-Zarr."""
from __future__ import annotations

import errno
import pathlib
from typing import Any, Callable

import numpy as np

from .arrays import Array, Store
from .errors import MemextError
from .formats import as_array
from .formats import open as open_any
from .formats.modules import module
from .saving import _beside, _check, _chunks, _groups, _is_zarr, _remove, _replace, _sync, all_chunks, writing, xdmf


def _pairs(a: np.ndarray, axis: int) -> np.ndarray:
    """Means of cells 0 and 1, 2 and 3, ...; a last one that is alone stays as it is."""
    n = a.shape[axis]
    first, second = [slice(None)] * 2, [slice(None)] * 2
    first[axis], second[axis] = slice(0, n - n % 2, 2), slice(1, n, 2)
    mean = (a[tuple(first)] + a[tuple(second)]) * a.dtype.type(0.5)
    if n % 2 == 0:
        return mean
    first[axis] = slice(n - 1, n)
    return np.concatenate([mean, a[tuple(first)]], axis=axis)


class _Halver:
    """Takes planes in order and hands on those of an array of half the extents, rounded up: each cell the mean of the 2 x 2 x 2 cells, or
    fewer at the ends, that it stands for."""

    def __init__(self, take: Callable[[np.ndarray], None]):
        self.take, self.held = take, None

    def put(self, plane: np.ndarray) -> None:
        half = _pairs(_pairs(plane, 1), 0)
        if self.held is None:
            self.held = half
            return
        half += self.held
        half *= half.dtype.type(0.5)
        self.held = None
        self.take(half)

    def end(self) -> None:
        if self.held is not None:
            held, self.held = self.held, None
            self.take(held)


class _Level:
    """Writes planes into a dataset, as many at a time as its chunks are deep."""

    def __init__(self, data: Any, dtype: np.dtype):
        self.data, self.dtype, self.z, self.held = data, dtype, 0, []
        self.deep = data.chunks[0]

    def put(self, plane: np.ndarray) -> None:
        self.held.append(np.rint(plane).astype(self.dtype) if self.dtype.kind in "iu" else plane.astype(self.dtype, copy=False))
        if len(self.held) == self.deep:
            self.end()

    def end(self) -> None:
        if self.held:
            self.data[self.z:self.z + len(self.held)] = np.stack(self.held)
            self.z, self.held = self.z + len(self.held), []


def _coarsen(array: Array, levels: list[_Level]) -> None:
    """One pass over the array: every plane is read once."""
    halvers: list[_Halver] = []
    for level in reversed(levels):
        after = halvers[-1] if halvers else None

        def take(plane: np.ndarray, level: _Level = level, after: _Halver | None = after) -> None:
            level.put(plane)
            if after is not None:
                after.put(plane)
        halvers.append(_Halver(take))
    wide = np.dtype("f4") if array.dtype.str[1:] in ("f4", "u1", "i1", "u2", "i2") else np.dtype("f8")
    for _box, planes in _groups(array, (1, max(1, array.shape[1]))):  # whole planes
        for plane in planes:
            halvers[-1].put(plane.astype(wide))
    for halver, level in zip(reversed(halvers), levels):
        halver.end()
        level.end()


def _shapes(array: Array, levels: int) -> list[tuple[int, ...]]:
    return [tuple(-(-n // 2**k) for n in array.shape) for k in range(1, levels + 1)]


def _fill(make: Callable[[str, tuple[int, ...], np.dtype], Any], array: Array, levels: int) -> None:
    dtype = _coarse_type(array)
    _coarsen(array, [_Level(make(f"{2**k}x", shape, dtype), dtype) for k, shape in enumerate(_shapes(array, levels), 1)])


def _coarse_type(array: Array) -> np.dtype:
    return np.dtype("u1") if array.dtype.kind == "b" else array.dtype


def _chunks_of(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, int, int]:
    return _chunks(Array(shape, dtype))


def _hdf5(path: pathlib.Path, arrays: dict[str, Array], levels: int) -> None:
    with module("h5py", path).File(path, "w") as file:
        for field, array in arrays.items():
            group = file.create_group(field)
            _fill(lambda name, shape, dtype, group=group: group.create_dataset(name, shape, dtype, chunks=_chunks_of(shape, dtype)), array, levels)


def _zarr(path: pathlib.Path, arrays: dict[str, Array], levels: int) -> None:
    """A group for each field that says of itself what OME-NGFF 0.4 wants: https://ngff.openmicroscopy.org/0.4/#multiscale-md"""
    zarr = module("zarr", path)
    new = int(zarr.__version__.split(".")[0]) > 2
    root = zarr.open_group(str(path), mode="w", **({"zarr_format": 2} if new else {}))
    for field, array in arrays.items():
        group = root.create_group(field)

        def make(name: str, shape: tuple[int, ...], dtype: np.dtype, group: Any = group) -> Any:
            if new:
                with all_chunks(zarr):
                    return group.create_array(name, shape=shape, dtype=dtype, chunks=_chunks_of(shape, dtype), chunk_key_encoding={"name": "v2", "separator": "/"})
            return group.create(name=name, shape=shape, dtype=dtype, chunks=_chunks_of(shape, dtype), dimension_separator="/")
        _fill(make, array, levels)
        datasets = [{"path": f"{2**k}x", "coordinateTransformations": [{"type": "scale", "scale": [float(2**k)] * 3},
                                                                       {"type": "translation", "translation": [(2**k - 1) / 2] * 3}]}
                    for k in range(1, levels + 1)]
        group.attrs["multiscales"] = [{"version": "0.4", "name": field, "axes": [{"name": n, "type": "space"} for n in "zyx"], "type": "mean",
                                       "datasets": datasets}]


def pyramid(what: Any, path: Any, levels: int = 3, *, frame: bool = False, overwrite: bool = False) -> dict[str, list[Array]]:
    """Writes coarse copies of a store's fields, of an array, or of a file of one, 2, 4, ... 2**levels times smaller in x, y and z, each cell the mean
    of those that it stands for; every plane is read once, and little of it held. .zarr: a group for each field, as OME-NGFF wants it; .h5: FIELD/2x ...
    and NAME-2x.xdmf ... beside it, which ParaView opens, each at its place. frame: with the frame of a store.

    Returns {field: [all of it, 2x, 4x, ...]}: napari takes such a list as it is, add_image(levels["u"], multiscale=True)."""
    path = pathlib.Path(path)
    if not isinstance(what, (Array, Store)):
        what = as_array(what, "array") if hasattr(what, "shape") else open_any(what)
    if not 1 <= levels <= 16:
        raise MemextError(f"{levels} levels of a pyramid: 1 to 16", errno.EINVAL)
    if isinstance(what, Store):
        whole = {n: what.part(n, frame) for n in what.fields}
    else:
        whole = {pathlib.PurePath(what.name).stem or "array": what}
    if not whole:
        raise MemextError(f"{what.path} holds no state: {what.info['why']}")
    for name, array in whole.items():
        if array.dtype.kind not in "biuf":
            raise MemextError(f"{name} has cells of {array.dtype}; pyramids are of real numbers", errno.EINVAL)
    ending = path.suffix.lower()
    if ending not in (".h5", ".hdf5", ".zarr"):
        raise MemextError(f"{path}: the ending says how to write a pyramid: .zarr, .h5 or .hdf5", errno.EINVAL)
    drawn = [] if ending == ".zarr" else [path.with_name(f"{path.stem}-{2**k}x.xdmf") for k in range(1, levels + 1)]
    for file in (path, *drawn):
        _check(file, overwrite, next(iter(whole.values())).path)
        if file.is_dir() and not file.is_symlink() and (drawn or not _is_zarr(file)):
            raise MemextError(f"{file} is a directory: name another file", errno.EISDIR)
    beside, step = _beside(path), what.step if isinstance(what, Store) else 0
    try:
        with writing(path, whole.values()):
            (_hdf5 if drawn else _zarr)(beside, whole, levels)
            _sync(beside)
        _replace(beside, path, overwrite)
        for k, (file, shape) in enumerate(zip(drawn, _shapes(next(iter(whole.values())), levels)), 1):
            drawn_beside = _beside(file)
            fields = {n: (f"{n}/{2**k}x", shape, _coarse_type(a)) for n, a in whole.items()}
            xdmf(drawn_beside, path.name, f"{2**k}x", 2**k, (2**k - 1) / 2, step, fields)
            _replace(drawn_beside, file, overwrite)
    finally:
        _remove(beside)
    return {n: [a, *(open_any(path, f"{n}/{2**k}x") for k in range(1, levels + 1))] for n, a in whole.items()}
