# SPDX-License-Identifier: BSD-3-Clause
"""Several ranks: the same bits as one, bytes as predicted, commits of all, an end for all when one dies."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys

import numpy
import pytest
import test_run_systems
from conftest import ROOT, random_grid, wait_until
from crash_ranks import ranks_of
from test_run_systems import System, cache  # noqa: F401 (kernels are compiled once)

NX, NY, NZ, NT = 21, 18, 53, 17
GRID = ["-n", NX, NY, NZ, "-t", NT]
PLANS = {
    "stream": ["--algorithm", "stream", "--block", NY, NZ, 4],
    "strips": ["--algorithm", "stream", "--block", 7, NZ, 4],
    "side-file": ["--plan", "stream by=7 bt=3 slab=2 faces=side-file"],
    "iblock": ["--algorithm", "stream", "--engine", "iblock", "--block", NY, NZ, 3],
    "redundant": ["--algorithm", "redundant", "--block", 7, 5, 4],
}
EACH = ["--threads", 1, "--dram", "64MiB"]
MPIS = [mpi for mpi in ["openmpi", "mpich"] if shutil.which(f"mpirun.{mpi}")]


def under(build, mpi, n):
    """For memext and memext.run: n ranks of an mpirun."""
    if not (build / f"memext-{mpi}.so").exists():
        pytest.skip(f"memext was built without {mpi}")
    more = ["--oversubscribe", "--bind-to", "none"] if mpi == "openmpi" else []
    return {"prefix": [f"mpirun.{mpi}", "-n", n, *more], "env": {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}}


def end_of(run, victim):
    """Kills a rank of a run that may have ended (0: none). True with what was said if that ended all; False if the run was done before."""
    if victim and run.poll() is None:
        os.kill(victim, signal.SIGKILL)
    err = run.communicate(timeout=600)[1]
    assert run.returncode in (0, 128 + signal.SIGKILL), err
    return run.returncode != 0, err


def ranks(memext, place, n, *words, **more):
    return memext.run("-d", place, "--ranks", n, *EACH, *words, **more)


def alone(memext, *words):
    return memext.run(*words, "--backend", "dram", "--algorithm", "direct", "--engine", "iblock", "--threads", 1)


def check_bytes(result, n):
    """What was read, written and sent by each rank is what its plan says."""
    each = result["ranks"]["each"]
    assert [one["rank"] for one in each] == list(range(n))
    assert sum(one["planes"] for one in each) == result["problem"]["nz"]
    for one in each:
        for kind in ["read", "write", "sent"]:
            assert one[f"{kind}_bytes"] == one[f"predicted_{kind}_bytes"], (one, kind)
    assert sum(one["sent_bytes"] for one in each) == sum(one["received_bytes"] for one in each) > 0


@pytest.fixture
def place(quick_place):
    return quick_place


@pytest.fixture(scope="module")
def whole(memext):
    return alone(memext, *GRID)["checksum"]


@pytest.mark.parametrize("plan", PLANS)
def test_same_bits(memext, place, whole, plan):
    """Of 2 to 6 ranks that 53 planes do not divide among: checksum and bytes."""
    for n in range(2, 7) if plan == "stream" else [2, 3]:
        result = ranks(memext, place, n, *GRID, *PLANS[plan])
        assert result["checksum"] == whole, n
        check_bytes(result, n)


@pytest.mark.parametrize("backend", ["aio", "mmap", "dram"])
def test_backends(memext, place, whole, backend):
    for plan in (PLANS["stream"], []):  # a tuner finds one as well
        result = memext.run(*GRID, *plan, *(["-d", place] if backend != "dram" else []), "--backend", backend, "--ranks", 3, *EACH)
        assert result["checksum"] == whole


@pytest.mark.parametrize("sides", [["z=periodic"], ["z=mirror,fixed", "y=mirror"], ["z=periodic", "y=periodic", "x=periodic"]])
def test_sides(memext, place, sides):
    """The ranks at the ends have the sides of the grid; around a periodic z there are none."""
    words = [*GRID, *(w for s in sides for w in ("--side", s))]
    wanted = alone(memext, *words)["checksum"]
    for plan, n in [("stream", 2), ("stream", 4), ("strips", 3), ("redundant", 3)]:
        result = ranks(memext, place, n, *words, *PLANS[plan])
        assert result["checksum"] == wanted, (plan, n)
        check_bytes(result, n)


@pytest.mark.parametrize("name", ["diffusion", "wave", "fdtd", "gray_scott", "lattice_boltzmann"])
def test_systems(memext, place, tmp_path, name):
    """Every form, with several fields and C: files of fields read and written by three ranks, bit by bit as numpy has them."""
    system, nt = System(name, tmp_path), 5
    plans = [["--algorithm", "stream", "--block", 200, 200, 2], ["--plan", "stream by=9 bt=2 slab=2"], ["--algorithm", "redundant", "--block", 7, 8, 2]]
    for i, plan in enumerate(plans):
        copy = ["--field-copy"] if i == 1 and system.fixed else []
        result = ranks(memext, place, 3, *system.words(nt), *plan, *system.outputs(tmp_path), *copy, "--overwrite")
        system.check(tmp_path, nt)
        check_bytes(result, 3)


APPLICATIONS = {"denoising": (2, {"f": "u1"}), "pore_diffusivity": (1, {"pore": "u1"}), "seismic_shot": (4, {"v": "u2", "sponge": "u1"})}  # radius, C


@pytest.mark.parametrize("name", APPLICATIONS)
def test_applications(memext, place, tmp_path, name):
    """Fields that are read beyond the ends of a rank, and reductions of a kernel: three ranks have the sums, bit by bit, and the state of one."""
    (h, fields), (nx, ny, nz), rng = APPLICATIONS[name], (20, 23, 41), numpy.random.default_rng(3)
    words = ["--kernel", ROOT / "systems" / "applications" / f"{name}.c", "-n", nx, ny, nz, "-t", 9, "--init", "random", "--check", 2]
    for field, dtype in fields.items():
        numpy.save(tmp_path / f"{field}.npy", rng.integers(0, 2, (nz + 2 * h, ny + 2 * h, nx + 2 * h)).astype(dtype))
        words += ["--field", f"{field}={tmp_path / field}.npy"]
    one = memext.run(*words, "--backend", "dram", "--threads", 1)
    for plan in [["--plan", "stream bt=3 slab=2"], ["--plan", "stream by=13 bt=2 slab=3"], ["--algorithm", "redundant", "--block", 8, 7, 2]]:
        result = ranks(memext, place, 3, *words, *plan)
        assert result["checksum"] == one["checksum"] and result["norms"] == one["norms"], plan
        check_bytes(result, 3)


def test_pieces(memext, place, tmp_path, monkeypatch):
    """Planes that are pieces of a message each (above they are too small for that): strips, blocks, around the ends, both arrays."""
    plans = {"stream": ["--algorithm", "stream", "--block", 186, 40, 3], "strips": ["--plan", "stream by=50 bt=3 slab=2"],
             "redundant": ["--algorithm", "redundant", "--block", 60, 7, 3]}
    ring, sides, wanted = ["--side", "z=periodic"], ["--side", "y=periodic", "--side", "z=mirror"], {}
    for more, plan, n in [([], "strips", 3), ([], "redundant", 3), (ring, "stream", 3), (ring, "strips", 2), (sides, "redundant", 2), (sides, "stream", 4)]:
        words = ["-n", 190, 186, 31, "-t", 8, *more]
        if str(more) not in wanted:
            wanted[str(more)] = alone(memext, *words)["checksum"]
        result = ranks(memext, place, n, *words, *plans[plan], "--dram", "160MiB")
        assert result["checksum"] == wanted[str(more)], (more, plan, n)
        check_bytes(result, n)
    monkeypatch.setitem(test_run_systems.N, "wave", (250, 262, 27))
    words = System("wave", tmp_path).words(6)
    one = memext.run(*words, "--backend", "dram", "--threads", 1)["checksum"]
    for plan in [["--algorithm", "stream", "--block", 400, 400, 2], ["--plan", "stream by=90 bt=2 slab=3"]]:
        result = ranks(memext, place, 3, *words, *plan, "--dram", "160MiB")
        assert result["checksum"] == one, plan
        check_bytes(result, 3)


def test_strips_of_a_reach(memext, place):
    """Strips as narrow as a sweep reaches: the first of a sweep stores only rows of the frame, for which nothing is computed, and yet comes after
    the last STORE of the sweep before."""
    words = ["-n", 10, 20, 24, "-t", 12]
    one = alone(memext, *words)["checksum"]
    for more in (["--backend", "dram"], ["--commit-every", 1e-9], ["--backend", "dram", "--accel", "host"]):
        for plan in ("stream bt=1 slab=6 by=1", "stream bt=2 slab=6 by=2"):
            result = memext.run(*words, "-d", place, "--ranks", 4, *EACH, *more, "--plan", plan)
            assert result["checksum"] == one, (more, plan)
            check_bytes(result, 4)


def test_input_and_output(memext, place, tmp_path):
    """One file in, one file out, with its frame and without."""
    grid = random_grid(NX, NY, NZ)
    numpy.save(tmp_path / "in.npy", grid)
    words = ["--input", tmp_path / "in.npy", "-t", NT]
    wanted = alone(memext, *words, "--output", tmp_path / "one.npy")
    for frame in ["included", "none"]:
        out = tmp_path / f"{frame}.npy"
        result = ranks(memext, place, 4, *words, *PLANS["stream"], "--output", out, "--output-frame", frame)
        assert result["checksum"] == wanted["checksum"]
        one = numpy.load(tmp_path / "one.npy")
        assert numpy.load(out).tobytes() == (one if frame == "included" else one[1:-1, 1:-1, 1:-1]).tobytes()
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_norms_and_points(memext, place, tmp_path):
    """Norms have the same bits for any number of ranks, a criterion ends all of them, and probes of all ranks are in one file."""
    numpy.save(tmp_path / "pulse.npy", numpy.linspace(1, 2, NT))
    points = [(3, 4, z) for z in (0, 12, 13, 26, 27, 52)]
    (tmp_path / "probes").write_text("".join(f"u {x} {y} {z}\n" for x, y, z in reversed(points)))
    words = [*GRID, "--check", 3, "--probes", tmp_path / "probes"]
    for x, y, z in points:
        words += ["--source", f"u@{x},{y},{z}={tmp_path / 'pulse.npy'}"]

    def trace(name):
        return ["--probes-out", tmp_path / name]

    one = alone(memext, *words, *trace("one.npy"))
    limit = one["norms"][3]["rms_change"]
    for n in [2, 4]:
        result = ranks(memext, place, n, *words, *PLANS["strips"], *trace(f"{n}.npy"))
        assert result["checksum"] == one["checksum"] and result["norms"] == one["norms"]
        assert numpy.load(tmp_path / f"{n}.npy").tobytes() == numpy.load(tmp_path / "one.npy").tobytes()
        check_bytes(result, n)
        until = ranks(memext, place, n, *words, *PLANS["stream"], *trace(f"{n}-until.npy"), "--until", f"rms-change={limit!r}")
        assert until["met"]["step"] == until["steps_done"] < NT
        rows = numpy.load(tmp_path / f"{n}-until.npy")
        assert rows.tobytes() == numpy.load(tmp_path / "one.npy")[: until["steps_done"]].tobytes()


def files_of(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name.endswith(".npy")}


def test_snapshots(memext, place, tmp_path):
    """One file of all ranks for each step, the same as that of one process; also of cells further apart than a rank has planes, of both
    arrays, and of a run that goes on."""
    for name, stride, n in [("one", 1, 3), ("few", 3, 4), ("fewest", 19, 5)]:
        alone(memext, *GRID, "--snapshot", f"5:{tmp_path}/{name}:{stride}")
        result = ranks(memext, place, n, *GRID, *PLANS["strips"], "--snapshot", f"5:{tmp_path}/{name}-{n}:{stride}")
        check_bytes(result, n)
        for one in result["ranks"]["each"]:
            assert one["snapshot_bytes"] == one["predicted_snapshot_bytes"], one
        wanted, found = files_of(tmp_path / name), files_of(tmp_path / f"{name}-{n}")
        assert sorted(wanted) == ["u-000005.npy", "u-000010.npy", "u-000015.npy"] and found == wanted
        assert sum(one["snapshot_bytes"] for one in result["ranks"]["each"]) == sum(map(len, wanted.values()))
        assert not [path for path in (tmp_path / f"{name}-{n}").iterdir() if path.name.startswith(".")]
    system = System("fdtd", tmp_path)
    memext.run(*system.words(4), "--backend", "dram", "--snapshot", f"2:{tmp_path}/both", "--threads", 1)
    ranks(memext, place, 3, *system.words(2), "--snapshot", f"2:{tmp_path}/some", "--keep")
    (tmp_path / "some" / ".u-000004.npy.memext-ranks").write_bytes(b"of a run that was killed")
    memext.run("--resume", "-d", place, "--ranks", 2, "-t", 4, *EACH)
    assert files_of(tmp_path / "some") == files_of(tmp_path / "both") != {}


def test_trace(memext, place, tmp_path):
    """One trace, with a process for each rank and its sweeps in it."""
    result = ranks(memext, place, 3, *GRID, *PLANS["stream"], "--trace", tmp_path / "trace.json", "--timeline", tmp_path / "timeline")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {"rank 0", "rank 1", "rank 2"}
    for one in result["ranks"]["each"]:
        own = [e for e in events if e["pid"] == one["rank"] + 1 and e["ph"] != "M"]
        assert sum(e["args"]["updates"] for e in own if e["name"] == "advance") == one["updates"]
        assert [e["name"] for e in own].count("sweep") == -(-NT // 4)
    ids = [(e["cat"], e["id"]) for e in events if e["ph"] == "b"]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", [None, "wave", "fdtd", "diffusion"])
def test_verify(memext, place, tmp_path, name):
    """Rank 0 computes the whole grid plainly, with C, sides and sources; what is wrong is found, by all ranks."""
    if name is None:
        numpy.save(tmp_path / "pulse.npy", numpy.linspace(1, 2, NT))
        words = [*GRID, "--side", "z=mirror,fixed", "--source", f"u@3,4,40={tmp_path / 'pulse.npy'}"]
        assert ranks(memext, place, 2, *GRID, "--side", "z=periodic", "--verify")["verified"]
    else:
        words = System(name, tmp_path).words(5)
    assert ranks(memext, place, 3, *words, "--algorithm", "stream", "--block", 200, 200, 2, "--verify", "--keep")["verified"]
    if name is None:
        store = place / "rank-1" / "memext.store"
        told = json.loads(memext("info", store, "--json", "-").stdout)["store"]
        with open(store, "r+b") as file:  # a cell of a plane in the middle of rank 1
            array = told["arrays"][0]
            file.seek(array["offset_bytes"] + 8 * array["plane_pitch_bytes"] + 7 * array["row_pitch_bytes"] + 5 * 8)
            file.write(b"\x01\x02\x03")
        pulse = words[-2:]
        done = memext("run", "--resume", "-d", place, "--ranks", 3, *EACH, *pulse, "--verify", "--quiet")
        assert done.returncode == 4, done.stderr
        assert done.stderr.count("differs from the plain computation") == 1 and "(x 5, y 7, z 27)" in done.stderr, done.stderr
        memext.refused("run", "-n", 400, 400, 200, "-t", 2, "--ranks", 2, "-d", place, "--dram", "300MiB", "--verify", "--force", naming=["two whole grids"])


def test_weights(memext, place, whole):
    """Unequal ranks: the same bits, planes in proportion; a run that is resumed keeps its cut, or gets the one that is asked for."""
    plans = {"stream": ["--algorithm", "stream", "--block", NY, NZ, 2], "redundant": ["--algorithm", "redundant", "--block", 7, 5, 2]}
    for plan in plans.values():
        result = ranks(memext, place, 3, *GRID, *plan, "--check", 4, "--rank-weights", "4,1,2.5")
        assert result["checksum"] == whole and [one["planes"] for one in result["ranks"]["each"]] == [28, 7, 18]
        assert result["norms"] == alone(memext, *GRID, "--check", 4)["norms"]
        check_bytes(result, 3)

    def resumed(steps, n, *more):
        result = memext.run("--resume", "-d", place, "--ranks", n, *EACH, "--keep", "-t", steps, *more)
        return result["checksum"], [one["planes"] for one in result["ranks"]["each"]]

    ranks(memext, place, 3, *GRID, "-t", 3, *plans["stream"], "--rank-weights", "4,1,2.5", "--keep")
    assert resumed(5, 3)[1] == [28, 7, 18]
    assert resumed(7, 3, "--rank-weights", "1,1,1")[1] == [18, 17, 18]
    assert resumed(9, 3, "--rank-weights", "1,1,1")[1] == [18, 17, 18] and not (place / "rank-0" / "cut-2").exists()
    assert resumed(NT, 2, "--rank-weights", "1,3") == (whole, [13, 40])
    for weights, n in [("1,2", 3), ("1,0", 2), ("1,2,3", 2), ("a,b", 2), ("1;2", 2)]:
        memext.refused("run", *GRID, "--ranks", n, "--dry-run", "--rank-weights", weights, naming=["positive number"])
    memext.refused("run", *GRID, "--ranks", 2, "--dry-run", "--rank-weights", "1,1000", naming=["fewest"])
    memext.refused("run", *GRID, "-d", place, "--rank-weights", "1", naming=["several ranks"])


def steps_of(memext, place, n):
    """Committed steps of the stores of the ranks; -1: there is none, or it has no note."""
    found = []
    for i in range(n):
        done = memext("info", place / f"rank-{i}", "--json", "-")
        found.append(json.loads(done.stdout)["store"]["step"] if done.returncode == 0 else -1)
    return found


def children(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    try:
        with open(path) as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []


def test_killed_and_resumed(memext, place):
    """kill -9 of a random rank after a random number of commits, again and again on one run: nobody hangs, everybody who is left
    says why, and what comes of it has the bits of an undisturbed run."""
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
        assert goal == 0 or err.count("has ended") == n - 1 or min(steps_of(memext, place, n)) == 60, err
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


def test_refusals(memext, place, tmp_path):
    """What ranks cannot do is said in a sentence, before anything is done."""
    words = [*GRID, "-d", place, "--ranks"]
    memext.refused(*("run", *words, 6, *EACH, "--algorithm", "stream", "--block", NY, NZ, 9), naming=["bt = 8 or less"])
    memext.refused(*("run", *words, 64, *EACH), naming=["53 ranks or fewer"])
    done = memext("run", *words, 2, *EACH, "--algorithm", "skewed", "--block", 9, 9, 2)
    assert done.returncode == 2 and "stream" in done.stderr, done.stderr


def test_plans(memext, place, whole):
    """A dry run says what a rank sends; the tuner finds a plan that all ranks take."""
    dry = memext.run(*GRID, "--ranks", 4, "--dry-run", *PLANS["stream"])
    result = ranks(memext, place, 4, *GRID, *PLANS["stream"])
    assert dry["ranks"]["predicted_sent_bytes"] == result["ranks"]["each"][1]["sent_bytes"]
    assert ranks(memext, place, 4, *GRID)["checksum"] == whole
    done = memext("tune", "-n", 1022, 1022, 8192, "-t", 1000, "--ranks", 64, "--dram", "4GiB", "--cores", 16, "--sockets", 1, "--l2", "1MiB", "--l3",
                  "32MiB", "--json", "-")
    assert done.returncode == 0, done.stderr
    tuned = json.loads(done.stdout)
    assert tuned["predicted_sent_bytes"] > 0 and tuned["plan"]["bt"] <= 128


def tuned(memext, *words):
    done = memext("tune", "-n", 1022, 1022, 8192, "-t", 1000, "--ranks", 64, "--dram", "64GiB", "--cores", 16, "--sockets", 1, "--l2", "1MiB", "--l3",
                  "32MiB", *words, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_link_rates(memext, place):
    """A link is measured, or is what --link says: predicted seconds know it, and where every message costs much fewer go, from deeper ends."""
    fast, slow = tuned(memext, "--link", "100Gbit"), tuned(memext, "--link", "mpi,10Mbit")
    assert slow["link"] == {"ranks": 64, "bytes_per_s": 1.25e6, "latency_s": 2e-5, "source": "given"}
    for one in [fast, slow]:
        time, link = one["predicted_time"], one["link"]
        assert time["link_s"] >= one["predicted_sent_bytes"] / link["bytes_per_s"]
        assert one["predicted_seconds"] >= max(time["link_s"], time["compute_s"], time["io_s"])
    assert slow["predicted_seconds"] > 10 * fast["predicted_seconds"]
    computing = ["--read-bw", 1e11, "--write-bw", 1e11, "--rate", 1e8]  # deep ends cost most
    near, far = [tuned(memext, *computing, "--link", link)["plan"]["bt"] for link in ("100Gbit", "100Gbit,40s")]
    assert near < far
    given = memext.run(*GRID, "--ranks", 4, "--dry-run", *PLANS["stream"], "--link", "1GB,5us")["ranks"]
    assert given["link_source"] == "given" and (given["link_bytes_per_s"], given["link_latency_s"]) == pytest.approx((1e9, 5e-6))
    measured = ranks(memext, place, 3, *GRID, *PLANS["stream"])["ranks"]
    assert measured["link_source"] == "measured" and measured["link_bytes_per_s"] > 1e6 and 0 < measured["link_latency_s"] < 1
    for word in ["pigeon", "10", "10Gbit,5", "local,", "-1Gbit", "mpi,1Gbit,1us,1"]:
        memext.refused("run", *GRID, "--ranks", 2, "-d", place, "--link", word, naming=["RATE"])


def test_lag(memext):
    """Predicted seconds have what is left of a message when the rank below ends its sweep (docs/ranks.md)."""
    for link in ["1Gbit,20us", "10Gbit,20us", "100Gbit,20us", "100Gbit,100ms"]:
        one = tuned(memext, "--link", link, "--read-bw", 1e11, "--write-bw", 1e11, "--rate", 1e10)
        time, link, bt, ranks, planes = one["predicted_time"], one["link"], one["plan"]["bt"], 64, 128
        sweeps = -(-1000 // bt)
        passes = sweeps * (planes + bt - 1)  # of a plane through a sweep
        on_link = one["predicted_sent_bytes"] / (2 * sweeps * bt * link["bytes_per_s"])
        swept = max(time["io_s"] + time["stall_s"], time["compute_s"] + time["copy_s"] + time["cores_s"]) / passes
        lag = max(0, link["latency_s"] + on_link + (bt - 1) * max(0, on_link - swept) - bt * time["compute_s"] / passes / 4)
        around = (sweeps - 1) * ((ranks - 1) * lag - bt * time["compute_s"] / passes / 2) / ranks
        wanted = link["latency_s"] + bt * on_link + max(lag * min(ranks - 1, sweeps - 1), around)
        assert time["lag_s"] == pytest.approx(wanted, rel=1e-6), (link, bt)


def test_simulation():
    """Messages in pieces never lose against whole ones, nor anything where the link is as fast as a sweep; predicted seconds are those of the replay."""
    import importlib.util
    spec = importlib.util.spec_from_file_location("weak_scaling", ROOT / "experiments" / "weak_scaling.py")
    weak_scaling = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(weak_scaling)
    for n in [1, 2, 3, 8, 40]:
        for rate in [1.25e9, 3.125e9, 12.5e9]:
            given = (n, 512, 1022**2, 640, 32, 1e10, rate, 2e-5)
            pieces, committed = weak_scaling.simulate_pieces(*given), weak_scaling.simulate_pieces(*given, commits=True)
            assert pieces <= 1.001 * weak_scaling.simulate(*given) and pieces <= committed
            assert weak_scaling.closed_form(*given) == pytest.approx(pieces, rel=0.02)
            assert weak_scaling.closed_form(*given, commits=True) == pytest.approx(committed, rel=0.02)
            if rate > 3e9:
                assert pieces == pytest.approx(weak_scaling.simulate(1, *given[1:]) * (1 + min(n - 1, 2) * 31 / 1024), rel=0.003)


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
    assert "NOT HERE: not built: packages-mpi.txt was not installed" in said
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


def test_strong_scaling(build, tmp_path):
    """The experiment compares with one rank, named or not."""
    words = ["--strong-ranks", "2", "--size", NX, NY, NZ, "--steps", 4, "--bt", 2, "--pairs", 1, "--backend", "dram", "--json", tmp_path / "results.json"]
    command = [sys.executable, ROOT / "experiments" / "weak_scaling.py", *words, "--place", tmp_path]
    done = subprocess.run(list(map(str, command)), env={**os.environ, "MEMEXT_BUILD": str(build)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [row["ranks"] for row in json.loads((tmp_path / "results.json").read_text())[0]["strong"]] == [1, 2]


@pytest.mark.parametrize("n", [2, 3])
def test_frames_around_a_periodic_z(memext, place, tmp_path, n):
    """No rank has them as a frame, for they are somebody's interior; the output has them where a run by itself has them."""
    words = ["-n", 6, 7, 17, "-t", 7, "--side", "z=periodic", "--side", "y=mirror"]
    for stencil in ("star7", "star13"):
        for k, more in ((1, []), (n, ["--ranks", n, "--algorithm", "stream", "--block", 7, 17, 2])):
            memext.run(*words, *more, "--stencil", stencil, "-d", place, "-o", tmp_path / f"{k}.npy", "--overwrite", "--force")
        assert (tmp_path / f"{n}.npy").read_bytes() == (tmp_path / "1.npy").read_bytes()
