#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What other tools do scientists use when a volume does not fit into memory, and how long do they take?

    experiments/rivals/run.py --quick | --full [--cases star7,wave] [--factors 4,8] [--rivals NAME,NAME]

The same star7 (f64) and the same acoustic wave (order 8, f32, a velocity and a sponge per cell), from .npy files to a .npy file, are computed by memext
and by other tools: virtual memory with swap, numpy.memmap (C rows or numba, with one or k steps for each pass), h5py slabs, dask with zarr, and UMap. All of them compute with one row
function in C, of one kernel file. Those named numba have the same operations in the same order instead. Each tool runs in a memory cgroup (experiments/limit-memory) that also counts
the page cache. Its limit is the DRAM of the comparison, plus what the interpreter and libraries take before they see data. The read-ahead of the disk is the usual default of Linux
(--read-ahead), since the 8 MiB of some disks thrash a page cache of 32 MiB. For each tool at least five settings are tried, and then the whole run has the best ones.
Trials have a few steps, those of memext all steps. A result counts if it has the bits of the plain loop in memory.

DRAM is the size of the data (both arrays of state, and fields that are read) divided by --factors. A whole run that would take more than --most seconds
measures fewer steps, and its seconds for all steps are extrapolated; the table says so.

If a run is interrupted, or stopped by --minutes, start the same command again to continue. If memext, UMap or a Python package has changed by then,
the runs of these tools are made again. The file of before is kept under another name. Results are rivals.json and rivals.md in --output (default
results/SCALE/rivals), which analysis/report.py shows. Python packages go into a virtual environment in --tools. UMap is compared if --umap PREFIX names
its installation.
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
    scale.add_argument("--quick", dest="scale", action="store_const", const="quick", help="use a small grid and few steps: takes minutes")
    scale.add_argument("--full", dest="scale", action="store_const", const="full", help="use a larger grid and 200 steps: takes hours")
    p.add_argument("--cases", default=",".join(CASES), help="cases to compare, separated by commas (default: all, " + ",".join(CASES) + ")")
    p.add_argument("--factors", default="4,8", help="sizes of the data divided by the DRAM, separated by commas (default: 4,8)")
    p.add_argument("--rivals", default=",".join(RIVALS), help="tools to compare, separated by commas (default: all, " + ",".join(RIVALS) + ")")
    p.add_argument("--edge", type=int, help="cells of an edge of the grid, frame included (default: 256 with --quick, 400 with --full)")
    p.add_argument("--shape", type=int, nargs=3, metavar=("NZ", "NY", "NX"), help="cells of the grid, frame included, for a grid that is not a cube")
    p.add_argument("--steps", type=int, help="steps of a whole run (default: 40 with --quick, 200 with --full)")
    p.add_argument("--most", type=float, metavar="SECONDS", help="a whole run that would take longer measures fewer steps (default: 20 with --quick, 600 with --full)")
    p.add_argument("--limit", type=float, metavar="SECONDS", help="time limit of a run that tries settings, which has all steps of memext and a few steps of the other tools; swap has three times as long (default: 20 with --quick, 120 with --full)")
    p.add_argument("--repeats", type=int, default=5, help="number of repeats of every whole run; the table has medians (default: 5)")
    p.add_argument("--read-ahead", default="128", metavar="KIB", help="read-ahead of the disk under --data in KiB while this runs; `machine` does not change it (default: 128, the usual default of Linux)")
    p.add_argument("--settings", type=int, default=99, metavar="N", help="try at most N settings of each tool (for tests)")
    p.add_argument("--search", action="store_true", help="only try settings and compute the results of the plain loop; a later call uses them for its whole runs")
    p.add_argument("--minutes", type=float, help="begin no run after this many minutes; start the same command again to continue")
    p.add_argument("--data", default="/var/tmp/memext-experiments", help="directory on the storage to use; its temporary files are removed (default: /var/tmp/memext-experiments)")
    p.add_argument("--tools", default=os.path.join(ROOT, "build", "rivals"), help="directory for the virtual environment, which stays (default: build/rivals)")
    p.add_argument("--python", help="use this Python and its packages instead of a virtual environment")
    p.add_argument("--umap", metavar="PREFIX", help="prefix of an installed UMap (LLNL), with PREFIX/include/umap/umap.h and PREFIX/lib/libumap.so; without it UMap is not compared")
    p.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="directory with memext (default: build/release)")
    p.add_argument("--output", help="directory for the results (default: results/SCALE/rivals)")
    p.add_argument("--retry-failed", action="store_true", help="run again what failed before")
    p.add_argument("--no-system", action="store_true", help="change nothing on this machine; without a memory limit the comparison means nothing")
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
        p.error("--factors: give numbers above 0, separated by commas, such as 4,8")
    for known, given, what in ((CASES, o.cases, "--cases"), (RIVALS, o.rivals, "--rivals")):
        if not set(given) <= set(known):
            p.error(f"{what} {','.join(given)}: the choices are {', '.join(known)}")
    if o.umap is not None:
        o.umap = os.path.abspath(o.umap)
        try:
            umap_library(o.umap)
        except Failed as error:
            p.error(f"--umap: {error}")
    if not (o.read_ahead.isdigit() or o.read_ahead == "machine"):
        p.error(f"--read-ahead {o.read_ahead}: give a number of KiB, such as 128, or machine")
    o.shape = o.shape or [o.edge] * 3
    o.output = os.path.abspath(o.output or os.path.join(ROOT, "results", o.scale, "rivals"))
    o.threads = len(os.sched_getaffinity(0))
    o.begin = time.monotonic()
    return o


@contextlib.contextmanager
def read_ahead(o, owner):
    """Sets the read-ahead of the disk during the runs, and o.read_ahead_kb to its value; None if the data is not on a disk."""
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
        if not o.search:  # timed together with the other runs, even if the search has a result of it
            runs.run(case, 0, "memory", {"slab": 8}, o.steps, "plain")
        for path in filter(os.path.exists, case.inputs):
            os.unlink(path)
    return runs


def show(o):
    """Prints the table, and writes it beside the results."""
    from analysis import rivals

    with open(os.path.join(o.output, "rivals.json")) as file:
        text = rivals.markdown(json.load(file))
    with open(os.path.join(o.output, "rivals.md"), "w") as file:
        file.write(text)
    print(text)


def main():
    o = options()
    if not os.path.exists(os.path.join(o.build, "memext")):
        sys.exit(f"rivals/run.py: {o.build}/memext does not exist; build it with: cmake --preset release && cmake --build --preset release")
    if os.geteuid() != 0 and not o.no_system:
        sys.exit("rivals/run.py: a memory limit needs root; --no-system runs without a limit, but then the comparison means nothing")
    say(f"with --no-system this changes only files on this machine, in {o.data}, {o.tools} and {o.output}" if o.no_system else
        f"while it runs, this makes cgroups with a memory limit and a swap file in {o.data}, drops the page cache, changes the read-ahead of the disk, and makes files in {o.data}. All this is undone afterwards. Files in {o.tools} and {o.output} stay")
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
        sys.exit(f"rivals/run.py: {error}")
    except OutOfTime:
        say(f"--minutes {o.minutes:g} are over; start the same command again to continue")
        status = 75
    except KeyboardInterrupt:
        sys.exit(f"rivals/run.py: interrupted; {o.output} has the complete runs; start the same command again to continue")
    show(o)
    return status


if __name__ == "__main__":
    sys.exit(main())
