# SPDX-License-Identifier: BSD-3-Clause
"""Pictures: three orthogonal slices, in notebooks and as PNG files."""
from __future__ import annotations

import base64
import errno
import html
import json
import os
import pathlib
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from . import _core
from .arrays import Array, Store
from .errors import MemextError
from .formats import as_rows_or_planes
from .formats import open as open_any
from .replacing import name_beside, remove, replace
from .report import table_html

# Every 32nd colour of viridis.
_COLOURS = np.array([[68, 1, 84], [70, 50, 126], [54, 92, 141], [39, 127, 142], [31, 161, 135], [74, 193, 109], [160, 218, 57], [253, 231, 37]])
_HTML_CELLS = 128
MADE_BY = "memext view"


def png(values: np.ndarray, low: float, high: float) -> bytes:
    """A PNG of the numbers [y][x]; low and high have the first and the last colour."""
    share = np.nan_to_num((values.astype("f8") - low) / (high - low if high > low else 1), nan=0.0).clip(0, 1)
    at = share * (len(_COLOURS) - 1)
    pixels = np.stack([np.interp(at, range(len(_COLOURS)), _COLOURS[:, c]) for c in range(3)], axis=-1).astype("u1")
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    height, width = values.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def _numbers(cells: np.ndarray) -> np.ndarray:
    """Cells of a type that matplotlib draws: booleans become u1, half precision f8."""
    return cells.astype({"b": "u1", "f": "f8"}[cells.dtype.kind]) if cells.dtype.kind == "b" or cells.dtype.str[1:] == "f2" else cells


def _limits(pictures: list[np.ndarray]) -> tuple[float, float]:
    finite = np.concatenate([p[np.isfinite(p)].ravel() for p in pictures])
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def slices_html(array: Array, most: int = _HTML_CELLS) -> str:
    if array.size == 0 or array.dtype.kind not in "biuf":
        return ""
    pictures = array.slices(most)
    low, high = _limits(pictures)
    images = "".join(
        f"<td><img style='image-rendering:pixelated;min-width:96px' alt='{axes}' src='data:image/png;base64,"
        f"{base64.b64encode(png(p, low, high)).decode()}'/><br/>{axes}</td>"
        for p, axes in zip(pictures, ("y x", "z x", "z y")))
    return f"<table><tr>{images}</tr></table><p>{html.escape(array.name)}: {low:.6g} to {high:.6g} in {'this picture' if array.ndim == 2 else 'these slices through the middle'}</p>"


def array_html(array: Array) -> str:
    rows = [("array", f"{array.name}, {array.dtype.name} {array.shape}, {_core.size_text(array.nbytes)}")]
    return table_html(rows) + slices_html(array)


def when(step: int, seconds: float | None) -> str:
    return f"{step}" if seconds is None else f"{step} ({seconds:.6g} s)"


def store_html(store: Store) -> str:
    rows = [("store", f"{store.path}, {store.state}"), ("step", when(store.step, store.time)), ("fields", ", ".join(store.fields))]
    text = table_html(rows)
    return text + (slices_html(store[store.fields[0]]) if store.fields and not store.info["in_use"] else "")


def run_html(run: Any) -> str:
    """HTML with the plan of the last part of a run, and slices of its first field."""
    text = f"<p>{html.escape(repr(run))}</p>"
    if not run.reports:
        return text
    text += run.reports[-1]._repr_html_()
    name = next(iter(run._problem.state))
    try:
        return text + slices_html(run[name])
    except MemextError as error:
        return text + f"<p>{html.escape(str(error))}</p>"


def _pyplot() -> Any:
    try:
        import matplotlib
        matplotlib.use("Agg", force=False)
        import matplotlib.pyplot as pyplot
    except ImportError:
        raise MemextError("pictures need the package matplotlib, which is not installed: pip install matplotlib") from None
    return pyplot


class Snapshot(NamedTuple):
    """The snapshot that a run has written after `step` steps. time: in seconds; None if the run does not know the length of a step."""

    step: int
    time: float | None
    arrays: list[Array]


def newest_snapshot(path: Any, field: str | None = None) -> Snapshot | None:
    """The last complete snapshot in a directory, also while the run continues; None if `path` is not a directory of snapshots."""
    folder = pathlib.Path(path)
    if not (folder / "memext.snapshots").is_file():
        return None
    note = json.loads((folder / "memext.snapshots").read_text())
    fields = note["fields"]
    if field is not None and field not in fields:
        raise MemextError(f"{folder} has no snapshots of {field}: name one of {', '.join(fields)}", errno.EINVAL)
    steps = [{int(p.stem.rpartition("-")[2]) for p in folder.glob(f"{n}-*.npy")} for n in fields]
    whole = set.intersection(*steps)
    if not whole:
        raise MemextError(f"{folder} holds no snapshot yet", errno.ENOENT)
    step, each = max(whole), note.get("simulated_s")
    time = step * note["time_step_s"] if "time_step_s" in note else each[step // note["every"] - 1] if each else None
    return Snapshot(step, time, [open_any(folder / f"{n}-{step:06d}.npy") for n in fields if field in (None, n)])


def view(what: Any, path: Any, dataset: str | None = None, most: int = 512) -> pathlib.Path:
    """Writes a PNG with three orthogonal slices (one picture in two dimensions) and a histogram of each field, and returns its path.

    what: a Store, an array, or a path: of a store, of a directory of snapshots (option snapshot; the newest is shown), or of a file that memext.open reads.
    path: the PNG. dataset: show only this field, or this dataset of a file. most: the largest number of pixels along a side. The histogram of an array above
    64 MiB counts the cells of evenly spaced planes. Raises MemextError if matplotlib is missing, or if cells are not real numbers."""
    pyplot, given = _pyplot(), pathlib.Path(path)
    snapshot = None if hasattr(what, "shape") or isinstance(what, Store) else newest_snapshot(what, dataset)
    arrays = snapshot.arrays if snapshot is not None else []
    if snapshot is None:
        if not isinstance(what, (Array, Store)):
            what = as_rows_or_planes(what, "array") if hasattr(what, "shape") else open_any(what, dataset)
        arrays = [what[n] for n in ([dataset] if dataset else what.fields)] if isinstance(what, Store) else [what]
    if not arrays:
        raise MemextError(f"{what.path} holds no state: {what.info['why']}")
    for array in arrays:
        if array.dtype.kind not in "biuf" or array.size == 0:
            raise MemextError(f"{array.name} has shape {array.shape} and cells of {array.dtype}: a picture needs at least one cell, and real numbers", errno.EINVAL)
    across_of = {"z": ("y", "x"), "y": ("z", "x"), "x": ("z", "y")} if arrays[0].ndim == 3 else {"": ("y", "x")}
    count, letters = len(across_of), "zyx"[-arrays[0].ndim:]
    figure, axes = pyplot.subplots(len(arrays), count + 1, figsize=(4 * count + 4, 4 * len(arrays)), squeeze=False, constrained_layout=True)
    of = snapshot or (what if isinstance(what, Store) else None)
    if of is not None:
        figure.suptitle(f"step {when(of.step, of.time)}")
    for row, array in zip(axes, arrays):
        pictures = [_numbers(p) for p in array.slices(most)]
        low, high = _limits(pictures)
        for axis, picture, (across, (up, right)) in zip(row, pictures, across_of.items()):
            width, height = (array.shape[letters.index(one)] for one in (right, up))
            shown = axis.imshow(picture, vmin=low, vmax=high, origin="lower", extent=(0, width, 0, height), interpolation="nearest")
            axis.set(xlabel=right, ylabel=up, title=f"{array.name}, {across} = {array.shape[letters.index(across)] // 2}" if across else array.name)
        figure.colorbar(shown, ax=row[count - 1])
        sample = _numbers(_sample(array))
        sample = sample[np.isfinite(sample)]
        row[count].hist(sample, bins=_edges(sample))
        row[count].set(xlabel=array.name, ylabel="cells", title=f"{array.dtype.name} {array.shape}", yscale="log")
    path = pathlib.Path(os.path.realpath(_core.regular(path)))
    beside, kind = name_beside(path), path.suffix[1:].lower() or "png"
    try:
        figure.savefig(beside, dpi=100, format=kind, metadata={"Software": MADE_BY} if kind == "png" else None)
        replace(beside, path, overwrite=True)
    finally:
        remove(beside)
        pyplot.close(figure)
    return given


def is_picture_of_view(path: pathlib.Path) -> bool:
    """Is it a PNG that view has made?"""
    with open(path, "rb") as file:
        return f"Software\0{MADE_BY}".encode() in file.read(4096)


def _edges(values: np.ndarray, bins: int = 100) -> np.ndarray:
    """The edges of bins of equal width around all values. numpy's own bins fail if the width is lost in rounding, or is larger than a double."""
    if values.size == 0:
        return np.linspace(0, 1, bins + 1)
    low, high = float(values.min()), float(values.max())
    largest = max(abs(low), abs(high))
    if high / 2 - low / 2 < 1e-13 * largest or high == low:  # too few doubles for so many bins
        beside, most = max(0.5, 1e-3 * largest), np.finfo(float).max
        low, high = max(low - beside, -most), min(high + beside, most)
    return 2 * np.linspace(low / 2, high / 2, bins + 1)


def _sample(array: Array, most_bytes: int = 64 << 20) -> np.ndarray:
    """All cells of an array, or those of evenly spaced planes if it is larger than most_bytes."""
    a_plane = max(1, array.nbytes // max(1, array.shape[0]))
    count = max(1, min(array.shape[0], most_bytes // a_plane))
    return np.concatenate([array.plane(int(z)).ravel() for z in np.linspace(0, array.shape[0] - 1, count).round()])
