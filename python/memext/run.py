# SPDX-License-Identifier: BSD-3-Clause
"""Runs: a kernel or a built-in stencil, its fields, and time steps that a program can watch, stop and resume."""
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
    """A computation: a kernel, the initial values of its fields, and options.

        with memext.Run(heat, u="u0.npy", k=k, device="/scratch", dram="16GiB") as run:
            run.advance(1000, progress=True)
            run["u"].save("u.h5")

    Parameters:
    kernel: what memext.kernel, memext.stages or memext.staggered returns. None: the built-in `stencil`, whose field is u.
    FIELD: each field of the kernel is a keyword: u, c, and so on. NAME_old is the field NAME of a leapfrog kernel one step before. Its value is
        an array in memory, any object with shape, dtype and slices, a file or a store (a path, or memext.open; `device` stays until the first commit),
        a number, memext.ramp, a function of x, y, z (in two dimensions of x, y), or a pattern: "random", "gauss", "linear", "corner", "zero".
    shape: interior cells (nz, ny, nx), or (ny, nx) for a kernel of two dimensions, u[dx, dy]. It is needed if no field is an array.
    frame: "included" (default): arrays have a frame of `radius` cells on every side. "edge", "mirror", "periodic" or a number: the run makes the frame.
    dtype: the type of the state, for all fields or by name. Default: the kernel's own, else float64. Integers are "uint8" and so on.
    params: the kernel's parameters, by name. An array or a .npy file has a value for each step.
    device: the directory, file (a new one ends in .memext or .store) or block device of the store. A relative path begins at the current directory of the
        time when the Run is made. None: a temporary directory in the directory that the variable MEMEXT_DEVICE names, else in the current one. The
        end of the run removes it. If a run is not closed, the directory is removed when the last array or store from this run is released.
    resume: "auto" (default): resumes a store of the same problem in `device`, begins anew if there is none, and refuses the store of another problem.
        True: fails if there is no such store. False: begins anew, with force=True whatever is there. A stored problem counts as the same if everything
        that affects the result is the same: the kernel, its types and the initial fields. Arrays are compared by their cells, large files by name,
        size, time and a sample. Number of steps, plan and outputs may differ.
    keep: True: the store stays after the run. stencil: the name of a built-in stencil, without a kernel.
    reductions: memext.reduce functions that the run computes during its steps, as often as check=EVERY says, without a pass of their own. report["norms"]
        has their values, which belong to the state one step earlier. until={"flux-spread": 0.01} ends the run when the value is at most 0.01,
        {"flux": {"above": 5.0}} when it is at least 5. {"below": 0.01, "floor": 1e-12}: a spread is relative to the floor if the mean is smaller.
    nonfinite: "end" (default): a state with NaN or infinite cells is not committed, and the run ends with memext.NotFinite. "ignore": they are allowed,
        and report["nonfinite_cells"] counts them. The frame and read-only fields are not checked.
    OPTION: other keywords are the options of memext(1) with _ for -, which are listed below. An option without a value is True. One that may be repeated
        accepts a list, or a dict of names and values.

    A normal end of `with` removes the store unless keep=True. After an exception (also Ctrl-C) a store in `device` stays, and the same program resumes
    it. A run removes, shows and resumes only its own state, never another run's.

    Options:
"""

    def __init__(self, kernel: Any = None, *, device: Any = None, shape: tuple[int, int, int] | None = None, dtype: Any = None,
                 params: Mapping[str, Any] | None = None, frame: Any = "included", resume: Any = "auto", keep: bool = False,
                 stencil: str | None = None, reductions: Iterable[Reduction] = (), **fields_and_options: Any):
        self._wish = types.SimpleNamespace(keep=keep)
        self.kernel, self.frame, self.resume = kernel, frame, resume
        self.reductions = tuple(reductions)
        self.step, self._at = 0, 0  # _at: the step that this process has reached
        self.remarks: list[str] = []
        self.reports: list[Report] = []
        self._means: dict[Reduction, float] = {}
        self._temporary, self._over, self._worked = None, False, False
        self._memory: dict[str, np.ndarray] | None = None
        self._process = os.getpid()
        self._mark: tuple[int, int] | None = None  # of the state that this run left, or found
        self._met, self._unfinished = False, False  # a criterion has ended the run in the store; its program was killed before the store said that it is done
        self._edits, self._edits_made = Edits(self), 0  # _edits_made: of the state that is in the store
        # The library computes; the run has left a state itself, so what it began with is needed no more; before its first step: the store in its place is its own.
        self._busy, self._left, self._seen = False, False, None
        self._directory = os.getcwd()  # which all that has no absolute path is in, whatever the program does later
        self._device = device and os.path.join(self._directory, os.fsdecode(device))
        if isinstance(frame, str) and frame not in FRAMES or isinstance(frame, bool) or not isinstance(frame, (str, int, float, np.integer, np.floating)):
            raise MemextError(f"frame={frame!r} is not known: give one of {', '.join(FRAMES)}, or a number", errno.EINVAL)
        if not isinstance(resume, (bool, np.bool_)) and resume != "auto":
            raise MemextError(f"resume={resume!r} is not known: give 'auto', True or False", errno.EINVAL)
        for reduction in self.reductions:
            if not isinstance(reduction, Reduction):
                raise KernelError(f"{reduction!r} is not a reduction: decorate the function with memext.reduce")
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
                raise MemextError(f"Run has no option {option}: write {way} between steps", errno.EINVAL)
        if self.backend in ANONYMOUS and device is not None:
            raise MemextError(f"backend {self.backend} keeps its Buffers in memory and uses no device: leave device= out", errno.EINVAL)

    _own: OwnPlace | None = None
    _stored: list[str] | None = None  # of reducing.stored_reductions

    def _edits_are(self) -> str:
        """When a change that is made now takes effect: "begin", "now", or "past" (the store has it already)."""
        if self._over:
            raise MemextError("the run has ended: make a new Run", errno.EINVAL)
        if self._at == 0 and not (self._worked or self._left):
            return "begin"
        if self.backend in ANONYMOUS:
            raise MemextError(f"backend {self.backend} keeps no state between steps, so nothing can change there: leave backend= out", errno.ENOTSUP)
        return "past" if self._at < self.step or self._edits.are_replayed() else "now"

    def withdraw(self) -> None:
        """Drops all changes since the last commit that are not committed yet, also of parameters."""
        self._edits.asked.clear()
        self.params.edits.clear()

    def apply(self, function: Callable, frame: bool = False) -> None:
        """Changes the state at the present step, plane by plane. When the run continues, it calls function(u, v, k, dt, z) for every plane of the interior.
        In grids of two dimensions it calls function(u, v, k, dt, y) for every row, with arrays (nx).

        The names of the arguments say what the function gets. Fields of the state and read-only fields are arrays (ny, nx); NAME_old is the step before of
        leapfrog kernels. It also gets parameters, x, y, z (interior cells, counted from 0) and the step t. The function changes the arrays of the state, or returns new
        ones in the order of its arguments. frame=True: it gets planes of the frame too, and every plane with its frame. The run may call the function more
        than once for a plane, so its result must depend on its arguments alone. Raises MemextError before the first step: call advance(0) first."""
        self._edits.ask(lambda: self._edits.apply(function, frame))

    @property
    def framed_shape(self) -> tuple[int, int, int]:
        """The shape of the arrays with their frame: (nz, ny, nx), or (ny, nx)."""
        return tuple(n + 2 * self.radius for n in self.shape)  # of two dimensions (ny, nx)  # type: ignore[return-value]

    @property
    def time(self) -> float | None:
        """Simulated time after `step` steps, in seconds. None if the length of a step is not known: it is the option time_step, or the parameter dt of the kernel."""
        for report in reversed(self.reports):
            if report.get("steps_done") == self.step:
                return report["simulated_s"]
        info = self._look()
        return info["simulated_s"] if info is not None and info["step"] == self.step else None

    # ---- places

    @property
    def keep(self) -> bool:
        """Does the store stay after the run? It can be set until the run ends. Without device= it can be set until the temporary directory is removed."""
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
        """The committed state, as a Store."""
        if self.backend in ANONYMOUS:
            raise MemextError(f"backend {self.backend} keeps no store: read the fields, run[NAME], or leave backend= out", errno.ENOTSUP)
        if self._over and not self.keep:
            raise MemextError("the run has ended and removed its store: read it within `with`, or give keep=True", errno.ENOENT)
        nothing = MemextError("nothing was computed yet: call advance or steps first", errno.ENOENT)
        if self._device is None and self._temporary is None:
            raise nothing
        try:
            store = Store(self._place(), self._own)
        except MemextError as error:
            raise nothing if error.errno == errno.ENOENT and not self._worked else error from None
        if not (self._worked or self._left or self._busy or self._seen == _core.mark(store.info) or replaced.shows_own(self)):
            raise nothing
        self._seen = self._seen if self._busy else _core.mark(store.info)
        if self._worked:
            self._check_mark(store.info)
        return store

    def __getitem__(self, name: str) -> Array:
        """A field as it is now, with its frame, as an Array. Between steps, run["u"][z0:z1] = a changes it: see steps."""
        field, stored = self._problem.fields.get(name), self._problem.stored()
        field = field.given if isinstance(field, Profile) else field
        if self._memory is not None and stored.get(name, name) in self._memory:
            array = self._memory[stored.get(name, name)]
            return Rows(ObjectArray(array.swapaxes(0, 1), name)) if self._problem.flat else ObjectArray(array, name)
        if self.backend in ANONYMOUS and self._memory is None:
            raise MemextError("nothing was computed yet: call advance or steps first", errno.ENOENT)
        if self.backend in ANONYMOUS:
            if isinstance(field, Array) and name in self._problem.fixed:
                return field
            way = f"; give {name} as an array, or leave backend= out" if name in self._problem.fixed else ""
            raise KeyError(f"backend {self.backend} keeps no array {name}. It keeps {', '.join(n for n, of in stored.items() if of in self._memory)}{way}")
        found = self._stored_array(name, field)
        return Rows(found) if self._problem.flat and found.ndim == 3 else found

    def _stored_array(self, name: str, field: Any) -> Array:
        """The field as the library stores it: in two dimensions (ny, 1, nx)."""
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
        """Gives a read-only field other values from the present step on: see steps."""
        self._edits.replace(name, value)

    # ---- going on

    def _look(self) -> dict | None:
        """What the store in the run's place says of itself; None if no store there holds a state."""
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
            raise MemextError(f"{info['place']} holds another state (step {info['step']}) than this run left at step {self.step}: another run has "
                              "continued or replaced it; make a new Run with a device of its own", errno.ESTALE)

    def _going_on(self) -> bool:
        if self.resume is False and not self._worked and not self._left:
            return False
        info = self._look()
        if info is None:
            if self._mark is not None and (self._worked or self._left):
                raise MemextError(f"{self._place()} no longer holds the state that this run left there at step {self.step}: make a new Run", errno.ENOENT)
            if self.resume is True and self.step == 0:
                raise MemextError(f"{self._place()} holds no state of this run to resume: leave resume=True out to begin it", errno.ENOENT)
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
        """Lets the library compare the problem with the stored one; it says what differs, also if no step is left to compute."""
        words, source = self._problem.options()
        job = Job([*words, *words_of(self._resuming())], source)
        try:
            job.compare()
        finally:
            job.close()

    def _resuming(self) -> dict[str, Any]:
        extra = {name: value for name, value in self._problem.extra.items() if name not in ("force", "field_copy")}  # these two only begin a run
        return {**extra, "device": self._place(), "keep": True, "resume": True, "same": not self._left, "edit_param": dict(self.params.edits)}

    def _run_to(self, target: int, watch: Callable[[float, str], None], check: int | None = None) -> None:
        """Computes up to step `target`, from the store if there is one. check: steps between the values of declared reductions."""
        if self._over:
            raise MemextError("the run has ended: make a new Run", errno.EINVAL)
        resumed = self._going_on()
        self._worked |= resumed
        self._edits.boundary()
        if self.step >= target and resumed and not (self.step == target and (self._edits.asked or self._unfinished)):
            if self.step > target:
                warnings.warn(f"{self._place()} holds step {self.step}, which is after step {target}: a run cannot go back, so nothing is computed; for "
                              f"step {target}, begin again with resume=False", RuntimeWarning, stacklevel=4)
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
        """Computes up to step `steps` and returns the run. Steps are counted from the beginning, also in a run that was resumed.

        progress: as in steps. Raises MemextError, or NotFinite; after Ctrl-C the last commit stays, and KeyboardInterrupt says its step."""
        for _ in self.steps(steps, progress=progress):
            pass
        return self

    def steps(self, steps: int, check: int | None = None, progress: Any = False) -> Iterator[int]:
        """Computes up to step `steps`. After every `check` steps and at the end it commits the state and yields the number of the step. run["u"] and reduce()
        give this state, and after break the run stays at it. The body of the loop may change it by run["u"][...] = a, apply(), run["k"] = a and
        params[NAME] = VALUE. Changes of fields are committed when the loop continues, a change of a parameter alone with the next commit.
        If the program is started again, it gets the committed step once more, if this step is a check whose changes are not committed.

        progress: True draws a bar; a function is called as function(step, steps, phase)."""
        try:
            steps = operator.index(steps)
            check = max(steps, 1) if check is None else operator.index(check)
        except TypeError:
            raise MemextError(f"steps={steps!r}, check={check!r}: give integers", errno.EINVAL) from None
        if steps < 0 or check < 1:
            raise MemextError(f"steps={steps}: give the step to compute up to, 0 or more" if steps < 0 else f"check={check}: give the steps between checks, 1 or more", errno.EINVAL)
        if self.backend in ANONYMOUS and check < steps:
            raise MemextError(f"backend {self.backend} keeps no state between checks: leave check= or backend= out", errno.ENOTSUP)
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
        """Commits the changes that were made at the last step."""
        self._edits.boundary()
        if self._edits or (self._met and self._unfinished):
            reports = len(self.reports)
            self._run_to(self.step, watch)
            del self.reports[reports:]

    def plan(self, steps: int, **options: Any) -> Plan:
        """Returns how the run would compute `steps` steps: algorithm, Blocks, bytes, seconds. It computes and writes nothing. options: other options to try."""
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
        """Returns the values of a reduction (memext.reduce) of the present state, as Reduced. floor: `spread` is relative to it if the mean of the planes is
        smaller. The state is read once for this. Nothing is read if the last sweep has the value: the step is a check, and the reduction is
        one of `reductions` with one value for the grid, which uses only the cell itself and no parameters. A warning names a mean that fell below 1e-12 of its largest value.

        taken=True returns the value of the state one step earlier, which the sweep computed, and reads nothing. The reduction must be one of `reductions`,
        with one value for the grid. Before the first step this raises MemextError."""
        if not isinstance(reduction, Reduction):
            raise KernelError(f"{reduction!r} is not a reduction: decorate the function with memext.reduce")
        if self.kernel is None:
            raise MemextError("a built-in stencil has no reductions: make the Run with a kernel (memext.kernel)", errno.ENOTSUP)
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
        """The plan and the measurements of the last part of the run, from check to check."""
        if not self.reports:
            raise MemextError("nothing was computed yet: call advance or steps first", errno.ENOENT)
        return self.reports[-1]

    # ---- the end

    def close(self, keep: bool | None = None) -> None:
        """Ends the run, and removes its store unless `keep` (default: run.keep)."""
        keep = self.keep if keep is None else keep
        if keep and not self._over and os.getpid() == self._process:
            self._settle(lambda step, phase: None)
        self._over, self.keep = True, keep
        if os.getpid() != self._process:
            return  # a fork of the program: the store is the other's
        if not keep and self.backend not in ANONYMOUS and (self._device is not None or self._temporary is not None) and self._worked and self._mark and self.reports:
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
        raise TypeError("a Run cannot be pickled or copied, because it belongs to its store: pickle the kernel and fields, or run.store[NAME]")

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            self._edits.asked.clear()
        elif self._mark is not None:
            replaced.ended.add(f"{self._mark[1]:016x}")
        # After an error the store stays, unless it is in a temporary directory, which no program could name.
        self.close(keep=self.keep if kind is None else self._device is not None)
        if error is not None and self.keep and self._worked and self.backend not in ANONYMOUS and hasattr(error, "add_note"):
            error.add_note(f"memext: the block ended by this error, so the store in {self._device} stays, with step {self.step}: resume=True resumes "
                           "it, and force=True discards it")

    def __repr__(self) -> str:
        what = self.kernel.name if self.kernel is not None else self._problem.stencil or "star7"
        return f"<memext Run of {what}: {self.shape} cells, step {self.step}>"

    def _repr_html_(self) -> str:
        return run_html(self)


Run.__doc__ = f"{Run.__doc__}{documented()}"


def plan(kernel: Any = None, *, steps: int, **arguments: Any) -> Plan:
    """Returns the plan of memext.Run(kernel, **arguments) for `steps` steps. It computes and writes nothing."""
    return Run(kernel, **arguments).plan(steps)
