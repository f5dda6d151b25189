"""The papers' qualitative findings, each decided by our own numbers.

A verdict is computed, never written down. `confirmed`: the medians say so and, where one thing is to be smaller than another, by more than the spread of the repeats (stats.apart). `refuted`: they say
otherwise, or show no difference larger than that: who claims a difference claims that it can be seen. `undecided`: a run that it needs failed or is missing.
"""
from dataclasses import dataclass

from analysis import checks
from analysis.figures import (GIB, LEAST_PERIODS, NAMES, amplification, bandwidth_variation, cached_timeline, cell, gupdates, moved_read, moved_write, over, per_step, period, profiled_group, search_seconds, seconds, size_bytes,
                              system_s, table2_rows, version, wait_share)  # fmt: skip
from analysis.stats import Stat, apart, median, stat
from analysis.timeline import sweep_visibility

CONFIRMED, REFUTED, UNDECIDED = "confirmed", "refuted", "undecided"
# Where a finding has no sharp edge in the papers, this is ours.
FLAT_LOSS = 0.25  # speed at fixed DRAM may fall by this much from the first problem that exceeds it to the largest
LITTLE = 2.5  # times normal execution: the papers' largest is 2.2
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
    """State of 'each is smaller than the next' for named Stats; a difference within the spread is none."""
    if _missing(values):
        return UNDECIDED
    ordered = list(values.values())
    return CONFIRMED if all(a.median < b.median and apart(a, b) for a, b in zip(ordered, ordered[1:])) else REFUTED


def no_difference(values):
    """Names of neighbours that the spread does not tell apart, in words; "" if there are none."""
    pairs = list(zip(values.items(), list(values.items())[1:]))
    same = [f"{x} and {y}" for (x, a), (y, b) in pairs if isinstance(a, Stat) and isinstance(b, Stat) and not apart(a, b)]
    return f"; no difference larger than the spread of the repeats between {', '.join(same)}" if same else ""


def _worst(states):
    return UNDECIDED if UNDECIDED in states else REFUTED if REFUTED in states else CONFIRMED


def _order(name, finding, source, values, form):
    gap = _missing(values)
    return Verdict(name, finding, source, ascending(values), _say(values, form) + (f" ({gap})" if gap else no_difference(values)))


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
    finding = "Without temporal blocking an out-of-core run costs many times normal execution (65.2 in the paper, 53.8 for swap in the slides), with it less for every method"
    if not any(isinstance(r, Stat) for r in ratios.values()):
        return Verdict("cost-without", finding, "iwapt2016, Fig. 5; slides", UNDECIDED, gap)
    worse = all(not isinstance(without[m], Stat) or not isinstance(with_it[m], Stat) or without[m].median > with_it[m].median for m in without)
    many = any(isinstance(r, Stat) and r.median > 10 for r in ratios.values())
    ahead = {m: over(with_it[m], base) for m in with_it}
    state = CONFIRMED if worse and many else REFUTED
    return Verdict("cost-without", finding, "iwapt2016, Fig. 5; slides", UNDECIDED if gap and state == REFUTED else state,
                   f"times normal, without: {_say(ratios, '{:.1f}')}; with: {_say(ahead, '{:.2f}')}" + (f" ({gap})" if gap else ""))  # fmt: skip


def cost_with(results):
    plan = results["fig05"]
    base = cell(plan.one(method="normal"), per_step)
    ratios = {m: over(v, base) for m, v in _temporal(plan, per_step).items()}
    gap = _missing(ratios)
    state = UNDECIDED if gap else CONFIRMED if all(r.median <= LITTLE for r in ratios.values()) else REFUTED
    return Verdict("cost-with", "With temporal blocking an out-of-core run takes little more than normal execution (1.51 times with aio, 2.2 with swap)", "iwapt2016, Fig. 5; slides", state,
                   f"times normal: {_say(ratios, '{:.2f}')} (confirmed when none is above {LITTLE})" + (f" ({gap})" if gap else ""))  # fmt: skip


def fewest_reads(results):
    values = _temporal(results["fig05"], lambda r: moved_read(r) / GIB)
    gap = _missing(values)
    state = UNDECIDED if gap else CONFIRMED if values["aio"].median < min(values["mmap"].median, values["swap"].median) else REFUTED
    return Verdict("fewest-reads", "Of the three methods aio reads the fewest bytes (110.25 GiB against 209.70 and 600.90)", "slides, CPU Utilization Profile", state,
                   _say(values, "{:.3f} GiB read") + (f" ({gap})" if gap else ""))  # fmt: skip


def flat_bandwidth(results):
    """By one measure, figures.bandwidth_variation: confirmed when aio's is the least by more than the spread of the repeats."""
    plan, values, failed = results["fig05"], {}, []
    for m in ("aio", "mmap", "swap"):
        group = profiled_group(plan, m)
        runs = [(r, cached_timeline(r)) for r in group.done if r.timeline_path] if group else []
        values[m] = stat(bandwidth_variation(line, period(r)) for r, line in runs) or (group.failure if group and group.failure else None)
        if runs and not isinstance(values[m], Stat):
            failed.append(f"{m}: fewer than {LEAST_PERIODS} Blocks' periods")
    gap = "; ".join(failed) or _missing(values)
    pairs = [{"aio": values["aio"], m: values[m]} for m in ("mmap", "swap")]
    state = _worst([ascending(pair) for pair in pairs])
    waits = _temporal(plan, lambda r: 100 * wait_share(r))
    numbers = f"coefficient of variation of read + write bandwidth, averaged over each Block's period, from 5 to 95 % of the run: {_say(values, '{:.3f}')}{''.join(no_difference(pair) for pair in pairs)} (confirmed when aio's is the least)"
    if not _missing(waits):
        numbers += f"; waiting for I/O: {_say(waits, '{:.1f} %')} of the time"
    return Verdict("flat-bandwidth", "The bandwidth profile of aio is flat, those of mmap and swap are not", "slides, Flash SSD IO Bandwidth profile", state, numbers + (f" ({gap})" if gap else ""))


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
    plan, found, state = results["fig12"], [], CONFIRMED
    for room in ("x2", "x4"):
        direct, blocks = ({version("mmap", a): cell(plan.one(backend="mmap", algorithm=a, room=room), per_step) for a in row} for row in (("direct-skewed", "direct-skewed-opt"), ("skewed", "skewed-y", "skewed-min")))
        good, fast = [v.median for v in blocks.values() if isinstance(v, Stat)], [v.median for v in direct.values() if isinstance(v, Stat)]
        found.append(f"{room}: {_say(direct, '{:.3f}')} against {_say(blocks, '{:.3f}')} s per step")
        if not good or (not fast and not all(isinstance(v, str) for v in direct.values())):
            state = UNDECIDED
        elif fast and min(good) >= min(fast) and state == CONFIRMED:
            state = REFUTED
    return Verdict("blocks", "On a mapping with too little DRAM, algorithm-2 through Blocks beats the versions that work on the mapping directly", "iwapt2016, Fig. 12", state, "; ".join(found) + " (the best of either)")


def enough_dram(results):
    plan, found, state = results["fig12"], [], CONFIRMED
    for a in ("direct-skewed", "direct-skewed-opt"):
        enough = cell(plan.one(algorithm=a, room="enough"), per_step)
        for room in ("x2", "x4"):
            little = cell(plan.one(backend="mmap", algorithm=a, room=room), per_step)
            if not isinstance(enough, Stat) or little is None:
                state = UNDECIDED
                continue
            name = f"{version('mmap', a)} {room}"
            found.append(f"{name} {little.median / enough.median:.1f}" if isinstance(little, Stat) else f"{name}: {little}")
            if isinstance(little, Stat) and little.median < 1.2 * enough.median and state == CONFIRMED:
                state = REFUTED
    return Verdict("enough", "mmap1 and mmap1+opt are fast with enough DRAM and deteriorate without (here: by more than a fifth)", "iwapt2016, Fig. 12", state, "time per step without enough DRAM / with it: " + ", ".join(found))


def fastest_versions(results):
    plan, found, state = results["fig12"], [], CONFIRMED
    for room in ("x2", "x4"):
        values = {version(g["backend"], g["algorithm"]): cell(g, per_step) for g in plan.select(room=room) if g["algorithm"] != "redundant"}
        done = {k: v.median for k, v in values.items() if isinstance(v, Stat)}
        if not done:
            state = UNDECIDED
            continue
        best = sorted(done, key=done.get)[:3]
        found.append(f"{room}: " + ", then ".join(f"{name} {done[name]:.4f}" for name in best) + " s per step")
        if best[0] not in ("aio3y", "aio5y") and state == CONFIRMED:
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
    table, states, found = _tuned(results, seconds), [], []
    for a, values in table.items():
        pairs = [{"blk": values["blk"], t: values[t]} for t in ("manual", "naive")]
        states += [ascending(pair) for pair in pairs]
        found.append(f"{NAMES[a]}: {_say(values, '{:.2f} s')}" + "".join(no_difference(pair) for pair in pairs))
    return Verdict("blk-time", "Blk-Tune takes 68 to 73 % of the time of manual choice and 75 to 80 % of Naive-Tune's", "iwapt2016, Fig. 19", _worst(states), "; ".join(found) + " (confirmed when it is the fastest)")


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


def io_seconds(run):
    return run.report["time"]["buf2blk_s"] + run.report["time"]["blk2buf_s"]


def less_io_time(results):
    plan, ratios = results["fig22"], {}
    for g in plan.select(tuner="blk", algorithm="skewed-min"):
        a, b = cell(g, io_seconds), cell(plan.one(machine=g["machine"], algorithm=g["algorithm"], size=g["size"], tuner="manual"), io_seconds)
        if isinstance(a, Stat) and isinstance(b, Stat):
            ratios[f"{g['limit']} {g['size']}"] = a.median / b.median
    finding = "With Blk-Tune the I/O times of aio5y are 58 to 78 % of those with manual choice"
    if not ratios:
        return Verdict("io-time", finding, "iwapt2016, section VI-D", UNDECIDED, "no pair of runs finished")
    state = CONFIRMED if max(ratios.values()) < 1 else REFUTED
    return Verdict("io-time", finding, "iwapt2016, section VI-D; japanese, section 6.3", state, "time with a transfer under way, Blk-Tune / manual: " + ", ".join(f"{k} {v:.2f}" for k, v in ratios.items()) + " (confirmed when all are below 1)")


def five_faster(results):
    values = {a: _tuned(results, seconds)[a]["blk"] for a in ("skewed-min", "skewed-y")}
    return _order("aio5y-time", "aio5y is faster than aio3y", "japanese, section 6.3", {NAMES[a]: v for a, v in values.items()}, "{:.2f} s")


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
    plan, found, states = results["before-after"], [], []
    for b in ("aio", "mmap"):
        values = {s: cell(plan.one(backend=b, step=s), seconds) for s in ("after", "before")}
        states.append(ascending(values))
        found.append(f"{b}: {_say(values, '{:.2f} s')}{no_difference(values)}")
    return Verdict("optimised", "A cache-shaped iBlock with its layout and work-share shortens the run (to 0.55 and 0.59)", "slides, Before/After tuning", _worst(states), "; ".join(found))


def table2_equal(results, published):
    rows = list(table2_rows(results["table2"], published["table2"]))
    equal = sum(same for *_, same in rows)
    return Verdict("table2", "Blk-Tune's parameters in Table II, Naive-Tune's log and the bytes of the slides come out as published", "iwapt2016, Table II; slides", CONFIRMED if equal == len(rows) else REFUTED,
                   f"{equal} of {len(rows)} equal" + "".join(f"; {n}: {o} instead of {p}" for n, o, p, same in rows if not same))  # fmt: skip


def counters_agree(results):
    """The block device serves the whole machine: what it counts beyond ours may be others', what it counts short of ours may not."""
    found = checks.agreements(results)
    counted = [a for a in found if a.device is not None]
    wrong = [a for a in found if not (a.predicted_equal and a.process_close) or a.device_short]
    finding = "memext's own counters, CalcTrans, /proc/self/io and the block device agree on the bytes of aio and uring"
    if not found:
        return Verdict("counters", finding, "ours", UNDECIDED, "no runs on aio or uring")
    off = stat(abs(a.device - a.own) / max(1, a.own) for a in counted)
    numbers = (f"{len(found)} counts (runs on aio and uring, either direction): equal to CalcTrans {sum(a.predicted_equal for a in found)}, /proc/self/io agrees {sum(a.process_close for a in found)}; "
               f"{len(counted)} of them with the block device's counter: agrees {sum(a.device_close for a in counted)}")  # fmt: skip
    if off:
        numbers += f", it differs by {off.median:.2%} in the median, {off.high:.1%} at most"
    if wrong:
        a = wrong[0]
        numbers += f"; the first that does not agree: {a.plan} {a.id} {a.way}: own {a.own}, CalcTrans {a.predicted}, process {a.process}, device {a.device}"
    elif off and off.median > checks.DEVICE_SLACK:
        numbers += ": others used the device meanwhile"
    state = REFUTED if wrong else CONFIRMED if off and off.median <= checks.DEVICE_SLACK else UNDECIDED
    return Verdict("counters", finding, "ours", state, numbers)


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
    (swap_mmap_aio, ["fig05"]), (cost_without, ["fig05"]), (cost_with, ["fig05"]), (fewest_reads, ["fig05"]), (flat_bandwidth, ["fig05"]), (full_bandwidth, ["fig05"]), (fixed_dram, ["fig06"]), (aio_beats_mmap, ["fig07"]),
    (growing_difference, ["fig07"]), (enough_dram, ["fig12"]), (blocks_beat_mapping, ["fig12"]), (fastest_versions, ["fig12"]), (blk_fastest, ["fig19"]), (fewest_bytes, ["fig19"]),
    (five_below_three, ["fig19"]), (five_faster, ["fig19"]), (manual_longer, ["fig22"]), (less_io_time, ["fig22"]), (tuning_time, ["fig24"]), (optimised, ["before-after"]), (table2_equal, ["table2"]), (stream_beats_papers, ["fig06"]),
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


def _middle(group, of):
    return group.stat(of).median


def _explicit(plan, algorithm):
    """The faster of aio and uring with this schedule, or None."""
    done = [g for g in plan.select(advice="explicit", algorithm=algorithm) if g.done]
    return min(done, key=lambda g: _middle(g, per_step)) if done else None


def _per_step(group, of):
    return _middle(group, lambda r: of(r) / r.steps)


def how_close(results):
    """How close does schedule-advised mmap come to explicit I/O, and what is left? Paragraphs of text from the numbers, [] without them."""
    plan = results.get("advice")
    if plan is None:
        return []
    text, heads = [], []
    for algorithm in dict.fromkeys(g["algorithm"] for g in plan.select(backend="mmap")):
        best = _explicit(plan, algorithm)
        none, advised = (plan.one(backend="mmap", algorithm=algorithm, advice=a) for a in ("none", "schedule"))
        for name, g in (("without advice", none), ("advised by the schedule", advised)):
            if g is None or not g.done:
                text.append(f"{algorithm}: mmap {name} {'failed: ' + g.failure if g and g.failure else 'was not run'}.")
        if best and none and advised and none.done and advised.done:
            heads.append(_head(algorithm, best, none, advised))
            text += _left(algorithm, best, none, advised)
    answer = ["With the same schedule, the same Blocks and the same DRAM limit: " + "; ".join(heads) + "."] if heads else []
    return answer + text + _on_the_mapping(plan) + _with_less_read_ahead(results, plan) + _swapped(plan) + _conclusion(plan, heads)


def _head(algorithm, best, none, advised):
    base, n, a = (_middle(g, per_step) for g in (best, none, advised))
    closes = f"; advice closes {(n - a) / (n - base):.0%} of the gap" if n > base else ""
    return f"{algorithm} on mmap takes {a / base:.2f} times as long as explicit I/O ({best['backend']}) when the schedule advises it, {n / base:.2f} times without advice{closes}"


def _left(algorithm, best, none, advised):
    """Paragraphs: time and bytes that the advised mapping costs beyond explicit I/O."""
    base = _per_step(best, seconds)
    time = {"waiting for Blocks": lambda r: r.report["time"]["wait_s"], "a slower computation, whose cores the copying threads and the kernel share": lambda r: r.report["time"]["update_s"],
            "copies between Blocks": lambda r: r.report["time"]["blk2blk_s"]}  # fmt: skip
    parts = {name: (_per_step(advised, of) - _per_step(best, of)) / base for name, of in time.items()}
    named = ", ".join(f"{v:+.0%} {k}" for k, v in sorted(parts.items(), key=lambda x: -x[1]))
    faults = {name: _middle(g, lambda r: r.report["major_faults"]) for name, g in (("none", none), ("advised", advised))}
    first = (f"{algorithm}, what is left in time, in parts of explicit I/O's: {named}. The system time of a step is {_per_step(advised, system_s):.3f} s, explicit I/O's {_per_step(best, system_s):.3f} s: every page is entered into the page "
             f"cache, mapped, copied and reclaimed; {faults['advised']:.0f} major faults ({faults['none']:.0f} without advice).")  # fmt: skip
    needed_read, needed_write = advised.first(lambda r: [b / GIB for b in r.needed_bytes])
    read, wrote, read_none = _middle(advised, lambda r: moved_read(r) / GIB), _middle(advised, lambda r: moved_write(r) / GIB), _middle(none, lambda r: moved_read(r) / GIB)
    second = (f"{algorithm}, what is left in bytes: needed are {needed_read:.2f} GiB in and {needed_write:.2f} out, advised mmap reads {read:.2f} and writes {wrote:.2f} ({amplification_of(advised):.2f} times the need; "
              f"without advice it reads {read_none:.2f}, {amplification_of(none):.2f} times).")  # fmt: skip
    extra = read - needed_read
    if extra > 0.05 * needed_read:
        part = "all" if needed_write >= extra else f"{needed_write / extra:.0%}"
        second += f" A page that is stored to is read first, which explicit I/O need not do: that can explain {part} of the {extra:.2f} GiB read beyond the need."
    return [first, second]


def amplification_of(group):
    return _middle(group, amplification)


def _on_the_mapping(plan):
    """Without Blocks there is no explicit counterpart; what the kernel does alone, against what it is told."""
    values = {a: plan.one(backend="mmap", algorithm="plain", advice=a) for a in ("none", "schedule")}
    if not all(g and g.done for g in values.values()):
        return []
    each = ", ".join(f"{name} {_middle(g, per_step):.2f} s a step and {amplification_of(g):.2f} times the bytes needed" for name, g in values.items())
    return [f"On the mapping, plane by plane (no Blocks, no explicit counterpart), the access is sequential and the kernel's read-ahead suits it: {each}."]


def _with_less_read_ahead(results, plan):
    """The same question at every read-ahead size."""
    text, study = [], results.get("readahead")
    for algorithm in ("stream", "skewed-min") if study else ():
        best = _explicit(plan, algorithm)
        if best is None:
            continue
        base, said = _per_step(best, seconds), []
        for kind, name in ((algorithm, "without advice"), (f"{algorithm}-schedule", "advised")):
            tried = [g for g in study.select(kind=kind) if g.done]
            if tried:
                fast, slow = (pick(tried, key=lambda g: _middle(g, per_step)) for pick in (min, max))
                said.append(f"{name} {_middle(fast, per_step) / base:.2f} ({fast['ahead']} KiB) to {_middle(slow, per_step) / base:.2f} times ({slow['ahead']} KiB)")
        if said:
            text.append(f"Read-ahead decides how well the kernel does alone. {algorithm}, in explicit I/O's time, by the size that suits best and worst: {'; '.join(said)}.")
    return text


def _swapped(plan):
    text = []
    for algorithm in dict.fromkeys(g["algorithm"] for g in plan.select(backend="swap")):
        best, groups = _explicit(plan, algorithm), [g for g in plan.select(backend="swap", algorithm=algorithm) if g.done]
        if best and groups:
            base = _per_step(best, seconds)
            fast, slow = (pick(groups, key=lambda g: _middle(g, per_step)) for pick in (min, max))
            text.append(f"swap, {algorithm}: {_middle(fast, per_step) / base:.1f} times explicit I/O's time with the best advice ({fast['advice']}) and {_middle(slow, per_step) / base:.1f} with the worst ({slow['advice']}); "
                        f"{amplification_of(fast):.2f} and {amplification_of(slow):.2f} times the bytes needed. Advice about files means little to anonymous memory; what it lacks is read-ahead by more than vm.page-cluster.")  # fmt: skip
    return text


def _conclusion(plan, heads):
    if not heads:
        return []
    worst = []
    for algorithm in dict.fromkeys(g["algorithm"] for g in plan.select(backend="mmap")):
        best, advised = _explicit(plan, algorithm), plan.one(backend="mmap", algorithm=algorithm, advice="schedule")
        if best and advised and advised.done:
            worst.append(_per_step(advised, seconds) / _per_step(best, seconds))
    near, far = min(worst), max(worst)
    how = "comes within a fifth of explicit I/O" if far < 1.2 else f"takes {near:.1f} to {far:.1f} times explicit I/O's time" if far > 1.1 * near else f"takes {far:.1f} times explicit I/O's time"
    return [f"In short: advised by the schedule, mmap {how}. Advice can say what to read and what to drop, so that bytes come close to the need; it cannot spare the kernel's work for every page (entering, mapping, copying, "
            "reclaiming), nor the reading of pages that are overwritten as a whole, nor can it keep many requests in flight without threads that block in the kernel."]  # fmt: skip
