# SPDX-License-Identifier: BSD-3-Clause
"""Changes of the state between steps. The library makes all changes that a program asks for in one pass over the planes, when the run continues."""
from __future__ import annotations

import copy
import errno
import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _core
from .arrays import Array, RawArray, Rows
from .arrays.base import box_of, cells_in
from .errors import MemextError
from .exact import array_of
from .flat import of_user
from .identity import files_of
from .images import Images
from .reducing import source_of
from .series import AtStep
from .sources import Source, as_values, converted
from .values import Constant, Values

Planes = Mapping[str, np.ndarray]


def _state_of(path: Any) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


class Assignment:
    """An assignment u[z, y, x] = values, or u[y, x] = values. Indices count the cells of the frame too."""

    def __init__(self, field: str, key: Any, value: Any, shape: tuple[int, int, int], dtype: np.dtype, halo: tuple[int, int, int], own: Edits):
        """own: the changes of the run that the field belongs to."""
        self.field, self.halo = field, halo
        self.slices, drop, self.flip = box_of_users(key, shape, halo)
        self.extents = tuple(cells_in(s) for s in self.slices)
        self.reads: set[str] = {field}
        self.frame = any(s.start < h or s.stop > n - h for s, n, h in zip(self.slices, shape, halo)) and 0 not in self.extents
        asked = tuple(n for i, n in enumerate(self.extents) if i not in drop)
        self.files: dict[Any, tuple[int, ...]] = {}
        if isinstance(value, Rows):
            value = value.planes_of if value.planes_of.shape == self.extents else value[...]
        if isinstance(value, StateArray):  # as it is now; one of the same run changes while the new values are stored
            value = np.asarray(value) if value._edits or value._edits is own else value._stored
        if isinstance(value, Array) and tuple(value.shape) == self.extents:
            self.values: Any = value
            if getattr(value, "_check", None) is None:  # else it looks itself
                self.files = {path: _state_of(path) for path in files_of(value)}
            return
        cells = array_of(value, field)
        try:
            cells = np.broadcast_to(converted(cells.copy(), dtype, field), asked)
        except ValueError:
            raise MemextError(f"{field}: an array of shape {cells.shape} cannot be assigned to a part of shape {asked}: give an array of that shape", errno.EINVAL) from None
        self.values = np.broadcast_to(cells.reshape([1 if i in drop else n for i, n in enumerate(self.extents)]), self.extents)

    def change(self, z: int, planes: Planes, off: int, step: int) -> None:
        """Changes the planes at z, which counts from the first interior plane. off: cells of frame that the planes have."""
        (_, less_y, less_x), at, (zs, ys, xs) = (h - min(off, h) for h in self.halo), z + self.halo[0], self.slices
        if at < zs.start or at >= zs.stop or (at - zs.start) % zs.step != 0 or 0 in self.extents:
            return
        number = (at - zs.start) // zs.step
        for path, state in self.files.items():
            if _state_of(path) != state:
                raise MemextError(f"{path} has changed since it was assigned to {self.field}: its cells are read when the run continues, so leave it as it is "
                                  "until then", errno.ESTALE)
        cells = self.values[self.extents[0] - 1 - number if 0 in self.flip else number]
        plane, way = planes[self.field], tuple(slice(None, None, -1 if i in self.flip else 1) for i in (1, 2))
        plane[ys.start - less_y:ys.stop - less_y:ys.step, xs.start - less_x:xs.stop - less_x:xs.step] = converted(cells, plane.dtype, self.field)[way]


def box_of_users(key: Any, shape: tuple[int, int, int], halo: tuple[int, int, int]) -> tuple[list[slice], set[int], set[int]]:
    """box_of for the arrays of users, which have no middle axis in two dimensions."""
    if halo[1] > 0:
        return box_of(key, shape)
    (y, x), drop, flip = box_of(key, (shape[0], shape[2]))
    return [y, slice(0, 1, 1), x], {1, *(2 * i for i in drop)}, {2 * i for i in flip}


class Application:
    """A call of Run.apply: function(u, v, k, dt, z, ...) changes planes of fields or returns new ones. In two dimensions it gets rows, and y."""

    def __init__(self, function: Callable, state: Mapping[str, Any], fixed: Mapping[str, Any], params: Mapping[str, Any], frame: bool,
                 shape: tuple[int, int, int], halo: tuple[int, int, int]):
        self.function, self.frame, self.shape, self.halo, self.flat = function, frame, shape, halo, halo[1] == 0
        try:
            arguments = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            raise MemextError(f"the arguments of {function!r} have no names: give apply() a Python function", errno.EINVAL) from None
        self.names = [a.name for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD) and a.default is a.empty]
        self.params = params
        self.state = [n for n in self.names if n in state]
        self.fixed = [n for n in self.names if n in fixed]
        places = ["x", "y", "t"] if self.flat else ["x", "y", "z", "t"]
        unknown = [n for n in self.names if n not in {*state, *fixed, *params, *places}]
        if unknown or not self.state:
            raise MemextError(f"{getattr(function, '__name__', 'the function')} has the arguments {', '.join(self.names) or 'none'}. Arguments must be fields of the state "
                              f"({', '.join(state)}; at least one), read-only fields ({', '.join(fixed) or 'none'}), parameters ({', '.join(params) or 'none'}) "
                              f"or {', '.join(places)}", errno.EINVAL)
        self.reads = set(self.state)
        self.replaced: dict[str, Replacement | None] = {}  # read-only fields that had been given other values before

    def change(self, z: int, planes: Planes, off: int, step: int) -> None:
        nz, ny, nx = self.shape
        if not self.frame and not 0 <= z < nz:
            return
        (own_y, own_x), (off_y, off_x) = ([min(n, h) for h in self.halo[1:]] for n in (self.halo[0] if self.frame else 0, off))  # the frame that the function sees
        inside = (slice(off_y - own_y, off_y + ny + own_y), slice(off_x - own_x, off_x + nx + own_x))
        known = {n: self.params[n] for n in self.names if n in self.params} | {"t": step}
        rows, columns = np.arange(-own_y, ny + own_y), np.arange(-own_x, nx + own_x)
        known |= {"y": z, "x": columns} if self.flat else {"z": z, "y": rows[:, None], "x": columns[None, :]}
        known.update({name: planes[name][inside][0] if self.flat else planes[name][inside] for name in self.state + self.fixed})
        result = self.function(*(known[n] for n in self.names))
        if result is None:
            return
        several = result if isinstance(result, (tuple, list)) else (result,)
        if len(several) != len(self.state):
            raise MemextError(f"{getattr(self.function, '__name__', 'the function')} returns {len(several)} {'rows' if self.flat else 'planes'}: "
                              f"return {len(self.state)}, one for each of its fields of the state, {', '.join(self.state)}", errno.EINVAL)
        cells = [converted(c, known[n].dtype, n) for n, c in zip(self.state, several)]
        if len(cells) > 1:  # one may be part of another
            cells = [c.copy() for c in cells]
        for name, plane in zip(self.state, cells):
            try:
                known[name][...] = plane
            except ValueError:
                raise MemextError(f"{getattr(self.function, '__name__', 'the function')} returns a {'row' if self.flat else 'plane'} of shape {plane.shape} for "
                                  f"{name}: return shape {known[name].shape}", errno.EINVAL) from None


class Replacement:
    """An assignment run["k"] = value, which gives a read-only field other values."""
    frame = False

    def __init__(self, run: Any, field: str, value: Any):
        self.field, self.reads = field, set[str]()
        problem, h = run._problem, run.radius
        self.value = as_values(of_user(value, field) if problem.flat else value, field, h)
        if isinstance(self.value, str):
            raise MemextError(f"{field} cannot become {value!r}: give an array, a number or a function of x, y{'' if problem.flat else ', z'}", errno.EINVAL)
        framed = problem.framed(problem.shape)
        self.source = Source({problem.library_name(field): self.value}, {problem.library_name(field): problem.dtype_of(field)}, framed, problem.halo, run.frame)
        if isinstance(self.value, Values):
            self.value.begin(field, problem.flat, h)
            if isinstance(self.value, Constant):
                converted(self.value.value, problem.dtype_of(field), field)
            return
        shape, bare = tuple(self.value.shape), problem.fixed_radius == 0
        if shape == framed:
            self.source.frame = "included"
        elif shape != problem.shape or (run.frame == "included" and not bare):
            raise MemextError(f"{field} cannot become an array of shape {problem.told(shape)}: give shape {run.framed_shape}, with the frame of {h} cells"
                              + (f", or {run.shape}" if bare or run.frame != "included" else ""), errno.EINVAL)
        elif run.frame == "included":
            self.source.bare = {field}

    def plane(self, z: int) -> np.ndarray:
        """Plane z with its frame."""
        return self.source._plane(self.field, self.value, z, self.source.dtypes[self.field])

    def change(self, z: int, planes: Planes, off: int, step: int) -> None:
        """Changes nothing: the state stays as it is."""


class ReplacedArray(Array):
    """A read-only field whose new values are not stored yet."""

    def __init__(self, by: Replacement):
        super().__init__(by.source.shape, by.source.dtypes[by.field])
        self.name, self._by = by.field, by

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        planes = [np.array(self._by.plane(i)[y, x]) for i in range(z.start, z.stop, z.step)]
        return np.stack(planes) if planes else np.empty((0, cells_in(y), cells_in(x)), self.dtype)


class NewValues(Source):
    """The new values of all read-only fields that change at a step."""

    def __init__(self, replaced: Mapping[str, Replacement], run: Any):
        problem = run._problem
        super().__init__({n: a.value for n, a in replaced.items()}, {n: a.source.dtypes[n] for n, a in replaced.items()}, problem.framed(problem.shape), problem.halo, run.frame)
        self._replaced = replaced

    def _plane(self, name: str, value: Any, z: int, dtype: np.dtype) -> np.ndarray:
        return self._replaced[name].plane(z)


class Edits:
    """The changes since the last commit, in order, as the library's mx_edit. error: the first exception of a callback."""

    def __init__(self, run: Any):
        self._run = run
        self.asked: list[Any] = []
        self.under_way: list[Any] = []  # what the library is working on
        self._step: int | None = None  # at which a former process of the program has changed the state,
        self._times = 0  # so often, as far as this one has not come to it yet
        self._ghost = False  # it has said again what is in the store
        self.error: BaseException | None = None
        self.source: Source | None = None  # of read-only fields, while the run goes on
        self._during: Callable[[str], Array | None] = lambda name: None  # where these lie meanwhile

    def __bool__(self) -> bool:
        return bool(self.asked)

    # ---- when

    def ask(self, call: Callable[[], None]) -> None:
        run = self._run
        if run._busy:
            raise MemextError("the run is computing: change its state between steps, in the body of the loop over run.steps(...)", errno.EBUSY)
        when = run._edits_are()
        if when == "begin":
            raise MemextError("the run has no state yet: give these values as initial values to Run, or call advance(0) first", errno.EINVAL)
        if when == "now":
            call()
        elif self.are_replayed():
            self._ghost = True
            warnings.warn(f"an earlier process has already changed step {run.step} of {run._place()}, and those changes are stored. This change is taken to be one of "
                          "them and is not made again. To change that step again, begin another run with memext.open(device)[NAME]", RuntimeWarning, stacklevel=4)

    def found(self, info: Mapping[str, Any]) -> None:
        """Notes the changes in the store that the run resumes."""
        self._step, self._times = info["edited_step"], info["edits_there"]

    def are_replayed(self) -> bool:
        """Does the store have the changes that the program makes now?"""
        return self._times > 0 and self._run.step == self._step

    def boundary(self) -> None:
        """Ends the changes of a step: the earlier process committed them here."""
        self._times -= self._ghost
        self._ghost = False

    # ---- what

    def assign(self, field: str, key: Any, value: Any) -> None:
        problem = self._run._problem
        self.asked.append(Assignment(field, key, value, problem.framed(problem.shape), problem.dtype_of(field), problem.halo, self))

    def apply(self, function: Callable, frame: bool) -> None:
        problem = self._run._problem
        params = AtStep(self._run.params.now(), self._run.step)
        one = Application(function, problem.stored(), problem.fixed, params, frame, problem.shape, problem.halo)
        one.replaced = {n: self.replaced(n) for n in one.fixed}
        self.asked.append(one)

    def replace(self, field: str, value: Any) -> None:
        problem = self._run._problem
        if field not in problem.fixed:
            way = f'change it with run["{field}"][...] = a' if field in problem.stored() else f"the kernel's are {', '.join(problem.fixed) or 'none'}"
            raise MemextError(f"{field} is not a read-only field: {way}", errno.EINVAL)

        def ask() -> None:
            if field not in self._run.store:
                raise MemextError(f"the store does not hold {field}, which is read from its own file or DRAM: to change it between steps, make the Run with "
                                  f"field_copy=True and an array of all cells", errno.ENOTSUP)
            self.asked.append(Replacement(self._run, field, value))

        self.ask(ask)

    def replaced(self, field: str) -> Replacement | None:
        return next((a for a in reversed(self.asked) if isinstance(a, Replacement) and a.field == field), None)

    def begin(self) -> list[Any]:
        """Hands the present changes to the library."""
        self.error, self.source, self.under_way = None, None, list(self.asked)
        return self.under_way

    def end(self, committed: bool, params: Mapping[str, float]) -> None:
        if committed:
            self._run.params.committed(params)
            self.asked = [a for a in self.asked if a not in self.under_way]
        self.under_way = []

    def reads(self) -> set[str]:
        return set().union(*(a.reads for a in self.asked))

    def change(self, z: int, planes: dict[str, np.ndarray], off: int, where: Callable[[str], Array | None]) -> None:
        """Makes the changes in plane z. where: gives read-only fields that the store has."""
        for one in self.under_way or self.asked:
            fixed = {n: self._fixed(n, z, off, by, where, one.frame) for n, by in getattr(one, "replaced", {}).items()}
            one.change(z, {**planes, **fixed}, off, self._run.step)

    def _fixed(self, name: str, z: int, off: int, by: Replacement | None, where: Callable[[str], Array | None], frame: bool) -> np.ndarray:
        """Plane z of a read-only field with `off` cells of frame, as an array that cannot be written to."""
        run, h, stored = self._run, self._run.radius, where(name)
        value = run._problem.fields[name]
        if by is not None:
            plane = by.plane(z + h)
        elif stored is not None:
            plane = stored.plane(z + h)
        else:
            plane = source_of(run, name, value)._plane(name, value, z + h, run._problem.dtype_of(name))
        if frame and name in run._problem.bare and by is None:
            raise MemextError(f"apply(frame=True) needs {'rows' if run._problem.flat else 'planes'} with their frame, and {name} has none: give {name} a frame "
                              f"of {h} cells", errno.EINVAL)
        less = [n - min(off, n) for n in run._problem.halo[1:]]
        plane = plane[tuple(slice(n, extent - n) for n, extent in zip(less, plane.shape))].copy()
        plane.flags.writeable = False
        return plane

    def plane(self, field: str, z: int, stored: Callable[[str], Array], images: Images | None) -> np.ndarray:
        """A plane of the state with its frame, after the changes."""
        if images is not None:
            return images.plane(field[:-4] if field.endswith(("_old", ".old")) and field not in self._run._problem.state else field, z,
                                lambda z: self.plane(field, z, stored, None))
        h = self._run.radius
        names = {field, *self.reads()}
        planes = {n: stored(n).plane(z).copy() for n in names}
        self.change(z - h, planes, h, stored)
        return planes[field]

    # ---- as the library calls it

    @property
    def frame(self) -> bool:
        return any(a.frame for a in self.under_way)

    def struct(self) -> tuple[Any, list]:
        ffi = _core.ffi
        handle = ffi.new_handle(self)
        made = ffi.new("struct mx_edit *", {"size": ffi.sizeof("struct mx_edit"), "context": handle, "frame": self.frame})
        alive = [handle, made]
        replaced = {a.field: a for a in self.under_way if isinstance(a, Replacement)}
        if any(not isinstance(a, Replacement) for a in self.under_way):
            made.planes = _core.lib.mxp_edit_planes
        if replaced:
            self.source = NewValues(replaced, self._run)
            source, more = self.source.struct()
            names = [ffi.new("char[]", n.encode()) for n in replaced]
            listed = ffi.new("char *[]", [*names, ffi.NULL])
            made.source, made.fields = source, ffi.cast("const char *const *", listed)
            alive += [source, more, names, listed]
        self._during = self._open_fixed()
        return made, alive

    def _open_fixed(self) -> Callable[[str], Array | None]:
        """Opens the read-only fields of the store. The run holds the store now, and does not write to them."""
        store = self._run.store
        found = {n: copy.copy(store.planes(n)) for a in self.asked for n in getattr(a, "replaced", {}) if n in store}
        for array in found.values():
            array._check = None
        return found.get

    def planes(self, boxes: Any, count: int) -> None:
        problem = self._run._problem
        names = {of_library: name for name, of_library in problem.stored().items()}
        off = problem.radius if self.frame else 0
        there, planes = {}, {}  # the library's memory, which nobody keeps, and what the program may keep
        try:
            for i in range(count):
                name = names[_core.ffi.string(boxes[i].field).decode()]
                there[name] = _core.box_array(boxes[i], problem.dtype_of(name))[0]
                planes[name] = there[name].copy()
            self.change((boxes[0].y0 if problem.flat else boxes[0].z0) - off, planes, off, self._during)
            for name, plane in planes.items():
                there[name][...] = plane
        finally:
            there.clear()


class StateArray(RawArray):
    """A field of the state between two steps of its run. The store gets what is assigned to a part of it when the run continues."""

    def __init__(self, stored: RawArray, edits: Edits, field: str, fields: Callable[[str], Array], images: Images | None):
        """images: given if some sides are not fixed."""
        self.__dict__.update(stored.__dict__)
        self._stored, self._edits, self._field, self._fields, self._images = stored, edits, field, fields, images
        self.in_place = stored.in_place and not edits

    def read(self, z: slice, y: slice, x: slice) -> np.ndarray:
        if not self._edits:
            return super().read(z, y, x)
        planes = [self._edits.plane(self._field, i, self._fields, self._images)[y, x] for i in range(z.start, z.stop, z.step)]
        return np.stack(planes) if planes else np.empty((0, cells_in(y), cells_in(x)), self.dtype)

    def __reduce__(self) -> Any:
        """Copies the committed field; nothing can be assigned to the copy."""
        if self._edits:
            raise TypeError(f"{self.name} has changes that are not committed: copy it after the run has continued")
        return copy.copy, (self._stored,)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Assigns values to a part. key: the indices of users, [z, y, x] or [y, x]."""
        if self._check is not None:
            self._check.before()
        self._edits.ask(lambda: self._edits.assign(self._field, key, value))
