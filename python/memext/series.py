# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of a kernel: numbers, and series, which have a value for each step or for each level of a step."""
from __future__ import annotations

import errno
import hashlib
import os
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from .errors import MemextError
from .exact import MOST, array_of, real, rounded


class Series:
    """A parameter over time. Cells computed from step t use values[t], or values[t, i] in level i of the step. path: its file, if it came from one."""

    def __init__(self, values: np.ndarray, path: pathlib.Path | None = None):
        self.values, self._path = values, path

    def check(self, name: str, levels: int) -> None:
        """Refuses values that do not have the shape (steps), or (steps, levels) if a step has several levels."""
        shape = self.values.shape
        if len(shape) == 2 and (levels == 1 or shape[1] != levels):
            several = f", or the shape (steps, {levels}), a number for each of the {levels} levels of a step" if levels > 1 else ""
            raise MemextError(f"params: {name} has shape {shape}: give it the shape (steps), a number for each step{several}", errno.EINVAL)

    def file(self, folder: pathlib.Path) -> pathlib.Path:
        """The file that the library reads: the one that was given, or a new one in `folder`. Its name follows from its content. It stays, because stores refer to it."""
        if self._path is not None:
            return self._path
        shape = "x".join(map(str, self.values.shape))  # arrays of other shapes may have the same bytes
        path = folder / f"series-{shape}-{hashlib.blake2b(self.values.tobytes(), digest_size=12).hexdigest()}.npy"
        if not path.exists():
            handle, temporary = tempfile.mkstemp(dir=folder, suffix=".npy")
            try:
                with os.fdopen(handle, "wb") as file:
                    np.save(file, self.values)
                os.replace(temporary, path)
            except OSError as error:
                os.unlink(temporary)
                raise MemextError(f"the values of a parameter cannot be written to {folder}: {error.strerror}", error.errno or errno.EIO, 3) from error
        return path


def _series(name: str, value: Any, directory: str) -> Series:
    path = None
    if isinstance(value, (str, os.PathLike)):
        path = pathlib.Path(directory, os.fsdecode(value))
        if path.suffix != ".npy":
            raise MemextError(f"params: {name}={os.fsdecode(value)!r} is neither a number nor a .npy file: give one of these, or an array with a value for each "
                              "step", errno.EINVAL)
        try:
            value = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise MemextError(f"params: {name}: {path} cannot be read: {error}", errno.EINVAL) from error
    array = array_of(value, f"params: {name}")
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiu" or array.size == 0:
        raise MemextError(f"params: {name} is an array of {array.dtype} with shape {array.shape}: give numbers with the shape (steps), or (steps, stages)", errno.EINVAL)
    if path is not None and array.dtype.str not in ("<f8", "<f4"):
        raise MemextError(f"params: {name}: {path} holds {array.dtype}, but the file of a parameter must hold little-endian f8 or f4: convert it", errno.EINVAL)
    values = np.ascontiguousarray(array, dtype="<f8")
    if array.dtype.kind in "iu" and max(int(array.max()), -int(array.min())) > MOST and (lost := rounded(array.flat)) is not None:
        raise MemextError(f"params: {name} has the integer {lost}, but parameters are doubles, which round integers beyond 2**53: give floating-point numbers", errno.EINVAL)
    if not np.isfinite(values).all():
        step = int(np.argmin(np.isfinite(values).all(axis=tuple(range(1, values.ndim)))))
        raise MemextError(f"params: {name} is not finite at step {step}: give a finite number for each step", errno.EINVAL)
    return Series(values, path)


def take(params: Mapping[str, Any], directory: str) -> dict[str, float | Series]:
    """The parameters that a program gave: a number holds for all steps, an array or a .npy file becomes a Series."""
    found: dict[str, float | Series] = {}
    for name, value in params.items():
        try:
            found[name] = real(value, f"params[{name!r}]") if np.ndim(value) == 0 else _series(name, value, directory)
        except (TypeError, ValueError):
            found[name] = _series(name, value, directory)
    return found


class AtStep(Mapping[str, float]):
    """The parameters that one level of a step uses: level `of_step` of `levels`."""

    def __init__(self, params: Mapping[str, Any], step: int, of_step: int = 0, levels: int = 1):
        self._params, self._step, self._of_step, self._levels = params, step, of_step, levels

    def __getitem__(self, name: str) -> float:
        value = self._params[name]
        if not isinstance(value, Series):
            return value
        if self._step >= len(value.values):
            raise MemextError(f"the parameter {name} has values for {len(value.values)} steps, and none for step {self._step}: give it a value for every step", errno.EINVAL)
        if value.values.ndim == 1:
            return value.values[self._step]
        value.check(name, self._levels)
        return value.values[self._step, self._of_step]

    def __iter__(self):
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)
