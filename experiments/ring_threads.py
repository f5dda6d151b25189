#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command that uses io_uring, and adds to its JSON report the CPU time of the threads that Linux has for its rings.

    experiments/ring_threads.py --json REPORT -- COMMAND [ARGUMENT ...]

The command writes REPORT. This program adds "ring_threads": {"iou-sqp": seconds of CPU time, "iou-wrk": seconds}, with a name for each kind
of thread that it saw: iou-sqp polls for submissions, and iou-wrk does what would block. It looks at threads every 20 ms, so the last moment
of a thread is not counted. The exit status is that of the command.
"""
import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

KINDS = ("iou-sqp", "iou-wrk")
LOOK_S = 0.02


def look(pid, seen):
    """{(kind, thread): CPU seconds}, as far as they have come."""
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            name, fields = (task / "comm").read_text().strip(), (task / "stat").read_text().rsplit(")", 1)[1].split()
            kind = name[:len(KINDS[0])]
            if kind in KINDS:
                seen[kind, task.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(command):
    """(exit status, what look saw)"""
    seen = {}
    process = subprocess.Popen(command)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: process.send_signal(number))
    while True:
        look(process.pid, seen)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_S), seen


def add(path, seen):
    report = json.loads(path.read_text())
    report["ring_threads"] = {kind: sum(s for (k, _), s in seen.items() if k == kind) for kind in sorted({k for k, _ in seen})}
    path.write_text(json.dumps(report) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--json", type=Path, required=True, metavar="REPORT")
    p.add_argument("command", nargs="+")
    o = p.parse_args()
    status, seen = watch(o.command)
    if status == 0:
        add(o.json, seen)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
