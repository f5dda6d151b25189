# SPDX-License-Identifier: BSD-3-Clause
"""Current rates: how fast this machine is right before a run, and what that predicts for the run.

A prediction rests on rates that were measured (memext tune --calibrate) into a cache, once, before the first run, or on assumed ones. A machine that others share may be half as fast some minutes later. So right before a run
that predictions are judged by the same rates are measured again, shortly (--calibrate-seconds), into a separate cache, which the run never sees: it plans with the cache from the beginning,
as all its repeats do. Afterwards its plan is predicted once more with the rates from right before it (--dry-run). The prediction uses nothing of the run but its plan, which was decided before it began.
"""
import argparse
import json
import os
import shutil
import time
from pathlib import Path

BACKENDS = ("aio", "uring")  # whose predictions are judged
SECONDS = 1.0
TIMEOUT_S = 60.0
MOST_S = 30.0


def seconds(text):
    """The value of --probe: a number of seconds, 0 for no measurement."""
    value = float(text)
    if not 0 <= value <= MOST_S:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 0 to {MOST_S:g}")
    return value


# Words of the command that the rates depend on, with how many values.
KEPT = {"-n": 3, "--size": 3, "-t": 1, "--steps": 1, "--stencil": 1, "--dtype": 1, "--kernel": 1, "--threads": 1, "--backend": 1}
DRAM = "--dram"
# Words that say where, or what the plan says.
DROPPED = {"-d": 1, "--device": 1, "--json": 1, "--timeline": 1, "--trace": 1, "--algorithm": 1, "--engine": 1, "--tuner": 1, "--block": 3, "--iblock": 2, "--slab": 1, "--plan": 1, "--quiet": 0}
PLAN_KEYS = ("engine", "by", "bz", "bt", "iy", "iz", "slab", "tile", "ct", "column", "ahead", "faces", "threads", "tuner")


def rates_cache(environment=os.environ):
    """Where memext keeps measured rates."""
    home = environment.get("XDG_CACHE_HOME") or os.path.join(environment.get("HOME") or "/nonexistent", ".cache")
    return Path(home) / "memext" / "rates.json"


def plan_line(plan):
    """A report's plan as a line for --plan."""
    return " ".join([plan["algorithm"], *(f"{k}={plan[k]}" for k in PLAN_KEYS if plan.get(k))])


def _words_of(command):
    """The words after `memext run` in a command; None if it is another command."""
    names = [Path(w).name for w in command]
    for k in range(len(names) - 1):
        if names[k] in ("memext", "{memext}") and names[k + 1] == "run":
            return list(command[k + 2 :])
    return None


def is_judged(command):
    """Does a command run memext on a backend whose predictions are judged?"""
    words = _words_of(command)
    return words is not None and any(a == "--backend" and b in BACKENDS for a, b in zip(words, words[1:]))


def _split(command, table, keep):
    """The words of the command that stand in a table (or do not), with their values."""
    words, found, i = _words_of(command), [], 0
    while i < len(words):
        n = 1 + table.get(words[i], 0)
        if (words[i] in table) == keep:
            found += words[i : i + n]
        i += n
    return found


def _with_dram(words, limit):
    """Adds --dram for the memory limit of the run, because the prediction has no memory limit."""
    return words + ([DRAM, limit] if limit and DRAM not in words else [])


def _around(command):
    """The words that limit the bandwidth of the storage. A memory limit is left out: little could be measured in it."""
    before = list(command[: [Path(w).name for w in command].index("memext")])
    names = [Path(w).name for w in before]
    return before[names.index("limit-bandwidth") :] if "limit-bandwidth" in names else []


def planned(command, limit, plan, memext, data, report="-"):
    """The words that predict a command with a given plan (of its report), and write nothing."""
    words = _with_dram(_split(command, DROPPED, False), limit)
    return [str(memext), "run", *words, "-d", str(data), "--plan", plan_line(plan), "--dry-run", "--quiet", "--json", str(report)]


def probing(command, memext, data, report, seconds):
    """The words that measure the rates which a command's prediction rests on."""
    words = _split(command, KEPT, True)  # the rates are those of the machine, whatever DRAM the run has
    return [*_around(command), str(memext), "tune", *words, "-d", str(data), "--calibrate-seconds", f"{seconds:g}", "--quiet", "--json", str(report)]


def age_s(path):
    """Seconds since the rates in a cache were measured; None if there is no cache."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return None


class Probe:
    """Measures and predicts for one run. call(words, environment) -> (exit status, timed out) runs a command to its end."""

    def __init__(self, command, limit, memext, scratch, call, seconds=SECONDS):
        self.command, self.limit, self.memext, self.call, self.seconds = command, limit, memext, call, seconds
        self.home, self.scratch = Path(scratch) / "cache", Path(scratch)
        self.found = {"seconds": seconds}
        self.end = None

    def _environment(self):
        return {"XDG_CACHE_HOME": str(self.home)}

    def measure(self, data):
        """Measures before the run, in the directory where it will run."""
        known, mine = rates_cache(), rates_cache(self._environment())
        self.found["first_rates_age_s"] = age_s(known)
        mine.parent.mkdir(parents=True)
        if known.exists():  # sizes of the tiled engine are kept with rates
            shutil.copy(known, mine)
        begin, report = time.monotonic(), self.scratch / "near.json"
        status, late = self.call(probing(self.command, self.memext, data, report, self.seconds), self._environment())
        self.end = time.monotonic()
        self.found["wall_s"] = self.end - begin
        try:
            rates = json.loads(report.read_text())["rates"]
            self.found["rates"] = {k: v for k, v in rates.items() if isinstance(v, (int, float))}
        except (OSError, ValueError, KeyError):
            self.found["why"] = "the rates were not measured: " + ("not complete in time" if late else f"exit {status}")

    def started(self):
        """The run begins."""
        self.found["rates_age_s"] = time.monotonic() - self.end

    def predict(self, report, data):
        """Predicts after the run, with its plan and the rates from before it. Returns the entry of the record, with `why` if something failed."""
        if "why" in self.found or not report or "plan" not in report:
            return self.found
        output = self.scratch / "again.json"
        status, late = self.call(planned(self.command, self.limit, report["plan"], self.memext, data, output), self._environment())
        try:
            again = json.loads(output.read_text())
            used = again.get("rates", {})
            if any(k in used and used[k] != v for k, v in self.found.get("rates", {}).items() if k.endswith("_updates_per_s")):
                self.found["why"] = "the plan was not predicted with the measured rates: memext did not keep them, because they are those of a cache"
                return self.found
            self.found["predicted_seconds"] = again["predicted_seconds"]
            self.found["predicted_time"] = again.get("predicted_time")
        except (OSError, ValueError, KeyError):
            self.found["why"] = "the plan was not predicted: " + ("not complete in time" if late else f"exit {status}")
        return self.found
