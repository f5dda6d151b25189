# SPDX-License-Identifier: BSD-3-Clause
"""memext's own findings."""
import math

from analysis import checks, predictions
from analysis.claim import CONFIRMED, EACH_LEVEL, REFUTED, UNDECIDED, Band, Part, percent
from analysis.claims.comparing import PREDICTION_ERROR, REGRET, VISIBLE, compare, part
from analysis.effects import LEAST_PAIRS, LEAST_SECONDS, rank_rounds
from analysis.measures import seconds
from analysis.seen import seen
from analysis.stats import median


def stream_faster(results, known):
    """Compares stream with each of the two algorithms, at the sizes that the plan has."""
    plan = results["fig06"]
    for m, name in (("aio", "algorithm-1"), ("aio5y", "aio5y")):
        for g in plan.select(method=m):
            yield compare(f"{g['size']}, stream / {name}", plan.one(method="stream", size=g["size"]), g)


def sweep_visible(results, known):
    """Judges each advice by its own repeats. Only the plain sweep counts, since nothing else fills its page cache."""
    for g in results["advice"].select(backend="mmap", algorithm="plain"):
        values = {r.round: float(v) for r in g.done if (v := seen(r).get("sweep_visibility")) is not None}
        if values:
            yield part(f"correlation between the place that enters the page cache and the place that is computed, advice {g['advice']}", values, Band(VISIBLE, math.inf), correlation=True)


def counters_agree(results, known):
    """Compares the counters. The block device serves the whole machine, so it may count more bytes than memext does, but not fewer."""
    found = checks.agreements(results)
    if not found:
        return []
    counted = [a for a in found if a.device is not None]
    wrong = [a for a in found if not (a.predicted_equal and a.process_close) or a.device_short]
    off = median([abs(a.device - a.own) / max(1, a.own) for a in counted]) if counted else None
    text = (f"{len(found)} counts of aio and uring: {sum(a.predicted_equal for a in found)} equal CalcTrans, {sum(a.process_close for a in found)} agree with /proc/self/io, "
            f"and {sum(a.device_close for a in counted)} of {len(counted)} agree with the block device's counter")  # fmt: skip
    if off is not None:
        text += f", which differs by {off:.2%} in the median"
    if wrong:
        a = wrong[0]
        text += f"; the first disagreement is {a.plan} {a.id} {a.way}, in bytes: memext {a.own}, CalcTrans {a.predicted}, process {a.process}, device {a.device}"
    return [Part(text, settled=REFUTED if wrong else CONFIRMED if off is not None and off <= checks.DEVICE_SLACK else UNDECIDED)]


def prediction(results, known):
    """Judges the median error of the predictions, with one error for each problem."""
    transfers = [p for p in predictions.predictions(results) if p.transfer]
    counted = [p for p in transfers if p.counts]
    if not counted:
        return [Part(f"no configuration on aio and uring has {LEAST_PAIRS} runs of {LEAST_SECONDS:g} s", gap="too few or too short runs")] if transfers else []
    errors = predictions.errors_by_problem(counted)
    middle, low, high = predictions.median_error(errors, EACH_LEVEL)
    near = [p for p in counted if p.near is not None]
    label = f"median error of the predicted seconds, over {len(errors)} problem{'s' if len(errors) > 1 else ''} ({len(counted)} configurations on aio and uring with at least {LEAST_PAIRS} runs of {LEAST_SECONDS:g} s or more): {percent(middle)}"
    label += f" [{percent(low)} to {percent(high)}]" if low is not None else ""
    label += f"; in {len(near)} of the configurations the rates were measured right before each run" if near else ""
    label += f"; with the rates of the plans (measured once, before all runs, or assumed), their median error is {percent(predictions.median_error(predictions.errors_by_problem(near, lambda p: p.first_error))[0])}" if near else ""
    if low is None:
        return [Part(label, gap=f"an interval needs {rank_rounds(EACH_LEVEL)} problems")]
    return [Part(label, settled=CONFIRMED if high < PREDICTION_ERROR else REFUTED if low > PREDICTION_ERROR else UNDECIDED)]


def regret(results, known):
    """Compares each choice with each other plan of its problem. As with predictions, choices with too few repeats count only if no choice has enough."""
    found = predictions.study(results)
    enough = [r for r in found if len(r.ratios) >= LEAST_PAIRS]
    return [compare(f"{r.label}, blk / {other.id}", r.groups[0], other, seconds, Band(0.0, REGRET)) for r in enough or found for other in r.groups[1:]]
