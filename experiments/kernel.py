#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/page-cache.md: what Linux does with the papers' access patterns, from the runs of experiments/plans/kernel.toml.

usage: experiments/kernel.py [--run] [--scale quick] [--results results/kernel] [--output docs/page-cache.md]

--run first makes the runs of the plan that are missing (experiments/run.py kernel, which says what it changes on the machine). A round takes
about 10 minutes at scale quick, whose limits are 80 and 320 MiB. At scale night it takes about 20 minutes, and the limits reach 5 GiB. The sentences follow from the figures: the page reports a difference only if its 95 % interval does not contain 1, by the
rule of the report (analysis/effects.py). It also says which runs are missing or too short; a list at the end names what this Linux lacks.
experiments/kernelpage has the questions.
"""
import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "experiments")]

from kernelpage.page import page
from kernelpage.study import PACKED, Study


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--run", action="store_true", help="first make the runs that are missing")
    p.add_argument("--scale", choices=("quick", "thorough", "night", "full"), help="with --run: the scale of the runs (default: quick)")
    p.add_argument("--results", type=Path, default=ROOT / "results" / "kernel", help="results folder of run.py, which contains the folder of the plan, or data/page-cache: the committed runs, without heat maps (default: results/kernel)")
    p.add_argument("--output", type=Path, default=ROOT / "docs" / "page-cache.md", help="page to write (default: docs/page-cache.md)")
    o = p.parse_args()
    if o.scale and not o.run:
        p.error("--scale chooses the runs that are made: give it with --run, or leave it out")
    if o.run:
        done = subprocess.run([sys.executable, str(ROOT / "experiments" / "run.py"), "kernel", "--scale", o.scale or "quick", "--results", str(o.results)], check=False)
        if done.returncode != 0:
            return done.returncode
    folder = o.results if (o.results / PACKED).exists() else o.results / "kernel"
    if not (folder / PACKED).exists() and not (folder / "raw.jsonl").exists():
        sys.exit(f"kernel.py: {folder} holds no runs; make them with experiments/kernel.py --run, or name another folder with --results")
    page(Study(folder), folder, o.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
