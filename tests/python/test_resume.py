# SPDX-License-Identifier: BSD-3-Clause
"""A store goes on anywhere: other backends, plans, threads, memory; what its layout does not allow is refused, with the way out."""
import json

import numpy
import pytest
from conftest import ROOT, random_grid

NX, NY, NZ, NT = 30, 29, 31, 23
GRID = ["-n", NX, NY, NZ, "-t", NT]
BACKENDS = ["mmap", "aio", "uring"]
PLANS = {
    "redundant": ["--algorithm", "redundant", "--block", 13, 11, 3],
    "stream": ["--algorithm", "stream", "--block", NY, NZ, 3],
    "strips": ["--algorithm", "stream", "--block", 10, NZ, 3],
    "side-file": ["--plan", "stream by=10 bt=3 slab=4 faces=side-file"],
}
CUTS_Y = {"redundant", "strips", "side-file"}


@pytest.fixture
def place(quick_place):
    return quick_place


@pytest.fixture(scope="module")
def whole(memext):
    return memext.run(*GRID, "--backend", "dram", "--algorithm", "direct", "--engine", "iblock")["checksum"]


REQUESTS = {}  # of a plan on a backend until there is a commit: found once


def interrupt(memext, place, plan, backend, *more):
    """A run whose device dies between two commits, after as many requests as that takes: it ends with status 3."""
    fail_after = REQUESTS.get((plan, backend, more), 6)
    while True:
        done = memext("run", *GRID, *PLANS[plan], "-d", place, "--backend", f"fault:{backend}", "--fault", f"fail_after={fail_after}",
                      "--commit-every", 0, "--quiet", "--force", *more)
        assert done.returncode == 3, done.stderr
        if (place / "memext.store").exists() and stored(memext, place)["step"] > 0:
            REQUESTS[plan, backend, more] = fail_after
            return
        fail_after += max(2, fail_after // 3)


def stored(memext, place):
    done = memext("info", place, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["store"]


def resume(memext, place, *words):
    done = memext("run", "--resume", "-d", place, "--quiet", "--json", "-", *words)
    return done, json.loads(done.stdout)


@pytest.mark.parametrize("plan", ["redundant", "stream"])
def test_backend_that_moves_single_bytes(memext, place, whole, plan):
    """The store of one that has no alignment of its own goes on with itself and all others, and theirs with it."""
    for made_by, backend in [("skeleton", "skeleton"), ("skeleton", "uring"), ("skeleton", "mmap"), ("aio", "skeleton")]:
        interrupt(memext, place, plan, made_by)
        done, report = resume(memext, place, "--backend", backend)
        assert done.returncode == 0 and report["checksum"] == whole, done.stderr
        read, written = (sum(report["phases"][phase][f"{way}_bytes"] for phase in report["phases"] if phase == "stencil") for way in ("read", "write"))
        assert (read, written) == (report["predicted_read_bytes"], report["predicted_write_bytes"]), report


@pytest.mark.parametrize("made_by", BACKENDS)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.each_value
def test_on_every_backend(memext, place, whole, plan, made_by):
    """checksum(resumed on B) == checksum(whole) for each backend B that can transfer the stored rows; else status 2 and the way out.
    Bytes moved are those that were predicted for the steps that were left."""
    for backend in BACKENDS:
        interrupt(memext, place, plan, made_by)
        step = stored(memext, place)["step"]
        done, report = resume(memext, place, "--backend", backend)
        if made_by == "mmap" and backend != "mmap" and stored_rows_are_short(report, memext, place):
            assert done.returncode == 2 and "--backend mmap" in done.stderr, done.stderr
            done, report = resume(memext, place, "--backend", "mmap")
        assert done.returncode == 0, done.stderr
        assert report["checksum"] == whole and report["resumed_from"] == step
        assert report["read_bytes"] == report["predicted_read_bytes"] and report["write_bytes"] == report["predicted_write_bytes"]
        assert not (place / "memext.store").exists()


def stored_rows_are_short(report, memext, place):
    """The run was refused, so its store is still there."""
    if report["status"] != "failed":
        return False
    store = stored(memext, place)
    return store["row_pitch_bytes"] % 4096 != 0


@pytest.mark.parametrize("before, after", [(a, b) for a in PLANS for b in PLANS if a != b])
@pytest.mark.each_value
def test_with_another_plan(memext, place, whole, before, after):
    """checksum == checksum(whole) when the second part is computed by another algorithm, where the layout of the first has whole
    device blocks in its rows; planes alone suffice for stream without strips."""
    interrupt(memext, place, before, "uring")
    possible = before in CUTS_Y or after not in CUTS_Y
    done, report = resume(memext, place, *PLANS[after])
    if not possible:
        assert done.returncode == 2 and "--backend mmap" in done.stderr
        done, report = resume(memext, place, *PLANS[after], "--backend", "mmap")
    assert done.returncode == 0, done.stderr
    assert report["checksum"] == whole and report["plan"]["algorithm"] == {"redundant": "redundant"}.get(after, "stream")


@pytest.mark.parametrize("more", [["--threads", 1], ["--threads", 5], ["--dram", "26MiB"], ["--engine", "iblock"], ["--commit-every", 0],
                                  ["--commit-every", 1e-6], ["--integrity"], ["--verify"]])
def test_with_other_means(memext, place, whole, more):
    interrupt(memext, place, "redundant", "aio")
    done, report = resume(memext, place, *more)
    assert done.returncode == 0 and report["checksum"] == whole, done.stderr


def test_two_deaths_and_three_plans(memext, place, whole):
    """stream dies, redundant goes on and dies, stream in strips on a mapping ends it."""
    interrupt(memext, place, "side-file", "uring")
    first = stored(memext, place)["step"]
    done, _ = resume(memext, place, *PLANS["redundant"], "--backend", "fault:aio", "--fault", "fail_after=400")
    second = stored(memext, place)["step"]
    assert done.returncode == 3 and second > first, done.stderr
    done, report = resume(memext, place, *PLANS["strips"], "--backend", "mmap", "--verify")
    assert done.returncode == 0 and report["checksum"] == whole and report["verified"] is True


def test_a_third_buffer(memext, place, whole):
    """Every sweep is a commit, in three Buffers that take turns; then two more deaths; the bits are those of the whole."""
    interrupt(memext, place, "stream", "uring", "--commit-every", 1e-6)
    assert len([e for e in stored(memext, place)["extents"] if e["name"] in ("source", "target", "spare")]) == 3
    resume(memext, place, "--backend", "fault:aio", "--fault", "fail_after=9")
    done, report = resume(memext, place)
    assert done.returncode == 0 and report["checksum"] == whole and report["commits"]["buffers"] == 3


def test_what_does_not_belong_to_the_store(memext, place):
    """Options that contradict the store are refused and name what it holds; the store is as before."""
    interrupt(memext, place, "stream", "uring")
    before = stored(memext, place)
    for words, naming in [(["-n", 5, 5, 5], "30 x 29 x 31"), (["-t", 1], "a run cannot go back"), (["--stencil", "box27"], "star7"),
                          (["--dtype", "f32"], "f64"), (["--coef", "1,2"], "0.4"), (["--init", "zero"], "random"),
                          (["--algorithm", "skewed"], "redundant or stream"), (["--algorithm", "direct", "--backend", "mmap"], "stream"),
                          (["--force"], "--resume"), (["--dry-run"], "--resume")]:
        memext.refused("run", "--resume", "-d", place, *words, naming=naming)
    assert stored(memext, place) == before


def test_a_truncated_store_is_refused(memext, place):
    """Cut to half a Buffer, and inside the superblocks: one sentence that names the store, no SIGBUS."""
    interrupt(memext, place, "stream", "mmap")
    store = place / "memext.store"
    whole_bytes = store.read_bytes()
    for keep in (len(whole_bytes) - 4096, len(whole_bytes) // 2, 2 << 20, 70000, 20000, 5000, 100):
        store.write_bytes(whole_bytes[:keep])
        for backend in BACKENDS:
            done = memext("run", "--resume", "-d", place, "--backend", backend)
            assert done.returncode in (2, 3) and "memext.store" in done.stderr and len(done.stderr.splitlines()) == 1, (keep, done.stderr)


def test_an_input_that_changed(memext, place):
    """--verify of a resumed run needs the grid that it began with; without --verify nothing reads it."""
    numpy.save(place / "in.npy", random_grid(NX, NY, NZ))
    done = memext("run", "--input", place / "in.npy", "-t", NT, *PLANS["stream"], "-d", place, "--commit-every", 0, "--backend", "fault:aio",
                  "--fault", "fail_after=12", "--quiet", "--no-fuse")
    assert done.returncode == 3 and stored(memext, place)["step"] >= 0
    numpy.save(place / "in.npy", random_grid(NX, NY, NZ, seed=8))
    memext.refused("run", "--resume", "-d", place, "--verify", naming=["in.npy", "changed"])
    numpy.save(place / "again.npy", random_grid(NX, NY, NZ))
    expected = memext.run("--input", place / "again.npy", "-t", NT, "--backend", "dram")["checksum"]
    done, report = resume(memext, place)
    assert done.returncode == 0 and report["checksum"] == expected


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.each_value
def test_integrity_sees_one_wrong_bit(memext, place, whole, plan, backend):
    """A bit of the committed Buffer flips while nobody looks: --resume ends with status 3 and says where; flipped back it goes on."""
    interrupt(memext, place, plan, backend, "--integrity")
    store = stored(memext, place)
    extent = next(e for e in store["extents"] if e["name"] == store["buffer"])
    at = extent["offset_bytes"] + store["plane_pitch_bytes"] * 5 + store["row_pitch_bytes"] * 7 + 99
    flip(place / "memext.store", at)
    done, _ = resume(memext, place)
    assert done.returncode == 3 and "plane 5" in done.stderr, done.stderr
    memext_export = memext("export", place, "-o", place / "never.npy")
    assert memext_export.returncode == 3 and not (place / "never.npy").exists()
    flip(place / "memext.store", at)
    done, report = resume(memext, place)
    assert done.returncode == 0 and report["checksum"] == whole and report["commits"]["integrity"] is True


def test_hashes_of_whole_planes(memext, place, whole):
    """They are none of what a strip transfers: refused with the way out, which goes on. What commits write of hashes is no part of what is predicted."""
    interrupt(memext, place, "stream", "uring", "--integrity")
    memext.refused("run", "--resume", "-d", place, *PLANS["strips"], naming="--algorithm stream without strips (BY = NY)")
    done, report = resume(memext, place, *PLANS["stream"], "--commit-every", 0)
    assert done.returncode == 0 and report["checksum"] == whole, done.stderr
    assert report["write_bytes"] == report["predicted_write_bytes"] and report["read_bytes"] == report["predicted_read_bytes"]
    assert report["commits"]["hash_bytes"] > 0 and report["commits"]["hash_bytes"] % 4096 == 0


def test_hashes_of_short_rows(memext, place, whole, tmp_path):
    """Hashes of rows that no device transfers by themselves: a mapping goes on and exports, direct transfers are refused."""
    interrupt(memext, place, "strips", "mmap", "--integrity")
    for backend in ("aio", "uring"):
        memext.refused("run", "--resume", "-d", place, "--backend", backend, "--algorithm", "stream", naming="--backend mmap")
        memext.refused("export", place, "-o", tmp_path / "r.npy", "--backend", backend, naming="--backend mmap")
    assert memext("export", place, "-o", tmp_path / "r.npy").returncode == 0
    done, report = resume(memext, place)
    assert done.returncode == 0 and report["checksum"] == whole, done.stderr


@pytest.mark.parametrize("integrity", [[], ["--integrity"]], ids=["plain", "integrity"])
@pytest.mark.parametrize("made", ["redundant", "stream", "direct"])
def test_what_is_complete_is_done(memext, quick_place, tmp_path, made, integrity):
    """A file that is read in place, rows from the other end of y: whatever could not go on with that store, by whichever backend, reports what there is."""
    if made == "direct" and integrity:
        pytest.skip("direct loads nothing that could be checked")
    numpy.save(tmp_path / "eps.npy", numpy.random.default_rng(0).random((18, 14, 22), "f4") + 1)
    begun = memext.run("--kernel", ROOT / "systems/fdtd.c", "-n", 20, 12, 16, "-t", 6, "--init", "random", "--field", f"eps={tmp_path}/eps.npy",
                       "--side", "y=periodic", "-d", quick_place, "--keep", "--backend", "mmap", "--algorithm", made, *integrity)
    for words in [], ["--backend", "mmap"], ["--backend", "uring"], ["--backend", "aio"], ["--verify"], ["--algorithm", "stream", "-t", 6]:
        again = memext.run("--resume", "-d", quick_place, *words)
        assert again["checksum"] == begun["checksum"] and again["updates"] == 0, words
    memext.run("--resume", "-d", quick_place, "--backend", "aio", "-o", f"ex={tmp_path}/ex.npy")
    memext("export", quick_place, "-o", f"ex={tmp_path}/exported.npy")
    assert (tmp_path / "ex.npy").read_bytes() == (tmp_path / "exported.npy").read_bytes()


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
