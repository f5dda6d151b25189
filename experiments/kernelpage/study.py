# SPDX-License-Identifier: BSD-3-Clause
"""The runs, what is measured of each, how two are compared, and what a question is."""
import gzip
import json
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from runner import plan, record

from analysis import effects

MIB = 2**20
SECTOR = 512  # bytes, in the counters of a block device
SIZE = r"\d+(?:\.\d+)?[KMGT]iB"
# Runs that several questions look at.
NONE, HUGE, SCHEDULE, URING = "mmap-stream-none", "mmap-stream-hugepage", "mmap-stream-schedule", "uring-stream"


class Missing(Exception):
    """A run that a finding needs has no result: which, and why."""


@dataclass(frozen=True)
class Question:
    name: str
    title: str
    asked: str
    papers: str
    rows: object  # [(label, run)], or a function of the study that gives them
    panels: tuple  # ((measure, label), ...)
    findings: object  # function of the study that gives paragraphs; raises Missing
    heat: tuple = ()  # (label, run) whose residency is drawn over time
    also: tuple = ()  # (label, run) that the finding rests on and the figure does not show
    needs: tuple = ()  # runs without which there is nothing to ask: where this Linux lacks them, the question stands at the end of the page alone

    def runs(self, study):
        return self.rows(study) if callable(self.rows) else self.rows


PACKED = "kernel.jsonl.gz"  # analysis/pack.py: without timelines


def read(folder):
    """The records of a folder that experiments/run.py wrote, or of one with what analysis/pack.py made of it."""
    packed = Path(folder) / PACKED
    if not packed.exists():
        return record.Store(folder).records()
    with gzip.open(packed, "rt") as file:
        return [json.loads(line) for line in file]


class Study:
    def __init__(self, folder):
        records = read(folder)
        self.sessions = [r for r in records if r["kind"] == "session"]
        runs = [r for r in records if r["kind"] == "run"]
        if not runs:
            raise SystemExit(f"kernel.py: no runs in {folder}; experiments/kernel.py --run makes them")
        last = {r["id"]: r["key"] for r in runs}
        newest = {(r["id"], r["repeat"]): r for r in runs if r["key"] == last[r["id"]]}
        self.runs = {}
        for (name, repeat), r in sorted(newest.items(), key=lambda item: item[0]):
            self.runs.setdefault(name, {})[r.get("session", 0), repeat] = r  # a round is a repeat within one start of run.py

    def done(self, name):
        return {k: r for k, r in self.runs.get(name, {}).items() if r["status"] == "done"}

    def latest(self, name):
        return list(self.runs[name].values())[-1] if name in self.runs else None

    def why_not(self, name):
        """Why there is no result."""
        r = self.latest(name)
        last = (r["stderr"].strip().splitlines() or [r["status"]])[-1] if r else "it was not run"
        return re.sub(r"^(limit-memory|\w+\.py): ", "", last)

    def lacks(self, name):
        """What this Linux or machine lacks for a run; "" where it has a result, was not run or failed."""
        r = self.latest(name)
        return self.why_not(name) if r and r["status"] == "skipped" and not r.get("no_system") and not self.done(name) else ""

    def missing(self, name):
        return Missing(f"`{name}` has no result ({self.why_not(name)})")

    def values(self, name, of):
        """Of the runs in which it was counted."""
        return [v for v in (of(r) for _, r in sorted(self.done(name).items())) if v is not None]

    def median(self, name, of):
        if not self.done(name):
            raise self.missing(name)
        values = self.values(name, of)
        if not values:
            raise Missing(f"`{name}` has no count of it ({(of.__doc__ or of.__name__).strip()})")
        return statistics.median(values)

    def usual(self):
        """A run with the settings that the plan has for all: that without advice, else any with a limit."""
        return self.latest(NONE) or next((self.latest(name) for name in self.runs if self.latest(name)["limit"]), None)

    def machine(self):
        return self.sessions[-1]["machine"]


# ------------------------------------------------------------------ measures of a run; None where it was not counted


def report(r):
    return r["report"]


def step_ms(r):
    """milliseconds a step of the stencil phase"""
    return report(r)["seconds"] / report(r)["steps_done"] * 1000


step_ms.timed = True  # a time, which short runs do not tell


def kernel_of(name):
    return lambda r: report(r)["kernel"][name]


def read_ratio(r):
    """Bytes that the storage read, of those that the schedule loads; on the mapping, of one Buffer a step. A store to an extent that was never written reads nothing, so the ratio grows with the sweeps:
    only runs of as many sweeps can be compared."""
    needed = report(r)["predicted_read_bytes"] or report(r)["layout"]["buffer_bytes"] * report(r)["steps_done"]
    return kernel_of("storage_read_bytes")(r) / needed


def sweeps_made(r):
    """How often a run went over the grid; 0 if its report does not say."""
    said = report(r) or {}
    return -(-said["steps_done"] // max(1, said["plan"]["bt"])) if "plan" in said else 0


def sweeps(study, name):
    """ "all 6 sweeps of the run" """
    made = sweeps_made(study.latest(name))
    return f"all {made} sweeps of the run" if made else "all sweeps of the run"


def written_ratio(r):
    """write_sectors of the block device, of what the run stored"""
    # Not write_bytes of /proc/self/io: it counts the pages of a mapping when they become dirty, not when they are written.
    sectors, stored = (r.get("block") or {}).get("write_sectors"), report(r)["write_bytes"]
    return sectors * SECTOR / stored if sectors is not None and stored else None


def system_ms(r):
    return kernel_of("system_s")(r) / report(r)["steps_done"] * 1000


system_ms.timed = True


def faults(r):
    """faults a MiB stored"""
    return kernel_of("minor_faults")(r) / max(1, report(r)["write_bytes"] / MIB)


def major_faults(r):
    """faults a MiB stored that waited for the storage"""
    waited = report(r).get("major_faults")
    return None if waited is None else waited / max(1, report(r)["write_bytes"] / MIB)


def refaults(r):
    """pages of the whole machine that came back after reclaim (refaults), of those that the run loaded"""
    loaded, again = report(r)["predicted_read_bytes"], report(r)["kernel"].get("refault_bytes")
    return again / loaded if loaded and again is not None else None


def merged(r):
    """requests that were merged into others, of all"""
    b = r.get("block") or {}
    total = sum(b.get(name, 0) for name in ("reads", "writes", "reads_merged", "writes_merged"))
    return (b["reads_merged"] + b["writes_merged"]) / total if total and {"reads_merged", "writes_merged"} <= set(b) else None


def kib_a_request(what):
    def of(r):
        counted = r.get("block") or {}
        return counted[f"{what}_sectors"] / 2 / counted[f"{what}s"] if counted.get(f"{what}s") and f"{what}_sectors" in counted else None

    of.__doc__ = f"{what} requests of the block layer"
    return of


read_kib, write_kib = kib_a_request("read"), kib_a_request("write")


def device_reads(r):
    """reads that the device completed"""
    return (r.get("block") or {}).get("reads")


def of_report(name):
    def of(r):
        return report(r).get(name)

    of.__doc__ = f"{name} of its report"
    return of


def share(kind, who):
    """Of the run's time in which some or all tasks waited, by the machine's PSI."""
    def of(r):
        waited = (r.get("pressure") or {}).get(f"{kind}_{who}_us")
        return None if waited is None or not r["wall_s"] else waited / 1e6 / r["wall_s"]

    of.__doc__ = f"{kind} {who} of /proc/pressure"
    return of


def counter(name):
    def of(r):
        return (r.get("vmstat") or {}).get(name)

    of.__doc__ = f"{name} of /proc/vmstat"
    return of


# ------------------------------------------------------------------ two runs


class Effect:
    """How many times as much a has as b, round by round."""

    seen = set()  # the intervals that a page has

    def __init__(self, study, a, b, of=step_ms):
        first, second = study.done(a), study.done(b)
        pairs = [(of(first[k]), of(second[k])) for k in first.keys() & second.keys()]
        self.ratios = sorted(x / y for x, y in pairs if x and y and x > 0 and y > 0)
        if not self.ratios:
            gone = [name for name, found in ((a, first), (b, second)) if not found]
            raise study.missing(gone[0]) if gone else Missing(f"`{a}` and `{b}` have no round in which both were counted")
        self.effect = effects.Effect(tuple(self.ratios))
        self.few = self.effect.interval() is None
        self.short = getattr(of, "timed", False) and min(study.median(name, lambda r: report(r)["seconds"]) for name in (a, b)) < effects.LEAST_SECONDS
        if self.enough:
            Effect.seen.add((a, b, of))

    @property
    def enough(self):
        """Are there enough rounds for an interval, and are the runs long enough for their times to be compared?"""
        return not self.few and not self.short

    @property
    def sign(self):
        """1 more, -1 less, 0 where the interval holds 1 or there is not enough to tell."""
        low, high = self.effect.interval() if self.enough else (0.0, 2.0)
        return 1 if low > 1 else -1 if high < 1 else 0

    def __str__(self):
        if self.few:
            return f"{self.effect.value:.2f} times, with {self.ratios[0]:.2f} to {self.ratios[-1]:.2f} in {self.effect.n} round{'s' if self.effect.n > 1 else ''},"
        low, high = self.effect.interval()
        return f"{self.effect.value:.2f} times [{low:.2f} to {high:.2f}, n = {self.effect.n}]"


def takes(study, a, b, than, of=step_ms):
    """takes ... THAN. Too few rounds, or runs that are too short, tell nothing."""
    effect = Effect(study, a, b, of)
    if not effect.enough:
        return f"cannot be compared with {than}: {'too few rounds' if effect.few else 'the runs are too short'} ({effect} as long)"
    if effect.sign:
        return f"takes {effect} as long as {than}"
    return f"shows no clear difference from {than} ({effect} as long)"


def take(*compared):
    """takes() for a subject in the plural."""
    return takes(*compared).replace("takes", "take", 1).replace("shows", "show", 1)


def by_sign(effect, less, more, neither):
    return (neither, more, less)[effect.sign]


def counted(study, name, of, form):
    """The median, with the least and the most where the rounds differ: 506 (498 to 512)."""
    median, values = form.format(study.median(name, of)), study.values(name, of)
    least, most = form.format(min(values)), form.format(max(values))
    return median if least == most else f"{median} ({least} to {most})"


def several(study, names, of, form):
    return "; ".join(f"{label} {counted(study, name, of, form)}" for label, name in names if study.values(name, of))


def table(study, names, columns):
    """A paragraph that is a table: a row a run, with what was counted of it. columns: (measure, title, form)"""
    rows = [[label, *(counted(study, name, of, form) if study.values(name, of) else "" for of, _, form in columns)] for label, name in names]
    rows = [["runs", *(title for _, title, _ in columns)], ["---"] * (1 + len(columns)), *(row for row in rows if any(row[1:]))]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def at_limits(study, name):
    """[(limit, run)] of the run and of those that are the same at another limit, NAME-320MiB, by the limit."""
    found = [other for other in study.runs if other == name or re.fullmatch(re.escape(name) + f"-{SIZE}", other)]
    return sorted(((study.latest(other)["limit"], other) for other in found), key=lambda x: plan.size_bytes(x[0]))


def numbered(study, prefix):
    """[(number, name)] of the runs PREFIXnumber, in order."""
    return sorted((int(name.removeprefix(prefix)), name) for name in study.runs if name.startswith(prefix) and name.removeprefix(prefix).isdigit())
