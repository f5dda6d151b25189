# SPDX-License-Identifier: BSD-3-Clause
"""Results that were never measured: plans with the numbers that a test wants in them."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analysis.results import Group, PlanResults, Run  # noqa: E402

NOISE = (1.0, 1.012, 0.991, 1.006, 0.994, 1.003)  # of six repeats
PROBLEM = {"nx": 510, "ny": 510, "nz": 254, "nt": 10, "h": 1, "stencil": "star7", "dtype": "f64"}
PLAN = {"algorithm": "redundant", "engine": "iblock", "tuner": "manual", "by": 128, "bz": 128, "bt": 5, "iy": 1, "iz": 8, "slab": 8, "tile": 0, "ct": 0, "column": 0, "faces": None, "threads": 2}


def report(seconds, **more):
    """Of a run of 10 steps; dicts are merged into those of the default."""
    base = {
        "status": "done", "problem": dict(PROBLEM), "plan": dict(PLAN), "layout": {"buffer_bytes": 1 << 29}, "backend": "aio", "device": {"note": "", "bypasses_page_cache": True},
        "seconds": seconds, "init_seconds": 1.0, "updates_per_second": 1e9 / seconds, "steps_done": 10, "read_bytes": 1000, "write_bytes": 1000, "predicted_read_bytes": 1000,
        "predicted_write_bytes": 1000, "predicted_seconds": seconds, "peak_rss_bytes": 1, "major_faults": 0, "dram_budget_bytes": 1 << 28, "block_bytes": 1 << 20,
        "time": {"buf2blk_s": seconds / 4, "blk2buf_s": seconds / 4, "blk2blk_s": 0.0, "update_s": seconds / 2, "wait_s": 0.0},
        "kernel": {"storage_read_bytes": 1000, "storage_write_bytes": 1000, "swap_in_bytes": 0, "swap_out_bytes": 0, "system_s": 0.1},
    }  # fmt: skip
    for key, value in more.items():
        base[key] = {**base[key], **value} if isinstance(value, dict) and isinstance(base.get(key), dict) else value
    return base


def run(name, params, repeat, a_report, status="done", stderr="", limit="", timeout_s=60.0, command=("memext", "run", "--algorithm", "x"), wall_s=None):
    record = {"schema": 1, "kind": "run", "session": "s", "plan": "p", "scale": "quick", "id": name, "repeat": repeat, "params": params, "key": name, "command": list(command), "commit": "c", "program": "g",
              "status": status, "exit": 0 if status == "done" else 1, "stderr": stderr, "started_unix_s": 0.0, "wall_s": wall_s if wall_s is not None else (a_report or {}).get("seconds", timeout_s),
              "limit": limit, "swap": "", "knobs": {}, "timeout_s": timeout_s, "report": a_report if status == "done" else None, "timeline": None}  # fmt: skip
    return Run(record, Path("/nonexistent"))


def group(params, seconds=4.0, repeats=6, status="done", stderr="", limit="", command=("memext", "run", "--algorithm", "x"), noise=NOISE, **more):
    """A configuration whose repeats take `seconds`, give or take a little. A report entry that is a function gets the repeat's noise."""
    name = "-".join(str(v) for v in params.values())
    runs = []
    for k in range(repeats):
        entries = {key: value(noise[k % len(noise)]) if callable(value) else value for key, value in more.items()}
        runs.append(run(name, params, k, report(seconds * noise[k % len(noise)], **entries), status, stderr, limit, command=command))
    return Group(name, {**params, **({"limit": limit} if limit else {})}, runs)


def plan(name, *groups):
    return {name: PlanResults(name, name, "night", [], {g.id: g for g in groups})}


def cut(results, repeats):
    """Only so many repeats of everything."""
    for p in results.values():
        for g in p.groups.values():
            g.runs = [r for r in g.runs if r.repeat < repeats]
    return results


def fail(results, status="failed", stderr="no disk\n"):
    """Every run of every plan failed."""
    for p in results.values():
        for g in p.groups.values():
            for r in g.runs:
                r.record.update(status=status, stderr=stderr, report=None)
    return results
