# SPDX-License-Identifier: BSD-3-Clause
"""Interruption, sudden death and I/O errors: the last committed sweep stays, and --resume ends with the same bits."""
import functools
import itertools
import json
import random
import signal
import subprocess

import pytest
from conftest import thinned, wait_until
from watch import catches, computing, written_bytes

STEPS, MIB = 240, 2**20
GRID = ["-n", 94, 94, 126]  # Buffers of 9 MiB
PROBLEM = [*GRID, "-t", STEPS]
PLANS = {"redundant": ["--algorithm", "redundant", "--block", 94, 70, 4], "stream": ["--algorithm", "stream", "--block", 94, 126, 4],
         "side-file": ["--plan", "stream by=24 bt=4 slab=8 faces=side-file"]}


@pytest.fixture
def place(quick_place):
    return quick_place


@pytest.fixture(scope="module")
def whole(memext):
    """whole(steps) -> checksum of the uninterrupted run."""
    @functools.cache
    def checksum(steps=STEPS):
        return memext.run(*GRID, "-t", steps, "--algorithm", "direct", "--backend", "dram", "--engine", "iblock")["checksum"]
    return checksum


def start(memext, place, *words):
    """A run that leaves place/report.json."""
    return subprocess.Popen([str(memext.program), "run", "-d", str(place), "-q", "--json", str(place / "report.json"),
                             *map(str, words)], stderr=subprocess.PIPE, text=True)


def begin(memext, place, algorithm, backend, *more, steps=STEPS):
    """A run that has come as far as computing, so that its initial grid is committed, or that is through."""
    process = start(memext, place, *GRID, "-t", steps, *PLANS[algorithm], "--backend", backend, "--timeline",
                    place / "timeline", *more)
    wait_until(lambda: computing(place / "timeline"), "the run computes", process)
    return process


def wait_for_writes(process, count):
    """Until it has written so much more, or is through."""
    before = written_bytes(process)
    wait_until(lambda: written_bytes(process) >= before + count, f"{count} bytes are written", process)


def go_on(memext, place, backend, *more):
    return memext("run", "--resume", "-d", place, "--backend", backend, "-q", "--json", "-", *more)


def report_of(place):
    return json.loads((place / "report.json").read_text())


# Every two choices together; all three when there is time.
@pytest.mark.parametrize("algorithm, backend, number", [pytest.param(algorithm, backend, number, marks=[] if (i + j + k) % 2 else [pytest.mark.long]) for i, algorithm in enumerate(["redundant", "stream"])
                                                        for j, backend in enumerate(["mmap", "aio", "uring"]) for k, number in enumerate([signal.SIGINT, signal.SIGTERM])])  # fmt: skip
def test_a_signal_then_resume(memext, place, whole, algorithm, backend, number):
    """Status 5 and a report at the first signal, which comes in the second sweep or later; then checksum(resumed) ==
    checksum(whole). A run that is through before the signal comes is tried again with four times the steps."""
    for steps in (STEPS, 4 * STEPS, 16 * STEPS, 64 * STEPS):
        process = begin(memext, place, algorithm, backend, steps=steps)
        wait_for_writes(process, 16 * MIB)
        process.send_signal(number)
        _, error = process.communicate(timeout=900)
        if process.returncode != 0:
            break
        (place / "timeline").unlink()
    assert process.returncode == 5, error
    assert report_of(place)["status"] == "interrupted" and "--resume" in error
    verify = number == signal.SIGTERM and algorithm == "stream"
    done = go_on(memext, place, backend, *["--verify"][:verify])
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["checksum"] == whole(steps) and report["verified"] is (True if verify else None)


def test_a_signal_before_the_first_commit(memext, place):
    """Status 5, nothing is left, and nothing is promised. Requests of 1 MiB, one at a time, of 100 ms at most each: to write
    the initial grid takes many seconds, so the signal cannot come after the commit."""
    process = start(memext, place, *"-n 254 254 510 -t 9 --backend fault:aio --fault delay_us=100000 --queue-depth 1".split())
    assert wait_until((place / "memext.store").exists, "the store is made", process), process.communicate()[1]
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=900)
    assert process.returncode == 5 and "--resume" not in error
    assert [path.name for path in place.iterdir() if path.name != "report.json"] == []


DEATHS = [("redundant", "mmap"), ("stream", "uring"), ("side-file", "aio"), ("stream", "aio")]  # in every run: each algorithm, each backend


@pytest.mark.parametrize("algorithm, backend", thinned(itertools.product(["redundant", "stream", "side-file"], ["mmap", "aio", "uring"]), lambda *case: case in DEATHS))
def test_sudden_death_then_resume(memext, place, whole, algorithm, backend):
    """kill -9 after a random amount of writing, again and again, then --resume: checksum == checksum(whole). Between deaths
    a signal tells how far it is: a commit is never lost. The run writes 540 MiB: too many for it to be through before the
    last death, but that would be no fault."""
    dice, reached = random.Random(f"{algorithm} {backend}"), 0
    process = begin(memext, place, algorithm, backend)
    for _ in range(4):
        wait_for_writes(process, dice.randrange(40 * MIB))
        process.kill()
        _, error = process.communicate()
        if process.returncode == 0:
            break
        process = start(memext, place, "--resume", "--backend", backend)
        wait_until(lambda: catches(process, signal.SIGINT), "SIGINT is caught", process)
        wait_for_writes(process, dice.choice([0, dice.randrange(40 * MIB)]))
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=900)
        assert process.returncode in (0, 5), error
        assert report_of(place)["resumed_from"] >= reached
        if process.returncode == 0:
            break
        reached = report_of(place)["steps_done"]
        process = start(memext, place, "--resume", "--backend", backend)
    if process.poll() is None:
        _, error = process.communicate(timeout=900)
    assert process.returncode == 0, error
    assert report_of(place)["checksum"] == whole() and report_of(place)["steps_done"] == STEPS


def test_an_algorithm_in_place_says_that_it_cannot_resume(memext, place):
    """40,000 steps take half a minute at least; the signal comes while they are computed."""
    process = start(memext, place, *GRID, "-t", 40000, "--algorithm", "skewed", "--timeline", place / "timeline")
    assert wait_until(lambda: computing(place / "timeline"), "the run computes", process), process.communicate()[1]
    wait_for_writes(process, 1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=900)
    assert process.returncode == 5 and "cannot be resumed" in error
    memext.refused("run", "--resume", "-d", place, naming=str(place))


@pytest.mark.parametrize("backend", ["aio", "uring"])
def test_an_io_error_ends_with_status_3(memext, place, whole, backend):
    """EIO at one in 200 requests: no result, status 3, a sentence; then --resume without the fault has the same bits."""
    process = begin(memext, place, "redundant", f"fault:{backend}", "--fault", "seed=7,eio=0.0005")
    _, error = process.communicate(timeout=900)
    assert process.returncode == 3 and error.strip()
    done = go_on(memext, place, backend)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["checksum"] == whole()


@pytest.mark.parametrize("backend", ["aio", "uring"])
def test_an_io_error_in_the_side_file_ends_with_status_3(memext, place, whole, backend):
    """EIO at a transfer of faces, which lie behind the two Buffers: status 3, and --resume goes on from a later commit than
    the first with the same bits. The store has room for the faces besides, and nothing of it stays."""
    planned = memext.run(*PROBLEM, *PLANS["side-file"], "-d", place, "--backend", backend, "--dry-run")
    align = 2 << 20
    faces_at = align + 2 * -(-planned["layout"]["buffer_bytes"] // align) * align
    fault = f"from={faces_at},fail_after=500"
    steps = 60  # 500 requests are sent within half of them
    process = begin(memext, place, "side-file", f"fault:{backend}", "--fault", fault, "--commit-every", 0, steps=steps)
    _, error = process.communicate(timeout=900)
    assert process.returncode == 3 and "side file" in error, error
    assert (place / "memext.store").stat().st_size == faces_at + planned["side_file_bytes"]
    done = go_on(memext, place, backend, "--verify")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert 4 < report["resumed_from"] < steps and report["verified"] is True and report["checksum"] == whole(steps)
    assert not (place / "memext.store").exists()


@pytest.mark.parametrize("backend", ["aio", "uring"])
def test_short_and_reordered_transfers_do_not_matter(memext, place, backend):
    """checksum(half of all transfers short, completions in random order) == checksum(undisturbed); bytes are the same."""
    problem = ["-n", 30, 29, 31, "-t", 7, "-d", place, "--block", 20, 20, 3]
    plain = memext.run(*problem, "--backend", backend)
    fault = memext.run(*problem, "--backend", f"fault:{backend}", "--fault", "seed=3,short=0.5,reorder=1")
    assert fault["checksum"] == plain["checksum"] and fault["device"]["short_transfers"] > 0
    assert fault["read_bytes"] == plain["read_bytes"] and fault["write_bytes"] == plain["write_bytes"]
