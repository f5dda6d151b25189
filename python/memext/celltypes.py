# SPDX-License-Identifier: BSD-3-Clause
"""The types of cells, by numpy's names and by the library's."""
from __future__ import annotations

from typing import Any

import numpy as np

from .errors import KernelError

TYPES = ("f8", "f4", "u1", "u2", "i2")
_NAMES = {"f64": "f8", "f32": "f4", "u8": "u1", "u16": "u2", "i16": "i2"}


def type_name(dtype: Any, what: str = "dtype") -> str:
    """f8, f4, u1, u2 or i2 of a numpy type, its name, or the library's (f64, u8, ...)."""
    if isinstance(dtype, str) and dtype in _NAMES:
        return _NAMES[dtype]
    try:
        name = np.dtype(dtype).str[1:]
    except TypeError:
        raise KernelError(f"{what} {dtype!r} is no type of cells: {', '.join(TYPES)}") from None
    if name not in TYPES:
        raise KernelError(f"{what} {np.dtype(dtype).name} is no type of cells: there are float64, float32 and, of fields that are only "
                          "read, uint8, uint16, int16")
    return name


def library_type(name: str) -> str:
    return {short: long for long, short in _NAMES.items()}[name]
