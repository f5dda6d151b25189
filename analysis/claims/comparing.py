# SPDX-License-Identifier: BSD-3-Clause
"""What the rows of the table share: comparisons of groups of runs, and the limits that memext chose."""
from analysis import predictions
from analysis.claim import CONFIRMED, LARGER, NOT_RUN, SMALLER, TOO_SHORT, UNDECIDED, Part
from analysis.effects import LEAST_PAIRS, LEAST_SECONDS, Effect, by_repeat, quotient
from analysis.measures import per_step, seconds
from analysis.stats import median

# Limits of findings for which the papers give none.
FLAT = 0.75  # speed of the largest problem / of the smallest one that exceeds the DRAM
FAST_MAPPING = 1.25  # time on a mapping / time of the same program on plain memory
VISIBLE = 0.5
COMMITS = 1.10  # time with commits / without
PREDICTION_ERROR, REGRET = 0.15, 1.05
DRAM_RATIO = 16  # problem / DRAM in Fig. 6, and in section II-C, where mmap was killed


def gap_of(group):
    """Why a group has no numbers; "" if it has some."""
    if group is None or not group.runs or all(r.skipped for r in group.runs):
        return NOT_RUN
    return "" if group.done else group.failure


def short_of(*groups):
    """Why times of these groups do not decide: some of their runs failed, or they are too short; "" if they do. The slow runs may be those that failed."""
    lost, made = (sum(map(len, runs)) for runs in zip(*((g.failures, g.runs) for g in groups if g is not None)))
    if lost:
        return f"{lost} of {made} runs failed"
    times = [median([seconds(r) for r in g.done]) for g in groups if g.done and "seconds" in g.done[0].report]
    return f"runs of {min(times):.1f} s are {TOO_SHORT}" if times and min(times) < LEAST_SECONDS else ""


def part(label, values, band=SMALLER, gap="", exact=False, form="{:.3g}", share=False, correlation=False):
    """The Part of {repeat: positive number}. With share=True the values are shares, which may be 0; with correlation=True they are correlations."""
    return Part(label, Effect(tuple(values.values()), exact, share, correlation), band, gap, form=form) if values else Part(label, None, band, gap or "no value in common repeats")


def compare(label, a, b, of=per_step, band=SMALLER, timed=True, exact=False):
    """The Part of a's value / b's value. A time may decide without a number: b ran into its time limit, which is more than twice a's time, in LEAST_PAIRS pairs or more."""
    for name, group in (("", a), ("", b)):
        if gap_of(group) == NOT_RUN:
            return Part(label, None, band, NOT_RUN)
    if timed and a.done and not b.done and band == SMALLER and all(r.record["status"] == "timeout" for r in b.failures):
        took, given = max(r.wall_s for r in a.done), min(r.record.get("timeout_s", r.wall_s) for r in b.failures)
        if 2 * took < given:
            pairs = len({r.round for r in a.done} & {r.round for r in b.failures})
            of = "" if pairs >= LEAST_PAIRS else f", {pairs} of at least {LEAST_PAIRS} pairs"
            return Part(label, None, band, f"not complete after {given:.0f} s, where the other one took {took:.1f} s{of}", settled=UNDECIDED if of else CONFIRMED)
    gaps = [g for g in (gap_of(a), gap_of(b)) if g]
    if gaps:
        return Part(label, None, band, "; ".join(dict.fromkeys(gaps)))
    return part(label, quotient(by_repeat(a, of), by_repeat(b, of)), band, short_of(a, b) if timed else "", exact)


def grows(label, larger, smaller, of=per_step):
    """The Part of the ratio of one pair of groups (a / b), divided by that of another pair, above 1."""
    groups = [*larger, *smaller]
    gaps = [gap_of(g) for g in groups if gap_of(g)]
    if gaps:
        return Part(label, None, LARGER, NOT_RUN if NOT_RUN in gaps else gaps[0])
    x, y = (quotient(*(by_repeat(g, of) for g in pair)) for pair in (larger, smaller))
    return part(label, quotient(x, y), LARGER, short_of(*groups))


def best_of(groups, of=seconds, least=min):
    """{repeat: value} of the best of several configurations. The other repeats decide which configuration is best: picking the best of noisy numbers would flatter it."""
    return predictions.best_of([by_repeat(g, of) for g in groups if g is not None and g.done], least)
