# SPDX-License-Identifier: BSD-3-Clause
"""One look for all figures: Okabe and Ito's palette (safe for colour-blind readers), hatches beside colours, text that is legible at the width of a paper's column."""
import io
import math
import textwrap

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import LinearSegmentedColormap  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402
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
    "computation": GREEN, "copies between Blocks": PINK, "waiting for transfers": RED, "from flash (buf2blk)": BLUE, "to flash (blk2buf)": ORANGE,
    "explicit": GREEN, "redundant": BLUE, "skewed": SKY, "skewed-y": ORANGE, "skewed-min": PINK, "direct-skewed": RED,
    "direct-skewed-opt": BLACK, "aio5y": PINK, "before": ORANGE, "after": BLUE, "tiled": GREEN, "needed": BLACK,
    "none": ORANGE, "schedule": BLUE, "mmap-schedule": BLUE, "stream-schedule": SKY, "skewed-min-schedule": BLUE, "plain": GREY,
    "advance": GREEN, "load": BLUE, "store": ORANGE, "best": BLACK,
}  # fmt: skip
RESIDENCY = LinearSegmentedColormap.from_list("residency", ["#ffffff", SKY, BLUE, "#00273d"])

ONE, TWO = 3.3, 7.0  # inches: a paper's column, and both of them
SMALL = 6.5  # points, the smallest text

RC = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 7.5, "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 7,
    "font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.grid.axis": "y",
    "grid.color": "#dddddd", "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False, "figure.dpi": 100,
    "savefig.dpi": 220, "svg.fonttype": "none", "lines.linewidth": 1.2, "lines.markersize": 4, "hatch.linewidth": 0.6,
    "axes.edgecolor": "#444444", "xtick.color": "#222222", "ytick.color": "#222222",
}  # fmt: skip
plt.rcParams.update(RC)


def new(width=TWO, height=2.4, rows=1, columns=1, **more):
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
    """Labels of a logarithmic axis as plain numbers, also between the powers of ten if there is room."""
    decades = math.log10(high / low)
    axis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0) if decades > 0.8 else (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axis.set_minor_formatter(NullFormatter())


# ------------------------------------------------------------------ beside the axes


def _reserve(figure, top=0.0, foot=0.0):
    """Reserves this many inches, which the axes then do not have."""
    x, y, width, height = figure.get_layout_engine().get()["rect"] or (0, 0, 1, 1)
    tall = figure.get_figheight()
    figure.get_layout_engine().set(rect=(x, y + foot / tall, width, height - (top + foot) / tall))


def _columns(labels, width):
    """The largest number of columns of a legend that fits. The legend fills its columns one after the other, and the first ones get one entry more if they are uneven."""
    inches = [0.054 * len(label) + 0.42 for label in labels]
    for columns in range(len(labels), 1, -1):
        rows, longer = divmod(len(labels), columns)
        begins = [k * rows + min(k, longer) for k in range(columns + 1)]
        if sum(max(inches[a:b]) for a, b in zip(begins, begins[1:])) < width:
            return columns
    return 1


def legend_above(figure, *axes):
    """One legend for all panels, above them: first measured series, then published ones."""
    found = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        found.update(zip(labels, handles))
    if not found:
        return
    labels = sorted(found, key=lambda label: label.startswith("published"))
    columns = _columns(labels, figure.get_figwidth())
    _reserve(figure, top=0.06 + 0.15 * -(-len(found) // columns))
    figure.legend([found[label] for label in labels], labels, loc="upper center", ncols=columns, columnspacing=1.0, handletextpad=0.4, handlelength=1.6, borderaxespad=0.1)


def foot(figure, text):
    """Writes what holds for every point in small letters under the axes."""
    lines = textwrap.wrap(text, int(20.5 * figure.get_figwidth()))
    _reserve(figure, foot=0.04 + 0.115 * len(lines))
    figure.text(0.01, 0.03 / figure.get_figheight(), "\n".join(lines), ha="left", va="bottom", fontsize=SMALL, color="#444444").set_gid("foot")


def warn(figure, text):
    """Writes a line of warning at the bottom of the figure."""
    up = 0.13 / figure.get_figheight()
    _reserve(figure, foot=0.13)
    for other in figure.texts:
        other.set_y(other.get_position()[1] + up)
    figure.text(0.995, 0.02 / figure.get_figheight(), text, ha="right", va="bottom", fontsize=SMALL, color=RED).set_gid("mixed")


def slanted(ax):
    """Slants long names under an axis."""
    for label in ax.get_xticklabels():
        label.set(rotation=35, ha="right", rotation_mode="anchor")


def across(ax):
    """Draws a grid for x only, for a chart whose rows have names."""
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)


def _unit(ax, text):
    """Sets the label of y, in as many lines as the height of the panel needs."""
    spec = ax.get_subplotspec()
    ax.set_ylabel("\n".join(textwrap.wrap(text, max(14, int(10 * ax.figure.get_figheight() / (spec.get_gridspec().nrows if spec else 1))))))


# ------------------------------------------------------------------ published values

PUBLISHED = {"iwapt2016": ("D", "paper"), "slides": ("s", "slides"), "japanese": ("^", "Japanese paper"), "hhrt": ("v", "HHRT slides"), "wavefront": ("P", "wavefront paper")}


def _once(ax, label):
    """The label, or None if the axes have it already."""
    return None if label in ax.get_legend_handles_labels()[1] else label


def published_marks(ax, xs, values, source, gid, colour=BLACK):
    """Draws open marks, with one shape for each paper."""
    marker, where = PUBLISHED[source]
    ax.plot(xs, values, linestyle="", marker=marker, markersize=5, markerfacecolor="none", markeredgecolor=colour, zorder=4, clip_on=False, label=_once(ax, f"published ({where})"))[0].set_gid(gid)


def published_range(ax, left, right, low, high, source, gid):
    """Draws an open box from the lower to the upper end."""
    box = Rectangle((left, low), right - left, high - low, fill=False, edgecolor=BLACK, linewidth=0.7, zorder=4, label=_once(ax, f"published range ({PUBLISHED[source][1]})"))
    box.set_gid(gid)
    ax.add_patch(box)


def published_line(ax, value, text, gid):
    """Draws a line for a value that has no place on the x axis."""
    ax.axhline(value, color=BLACK, linewidth=0.9, linestyle=(0, (1, 1.5)), label=f"published: {text}").set_gid(gid)


def _given(cell):
    """[(low, high, paper)] of published values in one place: (value, paper) or ((low, high), paper), or a list of these."""
    found = []
    for value, source in cell if isinstance(cell, list) else [cell] if cell else []:
        found.append((*(value if isinstance(value, tuple) else (value, value)), source))
    return found


def _mark_published(ax, name, places):
    """places: [(x, width, low, high, paper)]."""
    for source in dict.fromkeys(p[4] for p in places):
        gid = f"{name} published, {source}"
        points = [(x, low) for x, _, low, high, s in places if s == source and low == high]
        if points:
            published_marks(ax, *zip(*points), source, gid)
        for x, width, low, high, s in places:
            if s == source and low != high:
                published_range(ax, x - width / 2, x + width / 2, low, high, source, gid)


# ------------------------------------------------------------------ charts


class Gap(str):
    """Why a completed run has no value here: its counter could not be read, or there is only one run. This is neither a failure nor a zero."""


def is_stat(v):
    return hasattr(v, "median")


def _crowded(ax, count):
    """Are there too many points to write a number beside each?"""
    spec = ax.get_subplotspec()
    inches = ax.figure.get_figwidth() / (spec.get_gridspec().ncols if spec else 1)
    return 0.85 * 72 * inches < 22 * count


def _mark_lost(ax, at, row):
    """Writes failures where their value would stand, and counts of failed repeats beside values. A Gap is written too."""
    for x, v in zip(at, row):
        if isinstance(v, str) and v:
            text, c = (v, GREY) if isinstance(v, Gap) else (f"× {v[:36]}", RED)
            ax.annotate(text, (x, 0.0), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points", rotation=90, fontsize=SMALL, color=c, ha="center", va="bottom", annotation_clip=False)
        elif is_stat(v) and v.failed:
            ax.annotate(f"×{v.failed}", (x, v.low), xytext=(0, -2), textcoords="offset points", fontsize=SMALL, color=RED, ha="center", va="top")


def _number(ax, x, v, marks, text, rotation, near):
    """Writes the number of a dot or bar above it, or below it if a published mark stands right above it."""
    above = [m for m in marks if m > v.high and near(v.high, m)]
    at, up = (v.low, False) if above and min(above) > 1.1 * v.median else (max([v.high, *above]), True)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.85}
    ax.annotate(text, (x, at), xytext=(0, 4 if up else -4), textcoords="offset points", ha="center", va="bottom" if up else "top", fontsize=SMALL, bbox=box, rotation=rotation, zorder=2)


def _chart(ax, categories, series, published, draw, value_format, log=False):
    """Draws series side by side in each category, with draw(name, i, xs, stats, width). Returns the ends of all values."""
    seen, width = [], 0.8 / max(1, len(series))
    rotation = 90 if _crowded(ax, len(categories) * len(series)) else 0
    top = max([v.high for row in series.values() for v in row if is_stat(v)] + [h for row in (published or {}).values() for cell in row for _, h, _ in _given(cell)], default=1.0)

    def near(value, mark):
        return mark < 3.5 * value if log else mark - value < 0.2 * top

    for i, (name, row) in enumerate(series.items()):
        at = [k - 0.4 + width * (i + 0.5) for k in range(len(categories))]
        good = [(x, v) for x, v in zip(at, row) if is_stat(v)]
        given = [(x, width, *g) for x, cell in zip(at, (published or {}).get(name) or []) for g in _given(cell)]
        draw(name, i, [x for x, _ in good], [v for _, v in good], width)
        for x, v in good:
            _number(ax, x, v, [e for gx, _, low, high, _ in given for e in (low, high) if gx == x], value_format.format(v.median), rotation, near)
        _mark_lost(ax, at, row)
        _mark_published(ax, name, given)
        seen += [e for _, v in good for e in (v.low, v.high)] + [e for g in given for e in g[2:4]]
    ax.set_xlim(-0.6, len(categories) - 0.4)
    ax.set_xticks(range(len(categories)), categories)
    return [e for e in seen if e > 0] or [1.0]


def _scale(ax, low, high, log):
    if log:
        ax.set_yscale("log")
        ax.set_ylim(low, high)
        plain_log(ax.yaxis, low, high)
    else:
        ax.set_ylim(0, high)


def same_scale(axes, ends, log=False):
    """Gives panels that are compared the same axis. ends: what dots, bars and lines returned for each panel."""
    for ax in axes:
        _scale(ax, min(low for low, _ in ends), max(high for _, high in ends), log)


def bars(ax, categories, series, unit, value_format="{:.3g}", names=None, published=None):
    """Grouped bars from 0, their range as a line. series: {name: [Stat | str | Gap | None, ...]}; a string is a failure and is written where its value would stand.
    published: {name: [(value, paper) | ((low, high), paper) | None, ...]}, drawn as open marks and boxes. Returns the ends of the axis."""

    def draw(name, i, xs, stats, width):
        ax.bar(xs, [v.median for v in stats], width * 0.92, color=colour(name, i), hatch=HATCHES[i % len(HATCHES)], edgecolor="white", linewidth=0.4, label=(names or {}).get(name, name))
        ax.vlines(xs, [v.low for v in stats], [v.high for v in stats], color="#333333", linewidth=0.9, zorder=3)

    ends = 0.0, 1.2 * max(_chart(ax, categories, series, published, draw, value_format))
    _scale(ax, *ends, False)
    _unit(ax, unit)
    return ends


def dots(ax, categories, series, unit, log=False, value_format="{:.2f}", names=None, published=None, base=None):
    """As bars, but draws dots with their range: for ratios and for a logarithmic axis, where the length of a bar means nothing. base: the name of the line at 1."""

    def draw(name, i, xs, stats, width):
        c = colour(name, i)
        ax.vlines(xs, [v.low for v in stats], [v.high for v in stats], color=c, linewidth=1.5)
        ax.plot(xs, [v.median for v in stats], linestyle="", marker=MARKERS[i % len(MARKERS)], color=c, label=(names or {}).get(name, name), zorder=3)[0].set_gid(name)

    seen = _chart(ax, categories, series, published, draw, value_format, log) + ([1.0] if base else [])
    ends = (min(seen) / 1.5 / (max(seen) / min(seen)) ** 0.08, max(seen) * 1.35 * (max(seen) / min(seen)) ** 0.08) if log else (0.0, 1.18 * max(seen))
    _scale(ax, *ends, log)
    if base:
        ax.axhline(1.0, color=BLACK, linewidth=0.9, zorder=1, label=base).set_gid("base")
    _unit(ax, unit)
    return ends


def stacked(ax, categories, parts, unit, totals=(), lost=None):
    """Stacked bars. parts: {name: [value, ...]}; totals: Stats of the sums, whose range is drawn; lost: {column: why it has no value}."""
    bottom = [0.0] * len(categories)
    for i, (name, row) in enumerate(parts.items()):
        ax.bar(range(len(categories)), row, 0.62, bottom=bottom, color=colour(name, i), hatch=HATCHES[i % len(HATCHES)], edgecolor="white", linewidth=0.4, label=name)
        bottom = [b + v for b, v in zip(bottom, row)]
    ends = [(x, v.low, v.high) for x, v in enumerate(totals) if is_stat(v)]
    ax.vlines([x for x, _, _ in ends], [low for _, low, _ in ends], [high for _, _, high in ends], color=BLACK, linewidth=1.2, zorder=3).set_gid("range")
    ax.set_xticks(range(len(categories)), categories)
    ax.set_xlim(-0.6, len(categories) - 0.4)
    _unit(ax, unit)
    ax.set_ylim(0, 1.08 * max([high for _, _, high in ends] + [1e-12]))
    _mark_lost(ax, list(lost or {}), list((lost or {}).values()))


def lines(ax, xs, series, unit, names=None, log_x=True, log_y=False, base=None, also=()):
    """Lines with their spread. series: {name: [Stat | str | Gap | None, ...]} over xs; failures are crosses at the lower edge. also: further values that the axis must reach. Returns the ends of the axis."""
    seen = [e for row in series.values() for v in row if is_stat(v) for e in (v.low, v.high) if e > 0] + [v for v in also if v] + ([1.0] if base else [])
    low, high = (min(seen) / 1.6, max(seen) * 1.6) if log_y and seen else (0.0 if not log_y else 0.1, 1.15 * max(seen, default=1.0))
    for i, (name, row) in enumerate(series.items()):
        good = [(x, v) for x, v in zip(xs, row) if is_stat(v)]
        c, dash = colour(name, i), ("-", "--", "-.", ":")[i // 2 % 4] if name not in COLOURS else "-"
        ax.plot([x for x, _ in good], [v.median for _, v in good], marker=MARKERS[i % len(MARKERS)], color=c, linestyle=dash, label=(names or {}).get(name, name))[0].set_gid(name)
        ax.vlines([x for x, _ in good], [v.low for _, v in good], [v.high for _, v in good], color=c, linewidth=1.0).set_gid(f"{name} range")
        for x, v in zip(xs, row):
            if is_stat(v) and v.failed:
                ax.annotate(f"×{v.failed}", (x, v.low), xytext=(0, -4), textcoords="offset points", fontsize=SMALL, color=RED, ha="center", va="top")
            if isinstance(v, str) and v and not isinstance(v, Gap):
                ax.plot([x], [0.03], transform=ax.get_xaxis_transform(), marker="x", color=c, markersize=6, markeredgewidth=1.6, clip_on=False).pop().set_gid(f"{name} failed")
                ax.annotate(v[:34], (x, 0.03), xycoords=("data", "axes fraction"), xytext=(-4, 4), textcoords="offset points", fontsize=SMALL, color=c, ha="right")
    if log_x:
        ax.set_xscale("log", base=2)
    _scale(ax, low, high, log_y)
    if base:
        ax.axhline(1.0, color=BLACK, linewidth=0.9, zorder=1, label=base).set_gid("base")
    _unit(ax, unit)
    return low, high


def size_axis(ax, xs, names, label):
    ax.set_xticks(list(xs), list(names))
    ax.minorticks_off()
    ax.set_xlabel(label)
