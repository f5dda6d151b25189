# SPDX-License-Identifier: BSD-3-Clause
"""What the papers say beside their main line: division schemes, enough DRAM, layout and work-share, slow and fast devices, HHRT."""
from analysis import style
from analysis.cells import Drawn, cell, over, show
from analysis.measures import GIB, ON_MAPPING, SHORT, bench_rate, gupdates, per_step, seconds, typical_block_bytes, version


def divisions(plan, published):
    """Figs. 16 to 18 in numbers: no run, so no figure."""
    rows = []
    for g in (g for g in plan.groups.values() if g["figure"] != "cuts"):
        used = cell(g, lambda r: r.report["dram_used_bytes"] / GIB)
        typical = cell(g, lambda r: typical_block_bytes(r) / GIB)
        p = g.first(lambda r: r.report["plan"], {})
        rows.append([f"Fig. {g['figure']}", g["case"] or "", g["division"] or "", f"by {p.get('by')}, bz {p.get('bz')}, bt {p.get('bt')}" if p else "", show(used, "{:.3f}"), show(typical, "{:.3f}"), show(over(used, typical), "{:.3f}")])
    return Drawn("divisions", "Figs. 16 to 18: division schemes and the size of the Blocks", None, ["figure", "case", "division", "Block", "both Blocks GiB", "by the typical size GiB", "exact / typical"], rows,
                 ["Planned, not run. Balanced: Blocks of equal by; unbalanced: as many, the last one smaller, since it carries the overlap of bt."])  # fmt: skip


def enough(plan, published):
    figure, ax = style.new(5.6, 3.2)
    backends = ["dram", "mmap"]
    series = {b: [cell(plan.one(backend=b, algorithm=a), seconds) for a in ON_MAPPING] for b in backends}
    style.bars(ax, [version("mmap", a) for a in ON_MAPPING], series, "seconds", names={"dram": "plain memory", "mmap": "mapped file, enough DRAM"})
    rows = [[version("mmap", a), show(series["dram"][i], "{:.2f}"), show(series["mmap"][i], "{:.2f}"), show(over(series["mmap"][i], series["dram"][i]), "{:.2f}")] for i, a in enumerate(ON_MAPPING)]
    return Drawn("enough", "mmap1 and mmap1+opt with enough DRAM", figure, ["version", "plain memory s", "mapped file s", "mapped / plain"], rows, ["The same program on anonymous memory and on a mapped file that the DRAM holds."])


def largest(plan, published):
    rows = [[g.id, g["limit"] or "", str(len(g.runs)), str(len(g.done)), "; ".join(dict.fromkeys(r.failure for r in g.failures)) or "", show(cell(g, seconds), "{:.2f} s")] for g in plan.groups.values()]
    return Drawn("largest", "The largest problem with 19 points: mmap and aio", None, ["run", "DRAM limit", "repeats", "ended", "failures", "time"], rows, ["The paper's mmap was ended by the out-of-memory killer at 1 TiB in 64 GiB of DRAM."])


def layout(plan, published):
    figure, (left, right) = style.new(6.8, 3.2, columns=2)
    rates = [cell(plan.one(what="layout", rows=r), bench_rate) for r in ("padded", "plain")]
    times = [cell(plan.one(what="share", algorithm=a), seconds) for a in ("direct-skewed-opt", "direct-skewed")]
    style.bars(left, ["rows padded", "not padded"], {"rate": rates}, "Gupdates/s in DRAM")
    style.bars(right, ["shared front", "level after level"], {"time": times}, "seconds in DRAM")
    left.set_title("layout", loc="left")
    right.set_title("work-share", loc="left")
    rows = [["layout", "padded", show(rates[0])], ["layout", "not padded", show(rates[1])], ["work-share", "shared front", show(times[0], "{:.2f} s")], ["work-share", "level after level", show(times[1], "{:.2f} s")]]
    return Drawn("layout", "Padded layout and work-share, each by itself", figure, ["what", "how", "measured"], rows, ["Layout: the plain loop over a grid whose rows are a multiple of a page, with and without the padding that memext adds (Gupdates/s)."])


def devices(plan, published):
    names = list(dict.fromkeys(g["device"] for g in plan.groups.values()))
    figure, axes = style.new(7.0, 3.3, columns=len(names), squeeze=False, sharey=True)
    rows = []
    for ax, d in zip(axes[0], names):
        series = {t: [cell(plan.one(algorithm=a, device=d, tuner=t), seconds) for a in SHORT] for t in ("manual", "blk")}
        style.bars(ax, list(SHORT.values()), series, "seconds")
        ax.set_title(f"{d} device", loc="left")
        rows += [[d, SHORT[a], show(series["manual"][i], "{:.2f} s"), show(series["blk"][i], "{:.2f} s"), show(over(series["manual"][i], series["blk"][i]), "{:.2f}")] for i, a in enumerate(SHORT)]
    style.same_top(axes[0])
    return Drawn("devices", "Manual choice and Blk-Tune on a slow and a fast device", figure, ["device", "algorithm", "manual", "Blk-Tune", "manual / Blk-Tune"], rows, ["The slow device is the same one with its bandwidth limited; DRAM and cores are the same, unlike the papers' crest4 and crest6."])


def hhrt(plan, published):
    inside, beyond = ({int(g["k"]): g for g in plan.select(place=place)} for place in ("inside", "beyond"))
    base = cell(next(iter(inside.values()), None), gupdates)
    ks = sorted(beyond)
    figure, ax = style.new(6.4, 3.4)
    values = [over(cell(beyond[k], gupdates), base) for k in ks]
    style.lines(ax, ks, {"redundant": values}, "speed, of that in memory", names={"redundant": "1.5 times the DRAM"})
    given = {1: "k1-96gib", 48: "best-96gib"}
    marks = [(k, published.value(n) / published.value("inside")) for k, n in given.items()]
    ax.plot([k for k, _ in marks], [v for _, v in marks], linestyle="", marker="D", markerfacecolor="white", markeredgecolor=style.BLACK, label="published (HHRT, 96 GiB)").pop().set_gid("published")
    ax.axhline(1.0, color=style.BLACK, linewidth=1, linestyle="--")
    ax.legend(loc="upper left")
    style.size_axis(ax, ks, ks, "temporal block size (k; bt in memext)")
    rows = [[str(k), show(cell(beyond[k], per_step), "{:.4f} s"), show(v, "{:.2f}")] for k, v in zip(ks, values)]
    return Drawn("hhrt", "HHRT's table of k: speed beyond the upper memory", figure, ["k", "time a step", "speed, of that in memory"], rows, ["DRAM and flash stand for the GPU's and the host's memory of the slides. k is the width of the halo that is recomputed: algorithm-1 with bt = k."])


def ktable(plan, published):
    """Speed by k, a line for each size, and the slides' points in its colour."""
    base = cell(plan.one(gib=6), gupdates)
    sizes = sorted({int(g["gib"]) for g in plan.groups.values()} - {6})
    ks = sorted({int(g["k"]) for g in plan.groups.values()})
    series = {f"{gib} GiB": [over(cell(plan.one(gib=gib, k=k), gupdates), base) for k in ks] for gib in sizes}
    figure, ax = style.new(7.0, 3.8)
    style.lines(ax, ks, series, "speed, of that inside the device")
    inside, rows = published.value("6-1"), []
    for i, gib in enumerate(sizes):
        given = {k: published.value(f"{gib}-{k}") for k in ks if f"{gib}-{k}" in published.values}
        ax.plot([k for k, v in given.items() if v], [v / inside for v in given.values() if v], linestyle="", marker="D", markerfacecolor="white", markeredgecolor=style.colour(f"{gib} GiB", i)).pop().set_gid(f"published {gib}")
        for k, v in zip(ks, series[f"{gib} GiB"]):
            group = plan.one(gib=gib, k=k)
            rows.append([str(gib), str(k), group["tier"] if group else "", show(cell(group, gupdates), "{:.3f}"), show(v, "{:.2f}"), f"{given[k] / inside:.2f}" if given.get(k) else "out of memory"])
    ax.axhline(1.0, color=style.BLACK, linewidth=1, linestyle="--")
    style.size_axis(ax, ks, ks, "temporal block size (k; bt in memext); diamonds: HHRT")
    return Drawn("ktable", "HHRT's table of k: device, DRAM, flash", figure, ["size in GiB, scaled down", "k", "Buffers on", "Gupdates/s", "of that inside", "HHRT"], rows,
                 ["Sizes are the slides', scaled down with the memory of all tiers. On `host`, DRAM stands for a device whose bus has a rate; a sweep of stream recomputes nothing, where a process of HHRT recomputes a halo of k planes."])  # fmt: skip
