#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random campaigns against the command: does every run end with the right bits or with a sentence?

A campaign is one problem (an awkward size, stencil and type drawn at random) computed by one algorithm on one kind of place,
and what goes wrong meanwhile: kill -9, SIGINT, SIGTERM or SIGSTOP at a random moment (while the store is made, the grid
initialised, something flushed, computed, verified or written out), again on the resumed run, on another backend, with other
threads and DRAM, with an accelerator or without; errors of the device; operations of an accelerator that fail; a device or file system that fills up; a memory limit; a store that somebody cuts off;
an output that cannot be written; a second run in the same place. Every process has to end with

    0 and the checksum of an undisturbed run (and its grid in --output, and its own --verify), or
    3 or 5 and a sentence (2 where the request cannot be met), or by the signal that it was sent,

and afterwards --resume ends with that checksum wherever a commit was made and the algorithm can be resumed. A wrong checksum,
a hang, a death by any other signal, an output or input that was harmed, a file, loop device, mount or cgroup left behind is a
failure; it is printed with the commands and with the words that repeat the campaign.

usage: experiments/crash.py [--runs 60] [--seed 1] [--skip K] [--only WORD,WORD] [--place DIR] [--patience 240] [--json FILE]
WORD is a trouble, an algorithm, a backend or a kind of place; several of one sort mean any of them. The exit status is 0
only when nothing failed. Root is needed for loop devices, small file systems and memory limits; what cannot be done here is
said and counted.
"""
import argparse
import collections
import contextlib
import ctypes
import dataclasses
import glob
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy

from watch import CAN_SEE_FLUSHES, catches, computing, flushing, holds_open, newest_superblock, written_bytes

ROOT = Path(__file__).resolve().parents[1]
LIMIT_MEMORY = ROOT / "experiments" / "limit-memory"
MIB = 2**20
FOLDER = "memext-crash-"
POLL_S = 0.0005
DEATHS = 4  # at most, in one campaign

TROUBLES = {"kill": 30, "signal": 14, "stop": 6, "fault": 12, "call": 10, "full": 8, "full-output": 4, "memory": 5, "truncate": 5,
            "output": 6, "intruder": 4, "flakey": 4, "error": 4, "accel-fault": 5}
ALGORITHMS = {"redundant": 4, "stream": 4, "strips": 4, "side-file": 4, "direct": 2, "skewed-min": 1}
BACKENDS = ["uring", "aio", "mmap"]
ACCELS = {"no-accel": 12, "accel-host": 3, "accel-opencl": 1}  # of streams that read and write by requests
PLACES = {"directory": 5, "file": 3, "loop": 2, "thin": 0, "flakey": 0, "error": 0}
RESUMABLE = {"redundant", "stream", "strips", "side-file"}
# What a trouble demands of the draw: the kind of place that makes it, or what else it needs.
PLACE_OF = {"full": "thin", "flakey": "flakey", "error": "error"}


class Wrong(Exception):
    """What a run did that it may not do."""


# ------------------------------------------------------------------ what is drawn

@dataclasses.dataclass(frozen=True)
class Problem:
    number: int
    size: tuple
    steps: int
    stencil: str
    dtype: str
    from_file: bool

    @property
    def h(self):
        return 2 if self.stencil == "star13" else 1

    def words(self, folder):
        grid = ["--input", folder / f"input-{self.number}.npy"] if self.from_file else ["-n", *self.size]
        return [*grid, "-t", self.steps, "--stencil", self.stencil, "--dtype", self.dtype]

    def make_input(self, folder):
        path = folder / f"input-{self.number}.npy"
        if self.from_file and not path.exists():
            shape = [n + 2 * self.h for n in reversed(self.size)]
            numpy.save(path, numpy.random.default_rng(self.number).random(shape).astype("<f8" if self.dtype == "f64" else "<f4"))


def draw_problem(dice, number):
    """Awkward extents, 2,000 to 1.2 million cells, 100 million updates and 120 sweeps at most: a disk takes a while to
    flush, and every sweep may do it."""
    while True:
        size = (dice.choice([1, 3, 13, 31, 61, 94, 127, 130, 254]), dice.choice([2, 5, 24, 40, 61, 94, 101]),
                dice.choice([7, 33, 64, 94, 126, 161]))
        cells = size[0] * size[1] * size[2]
        if 2000 <= cells <= 1200000:
            steps = dice.randint(3, min(120, 100000000 // cells))
            return Problem(number, size, steps, dice.choice(["star7", "star7", "edge19", "star13"]), dice.choice(["f64", "f32"]),
                           dice.random() < 0.3)


def plan_words(dice, algorithm, problem, threads):
    _, ny, nz = problem.size
    engine = dice.choice(["tiled", "iblock"])
    bt = dice.randint(1, min(problem.steps, 8))
    by, bz = dice.randint(max(1, ny // 3), ny), dice.randint(max(1, nz // 3), nz)
    tail = f"engine={engine} threads={threads}"
    lines = {"redundant": f"redundant by={by} bz={bz} bt={min(bt, 5)} {tail}",
             "stream": f"stream by={ny} bt={bt} slab={dice.randint(1, 16)} {tail}",
             "strips": f"stream by={dice.randint(1, max(1, ny // 2))} bt={bt} slab={dice.randint(2, 16)} faces=dram {tail}",
             "side-file": f"stream by={dice.randint(1, max(1, ny // 2))} bt={bt} slab={dice.randint(2, 16)} faces=side-file {tail}",
             "skewed-min": f"skewed-min by={by} bz={bz} bt={bt} {tail}"}
    if algorithm == "direct":
        return ["--algorithm", "direct", "--engine", engine, "--threads", threads]
    return ["--plan", lines[algorithm]]


def accel_words(dice, accel):
    """The bus of `host` is slow now and then, so that copies are under way when something happens."""
    return {"no-accel": [], "accel-host": ["--accel", dice.choice(["host", "host", "host,rate=200MB/s"])], "accel-opencl": ["--accel", "opencl"]}[accel]


def without_engine(plan):
    """An accelerator has its own."""
    return [word if not isinstance(word, str) else re.sub(r" engine=\w+", "", word) for word in plan]


@dataclasses.dataclass
class Case:
    trouble: str
    algorithm: str
    backend: str
    place: str
    problem: Problem
    plan: list
    options: list
    verify: bool
    output: bool
    timeline: bool
    deaths: int
    accel: str

    def words(self):
        return {self.trouble, self.algorithm, self.backend, self.place, self.accel}

    def __str__(self):
        size = " x ".join(map(str, self.problem.size))
        there = "" if self.accel == "no-accel" else f", {self.accel}"
        return (f"{self.trouble}, {self.algorithm} on {self.backend}{there} in a {self.place}, {size}, {self.problem.steps} steps, "
                f"{self.problem.stencil} {self.problem.dtype}")


def weighted(dice, table):
    return dice.choices(list(table), list(table.values()))[0]


def backend_options(dice, backend):
    choices = {"uring": [[], [], [], ["--sqpoll"], ["--uncached"], ["--no-register"], ["--queue-depth", 2]],
               "aio": [[], [], ["--queue-depth", 1], ["--request-size", "64KiB"]],
               "mmap": [[], [], ["--advice", "schedule"], ["--advice", "willneed"], ["--workers", 1]]}
    return dice.choice(choices[backend])


def draw_case(dice, problems):
    trouble, problem = weighted(dice, TROUBLES), dice.choice(problems)
    algorithm, backend = weighted(dice, ALGORITHMS), dice.choice(BACKENDS)
    place = PLACE_OF.get(trouble) or weighted(dice, PLACES)
    if trouble == "truncate":
        backend, place = "mmap", dice.choice(["directory", "file"])
    if algorithm == "direct":
        backend = "mmap"
        algorithm = "stream" if trouble == "fault" else algorithm  # the wrapper has the transfer face only
    case = Case(trouble, algorithm, backend, place, problem, plan_words(dice, algorithm, problem, dice.choice([1, 2])),
                backend_options(dice, backend), verify=dice.random() < 0.15,
                output=trouble in ("output", "full-output") or dice.random() < 0.3, timeline=dice.random() < 0.3,
                deaths=dice.randint(1, DEATHS) if trouble in ("kill", "signal", "stop") else 1, accel="no-accel")
    return draw_accel(dice, case)


def draw_accel(dice, case):
    """A memory limit would be that of the compiler of a device, too."""
    accel = weighted(dice, {**ACCELS, "no-accel": 0} if case.trouble == "accel-fault" else ACCELS)
    if case.algorithm not in ("stream", "strips", "side-file") or case.backend == "mmap" or case.trouble == "memory":
        if case.trouble == "accel-fault":
            case.algorithm, case.backend, case.options = "stream", "uring", []
            case.plan = plan_words(dice, "stream", case.problem, 1)
        else:
            accel = "no-accel"
    if accel != "no-accel":
        case.accel, case.plan = accel, without_engine(case.plan)
    return case


# ------------------------------------------------------------------ processes

def tool(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{shlex.join(map(str, words))}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


CAMPAIGN = os.getpid()


def dies_with_parent():
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != CAMPAIGN:  # it died before the call
        os._exit(2)


def undo(*words):
    """A tool that takes away what was made. The kernel may hold it a moment longer than the run that used it."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return tool(*words)
        except OSError as error:
            if time.monotonic() > deadline:
                return print(f"crash.py: {error}", file=sys.stderr)
            time.sleep(0.1)


def start(words, folder):
    """In a session of its own, so that an interrupt of the campaign is no interrupt of the run; its words go to files."""
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        return subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                start_new_session=True, preexec_fn=dies_with_parent)


def stacks(process):
    """Where every thread is, by gdb if it is there, else as the kernel tells."""
    if shutil.which("gdb"):
        done = subprocess.run(["gdb", "-p", str(process.pid), "-batch", "-ex", "thread apply all bt"], capture_output=True,
                              text=True, timeout=60)
        return done.stdout[-6000:]
    return "\n".join(f"{path}: {Path(path).read_text().strip()}" for path in glob.glob(f"/proc/{process.pid}/task/*/wchan"))


def end_of(process, patience):
    """Waits; a run that does not end is a failure with its stacks."""
    try:
        return process.wait(timeout=patience)
    except subprocess.TimeoutExpired:
        where = stacks(process)
        process.kill()
        process.wait()
        raise Wrong(f"hang: no end after {patience:g} s\n{where}") from None


@dataclasses.dataclass
class End:
    status: int
    error: str
    sent: int = 0         # the signal that was sent to it last
    caught: bool = False  # it had a handler then
    seconds: float = 0
    report: dict = None


# ------------------------------------------------------------------ places

class Place:
    """path: what -d takes; store: what to look at; lines: the commands that made it."""

    def __init__(self, path, store):
        self.path, self.store, self.relieve, self.lines = path, store, lambda: None, []

    def is_directory(self):
        return self.path != self.store


def loop_device(stack, image, count):
    if not image.exists():
        image.touch()
        os.truncate(image, count)
    device = tool("losetup", "--find", "--show", image)
    stack.callback(undo, "losetup", "--detach", device)
    return device


def small_file_system(stack, folder, name, count):
    device, mount = loop_device(stack, folder / f"{name}.img", count), folder / name
    tool("mkfs.ext4", "-q", "-m", "0", "-F", device)
    mount.mkdir()
    tool("mount", device, mount)
    stack.callback(undo, "umount", mount)
    return mount


def leave_free(directory, count):
    """Fills a file system up to so many free bytes; returns the file that does it."""
    ballast = directory / "ballast"
    with open(ballast, "wb") as file:
        take = shutil.disk_usage(directory).free - count
        if take > 0:
            os.posix_fallocate(file.fileno(), 0, take)
    return ballast


def make_directory(stack, folder, need, dice):
    path = folder / "store"
    path.mkdir()
    return Place(path, path / "memext.store")


def make_file(stack, folder, need, dice):
    (folder / "store").mkdir()
    return Place(folder / "store" / "grid.store", folder / "store" / "grid.store")


def make_loop(stack, folder, need, dice):
    device = loop_device(stack, folder / "device.img", need + 16 * MIB)
    return Place(device, device)


def make_thin(stack, folder, need, dice):
    """A device that promises more than there is: a sparse file on a file system with too little space."""
    mount = small_file_system(stack, folder, "outer", need + 48 * MIB)
    (mount / "thin.img").touch()
    os.truncate(mount / "thin.img", need + 16 * MIB)
    ballast = leave_free(mount, int(need * dice.uniform(0.05, 0.95)))
    place = Place(*2 * [loop_device(stack, mount / "thin.img", 0)])
    place.relieve = lambda: ballast.unlink(missing_ok=True)
    return place


def make_mapped(stack, folder, need, dice, target):
    """On a device-mapper device that fails: from time to time (flakey), or in its last part (error)."""
    count = need + 16 * MIB
    under, sectors, name = loop_device(stack, folder / "device.img", count), count // 512, f"{folder.parent.name}-{target}"
    good = f"0 {sectors} linear {under} 0"
    bad_from = int(sectors * dice.uniform(0.1, 0.95)) // 8 * 8
    bad = {"flakey": f"0 {sectors} flakey {under} 0 {dice.randint(1, 2)} 1",
           "error": f"0 {bad_from} linear {under} 0\n{bad_from} {sectors - bad_from} error"}[target]
    table = folder / "table"
    table.write_text(bad + "\n")
    tool("dmsetup", "create", name, table)
    stack.callback(undo, "dmsetup", "remove", name)

    def relieve():
        table.write_text(good + "\n")
        for words in (["suspend", name], ["load", name, table], ["resume", name]):
            tool("dmsetup", *words)
    place = Place(f"/dev/mapper/{name}", f"/dev/mapper/{name}")
    place.relieve = relieve
    return place


MAKERS = {"directory": make_directory, "file": make_file, "loop": make_loop, "thin": make_thin,
          "flakey": lambda *rest: make_mapped(*rest, "flakey"), "error": lambda *rest: make_mapped(*rest, "error")}


def targets():
    """Of device-mapper."""
    try:
        return {line.split()[0] for line in tool("dmsetup", "targets").splitlines() if line.strip()}
    except OSError:
        return set()


# ------------------------------------------------------------------ moments

def moments(dice, place, before, buffers_bytes, seconds, files):
    """{name: whether it has come, asked of (process, seconds since its start)}"""
    share, commits = dice.random(), dice.randint(1, 12)
    after = dice.uniform(0, seconds)
    return {
        f"after {after:.3f} s": lambda process, passed: passed >= after,
        "when it catches signals": lambda process, passed: catches(process, signal.SIGINT),
        "when its store changes": lambda process, passed: newest_superblock(place.store)[0] not in (0, before),
        f"when it has written {share:.2f} of the Buffers": lambda process, passed: written_bytes(process) >= share * buffers_bytes,
        f"after {commits} commits": lambda process, passed: newest_superblock(place.store)[0] >= before + 1 + commits,
        f"when it has written {9 * share:.2f} times the Buffers":
            lambda process, passed: written_bytes(process) >= 9 * share * buffers_bytes,
        **({"when it flushes": lambda process, passed: flushing(process),
            "when it flushes later": lambda process, passed: passed > share * seconds and flushing(process)}
           if CAN_SEE_FLUSHES else {}),
        **({"when it computes": lambda process, passed: computing(files["timeline"]),
            "when it has computed": lambda process, passed: computing(files["timeline"]) and not holds_open(process, files["timeline"].parent)}
           if "timeline" in files else {}),
        **({"when its output is open": lambda process, passed: holds_open(process, files["output"].parent)}
           if "output" in files else {}),
    }


def draw_moment(dice, *what):
    """(text, condition): a third of them plain random times, the rest a state; half with a little delay after it."""
    table = moments(dice, *what)
    names = list(table)
    return (names[0] if dice.random() < 0.33 else dice.choice(names)), table, dice.choice([0, dice.uniform(0, 0.02)])


def wait_for(process, come, patience):
    """False if the process ended before the moment came."""
    begin = time.monotonic()
    while process.poll() is None:
        passed = time.monotonic() - begin
        if passed > patience or come(process, passed):
            return process.poll() is None
        time.sleep(POLL_S)
    return False


# ------------------------------------------------------------------ one campaign

class Campaign:
    def __init__(self, bench, number, case, dice, stack):
        self.bench, self.case, self.dice, self.stack = bench, case, dice, stack
        self.folder = bench.folder / f"run-{number}"
        self.folder.mkdir()
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.outputs = self.folder / "out"
        self.outputs.mkdir()
        (self.folder / "line").mkdir()
        self.lines, self.files, self.reached = [], {}, 0
        self.process, self.limiters, self.may_overwrite = None, [], bench.knows("--overwrite")
        self.accel = accel_words(dice, case.accel)
        stack.callback(self.end_process)
        if case.timeline:
            self.files["timeline"] = self.folder / "line" / "timeline"
        if case.output:
            self.files["output"] = self.outputs / "out.npy"
        choices = [["--commit-every", dice.choice([0, 0.05, 100])], ["--integrity"]]
        self.careful = [word for words in choices if dice.random() < 0.5 and bench.knows(words[0]) for word in words]
        self.harmed = False  # somebody else destroyed the store: it need not be resumed

    def end_process(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def note(self, line):
        self.lines.append(line)

    # ---- words

    def first_words(self, force=False):
        case = self.case
        return [self.bench.memext, "run", *case.problem.words(self.bench.folder), *case.plan, "--backend", case.backend,
                *case.options, *self.accel, *self.careful, "-d", self.place.path, *(["--force"] if force else []), *self.common()]

    def resume_words(self, *more):
        return [self.bench.memext, "run", "--resume", "-d", self.place.path, *more, *self.common()]

    def common(self):
        return ["-q", "--json", self.folder / "report.json", *(["--verify"] if self.case.verify else []),
                *(word for name, path in self.files.items() for word in (f"--{name}", path))]

    def overwriting(self):
        return ["--overwrite"] if self.may_overwrite and self.files.get("output", Path("/none")).exists() else []

    def calm_backend(self):
        """The backend of the first run, without its faults: of a wrapped mapping the layout is that of the wrapper. The accelerator goes on, or the
        cores do."""
        accel = self.accel if self.accel and self.dice.random() < 0.5 else []
        return ["--backend", self.case.backend, *self.case.options, *accel]

    def variant(self):
        """Another backend, other threads, other DRAM: each or none."""
        dice, words = self.dice, []
        backend = dice.choice(BACKENDS)
        words += ["--backend", backend, *backend_options(dice, backend)]
        words += dice.choice([[], ["--threads", dice.choice([1, 2, 3])]])
        words += dice.choice([[], [], ["--dram", dice.choice(["24MiB", "64MiB", "512MiB"])]])
        algorithm = dice.choice(sorted(RESUMABLE))
        plan = plan_words(dice, algorithm, self.case.problem, dice.choice([1, 2]))
        if backend != "mmap" and self.accel and dice.random() < 0.5:
            return words + self.accel + (without_engine(plan) if dice.random() < 0.2 and "--threads" not in words and algorithm != "redundant" else [])
        return words + (plan if dice.random() < 0.2 and "--threads" not in words else [])

    # ---- one process

    def run(self, words, act=None, prefix=()):
        for file in (self.folder / "report.json", self.folder / "line" / "timeline"):
            file.unlink(missing_ok=True)
        words = [*prefix, *words, *self.overwriting()]
        before_output = self.output_bytes()
        line = shlex.join(map(str, words))
        self.note(line)
        begin = time.monotonic()
        self.process = start(words, self.folder)
        self.limiters += [self.process.pid] * bool(prefix)
        end = End(0, "")
        if act is not None:
            act(self.process, end)
        end.status = end_of(self.process, self.bench.patience)
        end.seconds = time.monotonic() - begin
        end.error = (self.folder / "stderr").read_text(errors="replace").strip()
        self.note(f"    # exit status {end.status} after {end.seconds:.2f} s" + (f": {end.error[-400:]}" if end.error else ""))
        self.judge(end, before_output)
        return end

    def output_bytes(self):
        path = self.files.get("output")
        return path.read_bytes() if path is not None and path.is_file() else None

    def judge(self, end, before_output):
        """What holds for every end, whatever was done to the run."""
        if "Traceback" in end.error:
            raise Wrong("a traceback of Python")
        if end.status < 0 and not (end.status == -end.sent and not (end.caught and end.sent != signal.SIGKILL)):
            raise Wrong(f"it died by signal {-end.status}" + (f", though {end.sent} was sent and caught" if end.sent else ""))
        if end.status in (1, 4) or (end.status > 5 and end.status not in (137,)):
            raise Wrong(f"exit status {end.status}" + (": --verify found another result" if end.status == 4 else ""))
        if end.status in (2, 3, 5) and len(end.error.splitlines()[-1] if end.error else "") < 20:
            raise Wrong(f"exit status {end.status} without a sentence")
        if end.status == 5 and end.sent not in (signal.SIGINT, signal.SIGTERM):
            raise Wrong("interrupted, it says, but no signal was sent")
        self.judge_report(end)
        if end.status == 0:
            self.judge_result(end)
        elif "output" in self.files and self.output_bytes() not in (before_output, None):
            self.judge_output()  # whole, though what came after it failed or was killed: the last commit, the end of the store
        elif "output" in self.files and self.output_bytes() != before_output:
            raise Wrong(f"exit status {end.status}, and {self.files['output'].name}, which was there before, is gone")
        if self.case.problem.from_file and self.bench.input_of(self.case.problem) != self.bench.input_before[self.case.problem.number]:
            raise Wrong("the input was changed")

    def judge_report(self, end):
        try:
            text = (self.folder / "report.json").read_text()
        except FileNotFoundError:
            text = ""
        if end.status in (0, 5) and not text:
            raise Wrong(f"exit status {end.status} without the report that was asked for")
        try:
            end.report = json.loads(text) if text else None
        except json.JSONDecodeError as error:
            if end.status >= 0:
                raise Wrong(f"the report is no JSON: {error}") from None
        expected = {0: "done", 5: "interrupted"}.get(end.status)
        if expected and end.report["status"] != expected:
            raise Wrong(f"exit status {end.status}, but the report says {end.report['status']}")
        if end.status == 5:
            if end.report.get("resumed_from", 0) < self.reached:
                raise Wrong(f"step {self.reached} was committed, but it went on from step {end.report['resumed_from']}")
            if "--resume" in end.error:
                self.reached = max(self.reached, end.report["steps_done"])

    def judge_result(self, end):
        checksum = self.bench.oracle(self.case.problem)[0]
        if end.report["checksum"] != checksum:
            raise Wrong(f"WRONG RESULT: exit status 0 and checksum {end.report['checksum']}, not {checksum}")
        if self.case.verify and end.report["verified"] is not True:
            raise Wrong(f"--verify says {end.report['verified']}")
        if "output" in self.files:
            self.judge_output()

    def judge_output(self):
        right = numpy.load(self.bench.oracle(self.case.problem)[1])
        try:
            made = numpy.load(self.files["output"])
        except (OSError, ValueError) as error:
            raise Wrong(f"the output cannot be read: {error}") from None
        if made.dtype != right.dtype or made.shape != right.shape or made.tobytes() != right.tobytes():
            raise Wrong("WRONG RESULT: the output differs from the undisturbed run's")

    # ---- what is done to a process

    def moment(self):
        before = newest_superblock(self.place.store)[0]
        seconds = self.bench.seconds[self.case.problem.number, self.case.algorithm, self.case.place]
        name, table, delay = draw_moment(self.dice, self.place, before, self.buffers_bytes, seconds, self.files)

        def come(process):
            begin = time.monotonic()
            if not wait_for(process, table[name], self.bench.patience):
                self.note(f"    # was through before the moment came: {name}")
                self.bench.count("moments: it was through before")
                return False
            time.sleep(delay)
            self.bench.count(f"moments: {re.sub('[0-9.]+', 'N', name)}")
            self.note(f"    # {name}{f' and {delay * 1e3:.1f} ms more' if delay else ''}, {time.monotonic() - begin:.3f} s after the start:")
            return True
        return come

    def act_kill(self, numbers):
        come, number = self.moment(), self.dice.choice(numbers)

        def act(process, end):
            if come(process):
                end.caught, end.sent = catches(process, number), number
                process.send_signal(number)
                self.note(f"    # {signal.Signals(number).name}")
                self.bench.count(f"signals: {signal.Signals(number).name}")
        return act

    def act_stop(self):
        come, pause = self.moment(), self.dice.uniform(0.02, 0.3)

        def act(process, end):
            if come(process):
                process.send_signal(signal.SIGSTOP)
                time.sleep(pause)
                process.send_signal(signal.SIGCONT)
                self.note(f"    # SIGSTOP, SIGCONT {pause:.3f} s later")
        return act

    def act_truncate(self):
        come, share = self.moment(), self.dice.random()

        def act(process, end):
            if come(process) and self.place.store.exists():
                size = self.place.store.stat().st_size
                left = max(2 * MIB, int(size * share)) // 4096 * 4096
                if left < size:
                    os.truncate(self.place.store, left)
                    self.harmed = True
                    self.note(f"    # {self.place.store} cut from {size} to {left} bytes")
        return act

    def act_intruder(self):
        come, before = self.moment(), newest_superblock(self.place.store)[0]

        def act(process, end):
            # Before the first run has made its store the second may be the first.
            if not come(process) or not wait_for(process, lambda process, _: newest_superblock(self.place.store)[0] > before,
                                                 self.bench.patience):
                return
            words = [self.bench.memext, "run", "-n", 5, 6, 7, "-t", 1, "--backend", self.dice.choice(BACKENDS), "-q", "-d", self.place.path]
            if self.dice.random() < 0.5:
                words = [self.bench.memext, "run", "--resume", "-q", "-d", self.place.path]
            done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=self.bench.patience)
            self.note(f"    # meanwhile: {shlex.join(map(str, words))} -> {done.returncode} {done.stderr.strip()[:200]}")
            if process.poll() is None and done.returncode != 2:
                raise Wrong(f"a second run in the same place ended with status {done.returncode} while the first was under way")
        return act

    # ---- the whole

    def prepare(self):
        """Refused plans are no campaign; returns False then."""
        self.place = Place(self.folder, self.folder / "none")
        words = [*self.first_words(), "--dry-run"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=self.bench.patience)
        if done.returncode != 0:
            return False
        planned = json.loads((self.folder / "report.json").read_text())
        self.buffers_bytes = 2 * planned["layout"]["buffer_bytes"]
        need = 2 * MIB + 3 * (planned["layout"]["buffer_bytes"] + 2 * MIB) + planned["side_file_bytes"]
        self.place = MAKERS[self.case.place](self.stack, self.folder, need, self.dice)
        return True

    def go(self):
        """Returns how it ended, in a word or two."""
        trouble = self.case.trouble
        if trouble in ("kill", "signal", "stop"):
            for _ in range(self.case.deaths):
                if self.next_run(self.draw_act()).status == 0:
                    return "done"
        else:
            end = getattr(self, f"trouble_{trouble.replace('-', '_')}")()
            if end.status == 0:
                return "done"
            if end.status == 2 and trouble in ("output", "memory"):
                self.bench.count(f"{trouble}: refused")
        self.place.relieve()
        return self.come_to_an_end()

    def draw_act(self):
        trouble = self.case.trouble
        if trouble == "stop" and self.dice.random() < 0.6:
            return self.act_stop()
        return self.act_kill([signal.SIGKILL] if trouble == "kill" else [signal.SIGINT, signal.SIGTERM] if trouble == "signal"
                             else [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])

    def next_run(self, act=None, calm=False):
        """The first run, or what follows from the state of the store: a resumed one, or another first one."""
        generation, note_bytes, finished = newest_superblock(self.place.store)
        if not generation:  # none, or one that was under construction
            return self.expect(self.new_run(act), {0} if act is None else None)
        if note_bytes and self.case.algorithm in RESUMABLE and not finished:
            return self.resume(act, calm)
        refused = self.run(self.resume_words(*self.calm_backend()))
        if refused.status == 0 and not note_bytes:  # of an algorithm in place the complete result is committed
            raise Wrong("it resumed from a store without a commit to go on from")
        if refused.status not in (0, 2):
            raise Wrong(f"--resume of what cannot be resumed ended with status {refused.status}")
        return refused if refused.status == 0 else self.expect(self.new_run(act), {0} if act is None else None)

    def new_run(self, act):
        """Where a store is in the way it says so, and --force takes it."""
        end = self.run(self.first_words(), act)
        if end.status == 2 and "--force" in end.error:
            self.bench.count("a store without a commit was kept: --force")
            end = self.run(self.first_words(force=True), act)
        return end

    def export(self):
        """What is committed can be had from a device that takes no writes."""
        target = self.folder / "exported.npy"
        words = [str(self.bench.memext), "export", str(self.place.path), "-o", str(target), "-q"]
        self.note(shlex.join(words))
        done = subprocess.run(words, capture_output=True, text=True, timeout=self.bench.patience)
        if done.returncode == 2 and "no state yet" in done.stderr:  # step 0 is still in what the run began with
            return
        if done.returncode != 0 or not target.exists():
            raise Wrong(f"memext export ended with status {done.returncode}: {done.stderr.strip()}")

    def resume(self, act, calm):
        variant = [] if calm or self.dice.random() < 0.4 else self.variant()
        end = self.run(self.resume_words(*(variant or self.calm_backend())), act)
        if end.status == 2 and variant:
            self.bench.count("resumed otherwise: refused")
            end = self.run(self.resume_words(*self.calm_backend()), act)
        elif variant and end.status == 0:
            self.bench.count("resumed otherwise: done")
        if end.status == 3 and "cannot be written" in end.error:
            self.bench.count("resume: the device takes no writes any more")
            self.export()
        elif end.status in (2, 3) and not self.harmed:
            raise Wrong("a commit was made, but it cannot be resumed")
        return end

    def expect(self, end, allowed):
        if end.status == 3 and "cannot be written" in end.error:
            # What a mapping could not write is told to whoever flushes the device next, once: he cannot know that it was not his.
            self.bench.count("a new run: the device told of an earlier error")
            return end
        if allowed is not None and end.status not in allowed:
            raise Wrong(f"exit status {end.status} where only {', '.join(map(str, sorted(allowed)))} is right")
        if allowed is None and end.status in (2, 3):
            raise Wrong(f"exit status {end.status} without any reason")
        self.learn(end)
        return end

    def learn(self, end):
        key = self.case.problem.number, self.case.algorithm, self.case.place
        if end.status == 0 and not end.sent:
            self.bench.seconds[key] = end.seconds

    def come_to_an_end(self):
        """Nothing disturbs any more: within a few runs there is the right result."""
        for _ in range(3):
            if self.harmed:
                end = self.run(self.resume_words(*self.calm_backend()))
                if end.status != 0:
                    end = self.expect(self.run(self.first_words(force=True)), {0})
                return "done after its store was cut off"
            if self.next_run(calm=self.dice.random() < 0.5).status == 0:
                return "done after trouble"
        raise Wrong("three calm runs did not come to an end")

    # ---- troubles that are not signals

    def draw_fault(self):
        """(words, statuses that are right)"""
        dice = self.dice
        kind = dice.choice(["eio", "enospc", "fail_after", "harmless"])
        spec = {"eio": f"eio={dice.choice([0.3, 0.01, 0.001]):g}", "enospc": f"enospc={dice.choice([0.3, 0.01, 0.001]):g}",
                "fail_after": f"fail_after={int(2 ** dice.uniform(0, 13))}",
                "harmless": f"short={dice.uniform(0, 0.6):.2f},reorder=1,delay_us={dice.choice([0, 100, 1000])},"
                            f"refuse={dice.uniform(0, 0.4):.2f},eagain={dice.choice([0, 0.01])}"}[kind]
        return ["--fault", f"seed={dice.randint(1, 10**6)},{spec}"], {0} if kind == "harmless" else {0, 3}

    def trouble_fault(self):
        """Errors of the wrapped backend, and in half of the cases again when the run is resumed."""
        self.case.backend = f"fault:{self.case.backend}"
        words, right = self.draw_fault()
        end = self.expect(self.run([*self.first_words(), *words]), right)
        _, note_bytes, finished = newest_superblock(self.place.store)
        if end.status == 3 and note_bytes and not finished and self.case.algorithm in RESUMABLE and self.dice.random() < 0.5:
            words, right = self.draw_fault()
            end = self.expect(self.run(self.resume_words(*self.calm_backend(), *words)), right)
        return end

    def trouble_accel_fault(self):
        """Copy or launch number N fails, at once or when it is found to be done."""
        word, number = self.dice.choice(["fault", "late"]), int(2 ** self.dice.uniform(0, 9))
        self.accel, before = ["--accel", f"{self.accel[1]},{word}={number}"], self.accel
        end = self.expect(self.run(self.first_words()), {0, 3})
        self.accel = before
        return end

    def trouble_call(self):
        """Call number N of all system calls fails."""
        number = int(2 ** self.dice.uniform(0, 9))
        errno = self.dice.choice([5, 5, 28, 12, 4])
        words = [*self.first_words(), "--fault", f"call={number},errno={errno}"]
        return self.expect(self.run(words), {0, 2, 3})

    def trouble_full(self):
        return self.expect(self.run(self.first_words()), {0, 3})

    def trouble_flakey(self):
        return self.expect(self.run(self.first_words()), {0, 2, 3})

    trouble_error = trouble_flakey

    def trouble_full_output(self):
        """The file system of the output has too little space; the result has to be had all the same."""
        grid = self.bench.oracle(self.case.problem)[1].stat().st_size
        mount = small_file_system(self.stack, self.folder, "full", grid + 24 * MIB)
        leave_free(mount, int(grid * self.dice.uniform(0, 0.95)))
        self.files["output"] = mount / "out.npy"
        end = self.expect(self.run(self.first_words()), {2, 3})
        if set(os.listdir(mount)) - {"lost+found", "ballast"}:
            raise Wrong(f"on the full file system lies {os.listdir(mount)}")
        self.files["output"] = self.outputs / "out.npy"
        return end

    def trouble_memory(self):
        limit = self.dice.choice([3, 5, 8, 12, 20, 32, 48]) * MIB
        more = self.dice.choice([[], ["--dram", limit, "--reserve", 0]])
        end = self.run([*self.first_words(), *more], prefix=[LIMIT_MEMORY, limit, "--keep-cache", "--"])
        if end.status == 137:
            self.bench.count("memory: killed by the kernel at the limit")
        return self.expect(end, {0, 2, 3, 137})

    def trouble_truncate(self):
        end = self.run(self.first_words(), self.act_truncate())
        return self.expect(end, {0, 3} if self.harmed else {0})

    def trouble_intruder(self):
        return self.expect(self.run(self.first_words(), self.act_intruder()), {0})

    def trouble_output(self):
        kind = self.dice.choice(["absent directory", "directory", "exists", "input", "killed", "report"])
        self.note(f"# output: {kind}")
        path = self.files["output"]
        if kind == "killed":
            come = self.moment_of_output()
            return self.expect(self.run(self.first_words(), come), {0, -9})
        if kind == "report":
            words = [*self.first_words(), "--json", self.folder / "absent" / "report.json"]
            return self.expect(self.run(words), {2})
        if kind == "absent directory":
            self.files["output"] = self.folder / "absent" / "out.npy"
        elif kind == "directory":
            path.mkdir()
        elif kind == "input" and self.case.problem.from_file:
            return self.output_over_input()
        else:
            path.write_bytes(b"somebody's data")
        may, self.may_overwrite = self.may_overwrite, False
        end = self.run(self.first_words())
        self.may_overwrite = may
        if end.status == 0:
            raise Wrong("an output that was there before was replaced without --overwrite")
        self.expect(end, {2})
        self.files["output"] = self.outputs / "out-2.npy"
        return end

    def output_over_input(self):
        """On a copy of the input, so that later campaigns have theirs."""
        copy = self.folder / "grid.npy"
        shutil.copyfile(self.bench.folder / f"input-{self.case.problem.number}.npy", copy)
        words = [copy if word == self.bench.folder / f"input-{self.case.problem.number}.npy" else
                 copy if word == self.files["output"] else word for word in self.first_words()]
        before, files = copy.read_bytes(), self.files
        self.files = {}
        end = self.run(words)
        self.files = files
        if copy.read_bytes() != before:
            raise Wrong("--output over the --input: the input is gone")
        return self.expect(end, {2})

    def moment_of_output(self):
        def act(process, end):
            if wait_for(process, lambda process, passed: holds_open(process, self.outputs), self.bench.patience):
                time.sleep(self.dice.choice([0, self.dice.uniform(0, 0.01)]))
                end.sent = signal.SIGKILL
                process.kill()
                self.note("    # SIGKILL while its output is open")
        return act

    # ---- afterwards

    def check_place(self):
        """After a result: no store in a directory, and nothing beside a store that was named."""
        parent = self.folder / "store"
        left = sorted(os.listdir(parent)) if parent.is_dir() else []
        if left != ([] if self.place.is_directory() else [self.place.store.name] if self.case.place == "file" else []):
            raise Wrong(f"left in the place: {', '.join(left)}")
        strays = [name for name in os.listdir(self.outputs) if name not in ("out.npy", "out-2.npy")]
        if strays:
            raise Wrong(f"left beside the output: {', '.join(strays)}")


# ------------------------------------------------------------------ all campaigns

class Bench:
    """What campaigns share: the folder, undisturbed results, counts."""

    def __init__(self, o):
        self.memext, self.only = Path(o.memext).resolve(), [word for word in (o.only or "").split(",") if word]
        self.counts, self.seconds, self.patience = collections.Counter(), collections.defaultdict(lambda: 1.0), o.patience
        self.folder = Path(o.place).resolve() / f"{FOLDER}{os.getpid()}"
        self.oracles, self.input_before = {}, {}
        self.problems = [draw_problem(random.Random(f"{o.seed} problem {i}"), i) for i in range(24)]
        self.help = tool(self.memext, "run", "--help")

    def knows(self, option):
        return option in self.help

    def count(self, what):
        self.counts[what] += 1

    def input_of(self, problem):
        return (self.folder / f"input-{problem.number}.npy").read_bytes()

    def oracle(self, problem):
        """(checksum, file) of the undisturbed run: everything in DRAM, one step after the other."""
        if problem.number not in self.oracles:
            problem.make_input(self.folder)
            if problem.from_file:
                self.input_before[problem.number] = self.input_of(problem)
            file, report = self.folder / f"right-{problem.number}.npy", self.folder / "right.json"
            tool(self.memext, "run", *problem.words(self.folder), "--backend", "dram", "--algorithm", "direct", "--engine", "iblock",
                 "--output", file, "-q", "--json", report)
            self.oracles[problem.number] = json.loads(report.read_text())["checksum"], file
        return self.oracles[problem.number]

    def unavailable(self):
        """{trouble or place: why it cannot be had here}"""
        why = {}
        if os.geteuid() != 0:
            why |= dict.fromkeys(["loop", "full", "full-output", "flakey", "error"], "loop devices and mounts need root")
        else:
            have = targets()
            for target in ("flakey", "error"):
                if target not in have or "linear" not in have:
                    why[target] = f"this kernel has no device-mapper target {target}"
            with contextlib.ExitStack() as stack:
                try:
                    small_file_system(stack, self.folder, "probe", 8 * MIB)
                except OSError as error:
                    why |= dict.fromkeys(["loop", "full", "full-output", "flakey", "error"], str(error))
            (self.folder / "probe.img").unlink(missing_ok=True)
        done = subprocess.run([LIMIT_MEMORY, "64MiB", "--keep-cache", "--", "true"], capture_output=True, text=True)
        if done.returncode != 0:
            why["memory"] = done.stderr.strip()
        works = {f"accel-{a['name']}": a for a in json.loads(tool(self.memext, "info", "-q", "--json", "-")).get("accelerators", [])}
        for accel in ("accel-host", "accel-opencl"):
            if not works.get(accel, {}).get("works"):
                why[accel] = works.get(accel, {}).get("why", "this memext has no accelerators")
        if not self.can_fail_calls():
            why["call"] = "this memext has no --fault call=N"
        return why

    def can_fail_calls(self):
        (self.folder / "calls").mkdir()
        words = [self.memext, "run", "-n", "5", "6", "7", "-t", "1", "-d", self.folder / "calls", "--backend", "fault:aio", "-q", "--fault",
                 "call=1000000"]
        done = subprocess.run(words, capture_output=True, text=True)
        shutil.rmtree(self.folder / "calls")
        return done.returncode == 0

    def wanted(self, case):
        """Each sort of word asked for is met by one of its words."""
        sorts = [TROUBLES, ALGORITHMS, BACKENDS, PLACES, ACCELS]
        values = [case.trouble, case.algorithm, case.backend, case.place, case.accel]
        asked = [[word for word in self.only if word in sort and (sort is not PLACES or word not in TROUBLES)] for sort in sorts]
        return all(not words or value in words for words, value in zip(asked, values))


def left_behind(folder, pids):
    """Loop devices, mounts, cgroups of this campaign that are still there; some go a moment after their last user."""
    def look():
        found = [f"loop device of {line}" for line in tool("losetup", "--noheadings", "--output", "BACK-FILE").splitlines()
                 if line.strip().startswith(f"{folder}/")]
        found += [f"mount {line.split()[1]}" for line in Path("/proc/mounts").read_text().splitlines() if line.split()[1].startswith(f"{folder}/")]
        found += [f"swap file {line.split()[0]}" for line in Path("/proc/swaps").read_text().splitlines() if line.startswith(f"{folder}/")]
        return found + [path for pid in pids for path in glob.glob(f"/sys/fs/cgroup/**/memext-limit-{pid}", recursive=True)]
    deadline = time.monotonic() + 10
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def sweep(place):
    """What a campaign left behind that was itself killed with -9. A loop device that is mounted goes with its mount."""
    for folder in glob.glob(f"{glob.escape(str(place))}/{FOLDER}*"):
        name = os.path.basename(folder)
        if os.path.exists(f"/proc/{name.rsplit('-', 1)[1]}"):
            continue
        for path in glob.glob(f"/dev/mapper/{name}-*"):
            undo("dmsetup", "remove", os.path.basename(path))
        for line in tool("losetup", "--noheadings", "--output", "NAME,BACK-FILE").splitlines():
            if line.split(None, 1)[1].startswith(f"{folder}/"):
                undo("losetup", "--detach", line.split()[0])
        for line in reversed(Path("/proc/mounts").read_text().splitlines()):
            if line.split()[1].startswith(f"{folder}/"):
                undo("umount", line.split()[1])
        shutil.rmtree(folder, ignore_errors=True)


def one(bench, o, number, why_not):
    """Draws campaign `number` and runs it; returns (case, word for its end, failure or None)."""
    for again in range(10000):
        dice = random.Random(f"{o.seed} {number} {again}")
        case = draw_case(dice, bench.problems)
        if not bench.wanted(case):
            continue
        missing = [word for word in (case.trouble, case.place, case.accel) if word in why_not]
        if missing:
            bench.count(f"not available: {missing[0]}")
            continue
        bench.oracle(case.problem)
        with contextlib.ExitStack() as stack:
            campaign = Campaign(bench, number, case, dice, stack)
            if not campaign.prepare():
                bench.count("drawn, but no plan")
                continue
            try:
                ended = campaign.go()
                campaign.check_place()
                failure = None
            except Wrong as error:
                ended, failure = "FAILED", str(error)
        left = left_behind(campaign.folder, campaign.limiters)
        if left and failure is None:
            ended, failure = "FAILED", f"left behind: {', '.join(left)}"
        return case, ended, failure and {"run": number, "case": str(case), "why": failure, "commands": campaign.lines}
    sys.exit(f"crash.py: --only {','.join(bench.only)}: nothing of that can be run here: {why_not}")


def again_words(o, number):
    only = f" --only {o.only}" if o.only else ""
    return f"experiments/crash.py --seed {o.seed} --skip {number} --runs 1{only}"


def tell(o, failure):
    print(f"FAILED: run {failure['run']} ({failure['case']}): {failure['why']}\n    again: {again_words(o, failure['run'])}")
    for line in failure["commands"]:
        print(f"    {line}")
    sys.stdout.flush()


def campaign_of_campaigns(o, bench):
    why_not, failures, ends = bench.unavailable(), [], collections.Counter()
    for word, why in why_not.items():
        print(f"not available: {word}: {why}")
    begin = time.monotonic()
    for number in range(o.skip, o.skip + o.runs):
        case, ended, failure = one(bench, o, number, why_not)
        ends[case.trouble, ended] += 1
        if failure:
            failures.append(failure)
            tell(o, failure)
        done = number - o.skip + 1
        if done % 10 == 0:
            print(f"run {done} of {o.runs}: {len(failures)} failed, {time.monotonic() - begin:.0f} s", flush=True)
    return ends, failures, time.monotonic() - begin


def summary(o, bench, ends, failures, seconds):
    print(f"\n{o.runs} runs, seed {o.seed}, {seconds:.0f} s")
    for (trouble, ended), count in sorted(ends.items()):
        print(f"{count:6}  {trouble}: {ended}")
    for what, count in sorted(bench.counts.items()):
        print(f"{count:6}  ({what})")
    kinds = collections.Counter(re.sub(r"\b[0-9a-f]{16}\b|\b[0-9]{2,}\b", "N", failure["why"].splitlines()[0])[:120] for failure in failures)
    for why, count in kinds.most_common():
        print(f"FAILED {count} times: {why}")
    wrong = sum("WRONG RESULT" in failure["why"] for failure in failures)
    hangs = sum(failure["why"].startswith("hang") for failure in failures)
    print(f"{len(failures)} failed, of these {wrong} wrong results and {hangs} hangs")
    for failure in failures:
        print(f"    {again_words(o, failure['run'])}")
    if o.json:
        Path(o.json).write_text(json.dumps({
            "runs": o.runs, "seed": o.seed, "seconds": seconds, "failures": failures, "wrong": wrong, "hangs": hangs,
            "ends": [{"trouble": t, "end": e, "count": n} for (t, e), n in sorted(ends.items())], "counts": dict(bench.counts)}, indent=1))


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--runs", type=int, default=60, metavar="N")
    p.add_argument("--seed", default="1", metavar="S")
    p.add_argument("--skip", type=int, default=0, metavar="K", help="begin with campaign K of this seed")
    p.add_argument("--only", metavar="WORDS", help=f"of {', '.join(dict.fromkeys([*TROUBLES, *ALGORITHMS, *BACKENDS, *PLACES, *ACCELS]))}")
    p.add_argument("--place", default=str(ROOT / "build"), metavar="DIR", help="directory on storage to work in")
    p.add_argument("--memext", default=str(ROOT / "build" / "release" / "memext"), metavar="PROGRAM")
    p.add_argument("--patience", type=float, default=240, metavar="SECONDS",
                   help="a run that takes longer hangs; the longest takes seconds, on a machine that does much else a minute")
    p.add_argument("--json", metavar="FILE", help="counts and failures")
    o = p.parse_args()
    known = {*TROUBLES, *ALGORITHMS, *BACKENDS, *PLACES, *ACCELS}
    for word in (o.only or "").split(","):
        if word and word not in known:
            p.error(f"--only: {word} is none of {', '.join(sorted(known))}")
    return o


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def leave(number, _):
    """The first signal ends the campaign; nothing disturbs the clearing up."""
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    o = options()
    for number in ENDING:  # SIGINT is ignored by what a script starts in the background, and children inherit that
        signal.signal(number, leave)
    sweep(Path(o.place).resolve())
    bench = Bench(o)
    bench.folder.mkdir(parents=True)
    try:
        ends, failures, seconds = campaign_of_campaigns(o, bench)
        summary(o, bench, ends, failures, seconds)
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
