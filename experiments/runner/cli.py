# SPDX-License-Identifier: BSD-3-Clause
"""experiments/run.py: runs plans, shows progress, and resumes where an earlier start stopped."""
import argparse
import contextlib
import os
import random
import sys
import tempfile
import time
import uuid
from pathlib import Path

from . import distance, host, near, ownership, plan, registry
from .execute import ZRAM, Place, execute, needs_of_system, settle_s, skipped
from .record import Store

ROOT = Path(__file__).resolve().parents[2]


def options(argv):
    p = argparse.ArgumentParser(prog="experiments/run.py", description=__doc__)
    p.add_argument("plans", nargs="*", help="names or files of plans (default: all of experiments/plans)")
    size = p.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="scale", action="store_const", const="quick", help="scaled down (default)")
    size.add_argument("--thorough", dest="scale", action="store_const", const="thorough", help="small problems, with all points and many repeats: takes hours")
    size.add_argument("--night", dest="scale", action="store_const", const="night", help="larger problems and limited devices; experiments/night.py decides the number of repeats")
    size.add_argument("--full", dest="scale", action="store_const", const="full", help="the papers' sizes: needs hours, large memory and flash")
    p.add_argument("--scale", help="use the table [scale.SCALE] of the plans")
    p.add_argument("--results", type=Path, help="folder for the results (default: results/SCALE)")
    p.add_argument("--data", type=Path, default=Path(os.environ.get("MEMEXT_DATA", "/var/tmp/memext-experiments")),
                   help="directory on the storage to measure (default: $MEMEXT_DATA or /var/tmp/memext-experiments)")  # fmt: skip
    p.add_argument("--memext", type=Path, default=ROOT / "build" / "release" / "memext", help="the memext command to measure (default: build/release/memext)")
    p.add_argument("--repeats", type=int, help="number of repeats of each run (default: the plan's own)")
    p.add_argument("--minutes", type=float, help="time limit: skip runs that would probably end later. Every configuration of all plans runs once, then "
                   "every one runs a second time, and so on. If runs are left, the exit status is 75; start the same command again to continue")  # fmt: skip
    p.add_argument("--probe", type=near.seconds, default=near.SECONDS, metavar="SECONDS",
                   help="before each run on aio and uring, measure the rates of this machine for SECONDS; predictions are then judged with current rates (default: %(default)g; 0: do not measure)")  # fmt: skip
    p.add_argument("--core-latency", type=distance.limit, metavar="NS",
                   help="before each run, wait up to two minutes until a cache line goes from core to core within NS nanoseconds, and make a run of up to ten minutes again, at most twice, if it takes longer afterwards. "
                   "For virtual machines whose cores move (build/release/bench_latency prints the current value). auto: three times the least value seen, and at least 60. With --minutes, at most a fifth of the time that is left is spent so. "
                   "(default: do not wait)")  # fmt: skip
    p.add_argument("--only", help="run only configurations whose id contains this text")
    p.add_argument("--retry-failed", action="store_true", help="run failed runs again (default: a failure counts as a result)")
    p.add_argument("--no-system", action="store_true",
                   help="change nothing on this machine (no memory limit, swap file, Linux setting or dropped cache); runs that need a change are recorded as skipped")  # fmt: skip
    p.add_argument("--list", action="store_true", help="print the runs and their commands, and run nothing")
    p.set_defaults(scale="quick")
    return p.parse_args(argv)


def plan_files(names, scale):
    """The named plan files; without names, all plan files that have this scale."""
    if not names:
        return [path for path in sorted(plan.PLANS.glob("*.toml")) if plan.has(path, scale)]
    return [Path(name) if name.endswith(".toml") else plan.PLANS / f"{name}.toml" for name in names]


def work_list(a_plan, store, program, repeats=None, only=None, retry_failed=False, system=True):
    """(run, repeat) pairs that are left, round by round, so that slow drifts of the machine affect all runs equally. The runs of a round are paired, so
    one start must do the whole round, or it is done again. Each round has its own order: no run always follows the same slow neighbour."""
    done = store.finished(retry_failed, system)
    runs = [run for run in a_plan.runs if not only or only in run.id]
    todo = []
    for repeat in range(max((repeats or run.repeats for run in runs), default=0)):
        a_round = [run for run in runs if repeat < (repeats or run.repeats)]
        sessions = {done.get((run.key(program), repeat)) for run in a_round}
        if None in sessions or len(sessions) > 1:
            random.Random(f"{a_plan.name} {repeat}").shuffle(a_round)
            todo += [(run, repeat) for run in a_round]
    return todo


FIRST_GUESS_S = 8.0
OUT_OF_TIME = 75  # exit status if --minutes left runs undone


class Progress:
    """Prints a line for each run, with the remaining time estimated from completed runs."""

    def __init__(self, total, stream=sys.stderr):
        self.total, self.done, self.failed, self.skipped = total, 0, 0, 0
        self.postponed = 0  # for lack of time
        self.seen = {}
        self.spent = 0.0
        self.stream = stream
        self.live = stream.isatty()

    def expected_s(self, run):
        return self.seen.get((run.plan, run.id), self.spent / self.done if self.done else FIRST_GUESS_S)

    def left_s(self, todo):
        return sum(self.expected_s(run) for run, _ in todo)

    def begin(self, run, repeat, todo):
        if self.live:
            self.stream.write(f"\r\033[K[{self.done + 1}/{self.total}] {run.plan} {run.id} #{repeat + 1}, about {clock(self.left_s(todo))} left")
            self.stream.flush()

    def end(self, run, repeat, record, seconds, todo):
        self.done += 1
        self.spent += seconds
        self.seen[run.plan, run.id] = seconds
        self.failed += record["status"] not in ("done", "skipped")
        self.skipped += record["status"] == "skipped"
        note = "" if record["status"] == "done" else "  " + (record["stderr"].strip().splitlines() or ["no message"])[-1][:160]
        self.stream.write(("\r\033[K" if self.live else "") + f"[{self.done}/{self.total}] {run.plan} {run.id} #{repeat + 1}: "
                          f"{record['status']} {record['wall_s']:.1f} s, about {clock(self.left_s(todo))} left{note}\n")  # fmt: skip
        self.stream.flush()


def clock(seconds):
    minutes, s = divmod(int(seconds + 0.5), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours} h {m:02d} min" if hours else f"{m} min {s:02d} s" if m else f"{s} s"


def check_data(data):
    """The directory to measure in. Creates it; refuses file systems in memory."""
    data.mkdir(parents=True, exist_ok=True)
    if host.is_memory(data):
        raise SystemExit(f"run.py: --data {data} is in memory (tmpfs); name a directory on storage")
    return data.resolve()


def session_record(a_plan, place, program, argv):
    return {
        "kind": "session",
        "session": uuid.uuid4().hex[:12],
        "plan": a_plan.name,
        "title": a_plan.title,
        "scale": a_plan.scale,
        "runs": [run.id for run in a_plan.runs],
        "commit": host.commit(place.root),
        "program": program,
        "started_unix_s": time.time(),
        "argv": list(argv),
        "machine": host.machine(place.data, place.memext if place.memext.exists() else None),
    }


def show(plans):
    for a_plan in plans:
        print(f"# {a_plan.name}: {a_plan.title}")
        for run in a_plan.runs:
            around = f"limit-memory {run.limit} {'--high ' + run.high + ' ' if run.high else ''}{'--swap ' + run.swap + ' ' if run.swap else ''}-- " if run.limit else ""
            around += f"(on {run.file_system}) " if run.file_system else ""
            settings = "".join(f"{k}={v} " for k, v in {**run.usual, **run.knobs}.items())
            print(f"{run.id} x{run.repeats}: {settings}{around}{' '.join(run.words)}")


def run_plans(plans, place_of, program, o, argv, stream=sys.stderr):
    stores = {p.name: Store(place_of(p).results) for p in plans}
    lists = [(p, work_list(p, stores[p.name], program, o.repeats, o.only, o.retry_failed, not o.no_system)) for p in plans]
    left = [pair for _, todo in lists for pair in todo]
    there = sum(len(work_list(p, EMPTY, program, o.repeats, o.only)) for p in plans) - len(left)
    ordered = [(p, *pair) for p, todo in lists for pair in todo]
    if o.minutes is not None:
        ordered.sort(key=lambda entry: entry[2])  # round by round over all plans
        left = [(run, repeat) for _, run, repeat in ordered]
    progress = Progress(len(left), stream)
    for store in stores.values():
        progress.seen.update({(r["plan"], r["id"]): r["wall_s"] for r in store.records() if r["kind"] == "run"})
    end = time.monotonic() + 60 * o.minutes if o.minutes is not None else None
    stream.write(f"{len(left)} runs" + (f"; {there} more are recorded already" if there else "") + "\n")
    sessions = {}
    for a_plan, run, repeat in ordered:
        begin = time.monotonic()
        if end is not None and begin + progress.expected_s(run) > end:
            progress.postponed += 1
            left.pop(0)
            continue
        place, store = place_of(a_plan), stores[a_plan.name]
        if a_plan.name not in sessions:
            sessions[a_plan.name] = session_record(a_plan, place, program, argv)
            store.append(sessions[a_plan.name])
        session = sessions[a_plan.name]
        if o.core_latency and end is not None:
            o.core_latency.left_s = min(o.core_latency.left_s, distance.SHARE * max(0.0, end - begin))
        progress.begin(run, repeat, left)
        record = (skipped if o.no_system and needs_of_system(run) else execute)(run, repeat, place)
        record = {"kind": "run", "session": session["session"], "scale": a_plan.scale, "key": run.key(program),
                  "commit": session["commit"], "program": program, "no_system": o.no_system, **record}  # fmt: skip
        store.append(record)
        left.pop(0)
        time.sleep(settle_s(run, record))
        progress.end(run, repeat, record, time.monotonic() - begin - distance.spent_s(record.get("cores")), left)
    return progress


class _Empty:
    def finished(self, retry_failed=False, system=True):
        return {}


EMPTY = _Empty()


def say(text):
    print(f"run.py: {text}", file=sys.stderr, flush=True)


def announcement(plans, data, results, no_system):
    """The line that says what will be changed on this machine."""
    files = f"directories in {data} and {tempfile.gettempdir()}, removed after each run; results in {results}"
    if no_system:
        return f"with --no-system this changes only files on this machine: {files}"
    runs = [run for p in plans for run in p.runs]
    settings = sorted({name for run in runs for name in {**run.usual, **run.knobs}})
    changes = ["drops the page cache before each run"]
    changes += ["makes cgroups with a memory limit"] if any(run.limit for run in runs) else []
    changes += [f"makes swap files in {data}"] if any(run.swap and not run.swap.startswith(ZRAM) for run in runs) else []
    changes += ["makes swap space in compressed memory (zram)"] if any(run.swap.startswith(ZRAM) for run in runs) else []
    changes += [f"mounts file systems from files in {data}, on loop devices"] if any(run.file_system for run in runs) else []
    changes += [f"changes the settings {', '.join(settings)}, and restores them after each run"] if settings else []
    return f"while it runs, this {'; '.join(changes)}. It makes {files}. With --no-system it changes only these files"


def prepare(stack):
    """Removes what killed starts left. Root may change settings and holds their lock: of two runners at once, each would mistake the other's settings for
    the machine's own."""
    registry.sweep(say)
    if os.geteuid() == 0:
        try:
            stack.enter_context(ownership.held("settings", wait=False))
        except ownership.Busy:
            raise ownership.Busy("another run.py or with-settings changes settings on this machine; wait until it has ended, or use --no-system, which changes none") from None
        registry.sweep(say, settings=True)  # again: its last holder may have been killed in between


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    o = options(argv)
    try:
        plans = [plan.load(path, o.scale) for path in plan_files(o.plans, o.scale)]
    except plan.PlanError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    if o.list:
        show(plans)
        return 0
    if not o.memext.exists():
        print(f"run.py: --memext {o.memext} does not exist; build it with cmake --preset release && cmake --build --preset release", file=sys.stderr)
        return 2
    if why := distance.missing(o.memext.resolve(), o.core_latency):
        print(f"run.py: {why}", file=sys.stderr)
        return 2
    data = check_data(o.data)
    results = o.results or ROOT / "results" / o.scale
    device, program = host.device_of(data), host.program_id(o.memext)
    if o.core_latency:
        for raw in sorted(results.glob("*/raw.jsonl")):
            o.core_latency.seen_before(Store(raw.parent).records(), time.time())

    say(announcement(plans, data, results, o.no_system))
    ownership.interruptible()
    try:
        with contextlib.ExitStack() as stack:
            if not o.no_system:
                prepare(stack)
            owner = stack.enter_context(registry.Owner("run.py"))

            def place_of(a_plan):
                return Place(ROOT, o.memext.resolve(), data, results.resolve() / a_plan.name, device, owner=owner, system=not o.no_system, probe_s=o.probe, near_cores=o.core_latency)

            progress = run_plans(plans, place_of, program, o, argv)
    except (ownership.RegistryError, ownership.Busy) as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        print("\nrun.py: interrupted; start the same command again to continue", file=sys.stderr)
        return 5
    if progress.failed:
        print(f"{progress.failed} of {progress.total} runs failed and are recorded as failed; --retry-failed runs them again", file=sys.stderr)
    if progress.postponed:
        print(f"{progress.postponed} of {progress.total} runs did not fit into --minutes {o.minutes:g}; start the same command again to continue with them", file=sys.stderr)
    if progress.skipped:
        print(f"{progress.skipped} of {progress.total} runs were skipped, because of --no-system or because this machine or Linux lacks something; stderr in raw.jsonl says what", file=sys.stderr)
    return OUT_OF_TIME if progress.postponed else 0
