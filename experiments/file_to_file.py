#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""From file to file: how much longer does a run take than its stencil phase?

Compares two programs, which run in turn and several times, from one .npy file to another on the same storage: `before` (--before, or else
memext with --no-fuse) and `now` (memext). For each round it prints the stencil phase and the wall time of `before`, the wall time of `now`,
and the ratios of both wall times to the stencil phase of `before`. At the end it prints medians, and where the time goes. It drops the
input from the page cache before every run, unless --cached is given. All checksums must be equal, and every phase must have moved the
bytes that were predicted; else the exit status is 1.

usage: experiments/file_to_file.py [--before MEMEXT] [--size NX NY NZ] [--steps 128,64] [--factor 8] [--repeats 5] [--cached]
                                   [--no-limit] [--device DIR] [--json FILE]
       experiments/file_to_file.py --steps 128 --repeats 5 --before /tmp/memext-before
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

from runner import storage

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMIT = ROOT / "experiments" / "limit-memory"
MIB = 1 << 20
SLACK = 64 * MIB  # what a process needs besides --dram


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--memext", default=str(ROOT / "build" / "release" / "memext"), help="the program `now` (default: build/release/memext)")
    p.add_argument("--before", metavar="MEMEXT", help="the program `before` (default: the program `now` with --no-fuse)")
    p.add_argument("--size", nargs=3, type=int, default=[510, 510, 1022], metavar=("NX", "NY", "NZ"))
    p.add_argument("--steps", default="128,64", help="numbers of steps to measure, separated by commas")
    p.add_argument("--factor", type=float, default=8, help="size of the Buffers divided by --dram (default: 8)")
    p.add_argument("--repeats", type=int, default=5, help="number of rounds (default: 5)")
    p.add_argument("--cached", action="store_true", help="leave the input in the page cache")
    p.add_argument("--no-limit", action="store_true", help="set no memory limit around the runs; they have --dram alone")
    p.add_argument("--device", default=str(ROOT / "build"), metavar="DIR", help="directory on the storage to use (default: build)")
    p.add_argument("--json", metavar="FILE", help="write all runs to FILE")
    return p.parse_args()


def make_input(path, size):
    nx, ny, nz = (extent + 2 for extent in size)
    grid = numpy.lib.format.open_memmap(path, mode="w+", dtype="<f8", shape=(nz, ny, nx))
    numbers = numpy.random.default_rng(1)
    for plane in grid:
        plane[:] = numbers.random((ny, nx))
    grid.flush()


def drop(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def budget(o):
    nx, ny, nz = o.size
    return int(2 * 8 * (nx + 2) * (ny + 2) * (nz + 2) / o.factor)


def run(o, folder, program, steps, more):
    source, result, report = folder / "in.npy", folder / "out.npy", folder / "report.json"
    result.unlink(missing_ok=True)
    storage.sync([folder])
    if not o.cached:
        drop(source)
    words = [program, "run", "--input", source, "--output", result, "-t", steps, "-d", folder, "--dram", budget(o), "--quiet", "--json",
             report, *more]
    if not o.no_limit:
        words = [LIMIT, budget(o) + SLACK, "--quiet", "--keep-cache", "--", *words]
    begin = time.monotonic()
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
    wall = time.monotonic() - begin
    told = json.loads(report.read_text())
    return {"wall": wall, "stencil": told["seconds"], "init": told["init_seconds"], "checksum": told["checksum"], "fused": told.get("fused"),
            "plan": told["plan"], "phases": told.get("phases"), "wait_share": told["wait_share"], "peak_rss_bytes": told["peak_rss_bytes"],
            "inside": told.get("wall_seconds")}


def as_predicted(result):
    return all(phase.get(way) == phase.get(f"predicted_{way}") for name, phase in (result["phases"] or {}).items() if name != "verify"
               for way in ("read_bytes", "write_bytes"))


def compare(o, folder, steps):
    rounds, good = [], True
    for number in range(o.repeats):
        order = [(o.before or o.memext, [] if o.before else ["--no-fuse"]), (o.memext, [])]
        pair = [None, None]
        for k in (0, 1) if number % 2 == 0 else (1, 0):
            pair[k] = run(o, folder, order[k][0], steps, order[k][1])
        before, now = pair
        good &= before["checksum"] == now["checksum"] and as_predicted(now) and as_predicted(before)
        rounds.append(pair)
        print(f"{steps} steps: before: stencil phase {before['stencil']:.2f} s, wall time {before['wall']:.2f} s ({before['wall'] / before['stencil']:.2f} times the stencil phase before); "
              f"now: stencil phase {now['stencil']:.2f} s, wall time {now['wall']:.2f} s ({now['wall'] / before['stencil']:.2f} times the stencil phase before)",
              flush=True)
    ratios = [[pair[k]["wall"] / pair[0]["stencil"] for pair in rounds] for k in (0, 1)]
    print(f"{steps} steps, medians of {len(rounds)} rounds: wall time / stencil phase before: before {statistics.median(ratios[0]):.2f}, now {statistics.median(ratios[1]):.2f}; "
          f"wall time now / before {statistics.median(pair[1]['wall'] / pair[0]['wall'] for pair in rounds):.2f}")
    for name, phase in rounds[-1][1]["phases"].items():
        print(f"  {name:9} {phase['seconds']:7.3f} s  read {phase.get('read_bytes', 0) / 1e9:6.2f} GB, write {phase.get('write_bytes', 0) / 1e9:6.2f} GB")
    return rounds, good


def main():
    o = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="file-to-file-", dir=o.device))
    results, good = {}, True
    try:
        make_input(folder / "in.npy", o.size)
        for steps in o.steps.split(","):
            results[steps], fine = compare(o, folder, int(steps))
            good &= fine
    finally:
        shutil.rmtree(folder)
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(results, indent=1))
    if not good:
        print("file_to_file.py: the checksums differ, or a run moved other bytes than predicted; --json FILE has all runs", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
