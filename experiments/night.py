#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the papers' comparisons plan by plan, so that nights add up: the results of a plan are packed into RESULTS/packed when it is complete.

    experiments/night.py [PLAN...] [--data DIR] [--results DIR] [--packed DIR] [--minutes M] [--again] [--list]

Without names it runs the plans that are not packed yet, in the order of PLANS. experiments/run.py runs each plan at scale night, completely on one machine and within --minutes (50). Once the number of
rounds is decided, a plan may take a quarter longer. A plan that does not complete even then is not packed, because its longest runs would be missing. The night continues with the next plan, and its exit
status is 75. Start it again with more --minutes to complete such plans.

The number of repeats of a plan is fixed before it decides anything. A plan that must decide findings (`pilot`) runs five rounds first. They show how much each ratio scatters, and so how many pairs are
needed for an interval that fits into the band of the published number. At least as many rounds are run as the signed ranks need for an interval. The largest of these numbers that fits into --minutes is
written to RESULTS/PLAN/repeats.json, and that many rounds are run. This file also names the comparisons that need more rounds (out_of_reach); they stay undecided unless their interval decides all the
same. If the runs of a pilot are too short to decide anything, the plan ends there: it is not packed, and needs more steps. Other plans have nine rounds.

If it is interrupted, start the same command again to continue. Nothing else should run on the machine meanwhile.
"""
import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "experiments")]

from runner import cli, distance, host, plan, record  # noqa: E402

from analysis import pack, published, results, verdicts  # noqa: E402
from analysis.claims import CLAIMS  # noqa: E402
from analysis.effects import pairs_needed, rank_rounds  # noqa: E402

# First the plans that only count, then those with which the papers begin. The last ones are studies of the page cache and of queues, of which only `advice` and `share` decide findings.
PLANS = ("table2", "divisions", "table1w", "fig24", "fig05", "baseline", "fig07", "fig05-large", "fig07-large", "commits", "fig19", "fig22", "before-after", "layout", "fig7a", "fig7b", "fig4w", "enough", "fig12", "largest", "devices", "fig06",
         "regret", "hhrt", "ssds", "ktable", "advice", "readahead", "dirty", "share", "uring", "queue")  # fmt: skip
PILOT = 5
MINUTES = 50.0
TO_END = 1.25  # times --minutes: if a machine becomes a little slower, the fixed rounds are not lost
SCALE = "night"


def options(argv):
    p = argparse.ArgumentParser(prog="experiments/night.py", description=__doc__.splitlines()[0])
    p.add_argument("plans", nargs="*", metavar="PLAN", help="plans to run (default: those that are not packed yet)")
    p.add_argument("--data", type=Path, help="directory on the storage to measure (default: that of experiments/run.py)")
    p.add_argument("--results", type=Path, default=ROOT / "results" / SCALE, help="folder for the raw results (default: results/night)")
    p.add_argument("--packed", type=Path, help="folder for the packed results (default: packed in the folder of --results). data/results has those that are published")
    p.add_argument("--memext", type=Path, default=ROOT / "build" / "release" / "memext", help="the memext command to measure (default: build/release/memext)")
    p.add_argument("--minutes", type=float, default=MINUTES, help="time limit of each plan in minutes (default: %(default)g)")
    p.add_argument("--core-latency", type=distance.limit, metavar="NS", help="a number or auto, passed on to experiments/run.py: wait until the cores are near to each other")
    p.add_argument("--again", action="store_true", help="run plans that are packed already, too")
    p.add_argument("--list", action="store_true", help="print which plans are packed and which are left, and run nothing")
    o = p.parse_args(argv)
    o.packed = o.packed or o.results / "packed"
    return o


def band_width(band):
    """Half the width of the band of a published number, as a logarithm; None if the finding has no number."""
    low, high = (band.low, band.high) if band.best is None else sorted((band.best, band.low if band.low > 0 else band.high))
    return 0.5 * math.log(high / low) if low > 0 and high < math.inf else None


def wishes(name, found, known):
    """{comparison: (scatter, pairs that its number needs)}, from the rounds of a plan so far."""
    wanted = {}
    for claim in CLAIMS:
        if name not in claim.plans or not set(claim.plans) <= set(found):
            continue
        for part in claim.parts(found, known):
            width = band_width(part.band)
            if part.effect is not None and not part.effect.exact and part.effect.n >= 2 and width:
                wanted[f"{claim.name}: {part.label}"] = part.effect.scatter, pairs_needed(part.effect.scatter, width, verdicts.EACH_LEVEL)
    return wanted


def too_short(name, found, known):
    """The comparisons of a plan whose runs are too short to decide, in words."""
    parts = [(claim.name, part) for claim in CLAIMS if name in claim.plans and set(claim.plans) <= set(found) for part in claim.parts(found, known)]
    return [f"{claim}: {part.label} ({part.gap})" for claim, part in parts if "too short to decide" in part.gap and not part.beside]


def fixed_repeats(name, folder, minutes, spent_s):
    """The number of rounds. The pilot decides it and it is written down; a number that was written before holds."""
    path = folder / name / "repeats.json"
    if path.exists():
        return json.loads(path.read_text())["repeats"]
    wanted = wishes(name, {name: results.read_plan(folder / name)}, published.read_all())
    room = PILOT + int(max(0.0, 60 * minutes - spent_s) / (spent_s / PILOT))
    within = [n for _, n in wanted.values() if n <= room]
    beyond = [k for k, (_, n) in wanted.items() if n > room]
    repeats = min(max([rank_rounds(verdicts.EACH_LEVEL), *within]), room)
    said = {"rounds_of_the_pilot": PILOT, "room": room, "repeats": repeats, "out_of_reach": beyond, "comparisons": {k: {"scatter": s, "pairs": n} for k, (s, n) in wanted.items()}}
    path.write_text(json.dumps(said, indent=1) + "\n")
    print(f"night.py: {name}: {room} rounds fit into {minutes:g} minutes, and {repeats} will be run" + (f"; these comparisons need more: {'; '.join(beyond)}" if beyond else ""), flush=True)
    return repeats


def spent_s(name, folder, program):
    """Seconds that this program's runs of a plan took, with the time between them."""
    runs = [r for r in record.Store(folder / name).records() if r["kind"] == "run" and r["program"] == program]
    by_session = {}
    for r in runs:
        by_session.setdefault(r["session"], []).append(r)
    return sum(max(r["started_unix_s"] + r["wall_s"] for r in rs) - min(r["started_unix_s"] for r in rs) for rs in by_session.values())


def run(name, o, repeats, minutes):
    """The exit status of run.py."""
    words = [sys.executable, str(ROOT / "experiments" / "run.py"), name, "--scale", SCALE, "--results", str(o.results), "--memext", str(o.memext), "--minutes", f"{minutes:.2f}"]
    words += ["--repeats", str(repeats)] if repeats else []
    words += ["--core-latency", str(o.core_latency)] if o.core_latency else []
    words += ["--data", str(o.data)] if o.data else []
    return subprocess.run(words).returncode


def measure(name, o):
    """Runs one plan completely. Returns 0, or the exit status of run.py."""
    a_plan = plan.load(plan.PLANS / f"{name}.toml", SCALE)
    program = host.program_id(o.memext)
    repeats = None
    if a_plan.pilot:
        status = run(name, o, PILOT, o.minutes)
        if status != 0:
            return status
        short = too_short(name, {name: results.read_plan(o.results / name)}, published.read_all())
        if short:
            print(f"night.py: {name} stops after the pilot and is not packed, because these runs are too short; give them more steps in experiments/plans/{name}.toml: {'; '.join(short)}", file=sys.stderr)
            return 0
        repeats = fixed_repeats(name, o.results, o.minutes, spent_s(name, o.results, program))
    left = TO_END * o.minutes - spent_s(name, o.results, program) / 60
    status = run(name, o, repeats, max(left, 0.0))
    if status == 0:
        path = pack.pack(o.results / name, o.packed)
        print(f"night.py: {name}: packed into {path}", flush=True)
    return status


def main(argv=None):
    o = options(sys.argv[1:] if argv is None else argv)
    unknown = [name for name in o.plans if not (plan.PLANS / f"{name}.toml").exists()]
    if unknown:
        print(f"night.py: there is no plan {', '.join(unknown)}; the plans are {', '.join(PLANS)}", file=sys.stderr)
        return 2
    packed = [name for name in PLANS if (o.packed / (name + results.PACKED)).exists()]
    todo = o.plans or [name for name in PLANS if o.again or name not in packed]
    if o.list:
        print(f"packed: {', '.join(packed) or 'nothing'}\nleft: {', '.join(name for name in PLANS if name not in packed) or 'nothing'}")
        return 0
    if not o.memext.exists():
        print(f"night.py: --memext {o.memext} does not exist; build it with cmake --preset release && cmake --build --preset release", file=sys.stderr)
        return 2
    begin, cut = time.monotonic(), []
    for k, name in enumerate(todo, 1):
        print(f"night.py: {name}, {k} of {len(todo)}, {cli.clock(time.monotonic() - begin)} after the start", flush=True)
        status = measure(name, o)
        if status == cli.OUT_OF_TIME:
            print(f"night.py: {name} did not complete within --minutes {o.minutes:g}, and is not packed", file=sys.stderr)
            cut.append(name)
        elif status != 0:
            print(f"night.py: {name} stopped with exit status {status}; start the same command again to continue with it", file=sys.stderr)
            return status
    if cut:
        print(f"night.py: these plans are not complete: {', '.join(cut)}; start the same command with more --minutes to continue with them", file=sys.stderr)
    return cli.OUT_OF_TIME if cut else 0


if __name__ == "__main__":
    sys.exit(main())
