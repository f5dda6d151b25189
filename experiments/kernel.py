#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/page-cache.md: what Linux does with the papers' access patterns, from the runs of experiments/plans/kernel.toml.

usage: experiments/kernel.py [--run] [--results results/kernel] [--output docs/page-cache.md]

--run first runs what of the plan has not been run (experiments/run.py kernel, which says what it changes on the machine: about 10
minutes a round). The sentences follow from the figures: a difference is called one only where its interval of 95 % leaves 1 out, by the
same rule as in the report (analysis/effects.py). What was not run, or was too short, is said to be so; what this Linux lacks stands in
one list at the end. experiments/kernelpage has the questions.
"""
import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "experiments")]

from kernelpage.page import page
from kernelpage.study import Study


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--run", action="store_true")
    p.add_argument("--results", type=Path, default=ROOT / "results" / "kernel", help="as run.py has it; the plan's folder is in it")
    p.add_argument("--output", type=Path, default=ROOT / "docs" / "page-cache.md")
    o = p.parse_args()
    if o.run:
        done = subprocess.run([sys.executable, str(ROOT / "experiments" / "run.py"), "kernel", "--results", str(o.results)], check=False)
        if done.returncode != 0:
            return done.returncode
    folder = o.results / "kernel"
    if not (folder / "raw.jsonl").exists():
        sys.exit(f"kernel.py: {folder} holds no runs; experiments/kernel.py --run makes them")
    page(Study(folder), folder, o.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
