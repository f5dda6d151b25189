# SPDX-License-Identifier: BSD-3-Clause
"""Experiments beside the runner: speed.py, predict.py, and the rates of the minute."""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from runner import execute, near, plan
from runner_project import ROOT, left, project, wait_for  # noqa: F401 (fixtures)

pytestmark = pytest.mark.machine


SPEED_FAKE = """#!/usr/bin/python3
import json, os, sys, time
words = sys.argv[1:]
if "info" in words:
    print('{"machine": {}}')
    sys.exit()
if "tune" in words:
    print('{"rates": {"mixed_bytes_per_s": 8.0}}')
    sys.exit(os.environ["XDG_CACHE_HOME"] != os.path.join(os.path.dirname(words[words.index("-d") + 1]), "cache"))
store = words[words.index("-d") + 1]
open(store, "a").write("x")
algorithm, steps = words[words.index("--algorithm") + 1], int(words[words.index("-t") + 1])
budget = int(words[words.index("--dram") + 1]) if "--dram" in words else 0
if os.environ.get("HANG") and algorithm == "skewed-min":
    open(os.environ["HANG"], "w").close()
    time.sleep(1000)
if algorithm == "stream" and 0 < budget < 4 << 20:
    sys.exit("no memory left")
odd = algorithm == "skewed-min" and budget < 4 << 20
if "--dry-run" in words:
    print(json.dumps({"layout": {"buffer_bytes": 1 << 20}}))
    sys.exit()
print(json.dumps({"updates_per_second": 1e9, "seconds": 1.0, "wait_share": 0.0, "read_bytes": 8, "write_bytes": 8, "predicted_read_bytes": 8,
                  "predicted_write_bytes": 9 if algorithm == "skewed-min" and not odd else 8, "peak_rss_bytes": 1, "dram_budget_bytes": budget,
                  "predicted_seconds": 2.0, "plan": {}, "checksum": "b" * 16 if odd else "a" * 16, "steps_done": steps, "phases": {"stencil": {"seconds": 1.5}}}))
"""


def start_speed(project, **environment):
    """stream and skewed-min at two budgets, 5 MiB and 2 MiB, twice."""
    (project / "memext").write_text(SPEED_FAKE)
    (project / "memext").chmod(0o755)
    code = (
        "import sys; sys.path.insert(0, %r); import speed\n"
        "speed.MEMEXT = speed.BENCH = %r; speed.draw = lambda path: None\n"
        "sys.exit(speed.main())" % (str(ROOT / "experiments"), str(project / "memext"))
    )
    words = ["--only", "stream,skewed-min", "--no-system", "--repeats", "2", "--factors", "4,10", "--size", "126", "126", "82", "--steps", "8",
             "--device", str(project / "data"), "--output", str(project / "speed")]  # fmt: skip
    return subprocess.Popen([sys.executable, "-c", code, *words], env={**os.environ, **environment}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)  # fmt: skip


def speed_results(project):
    return json.loads((project / "speed" / "speed-star7-f64.json").read_text())


def test_speed_checks_what_it_records(project):
    """One configuration fails, one moves other bytes than predicted, one has another checksum: each is named, the rest is kept, exit 1."""
    process = start_speed(project)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 1, err
    found = speed_results(project)
    assert {row["name"]: row["finished"] for row in found["rows"]} == {"stream 4x": 2, "skewed-min 4x": 2, "skewed-min 10x": 2}
    assert all(row["phase_of_sweeps"] == 1.5 for row in found["rows"]) and out.count("| 1.500 |") == 3
    # 16 bytes for 1e9 updates in a second, and a device with 8 bytes a second
    assert [row.get("device_gups") for row in found["rows"]] == [0.5, None, None] and all(c["limit_ns"] is None for row in found["rows"] for c in row["cores"])
    failed = {f["name"]: f["why"] for f in found["failed"]}
    assert set(failed) == {"stream 10x", "skewed-min 4x", "skewed-min 10x"}
    assert "no memory left" in failed["stream 10x"] and "bytes" in failed["skewed-min 4x"] and "checksum" in failed["skewed-min 10x"]
    assert "Traceback" not in err and not list((project / "data").iterdir())


def test_speed_compares_with_what_the_device_allows():
    """The rate out of core over that of the tiled engine in the same round, or over what the device's bandwidth allows, whichever is less."""
    import speed

    def run(a_round, gups, device=None):
        return {"round": a_round, "gups": gups, "device_gups": device}

    rows = speed.summarise({"tiled (dram)": {"group": "memory", "runs": [run(0, 4.0), run(2, 2.0)]},
                            "stream 8x": {"group": "stream", "runs": [run(0, 3.0, 9.0), run(1, 3.0, 9.0), run(2, 0.5, 1.0)]}})  # fmt: skip
    assert rows[1]["of_allowed_each"] == [0.75, 0.5] and rows[1]["of_allowed"] == 0.625 and rows[1]["device_gups"] == 9.0
    assert "of_allowed" not in rows[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_speed_leaves_no_store_and_keeps_results_on_a_signal(project, number):
    hang = project / "hanging"
    process = start_speed(project, HANG=str(hang))
    wait_for(hang.exists, process)
    assert list((project / "data").glob("memext-speed-*/grid.store"))
    process.send_signal(number)
    err = process.communicate(timeout=600)[1]
    assert process.returncode == 1 and "interrupted" in err and "Traceback" not in err
    assert not list((project / "data").iterdir()) and left(project) == []
    assert [row["name"] for row in speed_results(project)["rows"]] == ["stream 4x"]


def test_recorded_runs_are_predicted_again():
    """The recorded command without its limiter, with the plan of its report in place of what chose it, the limit said in words, and --dry-run: nothing is written."""
    import predict
    from made_up import report, run
    words = ["/x/limit-memory", "128MiB", "--quiet", "--", "/y/memext", "run", "-n", "510", "126", "126", "-t", "64", "-d", "/gone/run-1", "--quiet", "--json", "/gone/report.json", "--timeline", "/gone/t",
             "--backend", "aio", "--algorithm", "redundant", "--engine", "iblock", "--block", "32", "32", "8", "--stencil", "edge19"]  # fmt: skip
    recorded = run("a", {}, 0, report(4.0, plan={"by": 32, "bz": 30, "bt": 8}), limit="128MiB", command=words)
    expected = ["/z/memext", "run", "-n", "510", "126", "126", "-t", "64", "--backend", "aio", "--stencil", "edge19", "--dram", "128MiB", "-d", "/data", "--plan",
                "redundant engine=iblock by=32 bz=30 bt=8 iy=1 iz=8 slab=8 threads=2 tuner=manual", "--dry-run", "--quiet", "--json", "-"]  # fmt: skip
    assert predict.command(recorded, "/z/memext", "/data") == expected
    recorded.record["command"] += ["--dram", "120MiB"]
    assert predict.command(recorded, "/z/memext", "/data").count("--dram") == 1


FAKE_MEMEXT = """#!/bin/sh
echo "$XDG_CACHE_HOME $*" >> "$LOG"
for word; do [ "$last" = --json ] && out=$word; last=$word; done
case "$*" in
*--calibrate-seconds*) [ -n "$BROKEN" ] && exit 3; cat "$XDG_CACHE_HOME/memext/rates.json" > "$LOG.kept"; echo "{\\"rates\\":{\\"read_bytes_per_s\\":2.0,\\"device_source\\":\\"measured\\"}}" > "$out" ;;
*--dry-run*) echo "{\\"predicted_seconds\\":3.5,\\"predicted_time\\":{\\"io_s\\":1.0}}" > "$out" ;;
*) echo "{\\"status\\":\\"done\\",\\"seconds\\":4.0,\\"predicted_seconds\\":8.0,\\"plan\\":{\\"algorithm\\":\\"stream\\",\\"bt\\":7}}" > "$out" ;;
esac
"""


def probed(project, monkeypatch, backend, seconds=0.5):
    """Record, and the calls of memext as (cache, words)."""
    program = project / "memext"
    program.write_text(FAKE_MEMEXT)
    program.chmod(0o755)
    log, first = project / "calls", project / "first"
    log.unlink(missing_ok=True)
    (first / "memext").mkdir(parents=True, exist_ok=True)
    (first / "memext" / "rates.json").write_text("of the beginning")
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setenv("XDG_CACHE_HOME", str(first))
    words = ("{memext}", "run", "-n", "8", "8", "8", "-t", "2", "-d", "{data}", "--quiet", "--json", "{json}", "--backend", backend, "--engine", "tiled", "--queue-depth", "4", "--dram", "1MiB")
    run = plan.Run(plan="p", id="a", words=words, params={}, timeout_s=60.0)
    place = execute.Place(project, program, project / "data", project / "results" / "p", probe_s=seconds)
    (project / "data").mkdir(exist_ok=True)
    found = execute.execute(run, 0, place)
    return found, [line.split(" ", 1) for line in log.read_text().splitlines()], str(first)


def test_rates_are_measured_right_before_a_run(project, monkeypatch):
    """In a cache of their own, which begins as a copy of the first and the run never sees; the run's plan is predicted with them."""
    found, calls, first = probed(project, monkeypatch, "uring")
    (own, probe), (planning, ran), (again, predicting) = calls
    assert own == again != first == planning
    assert probe.startswith("tune -n 8 8 8 -t 2 --backend uring -d ") and "--calibrate-seconds 0.5" in probe and "--engine" not in probe
    assert ran.startswith("run -n 8 8 8 -t 2 -d ") and "--dry-run" not in ran
    assert "--plan stream bt=7 --dry-run" in predicting and "--queue-depth 4" in predicting and "--engine" not in predicting
    assert (project / "calls.kept").read_text() == "of the beginning"
    said = found["near"]
    assert (said["rates"], said["predicted_seconds"], said["predicted_time"], said["seconds"]) == ({"read_bytes_per_s": 2.0}, 3.5, {"io_s": 1.0}, 0.5)
    assert said["rates_age_s"] >= 0 and said["first_rates_age_s"] >= 0 and "why" not in said and found["report"]["predicted_seconds"] == 8.0


def test_nothing_is_measured_before_other_runs(project, monkeypatch):
    for backend, seconds in (("mmap", 0.5), ("aio", 0)):
        found, calls, _ = probed(project, monkeypatch, backend, seconds)
        assert len(calls) == 1 and "near" not in found
    assert not near.is_judged(["/x/memext", "tune", "--backend", "aio"]) and near.is_judged(["limit", "--", "/x/memext", "run", "--backend", "aio"])


def test_a_failed_probe_spoils_no_run(project, monkeypatch):
    monkeypatch.setenv("BROKEN", "1")
    found, calls, _ = probed(project, monkeypatch, "aio")
    assert found["status"] == "done" and len(calls) == 2 and found["near"]["why"] == "the rates were not measured: exit 3"


def test_a_probe_has_the_storage_of_its_run():
    """A limit of bandwidth holds for it too, one of memory does not."""
    run = ["/x/limit-memory", "128MiB", "--", "/x/limit-bandwidth", "220MiB", "/data", "--", "/y/memext", "run", "-n", "8", "8", "8", "--backend", "aio"]
    assert near.probing(run, "/z/memext", "/d", "/r", 1.0) == ["/x/limit-bandwidth", "220MiB", "/data", "--", "/z/memext", "tune", "-n", "8", "8", "8", "--backend", "aio", "-d", "/d",
                                                                       "--calibrate-seconds", "1", "--quiet", "--json", "/r"]  # fmt: skip


def test_the_cache_of_rates_is_memexts():
    assert near.rates_cache({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/memext/rates.json")
    assert near.rates_cache({"HOME": "/h"}) == Path("/h/.cache/memext/rates.json")
