# SPDX-License-Identifier: BSD-3-Clause
"""What means something of its own in a cell: fields, and functions of numpy, math and Python that become expressions."""
from __future__ import annotations

from typing import Any, Callable


class FieldRef:
    """A field as an argument: FIELD[dx, dy, dz], FIELD.old, or FIELD for FIELD[0, 0, 0]."""

    def __init__(self, name: str, dtype: str, radius: int, readable: bool = True):
        self.name, self.dtype, self.radius, self.readable = name, dtype, radius, readable


class Special:
    """A function that means something else in a cell."""

    def __init__(self, name: str, call: Callable):
        self.name, self.call = name, call


SPECIALS: dict[int, Special] = {}  # by the function's id; translate.py, which knows what they mean, fills it


def special(function: Any) -> Special | None:
    return SPECIALS.get(id(function))
