#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""How fast would the tiled engine be on more cores than this machine has? This is a simulation: `bench_replay` runs the engine's own scheduler in virtual time.

measure: what a cell takes on one core of this machine with everything in L3, and what a line takes that is not there (medians, in turn); then, on two cores, what the
replay says beside what the engine does. table: grids, cores and settings, with the figures of --place-ns, --two-ns, --line-ns (of `measure`), for a server with an L3 for
each 8 cores and the bandwidth of --gbs for each 64, and without any bound of bandwidth. Efficiency: the rate to that of one core, alone on the machine, times the cores.

usage: experiments/cores.py measure [--rounds 5] | table [--gbs 160] [--group-gbs 50] [--under-way 2] [--cores 4 8 16 32 64 128] [--only WORD] [--json FILE]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Name, grid, levels of the run, options: whole planes and strips through rings of bt levels, and one call for a grid in DRAM.
CASES = [
    ("510^3 in DRAM, bt 64", (510, 510, 510), 64, ["--in-dram"]),
    ("510 x 510 x 1022, bt 128", (510, 510, 1022), 128, []),
    ("510 x 510 x 1022, bt 32", (510, 510, 1022), 32, []),
    ("510 x 510 x 1022, 2 strips, bt 32", (510, 510, 1022), 32, ["--by", "272"]),
    ("1022^3, bt 64", (1022, 1022, 1022), 64, []),
    ("2046 x 2046 x 1022, bt 32", (2046, 2046, 1022), 32, []),
]


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["measure", "table"], help="measure: measure this machine and check the simulation; table: simulate many cores")
    p.add_argument("--replay", default=str(ROOT / "build" / "release" / "bench_replay"), metavar="PROGRAM", help="bench_replay (default: build/release/bench_replay)")
    p.add_argument("--rounds", type=int, default=5, help="measure: number of rounds (default: 5)")
    p.add_argument("-n", "--size", nargs=3, default=["510", "510", "254"], metavar="N", help="measure: cells of the grid (default: 510 510 254)")
    p.add_argument("--bt", default="64", help="measure: levels of a sweep (default: 64)")
    p.add_argument("--place-ns", default="0.33", help="table: figure that measure prints (default: 0.33)")
    p.add_argument("--two-ns", default="0.55", help="table: figure that measure prints (default: 0.55)")
    p.add_argument("--line-ns", default="1.5", help="table: figure that measure prints (default: 1.5)")
    p.add_argument("--gbs", type=float, default=160, help="bandwidth of DRAM in GB/s, for each 64 cores (default: 160)")
    p.add_argument("--group-gbs", default="50", help="bandwidth in GB/s of the link of 8 cores and their L3 (default: 50)")
    p.add_argument("--cores", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64, 128], help="table: numbers of cores")
    p.add_argument("--more", nargs="*", default=[], help="table: more options of bench_replay, as NAME=VALUE without the dashes")
    p.add_argument("--only", default="", help="table: only cases whose name contains this text")
    p.add_argument("--json", metavar="FILE", help="write all reports of bench_replay to FILE")
    return p.parse_args()


def replay(o, *words):
    done = subprocess.run([o.replay, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"cores.py: {' '.join(map(str, words))}: {done.stderr.strip()} (exit status {done.returncode})")
    return json.loads(done.stdout)


def measure(o):
    """Measures and prints. Nothing is judged, since other programs may use the machine too."""
    nx, ny, nz = o.size
    grid = ["--nx", nx, "--ny", ny, "--nz", nz, "--nt", o.bt]
    alone = ["--cores", 1, "--gbs", 0, "--group-gbs", 0, "--core-gbs", 0]
    lines = {way: replay(o, *grid, *alone, *words)["lines"] for way, words in (("tiled", ["--in-dram"]), ("stream", []))}
    runs = {key: [] for key in ("l3", "tiled 1", "tiled 2", "stream 1", "stream 2")}
    for _ in range(o.rounds):
        runs["l3"].append(replay(o, *grid, "--in-dram", "--real", "--in-l3", "--cores", 1))
        for cores in (1, 2):
            runs[f"tiled {cores}"].append(replay(o, *grid, "--in-dram", "--real", "--cores", cores))
            runs[f"stream {cores}"].append(replay(o, *grid, "--real", "--cores", cores))

    def of(key, figure):
        return statistics.median(r[figure] for r in runs[key])

    place, two = of("l3", "place_ns"), of("l3", "two_ns")
    cell = 1 / of("tiled 1", "gups") - 1 / of("l3", "gups")
    line = max(0, cell / lines["tiled"])
    print(f"--place-ns {place:.3f} --two-ns {two:.3f} --line-ns {line:.3f}    (lines a cell: tiled {lines['tiled']:.4f}, stream {lines['stream']:.4f})")
    figures = ["--place-ns", place, "--two-ns", two, "--line-ns", line, "--group", 2, "--gbs", o.gbs, "--group-gbs", o.group_gbs]
    print("| run | cores | measured | simulated | ratio | waiting, measured | simulated |\n| --- | --- | --- | --- | --- | --- | --- |")
    for way, words in (("tiled", ["--in-dram"]), ("stream", [])):
        for cores in (1, 2):
            s = replay(o, *grid, *figures, *words, "--cores", cores)
            m = of(f"{way} {cores}", "gups")
            w = of(f"{way} {cores}", "waiting")
            print(f"| {way} | {cores} | {m:.3f} | {s['gups']:.3f} | {s['gups'] / m:.2f} | {100 * w:.1f} % | {100 * s['waiting']:.1f} % |")


def table(o):
    figures = ["--place-ns", o.place_ns, "--two-ns", o.two_ns, "--line-ns", o.line_ns]
    more = [word for pair in o.more for word in (lambda n, _, v: (f"--{n}", v))(*pair.partition("="))]
    said = []
    print("| run | cores | chunk, slab, tile | without bounds: efficiency | waiting | with: efficiency | waiting | slowed | from DRAM, bytes an update | from other L3 |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, (nx, ny, nz), nt, words in CASES:
        if o.only not in name:
            continue
        grid = ["--nx", nx, "--ny", ny, "--nz", nz, "--nt", nt, *figures, *words, *more]
        free = ["--gbs", 0, "--group-gbs", 0, "--core-gbs", 0]
        one = replay(o, *grid, *free, "--cores", 1)
        for cores in o.cores:
            bounds = ["--gbs", o.gbs * max(1, cores / 64), "--group-gbs", o.group_gbs]
            a, b = replay(o, *grid, *free, "--cores", cores), replay(o, *grid, *bounds, "--cores", cores)
            said += [a, b]
            ea, eb = (100 * r["gups"] / one["gups"] / cores for r in (a, b))
            print(f"| {name} | {cores} | {a['ct']}, {a['slab']}, {a['tile']} | {ea:.0f} % | {100 * a['waiting']:.0f} % | {eb:.0f} % | {100 * b['waiting']:.0f} % | "
                  f"{100 * b['slowed']:.0f} % | {b['dram_bytes']:.2f} | {b['elsewhere_bytes']:.2f} |", flush=True)  # fmt: skip
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    asked = options()
    {"measure": measure, "table": table}[asked.what](asked)
