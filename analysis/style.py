# SPDX-License-Identifier: BSD-3-Clause
"""One look for all figures: Okabe and Ito's palette (safe for colour-blind readers), hatches beside colours, text that prints at column width."""
import io
import math

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import LinearSegmentedColormap  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK = "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#888888"
PALETTE = (BLUE, ORANGE, GREEN, RED, SKY, PINK, BLACK, YELLOW)
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
MARKERS = "osD^vP*X"

# What keeps its colour through the whole report.
COLOURS = {
    "normal": BLACK, "swap": RED, "mmap": ORANGE, "aio": BLUE, "uring": GREEN, "stream": GREEN, "manual": ORANGE, "naive": SKY, "blk": BLUE,
    "read": BLUE, "write": ORANGE, "update": GREEN, "buf2blk": BLUE, "blk2buf": ORANGE, "blk2blk": PINK, "wait": RED, "other": GREY,
    "explicit": GREEN, "redundant": BLUE, "skewed": SKY, "skewed-y": ORANGE, "skewed-min": PINK, "direct-skewed": RED,
    "direct-skewed-opt": BLACK, "aio5y": PINK, "before": ORANGE, "after": BLUE, "tiled": GREEN, "needed": BLACK,
    "none": ORANGE, "schedule": BLUE, "mmap-schedule": BLUE, "stream-schedule": SKY, "skewed-min-schedule": BLUE, "plain": GREY,
    "advance": GREEN, "load": BLUE, "store": ORANGE,
}  # fmt: skip
RESIDENCY = LinearSegmentedColormap.from_list("residency", ["#ffffff", SKY, BLUE, "#00273d"])

RC = {
    "font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9, "xtick.labelsize": 8, "ytick.labelsize": 8, "legend.fontsize": 8,
    "font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.grid.axis": "y",
    "grid.color": "#dddddd", "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False, "figure.dpi": 100,
    "savefig.dpi": 170, "svg.fonttype": "none", "lines.linewidth": 1.4, "lines.markersize": 4.5, "hatch.linewidth": 0.6,
    "axes.edgecolor": "#444444", "xtick.color": "#222222", "ytick.color": "#222222",
}  # fmt: skip
plt.rcParams.update(RC)


def new(width=7.0, height=3.4, rows=1, columns=1, **more):
    """A figure and its axes, in the style."""
    return plt.subplots(rows, columns, figsize=(width, height), layout="constrained", **more)


def colour(name, index=0):
    return COLOURS.get(name, PALETTE[index % len(PALETTE)])


def image(figure, kind):
    """PNG or SVG bytes."""
    out = io.BytesIO()
    figure.savefig(out, format=kind, **({"metadata": {"Date": None}} if kind == "svg" else {}))
    return out.getvalue()


def close(figure):
    plt.close(figure)


def plain_log(axis, low, high):
    """Logarithmic, with numbers that are written as one says them; also at 2 and 5 where there is room."""
    decades = max(1.0, math.log10(high / low))
    axis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axis.set_minor_formatter(NullFormatter())


PUBLISHED = {"iwapt2016": ("D", "published (paper)"), "slides": ("s", "published (slides)"), "japanese": ("^", "published (Japanese paper)")}


class Gap(str):
    """Why a finished run has no value: its counter could not be read. No failure, and no zero."""


def _is_stat(v):
    return hasattr(v, "median")


def _row(row, published, i, count, categories):
    """(places, finished, {place: (value, source)}) of the i-th of so many series."""
    width = 0.8 / max(1, count)
    at = [k - 0.4 + width * (i + 0.5) for k in range(len(categories))]
    given = {x: v if isinstance(v, tuple) else (v, "iwapt2016") for x, v in zip(at, published or []) if v}
    return at, [(x, v) for x, v in zip(at, row) if _is_stat(v)], given


def _mark_lost(ax, at, row, foot):
    """Failures are written where their value would stand, and counted beside values that stand on fewer repeats; counters that are missing are gaps."""
    for x, v in zip(at, row):
        if isinstance(v, Gap):
            ax.annotate("not counted", (x, foot), xytext=(0, 3), textcoords="offset points", rotation=90, fontsize=6, color=GREY, ha="center", va="bottom", annotation_clip=False)
        elif isinstance(v, str):
            ax.annotate(f"× {v[:40]}", (x, foot), xytext=(0, 3), textcoords="offset points", rotation=90, fontsize=6.5, color=RED, ha="center", va="bottom", annotation_clip=False)
        elif _is_stat(v) and v.failed:
            ax.annotate(f"×{v.failed}", (x, v.low), xytext=(0, -3), textcoords="offset points", fontsize=6.5, color=RED, ha="center", va="top")


def _mark_published(ax, name, given):
    for source in dict.fromkeys(s for _, s in given.values()):
        marker, label = PUBLISHED[source]
        points = [(x, v) for x, (v, s) in given.items() if s == source]
        there = {line.get_label() for line in ax.get_lines()}
        (line,) = ax.plot([x for x, _ in points], [v for _, v in points], linestyle="", marker=marker, markersize=5.5, markerfacecolor="white", markeredgecolor=BLACK, zorder=4,
                          label=label if label not in there else None)  # fmt: skip
        line.set_gid(f"{name} published, {source}")


def bars(ax, categories, series, unit, log=False, value_format="{:.3g}", names=None, legend=True, published=None):
    """Grouped bars from 0; on a logarithmic axis, where a bar's length means nothing, dots with their range. series: {name: [Stat | str | Gap | None, ...]}; a string is a failure and is
    written where its value would stand. published: {name: [value | (value, paper) | None, ...]}, drawn as open marks, one shape for each paper."""
    values = [v for row in series.values() for v in row if _is_stat(v)]
    given = [v[0] if isinstance(v, tuple) else v for row in (published or {}).values() for v in row if v]
    biggest = max([v.high for v in values] + given, default=1.0) or 1.0
    smallest = min([v.low for v in values if v.low > 0] + given, default=0.1)
    foot = smallest / 2.5 if log else 0.0
    crowded = len(categories) * len(series) > 14
    for i, (name, row) in enumerate(series.items()):
        at, good, marks = _row(row, (published or {}).get(name), i, len(series), categories)
        label, c = (names or {}).get(name, name), colour(name, i)
        if log:
            ax.vlines([x for x, _ in good], [v.low for _, v in good], [v.high for _, v in good], color=c, linewidth=1.6)
            ax.plot([x for x, _ in good], [v.median for _, v in good], linestyle="", marker=MARKERS[i % len(MARKERS)], color=c, markersize=5.5, label=label, zorder=3)[0].set_gid(name)
        else:
            ax.bar([x for x, _ in good], [v.median for _, v in good], 0.8 / len(series) * 0.92, color=c, hatch=HATCHES[i % len(HATCHES)], edgecolor="white", linewidth=0.4, label=label)
            ax.vlines([x for x, v in good if v.n > 1], [v.low for _, v in good if v.n > 1], [v.high for _, v in good if v.n > 1], color="#333333", linewidth=0.9, zorder=3)
        for x, v in good:
            mark = marks.get(x, (0, ""))[0]
            close = v.high < 1.8 * mark < 3 * v.high if log else v.high < mark + 0.06 * biggest and mark < v.high + 0.06 * biggest
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.9}
            if log and close:  # beside the dot: above it stands the published mark
                ax.annotate(value_format.format(v.median), (x, v.median), xytext=(5, 0), textcoords="offset points", ha="left", va="center", fontsize=6.5, bbox=box)
            elif not log and not close and v.high > v.median + 0.1 * biggest:  # a long line above: the number stays with its bar
                ax.annotate(value_format.format(v.median), (x, v.median), xytext=(2, 2), textcoords="offset points", ha="left", va="bottom", fontsize=6.5, bbox=box, rotation=90 if crowded else 0)
            else:
                ax.annotate(value_format.format(v.median), (x, max(v.high, mark) if close else v.high), xytext=(0, 6 if close or log else 2), textcoords="offset points", ha="center", va="bottom",
                            fontsize=6.5, bbox=box, rotation=90 if crowded else 0)  # fmt: skip
        _mark_lost(ax, at, row, foot)
        _mark_published(ax, name, marks)
    if log:
        ax.set_yscale("log")
        top = biggest * (4 if legend else 2)
        ax.set_ylim(foot, top)
        plain_log(ax.yaxis, foot, top)
    else:
        ax.set_ylim(0, biggest * (1.3 if legend and len(series) > 1 else 1.18))
    ax.set_xlim(-0.6, len(categories) - 0.4)
    ax.set_xticks(range(len(categories)), categories)
    ax.set_ylabel(unit)
    if (len(series) > 1 or given) and legend:
        ax.legend(ncols=min(4, len(series) + bool(given)), loc="upper left", bbox_to_anchor=(0, 1.0))


def same_top(axes):
    """Axes that share y: the top that the highest of them needs, whichever was drawn last."""
    tops = [max([v for line in [*ax.get_lines()] for v in line.get_ydata()] + [p.get_height() for c in ax.containers for p in c.patches], default=0.0) for ax in axes]
    axes[0].set_ylim(0, 1.3 * (max(tops) or 1.0))


def legend_above(figure, *axes, ncols=4):
    """One legend for all panels, over them."""
    found = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        found.update(zip(labels, handles))
    rows = -(-len(found) // ncols)
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - (0.1 + 0.22 * rows) / figure.get_figheight()))
    figure.legend(list(found.values()), list(found), loc="upper center", ncols=ncols)


def stacked(ax, categories, parts, unit, lost=None):
    """Bars of parts on each other. parts: {name: [value, ...]}; lost: {column: why} of those that have none."""
    bottom = [0.0] * len(categories)
    _mark_lost(ax, list(lost or {}), list((lost or {}).values()), 0.0)
    for i, (name, row) in enumerate(parts.items()):
        ax.bar(range(len(categories)), row, 0.62, bottom=bottom, color=colour(name, i), hatch=HATCHES[i % len(HATCHES)], edgecolor="white", linewidth=0.4,
               label=name)  # fmt: skip
        bottom = [b + v for b, v in zip(bottom, row)]
    ax.set_xticks(range(len(categories)), categories)
    ax.set_ylabel(unit)
    ax.set_ylim(0, max([*bottom, 1e-12]) * 1.08)


def lines(ax, xs, series, unit, names=None, log_x=True, log_y=False, legend=True):
    """Lines with their spread. series: {name: [Stat | str | None, ...]} over xs; failures are crosses at the lower edge."""
    low = min((v.low for row in series.values() for v in row if hasattr(v, "median") and v.low > 0), default=0.1) / 2
    top = max((v.high for row in series.values() for v in row if hasattr(v, "median")), default=1.0)
    at_the_foot = low * 1.1 if log_y else 0.02 * top
    for i, (name, row) in enumerate(series.items()):
        good = [(x, v) for x, v in zip(xs, row) if hasattr(v, "median")]
        (line,) = ax.plot([x for x, _ in good], [v.median for _, v in good], marker=MARKERS[i % len(MARKERS)], color=colour(name, i),
                          linestyle=("-", "--", "-.", ":")[i // 2 % 4] if name not in COLOURS else "-", label=(names or {}).get(name, name))  # fmt: skip
        line.set_gid(name)
        for x, v in good:
            if v.n > 1:
                ax.plot([x, x], [v.low, v.high], color=line.get_color(), linewidth=0.9, alpha=0.7)
        for x, v in zip(xs, row):
            if hasattr(v, "median") and v.failed:
                ax.annotate(f"×{v.failed}", (x, v.low), xytext=(0, -4), textcoords="offset points", fontsize=6.5, color=RED, ha="center", va="top")
            if isinstance(v, str) and not isinstance(v, Gap):
                ax.plot([x], [at_the_foot], marker="x", color=line.get_color(), markersize=7, markeredgewidth=2, clip_on=False).pop().set_gid(f"{name} failed")
                ax.annotate(v[:34], (x, at_the_foot), xytext=(4, 4), textcoords="offset points", fontsize=6.5, color=line.get_color())
    if log_x:
        ax.set_xscale("log", base=2)
    if log_y:
        ax.set_yscale("log")
        ax.set_ylim(low, top * 3)
        plain_log(ax.yaxis, low, top * 3)
    else:
        ax.set_ylim(0, top * 1.25)
    ax.set_ylabel(unit)
    if legend:
        ax.legend(ncols=2, loc="upper left")


def size_axis(ax, xs, names, label):
    ax.set_xticks(list(xs), list(names))
    ax.minorticks_off()
    ax.set_xlabel(label)
