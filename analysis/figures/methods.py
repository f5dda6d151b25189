# SPDX-License-Identifier: BSD-3-Clause
"""Fig. 5: methods with and without temporal blocking."""
from analysis import style
from analysis.cells import METHODS, NOT_GIVEN, Drawn, Rounds, cell, ratio, show
from analysis.measures import per_step

WITH, WITHOUT = "with temporal blocking", "without temporal blocking"


def _published(published):
    """{(method, temporal blocking?): [(ratio, paper), ...]}."""
    p = published.value
    found = {(m, True): [(p(f"{m}-temporal-ratio"), published.paper(f"{m}-temporal-ratio"))] for m in ("aio", "mmap", "swap")}
    found["swap", False] = [(p("swap-plain-ratio"), published.paper("swap-plain-ratio"))]
    found["aio", True].append((p("aio-temporal-seconds") / p("normal-seconds"), published.paper("aio-temporal-seconds")))
    return found


def fig05(plan, published):
    """Of the plan fig05, and of fig05-large. That one has a problem three times larger and the iBlock of the slides, so only their values with temporal blocking stand beside it."""
    large = plan.name.endswith("-large")
    normal, p, given, rounds = plan.one(method="normal"), published.value, _published(published), Rounds()
    if large:
        given = {key: [(v, paper) for v, paper in values if paper == "slides"] for key, values in given.items()}
    methods = [m for m in METHODS if plan.select(method=m)]
    both = ((WITH, True), (WITHOUT, False))
    series = {name: rounds.row(ratio(plan.one(method=m, temporal=t) or (plan.one(method=m) if m == "stream" and t else None), normal, per_step) for m in methods) for name, t in both}
    figure, ax = style.new(style.ONE, 2.5)
    marks = {name: [given.get((m, t)) for m in methods] for name, t in both}
    style.dots(ax, [METHODS[m].replace(" ", "\n") for m in methods], series, "time of a step / normal's", log=True, published=marks, base="normal execution", value_format="{:.3g}", names={WITH: "temporal blocking", WITHOUT: "without it"})
    if not large:
        style.published_line(ax, p("without-temporal-ratio"), "one without it", "published, method not named")
        ax.set_ylim(None, max(ax.get_ylim()[1], 1.5 * p("without-temporal-ratio")))
    style.legend_above(figure, ax)
    rows = [["normal", "", show(cell(normal, per_step), "{:.4f} s per step"), "1", "1"]]
    for m in methods:
        for t in (True, False):
            group = plan.one(method=m, temporal=t) or (plan.one(method=m) if m == "stream" and t else None)
            if group is not None:
                said = "; ".join(f"{v:.3g} ({paper})" for v, paper in given.get((m, t), [])) or ("not in the papers" if m in ("uring", "stream") else NOT_GIVEN)
                rows.append([m, "with" if t else "without", show(cell(group, per_step), "{:.4f} s per step"), show(ratio(group, normal, per_step)), said])
    notes = [f"The papers give two times of normal execution. In the paper (iwapt2016) aio takes {p('aio-temporal-seconds')} s against {p('normal-seconds')} s of normal execution, and {p('without-temporal-ratio')} times normal ({p('without-temporal-seconds')} s) without temporal "
             f"blocking. The paper does not name the method of that last number, so the dotted line goes through all methods. The slides' normal execution took about {p('swap-plain-seconds') / p('swap-plain-ratio'):.0f} s. These were the programs before the optimisation, with an iBlock of 32 x 32 rows. The runs here have the tuned iBlock. The findings compare each published value with runs that have its iBlock (fig05-large, before-after).",
             "Without temporal blocking mmap and swap work on the mapping, step by step. aio cannot work on a mapping: it moves the same Blocks, and computes one step on each."]  # fmt: skip
    if large:
        notes = ["The published values are those of the slides' programs before the optimisation, with an iBlock of 32 x 32 rows. The runs here have this iBlock."]
    return rounds.finish(Drawn(plan.name, f"Fig. 5{', a problem three times larger' if large else ''}: swap, mmap and aio against normal execution", figure, ["method", "temporal blocking", "measured", "relative to normal", "published"], rows, notes))
