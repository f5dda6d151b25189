# SPDX-License-Identifier: BSD-3-Clause
"""experiments/observe_cost.py, with a program in the place of memext whose times are known."""
import json
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "experiments"))

import observe_cost  # noqa: E402

# A machine that drifts: each round of three takes a second longer. --timeline costs 2 %, --trace 4 % of it.
FAKE = """#!/usr/bin/python3
import json, pathlib, sys
words = sys.argv[1:]
count = pathlib.Path(__file__).with_suffix(".count")
n = int(count.read_text()) if count.exists() else -1
count.write_text(str(n + 1))
seconds = 1.0 + max(n, 0) // 3
for option, cost, size in (("--timeline", 1.02, 100), ("--trace", 1.04, 300)):
    if option in words:
        seconds *= cost
        pathlib.Path(words[words.index(option) + 1]).write_text("x" * size)
if "--check" in words:
    seconds *= 1.03
if "--sources" in words:
    cells = pathlib.Path(words[words.index("--sources") + 1]).read_text().splitlines()
    probes = pathlib.Path(words[words.index("--probes") + 1]).read_text().splitlines()
    assert len(cells) == len(probes) == 1000 and all(c.startswith("u@0,0,") and pathlib.Path(c.partition("=")[2]).exists() for c in cells)
    assert {int(p.split()[3]) for p in probes} == {0, 1, 2, 3}
    seconds *= 1.01
if words[0] != "run" or "fail" in words:
    sys.exit("fake: no such run")
pathlib.Path(words[words.index("--json") + 1]).write_text(json.dumps({"seconds": seconds}))
"""


def cost(tmp_path, *more):
    fake = tmp_path / "fake"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    return subprocess.run([str(ROOT / "experiments" / "observe_cost.py"), "--memext", str(fake), "--repeats", "4", "--json", str(tmp_path / "out.json"), *more], capture_output=True, text=True, timeout=900)


def test_ratios_are_those_of_the_same_round(tmp_path):
    """2 and 4 % slower, whatever the drift between rounds; all times and the sizes of the files are told."""
    done = cost(tmp_path, "--", "-n", "1", "1", "1")
    assert done.returncode == 0, done.stderr
    rows = {row[1]: row for row in ([cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines()) if len(row) > 5}
    assert [rows[kind][4] for kind in ("plain", "timeline", "trace")] == ["", "+2.00% ± 0.00%", "+4.00% ± 0.00%"]
    assert [rows[kind][5] for kind in ("plain", "timeline", "trace")] == ["0", "100", "300"]
    assert rows["plain"][2:4] == ["2.500", "1.000 .. 4.000"]
    assert json.loads((tmp_path / "out.json").read_text())["seconds"]["timeline"] == [1.02, 2.04, 3.06, 4.08]


def test_words_make_a_kind(tmp_path):
    done = cost(tmp_path, "--words", "norms=--check 100", "--kinds", "plain,timeline,norms", "--", "-n", "1", "1", "1")
    assert done.returncode == 0, done.stderr
    assert "| norms | 2.575 | 1.030 .. 4.120 | +3.00% ± 0.00% | 0 |" in done.stdout


def test_points_are_made_for_the_grid(tmp_path):
    """1,000 sources and as many probes, all in the grid of the arguments; mirror is a kind, too."""
    done = cost(tmp_path, "--kinds", "plain,mirror,points", "--", "-n", "1", "1", "4", "-t", "3")
    assert done.returncode == 0, done.stderr
    assert "| mirror | 2.500 | 1.000 .. 4.000 | +0.00% ± 0.00% | 0 |" in done.stdout
    assert "| points | 2.525 | 1.010 .. 4.040 | +1.00% ± 0.00% | 0 |" in done.stdout
    done = cost(tmp_path, "--kinds", "plain,points", "--", "-n", "1", "1", "4")
    assert done.returncode != 0 and "-t STEPS" in done.stderr


def test_standard_error_of_the_median():
    """Quartiles 1 % apart, 25 ratios: 0.01 / 1.349 * sqrt(pi / 2 / 25) = 0.186 %."""
    plain = [2.0] * 25
    middle, error = observe_cost.slower([2.0 * (1.01 + 0.02 * (i - 12) / 24) for i in range(25)], plain)
    assert middle == pytest.approx(0.01) and error == pytest.approx(0.00186, rel=0.01)


def test_a_run_that_fails_ends_it(tmp_path):
    done = cost(tmp_path, "--", "fail")
    assert done.returncode == 1 and "fake: no such run" in done.stderr and "Traceback" not in done.stderr


def test_unknown_kinds_are_refused(tmp_path):
    done = cost(tmp_path, "--kinds", "plain,perf", "--", "-n")
    assert done.returncode != 0 and "--kinds" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("backend, where", [("dram", []), ("uring", ["-d"])])
def test_bench_observe_measures_in_one_process(build, quick_place, backend, where):
    """What it says is about the run asked for, one ratio a round; observed runs took time of the sampler, those of --control took none. The store is gone afterwards."""
    place = [*where, str(quick_place)] if where else []
    words = ["--", "-n", "62", "62", "30", "-t", "4", "--dram", "256MiB", "--backend", backend, *place]
    for control in ([], ["--control"]):
        done = subprocess.run([str(build / "bench_observe"), "--rounds", "3", *control, *words], capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["backend"] == backend and told["rounds"] == len(told["ratios"]) == 3 and all(r > 0 for r in told["ratios"]) and told["control"] == bool(control)
        assert (told["sampler_share_of_a_core"] > 0) == (told["start_and_end_s"] > 0) == (not control)
    assert not list(quick_place.iterdir())
