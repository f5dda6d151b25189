# SPDX-License-Identifier: BSD-3-Clause
"""--resume with another number of ranks: the same bits, one whole set of stores at any moment, nothing left behind."""
import json
import shutil
import signal
import subprocess

import numpy
import pytest
from conftest import wait_until
from ranks_of_runs import EACH, GRID, NT, NY, NZ, PLANS, alone, check_bytes, children, kill, place, whole  # noqa: F401
from run_systems import System

SHORT = {
    "stream": ["--algorithm", "stream", "--block", NY, NZ, 2],
    "strips": ["--plan", "stream by=7 bt=2 slab=2"],
    "redundant": ["--algorithm", "redundant", "--block", 7, 5, 2],
}


def words(path, n):
    return ["-d", path, *(["--ranks", n] if n > 1 else []), *EACH]


def resume(memext, path, n, *more):
    return memext.run("--resume", *words(path, n), "--keep", *more)


def stores(path):
    return sorted(str(p.parent.relative_to(path)) for p in path.rglob("memext.store"))


def check_reading(result, n, phase="init"):
    if n == 1:
        one = result["phases"][phase]
        assert (one["read_bytes"], one["write_bytes"]) == (one["predicted_read_bytes"], one["predicted_write_bytes"]), one


@pytest.mark.parametrize("plan", ["stream", "strips", "redundant"])
def test_from_cut_to_cut(memext, place, whole, plan):  # noqa: F811
    """3 ranks, 2, 1, 5, 1 and 4: each takes up what the ones before have left, and their stores alone are there then."""
    memext.run(*GRID, "-t", 3, *SHORT[plan], *words(place, 3), "--keep")
    for i, n in enumerate([2, 1, 5, 1, 4], 1):
        result = resume(memext, place, n, "-t", 3 + 2 * i if i < 5 else NT)
        assert result["resumed_from"] == 1 + 2 * i
        assert stores(place) == sorted(f"rank-{k}/cut-{i}" for k in range(n)) if n > 1 else [f"cut-{i}"]
        check_reading(result, n)
        if n > 1:
            check_bytes(result, n)
    assert result["checksum"] == whole
    assert resume(memext, place, 2)["checksum"] == whole  # nothing is left to compute, and still all goes over


@pytest.mark.parametrize("name", ["wave", "fdtd", "lattice_boltzmann", "diffusion"])
def test_systems(memext, place, tmp_path, name):  # noqa: F811
    """Both arrays, several fields, C copied and in place, with steps left that are odd."""
    system, nt = System(name, tmp_path), 5
    for copy in [[], ["--field-copy"]] if system.fixed else [[]]:
        memext.run(*system.words(3), "--algorithm", "stream", "--block", 200, 200, 2, *words(place, 3), *copy, "--keep", "--force")
        for n, t in [(2, 4), (1, 4), (3, nt)]:
            last = system.outputs(tmp_path) if t == nt else []
            resume(memext, place, n, "-t", t, *last, *(["--overwrite"] if last else []))
        system.check(tmp_path, nt)
        shutil.rmtree(place)
        place.mkdir()


def test_sides_norms_and_points(memext, place, tmp_path):  # noqa: F811
    """Around a periodic z; norms and traces go on as if nothing had changed."""
    (tmp_path / "probes").write_text("u 3 4 0\nu 5 6 26\nu 1 2 52\n")
    more = [*GRID, "--side", "z=periodic", "--side", "y=mirror", "--check", 3, "--probes", tmp_path / "probes"]
    one = alone(memext, *more, "--probes-out", tmp_path / "one.npy")
    started = subprocess.Popen([str(w) for w in [memext.program, "run", *more, *words(place, 3), *PLANS["stream"], "--probes-out", tmp_path / "some.npy",
                                                 "--quiet", "--backend", "fault:aio", "--fault", "delay_us=20000"]], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: steps(memext, place / "rank-1") > 0, "a commit", started)
    started.send_signal(signal.SIGINT)
    err = started.communicate(timeout=600)[1]
    assert started.returncode in (0, 5), err
    if started.returncode == 5:
        for n in [2, 4]:
            result = memext.run("--resume", *words(place, n), "--probes", tmp_path / "probes", "--probes-out", tmp_path / "some.npy", "--keep")
            assert result["checksum"] == one["checksum"] and result["norms"] == one["norms"]
            assert numpy.load(tmp_path / "some.npy").tobytes() == numpy.load(tmp_path / "one.npy").tobytes()


def steps(memext, path):
    done = memext("info", path, "--json", "-")
    return json.loads(done.stdout)["store"]["step"] if done.returncode == 0 else -1


def copy(*trees, to):
    shutil.rmtree(to)
    for tree in trees:
        shutil.copytree(tree, to, dirs_exist_ok=True)


def test_every_moment(memext, place, tmp_path, whole):  # noqa: F811
    """What a kill leaves at any moment between the stores of 3 ranks at step 3 and those of 2 at step 6, put together by hand: the new
    set counts from the commit of all of its ranks on, and not before."""
    former, new = tmp_path / "former", tmp_path / "new"
    memext.run(*GRID, "-t", 3, *SHORT["stream"], *words(place, 3), "--keep")
    shutil.copytree(place, former)
    resume(memext, place, 2, "-t", 6)
    shutil.copytree(place, new)
    for n in [1, 2, 3]:
        copy(former, new, to=place)  # all committed, nothing removed
        assert resume(memext, place, n, "-t", 7)["resumed_from"] == 6
        assert len(stores(place)) == n
    for n in [2, 3, 4]:
        copy(former, new, to=place)  # one of the new has not committed
        (place / "rank-1" / "cut-1" / "memext.store").write_bytes(b"")
        assert resume(memext, place, n, "-t", 7)["resumed_from"] == 3
        assert len(stores(place)) == n, stores(place)
        copy(former, new, to=place)  # the former are being removed
        (place / "rank-0" / "memext.store").unlink()
        result = resume(memext, place, n)
        assert result["resumed_from"] == 6
        assert len(stores(place)) == n, stores(place)
    assert resume(memext, place, n, "-t", NT)["checksum"] == whole


def test_killed_while_going_over(memext, place, whole):  # noqa: F811
    """kill -9 of a rank as soon as there is a new store: the run goes on, from where it was or from there."""
    memext.run(*GRID, "-t", 3, *SHORT["stream"], *words(place, 2), "--keep")
    for n in [3, 1, 4]:
        run = subprocess.Popen([str(w) for w in [memext.program, "run", "--resume", *words(place, n), "--quiet", "--keep", "--backend", "fault:aio", "--fault",
                                                 "delay_us=3000"]], stderr=subprocess.PIPE, text=True)
        before = set(stores(place))
        wait_until(lambda: set(stores(place)) - before, "a new store", run)
        victims = children(run.pid) if n > 1 else [run.pid]
        for pid in victims[-1:]:
            kill(pid)
        err = run.communicate(timeout=600)[1]
        assert run.returncode in (0, -9, 137), err
        result = resume(memext, place, 2, "-t", 3)
        assert result["resumed_from"] == 3
        assert len(stores(place)) == 2, stores(place)
    assert resume(memext, place, 3, "-t", NT)["checksum"] == whole


def test_refusals(memext, place, tmp_path):  # noqa: F811
    memext.run(*GRID, "-t", 3, *SHORT["stream"], *words(place, 2), "--keep")
    memext.refused(*("run", "--resume", *words(place / "rank-0", 1)), naming=["the -d that the run began with"])
    memext.refused(*("run", "--resume", *words(place, 1), "-t", 5, "--algorithm", "skewed"), naming=["in place"])
    memext.refused(*("run", "--resume", *words(place, 3), "-t", 2), naming=["a run cannot go back"])
    resume(memext, place, 3, "-t", 6)
    done = memext("run", *GRID, *words(place, 3))
    assert done.returncode == 2 and "cut-1 holds a finished run" in done.stderr and "--force" in done.stderr, done.stderr
    memext.run(*GRID, "-t", 2, *SHORT["stream"], *words(place, 3), "--force", "--keep")
    assert stores(place) == ["rank-0", "rank-1", "rank-2"]
    memext.run(*GRID, "-t", 1, "-d", place, "--algorithm", "stream", "--keep")  # another run, by itself, in the same place
    assert resume(memext, place, 3, "-t", 4)["resumed_from"] == 2 and resume(memext, place, 1, "-t", 3)["resumed_from"] == 1
    memext.refused(*("run", "--resume", *words(place, 2)), naming=["two runs"])


def test_numbered_places(memext, place, whole):  # noqa: F811
    """-d with %r, directories; of files one store each, which is refused."""
    memext.run(*GRID, "-t", 3, *SHORT["stream"], *words(place / "disk%r", 3), "--keep")
    result = resume(memext, place / "disk%r", 2, "-t", 6)
    assert result["resumed_from"] == 3 and stores(place) == ["disk0/cut-1", "disk1/cut-1"]
    assert resume(memext, place / "disk%r", 1, "-t", NT)["checksum"] == whole
    memext.run(*GRID, "-t", 3, *SHORT["stream"], *words(place / "run%r.store", 2), "--keep")
    memext.refused(*("run", "--resume", *words(place / "run%r.store", 3)), naming=["directories"])
    assert resume(memext, place / "run%r.store", 2, "-t", NT)["checksum"] == whole


def test_what_is_no_store_stays(memext, place):  # noqa: F811
    """A file of somebody else's with the name of a store is left alone by whatever removes stores; an empty one, which was only begun, is not."""
    memext.run(*GRID, "-t", 3, *words(place, 1), "--keep")
    for folder, content in [(place / "cut-7", b"precious"), (place / "rank-0" / "cut-9", b"of mine"), (place / "cut-3", b"")]:
        folder.mkdir(parents=True)
        (folder / "memext.store").write_bytes(content)
    for n, nt, more in [(1, 4, ["--resume"]), (2, 5, ["--resume"]), (1, 6, ["--resume"]), (1, 3, [*GRID, "--force"])]:
        memext.run(*more, "-t", nt, *words(place, n), "--keep")
        assert (place / "cut-7" / "memext.store").read_bytes() == b"precious"
        assert (place / "rank-0" / "cut-9" / "memext.store").read_bytes() == b"of mine"
    assert not (place / "cut-3").exists()


@pytest.mark.parametrize("n", [1, 2])
def test_files_that_no_transfer_can_read(memext, place, folders, n):  # noqa: F811
    """A field that mmap reads in place, with y=periodic: other backends refuse it with the way out, also where new stores are cut; and that way goes."""
    place, fields = folders  # both on a disk that is read by direct transfers
    system = System("wave", fields)
    memext.run(*system.words(2), "--side", "y=periodic", "--backend", "mmap", *words(place, 1), "--keep")
    on = ["--resume", *words(place, n), "-t", 4]
    memext.refused("run", *on, "--backend", "aio", "--plan", "redundant by=18 bz=9 bt=1", naming=["direct transfers", "--backend mmap"] + ["y=periodic", "read-only fields"] * (n > 1))
    memext.refused("run", *on[:-2], "-t", 4, "--backend", "aio", "--accel", "host", "--plan", "stream by=18 bt=1", naming=["leave --accel out"])
    assert stores(place) == ["."]
    memext.run(*on, "--backend", "mmap", "--plan", "redundant by=18 bz=9 bt=1")
