# SPDX-License-Identifier: BSD-3-Clause
"""Results that were recorded (tests/data/recorded), for the tests of analysis/."""
import copy
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from analysis import published, results, style  # noqa: E402

RECORDED = ROOT / "tests" / "data" / "recorded"


@pytest.fixture(scope="module")
def recorded():
    return results.read_all(RECORDED)


FACTORS = (1.0, 1.03, 0.96, 1.05, 0.98)  # of the times of repeats


def repeated(plan, rounds=5):
    """The same plan as if each configuration that ended had been run in so many rounds: the first run, a little slower and faster."""
    plan = copy.deepcopy(plan)
    for group in plan.groups.values():
        first = next((r for r in group.runs if r.ok), None)
        if first is None:
            continue
        group.runs = [copy.deepcopy(first) for _ in range(rounds)]
        for k, run in enumerate(group.runs):
            run.record.update(session="s", repeat=k)
            report = run.record["report"]
            for key in {"seconds", "init_seconds"} & report.keys():
                report[key] *= FACTORS[k % len(FACTORS)]
            if "search" in report:
                report["search"]["seconds"] *= FACTORS[k % len(FACTORS)]
    return plan


@pytest.fixture(scope="module")
def known():
    return published.read_all()


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    style.plt.close("all")


def good_run():
    with open(RECORDED / "fig05" / "raw.jsonl") as file:
        return next(r for r in map(json.loads, file) if r["kind"] == "run" and r["status"] == "done")


def write_plan(folder, records):
    folder.mkdir(parents=True)
    (folder / "raw.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    return results.read_plan(folder)


COLUMNS = ["t_s", "user_s", "system_s", "updates", "read_bytes", "write_bytes", "storage_read_bytes", "storage_write_bytes", "device_read_bytes", "device_write_bytes",
           "minor_faults", "major_faults", "swap_in_bytes", "swap_out_bytes", "anon_bytes", "cache_bytes", "dirty_bytes", "writeback_bytes"]  # fmt: skip


def timeline_lines(n=11, bins=8, backend="mmap", read=lambda k: 100 * k, sweep=True):
    header = {"memext_timeline": 1, "interval_s": 0.1, "backend": backend, "problem": {"nz": 14, "h": 1}, "plan": {}, "bins": bins, "residency": "cachestat", "columns": COLUMNS,
              "buffers": [{"name": "source", "offset_bytes": 0, "bytes": 1 << 30}, {"name": "target", "offset_bytes": 1 << 30, "bytes": 1 << 30}]}  # fmt: skip
    lines = [header]
    for k in range(n):
        values = dict.fromkeys(COLUMNS, 0)
        values.update(t_s=0.1 * k, user_s=0.15 * k, system_s=0.05 * k, device_read_bytes=read(k), read_bytes=read(k), swap_in_bytes=7 * k)
        seen = [100 if sweep and i <= k * bins / n else 0 for i in range(bins)]
        lines.append({"s": [values[c] for c in COLUMNS], "r": [seen, seen]})
        z = int(16 * k / n)
        lines.append({"e": "advance", "t": [0.1 * k, 0.1 * k + 0.05], "y": [0, 4], "z": [z, z + 1], "n": 10})
        lines.append({"e": "wait", "t": [0.1 * k + 0.05, 0.1 * k + 0.06], "y": [0, 4], "z": [z, z + 1], "n": 0})
    return [json.dumps(x) + "\n" for x in lines]
