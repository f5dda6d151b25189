# SPDX-License-Identifier: BSD-3-Clause
"""The directory of a run that was given none."""
from __future__ import annotations

import os
import pathlib
import shutil
import types
import weakref
from typing import Any


class OwnPlace:
    """The directory of a run that was given none. The run has it, and so has all that the run hands out and that is read later; when the last of them
    is gone, at the end of the program at the latest, so is the directory, unless `wish` says then that it stays."""

    def __init__(self, path: pathlib.Path, process: int, wish: types.SimpleNamespace):
        self._removal = weakref.finalize(self, _remove_own, path, process, wish)

    def gone(self) -> None:
        self._removal.detach()

    def __copy__(self) -> OwnPlace:
        return self

    def __deepcopy__(self, _memo: dict) -> OwnPlace:
        return self

    def __reduce__(self) -> Any:
        return type(None), ()  # another process removes nothing


def _remove_own(path: pathlib.Path, process: int, wish: types.SimpleNamespace) -> None:
    if os.getpid() == process and not wish.keep:
        shutil.rmtree(path, ignore_errors=True)
