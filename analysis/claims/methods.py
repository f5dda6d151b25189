# SPDX-License-Identifier: BSD-3-Clause
"""Fig. 5 and the slides: aio, mmap and swap, with and without temporal blocking. fig05 and before-after have the tuned iBlock. fig05-large and `before` have the iBlock of the slides' first
programs. A published value is compared with runs that have the iBlock with which it was measured."""
from dataclasses import replace

from analysis.claim import CONFIRMED, EACH_LEVEL, LARGER, NOT_RUN, REFUTED, SMALLER, UNDECIDED, Band, Part, near, near_difference, no_less_than, no_more_than
from analysis.claims.comparing import COMMITS, compare, gap_of, part, short_of
from analysis.effects import LEAST_PAIRS, by_repeat, quotient, scatters
from analysis.measures import bench_rate, moved_read, per_step, seconds, written_with_both_buffers
from analysis.seen import LEAST_PERIODS, seen


def _t(results, method, temporal=True, fig05="fig05"):
    return results[fig05].one(method=method, temporal=temporal)


def order(fig05="fig05"):
    def parts(results, known):
        return [compare(f"{a} / {b}", _t(results, a, fig05=fig05), _t(results, b, fig05=fig05)) for a, b in (("aio", "mmap"), ("mmap", "swap"))]

    return parts


def temporal_blocking(results, known):
    return [compare(f"{m}, with / without", _t(results, m), _t(results, m, False)) for m in ("aio", "mmap", "swap")]


def cost_without(results, known):
    """Judges swap. The paper does not name the method; the slides name swap, for a value from before the optimisation. mmap and aio are shown and not judged."""
    normal, v = results["fig05"].one(method="normal"), known["fig05"].value
    judged = compare("swap / normal", _t(results, "swap", False), normal, band=near(v("without-temporal-ratio")))
    return [judged, *(replace(compare(f"{m} / normal", _t(results, m, False), normal), beside=True) for m in ("mmap", "aio"))]


def _over_normal(results, plan, select, band):
    """Time of a step with each method / with normal execution. select: method -> parameters of its group."""
    normal = results[plan].one(**select("normal"))
    return [compare(f"{m} / normal", results[plan].one(**select(m)), normal, band=no_more_than(near(value))) for m, value in band.items()]


def _tuned(known):
    """Published times after the optimisation / time of the optimised normal execution. The time of aio is from the paper, that of mmap from the slides."""
    normal = known["fig05"].value("normal-seconds")
    return {"aio": known["fig05"].value("aio-temporal-seconds") / normal, "mmap": known["before-after"].value("mmap-after-seconds") / normal}


def cost_with(results, known):
    return _over_normal(results, "fig05", lambda m: {"method": m, "temporal": m != "normal"}, _tuned(known))


def cost_after(results, known):
    return _over_normal(results, "before-after", lambda m: {"backend": m.replace("normal", "dram"), "step": "after"}, _tuned(known))


def cost_whole(results, known):
    """Judges Blocks of one slab, which are computed as the papers do. What temporal blocking in cache adds is shown."""
    plan = results["baseline"]
    normal, tiled, slabs, whole = (plan.one(what=w) for w in ("normal", "tiled", "slabs", "whole"))
    shown = (("Blocks in slabs / normal", slabs, normal), ("Blocks in slabs / whole Blocks", slabs, whole), ("Blocks in slabs / in memory, with temporal blocking in cache", slabs, tiled), ("in memory, with temporal blocking in cache / normal", tiled, normal))
    return [compare("aio, whole Blocks / normal", whole, normal, band=no_more_than(near(_tuned(known)["aio"]))), *(replace(compare(*of), beside=True) for of in shown)]


def cost_before(results, known):
    """Times of the slides' programs before the optimisation / time of their own normal execution."""
    v = known["fig05"].value
    return _over_normal(results, "fig05-large", lambda m: {"method": m, "temporal": m != "normal"}, {m: v(f"{m}-temporal-ratio") for m in ("aio", "mmap", "swap")})


def fewest_reads(results, known):
    return [compare(f"bytes read, aio / {m}", _t(results, "aio"), _t(results, m), moved_read, timed=False) for m in ("mmap", "swap")]


def read_factor(m, fig05="fig05"):
    def parts(results, known):
        v = known["profiles"].value
        return [compare(f"bytes read, {m} / aio", _t(results, m, fig05=fig05), _t(results, "aio", fig05=fig05), moved_read, near(v(f"{m}-read-gib") / v("aio-read-gib")), timed=False)]

    return parts


def swap_reads_most(results, known):
    return [compare(f"bytes read, {m} / swap", _t(results, m), _t(results, "swap"), moved_read, timed=False) for m in ("aio", "mmap")]


def mmap_of_aio(results, known):
    """The slides give two values from before the optimisation: 1929.86 / 1847.55 s and 2490.59 / 2036.13 s. The finding is the range between them."""
    v, w = known["profiles"].value, known["before-after"].value
    band = near_difference(v("mmap-seconds") / v("aio-seconds") - 1, w("mmap-before-seconds") / w("aio-before-seconds") - 1)
    return [compare("mmap / aio", _t(results, "mmap", fig05="fig05-large"), _t(results, "aio", fig05="fig05-large"), band=band)]


def mmap_of_aio_after(results, known):
    plan, v = results["before-after"], known["before-after"].value
    return [compare("mmap / aio", plan.one(backend="mmap", step="after"), plan.one(backend="aio", step="after"), seconds, near_difference(v("mmap-after-seconds") / v("aio-after-seconds") - 1))]


def write_factor(results, known):
    v = known["profiles"].value
    return [compare("bytes written, mmap / aio, with the initial grid", _t(results, "mmap"), _t(results, "aio"), written_with_both_buffers, near(v("mmap-write-gib") / v("aio-write-gib")), timed=False)]


def _io_share(name, group, published):
    values = by_repeat(group, lambda r: seen(r).get("io_share"), zeros=True)
    return part(f"{name}, share of the time with less than 90 % of the cores busy", values, near(published), gap_of(group) or short_of(group), share=True)


def io_shares(results, known):
    """Shares of I/O of the slides' programs before the optimisation."""
    v = known["profiles"].value
    return [_io_share(m, _t(results, m, fig05="fig05-large"), v(f"{m}-io-share")) for m in ("aio", "mmap", "swap")]


def io_shares_after(results, known):
    v = known["before-after"].value
    return [_io_share(m, results["before-after"].one(backend=m, step="after"), v(f"{m}-after-io-share")) for m in ("aio", "mmap")]


def swap_unstable(results, known):
    """Compares how far the logarithms of a time lie from their median, with swap and with aio: Levene's test with medians, at the level of one interval."""
    swap, aio = _t(results, "swap"), _t(results, "aio")
    label, gap = "distance of the logarithm of a time from the median, swap / aio", NOT_RUN if NOT_RUN in (gap_of(swap), gap_of(aio)) else gap_of(swap) or gap_of(aio) or short_of(swap, aio)
    a, b = ([*by_repeat(g, per_step).values()] if not gap else [] for g in (swap, aio))
    if gap or min(len(a), len(b)) < LEAST_PAIRS:
        return [Part(label, None, LARGER, gap or f"{min(len(a), len(b))} of at least {LEAST_PAIRS} repeats")]
    times, p = scatters(a, b)
    return [Part(f"{label} {times:.3g} (Levene's test: p = {p:.2g})", settled=UNDECIDED if p >= EACH_LEVEL else CONFIRMED if times > 1 else REFUTED)]


def _profiles(results, method, of, plan):
    group = _t(results, method, fig05=plan)
    if gap_of(group):
        return {}, gap_of(group)
    return by_repeat(group, of), ""


def _profile_parts(results, of, band, why_none, plan="fig05"):
    aio, gap = _profiles(results, "aio", of, plan)
    for m in ("mmap", "swap"):
        other, without = _profiles(results, m, of, plan)
        label = f"aio / {m}"
        if NOT_RUN in (gap, without):
            yield Part(label, None, band, NOT_RUN)
        elif not aio or not other:
            yield Part(label, None, band, gap or without or why_none)
        else:
            yield part(label, quotient(aio, other), band)


def flat_bandwidth(results, known):
    """One measure, seen.bandwidth_variation, of the longer runs, where a Block's period has many samples."""
    return _profile_parts(results, lambda r: seen(r).get("bandwidth_variation"), SMALLER, f"no timeline of at least {LEAST_PERIODS} Blocks' periods", "fig05-large")


def _rate(run):
    """Useful bytes a second while there is I/O."""
    found = seen(run)
    return found["useful_bytes"] / found["busy_s"] if found.get("busy_s") else None


def full_bandwidth(results, known):
    """That rate / the rate of the device, which was measured right before the run."""

    def share(run):
        device = ((run.record.get("near") or {}).get("rates") or {}).get("mixed_bytes_per_s")
        return rate / device if device and (rate := _rate(run)) else None

    for temporal in (False, True):
        group = _t(results, "aio", temporal)
        gap = gap_of(group)
        one = part(f"aio, {'with' if temporal else 'without'} temporal blocking / device", {} if gap else by_repeat(group, share), no_less_than(near(1.0)), gap or short_of(group))
        yield replace(one, beside=temporal) if gap or one.effect else Part(one.label, None, one.band, "the device's rate was not measured before these runs", beside=temporal)


def useful_bandwidth(results, known):
    """Useful bytes a second while there is I/O. This does not say how much the device could transfer."""
    return _profile_parts(results, _rate, LARGER, "no timeline")


def before_after(results, known):
    """Compares the order alone: the published gain comes from several changes, and these runs make one of them."""
    plan = results["before-after"]
    return [compare(f"{b}, after / before", plan.one(backend=b, step="after"), plan.one(backend=b, step="before"), seconds) for b in ("aio", "mmap")]


def commits(results, known):
    """The papers' programs and swap commit nothing."""
    each, none = (results["commits"].one(commit=c) for c in ("each", "none"))
    return [compare("mmap, with a commit after each sweep / without", each, none, seconds, Band(0.0, COMMITS))]


def padded(results, known):
    plan = results["layout"]
    return [compare("speed, padded rows / unpadded", *(plan.one(what="layout", rows=r) for r in ("padded", "plain")), bench_rate, LARGER, timed=False)]
