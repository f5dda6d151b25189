"""Interruption, sudden death and I/O errors: the last committed sweep stays, and --resume ends with the same bits."""
import json
import random
import signal
import subprocess
import time

import pytest

PROBLEM = ["-n", 94, 94, 126, "-t", 240]
PLANS = {"redundant": ["--algorithm", "redundant", "--block", 94, 70, 4], "stream": ["--algorithm", "stream", "--block", 94, 126, 4],
         "side-file": ["--plan", "stream by=24 bt=4 slab=8 faces=side-file"]}


@pytest.fixture
def place(quick_place):
    return quick_place


@pytest.fixture(scope="module")
def whole(memext):
    """(checksum, seconds) of the uninterrupted run of PROBLEM."""
    begin = time.monotonic()
    result = memext.run(*PROBLEM, "--algorithm", "direct", "--backend", "dram", "--engine", "iblock")
    return result["checksum"], time.monotonic() - begin


def begin(memext, place, algorithm, backend, *more):
    """Starts a run; returns when its initial grid is committed, for the timeline begins with the computation."""
    words = ["run", *PROBLEM, *PLANS[algorithm], "-d", place, "--backend", backend, "-q", "--json",
             place / "report.json", "--timeline", place / "timeline", *more]
    process = subprocess.Popen([str(memext.program), *map(str, words)], stderr=subprocess.PIPE, text=True)
    while not (place / "timeline").exists() and process.poll() is None:
        time.sleep(0.005)
    return process


def go_on(memext, place, backend, *more):
    return memext("run", "--resume", "-d", place, "--backend", backend, "-q", "--json", "-", *more)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("backend", ["mmap", "aio", "uring"])
@pytest.mark.parametrize("algorithm", ["redundant", "stream"])
def test_a_signal_then_resume(memext, place, whole, algorithm, backend, number):
    """Status 5 and a report at the first signal, then checksum(resumed) == checksum(whole)."""
    process = begin(memext, place, algorithm, backend)
    time.sleep(0.1)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 5, "the run ended before the signal" if process.returncode == 0 else error
    assert json.loads((place / "report.json").read_text())["status"] == "interrupted" and "--resume" in error
    done = go_on(memext, place, backend, "--verify")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["checksum"] == whole[0] and report["verified"] is True


def test_a_signal_before_the_first_commit(memext, place):
    """Status 5, nothing is left, and nothing is promised."""
    process = subprocess.Popen([str(memext.program), *"run -n 254 254 510 -t 9 -q -d".split(), str(place)], stderr=subprocess.PIPE,
                               text=True)
    while not (place / "memext.store").exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 5 and list(place.iterdir()) == [] and "--resume" not in error


@pytest.mark.parametrize("backend", ["mmap", "aio", "uring"])
@pytest.mark.parametrize("algorithm", ["redundant", "stream", "side-file"])
def test_sudden_death_then_resume(memext, place, whole, algorithm, backend):
    """kill -9 at random moments, again and again, then --resume: checksum == checksum(whole). Between deaths a signal
    tells how far it is: a commit is never lost."""
    dice, reached = random.Random(f"{algorithm} {backend}"), 0
    process = begin(memext, place, algorithm, backend)
    for _ in range(4):
        time.sleep(dice.uniform(0.0, 0.1))
        process.kill()
        _, error = process.communicate()
        if process.returncode == 0:  # it was through before the signal came
            break
        resumed = [str(memext.program), "run", "--resume", "-d", str(place), "--backend", backend, "-q", "--json",
                   str(place / "report.json")]
        process = subprocess.Popen(resumed, stderr=subprocess.PIPE, text=True)
        time.sleep(dice.uniform(0.0, 0.1))
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        report = json.loads((place / "report.json").read_text())
        assert report["resumed_from"] >= reached
        if process.returncode == 0:
            break
        assert process.returncode in (5, -signal.SIGINT), error
        reached = report["steps_done"]
        process = subprocess.Popen(resumed, stderr=subprocess.PIPE, text=True)
    if process.poll() is None:
        _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    report = json.loads((place / "report.json").read_text())
    assert report["checksum"] == whole[0] and report["steps_done"] == 240


def test_an_algorithm_in_place_says_that_it_cannot_resume(memext, place):
    process = subprocess.Popen([str(memext.program), *"run -n 94 94 126 -t 40000 --algorithm skewed -q -d".split(), str(place)],
                               stderr=subprocess.PIPE, text=True)
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 5 and "cannot be resumed" in error
    memext.refused("run", "--resume", "-d", place, naming=str(place))


@pytest.mark.parametrize("backend", ["aio", "uring"])
def test_an_io_error_ends_with_status_3(memext, place, whole, backend):
    """EIO at one in 200 requests: no result, status 3, a sentence; then --resume without the fault has the same bits."""
    process = begin(memext, place, "redundant", f"fault:{backend}", "--fault", "seed=7,eio=0.0005")
    _, error = process.communicate(timeout=60)
    assert process.returncode == 3 and error.strip()
    done = go_on(memext, place, backend)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["checksum"] == whole[0]


@pytest.mark.parametrize("backend", ["aio", "uring"])
def test_an_io_error_in_the_side_file_ends_with_status_3(memext, place, whole, backend):
    """EIO at a transfer of faces, which lie behind the two Buffers: status 3, and --resume goes on from a later commit than
    the first with the same bits. The store has room for the faces besides, and nothing of it stays."""
    planned = memext.run(*PROBLEM, *PLANS["side-file"], "-d", place, "--backend", backend, "--dry-run")
    align = 2 << 20
    faces_at = align + 2 * -(-planned["layout"]["buffer_bytes"] // align) * align
    fault = f"from={faces_at},fail_after=500"
    process = begin(memext, place, "side-file", f"fault:{backend}", "--fault", fault)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 3 and "side file" in error, error
    assert (place / "memext.store").stat().st_size == faces_at + planned["side_file_bytes"]
    done = go_on(memext, place, backend, "--verify")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["resumed_from"] > 4 and report["verified"] is True and report["checksum"] == whole[0]
    assert not (place / "memext.store").exists()


@pytest.mark.parametrize("backend", ["aio", "uring"])
def test_short_and_reordered_transfers_do_not_matter(memext, place, backend):
    """checksum(half of all transfers short, completions in random order) == checksum(undisturbed); bytes are the same."""
    problem = ["-n", 30, 29, 31, "-t", 7, "-d", place, "--block", 20, 20, 3]
    plain = memext.run(*problem, "--backend", backend)
    fault = memext.run(*problem, "--backend", f"fault:{backend}", "--fault", "seed=3,short=0.5,reorder=1")
    assert fault["checksum"] == plain["checksum"] and fault["device"]["short_transfers"] > 0
    assert fault["read_bytes"] == plain["read_bytes"] and fault["write_bytes"] == plain["write_bytes"]
