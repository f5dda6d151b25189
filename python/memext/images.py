# SPDX-License-Identifier: BSD-3-Clause
"""Frames that are images of the interior (option side), for states that are changed and not stored yet; by the rules of runtime/system/sides.h."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

Ends = tuple[str, str]


class Images:
    """Makes planes with such frames. sides: as the store says, "x=periodic z=fixed,mirror vx:z=odd"."""

    def __init__(self, sides: str, shape: tuple[int, int, int], halo: tuple[int, int, int]):
        """shape, halo: those of arrays [z][y][x], or of rows that are planes (flat.py), whose first axis users call y."""
        self.shape, self.halo = shape, halo
        self._axes = {"z": "y", "x": "x"} if halo[1] == 0 else {a: a for a in "zyx"}
        self._kinds: dict[tuple[str, str], Ends] = {}
        for word in sides.split():
            where, kinds = word.split("=")
            field, _, axis = where.rpartition(":")
            first, _, last = kinds.partition(",")
            self._kinds[field, axis] = (first, last or first)

    def _ends(self, field: str, axis: str) -> Ends:
        axis = self._axes.get(axis, "")
        return self._kinds.get((field, axis)) or self._kinds.get(("", axis)) or ("fixed", "fixed")

    def _source(self, ends: Ends, n: int, h: int, i: int) -> tuple[int, bool]:
        """The cell that cell i copies (indices count the frame of h cells), and whether its sign changes."""
        if h <= i < n + h:
            return i, False
        kind, k = (ends[0], h - i) if i < h else (ends[1], i - n - h + 1)
        from_end = {"mirror": k - 1, "odd": k - 1, "mirror-node": k, "odd-node": k, "edge": 0, "periodic": n - k}.get(kind)
        if from_end is None:
            return i, False
        return (h + from_end if i < h else n + h - 1 - from_end), kind in ("odd", "odd-node")

    def plane(self, field: str, z: int, interior: Callable[[int], np.ndarray]) -> np.ndarray:
        """Plane z with its frame. interior: gives changed planes, a new array each time."""
        (nz, ny, nx), (h, hy, _) = self.shape, self.halo
        ends = {axis: self._ends(field, axis) for axis in "xyz"}
        from_z, minus = self._source(ends["z"], nz, h, z)
        plane = interior(from_z)
        if h <= from_z < nz + h:
            self._zero(plane[hy:ny + hy, h:nx + h], ends, from_z)
        for i in [*range(h), *range(nx + h, nx + 2 * h)]:
            source, odd = self._source(ends["x"], nx, h, i)
            if source != i:
                plane[:, i] = -plane[:, source] if odd else plane[:, source]
        if minus:
            plane = -plane
        for i in [*range(hy), *range(ny + hy, ny + 2 * hy)]:
            source, odd = self._source(ends["y"], ny, hy, i)
            if source != i:
                plane[i] = -plane[source] if odd else plane[source]
        return plane

    def _zero(self, inside: np.ndarray, ends: dict[str, Ends], z: int) -> None:
        """Sets cells that are nodes of an odd image to 0."""
        h, nz = self.halo[0], self.shape[0]
        for axis, rows in (("x", inside.T), ("y", inside)):
            for end, at in ((0, 0), (1, -1)):
                if ends[axis][end] == "odd-node":
                    rows[at] = 0
        if (z == h and ends["z"][0] == "odd-node") or (z == nz + h - 1 and ends["z"][1] == "odd-node"):
            inside[...] = 0
