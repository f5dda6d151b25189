# SPDX-License-Identifier: BSD-3-Clause
"""How a finding is decided: by numbers, never by hand, and the same way for every row of the table (claims.py).

A finding is one or several comparisons (parts). Each is a ratio with its interval (effects.py) and the band in which the finding says that it lies.

    confirmed    every interval (95 %) lies inside its band
    refuted      an interval lies outside its band; with several parts each is taken at 95 % / parts, so that many looks do not refute by chance. "Smaller" and "larger" are refuted too where the
                 interval shows that there is no difference of EQUAL
    undecided    neither: too few or too short repeats, too much noise, a run that failed
    not tested   what it needs was not run
"""
import math
from dataclasses import dataclass, field

from analysis.effects import LEAST_PAIRS, LEAST_SECONDS, LEVEL, Effect

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


@dataclass(frozen=True)
class Verdict:
    name: str
    finding: str
    source: str
    published: str
    rule: str
    state: str
    effect: str  # the ratio with its interval, or the range of several
    numbers: str
    parts: tuple = field(default=(), repr=False)


def _worst(states):
    for state in (REFUTED, UNDECIDED, CONFIRMED):
        if state in states:
            return state
    return NOT_TESTED


def _effect(parts):
    there = [p for p in parts if p.effect is not None]
    if not there:
        return ""
    if len(there) == 1:
        return there[0].effect.say(there[0].form)
    values = [p.effect.value for p in there]
    ends = [e for p in there if (e := p.effect.interval())]
    wide = f" [{min(a for a, _ in ends):.3g} to {max(b for _, b in ends):.3g}]" if len(ends) == len(there) and not all(p.effect.exact for p in there) else ""
    return f"{min(values):.3g} to {max(values):.3g}{wide}"


MOST_PARTS = 8


def _numbers(parts, states):
    if len(parts) <= MOST_PARTS:
        return "; ".join(p.say() for p in parts)
    counts = ", ".join(f"{sum(s == state for s in states)} {state}" for state in (CONFIRMED, REFUTED, UNDECIDED) if state in states)
    telling = [p for p, s in zip(parts, states) if s == REFUTED] or [p for p, s in zip(parts, states) if s == UNDECIDED] or list(parts)
    return f"{len(parts)} comparisons: {counts}; e.g. " + "; ".join(p.say() for p in telling[:3])


def decide(claim, results, published):
    """The Verdict of a Claim."""

    def verdict(state, effect="", numbers="", parts=()):
        return Verdict(claim.name, claim.finding, claim.source, claim.published, claim.rule, state, effect, numbers, tuple(parts))

    missing = [p for p in claim.plans if p not in results]
    if missing:
        return verdict(NOT_TESTED, numbers=f"not run: {', '.join(missing)}")
    parts = list(claim.parts(results, published))
    if not parts or all(p.untested for p in parts):
        return verdict(NOT_TESTED, numbers="the runs that it compares were not run")
    states = [p.state(len(parts)) for p in parts]
    return verdict(_worst(states), _effect(parts), _numbers(parts, states), parts)


def all_verdicts(results, published):
    """Every row, decided by these results."""
    from analysis.claims import CLAIMS

    return [decide(claim, results, published) for claim in CLAIMS]


RULES = (f"A finding is one or several ratios, each with an interval of 95 % from at least {LEAST_PAIRS} repeats taken in rounds (paired; the wider of the signed-rank and Student's interval of the logarithms: "
         f"between equals it claims a difference in at most 5 % of cases). Confirmed: every interval lies in its band. Refuted: one lies outside it, or shows that there is no difference of {percent(EQUAL)} where one is claimed. "
         f"Undecided: neither, or runs that are too few, too short ({LEAST_SECONDS:g} s at least where time decides) or failed. Not tested: not run. Published numbers may be missed by {percent(TOLERANCE)}: the machine is another. "
         "What is counted, not timed, is exact and needs one run.")  # fmt: skip
