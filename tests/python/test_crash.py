# SPDX-License-Identifier: BSD-3-Clause
"""experiments/crash.py: it finds what it is for, and leaves nothing behind, however it ends."""
import signal
import subprocess
import sys

import pytest
from conftest import ROOT, sh, wait_until

CRASH = ROOT / "experiments" / "crash.py"
FAKE = """#!/bin/sh
case "$*" in *--dry-run*|*--help*|*info*|*"--backend dram"*|*call=*) exec {memext} "$@";; esac
{instead}
"""


@pytest.fixture
def place(quick_place):
    return quick_place


def words(place, *more):
    return [sys.executable, CRASH, "--place", place, *map(str, more)]


def campaign(place, *more):
    return subprocess.run(words(place, *more), capture_output=True, text=True, timeout=600)


def fake(tmp_path, memext, instead):
    """A memext that does something else, except when it plans and where it tells the right result."""
    path = tmp_path / "fake"
    path.write_text(FAKE.format(memext=memext.program, instead=instead.format(memext=memext.program)))
    path.chmod(0o755)
    return path


def nothing_is_left(place):
    left = [*map(str, place.iterdir()), *(line for line in sh("losetup", "--noheadings", "--output", "NAME,BACK-FILE").splitlines() if str(place) in line)]
    assert left == []
    return True


def test_runs_that_are_killed_come_to_their_end(memext, place):
    done = campaign(place, "--memext", memext.program, "--runs", 3, "--seed", 5, "--only", "kill,redundant,stream,uring,aio")
    assert done.returncode == 0 and "0 failed" in done.stdout, done.stdout + done.stderr
    assert nothing_is_left(place)


@pytest.mark.parametrize("only", ["kill,accel-host,uring,directory,file", "accel-fault,accel-host,directory"])
def test_runs_on_an_accelerator_come_to_their_end(memext, place, only):
    """Killed, or with an operation there that fails: resumed there or by the cores, with the undisturbed run's bits."""
    done = campaign(place, "--memext", memext.program, "--runs", 3, "--seed", 7, "--only", only)
    assert done.returncode == 0 and "0 failed" in done.stdout, done.stdout + done.stderr
    assert nothing_is_left(place)


def test_a_wrong_result_is_found(memext, place, tmp_path):
    """Another checksum in the report of every run: counted, with the words that repeat the campaign; exit status 1."""
    program = fake(tmp_path, memext, """{memext} "$@"; status=$?
for word; do case $word in */report.json) sed -i 's/"checksum": "./"checksum": "x/' $word;; esac; done
exit $status""")
    done = campaign(place, "--memext", program, "--runs", 1, "--seed", 5, "--only", "intruder,stream,aio,directory")
    assert done.returncode == 1 and "WRONG RESULT" in done.stdout and "1 of them had wrong results, and 0 hung" in done.stdout, done.stdout
    assert "--seed 5 --skip 0 --runs 1 --only intruder,stream,aio,directory" in done.stdout and nothing_is_left(place)


def test_a_hang_is_found(memext, place, tmp_path):
    done = campaign(place, "--memext", fake(tmp_path, memext, "exec tail -f /dev/null"), "--runs", 1, "--patience", 0.5, "--only",
                    "fault,stream,aio,directory")
    assert done.returncode == 1 and "0 of them had wrong results, and 1 hung" in done.stdout, done.stdout + done.stderr
    assert nothing_is_left(place)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_it_is_ended(memext, place, tmp_path, number):
    """In a campaign on a loop device, if that can be had; what a killed one leaves behind, the next one clears away."""
    program, only = fake(tmp_path, memext, "exec tail -f /dev/null"), ["--only", "fault,stream,aio,loop"]
    if "loop" in campaign(place, "--memext", memext.program, "--runs", 0).stdout:
        only = ["--only", "fault,stream,aio,file"]
    process = subprocess.Popen(words(place, "--memext", program, "--runs", 1, *only), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: list(place.glob("*/run-*/stderr")), "a run is under way", process), process.communicate()
    process.send_signal(number)
    out, error = process.communicate(timeout=900)
    if number == signal.SIGTERM:
        assert process.returncode == 143, out + error
    else:
        assert campaign(place, "--memext", memext.program, "--runs", 0).returncode == 0
    assert nothing_is_left(place)
