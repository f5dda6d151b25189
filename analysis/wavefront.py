# SPDX-License-Identifier: BSD-3-Clause
"""The wavefront paper's claims (Clauss, Gustedt, Suter 2008), decided from the records of experiments/plans/wavefront by rules of their own:
ratios of paired repeats have an interval of 95 % each, and fewer than five repeats decide nothing. docs/results.md has other runs and stricter rules.

    python3 -m analysis.wavefront results/quick/wavefront/raw.jsonl
"""
import json
import math
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analysis.claim import CONFIRMED, REFUTED, UNDECIDED, Band, Part  # noqa: E402
from analysis.effects import Effect, quotient  # noqa: E402
from analysis.predictions import best_of  # noqa: E402

TABLE_1 = {4096: 512, 512: 32 << 10, 64: 2 << 20, 8: 128 << 20}  # bytes of copies, 16384 x 16384 doubles


def records(path):
    """The completed runs of the newest program in a raw.jsonl."""
    lines = (json.loads(line) for line in Path(path).read_text().splitlines() if line.strip())
    runs = [r for r in lines if r.get("kind") == "run"]
    return [r for r in runs if r["program"] == runs[-1]["program"] and r["status"] == "done" and r["report"]]


def repeats(runs, **params):
    """{id: {round: seconds of an iteration}} of the runs with these parameters. A round is a repeat within one start of run.py."""
    found = {}
    for r in {(r["id"], r["repeat"]): r for r in runs}.values():
        if all(r["params"].get(k) == v for k, v in params.items()) and r["report"].get("seconds_per_wave"):
            found.setdefault(r["id"], {})[r.get("session"), r["repeat"]] = r["report"]["seconds_per_wave"]
    return found


def per_wave(runs, **params):
    """{id: median seconds of an iteration} of the runs with these parameters."""
    return {name: statistics.median(values.values()) for name, values in repeats(runs, **params).items()}


def best(runs, **params):
    """{repeat: seconds} of the best configuration with these parameters; {} if there is none. The other repeats decide which is best."""
    found = list(repeats(runs, **params).values())
    return best_of(found) if found else {}


def _claim(name, text, slow, fast, least):
    """Is `slow` at least `least` times `fast`?"""
    ratios = tuple(quotient(slow, fast).values())
    if not ratios:
        return {"name": name, "claim": text, "ratio": None, "state": UNDECIDED}
    part = Part(text, Effect(ratios), Band(least, math.inf))
    return {"name": name, "claim": text, "ratio": part.effect.say(), "state": part.state()}


def claims(runs):
    """[{name, claim, ratio, state}]: the paper's claims and the verdicts of these runs. On each side the best tile counts, as in the paper."""
    line = best(runs, figure="line")
    found = [
        _claim("sequential", "out of core, chained waves are at least as fast as the sequential loop in memory", line, best(runs, figure="7b"), 1),
        _claim("chained", "chained passes are 20 % faster than unchained passes", best(runs, figure="7b-unchained", chained="no"),
               best(runs, figure="7b-unchained", chained="yes"), 1.2),
    ]  # fmt: skip
    for backend in ("mmap", "uring"):
        sides = {layout: best(runs, figure="7a", backend=backend, layout=layout) for layout in ("row", "block", "frontier")}
        found.append(_claim(f"frontier-{backend}", f"on {backend}, the frontier layout is 20 % faster than the block layout", sides["block"], sides["frontier"], 1.2))
        same = repeats([r for r in runs if r["params"].get("tile") == "128x1024"], figure="7a", backend=backend)
        row, block = (same.get(f"fig7a-{backend}-{layout}-128x1024", {}) for layout in ("row", "block"))
        found.append(_claim(f"row-{backend}", f"on {backend}, the row-major layout is 10 times slower than the block layout, with tiles of 128 x 1024", row, block, 10))
        found.append(_claim(f"row-sequential-{backend}", f"on {backend}, the row-major layout is at best 10 times slower than the sequential program", sides["row"], line, 10))
    copies = {r["params"]["tile"]: r["report"]["space"]["copy_bytes"] for r in runs if r["params"].get("figure") == "table1"}
    state = UNDECIDED if set(copies) != set(TABLE_1) else CONFIRMED if copies == TABLE_1 else REFUTED
    return [*found, {"name": "table1", "claim": "the copied corners take the space that Table 1 gives", "ratio": None, "state": state}]


def main(path):
    runs = records(path)
    for name, seconds in sorted(per_wave(runs).items()):
        print(f"{name:36} {seconds:9.4f} s an iteration")
    for r in runs:
        if r["params"].get("figure") == "4":
            print(f"{r['id']:36} {r['report']['preprocess']['za']:9.4f} s to the layout, {r['report']['postprocess']['za']:.4f} s back")
    for c in claims(runs):
        print(f"{c['state']:10} {c['claim']}" + (f": measured factor {c['ratio']}" if c["ratio"] else ""))


if __name__ == "__main__":
    main(*sys.argv[1:])
