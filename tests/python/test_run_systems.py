# SPDX-License-Identifier: BSD-3-Clause
"""memext run with kernels: every system by the command, bit by bit what its reference in numpy gives; stores, resuming, refusals."""
import json
import os
import signal
import subprocess

import numpy as np
import pytest
from conftest import wait_until
from test_systems import CASES, SYSTEMS, reference

N = {"wave": (21, 35, 34)}  # interior x, y, z
FRAME = {"wave": 4}
STATE = {"diffusion": ["u"], "wave": ["p", "p.old"], "fdtd": ["ex", "ey", "ez", "hx", "hy", "hz"], "gray_scott": ["u", "v"],
         "lattice_boltzmann": [f"f{i}" for i in range(19)]}
FIXED = {"diffusion": {"k": "f4"}, "wave": {"v": "f4", "damping": "f4"}, "fdtd": {"eps": "f4"}, "gray_scott": {}, "lattice_boltzmann": {"wall": "u1"}}
TYPE = {"diffusion": "f8", "gray_scott": "f8"}
PLANS = {
    "stream": ["--algorithm", "stream", "--block", 200, 200, 4],
    "strips": ["--plan", "stream by=9 bt=2 slab=2"],
    "redundant": ["--algorithm", "redundant", "--block", 7, 8, 2],
    "skewed": ["--algorithm", "skewed", "--block", 17, 16, 2],
    "direct": ["--algorithm", "direct", "--block", 6, 5, 1],
}
RUNS = [("uring", "stream", 5), ("uring", "redundant", 4), ("aio", "strips", 3), ("mmap", "stream", 4), ("mmap", "redundant", 5), ("mmap", "skewed", 5),
        ("mmap", "direct", 4), ("dram", "skewed", 4), ("dram", "direct", 5), ("dram", "stream", 0)]


class System:
    """Fields of a system in files, the words that name them, and what the reference makes of them."""

    def __init__(self, name, folder):
        self.name, self.folder, self.h = name, folder, FRAME.get(name, 1)
        self.n = N.get(name, (19, 23, 21))
        ranges, params = CASES[name]
        self.params = dict(params)
        rng = np.random.default_rng(7)
        shape = tuple(n + 2 * self.h for n in reversed(self.n))
        self.state, self.fixed, self.known = {}, {}, {}
        for field, dtype in [*((f, TYPE.get(name, "f4")) for f in STATE[name]), *FIXED[name].items()]:
            low, high = ranges.get(field, (0, 1))
            (self.fixed if field in FIXED[name] else self.state)[field] = (low + (high - low) * rng.random(shape)).astype(dtype)
        for field, values in {**self.state, **self.fixed}.items():
            np.save(self.path(field), values)

    def path(self, field):
        return self.folder / f"{self.name}-{field}.npy"

    def words(self, nt, plain=False):
        """Of a new run."""
        words = ["--kernel", SYSTEMS / f"{self.name}.c", "-t", nt]
        for key, value in self.params.items():
            words += ["--param", f"{key}={value}"]
        for field in self.state:
            words += ["--input", self.path(field) if plain else f"{field}={self.path(field)}"]
        for field in self.fixed:
            words += ["--field", f"{field}={self.path(field)}"]
        return words

    def outputs(self, folder):
        return [word for f in self.state for word in ("--output", f"{f}={folder / f'{f}.out.npy'}")]

    def wanted(self, nt):
        if nt not in self.known:
            given = {f.replace(".", "_"): v for f, v in {**self.state, **self.fixed}.items()}
            self.known[nt] = {f.replace("_old", ".old"): v for f, v in reference(self.name).run(nt, **given, **self.params).items()}
        return self.known[nt]

    def check(self, folder, nt, fields=None):
        for field in fields or self.state:
            got, wanted = np.load(folder / f"{field}.out.npy"), self.wanted(nt)[field]
            assert got.dtype == wanted.dtype and got.shape == wanted.shape and got.tobytes() == wanted.tobytes(), (self.name, field, nt)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Every kernel is compiled once."""
    before, os.environ["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME"), str(tmp_path_factory.mktemp("cache", numbered=True))
    yield
    del os.environ["XDG_CACHE_HOME"]
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("fields"), {}
    
    def system(name):
        if name not in made:
            made[name] = System(name, folder)
        return made[name]

    return system


@pytest.fixture
def place(quick_place):
    return quick_place


def where(backend, place):
    return ["--backend", backend, *([] if backend == "dram" else ["-d", place])]


# ------------------------------------------------------------------ results

@pytest.mark.parametrize("name", CASES)
def test_every_backend_and_algorithm_gives_the_bits_of_the_reference(memext, system, place, tmp_path, name):
    """All fields, frames included; the checksum tells a state of nt steps alone; bytes moved are those predicted."""
    s, checksums = system(name), {}
    for backend, plan, nt in RUNS:
        done = memext.run(*s.words(nt), *s.outputs(tmp_path), "--overwrite", *where(backend, place), *PLANS[plan], "--threads", 2)
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
    two = memext.run(*s.words(5), *where(backend, place), *PLANS[plan])
    one = memext.run(*s.words(5), *s.outputs(tmp_path), "--in-place", *where(backend, place), *PLANS[plan], *(["--keep"] if backend != "dram" else []))
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
        done = memext.run(*s.words(nt), *s.outputs(tmp_path), "--overwrite", "-d", place, *PLANS[plan], "--verify", "--integrity")
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


# ------------------------------------------------------------------ stores

def stored(memext, place):
    done = memext("info", place, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["store"]


def killed(memext, s, place, nt, *words):
    """A run with a commit after every sweep, killed once step `at` or a later one is committed: which one it was."""
    process = subprocess.Popen([str(w) for w in (memext.program, "run", *s.words(nt), "-d", place, "--quiet", "--backend", "mmap", *words)],
                               stderr=subprocess.PIPE)

    def committed():
        return (place / "memext.store").exists() and memext("info", place, "--json", "-").returncode == 0 and stored(memext, place)["step"] > 0

    assert wait_until(committed, "a commit", process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=600)
    return stored(memext, place)["step"]


def interrupted(memext, s, place, nt, *words):
    """A run whose device dies between two commits, after as many requests as that takes: the step that its store holds. Sweeps as short as these may all be
    under way before the first commit has ended, so that a run which dies among the last requests holds none, more often than not: it is tried again."""
    none, all_of_them, n = 4, None, 24
    for again in range(1000):
        done = memext("run", *s.words(nt), "-d", place, "--backend", "fault:uring", "--fault", f"fail_after={n}", "--quiet", "--force", "--no-fuse",
                      *words)
        assert done.returncode in (0, 3), done.stderr
        step = stored(memext, place)["step"] if (place / "memext.store").exists() else 0
        if done.returncode == 3 and 0 < step < nt:
            return step
        if all_of_them is None or none + 1 < all_of_them:
            none, all_of_them = (none, n) if done.returncode == 0 or step == nt else (n, all_of_them)
        n = 2 * n if all_of_them is None else (none + all_of_them) // 2 if none + 1 < all_of_them else all_of_them - 1 - again % 8
    pytest.fail("a run ends before its first commit, or has none")


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


# ------------------------------------------------------------------ refusals

def untouched(paths):
    return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in paths}


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
        ([*good, "--input", "q=p.npy"], ["names no field", "p, p.old"]),
        ([*good, "--input", "v=p.npy"], ["only read", "--field"]),
        ([*good, "--field", "p=p.npy"], ["--input p="]),
        ([*good, "--input", "p.npy"], ["p is given initial values twice"]),
        ([*good, "--init", "p=zero"], ["p is given initial values twice"]),
        ([*good, "--init", "nothing"], ["'nothing' is not known"]),
        ([*good, "--output", "v=out.npy"], ["v", "no result"]),
        ([*good, "--output", "q=out.npy"], ["names no field"]),
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
        ([*good[:-2], "--field", "damping=pipe,f32"], ["no regular file"]),
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
         ["names no field", "f0, f1"]),
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
    memext.refused("run", *words, "--dram", "80MiB", "--algorithm", "stream", naming=["one pair", "raise --dram"])
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
        (["-t", 2], ["holds step 3", "nothing goes back"]),
        (["--in-place"], ["in-place"]),
        (["-o", "p=p.npy", "--overwrite"], ["never written"]),
        (["-o", "damping.npy", "--overwrite"], ["never written"]),
        (["-o", "wave.c", "--overwrite"], ["never written"]),
        (["--json", "v.npy"], ["never written"]),
        (["-o", "v=out.npy"], ["no result"]),
        (["-o", "w=out.npy"], ["names no field"]),
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
    memext.refused("run", "--resume", "-d", place, "-t", 6, "--in-place", naming=["leave it out"])


# ------------------------------------------------------------------ export, info, tune

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
    for words, naming in [(["-o", f"{first}={place}/memext.store", "--overwrite"], ["place of the Buffers"]), (["-o", "no=x.npy"], ["names no field"]),
                          (["-o", f"{first}=a.npy", "-o", f"{first}=b.npy"], ["twice"]), (["-o", f"{first}={tmp_path}/{first}.out.npy"], ["there already"]),
                          *([([ "-o", "k=a.npy"], ["no result"])] if name == "diffusion" else []),
                          *([(["-o", "a.npy"], ["names no field", first])] if name in ("fdtd", "gray_scott") else [])]:
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
                          (["-n", 5, 5, 5, "--param", "c=1"], ["no parameter 'c'"]), (["-n", 5, 5, 5, "--stencil", "star7"], ["exclude"]), ([], ["no grid"])]:
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
