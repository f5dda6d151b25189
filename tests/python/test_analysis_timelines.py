# SPDX-License-Identifier: BSD-3-Clause
"""analysis/: timelines, and what is read from them."""
import json

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from recordings import no_open_figures, recorded, timeline_lines  # noqa: F401 (fixtures)

from analysis import heatmaps, measures, seen, timeline


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
    with pytest.raises(timeline.TimelineError, match="lacks the columns t_s"):
        timeline.parse([lines[0].replace('"t_s"', '"t"')])
    with pytest.raises(timeline.TimelineError, match=":2: the sample has 1 values"):
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
    assert list(line.looks) == [k not in (3, 4, 5) for k in range(11)]
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
    assert seen.bandwidth_variation(flat, 0.25) == pytest.approx(0, abs=1e-9)
    assert seen.bandwidth_variation(bursts, 0.15) > 1
    assert seen.bandwidth_variation(bursts, 0.5) == pytest.approx(0, abs=1e-9)
    middles, means = seen.period_means(flat, 0.5)
    assert len(means) == 10 and middles[0] == pytest.approx(0.3 + 0.25) and means[0] == pytest.approx(means[-1])
    assert seen.bandwidth_variation(flat, 0.6) is None and seen.bandwidth_variation(timeline.parse(timeline_lines(1)), 0.1) is None


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


def of_looks(n, drop=()):
    """A timeline of n samples, at some of which nobody looked."""
    lines = [json.loads(x) for x in timeline_lines(n, 8)]
    for k, x in enumerate([x for x in lines if "s" in x]):
        if k in drop:
            del x["r"]
    return timeline.parse(json.dumps(x) + "\n" for x in lines)


def maps_of(figure):
    return {m.get_gid(): m for ax in figure.axes for m in ax.collections if m.get_gid() in ("source", "target")}


def test_heat_map_draws_many_looks_as_a_map():
    """61 looks: the mesh holds residency[look, buffer, bin] with bins upwards."""
    line = of_looks(61)
    figure = heatmaps.draw([("a run", line)])
    meshes = maps_of(figure)
    assert set(meshes) == {"source", "target"} and np.array_equal(meshes["source"].get_array().reshape(8, 61), line.residency[:, 0, :].T) and "61 looks" in figure.axes[0].get_ylabel()
    assert len(heatmaps.rectangles(line, "advance", 1.0)) == 61
    x, y, w, h = heatmaps.rectangles(line, "advance", 1.0)[-1]
    assert (x, y, w, h) == pytest.approx((6.0, 15 / 16, 0.05, 1 / 16))


def test_heat_map_draws_few_looks_as_dots():
    """11 looks in a second, and the same ones beside 50 samples without a look: a column of dots at the time of each look, nothing between."""
    for line in (of_looks(11), of_looks(61, range(11, 61))):
        dots = maps_of(heatmaps.draw([("a run", line)]))["source"]
        assert isinstance(dots, PathCollection) and dots.get_offsets().shape == (88, 2)
        assert sorted(set(dots.get_offsets()[:, 0])) == pytest.approx([0.1 * k for k in range(11)]) and np.array_equal(dots.get_array(), line.residency[:11, 0, :].ravel())


def test_a_look_does_not_stand_for_long():
    """Nobody looked for 2 s in the middle: the map has a hole there, but for three distances of two looks."""
    line = of_looks(81, range(41, 60))
    edges, which = heatmaps.strips(line, line.duration_s)
    assert list(which).count(-1) == 1 and len(which) == 63
    hole = list(which).index(-1)
    assert (edges[hole], edges[hole + 1]) == pytest.approx((4.3, 6.0)) and bool(np.ma.getmaskarray(maps_of(heatmaps.draw([("a run", line)]))["source"].get_array()).reshape(8, 63)[:, hole].all())


def test_recorded_timelines_show_the_sweep(recorded):
    """The heat map of plain mmap follows the sweep: what enters the page cache lies where the computation is."""
    run = recorded["advice"].one(backend="mmap", algorithm="plain", advice="none").done[0]
    assert timeline.sweep_visibility(timeline.read(run.timeline_path)) > 0.5
