"""Options of a run by itself that several ranks have too: commits by the clock of rank 0, accelerators, Buffers that are rewritten in place."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import ROOT, wait_until
from test_ranks import EACH, GRID, MPIS, NT, NY, NZ, PLANS, alone, check_bytes, children, files_of, place, ranks, steps_of, whole  # noqa: F401
from test_run_systems import System, cache  # noqa: F401 (kernels are compiled once)

sys.path.insert(0, str(ROOT))
from analysis import timeline  # noqa: E402

SWEEPS = ["--algorithm", "stream", "--block", NY, NZ, 1]
SLOW = ["--backend", "fault:aio", "--fault", "delay_us=2000"]


def committed_steps(path):
    """Of each rank the steps that it has committed."""
    return [[e["n"] for e in line.of_kind("commit")] for line in timeline.read_all(path)]


@pytest.mark.parametrize("n", [2, 3])
def test_commits_by_the_clock(memext, place, tmp_path, whole, n):  # noqa: F811
    """After every sweep, at the end alone, and whenever rank 0 says so: all ranks at the same steps, with the same bits and bytes."""
    every = list(range(1, NT + 1))
    for seconds, buffers, wanted in [(0, 2, every), (1e-9, 3, every), (1000, 3, [NT]), (0.02, 3, None)]:
        result = ranks(memext, place, n, *GRID, *SWEEPS, *SLOW, "--commit-every", seconds, "--timeline", tmp_path / "timeline")
        assert result["checksum"] == whole and result["commits"]["buffers"] == buffers and result["commits"]["every_s"] == seconds
        check_bytes(result, n)
        steps = committed_steps(tmp_path / "timeline")
        assert len(steps) == n and steps == steps[:1] * n and steps[0][-1] == NT, steps
        assert wanted is None or steps[0] == wanted


@pytest.mark.parametrize("name", ["wave", "fdtd"])
def test_commits_of_systems(memext, place, tmp_path, name):  # noqa: F811
    """Three pairs of Buffers; around a periodic z; ended by a criterion; going on with another number of ranks, which keeps the interval."""
    system, nt, plan = System(name, tmp_path), 5, ["--algorithm", "stream", "--block", 200, 200, 2]
    result = ranks(memext, place, 3, *system.words(3), *plan, "--commit-every", 1e-9, "--keep")
    assert result["commits"]["buffers"] == 6
    result = memext.run("--resume", "-d", place, "--ranks", 2, *EACH, "-t", nt, "--keep", *system.outputs(tmp_path))
    assert (result["commits"]["buffers"], result["commits"]["every_s"]) == (6, 1e-9)
    system.check(tmp_path, nt)
    check_bytes(result, 2)
    around = [*system.words(nt), "--side", "z=periodic"] if name == "wave" else [*GRID, "--side", "z=periodic"]
    wanted = alone(memext, *around)["checksum"]
    for seconds in (1e-9, 1000):
        assert ranks(memext, place, 3, *around, *plan[:4], NZ, 2, "--commit-every", seconds, "--force")["checksum"] == wanted


def test_until_and_snapshots(memext, place, tmp_path):  # noqa: F811
    """A run that a criterion ends is committed where it ends; snapshots between two commits get their names with the second, or are made again."""
    words = [*GRID, "--check", 3]
    limit = alone(memext, *words)["norms"][3]["rms_change"]
    until = ranks(memext, place, 3, *words, *SWEEPS, "--until", f"rms-change={limit!r}", "--commit-every", 1000, "--keep")
    assert until["met"]["step"] == until["steps_done"] < NT and steps_of(memext, place, 3) == [until["steps_done"]] * 3
    alone(memext, *GRID, "--snapshot", f"2:{tmp_path}/one")
    words = [*GRID, "-t", NT, *SWEEPS, "--commit-every", 1000, "--snapshot", f"2:{tmp_path}/some"]
    ranks(memext, place, 3, *words, "--force")
    assert files_of(tmp_path / "some") == files_of(tmp_path / "one") and len(files_of(tmp_path / "one")) == NT // 2
    shutil.rmtree(tmp_path / "some")
    run = subprocess.Popen([str(w) for w in [memext.program, "run", *words, *SLOW, "-d", place, "--ranks", 3, *EACH, "--force", "--quiet"]],
                           stderr=subprocess.PIPE, text=True)
    wait_until(lambda: (tmp_path / "some").exists() and len(list((tmp_path / "some").glob(".u-*"))) > 2, "snapshots without a name", run)
    for pid in children(run.pid):
        os.kill(pid, signal.SIGKILL)
    err = run.communicate(timeout=600)[1]
    if run.returncode != 0:
        assert run.returncode == 128 + signal.SIGKILL and files_of(tmp_path / "some") == {}, err
        memext.run("--resume", "-d", place, "--ranks", 3, *EACH)
    assert files_of(tmp_path / "some") == files_of(tmp_path / "one")
    assert not [path for path in (tmp_path / "some").iterdir() if path.name.startswith(".")]


def test_killed_between_commits(memext, place):  # noqa: F811
    """kill -9 of a random rank, now and then while the others commit, going on with the same ranks or others: stores differ by one commit at
    most, none of which was overwritten, and the end has the bits of an undisturbed run."""
    draw, n, grid = random.Random(5), 3, [*GRID, "-t", 120]
    more, words = [*grid, *SWEEPS, "--force"], [memext.program, "run", "-d", place, *EACH, "--quiet", "--keep", "--commit-every", 0.01]
    killed = 0
    for _ in range(8):
        run = subprocess.Popen([str(w) for w in [*words, "--ranks", n, *more, *SLOW]], stderr=subprocess.PIPE, text=True)
        wait_until(lambda: len(children(run.pid)) == n, "ranks", run)
        victim, goal = draw.choice(children(run.pid) or [0]), draw.randint(1, 6)
        sets = json.loads(memext("info", place, "--json", "-").stdout or "{}").get("sets", [])
        begin = sets[0]["step"] if sets else 0

        def step():
            done = memext("info", place, "--json", "-")
            found = json.loads(done.stdout).get("sets", []) if done.returncode == 0 else []
            return max([one["step"] for one in found], default=-1)

        wait_until(lambda: step() >= begin + goal, "a commit", run)
        if victim and run.poll() is None:
            os.kill(victim, signal.SIGKILL)
        err = run.communicate(timeout=600)[1]
        if run.returncode == 0:
            break
        assert run.returncode == 128 + signal.SIGKILL, err
        killed += 1
        n, more = draw.choice([2, 3, 3]), ["--resume"]
    assert killed > 0
    result = memext.run("-d", place, "--ranks", n, *EACH, "--resume")
    assert result["checksum"] == alone(memext, *grid)["checksum"]


def test_going_back(memext, place, tmp_path, whole):  # noqa: F811
    """A rank that was a commit ahead gives that up in its store before anything of it is overwritten: else a second kill, after a commit of
    another rank at another step, would leave stores that nobody can go on from."""
    plan = ["--algorithm", "stream", "--block", NY, NZ, 2]
    ranks(memext, place, 2, *GRID, "-t", 2, *plan, "--keep")
    shutil.copytree(place / "rank-0", tmp_path / "former")
    memext.run("--resume", "-d", place, "--ranks", 2, *EACH, "-t", 4, "--keep")
    shutil.rmtree(place / "rank-0")
    shutil.copytree(tmp_path / "former", place / "rank-0")
    assert steps_of(memext, place, 2) == [2, 4]
    resume = ["run", "--resume", "-d", place, "--ranks", 2, *EACH, "-t", NT, "--algorithm", "stream", "--block", NY, NZ, 3]
    done = memext(*resume, "--backend", "fault:aio", "--fault", "eio=1", "--quiet")
    assert done.returncode == 3, done.stderr
    assert steps_of(memext, place, 2) == [2, 2]
    result = memext.run(*resume[1:])
    assert result["resumed_from"] == 2 and result["checksum"] == whole


@pytest.mark.parametrize("mpi", MPIS or [pytest.param(None, marks=pytest.mark.skip(reason="no MPI is installed (packages-mpi.txt)"))])
def test_commits_under_mpirun(memext, build, place, whole, mpi):  # noqa: F811
    if not (build / f"memext-{mpi}.so").exists():
        pytest.skip(f"memext was built without {mpi}")
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    more = ["--oversubscribe", "--bind-to", "none"] if mpi == "openmpi" else []
    for n, words in [(3, [*GRID, "-t", 9, *SWEEPS, "--commit-every", 1e-9]), (3, ["--resume", "-t", NT, "--commit-every", 1000])]:
        result = memext.run(*words, "-d", place, *EACH, "--keep", prefix=[f"mpirun.{mpi}", "-n", n, *more], env=environment)
        assert result["ranks"]["link"] == "mpi" and result["commits"]["buffers"] == 3
        check_bytes(result, n)
    assert result["checksum"] == whole and result["resumed_from"] == 9


def test_plans(memext, place):  # noqa: F811
    """A dry run knows the interval as the run does."""
    words = [*GRID, *PLANS["stream"], "--commit-every", 5]
    dry = memext.run(*words, "--ranks", 3, "--dry-run")["commits"]
    result = ranks(memext, place, 3, *words)["commits"]
    assert (dry["buffers"], dry["every_s"]) == (result["buffers"], result["every_s"]) == (3, 5)
