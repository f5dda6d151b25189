#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What does the way to an accelerator cost, and how good is its model? Uses the accelerator `host`, DRAM instead of a device, so that nothing else differs.

Runs in turn, on this machine: stream in DRAM; the same with --accel host, whose bus is as fast as memory; and --accel host with a bus of --rate each way and
--device-memory --memory, with k levels a sweep, few so that the bus decides, and as many as the tuner takes. Rates are measured before each round, into a
cache of their own: machines drift. Every run takes seconds, for it writes to memory that is new to it, which can cost a virtual machine a second and is no
matter of accelerators. Prints of each round the speed on host over that in DRAM (at least 0.85 is the aim), and of the limited runs measured over predicted
seconds (the aim is 0.85 to 1.15); then the medians.

usage: experiments/accel_host.py [-d DIR] [--rounds 5] [-n NX NY NZ] [-t NT] [--few K] [--slab PLANES] [--json FILE]      -d: Buffers there, by uring; else in DRAM
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-d", "--device", help="directory for the Buffers (default: Buffers in DRAM)")
    p.add_argument("-n", "--size", nargs=3, default=["510", "510", "254"], metavar="N")
    p.add_argument("-t", "--steps", type=int, default=256)
    p.add_argument("--rounds", type=int, default=5, help="number of rounds (default: 5)")
    p.add_argument("--rate", default="2GB/s", help="rate of the bus each way in the limited runs (default: 2GB/s)")
    p.add_argument("--memory", default="128MiB", help="--device-memory of the limited runs (default: 128MiB)")
    p.add_argument("--slab", type=int, default=4, help="slab of the run with few levels, in planes (default: 4)")
    p.add_argument("--few", type=int, default=2, metavar="K", help="levels of a sweep in the run that the bus limits (default: 2)")
    p.add_argument("--memext", default=str(ROOT / "build" / "release" / "memext"))
    p.add_argument("--json", metavar="FILE", help="write all measurements to FILE")
    return p.parse_args()


def memext(o, folder, *words):
    """Runs a command and returns its report."""
    report = folder / "report.json"
    place = ["-d", o.device] if o.device else ["--backend", "dram"]
    done = subprocess.run([o.memext, words[0], "-n", *o.size, *place, "--quiet", "--json", str(report), *words[1:]], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, env={**os.environ, "XDG_CACHE_HOME": str(folder)})
    if done.returncode != 0:
        sys.exit(f"accel_host.py: {' '.join(words)}: {done.stderr.strip()} (exit status {done.returncode})")
    return json.loads(report.read_text())


def kinds(o):
    limited = ["--accel", f"host,rate={o.rate}", "--device-memory", o.memory]
    steps = str(max(o.few, o.steps // 8 // o.few * o.few))
    return {"DRAM": ["-t", str(o.steps), "--algorithm", "stream"], "host": ["-t", str(o.steps), "--algorithm", "stream", "--accel", "host"],
            "few": ["-t", steps, "--plan", f"stream bt={o.few} slab={o.slab}", *limited], "many": ["-t", str(o.steps), "--algorithm", "stream", *limited]}  # fmt: skip


def measure(o, folder):
    """{kind: [(seconds, predicted, decides, updates per second), ...]}"""
    all_of = kinds(o)
    results = {kind: [] for kind in all_of}
    for i in range(o.rounds + 1):
        memext(o, folder, "tune", "-t", str(o.steps), "--calibrate", "--accel", "host")
        order = list(all_of) if i % 2 else list(all_of)[::-1]
        for kind in order:
            r = memext(o, folder, "run", *all_of[kind])
            model = r.get("accelerator", {}).get("model", {})
            if i > 0:  # the first warms up
                results[kind].append((r["seconds"], r["predicted_seconds"], model.get("decides", ""), r["updates_per_second"], r["plan"]["bt"]))
    return results


def show(results):
    ratios = [h[3] / d[3] for h, d in zip(results["host"], results["DRAM"])]
    print(f"speed on host / in DRAM: {' '.join(f'{r:.2f}' for r in ratios)}; median {statistics.median(ratios):.2f}")
    for kind in ("few", "many"):
        off = [r[0] / r[1] for r in results[kind]]
        bt, decides = results[kind][0][4], results[kind][0][2]
        print(f"limited, {bt} levels a sweep, {decides} decides: measured / predicted {' '.join(f'{r:.2f}' for r in off)}; median {statistics.median(off):.2f}")
    for kind, runs in results.items():
        print(f"{kind:5} {statistics.median(r[3] for r in runs) / 1e9:.2f} Gupdates/s, {statistics.median(r[0] for r in runs):.2f} s")


def main():
    o = options()
    if o.rounds < 1 or o.few < 1 or o.steps < o.few:
        sys.exit(f"accel_host.py: --rounds {o.rounds} --few {o.few} --steps {o.steps}: --rounds and --few must be at least 1, and --steps at least --few")
    with tempfile.TemporaryDirectory(prefix="memext-accel-") as folder:
        results = measure(o, pathlib.Path(folder))
    show(results)
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps({"command": sys.argv, "runs": results}) + "\n")


if __name__ == "__main__":
    main()
