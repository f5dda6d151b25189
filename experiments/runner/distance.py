# SPDX-License-Identifier: BSD-3-Clause
"""How far from each other the cores are: the time in which a cache line goes from core to core (bench_latency.c).

The cores of a virtual machine are threads of its host. The host may move them at any time, to cores that share an L3 cache or do not. Threads that work on the same data then become slower, and runs take 1.6 times as long
(docs/notes/many-cores.md). So this time is measured right before and right after each run. With a limit (--core-latency) a run waits until the cores are near, at most PATIENCE_S. A run after which they are far is made again,
at most AGAIN times; the last one counts, whatever it shows. This looks at the machine alone, but for one case: a run that took longer than LONG_S is not made again, for it would cost hours.

The limit `auto` is MOVED times the least time that was seen, also by earlier starts on the same results, and at least NEAR_NS. Where cores do not move, the times differ by less, so no run waits: neither on one L3
cache nor between sockets. With --minutes any limit may cost a share of that time (SHARE).
"""
import argparse
import json
import subprocess
import time

PROGRAM = "bench_latency"  # beside memext
PATIENCE_S = 120.0
LONG_S = 600.0
SHARE = 0.2  # of the time that all runs may take: so much of it may be spent on waiting
LOOK_S = 1.0  # from one look to the next while it waits
AGAIN = 2
MOST_NS = 1e6
MOVED, NEAR_NS = 3.0, 60.0  # threads of one core take 10 ns, cores with one L3 cache 25 to 50
RECENT_S = 86400.0  # what earlier starts saw counts for a day: a folder of results may go to another machine
FIRST_LOOKS, FIRST_LOOK_S = 10, 0.2  # before the first run, with the limit `auto`


class Limit:
    """How near the cores must be. One for all runs of a program. `fixed_ns`: None = `auto`. `in_all_s`: the time that all runs together may wait, repetitions included."""

    def __init__(self, fixed_ns=None, in_all_s=float("inf")):
        self.fixed_ns, self.least_ns, self.left_s = fixed_ns, None, in_all_s
        self._first = FIRST_LOOKS if fixed_ns is None else 0

    def __str__(self):
        return "auto" if self.fixed_ns is None else f"{self.fixed_ns:g}"

    @property
    def ns(self):
        """Nanoseconds; None while nothing was seen."""
        return self.fixed_ns or (max(MOVED * self.least_ns, NEAR_NS) if self.least_ns else None)

    def seen(self, value):
        if value is not None:
            self.least_ns = min(value, self.least_ns or value)

    def seen_before(self, records, now_s):
        """What the records of earlier starts have (runner/record.py)."""
        for r in records:
            if r["kind"] == "run" and r.get("cores") and now_s - r["started_unix_s"] < RECENT_S:
                for name in ("before_ns", "after_ns"):
                    self.seen(r["cores"][name])

    def first_looks(self, look, sleep=time.sleep):
        """Before the first run: cores that are far at first must not count as near."""
        while self._first > 0:
            value = look()
            self.seen(value)
            self._first -= 1 if value is not None else self._first
            sleep(FIRST_LOOK_S if self._first else 0)


def limit(text):
    """The value of --core-latency: nanoseconds, or `auto`."""
    if text == "auto":
        return Limit()
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= MOST_NS:
        raise argparse.ArgumentTypeError(f"{text} is neither auto nor a number of nanoseconds above 0, at most {MOST_NS:g}")
    return Limit(value)


def ns(program):
    """Nanoseconds in which a line goes from core to core; None with one core, or without the program."""
    try:
        done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout)["ns"]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError):
        return None


def missing(memext, wanted):
    """A sentence if a number is given as the limit that nothing can be measured for, else "". With `auto` no run waits then."""
    program = memext.parent / PROGRAM
    if wanted is None or wanted.fixed_ns is None:
        return ""
    if not program.exists():
        return f"--core-latency needs {program}, which does not exist; build it with cmake --preset release && cmake --build --preset release"
    return "" if ns(program) is not None else f"--core-latency needs two cores or more, and {program} measures no time between them"


def spent_s(found):
    """Seconds that waiting and repetitions of a run took. `found`: the entry `cores` of its record, or None."""
    return found["waited_s"] + sum(a["wall_s"] for a in found["again"]) if found else 0.0


class Distance:
    """What is measured around one run. `wanted`: the Limit, None = none."""

    def __init__(self, memext, wanted=None, look=None, sleep=time.sleep):
        self.program, self.wanted, self._look, self._sleep = memext.parent / PROGRAM, wanted, look or ns, sleep
        self.found = {"limit_ns": None, "before_ns": None, "after_ns": None, "waited_s": 0.0, "again": []}

    def _see(self):
        value = self._look(self.program)
        if self.wanted is not None:
            self.wanted.seen(value)
            self.found["limit_ns"] = self.wanted.ns
        return value

    def _far(self, value):
        return self.found["limit_ns"] is not None and value is not None and value > self.found["limit_ns"]

    def _impatient(self, waited_s):
        return waited_s > min(PATIENCE_S, self.wanted.left_s)

    def before(self):
        """Waits for near cores; returns when they are near, or the patience is over. May be called several times before a run: the last look counts."""
        if self.wanted is not None:
            self.wanted.first_looks(lambda: self._look(self.program), self._sleep)
        self.found["before_ns"] = self._see()
        begin, before_s = time.monotonic(), self.found["waited_s"]
        while self._far(self.found["before_ns"]) and not self._impatient(self.found["waited_s"]):
            self._sleep(LOOK_S)
            self.found["before_ns"] = self._see()
            self.found["waited_s"] = before_s + time.monotonic() - begin

    def after(self):
        self.found["after_ns"] = self._see()

    def disturbed(self):
        """Were the cores far right before the run, or right after it?"""
        return self._far(self.found["before_ns"]) or self._far(self.found["after_ns"])

    def once_more(self, wall_s):
        """Notes a run that is made again. False if it was made often enough, took long, or nothing is left to wait with: where cores are never near, it would always be made again."""
        if len(self.found["again"]) == AGAIN or wall_s > LONG_S or self._impatient(self.found["waited_s"]) or self._spent_s() + wall_s > self.wanted.left_s:
            return False
        self.found["again"].append({"before_ns": self.found["before_ns"], "after_ns": self.found["after_ns"], "wall_s": wall_s})
        return True

    def ended(self):
        """The run counts: what it waited and what was made again is no longer left for other runs."""
        if self.wanted is not None:
            self.wanted.left_s -= self._spent_s()
        return self.found

    def _spent_s(self):
        return spent_s(self.found)
