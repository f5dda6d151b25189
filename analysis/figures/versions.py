# SPDX-License-Identifier: BSD-3-Clause
"""Fig. 12: versions of the program with half of the DRAM that they need, and with enough."""
from analysis import style
from analysis.cells import Drawn, Rounds, cell, ratio, show
from analysis.measures import GIB, VERSIONS, moved_read, per_step, version
from analysis.stats import Stat

ORDER = [*(("mmap", a) for a in (*VERSIONS, "redundant")), *(("aio", a) for a in ("skewed", "skewed-y", "skewed-min", "redundant"))]
ROOMS = {"x2": "Buffers twice the DRAM (the paper's)", "x4": "Buffers four times the DRAM"}  # a plan may have one or both


def _rooms(plan):
    return {room: words for room, words in ROOMS.items() if plan.select(room=room)}


def _row(plan, backend, algorithm):
    """(cells of the table, {room: time of a step / time of aio5y with the same DRAM})."""
    enough = cell(plan.one(backend=backend, algorithm=algorithm, room="enough"), per_step)
    row, found = [version(backend, algorithm), f"{algorithm} on {backend}", show(enough, "{:.4f} s") if enough is not None else ""], {}
    for room in _rooms(plan):
        group = plan.one(backend=backend, algorithm=algorithm, room=room)
        value, found[room] = cell(group, per_step), ratio(group, plan.one(backend="aio", algorithm="skewed-min", room=room), per_step)
        read = cell(group, lambda r: None if moved_read(r) is None else moved_read(r) / r.steps / GIB)
        row += [show(value, "{:.4f} s"), show(found[room]) if isinstance(value, Stat) else "", show(read, "{:.3f}") if isinstance(value, Stat) else ""]
    return row, found


def fig12(plan, published):
    rounds, rooms = Rounds(), _rooms(plan)
    order = [which for which in ORDER if plan.select(backend=which[0], algorithm=which[1])]
    made = [_row(plan, *which) for which in order]
    series = {room: rounds.row(found[room] for _, found in made) for room in rooms}
    figure = None  # stays None if there is neither a value nor a failure to draw
    if any(v is not None for column in series.values() for v in column):
        figure, ax = style.new(style.TWO, 2.7)
        style.dots(ax, [version(*which).replace(", ", ",\n") for which in order], series, "time of a step / aio5y's", log=True, names=rooms, value_format="{:.3g}", base="aio5y, with the same DRAM")
        style.legend_above(figure, ax)
    header = ["version", "in memext", "per step, with enough DRAM", *(f"{room} {what}" for room in rooms for what in ("per step", "relative", "GiB read per step"))]
    return rounds.finish(Drawn("fig12", "Fig. 12: versions of algorithm-2 with mmap and aio", figure, header, [row for row, _ in made],
                               ["Times are relative to aio5y with the same DRAM. mmap1 and mmap1+opt work on the mapping, and all other versions use Blocks. The paper's text gives findings without numbers; the table of findings has them."]))  # fmt: skip
