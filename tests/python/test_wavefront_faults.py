# SPDX-License-Identifier: BSD-3-Clause
"""memext wavefront while it is killed, interrupted, and while calls and requests fail, in each of its phases: the right bits, or a sentence; what
was committed goes on to the right bits, and no file has its name before it is whole."""
import json
import os
import signal
import subprocess

import numpy
import pytest
from conftest import LONG, wait_until

SIZE = ["-n", 41, 67, "--iterations", 6, "--tile", 8, 30, "--waves", 2]
LARGE = ["-n", 500, 400, "--iterations", 120, "--waves", 6, "--tile", 32, 200]
STEP = int(os.environ.get("MEMEXT_CALL_STEP", "1" if LONG else "5"))  # 1 = every call and request
BEYOND = 12  # calls after the report was written down: its own, and those of closing


def of_loop(memext, directory, size):
    """The bytes of the plain loop's file."""
    path = directory / "loop.npy"
    assert memext("wavefront", *size[:5], "--sequential", "-o", path, "-q").returncode == 0
    return path.read_bytes()


@pytest.fixture(scope="module")
def small(memext, tmp_path_factory):
    return of_loop(memext, tmp_path_factory.mktemp("small"), SIZE)


@pytest.fixture(scope="module")
def large(memext, tmp_path_factory):
    return of_loop(memext, tmp_path_factory.mktemp("large"), LARGE)


def run(memext, folders, whole, *words):
    """(status, stderr, report or None) of a run with outputs, after which only they and the store may be there, each of them whole."""
    place, out = folders
    done = memext("wavefront", "-d", place, "-o", out / "za.npy", "--quiet", "--json", out / "report.json", *words)
    names = {path.name for path in out.iterdir()}
    assert names <= {"za.npy", "report.json"} and {path.name for path in place.iterdir()} <= {"memext.store"}, (names, done.stderr)
    report = json.loads((out / "report.json").read_text()) if "report.json" in names else None
    assert done.returncode in (0, 2, 3) and (done.stderr.strip() or done.returncode == 0), (done.returncode, done.stderr)
    assert "za.npy" not in names or (out / "za.npy").read_bytes() == whole
    assert done.returncode != 0 or (report is not None and "za.npy" in names)
    return done.returncode, done.stderr, report


def stored(memext, place):
    """What the store has of its run; None: no store, or nothing was committed."""
    done = memext("info", place, "--json", "-")
    return json.loads(done.stdout)["store"].get("wavefront") if done.returncode == 0 else None


def go_on(memext, folders, whole, *words):
    """What is left goes on to the right bits, or is refused with a sentence where nothing was committed."""
    place, out = folders
    if not (place / "memext.store").exists():
        return
    committed = stored(memext, place) is not None
    status, error, _ = run(memext, folders, whole, "--resume", "--overwrite", *words)
    assert status == 0 if committed else (status == 2 and "nothing" in error), error


def clear(folders):
    for folder in folders:
        for path in folder.iterdir():
            path.unlink()


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("backend", ["uring", "aio", "mmap"])
def test_every_call_fails_once(memext, folders, small, backend, resumed):
    """For n = 1, 1 + STEP, ...: call n gives EIO (odd n) or ENOSPC (even n): a disk that is full at that moment. resumed: of a run that goes on."""
    n, last, wrong = 1 - STEP, 1, 0
    step = STEP if backend != "mmap" else 9 * STEP  # where each transfer is a call
    while n < last + BEYOND:
        n += step
        clear(folders)
        words = [*SIZE, "--backend", backend]
        if resumed:
            made = memext("wavefront", *SIZE, "-d", folders[0], "--backend", f"fault:{backend}", "--fault", "fail=230", "--keep", "-q")
            assert made.returncode == 3 and stored(memext, folders[0]), made.stderr
            words = ["--resume", "--backend", backend, "--verify"]
        status, error, report = run(memext, folders, small, *words, "--fault", f"call={n},errno={5 if n % 2 else 28}")
        last = max(last, (report or {}).get("fault_calls", 0))
        wrong += status != 0
        go_on(memext, folders, small, "--backend", backend)
    assert last > 15 and wrong >= 2, "hardly a call failed: is --fault heard?"


def test_every_request_fails_once(memext, folders, small):
    """For n = 1, 1 + STEP, ..., further and further apart: request n to the device gives EIO, all others work: status 3, and the store goes on."""
    n, failed = 1 - STEP, True
    while failed:
        n += max(STEP, n // 5) if STEP > 1 else 1
        clear(folders)
        status, error, _ = run(memext, folders, small, *SIZE, "--verify", "--backend", "fault:aio", "--fault", f"fail={n}")
        failed = status != 0
        assert not failed or status == 3, (n, error)
        go_on(memext, folders, small)
    assert n > 200


def test_a_report_or_timeline_without_room(memext, folders, small):
    """Their disk is full: status 3, the result is not lost, and the run can be gone on with until it is."""
    place, out = folders
    for option in ("--timeline", "--trace", "--json"):
        done = memext("wavefront", *SIZE, "-d", place, "-o", out / "za.npy", option, "/dev/full", "-q")
        assert done.returncode == 3 and "/dev/full" in done.stderr, done.stderr
        if option != "--json":
            assert "iteration 6 of 6 is committed" in done.stderr and not (out / "za.npy").exists()
            go_on(memext, folders, small)
        assert (out / "za.npy").read_bytes() == small and list(place.iterdir()) == []
        clear(folders)


def test_room_that_a_killed_run_took(memext, folders, small):
    """Before its first superblock a run has taken room, and written nothing: the next one begins there. A file with one byte is not destroyed."""
    place, out = folders
    for size in (1, 64 << 20):
        (place / "memext.store").write_bytes(b"")
        os.truncate(place / "memext.store", size)
        memext.refused("export", place, "-o", out / "za.npy", naming="no")
        assert run(memext, folders, small, *SIZE)[0] == 0
        clear(folders)
    with (place / "memext.store").open("w+b") as file:  # as the run takes it; what was looked at is in the page cache
        os.posix_fallocate(file.fileno(), 0, 4 << 20)
        file.read()
    assert run(memext, folders, small, *SIZE)[0] == 0
    clear(folders)
    for at in (0, 40 << 20):
        with (place / "memext.store").open("wb") as file:
            file.seek(at)
            file.write(b"mine")
        memext.refused("wavefront", *SIZE, "-d", place, naming="not made by memext")
        assert (place / "memext.store").read_bytes()[at:] == b"mine"
        memext.refused("run", "-n", 9, 9, 9, "-t", 2, "-d", place, naming="not made by memext")


# ---- the phases, each known by what it leaves to be seen

def output_grows(pid, folder):
    """A file without a name in the folder has its first bytes."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            if os.readlink(path).startswith(str(folder)) and os.readlink(path).endswith("(deleted)") and os.stat(path).st_size > 0:
                return True
        except FileNotFoundError:
            pass
    return False


def begin(memext, folders, *words):
    place, out = folders
    return subprocess.Popen([str(memext.program), "wavefront", *map(str, words), "-d", str(place), "-o", str(out / "za.npy"), "-q"],
                            stderr=subprocess.PIPE, text=True)  # fmt: skip


REACHED = {
    "conversion": lambda memext, folders, process: (folders[0] / "memext.store").exists(),
    "passes": lambda memext, folders, process: (stored(memext, folders[0]) or {"iterations_done": 0})["iterations_done"] > 0,
    "verification": lambda memext, folders, process: (stored(memext, folders[0]) or {"iterations_done": 0})["iterations_done"] == 120,
    "output": lambda memext, folders, process: output_grows(process.pid, folders[1]),
}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("phase", REACHED)
def test_it_ends_in_each_phase(memext, folders, large, phase, number):
    """Killed, or interrupted (status 5), as soon as the phase is seen: no output but a whole one; the store goes on to the right bits, which --export
    gives too. A run that was faster has its result."""
    place, out = folders
    process = begin(memext, folders, *LARGE, *(["--verify"] if phase == "verification" else []))
    wait_until(lambda: process.poll() is not None or REACHED[phase](memext, folders, process), phase, process)
    process.send_signal(number)
    error = process.communicate()[1]
    assert process.returncode in (0, 5 if number == signal.SIGINT else -signal.SIGKILL), error
    if process.returncode == 0 or (out / "za.npy").exists():
        assert (out / "za.npy").read_bytes() == large
    state = stored(memext, place)
    if process.returncode == 5 and state:
        assert f"iteration {state['iterations_done']} of 120 is committed" in error
    if state is None and (place / "memext.store").exists():
        memext.refused("wavefront", "--resume", "-d", place, naming="nothing")  # was committed, or is there to resume
        assert memext("wavefront", *LARGE, "-d", place, "-o", out / "za.npy", "-q").returncode == 0
    elif state is not None:
        assert memext("export", place, "-o", out / "part.npy", "-q").returncode == 0
        if state["iterations_done"] == 120:
            assert (out / "part.npy").read_bytes() == large
        assert numpy.load(out / "part.npy").shape == (502, 402)
        (out / "part.npy").unlink()
        go_on(memext, folders, large)
    if (out / "za.npy").exists():
        assert (out / "za.npy").read_bytes() == large and list(place.iterdir()) == []
    assert {path.name for path in out.iterdir()} <= {"za.npy", "report.json"}
