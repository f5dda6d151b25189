#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the fuzz targets of build/fuzz on their corpora; a line each, and a JUnit file that tests/summary.py reads.

    fuzz.py [--seconds S | --runs N] [--jobs J] [--build DIR] [--report FILE.xml] [TARGET ...]

Without --seconds every target makes a fixed number of runs from a fixed seed, so that two runs of the same program do
the same. Inputs that ended a target stay in DIR/findings/TARGET; `DIR/fuzz_TARGET FILE` repeats one. Inputs that reached
new code stay in DIR/found/TARGET: the interesting ones belong into tests/fuzz/corpus/TARGET. Exit status 1: findings.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "tests" / "fuzz"
# Executions of a short run: a few seconds each, on a slow core.
RUNS = {"plan": 50000, "npy": 15000, "array": 5000, "store": 3000, "options": 10000, "topology": 100, "fault": 5000, "note": 15000}
ONE_INPUT_S = 25  # an input that takes longer is a finding
LONGEST_INPUT_BYTES = 4096
# A target that hangs outside of an input is ended after this much more than it was given.
GRACE_S = 300


def targets(build):
    return sorted(path.name[len("fuzz_"):] for path in build.glob("fuzz_*") if os.access(path, os.X_OK))


def command(name, args, work):
    found = args.build / "found" / name
    findings = args.build / "findings" / name
    for folder in (found, findings):
        folder.mkdir(parents=True, exist_ok=True)
    limit = [f"-max_total_time={args.seconds}"] if args.seconds else [f"-runs={args.runs or RUNS.get(name, 10000)}"]
    new = found if args.seconds else pathlib.Path(work) / "new"  # what others found must not change a short run
    new.mkdir(exist_ok=True)
    line = [str(args.build / f"fuzz_{name}"), *limit, f"-seed={args.seed}", "-print_final_stats=1", "-rss_limit_mb=2048",
            f"-timeout={ONE_INPUT_S}", f"-max_len={LONGEST_INPUT_BYTES}", f"-artifact_prefix={findings}/"]
    dictionary = SOURCES / "dictionaries" / f"{name}.dict"
    if dictionary.exists():
        line.append(f"-dict={dictionary}")
    return [*line, str(new), str(SOURCES / "corpus" / name)]


class Result:
    def __init__(self, name, status, output, seconds):
        self.name, self.output, self.seconds = name, output, seconds
        # The last one: a process that fuzz_topology started may have told its own before.
        counted = re.findall(r"stat::number_of_executed_units:\s*(\d+)", output)
        shown = re.findall(r"^#(\d+)\s", output, re.M)
        self.executions = int(counted[-1]) if counted else int(shown[-1]) if shown else 0
        self.findings = int(status != 0)  # libFuzzer stops at the first
        if not self.findings and self.executions == 0:
            self.findings, self.output = 1, output + "\nnothing was executed"

    def line(self):
        return f"{self.name:10} {self.executions:10} executions {self.seconds:7.0f} s {self.findings:3} findings"

    def reason(self):
        for pattern in (r"broken: .*", r"runtime error: .*", r"an option touched .*", r"ERROR: .*"):
            match = re.search(pattern, self.output)
            if match:
                return match.group(0) + self.input()
        return self.output[-300:]

    # The log of a machine that is gone is all that is left of an input there.
    def input(self):
        match = re.search(r"^Base64: (\S+)", self.output, re.M)
        return f"; the input in base64: {match.group(1)[:2000]}" if match else ""


def fuzz(name, args):
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="memext-fuzz-", dir=args.scratch) as work:
        try:
            done = subprocess.run(command(name, args, work), cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=(args.seconds or 300) + GRACE_S, check=False)
            status, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            status, output = 1, (error.stdout or b"") + b"\nERROR: the target did not end"
    if status == 0:  # inputs over which the other process of fuzz_topology broke down
        for path in (args.build / "findings" / name).iterdir():
            path.unlink()
    result = Result(name, status, output.decode(errors="replace"), time.monotonic() - start)
    (args.build / f"fuzz_{name}.log").write_text(result.output, errors="replace")
    print(result.line(), flush=True)
    if result.findings:
        print(f"    {result.reason()}\n    all of it in {args.build / f'fuzz_{name}.log'}", flush=True)
    return result


def report(results, path):
    suite = xml.Element("testsuite", name="fuzz", tests=str(len(results)))
    for result in results:
        case = xml.SubElement(suite, "testcase", classname="fuzz", name=result.name, time=f"{result.seconds:.1f}")
        if result.findings:
            text = "".join(c for c in result.reason() if c.isprintable() or c == "\n")
            xml.SubElement(case, "failure", message=text)
    xml.ElementTree(suite).write(path, encoding="utf-8")


def read_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=int, default=0, help="time for each target")
    parser.add_argument("--runs", type=int, default=0, help="executions of each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--report", type=pathlib.Path, help="the JUnit file (fuzz.xml in --build)")
    parser.add_argument("--scratch", type=pathlib.Path, default=None, help="directory for temporary files (/dev/shm)")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    args = parser.parse_args(words)
    args.build = args.build.resolve()
    if args.scratch is None and os.access("/dev/shm", os.W_OK):
        args.scratch = pathlib.Path("/dev/shm")
    known = targets(args.build)
    if not known:
        parser.error(f"no fuzz targets in {args.build}: build them with cmake --preset fuzz && cmake --build --preset fuzz")
    for name in args.targets:
        if name not in known:
            parser.error(f"no target {name}; there are {' '.join(known)}")
    args.targets = args.targets or known
    return args


def main(words):
    args = read_arguments(words)
    with concurrent.futures.ThreadPoolExecutor(max(1, args.jobs)) as pool:
        results = list(pool.map(lambda name: fuzz(name, args), args.targets))
    report(results, args.report or args.build / "fuzz.xml")
    return int(any(result.findings for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
