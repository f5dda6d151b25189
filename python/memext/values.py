# SPDX-License-Identifier: BSD-3-Clause
"""Cells that are computed, plane by plane."""
from __future__ import annotations

from typing import Any


class Values:
    """Cells that are computed: plane(z, shape) gives [y][x] of a grid of that shape, its frame counted."""

    def shape(self) -> tuple[int, int, int] | None:
        return None

    def plane(self, z: int, shape: tuple[int, int, int]) -> Any:
        raise NotImplementedError

    def identity(self) -> str:
        raise NotImplementedError

    def try_out(self, shape: tuple[int, int, int]) -> None:
        """Reads what the first planes need, for what can fail to fail at once."""


class Constant(Values):
    def __init__(self, value: float):
        self.value = float(value)

    def plane(self, z: int, shape: tuple[int, int, int]) -> float:
        return self.value

    def identity(self) -> str:
        return f"constant {self.value!r}"
