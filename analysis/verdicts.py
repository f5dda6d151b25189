# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on every row of the table of findings, from its comparisons (claim.py)."""
from dataclasses import dataclass, field

from analysis.claim import AT_LEAST_AS_GOOD, CONFIRMED, EACH_LEVEL, EQUAL, INTERVALS, NOT_TESTED, REFUTED, TOLERANCE, UNDECIDED, percent
from analysis.claims import CLAIMS
from analysis.effects import LEAST_PAIRS, LEAST_SECONDS, rank_rounds

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
    plans: tuple = ()
    parts: tuple = field(default=(), repr=False)


def _worst(states):
    for state in (REFUTED, UNDECIDED, AT_LEAST_AS_GOOD, CONFIRMED):
        if state in states:
            return state
    return NOT_TESTED


def _effect(parts):
    there = [p for p in parts if p.effect is not None and not p.beside]
    if not there:
        return ""
    if len(there) == 1:
        return there[0].effect.say(there[0].form, EACH_LEVEL)
    values = [p.effect.value for p in there]
    ends = [e for p in there if (e := p.effect.interval(EACH_LEVEL))]
    wide = f" [{min(a for a, _ in ends):.3g} to {max(b for _, b in ends):.3g}]" if len(ends) == len(there) and not all(p.effect.exact for p in there) else ""
    return f"{min(values):.3g} to {max(values):.3g}{wide}"


MOST_PARTS = 8


def _numbers(parts, states):
    if len(parts) <= MOST_PARTS:
        return "; ".join(p.say(EACH_LEVEL) for p in parts)
    counts = ", ".join(f"{sum(s == state for s in states)} {state}" for state in (CONFIRMED, AT_LEAST_AS_GOOD, REFUTED, UNDECIDED) if state in states)
    telling = [p for p, s in zip(parts, states) if s == REFUTED] or [p for p, s in zip(parts, states) if s == UNDECIDED] or list(parts)
    return f"{len(parts)} comparisons: {counts}; e.g. " + "; ".join(p.say(EACH_LEVEL) for p in telling[:3])


def decide(claim, results, published):
    """The Verdict of a Claim."""

    def verdict(state, effect="", numbers="", parts=()):
        return Verdict(claim.name, claim.finding, claim.source, claim.published, claim.rule, state, effect, numbers, claim.plans, tuple(parts))

    missing = [p for p in claim.plans if p not in results]
    if missing:
        return verdict(NOT_TESTED, numbers=f"needs {claim.needs}" if claim.needs else f"not run: {', '.join(missing)}")
    parts = list(claim.parts(results, published))
    if not parts or all(p.untested for p in parts if not p.beside):
        return verdict(NOT_TESTED, numbers="the runs that it compares were not run")
    judged, beside = [p for p in parts if not p.beside], [p for p in parts if p.beside and p.effect is not None]
    states = [p.state(EACH_LEVEL) for p in judged]
    numbers = _numbers(judged, states) + ("; beside it " + "; ".join(p.say(EACH_LEVEL) for p in beside) if beside else "")
    return verdict(_worst(states), _effect(parts), numbers, judged)


def all_verdicts(results, published):
    """Every row, decided by these results."""
    return [decide(claim, results, published) for claim in CLAIMS]


RULES = (f"A finding is one or several ratios. Each ratio has an interval from at least {LEAST_PAIRS} repeats, which are taken in rounds and paired: the wider of the signed-rank and Student's interval of the logarithms. "
         f"With a probability of 95 % all intervals of the table hold at once: each is widened for {INTERVALS} intervals, more than the table has. From {rank_rounds(EACH_LEVEL)} rounds on this assumes symmetric logarithms; with fewer it "
         f"assumes normal ones. Confirmed: every interval lies in its band. At least as good: the rule can fail on one side only, and ours is "
         f"better than the published value by more than {percent(TOLERANCE)}; that is no reproduction of the number. Does not hold here: an interval lies outside its band, or shows that there is no difference of {percent(EQUAL)} where one is claimed. "
         f"Undecided: neither, or runs that are too few, too short ({LEAST_SECONDS:g} s at least where time decides) or failed. Not tested: not run. The machine is another one, so our number may differ from the published one by {percent(TOLERANCE)}. "
         f"Where a difference was published (7 % longer), {percent(TOLERANCE)} of that difference are allowed. What is counted, not timed, is exact and needs one run. "
         "The papers' problems are larger and their machines are others. Order and ratio can be compared, and a finding that does not hold here is not refuted at their size.")  # fmt: skip
