"""The papers' qualitative findings, each decided by our own numbers.

A verdict is computed, never written down: `confirmed` or `refuted` when the medians say so, `undecided` when a run that it needs failed or is missing, or when the
repeats' ranges touch so that their order may be chance.
"""
from dataclasses import dataclass

from analysis import checks
from analysis.figures import (GIB, NAMES, amplification, bandwidth_variation, cached_timeline, cell, gupdates, moved_read, over, per_step, search_seconds, seconds, size_bytes,
                              table2_rows, wait_share)  # fmt: skip
from analysis.stats import Stat, apart, median, stat
from analysis.timeline import sweep_visibility

CONFIRMED, REFUTED, UNDECIDED = "confirmed", "refuted", "undecided"
# Where a finding has no sharp edge in the papers, this is ours.
FLAT_LOSS = 0.25  # speed at fixed DRAM may fall by this much from the first problem that exceeds it to the largest
NEGLIGIBLE_TUNING = 0.01
VISIBLE = 0.5


@dataclass(frozen=True)
class Verdict:
    name: str
    finding: str
    source: str
    state: str
    numbers: str


def _missing(values):
    """Why not every value is a Stat; "" if all are."""
    gaps = [f"{name}: {v if isinstance(v, str) else 'not run'}" for name, v in values.items() if not isinstance(v, Stat)]
    return "; ".join(gaps)


def _say(values, form):
    return ", ".join(f"{name} {form.format(v.median) if isinstance(v, Stat) else v}" for name, v in values.items())


def ascending(values):
    """State of 'each is smaller than the next' for named Stats; touching ranges of repeated runs leave it open."""
    if _missing(values):
        return UNDECIDED
    ordered = list(values.values())
    pairs = list(zip(ordered, ordered[1:]))
    if any(a.median >= b.median and apart(a, b) for a, b in pairs):
        return REFUTED
    if any(a.median >= b.median for a, b in pairs):
        return REFUTED if all(v.n == 1 for v in ordered) else UNDECIDED
    if any(not apart(a, b) for a, b in pairs):
        return UNDECIDED
    return CONFIRMED


def _order(name, finding, source, values, form):
    gap = _missing(values)
    touching = "" if gap or all(apart(a, b) for a, b in zip(list(values.values()), list(values.values())[1:])) else "; ranges touch"
    return Verdict(name, finding, source, ascending(values), _say(values, form) + (f" ({gap})" if gap else touching))


def _temporal(plan, of, temporal=True):
    return {m: cell(plan.one(method=m, temporal=temporal), of) for m in ("aio", "mmap", "swap")}


def swap_mmap_aio(results):
    values = _temporal(results["fig05"], per_step)
    return _order("order", "With temporal blocking swap is slower than mmap, and mmap slower than aio", "iwapt2016, Fig. 5; slides", values, "{:.4f} s per step")


def cost_without(results):
    plan = results["fig05"]
    base = cell(plan.one(method="normal"), per_step)
    with_it, without = _temporal(plan, per_step), _temporal(plan, per_step, False)
    ratios = {m: over(without[m], base) for m in without}
    gap = _missing({"normal": base, **{f"{m} with": v for m, v in with_it.items()}, **{f"{m} without": v for m, v in without.items()}})
    finding = "Without temporal blocking an out-of-core run costs many times normal execution (65.2 in the paper, 53.8 for swap in the slides), with it little more than once"
    if not any(isinstance(r, Stat) for r in ratios.values()):
        return Verdict("cost-without", finding, "iwapt2016, Fig. 5; slides", UNDECIDED, gap)
    worse = all(not isinstance(without[m], Stat) or not isinstance(with_it[m], Stat) or without[m].median > with_it[m].median for m in without)
    many = any(isinstance(r, Stat) and r.median > 10 for r in ratios.values())
    ahead = {m: over(with_it[m], base) for m in with_it}
    state = CONFIRMED if worse and many else REFUTED
    return Verdict("cost-without", finding, "iwapt2016, Fig. 5; slides", UNDECIDED if gap and state == REFUTED else state,
                   f"times normal, without: {_say(ratios, '{:.1f}')}; with: {_say(ahead, '{:.2f}')}" + (f" ({gap})" if gap else ""))  # fmt: skip


def fewest_reads(results):
    values = _temporal(results["fig05"], lambda r: moved_read(r) / GIB)
    gap = _missing(values)
    state = UNDECIDED if gap else CONFIRMED if values["aio"].median < min(values["mmap"].median, values["swap"].median) else REFUTED
    return Verdict("fewest-reads", "Of the three methods aio reads the fewest bytes (110.25 GiB against 209.70 and 600.90)", "slides, CPU Utilization Profile", state,
                   _say(values, "{:.3f} GiB read") + (f" ({gap})" if gap else ""))  # fmt: skip


def flat_bandwidth(results):
    plan = results["fig05"]
    values = {}
    for m in ("aio", "mmap", "swap"):
        group = plan.one(method=m, temporal=True)
        lines = [cached_timeline(r) for r in group.done if r.timeline_path] if group else []
        values[m] = stat(bandwidth_variation(line) for line in lines) or (group.failure if group and group.failure else None)
    gap = _missing(values)
    state = UNDECIDED if gap else CONFIRMED if values["aio"].median < min(values["mmap"].median, values["swap"].median) else REFUTED
    return Verdict("flat-bandwidth", "The bandwidth profile of aio is flat, those of mmap and swap are not", "slides, Flash SSD IO Bandwidth profile", state,
                   "coefficient of variation of read + write bandwidth: " + _say(values, "{:.2f}") + (f" ({gap})" if gap else ""))  # fmt: skip


def full_bandwidth(results):
    """The mean read + write bandwidth while there is I/O, as part of the largest that any of the three reached."""
    plan, rates = results["fig05"], {}
    for m in ("aio", "mmap", "swap"):
        group = plan.one(method=m, temporal=True)
        rates[m] = [line.rate(*line.traffic())[1] for line in (cached_timeline(r) for r in group.done if r.timeline_path)] if group else []
    best = max((float(r.max()) for row in rates.values() for r in row if len(r)), default=0.0)
    values = {m: stat(float(r[r > 0.02 * best].mean()) / best for r in row if len(r) and (r > 0.02 * best).any()) if best else None for m, row in rates.items()}
    gap = _missing(values)
    state = UNDECIDED if gap else CONFIRMED if values["aio"].median > max(values["mmap"].median, values["swap"].median) else REFUTED
    return Verdict("full-bandwidth", "While it transfers, aio comes closest to what the device can do", "slides, Flash SSD IO Bandwidth profile", state,
                   f"mean bandwidth of samples with I/O, of the largest seen ({best / 1e6:.0f} MB/s): " + _say(values, "{:.0%}") + (f" ({gap})" if gap else ""))  # fmt: skip


def fixed_dram(results):
    plan = results["fig06"]
    base = cell(plan.one(method="normal"), gupdates)
    groups = sorted(plan.select(method="aio"), key=lambda g: size_bytes(g["size"]))
    values = {g["size"]: over(cell(g, gupdates), base) for g in groups}
    gap = _missing({"normal": base, **values})
    finding = "At fixed DRAM the speed of aio hardly falls with the problem size (87 % of normal at 16 times the DRAM)"
    outside = [values[g["size"]] for g in groups if size_bytes(g["size"]) > size_bytes(g["limit"] or "0")]
    if gap or not outside:
        return Verdict("fixed-dram", finding, "iwapt2016, Fig. 6", UNDECIDED, _say(values, "{:.2f}") + f" ({gap})")
    loss = 1 - outside[-1].median / outside[0].median
    numbers = f"relative to normal: {_say(values, '{:.2f}')}; from the first problem beyond the DRAM to the largest the speed changes by {-loss:+.0%} (confirmed up to -{FLAT_LOSS:.0%}); the largest reaches {outside[-1].median:.0%} of normal"
    return Verdict("fixed-dram", finding, "iwapt2016, Fig. 6", CONFIRMED if loss <= FLAT_LOSS else REFUTED, numbers)


def aio_beats_mmap(results):
    plan = results["fig07"]
    ratios, gaps = {}, []
    for g in plan.select(backend="aio"):
        other = plan.one(backend="mmap", stencil=g["stencil"], size=g["size"])
        name = f"{g['stencil']} {g['size']}"
        a, m = cell(g, seconds), cell(other, seconds)
        if isinstance(a, Stat) and isinstance(m, Stat):
            ratios[name] = a.median / m.median
        else:
            gaps.append(f"{name}: {show_gap(a, m)}")
    finding = "aio takes 50 to 60 % of mmap's time at every size, for 7 and 19 points"
    if not ratios:
        return Verdict("aio-mmap", finding, "iwapt2016, Figs. 7 and 8", UNDECIDED, "; ".join(gaps))
    state = CONFIRMED if max(ratios.values()) < 1 else REFUTED
    return Verdict("aio-mmap", finding, "iwapt2016, Figs. 7 and 8", state, f"aio / mmap {min(ratios.values()):.2f} to {max(ratios.values()):.2f} ({len(ratios)} sizes and stencils; confirmed when aio is faster at each)" + ("; " + "; ".join(gaps) if gaps else ""))


def show_gap(a, m):
    return " and ".join(f"{name} {v if isinstance(v, str) else 'not run'}" for name, v in (("aio", a), ("mmap", m)) if not isinstance(v, Stat))


def growing_difference(results):
    plan = results["fig07"]
    groups = sorted(plan.select(backend="aio", stencil="star7"), key=lambda g: size_bytes(g["size"]))
    values = {}
    for g in groups:
        a, m = cell(g, gupdates), cell(plan.one(backend="mmap", stencil="star7", size=g["size"]), gupdates)
        if isinstance(a, Stat) and isinstance(m, Stat):
            values[g["size"]] = a.median / m.median
    finding = "The larger the problem, the farther mmap falls behind aio"
    if len(values) < 2:
        return Verdict("difference-grows", finding, "iwapt2016, Fig. 9", UNDECIDED, "fewer than two sizes finished")
    first, last = list(values.values())[0], list(values.values())[-1]
    return Verdict("difference-grows", finding, "iwapt2016, Fig. 9", CONFIRMED if last > first else REFUTED, "speed of aio / mmap: " + ", ".join(f"{k} {v:.2f}" for k, v in values.items()))


def blocks_beat_mapping(results):
    plan, found = results["fig12"], []
    state = CONFIRMED
    for room in ("x2", "x4"):
        direct = {a: cell(plan.one(backend="mmap", algorithm=a, room=room), seconds) for a in ("direct-skewed", "direct-skewed-opt")}
        blocks = {a: cell(plan.one(backend="mmap", algorithm=a, room=room), seconds) for a in ("skewed", "skewed-y", "skewed-min")}
        good, fast = [v.median for v in blocks.values() if isinstance(v, Stat)], [v.median for v in direct.values() if isinstance(v, Stat)]
        found.append(f"{room}: {_say(direct, '{:.2f} s')} against {_say(blocks, '{:.2f} s')}")
        if not good or (not fast and not all(isinstance(v, str) for v in direct.values())):
            state = UNDECIDED
        elif fast and min(good) >= min(fast) and state == CONFIRMED:
            state = REFUTED
    return Verdict("blocks", "On a mapping with too little DRAM, algorithm-2 through Blocks beats the versions that work on the mapping directly", "iwapt2016, Fig. 12", state, "; ".join(found))


def enough_dram(results):
    plan, found, state = results["fig12"], [], CONFIRMED
    for a in ("direct-skewed", "direct-skewed-opt"):
        enough = cell(plan.one(algorithm=a, room="enough"), seconds)
        for room in ("x2", "x4"):
            little = cell(plan.one(backend="mmap", algorithm=a, room=room), seconds)
            if not isinstance(enough, Stat) or little is None:
                state = UNDECIDED
                continue
            found.append(f"{a} {room} {little.median / enough.median:.1f} times" if isinstance(little, Stat) else f"{a} {room}: {little}")
            if isinstance(little, Stat) and little.median < 1.2 * enough.median and state == CONFIRMED:
                state = REFUTED
    return Verdict("enough", "mmap1 and mmap1+opt are fast with enough DRAM and deteriorate without (here: by more than a fifth)", "iwapt2016, Fig. 12", state, "time without / with enough DRAM: " + ", ".join(found))


def fastest_versions(results):
    plan, found, state = results["fig12"], [], CONFIRMED
    for room in ("x2", "x4"):
        values = {f"{g['backend']} {g['algorithm']}": cell(g, seconds) for g in plan.select(room=room) if g["algorithm"] != "redundant"}
        done = {k: v.median for k, v in values.items() if isinstance(v, Stat)}
        if not done:
            state = UNDECIDED
            continue
        best = sorted(done, key=done.get)[:2]
        found.append(f"{room}: {best[0]} {done[best[0]]:.2f} s" + (f", then {best[1]} {done[best[1]]:.2f} s" if len(best) > 1 else ""))
        if best[0] not in ("aio skewed-y", "aio skewed-min") and state == CONFIRMED:
            state = REFUTED
    return Verdict("fastest", "Of the versions of algorithm-2, aio3y and aio5y are the fastest", "iwapt2016, Fig. 12", state, "; ".join(found))


def _tuned(results, of):
    plan = results["fig19"]
    return {a: {t: cell(plan.one(algorithm=a, tuner=t), of) for t in ("manual", "naive", "blk")} for a in ("skewed-min", "skewed-y")}


def total_bytes(run):
    return (run.report["read_bytes"] + run.report["write_bytes"]) / GIB


def fewest_bytes(results):
    table, state, found = _tuned(results, total_bytes), CONFIRMED, []
    for a, values in table.items():
        found.append(f"{NAMES[a]}: {_say(values, '{:.3f} GiB')}")
        if _missing(values):
            state = UNDECIDED
        elif values["blk"].median > min(v.median for v in values.values()) and state == CONFIRMED:
            state = REFUTED
    return Verdict("blk-bytes", "Blk-Tune moves the fewest bytes", "iwapt2016, Fig. 21", state, "; ".join(found))


def blk_fastest(results):
    table, state, found = _tuned(results, seconds), CONFIRMED, []
    for a, values in table.items():
        found.append(f"{NAMES[a]}: {_say(values, '{:.2f} s')}")
        if _missing(values):
            state = UNDECIDED
            continue
        for t in ("manual", "naive"):
            one = ascending({"blk": values["blk"], t: values[t]})
            state = REFUTED if REFUTED in (one, state) else UNDECIDED if UNDECIDED in (one, state) else CONFIRMED
    return Verdict("blk-time", "Blk-Tune takes 68 to 73 % of the time of manual choice and 75 to 80 % of Naive-Tune's", "iwapt2016, Fig. 19", state, "; ".join(found) + " (confirmed when it is the fastest)")


def five_below_three(results):
    values = {a: _tuned(results, total_bytes)[a]["blk"] for a in ("skewed-min", "skewed-y")}
    return _order("aio5y-bytes", "aio5y moves fewer bytes than aio3y", "iwapt2016, Fig. 21", {NAMES[a]: v for a, v in values.items()}, "{:.3f} GiB")


def manual_longer(results):
    plan, longer = results["fig22"], {}
    for g in plan.select(tuner="blk"):
        other = plan.one(machine=g["machine"], algorithm=g["algorithm"], size=g["size"], tuner="manual")
        a, b = cell(g, seconds), cell(other, seconds)
        if isinstance(a, Stat) and isinstance(b, Stat):
            longer[f"{g['limit']} {g['algorithm']} {g['size']}"] = b.median / a.median - 1
    finding = "With manual choice runs take longer than with Blk-Tune at every size (5.6 to 41.9 %)"
    if not longer:
        return Verdict("manual-longer", finding, "japanese, section 6.3", UNDECIDED, "no pair of runs finished")
    slower = sum(v > 0 for v in longer.values())
    state = CONFIRMED if slower == len(longer) else REFUTED
    return Verdict("manual-longer", finding, "iwapt2016, Figs. 22 and 23; japanese, section 6.3", state, f"manual takes {min(longer.values()):+.1%} to {max(longer.values()):+.1%}, longer in {slower} of {len(longer)} cases, median {median(longer.values()):+.1%}")


def tuning_time(results):
    plan = results["fig24"]
    of_run = {}
    for how in ("reduced", "exhaustive"):
        shares = [g.stat(lambda r: search_seconds(r) / r.report["predicted_seconds"]) for g in plan.select(search=how)]
        of_run[how] = max((s.median for s in shares if s), default=None)
    grow = {}
    for how in ("reduced", "exhaustive"):
        groups = sorted(plan.select(machine="crest4", search=how), key=lambda g: size_bytes(g["size"]))
        times = [g.stat(search_seconds).median for g in groups if g.done]
        grow[how] = times[-1] / times[0] if len(times) > 1 and times[0] > 0 else None
    finding = "Tuning time is negligible beside the computation (0.1 %) and grows with the problem size"
    if of_run["exhaustive"] is None or grow["exhaustive"] is None:
        return Verdict("tuning-time", finding, "iwapt2016, Fig. 24", UNDECIDED, "the exhaustive searches did not finish")
    state = CONFIRMED if of_run["exhaustive"] < NEGLIGIBLE_TUNING and grow["exhaustive"] > 1 else REFUTED
    reduced = f"; reduced search: at most {of_run['reduced']:.1e} of it, largest / smallest problem {grow['reduced']:.1f}" if of_run["reduced"] is not None and grow["reduced"] else ""
    return Verdict("tuning-time", finding, "iwapt2016, Fig. 24", state, f"exhaustive search: at most {of_run['exhaustive']:.1e} of the predicted run, largest / smallest problem {grow['exhaustive']:.1f}{reduced}")


def optimised(results):
    plan, found, state = results["before-after"], [], CONFIRMED
    for b in ("aio", "mmap"):
        values = {s: cell(plan.one(backend=b, step=s), seconds) for s in ("after", "before")}
        one = ascending(values)
        state = REFUTED if REFUTED in (one, state) else UNDECIDED if UNDECIDED in (one, state) else CONFIRMED
        found.append(f"{b}: {_say(values, '{:.2f} s')}")
    return Verdict("optimised", "A cache-shaped iBlock with its layout and work-share shortens the run (to 0.55 and 0.59)", "slides, Before/After tuning", state, "; ".join(found))


def table2_equal(results, published):
    rows = list(table2_rows(results["table2"], published["table2"]))
    equal = sum(same for *_, same in rows)
    return Verdict("table2", "Blk-Tune's parameters in Table II, Naive-Tune's log and the bytes of the slides come out as published", "iwapt2016, Table II; slides", CONFIRMED if equal == len(rows) else REFUTED,
                   f"{equal} of {len(rows)} equal" + "".join(f"; {n}: {o} instead of {p}" for n, o, p, same in rows if not same))  # fmt: skip


def counters_agree(results):
    found = checks.agreements(results)
    bad = [a for a in found if not a.good]
    state = UNDECIDED if not found else REFUTED if bad else CONFIRMED
    with_device = sum(a.device is not None for a in found)
    numbers = f"{len(found)} counts of runs on aio and uring, {with_device} of them with the block device's counter"
    if found:
        numbers += f"; equal to CalcTrans {sum(a.predicted_equal for a in found)}, /proc/self/io agrees {sum(a.process_close for a in found)}, block device agrees {sum(a.device_close for a in found if a.device is not None)}"
    if bad:
        a = bad[0]
        numbers += f"; the first that does not: {a.plan} {a.id} {a.way}: own {a.own}, CalcTrans {a.predicted}, process {a.process}, device {a.device}"
    return Verdict("counters", "memext's own counters, CalcTrans, /proc/self/io and the block device agree on the bytes of aio and uring", "ours", state, numbers)


def stream_beats_papers(results):
    plan = results["fig06"]
    values = {}
    for size in dict.fromkeys(g["size"] for g in plan.select(method="stream")):
        ours = cell(plan.one(method="stream", size=size), gupdates)
        theirs = [v for v in (cell(plan.one(method=m, size=size), gupdates) for m in ("aio", "aio5y")) if isinstance(v, Stat)]
        if isinstance(ours, Stat) and theirs:
            values[size] = ours.median / max(t.median for t in theirs)
    state = UNDECIDED if not values else CONFIRMED if min(values.values()) > 1 else REFUTED
    return Verdict("stream", "stream is faster than the papers' best algorithm at every size", "ours", state, "speed of stream / best of algorithm-1 and aio5y: " + ", ".join(f"{k} {v:.2f}" for k, v in values.items()))


def sweep_visible(results):
    """Correlation of what enters the page cache with the position of the computation, over the mmap runs with a timeline."""
    found = {}
    for g in results["advice"].select(backend="mmap"):
        seen = [sweep_visibility(cached_timeline(r)) for r in g.done if r.timeline_path]
        value = stat(seen)
        if value:
            found[f"{g['algorithm']} {g['advice']}"] = value.median
    state = UNDECIDED if not found else CONFIRMED if median(list(found.values())) > VISIBLE else REFUTED
    numbers = f"correlation of the place that enters the page cache with the place that is computed: {min(found.values()):.2f} to {max(found.values()):.2f}, median {median(list(found.values())):.2f} (confirmed above {VISIBLE})" if found else "no timelines"
    return Verdict("sweep", "The heat maps show the sweep: residency follows the computation", "ours", state, numbers)


# (function, plans that it reads)
VERDICTS = (
    (swap_mmap_aio, ["fig05"]), (cost_without, ["fig05"]), (fewest_reads, ["fig05"]), (flat_bandwidth, ["fig05"]), (full_bandwidth, ["fig05"]), (fixed_dram, ["fig06"]), (aio_beats_mmap, ["fig07"]),
    (growing_difference, ["fig07"]), (enough_dram, ["fig12"]), (blocks_beat_mapping, ["fig12"]), (fastest_versions, ["fig12"]), (blk_fastest, ["fig19"]), (fewest_bytes, ["fig19"]),
    (five_below_three, ["fig19"]), (manual_longer, ["fig22"]), (tuning_time, ["fig24"]), (optimised, ["before-after"]), (table2_equal, ["table2"]), (stream_beats_papers, ["fig06"]),
    (sweep_visible, ["advice"]), (counters_agree, []),
)  # fmt: skip


def all_verdicts(results, published):
    """Every verdict; undecided where its plan was not run."""
    found = []
    for decide, plans in VERDICTS:
        missing = [p for p in plans if p not in results]
        if missing:
            found.append(Verdict(decide.__name__.replace("_", "-"), decide.__name__.replace("_", " "), "", UNDECIDED, f"not run: {', '.join(missing)}"))
        elif decide is table2_equal:
            found.append(decide(results, published))
        else:
            found.append(decide(results))
    return found


def how_close(results):
    """How close does schedule-advised mmap come to explicit I/O, and what is left? Paragraphs of text from the numbers, [] without them."""
    plan = results.get("advice")
    if plan is None:
        return []
    text = []
    for algorithm in dict.fromkeys(g["algorithm"] for g in plan.groups.values()):
        explicit = [g for g in plan.select(advice="explicit", algorithm=algorithm) if g.done]
        if not explicit:
            continue
        best = min(explicit, key=lambda g: g.stat(per_step).median)
        base = best.stat(per_step).median
        none, advised = (plan.one(backend="mmap", algorithm=algorithm, advice=a) for a in ("none", "schedule"))
        text.append(f"{algorithm}: explicit I/O ({best['backend']}) takes {base:.4f} s per step, of which {best.stat(wait_share).median:.0%} is waiting, and moves {best.stat(amplification).median:.2f} times the bytes needed.")
        for name, g in (("without advice", none), ("advised by the schedule", advised)):
            if g is None or not g.done:
                text.append(f"{algorithm}: mmap {name} {'failed: ' + g.failure if g and g.failure else 'was not run'}.")
                continue
            value = g.stat(per_step).median
            faults, system = g.stat(lambda r: r.report["major_faults"]).median, g.stat(lambda r: r.report["kernel"]["system_s"]).median
            text.append(f"{algorithm}: mmap {name} takes {value / base:.2f} times as long ({value:.4f} s per step): it moves {g.stat(amplification).median:.2f} times the bytes needed, "
                        f"takes {faults:.0f} major faults and {system:.2f} s of system time (explicit: {best.stat(lambda r: r.report['kernel']['system_s']).median:.2f} s), and waits {g.stat(wait_share).median:.0%} of its time.")  # fmt: skip
        if advised and advised.done and none and none.done:
            a, n = advised.stat(per_step).median, none.stat(per_step).median
            if n > base:
                text.append(f"{algorithm}: advice closes {(n - a) / (n - base):.0%} of the gap between mmap without advice and explicit I/O; {(a - base) / base:+.0%} of explicit I/O's time is left. " + _what_is_left(advised, best))
    return text + _with_less_read_ahead(results, plan)


def _with_less_read_ahead(results, plan):
    """The same question with the read-ahead that suits best."""
    explicit = [g for g in plan.select(advice="explicit", algorithm="skewed-min") if g.done]
    tried = [g for g in results["readahead"].select(algorithm="advised") if g.done] if "readahead" in results else []
    if not explicit or not tried:
        return []
    base = min(g.stat(per_step).median for g in explicit)
    best, worst = (pick(tried, key=lambda g: g.stat(per_step).median) for pick in (min, max))
    return [f"Read-ahead: skewed-min advised by the schedule takes {best.stat(per_step).median / base:.2f} times explicit I/O's time and moves {best.stat(amplification).median:.2f} times the bytes needed with a read-ahead of {best['ahead']} KiB, "
            f"{worst.stat(per_step).median / base:.2f} times and {worst.stat(amplification).median:.2f} with {worst['ahead']} KiB: its Blocks are parts of planes, and the kernel reads on beyond them."]  # fmt: skip


def _what_is_left(advised, best):
    """The largest of the differences, in words."""
    base = best.stat(seconds).median
    wait = advised.stat(lambda r: r.report["time"]["wait_s"]).median - best.stat(lambda r: r.report["time"]["wait_s"]).median
    update = advised.stat(lambda r: r.report["time"]["update_s"]).median - best.stat(lambda r: r.report["time"]["update_s"]).median
    copy = advised.stat(lambda r: r.report["time"]["blk2blk_s"]).median - best.stat(lambda r: r.report["time"]["blk2blk_s"]).median
    parts = {"waiting for the page cache": wait, "slower computation (the copying threads and the kernel take cores from it)": update, "copies in DRAM": copy}
    named = ", ".join(f"{v / base:+.0%} {k}" for k, v in sorted(parts.items(), key=lambda x: -abs(x[1])))
    return f"What is left, in parts of explicit I/O's time: {named}."
