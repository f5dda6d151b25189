# SPDX-License-Identifier: BSD-3-Clause
"""Writes results into files, plane by plane, or links to them in their store."""
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
    """Writes an array to .npy, .h5 (.hdf5), .zarr or .raw (.bin), and returns the path. Only some planes are in memory at a time. The file appears when it
    is complete.

    array: any array of two or three dimensions, or the path of a file. dataset: the name in HDF5 and Zarr (default: the array's). overwrite: replaces
    a file that exists. options: those of h5py's create_dataset or zarr's create (chunks, compression ...). Raises MemextError, also if the disk has no
    room for the file."""
    array, path = as_rows_or_planes(array, "array"), pathlib.Path(os.fsdecode(path))
    if array.dtype.kind not in "biufc":
        raise MemextError(f"{array.name} has cells of {array.dtype}, but only numbers can be saved: convert them", errno.EINVAL)
    format_ = WRITTEN.get(path.suffix.lower())
    if format_ is None:
        raise MemextError(f"{path}: the format is not known from this name: end it with one of {', '.join(WRITTEN)}", errno.EINVAL)
    check_free(path, overwrite, array.path)
    if path.is_dir() and not path.is_symlink() and not (format_.is_own_folder and format_.is_own_folder(path)):
        raise MemextError(f"{path} is a directory{' that holds more than a Zarr array' if format_.is_own_folder else ''}: name another file", errno.EISDIR)
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
    """Refuses a file that does not fit on the disk, before hours are spent, and because the HDF5 library does not survive a full disk. Compressed files
    are not checked, because they may need less."""
    if path.suffix.lower() == ".zarr" or options.get("compression") is not None or options.get("scaleoffset") is not None:
        return
    there = os.statvfs(path.parent)
    free = there.f_bavail * there.f_frsize
    if array.nbytes > free:
        raise MemextError(f"{path} needs {_core.size_text(array.nbytes)}, but only {_core.size_text(free)} are free there: free some space, or name a file on "
                          "another disk", errno.ENOSPC)


def link(store: Any, path: Any, frame: bool = False, overwrite: bool = False) -> pathlib.Path:
    """Writes a small HDF5 file whose datasets are the fields of a store, without a copy, and an .xdmf file of the same name. Returns the path of the HDF5 file.

    store: a Store or its path. path: the HDF5 file (.h5). frame: the datasets include the frame. overwrite: replaces files that exist. The store must stay
    where it is, and no run may continue it. h5py and readers of HDF5 1.10 open the .h5; ParaView and pyvista open the .xdmf. Raises MemextError: EBUSY while
    a run works on the store, EEXIST without overwrite."""
    store = store if isinstance(store, Store) else Store(store)
    path = pathlib.Path(path)
    h5py = module("h5py", path)
    drawn = path.with_suffix(".xdmf")
    if drawn == path:
        raise MemextError(f"{path}: this is the name of the .xdmf file that comes with the HDF5 file: end the name with .h5", errno.EINVAL)
    if not store.fields:
        raise MemextError(f"{store.path} holds no state: {store.info['why']}", errno.ENOENT)
    for file in path, drawn:
        check_free(file, overwrite, store[store.fields[0]].path)
        if file.is_dir():
            raise MemextError(f"{file} is a directory: name another file", errno.EISDIR)
    if store.info["in_use"]:
        raise MemextError(f"a run is working on {store.path}: link it when the run has ended or stopped", errno.EBUSY)
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
    """The time that viewers show: seconds, or the step if the run does not know the length of a step."""
    return store.step if store.time is None else store.time


def xdmf(path: pathlib.Path, cells: str, name: str, spacing: float, origin: float, time: float, fields: dict[str, Any]) -> None:
    """Writes an .xdmf file that shows cells of the HDF5 file `cells` as points of a uniform grid at a time. fields: {field: (dataset, shape, dtype)}."""
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
