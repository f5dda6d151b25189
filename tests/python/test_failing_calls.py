# SPDX-License-Identifier: BSD-3-Clause
"""System calls of a small run fail, one in each run, and requests to the device: the right bits, or a sentence and status 2 or 3.
Never a wrong result, a hang, or a file that should not be there; and what was committed goes on with the right bits."""
import json
import os

import pytest
from conftest import LONG

GRID = ["-n", 22, 21, 23, "-t", 9]
PLANS = {"redundant": "redundant by=13 bz=11 bt=3", "stream": "stream by=21 bt=3 slab=4", "side-file": "stream by=10 bt=3 slab=4 faces=side-file",
         "direct": "direct bt=3"}
CASES = [("uring", "redundant"), ("aio", "stream"), ("uring", "side-file"), ("mmap", "redundant"), ("mmap", "direct"), ("mmap", "stream")]
STEP = int(os.environ.get("MEMEXT_CALL_STEP", "1" if LONG else "9"))  # 1 = every call and request, which takes a quarter of an hour
BEYOND = 12  # calls after the report was written down: its own, and those of closing


@pytest.fixture(scope="module")
def whole(memext):
    return memext.run(*GRID, "--backend", "dram", "--algorithm", "direct", "--engine", "iblock")["checksum"]


def run(memext, folders, *words):
    """(status, stderr, report or None) of a run with two outputs, after which only they and the store may be there."""
    place, out = folders
    done = memext("run", "-d", place, "--output", out / "r.npy", "--quiet", "--json", out / "report.json", *words, timeout=900)
    names = {path.name for path in out.iterdir()}
    assert names <= {"r.npy", "report.json"} and {path.name for path in place.iterdir()} <= {"memext.store"}, (names, done.stderr)
    report = json.loads((out / "report.json").read_text()) if "report.json" in names else None
    assert done.returncode in (0, 2, 3) and (done.stderr.strip() or done.returncode == 0), (done.returncode, done.stderr)
    assert report is not None or done.returncode != 0
    return done.returncode, done.stderr, report


def clear(folders):
    for folder in folders:
        for path in folder.iterdir():
            path.unlink()


def go_on(memext, folders, backend, whole):
    """What an earlier run left goes on to the right bits, or is refused with a sentence where nothing was committed."""
    place, out = folders
    if not (place / "memext.store").exists():
        return
    committed = json.loads(memext("info", place, "--json", "-").stdout or '{"store": {"step": -1}}')["store"]["step"] >= 0
    status, error, report = run(memext, folders, "--resume", "--backend", backend, "--overwrite")
    assert (status == 0 and report["checksum"] == whole) if committed else status == 2, error


@pytest.mark.parametrize("backend, plan", CASES)
@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.each_value
def test_every_call_fails_once(memext, folders, whole, backend, plan, resumed):
    """For n = 1, 1 + STEP, ...: call n gives EIO (odd n) or ENOSPC (even n). resumed: the calls of a run that goes on with a store."""
    if resumed and plan == "direct":
        pytest.skip("direct works in place: there is nothing to resume")
    words = ["--plan", PLANS[plan], "--backend", backend, "--commit-every", 0] if plan != "direct" else ["--plan", PLANS[plan], "--backend", backend]
    n, last, wrong = 1 + CASES.index((backend, plan)) % STEP - STEP, 1, 0
    while n < last + BEYOND:
        n += STEP
        clear(folders)
        more = [*GRID, *words]
        if resumed:
            made = memext("run", *GRID, *words[:2], "-d", folders[0], "--commit-every", 0, "--backend", f"fault:{backend}", "--fault", "fail_after=14",
                          "--no-fuse", "--quiet")
            assert made.returncode == 3
            more = ["--resume", "--backend", backend]
        status, error, report = run(memext, folders, *more, "--fault", f"call={n},errno={5 if n % 2 else 28}")
        last = max(last, (report or {}).get("fault_calls", 0))
        assert status != 0 or report["checksum"] == whole, (n, error)
        wrong += status != 0
        go_on(memext, folders, backend, whole)
    assert last > 15 and wrong >= 2, "hardly a call failed: is --fault heard?"


@pytest.mark.parametrize("backend, plan", [case for case in CASES if case[1] != "direct"])
def test_every_request_fails_once(memext, folders, whole, backend, plan):
    """For n = 1, 1 + STEP, ... (every n when STEP is 1, else further and further apart): request n to the device gives EIO, all
    others work: status 3, and the store goes on to the right bits."""
    n, failed = 1 - STEP, True
    while failed:
        n += max(STEP, n // 3) if STEP > 1 else 1
        clear(folders)
        status, error, report = run(memext, folders, *GRID, "--plan", PLANS[plan], "--backend", f"fault:{backend}", "--commit-every", 0,
                                    "--request-size", "32KiB", "--fault", f"fail={n}")
        failed = status != 0
        assert status == 3 if failed else report["checksum"] == whole, (n, error)
        go_on(memext, folders, backend, whole)
    assert n > 20


def test_interrupted_calls_do_no_harm(memext, folders, whole):
    """Four of five calls are interrupted before they do anything: the right bits, at once."""
    for backend, plan in CASES:
        clear(folders)
        status, error, report = run(memext, folders, *GRID, "--plan", PLANS[plan], "--backend", backend, "--fault", "eintr=0.8,seed=3")
        assert status == 0 and report["checksum"] == whole, error
