# SPDX-License-Identifier: BSD-3-Clause
"""What all campaigns share, and a check of what they leave behind."""
import collections
import contextlib
import glob
import json
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

from crashing.cases import ACCELS, ALGORITHMS, BACKENDS, MIB, PLACES, TROUBLES, draw_problem
from crashing.places import small_file_system, targets
from crashing.processes import LIMIT_MEMORY, detach, tool, undo

FOLDER = "memext-crash-"


class Bench:
    """What campaigns share: the folder, undisturbed results, counts."""

    def __init__(self, o):
        self.memext, self.only = Path(o.memext).resolve(), [word for word in (o.only or "").split(",") if word]
        self.counts, self.seconds, self.patience = collections.Counter(), collections.defaultdict(lambda: 1.0), o.patience
        self.folder = Path(o.place).resolve() / f"{FOLDER}{os.getpid()}"
        self.oracles, self.input_before = {}, {}
        self.problems = [draw_problem(random.Random(f"{o.seed} problem {i}"), i) for i in range(24)]
        self.help = tool(self.memext, "run", "--help", "all")

    def knows(self, option):
        return option in self.help

    def count(self, what):
        self.counts[what] += 1

    def input_of(self, problem):
        return (self.folder / f"input-{problem.number}.npy").read_bytes()

    def oracle(self, problem):
        """(checksum, file) of the undisturbed run: everything in DRAM, one step after the other."""
        if problem.number not in self.oracles:
            problem.make_input(self.folder)
            if problem.from_file:
                self.input_before[problem.number] = self.input_of(problem)
            file, report = self.folder / f"right-{problem.number}.npy", self.folder / "right.json"
            tool(self.memext, "run", *problem.words(self.folder), "--backend", "dram", "--algorithm", "direct", "--engine", "iblock",
                 "--output", file, "-q", "--json", report)
            self.oracles[problem.number] = json.loads(report.read_text())["checksum"], file
        return self.oracles[problem.number]

    def unavailable(self):
        """{trouble or place: why this machine does not have it}"""
        why = {}
        if os.geteuid() != 0:
            why |= dict.fromkeys(["loop", "full", "full-output", "flakey", "error"], "loop devices and mounts need root")
        else:
            have = targets()
            for target in ("flakey", "error"):
                if target not in have or "linear" not in have:
                    why[target] = f"this Linux has no device-mapper target {target}"
            with contextlib.ExitStack() as stack:
                try:
                    small_file_system(stack, self.folder, "probe", 8 * MIB)
                except OSError as error:
                    why |= dict.fromkeys(["loop", "full", "full-output", "flakey", "error"], str(error))
            (self.folder / "probe.img").unlink(missing_ok=True)
        done = subprocess.run([LIMIT_MEMORY, "64MiB", "--keep-cache", "--", "true"], capture_output=True, text=True)
        if done.returncode != 0:
            why["memory"] = done.stderr.strip()
        works = {f"accel-{a['name']}": a for a in json.loads(tool(self.memext, "info", "-q", "--json", "-")).get("accelerators", [])}
        for accel in ("accel-host", "accel-opencl"):
            if not works.get(accel, {}).get("works"):
                why[accel] = works.get(accel, {}).get("why", "this memext has no accelerators")
        if not self.can_fail_calls():
            why["call"] = "this memext has no --fault call=N"
        return why

    def can_fail_calls(self):
        (self.folder / "calls").mkdir()
        words = [self.memext, "run", "-n", "5", "6", "7", "-t", "1", "-d", self.folder / "calls", "--backend", "fault:aio", "-q", "--fault",
                 "call=1000000"]
        done = subprocess.run(words, capture_output=True, text=True)
        shutil.rmtree(self.folder / "calls")
        return done.returncode == 0

    def wanted(self, case):
        """Does the case have one of the words asked for, for each sort of word?"""
        sorts = [TROUBLES, ALGORITHMS, BACKENDS, PLACES, ACCELS]
        values = [case.trouble, case.algorithm, case.backend, case.place, case.accel]
        asked = [[word for word in self.only if word in sort and (sort is not PLACES or word not in TROUBLES)] for sort in sorts]
        return all(not words or value in words for words, value in zip(asked, values))


def left_behind(folder, pids):
    """Loop devices, mounts, swap files and cgroups of this campaign that still exist after 10 s; some disappear a moment after their last user."""
    def look():
        found = [f"loop device of {line}" for line in tool("losetup", "--noheadings", "--output", "BACK-FILE").splitlines()
                 if line.strip().startswith(f"{folder}/")]
        found += [f"mount {line.split()[1]}" for line in Path("/proc/mounts").read_text().splitlines() if line.split()[1].startswith(f"{folder}/")]
        found += [f"swap file {line.split()[0]}" for line in Path("/proc/swaps").read_text().splitlines() if line.startswith(f"{folder}/")]
        return found + [path for pid in pids for path in glob.glob(f"/sys/fs/cgroup/**/memext-limit-{pid}", recursive=True)]
    deadline = time.monotonic() + 10
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def sweep(place):
    """Removes what a campaign left that was itself killed with -9."""
    for folder in glob.glob(f"{glob.escape(str(place))}/{FOLDER}*"):
        name = os.path.basename(folder)
        if os.path.exists(f"/proc/{name.rsplit('-', 1)[1]}"):
            continue
        for path in glob.glob(f"/dev/mapper/{name}-*"):
            undo("dmsetup", "remove", os.path.basename(path))
        devices = [line.split()[0] for line in tool("losetup", "--noheadings", "--output", "NAME,BACK-FILE").splitlines()
                   if line.split(None, 1)[1].startswith(f"{folder}/")]
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[1].startswith(f"{folder}/")]
        detach(*devices, between=lambda mounts=mounts: [undo("umount", mount) for mount in reversed(mounts)])
        shutil.rmtree(folder, ignore_errors=True)
