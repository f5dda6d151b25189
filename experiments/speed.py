#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""How fast is out of core compared with in memory? All configurations run in turn, several times, and medians are compared.

Measures, in turn and several times over: the L1- and L2-resident peak of the best kernel (bench_engine), normal execution
(direct on dram, engine iblock), the tiled engine with everything in DRAM, stream out of core with the Buffers 4, 8, 16, 32 and 64
times the DRAM budget (inside experiments/limit-memory), and skewed-min at 4, 8 and 16 times.  Each figure is in 1e9 updates
per second of the sweeps, as a ratio to normal execution, to the tiled run and to the L2-resident peak, with the seconds of the whole phase over those of
the sweeps (making the Blocks counts there), the share of time spent waiting for I/O, the bytes moved, and what the plan's prediction says (with the rates of `memext tune --calibrate`, where they were measured).

The last column compares a stream run with what the device allows: the rate of the tiled run, or the rate at which the bytes of the run
would pass with reads and writes at once, whichever is less. That bandwidth is measured (memext tune --calibrate-seconds) in each round.

usage: experiments/speed.py [--quick] [--stencil star7 | --kernel FILE.c [--more WORDS]] [--dtype f64] [--size NX NY NZ] [--steps NT]
                            [--repeats 5] [--device DIR] [--output DIR] [--only NAME,NAME] [--settle 25] [--core-latency NS|auto] [--no-system]
With --no-system nothing is changed on the machine: it makes no cgroups, keeps the page cache, and the limited runs have --dram alone.
Writes speed-STENCIL-DTYPE.json (speed-KERNEL.json with --kernel) to --output (default results/speed) after every run, and at the end the picture of it that
analysis/speed.py draws. Runs with equal numbers of steps must have equal checksums, and every run must move the bytes that were
predicted. A run that does not, or that fails, is reported; the other runs are kept, and the exit status is 1.
"""
import argparse
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "experiments"))

from runner import distance, host, ownership, registry  # noqa: E402

BUILD = os.path.join(ROOT, "build", "release")
MEMEXT = os.path.join(BUILD, "memext")
BENCH = os.path.join(BUILD, "bench_engine")
LIMIT = os.path.join(ROOT, "experiments", "limit-memory")
MIB = 1 << 20
# What a process needs besides --dram (DESIGN: peak RSS stays within --dram plus 64 MiB).
SLACK = 64 * MIB
# At larger factors a run of skewed-min takes many minutes.
MOST_SKEWED = 16


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quick", action="store_true", help="use a smaller grid and 3 repeats")
    p.add_argument("--stencil", default="star7", help="built-in stencil (default: star7)")
    p.add_argument("--kernel", metavar="FILE.c", help="kernel to compute with instead of a built-in stencil; no peak is measured then")
    p.add_argument("--more", default="", metavar="WORDS", help="more options of all runs, in one word, e.g. --more '--init random --field v=V.npy'")
    p.add_argument("--dtype", default="f64", choices=["f64", "f32"], help="type of a cell (default: f64)")
    p.add_argument("--size", nargs=3, type=int, metavar=("NX", "NY", "NZ"), help="cells of the grid (default: 510 510 2046; with --quick 510 510 1022)")
    p.add_argument("--steps", type=int, help="time steps (default: 128; with --quick 64)")
    p.add_argument("--normal-steps", type=int, default=12, help="time steps of normal execution (default: 12)")
    p.add_argument("--repeats", type=int, help="number of repeats (default: 5; with --quick 3)")
    p.add_argument("--factors", default="4,8,16,32,64", help="sizes of the Buffers divided by the DRAM, separated by commas; skewed-min runs up to 16 (default: 4,8,16,32,64)")
    p.add_argument("--device", default=os.path.join(ROOT, "build"), help="directory on the storage to use (default: build)")
    p.add_argument("--settle", type=float, default=25, metavar="SECONDS",
                   help="pause after a run that holds everything in DRAM (default: 25): a virtual machine then returns that memory to its host, "
                        "which would slow down the next run")
    p.add_argument("--output", default=os.path.join(ROOT, "results", "speed"), metavar="DIR", help="directory for the results (default: results/speed)")
    p.add_argument("--core-latency", type=distance.limit, metavar="NS",
                   help="before each run, wait up to two minutes until a cache line goes from core to core within NS nanoseconds, and make a run of up to ten minutes again, at most twice, if it takes longer afterwards; auto: three times the least value seen (default: do not wait)")
    p.add_argument("--only", help="measure only runs whose name in the table begins with one of these words, separated by commas, e.g. normal,tiled,stream")
    p.add_argument("--no-system", action="store_true", help="set no memory limit around the runs, and keep the page cache")
    o = p.parse_args()
    o.size = o.size or ([510, 510, 1022] if o.quick else [510, 510, 2046])
    o.steps = o.steps or (64 if o.quick else 128)
    o.repeats = o.repeats or (3 if o.quick else 5)
    o.factors = [float(f) for f in o.factors.split(",")]
    o.more = shlex.split(o.more)
    o.name = pathlib.Path(o.kernel).stem if o.kernel else f"{o.stencil}-{o.dtype}"
    return o


def buffers_bytes(o):
    """Stored bytes: of both Buffers, and of the files of fields that a kernel only reads."""
    if o.kernel is None:
        element = 8 if o.dtype == "f64" else 4
        nx, ny, nz = o.size
        return 2 * (nx + 2) * (ny + 2) * (nz + 2) * element
    planned = report([*run_words(o, o.device, o.steps), "--dry-run"])
    words = [w for word in o.more for w in (word.split("=", 1) if word.startswith("--field=") else [word])]
    fields = [value.split("=", 1)[1].split(",")[0] for option, value in zip(words, words[1:]) if option == "--field"]
    return 2 * planned["layout"]["buffer_bytes"] + sum(os.path.getsize(path) for path in fields)


class RunFailed(Exception):
    """A sentence with the command and its message."""


def report(words, **environment):
    """Runs a command that prints one JSON object; RunFailed with its message otherwise."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    try:
        out, err = process.communicate()
    except BaseException:  # interrupted: limit-memory and memext clean up after themselves
        process.terminate()
        process.communicate()
        raise
    if process.returncode != 0:
        raise RunFailed(f"{(err.strip().splitlines() or ['no message'])[-1]} (exit status {process.returncode}: {' '.join(words)})")
    try:
        return json.loads(out)
    except ValueError as error:
        raise RunFailed(f"no report: {error} ({' '.join(words)})") from error


def run_words(o, store, steps, *more):
    return [MEMEXT, "run", "--no-fuse", "-n", *map(str, o.size), "-t", str(steps), "-d", store, *problem_words(o), "--quiet", "--json", "-", *more]


def problem_words(o):
    return ["--kernel", o.kernel, *o.more] if o.kernel else ["--stencil", o.stencil, "--dtype", o.dtype, *o.more]


def mixed_bytes_per_s(o, store):
    """The device's rate with reads and writes at once, now; None if it cannot be measured. The runs do not see it: they plan with the rates that memext assumes, or those that a user has measured."""
    words = [MEMEXT, "tune", "-n", *map(str, o.size), "-t", str(o.steps), "-d", store, *problem_words(o), "--backend", "uring", "--calibrate-seconds", "1", "--quiet", "--json", "-"]
    try:
        return report(words, XDG_CACHE_HOME=os.path.join(os.path.dirname(store), "cache"))["rates"]["mixed_bytes_per_s"]
    except RunFailed as error:
        print(f"speed.py: the device's rate is not known: {error}", file=sys.stderr)
        return None


def limited(o, budget, words):
    return [LIMIT, str(budget + SLACK), "--quiet", *(["--no-system"] if o.no_system else []), "--", *words, "--dram", str(budget)]


def configurations(o, store):
    """(name, group, function returning a record) in the order of the table."""
    def bench(mode):
        def go(ready):
            ready()
            r = report([BENCH, "--modes", mode, "--stencil", o.stencil, "--dtype", o.dtype, "--nx", str(o.size[0]), "--ny",
                        str(min(o.size[1], 510)), "--repeats", "1"])
            return {"gups": r[mode], "isa": r["isa"], "kernels": r.get(f"{mode}_of")}
        return go

    def memext(words, moves=False):
        def go(ready):
            mixed = mixed_bytes_per_s(o, store) if moves else None
            ready()
            r = report(words)
            moved = r["read_bytes"] + r["write_bytes"]
            return {"mixed_bytes_per_s": mixed, "device_gups": mixed * r["updates_per_second"] * r["seconds"] / moved * 1e-9 if mixed and moved else None, "gups": r["updates_per_second"] * 1e-9, "seconds": r["seconds"], "phase_seconds": r["phases"]["stencil"]["seconds"], "wait_share": r["wait_share"],
                    "read_bytes": r["read_bytes"], "write_bytes": r["write_bytes"],
                    "predicted": r["predicted_read_bytes"] == r["read_bytes"] and r["predicted_write_bytes"] == r["write_bytes"],
                    "peak_rss_bytes": r["peak_rss_bytes"], "dram_budget_bytes": r["dram_budget_bytes"], "plan": r["plan"],
                    "checksum": r["checksum"], "steps": r["steps_done"], "model_gups": r["updates_per_second"] * r["seconds"] / r["predicted_seconds"] * 1e-9, "command": " ".join(words)}
        return go

    if o.kernel is None:
        yield "peak L1", "peak", bench("peak_l1")
        yield "peak L2", "peak", bench("peak_l2")
    yield "normal (dram, iblock)", "memory", memext(run_words(o, store, o.normal_steps, "--backend", "dram", "--engine", "iblock"))
    yield "tiled (dram)", "memory", memext(run_words(o, store, o.steps, "--backend", "dram", "--engine", "tiled"))
    for algorithm in ("stream", "skewed-min"):
        for f in o.factors:
            if algorithm == "skewed-min" and f > MOST_SKEWED:
                continue
            budget = int(o.stored / f) // MIB * MIB
            words = run_words(o, store, o.steps, "--backend", "uring", "--algorithm", algorithm)
            yield f"{algorithm} {f:g}x", algorithm, memext(limited(o, budget, words), algorithm == "stream")


def wrong_bytes(record):
    """A sentence if the bytes differ from the prediction; "" if they agree, or nothing was predicted."""
    return "" if record.get("predicted", True) else "the run moved other bytes than predicted"


def odd_checksums(records):
    """[(name, why)] of the configurations whose checksum differs from that of most runs with the same number of steps."""
    found = {}
    for name, v in records.items():
        for run in v["runs"]:
            if "checksum" in run:
                found.setdefault(run["steps"], {}).setdefault(run["checksum"], []).append(name)
    odd = []
    for steps, names in found.items():
        usual = max(names, key=lambda c: len(names[c]))
        odd += [(name, f"after {steps} steps the checksum is {c}, and most runs have {usual}") for c in names if c != usual for name in dict.fromkeys(names[c])]
    return odd


def measure(o, keep):
    """Calls keep({name: records}, [(name, why)]) after every run. The directory for the Buffers is in the registry, so that the next start
    removes it should this one be killed."""
    say = lambda text: print(f"speed.py: {text}", file=sys.stderr)
    say(f"with --no-system this only makes a directory in {o.device}" if o.no_system else
        f"while it runs, this makes cgroups with a memory limit, drops the page cache, and makes a directory in {o.device}. "
        "With --no-system it only makes the directory")
    try:
        if not o.no_system:
            registry.sweep(say)
        with registry.Owner("speed.py") as owner:
            os.environ.update(owner.mark())
            measure_in(o, owner.directory(o.device, "memext-speed-")["path"], keep)
    except ownership.RegistryError as error:
        sys.exit(f"speed.py: {error}")


def measure_in(o, place, keep):
    records, failed = {}, []
    # One file for all runs, written once before: the first writes into a new file wait for the file system, and on a
    # virtual disk for its host, to find blocks; a file that goes sends them back.
    store = os.path.join(place, "grid.store")
    report(run_words(o, store, 1, "--backend", "uring", "--algorithm", "stream"))
    todo = [c for c in configurations(o, store) if not o.only or c[0].startswith(tuple(o.only.split(",")))]
    begin, done = time.time(), 0
    for a_round in range(o.repeats):
        for name, group, go in todo:
            done += 1
            try:
                record = {**near_cores(o, go, o.settle if group == "memory" else 0), "round": a_round}
                why = wrong_bytes(record)
            except RunFailed as error:
                record, why = None, str(error)
            if why:
                failed.append((name, why))
                print(f"[{done}/{len(todo) * o.repeats}] {name}: {why}", file=sys.stderr)
            if record is None:
                keep(records, failed)
                continue
            if group == "memory":
                time.sleep(o.settle)
            left = (time.time() - begin) / done * (len(todo) * o.repeats - done)
            print(f"[{done}/{len(todo) * o.repeats}, {left / 60:.1f} min left] {name}: {record['gups']:.3f} Gupdates/s",
                  file=sys.stderr)
            records.setdefault(name, {"group": group, "runs": []})["runs"].append(record)
            keep(records, failed)


def near_cores(o, go, settle_s):
    """The record of a run, made with near cores if --core-latency asks for them (runner/distance.py)."""
    cores = distance.Distance(pathlib.Path(MEMEXT), o.core_latency)
    while True:
        record = go(cores.before)
        cores.after()
        if not cores.disturbed() or not cores.once_more(record.get("seconds") or 0.0):
            return {**record, "cores": cores.ended()}
        time.sleep(settle_s)


def summarise(records):
    middle = {n: statistics.median(r["gups"] for r in v["runs"]) for n, v in records.items()}
    in_memory = {r["round"]: r["gups"] for r in records.get("tiled (dram)", {"runs": []})["runs"]}
    normal, tiled, peak = middle.get("normal (dram, iblock)"), middle.get("tiled (dram)"), middle.get("peak L2")
    rows = []
    for name, v in records.items():
        runs = v["runs"]
        rates = [r["gups"] for r in runs]
        row = {"name": name, "finished": len(runs), "rates": rates, "group": v["group"], "gups": middle[name], "least": min(rates), "most": max(rates),
               "to_normal": middle[name] / normal if normal else None, "to_tiled": middle[name] / tiled if tiled else None,
               "model_gups": runs[0].get("model_gups"), "to_peak": middle[name] / peak if peak else None}
        shares = [r["gups"] / min(in_memory[r["round"]], r["device_gups"]) for r in runs if r.get("device_gups") and r["round"] in in_memory]
        if shares:
            row.update(of_allowed=statistics.median(shares), of_allowed_each=shares)
        if known := [r["device_gups"] for r in runs if r.get("device_gups")]:
            row["device_gups"] = statistics.median(known)
        row["cores"] = [r["cores"] for r in runs if "cores" in r]
        if "read_bytes" in runs[0]:
            row.update(phase_of_sweeps=statistics.median(r["phase_seconds"] / r["seconds"] for r in runs))
            row.update(wait_share=statistics.median(r["wait_share"] for r in runs), read_bytes=runs[0]["read_bytes"],
                       write_bytes=runs[0]["write_bytes"], predicted=all(r["predicted"] for r in runs), plan=runs[0]["plan"],
                       checksum=runs[0]["checksum"], peak_rss_bytes=max(r["peak_rss_bytes"] for r in runs),
                       dram_budget_bytes=runs[0]["dram_budget_bytes"])
        rows.append(row)
    return rows


def show(rows):
    print("| run | Gupdates/s | least .. most | to normal | to tiled | to peak (L2) | phase / sweeps | by the model | waiting | read GiB | written GiB | the device allows | of what is allowed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for r in rows:
        part = lambda v, form: "" if v is None else format(v, form)
        gib = lambda v: "" if v is None else f"{v / (1 << 30):.2f}"
        print(f"| {r['name']} | {r['gups']:.3f} | {r['least']:.3f} .. {r['most']:.3f} | {part(r['to_normal'], '.2f')} | "
              f"{part(r['to_tiled'], '.2f')} | {part(r['to_peak'], '.2f')} | {part(r.get('phase_of_sweeps'), '.3f')} | {part(r.get('model_gups'), '.2f')} | {part(r.get('wait_share'), '.1%')} | {gib(r.get('read_bytes'))} | {gib(r.get('write_bytes'))} | {part(r.get('device_gups'), '.2f')} | {part(r.get('of_allowed'), '.2f')} |")


class Results:
    """The file of the results, whole at any moment."""

    def __init__(self, o):
        self.o, self.rows, self.failed = o, [], []
        self.path = os.path.join(o.output, f"speed-{o.name}.json")
        self.origin = {"command": " ".join(sys.argv), "commit": host.commit(ROOT), "machine": report([MEMEXT, "info", "--quiet", "--json", "-"])["machine"],
                       "kernel": platform.release(), "stencil": o.name if o.kernel else o.stencil, "dtype": "kernel" if o.kernel else o.dtype, "size": o.size, "steps": o.steps, "repeats": o.repeats,
                       "buffers_bytes": o.stored}  # fmt: skip

    def keep(self, records, failed):
        self.rows = summarise(records)
        self.failed = [*dict.fromkeys([*failed, *odd_checksums(records)])]
        failures = [{"name": name, "why": why} for name, why in self.failed]
        with open(self.path + ".new", "w") as file:
            json.dump({**self.origin, "rows": self.rows, "failed": failures}, file, indent=1)
        os.replace(self.path + ".new", self.path)


def draw(path):
    if not os.path.exists(os.path.join(ROOT, "analysis", "speed.py")):
        return
    done = subprocess.run([sys.executable, "-m", "analysis.speed", path, "-o", path.removesuffix(".json") + ".png"], cwd=ROOT)
    if done.returncode != 0:
        print(f"speed.py: no picture was drawn (see the message above); the results are in {path}", file=sys.stderr)


def main():
    o = options()
    for program in (MEMEXT, BENCH):
        if not os.path.exists(program):
            sys.exit(f"speed.py: {program} does not exist; build it with: cmake --preset release && cmake --build --preset release")
    if why := distance.missing(pathlib.Path(MEMEXT), o.core_latency):
        sys.exit(f"speed.py: {why}")
    o.output = os.path.abspath(o.output)
    os.makedirs(o.output, exist_ok=True)
    ownership.interruptible()
    try:
        o.stored = buffers_bytes(o)
        results = Results(o)
        measure(o, results.keep)
    except (RunFailed, OSError) as error:
        sys.exit(f"speed.py: {error}")
    except KeyboardInterrupt:
        sys.exit(f"speed.py: interrupted; {o.output} has the completed runs")
    show(results.rows)
    for name, why in results.failed:
        print(f"speed.py: {name}: {why}", file=sys.stderr)
    draw(results.path)
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
