# SPDX-License-Identifier: BSD-3-Clause
"""Adds up JUnit files of ctest, pytest and the fuzz targets: the slowest tests, what a short run leaves out, failures and skips with their
reasons, then one line of counts.

    summary.py [--note TEXT ...] [--ended PART=STATUS ...] PART.xml ...

--note: something more that a short run leaves out. --ended: the exit status of what wrote PART.xml; if it is not 0 although no test of the report has
failed, the part was cut short, which is a failure.

A ctest test that is a Criterion program counts as its own tests, as its output tells them.
"""
import argparse
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

COUNTS = re.compile(r"Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+)")  # crashes are among the failing
SKIPPED_BY_STATUS = "SKIP_RETURN_CODE=77"
CRITERION_SKIP = re.compile(r"\[SKIP\] (\w+::\w+)(?:: (.*))?")
CRITERION_ENDED = re.compile(r"\[(?:PASS|FAIL)\] (\w+::\w+): \(([0-9.]+)s\)")
SHORT = re.compile(r"\[SHORT\] (\d+) of (\d+) cases")  # tests/unit/effort.h
LONG = re.compile(r"(?:Skipped: )?long: ")  # tests/python/conftest.py
SLOWEST = 20


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text or "")


class Sum:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.lines, self.seconds, self.long = [], [], []
        self.cases = collections.defaultdict(lambda: [0, 0])  # program: [cases made, all cases]

    def skip(self, name, why):
        self.skipped += 1
        why = " ".join((why or "no reason given").split())
        if LONG.match(why):
            self.long.append(name)
        else:
            self.lines.append(f"skipped: {name}: {why}")

    def fail(self, name, why, count=1):
        self.failed += count
        self.lines.append(f"FAILED: {name}: {' '.join((why or '').split())[:300]}")

    def case(self, case, part):
        name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
        if case.get("classname") == case.get("name"):
            name = case.get("name")
        output = plain(case.findtext("system-out"))
        skipped = case.find("skipped")
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        for made, all_cases in SHORT.findall(output):
            self.cases[f"{part}/{name}"][0] += int(made)
            self.cases[f"{part}/{name}"][1] += int(all_cases)
        if COUNTS.search(output):
            self.seconds += [(float(seconds), f"{part}/{name}/{test}") for test, seconds in CRITERION_ENDED.findall(output)]
        else:
            self.seconds.append((float(case.get("time") or 0), f"{part}/{name}"))
        if skipped is not None and case.get("status") == "notrun" and skipped.get("message") != SKIPPED_BY_STATUS:
            self.fail(name, skipped.get("message"))  # ctest could not run it
        elif skipped is not None:
            self.skip(name, output if skipped.get("message") == SKIPPED_BY_STATUS else skipped.get("message"))
        elif COUNTS.search(output):
            self.criterion(name, output, failure is not None)
        elif failure is not None or case.get("status") == "fail":
            self.fail(name, (failure.get("message") if failure is not None else "") + " " + output[-200:])
        else:
            self.passed += 1

    def criterion(self, name, output, program_failed):
        _, passing, failing = map(int, COUNTS.search(output).groups())
        self.passed += passing
        for test, why in CRITERION_SKIP.findall(output):
            self.skip(f"{name}/{test}", why)
        if failing or program_failed:
            broken = ", ".join(re.findall(r"\[FAIL\] (\w+::\w+)", output)) or "the program itself"
            self.fail(name, broken, max(failing, 1))

    def slowest(self):
        return [f"{seconds:8.1f} s  {name}" for seconds, name in sorted(self.seconds, reverse=True)[:SLOWEST]]

    def left_out(self, notes):
        """What tests/run.sh --long runs besides."""
        lines = [f"left out: {name}: {count - made} of {count} cases" for name, (made, count) in sorted(self.cases.items())]
        functions = collections.Counter(name.split("[")[0] for name in self.long)
        lines += [f"left out: {name}" + (f" ({count} of its cases)" if count > 1 else "") for name, count in sorted(functions.items())]
        return lines + [f"left out: {note}" for note in notes]


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--note", action="append", default=[])
    parser.add_argument("--ended", action="append", default=[], metavar="PART=STATUS")
    parser.add_argument("reports", nargs="+")
    args = parser.parse_args(words)
    total, statuses = Sum(), dict(text.rsplit("=", 1) for text in args.ended)
    for path in args.reports:
        part, failed = pathlib.Path(path).stem, total.failed
        try:
            cases = list(xml.parse(path).iter("testcase"))
        except (OSError, xml.ParseError) as error:
            total.fail(path, f"no report: {error}")
            continue
        for case in cases:
            total.case(case, part)
        if not cases:
            total.fail(path, "holds no test")
        elif statuses.get(part, "0") != "0" and total.failed == failed:
            total.fail(part, f"it ended with status {statuses[part]} although none of its tests has failed")
    print(f"the slowest {SLOWEST}:", *total.slowest(), sep="\n")
    if left_out := total.left_out(args.note):
        print("", "the short run leaves out what tests/run.sh --long runs:", *left_out, sep="\n")
    print("", *sorted(total.lines), sep="\n")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return total.failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
