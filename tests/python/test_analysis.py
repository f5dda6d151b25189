# SPDX-License-Identifier: BSD-3-Clause
"""analysis/: parsers, schema, statistics, figures and verdicts, on small recorded results (tests/data/recorded) and on made-up ones."""
import copy
import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from analysis import cells, checks, claim, closeness, figures, heatmaps, measures, published, report, results, stats, style, timeline, verdicts  # noqa: E402

RECORDED = ROOT / "tests" / "data" / "recorded"


@pytest.fixture(scope="module")
def recorded():
    return results.read_all(RECORDED)


@pytest.fixture(scope="module")
def known():
    return published.read_all()


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    style.plt.close("all")


# ------------------------------------------------------------------ statistics


def test_median_and_spread():
    # median of an even count is the mean of the middle two; the spread is (max - min) / median
    assert stats.median([3, 1, 2]) == 2 and stats.median([4, 1, 2, 3]) == 2.5
    s = stats.stat([2.0, 1.0, 4.0])
    assert (s.median, s.low, s.high, s.n) == (2.0, 1.0, 4.0, 3) and s.spread == 1.5
    assert stats.stat([]) is None and stats.stat([None]) is None
    with pytest.raises(ValueError):
        stats.median([])


def test_scaled_keeps_low_below_high():
    s = stats.stat([1.0, 2.0, 4.0]).scaled(0.5)
    assert (s.low, s.median, s.high) == (0.5, 1.0, 2.0)
    assert stats.stat([1.0, 2.0]).scaled(-1).low == -2.0


def test_a_ratio_carries_the_uncertainty_of_both():
    """From the smallest by the largest to the largest by the smallest; of itself it is 1; failed repeats of either count."""
    a, b = stats.stat([2.0, 3.0, 4.0]), stats.replace(stats.stat([1.0, 2.0]), failed=1)
    assert a.over(b) == stats.Stat(2.0, 1.0, 4.0, 2, 1) and a.over(a) == stats.Stat(1.0, 1.0, 1.0, 3)
    assert cells.over(a, b) == a.over(b) and cells.over("no disk", b) == "no disk" and cells.over(None, b) is None


def test_variation():
    assert stats.variation([5, 5, 5]) == 0 and stats.variation([0, 0]) is None
    assert stats.variation([1, 3]) == pytest.approx(0.5)


# ------------------------------------------------------------------ schema


def good_run():
    with open(RECORDED / "fig05" / "raw.jsonl") as file:
        return next(r for r in map(json.loads, file) if r["kind"] == "run" and r["status"] == "done")


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda r: r.update(schema=2), "schema 2"),
        (lambda r: r.update(kind="walk"), "kind"),
        (lambda r: r.update(status="fine"), "status"),
        (lambda r: r.pop("command"), "no 'command'"),
        (lambda r: r.update(repeat="0"), "'repeat' is str"),
        (lambda r: r["report"].pop("updates_per_second"), "updates_per_second"),
        (lambda r: r["report"]["time"].pop("wait_s"), "wait_s"),
    ],
)
def test_schema_refuses(change, says):
    record = good_run()
    results.check_record("x", record)
    change(record)
    with pytest.raises(results.SchemaError, match=says):
        results.check_record("x", record)


def write_plan(folder, records):
    folder.mkdir(parents=True)
    (folder / "raw.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    return results.read_plan(folder)


def test_the_last_command_of_a_configuration_counts(tmp_path):
    old, new, again = good_run(), good_run(), good_run()
    old.update(key="old", repeat=1, wall_s=100.0)
    new.update(key="new", repeat=0, wall_s=1.0)
    again.update(key="new", repeat=0, wall_s=2.0)  # a retry of the same
    plan = write_plan(tmp_path / "p", [old, new, again])
    assert [r.wall_s for r in plan.runs] == [2.0]


def test_a_line_under_way_is_left_out_and_a_broken_one_is_an_error(tmp_path):
    line = json.dumps(good_run())
    path = tmp_path / "raw.jsonl"
    path.write_text(line + "\n" + line[:50])
    assert len(results.read_records(path)) == 1
    path.write_text(line[:50] + "\n" + line + "\n")
    with pytest.raises(results.SchemaError, match="raw.jsonl:1"):
        results.read_records(path)


def test_runs_that_the_plan_has_no_longer_are_left_out(tmp_path):
    """The newest start of the runner says which runs the plan has, and in what order."""
    records = []
    for name in ("old", "b", "a"):
        r = good_run()
        r.update(id=name, key=name)
        records.append(r)
    with open(RECORDED / "fig05" / "raw.jsonl") as file:
        session = json.loads(file.readline())
    assert [g for g in write_plan(tmp_path / "all", [session | {"runs": None}, *records]).groups] == ["old", "b", "a"]
    assert [g for g in write_plan(tmp_path / "some", [session | {"runs": ["a", "b", "c"]}, *records]).groups] == ["a", "b"]


def test_failures_are_named(tmp_path):
    records = [good_run() for _ in range(3)]
    for i, (r, status, text, code) in enumerate(zip(records, ("timeout", "failed", "failed"), ("", "limit-memory: out of memory: the kernel killed 1 process", "one\nlast words\n"), (None, 137, 3))):
        r.update(id=f"r{i}", key=f"k{i}", status=status, stderr=text, exit=code, report=None, timeout_s=7)
    plan = write_plan(tmp_path / "p", records)
    assert [g.failure for g in plan.groups.values()] == ["no end within 7 s", "killed: out of memory", "last words"]
    assert all(cells.cell(g, measures.seconds) == g.failure for g in plan.groups.values())


def test_some_failed_repeats_are_counted(tmp_path):
    """Of three repeats one failed: the median is of two, and the table and the figure say that one failed."""
    records = [good_run() for _ in range(3)]
    for k, r in enumerate(records):
        r.update(repeat=k, id="r", key="k")
    records[1].update(status="failed", stderr="no disk", report=None)
    value = cells.cell(write_plan(tmp_path / "p", records).groups["r"], measures.seconds)
    assert (value.n, value.failed) == (2, 1) and cells.show(value).endswith("n=2, 1 failed)")
    figure, ax = style.new()
    style.bars(ax, ["r"], {"x": [value]}, "s")
    assert "×1" in [text.get_text() for text in ax.texts]


def test_missing_counters_are_gaps(tmp_path):
    """A report without a counter, and a mapping whose writes nobody counted: no zero and no failure, in tables and figures."""
    record = good_run()
    del record["report"]["kernel"]["storage_read_bytes"]
    group = next(iter(write_plan(tmp_path / "p", [record]).groups.values()))
    value = cells.cell(group, measures.gib(measures.moved_read))
    assert isinstance(value, style.Gap) and cells.show(value) == "not counted" and measures.amplification(group.done[0]) is None
    group.done[0].record["report"].update(backend="mmap")
    assert measures.moved(group.done[0]) == (None, None)
    group.done[0].record["report"].update(backend="swap", layout={"buffer_bytes": 1 << 40})
    group.done[0].record["limit"] = "1GiB"
    assert measures.moved(group.done[0]) == (None, None)  # 0 in and 0 out where the Buffers exceed the memory
    figure, ax = style.new()
    style.bars(ax, ["r"], {"x": [value]}, "GiB")
    assert not ax.patches and [text.get_text() for text in ax.texts] == ["not counted"]


def test_needed_bytes_on_the_mapping():
    # direct: one Buffer read and one written a step; skewed on the mapping: a sweep
    run = good_run()
    run["report"].update(predicted_read_bytes=0, predicted_write_bytes=0, steps_done=6)
    run["report"]["layout"]["buffer_bytes"] = 100
    run["report"]["plan"].update(algorithm="direct", bt=1)
    assert results.Run(run, Path()).needed_bytes == (600, 600)
    run["report"]["plan"].update(algorithm="direct-skewed", bt=4)
    assert results.Run(run, Path()).needed_bytes == (200, 200)


# ------------------------------------------------------------------ published values


def test_published_values_say_where_they_stand(known):
    assert set(known) >= {"fig05", "fig06", "fig07", "fig12", "fig19", "fig22", "fig24", "table2", "profiles", "before-after"}
    assert known["fig05"].value("aio-temporal-ratio") == 1.51
    assert known["fig12"].value("bars") is None
    # 18 h 16 min are 53.8 times the slides' normal execution, 48,232 s are 65.2 times the paper's: two bases
    slides, paper = (known["fig05"].value(f"{a}-seconds") / known["fig05"].value(f"{a}-ratio") for a in ("swap-plain", "without-temporal"))
    assert round(slides) == 1222 and round(paper) == 740 == known["fig05"].value("normal-seconds") and set(known["fig05"].particular) == {"iwapt2016", "slides"}
    for _, _, name in figures.FIGURES:
        assert name is None or name in known


def test_published_check_refuses():
    raw = {"schema": 1, "figure": "f", "source": [], "conditions": "", "values": [{"id": "a", "what": "", "value": None, "unit": ""}]}
    with pytest.raises(published.PublishedError, match="neither"):
        published.check("x", raw, {})
    raw["values"][0].update(value=1, paper="nobody")
    with pytest.raises(published.PublishedError, match="where"):
        published.check("x", raw, {})


# ------------------------------------------------------------------ timelines

COLUMNS = ["t_s", "user_s", "system_s", "updates", "read_bytes", "write_bytes", "storage_read_bytes", "storage_write_bytes", "device_read_bytes", "device_write_bytes",
           "minor_faults", "major_faults", "swap_in_bytes", "swap_out_bytes", "anon_bytes", "cache_bytes", "dirty_bytes", "writeback_bytes"]  # fmt: skip


def timeline_lines(n=11, bins=8, backend="mmap", read=lambda k: 100 * k, sweep=True):
    header = {"memext_timeline": 1, "interval_s": 0.1, "backend": backend, "problem": {"nz": 14, "h": 1}, "plan": {}, "bins": bins, "residency": "cachestat", "columns": COLUMNS,
              "buffers": [{"name": "source", "offset_bytes": 0, "bytes": 1 << 30}, {"name": "target", "offset_bytes": 1 << 30, "bytes": 1 << 30}]}  # fmt: skip
    lines = [header]
    for k in range(n):
        values = dict.fromkeys(COLUMNS, 0)
        values.update(t_s=0.1 * k, user_s=0.15 * k, system_s=0.05 * k, device_read_bytes=read(k), swap_in_bytes=7 * k)
        seen = [100 if sweep and i <= k * bins / n else 0 for i in range(bins)]
        lines.append({"s": [values[c] for c in COLUMNS], "r": [seen, seen]})
        z = int(16 * k / n)
        lines.append({"e": "advance", "t": [0.1 * k, 0.1 * k + 0.05], "y": [0, 4], "z": [z, z + 1], "n": 10})
        lines.append({"e": "wait", "t": [0.1 * k + 0.05, 0.1 * k + 0.06], "y": [0, 4], "z": [z, z + 1], "n": 0})
    return [json.dumps(x) + "\n" for x in lines]


def test_timeline_parses():
    line = timeline.parse(timeline_lines())
    assert line.samples.shape == (11, 18) and line.residency.shape == (11, 2, 8) and len(line.events) == 22
    assert line.duration_s == pytest.approx(1.0) and line.total("device_read_bytes") == 1000
    t, rate = line.rate("device_read_bytes")
    assert rate == pytest.approx(np.full(10, 1000.0)) and t[0] == pytest.approx(0.05)
    assert line.cpu(2)[1] == pytest.approx(np.full(10, 1.0))
    assert line.wait_s == pytest.approx(0.11) and line.planes() == 16


def test_timeline_of_swap_reads_the_swap_counters():
    line = timeline.parse(timeline_lines(backend="swap"))
    assert line.rate(*line.traffic())[1] == pytest.approx(np.full(10, 70.0))


def test_timeline_refuses_and_forgives():
    lines = timeline_lines()
    with pytest.raises(timeline.TimelineError, match="version"):
        timeline.parse([lines[0].replace('"memext_timeline": 1', '"memext_timeline": 9')])
    with pytest.raises(timeline.TimelineError, match="no column t_s"):
        timeline.parse([lines[0].replace('"t_s"', '"t"')])
    with pytest.raises(timeline.TimelineError, match=":2: 1 values"):
        timeline.parse([lines[0], '{"s":[1]}\n'])
    with pytest.raises(timeline.TimelineError, match="neither"):
        timeline.parse([lines[0], '{"e":"dance","t":[0,1]}\n'])
    assert timeline.parse([*lines, '{"s":[0.5,']).samples.shape[0] == 11  # of a run that was killed


def test_residency_that_was_not_looked_at_stands_as_it_was():
    lines = [json.loads(x) for x in timeline_lines()]
    samples = [x for x in lines if "s" in x]
    for x in samples[3:6]:
        del x["r"]
    line = timeline.parse(json.dumps(x) + "\n" for x in lines)
    assert line.residency.shape == (11, 2, 8) and (line.residency[3:6] == line.residency[2]).all() and (line.residency[6] != line.residency[2]).any()
    del samples[0]["r"]
    assert not timeline.parse(json.dumps(x) + "\n" for x in lines).residency[0].any()


def test_sweeps_and_side_files_are_events():
    lines = timeline_lines()
    more = [json.dumps({"e": e, "t": [0, 1], "y": [0, 4], "z": [0, 4], "n": 5}) + "\n" for e in ("sweep", "commit", "load-faces", "store-faces")]
    assert [e["n"] for e in timeline.parse([*lines, *more]).of_kind("sweep")] == [5]


def test_bandwidth_variation_tells_flat_from_bursts():
    """Samples of 0.1 s: a steady rate is flat; a burst every 0.5 s is flat over periods of 0.5 s, whatever their phase, and not over 0.15 s; fewer than ten periods say nothing."""
    flat = timeline.parse(timeline_lines(61))
    bursts = timeline.parse(timeline_lines(61, read=lambda k: 1000 * (k // 5)))
    assert measures.bandwidth_variation(flat, 0.25) == pytest.approx(0, abs=1e-9)
    assert measures.bandwidth_variation(bursts, 0.15) > 1
    assert measures.bandwidth_variation(bursts, 0.5) == pytest.approx(0, abs=1e-9)
    middles, means = measures.period_means(flat, 0.5)
    assert len(means) == 10 and middles[0] == pytest.approx(0.3 + 0.25) and means[0] == pytest.approx(means[-1])
    assert measures.bandwidth_variation(flat, 0.6) is None and measures.bandwidth_variation(timeline.parse(timeline_lines(1)), 0.1) is None


def test_sweep_is_seen_in_the_residency():
    # bins fill at the position of the sweep: correlation near 1; nothing changes: no correlation
    assert timeline.sweep_visibility(timeline.parse(timeline_lines(41, 32))) > 0.95
    assert timeline.sweep_visibility(timeline.parse(timeline_lines(41, 32, sweep=False))) is None


def test_sweep_of_threads_with_shares_of_the_planes():
    """Two threads, each with half the planes, fill two diagonals at once: positions within the halves correlate."""
    lines = [json.loads(x) for x in timeline_lines(41, 32)]
    lines[0]["plan"]["threads"] = 2
    samples = [x for x in lines if "s" in x]
    for k, x in enumerate(samples):
        x["r"] = [[100 if abs((i % 16) - k * 16 / 41) < 1 else 0 for i in range(32)]] * 2
    step = {"e": "advance", "t": [0.0, 4.0], "y": [0, 4], "z": [0, 16], "n": 1}
    line = timeline.parse(json.dumps(x) + "\n" for x in [lines[0], *samples, step])
    assert timeline.sweep_visibility(line) > 0.9
    assert list(heatmaps.shares(line, 1.0)) == [([0.0, 4.0], (0.0, 0.5)), ([0.0, 4.0], (0.5, 1.0))]
    assert heatmaps.rectangles(line, "advance", 1.0) == []


def test_heat_map_draws_the_residency_and_the_events():
    line = timeline.parse(timeline_lines(11, 8))
    figure = heatmaps.draw([("a run", line)])
    meshes = {m.get_gid(): m for ax in figure.axes for m in ax.collections if m.get_gid() in ("source", "target")}
    assert set(meshes) == {"source", "target"}
    # the mesh holds residency[t, buffer, bin] with bins upwards
    assert np.array_equal(meshes["source"].get_array().reshape(8, 11), line.residency[:, 0, :].T)
    assert len(heatmaps.rectangles(line, "advance", 1.0)) == 11
    x, y, w, h = heatmaps.rectangles(line, "advance", 1.0)[-1]
    assert (x, y, w, h) == pytest.approx((1.0, 14 / 16, 0.05, 1 / 16))


def test_recorded_timelines_show_the_sweep(recorded):
    """The heat map of plain mmap follows the sweep: what enters the page cache lies where the computation is."""
    run = recorded["advice"].one(backend="mmap", algorithm="plain", advice="none").done[0]
    assert timeline.sweep_visibility(timeline.read(run.timeline_path)) > 0.5


# ------------------------------------------------------------------ figures

PLANS = ("table2", "fig24", "fig05", "before-after", "fig06", "fig07", "fig12", "fig19", "fig22", "uring", "queue", "advice", "readahead", "dirty", "share", "divisions")


def test_what_is_recorded_has_a_plan(recorded):
    assert set(recorded) == set(PLANS) <= {p.stem for p in (ROOT / "experiments" / "plans").glob("*.toml")}


def test_recorded_timelines_are_of_today(recorded):
    """Every column that memext writes now, sampler_s among them; of a long and of short runs, sampling took less than a twentieth of a core."""
    lines = [measures.cached_timeline(run) for plan in recorded.values() for run in plan.runs if run.timeline_path]
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
    """Of the recorded runs, those with a timeline: three panels each, and the residency in them."""
    drawn = {d.name: d for d in figures.heat(recorded["advice"], None)}
    assert [row[0] for row in drawn["heat-mmap-stream"].rows] == ["uring", "none", "schedule"]
    assert [row[2] for row in drawn["heat-mmap-stream"].rows][0] == "0.0 %" and all(0 < float(row[2].split()[0]) < 100 for row in drawn["heat-mmap-stream"].rows[1:])
    line = timeline.read(recorded["advice"].one(backend="mmap", algorithm="stream", advice="schedule").done[0].timeline_path)
    meshes = [m for ax in drawn["heat-mmap-stream"].figure.axes for m in ax.collections if m.get_gid() == "source"]
    assert len(meshes) == 3 and np.array_equal(meshes[2].get_array().ravel(), line.residency[:, 0, :].T.ravel())
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


# ------------------------------------------------------------------ verdicts (test_verdicts.py) and counters


def test_recorded_verdicts(recorded, known):
    """One row for each claim; most recorded configurations have fewer repeats than decide anything, and say so."""
    found = verdicts.all_verdicts(recorded, known)
    by_name = {v.name: v for v in found}
    assert by_name["table2"].state == claim.CONFIRMED and by_name["counters"].state == claim.CONFIRMED and by_name["blk-bytes"].state == claim.CONFIRMED
    assert by_name["aio-mmap"].state == claim.UNDECIDED and "too short" in by_name["aio-mmap"].numbers
    assert by_name["mmap-killed"].state == claim.NOT_TESTED and all(v.rule and v.source for v in found)


def test_counters(recorded):
    found = checks.agreements(recorded)
    assert found and all(a.predicted_equal and a.process_close for a in found)
    good = checks.Agreement("p", "r", "read", 10**9, 10**9, 10**9, 10**9 + 10**7)
    assert good.good
    assert not checks.Agreement("p", "r", "read", 10**9, 10**9 + 1, 10**9, None).good
    assert not checks.Agreement("p", "r", "read", 10**9, 10**9, 10**9 + 2 * 10**6, None).good
    over, short = (checks.Agreement("p", "r", "read", 10**9, 10**9, 10**9, x * 10**8) for x in (11, 9))
    assert not over.good and not over.device_short and short.device_short


def test_how_close_follows_the_numbers(recorded):
    """The ratios that it names are those of the runs; it names what is left, in time and in bytes, and ends with an answer."""
    text = closeness.how_close(recorded)
    plan = recorded["advice"]
    for algorithm in ("stream", "skewed-min"):
        explicit = min(plan.one(backend=b, algorithm=algorithm).stat(measures.per_step).median for b in ("aio", "uring"))
        for how in ("schedule", "none"):
            ratio = plan.one(backend="mmap", algorithm=algorithm, advice=how).stat(measures.per_step).median / explicit
            assert f"{ratio:.2f} times" in text[0]
        assert sum(t.startswith(f"{algorithm}, what is left in") for t in text) == 2
    assert text[-1].startswith("In short: ") and any(t.startswith("swap, stream") for t in text) and any("Read-ahead decides" in t for t in text)
    without = copy.deepcopy(plan)
    for run in without.one(backend="mmap", algorithm="stream", advice="schedule").runs:
        run.record.update(status="failed", stderr="no memory\n", report=None)
    assert "stream: mmap advised by the schedule failed: no memory." in closeness.how_close({"advice": without})
    assert closeness.how_close({}) == []


# ------------------------------------------------------------------ the report


def test_report_is_one_file_with_everything(tmp_path):
    shutil.copytree(RECORDED, tmp_path / "r")
    out = tmp_path / "r" / "report.html"
    decided = report.build(tmp_path / "r", out)
    page = out.read_text()
    assert page.count("data:image/png;base64,") >= 20 and "http" not in page.replace("http://www.w3.org", "").split("<body")[0].split("src=")[0]
    assert 'src="data:' in page and 'src="http' not in page and 'href="http' not in page
    for v in decided:
        assert v.state in page
    session = json.loads((RECORDED / "fig05" / "raw.jsonl").read_text().splitlines()[0])
    assert session["commit"] in page and session["machine"]["cpu"] in page
    assert page.count("<summary>Published:") == len({name for *_, name in figures.FIGURES if name}), "each set of published values once"
    assert "510 x 510 x 254" in page and "runs of each configuration" in page
    order = [page.index(f'id="{name}"') for name in ("fig05", "fig06", "fig07", "fig09", "fig12", "fig19", "fig22", "fig24", "uring", "advice")]
    assert order == sorted(order), "the papers' order"
    names = {p.name for p in (tmp_path / "r" / "figures").iterdir()}
    assert {"fig05.png", "fig05.svg", "fig24.svg"} <= names


def test_report_shows_failed_runs(tmp_path):
    shutil.copytree(RECORDED / "fig05", tmp_path / "r" / "fig05")
    record = good_run()
    record.update(id="uring-stream", key="k", status="failed", stderr="disk on fire\n", exit=3, report=None, timeline=None)
    with open(tmp_path / "r" / "fig05" / "raw.jsonl", "a") as file:
        file.write(json.dumps(record) + "\n")
    report.build(tmp_path / "r", tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    assert page.count("disk on fire") >= 2 and "Failed runs" in page  # in the table of failed runs, and where its figure would stand


def test_the_report_says_what_looking_cost(recorded, monkeypatch):
    """Two timelines of 1 s whose sampling took 10 and 30 ms: 2 % in the median, 3 % at most. One without the column does not count."""
    runs = [recorded["fig05"].one(method=m, temporal=True).runs[0] for m in ("aio", "mmap", "swap")]
    lines = {id(run): timeline.parse(timeline_lines()) for run in runs}
    for run, took in zip(runs, (0.01, 0.03)):
        line = lines[id(run)]
        line.header["columns"] = [*COLUMNS, "sampler_s"]
        line.samples = np.column_stack([line.samples, np.linspace(0, took, 11)])
    monkeypatch.setattr(report, "cached_timeline", lambda run: lines[id(run)])
    assert report.sampling_share(runs) == pytest.approx((0.02, 0.03))
    assert report.sampling_share(runs[2:]) is None


def test_report_of_nothing_says_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match="experiments/run.py"):
        report.build(tmp_path, tmp_path / "x.html")
