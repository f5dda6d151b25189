#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Packs the results of a plan into one small file, to be committed: data/results/PLAN.jsonl.gz.

    analysis/pack.py results/night/fig05 [FOLDER...] [-o data/results]

A packed file holds the lines of raw.jsonl (experiments/runner/record.py) of the runs that count: for each configuration those of the newest program. Of timelines it keeps numbers alone (analysis/seen.py).
The last session has the number of rounds that the pilot runs asked for (repeats.json of experiments/night.py).
Paths of the project are relative to its root, and the name of the machine is a hash. Equal results give equal bytes. analysis/report.py reads a folder of packed files like a folder that experiments/run.py wrote.
"""
import argparse
import gzip
import hashlib
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analysis import results  # noqa: E402
from analysis.seen import seen  # noqa: E402

KEPT_STDERR = 400
IN_PROJECT = re.compile(r"/\S*?/((?:build/release|experiments|results)/[\w./-]+)")


def packed_run(run):
    record = {**run.record, "timeline": None, "stderr": run.stderr[-KEPT_STDERR:], "command": [IN_PROJECT.sub(r"\1", word) for word in run.command]}
    if record.get("report"):
        record["report"] = {k: v for k, v in record["report"].items() if k != "candidates"}  # the tuner's long list
    if numbers := seen(run):
        record["seen"] = numbers
    return record


def packed_session(session):
    """The session, without memext's own long description of the machine."""
    machine = {k: v for k, v in session["machine"].items() if k != "memext"}
    node = hashlib.sha256(machine.get("node", "").encode()).hexdigest()[:8]
    return {**session, "machine": {**machine, "node": node}, "argv": [IN_PROJECT.sub(r"\1", word) for word in session["argv"]]}


def pack(folder, out):
    """Packs a folder of one plan into OUT/PLAN.jsonl.gz. Returns the path."""
    plan = results.read_plan(folder)
    used = {run.session for run in plan.runs}
    sessions = [s for s in plan.sessions if s["session"] in used]
    if plan.sessions and plan.sessions[-1] not in sessions:
        sessions.append(plan.sessions[-1])  # it names the runs of the plan in their order
    fixed = Path(folder) / "repeats.json"
    if sessions and fixed.exists():
        sessions[-1] = {**sessions[-1], "repeats": json.loads(fixed.read_text())}
    lines = [packed_session(s) for s in sessions] + [packed_run(run) for run in plan.runs]
    text = "".join(json.dumps(line, separators=(",", ":"), sort_keys=True) + "\n" for line in lines)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{plan.name}.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return path


def main(argv=None):
    p = argparse.ArgumentParser(prog="analysis/pack.py", description=__doc__.splitlines()[0])
    p.add_argument("folders", type=Path, nargs="+", help="folder of one plan, written by experiments/run.py, e.g. results/night/fig05")
    p.add_argument("-o", "--output", type=Path, default=Path("data/results"), help="folder for the packed files (default: data/results)")
    o = p.parse_args(argv)
    try:
        for folder in o.folders:
            path = pack(folder, o.output)
            print(f"{path}: {path.stat().st_size / 1024:.0f} KiB")
    except (results.SchemaError, OSError) as error:
        print(f"pack.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
