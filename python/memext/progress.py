# SPDX-License-Identifier: BSD-3-Clause
"""Shows the progress of a run."""
from __future__ import annotations

import sys
from typing import Any

from . import _core


class Progress:
    """Shows progress as a bar of tqdm, or as a line on a terminal if tqdm is missing. It can also call the caller's function(step, steps, phase)."""

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


def step_of(progress: Any, first: int, target: int) -> float:
    """The step that a part of a run from `first` to `target` has reached. It is an integer before and after its updates."""
    phase = _core.ffi.string(progress.phase).decode()
    if phase == "updates":
        return first + (target - first) * (min(progress.done / progress.total, 1) if progress.total > 0 else 0)
    return first if phase in ("prepare", "initial", "edit", "frames", "") else target
