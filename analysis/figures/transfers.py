# SPDX-License-Identifier: BSD-3-Clause
"""Beyond the papers: io_uring, and the depth of its queue."""
from analysis import style
from analysis.cells import Drawn, cell, show
from analysis.measures import GIB, counted, moved, size_bytes, system_s, wait_share


def uring(plan, published):
    groups = list(plan.groups.values())
    figure, (left, right) = style.new(7.4, 3.6, columns=2)
    labels = [g["variant"].replace("uring-", "uring\n") for g in groups]
    rate = [cell(g, lambda r: (r.report["read_bytes"] + r.report["write_bytes"]) / r.report["seconds"] / 1e9) for g in groups]
    system = [cell(g, lambda r: None if None in (*moved(r), *counted(r, "system_s")) else system_s(r) / (sum(moved(r)) / GIB)) for g in groups]
    style.bars(left, labels, {"transfer": rate}, "GB/s read and written")
    style.bars(right, labels, {"system": system}, "system CPU seconds per GiB")
    for ax in (left, right):
        ax.tick_params(axis="x", rotation=60, labelsize=7)
    rows = [[g["variant"], show(r, "{:.3f}"), show(s, "{:.4f}"), show(cell(g, lambda x: 100 * wait_share(x)), "{:.0f} %"), g.first(lambda x: x.report["device"]["note"], "") or ""] for g, r, s in zip(groups, rate, system)]
    return Drawn("uring", "io_uring and its options against libaio", figure, ["variant", "GB/s", "system CPU s per GiB", "waiting", "what the runtime had to do without"], rows, [])


def queue(plan, published):
    backends = list(dict.fromkeys(g["backend"] for g in plan.groups.values()))
    figure, axes = style.new(6.6, 3.4, columns=len(backends), squeeze=False, sharey=True)
    rows = []
    for ax, b in zip(axes[0], backends):
        depths = sorted({g["depth"] for g in plan.select(backend=b)})
        requests = sorted({g["request"] for g in plan.select(backend=b)}, key=size_bytes)
        series = {q: [cell(plan.one(backend=b, depth=d, request=q), lambda r: (r.report["read_bytes"] + r.report["write_bytes"]) / r.report["seconds"] / 1e9) for d in depths] for q in requests}
        style.lines(ax, depths, series, "GB/s read and written")
        style.size_axis(ax, depths, depths, "requests in flight")
        ax.set_title(b, loc="left")
        rows += [[b, q, *[show(v, "{:.2f}") for v in row]] for q, row in series.items()]
    style.same_top(axes[0])
    return Drawn("queue", "Queue depth and request size", figure, ["backend", "request", *[f"depth {d}" for d in depths]], rows, ["GB/s, read and written together."])
