# SPDX-License-Identifier: BSD-3-Clause
"""A figure as it is handed on with its numbers, and how a cell of its table is written."""
from dataclasses import dataclass, field

from analysis import style
from analysis.stats import Stat

NAMES = {"skewed-min": "skewed-min (aio5y)", "skewed-y": "skewed-y (aio3y)", "redundant": "redundant (algorithm-1)", "stream": "stream (ours)",
         "skewed": "skewed (algorithm-2)", "direct-skewed": "direct-skewed (mmap1)", "direct-skewed-opt": "direct-skewed-opt (mmap1+opt)"}  # fmt: skip
NOT_GIVEN = "not given in the text"


@dataclass
class Drawn:
    """A figure with the numbers in it, as a table and in words."""

    name: str
    title: str
    figure: object
    header: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    notes: list = field(default_factory=list)


def cell(group, of):
    """Stat of a group, or its failure in words, or a Gap where it ended and was not counted, or None where it was not run."""
    if group is None:
        return None
    return group.stat(of) or (group.failure or (style.Gap("not counted") if group.done else None))


def show(value, form="{:.3g}"):
    """A cell of a table."""
    if value is None:
        return "not run"
    if isinstance(value, str):
        return str(value) if isinstance(value, style.Gap) else f"failed: {value}" if value else ""
    if isinstance(value, Stat):
        lost = f", {value.failed} failed" if value.failed else ""
        if value.n > 1:
            return f"{form.format(value.median)} ({form.format(value.low)} to {form.format(value.high)}, n={value.n}{lost})"
        return form.format(value.median) + (f" ({lost[2:]})" if lost else "")
    return form.format(value) if isinstance(value, float) else str(value)


def over(value, base):
    """A Stat relative to another, with the range of both; failures pass through."""
    if isinstance(value, Stat) and isinstance(base, Stat) and base.low > 0:
        return value.over(base)
    return value if isinstance(value, str) else None
