# SPDX-License-Identifier: BSD-3-Clause
"""Reads and writes HDF5, by h5py. Contiguous datasets are read from the file directly, without the library."""
from __future__ import annotations

import math
import os
import pathlib
import warnings
from typing import Any

import numpy as np

from ..arrays import Array, AsPlanes, Onto, RawArray, as_users_have, shape_of
from ..coarse import chunks_of_shape, fill
from ..errors import refusal
from ..pieces import chunks_of, groups
from .cf import KEYS, Cells, Decoded, array_of, order_of
from .modules import choose, module


def hdf5(path: pathlib.Path, dataset: str | None = None, rank: int | None = None, **_: Any) -> Array:
    file = module("h5py", path).File(path, "r")
    try:
        return _found(file, path, dataset, rank)
    except BaseException:
        file.close()  # it would stay locked
        raise


def _found(file: Any, path: pathlib.Path, dataset: str | None, rank: int | None) -> Array:
    import h5py
    ranks: dict[str, int] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim in (2, 3):
            ranks[name] = item.ndim
    file.visititems(visit)
    linked = isinstance(dataset, str) and isinstance(file.get(dataset), h5py.Dataset) and file[dataset].ndim in ((2, 3) if rank is None else (rank,))  # links are not visited
    name = dataset if linked else choose(ranks, dataset, path, rank)
    data, flat = file[name], file[name].ndim == 2
    Array(data.shape, data.dtype)  # are they numbers?
    cells = Cells(data.dtype, attributes_of(data), name, path, default_fill(data), filled(data))
    cells.word = "row" if flat else "plane"
    order = order_of(*dimensions_of(data), f"{path}: {name}")
    check_sources(data, name, path)
    if cells.plain and order is None and (made := raw_dataset(data, name, path)) is not None:
        file.close()
        return as_users_have(made, flat)
    check_written(data, name, path, cells)
    stored = AsPlanes(data) if flat else data
    source = stored if cells.plain else Decoded(stored, cells, stored.chunks)
    return as_users_have(array_of(source, cells, order, name, path, file), flat)


def attributes_of(data: Any) -> dict[str, Any]:
    """The attributes that say what cells mean. Attributes of NetCDF are vectors of length one."""
    return {key: data.attrs[key] for key in KEYS if key in data.attrs}


def default_fill(data: Any) -> bool:
    """Was the file written by NetCDF? It has a fill value for cells that were never written."""
    return "_NCProperties" in data.file.attrs


def filled(data: Any) -> bool:
    """Has NetCDF given this dataset a fill value for cells that were never written?"""
    import h5py
    return data.id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED


def dimensions_of(data: Any) -> tuple[list[str], list[Any]]:
    """The labels of the dimensions, or the names of their scales, and the attributes `axis` of the scales."""
    names, axes = [], []
    for i in range(len(data.shape)):
        dimension = data.dims[i]
        scales = [s for s in dimension.values()] if len(dimension) > 0 else []
        names.append(dimension.label or (scales[0].name.rsplit("/", 1)[-1] if scales and scales[0].name else ""))
        axes.append(next((s.attrs["axis"] for s in scales if "axis" in s.attrs), None))
    return names, axes


def raw_dataset(data: Any, name: str, path: pathlib.Path) -> RawArray | None:
    """A dataset that is read directly from its place in the file; None if it is not one plain piece. The library itself must convert numbers that use only
    some of their bits."""
    import h5py
    offset, plist = data.id.get_offset(), data.id.get_create_plist()
    # Cells that nobody wrote are nowhere, and have an offset all the same behind a block of the user's.
    there = data.id.get_space_status() == h5py.h5d.SPACE_STATUS_ALLOCATED and os.path.samefile(data.file.filename, path)
    plain = there and data.chunks is None and offset is not None and plist.get_external_count() == 0 and not data.is_virtual
    whole = plain and data.dtype.kind in "fiu" and h5py.h5t.py_create(data.dtype) == data.id.get_type()
    shape = (data.shape[0], 1, data.shape[1]) if data.ndim == 2 else data.shape
    return RawArray(path, shape, data.dtype, offset, name=name) if whole else None


def check_written(data: Any, name: str, path: pathlib.Path, cells: Cells) -> None:
    """Checks for cells that were never written, which HDF5 reads as the fill value. Refuses the dataset if that is not a value, or if nothing was written;
    otherwise warns."""
    import h5py
    plist = data.id.get_create_plist()
    if data.size == 0 or plist.get_external_count() > 0:
        return
    if data.is_virtual:
        _check_mapped(data, f"{path}: {name}", cells)
        return
    if data.id.get_space_status() == h5py.h5d.SPACE_STATUS_NOT_ALLOCATED:
        raise refusal(f"{path}: the dataset {name} exists, but nothing was ever written to it: write its cells first")
    if data.chunks is None or (fill := fill_of(data)) is None or _stands_for_none(fill, cells):
        return
    all_of_them = int(np.prod([-(-n // c) for n, c in zip(data.shape, data.chunks)], dtype=object))
    missing = all_of_them - data.id.get_num_chunks() if hasattr(data.id, "get_num_chunks") else 0
    unwritten(f"{path}: {name}", missing, all_of_them, fill)


def _stands_for_none(fill: Any, cells: Cells) -> bool:
    """Do the attributes say that this fill value means no value? Then such cells are refused when they are read."""
    return any(f == fill or (f != f and fill != fill) for f in cells.fills)


def _check_mapped(data: Any, what: str, cells: Cells) -> None:
    """Checks a virtual dataset for cells that no source has, which also read as the fill value."""
    boxes = [tuple(zip(*source.vspace.get_select_bounds())) for source in data.virtual_sources()]
    counts = [source.vspace.get_select_npoints() for source in data.virtual_sources()]
    missing = data.size - (covered := _covered(boxes, counts))
    fill = fill_of(data) if covered == sum(counts) else np.nan  # HDF5 fills nothing where those that overlap are as many as all cells
    if missing <= 0 or _stands_for_none(fill, cells):
        return
    text = f"{what}: {missing} of {data.size} cells have no source"
    if fill is None or fill != fill:
        raise refusal(f"{text} and no value: fill them in a copy")
    warnings.warn(f"{text}, so they have the fill value {fill}", stacklevel=5)


def _covered(boxes: list[tuple], counts: list[int]) -> int:
    """The number of cells in boxes of (first, last) along each dimension. The sum of `counts` if a selection is not a full box, or if there are too many to
    find the overlaps."""
    boxes = [(*box, *[(0, 0)] * (3 - len(box))) for box in boxes]
    edges = [sorted({e for box in boxes for e in (box[i][0], box[i][1] + 1)}) for i in range(3)]
    whole = all(math.prod(last + 1 - first for first, last in box) == count for box, count in zip(boxes, counts))
    if not boxes or not whole or math.prod(map(len, edges)) > 1 << 24:
        return sum(counts)
    seen = np.zeros([len(e) - 1 for e in edges], bool)
    for box in boxes:
        seen[tuple(slice(e.index(first), e.index(last + 1)) for e, (first, last) in zip(edges, box))] = True
    sizes = [np.diff(e) for e in edges]
    return int(np.einsum("ijk,i,j,k->", seen.astype("i8"), *sizes))


def fill_of(data: Any) -> Any:
    try:
        return data.fillvalue
    except (RuntimeError, ValueError, TypeError):  # it is undefined
        return np.nan


def unwritten(what: str, missing: int, all_of_them: int, fill: Any) -> None:
    """Warns of chunks that are missing if their fill value is a number, and refuses them otherwise."""
    if missing <= 0:
        return
    text = f"{what}: {missing} of {all_of_them} chunks were never written"
    if fill is None or fill != fill:
        raise refusal(f"{text}, and their cells have no value: fill them in a copy")
    warnings.warn(f"{text}, so their cells have the fill value {fill}", stacklevel=5)


def check_sources(data: Any, name: str, path: pathlib.Path, depth: int = 0) -> None:
    """Checks the files that a dataset consists of. HDF5 silently reads a missing file as the fill value, and a file that is cut short as 0."""
    if depth > 8:
        raise refusal(f"{path}: {name} refers to itself through its virtual sources, or they are more than 8 deep: copy its cells into a plain dataset")
    if data.is_virtual:
        for source in data.virtual_sources():
            _check_virtual(data, name, path, source, depth)
        return
    plist = data.id.get_create_plist()
    for i in range(plist.get_external_count()):
        file, offset, count = plist.get_external(i)
        prefix = os.environ.get("HDF5_EXTFILE_PREFIX", "").replace("${ORIGIN}", str(path.parent.absolute()))
        cells = pathlib.Path(prefix) / os.fsdecode(file)
        whole = count >= 2**63  # H5F_UNLIMITED
        if not cells.is_file() or (not whole and cells.stat().st_size < offset + count):
            fault = "is shorter than the dataset says: copy it again" if cells.is_file() else "does not exist: put the file there"
            raise refusal(f"{path}: {name} has its cells in {cells}, which {fault}")


def _check_virtual(data: Any, name: str, path: pathlib.Path, mapped: Any, depth: int) -> None:
    import h5py
    file_name, dataset = mapped.file_name, mapped.dset_name
    if "%" in file_name.replace("%%", "") or "%" in dataset.replace("%%", ""):
        raise refusal(f"{path}: {name} consists of a series of datasets, {file_name}:{dataset}, whose number is not stored: copy it into one dataset")
    file_name, dataset = file_name.replace("%%", "%"), dataset.replace("%%", "%")
    here = file_name in (".", "")
    prefix = os.environ.get("HDF5_VDS_PREFIX", "").replace("${ORIGIN}", str(path.parent.absolute()))
    places = [path] if here else [p / file_name for p in ((pathlib.Path(prefix),) if prefix else (path.parent, pathlib.Path()))]
    found = next((p for p in places if p.is_file()), None)
    if found is None:
        raise refusal(f"{path}: {name} needs {file_name}:{dataset}, but the file {places[0]} does not exist: put it there")
    if here:
        _check_source(data.file, mapped.src_space, mapped.vspace.get_select_npoints(), dataset, name, path, path, depth)
        return
    with h5py.File(found, "r") as file:
        _check_source(file, mapped.src_space, mapped.vspace.get_select_npoints(), dataset, name, path, found, depth)


def _check_source(file: Any, asked: Any, cells: int, dataset: str, name: str, path: pathlib.Path, found: pathlib.Path, depth: int) -> None:
    import h5py
    source = file.get(dataset)
    if not isinstance(source, h5py.Dataset):
        raise refusal(f"{path}: {name} needs {found}:{dataset}, but that file has no dataset {dataset}")
    part = asked.get_select_type() == h5py.h5s.SEL_HYPERSLABS
    needed = tuple(last + 1 for last in asked.get_select_bounds()[1]) if part else source.shape
    if any(n > there for n, there in zip(needed, source.shape)) or (not part and source.size != cells):
        raise refusal(f"{path}: {name} needs {needed if part else cells} cells of {found}:{dataset}, but that dataset has the shape {source.shape}")
    check_sources(source, dataset, found, depth + 1)
    check_written(source, dataset, found, Cells(source.dtype, {}, dataset, found))


def write_hdf5(array: Array, path: pathlib.Path, dataset: str | None, flat: bool, **options: Any) -> None:
    h5py = module("h5py", path)
    options.setdefault("chunks", shape_of(chunks_of(array), flat) if array.size else None)
    with h5py.File(path, "w") as file:
        made = file.create_dataset(dataset or array.name, shape_of(array.shape, flat), array.dtype, **options)
        data = Onto(made) if flat else made
        for box, cells in groups(array, data.chunks[:2] if data.chunks else (1, 1)):
            data[box] = cells


def pyramid_hdf5(path: pathlib.Path, arrays: dict[str, Array], levels: int, flat: bool) -> None:
    with module("h5py", path).File(path, "w") as file:
        for field, array in arrays.items():
            def make(name: str, shape: tuple[int, ...], dtype: np.dtype, group: Any = file.create_group(field)) -> Any:
                data = group.create_dataset(name, shape_of(shape, flat), dtype, chunks=shape_of(chunks_of_shape(shape, dtype), flat))
                return Onto(data) if flat else data
            fill(make, array, levels)
