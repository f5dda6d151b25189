#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Is a kernel written in Python as fast as the same kernel written in C, and does it give the same bits?

Needs the installed package (`pip install .`). The Python functions of python/examples/systems.py, and star7, are translated to C text; their counterparts are
systems/*.c and experiments/rivals/star7.c. For each:

    bits     `memext run` with either file, the same initial values, steps and plan: equal checksums
    speed    build/release/bench_engine in rounds, both files in each, in turn ABBA ABBA ...: Gupdates/s of the engine `tiled` in DRAM, and the ratio Python / C
             within a round; median, least .. most; and the best of all against the best of all, which others on the machine disturb least

`--whole` compares whole runs instead: memext.Run in this process and `memext run` as a command, out of core, by the seconds that the steps take.

usage: experiments/python_kernels.py [--rounds 5] [--only star7,wave] [--cells 126] [--seconds 0.3] [--whole] [-d DIRECTORY] [--build DIR] [--json FILE]
"""
import argparse
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import memext as mx

ROOT = pathlib.Path(__file__).resolve().parents[1]


@mx.kernel
def star7(u):
    return 0.4 * u + 0.1 * ((u[-1, 0, 0] + u[1, 0, 0]) + ((u[0, -1, 0] + u[0, 1, 0]) + (u[0, 0, -1] + u[0, 0, 1])))


# C file, type of the state, what the read-only fields begin with. UNSAID: types of read-only fields that the function leaves to a run's arrays.
CASES = {
    "star7": ("experiments/rivals/star7.c", "f8", {}),
    "diffusion": ("systems/diffusion.c", "f8", {"k": "random"}),
    "wave": ("systems/wave.c", "f4", {"v": "random", "damping": "zero"}),
    "fdtd": ("systems/fdtd.c", "f4", {"eps": "random"}),
    "gray_scott": ("systems/gray_scott.c", "f8", {}),
    "lattice_boltzmann": ("systems/lattice_boltzmann.c", "f4", {"wall": "zero"}),
}
UNSAID = {"wave": {"v": "f4", "damping": "f4"}, "fdtd": {"eps": "f4"}}
BITS_CELLS, BITS_STEPS = (61, 45, 37), 9


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=5, help="number of rounds, of four runs each (default: 5)")
    p.add_argument("--only", help="cases to measure, separated by commas: " + ", ".join(CASES))
    p.add_argument("--cells", type=int, default=126, help="cells of an edge of the grid (default: 126)")
    p.add_argument("--steps", type=int, default=32, help="time steps (default: 32)")
    p.add_argument("--seconds", type=float, default=0.3, help="seconds of each run of bench_engine, at least (default: 0.3)")
    p.add_argument("--whole", action="store_true", help="measure whole runs out of core instead, in the package and with the command")
    p.add_argument("--dram", default="64MiB", help="DRAM of a whole run (default: 64MiB)")
    p.add_argument("-d", "--device", type=pathlib.Path, default=pathlib.Path("."), metavar="DIRECTORY", help="directory on the storage to use (default: .)")
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", metavar="DIR", help="directory with the programs (default: build/release)")
    p.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the results to FILE")
    o = p.parse_args()
    o.cases = o.only.split(",") if o.only else list(CASES)
    for name in o.cases:
        if name not in CASES:
            p.error(f"--only {name}: the cases are {', '.join(CASES)}")
    return o


def output_of(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{(done.stderr.strip().splitlines() or ['no message'])[-1]} (exit status {done.returncode}: {' '.join(map(str, words))})")
    return done.stdout


def kernel_of(name):
    if name == "star7":
        return star7
    spec = importlib.util.spec_from_file_location("systems", ROOT / "python" / "examples" / "systems.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


class Case:
    def __init__(self, o, name):
        self.o, self.name = o, name
        source, self.dtype, self.fixed = CASES[name]
        self.kernel, self.by_hand = kernel_of(name), ROOT / source
        self.made = self.kernel.write(None, self.dtype, **UNSAID.get(name, {}))

    def report(self, file, cells, steps, *more):
        state = ["--init", "random", *(w for f, v in self.fixed.items() for w in ("--init", f"{f}={v}"))]
        return json.loads(output_of(self.o.build / "memext", "run", "--kernel", file, "-n", *cells, "-t", steps, *state, "--quiet", "--json", "-", *more))

    def same_bits(self):
        """Checksums of both, in skewed tiles and in Blocks of one sweep a level."""
        plans = [["--engine", "tiled"], ["--engine", "iblock"]]
        sums = [[self.report(file, BITS_CELLS, BITS_STEPS, "--backend", "dram", *plan)["checksum"] for plan in plans] for file in (self.made, self.by_hand)]
        return sums[0] == sums[1] and sums[0][0] == sums[0][1]

    def in_dram(self, file):
        n = self.o.cells
        return json.loads(output_of(self.o.build / "bench_engine", "--kernel", file, "--nx", n, "--ny", n, "--nz", n, "--bt", self.o.steps, "--modes", "tiled", "--repeats", 1,
                                    "--seconds", self.o.seconds))["tiled"]  # fmt: skip

    def whole(self, file):
        """Gupdates/s of the steps; the store is made anew. file: None for the package."""
        n, steps = self.o.cells, self.o.steps
        with tempfile.TemporaryDirectory(dir=self.o.device, prefix="memext-kernels-") as place:
            if file is not None:
                r = self.report(file, (n, n, n), steps, "-d", place, "--dram", self.o.dram)
            else:
                begin = {f: "random" for f in self.kernel.state + self.kernel.partner}
                with mx.Run(self.kernel, **begin, **self.fixed, shape=(n, n, n), dtype=self.dtype, device=place, dram=self.o.dram) as run:
                    r = run.advance(steps).report
        return r["updates_per_second"] * 1e-9

    def measure(self):
        """[(Python, C)] of every round, each the mean of two."""
        call = self.whole if self.o.whole else self.in_dram
        first = None if self.o.whole else self.made
        call(first), call(self.by_hand)  # compiled, pages and clocks as they will be
        found = []
        for _ in range(self.o.rounds):
            a, b, c, d = call(first), call(self.by_hand), call(self.by_hand), call(first)
            found.append(((a + d) / 2, (b + c) / 2))
        return found


def main():
    o, results = options(), {}
    print("| kernel | bits | Python, Gupdates/s | C, Gupdates/s | Python / C | least .. most | best / best |\n|---|---|---|---|---|---|---|", flush=True)
    for name in o.cases:
        case = Case(o, name)
        same, found = case.same_bits(), case.measure()
        ratios = [a / b for a, b in found]
        results[name] = {"same": same, "rounds": found}
        best = [max(column) for column in zip(*found)]
        middle = [statistics.median(column) for column in zip(*found)]
        print(f"| {name} | {'same' if same else 'DIFFERENT'} | {middle[0]:.3f} | {middle[1]:.3f} | {statistics.median(ratios):.2f} | {min(ratios):.2f} .. {max(ratios):.2f} | {best[0] / best[1]:.2f} |", flush=True)
    if o.json:
        o.json.write_text(json.dumps({"cells": o.cells, "steps": o.steps, "whole": o.whole, "results": results}, indent=2) + "\n")
    return 0 if all(r["same"] for r in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
