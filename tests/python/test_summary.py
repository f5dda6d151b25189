# SPDX-License-Identifier: BSD-3-Clause
"""tests/summary.py: every failure and skip is counted and named, and so is what a short run leaves out."""
import subprocess
import sys

from conftest import ROOT

SUITE = """<testsuite>
<testcase classname="execute" name="execute" status="run" time="7"><system-out>[PASS] execute::one: (4.50s)
[SHORT] 30 of 60 cases
[SHORT] 10 of 40 cases
[SKIP] execute::two: needs root
[FAIL] execute::three: (0.25s)
[====] Synthesis: Tested: 3 | Passing: 1 | Failing: 1 | Crashing: 0</system-out>{failure}</testcase>
<testcase classname="tests.python.test_a" name="test_b[x]" time="1.5"><skipped message="long: tests/run.sh --long runs it"/></testcase>
<testcase classname="tests.python.test_a" name="test_b[y]" time="0"><skipped message="long: tests/run.sh --long runs it"/></testcase>
<testcase classname="tests.python.test_a" name="test_c" time="2.5"/>
<testcase classname="tests.python.test_a" name="test_d" time="9"><failure message="1 == 2"/></testcase>
<testcase classname="tests.python.test_a" name="test_e" time="0"><skipped message="no MPI"/></testcase>
</testsuite>"""


def summary(*words):
    done = subprocess.run([sys.executable, ROOT / "tests" / "summary.py", *map(str, words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_everything_is_counted_and_named(tmp_path):
    report = tmp_path / "c_tests.xml"
    report.write_text(SUITE.format(failure='<failure message=""/>'))
    status, lines = summary("--note", "10 minutes of each fuzz target", report)
    assert status == 1 and lines[-1] == "2 passed, 2 failed, 4 skipped"
    assert [line.split("  ")[-1] for line in lines[1:4]] == ["c_tests/tests.python.test_a.test_d", "c_tests/execute/execute::one", "c_tests/tests.python.test_a.test_c"]
    for line in ("left out: c_tests/execute: 60 of 100 cases", "left out: tests.python.test_a.test_b (2 of its cases)", "left out: 10 minutes of each fuzz target",
                 "skipped: execute/execute::two: needs root", "skipped: tests.python.test_a.test_e: no MPI", "FAILED: execute: execute::three",
                 "FAILED: tests.python.test_a.test_d: 1 == 2"):  # fmt: skip
        assert line in lines, lines


def test_a_part_that_was_cut_short_has_failed(tmp_path):
    report = tmp_path / "good.xml"
    report.write_text('<testsuite><testcase name="a"/></testsuite>')
    assert summary("--ended", "good=0", report)[0] == 0
    status, lines = summary("--ended", "good=2", report)
    assert status == 1 and lines[-1] == "1 passed, 1 failed, 0 skipped" and any("good: it ended with status 2" in line for line in lines)


def test_a_part_without_a_report_has_failed(tmp_path):
    (tmp_path / "empty.xml").write_text("<testsuite/>")
    (tmp_path / "good.xml").write_text('<testsuite><testcase name="a"/></testsuite>')
    assert summary(tmp_path / "good.xml")[0] == 0
    status, lines = summary(tmp_path / "good.xml", tmp_path / "empty.xml", tmp_path / "absent.xml")
    assert status == 1 and lines[-1] == "1 passed, 2 failed, 0 skipped"
