"""Results in files: written plane by plane, or shown where they lie."""
from __future__ import annotations

import errno
import os
import pathlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .arrays import Array, RawArray, Store, _module, as_array
from .errors import MemextError

_GROUP_BYTES = 8 << 20


def _groups(array: Array, multiple: int = 1) -> Iterator[tuple[int, int, np.ndarray]]:
    """(z0, z1, planes) of a few MiB each, z0 a multiple. Where cells lie in a file as they are, the next are read while these are written; objects of
    libraries are read by the thread that writes."""
    a_plane = max(1, array.nbytes // max(array.shape[0], 1))
    count = max(multiple, _GROUP_BYTES // a_plane // multiple * multiple)
    pieces = [(z, min(z + count, array.shape[0])) for z in range(0, array.shape[0], count)]
    if not isinstance(array, RawArray):
        yield from ((z, end, array.planes(z, end)) for z, end in pieces)
        return
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(array.planes, *pieces[0]) if pieces else None
        for i, (z, end) in enumerate(pieces):
            planes = reading.result()  # type: ignore[union-attr]
            reading = pool.submit(array.planes, *pieces[i + 1]) if i + 1 < len(pieces) else None
            yield z, end, planes


def _npy(array: Array, path: pathlib.Path, dataset: str | None, **_: Any) -> None:
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for _z, _end, planes in _groups(array):
            file.write(memoryview(np.ascontiguousarray(planes)).cast("B"))


def _raw(array: Array, path: pathlib.Path, dataset: str | None, **_: Any) -> None:
    with path.open("wb") as file:
        for _z, _end, planes in _groups(array):
            file.write(memoryview(np.ascontiguousarray(planes)).cast("B"))


def _even(n: int, most: int) -> int:
    """Cells of a chunk, `most` at most, so that the last one of n cells is nearly as full as the others: chunks at the end are stored whole."""
    return -(-n // -(-n // most))


def _chunks(array: Array) -> tuple[int, int, int]:
    """About 1 MiB each, a few planes deep, so that writing plane by plane fills them in turn."""
    ny, nx = (_even(max(n, 1), 128) for n in array.shape[1:])
    return _even(max(array.shape[0], 1), max(1, (1 << 20) // (ny * nx * array.dtype.itemsize))), ny, nx


def _hdf5(array: Array, path: pathlib.Path, dataset: str | None, **options: Any) -> None:
    h5py = _module("h5py", path)
    options.setdefault("chunks", _chunks(array))
    with h5py.File(path, "w") as file:
        data = file.create_dataset(dataset or array.name, array.shape, array.dtype, **options)
        chunks = data.chunks
        for z, end, planes in _groups(array, chunks[0] if chunks else 1):
            data[z:end] = planes


def _zarr(array: Array, path: pathlib.Path, dataset: str | None, **options: Any) -> None:
    zarr = _module("zarr", path)
    options.setdefault("chunks", _chunks(array))
    if dataset is None:
        data = zarr.open(str(path), mode="w", shape=array.shape, dtype=array.dtype, **options)
    else:
        data = zarr.open_group(str(path), mode="w").create(name=dataset, shape=array.shape, dtype=array.dtype, **options)
    for z, end, planes in _groups(array, data.chunks[0]):
        data[z:end] = planes


_WRITERS = {".npy": _npy, ".h5": _hdf5, ".hdf5": _hdf5, ".zarr": _zarr, ".raw": _raw, ".bin": _raw}


def save(array: Any, path: Any, dataset: str | None = None, *, overwrite: bool = False, **options: Any) -> pathlib.Path:
    """Writes an array to .npy, .h5 (.hdf5), .zarr or .raw (.bin) without holding more than some planes of it; the file appears when it is whole.

    dataset: its name in HDF5 and Zarr (default: the array's). options: of h5py's create_dataset or zarr's create (chunks, compression ...)."""
    array, path = as_array(array, "array"), pathlib.Path(path)
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise MemextError(f"{path}: the ending says how to write: {', '.join(_WRITERS)}", errno.EINVAL)
    _check(path, overwrite, array.path)
    if path.is_dir() and not path.is_symlink() and not (writer is _zarr and _is_zarr(path)):
        raise MemextError(f"{path} is a directory{' with other things in it than Zarr' if writer is _zarr else ''}: name another file", errno.EISDIR)
    beside = _beside(path)
    try:
        writer(array, beside, dataset, **options)
        _sync(beside)
        _replace(beside, path)
    finally:
        _remove(beside)
    return path


def _check(path: pathlib.Path, overwrite: bool, source: pathlib.Path | None) -> None:
    """May this file be written? source: the one that is read for it."""
    if os.path.lexists(path) and not overwrite:
        raise MemextError(f"{path} is there already: name another file, or give overwrite=True", errno.EEXIST)
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise MemextError(f"{path} is the file that is read: name another one", errno.EINVAL)


def _is_zarr(path: pathlib.Path) -> bool:
    return any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")) or not any(path.iterdir())


def _sync(path: pathlib.Path) -> None:
    """What is there is on the disk before it gets its name. Several files at a time: a file system writes their names and sizes down together."""
    def one(file: pathlib.Path) -> None:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    with ThreadPoolExecutor(max(1, min(16, len(files)))) as pool:
        list(pool.map(one, files))


def _beside(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(f".{path.stem}.memext-{os.getpid()}{path.suffix}")


def _replace(beside: pathlib.Path, path: pathlib.Path) -> None:
    if path.is_dir() and not path.is_symlink():
        _remove(path)
    os.replace(beside, path)


def _remove(path: pathlib.Path) -> None:
    import shutil
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def link(store: Any, path: Any, frame: bool = False, overwrite: bool = False) -> pathlib.Path:
    """Writes a small HDF5 file, and an .xdmf beside it, that shows a store's fields in the store itself: external raw data, and a virtual dataset
    without padding and, unless asked for, without the frame. The store must stay where it is; it must not be gone on with meanwhile.

    Opened by h5py and what reads HDF5 1.10; ParaView opens the .xdmf."""
    store = store if isinstance(store, Store) else Store(store)
    path = pathlib.Path(path)
    h5py = _module("h5py", path)
    drawn = path.with_suffix(".xdmf")
    if drawn == path:
        raise MemextError(f"{path}: an .xdmf file is written beside the HDF5 file; end its name with .h5", errno.EINVAL)
    for file in path, drawn:
        _check(file, overwrite, store[store.fields[0]].path)
        if file.is_dir():
            raise MemextError(f"{file} is a directory: name another file", errno.EISDIR)
    if store.info["in_use"]:
        raise MemextError(f"{store.path} is being worked on: link it when the run has ended or stopped", errno.EBUSY)
    beside, drawn_beside = _beside(path), _beside(drawn)
    try:
        shapes = _link(h5py, store, beside, frame)
        xdmf(drawn_beside, path.name, "memext", 1, 0, {name: (name, *shape) for name, shape in shapes.items()})
        os.replace(beside, path)
        os.replace(drawn_beside, drawn)
    finally:
        _remove(beside)
        _remove(drawn_beside)
    return path


def _link(h5py: Any, store: Store, path: pathlib.Path, frame: bool) -> dict[str, Any]:
    h = 0 if frame else store.frame
    shapes = {}
    with h5py.File(path, "w") as file:
        for name in store.fields:
            a = store[name]
            cell, (nz, ny, nx) = a.dtype.itemsize, (n - 2 * h for n in a.shape)
            columns, pitch = a.plane_pitch // cell, a.row_pitch // cell
            space = h5py.h5s.create_simple((a.shape[0], columns))
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_external(os.fsencode(a.path.resolve()), a.offset, a.plane_pitch * a.shape[0])
            raw = file.require_group("raw")
            kind = h5py.h5t.py_create(a.dtype, logical=True)
            h5py.h5d.create(raw.id, name.encode(), kind, space, plist)
            virtual = h5py.h5s.create_simple((nz, ny, nx))
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_layout(h5py.h5d.VIRTUAL)
            source = h5py.h5s.create_simple((a.shape[0], columns))
            source.select_hyperslab((h, h * pitch + h), (nz, ny), (1, pitch), (1, nx))
            plist.set_virtual(virtual, b".", f"/raw/{name}".encode(), source)
            h5py.h5d.create(file.id, name.encode(), kind, virtual, plist)
            file[name].attrs["step"] = store.step
            shapes[name] = ((nz, ny, nx), a.dtype)
    return shapes


def xdmf(path: pathlib.Path, cells: str, name: str, spacing: float, origin: float, fields: dict[str, Any]) -> None:
    """Cells of the HDF5 file `cells` as points of a uniform grid; fields: {field: (dataset, shape, dtype)}."""
    _, (nz, ny, nx), _ = next(iter(fields.values()))
    kinds = {"f": "Float", "i": "Int", "u": "UInt"}
    attributes = "".join(
        f'      <Attribute Name="{field}" AttributeType="Scalar" Center="Node">\n'
        f'        <DataItem Format="HDF" NumberType="{kinds[dtype.kind] if dtype.str[1:] != "u1" else "UChar"}" Precision="{dtype.itemsize}" '
        f'Dimensions="{" ".join(map(str, shape))}">{cells}:/{dataset}</DataItem>\n      </Attribute>\n'
        for field, (dataset, shape, dtype) in fields.items())
    path.write_text(
        f'<?xml version="1.0"?>\n<Xdmf Version="2.0">\n  <Domain>\n    <Grid Name="{name}" GridType="Uniform">\n'
        f'      <Topology TopologyType="3DCORECTMesh" Dimensions="{nz} {ny} {nx}"/>\n'
        '      <Geometry GeometryType="ORIGIN_DXDYDZ">\n'
        f'        <DataItem Format="XML" Dimensions="3">{origin:g} {origin:g} {origin:g}</DataItem>\n'
        f'        <DataItem Format="XML" Dimensions="3">{spacing:g} {spacing:g} {spacing:g}</DataItem>\n      </Geometry>\n'
        f'{attributes}    </Grid>\n  </Domain>\n</Xdmf>\n')
