# SPDX-License-Identifier: BSD-3-Clause
"""Runs: a kernel or a built-in stencil, its fields, and steps of time that can be watched, stopped and gone on with."""
from __future__ import annotations

import errno
import operator
import os
import pathlib
import shutil
import tempfile
import types
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable

import numpy as np

from . import _core, replaced
from .arrays import Array, ObjectArray, Rows, Store
from .edits import Edits, ReplacedArray, StateArray
from .errors import KernelError, MemextError
from .images import Images
from .job import Job
from .kernel import Kernel, Reduced, Reduction
from .looking import run_html
from .options import documented
from .parameters import Parameters
from .places import OwnPlace
from .problem import Problem
from .profiles import Profile
from .progress import Progress, step_of
from .reducing import checked_floor, reduce_store, stored_by_sweep, stored_reductions, taken_by_sweep, warn_of_noise
from .report import Plan, Report
from .sources import FRAMES, Sink
from .words import absolute, size_of, words_of

ANONYMOUS = ("dram", "swap")


class Run:
    """A computation: a kernel (memext.kernel, a C file, or None for the built-in `stencil`), what its fields begin with, and options.

        with memext.Run(heat, u="u0.npy", k=k, device="/scratch", dram="16GiB") as run:
            run.advance(1000, progress=True)
            run["u"].save("u.h5")

    Fields, by name (u, c, ...; the step before of leapfrog kernels as NAME_old): an array in memory, a file or store (memext.open, or its
    path), anything with shape, dtype and slices, a number, memext.ramp, a function of x, y, z (of two dimensions x, y), or the name of one of the
    library's ("random", "gauss", "linear", "corner", "zero"). frame: "included": arrays have the frame of `radius` cells on every side (the default);
    "edge", "mirror", "periodic" or a number: they have none, and this makes it. shape: interior cells (nz, ny, nx), where no array says. Of a kernel of two dimensions (u[dx, dy]) all is (ny, nx).

    device: the directory, file (a new one ends in .memext or .store) or block device of the store; None: a directory that is made beside the program and
    goes with the run, or, where nobody ends that, with the last of the arrays and stores that it has handed out. Paths are of the directory that the
    program is in when it makes the run.
    Fields may be those of the store in `device` itself, memext.open(device)[NAME]: it stays until the run's first commit.
    resume: "auto" goes on with a store of the same problem that is there, and refuses another's; True demands one; False begins anew (with force=True
    whatever is there). The same problem: all that decides bits, from the kernel to what the fields begin with, arrays by their cells, large files by
    name, size, time and a sample. The number of steps, plans and outputs may be others. keep: the store stays.
    dtype: of the state, or by field; the kernel's own without it, else float64. Whole numbers too, "uint8" and the like. params: of the kernel; an array or a .npy file has a value for each step. Other keywords are the options of memext(1), with _ for -; they are listed
    below. An option without a value is True. One that may be repeated takes a list, or a dict of names and values.

    reductions: memext.reduce functions that the run takes along with its steps, without a pass of their own, at the options check=EVERY and
    until={"flux-spread": 0.01}, which ends it; they are of the state that the check's step is computed from. report["norms"] has them.
    A criterion is met at most its value. {"above": 5.0} is met at least that; {"below": 0.01, "floor": 1e-12} makes a spread relative to the
    floor where the mean of the planes is smaller (Reduced.spread says what a spread is).

    nonfinite: "end": a state with cells that are NaN or infinite is not committed, and ends the run with memext.NotFinite; "ignore": they are there on
    purpose. report["nonfinite_cells"] counts them. The frame and read-only fields are not looked at.

    Leaving `with` normally removes the store unless keep; after an exception, Ctrl-C too, it stays, and the same program goes on with it. Nobody's
    state is removed, shown or gone on with but the one that this run left.

    Options:
"""

    def __init__(self, kernel: Any = None, *, device: Any = None, shape: tuple[int, int, int] | None = None, dtype: Any = None,
                 params: Mapping[str, Any] | None = None, frame: Any = "included", resume: Any = "auto", keep: bool = False,
                 stencil: str | None = None, reductions: Iterable[Reduction] = (), **fields_and_options: Any):
        self._wish = types.SimpleNamespace(keep=keep)
        self.kernel, self.frame, self.resume = kernel, frame, resume
        self.reductions = tuple(reductions)
        self.step = 0
        self._at = 0  # the step that this process of the program has come to, up to which nothing is computed again
        self.remarks: list[str] = []
        self.reports: list[Report] = []
        self._means: dict[Reduction, float] = {}
        self._temporary, self._over, self._worked = None, False, False
        self._memory: dict[str, np.ndarray] | None = None
        self._process = os.getpid()
        self._mark: tuple[int, int] | None = None  # of the state that this run left, or found
        self._met = False  # a criterion has ended the run in the store
        self._unfinished = False  # its program was killed before the store said that it is done
        self._edits = Edits(self)
        self._edits_made = 0  # of the state that is in the store
        self._busy = False  # the library computes
        self._left = False  # it has left a state itself: what it began with is needed no more
        self._directory = os.getcwd()  # which all that has no absolute path is in, whatever the program does later
        self._device = device and os.path.join(self._directory, os.fsdecode(device))
        if isinstance(frame, str) and frame not in FRAMES or isinstance(frame, bool) or not isinstance(frame, (str, int, float, np.integer, np.floating)):
            raise MemextError(f"frame={frame!r}: {', '.join(FRAMES)} or a number are needed", errno.EINVAL)
        if not isinstance(resume, (bool, np.bool_)) and resume != "auto":
            raise MemextError(f"resume={resume!r}: 'auto', True or False is needed", errno.EINVAL)
        for reduction in self.reductions:
            if not isinstance(reduction, Reduction):
                raise KernelError(f"{reduction!r} is no reduction: decorate the function with memext.reduce")
        self._problem = Problem(kernel, stencil, dict(params or {}), self.reductions, dtype, shape, frame, self._directory, fields_and_options)
        self.radius, self.code = self._problem.radius, self._problem.code
        self.shape = self._problem.told(self._problem.shape)
        self.backend = self._problem.extra.get("backend")
        self.params = Parameters(kernel.params if isinstance(kernel, Kernel) else {}, {n: v for r in self.reductions for n, v in r.params.items()},
                                 self._problem.params, self._edits_are)
        if self._device is not None:
            self._problem.here = replaced.fields_here(self._problem.fields, self._device)
        for option, way in (("edit_param", "run.params[NAME] = VALUE"), ("edit_input", "run[NAME][...] = VALUES")):
            if option in fields_and_options:
                raise MemextError(f"{option}: between steps, a program says {way}", errno.EINVAL)
        if self.backend in ANONYMOUS and device is not None:
            raise MemextError(f"the Buffers of backend {self.backend} lie in memory: leave device out", errno.EINVAL)

    _own: OwnPlace | None = None
    _stored: list[str] | None = None  # of reducing.stored_reductions

    def _edits_are(self) -> str:
        """What a parameter that is set now means."""
        if self._over:
            raise MemextError("the run has ended: make a new one", errno.EINVAL)
        if self._at == 0 and not (self._worked or self._left):
            return "begin"
        if self.backend in ANONYMOUS:
            raise MemextError(f"backend {self.backend} keeps nothing between steps: take another backend to change parameters", errno.ENOTSUP)
        return "past" if self._at < self.step or self._edits.are_replayed() else "now"

    def withdraw(self) -> None:
        """Drops all changes that were asked for since the last commit, parameters included."""
        self._edits.asked.clear()
        self.params.edits.clear()

    def apply(self, function: Callable, frame: bool = False) -> None:
        """Changes the state at the present step, plane by plane: function(u, v, k, dt, z) is called for every plane of the interior when the run goes on.
        Of grids of two dimensions it is called for every row, as function(u, v, k, dt, y) with arrays (nx).

        Its arguments name what it gets: fields of the state (NAME_old for the step before of leapfrog kernels) and read-only fields as arrays (ny, nx),
        parameters, x, y, z (cells of the interior, from 0) and t. It changes the fields' arrays, or returns new ones in the order of its arguments.
        frame: planes of the frame too, and all with their frame. It may be called more than once for a plane, so it depends on its arguments alone."""
        self._edits.ask(lambda: self._edits.apply(function, frame))

    @property
    def framed_shape(self) -> tuple[int, int, int]:
        """Of the arrays, frame included."""
        return tuple(n + 2 * self.radius for n in self.shape)  # of two dimensions (ny, nx)  # type: ignore[return-value]

    @property
    def time(self) -> float | None:
        """Seconds after `step` steps; None where it is not known how long a step is (option time_step, or a parameter dt of the kernel)."""
        for report in reversed(self.reports):
            if report.get("steps_done") == self.step:
                return report["simulated_s"]
        info = self._look()
        return info["simulated_s"] if info is not None and info["step"] == self.step else None

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
            self._own = OwnPlace(self._temporary.resolve(), self._process, self._wish)
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
        """A field of the state as it is now, frame included. Between steps, run["u"][z0:z1] = a changes it: see steps."""
        field = self._problem.fields.get(name)
        if isinstance(field, Profile):
            field = field.given
        stored = self._problem.stored()
        if self._memory is not None and stored.get(name, name) in self._memory:
            array = self._memory[stored.get(name, name)]
            return Rows(ObjectArray(array.swapaxes(0, 1), name)) if self._problem.flat else ObjectArray(array, name)
        if self.backend in ANONYMOUS and self._memory is None:
            raise MemextError("nothing was computed yet: call advance or steps first", errno.ENOENT)
        if self.backend in ANONYMOUS:
            if isinstance(field, Array) and name in self._problem.fixed:
                return field
            way = f"; give {name} as an array, or take a device" if name in self._problem.fixed else ""
            raise KeyError(f"{name} is no array that backend {self.backend} keeps: {', '.join(n for n, of in stored.items() if of in self._memory)}{way}")
        found = self._stored_array(name, field)
        return Rows(found) if self._problem.flat and found.ndim == 3 else found

    def _stored_array(self, name: str, field: Any) -> Array:
        """As the library has it: of two dimensions (ny, 1, nx)."""
        store, stored, replaced = self.store, self._problem.stored(), self._edits.replaced(name)
        if replaced is not None:
            return ReplacedArray(replaced)
        if name in self._problem.fixed and name not in store and isinstance(field, Array):
            return field  # read where it lies
        if name not in stored:
            return store.planes(name)
        images = Images(store.info["sides"], self._problem.shape, self._problem.halo) if store.info["sides"] else None
        return StateArray(store.planes(stored[name]), self._edits, name, lambda other: store.planes(stored.get(other, other)) if stored.get(other, other) in store else None, images)

    def __setitem__(self, name: str, value: Any) -> None:
        """Other values of a read-only field from the present step on: see steps."""
        self._edits.replace(name, value)

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
                raise MemextError(f"{self._place()} no longer holds the state of step {self.step} that this run left there: make a new Run", errno.ENOENT)
            if self.resume is True and self.step == 0:
                raise MemextError(f"{self._place()} holds no state of this run: leave resume=True out", errno.ENOENT)
            return False
        if self._worked or self._left:
            self._check_mark(info)
        else:
            if replaced.begins_with(self, info):
                return False
            self.params.found((info["problem"].get("kernel") or {}).get("params", {}))
            self._edits.found(info)
        self._edits_made = info["edits"]
        self._mark, self.step = _core.mark(info), info["step"]
        replaced.known.add(info["run"])
        self._met, self._unfinished = info.get("met") is not None and "until" in self._problem.extra, info["state"] == "interrupted"
        return True

    def _compare(self) -> None:
        """The library says what differs, also where the store is as far as is asked for."""
        words, source = self._problem.options()
        job = Job([*words, *words_of(self._resuming())], source)
        try:
            job.compare()
        finally:
            job.close()

    def _resuming(self) -> dict[str, Any]:
        extra = {**self._problem.extra, "device": self._place(), "keep": True, "resume": True, "same": not self._left, "edit_param": dict(self.params.edits)}
        for of_the_beginning in "force", "field_copy":
            extra.pop(of_the_beginning, None)
        return extra

    def _run_to(self, target: int, watch: Callable[[float, str], None], check: int | None = None) -> None:
        """Computes up to step `target`, from the store where there is one; check: declared reductions are taken every so many steps."""
        if self._over:
            raise MemextError("the run has ended: make a new one", errno.EINVAL)
        resumed = self._going_on()
        self._worked |= resumed
        self._edits.boundary()
        edits = self._edits.asked
        if self.step >= target and resumed and not (self.step == target and (edits or self._unfinished)):
            if self.step > target:
                warnings.warn(f"{self._place()} holds step {self.step}, and step {target} was asked for: a run cannot go back, so its state stays that of "
                              f"step {self.step}", RuntimeWarning, stacklevel=4)
            return
        words, source = self._problem.options(again=resumed and self._left)
        sink = Sink() if self.backend in ANONYMOUS else None
        extra = self._resuming() if resumed else {**self._problem.extra, **({"device": self._place(), "keep": True} if sink is None else {})}
        if self.reductions and check is not None:
            extra = {"check": check, **extra, "reduce_stored": stored_reductions(self) if sink is None else []}
        if sink is None and not resumed:
            extra |= replaced.check_place(self._problem, source, self._place())
        first, ours = self.step, self._mark[1] if resumed and self._mark else None
        if source is not None:
            source.limit(size_of(extra["dram"]) if extra.get("dram") else _core.dram_bytes())
        try:
            job = Job([*words, f"steps={target}", *words_of(extra)], source, sink, self._edits if self._edits.begin() else None)
        except BaseException:
            self._edits.end(False, {})
            raise
        self._busy = True
        try:
            job.start()
            job.finish(lambda p: watch(step_of(p, first, target), _core.ffi.string(p.phase).decode()))
            self.step, self._worked = target, True
            if sink is not None:
                self._memory = sink.arrays
        except KeyboardInterrupt:
            self.step = max(self.step, job.progress.committed_step)
            raise
        finally:
            self._busy = False
            self.remarks += job.remarks
            try:
                if not job.left:
                    self.reports.append(Report(job.report()))
                    if self._worked and self.reports[-1].get("met"):
                        self.step = self.reports[-1]["met"]["step"]
            finally:
                self.step = max(self.step, job.progress.committed_step)
                self._at = self.step
                left = self._look() if sink is None and job.progress.committed_step >= 0 else None  # nobody else can change it yet
                self._edits.end(job.progress.committed_step > first or (left is not None and left["edits"] > self._edits_made), extra.get("edit_param") or {})
                job.close()
                if left is not None and ours in (None, _core.mark(left)[1]):
                    self._left = True
                    replaced.known.add(left["run"])
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
        reduce() give this step, and break leaves the run at it. Changes there, run["u"][...] = a, apply(), run["k"] = a and params[NAME] = VALUE, hold from
        this step on. Those of fields are committed when the loop goes on; a parameter alone is stored with the next commit. A program that is started again
        gets the committed step once more, if that is a check, and if its changes of the state are not committed.

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
        bar = Progress(progress, self.step, steps)
        try:
            if self._at < self.step < steps and (self._met or not self._edits.are_replayed()) and (self.step % check == 0 or self._met):
                self._at = self.step
                yield self.step
                if self._met:
                    self._settle(bar.at)
                    return
            while self.step < steps or not self.reports:
                target = min(steps, (self.step // check + 1) * check)
                self._run_to(target, bar.at, check)
                bar.at(self.step, "checked")
                self._at = min(self.step, steps)
                yield self.step
                if self.step >= steps or (self.reports and self.reports[-1].get("met")):
                    break
            if self.step >= steps or (self.reports and self.reports[-1].get("met")):
                self._settle(bar.at)
        finally:
            bar.close()

    def _settle(self, watch: Callable[[float, str], None]) -> None:
        """What was changed at the last step is committed."""
        self._edits.boundary()
        if self._edits or (self._met and self._unfinished):
            reports = len(self.reports)
            self._run_to(self.step, watch)
            del self.reports[reports:]

    def plan(self, steps: int, **options: Any) -> Plan:
        """How `steps` steps would be computed: algorithm, blocks, bytes, seconds. Touches nothing."""
        words, source = self._problem.options()
        extra = {**self._problem.extra, **{name: absolute(name.replace("_", "-"), value, self._directory) for name, value in options.items()}}
        extra.pop("force", None)
        if self._device is not None:
            extra.setdefault("device", self._device)
        if self._problem.here and extra.get("device") == self._device:
            extra["supersede"] = True
        job = Job([*words, f"steps={steps}", "dry-run", *words_of(extra)], source)
        try:
            job.prepare()
            return Plan(job.report())
        finally:
            job.close()

    def reduce(self, reduction: Reduction, floor: float = 0.0, taken: bool = False) -> Reduced:
        """The values of a reduction (memext.reduce) of the state as it is now. floor: what its `spread` is relative to where the mean of the
        planes is smaller. Of a declared reduction the sweep has it, where that reads fields of the state at the cell alone and no parameters, has one value
        for the grid, and the step is a check: then nothing is read. A mean that has fallen to a millionth of a millionth of what it was is named in a warning.

        taken=True gives the value of the state one step earlier, which the sweep took along, and reads nothing. The reduction must be one of `reductions`,
        with one value for the grid. It fails before the first step."""
        if not isinstance(reduction, Reduction):
            raise KernelError(f"{reduction!r} is no reduction: decorate the function with memext.reduce")
        if self.kernel is None:
            raise MemextError("reductions are of kernels: the built-in stencils have none", errno.ENOTSUP)
        if not (self._worked or self._left):
            self._worked |= self._going_on()
        if taken:
            return taken_by_sweep(self, reduction, floor)
        floor = checked_floor(floor)
        known = stored_by_sweep(self, reduction, floor)
        if known is not None:
            return known
        result = reduce_store(self, reduction, floor)
        warn_of_noise(self, reduction, result)
        return result

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
        if keep and not self._over and os.getpid() == self._process:
            self._settle(lambda step, phase: None)
        self._over, self.keep = True, keep
        if os.getpid() != self._process:
            return  # a fork of the program: the store is the other's
        if not keep and self.backend not in ANONYMOUS and (self._device is not None or self._temporary is not None) and self._worked and self._mark:
            try:
                _core.discard(self._place(), *self._mark, bool(self._problem.extra.get("no_lock")))
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
        if kind is not None:
            self._edits.asked.clear()
        elif self._mark is not None:
            replaced.ended.add(f"{self._mark[1]:016x}")
        # Nobody can go on with a place that has no name of the user's; all else stays after an error.
        self.close(keep=self.keep if kind is None else self._device is not None)
        if error is not None and self.keep and self._worked and self.backend not in ANONYMOUS and hasattr(error, "add_note"):
            error.add_note(f"memext: the block ended by this error, so the store in {self._device} stays, with step {self.step}: resume=True goes on "
                           "with it, and force=True discards it")

    def __repr__(self) -> str:
        what = self.kernel.name if self.kernel is not None else self._problem.stencil or "star7"
        return f"<memext Run of {what}: {self.shape} cells, step {self.step}>"

    def _repr_html_(self) -> str:
        return run_html(self)


Run.__doc__ = f"{Run.__doc__}{documented()}"


def plan(kernel: Any = None, *, steps: int, **arguments: Any) -> Plan:
    """The plan of memext.Run(kernel, ...) for so many steps; touches nothing."""
    return Run(kernel, **arguments).plan(steps)
