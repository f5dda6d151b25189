# SPDX-License-Identifier: BSD-3-Clause
"""--snapshot: what is written while a run goes on is the state of shorter runs, by every plan; kill, interrupt, a full disk, other people's files."""
import fcntl
import json
import os
import shutil
import signal
import subprocess

import numpy as np
import pytest
from conftest import needs_root, wait_until
from run_systems import System

NX, NY, NZ, NT, EVERY = 30, 29, 31, 23, 4
GRID = ["-n", NX, NY, NZ]
STEPS = range(EVERY, NT + 1, EVERY)
PLANS = {
    "direct": ["--backend", "dram", "--algorithm", "direct", "--engine", "iblock"],
    "direct tiled": ["--backend", "mmap", "--algorithm", "direct", "--engine", "tiled"],
    "direct-skewed": ["--backend", "mmap", "--algorithm", "direct-skewed", "--block", 13, 11, 5],
    "skewed": ["--backend", "uring", "--algorithm", "skewed", "--block", 13, 11, 5],
    "skewed-min": ["--backend", "mmap", "--algorithm", "skewed-min", "--block", 13, 11, 3],
    "redundant": ["--backend", "uring", "--algorithm", "redundant", "--block", 13, 11, 3],
    "stream": ["--backend", "aio", "--algorithm", "stream", "--block", NY, NZ, 7, "--engine", "tiled"],
    "stream dram": ["--backend", "dram", "--algorithm", "stream", "--block", NY, NZ, 4],
    "strips": ["--backend", "uring", "--algorithm", "stream", "--block", 10, NZ, 3, "--commit-every", 0],
    "side-file": ["--backend", "mmap", "--plan", "stream by=10 bt=30 slab=4 faces=side-file"],
}


@pytest.fixture
def place(quick_place):
    (quick_place / "store").mkdir()
    return quick_place


@pytest.fixture(scope="module")
def states(memext, tmp_path_factory):
    """states[step]: the interior after so many steps, of runs that end there."""
    d = tmp_path_factory.mktemp("states")

    def state(step):
        memext.run(*GRID, "-t", step, *PLANS["direct"], "-o", d / "s.npy", "--output-frame", "none", "--overwrite")
        return np.load(d / "s.npy")
    return {step: state(step) for step in range(EVERY, NT + 1)}


def name(step, field="u"):
    return f"{field}-{step:06d}.npy"


def listed(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "memext.snapshots")


def check(folder, states, steps, stride=1):
    assert listed(folder) == [name(step) for step in steps]
    for step in steps:
        assert np.load(folder / name(step)).tobytes() == states[step][::stride, ::stride, ::stride].tobytes(), step


def where(plan, place):
    return [*PLANS[plan], *([] if "dram" in PLANS[plan] else ["-d", place / "store"])]


@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_takes_the_states_of_shorter_runs(memext, place, states, plan):
    """Whole and one cell of 3 x 3 x 3; bytes of both kinds are those predicted, and the result that without snapshots."""
    for stride in (1, 3):
        snaps = place / f"snaps-{stride}"
        done = memext.run(*GRID, "-t", NT, *where(plan, place), "--snapshot", f"{EVERY}:{snaps}" + (f":{stride}" if stride > 1 else ""),
                          "-o", place / "out.npy", "--overwrite", "--output-frame", "none")
        check(snaps, states, STEPS, stride)
        assert np.load(place / "out.npy").tobytes() == states[NT].tobytes()
        told, size = done["snapshots"], sum((snaps / name(step)).stat().st_size for step in STEPS)
        assert told["count"] == told["predicted_count"] == len(STEPS) and told["bytes"] == told["predicted_bytes"] == size
        assert told["every"] == EVERY and told["stride"] == stride and told["directory"] == str(snaps) and told["seconds"] > 0
        if "direct" not in plan:
            assert (done["read_bytes"], done["write_bytes"]) == (done["predicted_read_bytes"], done["predicted_write_bytes"])


@pytest.mark.parametrize("system, n_fields", [("wave", 1), ("fdtd", 6), ("gray_scott", 2)])
def test_fields_of_kernels(memext, place, tmp_path, system, n_fields):
    """All fields of the state, by every form, pairs in place too; the step before of leapfrog is none of them."""
    s, h = System(system, tmp_path), {"wave": 4}.get(system, 1)
    fields = list(s.state)[:n_fields]
    plans = [["--algorithm", "stream", "--block", 200, 200, 4], ["--plan", "stream by=9 bt=2 slab=2"], ["--algorithm", "redundant", "--block", 7, 8, 2],
             ["--algorithm", "skewed", "--block", 17, 16, 2], ["--backend", "mmap", "--algorithm", "direct"]]
    if system != "gray_scott":
        plans.append(["--algorithm", "stream", "--block", 200, 200, 4, "--in-place"])
    for i, plan in enumerate(plans):
        snaps = place / f"snaps-{i}"
        chosen = fields if i % 2 == 0 else fields[-1:]
        words = ["--snapshot-fields", ",".join(chosen)] if i % 2 else []
        done = memext.run(*s.words(7), "-d", place / "store", *plan, "--snapshot", f"2:{snaps}:2", *words)
        assert listed(snaps) == sorted(name(step, field) for step in (2, 4, 6) for field in chosen)
        for step in (2, 4, 6):
            for field in chosen:
                wanted = s.wanted(step)[field][h:-h:2, h:-h:2, h:-h:2]
                assert np.load(snaps / name(step, field)).tobytes() == np.ascontiguousarray(wanted).tobytes(), (plan, step, field)
        assert done["snapshots"]["bytes"] == done["snapshots"]["predicted_bytes"]
        if "direct" not in plan:
            assert (done["read_bytes"], done["write_bytes"]) == (done["predicted_read_bytes"], done["predicted_write_bytes"]), plan


@pytest.mark.parametrize("plan, number", [("strips", signal.SIGKILL), ("redundant", signal.SIGKILL), ("stream", signal.SIGINT)])
def test_a_run_that_was_ended_goes_on(memext, place, tmp_path, plan, number):
    """What was there before the committed step stays, what came after is written again; what a dead process left under another name goes."""
    words, snaps, plain = [*GRID, "-t", 1200], place / "snaps", tmp_path / "plain"
    checksum = memext.run(*words, *PLANS["direct"], "--snapshot", f"50:{plain}:2")["checksum"]
    with subprocess.Popen([str(w) for w in (memext.program, "run", *words, *where(plan, place), "--snapshot", f"50:{snaps}:2", "--quiet")],
                          stderr=subprocess.DEVNULL) as run:
        assert wait_until((snaps / name(100)).exists, "a snapshot", run)
        run.send_signal(number)
        run.wait()
    assert run.returncode == (5 if number == signal.SIGINT else -signal.SIGKILL)
    told = json.loads(memext("info", place / "store", "--json", "-").stdout)["store"]
    assert told["snapshots"] == {"every": 50, "stride": 2, "directory": str(snaps)} and f"in {snaps}" in memext("info", place / "store").stdout
    for step in range(50, told["step"] + 1, 50):  # durable before the commit
        assert (snaps / name(step)).read_bytes() == (plain / name(step)).read_bytes()
    (snaps / ".u-000050.npy.memext-1").write_text("left")
    memext.refused("run", "--resume", "-d", place / "store", "--snapshot", f"25:{snaps}:2", naming=["every 50", "same"])
    memext.refused("run", "--resume", "-d", place / "store", "--snapshot", f"50:{plain}:2", naming=["another run", "plain"])
    before = (snaps / name(50)).read_bytes()
    for words in (["-o", snaps / name(50)], ["--json", snaps / name(50)]):  # of the directory that the store names
        memext.refused("run", "--resume", "-d", place / "store", *words, "--overwrite", naming=["--snapshot", words[0].replace("-o", "--output")])
    assert (snaps / name(50)).read_bytes() == before
    moved = place / "moved"
    snaps.rename(moved)
    done = memext.run("--resume", "-d", place / "store", "--snapshot", f"50:{moved}:2")
    assert done["checksum"] == checksum and done["resumed_from"] == told["step"] and listed(moved) == listed(plain)
    for step in range(50, 1201, 50):
        assert (moved / name(step)).read_bytes() == (plain / name(step)).read_bytes()
    left = 1200 // 50 - told["step"] // 50
    assert done["snapshots"]["count"] == done["snapshots"]["predicted_count"] == left


@needs_root
@pytest.mark.parametrize("plan", ["stream", "skewed"])
def test_a_full_disk(memext, place, states, mounted, tmp_path, plan):
    """Said before; when it comes status 3 and a sentence; with room again the run goes on, where the algorithm can."""
    folder, _ = mounted(8 << 20)
    snaps, words = folder / "snaps", [*GRID, "-t", 40]
    done = memext("run", *words, *where(plan, place), *(["--commit-every", 0] if plan == "stream" else []), "--snapshot", f"1:{snaps}")
    assert done.returncode == 3 and "stops when the file system is full" in done.stderr and "snaps/u-0000" in done.stderr and "the file system is full" in done.stderr, done.stderr
    there = listed(snaps)
    assert there == [name(step) for step in range(1, len(there) + 1)] and 4 < len(there) < 40
    assert all(np.load(snaps / name(step)).tobytes() == states[step].tobytes() for step in range(EVERY, min(NT, len(there)) + 1))
    memext.refused("run", "-n", 300, 300, 300, "-t", 9, "--backend", "dram", "--snapshot", f"1:{folder}/more", naming=["206 MiB", "free", "STRIDE"])
    for file in there:
        shutil.move(snaps / file, tmp_path / file)
    if plan == "stream":
        done = memext.run("--resume", "-d", place / "store")
        assert done["checksum"] == memext.run(*words, *PLANS["direct"])["checksum"] and 0 < done["resumed_from"] <= len(there)
        assert listed(snaps) == [name(step) for step in range(done["resumed_from"] + 1, 41)]


def test_a_directory_is_one_runs_alone(memext, place, states, tmp_path):
    """One that is not empty is refused; --overwrite removes what another run of snapshots left, nothing else."""
    snaps = tmp_path / "snaps"
    run = [*GRID, "-t", 9, *PLANS["direct"]]
    memext.run(*run, "--snapshot", f"3:{snaps}")
    memext.refused("run", *run, "--snapshot", f"{EVERY}:{snaps}", naming=["another run", "--overwrite"])
    mine = [snaps / n for n in ("thesis.txt", "velocity-20261123.npy", name(7), ".u-000009.npy.memext-old")]  # of no field or step of that run
    mine += [snaps / n for n in (name(12), "u-0000006.npy")]  # behind its end, and of one of its steps, but not as it writes it
    for path in mine:
        path.write_text("mine")
    taken = snaps / name(9)  # a step of that run, but of another time; and with other cells
    for change in (lambda: np.save(taken, np.zeros((2, 2, 2))), lambda: os.utime(taken, (10**9, 10**9))):
        own = taken.read_bytes()
        change()
        before = taken.read_bytes()
        refused = memext("run", *GRID, "-t", 9, *PLANS["direct"], "--snapshot", f"9:{snaps}", "--overwrite")
        assert refused.returncode == 2 and taken.name in refused.stderr and taken.read_bytes() == before
        taken.write_bytes(own)
    memext.run(*run, "--snapshot", f"{EVERY}:{snaps}", "--overwrite")
    for path in mine:
        assert path.read_text() == "mine"
        path.unlink()
    check(snaps, states, (4, 8))
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    memext.refused("run", *run, "--snapshot", f"{EVERY}:{other}", naming=["not empty", "thesis.txt"])
    (other / name(4)).symlink_to(other / "thesis.txt")
    memext.refused("run", *run, "--snapshot", f"{EVERY}:{other}", "--overwrite", naming=[name(4), "not a regular file"])
    assert (other / "thesis.txt").read_text() == "mine"
    fd = os.open(snaps, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    memext.refused("run", *run, "--snapshot", f"{EVERY}:{snaps}", "--overwrite", naming=["in use", "snaps"])
    os.close(fd)
    check(snaps, states, (4, 8))


def test_refusals(memext, tmp_path):
    """Nothing is made; a word too many is no name of a directory; files of others and of the run itself."""
    snaps, grid = tmp_path / "snaps", tmp_path / "in.npy"
    np.save(grid, np.zeros((6, 6, 6)))
    before = grid.read_bytes()
    run = [*GRID, "-t", 9, *PLANS["direct"]]
    for word, naming in [("2:sn:-3", ["2:sn:-3", "DIR:1"]), ("2:sn:x", ["colon"]), ("sn", ["EVERY:DIR"]), ("0:sn", ["EVERY:DIR"]), ("-2:sn", ["EVERY:DIR"]),
                         ("2:", ["no directory"]), ("2::3", ["no directory"]), ("2:sn:0", ["DIR:1"]), ("10:sn", ["up to 9", "no snapshot"]), ("2:no/sn", ["no/sn", "create"]),
                         ("2:in.npy", ["in.npy", "directory"])]:
        memext.refused("run", *run, "--snapshot", word, naming=naming, cwd=tmp_path)
    memext.refused("run", *run, "--snapshot-fields", "u", naming="--snapshot EVERY:DIR")
    memext.refused("run", *run, "--snapshot", f"2:{snaps}", "--snapshot-fields", "u,w", naming=["'w'", "u"])
    for words in (["-o", snaps], ["--json", snaps], ["-d", snaps, "--backend", "aio"]):
        memext.refused("run", *GRID, "-t", 9, "--backend", "dram", *words, "--snapshot", f"2:{snaps}", naming=["snaps", "--snapshot"])
    snaps.mkdir()
    os.link(grid, snaps / name(2))
    (snaps / "link").symlink_to(snaps / name(2))
    for words in (["-o", snaps / name(4)], ["--trace", snaps / "memext.snapshots"], ["--probes", snaps / "link", "--probes-out", "x"]):
        memext.refused("run", *run, *words, "--snapshot", f"2:{snaps}", "--overwrite", naming=["--snapshot", words[0]])
    memext.refused("run", "--input", snaps / name(2), "-t", 4, *PLANS["direct"], "--snapshot", f"2:{snaps}", "--overwrite", naming=["--input", name(2)])
    memext.refused("run", *GRID, "-t", 9, "-d", snaps, "--snapshot", f"2:{snaps}", "--overwrite", naming=["store", "directory"])
    assert grid.read_bytes() == before and sorted(os.listdir(tmp_path)) == ["in.npy", "snaps"] and sorted(os.listdir(snaps)) == ["link", name(2)]
    planned = memext("run", *run, "--snapshot", f"2:{tmp_path}/a:b:1", "--dry-run")
    assert planned.returncode == 0 and "snapshots  4, every 2 steps, one cell of 1 in" in planned.stdout and not (tmp_path / "a:b").exists()
