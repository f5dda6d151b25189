# SPDX-License-Identifier: BSD-3-Clause
"""Studies of the page cache: advice, read-ahead, dirty limits, the share of the DRAM, residency."""
from analysis import heatmaps, style, timeline
from analysis.cells import Drawn, cell, show
from analysis.measures import GIB, amplification, gib, moved_read, moved_write, of_kernel, per_step, size_bytes, system_s, wait_share
from analysis.seen import cached_timeline
from analysis.stats import Stat

ADVICES = ("none", "sequential", "random", "willneed", "hugepage", "schedule")


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


HEAT_NOTE = ("Each row is one run, and its label says how often the residency was looked at. "
             f"With fewer than {heatmaps.LEAST_LOOKS} looks each is a column of dots at its time; with more each stands until the next one, for {heatmaps.HELD} of their median distances at most. "
             "Left: what the schedule reads, computes and writes at that moment, by the time it takes; right: what the page cache (swap: memory) holds of either Buffer. Correlation: of the place that enters the "
             "page cache with the place that is computed; 1 is a sweep that residency follows exactly.")  # fmt: skip


def _heat(groups, name, title, notes=()):
    """One figure of several runs, the first of each group whose residency was looked at; [] where none was."""
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
        rows.append([label, f"{line.duration_s:.2f} s", str(len(looked)), f"{looked.mean():.1f} %", f"{seen:.2f}" if seen is not None else "nothing enters" if not looked.any() else "too little changes"])
    figure = heatmaps.draw(picked)
    return [Drawn(name, title, figure, ["run", "duration", "looks", "mean residency of both Buffers", "correlation with the sweep"], rows, list(notes))]


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
