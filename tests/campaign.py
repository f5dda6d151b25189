#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The random campaign by hand: tests/campaign.py --seed S --problems 2000 draws problems of all features together, runs each in several ways, and compares
with numpy to the bit. Each finding is printed with the words that show it again; at the end stands what was drawn, and how often."""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))

from drawn_runs import Campaign  # noqa: E402


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--seed", default="1", help="a word or number: the same one draws the same problems (default 1)")
    p.add_argument("--problems", type=int, default=200, metavar="N", help="how many (default 200)")
    p.add_argument("--first", type=int, default=0, metavar="I", help="the number of the first one (default 0)")
    p.add_argument("--only", type=int, metavar="I", help="this problem alone")
    p.add_argument("--in", dest="place", type=pathlib.Path, metavar="DIR", help="a directory of a disk for files and stores, which is made (default: one in build/); a disk in memory saves most of the time")
    p.add_argument("--keep", action="store_true", help="files and stores of problems stay there")
    p.add_argument("--kernel-of", type=int, default=10, metavar="N", help="problems for which one kernel is compiled (default 10); the same for --only")
    p.add_argument("--opencl", type=float, default=0.02, metavar="SHARE", help="of the problems that run on OpenCL or CUDA, which compile each for seconds (default 0.02)")
    p.add_argument("--most", type=int, default=20, metavar="N", help="findings after which it ends (default 20)")
    p.add_argument("--build", type=pathlib.Path, default=os.environ.get("MEMEXT_BUILD", ROOT / "build/release"), metavar="DIR", help="with the program memext")
    return p.parse_args()


def main():
    o, begin = options(), time.monotonic()
    (ROOT / "build").mkdir(exist_ok=True)
    folder = o.place or pathlib.Path(tempfile.mkdtemp(prefix="campaign-", dir=ROOT / "build"))
    folder = folder.resolve()
    folder.mkdir(exist_ok=True, parents=True)
    env = {"MEMEXT_ROWS": "2n", "OMP_WAIT_POLICY": "passive", **os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    try:
        c = Campaign(pathlib.Path(o.build).resolve() / "memext", folder, o.seed, env, o.kernel_of, o.opencl)
        c.run(o.first if o.only is None else o.only, o.problems if o.only is None else 1, o.keep, lambda text: print(text, flush=True), o.most)
        print(c.told())
        for names in (c.machine.backends, c.machine.accels):
            for name, why in names.items():
                print(f"not here: {name}: {why}" if why else "", end="\n" if why else "")
        print(f"seed {o.seed}: {c.counts['problems']} problems, {c.counts['runs']} runs, {len(c.findings)} findings, {time.monotonic() - begin:.0f} s")
    finally:
        if not o.keep:
            shutil.rmtree(folder)
    return 1 if c.findings else 0


if __name__ == "__main__":
    sys.exit(main())
