# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that a program gives stay what they are, or are refused: numpy and doubles round whole numbers beyond 2**53 and forget masks, without a word."""
from __future__ import annotations

import errno
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .errors import MemextError

MOST = 2**53  # up to which a double has every whole number


def is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def real(value: Any, what: str) -> float:
    """A number that the library takes as a double."""
    try:
        number = math.nan if np.iscomplexobj(value) else float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise MemextError(f"{what} = {value!r}: a finite number is needed, which a double holds", errno.EINVAL)
    if is_whole(value) and int(number) != int(value):
        raise MemextError(f"{what} = {value}: it becomes a double, which beyond 2**53 = {MOST} rounds whole numbers, this one to {int(number)}: "
                          f"give {number!r} if that will do", errno.EINVAL)
    return number


def rounded(values: Iterable[Any]) -> int | None:
    """The first whole number among them that no double has."""
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
    """Masked cells have no value."""
    if isinstance(values, np.ma.MaskedArray) and (count := int(np.ma.getmaskarray(values).sum())):
        raise MemextError(f"{name} is given {count} cells without a value (masked): fill them, numpy.ma.filled(a, 0)", errno.EINVAL)


def array_of(value: Any, name: str) -> np.ndarray:
    """numpy's array of what a program gives, with the same numbers: of whole numbers that no type of numpy has together, one of objects."""
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
        raise MemextError(f"{name} is given the whole number {lost} among others that are none, and numpy rounds it beyond 2**53 = {MOST}: give whole numbers "
                          "alone, or numpy.array(..., dtype='int64')", errno.EINVAL)
    return whole_array(numbers)


def whole_array(numbers: np.ndarray) -> np.ndarray:
    """Of objects that are whole numbers, in 64 bits where these hold all of them."""
    low, high = min(map(int, numbers.flat)), max(map(int, numbers.flat))
    for kind in ("i8", "u8"):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return np.array([int(n) for n in numbers.flat], kind).reshape(numbers.shape)
    return numbers
