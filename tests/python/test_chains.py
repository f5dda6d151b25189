# SPDX-License-Identifier: BSD-3-Clause
"""Chains of resumes, drawn at random: other plans, numbers of Buffers, ranks, backends, --integrity, fusing, more steps, devices that die.
Wherever a chain stands still its state is that of the plain program, and every phase moved the bytes that were predicted.

    python3 tests/python/test_chains.py DIRECTORY FIRST LAST     the chains with these seeds, one after another
"""
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

import numpy
import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from conftest import ROOT, Command

PHASES = ["init", "stencil", "checksum", "output"]
BATCH = 6  # chains of one test


SYSTEMS = {  # name: radius, fields that are only read with their type and the range of their values
    "diffusion": (1, {"k": ("f4", 0.2, 1)}),
    "fdtd": (1, {"eps": ("f4", 1, 4)}),
    "gray_scott": (1, {}),
    "ising": (1, {}),
    "lattice_boltzmann": (1, {"wall": ("u1", 0, 2)}),
    "wave": (4, {"v": ("f4", 1000, 4000), "damping": ("f4", 0, 0.1)}),
}
STENCILS = {"star7": 1, "edge19": 1, "box27": 1, "star13": 2, "star19": 3}
DTYPES = {"f64": "f8", "f32": "f4"}


class Problem:
    """What a chain computes, and what the plain program makes of it."""

    def __init__(self, pick, memext, place):
        self.pick, self.memext, self.place, self.known = pick, memext, place, {}
        self.n = [pick.randint(4, 70), pick.randint(12, 40), pick.randint(14, 60)]
        self.words = ["-n", *self.n]
        kind = pick.choice(["init", "init", "file", "system"])
        self.system() if kind == "system" else self.built_in(kind)
        sides = {axis: pick.choice(["", "", "", "", "periodic", *([] if kind == "system" else ["mirror", "mirror,fixed", "fixed,mirror", "odd,edge", "mirror-node,odd-node"])])
                 for axis in "xyz"}
        for axis, side in sides.items():
            self.words += ["--side", f"{axis}={side}"] if side else []
        self.whole_planes = sides["y"] != ""
        self.most = pick.randint(4, 24)

    def grid(self, dtype, low=0, high=1):
        cells = [e + 2 * self.h for e in reversed(self.n)]
        return (numpy.random.default_rng(self.n[0] * self.n[1] * self.n[2]).random(cells) * (high - low) + low).astype(dtype)

    def built_in(self, kind):
        stencil, dtype = self.pick.choice(list(STENCILS)), self.pick.choice(list(DTYPES))
        self.h = STENCILS[stencil]
        self.words += ["--stencil", stencil, "--dtype", dtype]
        if kind == "file":
            numpy.save(self.place / "u.npy", self.grid(DTYPES[dtype]))
        self.words += ["--input", self.place / "u.npy"] if kind == "file" else ["--init", self.pick.choice(["random", "gauss", "linear"])]

    def system(self):
        name = self.pick.choice(list(SYSTEMS))
        self.h, fixed = SYSTEMS[name]
        self.words += ["--kernel", ROOT / "systems" / f"{name}.c", "--init", "random"]
        for field, (dtype, low, high) in fixed.items():
            numpy.save(self.place / f"{field}.npy", self.grid(dtype, low, high))
            self.words += ["--field", f"{field}={self.place}/{field}.npy"]
        self.words += ["--field-copy"] if fixed and self.pick.random() < 0.7 else []

    def checksum(self, steps):
        if steps not in self.known:
            self.known[steps] = self.memext.run(*self.words, "-t", steps, "--backend", "dram", "--algorithm", "direct")["checksum"]
        return self.known[steps]


KINDS = ["auto", "redundant", "redundant", "redundant", "stream", "stream", "strips", "side-file", "skewed"]


def a_plan(pick, p, kinds):
    """Words that choose how to compute, any or none."""
    nx, ny, nz = p.n
    bt = pick.randint(1, 4)
    by = ny if p.whole_planes or pick.random() < 0.4 else pick.randint(2 * p.h + 2, ny)
    kind = pick.choice(kinds)
    threads = pick.choice([1, 2])
    engine = pick.choice(["tiled", "iblock"])
    plan = {"auto": None,
            "redundant": f"redundant by={by} bz={pick.randint(2 * p.h + 1, nz)} bt={bt} engine={engine}",
            "stream": f"stream by={ny} bt={bt} engine={engine} slab={pick.randint(1, 4)}",
            "strips": f"stream by={by} bt={bt} engine={engine}",
            "side-file": f"stream by={by} bt={bt} slab={pick.randint(1, 4)} faces=side-file",
            "skewed": f"skewed by={by} bz={pick.randint(2 * p.h + 1, nz)} bt={bt}"}[kind]
    return ["--threads", threads] if plan is None else ["--plan", f"{plan} threads={threads}"]


def means(pick, ranks, intervals):
    """Words that choose by which means, any or none."""
    words = []
    if pick.random() < 0.7:
        words += ["--commit-every", pick.choice(intervals)]
    if pick.random() < 0.4:
        words += ["--no-fuse"]
    if pick.random() < 0.25:
        words += ["--integrity"]
    if ranks > 1:
        words += ["--ranks", ranks]
    return words


def as_predicted(report, told):
    assert report["read_bytes"] == report["predicted_read_bytes"] and report["write_bytes"] == report["predicted_write_bytes"], told
    for name in PHASES:
        phase = report["phases"][name]
        for way in "read_bytes", "write_bytes":
            assert phase[way] == phase[f"predicted_{way}"], (name, way, phase, told)


class Chain:
    def __init__(self, memext, place, seed):
        self.pick = random.Random(seed)
        self.memext, self.place = memext, place / "store"
        self.place.mkdir()
        self.problem = Problem(self.pick, memext, place)
        self.kinds = self.pick.sample(KINDS, 3)  # few, so that one is often followed by the other
        self.steps, self.told, self.checked = 0, [f"seed {seed}"], 0
        self.begun = False

    def run(self, *words):
        done = self.memext("run", "-d", self.place, "--dram", "200MiB", "--quiet", "--json", self.place.parent / "report.json", *words)
        self.told.append(f"{done.returncode}: run {' '.join(map(str, words))}  {done.stderr.strip()[:300]}")
        report = self.place.parent / "report.json"
        return done, json.loads(report.read_text()) if done.returncode == 0 else None

    def link(self, last, plain=False):
        """One run of the chain: whether it stands at the steps that it was asked for. plain: without a plan of its own."""
        pick, p = self.pick, self.problem
        grow = not self.begun or pick.random() < 0.4
        steps = p.most if last else max(self.steps, pick.randint(1, p.most)) if grow else self.steps
        ranks = pick.choice([1] * 6 + [2, 3])
        backend = pick.choice(["uring", "aio", "mmap"])
        words = [*([] if plain else a_plan(pick, p, self.kinds)), *means(pick, ranks, [0, 1e-6, 10] if self.begun else [0]), "--keep", "-t", steps]
        words += ["--resume"] if self.begun else ["--force", *p.words]
        dies = not last and pick.random() < 0.55 and backend != "mmap"
        if dies:
            backend = [f"fault:{backend}", "--fault", f"fail_after={int(2 ** pick.uniform(1, 8))}"]
        words += ["--backend", *(backend if dies else [backend])]
        done, report = self.run(*words)
        self.steps = steps
        if done.returncode == 2 and self.begun:  # this plan, these rows, these ranks: anything that the store allows
            text = done.stderr
            if "no store" in text or "nothing to resume" in text or "holds no" in text:
                self.begun = False
                return False
            done, report = self.run("--resume", "-t", steps, "--keep", "--backend", "mmap")
        elif done.returncode == 2 and not self.begun:
            return False
        assert done.returncode in ((0, 2, 3) if dies else (0, 2)), self.told
        self.begun = done.returncode == 0 or self.has_state()
        if done.returncode != 0:
            return False
        assert report["checksum"] == p.checksum(steps), self.told
        as_predicted(report, self.told)
        self.checked += 1
        return True

    def has_state(self):
        done = self.memext("info", self.place, "--json", "-")
        return done.returncode == 0 and '"step"' in done.stdout

    def go(self):
        for _ in range(self.pick.randint(1, 5)):
            self.link(False)
        for number in range(6):
            if self.link(True, plain=number > 2):
                return
        raise AssertionError(self.told)


def chain(memext, place, seed):
    folder = place / f"chain-{seed}"
    folder.mkdir()
    c = Chain(memext, folder, seed)
    c.go()
    shutil.rmtree(folder)
    return c


SHORT = ["-n", 40, 16, 24,
         "--stencil", "star13", "--side", "z=mirror,fixed", "--dram", "200MiB"]
SHORT_PLANS = {"redundant": ["--plan", "redundant by=16 bz=9 bt=2"], "stream": ["--plan", "stream by=12 bt=2 slab=2"]}


def long_unless(short, *values):
    return pytest.param(*values, marks=[] if short else [pytest.mark.long])


# Half of all combinations have every three choices together, the other half when there is time.
@pytest.mark.parametrize("first, second, third, fuse", [long_unless((i + j + k + len(fuse)) % 2 == 0, *plans, fuse) for fuse in ([], ["--no-fuse"])
                                                        for i, j, k in itertools.product((0, 1), repeat=3) for plans in [[list(SHORT_PLANS)[at] for at in (i, j, k)]]])  # fmt: skip
def test_from_two_buffers_without_a_state_to_three(memext, quick_place, first, second, third, fuse):
    """The first run dies in its first sweep, the second makes a third Buffer, the third finishes: bits of the plain program, bytes as predicted.
    Which Buffers hold the frame is known for each of them."""
    fail_after, store = 4, quick_place / "memext.store"
    while not (store.exists() and memext("info", quick_place).stdout.count("nothing is committed yet")):
        done = memext("run", *SHORT, "-t", 12, *SHORT_PLANS[first], "-d", quick_place, "--force", "--quiet", "--commit-every", 0, "--backend", "fault:uring",
                      "--fault", f"fail_after={fail_after}")
        assert done.returncode == 3, done.stderr
        fail_after += 1
    for steps, words in [(2, [*fuse, "--commit-every", 10, *SHORT_PLANS[second]]), (12, SHORT_PLANS[third])]:
        result = memext.run("--resume", "-d", quick_place, "-t", steps, "--keep", "--dram", "200MiB", "--backend", "uring", *words)
        as_predicted(result.report, [first, second, fuse, third])
        assert result["checksum"] == memext.run(*SHORT, "-t", steps, "--backend", "dram", "--algorithm", "direct")["checksum"]


# Pairs of choices.
@pytest.mark.parametrize("ranks, second, fuse", [long_unless((at + (second == 6) + len(fuse)) % 2 == 0, ranks, second, fuse) for at, ranks in enumerate([(1, 1, 1), (2, 2, 2), (1, 2, 2), (2, 1, 1)])
                                                 for second in (2, 6) for fuse in ([], ["--no-fuse"])])  # fmt: skip
def test_frames_that_are_there_are_not_copied(memext, quick_place, ranks, second, fuse):
    """The Buffers that a run, or a new cut of it, begins with hold the frame: when it goes on by redundant nothing is written before the first sweep."""
    words = [*SHORT_PLANS["redundant"], "-d", quick_place, "--keep", "--backend", "uring", "--commit-every", 0, *fuse]
    for number, (steps, n) in enumerate(zip((2, second, 12), ranks)):
        begun = ["--resume", "--dram", "200MiB"] if number > 0 else SHORT
        result = memext.run(*begun, *words, "-t", steps, *(["--ranks", n] if n > 1 else []))
        as_predicted(result.report, [ranks, fuse, number])
        same = number > 0 and ranks[number] == ranks[number - 1]
        assert not same or result["phases"]["init"]["write_bytes"] == 0 == result["phases"]["init"]["read_bytes"], number
    assert result["checksum"] == memext.run(*SHORT, "-t", 12, "--backend", "dram", "--algorithm", "direct")["checksum"]


def test_a_checksum_is_of_its_step(memext, quick_place):
    """A finished run goes on and dies after a commit: its store tells the new step, and no checksum of the former one."""
    words = ["-d", quick_place, "--keep", "--quiet", "--backend"]
    memext.run(*SHORT, "-t", 2, *SHORT_PLANS["stream"], *words, "uring")
    for fail_after in range(40, 400, 20):
        done = memext("run", "--resume", "-t", 12, "--commit-every", 0, *SHORT_PLANS["stream"], *words, "fault:uring", "--fault", f"fail_after={fail_after}")
        stored = json.loads(memext("info", quick_place, "--json", "-").stdout)["store"]
        assert (stored["checksum"] is None) == (2 < stored["step"] < 12), (fail_after, done.stderr)
        if stored["step"] > 2:
            return
    raise AssertionError("no commit in 400 requests")


@pytest.mark.parametrize("batch", [long_unless(batch < 6, batch) for batch in range(100)])
def test_chains(memext, quick_place, batch):
    """After every link that ends well: checksum == checksum(plain loop); bytes of each phase == predicted."""
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        chain(memext, quick_place, seed)


if __name__ == "__main__":
    where, first, last = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    command, links, checked, failed = Command(pathlib.Path(os.environ.get("MEMEXT_BUILD", ROOT / "build" / "release"))), 0, 0, 0
    for number in range(first, last):
        try:
            made = chain(command, where, number)
            links, checked = links + len(made.told) - 1, checked + made.checked
        except (AssertionError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(number, error, flush=True)
    print(f"{last - first} chains, {links} runs, {checked} states and their bytes compared, {failed} failed")
