# SPDX-License-Identifier: BSD-3-Clause
"""What killed processes leave: the next start of the same run, or its end, removes it; what others made, or are at work on, stays."""
import fcntl
import os
import signal
import subprocess
import sys

import pytest
from conftest import wait_until

GRID = ["-n", 30, 26, 48, "-t", 8, "--dram", "64MiB", "--quiet"]
SLOW = ["--backend", "fault:aio", "--fault", "delay_us=20000", "--commit-every", 0, "--block", 26, 48, 2, "--algorithm", "stream"]


@pytest.fixture
def place(quick_place):
    (quick_place / "p").mkdir()
    return quick_place / "p"


def left(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def kill_when(memext, state, words):
    """kill -9 of all processes of a run, when `state` has come."""
    started = subprocess.Popen([str(w) for w in [memext.program, *words]], start_new_session=True, stderr=subprocess.PIPE, text=True)
    wait_until(state, "the moment of the kill", started)
    os.killpg(started.pid, signal.SIGKILL)
    started.communicate(timeout=600)


def ranks(n):
    return ["--ranks", n] if n > 1 else []


def finish(memext, directory, n, out):
    """Resumes, or begins anew where nothing can be resumed."""
    more = ["-d", directory, *ranks(n), "-o", out, "--quiet", "--dram", "64MiB"]
    done = memext("run", "--resume", *more)
    if done.returncode != 0:
        done = memext("run", *GRID, *more, "--force")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wanted(memext, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wanted")
    assert memext("run", *GRID, "-d", folder, "-o", folder / "o.npy").returncode == 0
    return (folder / "o.npy").read_bytes()


@pytest.mark.parametrize("name", ["p", "p/d%r"])
@pytest.mark.parametrize("then", [1, 2, 3])
def test_ranks_that_were_killed(memext, place, wanted, name, then):
    """Before the first commit and after it, and while another number of ranks goes on: no output without its name, no store, no directory."""
    home = place.parent
    directory, n = home / name, max(then, 2) if "%r" in name else then
    of = (lambda rank: place / f"d{rank}") if "%r" in name else (lambda rank: place / f"rank-{rank}")
    store = of(3) / "memext.store"
    kill_when(memext, store.exists, ["run", *GRID, *SLOW, "-d", directory, *ranks(4), "-o", home / "o.npy"])
    assert store.exists() and not [path for path in left(home) if path.startswith(".o.npy")]  # on one machine it had no name
    finish(memext, directory, n, home / "o.npy")
    assert left(home) == ["o.npy", "p"] and (home / "o.npy").read_bytes() == wanted
    (home / "o.npy").unlink()

    assert memext("run", *GRID[:3], 48, "-t", 2, *GRID[6:], "-d", directory, *ranks(2), "--commit-every", 0, "--keep").returncode == 0
    cut = of(2) / "cut-1"
    kill_when(memext, cut.exists, ["run", "--resume", "-t", 8, *GRID[6:], *SLOW, "-d", directory, *ranks(3)])
    finish(memext, directory, n, home / "o.npy")
    kept = [path for path in left(home) if path.endswith("memext.store")]
    assert len(kept) == n and all(("cut-" in path) == (n != 2) for path in kept)  # --keep goes along with --resume
    assert memext("run", *GRID, "-d", directory, *ranks(n), "-o", home / "o.npy", "--overwrite", "--force").returncode == 0
    assert left(home) == ["o.npy", "p"] and (home / "o.npy").read_bytes() == wanted


def test_directories_of_others(memext, place):
    """A refused run leaves none; one that its user made stays, with what is in it, as do stores of other runs and what looks like a store of ours."""
    for more in (["--ranks", 12, "-n", 30, 26, 48, "-t", 8, "--plan", "stream by=26 bt=9"], ["--ranks", 2, "--kernel", place / "none.c", "-n", 30, 26, 48, "-t", 1]):
        for directory in place, place / "d%r":
            assert memext("run", "-d", directory, "--quiet", *more).returncode == 2
            assert left(place) == []
    (place / "rank-0").mkdir()
    (place / "rank-1").mkdir()
    (place / "rank-1" / "mine").touch()
    (place / "rank-7").mkdir()
    (place / "rank-7" / "memext.store").write_bytes(b"precious")
    (place / "rank-8").mkdir()
    assert memext("run", *GRID, "-d", place / "rank-8", "--keep").returncode == 0
    before = left(place)
    for n in 2, 1, 3:
        assert memext("run", *GRID, "-d", place, *ranks(n)).returncode == 0
        assert left(place) == before and (place / "rank-7" / "memext.store").read_bytes() == b"precious"


def test_what_others_are_at_work_on(memext, place):
    """A run that begins beside another one in the same directory takes nothing from it."""
    out = place.parent / "o.npy"
    started = subprocess.Popen([str(w) for w in [memext.program, "run", *GRID, *SLOW, "-d", place, *ranks(3), "-o", out]], stderr=subprocess.PIPE, text=True)
    wait_until((place / "rank-2" / "memext.store").exists, "the stores of the ranks", started)
    for _ in range(3):
        assert memext("run", *GRID, "-d", place).returncode == 0
    assert started.communicate(timeout=600) == (None, "") and started.returncode == 0 and left(place.parent) == ["o.npy", "p"]


@pytest.mark.parametrize("command", ["run", "json", "export", "wavefront"])
def test_outputs_that_were_left(memext, place, command):
    """Where a file system has no files without names, and under MPI on several machines, an output has a hidden name. The next one of its name removes
    what dead processes left, and nothing else."""
    out = place.parent / "o.npy"
    names = {name: place.parent / name for name in (".o.npy.memext-4194999", ".o.npy.memext-4194998", ".o.npy.memext-12x", ".o.npy.memext-", ".p.npy.memext-1",
                                                    ".o.npy.memext-4194997", "o.npy.memext-4194996")}
    for name, path in names.items():
        path.mkdir() if name.endswith("97") else path.write_bytes(b"left")
    words = {"run": ["run", *GRID, "-d", place, "-o", out], "json": ["info", "--json", out, "--quiet"],
             "export": ["export", place, "-o", out], "wavefront": ["wavefront", "-n", 40, 40, "-k", 2, "-d", place, "-o", out, "--quiet"]}[command]
    if command == "export":
        assert memext("run", *GRID, "-d", place, "--keep").returncode == 0
    with open(names[".o.npy.memext-4194998"]) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = memext(*words)
    assert done.returncode == 0 and out.exists(), done.stderr
    assert [name for name, path in names.items() if not path.exists()] == [".o.npy.memext-4194999"]


HOLDER = """import fcntl, struct, sys
store = open(sys.argv[1], "r+b")
fcntl.flock(store, fcntl.LOCK_EX)
F_OFD_SETLK = 37
fcntl.fcntl(store, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
much = b"x" * (768 << 20)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("then", ["info", "run", "export"])
def test_locks_of_a_process_that_is_ending(memext, place, tmp_path, then):
    """One with much memory, which Linux takes apart before it lets go of the locks: whoever comes meanwhile waits, and is refused while it lives."""
    assert memext("run", *GRID, "-d", place, "--keep").returncode == 0
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, place / "memext.store"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        words = {"info": ["info", place, "--json", "-"], "run": ["run", "--resume", "-d", place, "-t", 9, "--quiet"], "export": ["export", place, "-o", tmp_path / "u.npy"]}[then]
        done = memext(*words)
        assert '"in_use": true' in done.stdout if then == "info" else done.returncode == 2 and "in use" in done.stderr, done.stderr
        holder.kill()
        done = memext(*words)
        assert done.returncode == 0 and '"in_use": true' not in done.stdout, done.stderr
    finally:
        holder.kill()
        holder.communicate(timeout=600)
