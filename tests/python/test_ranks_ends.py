# SPDX-License-Identifier: BSD-3-Clause
"""Several ranks: commits of all, and an end for all when one dies; of an mpirun too."""
import json
import os
import random
import shutil
import signal
import subprocess

import pytest
from conftest import wait_until
from crash_ranks import ranks_of
from ranks_of_runs import EACH, GRID, MPIS, NT, NX, NY, NZ, PLANS, alone, check_bytes, children, end_of, place, steps_of, under, whole  # noqa: F401 (fixtures)


def test_killed_and_resumed(memext, place):
    """kill -9 of a random rank after a random number of commits, again and again on one run: nobody hangs, those who are left
    say why, and what comes of it has the bits of an undisturbed run."""
    draw, n, resumed, grid = random.Random(11), 3, 0, ["-n", NX, NY, NZ, "-t", 60]
    words = [str(w) for w in [memext.program, "run", "-d", place, "--ranks", n, *EACH, "--quiet", "--keep"]]
    new = [str(w) for w in [*grid, "--algorithm", "stream", "--block", NY, NZ, 1, "--force"]]
    slow = ["--backend", "fault:aio", "--fault", "delay_us=9000"]  # so that there is time to look while ranks work
    for _ in range(12):
        before = steps_of(memext, place, n)
        more = ["--resume"] if min(before) >= 0 else new
        run = subprocess.Popen([*words, *more, *slow], stderr=subprocess.PIPE, text=True)
        wait_until(lambda: len(children(run.pid)) == n, "ranks", run)
        victim, goal = draw.choice(children(run.pid) or [0]), draw.randint(0, 4)
        wait_until(lambda: max(steps_of(memext, place, n)) >= max(before) + goal, "a commit", run)
        was_killed, err = end_of(run, victim)
        if not was_killed:
            break
        assert goal == 0 or 1 <= err.count("has ended") + err.count("died during a commit") < n or min(steps_of(memext, place, n)) == 60, err
        resumed += more != new
        steps = steps_of(memext, place, n)
        assert min(steps) < 0 or max(steps) - min(steps) <= 1, steps
    assert resumed > 0
    done = memext("run", "-d", place, "--ranks", n, *EACH, "--resume", "--quiet", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["checksum"] == alone(memext, *grid)["checksum"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_stopped(memext, place, how):
    """A rank that is stopped does not hear that another has ended, nor that all are to: it is woken for that."""
    grid = ["-n", NX, NY, NZ, "-t", 4000, "--algorithm", "stream", "--block", NY, NZ, 1]
    slow = ["--backend", "fault:aio", "--fault", "delay_us=9000"]
    words = [str(w) for w in [memext.program, "run", "-d", place, "--ranks", 3, *EACH, "--quiet", *grid, *slow]]
    run = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: max(steps_of(memext, place, 3)) >= 0, "a commit", run)
    stopped, other, _ = children(run.pid)
    os.kill(stopped, signal.SIGSTOP)
    wait_until(lambda: open(f"/proc/{stopped}/stat").read().rsplit(")", 1)[1].split()[0] == "T", "a stop", run)
    os.kill(other if how == signal.SIGKILL else run.pid, how)
    err = run.communicate(timeout=600)[1]
    assert run.returncode == 128 + how if how == signal.SIGKILL else run.returncode != 0, (run.returncode, err)


@pytest.mark.parametrize("mpi", ["local", *MPIS])
def test_interrupted_beside_one_that_is_stopped(memext, build, place, mpi):
    """A rank alone is asked to end while it waits for what another, which does not go on, would send or commit: it ends, all do, and go on from
    what they had committed."""
    how = under(build, mpi, 3) if mpi != "local" else {"prefix": (), "env": None}
    grid = ["-n", NX, NY, NZ, "-t", 200]
    words = [memext.program, "run", "-d", place, *EACH, "--quiet", "--keep", *([] if mpi != "local" else ["--ranks", 3])]
    slow = ["--plan", f"stream bt=1 slab={NZ}", "--backend", "fault:aio", "--fault", "delay_us=9000"]
    run = subprocess.Popen([str(w) for w in [*how["prefix"], *words, *grid, *slow]], stderr=subprocess.PIPE, text=True, env=how["env"])
    wait_until(lambda: min(steps_of(memext, place, 3)) >= 1, "a commit", run)
    first, second, third = ranks_of(run.pid)
    os.kill(second, signal.SIGSTOP)
    wait_until(lambda: open(f"/proc/{second}/stat").read().rsplit(")", 1)[1].split()[0] == "T", "a stop", run)
    os.kill(third, signal.SIGTERM)
    err = run.communicate(timeout=600)[1]
    assert run.returncode not in (0, 2) and "interrupted after step" in err, (run.returncode, err)
    steps = steps_of(memext, place, 3)
    assert 1 <= min(steps) and max(steps) - min(steps) <= 1, steps
    done = memext("run", "--resume", "-d", place, *EACH, "--ranks", 2, "--quiet", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["checksum"] == alone(memext, *grid)["checksum"]


@pytest.mark.parametrize("mpi", MPIS or [pytest.param(None, marks=pytest.mark.skip(reason="no MPI is installed (packages-mpi.txt)"))])
def test_mpi(memext, build, place, whole, mpi):
    """Under mpirun of each MPI: the same bits and bytes."""
    for n, words in [(3, [*GRID, "-t", 12, *PLANS["stream"]]), (2, ["--resume", "-t", NT])]:
        result = memext.run(*words, "-d", place, *EACH, "--keep", **under(build, mpi, n))
        assert result["ranks"]["link"] == "mpi"
        check_bytes(result, n)
    assert result["checksum"] == whole and result["resumed_from"] == 12


def test_built_without_mpi(memext, tmp_path):
    """The command without its modules: it says that they are not there, does all else, and refuses to be several ranks of an mpirun, each by itself."""
    program = shutil.copy(memext.program, tmp_path)
    env = {key: value for key, value in os.environ.items() if key != "MEMEXT_MODULES"}
    said = memext("info", program=program, env=env).stdout
    if "memext-" in said.partition("links")[2]:
        pytest.skip("memext is installed, with its modules")
    assert "does not work here: memext was built without MPI: install the packages in packages-mpi.txt and build memext again" in said
    assert memext("run", *GRID, "--ranks", 2, "--backend", "dram", "--quiet", program=program, env=env).returncode == 0
    for variable in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]:
        memext.refused("run", *GRID, "--backend", "dram", program=program, env={**env, variable: "2"}, naming=["without its MPI", "packages-mpi.txt"])


@pytest.mark.parametrize("mpi", ["local", *MPIS])
def test_failed_in_the_middle(memext, build, place, mpi):
    """Planes that are pieces of a message each: transfers of a rank fail somewhere in its sweeps, again and again, while the others wait for
    planes of a message that has begun. All end with a sentence, and go on to the bits of an undisturbed run."""
    how = under(build, mpi, 3) if mpi != "local" else {}
    grid = ["-n", 190, 186, 30, "-t", 14]
    words = ["-d", place, *EACH, "--quiet", "--keep", *([] if how else ["--ranks", 3])]
    begin = [*grid, "--plan", "stream by=186 bt=4 slab=1 ahead=1 threads=1", "--force"]
    assert memext("run", *begin, *words, "-t", 2, **how).returncode == 0
    failed = 0
    for seed in range(4 if mpi == "local" else 2):
        done = memext("run", "--resume", *words, "-t", 14, "--backend", "fault:aio", "--fault", f"eio=0.08,seed={seed}", **how)
        assert done.returncode in (0, 3) and done.stderr.count("failed: Input/output error") in ([1, 2, 3] if done.returncode else [0]), done.stderr
        failed += done.returncode == 3
        if done.returncode == 0:
            break
    assert failed > 0
    done = memext("run", "--resume", *words, "-t", 14, "--json", "-", **how)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    check_bytes(result, 3)
    assert result["checksum"] == alone(memext, *grid)["checksum"]


def test_installed_elsewhere(memext, build, tmp_path):
    """A tree that was installed under another prefix than it was configured for: the program finds its modules."""
    modules = sorted(path.name for path in build.glob("memext-*.so"))
    if not modules:
        pytest.skip("no MPI is installed (packages-mpi.txt)")
    subprocess.run(["cmake", "--install", build, "--prefix", tmp_path / "at first"], check=True, capture_output=True)
    (tmp_path / "at first").rename(tmp_path / "moved")
    env = {key: value for key, value in os.environ.items() if key != "MEMEXT_MODULES"}
    said = memext("info", program=tmp_path / "moved" / "bin" / "memext", env=env).stdout.partition("links")[2].partition("algorithms")[0]
    assert "mpi " in said and "does not work here" not in said
