# SPDX-License-Identifier: BSD-3-Clause
"""The figures, in the papers' order, then ours. Each function reads results and returns a Drawn; which plan it needs stands in FIGURES."""
from dataclasses import dataclass, field

import numpy as np

from analysis import heatmaps, style, timeline
from analysis.stats import Stat, variation

GIB = 1 << 30
# Floating-point operations of an update. 10 for 7 points is the slides' own count (5945.38 Mflops in 1847.55 s); the others are
# counted the same way: additions and multiplications of the formula.
FLOPS = {"star7": 10, "edge19": 21, "box27": 30}
NAMES = {"skewed-min": "skewed-min (aio5y)", "skewed-y": "skewed-y (aio3y)", "redundant": "redundant (algorithm-1)", "stream": "stream (ours)",
         "skewed": "skewed (algorithm-2)", "direct-skewed": "direct-skewed (mmap1)", "direct-skewed-opt": "direct-skewed-opt (mmap1+opt)"}  # fmt: skip
# Of the versions in Fig. 12, after the backend's name.
VERSIONS = {"direct-skewed": "1", "direct-skewed-opt": "1+opt", "skewed": "2", "skewed-y": "3y", "skewed-min": "5y"}
NOT_GIVEN = "not given in the text"


@dataclass
class Drawn:
    """A figure with the numbers in it, as a table and in words."""

    name: str
    title: str
    figure: object
    header: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    notes: list = field(default_factory=list)


def size_bytes(text):
    """ "1.5GiB" -> bytes."""
    for unit, factor in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * factor
    return float(text)


def cell(group, of):
    """Stat of a group, or its failure in words, or a Gap where it ended and was not counted, or None where it was not run."""
    if group is None:
        return None
    return group.stat(of) or (group.failure or (style.Gap("not counted") if group.done else None))


def show(value, form="{:.3g}"):
    """A cell of a table."""
    if value is None:
        return "not run"
    if isinstance(value, str):
        return str(value) if isinstance(value, style.Gap) else f"failed: {value}" if value else ""
    if isinstance(value, Stat):
        lost = f", {value.failed} failed" if value.failed else ""
        if value.n > 1:
            return f"{form.format(value.median)} ({form.format(value.low)} to {form.format(value.high)}, n={value.n}{lost})"
        return form.format(value.median) + (f" ({lost[2:]})" if lost else "")
    return form.format(value) if isinstance(value, float) else str(value)


def per_step(run):
    return run.seconds_per_step


def seconds(run):
    return run.report["seconds"]


def gupdates(run):
    return run.rate * 1e-9


def counted(run, *names):
    """Counters of the kernel, None for each that the report has not."""
    k = run.report.get("kernel") or {}
    return tuple(v if (v := k.get(name)) is not None and v >= 0 else None for name in names)


def moved(run):
    """(read, written) of storage in the stencil phase, None where it was not counted. Reads are those of this process (faults and read-ahead count to who caused them); what a mapping
    dirtied is written by the kernel at its own time, which the block device's counter in the timeline alone shows. Swap: the kernel's swap counters; 0 both where the Buffers
    exceed the memory is no count."""
    if run.report["backend"] == "swap":
        ways = counted(run, "swap_in_bytes", "swap_out_bytes")
        none = ways == (0, 0) and run.limit and run.buffers_bytes > size_bytes(run.limit)
        return (None, None) if none else ways
    read, wrote = counted(run, "storage_read_bytes", "storage_write_bytes")
    if run.report["backend"] == "mmap":
        line = cached_timeline(run)
        wrote = line.total("device_write_bytes") if line is not None and len(line.samples) else None
    return read, wrote


def moved_read(run):
    return moved(run)[0]


def moved_write(run):
    return moved(run)[1]


def gib(of):
    """The same in GiB."""
    return lambda run: None if (v := of(run)) is None else v / GIB


def amplification(run):
    """Bytes really moved / bytes that the schedule needed."""
    needed, real = sum(run.needed_bytes), moved(run)
    return sum(real) / needed if needed and None not in real else None


def wait_share(run):
    return run.report["time"]["wait_s"] / run.report["seconds"] if run.report["seconds"] else None


_timelines = {}


def cached_timeline(run):
    path = run.timeline_path
    if path is None:
        return None
    if path not in _timelines:
        _timelines[path] = timeline.read(path)
    return _timelines[path]


def over(value, base):
    """A Stat relative to another, with the range of both; failures pass through."""
    if isinstance(value, Stat) and isinstance(base, Stat) and base.low > 0:
        return value.over(base)
    return value if isinstance(value, str) else None


# ------------------------------------------------------------------ Fig. 5 and the profiles of the slides

def fig05(plan, published):
    base = cell(plan.one(method="normal"), per_step)
    methods = [m for m in ("aio", "uring", "mmap", "swap") if plan.select(method=m)]
    temporal = [over(cell(plan.one(method=m, temporal=True), per_step), base) for m in methods]
    plain = [over(cell(plan.one(method=m, temporal=False), per_step), base) for m in methods]
    ours = over(cell(plan.one(method="stream"), per_step), base)
    p = published.value
    where = {("aio", True): "aio-temporal-ratio", ("mmap", True): "mmap-temporal-ratio", ("swap", True): "swap-temporal-ratio", ("swap", False): "swap-plain-ratio"}
    given = {k: (p(name), published.paper(name)) for k, name in where.items()}
    with_it, without = "with temporal blocking", "without temporal blocking"
    figure, ax = style.new(7.2, 3.8)
    style.bars(ax, [*methods, "stream (ours)"], {with_it: [*temporal, ours], without: [*plain, None]}, "time per step, relative to normal", log=True,
               published={name: [given.get((m, t)) for m in methods] for name, t in ((with_it, True), (without, False))})  # fmt: skip
    ax.axhline(1.0, color=style.BLACK, linewidth=1, linestyle="--", label="normal execution")
    ax.legend(ncols=2, loc="upper left")
    rows = [["normal", "", show(base, "{:.4f} s per step"), "1", "1"]]
    for m in [*methods, "stream"]:
        for t in (True, False):
            group = plan.one(method=m, temporal=t)
            if group is None:
                continue
            value = cell(group, per_step)
            rows.append([m, "with" if t else "without", show(value, "{:.4f} s per step"), show(over(value, base)), f"{given[m, t][0]} ({given[m, t][1]})" if (m, t) in given else "not in the papers" if m in ("uring", "stream") else NOT_GIVEN])
    notes = [f"Two sources, two shapes of mark: the ratios are the slides'; the paper gives {p('aio-temporal-seconds')} s against {p('normal-seconds')} s for aio ({p('aio-temporal-seconds') / p('normal-seconds'):.2f}), and "
             f"{p('without-temporal-ratio')} times normal ({p('without-temporal-seconds')} s) without temporal blocking, without naming the method in the text. "
             f"The sources do not share a base: the slides' normal execution took about {p('swap-plain-seconds') / p('swap-plain-ratio'):.0f} s, with programs before the optimisation.",
             "Without temporal blocking mmap and swap work on the mapping, step by step; aio has no memory semantics and moves the same Blocks for one step each."]  # fmt: skip
    return Drawn("fig05", "Fig. 5: swap, mmap and aio against normal execution", figure, ["method", "temporal blocking", "measured", "relative to normal", "published"], rows, notes)


def slides_bytes(plan, published):
    methods = [m for m in ("aio", "uring", "mmap", "swap") if plan.select(method=m)]
    read = [cell(plan.one(method=m, temporal=True), gib(moved_read)) for m in methods]
    wrote = [cell(plan.one(method=m, temporal=True), gib(moved_write)) for m in methods]
    figure, ax = style.new(6.4, 3.2)
    style.bars(ax, methods, {"read": read, "write": wrote}, "GiB moved on storage, stencil phase")
    rows = []
    for i, m in enumerate(methods):
        group = plan.one(method=m, temporal=True)
        needed = group.first(lambda r: r.needed_bytes) if group and group.done else None
        given = [published.values.get(f"{m}-{way}-gib", {}).get("value") for way in ("read", "write")]
        base = published.value("aio-read-gib")
        rows.append([m, show(read[i]), show(wrote[i]), f"{needed[0] / GIB:.3f} + {needed[1] / GIB:.3f}" if needed else "", show(over(read[i], read[0])),
                     *[g if g is not None else "not in the papers" for g in given], f"{given[0] / base:.2f}" if given[0] else ""])  # fmt: skip
    notes = ["The papers' written bytes contain the initial grid, ours do not. Read: by the process (swap: swapped in); written: by the block device (swap: swapped out). "
             "mmap leaves at the end what is still dirty in the page cache; its counter stops with the stencil phase."]  # fmt: skip
    return Drawn("slides-bytes", "Slides: bytes read and written", figure,
                 ["method", "read GiB", "written GiB", "needed GiB (read + written)", "read, of aio's", "published read GiB", "published written GiB", "published read, of aio's"], rows, notes)  # fmt: skip


def mflops(run):
    return run.rate * FLOPS[run.report["problem"]["stencil"]] * 1e-6


def block_periods(run):
    """How many Blocks are gone through in a run: those of a sweep, times the sweeps."""
    p, q = run.report["problem"], run.report["plan"]
    return -(-p["ny"] // q["by"]) * -(-p["nz"] // q["bz"]) * -(-p["nt"] // q["bt"])


def period(run):
    return run.report["seconds"] / block_periods(run)


PROFILED = ("aio", "mmap", "swap")


def _profile(plan, draw, unit, group_of=None):
    """One panel a method, on one axis of time; with group_of, which may pick runs of different lengths, each on its own."""
    figure, axes = style.new(7.2, 5.2 if group_of is None else 6.0, rows=3, columns=1, sharex=group_of is None)
    rows = []
    for ax, m in zip(axes, PROFILED):
        group = group_of(plan, m) if group_of else plan.one(method=m, temporal=True)
        run = next((r for r in group.done if r.timeline_path), None) if group else None
        ax.set_title(m, loc="left")
        ax.set_ylabel(unit)
        if run is None:
            ax.text(0.5, 0.5, group.failure if group and group.failure else "not run", transform=ax.transAxes, ha="center")
            continue
        rows.append([m, *draw(ax, run, cached_timeline(run))])
        if group_of:
            ax.set_title(f"{m}, {run.steps} steps", loc="left")
            ax.set_xlim(0, cached_timeline(run).duration_s)
    axes[-1].set_xlabel("seconds since the start of the stencil phase")
    if group_of is None:
        axes[-1].set_xlim(0, None)
    return figure, rows


def cpu_profile(plan, published):
    cores = plan.sessions[-1]["machine"].get("cores", 1) if plan.sessions else 1

    def given(method, what, form):
        value = published.values.get(f"{method}-{what}", {}).get("value")
        return form.format(value) if value is not None else NOT_GIVEN

    def draw(ax, run, line):
        m = run.params["method"]
        t, busy = line.cpu(cores)
        ax.fill_between(t, 0, 100 * np.clip(busy, 0, 1.2), step="mid", color=style.SKY, linewidth=0).set_gid("cpu")
        ax.axhline(90, color=style.BLACK, linewidth=0.8, linestyle=":")
        ax.set_ylim(0, 110)
        group = plan.one(method=m, temporal=True)
        return [show(cell(group, seconds), "{:.2f} s"), show(cell(group, mflops), "{:.0f}"), show(cell(group, period), "{:.3f} s"), f"{100 * busy.mean():.0f} %", f"{(busy < 0.9).mean():.1%}",
                show(cell(group, lambda r: 100 * wait_share(r)), "{:.1f} %"), given(m, "seconds", "{} s"), given(m, "mflops", "{}"), given(m, "period", "{} s"), given(m, "io-share", "{:.1%}")]  # fmt: skip

    figure, rows = _profile(plan, draw, "% of all cores")
    return Drawn("cpu-profile", "Slides: CPU utilisation profile", figure,
                 ["method", "execution time", "effective Mflops", "a Block's period", "mean CPU use", "samples under 90 %", "waiting for transfers", "published time", "published Mflops", "published period",
                  "published I/O share of a period"], rows,
                 ["CPU use is that of the process, system time included: reclaim and faults of mmap and swap count as busy. The dotted line is the papers' 90 %, under which they count a time as I/O."])  # fmt: skip


# The one measure of a flat bandwidth profile, fixed before the runs that it judges. A Block is read, computed and written, and the slides give every figure "per Block's period": within
# one, transfers come and go with every method, and how many samples fall into it depends on its length. So the bandwidth (read + write) is averaged over each period of a Block, and what varies
# between them counts: the coefficient of variation from 5 % to 95 % of the run, i.e. without filling and draining. At least this many periods make a profile.
LEAST_PERIODS = 10
PROFILE_OF = {"aio": ("aio-profile", "aio")}  # a run of more sweeps where there is one: at quick scale two sweeps of aio take 3 seconds


def profiled_group(plan, method):
    return next((g for m in PROFILE_OF.get(method, (method,)) if (g := plan.one(method=m, temporal=True))), None)


def bandwidth_profile(plan, published):
    def draw(ax, run, line):
        names = line.traffic()
        for name, c, label in zip(names, (style.BLUE, style.ORANGE), ("read", "write")):
            t, rate = line.rate(name)
            ax.plot(t, rate / 1e6, color=c, label=label, linewidth=1.1, drawstyle="steps-mid")[0].set_gid(label)
        middles, means = period_means(line, period(run))
        ax.plot(middles, means / 1e6, color=style.BLACK, label="both, mean of a Block's period", linewidth=1.0)[0].set_gid("periods")
        ax.set_ylim(0, 1.3 * ax.get_ylim()[1])  # the legend stands above the curves
        ax.legend(loc="upper right", ncols=3, frameon=True, framealpha=0.8)
        flat = bandwidth_variation(line, period(run))
        both = line.rate(*names)[1]
        return [str(run.steps), f"{line.duration_s:.1f} s", f"{both.mean() / 1e6:.0f} MB/s", f"{both.max() / 1e6:.0f} MB/s", f"{period(run):.3f} s", str(len(means)), f"{flat:.2f}" if flat is not None else "too short"]

    figure, rows = _profile(plan, draw, "MB/s", profiled_group)
    return Drawn("bandwidth-profile", "Slides: flash bandwidth profile", figure,
                 ["method", "steps", "duration", "mean read + write", "largest sample", "a Block's period", "periods from 5 to 95 %", "coefficient of variation of their means"], rows,
                 ["How flat a profile is: the coefficient of variation (standard deviation / mean) of read + write bandwidth averaged over each Block's period, from 5 to 95 % of the run. It does not depend on how "
                  "many samples fall into a Block. The scales of the panels differ. The papers' curves are not given in the text; beside them stands that aio achieves almost the maximum bandwidth of the device."])  # fmt: skip


def period_means(line, period_s):
    """(middles, mean read + write bandwidth) of the periods that lie between 5 and 95 % of the run. Counters between samples are interpolated."""
    if len(line.samples) < 2 or period_s <= 0:
        return np.empty(0), np.empty(0)
    n = int(0.9 * line.duration_s / period_s + 1e-9)
    edges = 0.05 * line.duration_s + period_s * np.arange(n + 1)
    moved_bytes = np.interp(edges, line.t, sum(line.column(name) for name in line.traffic()))
    return 0.5 * (edges[1:] + edges[:-1]), np.diff(moved_bytes) / period_s


def bandwidth_variation(line, period_s):
    """Coefficient of variation of the means; None where there are too few, or nothing was moved."""
    means = period_means(line, period_s)[1]
    return variation(list(means)) if len(means) >= LEAST_PERIODS else None


def full_bandwidth_share(line, best):
    """The mean read + write bandwidth while there is I/O (samples above a fiftieth of the best), of the best bytes per second that any of the methods reached; None without any."""
    rate = line.rate(*line.traffic())[1]
    busy = rate[rate > 0.02 * best]
    return float(busy.mean()) / best if best and len(busy) else None


def before_after(plan, published):
    steps, backends = ["before", "after", "tiled"], ["aio", "mmap"]
    series = {s: [cell(plan.one(backend=b, step=s), seconds) for b in backends] for s in steps}
    figure, ax = style.new(6.0, 3.2)
    style.bars(ax, backends, series, "seconds", names={"tiled": "tiled engine (ours)"})
    rows = []

    def given(name, form):
        value = published.values.get(name, {}).get("value")
        return form.format(value) if value is not None else ""

    for i, b in enumerate(backends):
        for s in steps:
            group, v = plan.one(backend=b, step=s), series[s][i]
            rows.append([b, s, show(v, "{:.2f} s"), show(over(v, series["before"][i]), "{:.2f}"), show(cell(group, mflops), "{:.0f}"), show(cell(group, period), "{:.3f} s"),
                         show(cell(group, lambda r: 100 * wait_share(r)), "{:.1f} %"), *([given(f"{b}-{s}-seconds", "{} s"), given(f"{b}-{s}-relative", "{}"), given(f"{b}-{s}-mflops", "{}"),
                         given(f"{b}-{s}-period", "{} s"), given(f"{b}-{s}-io-share", "{:.1%}")] if s != "tiled" else ["not in the papers", "", "", "", ""])])  # fmt: skip
    header = ["method", "version", "time", "relative to before", "effective Mflops", "a Block's period", "waiting"]
    return Drawn("before-after", "Slides: before and after optimisation", figure, [*header, *(f"published {h}" for h in ("time", "relative period", "Mflops", "period", "I/O share"))], rows,
                 ["memext always pads rows and shares z among its threads, so `before` differs by the shape of the iBlock alone (32 x 32 rows, as the slides' first programs); the papers' before had neither."])  # fmt: skip


# ------------------------------------------------------------------ Figs. 6 to 9


def _sizes(plan, **wanted):
    groups = plan.select(**wanted)
    names = list(dict.fromkeys(g["size"] for g in groups))
    return sorted(names, key=size_bytes)


def fig06(plan, published):
    base = cell(plan.one(method="normal"), gupdates)
    methods = [m for m in ("aio", "aio5y", "stream") if plan.select(method=m)]
    sizes = _sizes(plan)
    names = {"aio": "redundant on aio (the papers')", "aio5y": "skewed-min on aio (aio5y)", "stream": "stream on uring (ours)"}
    series = {m: [over(cell(plan.one(method=m, size=s), gupdates), base) for s in sizes] for m in methods}
    figure, ax = style.new(7.0, 3.6)
    xs = [size_bytes(s) for s in sizes]
    style.lines(ax, xs, series, "speed, relative to normal", names=names)
    ax.axhline(1.0, color=style.BLACK, linewidth=1, linestyle="--")
    limit = plan.select(method="aio")[0]["limit"] if plan.select(method="aio") else ""
    if limit and 16 * size_bytes(limit) <= xs[-1]:
        ax.plot([16 * size_bytes(limit)], [published.value("largest-relative")], linestyle="", marker="D", markersize=6, markerfacecolor="white", markeredgecolor=style.BLACK, zorder=4,
                label="published: aio, 16 times the DRAM").pop().set_gid("published")  # fmt: skip
        ax.legend(ncols=2, loc="upper left")
    if limit:
        ax.axvline(size_bytes(limit), color=style.GREY, linewidth=1, linestyle=":")
        ax.annotate(f" DRAM limit {limit}", (size_bytes(limit), 0.02), fontsize=7, color="#555555")
    style.size_axis(ax, xs, sizes, "size of the two Buffers")
    rows = [[s, *[show(series[m][i]) for m in methods]] for i, s in enumerate(sizes)]
    rows.append(["published: 512 GiB in 32 GiB", published.value("largest-relative"), *["not in the papers"] * (len(methods) - 1)])
    return Drawn("fig06", "Fig. 6: performance at fixed DRAM against problem size", figure, ["Buffers", *[names[m] for m in methods]], rows,
                 [f"Speed is updates per second, relative to normal execution of the smallest problem, all in DRAM: {show(base, '{:.3f} Gupdates/s')}. Published values of the sizes between are not given in the text."])  # fmt: skip


def _fig07(plan, of, unit, form, log=False):
    stencils = list(dict.fromkeys(g["stencil"] for g in plan.groups.values()))
    sizes = _sizes(plan)
    figure, axes = style.new(7.2, 3.4, columns=len(stencils), squeeze=False)
    rows, xs = [], [size_bytes(s) for s in sizes]
    for ax, stencil in zip(axes[0], stencils):
        series = {b: [cell(plan.one(backend=b, stencil=stencil, size=s), of(stencil)) for s in sizes] for b in ("aio", "mmap")}
        style.lines(ax, xs, series, unit, log_y=log)
        style.size_axis(ax, xs, sizes, "size of the two Buffers")
        ax.set_title(stencil, loc="left")
        for i, s in enumerate(sizes):
            a, m = series["aio"][i], series["mmap"][i]
            rows.append([stencil, s, show(a, form), show(m, form), show(over(a, m))])
    return figure, rows


def fig07(plan, published):
    figure, rows = _fig07(plan, lambda stencil: per_step, "seconds a step", "{:.4f}", log=True)
    low, high = published.value("aio-of-mmap-low"), published.value("aio-of-mmap-high")
    return Drawn("fig07", "Fig. 7: times of aio and mmap by problem size", figure, ["stencil", "Buffers", "aio s a step", "mmap s a step", "aio / mmap"], rows,
                 [f"Published: aio takes {low:.0%} to {high:.0%} of mmap's time; mmap with 19 points and 1 TiB was ended by the out-of-memory killer."])  # fmt: skip


def fig08(plan, published):
    figure, rows = _fig07(plan, lambda stencil: mflops, "effective Mflops", "{:.0f}")
    return Drawn("fig08", "Fig. 8: effective Mflops of aio and mmap by problem size", figure, ["stencil", "Buffers", "aio Mflops", "mmap Mflops", "aio / mmap"], rows,
                 [f"Counted as in the slides: {FLOPS['star7']} operations an update for 7 points, {FLOPS['edge19']} for 19. Published values are not given in the text."])  # fmt: skip


def fig09(plan, published):
    sizes = _sizes(plan, stencil="star7")
    limit = size_bytes(plan.select(stencil="star7")[0]["limit"])
    figure, ax = style.new(7.0, 3.4)
    series = {b: [cell(plan.one(backend=b, stencil="star7", size=s), mflops) for s in sizes] for b in ("aio", "mmap")}
    blocks = [plan.one(backend="mmap", stencil="star7", size=s) for s in sizes]
    shares = [g.first(lambda r: r.report["block_bytes"]) if g else None for g in blocks]
    names = [f"{s}\nBlocks {b / (1 << 20):.0f} MiB" if b else s for s, b in zip(sizes, shares)]
    style.bars(ax, names, series, "effective Mflops", value_format="{:.0f}")
    ax.set_xlabel(f"size of the two Buffers, and of the two Blocks in {plan.select(stencil='star7')[0]['limit']} of DRAM")
    rows = []
    for i, s in enumerate(sizes):
        a, m = series["aio"][i], series["mmap"][i]
        rows.append([s, f"{shares[i] / GIB:.3f}" if shares[i] else "", f"{(limit - shares[i]) / GIB:.3f}" if shares[i] else "", show(a, "{:.0f}"), show(m, "{:.0f}"), show(over(a, m))])
    return Drawn("fig09", "Fig. 9: effective Mflops at fixed DRAM, aio and mmap", figure, ["Buffers", "Blocks GiB", "rest of the DRAM GiB", "aio Mflops", "mmap Mflops", "aio / mmap"], rows,
                 ["Both methods have the same Blocks; what they leave of the DRAM is page cache for mmap. Published v" + published.values["fig9-trend"]["note"][1:] + "."])  # fmt: skip


# ------------------------------------------------------------------ Fig. 12


def version(backend, algorithm):
    """As Fig. 12 calls it."""
    return f"{backend}{VERSIONS[algorithm]}" if algorithm in VERSIONS else f"{backend}, algorithm-1"


def fig12(plan, published):
    labels, columns, rows = [], {"x2": [], "x4": []}, []
    order = [("mmap", a) for a in (*VERSIONS, "redundant")] + [("aio", a) for a in ("skewed", "skewed-y", "skewed-min", "redundant")]
    base = {room: cell(plan.one(backend="aio", algorithm="skewed-min", room=room), per_step) for room in columns}
    for backend, algorithm in order:
        labels.append(version(backend, algorithm).replace(", ", ",\n"))
        enough = cell(plan.one(backend=backend, algorithm=algorithm, room="enough"), per_step)
        row = [version(backend, algorithm), f"{algorithm} on {backend}", show(enough, "{:.4f} s") if enough is not None else ""]
        for room in columns:
            group = plan.one(backend=backend, algorithm=algorithm, room=room)
            value = cell(group, per_step)
            columns[room].append(over(value, base[room]))
            read = cell(group, lambda r: None if moved_read(r) is None else moved_read(r) / r.steps / GIB)
            row += [show(value, "{:.4f} s"), show(columns[room][-1]) if isinstance(value, Stat) else "", show(read, "{:.3f}") if isinstance(value, Stat) else ""]
        rows.append(row)
    figure = None  # where neither a value nor a failure is there to be drawn
    if any(v is not None for column in columns.values() for v in column):
        figure, ax = style.new(7.4, 3.9)
        style.bars(ax, labels, columns, "time per step, relative to aio5y", log=True, names={"x2": "Buffers twice the DRAM (the papers')", "x4": "Buffers four times the DRAM"}, value_format="{:.2g}")
        ax.tick_params(axis="x", labelsize=7)
    header = ["version", "in memext", "enough DRAM, per step", "x2 per step", "x2 relative", "x2 GiB read per step", "x4 per step", "x4 relative", "x4 GiB read per step"]
    return Drawn("fig12", "Fig. 12: versions of algorithm-2 with mmap and aio", figure, header, rows,
                 ["Relative to aio5y with the same DRAM. mmap1 and mmap1+opt work on the mapping, the others through Blocks. Published values are not given in the text; the findings are, see the verdicts."])  # fmt: skip


# ------------------------------------------------------------------ Figs. 19 to 24, Table II

TUNERS = ("manual", "naive", "blk")


def _parameters(group):
    return group.first(lambda r: "by {by}, bz {bz}, bt {bt}, iy {iy}, iz {iz}".format_map(r.report["plan"]), "") if group else ""


def fig19(plan, published):
    algorithms = ["skewed-min", "skewed-y"]
    series = {t: [cell(plan.one(algorithm=a, tuner=t), seconds) for a in algorithms] for t in TUNERS}
    figure, ax = style.new(6.4, 3.3)
    style.bars(ax, [NAMES[a] for a in algorithms], series, "seconds")
    rows = []
    for i, a in enumerate(algorithms):
        for t in TUNERS:
            v = series[t][i]
            rows.append([NAMES[a], t, _parameters(plan.one(algorithm=a, tuner=t)), show(v, "{:.2f} s"), show(over(series["blk"][i], v))])
    p = published.value
    return Drawn("fig19", "Fig. 19: times with the three tuners", figure, ["algorithm", "tuner", "parameters", "time", "Blk-Tune's time, of this"], rows,
                 [f"Published: Blk-Tune takes {p('blk-of-manual-low'):.0%} to {p('blk-of-manual-high'):.0%} of manual choice, {p('blk-of-naive-low'):.0%} to {p('blk-of-naive-high'):.0%} of Naive-Tune."])  # fmt: skip


COMPONENTS = ("update_s", "blk2blk_s", "wait_s")


def _components(plan, groups, title, name):
    """Stacked parts of the wall time, and beside them how long transfers were under way."""
    labels = [label for label, _ in groups]
    figure, (left, right) = style.new(7.4, 4.2, columns=2)
    nothing = float("nan")  # of a run that failed: no bar, and a mark in its place
    parts = {c[:-2]: [g.stat(lambda r, c=c: r.report["time"][c]).median if g.done else nothing for _, g in groups] for c in COMPONENTS}
    total = [g.stat(seconds).median if g.done else nothing for _, g in groups]
    lost = {i: g.failure or "not run" for i, (_, g) in enumerate(groups) if not g.done}
    parts["other"] = [nothing if i in lost else max(0.0, t - sum(parts[c][i] for c in ("update", "blk2blk", "wait"))) for i, t in enumerate(total)]
    style.stacked(left, labels, parts, "seconds", lost)
    left.set_title("what the computing thread did", loc="left")
    ways = {w: [cell(g, lambda r, w=w: r.report["time"][f"{w}_s"]) for _, g in groups] for w in ("buf2blk", "blk2buf")}
    style.bars(right, labels, ways, "seconds with a transfer under way", value_format="{:.2g}", legend=False)
    style.legend_above(figure, left, right, ncols=6)
    right.set_title("flash read and write", loc="left")
    for ax in (left, right):
        ax.tick_params(axis="x", rotation=60, labelsize=7)
    rows = [[label.replace("\n", " "), *["" if i in lost else show(float(parts[c][i]), "{:.2f}") for c in ("update", "blk2blk", "wait", "other")], show(ways["buf2blk"][i], "{:.2f}"), show(ways["blk2buf"][i], "{:.2f}")] for i, label in enumerate(labels)]
    return Drawn(name, title, figure, ["run", "update s", "blk2blk s", "wait s", "other s", "buf2blk s", "blk2buf s"], rows,
                 ["memext overlaps transfers with computation, so buf2blk and blk2buf are shown beside the wall time, not in it; `wait` is what they cost. "
                  "Published values are not given in the text."])  # fmt: skip


def fig20(plan, published):
    groups = [(f"{a}\n{t}", plan.one(algorithm=a, tuner=t)) for a in ("skewed-min", "skewed-y") for t in TUNERS]
    return _components(plan, [(n, g) for n, g in groups if g], "Fig. 20: time components with the three tuners", "fig20")


def fig21(plan, published):
    algorithms = ["skewed-min", "skewed-y"]
    figure, axes = style.new(7.0, 3.2, columns=2, sharey=True)
    rows = []
    for ax, a in zip(axes, algorithms):
        groups = [plan.one(algorithm=a, tuner=t) for t in TUNERS]
        series = {way: [cell(g, lambda r, way=way: r.report[f"{way}_bytes"] / GIB) for g in groups] for way in ("read", "write")}
        style.bars(ax, list(TUNERS), series, "GiB")
        ax.set_title(NAMES[a], loc="left")
        for t, g, r, w in zip(TUNERS, groups, series["read"], series["write"]):
            exact = g.first(lambda x: (x.report["read_bytes"], x.report["write_bytes"]) == (x.report["predicted_read_bytes"], x.report["predicted_write_bytes"])) if g else None
            rows.append([NAMES[a], t, show(r, "{:.4f}"), show(w, "{:.4f}"), {True: "equal", False: "different", None: ""}[exact]])
    style.same_top(axes)
    return Drawn("fig21", "Fig. 21: bytes read and written with the three tuners", figure, ["algorithm", "tuner", "read GiB", "written GiB", "predicted bytes"], rows, ["Published values are not given in the text."])


MACHINES = (("crest4", "Fig. 22"), ("crest6", "Fig. 23"))


def fig22(plan, published):
    sizes = _sizes(plan)
    figure, axes = style.new(7.4, 3.8, columns=2, sharey=True)
    rows = []
    for ax, (machine, name) in zip(axes, MACHINES):
        labels = [(a, s) for a in ("skewed-min", "skewed-y") for s in sizes]
        series = {t: [cell(plan.one(machine=machine, algorithm=a, size=s, tuner=t), seconds) for a, s in labels] for t in ("manual", "blk")}
        style.bars(ax, [f"{'aio5y' if a == 'skewed-min' else 'aio3y'}\n{s}" for a, s in labels], series, "seconds", value_format="{:.2g}")
        limit = next((g["limit"] for g in plan.select(machine=machine)), "")
        ax.set_title(f"{name}: {limit} of DRAM", loc="left")
        for (a, s), m, b in zip(labels, series["manual"], series["blk"]):
            lengthening = over(m, b)
            longer = show(lengthening)
            if isinstance(lengthening, Stat):
                longer = f"{lengthening.median - 1:+.1%}" + (f" ({lengthening.low - 1:+.1%} to {lengthening.high - 1:+.1%})" if lengthening.n > 1 else "")
            given = [published.value(f"{machine}-{a}-{end}") for end in ("low", "high")]
            rows.append([f"{name}, {limit}", NAMES[a], s, _parameters(plan.one(machine=machine, algorithm=a, size=s, tuner="blk")), show(b, "{:.2f} s"), show(m, "{:.2f} s"), longer, f"+{given[0]:.1%} to +{given[1]:.1%} ({machine})"])
    style.same_top(axes)
    return Drawn("fig22", "Figs. 22 and 23: manual choice against Blk-Tune by problem size", figure, ["machine", "algorithm", "Buffers", "Blk-Tune's parameters", "Blk-Tune", "manual", "manual takes longer by", "published"], rows,
                 ["Two DRAM limits on one machine stand for the papers' crest4 (64 GiB) and crest6 (128 GiB, faster processors and flash)."])  # fmt: skip


def fig22_components(plan, published):
    groups = [(f"{g['limit']} {g['size']}\n{t}", g) for m, _ in MACHINES for s in _sizes(plan) for t in ("manual", "blk") for g in plan.select(machine=m, algorithm="skewed-min", size=s, tuner=t)]
    drawn = _components(plan, groups, "Figs. 22 and 23, lower part: time components of aio5y", "fig22-components")
    drawn.notes.append(f"Published: I/O times with Blk-Tune are {published.value('io-low'):.0%} to {published.value('io-high'):.0%} of those with manual choice.")
    return drawn


def search_seconds(run):
    return run.report["search"]["seconds"]


def fig24(plan, published):
    sizes = _sizes(plan)
    xs = [size_bytes(s) for s in sizes]
    figure, ax = style.new(6.6, 3.4)
    series = {f"{m} {how}": [cell(plan.one(machine=m, size=s, search=how), search_seconds) for s in sizes] for m in ("crest4", "crest6") for how in ("exhaustive", "reduced")}
    style.lines(ax, xs, series, "seconds of search", log_y=True, legend=False)
    style.legend_above(figure, ax)
    style.size_axis(ax, xs, sizes, "size of the two Buffers")
    rows = []
    for name, row in series.items():
        for s, v in zip(sizes, row):
            m, how = name.split()
            group = plan.one(machine=m, size=s, search=how)
            share = cell(group, lambda r: search_seconds(r) / r.report["predicted_seconds"])
            rows.append([m, how, s, show(v, "{:.2e} s"), show(share, "{:.1e}"), show(group.first(lambda r: r.report["search"]["evaluated"]) if group else None)])
    return Drawn("fig24", "Fig. 24: tuning time by problem size", figure, ["machine", "search", "Buffers", "search time", "of the predicted run time", "combinations"], rows,
                 [f"Published: about {published.value('share'):.1%} of the computation for 128 to 512 GiB; seconds are not given in the text."])  # fmt: skip


def table2_rows(plan, published):
    """(id, ours, published, equal) of every offline plan."""
    for name, value in published.values.items():
        group = plan.groups.get(name)
        if group is None or not group.done:
            yield name, group.failure if group else "not run", value["value"], False
            continue
        report = group.done[0].report
        if name == "slides-bytes":
            ours = report["predicted_read_bytes"] / GIB
            yield name, ours, value["value"], abs(ours - value["value"]) < 0.005
        else:
            ours = [report["plan"][k] for k in ("by", "bz", "bt", "iy", "iz")]
            yield name, ours, value["value"], ours == value["value"]


def table2(plan, published):
    rows = [[name, published.values[name]["what"], show(o, "{:.2f}") if isinstance(o, float) else str(o), str(p), "equal" if same else "DIFFERENT"] for name, o, p, same in table2_rows(plan, published)]
    return Drawn("table2", "Table II and the slides' log, planned offline", None, ["problem and machine", "what", "memext", "published", ""], rows,
                 ["Planned for the papers' machines and problems, at the papers' size; nothing is run."])  # fmt: skip


# ------------------------------------------------------------------ beyond the papers: uring, queue


def uring(plan, published):
    groups = list(plan.groups.values())
    figure, (left, right) = style.new(7.4, 3.6, columns=2)
    labels = [g["variant"].replace("uring-", "uring\n") for g in groups]
    rate = [cell(g, lambda r: (r.report["read_bytes"] + r.report["write_bytes"]) / r.report["seconds"] / 1e9) for g in groups]
    system = [cell(g, lambda r: None if None in (*moved(r), *counted(r, "system_s")) else system_s(r) / (sum(moved(r)) / GIB)) for g in groups]
    style.bars(left, labels, {"transfer": rate}, "GB/s read and written")
    style.bars(right, labels, {"system": system}, "system CPU seconds per GiB")
    for ax in (left, right):
        ax.tick_params(axis="x", rotation=60, labelsize=7)
    rows = [[g["variant"], show(r, "{:.3f}"), show(s, "{:.4f}"), show(cell(g, lambda x: 100 * wait_share(x)), "{:.0f} %"), g.first(lambda x: x.report["device"]["note"], "") or ""] for g, r, s in zip(groups, rate, system)]
    return Drawn("uring", "io_uring and its options against libaio", figure, ["variant", "GB/s", "system CPU s per GiB", "waiting", "what the runtime had to do without"], rows, [])


def queue(plan, published):
    backends = list(dict.fromkeys(g["backend"] for g in plan.groups.values()))
    figure, axes = style.new(6.6, 3.4, columns=len(backends), squeeze=False, sharey=True)
    rows = []
    for ax, b in zip(axes[0], backends):
        depths = sorted({g["depth"] for g in plan.select(backend=b)})
        requests = sorted({g["request"] for g in plan.select(backend=b)}, key=size_bytes)
        series = {q: [cell(plan.one(backend=b, depth=d, request=q), lambda r: (r.report["read_bytes"] + r.report["write_bytes"]) / r.report["seconds"] / 1e9) for d in depths] for q in requests}
        style.lines(ax, depths, series, "GB/s read and written")
        style.size_axis(ax, depths, depths, "requests in flight")
        ax.set_title(b, loc="left")
        rows += [[b, q, *[show(v, "{:.2f}") for v in row]] for q, row in series.items()]
    style.same_top(axes[0])
    return Drawn("queue", "Queue depth and request size", figure, ["backend", "request", *[f"depth {d}" for d in depths]], rows, ["GB/s, read and written together."])


# ------------------------------------------------------------------ page-cache studies

ADVICES = ("none", "sequential", "random", "willneed", "hugepage", "schedule")


def of_kernel(name, unit=GIB):
    return lambda r: None if (v := counted(r, name)[0]) is None else v / unit


def system_s(run):
    return counted(run, "system_s")[0]


def _cache_row(group):
    return [show(cell(group, per_step), "{:.4f}"), show(cell(group, amplification), "{:.2f}"), show(cell(group, gib(moved_read)), "{:.2f}"), show(cell(group, gib(moved_write)), "{:.2f}"),
            show(cell(group, lambda r: r.report["major_faults"]), "{:.0f}"), show(cell(group, of_kernel("reclaimed_bytes")), "{:.2f}"), show(cell(group, of_kernel("refault_bytes")), "{:.2f}"),
            show(cell(group, system_s), "{:.2f}"), show(cell(group, lambda r: 100 * wait_share(r)), "{:.0f} %")]  # fmt: skip


CACHE_HEADER = ["s per step", "moved / needed", "GiB read", "GiB written", "major faults", "GiB reclaimed", "GiB refaulted", "system CPU s", "waiting"]
CACHE_NOTE = ("Needed: CalcTrans; on the mapping, one Buffer in and one out a step. Read: by the process; written: by the block device; swap: swapped in and out. Reclaimed: taken back by the kernel for want "
              "of memory; refaulted: read again soon after that. Waiting: of the computing thread for Blocks; on the mapping it faults while it computes, which is not told apart.")  # fmt: skip


def advice(plan, published):
    cases = [("mmap", "stream"), ("mmap", "skewed-min"), ("mmap", "plain"), ("swap", "stream")]
    cases = [c for c in cases if plan.select(backend=c[0], algorithm=c[1])]
    figure, axes = style.new(7.4, 5.8, rows=2, columns=2)
    rows = []
    for backend in ("aio", "uring"):
        for algorithm in ("stream", "skewed-min"):
            group = plan.one(backend=backend, algorithm=algorithm)
            if group:
                rows.append([backend, algorithm, "explicit I/O", *_cache_row(group)])
    for ax, (backend, algorithm) in zip(axes.flat, cases):
        groups = [plan.one(backend=backend, algorithm=algorithm, advice=a) for a in ADVICES]
        values = [cell(g, per_step) for g in groups]
        style.bars(ax, list(ADVICES), {backend: values}, "s per step", log=True)
        explicit = cell(plan.one(backend="uring", algorithm=algorithm), per_step)
        if isinstance(explicit, Stat):
            ax.axhline(explicit.median, color=style.BLACK, linewidth=1.4, linestyle="--", label=f"uring, same schedule and Blocks: {explicit.median:.3g}").set_gid("explicit")
            ax.set_ylim(min(ax.get_ylim()[0], explicit.median / 2), None)
            ax.legend(loc="upper left")
        ax.set_title(f"{backend}, {'on the mapping, plane by plane' if algorithm == 'plain' else algorithm + ' through Blocks'}", loc="left")
        ax.tick_params(axis="x", rotation=35, labelsize=7)
        rows += [[backend, algorithm, a, *_cache_row(g)] for a, g in zip(ADVICES, groups) if g]
    for ax in list(axes.flat)[len(cases) :]:
        ax.set_visible(False)
    return Drawn("advice", "mmap and swap under each advice", figure, ["backend", "schedule", "advice", *CACHE_HEADER], rows, ["At quick scale runs on the mapping, plane by plane, have twice the grid of the others.", CACHE_NOTE])


def amplification_figure(plan, published):
    groups = [g for g in plan.groups.values() if g.done or g.failure]
    labels = [f"{g['backend']} {g['algorithm']} {g['advice']}" for g in groups]
    figure, ax = style.new(7.2, 0.24 * len(groups) + 1.2)
    named = set()

    def once(label):
        return None if label in named else named.add(label) or label

    for i, g in enumerate(groups):
        needed = g.first(lambda r: [b / GIB for b in r.needed_bytes])
        if needed is None:
            ax.annotate(f"× {g.failure[:60]}", (0, i), xytext=(3, 0), textcoords="offset points", va="center", fontsize=7, color=style.RED)
            continue
        read, wrote = (s.median if (s := g.stat(gib(of))) else None for of in (moved_read, moved_write))
        if read is not None:
            ax.barh(i, read, 0.7, color=style.BLUE, label=once("read"))
        if wrote is not None:
            ax.barh(i, wrote, 0.7, left=read or 0, color=style.ORANGE, hatch="//", edgecolor="white", linewidth=0.3, label=once("written"))
        ax.plot([sum(needed)] * 2, [i - 0.45, i + 0.45], color=style.BLACK, linewidth=2, label=once("needed (read + written)"))
        gap = [name for name, v in (("read", read), ("written", wrote)) if v is None]
        text, c = (f"{(read + wrote) / sum(needed):.2f}", style.BLACK) if not gap else (f"{' and '.join(gap)}: not counted", style.GREY)
        ax.annotate(text, (max((read or 0) + (wrote or 0), sum(needed)), i), xytext=(4, 0), textcoords="offset points", va="center", fontsize=6.5, color=c)
    ax.set_yticks(range(len(groups)), labels, fontsize=7)
    ax.set_ylim(len(groups) - 0.4, -0.6)
    ax.margins(x=0.1)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("GiB on storage in the stencil phase; the number is moved / needed")
    style.legend_above(figure, ax)
    return Drawn("amplification", "Bytes really moved against bytes needed", figure, [], [], ["The numbers stand in the table of the advices. At the end of a run on mmap a part of what it wrote is still in the page cache, so that less than what is needed may have been written. "
                 "What a mapping has written only the block device counts, and only runs with a timeline have that counter."])  # fmt: skip


def _number(choice):
    """Sorts 4, "128" and "4 MiB" as numbers, words last."""
    try:
        return size_bytes(str(choice).replace(" ", ""))
    except ValueError:
        return float("inf")


def _study(plan, parameter, series_by, names, label, title, name, notes=()):
    choices = sorted(dict.fromkeys(g[parameter] for g in plan.groups.values()), key=_number)
    kinds = list(dict.fromkeys(g[series_by] for g in plan.groups.values()))
    table = {k: [plan.one(**{parameter: c, series_by: k}) for c in choices] for k in kinds}
    wide = len(kinds) * len(choices) > 16  # beside each other there is no room for the numbers
    figure, axes = style.new(7.4, 6.4, rows=2) if wide else style.new(7.4, 3.9, columns=2)
    forms = {"value_format": "{:.2g}", "names": names, "legend": False}
    style.bars(axes[0], [str(c) for c in choices], {k: [cell(g, per_step) for g in row] for k, row in table.items()}, "s per step", log=True, **forms)
    style.bars(axes[1], [str(c) for c in choices], {k: [cell(g, amplification) for g in row] for k, row in table.items()}, "bytes moved / needed", **forms)
    axes[1].axhline(1.0, color=style.BLACK, linewidth=1, linestyle="--")
    style.legend_above(figure, axes[0], ncols=3)
    for ax in axes:
        ax.set_xlabel(label)
    rows = [[names.get(k, k), str(c), *_cache_row(g)] for k, row in table.items() for c, g in zip(choices, row) if g]
    return Drawn(name, title, figure, ["run", label, *CACHE_HEADER], rows, [*notes, CACHE_NOTE])


READAHEAD_NAMES = {"stream": "stream, no advice", "stream-schedule": "stream, advice schedule", "skewed-min": "skewed-min, no advice", "skewed-min-schedule": "skewed-min, advice schedule",
                   "plain": "on the mapping, no advice", "swap": "swap, stream"}  # fmt: skip
DIRTY_NAMES = {"none": "advice none", "schedule": "advice schedule"}
SHARE_NAMES = {"mmap-schedule": "mmap, advice schedule"}


def readahead(plan, published):
    return _study(plan, "ahead", "kind", READAHEAD_NAMES, "read-ahead KiB", "Read-ahead size, mmap and swap", "readahead", ["For swap the read-ahead is 4 KiB << vm.page-cluster. At quick scale runs on the mapping have twice the grid of the others."])


def dirty(plan, published):
    return _study(plan, "dirty", "advice", DIRTY_NAMES, "vm.dirty_bytes", "Dirty limits and mmap", "dirty", ["stream through Blocks. Swap has no dirty limit: anonymous pages are not counted as dirty."])


def share(plan, published):
    return _study(plan, "share", "method", SHARE_NAMES, "% of the DRAM in Blocks", "DRAM share of Blocks and page cache", "share", ["skewed-min; the same Blocks for every method. For mmap and swap the rest of the DRAM limit is page cache."])


HEAT_NOTE = ("Left: what the schedule reads, computes and writes at that moment, by the time it takes; right: what the page cache (swap: memory) holds of either Buffer. Correlation: of the place that enters the "
             "page cache with the place that is computed; 1 is a sweep that residency follows exactly.")  # fmt: skip


def _heat(groups, name, title, notes=()):
    """One figure of several runs, the first of each group that has residency; [] where none has."""
    picked = []
    for label, group in groups:
        run = next((r for r in group.done if r.timeline_path), None) if group else None
        line = cached_timeline(run) if run else None
        if line is not None and len(line.residency):
            picked.append((label, line))
    if not picked:
        return []
    rows = []
    for label, line in picked:
        seen = timeline.sweep_visibility(line)
        rows.append([label, f"{line.duration_s:.2f} s", f"{line.residency.mean():.1f} %", f"{seen:.2f}" if seen is not None else "nothing enters" if not line.residency.any() else "too little changes"])
    figure = heatmaps.draw(picked)
    return [Drawn(name, title, figure, ["run", "duration", "mean residency of both Buffers", "correlation with the sweep"], rows, list(notes))]


def heat(plan, published):
    """Residency under every advice, a figure for each way to use the Buffers."""
    drawn = []
    for backend, algorithm, what in (("mmap", "plain", "mmap, on the mapping, plane by plane"), ("mmap", "stream", "mmap, stream through Blocks"), ("mmap", "skewed-min", "mmap, skewed-min through Blocks"), ("swap", "stream", "swap, stream through Blocks")):
        groups = [("uring", plan.one(backend="uring", algorithm=algorithm))] if backend == "mmap" and algorithm != "plain" else []
        groups += [(a, plan.one(backend=backend, algorithm=algorithm, advice=a)) for a in ADVICES]
        drawn += _heat(groups, f"heat-{backend}-{algorithm}", f"Residency under each advice: {what}", [] if drawn else [HEAT_NOTE])
    return drawn


def _heat_study(parameter, series_by, names, title, unit):
    """Residency of a study, a figure for each of its kinds of run."""

    def draw(plan, published):
        drawn = []
        for kind in dict.fromkeys(g[series_by] for g in plan.groups.values()):
            groups = sorted(plan.select(**{series_by: kind}), key=lambda g: _number(g[parameter]))
            drawn += _heat([(f"{g[parameter]}{unit}", g) for g in groups], f"heat-{plan.name}-{kind}", f"Residency by {title}: {names.get(kind, kind)}", [] if drawn else ["As the heat maps of the advices."])
        return drawn

    draw.__name__ = f"heat_{parameter}"
    return draw


heat_readahead = _heat_study("ahead", "kind", READAHEAD_NAMES, "read-ahead size", " KiB")
heat_dirty = _heat_study("dirty", "advice", DIRTY_NAMES, "dirty limit", "")
heat_share = _heat_study("share", "method", SHARE_NAMES, "share of the DRAM in Blocks", " %")


# Figure -> the plan whose results it reads and the published values beside it.
FIGURES = (
    (fig05, "fig05", "fig05"), (slides_bytes, "fig05", "profiles"), (cpu_profile, "fig05", "profiles"), (bandwidth_profile, "fig05", "profiles"),
    (before_after, "before-after", "before-after"), (fig06, "fig06", "fig06"), (fig07, "fig07", "fig07"), (fig08, "fig07", "fig07"), (fig09, "fig07", "fig07"),
    (fig12, "fig12", "fig12"), (fig19, "fig19", "fig19"), (fig20, "fig19", "fig19"), (fig21, "fig19", "fig19"), (table2, "table2", "table2"), (fig22, "fig22", "fig22"),
    (fig22_components, "fig22", "fig22"), (fig24, "fig24", "fig24"), (uring, "uring", None), (queue, "queue", None), (advice, "advice", None),
    (amplification_figure, "advice", None), (heat, "advice", None), (readahead, "readahead", None), (heat_readahead, "readahead", None),
    (dirty, "dirty", None), (heat_dirty, "dirty", None), (share, "share", None), (heat_share, "share", None),
)  # fmt: skip
