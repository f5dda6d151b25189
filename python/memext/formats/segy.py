# SPDX-License-Identifier: BSD-3-Clause
"""Reads SEG-Y, by segyio."""
from __future__ import annotations

import pathlib
from typing import Any

from ..arrays import Array, PagesArray
from ..errors import refusal
from .modules import module


def segy(path: pathlib.Path, **_: Any) -> Array:
    """Opens a cube: z counts inlines, y crosslines, x samples."""
    file = module("segyio", path).open(str(path))
    if len(file.offsets) != 1:
        raise refusal(f"{path} has {len(file.offsets)} offsets for each inline and crossline, and memext reads one: stack it, or write one offset into a file of its own")
    lines = list(file.ilines)
    return PagesArray((len(lines), len(file.xlines), len(file.samples)), file.dtype, lambda z: file.iline[lines[z]], path.name, path)
