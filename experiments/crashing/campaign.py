# SPDX-License-Identifier: BSD-3-Clause
"""One campaign: all runs from the first to the one with the right result, and the checks on each."""
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy

from crashing.cases import BACKENDS, MIB, RESUMABLE, accel_words, backend_options, plan_words, without_engine
from crashing.kinds import KINDS
from crashing.moments import act_kill, act_stop
from crashing.places import MAKERS, Place
from crashing.processes import SIGNALS, End, Wrong, end_of, start
from watch import newest_superblock


class Campaign:
    def __init__(self, bench, number, case, dice, stack):
        self.bench, self.case, self.dice, self.stack = bench, case, dice, stack
        self.folder = bench.folder / f"run-{number}"
        self.folder.mkdir()
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.outputs = self.folder / "out"
        self.outputs.mkdir()
        (self.folder / "line").mkdir()
        self.lines, self.files, self.reached = [], {}, 0
        self.process, self.limiters, self.may_overwrite = None, [], bench.knows("--overwrite")
        self.accel = accel_words(dice, case.accel)
        stack.callback(self.end_process)
        if case.timeline:
            self.files["timeline"] = self.folder / "line" / "timeline"
        if case.output:
            self.files["output"] = self.outputs / "out.npy"
        choices = [["--commit-every", dice.choice([0, 0.05, 100])], ["--integrity"]]
        self.careful = [word for words in choices if dice.random() < 0.5 and bench.knows(words[0]) for word in words]
        self.harmed = False  # somebody else destroyed the store: it need not be resumed

    def end_process(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def note(self, line):
        self.lines.append(line)

    # ---- words

    def first_words(self, force=False):
        case = self.case
        return [self.bench.memext, "run", *case.problem.words(self.bench.folder), *case.plan, "--backend", case.backend,
                *case.options, *self.accel, *self.careful, "-d", self.place.path, *(["--force"] if force else []), *self.common()]

    def resume_words(self, *more):
        return [self.bench.memext, "run", "--resume", "-d", self.place.path, *more, *self.common()]

    def common(self):
        return ["-q", "--json", self.folder / "report.json", *(["--verify"] if self.case.verify else []),
                *(word for name, path in self.files.items() for word in (f"--{name}", path))]

    def overwriting(self):
        return ["--overwrite"] if self.may_overwrite and self.files.get("output", Path("/none")).exists() else []

    def calm_backend(self):
        """The backend of the first run, without its faults: of a wrapped mapping the layout is that of the wrapper. The accelerator goes on, or the
        cores do."""
        accel = self.accel if self.accel and self.dice.random() < 0.5 else []
        return ["--backend", self.case.backend, *self.case.options, *accel]

    def variant(self):
        """Options of another backend, other threads and other DRAM; each may be missing."""
        dice, words = self.dice, []
        backend = dice.choice(BACKENDS)
        words += ["--backend", backend, *backend_options(dice, backend)]
        words += dice.choice([[], ["--threads", dice.choice([1, 2, 3])]])
        words += dice.choice([[], [], ["--dram", dice.choice(["24MiB", "64MiB", "512MiB"])]])
        algorithm = dice.choice(sorted(RESUMABLE))
        plan = plan_words(dice, algorithm, self.case.problem, dice.choice([1, 2]))
        if backend != "mmap" and self.accel and dice.random() < 0.5:
            return words + self.accel + (without_engine(plan) if dice.random() < 0.2 and "--threads" not in words and algorithm != "redundant" else [])
        return words + (plan if dice.random() < 0.2 and "--threads" not in words else [])

    # ---- one process

    def run(self, words, act=None, prefix=()):
        for file in (self.folder / "report.json", self.folder / "line" / "timeline"):
            file.unlink(missing_ok=True)
        words = [*prefix, *words, *self.overwriting()]
        before_output = self.output_bytes()
        line = shlex.join(map(str, words))
        self.note(line)
        begin = time.monotonic()
        with SIGNALS.wait():
            self.process = start(words, self.folder)
        self.limiters += [self.process.pid] * bool(prefix)
        end = End(0, "")
        if act is not None:
            act(self.process, end)
        end.status = end_of(self.process, self.bench.patience)
        end.seconds = time.monotonic() - begin
        end.error = (self.folder / "stderr").read_text(errors="replace").strip()
        self.note(f"    # exit status {end.status} after {end.seconds:.2f} s" + (f": {end.error[-400:]}" if end.error else ""))
        self.judge(end, before_output)
        return end

    def output_bytes(self):
        path = self.files.get("output")
        return path.read_bytes() if path is not None and path.is_file() else None

    def judge(self, end, before_output):
        """Checks what must hold for every end of a run, whatever was done to it."""
        if "Traceback" in end.error:
            raise Wrong("stderr has a traceback of Python")
        if end.status < 0 and not (end.status == -end.sent and not (end.caught and end.sent != signal.SIGKILL)):
            raise Wrong(f"the run died by signal {-end.status}" + (f", although signal {end.sent} was sent and caught" if end.sent else ""))
        if end.status in (1, 4) or (end.status > 5 and end.status not in (137,)):
            raise Wrong(f"exit status {end.status}" + (": --verify found another result" if end.status == 4 else ""))
        if end.status in (2, 3, 5) and len(end.error.splitlines()[-1] if end.error else "") < 20:
            raise Wrong(f"exit status {end.status} without a sentence on stderr that says why")
        if end.status == 5 and end.sent not in (signal.SIGINT, signal.SIGTERM):
            raise Wrong("the run reports that it was interrupted (exit status 5), but no signal was sent")
        self.judge_report(end)
        if end.status == 0:
            self.judge_result(end)
        elif "output" in self.files and self.output_bytes() not in (before_output, None):
            self.judge_output()  # whole, though what came after it failed or was killed: the last commit, the end of the store
        elif "output" in self.files and self.output_bytes() != before_output:
            raise Wrong(f"exit status {end.status}, and the file {self.files['output'].name}, which existed before the run, is gone")
        if self.case.problem.from_file and self.bench.input_of(self.case.problem) != self.bench.input_before[self.case.problem.number]:
            raise Wrong("the input was changed")

    def judge_report(self, end):
        try:
            text = (self.folder / "report.json").read_text()
        except FileNotFoundError:
            text = ""
        if end.status in (0, 5) and not text:
            raise Wrong(f"exit status {end.status} without the report that was asked for")
        try:
            end.report = json.loads(text) if text else None
        except json.JSONDecodeError as error:
            if end.status >= 0:
                raise Wrong(f"the report is not JSON: {error}") from None
        expected = {0: "done", 5: "interrupted"}.get(end.status)
        if expected and end.report["status"] != expected:
            raise Wrong(f"exit status {end.status}, but the report says {end.report['status']}")
        if end.status == 5:
            if end.report.get("resumed_from", 0) < self.reached:
                raise Wrong(f"step {self.reached} was committed, but the run resumed from step {end.report['resumed_from']}")
            if "--resume" in end.error:
                self.reached = max(self.reached, end.report["steps_done"])

    def judge_result(self, end):
        checksum = self.bench.oracle(self.case.problem)[0]
        if end.report["checksum"] != checksum:
            raise Wrong(f"WRONG RESULT: exit status 0 and checksum {end.report['checksum']}, not {checksum}")
        if self.case.verify and end.report["verified"] is not True:
            raise Wrong(f"--verify says {end.report['verified']}")
        if "output" in self.files:
            self.judge_output()

    def judge_output(self):
        right = numpy.load(self.bench.oracle(self.case.problem)[1])
        try:
            made = numpy.load(self.files["output"])
        except (OSError, ValueError) as error:
            raise Wrong(f"the output cannot be read: {error}") from None
        if made.dtype != right.dtype or made.shape != right.shape or made.tobytes() != right.tobytes():
            raise Wrong("WRONG RESULT: the output differs from the undisturbed run's")

    # ---- the whole

    def prepare(self):
        """Refused plans are no campaign; returns False then."""
        self.place = Place(self.folder, self.folder / "none")
        words = [*self.first_words(), "--dry-run"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=self.bench.patience)
        if done.returncode != 0:
            return False
        planned = json.loads((self.folder / "report.json").read_text())
        self.buffers_bytes = 2 * planned["layout"]["buffer_bytes"]
        need = 2 * MIB + 3 * (planned["layout"]["buffer_bytes"] + 2 * MIB) + planned["side_file_bytes"]
        self.place = MAKERS[self.case.place](self.stack, self.folder, need, self.dice)
        return True

    def go(self):
        """Runs the campaign. Returns how it ended, in a word or two."""
        trouble = self.case.trouble
        if trouble in ("kill", "signal", "stop"):
            for _ in range(self.case.deaths):
                if self.next_run(self.draw_act()).status == 0:
                    return "done"
        else:
            end = KINDS[trouble](self)
            if end.status == 0:
                return "done"
            if end.status == 2 and trouble in ("output", "memory"):
                self.bench.count(f"{trouble}: refused")
        self.place.relieve()
        return self.come_to_an_end()

    def draw_act(self):
        trouble = self.case.trouble
        if trouble == "stop" and self.dice.random() < 0.6:
            return act_stop(self, )
        return act_kill(self, [signal.SIGKILL] if trouble == "kill" else [signal.SIGINT, signal.SIGTERM] if trouble == "signal"
                             else [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])

    def next_run(self, act=None, calm=False):
        """The first run, or what follows from the state of the store: a resumed one, or another first one."""
        generation, note_bytes, finished = newest_superblock(self.place.store)
        if not generation:  # none, or one that was under construction
            return self.expect(self.new_run(act), {0} if act is None else None)
        if note_bytes and self.case.algorithm in RESUMABLE and not finished:
            return self.resume(act, calm)
        refused = self.run(self.resume_words(*self.calm_backend()))
        if refused.status == 0 and not note_bytes:  # of an algorithm in place the complete result is committed
            raise Wrong("the run resumed from a store that has no commit")
        if refused.status not in (0, 2):
            raise Wrong(f"--resume of a store that cannot be resumed ended with status {refused.status}, and must end with 2")
        return refused if refused.status == 0 else self.expect(self.new_run(act), {0} if act is None else None)

    def new_run(self, act):
        """If a store is in the way, the run must say so, and --force must replace it."""
        end = self.run(self.first_words(), act)
        if end.status == 2 and "--force" in end.error:
            self.bench.count("a store without a commit was kept: --force")
            end = self.run(self.first_words(force=True), act)
        return end

    def export(self):
        """A committed state can be exported from a device that refuses writes."""
        target = self.folder / "exported.npy"
        words = [str(self.bench.memext), "export", str(self.place.path), "-o", str(target), "-q"]
        self.note(shlex.join(words))
        done = subprocess.run(words, capture_output=True, text=True, timeout=self.bench.patience)
        if done.returncode == 2 and "no state yet" in done.stderr:  # step 0 is still in what the run began with
            return
        if done.returncode != 0 or not target.exists():
            raise Wrong(f"memext export ended with status {done.returncode}: {done.stderr.strip()}")

    def resume(self, act, calm):
        variant = [] if calm or self.dice.random() < 0.4 else self.variant()
        end = self.run(self.resume_words(*(variant or self.calm_backend())), act)
        if end.status == 2 and variant:
            self.bench.count("resumed otherwise: refused")
            end = self.run(self.resume_words(*self.calm_backend()), act)
        elif variant and end.status == 0:
            self.bench.count("resumed otherwise: done")
        if end.status == 3 and "cannot be written" in end.error:
            self.bench.count("resume: the device takes no writes any more")
            self.export()
        elif end.status in (2, 3) and not self.harmed:
            raise Wrong("a commit was made, but --resume refuses or fails")
        return end

    def expect(self, end, allowed):
        if end.status == 3 and "cannot be written" in end.error:
            # What a mapping could not write is told to whoever flushes the device next, once: he cannot know that it was not his.
            self.bench.count("a new run: the device told of an earlier error")
            return end
        if allowed is not None and end.status not in allowed:
            raise Wrong(f"the exit status is {end.status}, and must be {' or '.join(map(str, sorted(allowed)))}")
        if allowed is None and end.status in (2, 3):
            raise Wrong(f"exit status {end.status}, although nothing was done that explains it")
        self.learn(end)
        return end

    def learn(self, end):
        key = self.case.problem.number, self.case.algorithm, self.case.place
        if end.status == 0 and not end.sent:
            self.bench.seconds[key] = end.seconds

    def come_to_an_end(self):
        """Runs without any trouble must give the right result within three runs."""
        for _ in range(3):
            if self.harmed:
                end = self.run(self.resume_words(*self.calm_backend()))
                if end.status != 0:
                    end = self.expect(self.run(self.first_words(force=True)), {0})
                return "done after its store was cut off"
            if self.next_run(calm=self.dice.random() < 0.5).status == 0:
                return "done after trouble"
        raise Wrong("three undisturbed runs did not complete")

    # ---- afterwards

    def check_place(self):
        """After a result, a directory has no store any more, and nothing lies beside a store that was named."""
        parent = self.folder / "store"
        left = sorted(os.listdir(parent)) if parent.is_dir() else []
        if left != ([] if self.place.is_directory() else [self.place.store.name] if self.case.place == "file" else []):
            raise Wrong(f"these files are left in the directory of the store: {', '.join(left)}")
        strays = [name for name in os.listdir(self.outputs) if name not in ("out.npy", "out-2.npy")]
        if strays:
            raise Wrong(f"these files are left beside the output: {', '.join(strays)}")
