# SPDX-License-Identifier: BSD-3-Clause
"""The temporary directory of a run that was given no device."""
from __future__ import annotations

import os
import pathlib
import shutil
import types
import weakref
from typing import Any


class OwnPlace:
    """The temporary directory of a run that was given no device. The run refers to it, and so does everything that the run hands out and that is read
    later. The directory is removed with the last of these, at the latest when the program ends, unless `wish.keep` is true then."""

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
