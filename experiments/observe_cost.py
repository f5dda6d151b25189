#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What do a timeline and a trace cost a run, and what do sides, points, norms and snapshots cost? Runs a plain run and one with each of them in turn, several times.

For each kind this prints the median, least and most seconds of the computation, and how much slower it is than the plain run of its round. That is the
median of the ratios, since a machine drifts, with its standard error (from the quartiles): a small error shows that the repeats were enough. The last
column has the bytes of the files that were written.

Kinds that applications ask for: mirror (all sides), points (1,000 sources and 1,000 probes at random cells), norms (every 100 steps) and snapshots
(every 4th cell, every 100 steps). Give --plan, so that these runs and the plain run have the same plan. Otherwise the tuner may choose another plan,
and its cost is measured:

       experiments/observe_cost.py --repeats 15 --kinds plain,mirror,points,norms,snapshots -- --no-fuse -n 254 254 1214 -t 200 -d /scratch \
           --dram 148MiB --plan "stream engine=tiled by=254 bz=1214 bt=50 slab=18 ahead=1 threads=2"

You can define a kind by the options that it adds to the plain run: --words "redblack=--param w=1.9".

usage: experiments/observe_cost.py [--repeats 9] [--before WORDS] [--words KIND=WORDS] [--json FILE] -- ARGUMENTS OF memext run
       experiments/observe_cost.py -- -n 510 510 1022 -t 64 -d /scratch --dram 512MiB
"""
import argparse
import json
import math
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import tempfile

import numpy

from runner import storage

ROOT = pathlib.Path(__file__).resolve().parents[1]
QUARTILES = 1.349  # their distance in standard deviations
KINDS = {"plain": (), "timeline": ("--timeline",), "trace": ("--trace",), "both": ("--timeline", "--trace")}
POINTS = 1000  # sources, and as many probes
APPLICATIONS = {
    "mirror": "--side x=mirror --side y=mirror --side z=mirror",
    "points": "--sources {folder}/sources --probes {folder}/probes --probes-out {folder}/traces.npy --overwrite",
    "norms": "--check 100",
    "snapshots": "--snapshot 100:{folder}/snapshots:4 --overwrite",
}


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--repeats", type=int, default=9, help="number of rounds (default: 9)")
    p.add_argument("--kinds", default="plain,timeline,trace", help=f"kinds to measure, separated by commas; all are compared with the first one. Kinds: {', '.join([*KINDS, *APPLICATIONS])}")
    p.add_argument("--words", action="append", default=[], metavar="KIND=WORDS", help="define KIND as the plain run with the options WORDS added; repeat the option for several kinds")
    p.add_argument("--before", default="", metavar="WORDS", help="command to put before every run, e.g. 'experiments/limit-memory 256MiB --'")
    p.add_argument("--memext", default=str(ROOT / "build" / "release" / "memext"))
    p.add_argument("--json", metavar="FILE", help="write all measured times to FILE")
    p.add_argument("arguments", nargs="+", metavar="-- ARGUMENTS")
    return p.parse_args()


def run(o, kind, folder):
    """(seconds of the computation, bytes of the observations)."""
    options = KINDS.get(kind, ())
    report, files = folder / "report.json", [folder / option.strip("-") for option in options]
    more = o.more.get(kind) or APPLICATIONS.get(kind, "").format(folder=shlex.quote(str(folder)))
    words = [*shlex.split(o.before), o.memext, "run", *o.arguments, *shlex.split(more), "--quiet", "--json", str(report)]
    for option, file in zip(options, files):
        words += [option, str(file)]
    storage.sync([folder])
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"observe_cost.py: {shlex.join(words)}\n{done.stderr.strip()} (exit status {done.returncode})")
    return json.loads(report.read_text())["seconds"], sum(file.stat().st_size for file in files)


def make_points(arguments, folder):
    """The files of sources and probes for `memext run`'s arguments: random cells of its grid, the same in every call."""
    p = argparse.ArgumentParser(allow_abbrev=False)
    p.add_argument("-n", "--size", type=int, nargs=3)
    p.add_argument("-t", "--steps", type=int)
    known, _ = p.parse_known_args(arguments)
    if known.size is None or known.steps is None:
        sys.exit("observe_cost.py: the kind points needs -n NX NY NZ and -t STEPS among the arguments of memext run")
    dice = random.Random(7)
    cells = [[dice.randrange(n) for n in known.size] for _ in range(2 * POINTS)]
    numpy.save(folder / "wavelet.npy", numpy.sin(numpy.arange(known.steps) / 7) * 1e-3)
    (folder / "sources").write_text("".join(f"u@{x},{y},{z}={folder}/wavelet.npy\n" for x, y, z in cells[:POINTS]))
    (folder / "probes").write_text("".join(f"u {x} {y} {z}\n" for x, y, z in cells[POINTS:]))


def measure(o, kinds):
    seconds, sizes = {kind: [] for kind in kinds}, {}
    with tempfile.TemporaryDirectory(prefix="memext-cost-") as folder:
        if "points" in kinds and "points" not in o.more:
            make_points(o.arguments, pathlib.Path(folder))
        run(o, kinds[0], pathlib.Path(folder))  # warms up: the first run makes the file
        for i in range(o.repeats):
            turn = i % len(kinds)
            for kind in kinds[turn:] + kinds[:turn]:
                s, sizes[kind] = run(o, kind, pathlib.Path(folder))
                seconds[kind].append(s)
            print(f"[{i + 1}/{o.repeats}] " + ", ".join(f"{kind} {s[-1]:.3f} s" for kind, s in seconds.items()), file=sys.stderr)
    return seconds, sizes


def slower(seconds, plain):
    """How much slower each run was than the plain one of its round: (median, its standard error as of a normal distribution)."""
    ratios = [a / b - 1 for a, b in zip(seconds, plain)]
    if len(ratios) < 2:
        return ratios[0], math.inf
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return middle, math.sqrt(math.pi / 2 / len(ratios)) * (high - low) / QUARTILES


def show(seconds, sizes, kinds):
    print("| kind | median s | least .. most | slower | bytes |")
    print("| --- | --- | --- | --- | --- |")
    for kind in kinds:
        s = seconds[kind]
        middle, error = slower(s, seconds[kinds[0]])
        said = f"{middle:+.2%} ± {error:.2%}" if kind != kinds[0] else ""
        print(f"| {kind} | {statistics.median(s):.3f} | {min(s):.3f} .. {max(s):.3f} | {said} | {sizes[kind]} |")


def main():
    o = options()
    kinds, o.more = o.kinds.split(","), dict(word.partition("=")[::2] for word in o.words)
    known = [*KINDS, *APPLICATIONS, *(kind for kind in o.more if kind not in APPLICATIONS)]
    if not set(kinds) <= {*known} or o.repeats < 1:
        sys.exit(f"observe_cost.py: --kinds {o.kinds} --repeats {o.repeats}: the kinds are {', '.join(known)}, and --repeats must be at least 1")
    seconds, sizes = measure(o, kinds)
    show(seconds, sizes, kinds)
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps({"command": shlex.join(sys.argv), "seconds": seconds, "bytes": sizes}) + "\n")


if __name__ == "__main__":
    main()
