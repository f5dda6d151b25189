# SPDX-License-Identifier: BSD-3-Clause
"""The types of cells, by codes that numpy knows and by the library's names. 64-bit integers have the codes q and Q, because i8 and u8 mean eight bytes
to numpy and eight bits to the library."""
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
    """The code of a type: of a numpy type, its name, or the library's name unless that is ambiguous (f64, u16, ...)."""
    if isinstance(dtype, str) and dtype in _OF_8:
        sign = "u" if dtype[0] == "u" else ""
        raise KernelError(f"{what} {dtype!r} means {sign}int8 in the library and {sign}int64 in numpy: write '{sign}int8' or '{sign}int64'")
    if isinstance(dtype, str) and dtype in _LIBRARY:
        return _LIBRARY[dtype]
    try:
        name = np.dtype(dtype).str[1:]
    except TypeError:
        raise KernelError(f"{what} {dtype!r} is not a type of cells: give one of {', '.join(np.dtype(t).name for t in TYPES)}") from None
    name = _OF_8.get(name, name)
    if name not in TYPES:
        raise KernelError(f"{what} {np.dtype(dtype).name} is not a type of cells: give one of {', '.join(np.dtype(t).name for t in TYPES)}")
    return name


def of_library(name: str) -> np.dtype:
    """The numpy type of a library's name, little endian."""
    return np.dtype(_LIBRARY[name]).newbyteorder("<")


def library_type(name: str) -> str:
    """The library's name of a code."""
    return {short: long for long, short in _LIBRARY.items()}[name]


def dtype_of(name: str) -> np.dtype:
    """The numpy type of a code, little endian."""
    return np.dtype(name).newbyteorder("<")


def stored(values: Any, dtype: str) -> np.ndarray:
    """The values that a kernel returns as cells of a type, by the rules of memext/cell.h. Integers wrap. In a field of integers, floating-point values are
    truncated and limited to the type's range, and NaN becomes 0."""
    values = np.asarray(values)
    if dtype in REALS or values.dtype.kind != "f":
        return values.astype(dtype)
    low, high = RANGES[dtype]
    values = np.trunc(np.where(np.isnan(values), 0, values).astype("f8"))
    below, above = values <= low, values >= high  # as doubles: where that is the number after the highest, too
    return np.where(above, np.array(high, dtype), np.where(below, np.array(low, dtype), np.where(above | below, 0, values).astype(dtype)))
