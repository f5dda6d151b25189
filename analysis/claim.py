# SPDX-License-Identifier: BSD-3-Clause
"""What a finding claims and how one of its comparisons is decided: by numbers, never by hand, and the same way for every row of the table (claims).

A finding is one or several comparisons (parts). Each is a ratio with its interval (effects.py) and the band in which the finding says that it lies.

    confirmed    every interval (95 %) lies inside its band
    refuted      an interval lies outside its band; with several parts each is taken at 95 % / parts, so that many looks do not refute by chance. "Smaller" and "larger" are refuted too where the
                 interval shows that there is no difference of EQUAL
    undecided    neither: too few or too short repeats, too much noise, a run that failed
    not tested   what it needs was not run
"""
import math
from dataclasses import dataclass

from analysis.effects import LEAST_PAIRS, LEVEL, Effect

CONFIRMED, REFUTED, UNDECIDED, NOT_TESTED = "confirmed", "refuted", "undecided", "not tested"
STATES = (CONFIRMED, REFUTED, UNDECIDED, NOT_TESTED)
SMALLER, LARGER = (0.0, 1.0), (1.0, math.inf)
AT_MOST = (0.0, 1.001)  # of counted things: as few, or fewer
EQUAL = 0.05  # smaller differences are none
TOLERANCE = 0.10  # by which a number may miss the published one, on another machine
NOT_RUN = "not run"


def percent(share):
    return f"{share:.0%}".replace("%", " %")


def near(low, high=None):
    """The band of a published value or range, widened by TOLERANCE."""
    return low / (1 + TOLERANCE), (high if high is not None else low) * (1 + TOLERANCE)


def at_most(high):
    return 0.0, high * (1 + TOLERANCE)


def at_least(low):
    return low / (1 + TOLERANCE), math.inf


@dataclass(frozen=True)
class Part:
    """One comparison of a finding."""

    label: str
    effect: Effect = None
    band: tuple = SMALLER
    gap: str = ""  # why the effect may not decide, or why there is none
    settled: str = ""  # a state that needs no number: what happened decides
    form: str = "{:.3g}"

    @property
    def untested(self):
        return self.gap == NOT_RUN

    def state(self, parts=1):
        """By the rule above, as one of so many parts."""
        if self.settled:
            return self.settled
        if self.gap or self.effect is None or not self.effect.enough:
            return UNDECIDED
        low, high = self.band
        a, b = self.effect.interval()
        if a > low and b < high or (low <= 0 and b < high):
            return CONFIRMED
        a, b = self.effect.interval(LEVEL / parts)
        if b < low or a > high:
            return REFUTED
        if self.effect.exact:  # what is counted is inside or it is not
            return REFUTED
        none = (self.band == SMALLER and a > 1 - EQUAL) or (self.band == LARGER and b < 1 / (1 - EQUAL))
        return REFUTED if none else UNDECIDED

    def say(self):
        number = self.effect.say(self.form) if self.effect is not None else ""
        why = self.gap
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
