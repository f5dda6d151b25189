# SPDX-License-Identifier: BSD-3-Clause
"""Runs: a kernel or a built-in stencil, its fields, and steps of time that can be watched, stopped and gone on with."""
from __future__ import annotations

import errno
import operator
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
import types
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable

import numpy as np

from . import _core
from .arrays import Array, ObjectArray, RawArray, Store
from .celltypes import type_name
from .errors import KernelError, MemextError
from .kernel import Kernel, Reduced, Reduction
from .reducing import reduce_store
from .report import Plan, Report
from .sources import FRAMES, Sink, Source, Values, as_values, file_option, files_of, framed_shape

RADII = {"star7": 1, "edge19": 1, "box27": 1, **{f"star{6 * h + 1}": h for h in range(2, 9)}}
ANONYMOUS = ("dram", "swap")
_POLL_S = 0.1
_PATIENCE_S = 3.0  # after Ctrl-C, with what prepares
_NOISE = 1e-12  # of a mean of planes, as in runtime/run/norms.c


class _Job:
    """One mx_run: options, callbacks, and what they need while it lives."""

    def __init__(self, options: list[str], source: Source | None = None, sink: Sink | None = None):
        ffi, lib = _core.ffi, _core.lib
        self.source, self.sink, self.remarks, self.closed, self.left = source, sink, [], False, False
        words = [ffi.new("char[]", os.fsencode(o)) for o in options]
        handle = ffi.new_handle(self)
        given = ffi.new("struct mx_run_options *", {"size": ffi.sizeof("struct mx_run_options"), "remark": lib.mxp_remark, "context": handle})
        array = ffi.new("char *[]", [*words, ffi.NULL])
        given.options = ffi.cast("const char *const *", array)
        self._alive: list[Any] = [words, handle, array, given]
        if source is not None:
            made, more = source.struct()
            given.source = made
            self._alive += [made, more]
        if sink is not None:
            made, more = sink.struct()
            given.sink = made
            self._alive += [made, more]
        why, out = _core.new_why(), ffi.new("mx_run **")
        _core.check(lib.mx_run_open(given, why, out), why)
        self.run = out[0]
        self.progress = ffi.new("struct mx_run_progress *", {"size": ffi.sizeof("struct mx_run_progress"), "committed_step": -1})

    def _raise(self, code: int, why: Any) -> None:
        for side in (self.source, self.sink):
            if side is not None and side.error is not None:
                raise side.error
        try:
            _core.check(code, why)
        except MemextError as error:
            sentence = error.sentence.replace("or begin anew: with force, without resume", "or begin anew: resume=False and force=True")
            raise type(error)(sentence, error.errno, error.status) from None

    def compare(self) -> None:
        why = _core.new_why()
        self._raise(_core.lib.mx_run_compare(self.run, why), why)

    def prepare(self) -> None:
        """On a thread, so that Ctrl-C is heard. What does not end then waits for something that may never come, and is left to itself."""
        why, codes, prepared = _core.new_why(), [], threading.Event()

        def work() -> None:
            codes.append(_core.lib.mx_run_prepare(self.run, why))
            prepared.set()

        threading.Thread(target=work, daemon=True).start()
        try:
            while not prepared.wait(_POLL_S):
                pass
        except KeyboardInterrupt:
            _core.lib.mx_run_stop(self.run)
            self.left = not prepared.wait(_PATIENCE_S)
            raise
        self._raise(codes[0], why)

    def start(self) -> None:
        why = _core.new_why()
        _core.check(_core.lib.mx_run_start(self.run, why), why)

    def wait(self, seconds: float) -> tuple[int, Any]:
        why = _core.new_why()
        return _core.lib.mx_run_wait(self.run, seconds, why, self.progress), why

    def finish(self, watch: Callable[[Any], None]) -> None:
        """Until the run ends; Ctrl-C asks it to stop and is raised when it has committed."""
        try:
            while True:
                code, why = self.wait(_POLL_S)
                watch(self.progress)
                if code != 0:
                    break
        except KeyboardInterrupt:
            _core.lib.mx_run_stop(self.run)
            print("\nmemext: stops when what is under way is committed", file=sys.stderr, flush=True)
            code, why, late = 0, None, time.monotonic() + _PATIENCE_S
            while code == 0:  # a second Ctrl-C does not wait
                code, why = self.wait(_POLL_S)
                if code == 0 and time.monotonic() > late and _core.ffi.string(self.progress.phase) == b"prepare":
                    self.left = True
                    raise KeyboardInterrupt("interrupted while it prepared") from None
            step = self.progress.committed_step
            if code < 0 and code != -errno.EINTR:
                self._raise(code, why)
            kept = f"step {step} is committed: the same run goes on from there" if step >= 0 else "nothing was committed yet"
            raise KeyboardInterrupt(kept) from None
        except BaseException:  # of the caller's progress: it is what the caller shall see, and only an ended run has a report
            _core.lib.mx_run_stop(self.run)
            while self.wait(_POLL_S)[0] == 0:
                pass
            raise
        if code < 0:
            self._raise(code, why)

    def report(self) -> dict:
        return _core.take_json(_core.lib.mx_run_report, self.run)

    def close(self) -> None:
        if not self.closed and not self.left:
            self.closed = True
            _core.lib.mx_run_close(self.run)


class _Progress:
    """A bar of tqdm if it is there, else lines on a terminal, or a function of the caller's: function(step, steps, phase)."""

    def __init__(self, wanted: Any, first: int, total: int):
        self.call = wanted if callable(wanted) else None
        self.bar: Any = None
        self.lines = bool(wanted) and self.call is None
        self.total, self.shown = total, first
        if self.lines:
            try:
                from tqdm.auto import tqdm
                self.bar = tqdm(total=total, initial=first, unit="step", file=sys.stderr)
            except ImportError:
                self.lines = sys.stderr.isatty()

    def at(self, step: float, phase: str) -> None:
        step = min(max(step, self.shown), self.total)
        if self.call is not None:
            self.call(step, self.total, phase)
        elif self.bar is not None:
            self.bar.set_postfix_str(phase, refresh=False)
            self.bar.update(int(step) - int(self.shown))
        elif self.lines:
            print(f"\r{phase} {step:.0f}/{self.total}\x1b[K", end="", file=sys.stderr, flush=True)
        self.shown = max(self.shown, int(step))

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
        elif self.lines:
            print(file=sys.stderr)


def _word(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return " ".join(map(_word, value))
    return os.fspath(value) if isinstance(value, os.PathLike) else repr(value) if isinstance(value, float) else str(value)


def _criterion(name: str, value: Any) -> str:
    """0.01, or {"below": 0.01, "floor": 1e-12} or {"above": 5.0}, as the library's word."""
    if not isinstance(value, Mapping):
        return _word(value)
    limits = [k for k in ("below", "above") if k in value]
    unknown = [str(k) for k in value if k not in ("below", "above", "floor")]
    if len(limits) != 1 or unknown:
        raise MemextError(f"until of {name}: {dict(value)!r}: one of below and above is needed, and floor may be given", errno.EINVAL)
    words = [_word(value[limits[0]]), *(["above"] if limits[0] == "above" else [])]
    return ",".join(words + ([f"floor={_word(value['floor'])}"] if value.get("floor") else []))


_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def _size(value: Any) -> int:
    """Bytes of "16GiB" or a number; the library refuses what is no size."""
    text = str(value).strip().lower().replace("ib", "")
    number = text.rstrip("bkmgt ")
    try:
        return int(float(number) * _UNITS[text[len(number):].strip()])
    except (KeyError, ValueError):
        return _core.dram_bytes()


_PATHS = ("sources", "probes", "timeline", "trace", "json", "calibration")
_NAMED_PATHS = ("source", "input", "output", "field")  # NAME=FILE, or a FILE alone


def _absolute(name: str, value: Any, directory: str) -> Any:
    """An option whose file is named from the directory that the run was made in; others as they are."""
    if isinstance(value, bytes) or isinstance(value, os.PathLike):
        value = os.fsdecode(value)
    if name in _NAMED_PATHS and isinstance(value, Mapping):
        return {k: _absolute(name, v, directory) for k, v in value.items()}
    if name in _NAMED_PATHS and isinstance(value, (list, tuple)):
        return [_absolute(name, v, directory) for v in value]
    if not isinstance(value, str) or not value:
        return value
    if name in _PATHS and value != "-" or name == "plan" and os.path.isfile(os.path.join(directory, value)):
        return os.path.join(directory, value)
    if name in _NAMED_PATHS and value != "-":
        field, equals, file = value.partition("=")
        return f"{field}={os.path.join(directory, file)}" if equals and "/" not in field else os.path.join(directory, value)
    every, colon, rest = value.partition(":")
    return f"{every}:{os.path.join(directory, rest)}" if name == "snapshot" and colon else value


def _options(given: Mapping[str, Any]) -> list[str]:
    """Keywords as the library's words: commit_every=30, verify=True, block=(64, 64, 8), side={"x": "periodic"}, source=[...]."""
    out = []
    for key, value in given.items():
        name = key.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(name)
        elif name == "until" and isinstance(value, Mapping):
            out += [f"until={k}={_criterion(k, v)}" for k, v in value.items()]
        elif isinstance(value, Mapping):
            out += [f"{name}={k}={_word(v)}" for k, v in value.items()]
        elif name == "coef":
            out.append(f"{name}={','.join(map(_word, value)) if isinstance(value, (tuple, list)) else value}")
        elif isinstance(value, (tuple, list)) and name in ("source", "side", "param", "field", "input", "init", "output"):
            out += [f"{name}={_word(v)}" for v in value]
        else:
            out.append(f"{name}={_word(value)}")
    return out


class Run:
    """A computation: a kernel (memext.kernel, a C file, or None for the built-in `stencil`), what its fields begin with, and options.

        with memext.Run(heat, u="u0.npy", k=k, device="/scratch", dram="16GiB") as run:
            run.advance(1000, progress=True)
            run["u"].save("u.h5")

    Fields, by name (u, c, ...; the step before of leapfrog kernels as NAME_old): an array in memory, a file or store (memext.open, or its
    path), anything with shape, dtype and slices, a number, memext.ramp, a function of x, y, z, or the name of one of the library's
    ("random", "gauss", "linear", "corner", "zero"). frame: "included": arrays have the frame of `radius` cells on every side (the default);
    "edge", "mirror", "periodic" or a number: they have none, and this makes it. shape: interior cells (nz, ny, nx), where no array says.

    device: the directory, file (a new one ends in .memext or .store) or block device of the store; None: a directory that is made beside the program and
    goes with the run, or, where nobody ends that, with the last of the arrays and stores that it has handed out. Paths are of the directory that the
    program is in when it makes the run.
    resume: "auto" goes on with a store of the same problem that is there, and refuses another's; True demands one; False begins anew (with force=True
    whatever is there). The same problem: all that decides bits, from the kernel to what the fields begin with, arrays by their cells, large files by
    name, size, time and a sample. The number of steps, plans and outputs may be others. keep: the store stays.
    dtype: of the state, "f8" or "f4", or by field. params: of the kernel. Other keywords are the options of memext(1), with _ for -:
    dram, threads, backend, algorithm, commit_every, side, source, probes, verify, force ...

    reductions: memext.reduce functions that the run takes along with its steps, without a pass of their own, at the options check=EVERY and
    until={"flux-spread": 0.01}, which ends it; they are of the state that the check's step is computed from. report["norms"] has them.
    A criterion is met at most its value. {"above": 5.0} is met at least that; {"below": 0.01, "floor": 1e-12} makes a spread relative to the
    floor where the mean of the planes is smaller (Reduced.spread says what a spread is).

    nonfinite: "end": a state with cells that are NaN or infinite is not committed, and ends the run with memext.NotFinite; "ignore": they are there on
    purpose. report["nonfinite_cells"] counts them. The frame and read-only fields are not looked at.

    Leaving `with` normally removes the store unless keep; after an exception, Ctrl-C too, it stays, and the same program goes on with it. Nobody's
    state is removed, shown or gone on with but the one that this run left."""

    def __init__(self, kernel: Any = None, *, device: Any = None, shape: tuple[int, int, int] | None = None, dtype: Any = "f8",
                 params: Mapping[str, float] | None = None, frame: Any = "included", resume: Any = "auto", keep: bool = False,
                 stencil: str | None = None, reductions: Iterable[Reduction] = (), **fields_and_options: Any):
        self._wish = types.SimpleNamespace(keep=keep)
        self.kernel, self.frame, self.resume = kernel, frame, resume
        self.params, self.reductions = dict(params or {}), tuple(reductions)
        self.step = 0
        self.remarks: list[str] = []
        self.reports: list[Report] = []
        self._means: dict[Reduction, float] = {}
        self._given, self._stencil, self._temporary, self._over, self._worked = fields_and_options, stencil, None, False, False
        self._memory: dict[str, np.ndarray] | None = None
        self._process = os.getpid()
        self._mark: tuple[int, int] | None = None  # of the state that this run left, or found
        self._identities: dict[str, int] = {}
        self._left = False  # it has left a state itself: what it began with is needed no more
        self._directory = os.getcwd()  # which all that has no absolute path is in, whatever the program does later
        self._dtype, self._device, self._shape = dtype, device and os.path.join(self._directory, os.fsdecode(device)), shape
        if isinstance(frame, str) and frame not in FRAMES or isinstance(frame, bool) or not isinstance(frame, (str, int, float, np.number)):
            raise MemextError(f"frame={frame!r}: {', '.join(FRAMES)} or a number are needed", errno.EINVAL)
        if not isinstance(resume, (bool, np.bool_)) and resume != "auto":
            raise MemextError(f"resume={resume!r}: 'auto', True or False is needed", errno.EINVAL)
        for reduction in self.reductions:
            if not isinstance(reduction, Reduction):
                raise KernelError(f"{reduction!r} is no reduction: decorate the function with memext.reduce")
        self._take_kernel()
        self._take_fields()
        self.backend = self._extra.get("backend")
        if self.backend in ANONYMOUS and device is not None:
            raise MemextError(f"the Buffers of backend {self.backend} lie in memory: leave device out", errno.EINVAL)

    # ---- what is asked for

    def _take_kernel(self) -> None:
        given = self._given
        if self.kernel is None:
            name = self._stencil or "star7"
            if name not in RADII:
                raise MemextError(f"stencil '{name}' is not known: {', '.join(RADII)}", errno.EINVAL)
            self.radius, self._fixed_radius = RADII[name], 0
            self._state, self._fixed = {"u": type_name(self._dtype)}, {}
            self._names = ["u"]
            return
        if self._stencil is not None:
            raise MemextError("a kernel and stencil exclude each other: the kernel says what is computed", errno.EINVAL)
        if not isinstance(self.kernel, Kernel):
            raise MemextError(f"{self.kernel!r} is no kernel: decorate the function with memext.kernel", errno.EINVAL)
        k = self.kernel
        unknown = [p for p in self.params if p not in k.params and not any(p in r.params for r in self.reductions)]
        if unknown:
            raise MemextError(f"{', '.join(unknown)} is no parameter of {k.name}: it has {', '.join(k.params) or 'none'}", errno.EINVAL)
        missing = [n for n in k.state + k.partner + k.fixed if n not in given]
        if missing:
            raise MemextError(f"{k.name} needs values of {', '.join(missing)}: {missing[0]}=ARRAY, FILE or number", errno.EINVAL)
        unknown = [n for n in self._dtype if n not in k.state + k.partner] if isinstance(self._dtype, Mapping) else []
        if unknown:
            raise MemextError(f"dtype names {', '.join(map(str, unknown))}: the state of {k.name} is {', '.join(k.state + k.partner)}", errno.EINVAL)
        before = [f"{n}_old" for n in k.state if f"{n}_old" in given]  # the step before, where no field of the kernel is called so
        self._names = k.state + k.partner + [n for n in before if not k.has_field(n)] + k.fixed

    def _take_fields(self) -> None:
        given = dict(self._given)
        k: Kernel | None = self.kernel
        if k is None and "u" not in given:
            given["u"] = given.pop("init", "random")
        fields: dict[str, Any] = {}
        for name in self._names:
            fields[name] = as_values(given.pop(name), name, 1)
        self._extra = {name: _absolute(name.replace("_", "-"), value, self._directory) for name, value in given.items()}
        if k is not None:
            state = type_name(self._dtype.get(k.state[0], "f8") if isinstance(self._dtype, Mapping) else self._dtype)
            types = {n: _field_type(fields[n]) or (state if k._fixed[n] is None else None) for n in k.fixed}
            self.code = k.code_with(self.reductions, self._dtype, **types)
            self.radius, self._fixed_radius = self.code.radius, self.code.fixed_radius
            self._state = {n: self.code.dtypes[n] for n in k.state + k.partner}
            self._fixed = {n: self.code.dtypes[n] for n in k.fixed}
            for n in self._names:
                if not k.has_field(n):
                    if self.code.form != "leapfrog":
                        raise MemextError(f"{n}: {k.name} reads no step before (its form is {self.code.form})", errno.EINVAL)
                    self._state[n] = self.code.dtypes[n[:-4]]
        for value in fields.values():
            if hasattr(value, "frame") and isinstance(value, Values):
                value.frame = self.radius
        self._fields = fields
        self.shape = self._interior(fields)

    def _interior(self, fields: dict[str, Any]) -> tuple[int, int, int]:
        """Interior cells (nz, ny, nx), from what says them; the rest has to agree."""
        h, found, who = self.radius, None, ""
        if self._shape is not None:
            try:
                found, who = tuple(operator.index(n) for n in self._shape), "shape"
            except TypeError as error:
                raise MemextError(f"shape={self._shape!r}: three whole numbers (nz, ny, nx) are needed: {error}", errno.EINVAL) from None
            if len(found) != 3:
                raise MemextError(f"shape={self._shape!r} has {len(found)} of the three whole numbers (nz, ny, nx)", errno.EINVAL)
        order = [n for n in self._names if n in self._state] + [n for n in self._names if n not in self._state]
        self._bare = set()
        for name in order:
            shape = framed_shape(fields[name], h, self.frame)
            if shape is None:
                continue
            interior = tuple(n - 2 * h for n in shape)
            bare = name in self._fixed and self._fixed_radius == 0 and self.frame == "included"
            if found is None:
                found, who = interior, name
            elif bare and interior != found and tuple(shape) == found:
                self._bare.add(name)
            elif interior != found:
                raise MemextError(f"{name} has the shape {tuple(fields[name].shape)}; {who} says {found} interior cells, which is "
                                  f"{tuple(n + 2 * h for n in found)} with the frame of {h}", errno.EINVAL)
        if found is None:
            raise MemextError("no grid: give shape=(nz, ny, nx), the interior cells, or an array", errno.EINVAL)
        if min(found) < 1:
            raise MemextError(f"{who} leaves {found} interior cells within a frame of {h}: every extent must be at least 1", errno.EINVAL)
        return found  # type: ignore[return-value]

    @property
    def framed_shape(self) -> tuple[int, int, int]:
        """Of the arrays, frame included."""
        return tuple(n + 2 * self.radius for n in self.shape)  # type: ignore[return-value]

    def _problem_options(self, again: bool = False) -> tuple[list[str], Source | None]:
        """again: of a run that goes on from what it has left itself."""
        words = ["size=" + " ".join(str(n) for n in reversed(self.shape))]
        framed = self.framed_shape
        source_fields: dict[str, Any] = {}
        file_words: list[str] = []
        types = {**self._state, **self._fixed}
        for name in self._names:
            value = self._fields[name]
            library_name = name if self.kernel is None or self.kernel.has_field(name) else name[:-4] + ".old"
            if isinstance(value, str):
                file_words.append(f"init={library_name}={value}" if self.kernel is not None else f"init={value}")
                continue
            option = None
            npy = self._npy(name, value, framed, types[name])
            if npy is not None:
                file_words.append(f"input={library_name}={npy}" if self.kernel is not None else f"input={npy}")
                continue
            if name in self._fixed:
                option = file_option(name, value, types[name], self.radius, self.frame, self._fixed_radius == 0, framed)
            if option is not None:
                file_words.append(f"field={option}")
            else:
                source_fields[library_name] = value
                types[library_name] = types[name]
                if library_name.endswith(".old"):  # without a word it would be what the state is
                    file_words.append(f"init={library_name}=program")
        if self.kernel is None:
            words.append(f"stencil={self._stencil or 'star7'}")
            words.append(f"dtype={'f64' if self._state['u'] == 'f8' else 'f32'}")
        else:
            words.append(f"kernel={self.code.write()}")
            words += [f"param={n}={float(v)!r}" for n, v in self.params.items()]
        source = None
        if source_fields:
            source = Source(source_fields, {n: np.dtype("<" + types[n]) for n in source_fields}, framed, self.radius, self.frame)
            source.bare, source.known = self._bare, self._identities
        return words + ([] if again else file_words), source

    def _npy(self, name: str, value: Any, framed: tuple[int, int, int], kind: str) -> pathlib.Path | None:
        """A .npy file of a field of the state that the library reads itself."""
        plain = (isinstance(value, RawArray) and value._check is None and value.path.suffix == ".npy" and value.in_place and value.shape == framed
                 and value.dtype.str == "<" + kind and "=" not in str(value.path))
        return value.path if plain and name in self._state and self.frame == "included" else None

    _own: _OwnPlace | None = None

    # ---- places

    @property
    def keep(self) -> bool:
        """Does the store stay? It can be set until the run ends; of a directory without a name, until that would go."""
        return self._wish.keep

    @keep.setter
    def keep(self, keep: bool) -> None:
        self._wish.keep = keep

    def _place(self) -> pathlib.Path:
        if self._device is not None:
            return pathlib.Path(self._device)
        if self._temporary is None:
            self._temporary = pathlib.Path(tempfile.mkdtemp(prefix=".memext-", dir=os.path.join(self._directory, os.environ.get("MEMEXT_DEVICE", ""))))
            self._own = _OwnPlace(self._temporary.resolve(), self._process, self._wish)
        return self._temporary

    @property
    def store(self) -> Store:
        """What is committed; its fields are arrays."""
        if self.backend in ANONYMOUS:
            raise MemextError(f"backend {self.backend} keeps no store", errno.ENOTSUP)
        if self._over and not self.keep:
            raise MemextError("the run has ended and its store is gone: read it within `with`, or give keep=True", errno.ENOENT)
        nothing = MemextError("nothing was computed yet: call advance or steps first", errno.ENOENT)
        if self._device is None and self._temporary is None:
            raise nothing
        try:
            store = Store(self._place(), self._own)
        except MemextError as error:
            raise nothing if error.errno == errno.ENOENT and not self._worked else error from None
        if self._worked:
            self._check_mark(store.info)
        return store

    def __getitem__(self, name: str) -> Array:
        """A field of the state as it is now, frame included."""
        field = self._fields.get(name)
        if self._memory is not None and name in self._memory:
            return ObjectArray(self._memory[name], name)
        if self.backend in ANONYMOUS and self._memory is None:
            raise MemextError("nothing was computed yet: call advance or steps first", errno.ENOENT)
        if self.backend in ANONYMOUS:
            if isinstance(field, Array) and name in self._fixed:
                return field
            raise KeyError(f"{name} is no array that backend {self.backend} keeps: {', '.join(self._memory or ())}")
        store = self.store
        if name in self._fixed and name not in store and isinstance(field, Array):
            return field  # read where it lies
        return store[name]

    # ---- going on

    def _look(self) -> dict | None:
        """The store that is in the place; None without one that holds a state."""
        if self.backend in ANONYMOUS or (self._device is None and self._temporary is None):
            return None
        try:
            info = _core.look(self._place())
        except MemextError as error:
            if error.errno in (errno.ENOENT, errno.ENOTSUP, errno.EIO):
                return None
            raise
        return info if "problem" in info else None

    def _check_mark(self, info: dict) -> None:
        """Is it the state that this run left?"""
        if self._mark is not None and _core.mark(info) != self._mark:
            raise MemextError(f"{info['place']} holds another state (step {info['step']}) than the one that this run left at step {self.step}: another run "
                              "has gone on with it, or has replaced it; make a new Run, in a place of its own", errno.ESTALE)

    def _going_on(self) -> bool:
        if self.resume is False and not self._worked and not self._left:
            return False
        info = self._look()
        if info is None:
            if self._mark is not None and (self._worked or self._left):
                raise MemextError(f"{self._place()} holds the state of step {self.step} no more, which this run left there: make a new Run", errno.ENOENT)
            if self.resume is True and self.step == 0:
                raise MemextError(f"{self._place()} holds no state of this run: leave resume=True out", errno.ENOENT)
            return False
        if self._worked or self._left:
            self._check_mark(info)
        else:
            self._compare()
        self._mark, self.step = _core.mark(info), info["step"]
        return True

    def _compare(self) -> None:
        """The library says what differs, also where the store is as far as is asked for."""
        words, source = self._problem_options()
        job = _Job([*words, *_options(self._resuming())], source)
        try:
            job.compare()
        finally:
            job.close()

    def _resuming(self) -> dict[str, Any]:
        extra = {**self._extra, "device": self._place(), "keep": True, "resume": True, "same": not self._left}
        for of_the_beginning in "force", "field_copy":
            extra.pop(of_the_beginning, None)
        return extra

    def _check_inputs(self) -> None:
        """What is read must not lie in the store that is about to be replaced."""
        places = [p for p in (self._place(), self._place() / "memext.store") if not p.is_dir() and p.exists()]
        for name, value in self._fields.items():
            for path in files_of(value):
                if any(path.exists() and os.path.samefile(path, p) for p in places):
                    raise MemextError(f"{name} lies in the store in {self._place()}, which this run would replace: save it to a file before, or name another "
                                      "device", errno.EINVAL)

    def _run_to(self, target: int, watch: Callable[[float, str], None]) -> None:
        """Computes up to step `target`, from the store where there is one."""
        if self._over:
            raise MemextError("the run has ended: make a new one", errno.EINVAL)
        resumed = self._going_on()
        self._worked |= resumed
        if self.step >= target and resumed:
            if self.step > target:
                warnings.warn(f"{self._place()} holds step {self.step}, and step {target} is asked for: nothing goes back, and run.step says what there is",
                              RuntimeWarning, stacklevel=4)
            return
        words, source = self._problem_options(again=resumed and self._left)
        sink = Sink() if self.backend in ANONYMOUS else None
        extra = self._resuming() if resumed else {**self._extra, **({"device": self._place(), "keep": True} if sink is None else {})}
        if sink is None and not resumed:
            self._check_inputs()
        first, ours = self.step, self._mark[1] if resumed and self._mark else None
        if source is not None:
            source.limit(_size(extra["dram"]) if extra.get("dram") else _core.dram_bytes())
        job = _Job([*words, f"steps={target}", *_options(extra)], source, sink)

        def on_progress(p: Any) -> None:
            phase = _core.ffi.string(p.phase).decode()
            share = min(p.done / p.total, 1) if p.total > 0 else 0
            watch(first + (target - first) * share if phase == "updates" else first if phase in ("prepare", "initial", "frames", "") else target,
                  phase)

        try:
            job.start()
            job.finish(on_progress)
            self.step, self._worked = target, True
            if sink is not None:
                self._memory = sink.arrays
        except KeyboardInterrupt:
            self.step = max(self.step, job.progress.committed_step)
            raise
        finally:
            self.remarks += job.remarks
            try:
                if not job.left:
                    self.reports.append(Report(job.report()))
                    if self._worked and self.reports[-1].get("met"):
                        self.step = self.reports[-1]["met"]["step"]
            finally:
                left = self._look() if sink is None and job.progress.committed_step >= 0 else None  # nobody else can change it yet
                job.close()
                if left is not None and ours in (None, _core.mark(left)[1]):
                    self._left = True
                    now = self._look() or left  # closed, which may have written down a new Buffer
                    self._mark = _core.mark(now if (now["run"], now["step"]) == (left["run"], left["step"]) else left)
        if left is not None:
            self._check_mark(self._look() or left)

    def advance(self, steps: int, progress: Any = False) -> Run:
        """Computes until step `steps` (counted from the beginning, also of a run that goes on)."""
        for _ in self.steps(steps, progress=progress):
            pass
        return self

    def steps(self, steps: int, check: int | None = None, progress: Any = False) -> Iterator[int]:
        """Computes up to step `steps` and yields the step after every `check` of them, and at the end; the state is committed then: run["u"],
        reduce() and break are those of this step. A run that goes on begins at the next check after what is committed.

        progress: True draws a bar; a function is called as function(step, steps, phase)."""
        try:
            steps = operator.index(steps)
            check = max(steps, 1) if check is None else operator.index(check)
        except TypeError:
            raise MemextError(f"{steps!r} steps, checked every {check!r}: whole numbers are needed", errno.EINVAL) from None
        if steps < 0 or check < 1:
            raise MemextError(f"{steps} steps, checked every {check}: not below 0 and 1", errno.EINVAL)
        if self.backend in ANONYMOUS and check < steps:
            raise MemextError(f"backend {self.backend} keeps nothing between checks: leave check out, or take another backend", errno.ENOTSUP)
        self._worked |= self._going_on()
        bar = _Progress(progress, self.step, steps)
        try:
            while self.step < steps or not self.reports:
                target = min(steps, (self.step // check + 1) * check)
                self._run_to(target, bar.at)
                bar.at(self.step, "checked")
                yield self.step
                if self.step >= steps or (self.reports and self.reports[-1].get("met")):
                    break
        finally:
            bar.close()

    def plan(self, steps: int, **options: Any) -> Plan:
        """How `steps` steps would be computed: algorithm, blocks, bytes, seconds. Touches nothing."""
        words, source = self._problem_options()
        extra = {**self._extra, **{name: _absolute(name.replace("_", "-"), value, self._directory) for name, value in options.items()}}
        extra.pop("force", None)
        if self._device is not None:
            extra.setdefault("device", self._device)
        job = _Job([*words, f"steps={steps}", "dry-run", *_options(extra)], source)
        try:
            job.prepare()
            return Plan(job.report())
        finally:
            job.close()

    def reduce(self, reduction: Reduction, floor: float = 0.0) -> Reduced:
        """The values of a reduction (memext.reduce) of the state as it is now. floor: what its `spread` is relative to where the mean of the
        planes is smaller. A mean that has fallen to a millionth of a millionth of what it was is named in a warning."""
        if not isinstance(reduction, Reduction):
            raise KernelError(f"{reduction!r} is no reduction: decorate the function with memext.reduce")
        if self.kernel is None:
            raise MemextError("reductions are of kernels: the built-in stencils have none", errno.ENOTSUP)
        arrays = {n: self[n] for n in self._state if self.kernel.has_field(n)}
        stored = {} if self._memory is not None else self.store.fields
        for n in self._fixed:
            arrays[n] = self.store[n] if n in stored else self._fields[n]  # type: ignore[assignment]
        if not (isinstance(floor, (int, float, np.number)) and 0 <= floor < float("inf")):
            raise MemextError(f"floor={floor!r}: a number of 0 or more is needed", errno.EINVAL)
        result = reduce_store(self, reduction, arrays, float(floor))
        self._warn_of_noise(reduction, result)
        return result

    def _warn_of_noise(self, reduction: Reduction, result: Reduced) -> None:
        """A spread of what dies away stays as it is: once, in words."""
        if reduction.per is None or result.floor > 0:
            return
        mean, before = result.mean_size, self._means.get(reduction, 0.0)
        self._means[reduction] = max(before, mean)
        if mean < _NOISE * before:
            self._means[reduction] = float("-inf")
            warnings.warn(f"step {self.step}: the mean of {reduction.name} is {mean:.3g}, after {before:.3g} before: its spread is that of rounding "
                          f"errors, or of what dies away; give a floor, such as run.reduce({reduction.name}, floor={before * 1e-9:.1g})",
                          RuntimeWarning, stacklevel=3)

    @property
    def report(self) -> Report:
        """What the last part of the run (from check to check) planned and measured."""
        if not self.reports:
            raise MemextError("nothing was computed yet: call advance or steps first", errno.ENOENT)
        return self.reports[-1]

    # ---- the end

    def close(self, keep: bool | None = None) -> None:
        """Ends the run; the store goes unless it is to be kept."""
        keep = self.keep if keep is None else keep
        self._over, self.keep = True, keep
        if os.getpid() != self._process:
            return  # a fork of the program: the store is the other's
        if not keep and self.backend not in ANONYMOUS and (self._device is not None or self._temporary is not None) and self._worked and self._mark:
            try:
                _core.discard(self._place(), *self._mark, bool(self._extra.get("no_lock")))
            except MemextError as error:
                if error.errno not in (errno.ENOENT, errno.ESTALE, errno.EBUSY):  # it is gone, or another run's
                    raise
        if not keep and self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            if self._own is not None:
                self._own.gone()

    def __reduce__(self) -> Any:
        raise TypeError("a Run is not pickled or copied: it is bound to its store; pickle what it is made of, or run.store[NAME]")

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        # Nobody can go on with a place that has no name of the user's; all else stays after an error.
        self.close(keep=self.keep if kind is None else self._device is not None)

    def __repr__(self) -> str:
        what = self.kernel.name if self.kernel is not None else self._stencil or "star7"
        return f"<memext Run of {what}: {self.shape} cells, step {self.step}>"

    def _repr_html_(self) -> str:
        from .looking import run_html
        return run_html(self)


class _OwnPlace:
    """The directory of a run that was given none. The run has it, and so has all that the run hands out and that is read later; when the last of them
    is gone, at the end of the program at the latest, so is the directory, unless `wish` says then that it stays."""

    def __init__(self, path: pathlib.Path, process: int, wish: types.SimpleNamespace):
        self._removal = weakref.finalize(self, _remove_own, path, process, wish)

    def gone(self) -> None:
        self._removal.detach()

    def __copy__(self) -> _OwnPlace:
        return self

    def __deepcopy__(self, _memo: dict) -> _OwnPlace:
        return self

    def __reduce__(self) -> Any:
        return type(None), ()  # another process removes nothing


def _remove_own(path: pathlib.Path, process: int, wish: types.SimpleNamespace) -> None:
    if os.getpid() == process and not wish.keep:
        shutil.rmtree(path, ignore_errors=True)


def _field_type(value: Any) -> str | None:
    """The type that an array has, if the library knows it; others are converted to the state's."""
    if isinstance(value, Array) and value.dtype.str[1:] in ("f8", "f4", "u1", "u2", "i2"):
        return value.dtype.str[1:]
    if isinstance(value, Array) and value.dtype.kind == "b":
        return "u1"
    return None


def plan(kernel: Any = None, *, steps: int, **arguments: Any) -> Plan:
    """The plan of memext.Run(kernel, ...) for so many steps; touches nothing."""
    return Run(kernel, **arguments).plan(steps)
