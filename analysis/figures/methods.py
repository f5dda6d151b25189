# SPDX-License-Identifier: BSD-3-Clause
"""Fig. 5: methods with and without temporal blocking."""
from analysis import style
from analysis.cells import NOT_GIVEN, Drawn, cell, over, show
from analysis.measures import per_step


def fig05(plan, published):
    base = cell(plan.one(method="normal"), per_step)
    methods = [m for m in ("aio", "uring", "mmap", "swap") if plan.select(method=m)]
    temporal = [over(cell(plan.one(method=m, temporal=True), per_step), base) for m in methods]
    plain = [over(cell(plan.one(method=m, temporal=False), per_step), base) for m in methods]
    ours = over(cell(plan.one(method="stream"), per_step), base)
    p = published.value
    where = {("aio", True): "aio-temporal-ratio", ("mmap", True): "mmap-temporal-ratio", ("swap", True): "swap-temporal-ratio", ("swap", False): "swap-plain-ratio"}
    given = {k: (p(name), published.paper(name)) for k, name in where.items()}
    with_it, without = "with temporal blocking", "without temporal blocking"
    figure, ax = style.new(7.2, 3.8)
    style.bars(ax, [*methods, "stream (ours)"], {with_it: [*temporal, ours], without: [*plain, None]}, "time per step, relative to normal", log=True,
               published={name: [given.get((m, t)) for m in methods] for name, t in ((with_it, True), (without, False))})  # fmt: skip
    ax.axhline(1.0, color=style.BLACK, linewidth=1, linestyle="--", label="normal execution")
    ax.legend(ncols=2, loc="upper left")
    rows = [["normal", "", show(base, "{:.4f} s per step"), "1", "1"]]
    for m in [*methods, "stream"]:
        for t in (True, False):
            group = plan.one(method=m, temporal=t)
            if group is None:
                continue
            value = cell(group, per_step)
            rows.append([m, "with" if t else "without", show(value, "{:.4f} s per step"), show(over(value, base)), f"{given[m, t][0]} ({given[m, t][1]})" if (m, t) in given else "not in the papers" if m in ("uring", "stream") else NOT_GIVEN])
    notes = [f"Two sources, two shapes of mark: the ratios are the slides'; the paper gives {p('aio-temporal-seconds')} s against {p('normal-seconds')} s for aio ({p('aio-temporal-seconds') / p('normal-seconds'):.2f}), and "
             f"{p('without-temporal-ratio')} times normal ({p('without-temporal-seconds')} s) without temporal blocking, without naming the method in the text. "
             f"The sources do not share a base: the slides' normal execution took about {p('swap-plain-seconds') / p('swap-plain-ratio'):.0f} s, with programs before the optimisation.",
             "Without temporal blocking mmap and swap work on the mapping, step by step; aio has no memory semantics and moves the same Blocks for one step each."]  # fmt: skip
    return Drawn("fig05", "Fig. 5: swap, mmap and aio against normal execution", figure, ["method", "temporal blocking", "measured", "relative to normal", "published"], rows, notes)
