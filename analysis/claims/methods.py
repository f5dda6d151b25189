# SPDX-License-Identifier: BSD-3-Clause
"""Fig. 5 and the slides: aio, mmap and swap, with and without temporal blocking."""
from analysis.claim import LARGER, NOT_RUN, SMALLER, Part, near, no_more_than
from analysis.claims.comparing import compare, gap_of, part
from analysis.effects import quotient
from analysis.measures import LEAST_PERIODS, bandwidth_variation, bench_rate, cached_timeline, full_bandwidth_share, moved_read, period, profiled_group, seconds


def _t(results, method, temporal=True):
    return results["fig05"].one(method=method, temporal=temporal)


def order(results, known):
    return [compare(f"{a} / {b}", _t(results, a), _t(results, b)) for a, b in (("aio", "mmap"), ("mmap", "swap"))]


def temporal_blocking(results, known):
    return [compare(f"{m}, with / without", _t(results, m), _t(results, m, False)) for m in ("aio", "mmap", "swap")]


def cost_without(results, known):
    normal, v = results["fig05"].one(method="normal"), known["fig05"].value
    return [compare("swap / normal", _t(results, "swap", False), normal, band=near(v("swap-plain-ratio"), v("without-temporal-ratio")))]


def cost_with(results, known):
    normal, v = results["fig05"].one(method="normal"), known["fig05"].value
    return [compare(f"{m} / normal", _t(results, m), normal, band=no_more_than(near(v(f"{m}-temporal-ratio")))) for m in ("aio", "mmap", "swap")]


def fewest_reads(results, known):
    return [compare(f"bytes read, aio / {m}", _t(results, "aio"), _t(results, m), moved_read, timed=False) for m in ("mmap", "swap")]


def read_factor(results, known):
    v = known["profiles"].value
    return [compare(f"bytes read, {m} / aio", _t(results, m), _t(results, "aio"), moved_read, near(v(f"{m}-read-gib") / v("aio-read-gib")), timed=False) for m in ("mmap", "swap")]


def _profiles(results, method, of):
    group = profiled_group(results["fig05"], method)
    if gap_of(group):
        return {}, gap_of(group)
    lines = {r.round: of(r, cached_timeline(r)) for r in group.done if r.timeline_path}
    return {k: v for k, v in lines.items() if v}, ""


def _profile_parts(results, of, band, why_none):
    aio, gap = _profiles(results, "aio", of)
    for m in ("mmap", "swap"):
        other, without = _profiles(results, m, of)
        label = f"aio / {m}"
        if NOT_RUN in (gap, without):
            yield Part(label, None, band, NOT_RUN)
        elif not aio or not other:
            yield Part(label, None, band, gap or without or why_none)
        else:
            yield part(label, quotient(aio, other), band)


def flat_bandwidth(results, known):
    """One measure, figures.bandwidth_variation."""
    return _profile_parts(results, lambda r, line: bandwidth_variation(line, period(r)), SMALLER, f"no timeline of at least {LEAST_PERIODS} Blocks' periods")


def full_bandwidth(results, known):
    plan = results["fig05"]
    lines = [cached_timeline(r) for m in ("aio", "mmap", "swap") if (g := profiled_group(plan, m)) for r in g.done if r.timeline_path]
    best = max((float(rate.max()) for line in lines if len(rate := line.rate(*line.traffic())[1])), default=0.0)
    return _profile_parts(results, lambda r, line: full_bandwidth_share(line, best), LARGER, "no timeline")


def before_after_band(results, known):
    plan, v = results["before-after"], known["before-after"].value
    return [compare(f"{b}, after / before", plan.one(backend=b, step="after"), plan.one(backend=b, step="before"), seconds, near(v(f"{b}-after-relative"))) for b in ("aio", "mmap")]


def optimised(results, known):
    """Each of the two by itself: rows padded or not; the levels of a block behind one front of planes that the threads share, or one after the other."""
    plan = results["layout"]
    padded, plain = (plan.one(what="layout", rows=r) for r in ("padded", "plain"))
    shared, each = (plan.one(what="share", algorithm=a) for a in ("direct-skewed-opt", "direct-skewed"))
    return [compare("speed, padded rows / unpadded", padded, plain, bench_rate, LARGER, timed=False), compare("time, shared front / level after level", shared, each)]
