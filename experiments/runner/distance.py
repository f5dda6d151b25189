# SPDX-License-Identifier: BSD-3-Clause
"""How far from each other the cores are: the time in which a cache line goes from core to core (bench_latency.c).

The cores of a virtual machine are threads of its host. The host may move them at any time, to cores that share an L3 cache or do not. Threads that work on the same data then become slower, and runs take 1.6 times as long
(docs/notes/many-cores.md). So this time is measured right before and right after each run. With a limit (--core-latency) a run waits until the cores are near, at most PATIENCE_S. A run after which they are far is made again,
at most AGAIN times; the last one counts, whatever it shows. This looks at the machine alone, and never at what a run took.
"""
import argparse
import json
import subprocess
import time

PROGRAM = "bench_latency"  # beside memext
PATIENCE_S = 120.0
LOOK_S = 1.0  # from one look to the next while it waits
AGAIN = 2
MOST_NS = 1e6


def limit(text):
    """The value of --core-latency: nanoseconds."""
    value = float(text)
    if not 0 < value <= MOST_NS:
        raise argparse.ArgumentTypeError(f"{text} is not a number of nanoseconds above 0, at most {MOST_NS:g}")
    return value


def ns(program):
    """Nanoseconds in which a line goes from core to core; None with one core, or without the program."""
    try:
        done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout)["ns"]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError):
        return None


def missing(memext, most_ns):
    """A sentence if a limit is given that nothing can be measured for, else ""."""
    program = memext.parent / PROGRAM
    if most_ns is None:
        return ""
    if not program.exists():
        return f"--core-latency needs {program}, which does not exist; build it with cmake --preset release && cmake --build --preset release"
    return "" if ns(program) is not None else f"--core-latency needs two cores or more, and {program} measures no time between them"


class Distance:
    """What is measured around one run. `most_ns`: the limit, None = none."""

    def __init__(self, memext, most_ns=None, look=None, sleep=time.sleep):
        self.program, self.most_ns, self._look, self._sleep = memext.parent / PROGRAM, most_ns, look or ns, sleep
        self.found = {"limit_ns": most_ns, "before_ns": None, "after_ns": None, "waited_s": 0.0, "again": []}

    def _far(self, value):
        return self.most_ns is not None and value is not None and value > self.most_ns

    def before(self):
        """Waits for near cores; returns when they are near, or the patience is over. May be called several times before a run: the last look counts."""
        begin = time.monotonic()
        while True:
            self.found["before_ns"] = self._look(self.program)
            if not self._far(self.found["before_ns"]) or self.found["waited_s"] + time.monotonic() - begin > PATIENCE_S:
                break
            self._sleep(LOOK_S)
        self.found["waited_s"] += time.monotonic() - begin

    def after(self):
        self.found["after_ns"] = self._look(self.program)

    def disturbed(self):
        """Were the cores far right before the run, or right after it?"""
        return self._far(self.found["before_ns"]) or self._far(self.found["after_ns"])

    def once_more(self, wall_s):
        """Notes a run that is made again. False if it was made often enough, or nothing is left to wait with: where cores are never near, it would always be made again."""
        if len(self.found["again"]) == AGAIN or self.found["waited_s"] > PATIENCE_S:
            return False
        self.found["again"].append({"before_ns": self.found["before_ns"], "after_ns": self.found["after_ns"], "wall_s": wall_s})
        return True
