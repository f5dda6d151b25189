# SPDX-License-Identifier: BSD-3-Clause
"""Side results of the papers: division schemes, enough DRAM, layout and work-share, slow and fast devices, HHRT."""
from analysis import style
from analysis.cells import TUNER_NAMES, Drawn, Rounds, cell, over, ratio, show
from analysis.measures import GIB, ON_MAPPING, SHORT, bench_rate, gupdates, per_step, seconds, typical_block_bytes, version

TEMPORAL = "temporal block size k (steps)"


def divisions(plan, published):
    """Figs. 16 to 18 in numbers. Nothing is run, so there is no figure."""
    rows = []
    for g in (g for g in plan.groups.values() if g["figure"] != "cuts"):
        used = cell(g, lambda r: r.report["dram_used_bytes"] / GIB)
        typical = cell(g, lambda r: typical_block_bytes(r) / GIB)
        p = g.first(lambda r: r.report["plan"], {})
        rows.append([f"Fig. {g['figure']}", g["case"] or "", g["division"] or "", f"by {p.get('by')}, bz {p.get('bz')}, bt {p.get('bt')}" if p else "", show(used, "{:.3f}"), show(typical, "{:.3f}"), show(over(used, typical), "{:.3f}")])
    return Drawn("divisions", "Figs. 16 to 18: division schemes and the size of the Blocks", None, ["figure", "case", "division", "Block", "both Blocks (GiB)", "both by the typical size (GiB)", "exact / typical"], rows,
                 ["memext planned these divisions and ran nothing. Bytes are counted, so one plan of each is enough. Balanced: all Blocks have the same by. Unbalanced: the same number of Blocks, but the last one is smaller because it carries the overlap of bt."])  # fmt: skip


def enough(plan, published):
    group, rounds = lambda b, a: plan.one(backend=b, algorithm=a), Rounds()
    quotients = [ratio(group("mmap", a), group("dram", a), seconds) for a in ON_MAPPING]
    figure, ax = style.new(style.ONE, 2.1)
    style.dots(ax, [version("mmap", a) for a in ON_MAPPING], {"ratio": rounds.row(quotients)}, "time on a mapped file / in plain memory", base="plain memory", names={"ratio": "mapped file that fits in DRAM"})
    style.legend_above(figure, ax)
    rows = [[version("mmap", a), show(cell(group("dram", a), seconds), "{:.2f}"), show(cell(group("mmap", a), seconds), "{:.2f}"), show(q, "{:.2f}")] for a, q in zip(ON_MAPPING, quotients)]
    return rounds.finish(Drawn("enough", "mmap1 and mmap1+opt with enough DRAM", figure, ["version", "plain memory s", "mapped file s", "mapped / plain"], rows,
                               ["The same program on anonymous memory, and on a mapped file that fits in DRAM. The paper says that both versions are then fast, and gives no number."]))  # fmt: skip


def largest(plan, published):
    rows = [[g.id, g["limit"] or "", str(len(g.runs)), str(len(g.done)), "; ".join(dict.fromkeys(r.failure for r in g.failures)) or "", show(cell(g, seconds), "{:.2f} s")] for g in plan.groups.values()]
    return Drawn("largest", "The largest problem with 19 points: mmap and aio", None, ["run", "DRAM limit", "repeats", "completed", "failures", "time"], rows, ["In the paper, the out-of-memory killer killed the run on mmap at 1 TiB in 64 GiB of DRAM."])


def layout(plan, published):
    rounds = Rounds()
    rows_of = {r: plan.one(what="layout", rows=r) for r in ("padded", "plain")}
    gain = ratio(rows_of["padded"], rows_of["plain"], bench_rate)
    figure, ax = style.new(style.ONE, 1.8)
    style.dots(ax, ["rows padded /\nnot padded"], {"speed": rounds.row([gain])}, "ratio of speeds in DRAM", base="equal", names={"speed": "speed with / without"})
    style.legend_above(figure, ax)
    rows = [["padded", show(cell(rows_of["padded"], bench_rate)), show(gain, "{:.2f}")], ["not padded", show(cell(rows_of["plain"], bench_rate)), "1"]]
    return rounds.finish(Drawn("layout", "Padded layout", figure, ["rows", "Gupdates/s", "speed, with / without"], rows,
                               ["The plain loop over a grid whose rows are a multiple of a page, with and without memext's padding of rows."]))  # fmt: skip


def devices(plan, published):
    names, rounds = list(dict.fromkeys(g["device"] for g in plan.groups.values())), Rounds()
    groups = {(d, a): [plan.one(algorithm=a, device=d, tuner=t) for t in ("manual", "blk")] for d in names for a in SHORT}
    gains = {key: ratio(*pair, seconds) for key, pair in groups.items()}
    figure, ax = style.new(style.ONE, 2.3)
    style.dots(ax, list(SHORT.values()), {f"{d} device": rounds.row(gains[d, a] for a in SHORT) for d in names}, "time with manual choice / with Blk-Tune", base="equal")
    style.legend_above(figure, ax)
    rows = [[d, SHORT[a], *(show(cell(g, seconds), "{:.2f} s") for g in pair), show(gains[d, a], "{:.2f}")] for (d, a), pair in groups.items()]
    return rounds.finish(Drawn("devices", "Manual choice and Blk-Tune on a slow and a fast device", figure, ["device", "algorithm", TUNER_NAMES["manual"], TUNER_NAMES["blk"], "manual / Blk-Tune"], rows,
                               ["The slow device is the fast one with limited bandwidth; DRAM and cores are the same. This differs from the papers' crest4 and crest6, whose values stand with Figs. 22 and 23."]))  # fmt: skip


def hhrt(plan, published):
    inside, beyond = ({int(g["k"]): g for g in plan.select(place=place)} for place in ("inside", "beyond"))
    base, rounds = next(iter(inside.values()), None), Rounds()
    ks = sorted(beyond)
    values = [ratio(beyond[k], base, gupdates) for k in ks]
    given = {k: published.value(n) / published.value("inside") for k, n in ((1, "k1-96gib"), (48, "best-96gib"))}
    figure, ax = style.new(style.ONE, 2.4)
    style.lines(ax, ks, {"redundant": rounds.row(values)}, "speed / speed in memory", names={"redundant": "1.5 times the DRAM"}, base="in memory", also=given.values())
    style.published_marks(ax, list(given), list(given.values()), "hhrt", "published")
    style.size_axis(ax, sorted({*ks, *given}), sorted({*ks, *given}), TEMPORAL)
    style.legend_above(figure, ax)
    rows = [[str(k), show(cell(beyond[k], per_step), "{:.4f} s"), show(v, "{:.2f}"), f"{given[k]:.3f}" if k in given else ""] for k, v in zip(ks, values)]
    return rounds.finish(Drawn("hhrt", "HHRT's table of k with two tiers: speed of problems larger than DRAM", figure, ["k", "time of a step", "speed / speed in memory", "HHRT, 96 GiB"], rows,
                               ["The slides have three tiers: GPU, host and flash. These runs have two: DRAM and flash. k is the width of the halo that is recomputed: algorithm-1 with bt = k. The published marks are k = 1 and the best k, for 96 GiB."]))  # fmt: skip


def ktable(plan, published):
    """Speed by k, with a panel for each size that also has the slides' points."""
    base, rounds, rows, ends = plan.one(gib=6), Rounds(), [], []
    sizes = sorted({int(g["gib"]) for g in plan.groups.values()} - {6})
    inside = published.value("6-1")
    given = {gib: {int(name.split("-")[1]): v["value"] for name, v in published.values.items() if name.split("-")[0] == str(gib)} for gib in sizes}
    ks = sorted({int(g["k"]) for g in plan.groups.values()})
    figure, axes = style.new(style.TWO, 2.2, columns=max(1, len(sizes)), squeeze=False, sharey=True)
    for ax, gib in zip(axes[0], sizes):
        values = [ratio(plan.one(gib=gib, k=k), base, gupdates) for k in ks]
        marks = {k: v / inside for k, v in given[gib].items() if v}
        ends.append(style.lines(ax, ks, {"measured": rounds.row(values)}, "speed / speed inside the device" if ax is axes[0, 0] else "", base="inside the device", also=marks.values()))
        style.published_marks(ax, list(marks), list(marks.values()), "hhrt", f"published {gib}")
        ticks = [k for k in sorted({*ks, *marks}) if k in (1, 8, 32, 96)]
        style.size_axis(ax, ticks, ticks, "")
        ax.set_title(f"{gib} GiB in the slides", loc="left")
        for k, v in zip(ks, values):
            group = plan.one(gib=gib, k=k)
            rows.append([str(gib), str(k), group["tier"] if group else "", show(cell(group, gupdates), "{:.3f}"), show(v, "{:.2f}"), f"{given[gib][k] / inside:.2f}" if given[gib].get(k) else "out of memory"])
    if ends:
        style.same_scale(axes[0], ends)
    figure.supxlabel(TEMPORAL, fontsize=7.5)
    style.legend_above(figure, *axes[0])
    return rounds.finish(Drawn("ktable", "HHRT's table of k, a model of three tiers: device, DRAM, flash", figure, ["size in the slides (GiB)", "k", "Buffers on", "Gupdates/s", "speed / speed inside the device", "the same, published (HHRT)"], rows,
                               ["Sizes are those of the slides; the runs are scaled down, with the memory of all tiers. On `host` this is a model: DRAM stands for a device. The plan chose the rates of bus and flash. They should make k = 1 as much slower than inside as in the slides. Runs at k = 1, where there are any, show how far that holds. A sweep of stream recomputes nothing; a process of HHRT recomputes a halo of k planes. "
                                "There is no mark where HHRT ran out of memory."]))  # fmt: skip
