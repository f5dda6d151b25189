# SPDX-License-Identifier: BSD-3-Clause
"""Figs. 6 to 9: speed and time by the size of the problem."""
from analysis import style
from analysis.cells import BUFFERS_GIB, STENCIL_NAMES, Drawn, Rounds, cell, in_gib, ratio, show
from analysis.measures import FLOPS, GIB, gupdates, mflops, per_step, size_bytes


def _sizes(plan, **wanted):
    groups = plan.select(**wanted)
    names = list(dict.fromkeys(g["size"] for g in groups))
    return sorted(names, key=size_bytes)


def fig06(plan, published):
    normal, rounds = plan.one(method="normal"), Rounds()
    methods = [m for m in ("aio", "aio5y", "stream") if plan.select(method=m)]
    sizes = _sizes(plan)
    names = {"aio": "redundant, aio (the paper's)", "aio5y": "skewed-min on aio (aio5y)", "stream": "stream on io_uring (memext)"}
    speeds = {m: [ratio(plan.one(method=m, size=s), normal, gupdates) for s in sizes] for m in methods}
    figure, ax = style.new(style.ONE, 2.6)
    xs = [size_bytes(s) for s in sizes]
    style.lines(ax, xs, {m: rounds.row(row) for m, row in speeds.items()}, "speed / normal execution's", names=names, base="normal execution", also=[published.value("largest-relative")])
    limit = plan.select(method="aio")[0]["limit"] if plan.select(method="aio") else ""
    if limit and 16 * size_bytes(limit) <= xs[-1]:
        style.published_marks(ax, [16 * size_bytes(limit)], [published.value("largest-relative")], published.paper("largest-relative"), "published")
    if limit:
        ax.axvline(size_bytes(limit), color=style.GREY, linewidth=1, linestyle=":")
        ax.annotate(f" DRAM: {in_gib(limit)} GiB", (size_bytes(limit), 0.02), xycoords=("data", "axes fraction"), fontsize=style.SMALL, color="#555555")
    style.legend_above(figure, ax)
    style.size_axis(ax, xs, map(in_gib, sizes), BUFFERS_GIB)
    rows = [[s, *[show(speeds[m][i]) for m in methods]] for i, s in enumerate(sizes)]
    rows.append(["published: 512 GiB in 32 GiB", published.value("largest-relative"), *["not in the papers"] * (len(methods) - 1)])
    base = show(cell(normal, gupdates), "{:.3f} Gupdates/s")
    return rounds.finish(Drawn("fig06", "Fig. 6: performance at fixed DRAM against problem size", figure, ["Buffers", *[names[m] for m in methods]], rows,
                               [f"Speed is updates per second, relative to normal execution of the smallest problem, which is all in DRAM and runs at {base}. The published mark is aio at 16 times the DRAM. The paper's text has no values for the sizes between."]))  # fmt: skip


def _by_size(plan, of):
    """(stencils, sizes, {(stencil, backend): [value by size]})."""
    stencils, sizes = list(dict.fromkeys(g["stencil"] for g in plan.groups.values())), _sizes(plan)
    return stencils, sizes, {(s, b): [cell(plan.one(backend=b, stencil=s, size=size), of) for size in sizes] for s in stencils for b in ("aio", "mmap")}


def _quotients(plan, stencil, sizes, of):
    return [ratio(plan.one(backend="aio", stencil=stencil, size=s), plan.one(backend="mmap", stencil=stencil, size=s), of) for s in sizes]


def fig07(plan, published):
    """The paper gives the time of aio relative to mmap, so the figure draws this ratio. The table has the times. The plan fig07-large has eight times the DRAM of fig07."""
    larger = ", eight times the DRAM" if plan.name.endswith("-large") else ""
    stencils, sizes, times = _by_size(plan, per_step)
    rounds, quotients = Rounds(), {s: _quotients(plan, s, sizes, per_step) for s in stencils}
    ends = [published.value(f"aio-of-mmap-{end}") for end in ("low", "high")]
    figure, ax = style.new(style.ONE, 2.3)
    xs = [size_bytes(s) for s in sizes]
    style.lines(ax, xs, {s: rounds.row(row) for s, row in quotients.items()}, "time of aio / time of mmap", names=STENCIL_NAMES, log_y=True, base="equal", also=ends)
    ax.set_xlim(xs[0] / 1.25, xs[-1] * 1.25)
    style.published_range(ax, xs[0] / 1.12, xs[-1] * 1.12, *ends, published.paper("aio-of-mmap-low"), "published")
    style.size_axis(ax, xs, map(in_gib, sizes), BUFFERS_GIB)
    style.legend_above(figure, ax)
    rows = [[STENCIL_NAMES.get(s, s), size, show(times[s, "aio"][i], "{:.4f}"), show(times[s, "mmap"][i], "{:.4f}"), show(quotients[s][i])] for s in stencils for i, size in enumerate(sizes)]
    return rounds.finish(Drawn(plan.name, f"Fig. 7{larger}: time of aio relative to mmap, by problem size", figure, ["stencil", "Buffers", "aio, s per step", "mmap, s per step", "aio / mmap"], rows,
                               [f"Published: aio takes {ends[0]:.0%} to {ends[1]:.0%} of mmap's time; the paper does not say at which size. The out-of-memory killer killed the run on mmap with 19 points and 1 TiB."]))  # fmt: skip


def fig08(plan, published):
    stencils, sizes, speeds = _by_size(plan, mflops)
    rounds, xs = Rounds(), [size_bytes(s) for s in sizes]
    figure, axes = style.new(style.TWO, 2.3, columns=len(stencils), squeeze=False, sharey=True)
    ends = []
    for ax, stencil in zip(axes[0], stencils):
        ends.append(style.lines(ax, xs, {b: rounds.row(speeds[stencil, b]) for b in ("aio", "mmap")}, "effective Mflops" if ax is axes[0, 0] else ""))
        style.size_axis(ax, xs, map(in_gib, sizes), BUFFERS_GIB)
        ax.set_title(STENCIL_NAMES.get(stencil, stencil), loc="left")
    style.same_scale(axes[0], ends)
    style.legend_above(figure, *axes[0])
    rows = [[STENCIL_NAMES.get(s, s), size, show(speeds[s, "aio"][i], "{:.0f}"), show(speeds[s, "mmap"][i], "{:.0f}"), show(q)] for s in stencils for i, (size, q) in enumerate(zip(sizes, _quotients(plan, s, sizes, mflops)))]
    return rounds.finish(Drawn("fig08", "Fig. 8: effective Mflops of aio and mmap by problem size", figure, ["stencil", "Buffers", "aio Mflops", "mmap Mflops", "aio / mmap"], rows,
                               [f"Operations are counted as in the slides: {FLOPS['star7']} for an update with 7 points, {FLOPS['edge19']} with 19 points. The paper's text gives no values."]))  # fmt: skip


def fig09(plan, published):
    _, _, speeds = _by_size(plan, mflops)
    sizes, rounds = _sizes(plan, stencil="star7"), Rounds()
    limit = plan.select(stencil="star7")[0]["limit"]
    series = {b: speeds["star7", b] for b in ("aio", "mmap")}
    blocks = [plan.one(backend="mmap", stencil="star7", size=s) for s in sizes]
    shares = [g.first(lambda r: r.report["block_bytes"]) if g else None for g in blocks]
    figure, ax = style.new(style.ONE, 2.3)
    style.bars(ax, [f"{in_gib(s)}\n{b / GIB:.3f}" if b else in_gib(s) for s, b in zip(sizes, shares)], {b: rounds.row(row) for b, row in series.items()}, "effective Mflops", value_format="{:.0f}")
    ax.set_xlabel(f"upper: the two Buffers, lower: the two Blocks;\nin GiB; DRAM: {in_gib(limit) + ' GiB' if limit else 'without a limit'}")
    style.legend_above(figure, ax)
    rows = []
    for i, (s, q) in enumerate(zip(sizes, _quotients(plan, "star7", sizes, mflops))):
        left = f"{(size_bytes(limit) - shares[i]) / GIB:.3f}" if shares[i] and limit else ""
        rows.append([s, f"{shares[i] / GIB:.3f}" if shares[i] else "", left, show(series["aio"][i], "{:.0f}"), show(series["mmap"][i], "{:.0f}"), show(q)])
    return rounds.finish(Drawn("fig09", "Fig. 9: effective Mflops at fixed DRAM, aio and mmap", figure, ["Buffers", "Blocks GiB", "rest of the DRAM GiB", "aio Mflops", "mmap Mflops", "aio / mmap"], rows,
                               ["These runs have 7 points. Both methods have the same Blocks; mmap uses the rest of the DRAM as page cache. Published: " + published.values["fig9-trend"]["note"] + "."]))  # fmt: skip
