# SPDX-License-Identifier: BSD-3-Clause
"""analysis/: schema, statistics, published values, verdicts and the report, on small recorded results and on made-up ones."""
import copy
import json
import shutil
from pathlib import Path

import made_up
import numpy as np
import pytest
from recordings import COLUMNS, RECORDED, good_run, known, no_open_figures, recorded, timeline_lines, write_plan  # noqa: F401 (fixtures)

from analysis import cells, checks, claim, closeness, figures, measures, origin, published, report, results, seen, stats, style, timeline, verdicts


def test_median_and_spread():
    # median of an even count is the mean of the middle two; the spread is (max - min) / median
    assert stats.median([3, 1, 2]) == 2 and stats.median([4, 1, 2, 3]) == 2.5
    s = stats.stat([2.0, 1.0, 4.0])
    assert (s.median, s.low, s.high, s.n) == (2.0, 1.0, 4.0, 3) and s.spread == 1.5
    assert stats.stat([]) is None and stats.stat([None]) is None
    with pytest.raises(ValueError):
        stats.median([])


def test_short_runs_are_marked():
    """A time, a speed or their ratio, where the median run takes less than 2 s; bytes are counted and bear no mark. The figure says how many points it is."""
    long, short = (made_up.group({"m": seconds}, seconds) for seconds in (4.0, 1.0))
    assert isinstance(cells.cell(short, measures.per_step), cells.Short) and not isinstance(cells.cell(long, measures.per_step), cells.Short)
    assert not isinstance(cells.cell(short, lambda r: r.report["read_bytes"]), cells.Short)
    assert cells.ratio(long, short, measures.seconds).short and not cells.ratio(long, long, measures.seconds).short and not cells.ratio(long, short, lambda r: r.report["read_bytes"]).short
    assert cells.show(cells.cell(short, measures.seconds)).endswith("n=6, short)") and "short" not in cells.show(cells.cell(long, measures.seconds))
    rounds, drawn = cells.Rounds(), cells.Drawn("x", "x", None)
    rounds.row([cells.cell(g, measures.seconds) for g in (long, short)])
    assert "1 point rests on runs of less than 2 s" in rounds.finish(drawn).notes[0]


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


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda r: r.update(schema=2), "the schema is 2,"),
        (lambda r: r.update(kind="walk"), "kind"),
        (lambda r: r.update(status="fine"), "status"),
        (lambda r: r.pop("command"), "no key 'command'"),
        (lambda r: r.update(repeat="0"), "'repeat' has a value of the wrong type, str: '0'"),
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


@pytest.mark.parametrize("command, checked", [
    (["/build/memext", "run"], True), (["memext", "run"], True), (["experiments/limit-bandwidth", "1MiB", "/data", "--", "memext", "run"], True),
    (["experiments/plain/memext/read.py"], False), (["python3", "experiments/first_stores.py"], False), (["/tmp/memext-experiments/x"], False), (["sh", "-c", "bench_engine > /tmp/memext-experiments/x"], False),
])  # fmt: skip
def test_only_reports_of_memext_have_its_keys(command, checked):
    """Scripts in plans, such as those of the page on Linux, write reports of their own."""
    record = good_run()
    record["command"], record["report"] = command, {"seconds": 1.0}
    if not checked:
        return results.check_record("x", record)
    with pytest.raises(results.SchemaError, match="report"):
        results.check_record("x", record)


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
    assert [g.failure for g in plan.groups.values()] == ["not complete after 7 s", "killed: out of memory", "last words"]
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
    with pytest.raises(published.PublishedError, match="no value; add a note"):
        published.check("x", raw, {})
    raw["values"][0].update(value=1, paper="nobody")
    with pytest.raises(published.PublishedError, match="where the value is published; add 'paper'"):
        published.check("x", raw, {})


def test_recorded_verdicts(recorded, known):
    """One row for each claim; most recorded configurations have fewer repeats than decide anything, and say so."""
    found = verdicts.all_verdicts(recorded, known)
    by_name = {v.name: v for v in found}
    assert by_name["table2"].state == claim.CONFIRMED and by_name["counters"].state == claim.CONFIRMED and by_name["blk-bytes"].state == claim.CONFIRMED
    assert by_name["aio-mmap"].state == claim.UNDECIDED and "too short" in by_name["aio-mmap"].numbers
    assert by_name["mmap-killed"].state == claim.UNDECIDED and by_name["hhrt-weak"].state == claim.NOT_TESTED and all(v.rule and v.source for v in found)


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
    """The ratios that it names are those of the runs, in time and in what the kernel does; single short runs decide nothing, and it says so."""
    text = closeness.how_close(recorded)
    plan = recorded["advice"]
    for algorithm in ("stream", "skewed-min"):
        explicit = plan.one(backend="uring", algorithm=algorithm).stat(measures.per_step).median
        told = next(t for t in text if t.startswith(f"{algorithm}, with the same Blocks"))
        for how in ("schedule", "none"):
            ratio = plan.one(backend="mmap", algorithm=algorithm, advice=how).stat(measures.per_step).median / explicit
            assert f"{ratio:.2f} times ({ratio:.2f} to {ratio:.2f}, n = 1; runs under 2 s)" in told
        assert sum(t.startswith(f"{algorithm}: advised mmap takes") and "the system time of explicit I/O" in t for t in text) == 1
    assert text[-1].startswith("In short: ") and "does not differ clearly from explicit I/O here with stream and skewed-min." in text[-1]
    assert any(t.startswith("swap, stream") and "These advices make no clear difference: sequential" in t for t in text) and any(t.startswith("Read-ahead, plain") for t in text)
    without = copy.deepcopy(plan)
    for run in without.one(backend="mmap", algorithm="stream", advice="schedule").runs:
        run.record.update(status="failed", stderr="no memory\n", report=None)
    assert "stream: mmap advised by the schedule failed: no memory." in closeness.how_close({"advice": without})
    assert closeness.how_close({}) == []


def advised(uring, none, schedule, swapped=8.0, repeats=6):
    """advice with stream, of so many seconds a run; swap with hugepage takes half of it."""
    of = {("uring", "explicit"): uring, ("mmap", "none"): none, ("mmap", "schedule"): schedule, ("swap", "none"): swapped, ("swap", "hugepage"): swapped / 2, ("swap", "random"): swapped}
    return made_up.plan("advice", *(made_up.group({"backend": b, "algorithm": "stream", "advice": a}, s, repeats, backend=b) for (b, a), s in of.items()))


def test_how_close_claims_what_its_intervals_do():
    """A difference of rounds is one, but not of three rounds and not of runs under 2 s; of swap's advice only what differs is named as that."""
    text = " ".join(closeness.how_close(advised(4.0, 12.0, 8.0)))
    assert "advised by the schedule, a step on mmap takes 2.00 times [2.00 to 2.00, n = 6] as long as with explicit I/O (io_uring)" in text and "is slower than explicit I/O with stream" in text
    assert "Compared with no advice, hugepage takes 0.50 times" in text and "These advices make no clear difference: random." in text
    assert "does not differ clearly" in " ".join(closeness.how_close(advised(4.0, 12.0, 8.0, repeats=3))) and "does not differ clearly" in " ".join(closeness.how_close(advised(1.0, 3.0, 2.0)))
    assert "is faster than explicit I/O with stream" in closeness.how_close(advised(8.0, 12.0, 4.0))[-1]


def test_report_is_one_file_with_everything(tmp_path):
    """Of the plans that have published values, and of two more; test_analysis_figures draws all."""
    for plan in {plan for _, plan, values in figures.FIGURES if values} | {"uring", "queue"}:
        shutil.copytree(RECORDED / plan, tmp_path / "r" / plan)
    out = tmp_path / "r" / "report.html"
    decided = report.build(tmp_path / "r", out)
    page = out.read_text()
    assert page.count("data:image/png;base64,") >= 13 and "http" not in page.replace("http://www.w3.org", "").split("<body")[0].split("src=")[0]
    assert 'src="data:' in page and 'src="http' not in page and 'href="http' not in page
    for v in decided:
        assert v.state in page
    session = json.loads((RECORDED / "fig05" / "raw.jsonl").read_text().splitlines()[0])
    assert session["commit"] in page and session["machine"]["cpu"] in page
    assert page.count("<summary>Published:") == len({name for *_, name in figures.FIGURES if name}), "each set of published values once"
    assert "510 x 510 x 254" in page and "runs of each configuration" in page
    order = [page.index(f'id="{name}"') for name in ("fig05", "fig06", "fig07", "fig09", "fig12", "fig19", "fig22", "fig24", "uring", "queue")]
    assert order == sorted(order), "the papers' order"
    names = {p.name for p in (tmp_path / "r" / "figures").iterdir()}
    assert {"fig05.png", "fig05.svg", "fig24.svg"} <= names


def test_report_shows_failed_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(report.style, "image", lambda figure, kind: b"")  # drawn in the test before this one
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
    monkeypatch.setattr(origin, "seen", lambda run: seen.numbers(run, lines[id(run)]))
    assert origin.sampling_share(runs) == pytest.approx((0.02, 0.03))
    assert origin.sampling_share(runs[2:]) is None


def test_report_of_nothing_says_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match="experiments/run.py"):
        report.build(tmp_path, tmp_path / "x.html")
