# SPDX-License-Identifier: BSD-3-Clause
"""analysis/: every figure, and that it shows what was recorded."""
import struct
from types import SimpleNamespace

import made_up
import numpy as np
import pytest
from recordings import ROOT, known, no_open_figures, recorded, repeated  # noqa: F401 (fixtures)

from analysis import cells, figures, measures, seen, stats, style, timeline
from analysis.effects import Effect
from analysis.figures import slides, transfers

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


def boxes_of(figure):
    """{gid: (low, high)} of published ranges."""
    return {p.get_gid(): (p.get_y(), p.get_y() + p.get_height()) for ax in figure.axes for p in ax.patches if p.get_gid()}


def lines_of(figure):
    return {line.get_gid(): line for ax in figure.axes for line in ax.get_lines() if line.get_gid()}


def png_size(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize("draw, plan, values", figures.FIGURES, ids=[f[0].__name__ for f in figures.FIGURES])
def test_every_figure_is_drawn(recorded, known, draw, plan, values):
    """At the width of one column of a paper or of two, in letters of 6.5 points or more; n stands under what is measured."""
    drawn = draw(repeated(recorded[plan]), known.get(values))
    for d in drawn if isinstance(drawn, list) else [drawn]:
        assert d.name and d.title and all(len(row) == len(d.header) for row in d.rows)
        if d.figure is None:
            assert d.name == "table2"
            continue
        assert d.figure.get_figwidth() in (style.ONE, style.TWO)
        width, height = png_size(style.image(d.figure, "png"))
        assert width > 600 and height > 300
        if plan == "fig05":  # what is drawn is the same, and takes as long again
            assert style.image(d.figure, "svg").lstrip().startswith(b"<?xml")
        assert not [ax for ax in d.figure.axes if ax.get_yscale() == "log" and ax.containers], "a bar's length means nothing on a logarithmic axis"
        painted = sum(len(ax.containers) + len(ax.collections) + len(ax.get_lines()) + len(ax.images) for ax in d.figure.axes)
        assert painted > 0, f"{d.name} is empty"
        small = [t.get_text() for t in d.figure.findobj(style.plt.Text) if t.get_text() and t.get_fontsize() < style.SMALL]
        assert not small and (d.name.startswith("heat") or "n = 5" in foot_of(d.figure) + "".join(ax.get_title("left") for ax in d.figure.axes))


def foot_of(figure):
    return " ".join(t.get_text() for t in figure.texts if t.get_gid() == "foot")


def measured_points(figure):
    """What is drawn as measured: dots and lines but for the base line and published marks, bars and areas."""
    found = [line for ax in figure.axes for line in ax.get_lines() if line.get_gid() and line.get_gid() != "base" and "published" not in line.get_gid() and len(line.get_xdata())]
    return found + [p for ax in figure.axes for c in ax.containers for p in c.patches if p.get_height() > 0] + [c for ax in figure.axes for c in ax.collections if c.get_gid() == "cpu"]


@pytest.mark.parametrize("draw, plan, values", [f for f in figures.FIGURES if not f[0].__name__.startswith("heat") and f[1] != "table2"], ids=lambda x: getattr(x, "__name__", ""))
def test_a_single_run_is_not_drawn(recorded, known, draw, plan, values):
    """Of one run each nothing is drawn and the notes say so, unless it was counted."""
    drawn = draw(repeated(recorded[plan], 1), known.get(values))
    if draw is figures.fig21:
        assert measured_points(drawn.figure) and "counted" in foot_of(drawn.figure)
        return
    assert drawn.figure is None or not measured_points(drawn.figure)
    assert any("with one run" in note and "not drawn" in note for note in drawn.notes)


def test_a_single_run_among_others_is_a_gap(recorded, known):
    plan = repeated(recorded["fig05"])
    plan.one(method="mmap", temporal=True).runs[1:] = []
    drawn = figures.fig05(plan, known["fig05"])
    assert len(dots_of(drawn.figure.axes[0])[WITH]) == 4 and cells.ONE_RUN in [t.get_text() for t in drawn.figure.axes[0].texts]
    assert "1 point with one run is not drawn. The table has the number." in drawn.notes and foot_of(drawn.figure).startswith("n = 5 rounds; lines: 95 % interval. ")


def test_a_ratio_is_of_pairs():
    """The runs of one round; the interval of effects.py, and the range where there are too few pairs for one."""
    values = {("s", k): v for k, v in enumerate((1.2, 1.3, 1.1, 1.25, 1.15))}
    five, two = cells.paired(values), cells.paired({k: values[k] for k in list(values)[:2]})
    effect = Effect(tuple(values.values()))
    assert (five.median, five.low, five.high, five.n, five.interval) == (effect.value, *effect.interval(), 5, True)
    assert (two.low, two.high, two.n, two.interval) == (1.2, 1.3, 2, False)
    assert cells.show(five).endswith("n=5]") and cells.show(two) == "1.25 (1.2 to 1.3, n=2)" and isinstance(cells.paired({}), style.Gap)


def test_ratios_go_by_rounds(recorded):
    """Every round is 10 % slower than the one before, and the ratio is the same in each: it has no spread."""
    plan = repeated(recorded["before-after"])
    after, before = (plan.one(backend="aio", step=s) for s in ("after", "before"))
    found = cells.ratio(after, before, measures.seconds)
    assert found.low == pytest.approx(found.high) == pytest.approx(after.runs[0].report["seconds"] / before.runs[0].report["seconds"])
    for run in before.runs:
        run.record["session"] = "another start of the runner"
    assert cells.ratio(after, before, measures.seconds) == "no common round"


@pytest.mark.parametrize("draw, plan, values", [f for f in figures.FIGURES if f[0].__name__ in ("fig21", "fig22", "queue", "advice", "fig08")], ids=lambda x: getattr(x, "__name__", ""))
def test_nothing_is_cut_where_panels_share_an_axis(recorded, known, draw, plan, values):
    """The first panel higher than the last, or the other way round: one scale, whose top is above both."""
    results = repeated(recorded[plan])
    for run in list(results.groups.values())[0].runs:
        for key in ("seconds", "read_bytes"):
            run.record["report"][key] *= 7
    for k in range(2):
        axes = [ax for ax in draw(results, known.get(values)).figure.axes if ax.get_visible()]
        highest = max([p.get_height() for ax in axes for c in ax.containers for p in c.patches] + [v for ax in axes for line in ax.get_lines() for v in line.get_ydata()])
        assert all(ax.get_ylim()[1] > 1.1 * highest for ax in axes) and len({ax.get_ylim() for ax in axes}) == 1
        for run in list(results.groups.values())[-1].runs:
            for key in ("seconds", "read_bytes"):
                run.record["report"][key] *= 100


@pytest.mark.parametrize("draw", [figures.cpu_profile, figures.bandwidth_profile], ids=lambda d: d.__name__)
def test_profiles_have_one_scale(recorded, known, draw):
    """Whatever the runs' lengths and rates: the same seconds and the same heights in all three panels, up to the longest and the highest."""
    plan = repeated(recorded["fig05"])
    panels = draw(plan, known["profiles"]).figure.axes[:3]
    longest = max(seen.cached_timeline(plan.one(method=m, temporal=True).runs[0]).duration_s for m in ("aio", "mmap", "swap"))
    assert {ax.get_xlim() for ax in panels} == {(0.0, longest)} and len({ax.get_ylim() for ax in panels}) == 1
    assert all(max(line.get_ydata()) <= ax.get_ylim()[1] for ax in panels for line in ax.get_lines()) and all("n = 5" in ax.get_title("left") for ax in panels)


def test_a_profile_is_the_run_of_median_time(recorded, known):
    plan = repeated(recorded["fig05"], 3)  # factors 1, 1.03 and 0.96
    assert plan.one(method="mmap", temporal=True).runs[0] is slides._median_run(plan.one(method="mmap", temporal=True))


WITH, WITHOUT = "with temporal blocking", "without temporal blocking"


def test_fig05_draws_ratios_and_what_is_published(recorded, known):
    plan = repeated(recorded["fig05"])
    drawn = figures.fig05(plan, known["fig05"])
    heights = dots_of(drawn.figure.axes[0])
    first = lambda **w: plan.one(**w).runs[0].seconds_per_step  # noqa: E731
    assert heights[WITH] == pytest.approx([first(method=m, temporal=True) / first(method="normal") for m in ("aio", "uring", "mmap", "swap", "stream")])
    given = {name: row for name, row in heights.items() if "published" in name}
    assert given == {f"{WITH} published, slides": [1.51, 1.58, 2.22], f"{WITH} published, iwapt2016": [1120 / 740], f"{WITHOUT} published, slides": [53.8], "published, method not named": [65.2, 65.2]}
    assert ["swap", "with"] in [row[:2] for row in drawn.rows] and "2.22 (slides)" in [row[4] for row in drawn.rows]


def test_published_values_stand_in_the_figures(recorded, known):
    """Marks for a value, open boxes for a range, each in the unit of its axis."""
    def of(draw, plan, values):
        return draw(repeated(recorded[plan]), known[values]).figure

    marks = {name: list(line.get_ydata()) for f in (of(figures.slides_bytes, "fig05", "profiles"), of(figures.before_after, "before-after", "before-after")) for name, line in lines_of(f).items() if "published" in name}
    assert marks["read published, slides"] == pytest.approx([209.70 / 110.25, 600.90 / 110.25]) and marks["written, with the initial grid published, slides"] == pytest.approx([156.39 / 128.19, 124.69 / 128.19])
    assert marks["after published, slides"] == [0.55, 0.59]
    times, shares = of(figures.cpu_profile, "fig05", "profiles").axes[3:5]
    assert dots_of(times)["time published, slides"] == pytest.approx([1929.86 / 1847.55, 2720.58 / 1847.55]) and dots_of(shares)["time published, slides"] == pytest.approx([6.7, 25.1, 50.4])
    assert boxes_of(of(figures.fig07, "fig07", "fig07")) == {"published": (0.5, pytest.approx(0.6))}
    boxes = [(p.get_y(), p.get_y() + p.get_height()) for p in of(figures.fig19, "fig19", "fig19").axes[0].patches]
    assert sorted(set(boxes)) == [pytest.approx((0.68, 0.73)), pytest.approx((0.75, 0.80))]
    assert [boxes_of(SimpleNamespace(axes=[ax]))["aio3y published, japanese"] for ax in of(figures.fig22, "fig22", "fig22").axes] == [pytest.approx((1.073, 1.135)), pytest.approx((1.129, 1.419))]
    assert boxes_of(of(figures.fig22_components, "fig22", "fig22"))["blk published, iwapt2016"] == pytest.approx((0.58, 0.78))
    assert list(lines_of(of(figures.fig24, "fig24", "fig24"))["published"].get_ydata()) == [0.001] * 3


def test_fig06_draws_one_line_a_method(recorded, known):
    plan = repeated(recorded["fig06"])
    lines = lines_of(figures.fig06(plan, known["fig06"]).figure)
    assert set(lines) == {"aio", "aio5y", "stream", "published", "base"}
    assert list(lines["published"].get_xydata()[0]) == [16 * measures.size_bytes(plan.select(method="aio")[0]["limit"]), 0.87]
    sizes = sorted((g["size"] for g in plan.select(method="stream")), key=measures.size_bytes)
    assert list(lines["stream"].get_xdata()) == [measures.size_bytes(s) for s in sizes]


def test_fig08_counts_operations_as_the_slides_do(recorded, known):
    # the slides: 2046 x 2048 x 1024 cells, 256 steps in 1847.55 s are 5945.38 Mflops
    assert 2046 * 2048 * 1024 * 256 * measures.FLOPS["star7"] / 1847.55 * 1e-6 == pytest.approx(5945.38, rel=1e-4)


def test_fig12_compares_steps(recorded, known):
    plan = repeated(recorded["fig12"])
    heights = dots_of(figures.fig12(plan, known["fig12"]).figure.axes[0])
    base, mmap1 = (plan.one(backend=b, algorithm=a, room="x4").runs[0].seconds_per_step for b, a in (("aio", "skewed-min"), ("mmap", "direct-skewed")))
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
    plan = repeated(recorded["fig19"])
    left = figures.fig21(plan, known["fig19"]).figure.axes[0]
    run = plan.one(algorithm="skewed-min", tuner="blk").done[0]
    assert bars_of(left)["read"][2] == pytest.approx(run.report["read_bytes"] / measures.GIB)


def test_a_failed_run_is_shown_as_failed(recorded, known):
    plan = repeated(recorded["fig07"])
    for run in plan.one(backend="mmap", stencil="star7", size="1GiB").runs:
        run.record.update(status="failed", stderr="limit-memory: out of memory: the kernel killed 1 process", report=None)
    drawn = figures.fig07(plan, known["fig07"])
    assert any("failed: killed: out of memory" in str(c) for row in drawn.rows for c in row)
    assert any(line.get_gid() == "star7 failed" for ax in drawn.figure.axes for line in ax.get_lines())
    texts = [t.get_text() for ax in drawn.figure.axes for t in ax.texts]
    assert "killed: out of memory" in texts


def test_sources_of_published_values_are_told_apart():
    figure, ax = style.new()
    style.dots(ax, ["a", "b"], {"x": [stats.stat([1.0, 1.1]), stats.stat([2.0, 2.1])]}, "s", log=True, published={"x": [(1.5, "iwapt2016"), [(2.5, "slides"), ((2.1, 2.2), "slides")]]})
    marks = {line.get_gid(): line.get_marker() for line in ax.get_lines() if "published" in (line.get_gid() or "")}
    assert boxes_of(figure) == {"x published, slides": (2.1, pytest.approx(2.2))}
    assert len(set(marks.values())) == 2 and set(marks) == {"x published, iwapt2016", "x published, slides"}


def test_bars_mark_failures():
    figure, ax = style.new()
    style.bars(ax, ["a", "b"], {"x": [stats.stat([1.0, 3.0]), "no end within 7 s"]}, "s")
    assert bars_of(ax) == {"x": [2.0]} and any("no end within 7 s" in t.get_text() for t in ax.texts)


NOT_POLLED = "busy completion (iopoll) is not possible: the device has no poll queues; interrupts are used"


def test_polling_that_did_not_happen_is_called_that(recorded):
    """By the device's note. The pair is one configuration run twice, and its ratio is said to be noise."""
    again = made_up.group({"variant": "uring-iopoll"}, 3.0, device={"note": NOT_POLLED})
    first = made_up.group({"variant": "uring"}, 4.0)
    assert transfers.label_of(again) == "io_uring again: no polling here" and transfers.label_of(made_up.group({"variant": "uring-iopoll"})) == "completions polled"
    drawn = transfers.uring(made_up.plan("uring", first, again)["uring"], None)
    assert any("uring-iopoll is the same configuration as uring. It takes 0.75 [0.75 to 0.75, n=6] times as long" in note for note in drawn.notes)
    assert not any("same configuration" in note for note in transfers.uring(made_up.plan("uring", first, made_up.group({"variant": "uring-iopoll"}))["uring"], None).notes)


def test_a_depth_that_was_not_reached_is_not_drawn():
    """8 were asked for and 3 were under way: no point at 8, and the table has both numbers. The configuration that was run twice is told beside it."""
    def at(depth, most, **more):
        return made_up.group({"backend": "aio", "depth": depth, "request": "4MiB", **more}, device={"note": "", "peak_in_flight": most})

    drawn = transfers.queue(made_up.plan("queue", at(2, 2), at(8, 3), at(2, 2, again="yes"))["queue"], None)
    assert list(lines_of(drawn.figure)["4MiB"].get_xdata()) == [2]
    rate, most = drawn.rows
    assert rate[:3] == ["aio", "4MiB", "GB/s"] and rate[4] == "at most 3 in flight" and most[2] == "most in flight" and [cell[0] for cell in most[3:]] == ["2", "3"]
    assert sum("the same configuration as" in note for note in drawn.notes) == 1
