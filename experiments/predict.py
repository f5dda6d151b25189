#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Predicts the seconds of runs of experiments/run.py again, with the present model and with measured rates.

usage: experiments/predict.py results/quick [--rates FILE.json] [--memext build/release/memext] [--data DIR] [--json FILE]

Each configuration is predicted with its own command, with --dry-run and the plan that its runs had. The output compares this with the median of the measured
seconds. So you can judge a change of the model by runs that you have already. --rates names a file of measured rates (rates.json, see memext tune --calibrate;
default: that of the results). --data names a directory on the storage that was measured.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "experiments")]

from analysis import results  # noqa: E402
from runner.near import planned  # noqa: E402


def command(run, memext, data):
    """A command that predicts a run with its plan, and writes nothing."""
    return planned(run.command, run.limit, run.report["plan"], memext, data)


def predict(run, memext, data, environment):
    """The report of the plan; None, and why on stderr, where it cannot be planned."""
    done = subprocess.run(command(run, memext, data), env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"predict.py: {run.plan} {run.id}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def rows(found, memext, data, environment):
    for plan in found.values():
        for group in plan.groups.values():
            report = group.done[0].report if group.done else {}
            if report.get("predicted_seconds") and report.get("seconds") and "run" in group.done[0].command:
                again = predict(group.done[-1], memext, data, environment)
                if again is not None:
                    yield {"plan": plan.name, "id": group.id, "backend": report["backend"], "measured_s": statistics.median(r.report["seconds"] for r in group.done), "repeats": len(group.done),
                           "predicted_then_s": statistics.median(r.report["predicted_seconds"] for r in group.done), "predicted_s": again["predicted_seconds"]}  # fmt: skip


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("results", type=Path, help="results folder of experiments/run.py")
    p.add_argument("--rates", type=Path, metavar="FILE.json", help="file of measured rates (default: that of the results)")
    p.add_argument("--memext", type=Path, default=ROOT / "build" / "release" / "memext", help="the memext command (default: build/release/memext)")
    p.add_argument("--data", type=Path, default=Path(os.environ.get("MEMEXT_DATA", "/var/tmp/memext-experiments")))
    p.add_argument("--json", type=Path, metavar="FILE", help="write the predictions to FILE")
    o = p.parse_args()
    rates = o.rates or o.results / "cache" / "memext" / "rates.json"
    if not rates.exists():
        sys.exit(f"predict.py: {rates} does not exist; measure rates with memext tune --calibrate, and name the file with --rates")
    o.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        (Path(cache) / "memext").mkdir()
        (Path(cache) / "memext" / "rates.json").write_bytes(rates.read_bytes())
        found = list(rows(results.read_all(o.results), o.memext, o.data, {**os.environ, "XDG_CACHE_HOME": cache}))
    for r in found:
        print(f"{r['plan'] + ' ' + r['id']:44} {r['backend']:5} n={r['repeats']} {r['measured_s']:8.2f} s measured {r['predicted_then_s'] / r['measured_s']:6.2f} then {r['predicted_s'] / r['measured_s']:6.2f} now")
    for name, backends in (("aio and uring", ("aio", "uring")), ("mmap and swap", ("mmap", "swap"))):
        there = [r for r in found if r["backend"] in backends]
        if there:
            then, now = (statistics.median(abs(r[key] / r["measured_s"] - 1) for r in there) for key in ("predicted_then_s", "predicted_s"))
            print(f"{name}: median error of {len(there)} configurations {then:.1%} then, {now:.1%} now")
    if o.json:
        o.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
