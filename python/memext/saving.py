# SPDX-License-Identifier: BSD-3-Clause
"""Results in files: written plane by plane, or shown where they lie."""
from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import itertools
import math
import os
import pathlib
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from . import _core
from .arrays import Array, ObjectArray, RawArray, Store
from .errors import MemextError
from .formats import as_array
from .formats.modules import module
from .formats.zarrs import chunk_files

_GROUP_BYTES = 8 << 20


Box = tuple[slice, slice, slice]


def _boxes(array: Array, chunks: tuple[int, int] = (1, 1), most_bytes: int = _GROUP_BYTES) -> list[Box]:
    """The whole array in order, in whole planes, z beginning at multiples of chunks[0]; where cells lie in a file or in memory as they are and
    that would be much, in rows at multiples of chunks[1]: what is in hand does not grow with the planes."""
    nz, ny, nx = array.shape
    if array.size == 0:
        return []
    a_plane, (deep, rows) = max(1, array.nbytes // max(nz, 1)), chunks
    planes = max(deep, most_bytes // a_plane // deep * deep)
    if _plain(array) and planes * a_plane > most_bytes:
        rows = min(max(rows, most_bytes // (planes * max(1, a_plane // max(ny, 1))) // rows * rows), max(ny, 1))
    else:
        rows = max(ny, 1)
    return [(slice(z, min(z + planes, nz), 1), slice(y, min(y + rows, ny), 1), slice(0, nx, 1))
            for z in range(0, nz, planes) for y in range(0, ny, rows)]


def _plain(array: Array) -> bool:
    """Can any box of it be read at no more than its own cost, and by any thread?"""
    return isinstance(array, RawArray) or (isinstance(array, ObjectArray) and isinstance(array.source, np.ndarray))


def _groups(array: Array, chunks: tuple[int, int] = (1, 1)) -> Iterator[tuple[Box, np.ndarray]]:
    """(box, cells) of a few MiB each. Where cells lie in a file as they are, the next are read while these are written; objects of
    libraries are read by the thread that writes."""
    boxes = _boxes(array, chunks)
    if not isinstance(array, RawArray):
        yield from ((box, array.read(*box)) for box in boxes)
        return
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(array.read, *boxes[0]) if boxes else None
        for i, box in enumerate(boxes):
            cells = reading.result()  # type: ignore[union-attr]
            reading = pool.submit(array.read, *boxes[i + 1]) if i + 1 < len(boxes) else None
            yield box, cells


@contextlib.contextmanager
def writing(path: pathlib.Path, arrays: Iterable[Array]) -> Iterator[None]:
    """What the libraries of formats raise while a file is written: one sentence. What the user's own arrays raise is theirs."""
    try:
        yield
    except (MemextError, MemoryError):
        raise
    except Exception as error:
        if any(error is getattr(a, "failed", None) for a in arrays):
            raise
        number = getattr(error, "errno", None)
        cause = " ".join(str(error).split())[:400] or type(error).__name__
        raise MemextError(f"{path} cannot be written: {cause}", number if isinstance(number, int) and number > 0 else errno.EINVAL,
                          3 if isinstance(error, OSError) else 2) from error


def _no_options(path: pathlib.Path, options: dict[str, Any]) -> None:
    if options:
        raise MemextError(f"{path}: {', '.join(options)}: {path.suffix} files take no options; .h5 and .zarr do", errno.EINVAL)


def _npy(array: Array, path: pathlib.Path, dataset: str | None, **options: Any) -> None:
    _no_options(path, options)
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for _box, cells in _groups(array):
            file.write(memoryview(np.ascontiguousarray(cells)).cast("B"))


def _raw(array: Array, path: pathlib.Path, dataset: str | None, **options: Any) -> None:
    _no_options(path, options)
    with path.open("wb") as file:
        for _box, cells in _groups(array):
            file.write(memoryview(np.ascontiguousarray(cells)).cast("B"))


def _even(n: int, most: int) -> int:
    """Cells of a chunk, `most` at most, so that the last one of n cells is nearly as full as the others: chunks at the end are stored whole."""
    return -(-n // -(-n // most))


def _chunks(array: Array) -> tuple[int, int, int]:
    """About 1 MiB each, a few planes deep, so that writing plane by plane fills them in turn."""
    ny, nx = (_even(max(n, 1), 128) for n in array.shape[1:])
    return _even(max(array.shape[0], 1), max(1, (1 << 20) // (ny * nx * array.dtype.itemsize))), ny, nx


def _hdf5(array: Array, path: pathlib.Path, dataset: str | None, **options: Any) -> None:
    h5py = module("h5py", path)
    options.setdefault("chunks", _chunks(array) if array.size else None)
    with h5py.File(path, "w") as file:
        data = file.create_dataset(dataset or array.name, array.shape, array.dtype, **options)
        for box, cells in _groups(array, data.chunks[:2] if data.chunks else (1, 1)):
            data[box] = cells


def all_chunks(zarr: Any) -> Any:
    """Chunks of nothing but the fill value are written too, as zarr 2 does: one that is not there was lost."""
    return zarr.config.set({"array.write_empty_chunks": True}) if hasattr(zarr, "config") else contextlib.nullcontext()


def _zarr(array: Array, path: pathlib.Path, dataset: str | None, **options: Any) -> None:
    zarr = module("zarr", path)
    options.setdefault("chunks", _chunks(array))
    with all_chunks(zarr):
        if dataset is None:
            data = zarr.open(str(path), mode="w", shape=array.shape, dtype=array.dtype, **options)
        else:
            data = zarr.open_group(str(path), mode="w").create(name=dataset, shape=array.shape, dtype=array.dtype, **options)
    pieces = getattr(data, "shards", None) or data.chunks  # files: no two threads write one
    file_of = chunk_files(data, path)

    def put(box: Box, cells: np.ndarray | None = None) -> None:
        data[box] = array.read(*box) if cells is None else cells
        for at in itertools.product(*(range(s.start // n, -(-s.stop // n)) for s, n in zip(box, pieces))):
            _begin_to_write(file_of(at))

    # Reading, compressing and writing side by side: zarr itself waits at the end of what it is given until the last chunk is written.
    # What is under way is bounded in bytes too: the two groups that other formats have in hand, for each thread where all of them read; one that is
    # larger, of deep chunks of large planes, goes alone.
    threads, alone = min(8, len(os.sched_getaffinity(0))) + 1, _plain(array)
    most_bytes, held_bytes = 2 * _GROUP_BYTES * (threads if alone else 1), 0
    under_way: deque[tuple[int, Future]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for box in _boxes(array, pieces[:2], _GROUP_BYTES // 2):
            more_bytes = array.dtype.itemsize * math.prod(s.stop - s.start for s in box)
            while under_way and (len(under_way) == threads or held_bytes + more_bytes > most_bytes):
                count, done = under_way.popleft()
                done.result()
                held_bytes -= count
            under_way.append((more_bytes, pool.submit(put, box, None if alone else array.read(*box))))
            held_bytes += more_bytes
        for _count, one in under_way:
            one.result()


def _begin_to_write(path: pathlib.Path) -> None:
    """The kernel begins to write what it holds of a file and does not wait, so that little is left for fsync at the end. Chunks of nothing but the
    fill value have no file."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


_WRITERS = {".npy": _npy, ".h5": _hdf5, ".hdf5": _hdf5, ".zarr": _zarr, ".raw": _raw, ".bin": _raw}


def save(array: Any, path: Any, dataset: str | None = None, *, overwrite: bool = False, **options: Any) -> pathlib.Path:
    """Writes an array to .npy, .h5 (.hdf5), .zarr or .raw (.bin) without holding more than some planes of it; the file appears when it is whole.

    dataset: its name in HDF5 and Zarr (default: the array's). options: of h5py's create_dataset or zarr's create (chunks, compression ...)."""
    array, path = as_array(array, "array"), pathlib.Path(os.fsdecode(path))
    if array.dtype.kind not in "biufc":
        raise MemextError(f"{array.name} has cells of {array.dtype}; cells are numbers", errno.EINVAL)
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise MemextError(f"{path}: the ending says how to write: {', '.join(_WRITERS)}", errno.EINVAL)
    _check(path, overwrite, array.path)
    if path.is_dir() and not path.is_symlink() and not (writer is _zarr and _is_zarr(path)):
        raise MemextError(f"{path} is a directory{' with other things in it than Zarr' if writer is _zarr else ''}: name another file", errno.EISDIR)
    _check_space(array, path, options)
    beside = _beside(path)
    try:
        with writing(path, [array]):
            writer(array, beside, dataset, **options)
            _sync(beside)
        _replace(beside, path, overwrite)
    finally:
        _remove(beside)
    return path


def _check(path: pathlib.Path, overwrite: bool, source: pathlib.Path | None) -> None:
    """May this file be written? source: the one that is read for it."""
    if not path.parent.is_dir():
        raise MemextError(f"{path}: there is no directory {path.parent}; make it first", errno.ENOENT)
    if os.path.lexists(path) and not overwrite:
        raise MemextError(f"{path} is there already: name another file, or give overwrite=True", errno.EEXIST)
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise MemextError(f"{path} is the file that is read: name another one", errno.EINVAL)
    if path.is_file() and _is_store(path):
        raise MemextError(f"{path} is a store of memext, and no file to be replaced: name another one", errno.EINVAL)


def _is_store(path: pathlib.Path) -> bool:
    try:
        _core.look(path)
    except MemextError as error:
        return error.errno in (errno.EIO, errno.ENOTSUP)  # damaged, or of another format
    return True


def _check_space(array: Array, path: pathlib.Path, options: dict[str, Any]) -> None:
    """Before hours are spent, and because the HDF5 library does not survive a full disk. What is compressed may need less."""
    if path.suffix.lower() == ".zarr" or options.get("compression") is not None or options.get("scaleoffset") is not None:
        return
    there = os.statvfs(path.parent)
    free = there.f_bavail * there.f_frsize
    if array.nbytes > free:
        raise MemextError(f"{path} needs {_core.size_text(array.nbytes)}, and {_core.size_text(free)} are free there: make room, or name another place", errno.ENOSPC)


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


_numbers, _naming = itertools.count(), threading.Lock()


@functools.cache
def _machine() -> str:
    """What tells the processes that this one sees from those of other machines and containers; "" where it is not known."""
    try:
        seen = f"{pathlib.Path('/proc/sys/kernel/random/boot_id').read_text()} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""
    return hashlib.blake2b(seen.encode(), digest_size=4).hexdigest()


def _beside(path: pathlib.Path, former: bool = False) -> pathlib.Path:
    """A name that no other process and no other thread takes. former: for what is moved away, which nobody removes but who moved it."""
    if not former:
        _sweep(path)
    return path.with_name(f".{path.stem}.memext-{'former-' * former}{_machine()}-{os.getpid()}-{next(_numbers)}{path.suffix}")


def _sweep(path: pathlib.Path) -> None:
    """Removes what processes of this machine that were killed have left of this file."""
    begin, machine = f".{path.stem}.memext-", _machine()
    names = os.listdir(path.parent) if machine and path.parent.is_dir() else []
    for name in names:
        found = re.fullmatch(rf"{machine}-(\d+)-\d+", name[len(begin):len(name) - len(path.suffix)])
        if found and name.startswith(begin) and name.endswith(path.suffix) and not _is_alive(int(found[1])):
            _remove(path.with_name(name))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def _replace(beside: pathlib.Path, path: pathlib.Path, overwrite: bool) -> None:
    """Gives what is whole its name. A directory takes no other's place in one step: until it is there, what was there before stays under another name,
    and comes back if something interrupts."""
    with _naming:  # of several threads one after the other
        there = os.path.lexists(path)
        if there and not overwrite:
            raise MemextError(f"{path} is there now, and was not when this began: name another file, or give overwrite=True", errno.EEXIST)
        if not there or not (beside.is_dir() or (path.is_dir() and not path.is_symlink())):
            os.replace(beside, path)
            return
        before = _beside(path, former=True)
        try:
            os.rename(path, before)
            os.rename(beside, path)
        except BaseException:
            if os.path.lexists(before) and not os.path.lexists(path):
                os.rename(before, path)
            raise
    _remove(before)


def _remove(path: pathlib.Path) -> None:
    import shutil
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


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
        _check(file, overwrite, store[store.fields[0]].path)
        if file.is_dir():
            raise MemextError(f"{file} is a directory: name another file", errno.EISDIR)
    if store.info["in_use"]:
        raise MemextError(f"{store.path} is being worked on: link it when the run has ended or stopped", errno.EBUSY)
    beside, drawn_beside = _beside(path), _beside(drawn)
    try:
        with writing(path, []):
            shapes = _link(h5py, store, beside, frame)
        xdmf(drawn_beside, path.name, "memext", 1, 0, store.step, {name: (name, *shape) for name, shape in shapes.items()})
        _replace(beside, path, overwrite)
        _replace(drawn_beside, drawn, overwrite)
    finally:
        _remove(beside)
        _remove(drawn_beside)
    return path


def _link(h5py: Any, store: Store, path: pathlib.Path, frame: bool) -> dict[str, Any]:
    shapes = {}
    with h5py.File(path, "w") as file:
        for name in store.fields:
            whole, part = store[name], store.part(name, frame)
            cell, begin = whole.dtype.itemsize, part.offset - whole.offset
            columns, pitch = whole.plane_pitch // cell, whole.row_pitch // cell
            space = h5py.h5s.create_simple((whole.shape[0], columns))
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_external(os.fsencode(whole.path.resolve()), whole.offset, whole.plane_pitch * whole.shape[0])
            raw = file.require_group("raw")
            kind = h5py.h5t.py_create(whole.dtype, logical=True)
            h5py.h5d.create(raw.id, name.encode(), kind, space, plist)
            virtual = h5py.h5s.create_simple(part.shape)
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_layout(h5py.h5d.VIRTUAL)
            source = h5py.h5s.create_simple((whole.shape[0], columns))
            source.select_hyperslab((begin // whole.plane_pitch, begin % whole.plane_pitch // cell), part.shape[:2], (1, pitch), (1, part.shape[2]))
            plist.set_virtual(virtual, b".", f"/raw/{name}".encode(), source)
            h5py.h5d.create(file.id, name.encode(), kind, virtual, plist)
            file[name].attrs["step"] = store.step
            shapes[name] = (part.shape, whole.dtype)
    return shapes


def xdmf(path: pathlib.Path, cells: str, name: str, spacing: float, origin: float, step: int, fields: dict[str, Any]) -> None:
    """Cells of the HDF5 file `cells` as points of a uniform grid at a time, the step; fields: {field: (dataset, shape, dtype)}."""
    from xml.sax.saxutils import escape
    cells = escape(cells)
    _, (nz, ny, nx), _ = next(iter(fields.values()))
    kinds, bytes_ = {"f": "Float", "i": "Int", "u": "UInt"}, {"u1": "UChar", "i1": "Char"}
    attributes = "".join(
        f'      <Attribute Name="{field}" AttributeType="Scalar" Center="Node">\n'
        f'        <DataItem Format="HDF" NumberType="{bytes_.get(dtype.str[1:], kinds[dtype.kind])}" Precision="{dtype.itemsize}" '
        f'Dimensions="{" ".join(map(str, shape))}">{cells}:/{dataset}</DataItem>\n      </Attribute>\n'
        for field, (dataset, shape, dtype) in fields.items())
    path.write_text(
        f'<?xml version="1.0"?>\n<Xdmf Version="2.0">\n  <Domain>\n    <Grid Name="{name}" GridType="Uniform">\n'
        f'      <Time Value="{step}"/>\n'
        f'      <Topology TopologyType="3DCORECTMesh" Dimensions="{nz} {ny} {nx}"/>\n'
        '      <Geometry GeometryType="ORIGIN_DXDYDZ">\n'
        f'        <DataItem Format="XML" Dimensions="3">{origin:g} {origin:g} {origin:g}</DataItem>\n'
        f'        <DataItem Format="XML" Dimensions="3">{spacing:g} {spacing:g} {spacing:g}</DataItem>\n      </Geometry>\n'
        f'{attributes}    </Grid>\n  </Domain>\n</Xdmf>\n')
