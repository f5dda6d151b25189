# SPDX-License-Identifier: BSD-3-Clause
"""The table of findings: what is claimed, where, with which published number, and what decides it. Rows in the papers' order, then ours; the rule itself is in claim.py."""
import math

from analysis import checks, predictions
from analysis.claim import AT_MOST, CONFIRMED, LARGER, NOT_RUN, REFUTED, SMALLER, TOLERANCE, UNDECIDED, Claim, Part, at_least, at_most, near, percent
from analysis.effects import LEAST_PAIRS, LEAST_SECONDS, Effect, by_repeat, quotient
from analysis.figures import (LEAST_PERIODS, bandwidth_variation, cached_timeline, full_bandwidth_share, gupdates, moved_read, per_step, period, profiled_group, search_seconds,
                              seconds, size_bytes, table2_rows, version)  # fmt: skip
from analysis.stats import median
from analysis.timeline import sweep_visibility

# Where a finding has no edge in the papers, this is ours.
FLAT = 0.75  # speed at the largest problem, of that at the first beyond the DRAM
FAST_MAPPING = 1.25  # times the same program on plain memory
VISIBLE = 0.5
PREDICTION_ERROR, REGRET = 0.15, 1.05
DRAM_RATIO = 16  # of the problem to the DRAM in Fig. 6, and in section II-C where mmap was killed


# ------------------------------------------------------------------ comparisons


def _gap(group):
    """Why a group has no numbers; "" if it has."""
    if group is None or not group.runs or all(r.skipped for r in group.runs):
        return NOT_RUN
    return "" if group.done else group.failure


def _short(*groups):
    times = [median([r.report["seconds"] for r in g.done]) for g in groups if g.done and "seconds" in g.done[0].report]
    return f"runs of {min(times):.1f} s are too short to decide" if times and min(times) < LEAST_SECONDS else ""


def _failed(*groups):
    lost = sum(len(g.failures) for g in groups if g)
    return f"{lost} repeats failed" if lost else ""


def part(label, values, band=SMALLER, gap="", exact=False, form="{:.3g}"):
    """Of {repeat: positive number}."""
    return Part(label, Effect(tuple(values.values()), exact), band, gap, form=form) if values else Part(label, None, band, gap or "no value in common repeats")


def compare(label, a, b, of=per_step, band=SMALLER, timed=True, exact=False):
    """a's value over b's. Where the value is a time and b did not end in more than twice a's time, that decides."""
    for name, group in (("", a), ("", b)):
        if _gap(group) == NOT_RUN:
            return Part(label, None, band, NOT_RUN)
    if timed and a.done and not b.done and band == SMALLER and all(r.record["status"] == "timeout" for r in b.failures):
        took, given = max(r.wall_s for r in a.done), min(r.record.get("timeout_s", r.wall_s) for r in b.failures)
        if 2 * took < given:
            return Part(label, None, band, f"no end within {given:.0f} s, against {took:.1f}", settled=CONFIRMED)
    gaps = [g for g in (_gap(a), _gap(b)) if g]
    if gaps:
        return Part(label, None, band, "; ".join(dict.fromkeys(gaps)))
    return part(label, quotient(by_repeat(a, of), by_repeat(b, of)), band, _short(a, b) if timed else "", exact)


def best_of(groups, of=seconds, least=min):
    """{repeat: value} of the best of several configurations. Which is best is decided by the other repeats: picking the best of noisy numbers would flatter it."""
    return predictions.best_of([by_repeat(g, of) for g in groups if g is not None and g.done], least)


def kernel_bytes(run):
    """What the process made storage do, by the kernel's count: no number of ours."""
    return run.report["kernel"]["storage_read_bytes"] + run.report["kernel"]["storage_write_bytes"]


# ------------------------------------------------------------------ Fig. 5 and the slides


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
    return [compare(f"{m} / normal", _t(results, m), normal, band=at_most(v(f"{m}-temporal-ratio"))) for m in ("aio", "mmap", "swap")]


def fewest_reads(results, known):
    return [compare(f"bytes read, aio / {m}", _t(results, "aio"), _t(results, m), moved_read, timed=False) for m in ("mmap", "swap")]


def read_factor(results, known):
    v = known["profiles"].value
    return [compare(f"bytes read, {m} / aio", _t(results, m), _t(results, "aio"), moved_read, near(v(f"{m}-read-gib") / v("aio-read-gib")), timed=False) for m in ("mmap", "swap")]


def _profiles(results, method, of):
    group = profiled_group(results["fig05"], method)
    if _gap(group):
        return {}, _gap(group)
    lines = {r.repeat: of(r, cached_timeline(r)) for r in group.done if r.timeline_path}
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


# ------------------------------------------------------------------ Figs. 6 to 9


def _beyond(results):
    """aio's groups of Fig. 6 whose Buffers exceed the DRAM, by size."""
    groups = sorted(results["fig06"].select(method="aio"), key=lambda g: size_bytes(g["size"]))
    return [g for g in groups if g["limit"] and size_bytes(g["size"]) > size_bytes(g["limit"])]


def fixed_dram(results, known):
    outside = _beyond(results)
    if not outside:
        return []
    largest = outside[-1]
    times = size_bytes(largest["size"]) / size_bytes(largest["limit"])
    found = compare(f"speed at {times:.0f} times the DRAM / normal", largest, results["fig06"].one(method="normal"), gupdates, at_least(known["fig06"].value("largest-relative")))
    if times < DRAM_RATIO and not found.gap:
        return [Part(found.label, found.effect, found.band, f"the largest problem is {times:.0f} times the DRAM, the paper's {DRAM_RATIO}")]
    return [found]


def flat_speed(results, known):
    outside = _beyond(results)
    return [compare(f"speed, {outside[-1]['size']} / {outside[0]['size']}", outside[-1], outside[0], gupdates, (FLAT, math.inf))] if len(outside) > 1 else []


def _fig07_pairs(results):
    plan = results["fig07"]
    return [(f"{g['stencil']} {g['size']}", g, plan.one(backend="mmap", stencil=g["stencil"], size=g["size"])) for g in plan.select(backend="aio")]


def aio_mmap(results, known):
    return [compare(f"aio / mmap, {name}", a, m) for name, a, m in _fig07_pairs(results)]


def aio_mmap_band(results, known):
    v = known["fig07"].value
    return [compare(f"aio / mmap, {name}", a, m, per_step, near(v("aio-of-mmap-low"), v("aio-of-mmap-high"))) for name, a, m in _fig07_pairs(results)]


def difference_grows(results, known):
    """mmap / aio at the largest size over the same at the smallest, of either stencil."""
    for stencil in dict.fromkeys(g["stencil"] for g in results["fig07"].groups.values()):
        pairs = sorted((p for p in _fig07_pairs(results) if p[1]["stencil"] == stencil), key=lambda p: size_bytes(p[1]["size"]))
        if len(pairs) < 2:
            continue
        ends = [pairs[0], pairs[-1]]
        label = f"{stencil}: mmap / aio at {ends[1][1]['size']}, over that at {ends[0][1]['size']}"
        gaps = [_gap(g) for _, a, m in ends for g in (a, m) if _gap(g)]
        if gaps:
            yield Part(label, None, LARGER, NOT_RUN if NOT_RUN in gaps else gaps[0])
        else:
            first, last = (quotient(by_repeat(m, per_step), by_repeat(a, per_step)) for _, a, m in ends)
            yield part(label, quotient(last, first), LARGER, _short(*(g for _, a, m in ends for g in (a, m))))


def mmap_killed(results, known):
    """Settled by what happens, not by a number: killed in every one of the repeats while aio ends, or not."""
    plan = results["largest"]
    mapped, explicit = plan.one(backend="mmap"), plan.one(backend="aio")
    if NOT_RUN in (_gap(mapped), _gap(explicit)):
        return [Part("mmap", None, SMALLER, NOT_RUN)]
    killed = sum("out of memory" in r.failure for r in mapped.failures)
    label = f"mmap killed for want of memory in {killed} of {len(mapped.runs)} runs, aio ended in {len(explicit.done)} of {len(explicit.runs)}"
    state = REFUTED if mapped.done or (explicit.failures and not explicit.done) else CONFIRMED if killed >= LEAST_PAIRS and killed == len(mapped.runs) and not explicit.failures else UNDECIDED
    return [Part(label, settled=state)]


# ------------------------------------------------------------------ Fig. 12

ON_MAPPING, THROUGH_BLOCKS = ("direct-skewed", "direct-skewed-opt"), ("skewed", "skewed-y", "skewed-min")


def _twelve(results, backend, algorithm, room):
    return results["fig12"].one(backend=backend, algorithm=algorithm, room=room)


def enough_fast(results, known):
    plan = results["enough"]
    return [compare(f"{version('mmap', a)} / the same on plain memory", plan.one(backend="mmap", algorithm=a), plan.one(backend="dram", algorithm=a), band=(0.0, FAST_MAPPING)) for a in ON_MAPPING]


def deteriorate(results, known):
    return [compare(f"{version('mmap', a)}, without enough DRAM / with it", _twelve(results, "mmap", a, "x2"), _twelve(results, "mmap", a, "enough"), band=LARGER) for a in ON_MAPPING]


def blocks_beat(room):
    def parts(results, known):
        return [compare(f"{version('mmap', b)} / {version('mmap', d)}", _twelve(results, "mmap", b, room), _twelve(results, "mmap", d, room)) for b in THROUGH_BLOCKS for d in ON_MAPPING]

    return parts


def fastest_versions(results, known):
    others = [("mmap", a) for a in (*ON_MAPPING, *THROUGH_BLOCKS)] + [("aio", "skewed")]
    return [compare(f"{version('aio', best)} / {version(*other)}", _twelve(results, "aio", best, "x2"), _twelve(results, *other, "x2")) for best in ("skewed-y", "skewed-min") for other in others]


# ------------------------------------------------------------------ Figs. 16 to 24, Table II


def _dram(run):
    return run.report["dram_used_bytes"]


def typical_block_bytes(run):
    """Of both Blocks by the papers' typical sizes, eq. 2f': by and bz, a halo, and bt halos of overlap."""
    p, q, h = run.report["problem"], run.report["plan"], run.report["problem"]["h"]
    more = q["bt"] * h + h
    return 2 * (p["nx"] + 2 * h) * (q["by"] + more) * (q["bz"] + more) * (8 if p["dtype"] == "f64" else 4)


def division(figure):
    def parts(results, known):
        plan = results["divisions"]
        if figure == "16":
            return [part(f"exact / typical, {g.id}", by_repeat(g, lambda r: _dram(r) / typical_block_bytes(r)), SMALLER, _gap(g), True) for g in plan.select(figure="16")]
        good, bad = ("balanced", "unbalanced") if figure == "17" else ("unbalanced", "balanced")
        cases = dict.fromkeys(g["case"] for g in plan.select(figure=figure))
        return [compare(f"Block's bytes, {good} / {bad}, {c}", plan.one(figure=figure, case=c, division=good), plan.one(figure=figure, case=c, division=bad), _dram, timed=False, exact=True) for c in cases]

    return parts


def _tuned(results, algorithm, tuner):
    return results["fig19"].one(algorithm=algorithm, tuner=tuner)


SHORT = {"skewed-min": "aio5y", "skewed-y": "aio3y"}


def blk_time(results, known):
    return [compare(f"{SHORT[a]}: blk / {t}", _tuned(results, a, "blk"), _tuned(results, a, t), seconds) for a in SHORT for t in ("manual", "naive")]


def blk_time_band(results, known):
    v = known["fig19"].value
    return [compare(f"{SHORT[a]}: blk / {t}", _tuned(results, a, "blk"), _tuned(results, a, t), seconds, near(v(f"blk-of-{t}-low"), v(f"blk-of-{t}-high"))) for a in SHORT for t in ("manual", "naive")]


def blk_bytes(results, known):
    """Against every other plan that was run, those of the regret plan too, which the tuner's search does not look at; counted by the kernel."""
    rivals = [(f"{SHORT[a]}, blk / {t}", _tuned(results, a, "blk"), _tuned(results, a, t)) for a in SHORT for t in ("manual", "naive")]
    if "regret" in results:
        plan = results["regret"]
        for g in (g for g in plan.select(choice="blk") if g["algorithm"] in SHORT):  # of the others it minimises seconds
            rivals += [(f"{g['algorithm']}, blk / {o['choice']}", g, o) for o in plan.select(algorithm=g["algorithm"]) if o is not g]
    return [compare(label, a, b, kernel_bytes, AT_MOST, timed=False, exact=True) for label, a, b in rivals]


def five_below_three(results, known):
    return [compare("bytes, aio5y / aio3y", _tuned(results, "skewed-min", "blk"), _tuned(results, "skewed-y", "blk"), kernel_bytes, timed=False, exact=True)]


def five_faster(results, known):
    return [compare("aio5y / aio3y", _tuned(results, "skewed-min", "blk"), _tuned(results, "skewed-y", "blk"), seconds)]


def _manual(results, algorithms=("skewed-min", "skewed-y")):
    plan = results["fig22"]
    for g in plan.select(tuner="blk"):
        if g["algorithm"] in algorithms:
            yield g, plan.one(machine=g["machine"], algorithm=g["algorithm"], size=g["size"], tuner="manual"), f"{g['limit']} {SHORT[g['algorithm']]} {g['size']}"


def manual_longer(results, known):
    return [compare(f"manual / blk, {label}", manual, blk, seconds, LARGER) for blk, manual, label in _manual(results)]


def manual_longer_band(results, known):
    v = known["fig22"].value

    def band(g):
        return near(*(1 + v(f"{g['machine']}-{g['algorithm']}-{end}") for end in ("low", "high")))

    return [compare(f"manual / blk, {label}", manual, blk, seconds, band(blk)) for blk, manual, label in _manual(results)]


def io_seconds(run):
    return run.report["time"]["buf2blk_s"] + run.report["time"]["blk2buf_s"]


def io_time(results, known):
    v = known["fig22"].value
    return [compare(f"time with a transfer under way, blk / manual, {label}", blk, manual, io_seconds, near(v("io-low"), v("io-high"))) for blk, manual, label in _manual(results, ("skewed-min",))]


def tuning_share(results, known):
    band = at_most(known["fig24"].value("share"))
    groups = [g for g in results["fig24"].select(search="exhaustive") if g["size"] != "1TiB"]
    return [part(f"search / run, {g['machine']} {g['size']}", by_repeat(g, lambda r: search_seconds(r) / r.report["predicted_seconds"]), band, _gap(g), form="{:.1e}") for g in groups]


def tuning_grows(results, known):
    for machine in dict.fromkeys(g["machine"] for g in results["fig24"].groups.values()):
        groups = sorted(results["fig24"].select(machine=machine, search="exhaustive"), key=lambda g: size_bytes(g["size"]))
        if len(groups) > 1:
            yield compare(f"{machine}, {groups[-1]['size']} / {groups[0]['size']}", groups[-1], groups[0], search_seconds, LARGER, timed=False)


def table2_equal(results, known):
    for name, ours, given, same in table2_rows(results["table2"], known["table2"]):
        gap = ours if isinstance(ours, str) else ""  # not run, or why it failed
        yield Part(f"{name}: {'equal' if same else gap or f'{ours} instead of {given}'}", gap=gap, settled=CONFIRMED if same else "" if gap else REFUTED)


def _devices(results, algorithm, device):
    """{repeat: manual / blk}, why not."""
    manual, blk = (results["devices"].one(algorithm=algorithm, device=device, tuner=t) for t in ("manual", "blk"))
    gap = _gap(manual) or _gap(blk)
    return (quotient(by_repeat(manual, seconds), by_repeat(blk, seconds)), _short(manual, blk)) if not gap else ({}, gap)


def _gains(results, label, a, b):
    (x, why_x), (y, why_y) = _devices(results, *a), _devices(results, *b)
    why = NOT_RUN if NOT_RUN in (why_x, why_y) else why_x or why_y
    return part(label, quotient(x, y), LARGER, why) if x and y else Part(label, None, LARGER, why)


def gain_of_three(results, known):
    return [_gains(results, f"gain with aio3y / with aio5y, {d} device", ("skewed-y", d), ("skewed-min", d)) for d in ("slow", "fast")]


def gain_of_fast(results, known):
    return [_gains(results, f"gain with {SHORT[a]}, fast / slow device", (a, "fast"), (a, "slow")) for a in ("skewed-y", "skewed-min")]


# ------------------------------------------------------------------ before and after


def before_after_band(results, known):
    plan, v = results["before-after"], known["before-after"].value
    return [compare(f"{b}, after / before", plan.one(backend=b, step="after"), plan.one(backend=b, step="before"), seconds, near(v(f"{b}-after-relative"))) for b in ("aio", "mmap")]


def bench_rate(run):
    return run.report["normal"]


def optimised(results, known):
    """Each of the two by itself: rows padded or not; the levels of a block behind one front of planes that the threads share, or one after the other."""
    plan = results["layout"]
    padded, plain = (plan.one(what="layout", rows=r) for r in ("padded", "plain"))
    shared, each = (plan.one(what="share", algorithm=a) for a in ("direct-skewed-opt", "direct-skewed"))
    return [compare("speed, padded rows / unpadded", padded, plain, bench_rate, LARGER, timed=False), compare("time, shared front / level after level", shared, each)]


# ------------------------------------------------------------------ HHRT


def _hhrt(results, place):
    return {int(g["k"]): g for g in results["hhrt"].select(place=place)}


def hhrt_speed(results, known):
    """The best k at 1.5 times the DRAM against the fastest in memory."""
    groups, normal = list(_hhrt(results, "beyond").values()), results["hhrt"].one(place="inside")
    gap = _gap(normal) or (NOT_RUN if not groups else "")
    if gap:
        return [Part("best k / in memory", None, LARGER, gap)]
    best = best_of(groups, gupdates, max)
    return [part("speed of the best k beyond the memory / inside", quotient(best, by_repeat(normal, gupdates)), at_least(known["hhrt"].value("relative-1.5")), _short(*[g for g in groups if g.done], normal))]


def hhrt_one(results, known):
    groups = _hhrt(results, "beyond")
    if 1 not in groups or len(groups) < 2:
        return []
    best = best_of([g for k, g in groups.items() if k > 1], gupdates, max)
    v = known["hhrt"].value
    gap = _gap(groups[1]) or _short(groups[1])
    return [part("speed of k = 1 / best k", quotient(by_repeat(groups[1], gupdates), best), at_most(v("k1-96gib") / v("best-96gib")), gap)]


def hhrt_optimum(results, known):
    groups = _hhrt(results, "beyond")
    ks = sorted(groups)
    if len(ks) < 3:
        return []
    best = best_of([groups[k] for k in ks[1:-1]], per_step)
    return [part(f"time a step, best k between / k = {k}", quotient(best, by_repeat(groups[k], per_step)), SMALLER, _gap(groups[k]) or _short(*[g for g in groups.values() if g.done])) for k in (ks[0], ks[-1])]


# The table of k, in three tiers. Sizes are the slides'.


def _ktable(results, gib):
    return {int(g["k"]): g for g in results["ktable"].select(gib=gib)}


def _best_published(known, gib):
    return max(known["ktable"].value(f"{gib}-{k}") or 0 for k in (8, 16, 24, 32, 48, 64, 96))


def _best_k(results, gib):
    return best_of([g for k, g in _ktable(results, gib).items() if k > 1], gupdates, max)


def _lacks(*groups):
    """Why none of these can be compared; "" if one can."""
    gaps = [_gap(g) for g in groups] or [NOT_RUN]
    return "" if "" in gaps else next((g for g in gaps if g != NOT_RUN), NOT_RUN)


def ktable_speed(*sizes):
    """The best k of problems beyond a tier, over the speed inside the device's memory."""

    def found(results, known):
        inside, parts = results["ktable"].one(gib=6), []
        for gib in sizes:
            groups = list(_ktable(results, gib).values())
            band = at_least(_best_published(known, gib) / known["ktable"].value("6-1"))
            gap = _lacks(inside) or _lacks(*groups)
            parts.append(part(f"{gib} GiB, best k / inside", quotient(_best_k(results, gib), by_repeat(inside, gupdates)) if not gap else {}, band, gap or _short(inside, *[g for g in groups if g.done])))
        return parts

    return found


def ktable_one(results, known):
    parts = []
    for gib in (16, 48, 96):
        groups = _ktable(results, gib)
        one = groups.get(1)
        gap = _lacks(one) or _lacks(*[g for k, g in groups.items() if k > 1])
        values = quotient(by_repeat(one, gupdates), _best_k(results, gib)) if not gap else {}
        parts.append(part(f"{gib} GiB, k = 1 / best k", values, at_most(known["ktable"].value(f"{gib}-1") / _best_published(known, gib)), gap or _short(*[g for g in groups.values() if g.done])))
    return parts


def ktable_optimum(results, known):
    """Of two of them: with 96 GiB and more the largest k did not run there."""
    parts = []
    for gib in (16, 48):
        groups = _ktable(results, gib)
        last = groups.get(max(groups, default=0))
        between = [g for k, g in groups.items() if 1 < k < max(groups)]
        gap = _lacks(last) or _lacks(*between)
        values = quotient(best_of(between, gupdates, max), by_repeat(last, gupdates)) if not gap else {}
        parts.append(part(f"{gib} GiB, speed of the best k between / k = {max(groups, default=96)}", values, LARGER, gap or _short(*[g for g in groups.values() if g.done])))
    return parts


# ------------------------------------------------------------------ the wavefront paper


def wave_key(group, name):
    """Of the plan in the first report, else of what was asked for. tile: [MB, NB]."""
    report = group.done[0].report if group.done else {}
    a_plan = report.get("plan", {})
    if name == "tile" and "mb" in a_plan:
        return [a_plan["mb"], a_plan["nb"]]
    found = a_plan.get(name, group[name])
    return [int(x) for x in found.replace("x", " ").split()] if name == "tile" and isinstance(found, str) else found


def _tile_cells(group):
    tile = wave_key(group, "tile")
    return math.prod(tile) if isinstance(tile, list) else int(tile or 0) ** 2


def _sequential(group):
    """The sequential program is the row-major one of one thread."""
    return int(wave_key(group, "threads") or 0) == 1


def _layout(results, layout, sequential=False):
    """Groups of Fig. 7a with a layout."""
    return [g for g in results["fig7a"].groups.values() if wave_key(g, "layout") == layout and (layout != "row" or _sequential(g) == sequential)]


def _layouts(results, label, a, b, band):
    gap = NOT_RUN if not a or not b else next((f for g in (*a, *b) if (f := _gap(g)) and not any(x.done for x in a)), "")
    return [part(label, quotient(best_of(a), best_of(b)), band, gap or _short(*[g for g in (*a, *b) if g.done]))] if gap != NOT_RUN else [Part(label, None, band, NOT_RUN)]


def wave_rows(results, known):
    return _layouts(results, "row-major at its best tile / sequential", _layout(results, "row"), _layout(results, "row", True), at_least(known["fig7a"].value("row-of-sequential")))


def wave_frontier(results, known):
    return _layouts(results, "frontier / block, each at its best tile", _layout(results, "frontier"), _layout(results, "block"), SMALLER)


def wave_frontier_band(results, known):
    return _layouts(results, "frontier / block, each at its best tile", _layout(results, "frontier"), _layout(results, "block"), near(known["fig7a"].value("frontier-of-block")))


def wave_tile(results, known):
    for layout in ("block", "frontier"):
        groups = sorted(_layout(results, layout), key=_tile_cells)
        if len(groups) < 3:
            yield Part(layout, None, SMALLER, NOT_RUN)
            continue
        best = best_of(groups[1:-1])
        for end, name in ((groups[0], "smallest"), (groups[-1], "largest")):
            yield part(f"{layout}, best tile between / {name}", quotient(best, by_repeat(end, seconds)), SMALLER, _gap(end) or _short(end))


def _is_chained(group):
    """The report's word for it; where it has none, more than one wave."""
    said = wave_key(group, "chained")
    return bool(said) if said is not None else int(wave_key(group, "waves") or 0) > 1


def _chained(results, band):
    groups = list(results["fig7b"].groups.values())
    return _layouts(results, "chained waves / one after the other", [g for g in groups if _is_chained(g)], [g for g in groups if not _is_chained(g)], band)


def wave_chain(results, known):
    return _chained(results, SMALLER)


def wave_chain_band(results, known):
    return _chained(results, near(known["fig7b"].value("chained-of-single")))


def conversion(results, known):
    """Like with like: into both layouts (of six matrices), out of both (of one)."""
    def cost(layout, way):
        return next((by_repeat(g, lambda r: r.report.get(f"{way}process_seconds")) for g in results["fig4w"].groups.values() if wave_key(g, "layout") == layout), {})

    for name, way, band in (("into", "pre", LARGER), ("out of", "post", near(1.0))):
        values = quotient(cost("frontier", way), cost("block", way))
        yield part(f"{name} frontier / {name} block", values, band) if values else Part(name, None, band, NOT_RUN)


# ------------------------------------------------------------------ ours


def stream_faster(results, known):
    plan = results["fig06"]
    for size in dict.fromkeys(g["size"] for g in plan.select(method="stream")):
        for m, name in (("aio", "algorithm-1"), ("aio5y", "aio5y")):
            yield compare(f"{size}, stream / {name}", plan.one(method="stream", size=size), plan.one(method=m, size=size), seconds)


def sweep_visible(results, known):
    """The runs of the advices are the repeats: what residency shows does not depend on which it is."""
    seen = {}
    for g in results["advice"].select(backend="mmap"):
        for r in g.done:
            if r.timeline_path and (v := sweep_visibility(cached_timeline(r))) is not None:
                seen[len(seen)] = max(v, 1e-3)
    return [part("correlation of the place that enters the page cache with the place that is computed", seen, (VISIBLE, math.inf))] if seen else []


def counters_agree(results, known):
    """The block device serves the whole machine: what it counts beyond ours may be others', what it counts short of ours may not."""
    found = checks.agreements(results)
    if not found:
        return []
    counted = [a for a in found if a.device is not None]
    wrong = [a for a in found if not (a.predicted_equal and a.process_close) or a.device_short]
    off = median([abs(a.device - a.own) / max(1, a.own) for a in counted]) if counted else None
    text = (f"{len(found)} counts of aio and uring: equal to CalcTrans {sum(a.predicted_equal for a in found)}, /proc/self/io agrees {sum(a.process_close for a in found)}; "
            f"the block device's counter agrees in {sum(a.device_close for a in counted)} of {len(counted)}")  # fmt: skip
    if off is not None:
        text += f", it differs by {off:.2%} in the median"
    if wrong:
        a = wrong[0]
        text += f"; the first that does not agree: {a.plan} {a.id} {a.way}: own {a.own}, CalcTrans {a.predicted}, process {a.process}, device {a.device}"
    return [Part(text, settled=REFUTED if wrong else CONFIRMED if off is not None and off <= checks.DEVICE_SLACK else UNDECIDED)]


def prediction(results, known):
    transfers = [p for p in predictions.predictions(results) if p.transfer]
    errors = [p.error for p in transfers if p.counts]
    if not errors:
        return [Part(f"no configuration on aio and uring has {LEAST_PAIRS} runs of {LEAST_SECONDS:g} s", gap="too few or too short runs")] if transfers else []
    middle, low, high = predictions.median_error(errors)
    counted = [p for p in transfers if p.counts]
    near = [p for p in counted if p.near is not None]
    once = f"; with rates measured once, before all runs: {percent(predictions.median_error([p.first_error for p in near])[0])} of {len(near)}" if near else ""
    label = f"median error of the predicted seconds of {len(errors)} configurations on aio and uring with {LEAST_PAIRS} runs of {LEAST_SECONDS:g} s or more: {percent(middle)}" + (f" [{percent(low)} to {percent(high)}]" if low is not None else "") + (f" with rates of the minute before each run in {len(near)} of them" if near else "") + once
    if low is None:
        return [Part(label, gap="fewer than 6 configurations")]
    return [Part(label, settled=CONFIRMED if high < PREDICTION_ERROR else REFUTED if low > PREDICTION_ERROR else UNDECIDED)]


def regret(results, known):
    """As with predictions, what has too few repeats says nothing beside what has enough."""
    found = list(predictions.regrets(results))
    enough = [r for r in found if len(r.ratios) >= LEAST_PAIRS]
    return [part(f"{r.label}, blk / best of {r.plans} plans", r.ratios, (0.0, REGRET), _short(*r.groups)) for r in enough or found]


# ------------------------------------------------------------------ the table

IWAPT, JAPANESE, SLIDES, OURS = "iwapt2016", "japanese", "slides", "ours"
MATCH = f"inside the published value or range widened by {percent(TOLERANCE)}"
EACH = "each ratio of times "

CLAIMS = (
    Claim("order", "With temporal blocking swap is slower than mmap, and mmap slower than aio", f"{IWAPT}, Fig. 5; {SLIDES}", "order", EACH + "below 1", ("fig05",), order),
    Claim("temporal", "Temporal blocking shortens an out-of-core run with every method", f"{IWAPT}, Fig. 5; {SLIDES}", "order", EACH + "below 1", ("fig05",), temporal_blocking),
    Claim("cost-without", "Without temporal blocking an out-of-core run takes 53.8 (swap, slides) to 65.2 times (paper) as long as normal execution", f"{IWAPT}, section II-B; {SLIDES}", "53.8; 65.2", "time a step " + MATCH, ("fig05",), cost_without),
    Claim("cost-with", "With temporal blocking it takes little more: aio 1.51, mmap 1.58, swap 2.22 times", f"{IWAPT}, section II-B; {SLIDES}", "1.51; 1.58; 2.22", f"each not above the published value by more than {percent(TOLERANCE)}", ("fig05",), cost_with),
    Claim("fewest-reads", "Of the three methods aio reads the fewest bytes", f"{SLIDES}, CPU Utilization Profile", "110.25, 209.70, 600.90 GiB", "each ratio of bytes below 1", ("fig05",), fewest_reads),
    Claim("read-factor", "mmap reads 1.90 times and swap 5.45 times the bytes of aio", f"{SLIDES}, CPU Utilization Profile", "1.90; 5.45", "each " + MATCH, ("fig05",), read_factor),
    Claim("flat-bandwidth", "The bandwidth profile of aio is flat, those of mmap and swap are not", f"{SLIDES}, Flash SSD IO Bandwidth profile", "curves", "coefficient of variation of the bandwidth between Blocks' periods: aio's / theirs below 1", ("fig05",), flat_bandwidth),
    Claim("full-bandwidth", "While it transfers, aio comes closest to what the device can do", f"{SLIDES}, Flash SSD IO Bandwidth profile", "curves", "mean bandwidth while there is I/O: aio's / theirs above 1", ("fig05",), full_bandwidth),
    Claim("fixed-dram", "At 16 times the DRAM aio reaches 87 % of normal execution", f"{IWAPT}, Fig. 6", "0.87", f"not below the published value by more than {percent(TOLERANCE)}, at {DRAM_RATIO} times the DRAM or more", ("fig06",), fixed_dram),
    Claim("flat-speed", "At fixed DRAM the speed of aio hardly falls with the problem size", f"{IWAPT}, Fig. 6", "curve", f"speed at the largest problem / at the first beyond the DRAM above {FLAT} (ours)", ("fig06",), flat_speed),
    Claim("aio-mmap", "aio is faster than mmap at every size, for 7 and 19 points", f"{IWAPT}, Figs. 7 and 8", "order", EACH + "below 1", ("fig07",), aio_mmap),
    Claim("aio-mmap-share", "aio takes 50 to 60 % of mmap's time", f"{IWAPT}, section II-C", "0.50 to 0.60", "each " + MATCH, ("fig07",), aio_mmap_band),
    Claim("difference-grows", "The larger the problem, the farther mmap falls behind aio", f"{IWAPT}, Fig. 9", "trend", "mmap / aio at the largest size, over that at the smallest, above 1", ("fig07",), difference_grows),
    Claim("mmap-killed", "At 16 times the DRAM, 19 points, mmap is ended by the out-of-memory killer and aio is not", f"{IWAPT}, section II-C", "killed", f"killed in each of at least {LEAST_PAIRS} runs and aio ended; refuted by one run on mmap that ends", ("largest",), mmap_killed),
    Claim("enough-fast", "With enough DRAM mmap1 and mmap1+opt are fast", f"{IWAPT}, Fig. 12", "said", f"time on mmap / on plain memory below {FAST_MAPPING} (ours)", ("enough",), enough_fast),
    Claim("deteriorate", "With half of the DRAM that they need, mmap1 and mmap1+opt deteriorate", f"{IWAPT}, Fig. 12", "said", "time a step without enough DRAM / with it above 1", ("fig12",), deteriorate),
    Claim("blocks", "On a mapping with half of the DRAM, every version through Blocks beats both that work on the mapping", f"{IWAPT}, Fig. 12", "said", EACH + "below 1", ("fig12",), blocks_beat("x2")),
    Claim("blocks-x4", "So it is with a quarter of the DRAM", OURS, "", EACH + "below 1", ("fig12",), blocks_beat("x4")),
    Claim("fastest", "Of the versions of algorithm-2, aio3y and aio5y are the fastest", f"{IWAPT}, Fig. 12", "said", "each of the two / each of the others below 1", ("fig12",), fastest_versions),
    Claim("typical-size", "The typical block size is larger than any Block really is", f"{IWAPT}, Fig. 16", "drawn", "exact / typical bytes below 1 (counted)", ("divisions",), division("16")),
    Claim("balanced", "Where bt is small beside the Blocks, the balanced division needs the smaller Block", f"{IWAPT}, Fig. 17", "drawn", "largest Block, balanced / unbalanced, below 1 (counted)", ("divisions",), division("17")),
    Claim("unbalanced", "Where the last Block carries the overlap of bt, an unbalanced division needs the smaller Block", f"{IWAPT}, Fig. 18", "drawn", "largest Block, unbalanced / balanced, below 1 (counted), cut along z; along y memext's Blocks have room for the overlap in each", ("divisions",), division("18")),
    Claim("blk-time", "Blk-Tune's choice is faster than manual choice and Naive-Tune's", f"{IWAPT}, Fig. 19", "order", EACH + "below 1", ("fig19",), blk_time),
    Claim("blk-time-share", "Blk-Tune takes 68 to 73 % of the time of manual choice and 75 to 80 % of Naive-Tune's", f"{IWAPT}, Fig. 19", "0.68 to 0.73; 0.75 to 0.80", "each " + MATCH, ("fig19",), blk_time_band),
    Claim("blk-bytes", "No plan that was run moves fewer bytes than Blk-Tune's", f"{IWAPT}, Fig. 21", "order", "bytes of the kernel's counter, blk / each other plan that was run, those outside its search too, at most 1 (counted)", ("fig19",), blk_bytes),
    Claim("aio5y-bytes", "aio5y moves fewer bytes than aio3y", f"{IWAPT}, Fig. 21", "order", "bytes of the kernel's counter, ratio below 1 (counted)", ("fig19",), five_below_three),
    Claim("aio5y-time", "aio5y is faster than aio3y", f"{JAPANESE}, section 6.3", "order", EACH + "below 1", ("fig19",), five_faster),
    Claim("manual-longer", "With manual choice runs take longer than with Blk-Tune at every size", f"{IWAPT}, Figs. 22 and 23; {JAPANESE}, section 6.3", "order", EACH + "above 1", ("fig22",), manual_longer),
    Claim("manual-longer-share", "They take 5.6 to 13.5 % longer on crest4 and 12.9 to 41.9 % on crest6", f"{JAPANESE}, section 6.3", "crest4 5.6 to 7.7 (aio5y), 7.3 to 13.5 % (aio3y); crest6 13.4 to 20.6, 12.9 to 41.9 %", "each " + MATCH, ("fig22",), manual_longer_band),
    Claim("io-time", "With Blk-Tune the I/O times of aio5y are 58 to 78 % of those with manual choice", f"{IWAPT}, section VI-D", "0.58 to 0.78", "each " + MATCH, ("fig22",), io_time),
    Claim("gain-aio3y", "Blk-Tune gains more with aio3y than with aio5y, on the slower and on the faster machine", f"{JAPANESE}, section 6.3", "order", "(manual / blk with aio3y) / (manual / blk with aio5y) above 1, on a device slowed down and not", ("devices",), gain_of_three),
    Claim("gain-fast", "It gains more on the faster machine", f"{JAPANESE}, section 6.3", "order", "(manual / blk on the fast device) / (on the slow one) above 1; only the device differs here", ("devices",), gain_of_fast),
    Claim("tuning-share", "The exhaustive search takes about 0.1 % of the computation", f"{IWAPT}, Fig. 24", "0.001", f"search / predicted run not above the published value by more than {percent(TOLERANCE)}, 128 to 512 GiB", ("fig24",), tuning_share),
    Claim("tuning-grows", "Tuning time grows with the problem size", f"{IWAPT}, Fig. 24", "trend", "largest / smallest problem above 1", ("fig24",), tuning_grows),
    Claim("before-after", "Optimisation of the computation shortens the run to 0.55 (aio) and 0.59 (mmap)", f"{SLIDES}, Before/After tuning", "0.55; 0.59", "each " + MATCH + "; here the shape of the iBlock alone differs", ("before-after",), before_after_band),
    Claim("optimised", "The padded layout and the shared work make the computation faster", f"{SLIDES}, Before/After tuning; {IWAPT}, Fig. 4", "said", "each of the two by itself: speed with padded rows / without above 1, time with a shared front / without below 1", ("layout",), optimised),
    Claim("table2", "Blk-Tune's parameters in Table II, Naive-Tune's log and the bytes of the slides come out as published", f"{IWAPT}, Table II; {SLIDES}", "Table II", "equal (counted)", ("table2",), table2_equal),
    Claim("hhrt-speed", "A problem of 1.5 times the upper memory runs at 55 % of the speed inside it, with the best temporal block size", "hhrt", "0.55", f"not below the published value by more than {percent(TOLERANCE)}; DRAM and flash stand for the GPU's and the host's memory", ("hhrt",), hhrt_speed),
    Claim("hhrt-k1", "Without temporal blocking it falls to 3.4 % of that", "hhrt", "2.68 / 79.3", f"speed of k = 1 / of the best k not above the published value by more than {percent(TOLERANCE)}", ("hhrt",), hhrt_one),
    Claim("hhrt-optimum", "The best temporal block size lies between: small ones swap, large ones recompute", "hhrt", "table of k", "time a step, best k between / smallest and / largest below 1", ("hhrt",), hhrt_optimum),
    Claim("ktable-device", "With the best k problems of 1.33 and 4 times the device's memory run at 95 and 84 % of the speed inside it", "hhrt", "141 / 149; 125 / 149", f"each not below the published value by more than {percent(TOLERANCE)}", ("ktable",), ktable_speed(16, 48)),
    Claim("ktable-flash", "Of 1.5 and 3 times the host's memory, from flash, at 53 and 12 %", "hhrt", "79.3 / 149; 17.7 / 149", f"each not below the published value by more than {percent(TOLERANCE)}", ("ktable",), ktable_speed(96, 192)),
    Claim("ktable-k1", "Without temporal blocking speed falls to 7, 6 and 3 % of that with the best k", "hhrt", "9.39 / 141; 8.12 / 125; 2.68 / 79.3", f"each not above the published value by more than {percent(TOLERANCE)}", ("ktable",), ktable_one),
    Claim("ktable-optimum", "The largest k is slower than the best one between", "hhrt", "106 / 141; 91.5 / 125", "speed of the best k between / of the largest above 1; a sweep of stream recomputes nothing", ("ktable",), ktable_optimum),
    Claim("wave-conversion", "Conversion into the frontier layout costs more than into the block layout; back it costs the same", "wavefront, Fig. 4", "drawn", "frontier / block: into it above 1, out of it " + MATCH.replace("the published value or range", "1"), ("fig4w",), conversion),
    Claim("wave-rows", "A pipelined wavefront on row-major matrices is at best ten times slower than the sequential program", "wavefront, Fig. 7a", "10", f"not below the published value by more than {percent(TOLERANCE)}", ("fig7a",), wave_rows),
    Claim("wave-frontier", "The frontier layout is faster than the block layout", "wavefront, Fig. 7a", "order", "ratio of times, each with its best tile, below 1", ("fig7a",), wave_frontier),
    Claim("wave-frontier-share", "It improves on it by 20 %", "wavefront, Fig. 7a", "0.80", MATCH, ("fig7a",), wave_frontier_band),
    Claim("wave-tile", "There is a best tile between the smallest and the largest", "wavefront, Fig. 7a", "drawn", "time, best tile between / smallest and / largest below 1", ("fig7a",), wave_tile),
    Claim("wave-chain", "Chained waves are faster", "wavefront, Fig. 7b", "order", "ratio of times below 1", ("fig7b",), wave_chain),
    Claim("wave-chain-share", "Chaining gains 20 %", "wavefront, Fig. 7b", "0.80", MATCH, ("fig7b",), wave_chain_band),
    Claim("stream", "stream is faster than the papers' algorithm-1 and aio5y at every size", OURS, "", EACH + "below 1", ("fig06",), stream_faster),
    Claim("sweep", "The heat maps show the sweep: residency follows the computation", OURS, "", f"correlation above {VISIBLE} (ours)", ("advice",), sweep_visible),
    Claim("counters", "memext's own counters, CalcTrans, /proc/self/io and the block device agree on the bytes of aio and uring", OURS, "", "own, CalcTrans and process equal in every run, the device never short of them and close in the median (counted)", (), counters_agree),
    Claim("prediction", "The predicted seconds of runs on aio and uring are right within 15 % in the median", OURS, "", f"interval of the median error below {percent(PREDICTION_ERROR)}; predicted with rates measured in the second before each run, where they were, else with those of the beginning", (), prediction),
    Claim("regret", "The tuner's choice takes at most 5 % longer than the best of all plans that were run", OURS, "", f"time of blk / of the best plan by the other repeats, below {REGRET}; of choices with {LEAST_PAIRS} repeats, where there are any", (), regret),
)  # fmt: skip
