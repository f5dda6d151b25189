# SPDX-License-Identifier: BSD-3-Clause
"""What is drawn at random: problems, plans, places and troubles, each with its weight."""
import dataclasses
import re

import numpy

MIB = 2**20
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
