# SPDX-License-Identifier: BSD-3-Clause
"""Initial values that are computed, plane by plane."""
from __future__ import annotations

from typing import Any

import numpy as np

from .exact import MOST, is_whole


class Values:
    """Initial values that are computed: plane(z, shape) gives [y][x] of a grid of that shape, which counts the frame."""

    def shape(self) -> tuple[int, int, int] | None:
        return None

    def plane(self, z: int, shape: tuple[int, int, int]) -> Any:
        raise NotImplementedError

    def identity(self) -> str:
        raise NotImplementedError

    def begin(self, name: str, flat: bool, frame: int) -> None:
        """Prepares for a field of a grid of two dimensions (flat) or three, with `frame` cells of frame."""

    def try_out(self, shape: tuple[int, int, int]) -> None:
        """Reads what the first planes need, so that errors appear at once."""


class Constant(Values):
    def __init__(self, value: Any):
        """Keeps integers that no double can hold exact, also those of numpy's longer floating-point types."""
        whole = abs(value) > MOST and (is_whole(value) or (np.isfinite(value) and float(value) != value and value == np.trunc(value)))
        self.value = int(value) if whole else float(value)

    def plane(self, z: int, shape: tuple[int, int, int]) -> float | int:
        return self.value

    def identity(self) -> str:
        return f"constant {self.value!r}"
