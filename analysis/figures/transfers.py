# SPDX-License-Identifier: BSD-3-Clause
"""Studies that the papers do not have: io_uring, and the depth of its queue."""
from analysis import style
from analysis.cells import METHODS, Drawn, Rounds, cell, ratio, show
from analysis.measures import GIB, counted, moved, seconds, size_bytes, system_s, wait_share

VARIANTS = {"aio": "libaio", "uring": "io_uring", "uring-no-register": "nothing registered", "uring-sqpoll": "kernel thread submits", "uring-iopoll": "completions polled", "uring-uncached": "buffered, uncached"}


def _rate(run):
    """GB/s, both ways."""
    return (run.report["read_bytes"] + run.report["write_bytes"]) / run.report["seconds"] / 1e9


def _note(group):
    """The report's note on features that the runtime could not use."""
    return group.first(lambda r: r.report["device"]["note"], "") or ""


def label_of(group):
    """The name of a variant by what it did. If the device cannot poll, a run that asks for polling is the same as plain io_uring."""
    name = group["variant"]
    return "io_uring again: no polling here" if name == "uring-iopoll" and "not possible" in _note(group) else VARIANTS.get(name, name)


def against_itself(again, first):
    """A sentence on how far two runs of the same configuration differ; [] unless both exist."""
    found = ratio(again, first, seconds)
    return [f"{again.id} is the same configuration as {first.id}. It takes {show(found, '{:.2f}')} times as long; differences of this size are noise."] if hasattr(found, "median") else []


def uring(plan, published):
    groups, rounds = list(plan.groups.values()), Rounds()
    figure, axes = style.new(style.TWO, 2.6, columns=2)
    labels = [label_of(g) for g in groups]
    rate = [cell(g, _rate, timed=True) for g in groups]
    system = [cell(g, lambda r: None if None in (*moved(r), *counted(r, "system_s")) else system_s(r) / (sum(moved(r)) / GIB)) for g in groups]
    style.bars(axes[0], labels, {"transfer": rounds.row(rate)}, "GB/s read and written", value_format="{:.2f}")
    style.bars(axes[1], labels, {"system": rounds.row(system)}, "system CPU time (s per GiB)", value_format="{:.2f}")
    for ax in axes:
        style.slanted(ax)
    rows = [[g["variant"], show(r, "{:.3f}"), show(s, "{:.4f}"), show(cell(g, lambda x: 100 * wait_share(x)), "{:.0f} %"), _note(g)] for g, r, s in zip(groups, rate, system)]
    polled, plain = plan.one(variant="uring-iopoll"), plan.one(variant="uring")
    same = against_itself(polled, plain) if polled and plain and "not possible" in _note(polled) else []
    return rounds.finish(Drawn("uring", "io_uring and its options against libaio", figure, ["variant", "GB/s", "system CPU s per GiB", "waiting", "features that were not available"], rows, ["The papers do not use io_uring.", *same]))


def in_flight(run):
    return run.report["device"].get("peak_in_flight")


def reached(group, depth):
    """The rate, if the run reached this many requests in flight; else a Gap that says how many it reached."""
    value, most = cell(group, _rate, timed=True), group.stat(in_flight) if group else None
    return style.Gap(f"at most {most.median:g} in flight") if most and most.median < int(depth) and hasattr(value, "median") else value


DEPTHS_NOTE = "GB/s counts bytes read and written. The depth is the requested one. The point is left out if a run never had that many requests in flight. The papers have no such values."


def queue(plan, published):
    backends = list(dict.fromkeys(g["backend"] for g in plan.groups.values()))
    rounds, rows, ends = Rounds(), [], []
    figure, axes = style.new(style.TWO, 2.4, columns=len(backends), squeeze=False, sharey=True)
    for ax, b in zip(axes[0], backends):
        depths = sorted({g["depth"] for g in plan.select(backend=b)})
        requests = sorted({g["request"] for g in plan.select(backend=b)}, key=size_bytes)
        groups = {q: [plan.one(backend=b, depth=d, request=q, again=None) for d in depths] for q in requests}
        series = {q: [reached(g, d) for g, d in zip(row, depths)] for q, row in groups.items()}
        names = {q: f"requests of {q.replace('KiB', ' KiB').replace('MiB', ' MiB')}" for q in requests}
        ends.append(style.lines(ax, depths, {q: rounds.row(row) for q, row in series.items()}, "GB/s read and written" if ax is axes[0, 0] else "", names=names))
        style.size_axis(ax, depths, depths, "requests in flight")
        ax.set_title(METHODS.get(b, b), loc="left")
        for q, row in series.items():
            rows.append([b, q, "GB/s", *[show(v, "{:.2f}") for v in row]])
            rows.append([b, q, "most in flight", *[show(cell(g, in_flight), "{:.0f}") for g in groups[q]]])
    twice = [(again, plan.one(backend=again["backend"], depth=again["depth"], request=again["request"], again=None)) for again in plan.select(again="yes")]
    same = [text for again, first in twice if first for text in against_itself(again, first)]
    style.same_scale(axes[0], ends)
    style.legend_above(figure, *axes[0])
    return rounds.finish(Drawn("queue", "Queue depth and request size", figure, ["backend", "request", "measured", *[f"depth {d}" for d in depths]], rows, [DEPTHS_NOTE, *same]))
