# SPDX-License-Identifier: BSD-3-Clause
""".npy files and raw cells."""
from __future__ import annotations

import errno
import operator
import os
import pathlib
from typing import Any

import numpy as np

from ..arrays import Array, ObjectArray, RawArray, Rows, Turned, as_users_have, shape_of
from ..errors import MemextError, refusal
from ..pieces import groups


def check_length(array: RawArray, flat: bool = False) -> RawArray:
    there = os.stat(array.path).st_size - array.offset
    if there < array.nbytes:
        raise refusal(f"{array.path} has {max(there, 0)} bytes from byte {array.offset} on, but {shape_of(array.shape, flat)} cells of {array.dtype.name} need "
                      f"{array.nbytes} bytes", errno.EIO)
    return array


def npy(path: pathlib.Path, dataset: str | None = None, **_: Any) -> Array:
    """Opens a .npy file. numpy reads the header."""
    if dataset is not None:
        raise refusal(f"{path} is a single array and has no datasets: leave the name {dataset} out")
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise ValueError(f"its version is {version[0]}.{version[1]}, and memext reads 1.0, 2.0 and 3.0")
            # 3.0 is 2.0 with names of fields in UTF-8
            shape, turned, dtype = (np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0)(file)
            offset = file.tell()
    except (ValueError, EOFError) as error:
        raise refusal(f"{path} is not a complete .npy file of numbers: {' '.join(str(error).split())}") from None
    if dtype.hasobject:
        raise refusal(f"{path} is not a .npy file of numbers: its cells are Python objects")
    if len(shape) not in (2, 3):
        raise refusal(f"{path} has {len(shape)} dimension{'' if len(shape) == 1 else 's'}: give an array of three, z, y, x, or of two, y, x")
    if min(shape) < 0:
        raise refusal(f"{path} is not a complete .npy file of numbers: it has an extent of {min(shape)}")
    if len(shape) == 2 and turned:
        raise refusal(f"{path} is in Fortran order: save it with numpy.ascontiguousarray(a)")
    if len(shape) == 2:
        return Rows(check_length(RawArray(path, (shape[0], 1, shape[1]), dtype, offset), True))
    if not turned:
        return check_length(RawArray(path, shape, dtype, offset))
    stored = check_length(RawArray(path, shape[::-1], dtype, offset))
    return ObjectArray(Turned(stored, (2, 1, 0)), path.name, path, deep=shape[0])


def raw(path: pathlib.Path, dtype: Any = None, shape: Any = None, offset: int = 0, **_: Any) -> Array:
    if dtype is None or shape is None:
        raise refusal(f"{path} holds raw cells: give dtype= and shape=(nz, ny, nx), and offset= (in bytes) if the cells do not begin at "
                      "byte 0")
    try:
        numbers, kind, begin = [operator.index(n) for n in shape], np.dtype(dtype), operator.index(offset)
    except TypeError as error:
        raise refusal(f"{path} cannot be opened with dtype={dtype!r}, shape={shape!r}, offset={offset!r}: {error}") from None
    if len(numbers) not in (2, 3) or min(numbers) < 0 or begin < 0:
        raise refusal(f"{path} cannot be opened with shape={shape!r}, offset={offset!r}: give shape=(nz, ny, nx) or (ny, nx), and offset= in bytes, 0 or more")
    flat = len(numbers) == 2
    return as_users_have(check_length(RawArray(path, (numbers[0], 1, numbers[1]) if flat else tuple(numbers), kind, begin), flat), flat)


def no_options(path: pathlib.Path, options: dict[str, Any]) -> None:
    if options:
        raise MemextError(f"{path}: {path.suffix} files have no options: leave {', '.join(options)} out, or write .h5 or .zarr", errno.EINVAL)


def write_npy(array: Array, path: pathlib.Path, dataset: str | None, flat: bool, **options: Any) -> None:
    no_options(path, options)
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": shape_of(array.shape, flat)}
        np.lib.format.write_array_header_1_0(file, header)
        for _box, cells in groups(array):
            file.write(memoryview(np.ascontiguousarray(cells)).cast("B"))


def write_raw(array: Array, path: pathlib.Path, dataset: str | None, flat: bool, **options: Any) -> None:
    no_options(path, options)
    with path.open("wb") as file:
        for _box, cells in groups(array):
            file.write(memoryview(np.ascontiguousarray(cells)).cast("B"))
