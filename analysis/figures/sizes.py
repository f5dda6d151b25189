# SPDX-License-Identifier: BSD-3-Clause
"""Figs. 6 to 9: by the size of the problem."""
from analysis import style
from analysis.cells import Drawn, cell, over, show
from analysis.measures import FLOPS, GIB, gupdates, mflops, per_step, size_bytes


def _sizes(plan, **wanted):
    groups = plan.select(**wanted)
    names = list(dict.fromkeys(g["size"] for g in groups))
    return sorted(names, key=size_bytes)


def fig06(plan, published):
    base = cell(plan.one(method="normal"), gupdates)
    methods = [m for m in ("aio", "aio5y", "stream") if plan.select(method=m)]
    sizes = _sizes(plan)
    names = {"aio": "redundant on aio (the papers')", "aio5y": "skewed-min on aio (aio5y)", "stream": "stream on uring (ours)"}
    series = {m: [over(cell(plan.one(method=m, size=s), gupdates), base) for s in sizes] for m in methods}
    figure, ax = style.new(7.0, 3.6)
    xs = [size_bytes(s) for s in sizes]
    style.lines(ax, xs, series, "speed, relative to normal", names=names)
    ax.axhline(1.0, color=style.BLACK, linewidth=1, linestyle="--")
    limit = plan.select(method="aio")[0]["limit"] if plan.select(method="aio") else ""
    if limit and 16 * size_bytes(limit) <= xs[-1]:
        ax.plot([16 * size_bytes(limit)], [published.value("largest-relative")], linestyle="", marker="D", markersize=6, markerfacecolor="white", markeredgecolor=style.BLACK, zorder=4,
                label="published: aio, 16 times the DRAM").pop().set_gid("published")  # fmt: skip
        ax.legend(ncols=2, loc="upper left")
    if limit:
        ax.axvline(size_bytes(limit), color=style.GREY, linewidth=1, linestyle=":")
        ax.annotate(f" DRAM limit {limit}", (size_bytes(limit), 0.02), fontsize=7, color="#555555")
    style.size_axis(ax, xs, sizes, "size of the two Buffers")
    rows = [[s, *[show(series[m][i]) for m in methods]] for i, s in enumerate(sizes)]
    rows.append(["published: 512 GiB in 32 GiB", published.value("largest-relative"), *["not in the papers"] * (len(methods) - 1)])
    return Drawn("fig06", "Fig. 6: performance at fixed DRAM against problem size", figure, ["Buffers", *[names[m] for m in methods]], rows,
                 [f"Speed is updates per second, relative to normal execution of the smallest problem, all in DRAM: {show(base, '{:.3f} Gupdates/s')}. Published values of the sizes between are not given in the text."])  # fmt: skip


def _fig07(plan, of, unit, form, log=False):
    stencils = list(dict.fromkeys(g["stencil"] for g in plan.groups.values()))
    sizes = _sizes(plan)
    figure, axes = style.new(7.2, 3.4, columns=len(stencils), squeeze=False)
    rows, xs = [], [size_bytes(s) for s in sizes]
    for ax, stencil in zip(axes[0], stencils):
        series = {b: [cell(plan.one(backend=b, stencil=stencil, size=s), of(stencil)) for s in sizes] for b in ("aio", "mmap")}
        style.lines(ax, xs, series, unit, log_y=log)
        style.size_axis(ax, xs, sizes, "size of the two Buffers")
        ax.set_title(stencil, loc="left")
        for i, s in enumerate(sizes):
            a, m = series["aio"][i], series["mmap"][i]
            rows.append([stencil, s, show(a, form), show(m, form), show(over(a, m))])
    return figure, rows


def fig07(plan, published):
    figure, rows = _fig07(plan, lambda stencil: per_step, "seconds a step", "{:.4f}", log=True)
    low, high = published.value("aio-of-mmap-low"), published.value("aio-of-mmap-high")
    return Drawn("fig07", "Fig. 7: times of aio and mmap by problem size", figure, ["stencil", "Buffers", "aio s a step", "mmap s a step", "aio / mmap"], rows,
                 [f"Published: aio takes {low:.0%} to {high:.0%} of mmap's time; mmap with 19 points and 1 TiB was ended by the out-of-memory killer."])  # fmt: skip


def fig08(plan, published):
    figure, rows = _fig07(plan, lambda stencil: mflops, "effective Mflops", "{:.0f}")
    return Drawn("fig08", "Fig. 8: effective Mflops of aio and mmap by problem size", figure, ["stencil", "Buffers", "aio Mflops", "mmap Mflops", "aio / mmap"], rows,
                 [f"Counted as in the slides: {FLOPS['star7']} operations an update for 7 points, {FLOPS['edge19']} for 19. Published values are not given in the text."])  # fmt: skip


def fig09(plan, published):
    sizes = _sizes(plan, stencil="star7")
    limit = size_bytes(plan.select(stencil="star7")[0]["limit"])
    figure, ax = style.new(7.0, 3.4)
    series = {b: [cell(plan.one(backend=b, stencil="star7", size=s), mflops) for s in sizes] for b in ("aio", "mmap")}
    blocks = [plan.one(backend="mmap", stencil="star7", size=s) for s in sizes]
    shares = [g.first(lambda r: r.report["block_bytes"]) if g else None for g in blocks]
    names = [f"{s}\nBlocks {b / (1 << 20):.0f} MiB" if b else s for s, b in zip(sizes, shares)]
    style.bars(ax, names, series, "effective Mflops", value_format="{:.0f}")
    ax.set_xlabel(f"size of the two Buffers, and of the two Blocks in {plan.select(stencil='star7')[0]['limit']} of DRAM")
    rows = []
    for i, s in enumerate(sizes):
        a, m = series["aio"][i], series["mmap"][i]
        rows.append([s, f"{shares[i] / GIB:.3f}" if shares[i] else "", f"{(limit - shares[i]) / GIB:.3f}" if shares[i] else "", show(a, "{:.0f}"), show(m, "{:.0f}"), show(over(a, m))])
    return Drawn("fig09", "Fig. 9: effective Mflops at fixed DRAM, aio and mmap", figure, ["Buffers", "Blocks GiB", "rest of the DRAM GiB", "aio Mflops", "mmap Mflops", "aio / mmap"], rows,
                 ["Both methods have the same Blocks; what they leave of the DRAM is page cache for mmap. Published v" + published.values["fig9-trend"]["note"][1:] + "."])  # fmt: skip
