#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""How fast are kernels that users write? All configurations run in turn, several times, and medians are compared.

For each kernel of systems/ in CASES this measures a plain OpenMP loop in C with everything in DRAM (experiments/plain, compiled here for
the grid), the tiled engine with everything in DRAM, and stream out of core. Out of core, all Buffers are 8 times the DRAM, Buffers of
read-only fields included. The table also has the speed that the device alone allows: the bytes of a run at the rate at which the device
reads and writes at once, measured in the same round. If this is less than the speed of tiled in DRAM, the disk is the bottleneck. The
table also has the speed that the model predicts. Finally, star7 as a kernel is compared with the built-in star7, in DRAM, at 8 times the
DRAM, and with the tile sizes that the built-in one has in two arrays.

usage: experiments/systems.py [--rounds 5] [--only wave,star7] [--factor 8] [--device DIR] [--output DIR] [--build DIR]
                              [--size CASE=NX,NY,NZ,NT]
Writes systems.json to --output (default results/systems) after every round and prints a table at the end. The compute rate and
the sizes that the tuner plans with are measured once (memext tune --calibrate) into a cache of rates of its own. Runs
with the same kernel and steps must have the same checksum and have moved the bytes that were predicted.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "experiments"))

from runner import host, ownership, registry  # noqa: E402

PLAIN = os.path.join(ROOT, "experiments", "plain")
MIB = 1 << 20
COMPILE = ["-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-std=gnu17"]

STAR7 = """#define MX_NAME "star7"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double)
#include <memext/cell.h>

MX_CELL
    SET(u, 0.4 * AT(u, 0, 0, 0) + 0.1 * ((AT(u, -1, 0, 0) + AT(u, 1, 0, 0)) + ((AT(u, 0, -1, 0) + AT(u, 0, 1, 0)) + (AT(u, 0, 0, -1) + AT(u, 0, 0, 1)))));
MX_END
"""

# Tiles of an odd number of rows are not computed in place.
TWO_ARRAYS = "direct engine=tiled bt={bt} tile=5 slab=14 ct=16"

# Kernel, nx ny nz nt, what the fields begin with. `wave64` is wave.c with double in place of float.
CASES = {
    "wave": ("systems/wave.c", (254, 254, 2046, 40), ["--init", "p=random", "--init", "v=random", "--init", "damping=zero"]),
    "wave64": ("wave64.c", (256, 256, 256, 32), ["--init", "p=random", "--init", "v=random", "--init", "damping=zero"]),
    "lattice_boltzmann": ("systems/lattice_boltzmann.c", (126, 126, 510, 40), ["--init", "random", "--init", "wall=zero"]),
    "fdtd": ("systems/fdtd.c", (254, 254, 510, 20), ["--init", "random", "--init", "eps=random"]),
    "star7": ("star7.c", (254, 254, 1022, 64), ["--init", "random"]),
}


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=5, help="number of rounds (default: 5)")
    p.add_argument("--only", help="cases to measure, separated by commas: " + ", ".join(CASES))
    p.add_argument("--factor", type=float, default=8, help="size of all Buffers divided by the DRAM (default: 8)")
    p.add_argument("--device", default=os.path.join(ROOT, "build"), help="directory on the storage to use (default: build)")
    p.add_argument("--build", default=os.path.join(ROOT, "build", "release"), metavar="DIR", help="directory with the programs (default: build/release)")
    p.add_argument("--output", default=os.path.join(ROOT, "results", "systems"), metavar="DIR", help="directory for systems.json (default: results/systems)")
    p.add_argument("--size", action="append", default=[], metavar="CASE=NX,NY,NZ,NT", help="grid and steps of a case; repeat the option for several cases")
    o = p.parse_args()
    o.cases = o.only.split(",") if o.only else list(CASES)
    for name in o.cases:
        if name not in CASES:
            p.error(f"--only {name}: the cases are {', '.join(CASES)}")
    o.sizes = {name: CASES[name][1] for name in CASES}
    for word in o.size:
        name, _, numbers = word.partition("=")
        if name not in CASES or len(numbers.split(",")) != 4:
            p.error(f"--size {word}: give CASE=NX,NY,NZ,NT")
        o.sizes[name] = tuple(int(n) for n in numbers.split(","))
    o.memext = os.path.join(o.build, "memext")
    return o


class Failed(Exception):
    """A sentence that says what failed."""


def output_of(words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{(done.stderr.strip().splitlines() or ['no message'])[-1]} (exit status {done.returncode}: {' '.join(map(str, words))})")
    return done.stdout


class Case:
    """One kernel: its programs, and what is run in a round."""

    def __init__(self, o, name, work):
        self.o, self.name, self.work = o, name, work
        source, _, self.init = CASES[name]
        *self.n, self.nt = o.sizes[name]
        self.kernel = os.path.join(ROOT, source) if source.startswith("systems/") else os.path.join(work, source)
        if name == "star7":
            with open(self.kernel, "w") as file:
                file.write(STAR7)
        if name == "wave64":
            with open(os.path.join(ROOT, "systems", "wave.c")) as text, open(self.kernel, "w") as file:
                file.write(text.read().replace("float", "double").replace('"wave"', '"wave64"'))
        self.plain = os.path.join(work, f"plain-{name}")
        grid = [f"-DGRID_{d}={n}" for d, n in zip("XYZ", self.n)]
        output_of(["cc", *COMPILE, f"-I{PLAIN}", f'-DKERNEL="{self.kernel}"', *grid, *(["-DSTAGGERED"] if name == "fdtd" else []),
                   os.path.join(PLAIN, "plain.c"), "-lm", "-o", self.plain])  # fmt: skip
        self.words = ["-n", *self.n, "-t", self.nt]
        self.store = os.path.join(work, f"{name}.store")
        self.calibrate()
        dry = self.report("--dry-run", "-d", self.store, "--dram", "1TiB", "--algorithm", "stream")
        self.dram = int(self.buffers_bytes(dry) / o.factor) // MIB * MIB

    def calibrate(self):
        """Measures the rates of the kernel and of the device with the tuner."""
        return json.loads(output_of([self.o.memext, "tune", "--kernel", self.kernel, *self.words, "-d", self.work, "--calibrate", "--quiet",
                                     "--json", "-"]))["rates"]  # fmt: skip

    def buffers_bytes(self, report):
        """Bytes of all Buffers of a run that can be resumed, and of the read-only fields."""
        p, h = report["problem"], report["problem"]["h"]
        bytes_of = {"f64": 8, "f32": 4, "u8": 1, "u16": 2, "i16": 2}
        rows = (self.n[1] + 2 * h) * (self.n[2] + 2 * h)
        fixed = sum((bytes_of[dtype] * (self.n[0] + 2 * h) + 63) // 64 * 64 * rows for dtype in p["kernel"]["fixed"].values())
        return report["layout"]["buffer_bytes"] * (2 if p["kernel"]["form"] == "jacobi" else 4) + fixed

    def report(self, *more, kernel=True):
        which = ["--kernel", self.kernel, *self.init] if kernel else ["--init", "random"]
        return json.loads(output_of([self.o.memext, "run", "--no-fuse", *which, *self.words, "--quiet", "--json", "-", *more]))

    def run(self, *more, kernel=True):
        r = self.report(*more, kernel=kernel)
        if "-d" in more and (r["read_bytes"], r["write_bytes"]) != (r["predicted_read_bytes"], r["predicted_write_bytes"]):
            raise Failed(f"{self.name}: the run moved {r['read_bytes']} + {r['write_bytes']} bytes (read + written), and {r['predicted_read_bytes']} + {r['predicted_write_bytes']} were predicted")
        keys = ("checksum", "wait_share", "read_bytes", "write_bytes", "seconds", "updates", "plan", "peak_rss_bytes", "dram_budget_bytes",
                "predicted_seconds")  # fmt: skip
        return {"gups": r["updates_per_second"] * 1e-9, "model_gups": r["updates"] / r["predicted_seconds"] * 1e-9,
                **{k: r.get(k) for k in keys}}  # fmt: skip

    def stream(self):
        """Out of core, and what the device alone would allow, measured next to it."""
        r = self.run("-d", self.store, "--dram", self.dram)
        rates = self.calibrate()
        moved = max((r["read_bytes"] + r["write_bytes"]) / rates["mixed_bytes_per_s"], r["read_bytes"] / rates["read_bytes_per_s"],
                    r["write_bytes"] / rates["write_bytes_per_s"])  # fmt: skip
        cells = self.n[0] * self.n[1] * self.n[2] * self.nt
        return {**r, "device_gups": cells / moved * 1e-9, "mixed_bytes_per_s": rates["mixed_bytes_per_s"]}

    def configurations(self):
        """{name: function returning a record}"""
        tiled = ["--backend", "dram", "--engine", "tiled"]
        both = {"plain loop": lambda: {"gups": float(output_of([self.plain, max(4, self.nt // 4)]))},
                "tiled": lambda: self.run(*tiled),
                "stream": self.stream}
        if self.name == "star7":
            both |= {"built-in tiled": lambda: self.run(*tiled, kernel=False),
                     "built-in stream": lambda: self.run("-d", self.store, "--dram", self.dram, kernel=False),
                     "built-in in two arrays": lambda: self.run(*tiled, "--plan", TWO_ARRAYS.format(bt=min(self.nt, 64)), kernel=False),
                     "kernel in the same tiles": lambda: self.run(*tiled, "--plan", TWO_ARRAYS.format(bt=min(self.nt, 64)))}
        return both


RATIOS = {
    "wave": [("stream", "tiled"), ("stream", "plain loop"), ("tiled", "plain loop")],
    "star7": [("tiled", "built-in tiled"), ("stream", "built-in stream"), ("kernel in the same tiles", "built-in in two arrays")],
}


def check(name, records):
    sums = {r["checksum"] for runs in records.values() for r in runs if "checksum" in r}
    if len(sums) > 1:
        raise Failed(f"{name}: runs with equal steps have different checksums: {', '.join(sorted(sums))}")


def show(results):
    print("| kernel | run | Gupdates/s, median | least .. most | waiting | bt | slab | device allows | model |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, records in results.items():
        for what, runs in records.items():
            rates, plan = [r["gups"] for r in runs], runs[0].get("plan") or {}
            part = [f"{statistics.median(rates):.3f}", f"{min(rates):.3f} .. {max(rates):.3f}",
                    f"{statistics.median(r['wait_share'] for r in runs):.1%}" if "wait_share" in runs[0] else "",
                    str(plan.get("bt", "")), str(plan.get("slab", "")),
                    f"{statistics.median(r['device_gups'] for r in runs):.2f}" if "device_gups" in runs[0] else "",
                    f"{statistics.median(r['model_gups'] for r in runs):.3f}" if "model_gups" in runs[0] else ""]  # fmt: skip
            print(f"| {name} | {what} | " + " | ".join(part) + " |")
    print()
    for name, records in results.items():
        for over, under in RATIOS.get(name, RATIOS["wave"]):
            if over not in records or under not in records:
                continue
            ratios = [a["gups"] / b["gups"] for a, b in zip(records[over], records[under])]
            print(f"{name}: {over} / {under}: {statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f})")
        if "stream" in records:
            ratios = [r["gups"] / r["device_gups"] for r in records["stream"]]
            print(f"{name}: stream / what the device allows: {statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f})")
            ratios = [r["gups"] / r["model_gups"] for r in records["stream"]]
            binds = sum(s["device_gups"] < t["gups"] for s, t in zip(records["stream"], records["tiled"]))
            print(f"{name}: stream / the model: {statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f}); the device is the bottleneck "
                  f"(it allows less than tiled in DRAM) in {binds} of {len(ratios)} rounds")  # fmt: skip


def measure(o, work):
    results = {}
    origin = {"command": " ".join(sys.argv), "commit": host.commit(ROOT), "kernel": platform.release(), "rounds": o.rounds,
              "machine": json.loads(output_of([o.memext, "info", "--quiet", "--json", "-"]))["machine"]}
    for name in o.cases:
        case, records = Case(o, name, work), {}
        todo = list(case.configurations().items())
        for i in range(o.rounds):
            for what, go in todo if i % 2 == 0 else reversed(todo):
                records.setdefault(what, []).append(go())
                print(f"{name} [{i + 1}/{o.rounds}] {what}: {records[what][-1]['gups']:.3f}", file=sys.stderr, flush=True)
            results[name] = {what: records[what] for what, _ in todo}
            check(name, results[name])
            with open(os.path.join(o.output, "systems.json.new"), "w") as file:
                json.dump({**origin, "sizes": {n: o.sizes[n] for n in o.cases}, "results": results}, file, indent=1)
            os.replace(os.path.join(o.output, "systems.json.new"), os.path.join(o.output, "systems.json"))
    show(results)


def main():
    o = options()
    if not os.path.exists(o.memext):
        sys.exit(f"systems.py: {o.memext} does not exist; build it with: cmake --preset release && cmake --build --preset release")
    os.makedirs(o.output, exist_ok=True)
    ownership.interruptible()
    try:
        with registry.Owner("systems.py") as owner:
            os.environ.update(owner.mark())
            work = owner.directory(o.device, "memext-speed-")["path"]
            os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
            measure(o, work)
    except (Failed, ownership.RegistryError) as error:
        sys.exit(f"systems.py: {error}")
    except KeyboardInterrupt:
        sys.exit(f"systems.py: interrupted; {o.output} has the complete rounds")


if __name__ == "__main__":
    main()
