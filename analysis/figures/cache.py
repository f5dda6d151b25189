# SPDX-License-Identifier: BSD-3-Clause
"""Studies of the page cache: advice, read-ahead, dirty limits, the share of the DRAM, residency."""
from analysis import heatmaps, style, timeline
from analysis.cells import METHODS, Drawn, Rounds, cell, ratio, show
from analysis.measures import amplification, gib, moved, moved_read, moved_write, of_kernel, per_step, size_bytes, system_s, wait_share
from analysis.seen import cached_timeline
from analysis.stats import Stat

ADVICES = ("none", "sequential", "random", "willneed", "hugepage", "schedule")


def _cache_row(group):
    return [show(cell(group, per_step), "{:.4f}"), show(cell(group, amplification), "{:.2f}"), show(cell(group, gib(moved_read)), "{:.2f}"), show(cell(group, gib(moved_write)), "{:.2f}"),
            show(cell(group, lambda r: r.report["major_faults"]), "{:.0f}"), show(cell(group, of_kernel("reclaimed_bytes")), "{:.2f}"), show(cell(group, of_kernel("refault_bytes")), "{:.2f}"),
            show(cell(group, system_s), "{:.2f}"), show(cell(group, lambda r: 100 * wait_share(r)), "{:.0f} %")]  # fmt: skip


CACHE_HEADER = ["s per step", "moved / needed", "GiB read", "GiB written", "major faults", "GiB reclaimed", "GiB refaulted", "system CPU s", "waiting"]
CACHE_NOTE = ("Needed bytes are those of CalcTrans; on the mapping, a step reads one Buffer and writes one. The process counts bytes read, and the block device counts bytes written; for swap, Linux counts bytes swapped in and out. Reclaimed pages "
              "are those that Linux took back for lack of memory, and refaulted pages are those read again soon afterwards. Waiting is the time in which the computing thread waits for Blocks. On the mapping the thread faults while it computes, and that time is not separate.")  # fmt: skip


EXPLICIT = ("uring", "aio")
ON_THE_MAPPING = "mmap, on the mapping, plane by plane"


def _explicit(plan, algorithm):
    """The group of explicit I/O with this schedule, and its name. If there is none: the mapping without advice."""
    for backend in EXPLICIT:
        group = plan.one(backend=backend, algorithm=algorithm)
        if group:
            return group, f"{METHODS[backend]}, same schedule and Blocks"
    return plan.one(backend="mmap", algorithm=algorithm, advice="none"), "no advice"


def advice(plan, published):
    """How close each advice comes to explicit I/O: time of a step / time with explicit I/O, on one scale."""
    cases = [c for c in (("mmap", "stream"), ("mmap", "skewed-min"), ("swap", "stream"), ("mmap", "plain")) if plan.select(backend=c[0], algorithm=c[1])]
    rounds, rows, ends = Rounds(), [], []
    figure, axes = style.new(style.TWO, 4.4, rows=2, columns=2, sharey=True)
    for backend in ("aio", "uring"):
        for algorithm in ("stream", "skewed-min"):
            group = plan.one(backend=backend, algorithm=algorithm)
            if group:
                rows.append([backend, algorithm, "explicit I/O", show(ratio(group, _explicit(plan, algorithm)[0], per_step)), *_cache_row(group)])
    for ax, (backend, algorithm) in zip(axes.flat, cases):
        groups = [plan.one(backend=backend, algorithm=algorithm, advice=a) for a in ADVICES]
        base, what = _explicit(plan, algorithm)
        quotients = [ratio(g, base, per_step) for g in groups]
        ends.append(style.dots(ax, list(ADVICES), {backend: rounds.row(quotients)}, f"time of a step / {what.split(',')[0]}", log=True, base="explicit I/O (lower right: no advice)" if len(cases) > 3 else what, names={backend: METHODS[backend]}, value_format="{:.3g}"))
        ax.set_title(ON_THE_MAPPING if algorithm == "plain" else f"{backend}, {algorithm} through Blocks", loc="left")
        style.slanted(ax)
        rows += [[backend, algorithm, a, show(q), *_cache_row(g)] for a, g, q in zip(ADVICES, groups, quotients) if g]
    for ax in list(axes.flat)[len(cases) :]:
        ax.set_visible(False)
    if ends:
        style.same_scale(list(axes.flat)[: len(cases)], ends, log=True)
    style.legend_above(figure, *axes.flat)
    return rounds.finish(Drawn("advice", "mmap and swap under each advice", figure, ["backend", "schedule", "advice", "time relative to explicit I/O", *CACHE_HEADER], rows,
                               ["Runs on the mapping, plane by plane, have no explicit counterpart, so their times are relative to no advice. At scale quick, runs on the mapping have twice the grid of the other runs.", CACHE_NOTE]))  # fmt: skip


def _over_needed(way):
    """Bytes moved / bytes needed. way: 0 = read, 1 = written."""
    return lambda r: moved(r)[way] / r.needed_bytes[way] if moved(r)[way] is not None and r.needed_bytes[way] else None


def amplification_figure(plan, published):
    groups, rounds = [g for g in plan.groups.values() if g.done or g.failure], Rounds()
    figure, ax = style.new(style.TWO, 0.17 * len(groups) + 0.7)
    for way, (name, c, shift) in enumerate((("read", style.BLUE, -0.16), ("written", style.ORANGE, 0.16))):
        values = [rounds.of(cell(g, _over_needed(way))) for g in groups]
        good = [(v, i + shift) for i, v in enumerate(values) if isinstance(v, Stat)]
        ax.hlines([y for _, y in good], [v.low for v, _ in good], [v.high for v, _ in good], color=c, linewidth=1.4)
        ax.plot([v.median for v, _ in good], [y for _, y in good], linestyle="", marker=style.MARKERS[way], color=c, label=name, markersize=3.5)[0].set_gid(name)
        for i, v in enumerate(values):
            if isinstance(v, str) and (isinstance(v, style.Gap) or way == 0):
                text, tint = (f"{name}: {v}", style.GREY) if isinstance(v, style.Gap) else (f"× {v[:60]}", style.RED)
                ax.annotate(text, (1.0, i), xycoords=("axes fraction", "data"), xytext=(-100 + 104 * way, 0), textcoords="offset points", va="center", ha="left", fontsize=style.SMALL, color=tint, annotation_clip=False)
    ax.axvline(1.0, color=style.BLACK, linewidth=0.9, linestyle="--", label="as needed").set_gid("base")
    ax.set_yticks(range(len(groups)), [f"{METHODS.get(g['backend'], g['backend'])}, {'on the mapping' if g['algorithm'] == 'plain' else g['algorithm']}, {g['advice']}" for g in groups])
    ax.set_ylim(len(groups) - 0.4, -0.6)
    ax.set_xlim(0, None)
    style.across(ax)
    ax.set_xlabel("bytes moved on storage / bytes needed, stencil phase")
    style.legend_above(figure, ax)
    return rounds.finish(Drawn("amplification", "Bytes that were moved, relative to the bytes needed", figure, [], [], ["The table of the advices has the numbers. At the end of a run on mmap, a part of its dirty data is still in the page cache. So the device may have written fewer bytes than are needed. "
                         "Only the block device counts the writes of a mapping, and only runs with a timeline have this counter."]))  # fmt: skip


def _number(choice):
    """Sort key: 4, "128" and "4 MiB" as numbers, and words after them."""
    try:
        return size_bytes(str(choice).replace(" ", ""))
    except ValueError:
        return float("inf")


def _study(plan, parameter, series_by, names, label, title, name, notes=()):
    choices = sorted(dict.fromkeys(g[parameter] for g in plan.groups.values()), key=_number)
    kinds, rounds = list(dict.fromkeys(g[series_by] for g in plan.groups.values())), Rounds()
    table = {k: [plan.one(**{parameter: c, series_by: k}) for c in choices] for k in kinds}
    wide = len(kinds) * len(choices) > 16  # side by side there would be no room for the numbers
    figure, axes = style.new(style.TWO, 4.8, rows=2) if wide else style.new(style.TWO, 2.6, columns=2)
    for ax, of, unit in zip(axes, (per_step, amplification), ("seconds a step", "bytes moved / needed")):
        style.dots(ax, [str(c) for c in choices], {k: rounds.row(cell(g, of) for g in row) for k, row in table.items()}, unit, log=of is per_step, value_format="{:.2g}", names=names, base="as needed" if of is amplification else None)
        ax.set_xlabel(label)
    style.legend_above(figure, *axes)
    rows = [[names.get(k, k), str(c), *_cache_row(g)] for k, row in table.items() for c, g in zip(choices, row) if g]
    return rounds.finish(Drawn(name, title, figure, ["run", label, *CACHE_HEADER], rows, [*notes, CACHE_NOTE]))


READAHEAD_NAMES = {"stream": "stream, no advice", "stream-schedule": "stream, advice schedule", "skewed-min": "skewed-min, no advice", "skewed-min-schedule": "skewed-min, advice schedule",
                   "plain": "on the mapping, no advice", "swap": "swap, stream"}  # fmt: skip
DIRTY_NAMES = {"none": "mmap, no advice", "schedule": "mmap, advice schedule"}
SHARE_NAMES = {"uring": "io_uring", "mmap": "mmap, no advice", "mmap-schedule": "mmap, advice schedule"}


def readahead(plan, published):
    return _study(plan, "ahead", "kind", READAHEAD_NAMES, "read-ahead (KiB)", "Read-ahead size, mmap and swap", "readahead", ["For swap the read-ahead is 4 KiB << vm.page-cluster. At scale quick, runs on the mapping have twice the grid of the other runs."])


def dirty(plan, published):
    return _study(plan, "dirty", "advice", DIRTY_NAMES, "dirty limit (vm.dirty_bytes)", "Dirty limits and mmap", "dirty", ["These runs use stream through Blocks. Swap has no dirty limit, because Linux does not count anonymous pages as dirty."])


def share(plan, published):
    return _study(plan, "share", "method", SHARE_NAMES, "share of the DRAM in Blocks (%)", "DRAM share of Blocks and page cache", "share", ["These runs use skewed-min, with the same Blocks for every method. The rest of the DRAM limit holds page cache for mmap, and anonymous pages of the Buffers for swap."])


HEAT_NOTE = ("Each row is one run. Its label has the number of looks: how often the run looked at the residency. "
             f"With fewer than {heatmaps.LEAST_LOOKS} looks, each look is a column of dots at its time. With more, each look is drawn until the next one, for at most {heatmaps.HELD} median distances of two looks. "
             "The left panel shows what the schedule reads, computes and writes over time. The other panels show what the page cache (for swap: memory) holds of each Buffer. The correlation is that between the place that enters the "
             "page cache and the place that is computed. It is 1 if residency follows the sweep exactly.")  # fmt: skip


def _heat(groups, name, title, notes=()):
    """One figure of several runs: the first run of each group that looked at the residency; [] if none did."""
    picked = []
    for label, group in groups:
        run = next((r for r in group.done if r.timeline_path), None) if group else None
        line = cached_timeline(run) if run else None
        if line is not None and len(line.residency) and line.looks.any():
            picked.append((label, line))
    if not picked:
        return []
    rows = []
    for label, line in picked:
        seen = timeline.sweep_visibility(line)
        looked = line.residency[line.looks]
        rows.append([label, f"{line.duration_s:.2f} s", str(len(looked)), f"{looked.mean():.1f} %", f"{seen:.2f}" if seen is not None else "nothing was resident" if not looked.any() else "too little changes"])
    figure = heatmaps.draw(picked)
    return [Drawn(name, title, figure, ["run", "duration", "looks", "mean residency of both Buffers", "correlation with the sweep"], rows, list(notes))]


def heat(plan, published):
    """Residency under every advice, with a figure for each way to use the Buffers."""
    drawn = []
    for backend, algorithm, what in (("mmap", "plain", "mmap, on the mapping, plane by plane"), ("mmap", "stream", "mmap, stream through Blocks"), ("mmap", "skewed-min", "mmap, skewed-min through Blocks"), ("swap", "stream", "swap, stream through Blocks")):
        groups = [("uring", plan.one(backend="uring", algorithm=algorithm))] if backend == "mmap" and algorithm != "plain" else []
        groups += [(a, plan.one(backend=backend, algorithm=algorithm, advice=a)) for a in ADVICES]
        drawn += _heat(groups, f"heat-{backend}-{algorithm}", f"Residency under each advice: {what}", [] if drawn else [HEAT_NOTE])
    return drawn


def _heat_study(parameter, series_by, names, title, unit):
    """Residency of a study, with a figure for each kind of run."""

    def draw(plan, published):
        drawn = []
        for kind in dict.fromkeys(g[series_by] for g in plan.groups.values()):
            groups = sorted(plan.select(**{series_by: kind}), key=lambda g: _number(g[parameter]))
            drawn += _heat([(f"{g[parameter]}{unit}", g) for g in groups], f"heat-{plan.name}-{kind}", f"Residency by {title}: {names.get(kind, kind)}", [] if drawn else ["The notes on the heat maps of the advices hold here too."])
        return drawn

    draw.__name__ = f"heat_{parameter}"
    return draw


heat_readahead = _heat_study("ahead", "kind", READAHEAD_NAMES, "read-ahead size", " KiB")
heat_dirty = _heat_study("dirty", "advice", DIRTY_NAMES, "dirty limit", "")
heat_share = _heat_study("share", "method", SHARE_NAMES, "share of the DRAM in Blocks", " %")
