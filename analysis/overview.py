# SPDX-License-Identifier: BSD-3-Clause
"""Figures over all plans: every finding with its effect and band, predicted against measured seconds, the tuner's regret."""
import math

from analysis import predictions, style
from analysis.cells import Drawn, show
from analysis.claim import AT_LEAST_AS_GOOD, CONFIRMED, NOT_TESTED, REFUTED, UNDECIDED
from analysis.effects import LEAST_PAIRS, LEAST_SECONDS
from analysis.stats import median
from analysis.verdicts import ROW_LEVEL

STATE_COLOUR = {CONFIRMED: style.GREEN, AT_LEAST_AS_GOOD: style.BLUE, REFUTED: style.RED, UNDECIDED: style.GREY, NOT_TESTED: "#bbbbbb"}
LOW, HIGH = 1e-4, 1e3  # what lies beyond is drawn at the edge, as an arrow
NEAR = (0.02, 50.0)  # the axis reaches as far at least


def _ends(drawn):
    """Of the axis: decades around what is to be seen, bands with two ends too."""
    seen = [v for d in drawn for p in d.parts if p.effect is not None for v in (p.effect.value, *(p.effect.interval(ROW_LEVEL) or ()), *(e for e in p.band[:2] if 0 < e < math.inf))]
    return max(LOW, min(NEAR[0], *seen) / 1.5), min(HIGH, max(NEAR[1], *seen) * 1.5)


def findings(decided):
    """One row a finding: its comparisons as dots with their intervals, and behind each the band in which the finding says it lies. None without any effect."""
    drawn = [v for v in decided if any(p.effect is not None for p in v.parts)]
    if not drawn:
        return None
    figure, ax = style.new(7.4, 0.27 * len(drawn) + 0.9)
    least, most = _ends(drawn)

    def clip(v):
        return min(max(v, least), most)

    for row, v in enumerate(drawn):
        parts = [p for p in v.parts if p.effect is not None]
        step = 0.7 / len(parts)
        for i, p in enumerate(parts):
            y = row - 0.35 + step * (i + 0.5)
            low, high = clip(p.band[0]), clip(p.band[1])
            ax.fill_betweenx([y - step / 2, y + step / 2], low, high, color="#e4e4e4", linewidth=0)
            c, middle = STATE_COLOUR[p.state(len(v.parts), ROW_LEVEL)], p.effect.value
            ends = p.effect.interval(ROW_LEVEL)
            if ends:
                ax.plot([clip(e) for e in ends], [y, y], color=c, linewidth=1.2, solid_capstyle="butt").pop().set_gid(f"interval {v.name}")
            marker = "<" if middle < least else ">" if middle > most else "o"
            ax.plot([clip(middle)], [y], marker=marker, markersize=3.2, color=c, markerfacecolor=c if ends else "white", zorder=3, clip_on=False).pop().set_gid(f"effect {v.name}")
    ax.axvline(1.0, color=style.BLACK, linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xlim(least, most)
    style.plain_log(ax.xaxis, least, most)
    ax.set_ylim(len(drawn) - 0.4, -0.6)
    ax.set_yticks(range(len(drawn)), [v.name for v in drawn], fontsize=7)
    for label, v in zip(ax.get_yticklabels(), drawn):
        label.set_color(STATE_COLOUR[v.state])
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("ratio")
    handles = [style.plt.Line2D([], [], marker="o", color=STATE_COLOUR[s], markersize=4, label=s) for s in (CONFIRMED, AT_LEAST_AS_GOOD, REFUTED, UNDECIDED)]
    handles += [style.plt.Line2D([], [], marker="o", color=style.GREY, markerfacecolor="white", linestyle="", markersize=4, label="too few repeats for an interval"), style.plt.Rectangle((0, 0), 1, 1, color="#e4e4e4", label="band of the finding")]
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - 0.36 / figure.get_figheight()))
    figure.legend(handles=handles, loc="upper center", ncols=6, fontsize=7)
    return Drawn("effects", "Every finding: effect, interval, and the band that it claims", figure, notes=[f"Ratios as in the table of findings, with the intervals of its verdicts. What lies beyond {least:.3g} or {most:.3g} stands at the edge, as an arrow."])


def predicted(results):
    """Predicted against measured seconds, a dot a configuration, on logarithmic axes; the table has the errors by plan and backend."""
    found = predictions.predictions(results)
    if not found:
        return None
    backends = list(dict.fromkeys(p.backend for p in sorted(found, key=lambda p: not p.transfer)))
    figure, (left, right) = style.new(7.4, 3.9, columns=2)
    low, high = (f(v for p in found for v in (p.predicted_s, p.measured.median)) for f in (min, max))
    low, high = low / 1.5, high * 1.5
    left.fill_between([low, high], [low / 1.15, high / 1.15], [low * 1.15, high * 1.15], color="#e4e4e4", linewidth=0, label="within 15 %")
    left.plot([low, high], [low, high], color=style.BLACK, linewidth=0.8)
    for i, b in enumerate(backends):
        mine = [p for p in found if p.backend == b]
        for counts in (True, False):  # open: too few runs, or too short ones
            some, c = [p for p in mine if (p.measured.n >= LEAST_PAIRS and p.measured.median >= LEAST_SECONDS) == counts], style.colour("normal" if b == "dram" else b, i)
            if some or counts:
                left.plot([p.measured.median for p in some], [p.predicted_s for p in some], linestyle="", marker=style.MARKERS[i], markersize=3.5, color=c, markerfacecolor=c if counts else "white", alpha=0.8,
                          label=b if counts else None).pop().set_gid(b if counts else f"{b}, too few or short")  # fmt: skip
    for axis in (left.xaxis, left.yaxis):
        getattr(left, f"set_{axis.axis_name}scale")("log")
        style.plain_log(axis, low, high)
    left.set_xlim(low, high)
    left.set_ylim(low, high)
    left.set_xlabel("measured seconds")
    left.set_ylabel("predicted seconds")
    left.legend(loc="upper left", fontsize=7)
    rows, labels, at = [], [], 0
    for b in backends:
        for plan in dict.fromkeys(p.plan for p in found if p.backend == b):
            mine = [p for p in found if (p.plan, p.backend) == (plan, b)]
            worst = max(mine, key=lambda p: abs(math.log(p.ratio)))
            middle, lo, hi = predictions.median_error([p.error for p in mine])
            rows.append([b, plan, str(len(mine)), f"{middle:.0%}" + (f" [{lo:.0%} to {hi:.0%}]" if lo is not None else ""), f"{median([p.ratio for p in mine]):.2f}", f"{worst.id}: {worst.ratio:.2f}", show(worst.measured, "{:.2f}"),
                         f"{median([p.first_error for p in mine]):.0%}"])
            if b in predictions.TRANSFER or b == "mmap":
                ratios = [p.ratio for p in mine]
                right.plot([min(ratios), max(ratios)], [at, at], color=style.colour(b), linewidth=1.2)
                right.plot([median(ratios)], [at], marker="o", color=style.colour(b), markersize=4)
                labels.append(f"{plan} {b}")
                at += 1
    right.axvspan(1 / 1.15, 1.15, color="#e4e4e4", linewidth=0)
    right.axvline(1.0, color=style.BLACK, linewidth=0.8)
    right.set_xscale("log")
    ends = right.get_xlim()
    style.plain_log(right.xaxis, *ends)
    right.set_yticks(range(at), labels, fontsize=6.5)
    right.set_ylim(at - 0.4, -0.6)
    right.grid(visible=False, axis="y")
    right.grid(axis="x", color="#dddddd", linewidth=0.6)
    right.set_xlabel("predicted / measured, median and range")
    notes = ["Error: |predicted - measured| / measured, of the median of a configuration's repeats. Predictions of runs on aio and uring reckon with the rates that were measured in the "
             "second before each run (experiments/run.py --probe), as the median of predicted / measured of the repeats; those of other runs, and the last column, with rates that were measured once, before all of them (memext tune --calibrate). The range at the "
             f"right is over configurations. Open marks: fewer than {LEAST_PAIRS} runs, or shorter than {LEAST_SECONDS:g} s; they do not count."]  # fmt: skip
    bad = sorted((p for p in found if p.counts), key=lambda p: -abs(math.log(p.ratio)))[:3]
    if bad and bad[0].error > 0.15:
        notes.append("Farthest off on aio and uring: " + "; ".join(f"{p.plan} {p.id} {p.ratio:.2f} times the {p.measured.median:.2f} s measured ({p.why})" for p in bad) + ".")
    missed = [p for p in found if p.counts and p.error > 0.15]
    if missed:
        counts = {}
        for p in missed:
            counts[p.why.split(": ")[1]] = counts.get(p.why.split(": ")[1], 0) + 1
        notes.append(f"Of the {sum(p.counts for p in found)} configurations on aio and uring that count, {len(missed)} are off by more than 15 %: " + ", ".join(f"{why} in {n}" for why, n in sorted(counts.items(), key=lambda x: -x[1])) + ".")
    notes += predictions.with_which_rates([p for p in found if p.counts])
    return Drawn("predicted", "Predicted against measured seconds", figure, ["backend", "plan", "configurations", "median error", "median predicted / measured", "farthest off", "its seconds", "with the rates of the beginning"], rows, notes)


def regret(results):
    """What the tuner's choice takes, of the best of all plans that were run for the same problem."""
    from analysis.effects import Effect

    found = list(predictions.regrets(results))
    if not found:
        return None
    figure, ax = style.new(7.0, 0.26 * len(found) + 1.0)
    rows, seen = [], [1.0]
    for i, r in enumerate(found):
        effect = Effect(tuple(r.ratios.values()))
        ends = effect.interval()
        seen += [effect.value, *(ends or ())]
        if ends:
            ax.plot(ends, [i, i], color=style.BLUE, linewidth=1.4)
        ax.plot([effect.value], [i], marker="o", color=style.BLUE, markersize=4.5, markerfacecolor=style.BLUE if ends else "white").pop().set_gid(r.label)
        rows.append([r.label, str(r.plans), str(effect.n), effect.say("{:.3f}")])
    ax.axvspan(0, 1.05, color="#e4e4e4", linewidth=0)
    ax.axvline(1.0, color=style.BLACK, linewidth=0.8)
    ax.set_xlim(min(0.9, *seen) / 1.02, max(1.2, *seen) * 1.02)
    ax.set_yticks(range(len(found)), [r.label for r in found], fontsize=7)
    ax.set_ylim(len(found) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_xlabel("time of the tuner's choice / of the best plan run (grey: at most 5 % more)")
    return Drawn("regret", "The tuner's regret", figure, ["choice", "plans", "repeats", "time, of the best plan's"], rows,
                 ["Which plan is the best in a repeat is decided by the other repeats, so that luck is not counted as merit. Open dots: too few repeats for an interval."])  # fmt: skip
