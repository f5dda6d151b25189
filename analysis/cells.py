# SPDX-License-Identifier: BSD-3-Clause
"""A figure with its numbers; what is drawn of a group, and how a cell of its table is written."""
from dataclasses import dataclass, field

from analysis import style
from analysis.effects import LEAST_SECONDS, Effect, by_repeat, quotient
from analysis.measures import GIB, gupdates, mflops, per_step, seconds, size_bytes
from analysis.stats import Stat

NAMES = {"skewed-min": "skewed-min (aio5y)", "skewed-y": "skewed-y (aio3y)", "redundant": "redundant (algorithm-1)", "stream": "stream (memext)",
         "skewed": "skewed (algorithm-2)", "direct-skewed": "direct-skewed (mmap1)", "direct-skewed-opt": "direct-skewed-opt (mmap1+opt)"}  # fmt: skip
METHODS = {"aio": "aio", "uring": "io_uring", "mmap": "mmap", "swap": "swap", "stream": "stream (memext)"}
TUNER_NAMES = {"manual": "manual choice", "naive": "Naive-Tune", "blk": "Blk-Tune"}
STENCIL_NAMES = {"star7": "7 points", "edge19": "19 points", "box27": "27 points"}
BUFFERS_GIB = "size of the two Buffers (GiB)"
NOT_GIVEN = "not given in the text"
ONE_RUN = "one run"


@dataclass
class Drawn:
    """A figure with the numbers in it, as a table and in words."""

    name: str
    title: str
    figure: object
    header: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    notes: list = field(default_factory=list)


@dataclass(frozen=True)
class Short(Stat):
    """A time, or a number made from it, of runs that are too short to decide anything."""

    short: bool = True


@dataclass(frozen=True)
class Ratio(Stat):
    """A ratio over pairs of runs, one pair for each round. low and high are the 95 % interval, or the range if there are too few pairs for an interval. short: some runs are too short."""

    interval: bool = False
    short: bool = False


TIMED = {per_step, seconds, gupdates, mflops}


def is_short(*groups):
    """Do the runs of one of these groups take less than LEAST_SECONDS, in the median?"""
    times = [group.stat(lambda r: r.seconds if r.report.get("seconds") else None) for group in groups]
    return any(t is not None and t.median < LEAST_SECONDS for t in times)


class Rounds:
    """Counts the rounds behind what a figure draws. The time of a single run is not drawn; a counted number of one run is exact and is drawn."""

    def __init__(self, exact=False):
        self.exact, self.counts, self.single, self.failures, self.spreads, self.short = exact, [], 0, 0, set(), 0

    def of(self, value):
        """The value as it is drawn: a Gap instead of a single run."""
        if not isinstance(value, Stat):
            self.failures += isinstance(value, str) and not isinstance(value, style.Gap) and bool(value)
            return value
        if value.n < 2 and not self.exact:
            self.single += 1
            return style.Gap(ONE_RUN)
        self.counts.append(value.n)
        self.short += getattr(value, "short", False)
        self.spreads.add("times" if not isinstance(value, Ratio) else "interval" if value.interval else "range")
        return value

    def row(self, values):
        return [self.of(v) for v in values]

    def _lines(self):
        if "interval" not in self.spreads:
            return "smallest to largest"
        return "95 % interval" + (" of ratios" if "times" in self.spreads else "") + ("; range of ratios with fewer than five rounds" if "range" in self.spreads else "") + ("; other numbers: smallest to largest" if "times" in self.spreads else "")

    def say(self):
        low, high = min(self.counts), max(self.counts)
        counted = "counted, equal in every round" if self.exact else f"lines: {self._lines()}"
        return f"n = {low} round{'s' if high > 1 else ''}; {counted}" if low == high else f"n = {low} to {high} rounds; {counted}"

    def finish(self, drawn, *more):
        """Writes n and spread under the figure, and says in the notes what is left out. Without any point left there is no figure."""
        if self.single:
            drawn.notes.append(f"{self.single} point{'s' if self.single > 1 else ''} with one run {'are' if self.single > 1 else 'is'} not drawn. The table has the number{'s' if self.single > 1 else ''}.")
        if self.short:
            drawn.notes.append(f"{self.short} point{'s rest' if self.short > 1 else ' rests'} on runs of less than {LEAST_SECONDS:g} s, which decide no number. The table marks their numbers as short.")
        if drawn.figure is not None and not self.counts and not self.failures:
            style.close(drawn.figure)
            drawn.figure = None
            drawn.notes.append("There is no figure, because no point has two runs or more.")
        elif drawn.figure is not None:
            short = [f"{self.short} of {len(self.counts)} points rest on runs under {LEAST_SECONDS:g} s"] if self.short else []
            style.foot(drawn.figure, ". ".join([*([self.say()] if self.counts else []), *short, *more]))
        return drawn


def cell(group, of, timed=None):
    """The value of a group for figures and tables: a Stat; or the failure in words; or a Gap, if its runs completed and did not count this; or None, if it was not run. timed: the number is made from a time,
    and is marked if the runs are too short."""
    if group is None:
        return None
    found = group.stat(of)
    if found and (of in TIMED if timed is None else timed) and is_short(group):
        return Short(found.median, found.low, found.high, found.n, found.failed)
    return found or (group.failure or (style.Gap("not counted") if group.done else None))


def paired(values, failed=0, exact=False, short=False):
    """A Ratio of {round: quotient}; a Gap if there is no quotient."""
    if not values:
        return style.Gap("no common round")
    effect = Effect(tuple(values.values()), exact)
    ends = effect.interval()
    low, high = ends or (min(effect.values), max(effect.values))
    return Ratio(effect.value, low, high, effect.n, failed, interval=bool(ends) and not exact, short=short)


def ratio(a, b, of, timed=None):
    """a's value / b's value over paired rounds: a Ratio; or why one of the two failed; or a Gap; or None, if one was not run."""
    if a is None or b is None:
        return None
    lost = next((g for g in (a, b) if not g.done), None)
    if lost is not None:
        return lost.failure or None
    values, base = by_repeat(a, of), by_repeat(b, of)
    if not values or not base:
        return style.Gap("not counted")
    return paired(quotient(values, base), len(a.failures) + (len(b.failures) if a is not b else 0), short=(of in TIMED if timed is None else timed) and is_short(a, b))


def show(value, form="{:.3g}"):
    """A cell of a table."""
    if value is None:
        return "not run"
    if isinstance(value, str):
        return str(value) if isinstance(value, style.Gap) else f"failed: {value}" if value else ""
    if isinstance(value, Stat):
        lost = (f", {value.failed} failed" if value.failed else "") + (", short" if getattr(value, "short", False) else "")
        left, right = "[]" if isinstance(value, Ratio) and value.interval else "()"
        if value.n > 1:
            return f"{form.format(value.median)} {left}{form.format(value.low)} to {form.format(value.high)}, n={value.n}{lost}{right}"
        return form.format(value.median) + (f" ({lost[2:]})" if lost else "")
    return form.format(value) if isinstance(value, float) else str(value)


def over(value, base):
    """A Stat relative to another one, with the range of both. A failure is returned as it is."""
    if isinstance(value, Stat) and isinstance(base, Stat) and base.low > 0:
        return value.over(base)
    return value if isinstance(value, str) else None


def in_gib(size):
    """ "512MiB" -> "0.5"."""
    return f"{size_bytes(size) / GIB:g}"
