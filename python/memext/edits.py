# SPDX-License-Identifier: BSD-3-Clause
"""Changes of the state between steps: what a program asks for, as one pass over the planes that the library makes when the run goes on."""
from __future__ import annotations

import errno
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _core
from .arrays import Array, RawArray
from .arrays.base import box_of, cells_in
from .errors import MemextError
from .reducing import source_of
from .series import AtStep
from .sources import converted

Planes = Mapping[str, np.ndarray]


class Assignment:
    """u[z, y, x] = values. Slices are of the array with its frame."""

    def __init__(self, field: str, key: Any, value: Any, shape: tuple[int, int, int], dtype: np.dtype, radius: int):
        self.field, self.radius = field, radius
        self.slices, drop, self.flip = box_of(key, shape)
        self.extents = tuple(cells_in(s) for s in self.slices)
        self.reads: set[str] = {field}
        self.frame = any(s.start < radius or s.stop > n - radius for s, n in zip(self.slices, shape)) and 0 not in self.extents
        asked = tuple(n for i, n in enumerate(self.extents) if i not in drop)
        if isinstance(value, Array) and tuple(value.shape) == self.extents:
            self.values: Any = value
            return
        cells = np.asarray(value)
        try:
            cells = np.broadcast_to(converted(cells.copy(), dtype, field), asked)
        except ValueError:
            raise MemextError(f"{field} is given {cells.shape} cells; the part that is assigned to has {asked}", errno.EINVAL) from None
        self.values = np.broadcast_to(cells.reshape([1 if i in drop else n for i, n in enumerate(self.extents)]), self.extents)

    def change(self, z: int, planes: Planes, off: int) -> None:
        """z: from the first plane of the interior on; off: cells of frame that the planes have."""
        at, (zs, ys, xs), less = z + self.radius, self.slices, self.radius - off
        if at < zs.start or at >= zs.stop or (at - zs.start) % zs.step != 0 or 0 in self.extents:
            return
        number = (at - zs.start) // zs.step
        cells = self.values[self.extents[0] - 1 - number if 0 in self.flip else number]
        plane, way = planes[self.field], tuple(slice(None, None, -1 if i in self.flip else 1) for i in (1, 2))
        plane[ys.start - less:ys.stop - less:ys.step, xs.start - less:xs.stop - less:xs.step] = converted(cells, plane.dtype, self.field)[way]


class Application:
    """function(u, v, k, dt, z, ...): planes of fields, which it changes or returns others of."""

    def __init__(self, function: Callable, state: Mapping[str, Any], fixed: Mapping[str, Any], params: Mapping[str, Any], frame: bool,
                 shape: tuple[int, int, int], radius: int):
        self.function, self.frame, self.shape, self.radius = function, frame, shape, radius
        arguments = inspect.signature(function).parameters.values()
        self.names = [a.name for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD) and a.default is a.empty]
        self.params = params
        self.state = [n for n in self.names if n in state]
        self.fixed = [n for n in self.names if n in fixed]
        unknown = [n for n in self.names if n not in {*state, *fixed, *params, "x", "y", "z", "t"}]
        if unknown or not self.state:
            raise MemextError(f"{getattr(function, '__name__', 'the function')} has the arguments {', '.join(self.names) or 'none'}; they are names of the state "
                              f"({', '.join(state)}), of read-only fields ({', '.join(fixed) or 'none'}), of parameters ({', '.join(params) or 'none'}), "
                              "and x, y, z, t", errno.EINVAL)
        self.reads = {*self.state, *self.fixed}

    def change(self, z: int, planes: Planes, off: int, step: int) -> None:
        nz, ny, nx = self.shape
        own = self.radius if self.frame else 0  # the frame that the function sees
        if not self.frame and not 0 <= z < nz:
            return
        inside = (slice(off - own, off + ny + own), slice(off - own, off + nx + own))
        known = {**{n: self.params[n] for n in self.names if n in self.params}, "z": z, "t": step, "y": np.arange(-own, ny + own)[:, None], "x": np.arange(-own, nx + own)[None, :]}
        known.update({name: planes[name][inside] for name in self.state + self.fixed})
        result = self.function(*(known[n] for n in self.names))
        if result is None:
            return
        several = result if isinstance(result, (tuple, list)) else (result,)
        if len(several) != len(self.state):
            raise MemextError(f"{getattr(self.function, '__name__', 'the function')} returns {len(several)} planes; it has {len(self.state)} of the state: "
                              f"{', '.join(self.state)}", errno.EINVAL)
        cells = [converted(c, known[n].dtype, n) for n, c in zip(self.state, several)]
        if len(cells) > 1:  # one may be part of another
            cells = [c.copy() for c in cells]
        for name, plane in zip(self.state, cells):
            try:
                known[name][...] = plane
            except ValueError:
                raise MemextError(f"{getattr(self.function, '__name__', 'the function')} returns a plane of {plane.shape} for {name}, which has {known[name].shape}",
                                  errno.EINVAL) from None


class Edits:
    """What is asked for since the last commit, in order; the library's mx_edit. error: the first exception of a callback."""

    def __init__(self, run: Any):
        self._run = run
        self.asked: list[Any] = []
        self.error: BaseException | None = None

    def __bool__(self) -> bool:
        return bool(self.asked)

    def assign(self, field: str, key: Any, value: Any) -> None:
        problem = self._run._problem
        self.asked.append(Assignment(field, key, value, self._run.framed_shape, problem.dtype_of(field), problem.radius))

    def apply(self, function: Callable, frame: bool) -> None:
        problem = self._run._problem
        params = AtStep(self._run.params.now(), self._run.step)
        self.asked.append(Application(function, problem.stored(), problem.fixed, params, frame, self._run.shape, problem.radius))

    def done(self, some: list[Any]) -> None:
        self.asked = [a for a in self.asked if a not in some]

    def reads(self) -> set[str]:
        return set().union(*(a.reads for a in self.asked))

    def change(self, z: int, planes: dict[str, np.ndarray], off: int) -> None:
        for name in self.reads() - set(planes):
            planes[name] = self._fixed(name, z, off)
        for one in self.asked:
            if isinstance(one, Application):
                one.change(z, planes, off, self._run.step)
            else:
                one.change(z, planes, off)

    def _fixed(self, name: str, z: int, off: int) -> np.ndarray:
        """Plane z of a read-only field, as it was given, with so many cells of frame. Nobody changes it."""
        run, h = self._run, self._run.radius
        value = run._problem.fields[name]
        if isinstance(value, str):
            raise MemextError(f"{name} is the library's {value!r}, which a function that changes the state cannot read: give an array", errno.ENOTSUP)
        plane = source_of(run, name, value)._plane(name, value, z + h, run._problem.dtype_of(name))
        plane = plane[h - off:plane.shape[0] - h + off, h - off:plane.shape[1] - h + off].copy()
        plane.flags.writeable = False
        return plane

    def plane(self, field: str, z: int, stored: Callable[[str], Array]) -> np.ndarray:
        """A plane with its frame, changed."""
        h = self._run.radius
        names = {field, *(self.reads() - set(self._run._problem.fixed))}
        planes = {n: stored(n).plane(z).copy() for n in names}
        self.change(z - h, planes, h)
        return planes[field]

    # ---- as the library calls it

    @property
    def frame(self) -> bool:
        return any(a.frame for a in self.asked)

    def struct(self) -> tuple[Any, list]:
        handle = _core.ffi.new_handle(self)
        made = _core.ffi.new("struct mx_edit *", {"size": _core.ffi.sizeof("struct mx_edit"), "context": handle, "planes": _core.lib.mxp_edit_planes,
                                                  "frame": self.frame})
        return made, [handle, made]

    def planes(self, boxes: Any, count: int) -> None:
        problem = self._run._problem
        names = {of_library: name for name, of_library in problem.stored().items()}
        off = problem.radius if self.frame else 0
        planes = {}
        for i in range(count):
            name = names[_core.ffi.string(boxes[i].field).decode()]
            planes[name] = _core.box_array(boxes[i], problem.dtype_of(name))[0]
        self.change(boxes[0].z0 - off, planes, off)


class StateArray(RawArray):
    """A field of the state between two steps of its run: what is assigned to a part of it is in the store when the run goes on."""

    def __init__(self, stored: RawArray, edits: Edits, field: str, fields: Callable[[str], Array]):
        self.__dict__.update(stored.__dict__)
        self._edits, self._field, self._fields = edits, field, fields
        self.in_place = stored.in_place and not edits

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        if not self._edits:
            return super().read(z, y, x)
        planes = [self._edits.plane(self._field, i, self._fields)[y, x] for i in range(z.start, z.stop, z.step)]
        return np.stack(planes) if planes else np.empty((0, cells_in(y), cells_in(x)), self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._check is not None:
            self._check.before()
        self._edits._run._edit(lambda: self._edits.assign(self._field, key, value))
