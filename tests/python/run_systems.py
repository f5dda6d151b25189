# SPDX-License-Identifier: BSD-3-Clause
"""Systems of several fields as the command is given them, with their references, and what their tests share."""
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
         "elastic": ["vx", "vy", "vz", "sxx", "syy", "szz", "sxy", "sxz", "syz"],
         "lattice_boltzmann": [f"f{i}" for i in range(19)], "forced_wave": ["u", "u.old"], "rk4_advection": ["u", "v", "s"], "life": ["u"], "ising": ["s"], "pml": "exy exz eyz eyx ezx ezy hxy hxz hyz hyx hzx hzy".split()}
FIXED = {"diffusion": {"k": "f4"}, "wave": {"v": "f4", "damping": "f4"}, "fdtd": {"eps": "f4"}, "elastic": {"lam": "f4", "mu": "f4"}, "gray_scott": {}, "lattice_boltzmann": {"wall": "u1"}, "forced_wave": {}, "rk4_advection": {}, "life": {}, "ising": {},
         "pml": {f"{what}{axis}": "f4" for what in "abpq" for axis in "xyz"}}
PROFILES = {"pml": lambda field, shape: tuple(n if axis == field[1] else 1 for axis, n in zip("zyx", shape))}  # extents of those read-only fields
TYPE = {"diffusion": "f8", "gray_scott": "f8", "forced_wave": "f8", "rk4_advection": "f8", "life": "u1", "ising": "i1"}
STAGES = {"rk4_advection": 4, "ising": 2}
PLANS = {
    "stream": ["--algorithm", "stream", "--block", 200, 200, 4],
    "strips": ["--plan", "stream by=9 bt=2 slab=2"],
    "redundant": ["--algorithm", "redundant", "--block", 7, 8, 2],
    "skewed": ["--algorithm", "skewed", "--block", 17, 16, 2],
    "direct": ["--algorithm", "direct", "--block", 6, 5, 1],
}


def plan_of(name, plan):
    """bt counts levels: a step of several stages has as many."""
    *words, last = PLANS[plan]
    stages = STAGES.get(name, 1)
    return [*words, last * stages if isinstance(last, int) else last.replace("bt=2", f"bt={max(2, stages)}")]


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
            extents = PROFILES[name](field, shape) if name in PROFILES and field in FIXED[name] else shape
            (self.fixed if field in FIXED[name] else self.state)[field] = (low + (high - low) * rng.random(extents)).astype(dtype)
        for field, values in {**self.state, **self.fixed, **{k: v for k, v in params.items() if np.ndim(v)}}.items():
            np.save(self.path(field), values)

    def path(self, field):
        return self.folder / f"{self.name}-{field}.npy"

    def words(self, nt, plain=False):
        """Of a new run."""
        words = ["--kernel", SYSTEMS / f"{self.name}.c", "-t", nt]
        for key, value in self.params.items():
            words += ["--param", f"{key}={self.path(key) if np.ndim(value) else value}"]
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


def untouched(paths):
    return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in paths}
