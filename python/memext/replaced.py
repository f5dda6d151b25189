# SPDX-License-Identifier: BSD-3-Clause
"""A run that begins anew replaces the store in its place. Its initial fields may come from that store, which then stays until the first commit. Nothing
else that the run reads may lie there."""
from __future__ import annotations

import copy
import errno
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from . import _core
from .arrays import Array, FormerArray, RawArray, Superseded, Unchanged, moment_of, recorded
from .edits import StateArray
from .errors import MemextError
from .identity import files_of
from .sources import Source
from .values import Values

known: set[str] = set()  # runs that this process has begun, or gone on with
ended: set[str] = set()  # and those of them that it has closed, other than by an error


def fields_here(fields: Mapping[str, Any], place: Any) -> dict[str, Array]:
    """The fields that are arrays of the store in this place, which may be gone. They can be read while a run begins there."""
    here: dict[str, Array] = {}
    for name, value in fields.items():
        if isinstance(value, FormerArray) or (isinstance(value, RawArray) and isinstance(value._check, Unchanged)):
            if value.path is None or not _is_among([value.path], _stores_in(pathlib.Path(place))):
                continue
            if isinstance(value, StateArray) and value._edits:
                raise MemextError(f"{name} has changes that are not committed, and lies in the store that the new run would replace: let its own run continue "
                                  "first, or give another device", errno.EINVAL)
            here[name] = value if isinstance(value, FormerArray) else copy.copy(value._stored if isinstance(value, StateArray) else value)
            if isinstance(here[name], RawArray):
                here[name]._check = Superseded(value._check)  # type: ignore[attr-defined, arg-type]
    return here


def begins_with(run: Any, info: Mapping[str, Any]) -> bool:
    """Does the run begin with the state of the store in its place? False if that store is the run itself."""
    here, kernel = run._problem.here, (info["problem"].get("kernel") or {}).get("name")
    try:
        run._compare()
    except MemextError as error:
        if not here or run.resume is True or error.errno != errno.EEXIST or (info["state"] == "interrupted" and not run._problem.extra.get("force")):
            raise
        if info["run"] not in known and info.get("former") and kernel == (run.kernel.name if run.kernel is not None else None):
            raise MemextError(f"{error.sentence}. Another process began the stored run, with an earlier state of this place. To begin a new run "
                              "with the state that is there now, give resume=False", errno.EEXIST) from None
        return True
    if here and run.resume == "auto" and info["run"] in ended:
        raise MemextError(f"{info['place']} holds step {info['step']} of this run, which this program has already ended: resume=True resumes it, "
                          "resume=False begins another run with its state", errno.EEXIST)
    return False


def shows_own(run: Any) -> bool:
    """Before the first step of a run: is the state in its place its own, which it will continue?"""
    info = None if run.resume is False else run._look()
    return info is not None and not begins_with(run, info)


def check_place(problem: Any, source: Source | None, place: pathlib.Path) -> dict[str, Any]:
    """Refuses a new run that reads from the store that it would replace, unless fields of that store are given as they are. Returns the options that this
    needs."""
    check_fields({n: v for n, v in problem.fields.items() if n not in problem.here}, source, place)
    check_moment(problem.here, place)
    return {"supersede": True} if problem.here else {}


def check_moment(here: Mapping[str, Array], place: Any) -> None:
    """Refuses the fields if the store no longer holds the state that they were opened with."""
    now = moment_of(_core.look(place)) if here else ()
    for array in here.values():
        if isinstance(array, FormerArray):
            array.plane(0)
        elif array._check.moment != now:  # type: ignore[attr-defined]
            array._check.gone_on()  # type: ignore[attr-defined]


def _stores_in(place: pathlib.Path) -> list[pathlib.Path]:
    return [p for p in (place, place / "memext.store") if not p.is_dir() and p.exists()]


def check_fields(fields: Mapping[str, Any], source: Source | None, place: pathlib.Path) -> None:
    """Reads what the fields read before the store goes, and refuses those that read the store. source: the Source of the same fields."""
    places = _stores_in(place)
    if not places:
        return
    for name, value in fields.items():
        with recorded() as read:
            if source is not None and name in source.fields:
                source.identity(name)
                if isinstance(value, Values):
                    value.try_out(source.shape)
        if _is_among([*files_of(value), *_files_in_graph(value), *read], places):
            raise MemextError(f"{name} is read from the store in {place}, which this run would replace: save it to a file first, give another device, or give "
                              "the store's field itself, memext.open(place)[NAME]", errno.EINVAL)


def _is_among(paths: Iterable[pathlib.Path], places: list[pathlib.Path]) -> bool:
    return any(os.path.samefile(path, p) for path in paths if path.exists() for p in places)


def _files_in_graph(value: Any) -> list[pathlib.Path]:
    """The files of the arrays that dask's tasks read, also of those whose planes were not tried."""
    while hasattr(value, "source"):  # of an array that is converted, or turned
        value = value.source
    graph = getattr(getattr(value, "variable", value), "__dask_graph__", lambda: None)()
    left, paths = list(graph.values()) if graph is not None else [], []
    while left:
        one = left.pop()
        if isinstance(one, Array):
            paths += files_of(one)
        elif isinstance(one, (tuple, list)):
            left += one
        elif isinstance(getattr(one, "args", None), tuple):
            left += one.args
    return paths
