# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F401, F811 - fixtures
"""Stores as arrays in Python: those of ranks have the planes that they say, and what a run writes over meanwhile is not handed out."""
import os
import re
import shutil

import numpy as np
import pytest
from conftest import ROOT
from package import cache, environment, mx  # fixtures
from test_integrity import PLANS, fields, flip  # fixture: fields

DIFFUSION = ROOT / "systems" / "diffusion.c"


@pytest.fixture
def rank_stores(memext, quick_place):
    """make(ranks, *options) -> (directories of the ranks' stores, u and k of the whole grid)"""
    def make(ranks, *options):
        k = np.random.default_rng(1).random((22, 12, 13), dtype="f4") * 0.8 + 0.2
        np.save(quick_place / "k.npy", k)
        (quick_place / "p").mkdir()
        (quick_place / "q").mkdir()
        words = ["--kernel", DIFFUSION, "-n", 11, 10, 20, "-t", 7, "--init", "random", "--field", f"k={quick_place}/k.npy", "--field-copy", "--keep", *options]
        memext.run(*words, "-d", quick_place / "p", "--ranks", ranks)
        memext.run(*words, "-d", quick_place / "q", "--output", f"u={quick_place}/u.npy")
        return [quick_place / "p" / f"rank-{i}" for i in range(ranks)], np.load(quick_place / "u.npy"), quick_place / "q"
    return make


@pytest.mark.parametrize("ranks, options", [(2, []), (3, []), (3, ["--side", "z=periodic"]), (2, ["--side", "z=mirror"])])
def test_stores_of_ranks_have_the_planes_that_they_say(mx, rank_stores, ranks, options):
    """Of the state the planes of all ranks one after the other are the grid (around a periodic z without its frame); of a read-only field each
    has its planes with a frame."""
    places, u, whole = rank_stores(ranks, *options)
    k, stores = np.asarray(mx.open(whole)["k"]), [mx.open(place) for place in places]
    ring = "z=periodic" in options
    assert np.array_equal(np.concatenate([s["u"] for s in stores]), u[1:-1] if ring else u)
    for s in stores:
        first, planes = s.info["first_plane"], s.info["problem"]["nz"]
        assert np.array_equal(s["k"], k[first:first + planes + 2]) and s["k"].shape[1:] == s.shape[1:] and s.shape == s["u"].shape
        assert np.array_equal(s.part("u", False), u[first + 1:first + 1 + planes, 1:-1, 1:-1])
        assert np.array_equal(s.part("k", False), k[first + 1:first + 1 + planes, 1:-1, 1:-1])
        assert s.part("k", True).shape == s.part("u", True).shape == s.shape


def test_what_shows_the_store_of_a_rank_has_its_planes_too(mx, rank_stores, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    places, u, whole = rank_stores(2)
    k, store = np.asarray(mx.open(whole)["k"]), mx.open(places[1])
    for frame, planes in ((False, slice(11, 21)), (True, slice(11, 22))):
        inner = slice(0, None) if frame else slice(1, -1)
        with h5py.File(store.link(tmp_path / f"{frame}.h5", frame=frame), "r") as file:
            assert np.array_equal(file["u"], u[planes, inner, inner]) and np.array_equal(file["k"], k[planes, inner, inner])
        levels = store.pyramid(tmp_path / f"{frame}-pyramid.h5", 1, frame=frame)
        assert np.array_equal(levels["u"][0], u[planes, inner, inner]) and levels["k"][1].shape == levels["u"][1].shape


@pytest.fixture
def gone_over(memext, mx, quick_place, monkeypatch):
    """(place, meanwhile(how, nth)): a store of two steps; in the nth read of its file from then on, before the cells come, `how` happens to it."""
    words = ["-n", 20, 21, 22, "-d", quick_place, "--keep", "--commit-every", 0, "--plan", "stream by=21 bt=1 threads=1"]
    memext.run(*words, "-t", 2, "--init", "random")

    def go_on():
        memext.run("--resume", "-d", quick_place, "-t", 9, "--keep")

    def replace():
        (quick_place / "memext.store").unlink()
        memext.run(*words, "-t", 2, "--init", "gauss")

    def remove():
        shutil.rmtree(quick_place)
        quick_place.mkdir()
    read, state = os.preadv, {"left": -1, "how": None}

    def preadv(fd, buffers, at):
        state["left"] -= 1
        if state["left"] == 0:
            {"go on": go_on, "replace": replace, "remove": remove}[state["how"]]()
        return read(fd, buffers, at)

    def meanwhile(how, nth):
        state.update(how=how, left=nth)
        monkeypatch.setattr(os, "preadv", preadv)
    return quick_place, meanwhile


READERS = {"all": lambda mx, s, out: np.asarray(s["u"]), "slices": lambda mx, s, out: s["u"][3:9, ::2, 1:4], "plane": lambda mx, s, out: s["u"].plane(4),
           "save": lambda mx, s, out: s["u"].save(out / "u.npy"), "pyramid": lambda mx, s, out: s.pyramid(out / "u.h5", 1),
           "sections": lambda mx, s, out: s["u"].slices(), "without a frame": lambda mx, s, out: s.part("u", False)[...],
           "a run": lambda mx, s, out: mx.Run(u=s["u"], dram="64MiB", device=out).advance(1)}


@pytest.mark.parametrize("how, codes", [("go on", {"ESTALE"}), ("replace", {"ESTALE"}), ("remove", {"ENOENT"})])
def test_what_a_run_writes_over_while_it_is_read_is_refused(mx, gone_over, tmp_path, how, codes):
    place, meanwhile = gone_over
    store = mx.open(place)
    meanwhile(how, 2)
    with pytest.raises(mx.MemextError) as caught:
        np.asarray(store["u"])
    assert caught.value.errorname in codes, str(caught.value)


@pytest.mark.parametrize("reader", READERS)
def test_whatever_reads_a_store_sees_that_it_has_gone_on(mx, gone_over, tmp_path, reader):
    if reader == "pyramid":
        pytest.importorskip("h5py", reason="h5py is not installed")
    place, meanwhile = gone_over
    store = mx.open(place)
    meanwhile("go on", 1)
    with pytest.raises(mx.MemextError, match="has changed since it was opened"):
        READERS[reader](mx, store, tmp_path)
    assert not [p.name for p in tmp_path.iterdir() if not p.name.startswith("memext.store")], "a file of mixed steps"
    assert np.isfinite(np.asarray(mx.open(place)["u"])).all()


def test_a_store_that_is_only_read_by_others_is_read(mx, gone_over, memext, tmp_path):
    place, _ = gone_over
    store = mx.open(place)
    want = np.asarray(store["u"])
    memext("export", place, "-o", tmp_path / "u.npy")
    assert np.array_equal(store["u"], want) and np.array_equal(np.load(tmp_path / "u.npy"), want)


# ------------------------------------------------------------------ --integrity

@pytest.fixture(scope="module", params=[(system, plan, backend) for system in ("diffusion", "wave") for plan, backend in (("stream", "uring"), ("strips", "uring"),
                                                                                                                       ("redundant", "mmap"))], ids="-".join)
def hashed(request, memext, fields, tmp_path_factory):
    """(directory of a store with hashes of rows, of planes and, of a small read-only field, of several planes; its fields as they were written)"""
    system, plan, backend = request.param
    place = tmp_path_factory.mktemp("hashed")
    memext.run(*fields[system], "-t", 6, "--integrity", "--keep", "-d", place, "--plan", PLANS[plan], "--backend", backend)
    return place


def cell_of(array, z, y, x):
    """Its byte in the file, by what `info` says of the array."""
    return array.offset + z * array.plane_pitch + y * array.row_pitch + x * array.dtype.itemsize


def test_what_is_damaged_in_a_store_is_not_handed_out(mx, hashed, quick_place):
    """Of every field, whatever the shape of the read: what is read is what was written, or a sentence with the field and its planes, status 3."""
    shutil.copytree(hashed, quick_place, dirs_exist_ok=True)
    whole = {name: np.asarray(a) for name, a in ((n, mx.open(hashed)[n]) for n in mx.open(hashed).fields)}
    file, reads = quick_place / "memext.store", [np.s_[...], np.s_[11], np.s_[:, 5], np.s_[..., 7], np.s_[2:15:3, ::2, 1:9], np.s_[11, 5, 7], np.s_[12:], np.s_[:3, 1:3]]
    for name, cells in whole.items():
        flip(file, cell_of(mx.open(quick_place)[name], 11, 5, 7))
        for key in reads:
            array = mx.open(quick_place)[name]
            try:
                found = array[key]
            except mx.MemextError as error:
                assert (error.errorname, error.status) == ("EBADMSG", 3) and name in str(error), error
                first, last = map(int, re.search(r"planes? (\d+)(?: to (\d+))?,", str(error)).groups(default="11"))
                assert first <= 11 <= last
            else:
                assert np.array_equal(found, cells[key]), (name, key)
        for key in reads[0], reads[1], reads[2], reads[5]:
            with pytest.raises(mx.MemextError, match="differs from what was written"):
                mx.open(quick_place)[name][key]
        flip(file, cell_of(mx.open(quick_place)[name], 11, 5, 7))
    for name in ("u", "k") if "u" in whole else ("p",):
        inner = mx.open(quick_place).part(name, False)
        assert np.array_equal(inner, whole[name][tuple(slice(mx.open(quick_place).frame, -mx.open(quick_place).frame) for _ in range(3))])


@pytest.mark.parametrize("reader", [r for r in READERS if r != "a run"])
def test_whatever_reads_a_damaged_store_says_so(mx, memext, quick_place, tmp_path, reader):
    if reader == "pyramid":
        pytest.importorskip("h5py", reason="h5py is not installed")
    memext.run("-n", 20, 21, 22, "-d", quick_place, "--keep", "--plan", "stream by=21 bt=1 threads=1", "-t", 2, "--init", "random", "--integrity")
    flip(quick_place / "memext.store", cell_of(mx.open(quick_place)["u"], 4, 2, 3))
    if reader == "sections":
        flip(quick_place / "memext.store", cell_of(mx.open(quick_place)["u"], 12, 2, 3))
    plane = {"pyramid": 3, "without a frame": 3, "sections": 12}.get(reader, 4)
    with pytest.raises(mx.MemextError, match=f"u, plane {plane}, differs from what was written"):
        READERS[reader](mx, mx.open(quick_place), tmp_path)


def test_hashes_that_are_damaged_themselves(mx, memext, quick_place):
    """They are none: the store is damaged. Without --integrity nothing is compared."""
    words = ["-n", 20, 21, 22, "-d", quick_place, "--keep", "--plan", "stream by=21 bt=1 threads=1", "-t", 2, "--init", "random"]
    memext.run(*words, "--integrity")
    store = mx.open(quick_place)
    table = next(e for e in store.info["extents"] if e["name"] == store.info["buffer"] + ".sum")
    flip(quick_place / "memext.store", table["offset_bytes"] + 4096 + 5)
    with pytest.raises(mx.MemextError, match="hashes of the Buffer .* have changed"):
        mx.open(quick_place)["u"]
    flip(quick_place / "memext.store", table["offset_bytes"] + 4096 + 5)
    np.asarray(mx.open(quick_place)["u"])
    memext.run(*words, "--force")
    flip(quick_place / "memext.store", cell_of(mx.open(quick_place)["u"], 4, 2, 3))
    np.asarray(mx.open(quick_place)["u"])


# ------------------------------------------------------------------ places and files of a program that goes elsewhere

def test_paths_are_of_the_directory_that_the_run_was_made_in(mx, tmp_path, monkeypatch):
    """device, files of fields and of options; also what is made where no place is given, and arrays of files and stores."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there, here / "place"):
        folder.mkdir()
    u = np.random.default_rng(1).random((8, 9, 10))
    np.save(here / "u.npy", u)
    np.save(here / "k.npy", u.astype("f4"))
    (here / "probes.txt").write_text("u 3 3 3\n")
    monkeypatch.chdir(here)
    monkeypatch.delenv("MEMEXT_DEVICE", raising=False)

    @mx.kernel(fixed={"k": "f4"})
    def cell(u, k):
        return u + 0.1 * k * (u[1, 0, 0] - u)
    want = cell.reference(3, u=u, k=u.astype("f4"))["u"]
    opened = mx.open("u.npy")
    one = mx.Run(cell, u="u.npy", k="k.npy", device="place", dram="64MiB", timeline="t.json", snapshot="1:snaps", output={"u": "out.npy"}, overwrite=True)
    other = mx.Run(cell, u=opened, k="k.npy", dram="64MiB")
    with one, other:
        monkeypatch.chdir(there)
        for run in (one, other):
            run.advance(2)
            monkeypatch.chdir(tmp_path)
            array, store = run["u"], run.store
            run.advance(3)
            assert np.array_equal(run["u"], want) and store.path.is_absolute()
            with pytest.raises(mx.MemextError, match="has changed since it was opened"):
                np.asarray(array)
        assert {p.name for p in here.iterdir() if not p.name.startswith(".")} == {"u.npy", "k.npy", "place", "t.json", "snaps", "out.npy", "probes.txt"}
    monkeypatch.chdir(here)
    probed = mx.Run(cell, u="u.npy", k="k.npy", backend="dram", dram="64MiB", probes="probes.txt", probes_out="traces.npy")
    monkeypatch.chdir(there)
    probed.advance(2)
    probed.close()
    assert np.load(here / "traces.npy").shape == (2, 1)
    assert not list(there.iterdir()) and [p.name for p in tmp_path.iterdir() if p not in (here, there)] == [] and not list((here / "place").iterdir())
    assert np.array_equal(opened, u) and np.array_equal(np.load(here / "out.npy"), want)


def test_an_array_of_a_run_that_has_ended_says_what_to_do(mx, quick_place):
    run = mx.Run(u="random", shape=(8, 8, 8), device=quick_place, dram="64MiB")
    with pytest.raises(mx.MemextError, match="nothing was computed yet: call advance"):
        run["u"]
    with run:
        array = run.advance(1)["u"]
    for read in (lambda: np.asarray(array), lambda: run["u"], lambda: array[2]):
        with pytest.raises(mx.MemextError, match="keep=True") as caught:
            read()
        assert caught.value.errorname == "ENOENT"
    with mx.Run(u="random", shape=(8, 8, 8), backend="dram", dram="64MiB") as memory:
        with pytest.raises(mx.MemextError, match="nothing was computed yet: call advance"):
            memory["u"]
        memory.advance(1)
    assert memory["u"].shape == (10, 10, 10)
    with pytest.raises(KeyError, match="keeps no array v"):
        memory["v"]
    wave = mx.kernel(lambda p, k: 2 * p - p.old + k * (p[1, 0, 0] - p), fixed="k", name="wave")
    grid = np.random.default_rng(2).random((2, 7, 8, 9))
    with mx.Run(wave, p=grid[0], p_old=grid[1], k=0.1, backend="dram", dram="64MiB") as memory:
        memory.advance(3)
        want = wave.reference(3, p=grid[0], p_old=grid[1], k=np.full_like(grid[0], 0.1))
        assert memory["p"][...].tobytes() == want["p"].tobytes() and memory["p_old"][...].tobytes() == memory["p.old"][...].tobytes()
        before = wave.reference(2, p=grid[0], p_old=grid[1], k=np.full_like(grid[0], 0.1))
        assert memory["p_old"][1:-1, 1:-1, 1:-1].tobytes() == before["p"][1:-1, 1:-1, 1:-1].tobytes()
        with pytest.raises(KeyError, match="It keeps p, p_old; give k as an array, or leave backend= out"):
            memory["k"]


def test_info_says_what_fields_began_with(mx, memext, quick_place, tmp_path):
    """A file, what a program made, one of the library's beginnings, and the values of another field."""
    @mx.kernel(fixed=["c"])
    def wave(p, q, c):
        around = p[1, 0, 0] + p[-1, 0, 0] + p[0, 1, 0] + p[0, -1, 0] + p[0, 0, 1] + p[0, 0, -1] - 6 * p
        return 2 * p - p.old + 0.1 * c * around, 2 * q - q.old

    shape = (12, 10, 14)
    np.save(tmp_path / "c.npy", np.ones(shape))
    with mx.Run(wave, p=np.random.default_rng(1).random(shape), q="zero", c=str(tmp_path / "c.npy"), device=quick_place, dram="64MiB", keep=True) as run:
        run.advance(2)
    said = memext("info", quick_place).stdout
    beginnings = dict(re.findall(r"^(?:fields)? +(\S+) f64 from (.*)$", said, re.M))
    assert beginnings["p"] == "the source python" and beginnings["q"] == "init zero" and beginnings["p.old"] == "the values of p"
    assert beginnings["c"] == f"the file {tmp_path}/c.npy, read in place"


def test_planes_beyond_an_array_are_no_cells_beside_it(mx, quick_place):
    rng = np.random.default_rng(7)

    @mx.kernel
    def two(u, v):
        return u, v
    fields = {n: rng.random((6, 7, 8)) for n in "uv"}
    with mx.Run(two, **fields, device=quick_place, dram="64MiB", keep=True) as run:
        run.advance(1)
    store = mx.open(quick_place)
    for array in (*(store[n] for n in "uv"), store.part("u", frame=False)):
        n = array.shape[0]
        assert np.array_equal(array.plane(-1), array[n - 1]) and np.array_equal(array.planes(0, n), array[...]) and array.planes(n, n).shape[0] == 0
        for use in (lambda a: a.plane(a.shape[0]), lambda a: a.plane(-a.shape[0] - 1), lambda a: a.planes(-1, 2), lambda a: a.planes(0, a.shape[0] + 1), lambda a: a.planes(3, 2)):
            with pytest.raises(IndexError, match="has no plane"):
                use(array)
