# SPDX-License-Identifier: BSD-3-Clause
"""Adds up JUnit files of ctest and pytest: failures and skips with their reasons, then one line of counts.

    summary.py REPORT.xml ...

A ctest test that is a Criterion program counts as its own tests, as its output tells them.
"""
import re
import sys
import xml.etree.ElementTree as xml

COUNTS = re.compile(r"Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+)")  # crashes are among the failing
SKIPPED_BY_STATUS = "SKIP_RETURN_CODE=77"
CRITERION_SKIP = re.compile(r"\[SKIP\] (\w+::\w+)(?:: (.*))?")


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text or "")


class Sum:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.lines = []

    def skip(self, name, why):
        self.skipped += 1
        self.lines.append(f"skipped: {name}: {' '.join((why or 'no reason given').split())}")

    def fail(self, name, why, count=1):
        self.failed += count
        self.lines.append(f"FAILED: {name}: {' '.join((why or '').split())[:300]}")

    def case(self, case):
        name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
        if case.get("classname") == case.get("name"):
            name = case.get("name")
        output = plain(case.findtext("system-out"))
        skipped = case.find("skipped")
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
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


def main(paths):
    total = Sum()
    for path in paths:
        try:
            cases = list(xml.parse(path).iter("testcase"))
        except (OSError, xml.ParseError) as error:
            total.fail(path, f"no report: {error}")
            continue
        for case in cases:
            total.case(case)
        if not cases:
            total.fail(path, "holds no test")
    print("\n".join(sorted(total.lines)))
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return total.failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
