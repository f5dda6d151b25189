# SPDX-License-Identifier: BSD-3-Clause
"""How far from each other the cores are: runs wait for near cores, and are made again if the cores move."""
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from runner import cli, distance, execute
from runner_project import a_run, place_in, project  # noqa: F401 (fixture)

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "experiments")]

import night  # noqa: E402

from analysis import origin  # noqa: E402
from analysis.results import Run  # noqa: E402

MEMEXT = Path("/nowhere/memext")


def looks(*values):
    """A look at the cores that has these values one after the other, and the last one ever after."""
    left = list(values)
    return lambda program: left.pop(0) if len(left) > 1 else left[0]


def test_bench_latency_prints_a_time_between_two_cores(build):
    done = subprocess.run([build / "bench_latency"], capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    assert found["cores"] == len(os.sched_getaffinity(0))
    assert found["ns"] is None if found["cores"] == 1 else 0 < found["ns"] < 1e6
    core = min(os.sched_getaffinity(0))
    alone = subprocess.run(["taskset", "-c", str(core), str(build / "bench_latency")], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(alone.stdout) == {"cores": 1, "ns": None}


def test_nothing_is_measured_without_the_program():
    assert distance.ns("/nowhere/bench_latency") is None and distance.ns("/bin/true") is None
    cores = distance.Distance(MEMEXT, distance.Limit(80))
    cores.before()
    cores.after()
    assert not cores.disturbed() and cores.found["before_ns"] is None and cores.found["after_ns"] is None


def test_it_waits_until_the_cores_are_near():
    slept = []
    cores = distance.Distance(MEMEXT, distance.Limit(80), looks(160, 160, 25), slept.append)
    cores.before()
    assert slept == [distance.LOOK_S] * 2 and cores.found["before_ns"] == 25
    cores.after()
    assert not cores.disturbed()


def test_a_run_is_not_made_again_once_the_patience_is_over():
    cores = distance.Distance(MEMEXT, distance.Limit(80), looks(160), lambda s: None)
    cores.found["waited_s"] = distance.PATIENCE_S + 1
    cores.before()
    cores.after()
    assert cores.disturbed() and not cores.once_more(1.0)
    cores.found["waited_s"] = 0.0
    assert not cores.once_more(distance.LONG_S + 1), "a run of hours is not made three times"
    assert cores.once_more(1.0) and cores.once_more(1.0) and not cores.once_more(1.0)


def test_without_a_limit_it_looks_and_does_not_wait():
    slept = []
    cores = distance.Distance(MEMEXT, None, looks(160), slept.append)
    cores.before()
    cores.after()
    assert not slept and not cores.disturbed() and cores.found["before_ns"] == cores.found["after_ns"] == 160


def test_it_does_not_wait_for_ever(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(distance.time, "monotonic", lambda: now[0])
    cores = distance.Distance(MEMEXT, distance.Limit(80), looks(160), lambda s: now.__setitem__(0, now[0] + s))
    cores.before()
    assert distance.PATIENCE_S < cores.found["waited_s"] <= distance.PATIENCE_S + 2 * distance.LOOK_S and cores.disturbed()
    waited = cores.found["waited_s"]
    cores.before()  # the patience is that of the run, not of one look
    assert cores.found["waited_s"] == waited


def test_auto_is_three_times_the_least_value_seen():
    slept = []
    wanted = distance.Limit()
    first = distance.Distance(MEMEXT, wanted, looks(*[160] * distance.FIRST_LOOKS, 160, 161), slept.append)
    first.before()  # nothing near was seen yet: far and moved are told by the difference alone
    assert slept[:-1] == [distance.FIRST_LOOK_S] * (distance.FIRST_LOOKS - 1) and first.found["limit_ns"] == 480
    first.after()
    assert not first.disturbed()
    del slept[:]
    second = distance.Distance(MEMEXT, wanted, looks(25, 160), slept.append)
    second.before()
    second.after()
    assert not any(slept) and second.found["limit_ns"] == 75 and second.disturbed() and second.once_more(1.0)
    assert distance.spent_s({"waited_s": 2.0, "again": [{"wall_s": 3.0}]}) == 5.0 and distance.spent_s(None) == 0.0
    siblings = distance.Limit()
    siblings.seen(8)
    assert siblings.ns == distance.NEAR_NS, "threads of one core are not what others are measured by"
    nothing = distance.Limit()
    distance.Distance(MEMEXT, nothing, looks(None), slept.append).before()
    assert not any(slept) and nothing.ns is None and distance.missing(MEMEXT, nothing) == ""


def test_auto_knows_what_earlier_starts_saw():
    run = {"kind": "run", "started_unix_s": 1e9, "cores": {"before_ns": 160, "after_ns": 30}}
    wanted = distance.Limit()
    wanted.seen_before([{"kind": "session"}, {"kind": "run", "started_unix_s": 1e9}, {**run, "cores": None}, {**run, "cores": {"before_ns": None, "after_ns": None}}, run], 1e9 + 60)
    assert wanted.ns == 90
    old = distance.Limit()
    old.seen_before([run], 1e9 + 2 * distance.RECENT_S)
    assert old.ns is None, "a folder of results may have come from another machine"


@pytest.mark.machine
@pytest.mark.parametrize("minutes, left_s", [(None, float("inf")), (10.0, 120.0), (0.5, 6.0)])
def test_the_time_for_waiting_is_a_share_of_the_minutes(project, monkeypatch, minutes, left_s):  # noqa: F811
    monkeypatch.setattr(distance, "ns", looks(25))
    o = cli.options(["--core-latency", "80", *(["--minutes", str(minutes)] if minutes else [])])
    a_plan = cli.plan.load(project / "probe.toml", "quick")
    place = place_in(project)
    place.near_cores = o.core_latency
    cli.run_plans([a_plan], lambda p: place, "prog", o, [], stream=io.StringIO())
    assert o.core_latency.left_s == left_s if minutes is None else left_s - 6 < o.core_latency.left_s <= left_s


def test_the_night_passes_the_limit_on(monkeypatch, tmp_path):
    called = []
    monkeypatch.setattr(night.subprocess, "run", lambda words: called.append(words) or subprocess.CompletedProcess(words, 0))
    for text in ("auto", "80"):
        night.run("fig05", night.options(["--core-latency", text, "--results", str(tmp_path)]), 5, 10.0)
        assert called[-1][called[-1].index("--core-latency") + 1] == text
    night.run("fig05", night.options(["--results", str(tmp_path)]), 5, 10.0)
    assert "--core-latency" not in called[-1]


def test_all_runs_together_wait_no_longer_than_they_may(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(distance.time, "monotonic", lambda: now[0])
    wanted, waited = distance.Limit(80, 20.0), []
    for _ in range(4):
        cores = distance.Distance(MEMEXT, wanted, looks(160), lambda s: now.__setitem__(0, now[0] + s))
        cores.before()
        cores.after()
        assert not cores.once_more(30.0)
        waited.append(cores.ended()["waited_s"])
    assert 20.0 < waited[0] <= 20.0 + 2 * distance.LOOK_S and waited[1:] == [0.0] * 3
    again = distance.Distance(MEMEXT, distance.Limit(80, 20.0), looks(25, 160), lambda s: None)
    again.before()
    again.after()
    assert again.once_more(15.0) and not again.once_more(15.0)  # repetitions count, too


@pytest.mark.machine
@pytest.mark.parametrize("after, runs, last", [([160, 25], 2, 25), ([160, 160, 160], 3, 160), ([25], 1, 25)])
def test_a_run_whose_cores_moved_is_made_again(project, monkeypatch, after, runs, last):  # noqa: F811
    """At most twice; the last one counts, and the record has the others."""
    left = list(after)

    class Scripted(distance.Distance):
        def __init__(self, memext, wanted):
            super().__init__(memext, wanted, looks(25))

        def after(self):
            self.found["after_ns"] = left.pop(0)

    monkeypatch.setattr(execute.distance, "Distance", Scripted)
    place = place_in(project)
    place.near_cores = distance.Limit(80)
    record = execute.execute(a_run(project, f"echo x >> {project}/made"), 0, place)
    assert len((project / "made").read_text().split()) == runs and record["status"] == "done"
    assert [a["after_ns"] for a in record["cores"]["again"]] == after[: runs - 1] and record["cores"]["after_ns"] == last
    assert all(a["wall_s"] >= 0 for a in record["cores"]["again"])


@pytest.mark.machine
def test_a_run_that_fails_is_not_made_again(project, monkeypatch):  # noqa: F811
    left = [25, 25, 160, 25]  # twice before the run and once after it

    def look(program):
        return left.pop(0)

    monkeypatch.setattr(distance, "ns", look)
    place = place_in(project)
    place.near_cores = distance.Limit(80)
    record = execute.execute(a_run(project, f"echo x >> {project}/made; exit 3"), 0, place)
    assert record["cores"]["after_ns"] == 160 and record["status"] == "failed" and len((project / "made").read_text().split()) == 1 and record["cores"]["again"] == []


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e9", "near"])
def test_a_limit_that_is_none_is_refused(text):
    with pytest.raises(SystemExit):
        cli.options(["--core-latency", text])
    assert cli.options(["--core-latency", "80"]).core_latency.ns == 80 and cli.options([]).core_latency is None
    assert [str(cli.options(["--core-latency", text]).core_latency) for text in ("80", "auto")] == ["80", "auto"]  # night.py passes it on


def test_a_limit_without_the_program_is_refused(tmp_path, capsys):
    (tmp_path / "memext").touch()
    assert cli.main(["table2", "--memext", str(tmp_path / "memext"), "--core-latency", "80", "--no-system", "--results", str(tmp_path / "r"), "--data", str(tmp_path / "d")]) == 2
    assert f"--core-latency needs {tmp_path}/bench_latency" in capsys.readouterr().err and not (tmp_path / "d").exists()
    assert distance.missing(tmp_path / "memext", None) == ""
    program = tmp_path / "bench_latency"
    for script, fits in (("exit 1", False), ("echo '{\"ns\": null}'", False), ("echo '{\"ns\": 25.0}'", True)):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        said = distance.missing(tmp_path / "memext", distance.Limit(80))
        assert said == "" if fits else f"{program} measures no time" in said


def test_the_page_tells_how_far_the_cores_were():
    def of(before, after, again=0, limit=80.0):
        return Run({"cores": {"limit_ns": limit, "before_ns": before, "after_ns": after, "waited_s": 30.0, "again": [{}] * again}}, Path())

    told = origin.distance_of_cores([of(25, 25), of(25, 160, 2), of(27, 25, 1), Run({"cores": None}, Path()), Run({}, Path())])
    assert "25 ns (25 to 27)" in told and "before 3 runs" in told and "after 1 of them more than 2 times" in told
    assert "at most 80 ns, or its patience ended (1.5 minutes of waiting in all). 2 runs were made again (3 times in all)" in told
    assert "at most 75 to 81 ns, or its patience ended" in origin.distance_of_cores([of(25, 25, limit=75.3), of(27, 25, limit=81.0), of(26, 25, limit=78.0)])
    assert "waited" not in origin.distance_of_cores([of(25, 25, limit=None)]) and origin.distance_of_cores([Run({}, Path())]) == ""
