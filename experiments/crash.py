#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random campaigns against the command: does every run end with the right bits, or with a sentence that says why not?

A campaign is one problem (an awkward size, stencil and type drawn at random) computed by one algorithm on one kind of place,
and what goes wrong meanwhile: kill -9, SIGINT, SIGTERM or SIGSTOP at a random moment (while the store is made, the grid
initialised, something flushed, computed, verified or written out), again on the resumed run, on another backend, with other
threads and DRAM, with an accelerator or without; errors of the device; operations of an accelerator that fail; a device or file system that fills up; a memory limit; a store that somebody cuts off;
an output that cannot be written; a second run in the same place. Every process has to end with

    0 and the checksum of an undisturbed run (and its grid in --output, and its own --verify), or
    3 or 5 and a sentence (2 where the request cannot be met), or by the signal that it was sent,

and afterwards --resume ends with that checksum wherever a commit was made and the algorithm can be resumed. A wrong checksum,
a hang, a death by any other signal, an output or input that was harmed, a file, loop device, mount or cgroup left behind is a
failure; it is printed with the commands and with the words that repeat the campaign.

usage: experiments/crash.py [--runs 60] [--seed 1] [--skip K] [--only WORD,WORD] [--place DIR] [--patience 240] [--json FILE]
WORD is a trouble, an algorithm, a backend or a kind of place; several words of one sort mean any of them. The exit status is 0
only if nothing failed. Loop devices, small file systems and memory limits need root. The output names and counts campaigns that
this machine cannot run.
"""
import argparse
import collections
import contextlib
import json
import random
import re
import shutil
import sys
import time
from pathlib import Path

from crashing.bench import Bench, left_behind, sweep
from crashing.campaign import Campaign
from crashing.cases import ACCELS, ALGORITHMS, BACKENDS, PLACES, TROUBLES, draw_case
from crashing.processes import ROOT, SIGNALS, Wrong


def one(bench, o, number, why_not):
    """Draws campaign `number` and runs it; returns (case, word for its end, failure or None)."""
    for again in range(10000):
        dice = random.Random(f"{o.seed} {number} {again}")
        case = draw_case(dice, bench.problems)
        if not bench.wanted(case):
            continue
        missing = [word for word in (case.trouble, case.place, case.accel) if word in why_not]
        if missing:
            bench.count(f"not available: {missing[0]}")
            continue
        bench.oracle(case.problem)
        with contextlib.ExitStack() as stack:
            campaign = Campaign(bench, number, case, dice, stack)
            if not campaign.prepare():
                bench.count("drawn, but no plan")
                continue
            try:
                ended = campaign.go()
                campaign.check_place()
                failure = None
            except Wrong as error:
                ended, failure = "FAILED", str(error)
        left = left_behind(campaign.folder, campaign.limiters)
        if left and failure is None:
            ended, failure = "FAILED", f"left behind: {', '.join(left)}"
        return case, ended, failure and {"run": number, "case": str(case), "why": failure, "commands": campaign.lines}
    sys.exit(f"crash.py: --only {','.join(bench.only)}: this machine cannot run such a campaign: {why_not}")


def again_words(o, number):
    only = f" --only {o.only}" if o.only else ""
    return f"experiments/crash.py --seed {o.seed} --skip {number} --runs 1{only}"


def tell(o, failure):
    print(f"FAILED: run {failure['run']} ({failure['case']}): {failure['why']}\n    to repeat it: {again_words(o, failure['run'])}")
    for line in failure["commands"]:
        print(f"    {line}")
    sys.stdout.flush()


def campaign_of_campaigns(o, bench):
    why_not, failures, ends = bench.unavailable(), [], collections.Counter()
    for word, why in why_not.items():
        print(f"not available: {word}: {why}")
    begin = time.monotonic()
    for number in range(o.skip, o.skip + o.runs):
        case, ended, failure = one(bench, o, number, why_not)
        ends[case.trouble, ended] += 1
        if failure:
            failures.append(failure)
            tell(o, failure)
        done = number - o.skip + 1
        if done % 10 == 0:
            print(f"run {done} of {o.runs}: {len(failures)} failed, {time.monotonic() - begin:.0f} s", flush=True)
    return ends, failures, time.monotonic() - begin


def summary(o, bench, ends, failures, seconds):
    print(f"\n{o.runs} runs, seed {o.seed}, {seconds:.0f} s")
    for (trouble, ended), count in sorted(ends.items()):
        print(f"{count:6}  {trouble}: {ended}")
    for what, count in sorted(bench.counts.items()):
        print(f"{count:6}  ({what})")
    kinds = collections.Counter(re.sub(r"\b[0-9a-f]{16}\b|\b[0-9]{2,}\b", "N", failure["why"].splitlines()[0])[:120] for failure in failures)
    for why, count in kinds.most_common():
        print(f"FAILED {count} times: {why}")
    wrong = sum("WRONG RESULT" in failure["why"] for failure in failures)
    hangs = sum(failure["why"].startswith("hang") for failure in failures)
    print(f"{len(failures)} failed; {wrong} of them had wrong results, and {hangs} hung")
    for failure in failures:
        print(f"    {again_words(o, failure['run'])}")
    if o.json:
        Path(o.json).write_text(json.dumps({
            "runs": o.runs, "seed": o.seed, "seconds": seconds, "failures": failures, "wrong": wrong, "hangs": hangs,
            "ends": [{"trouble": t, "end": e, "count": n} for (t, e), n in sorted(ends.items())], "counts": dict(bench.counts)}, indent=1))


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--runs", type=int, default=60, metavar="N", help="number of campaigns (default: 60)")
    p.add_argument("--seed", default="1", metavar="S", help="seed of all random draws (default: 1)")
    p.add_argument("--skip", type=int, default=0, metavar="K", help="begin with campaign K of this seed")
    p.add_argument("--only", metavar="WORDS", help=f"run only campaigns with these words, separated by commas: {', '.join(dict.fromkeys([*TROUBLES, *ALGORITHMS, *BACKENDS, *PLACES, *ACCELS]))}")
    p.add_argument("--place", default=str(ROOT / "build"), metavar="DIR", help="directory on storage to work in (default: build)")
    p.add_argument("--memext", default=str(ROOT / "build" / "release" / "memext"), metavar="PROGRAM", help="the memext command to test (default: build/release/memext)")
    p.add_argument("--patience", type=float, default=240, metavar="SECONDS",
                   help="a run that takes longer counts as a hang (default: 240). The longest run takes seconds, or a minute on a busy machine")
    p.add_argument("--json", metavar="FILE", help="write counts and failures to FILE")
    o = p.parse_args()
    known = {*TROUBLES, *ALGORITHMS, *BACKENDS, *PLACES, *ACCELS}
    for word in (o.only or "").split(","):
        if word and word not in known:
            p.error(f"--only {word}: the words are {', '.join(sorted(known))}")
    return o


def main():
    o = options()
    SIGNALS.take()
    sweep(Path(o.place).resolve())
    bench = Bench(o)
    try:
        bench.folder.mkdir(parents=True)
        ends, failures, seconds = campaign_of_campaigns(o, bench)
        summary(o, bench, ends, failures, seconds)
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
