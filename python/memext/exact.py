# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that a program gives stay exact, or are refused. numpy and doubles silently round integers beyond 2**53, and numpy drops masks."""
from __future__ import annotations

import errno
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .errors import MemextError

MOST = 2**53  # a double holds every integer up to this


def is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def real(value: Any, what: str) -> float:
    """A number that the library stores as a double."""
    try:
        number = math.nan if np.iscomplexobj(value) else float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise MemextError(f"{what} = {value!r}: give a finite number that a double can hold", errno.EINVAL)
    if is_whole(value) and int(number) != int(value):
        raise MemextError(f"{what} = {value}: a double cannot hold this integer, which is beyond 2**53 = {MOST}, and would round it to {int(number)}: "
                          f"give {number!r} if that is close enough", errno.EINVAL)
    return number


def rounded(values: Iterable[Any]) -> int | None:
    """The first integer among the values that no double can hold."""
    for value in values:
        if is_whole(value) and abs(int(value)) > MOST:
            try:
                if int(float(value)) == int(value):
                    continue
            except OverflowError:
                pass
            return int(value)
    return None


def unmasked(values: Any, name: str) -> None:
    """Refuses masked cells, which have no value."""
    if isinstance(values, np.ma.MaskedArray) and (count := int(np.ma.getmaskarray(values).sum())):
        raise MemextError(f"the array for {name} has {count} cells without a value (masked): fill them, numpy.ma.filled(a, 0)", errno.EINVAL)


def array_of(value: Any, name: str) -> np.ndarray:
    """The value as a numpy array with exactly the same numbers. It is an array of objects if no type of numpy holds all of its integers."""
    array = np.asanyarray(value)
    unmasked(array, name)
    array = np.asarray(array)
    if array.dtype.kind not in "fO" or hasattr(value, "dtype") or isinstance(value, float):
        return array
    numbers = np.asarray(value, dtype=object)
    lost = rounded(numbers.flat)
    if lost is None and array.dtype.kind == "f":
        return array
    if not all(map(is_whole, numbers.flat)):
        if lost is None:
            return array
        raise MemextError(f"{name} mixes the integer {lost} with floating-point numbers, and numpy rounds integers beyond 2**53 = {MOST}: give only integers, "
                          "or numpy.array(..., dtype='int64')", errno.EINVAL)
    return whole_array(numbers)


def whole_array(numbers: np.ndarray) -> np.ndarray:
    """An array of objects that are integers, as 64-bit integers if these hold all of them."""
    low, high = min(map(int, numbers.flat)), max(map(int, numbers.flat))
    for kind in ("i8", "u8"):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return np.array([int(n) for n in numbers.flat], kind).reshape(numbers.shape)
    return numbers
