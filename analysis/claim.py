# SPDX-License-Identifier: BSD-3-Clause
"""What a finding claims, and how one of its comparisons is decided: by numbers, never by hand, and in the same way for every row of the table (claims).

A finding is one or several comparisons (parts). Each is a ratio with its interval (effects.py) and the band in which the finding says that it lies.

    confirmed          every interval lies inside its band
    at least as good   the published value is missed, but on the good side alone: every interval lies inside its band, and one value is more than TOLERANCE better than the published one
    does not hold here an interval lies outside its band. "Smaller" and "larger" do not hold either if the interval shows that the difference is less than EQUAL. The problems are smaller than the
                       papers', and the machine is another one: a finding that does not hold here is not refuted there
    undecided          none of these: too few or too short repeats, too much noise, or a failed run
    not tested         the runs that it needs were not made

The table has many intervals, and each is a chance to be wrong. All intervals that decide hold together with 95 %: each is taken at a level corrected for their number (Bonferroni). The report shows
these intervals. Those of a plan's other measurements are taken at the same level; they decide nothing, and are not counted.

Bands of published numbers. A published ratio is widened as a ratio (near). A published difference, such as "7 % longer", is widened as a difference (near_difference): by a tenth of 7 %. A band widened by a
tenth of 1.07 would contain 1, no difference at all. A test checks that runs between which nothing differs confirm no row.
"""
import math
from dataclasses import dataclass
from typing import NamedTuple

from analysis.effects import LEAST_PAIRS, LEVEL, Effect

CONFIRMED, AT_LEAST_AS_GOOD, REFUTED, UNDECIDED, NOT_TESTED = "confirmed", "at least as good", "does not hold here", "undecided", "not tested"
STATES = (CONFIRMED, AT_LEAST_AS_GOOD, REFUTED, UNDECIDED, NOT_TESTED)
EQUAL = 0.05  # a smaller difference counts as none
TOLERANCE = 0.10  # how far a number may miss the published one, on another machine
NOT_RUN = "not run"
TOO_SHORT = "too short to decide"  # how a gap ends that a large effect overrules
TWOFOLD = 2.0  # an order so large is decided by short runs too
# All intervals of the table hold together at LEVEL. The number is larger than the table has, so that further results do not change earlier intervals (tests/python/test_verdicts.py counts them).
INTERVALS = 200
EACH_LEVEL = LEVEL / INTERVALS


class Band(NamedTuple):
    """Where a ratio lies if the finding holds. best: for a rule that fails on one side alone, the edge on the other side; a value beyond it is better than the published one. None: there is no such edge."""

    low: float
    high: float
    best: float = None


SMALLER, LARGER = Band(0.0, 1.0), Band(1.0, math.inf)
AT_MOST = Band(0.0, 1.001)  # for counts: as few, or fewer


def percent(share):
    return f"{share:.0%}".replace("%", " %")


def near(low, high=None):
    """The band of a published value or range, widened by TOLERANCE."""
    return Band(low / (1 + TOLERANCE), (high if high is not None else low) * (1 + TOLERANCE))


def near_difference(low, high=None):
    """The band of a value that is published as a difference from 1, such as 0.07 for "7 % longer" and -0.2 for "gains 20 %". TOLERANCE widens the difference."""
    ends = [d * f for d in (low, high if high is not None else low) for f in (1 / (1 + TOLERANCE), 1 + TOLERANCE)]
    return Band(1 + min(ends), 1 + max(ends))


def no_more_than(band):
    """The rule that fails only above a band of near or near_difference."""
    return Band(0.0, band.high, band.low)


def no_less_than(band):
    """The rule that fails only below a band of near or near_difference."""
    return Band(band.low, math.inf, band.high)


@dataclass(frozen=True)
class Part:
    """One comparison of a finding."""

    label: str
    effect: Effect = None
    band: Band = SMALLER
    gap: str = ""  # why the effect may not decide, or why there is none
    settled: str = ""  # a state that needs no number: what happened decides
    form: str = "{:.3g}"
    beside: bool = False  # shown with the judged numbers, and not judged itself

    @property
    def untested(self):
        return self.gap == NOT_RUN

    def _gap(self, level):
        """Why the effect may not decide; "" if it may. An order that the whole interval shows twofold needs no long runs."""
        if self.gap.endswith(TOO_SHORT) and self.effect is not None and self.effect.enough and self.band in (SMALLER, LARGER):
            a, b = self.effect.interval(level)
            return "" if b < 1 / TWOFOLD or a > TWOFOLD else self.gap
        return self.gap

    def state(self, level=LEVEL):
        """The state by the rules above. The interval misses the truth with a probability of at most `level`."""
        if self.settled:
            return self.settled
        if self.effect is None or not self.effect.enough:
            return UNDECIDED
        if self._gap(level):
            return UNDECIDED
        low, high, best = self.band
        a, b = self.effect.interval(level)
        if (a > low or low <= 0) and b < high:
            inside = best is None or (b < best if low > 0 else a > best)
            return CONFIRMED if inside else AT_LEAST_AS_GOOD
        if b < low or a > high:
            return REFUTED
        if self.effect.exact:  # what is counted is inside or it is not
            return REFUTED
        none = (self.band == SMALLER and a > 1 - EQUAL) or (self.band == LARGER and b < 1 / (1 - EQUAL))
        return REFUTED if none else UNDECIDED

    def say(self, level=LEVEL):
        number = self.effect.say(self.form, level) if self.effect is not None else ""
        why = self._gap(level)
        if not why and not self.settled and self.effect is not None and not self.effect.enough:
            why = f"{self.effect.n} of at least {LEAST_PAIRS} repeats"
        return f"{self.label} {number}".rstrip() + (f" ({why})" if why and why not in self.label else "")


@dataclass(frozen=True)
class Claim:
    """A row before it is decided. parts: function of (results, published) that returns Parts."""

    name: str
    finding: str
    source: str
    published: str
    rule: str
    plans: tuple
    parts: object
    needs: str = ""  # what a machine must have for runs of this finding, if no plan makes them
    also: tuple = ()  # plans whose runs count too, if they were made
