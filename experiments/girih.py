#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Is engine tiled faster than Girih's multi-core wavefront diamonds? Both run the same stencil in turn, and medians of paired rounds are compared.

Every round measures star7 in f64: with each program of Girih that is named (builds of its mwd_kernel, github.com/ecrc/girih) on 512^3, and with memext. Of memext it measures
the peak in L2 (bench_engine), engine tiled with 510^3 in DRAM, and stream out of core at 8 times the DRAM, each with the kernels of every instruction set in --isa. In each
round the fastest program of Girih counts. The defaults of --diamond and --wavefronts were the best on 2 cores. Without --girih only memext is measured, and the table has no
ratios to Girih.

usage: experiments/girih.py [--girih PROGRAM ...] [-d DIR] [--rounds 5] [--isa avx512,avx2] [--json FILE]      -d: for stream; without it only DRAM
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("MEMEXT_BUILD", ROOT / "build" / "release"))
CELLS, STEPS = (510, 510, 510), 128
LONG = (510, 510, 1022)  # out of core


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--girih", action="append", default=[], metavar="PROGRAM", help="an installed mwd_kernel of Girih; repeat the option for several builds")
    p.add_argument("--diamond", type=int, default=15, help="value of Girih's option --t-dim (default: 15)")
    p.add_argument("--wavefronts", type=int, default=8, help="value of Girih's option --num-wavefronts (default: 8)")
    p.add_argument("-d", "--device", metavar="DIR", help="directory for the Buffers of stream; without it stream is not measured")
    p.add_argument("--rounds", type=int, default=5, help="number of rounds (default: 5)")
    p.add_argument("--isa", default="avx512,avx2", help="instruction sets of memext's kernels, separated by commas (default: avx512,avx2)")
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of each program (default: all cores)")
    p.add_argument("--json", metavar="FILE", help="write all measurements to FILE")
    o = p.parse_args()
    for program in o.girih:
        if not (os.path.isfile(program) and os.access(program, os.X_OK)):
            p.error(f"--girih {program}: there is no such program")
    o.girih = [os.path.abspath(program) for program in o.girih]
    return o


def output(words, **more):
    """The output of a command. If the command fails, this program ends with its message."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, env={**os.environ, **more})
    if done.returncode != 0:
        sys.exit(f"girih.py: {' '.join(map(str, words))}: {done.stderr.strip()} (exit status {done.returncode})")
    return done.stdout


def girih(o, program):
    """Gupdates/s of a program of Girih. Its threads spin, so neither their cores nor the way they wait may be set. malloc gives huge pages."""
    env = {"OMP_NUM_THREADS": str(o.threads), "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
           "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self"}  # fmt: skip
    words = ["--nx", 512, "--ny", 512, "--nz", 512, "--nt", 66, "--target-kernel", 1, "--target-ts", 2, "--t-dim", o.diamond, "--num-wavefronts",
             o.wavefronts, "--mwd-type", 2, "--thread-group-size", 1, "--n-tests", 2]  # fmt: skip
    found = re.search(r"Total RANK0 MStencil/s MAX: *([0-9.]+)", output([program, *words], **env))
    if found is None:
        sys.exit(f"girih.py: {program} printed no rate")
    return float(found[1]) / 1e3


def peak(o, isa):
    words = ["--modes", "peak_l2", "--repeats", 1, "--threads", o.threads, "--nx", CELLS[0], "--ny", CELLS[1], "--nz", 62]
    return json.loads(output([BUILD / "bench_engine", *words], MX_ISA=isa))["peak_l2"]


def memext(o, isa, cells, *words):
    fixed = ["--no-fuse", "-t", STEPS, "--threads", o.threads, "--quiet", "--json", "-"]
    return json.loads(output([BUILD / "memext", "run", "-n", *cells, *fixed, *words], MX_ISA=isa))["updates_per_second"] * 1e-9


def one_round(o):
    """{what: Gupdates/s}, in the order measured."""
    r = {"Girih": max(girih(o, g) for g in o.girih)} if o.girih else {}
    for isa in o.isa.split(","):
        r[f"{isa}: peak, L2"] = peak(o, isa)
        r[f"{isa}: tiled in DRAM"] = memext(o, isa, CELLS, "--backend", "dram", "--engine", "tiled")
        if o.device:
            mib = 2 * 8 * (LONG[0] + 2) * (LONG[1] + 2) * (LONG[2] + 2) // 8 >> 20
            words = ["-d", o.device, "--backend", "uring", "--algorithm", "stream", "--dram", f"{mib}MiB"]
            r[f"{isa}: stream at 8 times the DRAM"] = memext(o, isa, LONG, *words)
    return r


def show(rounds):
    def text(values):
        return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    print("| run | Gupdates/s | relative to Girih, paired | relative to the peak, paired |\n| --- | --- | --- | --- |")
    for what in rounds[0]:
        isa = what.split(":")[0]
        to_girih = text([r[what] / r["Girih"] for r in rounds]) if "Girih" in rounds[0] and what != "Girih" else ""
        to_peak = text([r[what] / r[f"{isa}: peak, L2"] for r in rounds]) if ":" in what and "peak" not in what else ""
        print(f"| {what} | {text([r[what] for r in rounds])} | {to_girih} | {to_peak} |")


def main():
    o = options()
    if not o.girih:
        print("girih.py: Girih is not measured: --girih PROGRAM must name an installed mwd_kernel", file=sys.stderr)
    rounds = []
    for i in range(o.rounds):
        rounds.append(one_round(o))
        print(f"girih.py: round {i + 1} of {o.rounds}: " + ", ".join(f"{k} {v:.2f}" for k, v in rounds[-1].items()), file=sys.stderr)
        if o.json:
            pathlib.Path(o.json).write_text(json.dumps(rounds, indent=1) + "\n")
    show(rounds)


if __name__ == "__main__":
    main()
