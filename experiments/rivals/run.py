#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What else does a scientist run when a volume does not fit, and how long does that take?

    experiments/rivals/run.py --quick | --full [--cases star7,wave] [--factors 4,8] [--rivals NAME,NAME]

The same star7 (f64) and the same acoustic wave (order 8, f32, a velocity and a sponge per cell), from .npy files to a .npy file, by memext and by what is
used in its place: virtual memory with swap, numpy.memmap (C rows or numba, a step a pass or k), h5py slabs, dask with zarr, UMap. One row function
in C, of one kernel file, computes in all of them but those named numba, which have the same operations in the same order. Each runs in a memory
cgroup (experiments/limit-memory) that counts the page cache too, of the DRAM of the comparison and what its interpreter and libraries
take before they see data. The disk reads as far ahead as Linux does by default (--read-ahead), since 8 MiB, which some disks bring, thrash a page cache of 32. Each is looked for at its best: at least five settings with a few steps each, then the whole run with the best. A
result counts if it has the bits of the plain loop in memory.

DRAM is the data (both arrays of state, and fields that are read) over --factors. A whole run that would take more than --most seconds is measured
over fewer steps, and its seconds for all steps are computed from those; the table says so.

The same command goes on where an interrupted one stopped; --minutes stops in time. Results: rivals.json and rivals.md in --output (default
results/SCALE/rivals), which analysis/report.py shows. Python packages go into a virtual environment in --tools. UMap is compared where it is installed
(--umap PREFIX).
"""
import argparse
import contextlib
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(os.path.dirname(HERE)), os.path.dirname(HERE), HERE]

from rivalry.case import Case  # noqa: E402
from rivalry.programs import Failed, OutOfTime, python_of, say, umap_library  # noqa: E402
from rivalry.runs import Runs  # noqa: E402
from rivalry.table import CASES, RIVALS, ROOT  # noqa: E402
from runner import host, knobs, ownership, registry  # noqa: E402

SCALES = {"quick": {"edge": 256, "steps": 40, "most": 20.0, "limit": 20.0}, "full": {"edge": 400, "steps": 200, "most": 600.0, "limit": 120.0}}


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
    p.add_argument("--repeats", type=int, default=5, help="of every whole run, in turn; the table has medians (default 5)")
    p.add_argument("--read-ahead", default="128", metavar="KIB", help="of the disk under --data, in KiB, put back afterwards; `machine` leaves it as it is (default 128, which is Linux's)")
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
    if not (o.read_ahead.isdigit() or o.read_ahead == "machine"):
        p.error(f"--read-ahead {o.read_ahead}: it takes a number of KiB, such as 128, or machine")
    o.shape = o.shape or [o.edge] * 3
    o.output = os.path.abspath(o.output or os.path.join(ROOT, "results", o.scale, "rivals"))
    o.threads = len(os.sched_getaffinity(0))
    o.begin = time.monotonic()
    return o


@contextlib.contextmanager
def read_ahead(o, owner):
    """The disk reads so far ahead while the runs last; o.read_ahead_kb is what it is then, None where the data is on no disk."""
    device = host.device_of(o.data)
    path = knobs.path_of("read_ahead_kb", device)
    with contextlib.ExitStack() as stack:
        if not o.no_system and o.read_ahead != "machine" and path.exists():
            stack.enter_context(ownership.held("settings"))
            registry.sweep(say, settings=True)
            stack.enter_context(knobs.applied({"read_ahead_kb": o.read_ahead}, device, owner))
        o.read_ahead_kb = int(knobs.value_of(path)) if path.exists() else None
        yield


def measure(o, owner):
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
        f"changes on this machine while it runs: cgroups with a memory limit, a swap file in {o.data}, the page cache dropped, the read-ahead of the disk; files in {o.data}; and for good: {o.tools}, {o.output}")
    ownership.interruptible()
    status = 0
    try:
        if not o.no_system:
            registry.sweep(say)
        with registry.Owner("rivals/run.py") as owner:
            os.environ.update(owner.mark())
            os.makedirs(o.data, exist_ok=True)
            with read_ahead(o, owner):
                measure(o, owner)
    except (Failed, ownership.RegistryError, knobs.KnobError) as error:
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
