# SPDX-License-Identifier: BSD-3-Clause
"""The random campaign: problems of drawn_problems.py by runs of drawn_plans.py, compared with numpy to the bit, and their bytes with those predicted."""
import collections
import json
import os
import random
import shlex
import shutil
import subprocess

import numpy as np
from drawn_kernels import Kernel
from drawn_plans import Run, Ways
from drawn_problems import UNSIGNED, Problem


class Finding(Exception):
    """What is wrong, in a sentence."""


class Machine:
    """The command, and what can be used here: {name: None, or why it cannot}."""

    def __init__(self, program, env):
        self.program, self.env = program, env
        self.look()
        fake = self.program.parent / "fake_cuda"  # a driver and a compiler that need no device
        if self.accels["cuda"] and fake.exists():
            self.env = {**self.env, "LD_LIBRARY_PATH": str(fake), "FAKE_CUDA": "late=1", "FAKE_CUDA_CACHE": f"{self.env['XDG_CACHE_HOME']}/fake_cuda"}
            os.makedirs(self.env["FAKE_CUDA_CACHE"], exist_ok=True)
            self.look()

    def look(self):
        told = json.loads(self("info", "--quiet", "--json", "-").stdout)
        self.backends, self.accels = ({one["name"]: None if one["works"] else one["why"] for one in told[of]} for of in ("backends", "accelerators"))

    def __call__(self, *words):
        return subprocess.run([str(self.program), *map(str, words)], capture_output=True, text=True, timeout=300, env=self.env)


def alike(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


class Trial:
    """One problem: a chain of runs, each of which goes on where the one before it has stopped."""

    def __init__(self, machine, folder, kernel, kernel_path, seed, counts, opencl=0.02):
        self.machine, self.folder, self.kernel, self.seed, self.counts = machine, folder, kernel, seed, counts
        self.r, self.opencl, self.commands = random.Random(f"runs {seed}"), opencl, []
        self.problem = Problem(folder, kernel, seed)
        self.place, self.report_path = folder / "store", folder / "report.json"
        self.place.mkdir()
        self.ways = Ways(self.problem, self.r)
        self.first = ["--kernel", str(kernel_path), "--dram", "512MiB", *self.problem.words]
        self.points = self.problem.points()
        self.ranks = 1  # whose stores lie in the place
        self.asked = 0  # steps, when the store was made or gone on with
        self.outputs = ["--overwrite", *(w for f in kernel.all_state for w in ("-o", f"{f}={folder}/{f}.out.npy"))]

    def count(self, *names):
        self.counts.update(names)

    # ---- calls

    def words(self, run):
        """Of the command, for a run."""
        begins = ["--resume"] if run.resume else self.first
        points = self.points if run.resume else self.points[self.points.index("--probes"):] if "--probes" in self.points else []
        place = ["-d", str(self.place)] if run.backend in ("uring", "aio", "mmap") or run.fault else []
        keep = [] if run.resume or not place else ["--force"]
        shots = ["--snapshot", f"{run.snapshot}:{self.folder}/shots"] if run.snapshot else []
        return ["run", *begins, *points, *place, *keep, *run.words(), *shots, *(["--keep"] if place else []), *self.outputs, "--quiet", "--json", str(self.report_path)]

    def call(self, words):
        said = shlex.join([str(self.machine.program), *map(str, words)])
        self.commands.append(said.replace(f"{self.folder}/", "").replace(f"{self.folder.parent}/", "../"))
        self.report_path.unlink(missing_ok=True)
        return self.machine(*words)

    def sentence(self, done):
        """A refusal is status 2 and a sentence, behind remarks if there are any."""
        if done.returncode < 0 or "Traceback" in done.stderr or "Sanitizer" in done.stderr:
            raise Finding(f"status {done.returncode}: {done.stderr.strip()[-400:]}")
        last = (done.stderr.strip().splitlines() or [""])[-1]
        if not last.startswith("memext run: ") or done.stdout:
            raise Finding(f"status {done.returncode} without a sentence: {done.stderr.strip()[-400:]!r} {done.stdout[:100]!r}")
        return last

    def state_of_place(self):
        return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in self.place.rglob("memext.store")} if self.place.exists() else {}

    def usable(self, run):
        """Whether this machine has what the run needs; what it has not is counted."""
        if run.accel in ("opencl", "cuda") and self.r.random() >= self.opencl * 20:  # they compile for seconds
            run.accel = "host"
        for names, name in ((self.machine.backends, run.backend), (self.machine.accels, run.accel)):
            if name is not None and names.get(name, "memext does not know it") is not None:
                self.count(f"skipped: {name}")
                return False
        return True

    # ---- a run and what comes of it

    def attempt(self, run, at):
        """Whether the run was done; a right refusal is False."""
        if not run.resume and run.ranks != self.ranks and self.place.exists():  # runs of other ranks lie side by side there, and --ranks would have to say which
            shutil.rmtree(self.place)
            self.place.mkdir()
        before, must = self.state_of_place(), self.ways.must_refuse(run)
        done = self.call(self.words(run))
        if done.returncode == 2:
            said = self.sentence(done)
            said = "\n".join(line for line in done.stderr.splitlines() if "is copied into the store" not in line)
            right = next((phrase for phrase in must if phrase in said), None) or self.ways.may_refuse(run, said)
            if right is None:
                raise Finding(f"refused, and should not be{f' so (but for: {must})' if must else ''}: {said}")
            if self.state_of_place() != before:
                raise Finding(f"a refused run has changed the store: {said}")
            self.count(f"refused: {right}")
            return False
        if done.returncode not in ((0, 3) if run.fault else (0,)):
            raise Finding(f"status {done.returncode}: {done.stderr.strip()[-600:]}")
        if must:
            raise Finding(f"went through, and should be refused: {must}")
        self.count(*run.drawn(), "runs")
        self.ranks = run.ranks
        if done.returncode == 0:
            self.check(run, json.loads(self.report_path.read_text()), at)
        return True

    def check(self, run, report, at):
        p, wanted = self.problem, self.problem.states[run.upto]
        if report["steps_done"] != run.upto:
            raise Finding(f"steps_done is {report['steps_done']} of {run.upto}")
        if run.resume and report["resumed_from"] != at:
            raise Finding(f"resumed from {report['resumed_from']}, and the store held step {at}")
        if run.verify and report["verified"] is not True:
            raise Finding(f"verified is {report['verified']}")
        for f, values in wanted.items():
            got = np.load(self.folder / f"{f}.out.npy")
            if not alike(got, values):
                where = np.argwhere(got != values)[:3].tolist() if got.shape == values.shape else got.shape
                raise Finding(f"field {f} has other bits than numpy at {where} (z, y, x with the frame) after step {run.upto}")
        if p.probes:
            traces = np.load(self.folder / "traces.npy")[:run.upto]
            if not np.array_equal(traces, np.array(p.traces[1:run.upto + 1])):
                raise Finding(f"other traces than numpy at {np.argwhere(traces != np.array(p.traces[1:run.upto + 1]))[:3].tolist()} (step, probe)")
        self.check_norms(report)
        self.check_bytes(run, report)
        self.check_snapshots(run)

    def check_norms(self, report):
        p = self.problem
        for one in report.get("norms") or []:
            got = {name: next(v for kind, v in of.items() if kind != "spread") for name, of in one["reductions"].items()}
            for name, value in p.totals[one["step"]].items():
                if got[name] != value and not (got[name] is None and not np.isfinite(value)):
                    raise Finding(f"the reduction {name} at step {one['step']} is {got[name]!r}, by numpy {value!r}")
        if p.check and not report.get("norms"):
            raise Finding("no check was taken")

    def check_bytes(self, run, report):
        kinds = ["read", "write"] + (["sent"] if run.ranks > 1 else [])
        mapped = run.backend in ("mmap", "swap", "dram") and not run.accel  # the kernel's own counters, which see all that the process does
        for i, one in enumerate(report["ranks"]["each"] if run.ranks > 1 else [] if mapped else [report]):
            for kind in kinds:
                if one[f"{kind}_bytes"] != one[f"predicted_{kind}_bytes"]:
                    raise Finding(f"{kind}_bytes is {one[f'{kind}_bytes']}, predicted were {one[f'predicted_{kind}_bytes']}{f' (rank {i})' if run.ranks > 1 else ''}")
        for name, phase in report["phases"].items():
            for kind in ("read", "write"):
                if (name != "stencil" or not mapped) and f"predicted_{kind}_bytes" in phase and phase[f"{kind}_bytes"] != phase[f"predicted_{kind}_bytes"]:
                    raise Finding(f"{kind}_bytes of the phase {name} is {phase[f'{kind}_bytes']}, predicted were {phase[f'predicted_{kind}_bytes']}")
        for way in ("host_to_device", "device_to_host"):
            if report.get(f"{way}_bytes") != report.get(f"predicted_{way}_bytes"):
                raise Finding(f"{way}_bytes is {report[f'{way}_bytes']}, predicted were {report[f'predicted_{way}_bytes']}")

    def check_snapshots(self, run):
        h, dims = self.kernel.h, self.problem.dims
        for step in range(run.snapshot, run.upto + 1, run.snapshot) if run.snapshot else ():
            for f in self.kernel.state:
                got, wanted = np.load(self.folder / f"shots/{f}-{step:06}.npy"), self.problem.states[step][f][(slice(h, -h),) * dims]
                if not alike(got, np.ascontiguousarray(wanted)):
                    raise Finding(f"the snapshot of {f} at step {step} has other bits than numpy")

    # ---- what has to be refused

    def wrong(self, run):
        """A word that makes a run one that is refused: (what, words, part of the sentence)."""
        p, k, r = self.problem, self.kernel, self.r
        fields = {**k.state, **k.partner}
        unsigned = [f for f, t in fields.items() if t in UNSIGNED]
        said = " ".join(p.words)
        options = [("a side of no field", ["--side", "q:x=odd"], "names no"), ("a kind of side that is none", ["--side", "x=magic"], "magic"),
                   ("a step back", None, None)]
        if unsigned and "--side" not in said:
            options += [("an odd side of an unsigned field", ["--side", f"{r.choice(unsigned)}:{r.choice('xy')}=odd{r.choice(['', '-node'])}"], "no negative values")] * 3
        if len(fields) > 1 and "--side" not in said:
            options += [("one periodic field of several", ["--side", f"{r.choice(list(fields))}:x=periodic"], "periodic")]
        if "series" in said:
            options += [("more steps than a series has values", ["-t", run.upto + 40], "values")] * 2
        if k.levels > 1:
            options += [("a sweep that ends within a step", ["--plan", f"stream bt={k.levels + 1}"], "bt is")] * 2
        if k.form == "jacobi":
            options += [("in place without an old value", ["--in-place"], "in-place")]
        options += [("a source outside", ["--source", f"{next(iter(fields))}@{','.join(str(n) for n in p.n)}={p.save('w', np.ones(3))}"], "outside"),
                    ("a grid of another size", ["-n", *(n + 1 for n in p.n)], "shape"), ("hashes of what is not loaded", ["--algorithm", "direct", "--integrity", "--backend", "mmap"], "--integrity"),
                    ("a direct run by transfers", ["--algorithm", "direct", "--backend", "aio"], "mapped Buffers")]
        return r.choice([o for o in options if o[1] is not None])

    def refuse(self, upto):
        what, words, phrase = self.wrong(Run(upto))
        plain = [w for w in self.first]
        if "-n" in words:
            at = plain.index("-n")
            del plain[at:at + 1 + self.problem.dims]
        given = ["run", *plain, "-d", self.place, *(["-t", upto] if "-t" not in words else []), *words, "--quiet"]
        done = self.call(given)
        if done.returncode != 2:
            raise Finding(f"{what} is not refused: status {done.returncode}")
        if phrase not in self.sentence(done):
            raise Finding(f"{what} is refused, but not with '{phrase}': {done.stderr.strip()}")
        if self.state_of_place():
            raise Finding(f"{what} is refused, and a store was made")
        self.count(f"wrong: {what}")

    # ---- a chain

    def stops(self):
        r, last = self.r, self.problem.steps
        if self.problem.probes and r.random() < 0.8:  # traces have room for the steps that were asked for first
            return [last]
        return sorted({*r.sample(range(1, last), min(last - 1, r.choice((0, 0, 1, 1, 2)))), last})

    def die(self, upto):
        """A run whose device dies: the step that its store holds, or None."""
        run = self.ways.fault(upto)
        if not self.usable(run) or not self.attempt(run, None):
            return None
        told = self.machine("info", self.place, "--json", "-") if (self.place / "memext.store").exists() else None
        store = json.loads(told.stdout).get("store") if told is not None and told.returncode == 0 else None
        if store is None or store["step"] < 0:
            self.count("a device that died before the first commit")
            return None
        self.count("a device that died after a commit" if store["step"] < upto else "a device that lived to the end")
        return store["step"]

    def go(self):
        """The whole chain. Raises Finding."""
        r = self.r
        if not self.problem.finite:
            self.count("a problem that is not finite")
            return
        self.count("problems", *self.problem.counted)
        if r.random() < 0.12:
            self.refuse(self.problem.steps)
        stops, at = self.stops(), None
        if r.random() < 0.15 and self.machine.backends.get("uring", "") is None:
            at, self.asked = self.die(stops[0]), stops[0]
        for i, upto in enumerate(stops):
            for _ in range(5):
                run = self.ways.draw(upto, at, alone=len(stops) == 1, asked=self.asked)
                if self.usable(run) and self.attempt(run, at):
                    break
                if at is not None and self.problem.probes and upto > self.asked:
                    return  # refused whatever else is asked for
                at = at or None  # a store of step 0 may hold nothing that could be gone on with
            else:
                self.count("five draws that were refused")
                if self.problem.probes and self.asked or at is not None:
                    return
                if not self.attempt(self.ways.plain(upto, at), at):
                    if min(self.problem.n) <= 3 and any(one.test for one in self.problem.kernel.reductions):
                        return  # a reduction of no cell
                    raise Finding("refused, and asks for nothing that could be")
            at = self.asked = upto
            self.count(f"goes on from {'another' if i else 'no'} run")


class Campaign:
    """Problems number `first` to `first + problems - 1` of a seed; a kernel is compiled for so many of them."""

    def __init__(self, program, folder, seed, env, of_a_kernel=10, opencl=0.02):
        self.machine, self.folder, self.seed = Machine(program, env), folder, seed
        self.of_a_kernel, self.opencl, self.counts, self.findings, self.known = of_a_kernel, opencl, collections.Counter(), [], {}

    def kernel(self, number):
        if number not in self.known:
            kernel = Kernel(f"{self.seed} {number}")
            path = self.folder / f"kernel-{number}.c"
            path.write_text(kernel.text())
            self.known = {number: (kernel, path)}
            self.counts.update(["kernels", *kernel.drawn()])
        return self.known[number]

    def run(self, first, problems, keep=False, say=lambda text: None, most=1 << 30):
        """Ends after so many findings."""
        for number in range(first, first + problems):
            kernel, path = self.kernel(number // self.of_a_kernel)
            folder = self.folder / f"problem-{number}"
            folder.mkdir()
            trial = None
            try:
                trial = Trial(self.machine, folder, kernel, path, f"{self.seed} {number}", self.counts, self.opencl)
                trial.go()
            except Exception as what:  # a file that is missing is one too
                what = what if isinstance(what, Finding) else f"{type(what).__name__}: {what}"
                self.findings.append((number, str(what), trial.commands if trial else []))
                say(f"--seed {self.seed} --only {number}: {what}\n" + "".join(f"    {c}\n" for c in self.findings[-1][2]))
                if len(self.findings) >= most:
                    return self
            if not keep:
                shutil.rmtree(folder)
        return self

    def told(self):
        """Counts, one group a line."""
        groups = collections.defaultdict(list)
        for name, n in sorted(self.counts.items()):
            head = name.split(":")[0] if ":" in name and not name.startswith("backend") else name.split()[0]
            groups[head].append(f"{name} {n}")
        return "\n".join("; ".join(lines) for lines in groups.values())
