# SPDX-License-Identifier: BSD-3-Clause
"""Figs. 19 to 24 and Table II: tuners."""
from analysis import style
from analysis.cells import NAMES, Drawn, cell, over, show
from analysis.figures.sizes import _sizes
from analysis.measures import GIB, search_seconds, seconds, size_bytes, table2_rows
from analysis.stats import Stat

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


def table2(plan, published):
    rows = [[name, published.values[name]["what"], show(o, "{:.2f}") if isinstance(o, float) else str(o), str(p), "equal" if same else "DIFFERENT"] for name, o, p, same in table2_rows(plan, published)]
    return Drawn("table2", "Table II and the slides' log, planned offline", None, ["problem and machine", "what", "memext", "published", ""], rows,
                 ["Planned for the papers' machines and problems, at the papers' size; nothing is run."])  # fmt: skip
