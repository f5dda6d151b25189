# SPDX-License-Identifier: BSD-3-Clause
"""Options of a run by itself that several ranks have too: commits by the clock of rank 0, accelerators, Buffers that are rewritten in place."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys

import numpy
import pytest
from conftest import LIMIT_MEMORY, ROOT, needs_root, wait_until
from ranks_of_runs import EACH, GRID, MPIS, NT, NY, NZ, PLANS, alone, check_bytes, children, end_of, files_of, kill, place, ranks, steps_of, under, whole  # noqa: F401
from run_systems import System
from test_accel import fake_cuda, no_settings, use  # noqa: F401

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
        kill(pid)
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
        if not end_of(run, victim)[0]:
            break
        killed += 1
        n, more = draw.choice([2, 3, 3]), ["--resume"]
    assert killed > 0
    result = memext.run("-d", place, "--ranks", n, *EACH, "--resume")
    assert result["checksum"] == alone(memext, *grid)["checksum"]


@pytest.mark.parametrize("seconds", [0, 1e-9])
def test_going_back(memext, place, tmp_path, whole, seconds):  # noqa: F811
    """A rank that was a commit ahead gives that up in its store before anything of it is overwritten: else a second kill, after a commit of
    another rank at another step, would leave stores that nobody can go on from."""
    plan = ["--algorithm", "stream", "--block", NY, NZ, 2, "--commit-every", seconds]
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
    for n, words in [(3, [*GRID, "-t", 9, *SWEEPS, "--commit-every", 1e-9]), (3, ["--resume", "-t", NT, "--commit-every", 1000])]:
        result = memext.run(*words, "-d", place, *EACH, "--keep", **under(build, mpi, n))
        assert result["ranks"]["link"] == "mpi" and result["commits"]["buffers"] == 3
        check_bytes(result, n)
    assert result["checksum"] == whole and result["resumed_from"] == 9


def test_plans(memext, place):  # noqa: F811
    """A dry run knows the interval as the run does."""
    words = [*GRID, *PLANS["stream"], "--commit-every", 5]
    dry = memext.run(*words, "--ranks", 3, "--dry-run")["commits"]
    result = ranks(memext, place, 3, *words)["commits"]
    assert (dry["buffers"], dry["every_s"]) == (result["buffers"], result["every_s"]) == (3, 5)


# ------------------------------------------------------------------ accelerators

def check_bus(result, n):
    check_bytes(result, n)
    for one in result["ranks"]["each"]:
        for kind in ["host_to_device", "device_to_host"]:
            assert one[f"{kind}_bytes"] == one[f"predicted_{kind}_bytes"] > 0, (one, kind)


@pytest.mark.parametrize("plan", ["stream bt=4 slab=3", "stream by=7 bt=3 slab=2", "stream by=7 bt=3 slab=2 faces=side-file"])
def test_accel(memext, place, whole, plan):  # noqa: F811
    """Rings in the memory of an accelerator, and strips with faces: what neighbours send goes there through the staging memory."""
    for n in (2, 3) if "by" not in plan else (3,):
        result = ranks(memext, place, n, *GRID, "--accel", "host", "--plan", plan)
        assert result["checksum"] == whole and result["accelerator"]["ranks_on_device"] == n
        check_bus(result, n)
    around = [*GRID, "--side", "z=periodic", "--side", "y=periodic"]
    result = ranks(memext, place, 3, *around, "--accel", "host", "--plan", plan.replace("bt=4", "bt=2"), "--commit-every", 1e-9)
    assert result["checksum"] == alone(memext, *around)["checksum"]
    check_bus(result, 3)


# Every system by host and by one of the others, of which each rank compiles for itself what takes seconds.
@pytest.mark.parametrize("name, accel", [pytest.param(name, accel, marks=[] if accel in ("host", other) else [pytest.mark.long])
                                         for name, other in (("wave", "cuda"), ("fdtd", "opencl"), ("diffusion", "cuda")) for accel in ("host", "opencl", "cuda")])  # fmt: skip
def test_accel_of_systems(request, memext, place, tmp_path, name, accel):  # noqa: F811
    """Both arrays, several fields, C, whose cells know where they are in the whole grid."""
    use(request, memext, accel)
    system, nt = System(name, tmp_path), 5
    result = ranks(memext, place, 3, *system.words(nt), "--plan", "stream bt=2 slab=3", "--accel", accel, *system.outputs(tmp_path))
    system.check(tmp_path, nt)
    check_bus(result, 3)


@pytest.mark.parametrize("accel", ["host", "cuda", pytest.param("opencl", marks=[pytest.mark.long])])  # each rank compiles for seconds
def test_accel_points_norms_snapshots(request, memext, place, tmp_path, accel):  # noqa: F811
    """Sources near the ends of ranks, probes of some ranks alone, norms and snapshots, around a periodic z; then on without the accelerator."""
    use(request, memext, accel)
    numpy.save(tmp_path / "pulse.npy", numpy.linspace(1, 2, NT))
    (tmp_path / "probes").write_text("".join(f"u 3 4 {z}\n" for z in (0, 17, 18, 20)))
    words = [*GRID, "--side", "z=periodic", "--check", 3]
    for z in (0, 16, 19, 35, 36, 52):
        words += ["--source", f"u@3,4,{z}={tmp_path / 'pulse.npy'}"]
    probes = ["--probes", tmp_path / "probes", "--overwrite", "--probes-out"]
    one = alone(memext, *words, *probes, tmp_path / "one.npy", "--snapshot", f"5:{tmp_path}/one:5")
    ranks(memext, place, 3, *words, "-t", 11, "--plan", "stream bt=3 slab=4", "--accel", accel, "--keep", "--snapshot", f"5:{tmp_path}/some:5")
    assert files_of(tmp_path / "some").items() < files_of(tmp_path / "one").items()
    for more in (["--accel", accel], []):
        result = ranks(memext, place, 3, "--force", *words, *probes, tmp_path / "some.npy", "--plan", "stream bt=3 slab=4", *more,
                       "--snapshot", f"5:{tmp_path}/some:5")
        assert result["checksum"] == one["checksum"] and result["norms"] == one["norms"]
        assert (tmp_path / "some.npy").read_bytes() == (tmp_path / "one.npy").read_bytes()
        assert files_of(tmp_path / "some") == files_of(tmp_path / "one")
        if more:
            check_bus(result, 3)


def test_accel_and_stores(memext, place, whole):  # noqa: F811
    """A run goes on with another number of ranks, there or not; one whose accelerator fails ends all, and its stores go on."""
    plan = ["--plan", "stream bt=2 slab=4"]
    ranks(memext, place, 3, *GRID, "-t", 5, *plan, "--accel", "host", "--keep")
    result = memext.run("--resume", "-d", place, "--ranks", 2, *EACH, "-t", 9, "--accel", "host", "--keep")
    check_bus(result, 2)
    done = memext("run", "--resume", "-d", place, "--ranks", 2, *EACH, "-t", NT, "--quiet", "--accel", "host,late=40")
    assert done.returncode == 3 and "the accelerator host" in done.stderr, done.stderr
    assert memext.run("--resume", "-d", place, "--ranks", 3, *EACH, "-t", NT)["checksum"] == whole


def test_devices_in_turns(request, memext, place, whole):  # noqa: F811
    """Rank r takes device r modulo how many there are; those that share one have parts of its memory."""
    words = [*GRID, *EACH, "-d", place, "--plan", "stream bt=2 slab=4"]
    result = memext.run(*words, "--ranks", 3, "--accel", "host,memory=3MiB")
    assert result["checksum"] == whole and result["accelerator"]["memory_bytes"] == 2**20
    dry = memext.run(*words, "--ranks", 3, "--accel", "host,memory=3MiB", "--dry-run")
    assert dry["accelerator"]["memory_bytes"] == 2**20
    assert dry["predicted_host_to_device_bytes"] == result["ranks"]["each"][1]["host_to_device_bytes"]
    much = ["--accel", "host,memory=3MiB", "--device-memory", "1025KiB"]
    memext.refused("run", *words, "--ranks", 3, *much, naming=["3 ranks share", "1.0 MiB or less"])
    memext.refused("run", *words, "--ranks", 3, "--accel", "host,memory=12KiB", naming=["--device-memory"])
    done = memext("tune", "-n", 512, 512, 512, "-t", 100, "--ranks", 4, "--accel", "host,rate=2GB/s", "--device-memory", "128MiB", "--json", "-")
    assert done.returncode == 0 and json.loads(done.stdout)["device_used_bytes"] <= 128 << 20, done.stderr
    request.getfixturevalue("fake_cuda")("devices=2")
    result = memext.run(*words, "--ranks", 3, "--accel", "cuda")
    assert result["checksum"] == whole
    assert [(one["device_number"], one["ranks_on_device"]) for one in result["ranks"]["each"]] == [(0, 2), (1, 1), (0, 2)]
    result = memext.run(*words, "--ranks", 3, "--accel", "cuda,device=1")
    assert [(one["device_number"], one["ranks_on_device"]) for one in result["ranks"]["each"]] == [(1, 3)] * 3


# ------------------------------------------------------------------ one pair of Buffers

@pytest.mark.parametrize("name", ["wave", "fdtd"])
@pytest.mark.parametrize("plan", ["stream bt=2 slab=3", "stream by=9 bt=2 slab=2 faces=side-file"])
def test_in_place(memext, place, tmp_path, name, plan):  # noqa: F811
    """Each rank rewrites the one pair that it has: neighbours' planes are in messages and never in it. The result is committed by all, and
    more steps go on from there, with any number of ranks."""
    system, nt = System(name, tmp_path), 7
    for n, more in [(2, []), (3, []), (3, ["--accel", "host"])]:
        result = ranks(memext, place, n, *system.words(5), "--plan", plan, "--in-place", *more, *system.outputs(tmp_path), "--overwrite", "--keep",
                       "--force")
        system.check(tmp_path, 5)
        assert result["commits"]["buffers"] == 2 and not result["commits"]["possible"]
        check_bytes(result, n)
    assert steps_of(memext, place, 3) == [5] * 3
    result = memext.run("--resume", "-d", place, "--ranks", 2, *EACH, "-t", nt, *system.outputs(tmp_path), "--overwrite", "--commit-every", 1000)
    assert result["resumed_from"] == 5 and result["commits"]["possible"]
    system.check(tmp_path, nt)


def test_in_place_around(memext, place, tmp_path):  # noqa: F811
    """Around a periodic z, which one rank by itself cannot do in place; snapshots get their names with the end; verified, under any plan."""
    system = System("fdtd", tmp_path)
    words = [*system.words(6), "--side", "z=periodic"]
    one = memext.run(*words, "--backend", "dram", "--threads", 1, "--snapshot", f"2:{tmp_path}/one")
    for more in (["-d", place], ["--backend", "dram"]):
        result = memext.run(*words, *more, "--ranks", 3, *EACH, "--algorithm", "stream", "--block", 200, 200, 2, "--in-place", "--verify",
                            "--snapshot", f"2:{tmp_path}/some", "--overwrite")
        assert result["checksum"] == one["checksum"] and result["verified"] and result["commits"]["buffers"] == 2
        assert files_of(tmp_path / "some") == files_of(tmp_path / "one") != {}
    dry = memext.run(*words, "--ranks", 3, "--dry-run", "--in-place")
    assert dry["commits"]["buffers"] == 2
    memext.refused("run", *words, "-d", place, "--ranks", 3, *EACH, "--in-place", "--commit-every", 5, "--quiet", naming=["leave --commit-every out"])
    done = memext("tune", "--kernel", ROOT / "systems" / "fdtd.c", "-n", 200, 200, 800, "-t", 100, "--ranks", 4, "--in-place", "--json", "-")
    assert done.returncode == 0 and "in-place" in json.loads(done.stdout)["plan_line"], done.stderr


def test_in_place_killed(memext, place, tmp_path):  # noqa: F811
    """What a run in place leaves when a rank of it is killed is no state, which is said; a new run takes the place."""
    system = System("wave", tmp_path)
    words = [*system.words(40), "--algorithm", "stream", "--block", 200, 200, 1, "--in-place"]
    run = subprocess.Popen([str(w) for w in [memext.program, "run", *words, *SLOW, "-d", place, "--ranks", 3, *EACH, "--quiet"]],
                           stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(list(place.rglob("memext.store"))) == 3 and len(children(run.pid)) == 3, "stores", run)
    os.kill(children(run.pid)[1], signal.SIGKILL)
    err = run.communicate(timeout=600)[1]
    assert run.returncode == 128 + signal.SIGKILL, err
    done = memext("run", "--resume", "-d", place, "--ranks", 3, *EACH, "--quiet")
    assert done.returncode == 2 and ("start again with --force instead of --resume" in done.stderr or "nothing to resume" in done.stderr), done.stderr
    result = memext.run(*words, "-d", place, "--ranks", 3, *EACH, "--force")
    assert result["checksum"] == memext.run(*system.words(40), "--backend", "dram", "--threads", 1)["checksum"]


def test_variables_of_a_launcher_do_not_undo_ranks(memext):
    """Shells of batch systems have them. --link local counts; a launcher that has started one process is told so."""
    words = ["-n", 30, 30, 62, "-t", 4, "--backend", "dram", "--ranks", 3]
    for variables in ({"PMI_RANK": "0", "PMI_SIZE": "1"}, {"PMIX_RANK": "0"}):
        done = memext("run", *words, "--link", "local", "--json", "-", "-q", env={**os.environ, **variables})
        assert done.returncode == 0 and json.loads(done.stdout)["ranks"]["ranks"] == 3, done.stderr


@pytest.mark.machine
@needs_root
def test_ranks_share_what_the_program_may_use(memext):
    """Ranks that memext itself starts have one limit together, and --dram is that of each."""
    words = [LIMIT_MEMORY, "512MiB", "--keep-cache", "--", memext.program, "run", "-n", 30, 30, 62, "-t", 4, "--backend", "dram", "--ranks", 3, "-q", "--dram"]
    for dram, status in (("160MiB", 0), ("240MiB", 2)):
        done = subprocess.run([str(w) for w in [*words, dram]], capture_output=True, text=True)
        assert done.returncode == status, done.stderr
    assert "170.7 MiB" in done.stderr and "3 ranks on this machine share 512 MiB" in done.stderr and "lower --dram" in done.stderr
