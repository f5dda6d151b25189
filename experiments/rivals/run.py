#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What else does a scientist run when a volume does not fit, and how long does that take?

    experiments/rivals/run.py --quick | --full [--cases star7,wave] [--factors 4,8] [--rivals NAME,NAME]

The same star7 (f64) and the same acoustic wave (order 8, f32, a velocity and a sponge per cell), from .npy files to a .npy file, by memext and by what is
used in its place: virtual memory with swap, numpy.memmap (C rows or numba, a step a pass or k), h5py slabs, dask with zarr, UMap. One row function
in C, of one kernel file, computes in all of them but those named numba, which have the same operations in the same order. Each runs in a memory
cgroup (experiments/limit-memory) that counts the page cache too, of the DRAM of the comparison and what its interpreter and libraries
take before they see data. Each is looked for at its best: at least five settings with a few steps each, then the whole run with the best. A
result counts if it has the bits of the plain loop in memory.

DRAM is the data (both arrays of state, and fields that are read) over --factors. A whole run that would take more than --most seconds is measured
over fewer steps, and its seconds for all steps are computed from those; the table says so.

The same command goes on where an interrupted one stopped; --minutes stops in time. Results: rivals.json and rivals.md in --output (default
results/SCALE/rivals), which analysis/report.py shows. Python packages go into a virtual environment in --tools. UMap is compared where it is installed
(--umap PREFIX).
"""
import argparse
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [ROOT, os.path.join(ROOT, "experiments"), HERE]

import worker  # noqa: E402
from runner import host, registry  # noqa: E402

LIMIT = os.path.join(ROOT, "experiments", "limit-memory")
MIB = 1 << 20
COMPILE = ["-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-std=gnu17"]
# Steps after which one plain loop has its state hashed, for all the others; what is measured over fewer than all steps is measured over one of these.
MARKS = (2, 4, 6, 8, 12, 16, 18, 24, 32, 36, 48, 60, 64, 72, 96, 120, 128, 144, 168)
SLOWER = 2  # times the best so far: a setting that takes longer a step is ended, for it will not be the best
# Of --dram memext takes 24 MiB for the program, as Python takes its own share; peak RSS stays within --dram plus 64 MiB.
PROGRAM, SLACK = 24 * MIB, 64 * MIB
CASES = {"star7": os.path.join(HERE, "star7.c"), "wave": os.path.join(ROOT, "systems", "wave.c")}
# Name: what works, how many steps a pass. In the order of the table.
RIVALS = {
    "swap": ("swap", "one", "virtual memory with swap"),
    "swap-k": ("swap", "some", "virtual memory with swap, fused steps"),
    "memmap": ("memmap", "one", "numpy.memmap"),
    "memmap-numba": ("memmap-numba", "one", "numpy.memmap + numba"),
    "h5py": ("h5py", "one", "h5py slabs"),
    "dask": ("dask", "one", "dask + zarr"),
    "umap": ("umap", "one", "UMap"),
    "memmap-k": ("memmap", "some", "numpy.memmap, fused steps"),
    "memmap-numba-k": ("memmap-numba", "some", "numpy.memmap + numba, fused steps"),
    "h5py-k": ("h5py", "some", "h5py slabs, fused steps"),
    "dask-k": ("dask", "some", "dask + zarr, fused steps"),
    "memext": ("memext", "own", "memext"),
}
SCALES = {"quick": {"edge": 256, "steps": 40, "most": 20.0, "limit": 20.0}, "full": {"edge": 400, "steps": 200, "most": 600.0, "limit": 120.0}}


class Failed(Exception):
    """One sentence."""


class OutOfTime(Exception):
    """--minutes are over."""


def say(text):
    print(f"rivals: {text}", file=sys.stderr, flush=True)


def options(words=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    scale = p.add_mutually_exclusive_group(required=True)
    scale.add_argument("--quick", dest="scale", action="store_const", const="quick", help="a small grid, few steps: minutes")
    scale.add_argument("--full", dest="scale", action="store_const", const="full", help="200 steps: hours")
    p.add_argument("--cases", default=",".join(CASES))
    p.add_argument("--factors", default="4,8", help="data against DRAM (default 4,8)")
    p.add_argument("--rivals", default=",".join(RIVALS), help="default: all, " + ",".join(RIVALS))
    p.add_argument("--edge", type=int, help="cells of an edge of the grid, frame included (quick 256, full 400)")
    p.add_argument("--shape", type=int, nargs=3, metavar=("NZ", "NY", "NX"), help="the grid, frame included, if it is to be no cube")
    p.add_argument("--steps", type=int, help="of a whole run (quick 40, full 200)")
    p.add_argument("--most", type=float, metavar="SECONDS", help="a whole run that would take longer is measured over fewer steps (quick 20, full 600)")
    p.add_argument("--limit", type=float, metavar="SECONDS", help="a run of the search that takes longer, of swap and of memext (all steps) three times as long, is ended (quick 20, full 120)")
    p.add_argument("--repeats", type=int, default=1, help="of every whole run, in turn; the table has medians (default 1)")
    p.add_argument("--settings", type=int, default=99, metavar="N", help="at most so many settings a rival (tests)")
    p.add_argument("--search", action="store_true", help="only look for settings and make the results to compare with; a later call has them for its whole runs")
    p.add_argument("--minutes", type=float, help="begin no run after so many; the same command goes on later")
    p.add_argument("--data", default="/var/tmp/memext-experiments", help="directory on the storage to use; what is put there goes")
    p.add_argument("--tools", default=os.path.join(ROOT, "build", "rivals"), help="where the virtual environment is made, and stays")
    p.add_argument("--python", help="use this Python and what it has, instead of a virtual environment")
    p.add_argument("--umap", metavar="PREFIX", help="where UMap (LLNL) is installed: PREFIX/include/umap/umap.h, PREFIX/lib/libumap.so; without it UMap is not compared")
    p.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    p.add_argument("--output")
    p.add_argument("--retry-failed", action="store_true", help="try again what failed before")
    p.add_argument("--no-system", action="store_true", help="change nothing on this machine: no memory limit, so the comparison means nothing")
    p.add_argument("--keep-cache", action="store_true", help="do not drop the page cache before each run")
    o = p.parse_args(words)
    for name in ("edge", "steps", "most", "limit"):
        if getattr(o, name) is None:
            setattr(o, name, SCALES[o.scale][name])
    o.cases, o.rivals = o.cases.split(","), o.rivals.split(",")
    try:
        o.factors = [float(f) for f in o.factors.split(",")]
    except ValueError:
        o.factors = [0.0]
    if min(o.factors) <= 0:
        p.error("--factors takes numbers above 0, separated by commas, such as 4,8")
    for known, given, what in ((CASES, o.cases, "--cases"), (RIVALS, o.rivals, "--rivals")):
        if not set(given) <= set(known):
            p.error(f"{what} {','.join(given)}: there are {', '.join(known)}")
    if o.umap is not None:
        o.umap = os.path.abspath(o.umap)
        try:
            umap_library(o.umap)
        except Failed as error:
            p.error(f"--umap: {error}")
    o.shape = o.shape or [o.edge] * 3
    o.output = os.path.abspath(o.output or os.path.join(ROOT, "results", o.scale, "rivals"))
    o.threads = len(os.sched_getaffinity(0))
    o.begin = time.monotonic()
    return o


# ------------------------------------------------------------------ programs

def command(words, **more):
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **more)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))}: {(done.stdout.strip().splitlines() or ['no message'])[-1]} (exit status {done.returncode})")
    return done.stdout


def python_of(o):
    """The interpreter of the rivals, in an environment of its own with the versions of requirements.txt."""
    if o.python:
        return o.python
    folder, wanted = os.path.join(o.tools, "venv"), os.path.join(HERE, "requirements.txt")
    found, ready = os.path.join(folder, "bin", "python"), os.path.join(folder, "requirements.txt")
    same = os.path.exists(ready) and open(ready).read() == open(wanted).read()
    if not same:
        say(f"making a virtual environment in {folder}")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            command([sys.executable, "-m", "venv", folder])
            command([found, "-m", "pip", "install", "--disable-pip-version-check", "-q", "-r", wanted])
        except Failed as error:
            say(f"{error}; {sys.executable} is used with what it has")
            return sys.executable
        shutil.copy(wanted, ready)
    return found


def umap_library(prefix):
    """The folder of libumap.so below PREFIX, where UMap is installed, or Failed."""
    if not os.path.exists(os.path.join(prefix, "include", "umap", "umap.h")):
        raise Failed(f"{prefix} holds no include/umap/umap.h: give the prefix that UMap was installed in")
    for name in ("lib", "lib64"):
        if os.path.exists(os.path.join(prefix, name, "libumap.so")):
            return os.path.join(prefix, name)
    raise Failed(f"{prefix} holds neither lib/libumap.so nor lib64/libumap.so: give the prefix that UMap was installed in")


class Case:
    """A kernel, its library, its input files and the hashes of its results."""

    def __init__(self, o, name, place):
        self.o, self.name, self.place, self.kernel = o, name, place, CASES[name]
        self.library = os.path.join(place, f"{name}.so")
        include = [f"-I{os.path.join(ROOT, 'runtime', 'include')}", f'-DKERNEL="{self.kernel}"']
        command(["cc", *COMPILE, "-shared", "-fPIC", *include, os.path.join(HERE, "rows.c"), "-lm", "-o", self.library])
        k = worker.Kernel(self.library)
        self.h, self.leapfrog, self.n_fixed = k.h, bool(k.leapfrog), k.n_fixed
        self.include = include
        self.dtypes = [np.dtype(f"f{k.cell_bytes}")] + [np.dtype(f"f{k.fixed_bytes}") for _ in range(k.n_fixed)]
        self.shape = tuple(o.shape)
        self.plane_bytes = self.shape[1] * self.shape[2] * self.dtypes[0].itemsize
        self.fields = 2 + self.n_fixed  # arrays that a step goes through
        self.data_bytes = self.fields * self.plane_bytes * self.shape[0]
        self.cells = int(np.prod([n - 2 * self.h for n in self.shape]))
        self.inputs = [os.path.join(place, f"{name}-{i}.npy") for i in range(1 + self.n_fixed)]

    def make_inputs(self):
        """Where something is to be run: a table that is complete needs none."""
        for i, path in enumerate(self.inputs):
            if not os.path.exists(path):
                self.make(i, path)

    def make(self, i, path):
        nz, ny, nx = self.shape
        y, x = np.arange(ny)[:, None], np.arange(nx)[None, :]
        inner = np.minimum(np.minimum(y, ny - 1 - y), np.minimum(x, nx - 1 - x))
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": self.dtypes[i].str, "fortran_order": False, "shape": self.shape})
            for z in range(nz):
                depth = np.minimum(inner, min(z, nz - 1 - z))
                plane = [lambda: (z * 7 + y * 13 + x * 29) % 101 * 0.01, lambda: 1500 + (z * 3 + y * 5 + x * 7) % 97 * 30.0,
                         lambda: 0.1 * np.maximum(0, 12 - depth) / 12][i]()  # fmt: skip
                np.ascontiguousarray(plane, self.dtypes[i]).tofile(file)
            file.flush()
            os.fsync(file.fileno())

    def hash_of(self, path):
        """Of the cells of a result, which must have the right shape."""
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            shape, fortran, dtype = (np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0)(file)
            if (tuple(shape), fortran, dtype) != (self.shape, False, self.dtypes[0]):
                return f"a file of {shape} {dtype}"
            return worker.digest(iter(lambda: file.read(4 * MIB), b""))


# ------------------------------------------------------------------ settings to be tried

def fused_settings(case, dram, most_k=32):
    """[(k, slab, keep, share of the DRAM)]: for every k the widest slab that fits; those that compute least in vain come first."""
    found = []
    for k in (2, 3, 4, 6, 8, 12, 16, 24, 32):
        for share, keep in ((0.6, False), (0.6, True), (0.8, False), (0.8, True), (0.4, False)):
            slab = 0
            while slab < case.shape[0] and worker.fused_bytes(case.plane_bytes, case.fields, case.h, k, slab + 1, keep) <= share * dram:
                slab += 1
            if slab > 0 and k <= most_k:
                found.append({"k": k, "slab": slab, "keep": keep, "share": share})
    return found


def without(settings, *names):
    return {k: v for k, v in settings.items() if k not in names}


def variants_of_fused(case, dram, ahead):
    """(settings to begin with, function from the best of them to more)"""
    every = fused_settings(case, dram)
    # Four of them at most, so that five settings also have one that is made from the best: of two shares those with the least (computed in vain) x (passes).
    every.sort(key=lambda s: (1 + (s["k"] - 1) * case.h / s["slab"]) * (1 + 8 / s["k"]))
    first = [{**s, "ahead": ahead} for share in (0.6, 0.8) for s in [s for s in every if s["share"] == share and not s["keep"]][:2]]

    def more(best):
        same_k = [{**s, "ahead": ahead} for s in every if s["k"] == best["k"] and (s["share"], s["keep"]) != (best["share"], best["keep"])]
        return [{**best, "ahead": True, "behind": True}, *same_k, {**best, "ahead": not ahead}]

    return first, more


def dask_blocks(case, dram, k, threads):
    """Planes of a block so that what all threads have in hand takes about half of the DRAM; at least the halo."""
    in_hand = 2 * case.fields * threads
    return max(case.h * k, int(0.5 * dram / case.plane_bytes / in_hand) - 2 * k * case.h, 1)


def settings_of(rival, case, dram, threads):
    """(list of settings, function that makes more from the best): at least five in all."""
    work, steps, _ = RIVALS[rival]
    none = lambda best: []
    if work == "memext":
        first = [{"words": []}, {"words": ["--backend", "aio"]}, {"words": [], "calibrated": True}, {"words": ["--commit-every", "0"], "calibrated": True},
                 {"words": ["--algorithm", "redundant"]}]  # fmt: skip
        return first + ([{"words": ["--in-place"]}] if case.leapfrog else []), none
    if work == "umap":
        first = [{"page": page, "slab": slab, "share": share, "fillers": fill} for page, slab, share, fill in
                 ((256 << 10, 1, 0.7, 4), (MIB, 1, 0.7, 2), (MIB, 2, 0.85, 2), (4 * MIB, 2, 0.7, 2), (64 << 10, 1, 0.7, 8))]  # fmt: skip
        return first, none
    if work == "dask":
        blocks = lambda k, *ways: [{"k": k, "block": b, "chunk": b, "overlap": o} for part, o in ways for b in [max(1, dask_blocks(case, dram, k, threads) // part)]]
        least = lambda k: 1 if k == 1 else case.h * k
        other = lambda best: [{**best, "chunk": max(1, best["chunk"] // 4)}, *({**best, "block": b, "chunk": b} for b in (max(least(best["k"]), best["block"] // 2), best["block"] * 2, best["block"] * 4))]
        if steps == "one":
            return blocks(1, (1, False), (1, True), (2, False), (2, True)), other
        # map_overlap takes the most memory; of the depths those first that a small DRAM allows.
        first = [s for k, *ways in ((4, (1, False)), (2, (1, False), (1, True)), (8, (1, False)), (16, (1, False)), (4, (1, True)), (8, (1, True)), (32, (1, False))) for s in blocks(k, *ways)]
        return first, other
    if work == "h5py" and steps == "one":
        wide = [s for s in (4, 16, 64) if worker.fused_bytes(case.plane_bytes, case.fields, case.h, 1, s, True) < 0.6 * dram] or [1, 2]
        first = [{"k": 1, "slab": s, "keep": keep} for s in wide for keep in (True, False)]
        return first, lambda best: [{**best, "ahead": True}, {**best, "ahead": True, "behind": True}]
    if work == "swap" and steps == "one":
        first = [{"slab": 2, "alternate": False, "ahead": True}, {"slab": 8, "alternate": True}, {"slab": 8, "alternate": True, "huge": True}, {"slab": 8, "alternate": False},
                 {"slab": 8, "alternate": False, "behind": True}]  # fmt: skip
        return first, none
    if steps == "one":
        return [{"slab": s, "alternate": a, "advice": v} for s, a, v in
                ((8, False, "normal"), (8, True, "normal"), (32, True, "normal"), (8, True, "sequential"), (8, True, "random"))] + [{"slab": 8, "alternate": True, "ahead": True}], none  # fmt: skip
    return variants_of_fused(case, dram, ahead=work != "swap")


# ------------------------------------------------------------------ runs

class Runs:
    """All of them: what has been measured is kept, what is asked for again is not run again."""

    def __init__(self, o, place, python):
        self.o, self.place, self.python = o, place, python
        self.path = os.path.join(o.output, "rivals.json")
        self.records, self.bases, self.dry = [], {}, False
        if os.path.exists(self.path):
            with open(self.path) as file:
                before = json.load(file)
            self.records = before["records"]
        if o.retry_failed:
            self.records = [r for r in self.records if not r.get("failure")]
        said = json.loads(command([python, os.path.join(HERE, "worker.py"), "--probe"]).splitlines()[-1])
        self.absent = {name: why for name, (work, _, _) in RIVALS.items() if name in o.rivals and (why := said["rivals"].get(work, ""))}
        self.versions = said["versions"]
        if self.records and before["versions"] == self.versions:
            self.bases = before.get("bases", {})
        if "umap" in o.rivals and o.umap is None:
            self.absent["umap"] = "UMap is not installed here: --umap PREFIX says where it is"
        if o.no_system:
            for name in ("swap", "swap-k"):
                if name in o.rivals:
                    self.absent[name] = "needs a memory limit and swap space (--no-system makes none)"
        for name, why in self.absent.items():
            say(f"{name} is not run: {why}")

    def save(self):
        origin = {"schema": 1, "command": " ".join(sys.argv), "commit": host.commit(ROOT), "scale": self.o.scale, "kernel": platform.release(), "machine": host.machine(self.o.data),
                  "versions": self.versions, "absent": self.absent, "steps": self.o.steps, "rivals": {n: v[2] for n, v in RIVALS.items()}, "bases": self.bases}  # fmt: skip
        os.makedirs(self.o.output, exist_ok=True)
        with open(self.path + ".new", "w") as file:
            json.dump({**origin, "records": self.records}, file, indent=1)
        os.replace(self.path + ".new", self.path)

    def in_time(self):
        if self.o.minutes is not None and time.monotonic() - self.o.begin > self.o.minutes * 60:
            raise OutOfTime

    def base(self, case, work):
        """Bytes that the process takes before it has seen any data, in whole MiB. Asked twice: the first time numba compiles."""
        if work in ("memext", "umap"):
            return SLACK + (PROGRAM if work == "memext" else 0)
        name = f"{case.name} {work}"
        if name not in self.bases:
            job = {"rival": work, "library": case.library, "inputs": case.inputs, "output": "", "work": self.place, "steps": 0, "threads": self.o.threads, "settings": {}}
            found = [json.loads(command([self.python, os.path.join(HERE, "worker.py"), json.dumps(job)], env=self.environment()).splitlines()[-1]) for _ in range(2)]
            self.bases[name] = -(-found[1]["base_bytes"] // MIB) * MIB
        return self.bases[name]

    def environment(self):
        return {**os.environ, "NUMBA_CACHE_DIR": os.path.join(self.o.tools, "numba"), "OMP_NUM_THREADS": str(self.o.threads), "NUMBA_NUM_THREADS": str(self.o.threads)}

    def program(self, case, work, settings, dram, steps, output, folder):
        """(command, environment) of what is no Python."""
        if work == "memext":
            fields = ["p", "v", "damping"] if case.leapfrog else ["u"]
            words = [os.path.join(self.o.build, "memext"), "run", "--kernel", case.kernel, "-t", str(steps), "--dram", str(dram + PROGRAM), "-d", folder, "--quiet", "--json", "-",
                     "--input", f"{fields[0]}={case.inputs[0]}", *itertools.chain(*(("--field", f"{f}={p}") for f, p in zip(fields[1:], case.inputs[1:]))),
                     "--output", f"{fields[0]}={output}", *settings["words"]]  # fmt: skip
            cache = os.path.join(self.o.tools, "cache-calibrated" if settings.get("calibrated") else "cache")
            if settings.get("calibrated") and not os.path.exists(os.path.join(cache, case.name)):
                nz, ny, nx = (n - 2 * case.h for n in case.shape)
                command([words[0], "tune", "--kernel", case.kernel, "-n", nx, ny, nz, "-t", self.o.steps, "-d", self.place, "--dram", dram + PROGRAM, "--calibrate", "--quiet", "--json", "-"], env={**os.environ, "XDG_CACHE_HOME": cache})
                os.makedirs(os.path.join(cache, case.name))
            return words, {"XDG_CACHE_HOME": cache}
        program = os.path.join(self.place, f"umap-{case.name}")
        if not os.path.exists(program):
            include, library = os.path.join(self.o.umap, "include"), umap_library(self.o.umap)
            command(["cc", *COMPILE, *case.include, f"-I{HERE}", f"-I{include}", os.path.join(HERE, "umap.c"), "-lm", f"-L{library}", f"-Wl,-rpath,{library}", "-lumap", "-o", program])
        pages = max(24, int(settings["share"] * dram / settings["page"]))
        return [program, str(steps), str(self.o.threads), str(settings["slab"]), output, folder, *case.inputs], {
            "UMAP_PAGESIZE": str(settings["page"]), "UMAP_BUFSIZE": str(pages), "UMAP_PAGE_FILLERS": str(settings["fillers"]), "UMAP_PAGE_EVICTORS": str(settings["fillers"])}  # fmt: skip

    def run(self, case, factor, rival, settings, steps, kind, repeat=0, beat=None):
        """A record: {case, factor, rival, settings, steps, kind, seconds, ..., hash, same | failure}. rival "memory": the plain loop, without a limit.
        beat: a record of the search; what is much slower is ended."""
        key = {"case": case.name, "shape": list(case.shape), "factor": factor, "rival": rival, "settings": settings, "steps": steps, "kind": kind, "repeat": repeat}
        for r in self.records:
            if {k: r[k] for k in key} == key:
                return r
        self.in_time()
        case.make_inputs()
        work = "memory" if rival == "memory" else RIVALS[rival][0]
        dram = int(case.data_bytes / factor) // MIB * MIB if factor else 0
        folder, output = os.path.join(self.place, "work"), os.path.join(self.place, "result.npy")
        os.makedirs(folder)
        record = {**key, "data_bytes": case.data_bytes, "cells": case.cells, "dram_bytes": dram, "limit_bytes": 0}
        try:
            job = {"rival": work, "library": case.library, "inputs": case.inputs, "output": output, "work": folder, "steps": steps, "threads": self.o.threads, "settings": settings}
            if kind == "reference":
                job["marks"] = [m for m in MARKS if m < steps]
            if work in ("memext", "umap"):
                job["command"], job["settings"] = (lambda words, e: (words, {"environment": e}))(*self.program(case, work, settings, dram, steps, output, folder))
            words = [self.python, os.path.join(HERE, "worker.py"), json.dumps(job)]
            if rival != "memory":
                record["limit_bytes"] = dram + self.base(case, work)
                space = ["--swap", str(int(1.3 * case.data_bytes * (1.5 if "k" in settings else 1)) + SLACK), "--swap-dir", self.place] if work == "swap" else []
                words = [LIMIT, str(record["limit_bytes"]), "--quiet", *space, *(["--no-system"] if self.o.no_system else []), *(["--keep-cache"] if self.o.keep_cache else []), "--", *words]
            record |= self.measured(words, *(self.patience(work, steps, beat) if kind == "search" else (None, "")))
            record["hash"] = case.hash_of(output)
        except Failed as error:
            record["failure"] = str(error)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if os.path.exists(output):
                os.unlink(output)
        if not record.get("failure"):
            report = record.pop("report", {})
            record |= {k: report[k] for k in ("import_s", "export_s") if k in report}
            record |= {"plan": report["plan"], "backend": report["backend"], "stencil_seconds": report["seconds"]} if "plan" in report else {}
            record |= {k: record.get(k, 0.0) for k in ("import_s", "export_s")}
            record["step_s"] = (record["seconds"] - record["import_s"] - record["export_s"]) / steps
            wanted = record["hash"] if rival == "memory" else self.reference(case, steps)
            record["same"] = record["hash"] == wanted
            if not record["same"]:
                record["failure"] = f"another result ({record['hash']}, the plain loop has {wanted})"
        self.records.append(record)
        self.save()
        say(f"{case.name} {factor or ''}x {rival} {json.dumps(settings)} {steps} steps: " + (record.get("failure") or f"{record['seconds']:.2f} s, {1e-6 * case.cells / record['step_s']:.0f} Mupdates/s"))
        return record

    def patience(self, work, steps, beat):
        """(seconds that a run of the search gets, what is said when they are over)"""
        most = self.o.limit * (3 if work in ("swap", "memext") else 1)
        if beat:  # what starting took is no part of its seconds
            enough = SLOWER * (beat.get("start_s", 0.0) + beat["import_s"] + beat["export_s"] + beat["step_s"] * steps)
            if enough < most:
                return enough, f"was ended after {enough:.1f} s: another setting takes less than half of its time"
        return most, f"took longer than {most:g} s and was ended"

    def measured(self, words, limit, late):
        begin = time.monotonic()
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment())
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.end(process)
            raise Failed(late) from None
        except BaseException:
            self.end(process)
            raise
        if process.returncode != 0:
            said = [line for line in err.strip().splitlines() if line] or ["no message"]
            named = [line for line in said if "out of memory" in line] or [line for line in said if line.startswith(("memext", "umap"))]
            raise Failed(f"{(named or said)[-1][:300]} (exit status {process.returncode})")
        said = json.loads(out.splitlines()[-1])
        return {**said, "start_s": time.monotonic() - begin - said["seconds"]}

    @staticmethod
    def end(process):
        """limit-memory passes the first signal on and kills all it has at the second."""
        for _ in range(2):
            process.terminate()
            try:
                process.communicate(timeout=20)
                return
            except subprocess.TimeoutExpired:
                continue
        process.communicate()

    def reference(self, case, steps):
        """The hash of the plain loop's state after so many steps. One loop over all steps has it for MARKS."""
        for attempt in range(2):
            for r in self.records:
                if (r["rival"], r["case"], r["shape"]) == ("memory", case.name, list(case.shape)) and not r.get("failure"):
                    if found := {**r.get("hashes", {}), str(r["steps"]): r["hash"]}.get(str(steps)):
                        return found
            done = self.run(case, 0, "memory", {"slab": 8}, self.o.steps if attempt == 0 and steps in MARKS else steps, "reference")
            if done.get("failure"):
                raise Failed(f"the plain loop to compare with: {done['failure']}")
        return done["hash"]

    def search_steps(self, rival, settings):
        """Swap takes seconds for each."""
        k = settings.get("k", 1)
        return min(self.o.steps, 2 * k if k > 1 else 2 if rival == "swap" else 4)

    def best(self, case, factor, rival):
        """The best record of the search, None if all failed."""
        dram = int(case.data_bytes / factor) // MIB * MIB
        first, more = settings_of(rival, case, dram, self.o.threads)
        steps = (lambda s: self.o.steps) if rival == "memext" else lambda s: self.search_steps(rival, s)
        best, tried = None, []

        def attempt(some):
            nonlocal best
            for s in some:
                tried.append(s)
                r = self.run(case, factor, rival, s, steps(s), "search", beat=best)
                if not r.get("failure") and (best is None or r["step_s"] < best["step_s"]):
                    best = r

        attempt(first[:self.o.settings])
        if best:
            attempt([s for s in more(best["settings"]) if s not in tried][:max(0, self.o.settings - len(first))])
        return best

    def whole(self, case, factor, rival, repeat):
        best = self.best(case, factor, rival)
        if best is None:
            return
        k, steps = best["settings"].get("k", 1), self.o.steps
        if best["step_s"] * steps > self.o.most and rival != "memext":  # whose import and export are in its seconds
            most = min(self.o.steps - 1, self.o.most / best["step_s"])
            steps = max([self.search_steps(rival, best["settings"]), *(m for m in MARKS if m % k == 0 and m <= most)])
        if self.o.search:
            self.reference(case, steps)
        else:
            self.run(case, factor, rival, best["settings"], steps, "whole", repeat)


def measure(o, owner):
    os.makedirs(o.data, exist_ok=True)
    os.makedirs(o.tools, exist_ok=True)
    runs = Runs(o, owner.directory(o.data, "memext-run-")["path"], python_of(o))
    runs.save()
    for name in o.cases:
        case = Case(o, name, runs.place)
        for factor in o.factors:
            for repeat in range(o.repeats):
                for rival in o.rivals:
                    if rival not in runs.absent:
                        runs.whole(case, factor, rival, repeat)
        if not o.search:  # timed beside the others, whatever the search had to compare with
            runs.run(case, 0, "memory", {"slab": 8}, o.steps, "plain")
        for path in filter(os.path.exists, case.inputs):
            os.unlink(path)
    return runs


def show(o):
    """The table, on stdout and beside the results."""
    from analysis import rivals

    with open(os.path.join(o.output, "rivals.json")) as file:
        text = rivals.markdown(json.load(file))
    with open(os.path.join(o.output, "rivals.md"), "w") as file:
        file.write(text)
    print(text)


def main():
    o = options()
    if not os.path.exists(os.path.join(o.build, "memext")):
        sys.exit(f"rivals: {o.build}/memext is missing; build it with: cmake --preset release && cmake --build --preset release")
    if os.geteuid() != 0 and not o.no_system:
        sys.exit("rivals: a memory limit needs root; --no-system runs without one, and then the comparison means nothing")
    say(f"changes nothing on this machine (--no-system) but files in {o.data}, {o.tools} and {o.output}" if o.no_system else
        f"changes on this machine while it runs: cgroups with a memory limit, a swap file in {o.data}, the page cache dropped; files in {o.data}; and for good: {o.tools}, {o.output}")
    registry.interruptible()
    status = 0
    try:
        if not o.no_system:
            registry.sweep(say)
        with registry.Owner("rivals/run.py") as owner:
            os.environ.update(owner.mark())
            measure(o, owner)
    except (Failed, registry.RegistryError) as error:
        sys.exit(f"rivals: {error}")
    except OutOfTime:
        say("the minutes are over; the same command goes on")
        status = 75
    except KeyboardInterrupt:
        sys.exit(f"rivals: interrupted; the same command goes on; what is complete is in {o.output}")
    show(o)
    return status


if __name__ == "__main__":
    sys.exit(main())
