# SPDX-License-Identifier: BSD-3-Clause
"""Moments in the life of a run, and what a campaign does to the run then."""
import os
import re
import shlex
import signal
import subprocess
import time

from crashing.cases import BACKENDS, MIB
from crashing.processes import POLL_S, Wrong
from watch import CAN_SEE_FLUSHES, catches, computing, flushing, holds_open, newest_superblock, written_bytes


def moments(dice, place, before, buffers_bytes, seconds, files):
    """{name: whether it has come, asked of (process, seconds since its start)}"""
    share, commits = dice.random(), dice.randint(1, 12)
    after = dice.uniform(0, seconds)
    return {
        f"after {after:.3f} s": lambda process, passed: passed >= after,
        "when it catches signals": lambda process, passed: catches(process, signal.SIGINT),
        "when its store changes": lambda process, passed: newest_superblock(place.store)[0] not in (0, before),
        f"when it has written {share:.2f} of the Buffers": lambda process, passed: written_bytes(process) >= share * buffers_bytes,
        f"after {commits} commits": lambda process, passed: newest_superblock(place.store)[0] >= before + 1 + commits,
        f"when it has written {9 * share:.2f} times the Buffers":
            lambda process, passed: written_bytes(process) >= 9 * share * buffers_bytes,
        **({"when it flushes": lambda process, passed: flushing(process),
            "when it flushes later": lambda process, passed: passed > share * seconds and flushing(process)}
           if CAN_SEE_FLUSHES else {}),
        **({"when it computes": lambda process, passed: computing(files["timeline"]),
            "when it has computed": lambda process, passed: computing(files["timeline"]) and not holds_open(process, files["timeline"].parent)}
           if "timeline" in files else {}),
        **({"when its output is open": lambda process, passed: holds_open(process, files["output"].parent)}
           if "output" in files else {}),
    }


def draw_moment(dice, *what):
    """(text, condition): a third of them plain random times, the rest a state; half with a little delay after it."""
    table = moments(dice, *what)
    names = list(table)
    return (names[0] if dice.random() < 0.33 else dice.choice(names)), table, dice.choice([0, dice.uniform(0, 0.02)])


def wait_for(process, come, patience):
    """False if the process ended before the moment came."""
    begin = time.monotonic()
    while process.poll() is None:
        passed = time.monotonic() - begin
        if passed > patience or come(process, passed):
            return process.poll() is None
        time.sleep(POLL_S)
    return False


def moment(campaign):
    before = newest_superblock(campaign.place.store)[0]
    seconds = campaign.bench.seconds[campaign.case.problem.number, campaign.case.algorithm, campaign.case.place]
    name, table, delay = draw_moment(campaign.dice, campaign.place, before, campaign.buffers_bytes, seconds, campaign.files)

    def come(process):
        begin = time.monotonic()
        if not wait_for(process, table[name], campaign.bench.patience):
            campaign.note(f"    # was through before the moment came: {name}")
            campaign.bench.count("moments: it was through before")
            return False
        time.sleep(delay)
        campaign.bench.count(f"moments: {re.sub('[0-9.]+', 'N', name)}")
        campaign.note(f"    # {name}{f' and {delay * 1e3:.1f} ms more' if delay else ''}, {time.monotonic() - begin:.3f} s after the start:")
        return True
    return come


def act_kill(campaign, numbers):
    come, number = moment(campaign), campaign.dice.choice(numbers)

    def act(process, end):
        if come(process):
            end.caught, end.sent = catches(process, number), number
            process.send_signal(number)
            campaign.note(f"    # {signal.Signals(number).name}")
            campaign.bench.count(f"signals: {signal.Signals(number).name}")
    return act


def act_stop(campaign):
    come, pause = moment(campaign), campaign.dice.uniform(0.02, 0.3)

    def act(process, end):
        if come(process):
            process.send_signal(signal.SIGSTOP)
            time.sleep(pause)
            process.send_signal(signal.SIGCONT)
            campaign.note(f"    # SIGSTOP, SIGCONT {pause:.3f} s later")
    return act


def act_truncate(campaign):
    come, share = moment(campaign), campaign.dice.random()

    def act(process, end):
        if come(process) and campaign.place.store.exists():
            size = campaign.place.store.stat().st_size
            left = max(2 * MIB, int(size * share)) // 4096 * 4096
            if left < size:
                os.truncate(campaign.place.store, left)
                campaign.harmed = True
                campaign.note(f"    # {campaign.place.store} cut from {size} to {left} bytes")
    return act


def act_intruder(campaign):
    come, before = moment(campaign), newest_superblock(campaign.place.store)[0]

    def act(process, end):
        # Before the first run has made its store the second may be the first.
        if not come(process) or not wait_for(process, lambda process, _: newest_superblock(campaign.place.store)[0] > before,
                                             campaign.bench.patience):
            return
        words = [campaign.bench.memext, "run", "-n", 5, 6, 7, "-t", 1, "--backend", campaign.dice.choice(BACKENDS), "-q", "-d", campaign.place.path]
        if campaign.dice.random() < 0.5:
            words = [campaign.bench.memext, "run", "--resume", "-q", "-d", campaign.place.path]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=campaign.bench.patience)
        campaign.note(f"    # meanwhile: {shlex.join(map(str, words))} -> {done.returncode} {done.stderr.strip()[:200]}")
        if process.poll() is None and done.returncode != 2:
            raise Wrong(f"a second run in the same place ended with status {done.returncode} while the first one was running")
    return act
