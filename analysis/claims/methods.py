# SPDX-License-Identifier: BSD-3-Clause
"""Fig. 5 and the slides: aio, mmap and swap, with and without temporal blocking. `fig05` is the plan that a row reads: the same problem four times larger is one too."""
from analysis.claim import LARGER, NOT_RUN, SMALLER, Part, near, near_difference, no_more_than
from analysis.claims.comparing import compare, gap_of, part, short_of
from analysis.effects import by_repeat, quotient
from analysis.measures import bench_rate, moved_read, per_step, seconds, written_with_both_buffers
from analysis.seen import LEAST_PERIODS, profiled_group, seen
from analysis.stats import median


def _t(results, method, temporal=True, fig05="fig05"):
    return results[fig05].one(method=method, temporal=temporal)


def order(fig05="fig05"):
    def parts(results, known):
        return [compare(f"{a} / {b}", _t(results, a, fig05=fig05), _t(results, b, fig05=fig05)) for a, b in (("aio", "mmap"), ("mmap", "swap"))]

    return parts


def temporal_blocking(results, known):
    return [compare(f"{m}, with / without", _t(results, m), _t(results, m, False)) for m in ("aio", "mmap", "swap")]


def cost_without(results, known):
    normal, v = results["fig05"].one(method="normal"), known["fig05"].value
    return [compare("swap / normal", _t(results, "swap", False), normal, band=near(v("swap-plain-ratio"), v("without-temporal-ratio")))]


def cost_with(fig05="fig05"):
    def parts(results, known):
        normal, v = results[fig05].one(method="normal"), known["fig05"].value
        return [compare(f"{m} / normal", _t(results, m, fig05=fig05), normal, band=no_more_than(near(v(f"{m}-temporal-ratio")))) for m in ("aio", "mmap", "swap")]

    return parts


def fewest_reads(results, known):
    return [compare(f"bytes read, aio / {m}", _t(results, "aio"), _t(results, m), moved_read, timed=False) for m in ("mmap", "swap")]


def read_factor(fig05="fig05"):
    def parts(results, known):
        v = known["profiles"].value
        return [compare(f"bytes read, {m} / aio", _t(results, m, fig05=fig05), _t(results, "aio", fig05=fig05), moved_read, near(v(f"{m}-read-gib") / v("aio-read-gib")), timed=False) for m in ("mmap", "swap")]

    return parts


def mmap_of_aio(results, known):
    v = known["profiles"].value
    return [compare("mmap / aio", _t(results, "mmap"), _t(results, "aio"), band=near_difference(v("mmap-seconds") / v("aio-seconds") - 1))]


def write_factor(results, known):
    v = known["profiles"].value
    return [compare("bytes written, mmap / aio, with the initial grid", _t(results, "mmap"), _t(results, "aio"), written_with_both_buffers, near(v("mmap-write-gib") / v("aio-write-gib")), timed=False)]


def io_shares(results, known):
    v = known["profiles"].value
    for m in ("aio", "mmap", "swap"):
        group = profiled_group(results["fig05"], m)
        yield part(f"{m}, share of the time with less than 90 % of the cores busy", by_repeat(group, lambda r: seen(r).get("io_share")), near(v(f"{m}-io-share")), gap_of(group) or short_of(group))


def swap_unstable(results, known):
    """Per round: how far it is from the median of the other rounds, in time a step."""

    def strays(group):
        values = by_repeat(group, per_step)
        return {k: far for k, t in values.items() if len(values) > 1 and (far := abs(t / median([o for j, o in values.items() if j != k]) - 1)) > 0}

    swap, aio = _t(results, "swap"), _t(results, "aio")
    gap = NOT_RUN if NOT_RUN in (gap_of(swap), gap_of(aio)) else gap_of(swap) or gap_of(aio)
    return [part("distance of a time from the median of the others, swap / aio", {} if gap else quotient(strays(swap), strays(aio)), LARGER, gap or short_of(swap, aio))]


def _profiles(results, method, of):
    group = profiled_group(results["fig05"], method)
    if gap_of(group):
        return {}, gap_of(group)
    return by_repeat(group, of), ""


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
    """One measure, seen.bandwidth_variation."""
    return _profile_parts(results, lambda r: seen(r).get("bandwidth_variation"), SMALLER, f"no timeline of at least {LEAST_PERIODS} Blocks' periods")


def full_bandwidth(results, known):
    """Useful bytes a second while there is I/O, of the best rate of the storage with any of the methods."""
    runs = [r for m in ("aio", "mmap", "swap") if (g := profiled_group(results["fig05"], m)) for r in g.done]
    best = max((seen(r).get("best_rate", 0.0) for r in runs), default=0.0)

    def share(run):
        found = seen(run)
        return found["useful_bytes"] / found["busy_s"] / best if best and found.get("busy_s") else None

    return _profile_parts(results, share, LARGER, "no timeline")


def before_after_band(results, known):
    plan, v = results["before-after"], known["before-after"].value
    return [compare(f"{b}, after / before", plan.one(backend=b, step="after"), plan.one(backend=b, step="before"), seconds, near(v(f"{b}-after-relative"))) for b in ("aio", "mmap")]


def optimised(results, known):
    """Each of the two by itself: rows padded or not; the levels of a block behind one front of planes that the threads share, or one after the other."""
    plan = results["layout"]
    padded, plain = (plan.one(what="layout", rows=r) for r in ("padded", "plain"))
    shared, each = (plan.one(what="share", algorithm=a) for a in ("direct-skewed-opt", "direct-skewed"))
    return [compare("speed, padded rows / unpadded", padded, plain, bench_rate, LARGER, timed=False), compare("time, shared front / level after level", shared, each)]
