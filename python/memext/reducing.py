# SPDX-License-Identifier: BSD-3-Clause
"""Reductions by a pass over the stored state with numpy: plane by plane, in the library's order of addition."""
from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .arrays import RawArray, planes_of
from .errors import KernelError, MemextError
from .kernel import Reduced, Reduction
from .lookup import misfits
from .profiles import Profile
from .series import AtStep
from .sources import Source
from .values import Values

LANES = 8
_NOISE = 1e-12  # of a mean of planes, as in runtime/run/norms.c


class _Planes:
    """Holds the last planes of an array, so that planes that are neighbours are read once."""

    def __init__(self, read: Any, most: int):
        self.read, self.most, self.held = read, most, {}

    def __getitem__(self, z: int) -> np.ndarray:
        if z not in self.held:
            while len(self.held) >= self.most:
                del self.held[min(self.held)]
            self.held[z] = self.read(z)
        return self.held[z]


def add_plane(values: np.ndarray) -> float:
    """The sum of a plane [y][x] in f64: cell x goes to lane x mod 8, from left to right; lanes 0 to 7 are added in order, then rows."""
    rows, cells = values.shape
    padded = np.zeros((rows, -(-cells // LANES) * LANES))
    padded[:, :cells] = values
    lanes = np.zeros((rows, LANES))
    for i in range(0, padded.shape[1], LANES):
        lanes += padded[:, i:i + LANES]
    sums = np.zeros(rows)
    for lane in range(LANES):
        sums += lanes[:, lane]
    total = 0.0
    for value in sums:
        total += value
    return float(total)


def source_of(run: Any, name: str, value: Any) -> Source:
    """A Source that gives the planes of a run's field, with their frame."""
    problem = run._problem
    source = Source({name: value}, {name: problem.dtype_of(name)}, problem.framed(problem.shape), problem.halo, run.frame)
    if not isinstance(value, Values) and tuple(value.shape) == source.shape:
        source.frame = "included"
    elif name in run._problem.bare or (isinstance(value, Profile) and value.bare):
        source.bare = {name}
    return source


def _arrays_of(run: Any) -> dict[str, Any]:
    """Every field as the library stores it."""
    stored = {} if run._memory is not None else run.store.fields
    arrays = {n: planes_of(run[n]) for n in run._problem.state if run.kernel.has_field(n)}
    return arrays | {n: planes_of(run[n]) if n in stored else run._problem.fields[n] for n in run._problem.fixed}


def reduce_store(run: Any, reduction: Reduction, floor: float = 0.0) -> Reduced:
    """Computes a reduction of the stored state: one value for each plane, or one for the grid."""
    arrays = _arrays_of(run)
    code, h, hy, shape, flat = run.code, run.radius, run._problem.halo[1], run._problem.shape, run.code.flat
    cell = reduction.translate(code)
    for reason in misfits(cell, run.shape):
        raise KernelError(f"{reduction.name}: {reason}")
    params = AtStep({**reduction.params, **run.params.now()}, run.step, code.form == "staggered", len(code.cells))
    reach = max([0] + [abs(n.data[2 if flat else 3]) for n in cell.nodes() if n.op == "at"])
    used = cell.names("at")
    sources = {}
    for name in used:
        sources[name] = source_of(run, name, arrays[name])
        if sources[name].bare and cell.reach({name}) > 0:
            raise KernelError(f"{reduction.name} reads neighbours of {name}, whose array has no frame: give it a frame of {h} cells")
    nz, ny, nx = shape
    y, x = np.arange(ny)[:, None], np.arange(nx)[None, :]
    results = np.empty(nz)

    def some(z0: int, z1: int) -> None:
        planes = {n: _Planes(lambda z, s=s, n=n: s._plane(n, arrays[n], z, s.dtypes[n]), 2 * reach + 1) for n, s in sources.items()}
        for z in range(z0, z1):
            def at(field, dx, dy, dz, z=z):
                dy, dz = (0, dy) if flat else (dy, dz)
                return planes[field][z + h + dz][hy + dy:hy + dy + ny, h + dx:h + dx + nx]

            def coordinates(name, z=z):
                known = {"x": x, "t": run.step, "nx": nx} | ({"y": z, "z": 0, "ny": nz, "nz": 1} if flat else {"y": y, "z": z, "ny": ny, "nz": nz})
                return known[name] if isinstance(known[name], np.ndarray) else np.int64(known[name])

            value = np.broadcast_to(np.asarray(code.evaluate(cell, at, params, coordinates)[0], dtype="f8"), (ny, nx))
            results[z] = add_plane(value) if reduction.op == "sum" else value.max() if reduction.op == "max" else value.min()

    # Objects of libraries, like files of HDF5, are read by one thread.
    free = all(isinstance(arrays[n], (RawArray, Values)) for n in used) and not run._edits  # whose functions are the program's
    threads = min(len(os.sched_getaffinity(0)), 8, nz) if free and nz * ny * nx > 1 << 20 else 1
    ends = [nz * i // threads for i in range(threads + 1)]
    if threads == 1:
        some(0, nz)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(some, ends, ends[1:]))
    if reduction.per is None:
        if reduction.op == "sum":
            total = 0.0
            for value in results:
                total += value
        else:
            total = results.max() if reduction.op == "max" else results.min()
        return Reduced([total], reduction.op, floor)
    return Reduced(results, reduction.op, floor)


def warn_of_noise(run: Any, reduction: Reduction, result: Reduced) -> None:
    """Warns once if the mean has almost vanished: the spread then no longer falls."""
    if reduction.per is None or result.floor > 0:
        return
    mean, before = result.mean_size, run._means.get(reduction, 0.0)
    run._means[reduction] = max(before, mean)
    if mean < _NOISE * before:
        run._means[reduction] = float("-inf")
        warnings.warn(f"step {run.step}: the mean of {reduction.name} has fallen from {before:.3g} to {mean:.3g}, so its spread shows only rounding "
                      f"errors or a signal that has died away: give a floor, such as run.reduce({reduction.name}, floor={before * 1e-9:.1g})",
                      RuntimeWarning, stacklevel=3)


def checked_floor(floor: Any) -> float:
    if not (isinstance(floor, (int, float, np.number)) and 0 <= floor < float("inf")):
        raise MemextError(f"floor={floor!r}: give a finite number, 0 or more", errno.EINVAL)
    return float(floor)


def stored_reductions(run: Any) -> list[str]:
    """The names of the run's reductions for which is_stored holds; looked up once."""
    if run._stored is None:
        run._stored = [r.name for r in run.reductions if is_stored(run, r)]
    return run._stored


def is_stored(run: Any, reduction: Reduction) -> bool:
    """Can the sweep that ends with a state compute the reduction from the rows that it stores? Then it reads the state only at the cell, and no parameters."""
    extra = run._problem.extra
    if reduction.per is not None or run.code.form == "staggered" or extra.get("accel") or extra.get("in_place"):
        return False
    cell = reduction.translate(run.code)
    return cell.names("at") <= set(run._problem.state) and cell.reach(set(run.code.dtypes)) == 0 and not cell.names("param")


def stored_by_sweep(run: Any, reduction: Reduction, floor: float) -> Reduced | None:
    """The reduction of the present state, as the last sweep stored it; None if the sweep did not."""
    if reduction not in run.reductions or reduction.per is not None or run._edits or run._memory is not None:
        return None
    info = run._look() or {}
    last = info.get("last_check")
    stored = last["stored"] if last and last["step"] == run.step == info["step"] else ()
    value = stored[run.reductions.index(reduction)] if len(stored) == len(run.reductions) else None
    if value is not None:
        run._check_mark(info)
    return None if value is None else Reduced([value], reduction.op, floor)


def taken_by_sweep(run: Any, reduction: Reduction, floor: float) -> Reduced:
    """The reduction that the sweep before the present check computed, of the state one step earlier."""
    if reduction not in run.reductions or reduction.per is not None:
        raise KernelError(f"the run does not compute {reduction.name} during its steps: make the Run with reductions=[{reduction.name}], and the reduction without per=")
    last = (run._look() or {}).get("last_check")
    if last is None or last["step"] != run.step or len(last["reductions"]) != len(run.reductions):
        raise MemextError(f"no check has computed {reduction.name} at step {run.step}: use taken=True where steps(..., check=N) yields, after the first step; leave "
                          "taken= out for the value of the present state", errno.EINVAL)
    value = last["reductions"][run.reductions.index(reduction)]
    return Reduced([np.nan if value is None else value], reduction.op, floor)
