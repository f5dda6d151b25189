# SPDX-License-Identifier: BSD-3-Clause
"""Figures over all plans: every finding with its effect and band, predicted against measured seconds, the tuner's regret."""
import math
import textwrap

from analysis import predictions, style
from analysis.cells import METHODS, Drawn, Rounds, paired, show
from analysis.claim import AT_LEAST_AS_GOOD, CONFIRMED, NOT_TESTED, REFUTED, UNDECIDED
from analysis.effects import LEAST_PAIRS, LEAST_SECONDS
from analysis.stats import Stat, median
from analysis.verdicts import EACH_LEVEL

STATE_COLOUR = {CONFIRMED: style.GREEN, AT_LEAST_AS_GOOD: style.BLUE, REFUTED: style.RED, UNDECIDED: style.GREY, NOT_TESTED: "#bbbbbb"}
LOW, HIGH = 1e-4, 1e3  # values outside are drawn at the edge, as an arrow
NEAR = (0.02, 50.0)  # the axis reaches at least this far


ROWS = 30  # on a page of findings


def _drawn(part):
    """Does the part have an effect of two rounds or more, or a counted effect?"""
    return part.effect is not None and (part.effect.exact or part.effect.n > 1)


def _ends(drawn):
    """Ends of the axis: around all values, intervals and bands with two ends."""
    seen = [v for d in drawn for p in filter(_drawn, d.parts) for v in (p.effect.value, *(p.effect.interval(EACH_LEVEL) or ()), *(e for e in p.band[:2] if 0 < e < math.inf))]
    return max(LOW, min(NEAR[0], *seen) / 1.5), min(HIGH, max(NEAR[1], *seen) * 1.5)


def _words(v):
    """The finding, broken into lines, with its n."""
    parts = list(filter(_drawn, v.parts))
    timed = [p.effect.n for p in parts if not p.effect.exact]
    n = "counted" if not timed else f"n\u00a0=\u00a0{min(timed)}" + (f" to {max(timed)}" if max(timed) > min(timed) else "")
    return "\n".join(textwrap.wrap(f"{v.finding} ({n})", 66))


def _finding(ax, row, v, clip, least, most):
    """One row: the comparisons as dots with their intervals, and behind each dot the band in which it lies if the finding is true."""
    parts = list(filter(_drawn, v.parts))
    step = 0.7 / len(parts)
    for i, p in enumerate(parts):
        y = row - 0.35 + step * (i + 0.5)
        ax.fill_betweenx([y - step / 2, y + step / 2], clip(p.band[0]), clip(p.band[1]), color="#e4e4e4", linewidth=0)
        c, middle = STATE_COLOUR[p.state(EACH_LEVEL)], p.effect.value
        ends = p.effect.interval(EACH_LEVEL)
        if ends:
            ax.plot([clip(e) for e in ends], [y, y], color=c, linewidth=1.2, solid_capstyle="butt").pop().set_gid(f"interval {v.name}")
        marker = "<" if middle < least else ">" if middle > most else "o"
        ax.plot([clip(middle)], [y], marker=marker, markersize=3, color=c, markerfacecolor=c if ends else "white", zorder=3, clip_on=False).pop().set_gid(f"effect {v.name}")


def _page(name, drawn, least, most):
    lines = max(_words(v).count("\n") + 1 for v in drawn)
    figure, ax = style.new(style.TWO, (0.1 * lines + 0.08) * len(drawn) + 0.8)
    for row, v in enumerate(drawn):
        _finding(ax, row, v, lambda e: min(max(e, least), most), least, most)
    ax.axvline(1.0, color=style.BLACK, linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xlim(least, most)
    style.plain_log(ax.xaxis, least, most)
    ax.set_ylim(len(drawn) - 0.4, -0.6)
    ax.set_yticks(range(len(drawn)), [_words(v) for v in drawn], fontsize=style.SMALL)
    for label, v in zip(ax.get_yticklabels(), drawn):
        label.set_color(STATE_COLOUR[v.state])
        label.set_gid(f"finding {v.name}")
    style.across(ax)
    ax.set_xlabel("ratio")
    handles = [style.plt.Line2D([], [], marker="o", color=STATE_COLOUR[s], markersize=4, label=s) for s in (CONFIRMED, AT_LEAST_AS_GOOD, REFUTED, UNDECIDED)]
    handles += [style.plt.Line2D([], [], marker="o", color=style.GREY, markerfacecolor="white", linestyle="", markersize=4, label="too few rounds for an interval"), style.plt.Rectangle((0, 0), 1, 1, color="#e4e4e4", label="band of the finding")]
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - 0.25 / figure.get_figheight()))
    figure.legend(handles=handles, loc="upper center", ncols=6, columnspacing=1.0, handletextpad=0.4)
    return Drawn(name, "Every finding: effect, interval, and the band of the finding", figure, notes=[f"The ratios are those of the table of findings, with the intervals that decide its verdicts. A ratio below {least:.3g} or above {most:.3g} is drawn at the edge, as an arrow."])


def findings(decided):
    """Pages with a row for each finding, all on one axis; [] if no finding has an effect of two rounds or more."""
    drawn = [v for v in decided if any(map(_drawn, v.parts))]
    if not drawn:
        return []
    least, most = _ends(drawn)
    pages = [_page("effects" if k == 0 else f"effects-{k // ROWS + 1}", drawn[k : k + ROWS], least, most) for k in range(0, len(drawn), ROWS)]
    left_out = sum(not any(map(_drawn, v.parts)) and any(p.effect is not None for p in v.parts) for v in decided)
    if left_out:
        pages[-1].notes.append(f"{left_out} finding{'s are' if left_out > 1 else ' is'} not drawn, with one run each. The table has the numbers.")
    return pages


def _scatter(ax, found, backends):
    low, high = (f(v for p in found for v in (p.predicted_s, p.measured.low, p.measured.high)) for f in (min, max))
    low, high = low / 1.5, high * 1.5
    ax.fill_between([low, high], [low / 1.15, high / 1.15], [low * 1.15, high * 1.15], color="#e4e4e4", linewidth=0, label="within 15 %")
    ax.plot([low, high], [low, high], color=style.BLACK, linewidth=0.8)
    for i, b in enumerate(backends):
        mine, c = [p for p in found if p.backend == b], style.colour("normal" if b == "dram" else b, i)
        ax.hlines([p.predicted_s for p in mine], [p.measured.low for p in mine], [p.measured.high for p in mine], color=c, linewidth=0.7, alpha=0.6)
        for counts in (True, False):  # open: too few runs, or too short ones
            some = [p for p in mine if (p.measured.n >= LEAST_PAIRS and p.measured.median >= LEAST_SECONDS) == counts]
            if some or counts:
                ax.plot([p.measured.median for p in some], [p.predicted_s for p in some], linestyle="", marker=style.MARKERS[i], markersize=3, color=c, markerfacecolor=c if counts else "white", alpha=0.8,
                        label=METHODS.get(b, "memory" if b == "dram" else b) if counts else None).pop().set_gid(b if counts else f"{b}, too few or short")  # fmt: skip
    for axis in (ax.xaxis, ax.yaxis):
        getattr(ax, f"set_{axis.axis_name}scale")("log")
        style.plain_log(axis, low, high)
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ax.set_xlabel("measured seconds")
    ax.set_ylabel("predicted seconds")


def _ranges(ax, found, backends):
    """Predicted / measured over the configurations of a plan."""
    labels = []
    for b in backends:
        for plan in dict.fromkeys(p.plan for p in found if p.backend == b) if b in predictions.TRANSFER or b == "mmap" else ():
            ratios = [p.ratio for p in found if (p.plan, p.backend) == (plan, b)]
            ax.plot([min(ratios), max(ratios)], [len(labels)] * 2, color=style.colour(b), linewidth=1.2)
            ax.plot([median(ratios)], [len(labels)], marker="o", color=style.colour(b), markersize=3.5)
            labels.append(f"{plan}, {METHODS.get(b, b)} ({len(ratios)})")
    ax.axvspan(1 / 1.15, 1.15, color="#e4e4e4", linewidth=0)
    ax.axvline(1.0, color=style.BLACK, linewidth=0.8)
    ax.set_xscale("log")
    style.plain_log(ax.xaxis, *ax.get_xlim())
    ax.set_yticks(range(len(labels)), labels, fontsize=style.SMALL)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    style.across(ax)
    ax.set_xlabel("predicted / measured: median and range\n(in brackets: number of configurations)")


def _prediction_rows(found, backends):
    for b in backends:
        for plan in dict.fromkeys(p.plan for p in found if p.backend == b):
            mine = [p for p in found if (p.plan, p.backend) == (plan, b)]
            worst = max(mine, key=lambda p: abs(math.log(p.ratio)))
            middle, lo, hi = predictions.median_error([p.error for p in mine])
            yield [b, plan, str(len(mine)), f"{middle:.0%}" + (f" [{lo:.0%} to {hi:.0%}]" if lo is not None else ""), f"{median([p.ratio for p in mine]):.2f}", f"{worst.id}: {worst.ratio:.2f}", show(worst.measured, "{:.2f}"),
                   f"{median([p.first_error for p in mine]):.0%}"]  # fmt: skip


def _prediction_notes(found):
    notes = ["The error is |predicted - measured| / measured, in the median over the repeats of a configuration. Predictions for aio and uring use the rates that were measured in the "
             "second before each run (experiments/run.py --probe). All other predictions, and the last column, use the rates of the plans: measured once, before all runs (memext tune --calibrate), or assumed where none were. The right panel "
             f"has the range over configurations. Open marks do not count: they have fewer than {LEAST_PAIRS} runs, or runs of less than {LEAST_SECONDS:g} s."]  # fmt: skip
    bad = sorted((p for p in found if p.counts), key=lambda p: -abs(math.log(p.ratio)))[:3]
    if bad and bad[0].error > 0.15:
        notes.append("The largest errors on aio and uring: " + "; ".join(f"{p.plan} {p.id}, predicted {p.ratio:.2f} times the measured {p.measured.median:.2f} s ({p.why})" for p in bad) + ".")
    missed = [p for p in found if p.counts and p.error > 0.15]
    if missed:
        counts = {}
        for p in missed:
            counts[p.why.split(": ")[1]] = counts.get(p.why.split(": ")[1], 0) + 1
        notes.append(f"Of the {sum(p.counts for p in found)} configurations on aio and uring that count, {len(missed)} {'have errors' if len(missed) > 1 else 'has an error'} of more than 15 %: " + ", ".join(f"{why} in {n}" for why, n in sorted(counts.items(), key=lambda x: -x[1])) + ".")
    return notes + predictions.with_which_rates([p for p in found if p.counts])


def predicted(results):
    """Predicted and measured seconds, with a dot for each configuration, on logarithmic axes. The table has the errors by plan and backend."""
    found = predictions.predictions(results)
    if not found:
        return None
    backends = list(dict.fromkeys(p.backend for p in sorted(found, key=lambda p: not p.transfer)))
    rounds, figure = Rounds(), None
    several = [p for p in found if isinstance(rounds.of(p.measured), Stat)]
    if several:
        figure, (left, right) = style.new(style.TWO, 3.3, columns=2)
        _scatter(left, several, backends)
        _ranges(right, several, backends)
        style.legend_above(figure, left)
    return rounds.finish(Drawn("predicted", "Predicted against measured seconds", figure, ["backend", "plan", "configurations", "median error", "median predicted / measured", "largest error: configuration, predicted / measured", "its measured seconds", "median error with the plans' rates"],
                               list(_prediction_rows(found, backends)), _prediction_notes(found)))  # fmt: skip


def regret(results):
    """The tuner's regret: time of its choice / time of the best of all plans that were run for the same problem."""
    found = predictions.study(results)
    if not found:
        return None
    rounds = Rounds()
    values = [paired(r.ratios) for r in found]
    drawn = [(r, v) for r, v in zip(found, values) if isinstance(rounds.of(v), Stat)]
    figure = None
    if drawn:
        figure, ax = style.new(style.TWO, 0.2 * len(drawn) + 0.8)
        for i, (r, v) in enumerate(drawn):
            ax.plot([v.low, v.high], [i, i], color=style.BLUE, linewidth=1.4)
            ax.plot([v.median], [i], marker="o", color=style.BLUE, markerfacecolor=style.BLUE if v.interval else "white").pop().set_gid(r.label)
        seen = [1.0, *(e for _, v in drawn for e in (v.low, v.high))]
        ax.axvspan(0, 1.05, color="#e4e4e4", linewidth=0)
        ax.axvline(1.0, color=style.BLACK, linewidth=0.8)
        ax.set_xlim(min(0.9, *seen) / 1.02, max(1.2, *seen) * 1.02)
        ax.set_yticks(range(len(drawn)), [r.label for r, _ in drawn], fontsize=style.SMALL)
        ax.set_ylim(len(drawn) - 0.4, -0.6)
        style.across(ax)
        ax.set_xlabel("time of the tuner's choice / of the best plan that was run (grey: at most 5 % more)")
    rows = [[r.label, str(r.plans), str(v.n), show(v, "{:.3f}")] for r, v in zip(found, values)]
    return rounds.finish(Drawn("regret", "The tuner's regret", figure, ["choice", "plans that were run", "repeats", "time of the choice / of the best plan"], rows,
                               ["The regret is the time of the tuner's choice divided by the time of the best plan that was run for the same problem. In each repeat, the other repeats decide which plan is the best, so that luck does not count. Open dots have too few repeats for an interval."]))  # fmt: skip
