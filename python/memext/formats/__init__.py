# SPDX-License-Identifier: BSD-3-Clause
"""Files of arrays, each format as its own library reads it: what is accepted has the values that this library gives, or it is refused.
A format is a row of the one table, and a file of this folder: how it is read, written, and holds coarse copies."""
from __future__ import annotations

import errno
import glob
import os
import pathlib
import re
import warnings
from typing import Any, Callable, NamedTuple

from ..arrays import Array, Store
from ..errors import MemextError, refusal, unreadable
from .hdf5 import hdf5, pyramid_hdf5, write_hdf5
from .headers import metaimage, nrrd
from .netcdf import netcdf
from .objects import of_object
from .plain import npy, raw, write_npy, write_raw
from .segy import segy
from .tiff import tiff, tiffs
from .zarrs import is_own_folder, is_zarr, pyramid_zarr, write_zarr, zarr

__all__ = ["FORMATS", "WRITTEN", "as_array", "as_rows_or_planes", "of_object", "open", "open_of"]

class Format(NamedTuple):
    """read: gives an array of a path, which has one of these endings, or begins so. write, pyramid: write an array, or coarse copies of several, into a
    path that has one of the endings `written`. is_own_folder: of formats whose arrays are directories, may a new one take the place of this directory?"""
    endings: tuple[str, ...] = ()
    read: Callable[..., Array] | None = None
    beginning: bytes | None = None  # a pattern; what the command goes by, whatever the name is
    written: tuple[str, ...] = ()
    write: Callable[..., None] | None = None
    pyramid: Callable[..., None] | None = None
    is_own_folder: Callable[[pathlib.Path], bool] | None = None


FORMATS = (
    Format((".npy",), npy, rb"\x93NUMPY", (".npy",), write_npy),
    Format((".nhdr", ".nrrd"), nrrd, rb"NRRD000"),
    Format((".mhd", ".mha"), metaimage, rb"(ObjectType|NDims|Comment)[ =]"),  # without a mark: one of these words is its first
    Format((".h5", ".hdf5", ".hdf"), hdf5, rb"\x89HDF\r\n\x1a\n", (".h5", ".hdf5"), write_hdf5, pyramid_hdf5),
    Format((".nc", ".nc4", ".cdf"), netcdf),
    Format((".zarr",), zarr, None, (".zarr",), write_zarr, pyramid_zarr, is_own_folder),
    Format((".tif", ".tiff"), tiff),
    Format((".sgy", ".segy"), segy),
    Format(written=(".raw", ".bin"), write=write_raw),  # which is read where dtype and shape are given
)
READ = {ending: f for f in FORMATS for ending in f.endings}
WRITTEN = {ending: f for f in FORMATS for ending in f.written}


def _reader(path: pathlib.Path) -> Callable[..., Array] | None:
    """By the name's ending; files of other endings, and those that are another format, by how they begin."""
    by_name = READ[path.suffix.lower()].read if path.suffix.lower() in READ else None
    if path.is_dir():
        return zarr if by_name is zarr or is_zarr(path) else None
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(16)
    by_head = next((f.read for f in FORMATS if f.beginning is not None and re.match(f.beginning, head)), None)
    return by_name if by_head is None or (by_head is hdf5 and by_name is not None) else by_head


def _in_order(path: str) -> list:
    """Numbers in names count as numbers: slice-9 is before slice-10."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", path))]


def _warn_of_gaps(paths: list[str], pattern: str) -> None:
    """Of files that differ in one number: is each of them as far from the next one?"""
    names = [re.split(r"(\d+)", path) for path in paths]
    differ = [i for i in range(len(names[0])) if len({tuple(n[i:i + 1]) for n in names}) > 1]
    if len(differ) != 1 or differ[0] % 2 == 0 or len({len(n) for n in names}) > 1:
        return
    numbers = [int(n[differ[0]]) for n in names]
    step = min((b - a for a, b in zip(numbers, numbers[1:])), default=0)
    gap = next((a for a, b in zip(numbers, numbers[1:]) if b - a != step), None)
    if step > 0 and gap is not None:
        warnings.warn(f"{pattern} names {len(paths)} files with numbers from {numbers[0]} to {numbers[-1]}, and none has the number {gap + step}: "
                      "is a plane missing? They are taken one behind the other", stacklevel=3)


def open(path: Any, dataset: str | None = None, *, dtype: Any = None, shape: Any = None, offset: int = 0) -> Any:
    """Opens a store, or a file of an array, without reading it: .npy, .nhdr .nrrd .mhd .mha (raw cells), HDF5 (h5py), NetCDF (netCDF4, h5netcdf or h5py), Zarr, TIFF
    stacks (tifffile; a pattern like 'slices/*.tif' is a plane a file, in order of the numbers in their names), SEG-Y (segyio), and raw cells with dtype and shape.

    dataset: which array of a file that has several. An array of two dimensions is read as a[y, x]; others than of three and two are refused. Packed numbers are unpacked, and cells without a value are
    refused when they are read (CF conventions). Dimensions that are called x, y and z in another order are turned to z, y, x."""
    return open_of(path, dataset, dtype, shape, offset)


def open_of(path: Any, dataset: str | None = None, dtype: Any = None, shape: Any = None, offset: int = 0, rank: int | None = None) -> Any:
    """open; rank: dimensions that are wanted, of files that have several arrays."""
    text = os.path.abspath(os.fsdecode(path))  # which a chdir does not change
    if dtype is None and any(c in text for c in "*?[") and not os.path.exists(text):
        paths = sorted(glob.glob(text), key=_in_order)
        if not paths:
            raise refusal(f"no file is called {text}", errno.ENOENT)
        _warn_of_gaps(paths, text)
        array = _read_by(tiffs, paths, text)
        array.files = [pathlib.Path(p) for p in paths]
    else:
        found = pathlib.Path(text)
        if not found.exists():
            raise refusal(f"{found} is not there", errno.ENOENT)
        reader = None if dtype is not None or shape is not None else _reader(found)
        if dtype is not None or shape is not None:
            array = raw(found, dtype, shape, offset)
        elif reader is not None:
            array = _read_by(reader, found, dataset=dataset, rank=rank)
        else:
            store = Store(found)
            return store if dataset is None else store[dataset]
    if array.ndim not in (2, 3):
        raise refusal(f"{text} has {array.ndim} dimensions: grids have three, z, y, x, or two, y, x")
    return array


def _read_by(reader: Callable[..., Array], what: Any, *more: Any, **options: Any) -> Array:
    shown = more[0] if more else what
    try:
        return reader(what, *more, **options)
    except MemextError as error:
        if os.path.basename(shown) in str(error):
            raise
        raise refusal(f"{shown}: {error}", error.errno or errno.EINVAL) from None
    except MemoryError:
        raise
    except Exception as error:
        raise unreadable(shown, error) from error


def as_rows_or_planes(value: Any, name: str) -> Array:
    """Any array of two or three dimensions as one of ours; a path is that of a file."""
    return of_object(open_of(value) if isinstance(value, (str, bytes, os.PathLike)) else value, name)


def as_array(value: Any, name: str) -> Array:
    """Any three-dimensional array as one of ours; a path is that of a file."""
    found = of_object(open_of(value, rank=3) if isinstance(value, (str, bytes, os.PathLike)) else value, name)
    if found.ndim != 3:
        raise refusal(f"{name} has {found.ndim} dimensions: a grid has three, z, y, x")
    return found
