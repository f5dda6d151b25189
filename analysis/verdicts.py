# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on every row of the table of findings, made from its comparisons (claim.py)."""
from dataclasses import dataclass, field, replace

from analysis.claim import AT_LEAST_AS_GOOD, CONFIRMED, EACH_LEVEL, EQUAL, INTERVALS, NOT_TESTED, REFUTED, TOLERANCE, UNDECIDED, percent
from analysis.claims import CLAIMS
from analysis.effects import LEAST_PAIRS, LEAST_SECONDS, rank_rounds
from analysis.results import AGAIN, named

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


def _shown(parts):
    """Of many parts the first ones."""
    if len(parts) <= 2 * MOST_PARTS:
        return "; ".join(p.say(EACH_LEVEL) for p in parts)
    return f"{len(parts)} comparisons, e.g. " + "; ".join(p.say(EACH_LEVEL) for p in parts[:3])


def _others(claim, results, published, decided):
    """{one of AGAIN: the parts of a claim from that measurement of its plans}, for the measurements that are there. A plan without that measurement takes part with the one that decides. Parts of such plans alone are equal to `decided`, the parts from the deciding measurements, and left out."""
    plans, found = [p for p in (*claim.plans, *claim.also) if p in results], {}
    for again in AGAIN:
        there = {plan: results[named(plan, again)] for plan in plans if named(plan, again) in results}
        known = decided if len(there) < len(plans) else []
        parts = [p for p in claim.parts({**results, **there}, published) if not p.untested and p not in known] if there else []
        if parts:
            found[again] = parts
    return found


def _plans(claim, results):
    """The plans whose runs decide a claim or are shown beside it."""
    there = [p for p in (*claim.plans, *claim.also) if p in results or p in claim.plans]
    return tuple(q for p in there for q in (p, *(named(p, again) for again in AGAIN)) if q == p or q in results)


def quick(results):
    """Are all results those of quick runs?"""
    return {p.scale for p in results.values()} == {"quick"}


def _skipped(claim, results):
    """Was a configuration skipped in every round?"""
    return any(g.runs and all(r.skipped for r in g.runs) for p in claim.plans if p in results for g in results[p].groups.values())


def decide(claim, results, published):
    """The Verdict on a Claim."""

    def verdict(state, effect="", numbers="", parts=()):
        return Verdict(claim.name, claim.finding, claim.source, claim.published, claim.rule, state, effect, numbers, _plans(claim, results), tuple(parts))

    def untested(why):
        """A quick run leaves out what only a longer run decides. Runs that were skipped need another machine, or more rights."""
        lacking = claim.needs or _skipped(claim, results)
        return verdict(UNDECIDED, numbers=f"{why}; --night decides") if quick(results) and not lacking else verdict(NOT_TESTED, numbers=why)

    missing = [p for p in claim.plans if p not in results]
    if missing:
        return untested(f"needs {claim.needs}" if claim.needs else f"not run: {', '.join(missing)}")
    parts = list(claim.parts(results, published))
    others = _others(claim, results, published, parts)
    decides = next((again for again, other in others.items() if not all(p.beside for p in other)), None)
    if all(p.untested for p in parts if not p.beside) and decides:
        parts = others.pop(decides)
    parts += [replace(p, label=f"{again} measurement, {p.label}", beside=True) for again, other in others.items() for p in other]
    if not parts or all(p.untested for p in parts if not p.beside):
        return untested("the plans were run without the runs that this finding compares")
    judged, beside = [p for p in parts if not p.beside], [p for p in parts if p.beside and (p.effect is not None or p.settled)]
    states = [p.state(EACH_LEVEL) for p in judged]
    numbers = _numbers(judged, states) + (f"; shown, not judged: {_shown(beside)}" if beside else "")
    return verdict(_worst(states), _effect(parts), numbers, judged)


def all_verdicts(results, published):
    """The verdicts on all rows, decided by these results."""
    return [decide(claim, results, published) for claim in CLAIMS]


# Paragraphs that explain the table, and then a line for each state.
RULES = (
    "A finding is a statement of a paper, or of memext's authors. One or several ratios test it. The band of a ratio is the range in which it must lie if the finding is true; the column `rule` gives it. The column `published` has the published value. *Order*, *trend*, *said*, *drawn* and *curve* stand for statements, drawings and curves without a number.",
    f"Runs are repeated in rounds: each round runs every configuration of a plan once. A ratio is taken from pairs, two runs of one round each, and it needs at least {LEAST_PAIRS} rounds. "
    f"Its interval is computed from the logarithms of these quotients, and contains two intervals: that of the signed-rank test, and Student's. The interval of a correlation is computed from Fisher's z. From {rank_rounds(EACH_LEVEL)} rounds on the interval assumes that the logarithms are distributed symmetrically. "
    f"With fewer rounds it assumes that they are distributed normally. Each interval is widened by Bonferroni's correction for {INTERVALS} intervals, more than decide findings. So all that decide hold at once with a probability of 95 %. "
    f"The table shows them in square brackets. Intervals of other measurements of a plan are as wide, and decide nothing.",
    f"These runs use other machines than the papers, so a value may miss the published one by {percent(TOLERANCE)}. If a paper publishes a difference (7 % longer), that difference may be missed by {percent(TOLERANCE)}. "
    "Values that are counted, not timed, are exact, and one run decides.",
    "A time is that of the steps, and of writing back what the last of them left in memory. Making the Buffers is not in it. On a mapping, a part of the initial grid may still be in memory when the steps begin, and its writing may be in the time. If runs have different numbers of steps, the time of a step is compared; normal execution has fewer. "
    "Runs on aio, uring and mmap commit after each sweep, if their algorithm can be resumed. The papers' programs and swap never commit. What that costs mmap is a finding of its own. Unless it is confirmed, a part of mmap's distance from aio may come from commits.",
    "In plans with mmap or swap, runs with a memory limit have Linux's usual read-ahead (128 KiB), and dirty limits of 10 and 20 % of the memory limit. Runs with this machine's own dirty limits stand beside them under another name. For some devices Linux chooses a larger read-ahead; docs/page-cache.md says how much faster a mapping is with it. "
    "Other plans keep this machine's settings: aio and uring bypass the page cache. "
    "The slides name Linux 3.13. The papers do not give their read-ahead or their dirty limits. So differences of mmap and swap may also come from these. "
    "Swap is a file here, and was a device with a patched Linux (OpenNVM) in the slides. The Buffers of aio are in files here, and were on the raw device there. "
    "Normal execution computes one step a pass through DRAM. The runs through Blocks take a slab of planes, four for each thread, through all steps of a sweep. Where a cache holds the slab, part of their speed is temporal blocking in cache. "
    "Neither normal execution nor the papers' programs have that. The finding on Blocks that are computed step by step shows how much it is. "
    "`What was run` names the plans whose device is limited. In the others it runs at full speed. A device that is faster beside its cores than the papers' were beside theirs takes a smaller share of the time.",
    "If a plan is measured several times, the measurement with the most rounds decides, whatever it shows. With equally many rounds the earlier measurement decides. The numbers of the others stand beside it, as `second measurement` and so on, by falling number of rounds. If the deciding measurement has none of the runs that a finding compares, the next one that has them decides it, and its numbers come first.",
    "The papers' problems are larger. So compare order and ratio: a finding that does not hold here is not refuted at the papers' size.",
    "The verdicts:",
)
MEANINGS = {
    CONFIRMED: "every interval lies inside its band.",
    AT_LEAST_AS_GOOD: f"the rule can fail on one side only, and it does not fail. But an interval here reaches more than {percent(TOLERANCE)} beyond the published value on the good side. This does not reproduce the published number.",
    REFUTED: f"an interval lies outside its band, or it shows that a claimed difference is smaller than {percent(EQUAL)}.",
    UNDECIDED: f"neither is the case, a run failed, or there are too few or too short runs. A quick run leaves plans out for lack of time. Where time decides, a run must take {LEAST_SECONDS:g} s or more, unless an order is claimed and the whole interval shows more than twice the time, or a time limit shows more than twice what the rule asks for.",
    NOT_TESTED: "the runs that the finding needs were not made.",
}
