# SPDX-License-Identifier: BSD-3-Clause
"""analysis/: every figure, and that it shows what was recorded."""
import copy
import struct

import numpy as np
import pytest
from recordings import ROOT, known, no_open_figures, recorded  # noqa: F401 (fixtures)

from analysis import figures, measures, seen, stats, style, timeline

PLANS = ("table2", "fig24", "fig05", "before-after", "fig06", "fig07", "fig12", "fig19", "fig22", "uring", "queue", "advice", "readahead", "dirty", "share", "divisions")


def test_what_is_recorded_has_a_plan(recorded):
    assert set(recorded) == set(PLANS) <= {p.stem for p in (ROOT / "experiments" / "plans").glob("*.toml")}


def test_recorded_timelines_are_of_today(recorded):
    """Every column that memext writes now, sampler_s among them; of a long and of short runs, sampling took less than a twentieth of a core."""
    lines = [seen.cached_timeline(run) for plan in recorded.values() for run in plan.runs if run.timeline_path]
    assert len(lines) >= 12 and all(0 < line.total("sampler_s") < 0.05 * line.duration_s for line in lines)


def bars_of(ax):
    """{label: heights} of a bar chart."""
    return {c.get_label(): [p.get_height() for p in c.patches] for c in ax.containers}


def dots_of(ax):
    """{gid: heights} of the dots that a logarithmic axis has instead."""
    return {line.get_gid(): list(line.get_ydata()) for line in ax.get_lines() if line.get_gid()}


def lines_of(figure):
    return {line.get_gid(): line for ax in figure.axes for line in ax.get_lines() if line.get_gid()}


def png_size(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize("draw, plan, values", figures.FIGURES, ids=[f[0].__name__ for f in figures.FIGURES])
def test_every_figure_is_drawn(recorded, known, draw, plan, values):
    drawn = draw(recorded[plan], known.get(values))
    for d in drawn if isinstance(drawn, list) else [drawn]:
        assert d.name and d.title and all(len(row) == len(d.header) for row in d.rows)
        if d.figure is None:
            continue
        width, height = png_size(style.image(d.figure, "png"))
        assert width > 600 and height > 300
        assert style.image(d.figure, "svg").lstrip().startswith(b"<?xml")
        assert not [ax for ax in d.figure.axes if ax.get_yscale() == "log" and ax.containers], "a bar's length means nothing on a logarithmic axis"
        painted = sum(len(ax.containers) + len(ax.collections) + len(ax.get_lines()) + len(ax.images) for ax in d.figure.axes)
        assert painted > 0, f"{d.name} is empty"


@pytest.mark.parametrize("draw, plan, values", [f for f in figures.FIGURES if f[0].__name__ in ("fig21", "fig22", "queue")], ids=lambda x: getattr(x, "__name__", ""))
def test_nothing_is_cut_where_panels_share_an_axis(recorded, known, draw, plan, values):
    """The first panel higher than the last, or the other way round: the top is above both."""
    results = copy.deepcopy(recorded[plan])
    for run in list(results.groups.values())[0].runs:
        for key in ("seconds", "read_bytes"):
            run.record["report"][key] *= 7
    for k in range(2):
        axes = draw(results, known.get(values)).figure.axes
        highest = max([p.get_height() for ax in axes for c in ax.containers for p in c.patches] + [v for ax in axes for line in ax.get_lines() for v in line.get_ydata()])
        assert all(ax.get_ylim()[1] > 1.1 * highest for ax in axes)
        for run in list(results.groups.values())[-1].runs:
            for key in ("seconds", "read_bytes"):
                run.record["report"][key] *= 100


def test_fig05_draws_the_medians(recorded, known):
    plan = recorded["fig05"]
    drawn = figures.fig05(plan, known["fig05"])
    heights = dots_of(drawn.figure.axes[0])
    base = plan.one(method="normal").stat(measures.per_step).median
    expected = [plan.one(method=m, temporal=True).stat(measures.per_step).median / base for m in ("aio", "uring", "mmap", "swap", "stream")]
    assert heights["with temporal blocking"] == pytest.approx(expected)
    given = {name: row for name, row in heights.items() if "published" in name}
    assert given == {"with temporal blocking published, slides": [1.51, 1.58, 2.22], "without temporal blocking published, slides": [53.8]}
    assert ["swap", "with"] in [row[:2] for row in drawn.rows] and "2.22 (slides)" in [row[4] for row in drawn.rows]


def test_fig06_draws_one_line_a_method(recorded, known):
    plan = recorded["fig06"]
    lines = lines_of(figures.fig06(plan, known["fig06"]).figure)
    assert set(lines) == {"aio", "aio5y", "stream", "published"}
    assert list(lines["published"].get_xydata()[0]) == [16 * measures.size_bytes(plan.select(method="aio")[0]["limit"]), 0.87]
    sizes = sorted((g["size"] for g in plan.select(method="stream")), key=measures.size_bytes)
    assert list(lines["stream"].get_xdata()) == [measures.size_bytes(s) for s in sizes]


def test_fig08_counts_operations_as_the_slides_do(recorded, known):
    # the slides: 2046 x 2048 x 1024 cells, 256 steps in 1847.55 s are 5945.38 Mflops
    assert 2046 * 2048 * 1024 * 256 * measures.FLOPS["star7"] / 1847.55 * 1e-6 == pytest.approx(5945.38, rel=1e-4)


def test_fig12_compares_steps(recorded, known):
    plan = recorded["fig12"]
    heights = dots_of(figures.fig12(plan, known["fig12"]).figure.axes[0])
    base, mmap1 = (plan.one(backend=b, algorithm=a, room="x4").stat(measures.per_step).median for b, a in (("aio", "skewed-min"), ("mmap", "direct-skewed")))
    assert heights["x4"][0] == pytest.approx(mmap1 / base) and len(heights["x2"]) == 10


def test_table2_says_what_was_planned(recorded, known):
    rows = figures.table2(recorded["table2"], known["table2"]).rows
    assert ["[1025, 2048, 500, 1, 160]"] * 2 == rows[0][2:4] and rows[-1][2] == "110.25" and {row[4] for row in rows} == {"equal"}


def test_bytes_moved_are_those_of_the_process_and_the_device(recorded):
    plan = recorded["advice"]
    run = plan.one(backend="mmap", algorithm="stream", advice="none").done[0]
    line = timeline.read(run.timeline_path)
    assert measures.moved(run) == (run.report["kernel"]["storage_read_bytes"], line.total("device_write_bytes"))
    run = plan.one(backend="swap", algorithm="stream", advice="none").done[0]
    assert measures.moved(run) == (run.report["kernel"]["swap_in_bytes"], run.report["kernel"]["swap_out_bytes"])
    run = plan.one(backend="uring", algorithm="stream").done[0]
    assert measures.moved_read(run) == run.report["read_bytes"] and measures.amplification(run) == pytest.approx(1, abs=0.001)


def test_the_same_schedule_and_blocks_everywhere_in_a_study(recorded):
    """What is compared with explicit I/O has its plan: algorithm, Block, DRAM of the Blocks."""
    for algorithm in ("stream", "skewed-min"):
        plans = {tuple(r.report["plan"][k] for k in ("by", "bz", "bt", "slab")) + (r.report["block_bytes"],) for r in recorded["advice"].runs if r.params["algorithm"] == algorithm}
        assert len(plans) == 1
    for name, by in (("share", "share"), ("fig07", "size")):
        plan = recorded[name]
        for choice in dict.fromkeys(g[by] for g in plan.groups.values()):
            assert len({r.report["block_bytes"] for g in plan.select(**{by: choice}) for r in g.done}) == 1


def test_heat_maps_have_a_row_a_run(recorded, known):
    """Of the recorded runs, those with a timeline: three panels each, and what was seen in the looks at the residency, a column of dots each."""
    drawn = {d.name: d for d in figures.heat(recorded["advice"], None)}
    assert [row[0] for row in drawn["heat-mmap-stream"].rows] == ["uring", "none", "schedule"]
    assert [row[2] for row in drawn["heat-mmap-stream"].rows] == ["8", "12", "9"]
    assert [row[3] for row in drawn["heat-mmap-stream"].rows][0] == "0.0 %" and all(0 < float(row[3].split()[0]) < 100 for row in drawn["heat-mmap-stream"].rows[1:])
    line = timeline.read(recorded["advice"].one(backend="mmap", algorithm="stream", advice="schedule").done[0].timeline_path)
    meshes = [m for ax in drawn["heat-mmap-stream"].figure.axes for m in ax.collections if m.get_gid() == "source"]
    assert len(meshes) == 3 and np.array_equal(meshes[2].get_array().ravel(), line.residency[line.looks, 0, :].ravel()) and set(meshes[2].get_offsets()[:, 0]) == set(line.t[line.looks])
    for draw in (figures.heat_readahead, figures.heat_dirty, figures.heat_share):
        assert len(draw(recorded[draw.__name__.replace("heat_ahead", "readahead").replace("heat_", "")], None)) == 1


def test_fig21_bytes_are_those_of_the_reports(recorded, known):
    plan = recorded["fig19"]
    left = figures.fig21(plan, known["fig19"]).figure.axes[0]
    run = plan.one(algorithm="skewed-min", tuner="blk").done[0]
    assert bars_of(left)["read"][2] == pytest.approx(run.report["read_bytes"] / measures.GIB)


def test_a_failed_run_is_shown_as_failed(recorded, known):
    plan = copy.deepcopy(recorded["fig07"])
    for run in plan.one(backend="mmap", stencil="star7", size="1GiB").runs:
        run.record.update(status="failed", stderr="limit-memory: out of memory: the kernel killed 1 process", report=None)
    drawn = figures.fig07(plan, known["fig07"])
    assert any("failed: killed: out of memory" in str(c) for row in drawn.rows for c in row)
    assert any(line.get_gid() == "mmap failed" for ax in drawn.figure.axes for line in ax.get_lines())
    texts = [t.get_text() for ax in drawn.figure.axes for t in ax.texts]
    assert "killed: out of memory" in texts


def test_sources_of_published_values_are_told_apart():
    figure, ax = style.new()
    style.bars(ax, ["a", "b"], {"x": [stats.stat([1.0]), stats.stat([2.0])]}, "s", log=True, published={"x": [(1.5, "iwapt2016"), (2.5, "slides")]})
    marks = {line.get_gid(): line.get_marker() for line in ax.get_lines() if "published" in (line.get_gid() or "")}
    assert len(set(marks.values())) == 2 and set(marks) == {"x published, iwapt2016", "x published, slides"}


def test_bars_mark_failures():
    figure, ax = style.new()
    style.bars(ax, ["a", "b"], {"x": [stats.stat([1.0, 3.0]), "no end within 7 s"]}, "s")
    assert bars_of(ax) == {"x": [2.0]} and any("no end within 7 s" in t.get_text() for t in ax.texts)
