# SPDX-License-Identifier: BSD-3-Clause
"""Several ranks: the same bits as one, and bytes as predicted."""
import json
import os

import numpy
import pytest
import run_systems
from conftest import ROOT, random_grid
from ranks_of_runs import EACH, GRID, NT, NX, NY, NZ, PLANS, alone, check_bytes, files_of, place, ranks, whole  # noqa: F401 (fixtures)
from run_systems import System


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
    monkeypatch.setitem(run_systems.N, "wave", (250, 262, 27))
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


@pytest.mark.parametrize("n", [2, 3])
def test_frames_around_a_periodic_z(memext, place, tmp_path, n):
    """No rank has them as a frame, for they are somebody's interior; the output has them where a run by itself has them."""
    words = ["-n", 6, 7, 17, "-t", 7, "--side", "z=periodic", "--side", "y=mirror"]
    for stencil in ("star7", "star13"):
        for k, more in ((1, []), (n, ["--ranks", n, "--algorithm", "stream", "--block", 7, 17, 2])):
            memext.run(*words, *more, "--stencil", stencil, "-d", place, "-o", tmp_path / f"{k}.npy", "--overwrite", "--force")
        assert (tmp_path / f"{n}.npy").read_bytes() == (tmp_path / "1.npy").read_bytes()
