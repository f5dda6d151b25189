# SPDX-License-Identifier: BSD-3-Clause
"""Reads raw.jsonl, or a file that pack.py made of it, into groups of runs. experiments/runner/record.py states the schema."""
import gzip
import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from analysis.stats import stat

SCHEMA = 1
PACKED = ".jsonl.gz"
MEMEXT = re.compile(r"(^|/)memext( |$)")
AGAIN = ("second", "third", "fourth")  # "fig05-second" and so on: other measurements of a plan, by falling number of rounds. The plan's own name has the one that decides


def named(plan, again):
    """The name of another measurement of a plan; again: one of AGAIN."""
    return f"{plan}-{again}"


def plan_of(name):
    """The plan that a measurement belongs to, and which one it is: one of AGAIN, or "" for the measurement that decides."""
    return next(((name.removesuffix(named("", again)), again) for again in AGAIN if name.endswith(named("", again))), (name, ""))


STATUSES = ("done", "failed", "timeout", "skipped")
NUMBER = (int, float)
RUN_FIELDS = {
    "session": str, "plan": str, "scale": str, "id": str, "repeat": int, "params": dict, "key": str, "command": list, "commit": str,
    "program": str, "status": str, "stderr": str, "started_unix_s": NUMBER, "wall_s": NUMBER, "limit": str, "swap": str, "knobs": dict,
}  # fmt: skip
SESSION_FIELDS = {"session": str, "plan": str, "title": str, "scale": str, "commit": str, "program": str, "machine": dict, "argv": list}
# What the figures read of a report of `memext run`.
REPORT_FIELDS = {
    "status": str, "problem": dict, "plan": dict, "layout": dict, "backend": str, "seconds": NUMBER, "init_seconds": NUMBER,
    "updates_per_second": NUMBER, "steps_done": int, "read_bytes": int, "write_bytes": int, "predicted_read_bytes": int,
    "predicted_write_bytes": int, "time": dict, "kernel": dict, "peak_rss_bytes": int, "major_faults": int,
}  # fmt: skip
TIME_FIELDS = ("buf2blk_s", "blk2buf_s", "blk2blk_s", "update_s", "wait_s")


class SchemaError(ValueError):
    """A record that does not follow the schema. The message names the file, the line and the key."""


def _check(where, table, fields):
    for name, kind in fields.items():
        if name not in table:
            raise SchemaError(f"{where}: the record has no key '{name}'")
        if not isinstance(table[name], kind) or isinstance(table[name], bool):
            raise SchemaError(f"{where}: the key '{name}' has a value of the wrong type, {type(table[name]).__name__}: {table[name]!r}")


def check_record(where, record):
    if record.get("schema") != SCHEMA:
        raise SchemaError(f"{where}: the schema is {record.get('schema')!r}, and this analysis reads schema {SCHEMA} only")
    if record.get("kind") == "session":
        _check(where, record, SESSION_FIELDS)
        return
    if record.get("kind") != "run":
        raise SchemaError(f"{where}: the kind is {record.get('kind')!r}, and must be 'session' or 'run'")
    _check(where, record, RUN_FIELDS)
    if record["status"] not in STATUSES:
        raise SchemaError(f"{where}: the status is {record['status']!r}, and must be one of {', '.join(STATUSES)}")
    # From reports of `memext wavefront` the figures read only seconds and plan. Scripts of experiments/ have reports of their own.
    wavefront = "wavefront" in record["command"]
    if not any(MEMEXT.search(word) for word in record["command"]):
        return
    if record["status"] == "done" and isinstance(record.get("report"), dict) and "seconds" in record["report"]:
        if wavefront:
            _check(f"{where}: report", record["report"], {"seconds": NUMBER, "plan": dict})
            return
        _check(f"{where}: report", record["report"], REPORT_FIELDS)
        _check(f"{where}: report.time", record["report"]["time"], {k: NUMBER for k in TIME_FIELDS})


@dataclass
class Run:
    """One record of a run."""

    record: dict
    folder: Path

    def __getattr__(self, name):
        if name != "record" and name in self.record:
            return self.record[name]
        raise AttributeError(name)

    @property
    def round(self):
        """Runs of one round are paired: the same start of the runner made them with one program, close to each other in time."""
        return self.record["session"], self.repeat

    @property
    def ok(self):
        return self.record["status"] == "done"

    @property
    def skipped(self):
        return self.record["status"] == "skipped"

    @property
    def report(self):
        return self.record.get("report") or {}

    @property
    def timeline_path(self):
        name = self.record.get("timeline")
        path = self.folder / name if name else None
        return path if path and path.exists() else None

    @property
    def steps(self):
        return self.report.get("steps_done", 0)

    @property
    def seconds(self):
        """From the first step until the result is on the storage: an algorithm without commits writes back what a mapping has in memory when its steps are over."""
        return self.report["seconds"] + ((self.report.get("phases") or {}).get("finish") or {}).get("seconds", 0.0)

    @property
    def seconds_per_step(self):
        return self.seconds / self.steps if self.steps else None

    @property
    def rate(self):
        """Useful updates per second."""
        return self.report["updates_per_second"]

    @property
    def buffers_bytes(self):
        return 2 * self.report["layout"]["buffer_bytes"]

    @property
    def needed_bytes(self):
        """(read, written) that the schedule asks for: CalcTrans; on the mapping, one Buffer in and one out a step."""
        r = self.report
        if r["predicted_read_bytes"] or r["predicted_write_bytes"]:
            return r["predicted_read_bytes"], r["predicted_write_bytes"]
        sweeps = -(-self.steps // max(1, r["plan"]["bt"])) if r["plan"]["algorithm"] != "direct" else self.steps
        return sweeps * r["layout"]["buffer_bytes"], sweeps * r["layout"]["buffer_bytes"]

    @property
    def failure(self):
        """Why the run failed, in a few words; "" if it did not fail."""
        if self.ok:
            return ""
        text = self.record["stderr"].strip()
        if self.record["status"] == "timeout":
            return f"not complete after {self.record.get('timeout_s', self.record['wall_s']):.0f} s"
        if "out of memory" in text or self.record.get("exit") in (137, -9):
            return "killed: out of memory"
        return (text.splitlines() or [f"exit {self.record.get('exit')}"])[-1]


@dataclass
class Group:
    """The repeats of one configuration."""

    id: str
    params: dict
    runs: list = field(default_factory=list)

    @property
    def done(self):
        return [run for run in self.runs if run.ok]

    @property
    def failures(self):
        return [run for run in self.runs if not run.ok and not run.skipped]

    @property
    def failure(self):
        """Why there is no result; "" if there is one."""
        return self.runs[0].failure if self.runs and not self.done else ""

    def stat(self, of):
        """Stat of a function of the completed runs, with the number of failed runs. None if no run completed, or none has the value."""
        found = stat(of(run) for run in self.done)
        return replace(found, failed=len(self.failures)) if found else None

    def first(self, of, default=None):
        return of(self.done[0]) if self.done else default

    def __getitem__(self, name):
        return self.params.get(name)


@dataclass
class PlanResults:
    name: str
    title: str
    scale: str
    sessions: list
    groups: dict

    def select(self, **wanted):
        """Groups whose parameters have these values, in the order of the plan. Without arm=, these are the groups that ran with the plan's own settings of Linux."""
        wanted = {"arm": None, **wanted}
        return [g for g in self.groups.values() if all(g.params.get(k) == v for k, v in wanted.items())]

    def one(self, **wanted):
        found = self.select(**wanted)
        return found[0] if found else None

    @property
    def runs(self):
        return [run for g in self.groups.values() for run in g.runs]


def read_records(path):
    """Checked records of a raw.jsonl or of a packed file. An incomplete last line, which a working runner leaves, is ignored."""
    data = Path(path).read_bytes()
    text = (gzip.decompress(data) if str(path).endswith(".gz") else data).decode()
    lines = text.splitlines()
    if text and not text.endswith("\n"):
        lines.pop()
    records = []
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise SchemaError(f"{where}: {error}") from error
        check_record(where, record)
        records.append(record)
    return records


def read_plan(folder):
    """PlanResults of one folder or packed file, in the order of the plan. If a configuration was recorded several times (with another command or program), the last record counts. Configurations that the
    plan no longer has do not count."""
    folder = Path(folder)
    packed = folder.name.endswith(PACKED)
    name = folder.name.removesuffix(PACKED)
    records = read_records(folder if packed else folder / "raw.jsonl")
    sessions = [r for r in records if r["kind"] == "session"]
    runs = [r for r in records if r["kind"] == "run"]
    last_key = {r["id"]: r["key"] for r in runs}
    newest = {(r["id"], r["repeat"]): r for r in runs if r["key"] == last_key[r["id"]]}
    planned = sessions[-1].get("runs") if sessions else None
    place = {name: k for k, name in enumerate(planned or dict.fromkeys(r["id"] for r in runs))}
    groups = {}
    for record in sorted((r for r in newest.values() if r["id"] in place), key=lambda r: (place[r["id"]], r["repeat"])):
        group = groups.setdefault(record["id"], Group(record["id"], record["params"]))
        group.runs.append(Run(record, folder))
    title = sessions[-1]["title"] if sessions else name
    scale = sessions[-1]["scale"] if sessions else ""
    return PlanResults(name, title, scale, sessions, groups)


def read_all(folder):
    """{plan name: PlanResults} of every plan under a results folder, or of the packed files in it."""
    folders = [path.parent for path in Path(folder).glob("*/raw.jsonl")] + list(Path(folder).glob("*" + PACKED))
    return {(p := read_plan(path)).name: p for path in sorted(folders)}
