# SPDX-License-Identifier: BSD-3-Clause
"""Figs. 19 to 24 and Table II: tuners."""
from analysis import style
from analysis.cells import BUFFERS_GIB, NAMES, TUNER_NAMES, Drawn, Rounds, cell, in_gib, ratio, show
from analysis.figures.sizes import _sizes
from analysis.measures import GIB, SHORT, io_seconds, search_seconds, seconds, size_bytes, table2_rows
from analysis.stats import Stat

COMPARED = (("blk", "manual"), ("blk", "naive"), ("naive", "manual"))


def _parameters(group):
    return group.first(lambda r: "by {by}, bz {bz}, bt {bt}, iy {iy}, iz {iz}".format_map(r.report["plan"]), "") if group else ""


def _ends(published, name):
    """((low, high), paper) of a published range."""
    return (published.value(f"{name}-low"), published.value(f"{name}-high")), published.paper(f"{name}-low")


def fig19(plan, published):
    """The paper gives the time of Blk-Tune relative to the other tuners, so the figure draws ratios."""
    group, rounds = lambda a, t: plan.one(algorithm=a, tuner=t), Rounds()
    series = {short: rounds.row(ratio(group(a, x), group(a, y), seconds) for x, y in COMPARED) for a, short in SHORT.items()}
    given = [_ends(published, f"{x}-of-{y}") if f"{x}-of-{y}-low" in published.values else None for x, y in COMPARED]
    figure, ax = style.new(style.ONE, 2.4)
    style.dots(ax, [f"{TUNER_NAMES[x]}\n/ {TUNER_NAMES[y]}" for x, y in COMPARED], series, "ratio of times", published=dict.fromkeys(series, given), base="equal")
    style.legend_above(figure, ax)
    rows = [[NAMES[a], TUNER_NAMES[t], _parameters(group(a, t)), show(cell(group(a, t), seconds), "{:.2f} s"), show(ratio(group(a, "blk"), group(a, t), seconds))] for a in SHORT for t in TUNER_NAMES]
    p = published.value
    return rounds.finish(Drawn("fig19", "Fig. 19: times with the three tuners, relative to each other", figure, ["algorithm", "tuner", "parameters", "time", "time of Blk-Tune / this time"], rows,
                               [f"Published: Blk-Tune takes {p('blk-of-manual-low'):.0%} to {p('blk-of-manual-high'):.0%} of the time of manual choice, and {p('blk-of-naive-low'):.0%} to {p('blk-of-naive-high'):.0%} of the time of Naive-Tune. The paper does not compare Naive-Tune with manual choice."]))  # fmt: skip


COMPONENTS = {"update_s": "computation", "blk2blk_s": "copies between Blocks", "wait_s": "waiting for transfers"}
WAYS = {"buf2blk": "from flash (buf2blk)", "blk2buf": "to flash (blk2buf)"}


def _parts(groups, rounds):
    """({component: medians}, the drawn totals, {column: why it is not drawn})."""
    totals = rounds.row(cell(g, seconds) for _, g in groups)
    lost = {i: v or "not run" for i, v in enumerate(totals) if not isinstance(v, Stat)}
    nothing = float("nan")  # no bar, and a mark in its place
    parts = {words: [nothing if i in lost else g.stat(lambda r, c=c: r.report["time"][c]).median for i, (_, g) in enumerate(groups)] for c, words in COMPONENTS.items()}
    parts["other"] = [nothing if i in lost else max(0.0, t.median - sum(row[i] for row in parts.values())) for i, t in enumerate(totals)]
    return parts, totals, lost


def _component_rows(groups, rounds):
    """The rows of the table. It has single runs too."""
    for label, g in groups:
        time = {c: cell(g, lambda r, c=c: r.report["time"][c]) for c in (*COMPONENTS, "buf2blk_s", "blk2buf_s")}
        yield [label, show(cell(g, seconds), "{:.2f}"), *(show(v, "{:.2f}") for v in time.values())]


COMPONENT_HEADER = ["run", "time s", "update s", "blk2blk s", "wait s", "buf2blk s", "blk2buf s"]
OVERLAP = ("memext overlaps transfers with computation. So the time is not the sum of buf2blk, blk2buf and computation, and `wait` is what transfers cost. Components are medians, and the line is the range of the total time. "
           "The paper's text gives no components.")  # fmt: skip


def fig20(plan, published):
    groups = [((a, t), plan.one(algorithm=a, tuner=t)) for a in SHORT for t in TUNER_NAMES]
    groups, rounds = [(k, g) for k, g in groups if g], Rounds()
    figure, (left, right) = style.new(style.TWO, 2.7, columns=2)
    labels = [f"{SHORT[a]}\n{TUNER_NAMES[t].split(' ')[0]}" for (a, t), _ in groups]
    parts, totals, lost = _parts(groups, rounds)
    style.stacked(left, labels, parts, "seconds of the computing thread", totals, lost)
    ways = {words: rounds.row(cell(g, lambda r, w=w: r.report["time"][f"{w}_s"]) for _, g in groups) for w, words in WAYS.items()}
    style.bars(right, labels, ways, "seconds with a transfer under way", value_format="{:.2g}")
    for ax in (left, right):
        ax.tick_params(axis="x", labelsize=style.SMALL)
    style.legend_above(figure, left, right)
    rows = list(_component_rows([(f"{SHORT[a]} {TUNER_NAMES[t]}", g) for (a, t), g in groups], rounds))
    return rounds.finish(Drawn("fig20", "Fig. 20: time components with the three tuners", figure, COMPONENT_HEADER, rows, [OVERLAP]))


def fig21(plan, published):
    figure, axes = style.new(style.TWO, 2.3, columns=2, sharey=True)
    rounds, rows, ends = Rounds(exact=True), [], []
    for ax, a in zip(axes, SHORT):
        groups = [plan.one(algorithm=a, tuner=t) for t in TUNER_NAMES]
        series = {way: [cell(g, lambda r, way=way: r.report[f"{way}_bytes"] / GIB) for g in groups] for way in ("read", "write")}
        ends.append(style.bars(ax, list(TUNER_NAMES.values()), {way: rounds.row(row) for way, row in series.items()}, "GiB" if ax is axes[0] else "", names={"write": "written"}))
        ax.set_title(SHORT[a], loc="left")
        for t, g, r, w in zip(TUNER_NAMES, groups, series["read"], series["write"]):
            exact = g.first(lambda x: (x.report["read_bytes"], x.report["write_bytes"]) == (x.report["predicted_read_bytes"], x.report["predicted_write_bytes"])) if g else None
            rows.append([NAMES[a], TUNER_NAMES[t], show(r, "{:.4f}"), show(w, "{:.4f}"), {True: "equal", False: "different", None: ""}[exact]])
    style.same_scale(axes, ends)
    style.legend_above(figure, *axes)
    return rounds.finish(Drawn("fig21", "Fig. 21: bytes read and written with the three tuners", figure, ["algorithm", "tuner", "read GiB", "written GiB", "predicted bytes"], rows,
                               ["Bytes are counted and do not depend on time, so single runs are drawn too. The paper's text gives no values."]))  # fmt: skip


MACHINES = (("crest4", "Fig. 22"), ("crest6", "Fig. 23"))


def _longer(quotient):
    """ "+7.0 % [+5.1 % to ...]" of a Ratio."""
    if not isinstance(quotient, Stat):
        return show(quotient)
    ends = f" ({quotient.low - 1:+.1%} to {quotient.high - 1:+.1%}, n={quotient.n})" if quotient.n > 1 else ""
    return f"{quotient.median - 1:+.1%}{ends}"


def _longer_row(plan, published, machine, name, algorithm, size):
    blk, manual = (plan.one(machine=machine, algorithm=algorithm, size=size, tuner=t) for t in ("blk", "manual"))
    given = [published.value(f"{machine}-{algorithm}-{end}") for end in ("low", "high")]
    return [f"{name}, {(blk or manual)['limit'] if blk or manual else ''}", NAMES[algorithm], size, _parameters(blk), show(cell(blk, seconds), "{:.2f} s"), show(cell(manual, seconds), "{:.2f} s"),
            _longer(ratio(manual, blk, seconds)), f"+{given[0]:.1%} to +{given[1]:.1%} ({machine})"]  # fmt: skip


def fig22(plan, published):
    """The papers give how much longer manual choice takes, so the figure draws this ratio."""
    sizes, rounds, rows, ends = _sizes(plan), Rounds(), [], []
    figure, axes = style.new(style.TWO, 2.5, columns=2, sharey=True)
    for ax, (machine, name) in zip(axes, MACHINES):
        series, marks = {}, {}
        for k, (a, short) in enumerate(SHORT.items()):
            pairs = [[plan.one(machine=machine, algorithm=a, size=s, tuner=t) for t in ("manual", "blk")] for s in sizes]
            series[short] = [*[None] * (k * len(sizes)), *rounds.row(ratio(*pair, seconds) for pair in pairs), *[None] * ((1 - k) * len(sizes))]
            (low, high), paper = _ends(published, f"{machine}-{a}")
            marks[short] = k * len(sizes) - 0.4, (k + 1) * len(sizes) - 0.6, 1 + low, 1 + high, paper
            rows += [_longer_row(plan, published, machine, name, a, s) for s in sizes]
        limit = next((in_gib(g["limit"]) for g in plan.select(machine=machine) if g["limit"]), "?")
        low, high = style.dots(ax, [f"{short}\n{in_gib(s)} GiB" for short in SHORT.values() for s in sizes], series, "time with manual choice /\nwith Blk-Tune" if ax is axes[0] else "", log=True, base="equal")
        for short, (*box, paper) in marks.items():
            style.published_range(ax, *box, paper, f"{short} published, {paper}")
        ends.append((low, max(high, *(1.1 * box[3] for box in marks.values()))))
        ax.set_title(f"{name}: {limit} GiB of DRAM stand for {machine}", loc="left")
    style.same_scale(axes, ends, log=True)
    style.legend_above(figure, *axes)
    return rounds.finish(Drawn("fig22", "Figs. 22 and 23: manual choice against Blk-Tune by problem size", figure, ["machine", "algorithm", "Buffers", "Blk-Tune's parameters", "Blk-Tune", "manual", "manual takes longer by", "published"], rows,
                               ["Two DRAM limits on one machine stand for the papers' crest4 (64 GiB) and crest6 (128 GiB, faster processors and flash). A published range covers all sizes of the paper."]))  # fmt: skip


def fig22_components(plan, published):
    where = [(m, s) for m, _ in MACHINES for s in _sizes(plan)]
    pairs = [[plan.one(machine=m, size=s, algorithm="skewed-min", tuner=t) for t in ("manual", "blk")] for m, s in where]
    limits = [next((in_gib(g["limit"]) for g in pair if g and g["limit"]), "?") for pair in pairs]
    groups = [(f"{t}\n{in_gib(s)}\n{limit}", g) for (m, s), limit, pair in zip(where, limits, pairs) for t, g in zip(("manual", "Blk"), pair) if g]
    figure, (left, right) = style.new(style.TWO, 2.9, columns=2, width_ratios=(1.5, 1))
    rounds = Rounds()
    parts, totals, lost = _parts(groups, rounds)
    style.stacked(left, [label for label, _ in groups], parts, "seconds of the computing thread", totals, lost)
    left.set_xlabel("tuner, GiB of the Buffers, GiB of DRAM")
    io = rounds.row(ratio(blk, manual, io_seconds) for manual, blk in pairs)
    style.dots(right, [f"{in_gib(s)}\n{limit}" for (m, s), limit in zip(where, limits)], {"blk": io}, "I/O time with Blk-Tune / with manual choice", published={"blk": [_ends(published, "io")] * len(io)}, base="equal", names={"blk": "I/O time of aio5y"})
    right.set_xlabel("GiB of the Buffers, GiB of DRAM")
    style.legend_above(figure, left, right)
    rows = list(_component_rows([(label.replace("\n", ", "), g) for label, g in groups], rounds))
    return rounds.finish(Drawn("fig22-components", "Figs. 22 and 23, lower part: time components of aio5y", figure, COMPONENT_HEADER, rows,
                               [OVERLAP, f"Published: I/O times with Blk-Tune are {published.value('io-low'):.0%} to {published.value('io-high'):.0%} of those with manual choice. I/O time is the time with a transfer under way, in both directions."]))  # fmt: skip


def fig24(plan, published):
    sizes, rounds = _sizes(plan), Rounds()
    xs = [size_bytes(s) for s in sizes]
    share_of = lambda r: search_seconds(r) / r.report["predicted_seconds"]
    kinds = {f"{m}, {how} search": (m, how) for m in ("crest4", "crest6") for how in ("exhaustive", "reduced") if plan.select(machine=m, search=how)}
    groups = {name: [plan.one(machine=m, size=s, search=how) for s in sizes] for name, (m, how) in kinds.items()}
    figure, axes = style.new(style.TWO, 2.5, columns=2)
    for ax, of, unit in zip(axes, (search_seconds, share_of), ("seconds of search", "search / predicted time of the run")):
        style.lines(ax, xs, {name: rounds.row(cell(g, of) for g in row) for name, row in groups.items()}, unit, log_y=True, also=[published.value("share")] if of is share_of else ())
        style.size_axis(ax, xs, map(in_gib, sizes), BUFFERS_GIB)
    there = [x for x in xs if x <= 512 * GIB]
    style.published_marks(axes[1], there, [published.value("share")] * len(there), published.paper("share"), "published")
    style.legend_above(figure, *axes)
    rows = []
    for name, row in groups.items():
        for s, group in zip(sizes, row):
            rows.append([*name.split(", "), s, show(cell(group, search_seconds), "{:.2e} s"), show(cell(group, share_of), "{:.1e}"), show(group.first(lambda r: r.report["search"].get("evaluated")) if group else None)])
    return rounds.finish(Drawn("fig24", "Fig. 24: tuning time by problem size", figure, ["machine", "search", "Buffers", "search time", "search time / predicted time of the run", "combinations"], rows,
                               [f"Published: about {published.value('share'):.1%} of the computation for 128 to 512 GiB. The paper's text gives no seconds."]))  # fmt: skip


def table2(plan, published):
    rows = [[name, published.values[name]["what"], show(o, "{:.2f}") if isinstance(o, float) else str(o), str(p), "equal" if same else "DIFFERENT"] for name, o, p, same in table2_rows(plan, published)]
    return Drawn("table2", "Table II and the slides' log, planned offline", None, ["problem and machine", "what", "memext", "published", "verdict"], rows,
                 ["memext planned for the papers' machines and problems, at the papers' size, and ran nothing."])  # fmt: skip
