# SPDX-License-Identifier: BSD-3-Clause
"""Reads and writes Zarr, of formats 2 and 3, by zarr."""
from __future__ import annotations

import base64
import contextlib
import itertools
import math
import os
import pathlib
import struct
import warnings
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable

import numpy as np

from ..arrays import Array, AsPlanes, Onto, as_users_have, shape_of
from ..coarse import chunks_of_shape, fill
from ..errors import refusal
from ..pieces import GROUP_BYTES, Box, boxes, chunks_of, is_plain
from .cf import KEYS, Cells, Decoded, array_of, order_of
from .modules import choose, module


def is_zarr(path: pathlib.Path) -> bool:
    return any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))


def is_own_folder(path: pathlib.Path) -> bool:
    """May a new array replace this directory?"""
    return is_zarr(path) or not any(path.iterdir())


def zarr(path: pathlib.Path, dataset: str | None = None, rank: int | None = None, **_: Any) -> Array:
    data = module("zarr", path).open(str(path), mode="r")
    if hasattr(data, "shape"):
        if dataset is not None:
            raise refusal(f"{path} is a single array and has no datasets: leave the name {dataset} out")
        return _array(data, path.name, path, None)
    ranks: dict[str, int] = {}

    def visit(group: Any, before: str) -> None:
        ranks.update((before + n, a.ndim) for n, a in group.arrays())
        for n, inner in group.groups():
            visit(inner, f"{before}{n}/")
    visit(data, "")
    name = choose(ranks, dataset, path, rank)
    return _array(data[name], name, path, data)


def _array(data: Any, name: str, path: pathlib.Path, group: Any) -> Array:
    attributes = dict(data.attrs)
    cells = Cells(data.dtype, _attributes(data, attributes), name, path)
    names = _dimensions(data, attributes)
    axes = [_axis(group, name, n) for n in names]
    chunks, flat = _Chunks(data, name, path, cells), len(data.shape) == 2
    stored = AsPlanes(data) if flat else data
    cells.word = "row" if flat else "plane"
    source = Decoded(stored, cells, stored.chunks, check=(lambda key: chunks(shape_of(key, True))) if flat else chunks)
    return as_users_have(array_of(source, cells, order_of(names, axes, f"{path}: {name}"), name, path), flat)


def _attributes(data: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of the CF conventions, as xarray writes them. In format 3, a floating-point _FillValue is text; in format 2, it is the array's own fill
    value."""
    found = {key: attributes[key] for key in KEYS if key in attributes}
    fill = found.get("_FillValue")
    if isinstance(fill, str) and data.dtype.kind == "f":
        try:
            found["_FillValue"] = struct.unpack("<d", base64.standard_b64decode(fill))[0]
        except (ValueError, struct.error):
            with_names = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
            found["_FillValue"] = with_names.get(fill, fill)
    if "_FillValue" not in found and _format(data) == 2 and "_ARRAY_DIMENSIONS" in attributes and data.fill_value is not None:
        found["_FillValue"] = data.fill_value
    return found


def _format(data: Any) -> int:
    return getattr(getattr(data, "metadata", None), "zarr_format", 2)


def _dimensions(data: Any, attributes: dict[str, Any]) -> list[str]:
    names = getattr(getattr(data, "metadata", None), "dimension_names", None) or attributes.get("_ARRAY_DIMENSIONS") or ()
    return ["" if n is None else str(n) for n in names]


def _axis(group: Any, name: str, dimension: str) -> Any:
    """The attribute `axis` of a dimension's coordinate, an array in the same group."""
    if group is None or not dimension:
        return None
    beside = f"{name.rpartition('/')[0]}/{dimension}".strip("/")
    try:
        return group[beside].attrs.get("axis") if beside in group else None
    except (KeyError, ValueError):
        return None


class _Chunks:
    """Checks for missing chunks of a key, as files or in a shard, which zarr reads as the array's fill value: refuses them, or warns. Also refuses chunks of
    Blosc that are cut short, because numcodecs before 0.13 reads the memory behind them."""

    def __init__(self, data: Any, name: str, path: pathlib.Path, cells: Cells):
        self.what, self.fill, self.told = f"{path}: {name}", data.fill_value, False
        self.pieces, self.file_of = getattr(data, "shards", None) or data.chunks, chunk_files(data, path)
        self.index = _shard_index(data)
        self.whole: set[tuple[int, ...]] = set()  # shards that have all of their chunks
        compressor = getattr(getattr(data, "metadata", None), "compressor", None) if hasattr(data, "metadata") else data.compressor
        self.blosc = getattr(compressor, "codec_id", None) == "blosc"
        self.known = self.fill is not None and any(f == self.fill or (f != f and self.fill != self.fill) for f in cells.fills)  # read as cells without a value

    def __call__(self, key: tuple[slice, ...]) -> None:
        if not self.blosc and (self.known or self.told):
            return
        missing: list[tuple[int, ...]] = []
        for at in itertools.product(*(range(k.start // n, -(-k.stop // n)) for k, n in zip(key, self.pieces))):
            file = self.file_of(at)
            if not file.exists():
                missing.append(at)
            elif self.blosc:
                self._check_length(at, file)
            elif self.index is not None and at not in self.whole:
                missing += self._missing_of(at, file, key)
        if not missing or self.known or self.told:
            return
        text = f"{self.what}: chunk {'.'.join(map(str, missing[0]))} and {len(missing) - 1} more" if len(missing) > 1 else f"{self.what}: chunk {'.'.join(map(str, missing[0]))}"
        if self.fill is None or self.fill != self.fill:
            raise refusal(f"{text} were never written, and their cells have no value: fill them in a copy")
        self.told = True
        warnings.warn(f"{text} were never written, so their cells have the fill value {self.fill}", stacklevel=4)

    def _missing_of(self, at: tuple[int, ...], file: pathlib.Path, key: tuple[slice, ...]) -> list[tuple[int, ...]]:
        """The chunks of a shard, within the key, that its index does not have, as chunks of the array."""
        assert self.index is not None
        inner, there = self.index
        present = there(file)
        if present is None or present.all():
            self.whole.add(at)
            return []
        first = [a * n for a, n in zip(at, present.shape)]
        found = (tuple(f + int(i) for f, i in zip(first, gap)) for gap in np.argwhere(~present))
        return [c for c in found if all(k.start < (i + 1) * n and i * n < k.stop for i, n, k in zip(c, inner, key))]

    def _check_length(self, at: tuple[int, ...], file: pathlib.Path) -> None:
        with file.open("rb") as opened:
            head = opened.read(16)
        promised = struct.unpack("<I", head[12:])[0] if len(head) == 16 else 16
        if (there := file.stat().st_size) < promised:
            raise refusal(f"{self.what}: chunk {'.'.join(map(str, at))} cannot be read, because it is cut short: it has {there} of {promised} bytes")


def _shard_index(data: Any) -> tuple[tuple[int, ...], Callable[[pathlib.Path], Any]] | None:
    """For an array in shards: the shape of a chunk, and a function that says which chunks a shard has. It reads the index at the shard's beginning or end:
    16 bytes for each chunk (all bits 1 for a missing one) and a checksum. None if the index has another form: then zarr itself finds what is missing."""
    codecs = getattr(getattr(data, "metadata", None), "codecs", ())
    shards, sharding = getattr(data, "shards", None), codecs[0] if codecs else None
    words = [type(c).__name__ for c in getattr(sharding, "index_codecs", ())]
    if not shards or words[:1] != ["BytesCodec"] or words[1:] not in ([], ["Crc32cCodec"]) or _last_word(sharding.index_codecs[0].endian) != "little":
        return None
    inner = tuple(sharding.chunk_shape)
    count = tuple(s // c for s, c in zip(shards, inner))
    size = 16 * int(np.prod(count, dtype=object)) + 4 * len(words[1:])
    at_start = _last_word(sharding.index_location) == "start"

    def there(file: pathlib.Path) -> Any:
        with file.open("rb") as opened:
            if not at_start:
                opened.seek(max(0, file.stat().st_size - size))
            text = opened.read(size)
        if len(text) < size:
            return None
        return np.frombuffer(text, "<u8", 2 * (size // 16)).reshape(*count, 2)[..., 0] != np.uint64(2**64 - 1)

    return inner, there


def _last_word(value: Any) -> str:
    """The text of a value of an enumeration, or of a text."""
    return str(getattr(value, "value", value))


def chunk_files(data: Any, path: pathlib.Path) -> Callable[[tuple[int, ...]], pathlib.Path]:
    """A function that gives the file in which zarr, of version 3 or 2, keeps the chunk of given indices."""
    if hasattr(data, "metadata"):
        return lambda at: path / data.path / data.metadata.encode_chunk_key(at)
    return lambda at: path / data._chunk_key(at)


def all_chunks(zarr: Any) -> Any:
    """A context in which zarr also writes chunks that hold only the fill value, as zarr 2 does. So a chunk that is missing was lost."""
    return zarr.config.set({"array.write_empty_chunks": True}) if hasattr(zarr, "config") else contextlib.nullcontext()


def write_zarr(array: Array, path: pathlib.Path, dataset: str | None, flat: bool, **options: Any) -> None:
    zarr = module("zarr", path)
    options.setdefault("chunks", shape_of(chunks_of(array), flat))
    shape = shape_of(array.shape, flat)
    with all_chunks(zarr):
        if dataset is None:
            made = zarr.open(str(path), mode="w", shape=shape, dtype=array.dtype, **options)
        else:
            made = zarr.open_group(str(path), mode="w").create(name=dataset, shape=shape, dtype=array.dtype, **options)
    files = getattr(made, "shards", None) or made.chunks  # no two threads write one
    file_of, data = chunk_files(made, path), Onto(made) if flat else made
    pieces = (files[0], 1, files[1]) if flat else files

    def put(box: Box, cells: np.ndarray | None = None) -> None:
        data[box] = array.read(*box) if cells is None else cells
        for at in itertools.product(*(range(s.start // n, -(-s.stop // n)) for s, n in zip(shape_of(box, flat), files))):
            _begin_to_write(file_of(at))

    # Reading, compressing and writing side by side: zarr itself waits at the end of what it is given until the last chunk is written.
    # What is under way is bounded in bytes too: the two groups that other formats have in hand, for each thread where all of them read; one that is
    # larger, of deep chunks of large planes, goes alone.
    threads, alone = min(8, len(os.sched_getaffinity(0))) + 1, is_plain(array)
    most_bytes, held_bytes = 2 * GROUP_BYTES * (threads if alone else 1), 0
    under_way: deque[tuple[int, Future]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for box in boxes(array, pieces[:2], GROUP_BYTES // 2):
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
    """Asks Linux to begin to write a file to the disk, without waiting, so that fsync has little to do at the end. A chunk that holds only the fill value may
    have no file."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def pyramid_zarr(path: pathlib.Path, arrays: dict[str, Array], levels: int, flat: bool) -> None:
    """Writes a group for each field, with the metadata of OME-NGFF 0.4: https://ngff.openmicroscopy.org/0.4/#multiscale-md"""
    zarr = module("zarr", path)
    new = int(zarr.__version__.split(".")[0]) > 2
    root = zarr.open_group(str(path), mode="w", **({"zarr_format": 2} if new else {}))
    for field, array in arrays.items():
        group = root.create_group(field)

        def make(name: str, shape: tuple[int, ...], dtype: np.dtype, group: Any = group) -> Any:
            what = {"shape": shape_of(shape, flat), "dtype": dtype, "chunks": shape_of(chunks_of_shape(shape, dtype), flat)}
            if new:
                with all_chunks(zarr):
                    data = group.create_array(name, **what, chunk_key_encoding={"name": "v2", "separator": "/"})
            else:
                data = group.create(name=name, **what, dimension_separator="/")
            return Onto(data) if flat else data
        fill(make, array, levels)
        axes = "yx" if flat else "zyx"
        datasets = [{"path": f"{2**k}x", "coordinateTransformations": [{"type": "scale", "scale": [float(2**k)] * len(axes)},
                                                                       {"type": "translation", "translation": [(2**k - 1) / 2] * len(axes)}]}
                    for k in range(1, levels + 1)]
        group.attrs["multiscales"] = [{"version": "0.4", "name": field, "axes": [{"name": n, "type": "space"} for n in axes], "type": "mean",
                                       "datasets": datasets}]
