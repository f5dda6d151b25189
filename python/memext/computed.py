# SPDX-License-Identifier: BSD-3-Clause
"""Initial values that are computed: ramps and functions. Each has an identity, by which a run distinguishes it from other initial values."""
from __future__ import annotations

import errno
import inspect
from typing import Any, Callable

import numpy as np

from .errors import MemextError
from .exact import real
from .flat import of_user
from .formats import as_array
from .identity import Texts, identity_of
from .values import Values


class Ramp(Values):
    """Values that are linear along an axis, from `first` in the first plane of the frame to `last` in the last one; 0 where the array `where` is 0."""

    def __init__(self, axis: str, first: float, last: float, where: Any = None):
        if axis not in ("x", "y", "z"):
            raise MemextError(f"a ramp cannot have the axis {axis!r}: give 'x', 'y' or 'z'")
        self.name_of_axis, self.axis, self.first, self.last = axis, "zyx".index(axis), real(first, "a ramp's first value"), real(last, "a ramp's last value")
        flat = len(getattr(where, "shape", ())) == 2
        self.where = None if where is None else as_array(of_user(where, "where") if flat else where, "where")

    def begin(self, name: str, flat: bool, frame: int) -> None:
        if flat and self.name_of_axis == "z":
            raise MemextError(f"{name} is a ramp along z, but the kernel computes grids of two dimensions: give axis 'x' or 'y'", errno.EINVAL)
        self.axis = 0 if flat and self.name_of_axis == "y" else "zyx".index(self.name_of_axis)  # rows are planes

    def shape(self) -> tuple[int, int, int] | None:
        return None if self.where is None else self.where.shape

    def plane(self, z: int, shape: tuple[int, int, int]) -> Any:
        if self.axis == 0:
            values: Any = np.linspace(self.first, self.last, shape[0])[z]
        else:
            line = np.linspace(self.first, self.last, shape[self.axis])
            values = line[:, None] if self.axis == 1 else line
        if self.where is None:
            return values
        return np.where(self.where.plane(z) != 0, values, 0.0)

    def identity(self) -> str:
        return f"ramp {'zyx'.index(self.name_of_axis)} {self.first!r} {self.last!r} {identity_of(self.where) if self.where is not None else ''}"


class Function(Values):
    """function(x, y, z) of the indices of cells, arrays that broadcast. Interior cells count from 0; the frame has negative indices and those from n on. In
    two dimensions it is function(x, y), called for each row."""

    def __init__(self, function: Callable, frame: int = 0):
        self.function, self.frame, self.flat = function, frame, False
        self._identity: str | None = None
        self._tried: dict[int, Any] = {}  # planes that are the first to be asked for

    def begin(self, name: str, flat: bool, frame: int) -> None:
        self.flat, self.frame = flat, frame
        places = "x, y" if flat else "x, y, z"
        try:
            inspect.signature(self.function).bind(*places.split(", "))
        except ValueError:  # functions of C say nothing of themselves
            pass
        except TypeError:
            raise MemextError(f"{name} is given a function that cannot be called with ({places}): in grids of {'two' if flat else 'three'} dimensions give a "
                              "function of exactly these arguments", errno.EINVAL) from None

    def plane(self, z: int, shape: tuple[int, int, int]) -> Any:
        if z in self._tried:
            return self._tried.pop(z)
        h = self.frame
        if self.flat:
            return self.function(np.arange(-h, shape[2] - h), z - h)
        y, x = np.arange(-h, shape[1] - h)[:, None], np.arange(-h, shape[2] - h)[None, :]
        return self.function(x, y, z - h)

    def try_out(self, shape: tuple[int, int, int]) -> None:
        """Computes the planes of the frame and the first interior plane, in the order of a run: a function may return different values at each call."""
        self._tried = {z: self.plane(z, shape) for z in range(self.frame + 1)}

    def identity(self) -> str:
        if self._identity is None:  # as it is at first: what it holds may change when it is called
            self._identity = f"function {Texts().of(self.function)}"
        return self._identity
