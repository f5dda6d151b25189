# SPDX-License-Identifier: BSD-3-Clause
"""What the rows of the table share: comparisons of groups of runs, and the edges that are ours."""
from analysis import predictions
from analysis.claim import CONFIRMED, NOT_RUN, SMALLER, UNDECIDED, Part
from analysis.effects import LEAST_PAIRS, LEAST_SECONDS, Effect, by_repeat, quotient
from analysis.measures import per_step, seconds
from analysis.stats import median

# Where a finding has no edge in the papers, this is ours.
FLAT = 0.75  # speed at the largest problem, of that at the first beyond the DRAM
FAST_MAPPING = 1.25  # times the same program on plain memory
VISIBLE = 0.5
COMMITS = 1.10  # times the same without
PREDICTION_ERROR, REGRET = 0.15, 1.05
DRAM_RATIO = 16  # of the problem to the DRAM in Fig. 6, and in section II-C where mmap was killed


def gap_of(group):
    """Why a group has no numbers; "" if it has."""
    if group is None or not group.runs or all(r.skipped for r in group.runs):
        return NOT_RUN
    return "" if group.done else group.failure


def short_of(*groups):
    times = [median([r.report["seconds"] for r in g.done]) for g in groups if g.done and "seconds" in g.done[0].report]
    return f"runs of {min(times):.1f} s are too short to decide" if times and min(times) < LEAST_SECONDS else ""


def part(label, values, band=SMALLER, gap="", exact=False, form="{:.3g}", share=False):
    """Of {repeat: positive number}; share: of {repeat: share}, which may be 0."""
    return Part(label, Effect(tuple(values.values()), exact, share), band, gap, form=form) if values else Part(label, None, band, gap or "no value in common repeats")


def compare(label, a, b, of=per_step, band=SMALLER, timed=True, exact=False):
    """a's value over b's. Where the value is a time, pairs enough in which b did not end within twice a's time decide."""
    for name, group in (("", a), ("", b)):
        if gap_of(group) == NOT_RUN:
            return Part(label, None, band, NOT_RUN)
    if timed and a.done and not b.done and band == SMALLER and all(r.record["status"] == "timeout" for r in b.failures):
        took, given = max(r.wall_s for r in a.done), min(r.record.get("timeout_s", r.wall_s) for r in b.failures)
        if 2 * took < given:
            pairs = len({r.round for r in a.done} & {r.round for r in b.failures})
            of = "" if pairs >= LEAST_PAIRS else f", {pairs} of at least {LEAST_PAIRS} pairs"
            return Part(label, None, band, f"no end within {given:.0f} s, against {took:.1f}{of}", settled=UNDECIDED if of else CONFIRMED)
    gaps = [g for g in (gap_of(a), gap_of(b)) if g]
    if gaps:
        return Part(label, None, band, "; ".join(dict.fromkeys(gaps)))
    return part(label, quotient(by_repeat(a, of), by_repeat(b, of)), band, short_of(a, b) if timed else "", exact)


def best_of(groups, of=seconds, least=min):
    """{repeat: value} of the best of several configurations. Which is best is decided by the other repeats: picking the best of noisy numbers would flatter it."""
    return predictions.best_of([by_repeat(g, of) for g in groups if g is not None and g.done], least)
