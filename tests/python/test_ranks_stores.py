# SPDX-License-Identifier: BSD-3-Clause
"""The stores of several ranks as one: memext info and memext export of the directory that -d named, and what is said when ranks end."""
import json
import os
import shutil
import signal
import subprocess

import pytest
from conftest import ROOT, wait_until
from ranks_of_runs import EACH, GRID, MPIS, NT, NX, NY, NZ, PLANS, alone, place, ranks, under, whole  # noqa: F401
from run_systems import System


def info(memext, path):
    done = memext("info", path, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def exported(memext, path, out, *words):
    done = memext("export", path, "-o", out, "--overwrite", *words)
    assert done.returncode == 0, done.stderr
    return out.read_bytes(), done.stdout


@pytest.mark.parametrize("sides", [[], ["--side", "z=periodic", "--side", "y=mirror"]])
def test_export(memext, place, tmp_path, sides):  # noqa: F811
    """The whole grid from all ranks' stores, of the state that all have, frame and all: the file that a run by itself writes."""
    wanted = {}
    for steps in [4, 8]:
        for frame in ["included", "none"]:
            alone(memext, *GRID, "-t", steps, *sides, "--output", tmp_path / "alone.npy", "--output-frame", frame, "--overwrite")
            wanted[steps, frame] = (tmp_path / "alone.npy").read_bytes()
    run = ["run", "-d", place, *EACH, "--keep", "--quiet"]

    def check(steps, n, cut, step_of_all):
        told = info(memext, place)
        assert [(one["ranks"], one["cut"], one["step"], one["complete"]) for one in told["sets"]] == [(n, cut, step_of_all, step_of_all == steps)], told
        assert [one["problem"]["nz"] for one in told["sets"][0]["stores"]] == [NZ // n + (k < NZ % n) for k in range(n)] and told["left"] == []
        for frame in ["included", "none"]:
            data, said = exported(memext, place, tmp_path / "out.npy", "--output-frame", frame)
            assert data == wanted[step_of_all, frame] and f"step {step_of_all} of {steps}" in said

    assert memext(*run, *GRID, "-t", 4, *sides, "--ranks", 3, "--block", NY, NZ, 2).returncode == 0
    check(4, 3, 0, 4)
    shutil.copy(place / "rank-1" / "memext.store", tmp_path / "before")
    assert memext(*run, "--resume", "-t", 8, "--ranks", 3, "--block", NY, NZ, 4).returncode == 0
    check(8, 3, 0, 8)
    shutil.copy(place / "rank-1" / "memext.store", tmp_path / "after")
    shutil.copy(tmp_path / "before", place / "rank-1" / "memext.store")  # as if rank 1 had not come to its last commit
    assert [one["step"] for one in info(memext, place)["sets"][0]["stores"]] == [8, 4, 8]
    check(8, 3, 0, 4)
    shutil.copy(tmp_path / "after", place / "rank-1" / "memext.store")
    said = memext("info", place).stdout
    assert f"set        {place}, 3 ranks, grid cut 0, done, kept" in said and f"problem    {NX} x {NY} x {NZ}" in said and "rank 2     planes 36 to 52, step 8" in said
    assert "export     memext export" in said and "resume" not in said
    assert memext(*run, "--resume", "-t", 8, "--ranks", 2).returncode == 0
    check(8, 2, 1, 8)
    assert memext(*run, "--resume", "-t", 8).returncode == 0
    check(8, 1, 2, 8)


# Steps, ranks that go on, whether they were stopped once more; which rank was behind. With every rank when there is time.
WAYS = {(4, 3, False): (0, 1), (4, 2, False): (2,), (4, 1, False): (0,), (8, 3, False): (1, 2), (8, 3, True): (0,), (8, 1, True): (2,)}


@pytest.mark.parametrize("behind, steps, to, stopped", [pytest.param(behind, *way, marks=[] if behind in short else [pytest.mark.long]) for way, short in WAYS.items() for behind in (0, 1, 2)])
@pytest.mark.each_value
def test_first_commit_of_some(memext, place, tmp_path, behind, steps, to, stopped):  # noqa: F811
    """A run was gone on with and asked for more, and all ranks but one came to the first commit of that: it goes on as it was asked for last, from the step
    that all have, though the notes of that one name another number of steps, other norms, a criterion that was met, and neither snapshots nor hashes; also
    when it was stopped again before it committed anything."""
    snapshots, out = tmp_path / "snapshots", tmp_path / "out.npy"
    alone(memext, *GRID, "-t", 4, "-o", out)
    at_4 = out.read_bytes()
    ranks(memext, place, 3, *GRID, *PLANS["stream"], "-t", steps, "--check", 4, "--until", "max-change=1000", "--keep")
    shutil.copytree(place / f"rank-{behind}", tmp_path / "behind")
    more = ["-t", 8, "--check", 8, "--until", "max-change=0", "--snapshot", f"8:{snapshots}", "--integrity", "--commit-every", 500]
    wanted = ranks(memext, place, 3, "--resume", *more)
    shutil.copy(tmp_path / "behind" / "memext.store", place / f"rank-{behind}" / "memext.store")

    def check_set(each):
        told = info(memext, place)["sets"][0]
        assert [one["step"] for one in told["stores"]] == each
        assert (told["step"], told["steps"], told["complete"]) == (4, 8, False)
        data, said = exported(memext, place, out)
        assert data == at_4 and "step 4 of 8" in said

    check_set([4 if k == behind else 8 for k in range(3)])
    if stopped:
        slow = ["--backend", "fault:aio", "--fault", "delay_us=400000", "--commit-every", 500]
        run = subprocess.Popen([str(w) for w in [memext.program, "run", "--resume", "-d", place, "--ranks", 3, *EACH, *slow, "--quiet"]],
                               stderr=subprocess.PIPE, text=True)
        wait_until(lambda: [one["step"] for one in info(memext, place)["sets"][0]["stores"]] == [4] * 3, "notes of one step", run)
        run.send_signal(signal.SIGINT)
        err = run.communicate(timeout=600)[1]
        assert run.returncode == 5 and "interrupted after step 4 of 8" in err, err
        check_set([4] * 3)
    files = {path: path.read_bytes() for path in snapshots.glob("*.npy")}
    assert len(files) == 1
    for path in files:
        path.unlink()
    result = ranks(memext, place, to, "--resume", "--backend", "uring")
    assert (result["resumed_from"], result["steps_done"], result["met"], result["commits"]["every_s"]) == (4, 8, None, 500)
    assert [result[key] for key in ("checksum", "norms", "until")] == [wanted[key] for key in ("checksum", "norms", "until")]
    assert result["checksum"] == alone(memext, *GRID, "-t", 8)["checksum"]
    assert {path: path.read_bytes() for path in snapshots.glob("*.npy")} == files
    assert [(one["ranks"], one["step"], one["state"]) for one in info(memext, place)["sets"]] == [(to, 8, "done, kept")]


def uneven(memext, place, tmp_path, behind, *more):
    """Stores of 3 ranks, asked for 8 steps, of which one is at step 4 still."""
    ranks(memext, place, 3, *GRID, *PLANS["stream"], "-t", 4, "--keep")
    shutil.copytree(place / f"rank-{behind}", tmp_path / "behind")
    ranks(memext, place, 3, "--resume", "-t", 8, *more)
    shutil.copy(tmp_path / "behind" / "memext.store", place / f"rank-{behind}" / "memext.store")


@pytest.mark.parametrize("to", [3, 2])
@pytest.mark.parametrize("behind, steps", [(0, 4), (0, 6), (2, 4), (2, 6)])
@pytest.mark.each_value
def test_fewer_steps_than_some_have(memext, place, tmp_path, behind, steps, to):  # noqa: F811
    """What counts is the step that all have; a number below that is refused, by one of them."""
    uneven(memext, place, tmp_path, behind)
    done = memext("run", "--resume", "-d", place, "--ranks", to, *EACH, "-t", 3, "--quiet")
    assert done.returncode == 2 and done.stderr.count("holds step 4, and -t asks for 3") == 1, done.stderr
    result = ranks(memext, place, to, "--resume", "-t", steps)
    assert (result["resumed_from"], result["steps_done"]) == (4, steps)
    assert result["checksum"] == alone(memext, *GRID, "-t", steps)["checksum"]


def test_plan_by_hand_of_unequal_ranks(memext, place):  # noqa: F811
    """The Blocks of a plan are not those of the rank that has the fewest planes, and stay what they were."""
    plan = ["--algorithm", "redundant", "--block", NY, 9, 2]
    ranks(memext, place, 3, *GRID, *plan, "-t", 4, "--rank-weights", "1,4,1", "--keep")
    result = ranks(memext, place, 3, "--resume", "-t", 8)
    stores = [one["plan"] for one in info(memext, place)["sets"][0]["stores"]]
    assert stores[1]["bz"] == 9 and all((plan["tuner"], plan["by"], plan["bt"]) == ("manual", NY, 2) for plan in stores), stores
    assert result["checksum"] == alone(memext, *GRID, "-t", 8)["checksum"]


@pytest.mark.parametrize("late", [0, 1])
def test_killed_while_notes_are_settled(memext, place, tmp_path, late):  # noqa: F811
    """Ranks that were behind have written that there are to be hashes, and one that is to go back has not: all forget it, and nothing is in the way of
    a plan that cuts planes."""
    uneven(memext, place, tmp_path, 2)
    shutil.copy(place / f"rank-{late}" / "memext.store", tmp_path / "late")
    slow = ["--integrity", "--backend", "fault:aio", "--fault", "delay_us=400000"]
    run = subprocess.Popen([str(w) for w in [memext.program, "run", "--resume", "-d", place, "--ranks", 3, *EACH, *slow, "--quiet"]],
                           stderr=subprocess.PIPE)
    wait_until(lambda: [one["step"] for one in info(memext, place)["sets"][0]["stores"]] == [4] * 3, "notes of one step", run)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=600)
    assert run.returncode == 5
    shutil.copy(tmp_path / "late", place / f"rank-{late}" / "memext.store")  # as if it had been killed before it wrote its own
    assert sorted(one["integrity_unit_bytes"] > 0 for one in info(memext, place)["sets"][0]["stores"]) == [False, True, True]
    result = ranks(memext, place, 3, "--resume", "--backend", "uring")
    assert (result["resumed_from"], result["steps_done"]) == (4, 8)
    assert [one["integrity_unit_bytes"] for one in info(memext, place)["sets"][0]["stores"]] == [0] * 3
    assert result["checksum"] == alone(memext, *GRID, "-t", 8)["checksum"]


@pytest.mark.parametrize("behind", [0, 2])
def test_first_commit_of_some_after_a_file_has_moved(memext, place, tmp_path, behind):  # noqa: F811
    """A field that is read in place is where the run found it last."""
    system = System("wave", tmp_path)
    ranks(memext, place, 3, *system.words(5), "--plan", "stream bt=2 slab=2", "--keep")
    assert "v" in info(memext, place)["sets"][0]["stores"][0]["fields_in_place"]
    shutil.copytree(place / f"rank-{behind}", tmp_path / "behind")
    system.path("v").rename(tmp_path / "moved.npy")
    ranks(memext, place, 3, "--resume", "-t", 7, "--field", f"v={tmp_path / 'moved.npy'}", "--keep")
    shutil.copy(tmp_path / "behind" / "memext.store", place / f"rank-{behind}" / "memext.store")
    result = ranks(memext, place, 3, "--resume", *system.outputs(tmp_path))
    assert (result["resumed_from"], result["steps_done"]) == (5, 7)
    system.check(tmp_path, 7)


def test_export_of_fields(memext, place, tmp_path):  # noqa: F811
    """Fields of both arrays of a pair, which change places."""
    for name, nt in [("fdtd", 5), ("wave", 5)]:
        system = System(name, tmp_path)
        ranks(memext, place, 3, *system.words(nt), "--algorithm", "stream", "--block", 200, 200, 2, "--keep", "--force")
        words = [str(w) for w in system.outputs(tmp_path)]
        done = memext("export", place, *words, "--overwrite")
        assert done.returncode == 0, done.stderr
        system.check(tmp_path, nt)


def test_ranks_thinner_than_a_side_reaches(memext, place, tmp_path):  # noqa: F811
    """A side about a node needs two planes of the grid, and not of each rank."""
    problem = ["-n", 6, 6, 5, "--side", "z=mirror-node,fixed", "--dram", "64MiB"]
    want = memext.run(*problem, "-t", 4, "-d", place)["checksum"]
    memext.run(*problem, "-t", 2, "-d", place, "--ranks", 3, "--keep")
    memext("export", place, "-o", tmp_path / "u.npy")
    assert memext.run("--resume", "-d", place, "-t", 4, "--ranks", 3)["checksum"] == want


def test_what_is_no_set(memext, place, tmp_path):  # noqa: F811
    """A store of a rank by itself, a set with one missing, and a directory without any."""
    out = ["-o", tmp_path / "out.npy"]
    memext.refused("info", place, naming=["memext.store"])
    ranks(memext, place, 3, *GRID, *PLANS["stream"], "--keep")
    memext.refused("export", place / "rank-1", *out, naming=["planes 18 to 35", "that the run had with -d"])
    assert info(memext, place / "rank-1")["store"]["rank"] == 1
    shutil.rmtree(place / "rank-1")
    memext.refused("export", place, *out, naming=["hold no whole state"])
    told = info(memext, place)
    assert told["sets"] == [] and sorted(told["left"]) == [str(place / f"rank-{k}") for k in (0, 2)]
    assert "rank 2 of 3, grid cut 0, step 17; it is not a whole set" in memext("info", place).stdout


def test_stores_are_no_outputs(memext, place, tmp_path):  # noqa: F811
    """A store of whatever run is not replaced, --overwrite or not."""
    ranks(memext, place, 2, *GRID, "-t", 4, "--keep")
    other = tmp_path / "other.store"
    assert memext("run", *GRID, "-t", 4, "-d", place, "--keep", "--quiet").returncode == 0
    shutil.move(place / "memext.store", other)
    begun = tmp_path / "memext.store"
    begun.write_bytes(b"")
    for store in [place / "rank-0" / "memext.store", other, begun]:
        before = store.read_bytes()
        memext.refused("info", place, "--json", store, naming=["is a memext store", str(store)])
        memext.refused("info", "--json", store, naming=["is a memext store"])
        memext.refused("export", place, "-o", store, "--overwrite", naming=["is a memext store", str(store)])
        memext.refused("run", *GRID, "-d", tmp_path / "new", "-o", store, "--overwrite", naming=["is a memext store"])
        assert store.read_bytes() == before


def test_two_runs(memext, place, tmp_path):  # noqa: F811
    """Of a directory with the states of two runs export asks which, and every way that info names leads to its own."""
    wanted, out = {}, tmp_path / "out.npy"
    for steps in [4, 8]:
        alone(memext, *GRID, "-t", steps, "-o", tmp_path / "alone.npy", "--overwrite")
        wanted[steps] = (tmp_path / "alone.npy").read_bytes()
    ranks(memext, place, 2, *GRID, "-t", 4, "--keep")
    assert memext("run", *GRID, "-t", 8, "-d", place, "--keep", "--quiet").returncode == 0
    single, several = place / "memext.store", place / "rank-%r"
    memext.refused("export", place, "-o", out, naming=["two runs", f"{single} ", f"{several}\n"])
    assert not out.exists()
    said = memext("info", place).stdout
    assert f"memext export {single} -o" in said and f"memext export {several} -o" in said, said
    assert exported(memext, single, out)[0] == wanted[8] and exported(memext, several, out)[0] == wanted[4]


def test_numbered_places(memext, place, tmp_path):  # noqa: F811
    """What was given with -d is what is named, with %r as well; of one of them nothing is told that would be refused."""
    base = place / "p%r"
    alone(memext, *GRID, "-t", 4, "-o", tmp_path / "alone.npy")
    ranks(memext, base, 2, *GRID, "-t", 4, "--keep")
    assert [(one["ranks"], one["step"]) for one in info(memext, base)["sets"]] == [(2, 4)]
    assert f"memext export {base} -o" in memext("info", base).stdout
    assert exported(memext, base, tmp_path / "out.npy")[0] == (tmp_path / "alone.npy").read_bytes()
    said = memext("info", place / "p0").stdout
    assert "one of the stores of 2 ranks" in said and "export" not in said and "--resume" not in said, said
    memext.refused("export", place / "p0", "-o", tmp_path / "none.npy", naming=["%r"])
    memext.refused("export", place / "q%r", "-o", tmp_path / "none.npy", naming=["q%r"])
    memext.refused("info", place / "q%r", naming=["q%r"])


def test_sentences(memext, place):  # noqa: F811
    """Who ends because another rank has says no more than that; what is committed, and where, is told by where it is. Nobody says what another rank has
    said."""
    run = ["run", "-d", place, *EACH, "--quiet", "--keep"]
    (place / "rank-1").mkdir()
    assert memext("run", *GRID, "-t", 4, "-d", place / "rank-1", "--keep", "--quiet").returncode == 0
    done = memext(*run, *GRID, "--ranks", 3)
    assert done.returncode == 2 and done.stderr.count("discard it with --force") == 1 and "committed" not in done.stderr, done.stderr
    assert "--resume" not in done.stderr and 1 <= done.stderr.count("so this rank ends too") <= 2, done.stderr
    done = memext(*run, "--ranks", 3, "-t", 4, "--input", place / "none.npy", "--force")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "none.npy: No such file" in done.stderr, done.stderr
    assert memext(*run, *GRID, "-t", 4, "--ranks", 3, "--force").returncode == 0
    done = memext(*run, "--resume", "-t", NT, "--ranks", 2, "--backend", "fault:aio", "--fault", "eio=1")  # nothing gets into the new stores
    assert done.returncode == 3 and f"committed in {place};" in done.stderr and "step 4 of" in done.stderr and "cut-1" not in done.stderr.split("committed in")[1], done.stderr
    for option in [["--param", "a=1"], ["--field", "a=x.npy"], ["--kernel", "k.c"]]:
        done = memext(*run, "--resume", "--ranks", 3, *option)
        assert done.returncode == 2 and f"leave {option[0]} out" in done.stderr, done.stderr


@pytest.mark.parametrize("mpi", MPIS or [pytest.param(None, marks=pytest.mark.skip(reason="no MPI is installed (packages-mpi.txt)"))])
def test_refused_under_mpirun(memext, build, place, mpi):  # noqa: F811
    """The exit status of a refusal is that of a run by itself."""
    for words in [["--rank-weights", "1,1000"], ["-t", 60, "--algorithm", "stream", "--block", NY, NZ, 30]]:
        done = memext("run", *GRID, *words, *EACH, "-d", place, "--quiet", **under(build, mpi, 2))
        assert done.returncode == 2, (done.returncode, done.stderr)
    done = memext("run", *GRID, *EACH, "-d", place, "--quiet", "--dry-run", **under(build, mpi, 2))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mpi", MPIS or [pytest.param(None, marks=pytest.mark.skip(reason="no MPI is installed (packages-mpi.txt)"))])
def test_failed_under_mpirun(memext, build, place, tmp_path, mpi):  # noqa: F811
    """Whoever fails, all clean up and say what they have to say before anyone ends the others: no file that is half written, the report."""

    def failed(status, sentence, *words):
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        done = memext("run", *GRID, *EACH, "-d", place, "--quiet", "-o", tmp_path / "out.npy", "--json", report, *words,
                      **under(build, mpi, 2))
        assert done.returncode == status and 1 <= done.stderr.count(sentence) <= status - 1, (done.returncode, done.stderr)
        assert os.listdir(tmp_path) == ["report.json"] and json.loads(report.read_text())["status"] == "failed", done.stderr

    failed(2, "the smallest rank has", "--rank-weights", "1,1000")
    (place / "rank-1").mkdir(exist_ok=True)
    assert memext("run", *GRID, "-t", 4, "-d", place / "rank-1", "--keep", "--quiet").returncode == 0
    failed(2, "discard it with --force")
    failed(3, "Input/output error", "--force", "--no-fuse", "--backend", "fault:aio", "--fault", "eio=1")  # of one or both


def test_timeline(memext, place, tmp_path):  # noqa: F811
    """One file with a part for each rank: events of its planes, bytes and updates as its report has them."""
    import sys

    sys.path.insert(0, str(ROOT))
    from analysis import timeline

    result = ranks(memext, place, 3, *GRID, *PLANS["stream"], "--timeline", tmp_path / "timeline")
    lines = timeline.read_all(tmp_path / "timeline")
    assert [(line.header["rank"], line.header["ranks"]) for line in lines] == [(k, 3) for k in range(3)]
    for line, one in zip(lines, result["ranks"]["each"]):
        assert sum(e["n"] for e in line.of_kind("advance")) == one["updates"] == line.total("updates")
        assert sum(e["n"] for e in line.of_kind("store")) == one["write_bytes"]
        assert line.header["problem"]["nz"] == one["planes"]
    assert timeline.read(tmp_path / "timeline").header["rank"] == 0


FULL = {"plain": [], "every": ["--commit-every", 0.01], "accel": ["--accel", "host"], "accel-every": ["--accel", "host", "--commit-every", 0.01]}


# Two implementations of MPI see the same program as processes that the command starts: one case of each, all when there is time.
@pytest.mark.parametrize("mpi, more", [pytest.param(mpi, more, id=f"{mpi}-{name}", marks=[] if mpi == "local" or name == {MPIS[0]: "accel-every"}.get(mpi, "plain") else [pytest.mark.long])
                                       for mpi in ["local", *MPIS] for name, more in FULL.items()])  # fmt: skip
def test_full_disk(memext, build, mounted, mpi, more):
    """A place that has room for the store of each rank but not for all: nothing begins, and nothing is left. One that gets full while a run goes on, or
    has no room for the stores of another number of ranks: what was committed stays, and goes on when there is room."""
    how = under(build, mpi, 3) if mpi != "local" else {}
    many = [] if how else ["--ranks", 3]
    disk = mounted(64 << 20)[0]
    stores, ballast, grid = disk / "stores", disk / "ballast", ["-n", 60, 60, 120, "-t", 12]
    stores.mkdir()

    def leave(count):
        with open(ballast, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - count)

    def run(*words, ranks=many, how=how):
        return memext("run", *words, "-d", stores, *ranks, *EACH, "--quiet", **how)

    def said(done):
        return [line for line in done.stderr.splitlines() if line.startswith("memext run: ")]

    begin = [*grid, "--plan", "stream bt=2 slab=4", *more]
    assert run(*begin, "-t", 2, "--keep").returncode == 0
    took = sum(path.stat().st_blocks * 512 for path in stores.rglob("memext.store"))
    shutil.rmtree(stores)
    stores.mkdir()
    dry = [] if how else [run(*begin, "--dry-run"), run(*begin, "--dry-run", "--rank-weights", "2,1,1")]
    assert all(one.returncode == 0 for one in dry), dry
    leave(took * 4 // 5)
    dry = [] if how else [run(*begin, "--dry-run"), run(*begin, "--dry-run", "--rank-weights", "2,1,1")]
    assert all(one.returncode == 2 and "the Buffers" in one.stderr and "free space" in one.stderr for one in dry), dry
    assert list(stores.iterdir()) == []
    done = run(*begin)
    assert done.returncode == 2 and any("free space" in line for line in said(done)) and len(said(done)) in ([3] if how else [2, 3]), done.stderr
    assert list(stores.rglob("memext.store")) == []
    ballast.unlink()
    assert run(*begin, "-t", 4, "--keep").returncode == 0
    leave(took // 2)
    done = run("--resume", "-t", 12, "--keep", ranks=["--ranks", 2], how={})
    assert done.returncode == 2 and "free space" in done.stderr, done.stderr
    assert [(one["ranks"], one["step"]) for one in info(memext, stores)["sets"]] == [(3, 4)]
    ballast.unlink()
    leave(8 << 20)  # for two snapshots
    done = run("--resume", "-t", 12, "--keep", "--snapshot", f"1:{disk / 'snapshots'}")
    assert done.returncode == 3 and "free space" in done.stderr, done.stderr
    ballast.unlink()
    done = run("--resume", "-t", 12, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["checksum"] == alone(memext, *grid)["checksum"]


# ------------------------------------------------------------------ runs that have only begun

@pytest.fixture
def begun(memext, place):  # noqa: F811
    """The words of a run of two ranks that reads its first sweep from a file."""
    memext.run("-n", 30, 29, 40, "-t", 1, "--backend", "dram", "--init", "random", "-o", place / "in.npy")
    return ["--input", place / "in.npy", "--plan", "stream bt=2 by=29", "-d", place, *EACH, "--quiet"]


def test_a_run_that_has_only_begun_is_in_use(memext, place, begun):  # noqa: F811
    """Until its first commit no state is read by who goes on with other ranks, and so no lock of a state is met: they are refused all the same."""
    slow = ["--ranks", 2, "--keep", "--backend", "fault:aio", "--fault", "delay_us=100000", "--commit-every", 0]
    run = subprocess.Popen([str(memext.program), "run", *map(str, [*begun, "-t", 8, *slow])], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len([s for s in place.glob("rank-*/memext.store") if memext("info", s).returncode == 0]) == 2, "the notes of both ranks", run)
    told = info(memext, place)["sets"]
    if told and told[0]["step"] == 0:
        for ranks_now in 1, 3:
            done = memext("run", "--resume", "-d", place, "-t", 4, *EACH, "--ranks", ranks_now, "--keep", "--quiet")
            assert done.returncode != 0, "another run went on with the stores of one that is alive"
    run.communicate()
    assert run.returncode == 0 and [one["step"] for one in info(memext, place)["sets"]] == [8]


def test_what_is_left_of_a_run_that_had_only_begun(memext, place, begun):  # noqa: F811
    """One rank has a note that says where the grid comes from, the other has nothing: nobody can go on with it, and the next run begins in its place."""
    done = memext("run", *begun, "-t", 12, "--ranks", 2, "--backend", "fault:aio", "--fault", "fail_after=1")
    assert done.returncode == 3 and info(memext, place)["sets"][0]["step"] == 0
    os.truncate(place / "rank-1" / "memext.store", 0)
    memext.refused("run", "--resume", "-d", place, *EACH, "--ranks", 2, "--quiet", naming="rank-1")
    assert memext("run", *begun, "-t", 4, "--ranks", 2, "--dry-run").returncode == 0
    report = memext.run(*begun, "-t", 4, "--ranks", 2)
    assert report["checksum"] == memext.run("--input", place / "in.npy", "-t", 4, "--backend", "dram")["checksum"]
    assert sorted(os.listdir(place)) == ["in.npy"]
