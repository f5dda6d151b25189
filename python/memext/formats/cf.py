# SPDX-License-Identifier: BSD-3-Clause
"""Interprets the attributes of arrays and dimensions, in every format: CF conventions 1.11, sections 2.5.1 (missing data) and 8.1 (packed data), and the
default fill values of the NetCDF User's Guide."""
from __future__ import annotations

import math
import pathlib
from typing import Any

import numpy as np

from ..arrays import ObjectArray, Turned, check_mask
from ..errors import refusal

PACKED = ("scale_factor", "add_offset")
MISSING = ("_FillValue", "missing_value", "valid_min", "valid_max", "valid_range")
KEYS = (*PACKED, *MISSING, "_Unsigned")

# NC_FILL_* of netcdf.h: cells that nobody wrote.
_DEFAULT_FILLS = {"i1": -127, "u1": 255, "i2": -32767, "u2": 65535, "i4": -2147483647, "u4": 4294967295, "i8": -9223372036854775806, "u8": 18446744073709551614,
                  "f4": 9.969209968386869e36, "f8": 9.969209968386869e36}


class Cells:
    """The meaning of an array's stored cells, from its attributes. default_fill: cells that were never written have NetCDF's default fill value. filled: the
    array was filled with it. This matters for bytes alone: all of their values may be in use."""

    word = "plane"  # what the first dimension counts; "row" in two dimensions

    def __init__(self, stored: Any, attributes: dict[str, Any], name: str, path: Any, default_fill: bool = False, filled: bool = True):
        self.name, self.path, self.stored = name, path, np.dtype(stored)
        if self.stored.kind not in "biuf":
            if any(key in attributes for key in KEYS):
                raise refusal(f"{path}: {name} has cells of {self.stored} and the attribute {next(k for k in KEYS if k in attributes)}, which needs real numbers: "
                              "convert the cells")
            attributes, default_fill = {}, False
        self.unsigned = self._unsigned(attributes)
        self.raw = np.dtype(self.stored.str.replace("i", "u")) if self.unsigned else self.stored
        self.scale, self.offset = (self._one(attributes, key) for key in PACKED)
        packed = [n for n in (self.scale, self.offset) if n is not None]
        kind = np.result_type(self.raw, *[n.dtype for n in packed])
        self.dtype = self.stored if not packed and not self.unsigned else self.raw if not packed else kind if kind.kind == "f" else np.dtype("f8")
        self.fills = [self._in_type(n) for key in ("_FillValue", "missing_value") for n in self._numbers(attributes, key)]
        default = _DEFAULT_FILLS.get(self.stored.str[1:])
        if default_fill and default is not None and "_FillValue" not in attributes and (filled or self.stored.itemsize > 1):
            self.fills.append(self._in_type(default))
        self.fills = [fill for fill in self.fills if fill is not None]
        self.low, self.high = self._limits(attributes, bool(packed))

    def _unsigned(self, attributes: dict[str, Any]) -> bool:
        if "_Unsigned" not in attributes:
            return False
        value = attributes["_Unsigned"]
        text = (value.decode("latin1") if isinstance(value, bytes) else str(value)).lower()
        if text not in ("true", "false") or self.stored.kind not in "iu" or (text == "false" and self.stored.kind == "u"):
            raise refusal(f"{self.path}: {self.name} has cells of {self.stored.name} and _Unsigned = {value!r}: write true or false, for signed integers only")
        return text == "true" and self.stored.kind == "i"

    def _numbers(self, attributes: dict[str, Any], key: str) -> np.ndarray:
        if key not in attributes:
            return np.asarray([])
        value = attributes[key]
        try:
            numbers = np.asarray(value).ravel()
        except ValueError:
            numbers = np.asarray([None])
        if numbers.dtype.kind not in "biuf":
            text = value.decode("latin1") if isinstance(value, bytes) else str(value)
            raise refusal(f"{self.path}: the attribute {key} of {self.name} is '{text[:80]}': write it as a number, not as text")
        return numbers

    def _one(self, attributes: dict[str, Any], key: str) -> Any:
        numbers = self._numbers(attributes, key)
        if key not in attributes:
            return None
        if numbers.size != 1 or not np.isfinite(numbers[0]):
            raise refusal(f"{self.path}: the attribute {key} of {self.name} is {numbers.tolist()}: write one finite number")
        return numbers[0]

    def _in_type(self, number: Any) -> Any:
        """The number in the type of the cells; None if no cell can have this value."""
        if self.raw.kind == "f":
            with np.errstate(over="ignore"):
                cell = self.raw.type(number)
            return None if np.isinf(cell) and np.isfinite(number) else cell
        whole = self._whole(number)
        if whole is None or (self.raw.kind != "b" and not np.iinfo(self.raw).min <= whole <= np.iinfo(self.raw).max):
            return None
        return self.raw.type(whole)

    def _whole(self, number: Any) -> int | None:
        if isinstance(number, (int, np.integer)):
            return self._same_bits(int(number))
        if not math.isfinite(number) or number != math.floor(number):
            return None
        return self._same_bits(int(number))

    def _same_bits(self, whole: int) -> int:
        """The unsigned number that a signed attribute means if cells are unsigned numbers in a signed type."""
        return whole + (1 << 8 * self.raw.itemsize) if self.unsigned and -(1 << (8 * self.raw.itemsize - 1)) <= whole < 0 else whole

    def _limits(self, attributes: dict[str, Any], packed: bool) -> tuple[Any, Any]:
        limits: list[Any] = [None, None]
        for key, count in (("valid_min", 1), ("valid_max", 1), ("valid_range", 2)):
            numbers = self._numbers(attributes, key)
            if key not in attributes:
                continue
            if numbers.size != count or np.isnan(numbers.astype("f8")).any():
                raise refusal(f"{self.path}: the attribute {key} of {self.name} is {numbers.tolist()}: write {'one number' if count == 1 else 'two numbers'}")
            if packed and numbers.dtype.kind == "f" and self.raw.kind != "f":
                raise refusal(f"{self.path}: {self.name} is packed in {self.stored.name}, but {key} has the type {numbers.dtype.name}: write it in the packed type")
            for i, number in enumerate(numbers if count == 2 else [numbers[0]] if key == "valid_min" else [None, numbers[0]]):
                if number is not None:
                    more = [n for n in (limits[i], number) if n is not None]
                    limits[i] = (max, min)[i](more)
        return tuple(self._limit(number, i) for i, number in enumerate(limits))  # type: ignore[return-value]

    def _limit(self, number: Any, side: int) -> Any:
        """The first (side 0) or last (side 1) valid cell value; None if there is no limit."""
        if number is None or (math.isinf(number) and (number > 0) == (side == 1)):
            return None
        if self.raw.kind == "f":
            with np.errstate(over="ignore"):
                return self.raw.type(number)
        number = int(number) if isinstance(number, (int, np.integer)) else float(number)
        whole = number if math.isinf(number) else self._same_bits(math.floor(number) if side == 1 else math.ceil(number))
        info = np.iinfo("u1" if self.raw.kind == "b" else self.raw)
        if (whole <= info.min) if side == 0 else (whole >= info.max):
            return None
        return whole

    @property
    def plain(self) -> bool:
        """Do the stored cells need no conversion and no check?"""
        return not self.fills and self.low is None and self.high is None and self.scale is None and self.offset is None and not self.unsigned

    def values(self, stored: np.ndarray, first: int = 0, step: int = 1) -> np.ndarray:
        """The values of stored cells [z][y][x]. first, step: the numbers of their planes, for messages."""
        stored = np.asarray(stored)
        if self.unsigned:
            stored = stored.view(stored.dtype.str.replace("i", "u"))
        for fill in self.fills:
            self._refuse_where(np.isnan(stored) if fill != fill else stored == fill, f"{fill}", first, step)
        if self.low is not None:
            self._refuse_where(_outside(stored, self.low, -1), f"below the valid minimum {self.low}", first, step)
        if self.high is not None:
            self._refuse_where(_outside(stored, self.high, 1), f"above the valid maximum {self.high}", first, step)
        if self.scale is None and self.offset is None:
            return stored
        out = stored.astype(self.dtype)
        if self.scale is not None:
            out *= self.dtype.type(self.scale)
        if self.offset is not None:
            out += self.dtype.type(self.offset)
        return out

    def _refuse_where(self, missing: np.ndarray, what: str, first: int, step: int) -> None:
        if missing.any():
            plane = first + int(np.argwhere(missing)[0][0]) * step
            raise refusal(f"{self.path}: {self.name} has {int(missing.sum())} cells without a value ({what}) from {self.word} {plane} on: fill them in a copy")


def _outside(stored: np.ndarray, limit: Any, side: int) -> np.ndarray:
    """The cells outside a limit. A limit of integers may lie outside their type: then no cell is valid."""
    if stored.dtype.kind in "iu":
        info = np.iinfo(stored.dtype)
        if not info.min <= limit <= info.max:
            return np.ones(stored.shape, bool)
        limit = stored.dtype.type(limit)
    return stored < limit if side < 0 else stored > limit


class Decoded:
    """An array that converts stored cells to their values. index: the step of a first dimension, time, which the array does not have. check: called with
    each key before it is read."""

    def __init__(self, source: Any, cells: Cells, chunks: Any = None, index: int | None = None, check: Any = None):
        self.source, self.cells, self.index, self.check, self.dtype = source, cells, index, check, cells.dtype
        self.name = cells.name if index is None else f"{cells.name}[{index}]"  # what tells it from others of its file
        self.shape = tuple(source.shape[1:] if index is not None else source.shape)
        self.chunks = tuple(chunks)[-3:] if chunks else None
        self.computed = hasattr(source, "compute") or getattr(source, "computed", False)

    def __getitem__(self, key: Any) -> np.ndarray:
        if self.check is not None:
            self.check(key)
        found = self.source[key if self.index is None else (self.index, *key)]
        found = np.asanyarray(found.compute() if hasattr(found, "compute") else found)
        if isinstance(found, np.ma.MaskedArray):
            check_mask(found, self.cells.name, key[0], self.cells.word)
            found = found.data
        return self.cells.values(found, key[0].start, key[0].step)


# ------------------------------------------------------------------ dimensions by their names

def order_of(names: Any, axes: Any, what: str) -> tuple[int, ...] | None:
    """The stored dimensions of z, y and x in an array whose dimensions have names; None if they are stored as z, y, x, or the names do not say. axes: the
    attributes `axis` of their coordinates, or None."""
    names = [str(name) for name in names]
    letters = [_letter(name, axis) for name, axis in zip(names, axes)]
    known = [letter for letter in letters if letter is not None]
    if len(names) == 2 and (letters[0] == "x" or letters[1] == "z" or (letters[1] == "y" and letters[0] != "z")):
        raise refusal(f"{what} has the dimensions {', '.join(names)}, but a grid of two dimensions has y, x: turn it (xarray: a.transpose(...))")
    if len(names) != 3 or len(set(known)) != len(known) or all(letter in (None, "zyx"[i]) for i, letter in enumerate(letters)):
        return None
    if len(known) == 3:
        return tuple(letters.index(letter) for letter in "zyx")
    raise refusal(f"{what} has the dimensions {', '.join(names)}, but a grid has z, y, x: turn it (xarray: a.transpose(...)), and name all dimensions")


def _letter(name: str, axis: Any) -> str | None:
    for text in (axis.decode("latin1") if isinstance(axis, bytes) else axis, name.rsplit("/", 1)[-1]):
        if isinstance(text, str) and text.strip().lower() in ("x", "y", "z"):
            return text.strip().lower()
    return None


def array_of(source: Any, cells: Cells, order: tuple[int, ...] | None, name: str, path: pathlib.Path | None, keep: Any = None) -> ObjectArray:
    """An Array of `source`, with its dimensions turned to z, y, x if that is needed."""
    if order is None:
        return ObjectArray(source, name, path, keep)
    turned = Turned(source, order)
    return ObjectArray(turned, name, path, keep, deep=0 if turned.chunks else turned.shape[0])
