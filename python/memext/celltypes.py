# SPDX-License-Identifier: BSD-3-Clause
"""The types of cells, by codes that numpy knows and by the library's names. 64-bit whole numbers have the codes q and Q, for i8 and u8 are
eight bytes to numpy and eight bits to the library."""
from __future__ import annotations

from typing import Any

import numpy as np

from .errors import KernelError

REALS = ("f8", "f4")
RANGES = {code: (int(np.iinfo(code).min), int(np.iinfo(code).max)) for code in ("u1", "i1", "u2", "i2", "u4", "i4", "Q", "q")}
TYPES = (*REALS, *RANGES)
C_TYPES = {"f8": "double", "f4": "float", "u1": "uint8_t", "i1": "int8_t", "u2": "uint16_t", "i2": "int16_t", "u4": "uint32_t", "i4": "int32_t",
           "Q": "uint64_t", "q": "int64_t"}
_LIBRARY = {"f64": "f8", "f32": "f4", "u8": "u1", "i8": "i1", "u16": "u2", "i16": "i2", "u32": "u4", "i32": "i4", "u64": "Q", "i64": "q"}
_OF_8 = {"i8": "q", "u8": "Q"}


def type_name(dtype: Any, what: str = "dtype") -> str:
    """The code of a numpy type, of its name, or of the library's name where that cannot be mistaken (f64, u16, ...)."""
    if isinstance(dtype, str) and dtype in _OF_8:
        sign = "u" if dtype[0] == "u" else ""
        raise KernelError(f"{what} {dtype!r} is {sign}int8 to the library and {sign}int64 to numpy: say '{sign}int8' or '{sign}int64'")
    if isinstance(dtype, str) and dtype in _LIBRARY:
        return _LIBRARY[dtype]
    try:
        name = np.dtype(dtype).str[1:]
    except TypeError:
        raise KernelError(f"{what} {dtype!r} is no type of cells: {', '.join(np.dtype(t).name for t in TYPES)}") from None
    name = _OF_8.get(name, name)
    if name not in TYPES:
        raise KernelError(f"{what} {np.dtype(dtype).name} is no type of cells: there are float64, float32, and int8, uint8 and so on up to int64, uint64")
    return name


def of_library(name: str) -> np.dtype:
    """Of the library's name, little endian."""
    return np.dtype(_LIBRARY[name]).newbyteorder("<")


def library_type(name: str) -> str:
    """Of a code."""
    return {short: long for long, short in _LIBRARY.items()}[name]


def dtype_of(name: str) -> np.dtype:
    """Of a code, little endian."""
    return np.dtype(name).newbyteorder("<")


def stored(values: Any, dtype: str) -> np.ndarray:
    """What cells of a type hold of values that a kernel gives them, as memext/cell.h says: whole numbers wrap; reals are truncated and saturate in a
    field of whole numbers, and NaN is 0 there."""
    values = np.asarray(values)
    if dtype in REALS or values.dtype.kind != "f":
        return values.astype(dtype)
    low, high = RANGES[dtype]
    values = np.trunc(np.where(np.isnan(values), 0, values).astype("f8"))
    below, above = values <= low, values >= high  # as doubles: where that is the number after the highest, too
    return np.where(above, np.array(high, dtype), np.where(below, np.array(low, dtype), np.where(above | below, 0, values).astype(dtype)))
