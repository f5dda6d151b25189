# SPDX-License-Identifier: BSD-3-Clause
"""Results in files: written plane by plane, or shown where they lie."""
from __future__ import annotations

import errno
import os
import pathlib
from typing import Any

from . import _core
from .arrays import Array, Store, planes_of, shape_of
from .errors import MemextError
from .formats import WRITTEN, as_rows_or_planes
from .formats.modules import module
from .replacing import check_free, name_beside, remove, replace, sync, writing


def save(array: Any, path: Any, dataset: str | None = None, *, overwrite: bool = False, **options: Any) -> pathlib.Path:
    """Writes an array to .npy, .h5 (.hdf5), .zarr or .raw (.bin) without holding more than some planes of it; the file appears when it is whole.

    dataset: its name in HDF5 and Zarr (default: the array's). options: of h5py's create_dataset or zarr's create (chunks, compression ...)."""
    array, path = as_rows_or_planes(array, "array"), pathlib.Path(os.fsdecode(path))
    if array.dtype.kind not in "biufc":
        raise MemextError(f"{array.name} has cells of {array.dtype}; cells are numbers", errno.EINVAL)
    format_ = WRITTEN.get(path.suffix.lower())
    if format_ is None:
        raise MemextError(f"{path}: the ending says how to write: {', '.join(WRITTEN)}", errno.EINVAL)
    check_free(path, overwrite, array.path)
    if path.is_dir() and not path.is_symlink() and not (format_.is_own_folder and format_.is_own_folder(path)):
        raise MemextError(f"{path} is a directory{' with other things in it than Zarr' if format_.is_own_folder else ''}: name another file", errno.EISDIR)
    _check_space(array, path, options)
    beside = name_beside(path)
    try:
        with writing(path, [planes_of(array)]):
            format_.write(planes_of(array), beside, dataset, array.ndim == 2, **options)
            sync(beside)
        replace(beside, path, overwrite)
    finally:
        remove(beside)
    return path


def _check_space(array: Array, path: pathlib.Path, options: dict[str, Any]) -> None:
    """Before hours are spent, and because the HDF5 library does not survive a full disk. What is compressed may need less."""
    if path.suffix.lower() == ".zarr" or options.get("compression") is not None or options.get("scaleoffset") is not None:
        return
    there = os.statvfs(path.parent)
    free = there.f_bavail * there.f_frsize
    if array.nbytes > free:
        raise MemextError(f"{path} needs {_core.size_text(array.nbytes)}, and {_core.size_text(free)} are free there: make room, or name another place", errno.ENOSPC)


def link(store: Any, path: Any, frame: bool = False, overwrite: bool = False) -> pathlib.Path:
    """Writes a small HDF5 file, and an .xdmf beside it, that shows a store's fields in the store itself: external raw data, and a virtual dataset
    without padding and, unless asked for, without the frame. The store must stay where it is; it must not be gone on with meanwhile.

    Opened by h5py and what reads HDF5 1.10; ParaView and pyvista open the .xdmf."""
    store = store if isinstance(store, Store) else Store(store)
    path = pathlib.Path(path)
    h5py = module("h5py", path)
    drawn = path.with_suffix(".xdmf")
    if drawn == path:
        raise MemextError(f"{path}: an .xdmf file is written beside the HDF5 file; end its name with .h5", errno.EINVAL)
    for file in path, drawn:
        check_free(file, overwrite, store[store.fields[0]].path)
        if file.is_dir():
            raise MemextError(f"{file} is a directory: name another file", errno.EISDIR)
    if store.info["in_use"]:
        raise MemextError(f"{store.path} is being worked on: link it when the run has ended or stopped", errno.EBUSY)
    beside, drawn_beside = name_beside(path), name_beside(drawn)
    try:
        with writing(path, []):
            shapes = _link(h5py, store, beside, frame)
        xdmf(drawn_beside, path.name, "memext", 1, 0, time_of(store), {name: (name, *shape) for name, shape in shapes.items()})
        replace(beside, path, overwrite)
        replace(drawn_beside, drawn, overwrite)
    finally:
        remove(beside)
        remove(drawn_beside)
    return path


def _link(h5py: Any, store: Store, path: pathlib.Path, frame: bool) -> dict[str, Any]:
    shapes = {}
    with h5py.File(path, "w") as file:
        for name in store.fields:
            whole, part = store.planes(name), planes_of(store.part(name, frame))
            shape = shape_of(part.shape, store.flat)
            cell, begin = whole.dtype.itemsize, part.offset - whole.offset
            columns, pitch = whole.plane_pitch // cell, whole.row_pitch // cell
            space = h5py.h5s.create_simple((whole.shape[0], columns))
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_external(os.fsencode(whole.path.resolve()), whole.offset, whole.plane_pitch * whole.shape[0])
            raw = file.require_group("raw")
            kind = h5py.h5t.py_create(whole.dtype, logical=True)
            h5py.h5d.create(raw.id, name.encode(), kind, space, plist)
            virtual = h5py.h5s.create_simple(shape)
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_layout(h5py.h5d.VIRTUAL)
            source = h5py.h5s.create_simple((whole.shape[0], columns))
            source.select_hyperslab((begin // whole.plane_pitch, begin % whole.plane_pitch // cell), part.shape[:2], (1, pitch), (1, part.shape[2]))
            plist.set_virtual(virtual, b".", f"/raw/{name}".encode(), source)
            h5py.h5d.create(file.id, name.encode(), kind, virtual, plist)
            file[name].attrs["step"] = store.step
            if store.time is not None:
                file[name].attrs["time"] = store.time
            shapes[name] = (shape, whole.dtype)
    return shapes


def time_of(store: Store) -> float:
    """As viewers are to show it: seconds, or where a run knows none the step."""
    return store.step if store.time is None else store.time


def xdmf(path: pathlib.Path, cells: str, name: str, spacing: float, origin: float, time: float, fields: dict[str, Any]) -> None:
    """Cells of the HDF5 file `cells` as points of a uniform grid at a time; fields: {field: (dataset, shape, dtype)}."""
    from xml.sax.saxutils import escape
    cells = escape(cells)
    _, extents, _ = next(iter(fields.values()))
    rank = len(extents)
    kinds, bytes_ = {"f": "Float", "i": "Int", "u": "UInt"}, {"u1": "UChar", "i1": "Char"}
    attributes = "".join(
        f'      <Attribute Name="{field}" AttributeType="Scalar" Center="Node">\n'
        f'        <DataItem Format="HDF" NumberType="{bytes_.get(dtype.str[1:], kinds[dtype.kind])}" Precision="{dtype.itemsize}" '
        f'Dimensions="{" ".join(map(str, shape))}">{cells}:/{dataset}</DataItem>\n      </Attribute>\n'
        for field, (dataset, shape, dtype) in fields.items())
    path.write_text(
        f'<?xml version="1.0"?>\n<Xdmf Version="2.0">\n  <Domain>\n    <Grid Name="{name}" GridType="Uniform">\n'
        f'      <Time Value="{time!r}"/>\n'
        f'      <Topology TopologyType="{rank}DCORECTMesh" Dimensions="{" ".join(map(str, extents))}"/>\n'
        f'      <Geometry GeometryType="ORIGIN_DXDY{"DZ" if rank == 3 else ""}">\n'
        f'        <DataItem Format="XML" Dimensions="{rank}">{" ".join([f"{origin:g}"] * rank)}</DataItem>\n'
        f'        <DataItem Format="XML" Dimensions="{rank}">{" ".join([f"{spacing:g}"] * rank)}</DataItem>\n      </Geometry>\n'
        f'{attributes}    </Grid>\n  </Domain>\n</Xdmf>\n')
