# SPDX-License-Identifier: BSD-3-Clause
"""Systems of several fields: every backend and algorithm has the bits of the reference; export, info, tune."""
import json

import numpy as np
import pytest
from run_systems import RUNS, STATE, interrupted, place, plan_of, stored, system, untouched, where  # noqa: F401 (fixtures)
from test_systems import CASES, SYSTEMS, reference


@pytest.mark.parametrize("name", CASES)
def test_every_backend_and_algorithm_gives_the_bits_of_the_reference(memext, system, place, tmp_path, name):
    """All fields, frames included; the checksum tells a state of nt steps alone; bytes moved are those predicted."""
    s, checksums = system(name), {}
    for backend, plan, nt in RUNS:
        done = memext.run(*s.words(nt), *s.outputs(tmp_path), "--overwrite", *where(backend, place), *plan_of(name, plan), "--threads", 2)
        s.check(tmp_path, nt)
        assert done["plan"]["algorithm"] == {"strips": "stream"}.get(plan, plan), (backend, plan)
        assert checksums.setdefault(nt, done["checksum"]) == done["checksum"], (backend, plan, nt)
        if backend in ("uring", "aio"):
            assert (done["read_bytes"], done["write_bytes"]) == (done["predicted_read_bytes"], done["predicted_write_bytes"]), (backend, plan)
        cells = s.n[0] * s.n[1] * s.n[2]
        assert done["updates"] == done["predicted_updates"] >= cells * nt
    assert len(set(checksums.values())) == len(checksums)


@pytest.mark.parametrize("name", ["wave", "fdtd"])
@pytest.mark.parametrize("backend, plan", [("uring", "stream"), ("mmap", "skewed"), ("dram", "direct")])
def test_one_pair_of_buffers(memext, system, place, tmp_path, name, backend, plan):
    s = system(name)
    two = memext.run(*s.words(5), *where(backend, place), *plan_of(name, plan))
    one = memext.run(*s.words(5), *s.outputs(tmp_path), "--in-place", *where(backend, place), *plan_of(name, plan), *(["--keep"] if backend != "dram" else []))
    s.check(tmp_path, 5)
    assert one["checksum"] == two["checksum"] and one["commits"]["buffers"] == 2
    if backend != "dram":
        again = memext.run("--resume", "-d", place, *s.outputs(tmp_path), "--overwrite")
        s.check(tmp_path, 5)
        assert again["checksum"] == one["checksum"]


@pytest.mark.parametrize("name", CASES)
def test_verify_and_integrity(memext, system, place, tmp_path, name):
    s = system(name)
    for nt, plan in (3, "redundant"), (4, "stream"):
        done = memext.run(*s.words(nt), *s.outputs(tmp_path), "--overwrite", "-d", place, *plan_of(name, plan), "--verify", "--integrity")
        assert done["verified"] is True
        s.check(tmp_path, nt)


def test_values_of_fields(memext, system, place, tmp_path):
    """Files of C: with a frame, without one where C is read at the cell alone, raw with a head; named starts; p.old is p by itself."""
    wave, lb, diffusion = system("wave"), system("lattice_boltzmann"), system("diffusion")
    inner = (slice(4, -4),) * 3
    np.save(tmp_path / "bare.npy", wave.fixed["v"][inner])
    (tmp_path / "damping.raw").write_bytes(b"head!" + wave.fixed["damping"][inner].tobytes() + b"tail")
    (tmp_path / "framed.raw").write_bytes(b"x" * 24 + wave.fixed["damping"].tobytes())
    words = ["--kernel", SYSTEMS / "wave.c", "-t", 3, "--input", wave.path("p"), "--param", "dt=0.0012", "-n", *wave.n]
    wanted = reference("wave").run(3, wave.state["p"], wave.state["p"], wave.fixed["v"], wave.fixed["damping"], dt=0.0012)
    for damping, backend in (("damping.raw,f32,offset=5", "uring"), ("framed.raw,f32,offset=24", "mmap")):
        done = memext.run(*words, "--field", f"v={tmp_path}/bare.npy", "--field", f"damping={tmp_path}/{damping}", "-d", place,
                          "--backend", backend, "-o", tmp_path / "p.npy", "-o", f"p.old={tmp_path}/old.npy", "--overwrite", "--verify")
        assert done["verified"] and np.load(tmp_path / "p.npy").tobytes() == wanted["p"].tobytes()
        assert np.load(tmp_path / "old.npy").tobytes() == wanted["p_old"].tobytes()
    (tmp_path / "wall.raw").write_bytes(lb.fixed["wall"].tobytes())
    fluid = [word for f in lb.state for word in ("--input", f"{f}={lb.path(f)}")]
    done = memext.run("--kernel", SYSTEMS / "lattice_boltzmann.c", "-t", 2, "-n", *lb.n, *fluid, "--field", f"wall={tmp_path}/wall.raw,u8", "-d", place,
                      "--param", "omega=1.5", "--param", "push=1e-3", *lb.outputs(tmp_path))
    lb.check(tmp_path, 2)
    done = memext.run("--kernel", SYSTEMS / "diffusion.c", "-t", 2, "-n", *diffusion.n, "--init", "zero", "--field", f"k={diffusion.path('k')}",
                      "-d", place, "-o", tmp_path / "u.npy")
    assert not np.load(tmp_path / "u.npy").any() and done["problem"]["kernel"]["params"] == {"dt": 0.1}


def test_report(memext, system, place):
    s = system("fdtd")
    done = memext.run(*s.words(1), "-d", place)
    kernel = done["problem"]["kernel"]
    assert done["problem"]["stencil"] is None and len(kernel["identity"]) == 16
    assert {k: kernel[k] for k in ("name", "form", "params")} == {"name": "fdtd", "form": "staggered", "params": {"courant": 0.4}}
    assert [len(kernel[k]) for k in ("state", "partner", "fixed")] == [3, 3, 1]
    planned = memext("run", *s.words(1), "-d", place, "--dry-run")
    assert planned.returncode == 0 and "fdtd" in planned.stdout.splitlines()[0], planned.stdout + planned.stderr
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("name, nt", [("wave", 5), ("wave", 4), ("fdtd", 3), ("gray_scott", 3), ("diffusion", 4)])
def test_fields_are_exported_by_name(memext, system, place, tmp_path, name, nt):
    """From kept stores of any backend, and from a pair of Buffers in place; one field alone needs no name, and is the newest."""
    s, first = system(name), next(iter(STATE[name]))
    stores = [["--backend", "uring"], ["--backend", "mmap", "--integrity", "--algorithm", "redundant"]]
    stores += [["--in-place", "--algorithm", "stream"]] if name in ("wave", "fdtd") else []
    for words in stores:
        memext.run(*s.words(nt), "-d", place, "--keep", "--force", *words)
        done = memext("export", place, *s.outputs(tmp_path), "--overwrite", "--json", "-")
        assert done.returncode == 0, done.stderr
        s.check(tmp_path, nt)
        assert json.loads(done.stdout)["outputs"] == {f: str(tmp_path / f"{f}.out.npy") for f in s.state}
        assert memext("export", place, "-o", f"{first}={tmp_path}/{first}.out.npy", "--overwrite").returncode == 0
        s.check(tmp_path, nt, [first])
        if len([f for f in s.state if "." not in f]) == 1:
            (tmp_path / f"{first}.out.npy").unlink()
            assert memext("export", place, "-o", tmp_path / f"{first}.out.npy").returncode == 0
            s.check(tmp_path, nt, [first])
    before = untouched([tmp_path / f"{first}.out.npy", place / "memext.store"])
    for words, naming in [(["-o", f"{first}={place}/memext.store", "--overwrite"], ["place of the Buffers"]), (["-o", "no=x.npy"], ["the kernel has no field no"]),
                          (["-o", f"{first}=a.npy", "-o", f"{first}=b.npy"], ["twice"]), (["-o", f"{first}={tmp_path}/{first}.out.npy"], ["there already"]),
                          *([([ "-o", "k=a.npy"], ["no result"])] if name == "diffusion" else []),
                          *([(["-o", "a.npy"], ["does not say which field", first])] if name in ("fdtd", "gray_scott") else [])]:
        memext.refused("export", place, *words, naming=naming, cwd=tmp_path)
        assert untouched(before) == before and not [*tmp_path.glob("[abx].npy")]


def test_an_interrupted_state_is_exported(memext, system, place, tmp_path):
    """Of an odd number of steps: p is in the other array then."""
    s = system("wave")
    step = interrupted(memext, s, place, 9, "--plan", "stream by=35 bt=3", "--commit-every", 0)
    assert step in (3, 6)
    done = memext("export", place, *s.outputs(tmp_path))
    assert done.returncode == 0 and "(incomplete)" in done.stdout and "p.old" in done.stdout, (done.stdout, done.stderr)
    s.check(tmp_path, step)


def test_info_of_a_store(memext, system, place):
    s = system("wave")
    memext.run("--kernel", SYSTEMS / "wave.c", "-t", 2, "--input", f"p={s.path('p')}", "--init", "damping=zero", "--field", f"v={s.path('v')}",
               "--param", "dt=0.002", "-d", place, "--keep")
    done = memext("info", place)
    assert done.returncode == 0 and done.stderr == ""
    for text in ("kernel     wave of /", "dt=0.002 dx=10", f"p f32 from the file {s.path('p')}", "p.old f32 from the values of p", "damping f32 from init zero",
                 "step       2 of 2 (complete)", "-o p=p.npy"):
        assert text in done.stdout, done.stdout
    store = stored(memext, place)
    assert store["problem"]["kernel"]["params"] == {"dt": 0.002, "dx": 10.0} and store["kernel_file"] == str(SYSTEMS / "wave.c")
    assert store["fields"] == {"p": str(s.path("p")), "p.old": None, "v": str(s.path("v")), "damping": "zero"}
    assert "init" not in store and [e["name"] for e in store["extents"]][:2] == ["source", "source-b"]


def test_tune(memext, system, place, tmp_path):
    """The plan of tune is the plan of run, here and on a machine that is only described; fields need no values."""
    for name in CASES:
        s = system(name)
        kernel = SYSTEMS / f"{name}.c"
        done = memext("tune", "--kernel", kernel, "-n", *s.n, "-t", 6, "-d", place, "--threads", 2, "--explain")
        assert done.returncode == 0 and name.replace("_", "-") in done.stdout, (done.stdout, done.stderr)
        plan = done.stdout.splitlines()[-1]
        ran = memext.run(*s.words(6), "--field-copy", *s.outputs(tmp_path), "--overwrite", "-d", place, "--threads", 2, "--plan", plan, "--no-fuse")
        s.check(tmp_path, 6)
        report = json.loads(memext("tune", "--kernel", kernel, "-n", *s.n, "-t", 6, "-d", place, "--threads", 2, "--json", "-").stdout)
        assert report["plan_line"] == plan and report["problem"]["kernel"] == ran["problem"]["kernel"] | {"params": report["problem"]["kernel"]["params"]}
        assert (report["predicted_read_bytes"], report["predicted_write_bytes"]) == (ran["read_bytes"], ran["write_bytes"])
        done = memext("tune", "--kernel", kernel, "-n", 900, 800, 700, "-t", 50, "--cores", 64, "--sockets", 2, "--dram", "16GiB", "--l2", "1MiB", "--l3", "32MiB")
        assert done.returncode == 0 and "threads=64" in done.stdout, (done.stdout, done.stderr)
    s = system("wave")
    by_file = memext("tune", "--kernel", SYSTEMS / "wave.c", "-t", 6, "--input", s.path("p"), "--param", "dt=0.002", "--in-place", "--json", "-")
    report = json.loads(by_file.stdout)
    assert (report["problem"]["nx"], report["problem"]["kernel"]["params"]["dt"]) == (s.n[0], 0.002) and "in-place" in report["plan_line"]
    (tmp_path / "p.npy").write_bytes(s.path("p").read_bytes())
    for words, naming in [(["-n", 5, 5, 5, "--input", "p.npy"], ["shape"]), (["--input", "p.npy", "--json", "p.npy"], ["never written"]),
                          (["-n", 5, 5, 5, "--param", "c=1"], ["no parameter 'c'"]), (["-n", 5, 5, 5, "--stencil", "star7"], ["exclude"]), ([], ["size of the grid is missing"])]:
        memext.refused("tune", "--kernel", SYSTEMS / "wave.c", "-t", 6, *words, naming=naming, cwd=tmp_path)
    assert (tmp_path / "p.npy").read_bytes() == s.path("p").read_bytes()


def test_names_of_files_may_look_like_fields(memext, tmp_path):
    """A file whose name has a dot and '=' is one file as --input and as --output of the only field: refused, and the file stays."""
    grid = tmp_path / "d.x=in.npy"
    np.save(grid, np.random.default_rng(1).random((10, 10, 10)))
    before = grid.read_bytes()
    memext.refused("run", "--kernel", SYSTEMS / "diffusion.c", "--init", "k=linear", "--input", f"u={grid}", "--output", grid.name, "--overwrite",
                   "-t", 3, "--backend", "dram", "--quiet", naming=["never written"], cwd=tmp_path)
    assert grid.read_bytes() == before
