# SPDX-License-Identifier: BSD-3-Clause
"""Beyond the papers: io_uring, and the depth of its queue."""
from analysis import style
from analysis.cells import METHODS, Drawn, Rounds, cell, show
from analysis.measures import GIB, counted, moved, size_bytes, system_s, wait_share

VARIANTS = {"aio": "libaio", "uring": "io_uring", "uring-no-register": "nothing registered", "uring-sqpoll": "kernel thread submits", "uring-iopoll": "completions polled", "uring-uncached": "buffered, uncached"}


def _rate(run):
    """GB/s, both ways."""
    return (run.report["read_bytes"] + run.report["write_bytes"]) / run.report["seconds"] / 1e9


def uring(plan, published):
    groups, rounds = list(plan.groups.values()), Rounds()
    figure, axes = style.new(style.TWO, 2.6, columns=2)
    labels = [VARIANTS.get(g["variant"], g["variant"]) for g in groups]
    rate = [cell(g, _rate) for g in groups]
    system = [cell(g, lambda r: None if None in (*moved(r), *counted(r, "system_s")) else system_s(r) / (sum(moved(r)) / GIB)) for g in groups]
    style.bars(axes[0], labels, {"transfer": rounds.row(rate)}, "GB/s read and written", value_format="{:.2f}")
    style.bars(axes[1], labels, {"system": rounds.row(system)}, "system CPU time (s per GiB)", value_format="{:.2f}")
    for ax in axes:
        style.slanted(ax)
    rows = [[g["variant"], show(r, "{:.3f}"), show(s, "{:.4f}"), show(cell(g, lambda x: 100 * wait_share(x)), "{:.0f} %"), g.first(lambda x: x.report["device"]["note"], "") or ""] for g, r, s in zip(groups, rate, system)]
    return rounds.finish(Drawn("uring", "io_uring and its options against libaio", figure, ["variant", "GB/s", "system CPU s per GiB", "waiting", "what the runtime had to do without"], rows, ["The papers have no io_uring."]))


def queue(plan, published):
    backends = list(dict.fromkeys(g["backend"] for g in plan.groups.values()))
    rounds, rows, ends = Rounds(), [], []
    figure, axes = style.new(style.TWO, 2.4, columns=len(backends), squeeze=False, sharey=True)
    for ax, b in zip(axes[0], backends):
        depths = sorted({g["depth"] for g in plan.select(backend=b)})
        requests = sorted({g["request"] for g in plan.select(backend=b)}, key=size_bytes)
        series = {q: [cell(plan.one(backend=b, depth=d, request=q), _rate) for d in depths] for q in requests}
        names = {q: f"requests of {q.replace('KiB', ' KiB').replace('MiB', ' MiB')}" for q in requests}
        ends.append(style.lines(ax, depths, {q: rounds.row(row) for q, row in series.items()}, "GB/s read and written" if ax is axes[0, 0] else "", names=names))
        style.size_axis(ax, depths, depths, "requests in flight")
        ax.set_title(METHODS.get(b, b), loc="left")
        rows += [[b, q, *[show(v, "{:.2f}") for v in row]] for q, row in series.items()]
    style.same_scale(axes[0], ends)
    style.legend_above(figure, *axes[0])
    return rounds.finish(Drawn("queue", "Queue depth and request size", figure, ["backend", "request", *[f"depth {d}" for d in depths]], rows, ["GB/s, read and written together. The papers have no such values."]))
