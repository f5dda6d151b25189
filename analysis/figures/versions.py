# SPDX-License-Identifier: BSD-3-Clause
"""Fig. 12: versions of the program with half and a quarter of the DRAM that they need."""
from analysis import style
from analysis.cells import Drawn, cell, over, show
from analysis.measures import GIB, VERSIONS, moved_read, per_step, version
from analysis.stats import Stat


def fig12(plan, published):
    labels, columns, rows = [], {"x2": [], "x4": []}, []
    order = [("mmap", a) for a in (*VERSIONS, "redundant")] + [("aio", a) for a in ("skewed", "skewed-y", "skewed-min", "redundant")]
    base = {room: cell(plan.one(backend="aio", algorithm="skewed-min", room=room), per_step) for room in columns}
    for backend, algorithm in order:
        labels.append(version(backend, algorithm).replace(", ", ",\n"))
        enough = cell(plan.one(backend=backend, algorithm=algorithm, room="enough"), per_step)
        row = [version(backend, algorithm), f"{algorithm} on {backend}", show(enough, "{:.4f} s") if enough is not None else ""]
        for room in columns:
            group = plan.one(backend=backend, algorithm=algorithm, room=room)
            value = cell(group, per_step)
            columns[room].append(over(value, base[room]))
            read = cell(group, lambda r: None if moved_read(r) is None else moved_read(r) / r.steps / GIB)
            row += [show(value, "{:.4f} s"), show(columns[room][-1]) if isinstance(value, Stat) else "", show(read, "{:.3f}") if isinstance(value, Stat) else ""]
        rows.append(row)
    figure = None  # where neither a value nor a failure is there to be drawn
    if any(v is not None for column in columns.values() for v in column):
        figure, ax = style.new(7.4, 3.9)
        style.bars(ax, labels, columns, "time per step, relative to aio5y", log=True, names={"x2": "Buffers twice the DRAM (the papers')", "x4": "Buffers four times the DRAM"}, value_format="{:.2g}")
        ax.tick_params(axis="x", labelsize=7)
    header = ["version", "in memext", "enough DRAM, per step", "x2 per step", "x2 relative", "x2 GiB read per step", "x4 per step", "x4 relative", "x4 GiB read per step"]
    return Drawn("fig12", "Fig. 12: versions of algorithm-2 with mmap and aio", figure, header, rows,
                 ["Relative to aio5y with the same DRAM. mmap1 and mmap1+opt work on the mapping, the others through Blocks. Published values are not given in the text; the findings are, see the verdicts."])  # fmt: skip
