# SPDX-License-Identifier: BSD-3-Clause
"""Stores of systems of several fields: what goes on, and what is refused."""
import os

import numpy as np
import pytest
from run_systems import PLANS, interrupted, killed, place, stored, system, untouched  # noqa: F401 (fixtures)
from test_systems import SYSTEMS


@pytest.mark.parametrize("name, nt, before, after", [
    ("wave", 8, ["--plan", "stream by=35 bt=1", "--commit-every", 0], ["--backend", "mmap", "--algorithm", "redundant", "--block", 9, 9, 2]),
    ("wave", 9, ["--plan", "stream by=35 bt=3", "--commit-every", 0], ["--backend", "uring", "--plan", "stream by=35 bt=2 slab=2", "--threads", 1]),
    ("wave", 9, ["--algorithm", "redundant", "--block", 9, 9, 1, "--commit-every", 0], ["--backend", "aio", "--plan", "stream by=35 bt=2"]),
    ("wave", 9, ["--plan", "stream by=35 bt=1", "--commit-every", 0, "--integrity"], ["--backend", "mmap", "--commit-every", 0]),
    ("wave", 9, ["--plan", "stream by=35 bt=1", "--commit-every", 0.000001], ["--commit-every", 100]),
    ("wave", 8, ["--plan", "stream by=35 bt=1", "--commit-every", 0], ["--commit-every", 0.000001]),
    ("fdtd", 7, ["--plan", "stream by=23 bt=2", "--commit-every", 0], ["--backend", "mmap", "--algorithm", "redundant", "--block", 9, 9, 4]),
    ("fdtd", 7, ["--plan", "stream by=23 bt=6", "--commit-every", 0.000001], ["--backend", "aio", "--plan", "stream by=23 bt=4", "--threads", 1]),
    ("gray_scott", 7, ["--plan", "stream by=23 bt=1", "--commit-every", 0], ["--backend", "mmap", *PLANS["redundant"]]),
    ("lattice_boltzmann", 5, [*PLANS["redundant"][:2], "--block", 9, 9, 1, "--commit-every", 0], ["--backend", "mmap", "--plan", "stream by=23 bt=2"]),
    ("diffusion", 7, ["--plan", "stream by=23 bt=2", "--commit-every", 0], ["--backend", "mmap", *PLANS["strips"]]),
])
def test_a_store_goes_on_with_another_plan(memext, system, place, tmp_path, name, nt, before, after):
    """After a device that died: other backend, plan, threads, Buffers; the bits of a run that was never stopped, and the bytes predicted."""
    s = system(name)
    step = interrupted(memext, s, place, nt, *before)
    assert 0 < step < nt
    shown = stored(memext, place)
    assert shown["problem"]["kernel"]["name"] == s.name.replace("_", "-") and shown["complete"] is False
    done = memext.run("--resume", "-d", place, *after, *s.outputs(tmp_path), "--verify")
    s.check(tmp_path, nt)
    assert done["resumed_from"] == step and done["steps_done"] == nt and done["verified"] is True
    if done["backend"] != "mmap":
        assert (done["read_bytes"], done["write_bytes"]) == (done["predicted_read_bytes"], done["predicted_write_bytes"])
    assert done["checksum"] == memext.run(*s.words(nt), "--backend", "dram")["checksum"]


@pytest.mark.parametrize("name", ["wave", "fdtd"])
def test_after_kill(memext, system, place, tmp_path, name):
    s, nt = system(name), 1001
    step = killed(memext, s, place, nt, "--plan", "stream by=35 bt=2" if name == "wave" else "stream by=23 bt=2", "--commit-every", 0)
    done = memext.run("--resume", "-d", place, "--backend", "uring", *s.outputs(tmp_path))
    whole = memext.run(*s.words(nt), *[w.replace(".out.npy", ".whole.npy") if isinstance(w, str) else w for w in s.outputs(tmp_path)], "--backend", "dram")
    assert done["resumed_from"] >= step and done["checksum"] == whole["checksum"]
    for field in s.state:
        assert (tmp_path / f"{field}.out.npy").read_bytes() == (tmp_path / f"{field}.whole.npy").read_bytes()


def test_a_kept_store_gives_its_fields_again(memext, system, place, tmp_path):
    for name, nt in (("wave", 5), ("fdtd", 3), ("diffusion", 3)):
        s = system(name)
        memext.run(*s.words(nt), "-d", place, "--keep", "--force")
        done = memext.run("--resume", "-d", place, *s.outputs(tmp_path), "--overwrite", "--verify")
        s.check(tmp_path, nt)
        assert done["verified"] is True and done["resumed_from"] == nt


def test_refusals_of_new_runs(memext, system, place, tmp_path):
    """Status 2, a sentence that names what is wrong, and no file made or changed."""
    s, lb = system("wave"), system("lattice_boltzmann")
    kernel = tmp_path / "wave.c"
    kernel.write_bytes((SYSTEMS / "wave.c").read_bytes())
    np.save(tmp_path / "wide.npy", s.state["p"].astype("f8"))
    np.save(tmp_path / "small.npy", s.state["p"][1:])
    (tmp_path / "raw").write_bytes(s.fixed["v"].tobytes() + b"more")
    os.mkfifo(tmp_path / "pipe")
    for f in ("p", "v", "damping"):
        (tmp_path / f"{f}.npy").write_bytes(s.path(f).read_bytes())
    before = untouched(p for p in tmp_path.iterdir() if p.is_file())
    run = ["run", "-t", 2, "-d", place]
    fields = ["--field", "v=v.npy", "--field", "damping=damping.npy"]
    good = [*run, "--kernel", "wave.c", "--input", "p=p.npy", *fields]
    cases = [
        ([*run, "--kernel", "wave.c", *fields, "-n", 5, 5, 5], ["field p has no initial values", "--input p="]),
        ([*run, "--kernel", "wave.c", "--input", "p=p.npy", "--field", "v=v.npy"], ["field damping has no values"]),
        ([*good, "--input", "q=p.npy"], ["the kernel has no field q", "p, p.old"]),
        ([*good, "--input", "v=p.npy"], ["only read", "--field"]),
        ([*good, "--field", "p=p.npy"], ["--input p="]),
        ([*good, "--input", "p.npy"], ["p gets values from two options"]),
        ([*good, "--init", "p=zero"], ["p gets values from two options"]),
        ([*good, "--init", "nothing"], ["'nothing' is not known"]),
        ([*good, "--output", "v=out.npy"], ["v", "no result"]),
        ([*good, "--output", "q=out.npy"], ["the kernel has no field q"]),
        ([*good, "--output", "p="], ["nothing after"]),
        ([*good, "-o", "a.npy", "-o", "p=b.npy"], ["twice for field p"]),
        ([*good, "-o", "p=a.npy", "-o", "p.old=a.npy"], ["the same file"]),
        ([*good, "-o", "p=p.npy", "--overwrite"], ["--input", "never written"]),
        ([*good, "-o", "p=v.npy", "--overwrite"], ["--field", "never written"]),
        ([*good, "-o", "wave.c", "--overwrite"], ["--kernel", "never written"]),
        ([*good, "-o", "p=p.npy"], ["never written"]),
        ([*good, "-o", "p=wide.npy"], ["there already", "--overwrite"]),
        *(([*good, option, file], [option, "never written"]) for option in ("--json", "--timeline", "--trace") for file in ("p.npy", "v.npy", "wave.c")),
        ([*run[:-1], "p.npy", *good[5:], "--backend", "mmap", "--force"], ["p.npy"]),
        ([*good, "--param", "speed=1"], ["no parameter 'speed'"]),
        ([*good, "--param", "dt=nan"], ["finite"]),
        ([*good, "--stencil", "star7"], ["exclude"]),
        ([*good, "--dtype", "f32"], ["exclude"]),
        ([*good, "-n", 5, 5, 5], ["shape"]),
        ([*good[:-2], "--field", "damping=raw,f32"], ["frame=yes or ,frame=no"]),
        ([*good[:-2], "--field", "damping=raw,f16"], ["f64, f32, u8"]),
        ([*good[:-2], "--field", "damping=raw,f32,offset=-1"], ["offset=BYTES"]),
        ([*good[:-2], "--field", "damping=pipe,f32"], ["not a regular file"]),
        ([*good[:-2], "--field", "damping=pipe"], [".npy"]),
        ([*good[:-2], "--field", "damping=wide.npy"], ["type f64", "damping", "f32"]),
        ([*good[:-2], "--field", "damping=small.npy"], ["shape"]),
        ([*run, "--kernel", "wave.c", "--input", "p=wide.npy", *fields], ["type f64", "p", "f32"]),
        ([*run, "--kernel", "wave.c", "--input", "p=small.npy", *fields], ["shape"]),
        ([*run, "--kernel", "none.c", "--input", "p=p.npy", *fields], ["none.c"]),
        ([*run, "-n", 5, 5, 5, "--param", "dt=1"], ["--kernel"]),
        ([*run, "-n", 5, 5, 5, "--field", "v=v.npy"], ["--kernel"]),
        ([*run, "-n", 5, 5, 5, "--in-place"], ["--kernel"]),
        ([*run, "--kernel", SYSTEMS / "gray_scott.c", "-n", 5, 5, 5, "--init", "random", "--in-place"], ["MX_JACOBI"]),
        ([*run, "--kernel", SYSTEMS / "lattice_boltzmann.c", "--init", "random", "--field", f"wall={lb.path('wall')}", "-o", "x.npy", "-n", *lb.n],
         ["does not say which field", "f0, f1"]),
    ]
    for words, naming in cases:
        memext.refused(*words, naming=naming, cwd=tmp_path)
        assert untouched(p for p in tmp_path.iterdir() if p.is_file()) == before and list(place.iterdir()) == [], words


def test_paths_that_no_store_can_hold(memext, system, place, tmp_path):
    """19 fields from a deep directory are refused before anything is computed, and go without a store."""
    s = system("lattice_boltzmann")
    deep = tmp_path.joinpath(*("d" * 200 for _ in range(4)))
    deep.mkdir(parents=True)
    words = s.words(1)
    for field in s.state:
        os.link(s.path(field), deep / f"{field}.npy")
        words[words.index(f"{field}={s.path(field)}")] = f"{field}={deep}/{field}.npy"
    memext.refused("run", *words, "-d", place, naming="shorter paths")
    assert list(place.iterdir()) == []
    memext.run(*words, *s.outputs(tmp_path), "--backend", "dram")
    s.check(tmp_path, 1)


def test_one_pair_is_verified_in_one_pass_or_not_at_all(memext, place):
    """Several passes go through Buffers that --in-place has not."""
    words = ["--kernel", SYSTEMS / "fdtd.c", "-n", 150, 150, 9, "-t", 40, "--init", "gauss", "--init", "eps=linear", "--verify", "-d", place, "--in-place"]
    memext.refused("run", *words, "--dram", "80MiB", "--algorithm", "stream", naming=["one pass", "raise --dram"])
    assert memext.run(*words, "--dram", "300MiB", "--algorithm", "stream", "--force")["verified"] is True


def test_refusals_of_resuming(memext, system, place, tmp_path):
    s = system("wave")
    kernel = tmp_path / "wave.c"
    kernel.write_bytes((SYSTEMS / "wave.c").read_bytes())
    for f in ("p", "p.old", "v", "damping"):
        (tmp_path / f"{f}.npy").write_bytes(s.path(f).read_bytes())
    names = [w for f in s.state for w in ("--input", f"{f}={f}.npy")] + [w for f in s.fixed for w in ("--field", f"{f}={f}.npy")]
    memext.run("--kernel", "wave.c", "-t", 3, *names, "--param", "dt=0.0012", "-d", place, "--keep", cwd=tmp_path)
    files = [*tmp_path.iterdir()]
    before = untouched([*files, place / "memext.store"])
    (tmp_path / "other.c").write_text(kernel.read_text() + "/* other */\n")
    resume = ["run", "--resume", "-d", place]
    for words, naming in [
        (["--kernel", "other.c"], ["is not the kernel", "text has changed"]),
        (["--param", "dt=0.001"], ["dt=0.0012", "leave --param out"]),
        (["--param", "speed=2"], ["no parameter 'speed'"]),
        (["--stencil", "star7"], ["leave --stencil"]),
        (["--init", "zero"], ["leave"]),
        (["--input", "p=p.old.npy"], ["p.old.npy", "leave"]),
        (["--field", "v=damping.npy"], ["damping.npy", "leave --field out"]),
        (["--field-copy"], ["exclude"]),
        (["-t", 2], ["holds step 3", "a run cannot go back"]),
        (["--in-place"], ["in-place"]),
        (["-o", "p=p.npy", "--overwrite"], ["never written"]),
        (["-o", "damping.npy", "--overwrite"], ["never written"]),
        (["-o", "wave.c", "--overwrite"], ["never written"]),
        (["--json", "v.npy"], ["never written"]),
        (["-o", "v=out.npy"], ["no result"]),
        (["-o", "w=out.npy"], ["the kernel has no field w"]),
    ]:
        memext.refused(*resume, *words, naming=naming, cwd=tmp_path)
        assert untouched(before) == before, words
    kernel.write_text(kernel.read_text() + "\n")
    memext.refused(*resume, naming=["text has changed", "--kernel"], cwd=tmp_path)
    kernel.unlink()
    memext.refused(*resume, naming=["wave.c"], cwd=tmp_path)
    (tmp_path / "moved.c").write_bytes((SYSTEMS / "wave.c").read_bytes())
    (tmp_path / "p.npy").write_bytes(b"changed")
    memext.refused(*resume, "--kernel", "moved.c", "--verify", naming=["p.npy"], cwd=tmp_path)
    done = memext.run("--resume", "-d", place, "--kernel", tmp_path / "moved.c", "--param", "dt=0.0012", *s.outputs(tmp_path))
    s.check(tmp_path, 3)
    assert done["resumed_from"] == 3


@pytest.mark.parametrize("name, words", [("wave", ["--backend", "mmap"]), ("fdtd", ["--backend", "uring", "--in-place"]), ("fdtd", ["--backend", "mmap"])])
def test_more_steps_of_a_run_that_was_done_in_place(memext, system, place, tmp_path, name, words):
    """Its store has one pair of Buffers (mmap: by the algorithm that is chosen); the run that goes on needs a second, also where a plan was given,
    and so can be resumed itself."""
    s = system(name)
    for plan in [[], ["--plan", "stream bt=2 slab=3"] if "--in-place" in words else []]:
        memext.run(*s.words(2), "-d", place, "--keep", *words, *plan, "--force")
        done = memext.run("--resume", "-d", place, "-t", 4, *s.outputs(tmp_path), "--overwrite", "--keep")
        s.check(tmp_path, 4)
        assert done["commits"]["possible"] and done["commits"]["buffers"] == 4
    kept = [path.read_bytes() for path in sorted(place.iterdir())]
    for words in (["--in-place"], ["--plan", "stream bt=2 slab=3 in-place"]):
        memext.refused("run", "--resume", "-d", place, "-t", 6, *words, naming=["leave --in-place out"])
    assert [path.read_bytes() for path in sorted(place.iterdir())] == kept
