# SPDX-License-Identifier: BSD-3-Clause
"""raw.jsonl, schema 1: one JSON object in each line.

{"schema":1,"kind":"session", ...}  a start of the runner: plan, scale, ids of its runs, commit, program, machine, command line
{"schema":1,"kind":"run", ...}      a run, whatever became of it:
    session      id of the session line that it belongs to
    plan, scale, id, repeat, params     what was asked for
    key          hash of command, limits, settings and program: what resuming goes by
    command      the words as executed; `limit`, `high`, `swap`, `file_system`, `knobs` around them (settings of the run and of its arm that were set; params.arm names an arm beside the plan's own)
    commit, program
    no_system    was it a start with --no-system: not taken for finished by one without
    status       done | failed | timeout | skipped (by --no-system, or Linux or the machine lacks something: see stderr)
    exit         exit status, negative = signal; null on timeout
    stderr       its last 4000 characters
    started_unix_s, wall_s, caches_dropped
    other_cpu_s, stolen_cpu_s           CPU time of the machine outside of the command (kernel threads, other processes), and
                 what the hypervisor kept
    near         of runs on aio and uring (near.py): `rates` measured for `seconds` right before the run (which took `wall_s`, and ended `rates_age_s` before it began), what the run's plan
                 takes with them (`predicted_seconds`, `predicted_time`), how old the file of measured rates was (`first_rates_age_s`, null = there was none; a run whose rates are not in it plans with assumed ones); `why`: what failed
    cores        how far from each other the cores were (distance.py): before_ns and after_ns (a cache line's way from core to core, right before and right after the run; null = not measured), limit_ns (--core-latency),
                 waited_s (for near cores, in all), again (runs that were made again: before_ns, after_ns, wall_s)
    vmstat       increase of some counters of /proc/vmstat while it ran, the whole machine's, in pages and events (counters.py says which)
    block        the same of the data's device, all its users together: reads, writes (requests that it completed), reads_merged, writes_merged,
                 read_sectors, write_sectors (512 bytes), interrupts (of virtio and NVMe alone); {} where the data is on no block device
    pressure     the same of /proc/pressure, the whole machine's: memory_some_us, memory_full_us, io_some_us, io_full_us; {} without PSI
    cgroup       what limit-memory's cgroup counted: version; of v2 alone pgscan_direct and others of memory.stat, events_high,
                 events_max, and its own pressure; null without a limit
    report       the JSON report of the command, null if there is none
    timeline     file beside raw.jsonl (gzip), null if none
"""
import json
import os
from pathlib import Path

SCHEMA = 1


class Store:
    """Appends records; every line is on disk when append returns."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.path = self.folder / "raw.jsonl"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._cut_half_line()

    def _cut_half_line(self):
        """Removes an incomplete last line, which a runner leaves that was killed while it wrote."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        if data and not data.endswith(b"\n"):
            with open(self.path, "r+b") as file:
                file.truncate(data.rfind(b"\n") + 1)

    def append(self, record):
        with open(self.path, "a") as file:
            file.write(json.dumps({"schema": SCHEMA, **record}, separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def records(self):
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines() if line.strip()]

    def finished(self, retry_failed=False, system=True):
        """{(key, repeat): session} of the runs that need not be run again. With `system`, runs of a start with --no-system do not count: they were
        skipped, or ran without dropping the caches."""
        done = {}
        for record in self.records():
            if record.get("kind") != "run" or (system and record.get("no_system")):
                continue
            if record["status"] in ("done", "skipped") or not retry_failed:
                done[record["key"], record["repeat"]] = record["session"]
        return done
