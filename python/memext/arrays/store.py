# SPDX-License-Identifier: BSD-3-Clause
"""Stores, and their fields as arrays."""
from __future__ import annotations

import errno
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _core
from ..celltypes import of_library
from ..errors import MemextError, refusal
from .base import ACTIONS, Array
from .raw import Hashed, RawArray, Unchanged, moment_of
from .rows import as_users_have


class FormerArray(Array):
    """A field of the former store, with which the run in this place began. The run has written over it. A program that is started again names it once more,
    but cannot read it."""

    def __init__(self, path: pathlib.Path, name: str, shape: tuple[int, ...], dtype: Any):
        super().__init__(shape, dtype)
        self.path, self.name = path, name

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        raise refusal(f"{self.name} of the former store in {self.path} no longer exists: the run that is there now began with it and has replaced it", errno.ESTALE)


class Store:
    """A store, as a mapping of names to fields, which are Arrays with their frame. It is read-only.

    shape: the grid with its frame, (nz, ny, nx) or (ny, nx). step, time (seconds, or None), state and info describe it. Reading a field raises MemextError
    while a run works on the store (EBUSY) and after a run has continued it (ESTALE).

    The store of a rank holds the planes of its rank. Its fields of the state have no frame at an end where another rank continues: the planes of all ranks,
    in order, are the grid. Read-only fields have a frame there."""

    def __init__(self, path: Any, place: Any = None):
        self.place_given = pathlib.Path(path)
        path = os.path.abspath(os.fsdecode(path))
        state, self.info = _core.state_of(path)[1], _core.look(path)
        while _core.generation_of(state) != self.info["generation"]:  # a run that is under way has committed in between
            state, self.info = _core.state_of(path)[1], _core.look(path)
        self.path = pathlib.Path(self.info["place"])
        self._unchanged = Unchanged(self.path, state, place, moment_of(self.info))
        self._hashed: dict[str, Hashed | None] = {}
        self.state: str = self.info["state"]
        self.step: int = self.info["step"]
        self.time: float | None = self.info.get("simulated_s")  # seconds; None: the run did not know how long a step is

    @property
    def flat(self) -> bool:
        """Does the grid have two dimensions? In the file, its rows are planes of one row."""
        return self._problem().get("dimensions", 3) == 2

    @property
    def shape(self) -> tuple[int, ...]:
        p = self._problem()
        planes = [a["planes"] for a in self.info["arrays"]]
        if self.flat:
            return min(planes, default=p["ny"] + 2 * p["h"]), p["nx"] + 2 * p["h"]
        return min(planes, default=p["nz"] + 2 * p["h"]), p["ny"] + 2 * p["h"], p["nx"] + 2 * p["h"]

    @property
    def steps(self) -> int:
        """The number of steps that its run was asked for."""
        return self._problem()["nt"]

    @property
    def fields(self) -> list[str]:
        return [a["name"] for a in self.info.get("arrays", [])]

    @property
    def frame(self) -> int:
        """The width of the frame, in cells."""
        return self._problem()["h"]

    def _problem(self) -> dict:
        if "problem" not in self.info:
            raise refusal(f"{self.path} holds no state: {self.info['why']}")
        return self.info["problem"]

    def keys(self) -> list[str]:
        return self.fields

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, name: str) -> Array:
        return as_users_have(self.planes(name), self.flat)

    def planes(self, name: str) -> Array:
        """A field as the library stores it. In two dimensions its rows are planes, (ny, 1, nx)."""
        a = self._described(name)
        return a if isinstance(a, Array) else self._array(a, 0, a["frame_low"], a["frame_high"])

    def part(self, name: str, frame: bool) -> Array:
        """A field without its frame, or (frame=True) with as much of it as all fields have. Nothing is copied."""
        arrays, found = self.info["arrays"], self._described(name)
        if isinstance(found, FormerArray):
            bare = FormerArray(self.path, name, tuple(n if self.flat and n == 1 else n - 2 * self.frame for n in found.shape), found.dtype)
            return as_users_have(found if frame else bare, self.flat)
        low, high = (min(a[n] for a in arrays) if frame else 0 for n in ("frame_low", "frame_high"))
        return as_users_have(self._array(found, 0 if frame else self.frame, low, high), self.flat)

    def _described(self, name: str) -> Any:
        for a in self.info.get("arrays", []):
            if a["name"] == name:
                return a
        self._problem()
        for a in (self.info.get("former") or {}).get("fields", ()):
            if a["name"] == name:
                return FormerArray(self.path, name, (self.shape[0], 1, self.shape[1]) if self.flat else self.shape, of_library(a["dtype"]))
        raise KeyError(f"{name} is not a field of {self.path}: it has {', '.join(self.fields)}")

    def _array(self, a: dict, off: int, low: int, high: int) -> RawArray:
        """The array of a field. off: cells of frame to leave out in y and x. low, high: planes of frame to include."""
        dtype, row, plane = of_library(a["dtype"]), a["row_pitch_bytes"], a["plane_pitch_bytes"]
        rows = 1 if self.flat else self.shape[1] - 2 * off
        shape = a["planes"] - a["frame_low"] - a["frame_high"] + low + high, rows, self.shape[-1] - 2 * off
        offset = a["offset_bytes"] + (a["frame_low"] - low) * plane + off * ((0 if self.flat else row) + dtype.itemsize)
        return RawArray(self.path, shape, dtype, offset, row, plane, a["name"], self._unchanged, self._hashes(a["buffer"]))

    def _hashes(self, buffer: str) -> Hashed | None:
        """The checksums of a Buffer; None without --integrity, and for a read-only field of a store that an older memext made."""
        if not self.info.get("integrity_unit_bytes"):
            return None
        if buffer not in self._hashed:
            begin = next(e["offset_bytes"] for e in self.info["extents"] if e["name"] == buffer)
            try:
                self._hashed[buffer] = Hashed(self.path, buffer, begin)
            except MemextError as error:
                if self._unchanged.now()[1] != self._unchanged.state:
                    self._unchanged.gone_on()
                if error.errno != errno.ENODATA or not buffer.startswith("field-"):
                    raise
                self._hashed[buffer] = None
        return self._hashed[buffer]

    def discard(self, no_lock: bool = False) -> None:
        """Gives the store up. Its file in a directory is removed; a file or block device may be overwritten from then on. A store that a run has continued
        or replaced since it was opened is left alone (MemextError). no_lock: works also on a file system without locks, if nothing else uses the store."""
        _core.discard(self.place_given, *_core.mark(self.info), no_lock)

    def link(self, path: Any, **options: Any) -> pathlib.Path:
        """Writes a small .h5 at `path`, and an .xdmf of the same name, that show the fields without a copy. Returns `path`; see memext.link."""
        return ACTIONS["link"](self, path, **options)

    def pyramid(self, path: Any, levels: int = 3, **options: Any) -> dict[str, list[Array]]:
        """Writes coarse copies, 2, 4 and 8 times smaller, for napari and ParaView; see memext.pyramid."""
        return ACTIONS["pyramid"](self, path, levels, **options)

    def __repr__(self) -> str:
        return f"<memext Store {self.path}: {self.state}, step {self.step}, fields {', '.join(self.fields)}>"

    def _repr_html_(self) -> str:
        return ACTIONS["store_html"](self)
