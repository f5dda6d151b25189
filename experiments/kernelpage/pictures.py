# SPDX-License-Identifier: BSD-3-Clause
"""Figures: a dot a run, a line at the median; and residency over the time of one run."""
import gzip
import statistics

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#888888"
NOTHING = 1e-4  # of the largest value: no axis is stretched to show so little
FAR = 8  # an axis is logarithmic from this many times the least median on


def span(axis, medians, values):
    """The axis from 0 on, or logarithmic where values lie far apart; the last dots are not cut."""
    if values and min(values) > NOTHING * max(values) and max(values) > FAR * min(medians):
        from matplotlib.ticker import LogLocator, NullFormatter
        axis.set_xscale("log")
        axis.set_xlim(min(values) / 1.25, max(values) * 1.25)
        far = max(values) > 100 * min(values)
        axis.xaxis.set_major_locator(LogLocator(subs=(1,) if far else (1, 2, 5)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        return " (logarithmic)"
    axis.set_xlim(left=0, right=1.05 * max(values) if values and max(values) > 0 else None)
    return ""


def dots(axis, study, rows, of, label, colour):
    found = [study.values(name, of) for _, name in rows]
    for i, ((_, name), values) in enumerate(zip(rows, found)):
        if not values:
            axis.text(0.02, i, getattr(of, "absent", "not measured") if study.done(name) else "not run", color=GREY, va="center", fontsize=8, transform=axis.get_yaxis_transform())
            continue
        axis.plot(values, [i] * len(values), "o", color=colour, alpha=0.55, markersize=4.5, markeredgewidth=0)
        axis.plot([statistics.median(values)] * 2, [i - 0.3, i + 0.3], color=colour, linewidth=1.6)
    axis.set_xlabel(label + span(axis, [statistics.median(values) for values in found if values], [v for values in found for v in values]))
    axis.grid(axis="x", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def figure(study, path, rows, panels):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    drawn, axes = plt.subplots(1, len(panels), figsize=(8, 0.75 + 0.27 * len(rows)), sharey=True, squeeze=False, layout="constrained")
    for axis, (of, label), colour in zip(axes[0], panels, (BLUE, ORANGE, GREY)):
        dots(axis, study, rows, of, label, colour)
    axes[0][0].set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=8)
    axes[0][0].set_ylim(len(rows) - 0.5, -0.5)
    drawn.savefig(path, dpi=110)
    plt.close(drawn)


def heat_map(study, folder, path, names):
    """Residency by cachestat over the time of one run each; False where it cannot be drawn."""
    try:
        from analysis import heatmaps, timeline
    except ImportError:
        return False
    picked = []
    for label, name in names:
        run = next((r for _, r in sorted(study.done(name).items()) if r["timeline"]), None)
        if run and (folder / run["timeline"]).exists():
            with gzip.open(folder / run["timeline"], "rt") as lines:
                picked.append((label, timeline.parse(lines, run["timeline"])))
    if not picked:
        return False
    heatmaps.draw(picked).savefig(path, dpi=90)
    return True
