# SPDX-License-Identifier: BSD-3-Clause
"""A run that begins anew in a place replaces the store there: what it begins with must not lie in that store."""
from __future__ import annotations

import errno
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from .arrays import Array, recorded
from .errors import MemextError
from .identity import files_of
from .sources import Source
from .values import Values


def check_fields(fields: Mapping[str, Any], source: Source | None, place: pathlib.Path) -> None:
    """Tries what the fields read, as far as it is read before the store goes, and sees whether it was the store. source: of the same fields."""
    places = [p for p in (place, place / "memext.store") if not p.is_dir() and p.exists()]
    if not places:
        return
    for name, value in fields.items():
        with recorded() as read:
            if source is not None and name in source.fields:
                source.identity(name)
                if isinstance(value, Values):
                    value.try_out(source.shape)
        if _is_among([*files_of(value), *_files_in_graph(value), *read], places):
            raise MemextError(f"{name} lies in the store in {place}, which this run would replace: save it to a file before, or name another device",
                              errno.EINVAL)


def _is_among(paths: Iterable[pathlib.Path], places: list[pathlib.Path]) -> bool:
    return any(os.path.samefile(path, p) for path in paths if path.exists() for p in places)


def _files_in_graph(value: Any) -> list[pathlib.Path]:
    """Of the arrays that dask's tasks take their cells from; those whose planes are not tried are among them."""
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
