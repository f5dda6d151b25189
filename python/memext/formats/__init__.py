# SPDX-License-Identifier: BSD-3-Clause
"""Files of arrays. An array that memext reads has the values that the library of its format gives; other files are refused.
Each format is a row of the table FORMATS and a file of this folder. The file reads arrays, writes them, and writes coarse copies."""
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
    """One format. read: opens the array at a path whose name has one of the endings, or whose content has the beginning. write: writes an array to a path
    with one of the endings `written`; pyramid: writes coarse copies of several. is_own_folder: for formats whose arrays are directories, says whether a new
    array may replace this directory."""
    endings: tuple[str, ...] = ()
    read: Callable[..., Array] | None = None
    beginning: bytes | None = None  # a pattern; it decides, as in the command, whatever the name is
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
    """The reader of a file: by the ending of its name, or by its first bytes if the ending is unknown or they show another format."""
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
    """A key that sorts numbers in names as numbers: slice-9 comes before slice-10."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", path))]


def _warn_of_gaps(paths: list[str], pattern: str) -> None:
    """Warns if the names of files differ in one number, and these numbers are not evenly spaced."""
    names = [re.split(r"(\d+)", path) for path in paths]
    differ = [i for i in range(len(names[0])) if len({tuple(n[i:i + 1]) for n in names}) > 1]
    if len(differ) != 1 or differ[0] % 2 == 0 or len({len(n) for n in names}) > 1:
        return
    numbers = [int(n[differ[0]]) for n in names]
    step = min((b - a for a, b in zip(numbers, numbers[1:])), default=0)
    gap = next((a for a, b in zip(numbers, numbers[1:]) if b - a != step), None)
    if step > 0 and gap is not None:
        warnings.warn(f"{pattern} names {len(paths)} files with numbers from {numbers[0]} to {numbers[-1]}, but no file has the number {gap + step}. "
                      "Is a plane missing? The files become successive planes", stacklevel=3)


def open(path: Any, dataset: str | None = None, *, dtype: Any = None, shape: Any = None, offset: int = 0) -> Any:
    """Opens a store or a file without reading its cells, and returns a Store or an Array.

    Formats: .npy; .nrrd .nhdr .mha .mhd with raw cells; HDF5 (package h5py); NetCDF (netCDF4, h5netcdf or h5py); Zarr (zarr); TIFF stacks (tifffile; a
    pattern like 'slices/*.tif' gives a plane for each file, in the order of the numbers in their names); SEG-Y (segyio); and raw cells.

    dataset: the array to open in a file that has several, or the field of a store. dtype, shape, offset: needed for raw cells; shape is (nz, ny, nx) or
    (ny, nx), offset the byte where the cells begin. Arrays of three dimensions are a[z, y, x], of two a[y, x]; others are refused. By the CF conventions
    packed numbers are unpacked, and reading a cell without a value raises MemextError. If the dimensions are named x, y and z in another order, the array
    is turned to z, y, x. Raises MemextError if the file does not exist or cannot be read."""
    return open_of(path, dataset, dtype, shape, offset)


def open_of(path: Any, dataset: str | None = None, dtype: Any = None, shape: Any = None, offset: int = 0, rank: int | None = None) -> Any:
    """As open. rank: the number of dimensions to look for in files that have several arrays."""
    text = os.path.abspath(os.fsdecode(path))  # which a chdir does not change
    if dtype is None and any(c in text for c in "*?[") and not os.path.exists(text):
        paths = sorted(glob.glob(text), key=_in_order)
        if not paths:
            raise refusal(f"no file matches {text}", errno.ENOENT)
        _warn_of_gaps(paths, text)
        array = _read_by(tiffs, paths, text)
        array.files = [pathlib.Path(p) for p in paths]
    else:
        found = pathlib.Path(text)
        if not found.exists():
            raise refusal(f"{found} does not exist", errno.ENOENT)
        reader = None if dtype is not None or shape is not None else _reader(found)
        if dtype is not None or shape is not None:
            array = raw(found, dtype, shape, offset)
        elif reader is not None:
            array = _read_by(reader, found, dataset=dataset, rank=rank)
        else:
            store = Store(found)
            return store if dataset is None else store[dataset]
    if array.ndim not in (2, 3):
        raise refusal(f"{text} has {array.ndim} dimensions: give an array of three, z, y, x, or of two, y, x")
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
    """Any array of two or three dimensions, or the path of a file, as an Array."""
    return of_object(open_of(value) if isinstance(value, (str, bytes, os.PathLike)) else value, name)


def as_array(value: Any, name: str) -> Array:
    """Any array of three dimensions, or the path of a file, as an Array."""
    found = of_object(open_of(value, rank=3) if isinstance(value, (str, bytes, os.PathLike)) else value, name)
    if found.ndim != 3:
        raise refusal(f"{name} has {found.ndim} dimensions: give an array of three, z, y, x")
    return found
