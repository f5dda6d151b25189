# SPDX-License-Identifier: BSD-3-Clause
"""Makes runs and keeps them; a run that is kept is not run again."""
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import time

from rivalry.case import COMPILE
from rivalry.programs import Failed, OutOfTime, command, say, umap_library
from rivalry.settings import settings_of
from rivalry.table import HERE, MIB, PROGRAM, RIVALS, ROOT, SLACK
from runner import host

LIMIT = os.path.join(ROOT, "experiments", "limit-memory")
# Steps after which one plain loop has its state hashed, for all the others; what is measured over fewer than all steps is measured over one of these.
MARKS = (2, 4, 6, 8, 12, 16, 18, 24, 32, 36, 48, 60, 64, 72, 96, 120, 128, 144, 168)
SLOWER = 2  # times the best so far: a setting that takes longer a step is ended, for it will not be the best


class Runs:
    """All runs. Measured runs are kept, and are not run again."""

    def __init__(self, o, place, python):
        self.o, self.place, self.python = o, place, python
        self.path = os.path.join(o.output, "rivals.json")
        self.bases, self.dry, before = {}, False, {"records": []}
        if os.path.exists(self.path):
            with open(self.path) as file:
                before = json.load(file)
        said = json.loads(command([python, os.path.join(HERE, "worker.py"), "--probe"]).splitlines()[-1])
        self.absent = {name: why for name, (work, _, _) in RIVALS.items() if name in o.rivals and (why := said["rivals"].get(work, ""))}
        self.versions = said["versions"]
        if before.get("versions") == self.versions:
            self.bases = before.get("bases", {})
        if "umap" in o.rivals and o.umap is None:
            self.absent["umap"] = "UMap is not installed here; name its prefix with --umap PREFIX"
        if o.no_system:
            for name in ("swap", "swap-k"):
                if name in o.rivals:
                    self.absent[name] = "it needs a memory limit and swap space, which --no-system does not make"
        for name, why in self.absent.items():
            say(f"{name} is not run: {why}")
        others = sorted({r["rival"] for r in before["records"] if r["rival"] in o.rivals and self.identity(r["rival"]) not in (None, r.get("program", ""))})
        self.records = [r for r in before["records"] if r["rival"] not in others and not (o.retry_failed and r.get("failure"))]
        if others:
            kept = next(name for k in itertools.count(1) if not os.path.exists(name := f"{self.path}.{k}"))
            shutil.copyfile(self.path, kept)
            say(f"memext, UMap or a package has changed since {', '.join(others)} ran. Their runs are in {kept}, and are made again")

    def identity(self, rival):
        """What the runs of a tool are of: this build of memext or of UMap, or these versions of packages; "" for the plain loop. None: the tool cannot run here."""
        if rival == "memory":
            return ""
        if rival in self.absent:
            return None
        if rival == "memext":
            return host.program_id(os.path.join(self.o.build, "memext"))
        return host.program_id(os.path.join(umap_library(self.o.umap), "libumap.so")) if rival == "umap" else json.dumps(self.versions, sort_keys=True)

    def save(self):
        origin = {"schema": 1, "command": " ".join(sys.argv), "commit": host.commit(ROOT), "scale": self.o.scale, "kernel": platform.release(), "machine": host.machine(self.o.data),
                  "versions": self.versions, "absent": self.absent, "steps": self.o.steps, "read_ahead_kb": self.o.read_ahead_kb, "rivals": {n: v[2] for n, v in RIVALS.items()}, "bases": self.bases}  # fmt: skip
        os.makedirs(self.o.output, exist_ok=True)
        with open(self.path + ".new", "w") as file:
            json.dump({**origin, "records": self.records}, file, indent=1)
        os.replace(self.path + ".new", self.path)

    def in_time(self):
        if self.o.minutes is not None and time.monotonic() - self.o.begin > self.o.minutes * 60:
            raise OutOfTime

    def base(self, case, work):
        """Bytes that the process takes before it has seen any data, rounded up to MiB. It is measured twice, because numba compiles the first time."""
        if work in ("memext", "umap"):
            return PROGRAM
        name = f"{case.name} {work}"
        if name not in self.bases:
            job = {"rival": work, "library": case.library, "inputs": case.inputs, "output": "", "work": self.place, "steps": 0, "threads": self.o.threads, "settings": {}}
            found = [json.loads(command([self.python, os.path.join(HERE, "worker.py"), json.dumps(job)], env=self.environment()).splitlines()[-1]) for _ in range(2)]
            self.bases[name] = -(-found[1]["base_bytes"] // MIB) * MIB
        return self.bases[name]

    def environment(self):
        return {**os.environ, "NUMBA_CACHE_DIR": os.path.join(self.o.tools, "numba"), "OMP_NUM_THREADS": str(self.o.threads), "NUMBA_NUM_THREADS": str(self.o.threads)}

    def program(self, case, work, settings, dram, steps, output, folder):
        """(command, environment) of memext, or of the program that uses UMap."""
        if work == "memext":
            fields = ["p", "v", "damping"] if case.leapfrog else ["u"]
            words = [os.path.join(self.o.build, "memext"), "run", "--kernel", case.kernel, "-t", str(steps), "--dram", str(dram + PROGRAM), "-d", folder, "--quiet", "--json", "-",
                     "--input", f"{fields[0]}={case.inputs[0]}", *itertools.chain(*(("--field", f"{f}={p}") for f, p in zip(fields[1:], case.inputs[1:]))),
                     "--output", f"{fields[0]}={output}", *settings["words"]]  # fmt: skip
            cache = os.path.join(self.o.tools, "cache-calibrated" if settings.get("calibrated") else "cache")
            self.compiled(case, cache, dram, ["--calibrate"] if settings.get("calibrated") else [])
            return words, {"XDG_CACHE_HOME": cache}
        program = os.path.join(self.place, f"umap-{case.name}")
        if not os.path.exists(program):
            include, library = os.path.join(self.o.umap, "include"), umap_library(self.o.umap)
            command(["cc", *COMPILE, *case.include, f"-I{HERE}", f"-I{include}", os.path.join(HERE, "umap.c"), "-lm", f"-L{library}", f"-Wl,-rpath,{library}", "-lumap", "-o", program])
        pages = max(24, int(settings["share"] * dram / settings["page"]))
        return [program, str(steps), str(self.o.threads), str(settings["slab"]), output, folder, *case.inputs], {
            "UMAP_PAGESIZE": str(settings["page"]), "UMAP_BUFSIZE": str(pages), "UMAP_PAGE_FILLERS": str(settings["fillers"]), "UMAP_PAGE_EVICTORS": str(settings["fillers"])}  # fmt: skip

    def compiled(self, case, cache, dram, more):
        """Compiles the kernel into this cache, outside any memory limit, where the compilers of the other tools run too."""
        made = os.path.join(cache, f"{case.name}-{self.identity('memext')}")
        if os.path.exists(made):
            return
        nz, ny, nx = (n - 2 * case.h for n in case.shape)
        memext = os.path.join(self.o.build, "memext")
        command([memext, "tune", "--kernel", case.kernel, "-n", nx, ny, nz, "-t", self.o.steps, "-d", self.place, "--dram", dram + PROGRAM, *more, "--quiet", "--json", "-"], env={**os.environ, "XDG_CACHE_HOME": cache})
        os.makedirs(made)

    def run(self, case, factor, rival, settings, steps, kind, repeat=0, beat=None):
        """A record: {case, factor, rival, settings, steps, kind, seconds, ..., hash, same | failure}. rival "memory": the plain loop, without a limit.
        beat: a record of the search; what is much slower is ended."""
        key = {"case": case.name, "shape": list(case.shape), "factor": factor, "rival": rival, "settings": settings, "steps": steps, "kind": kind, "repeat": repeat, "read_ahead_kb": self.o.read_ahead_kb}
        for r in self.records:
            if {k: r.get(k) for k in key} == key:
                return r
        self.in_time()
        case.make_inputs()
        work = "memory" if rival == "memory" else RIVALS[rival][0]
        dram = int(case.data_bytes / factor) // MIB * MIB if factor else 0
        folder, output = os.path.join(self.place, "work"), os.path.join(self.place, "result.npy")
        os.makedirs(folder)
        record = {**key, "program": self.identity(rival), "data_bytes": case.data_bytes, "cells": case.cells, "dram_bytes": dram, "limit_bytes": 0}
        try:
            job = {"rival": work, "library": case.library, "inputs": case.inputs, "output": output, "work": folder, "steps": steps, "threads": self.o.threads, "settings": settings}
            if kind == "reference":
                job["marks"] = [m for m in MARKS if m < steps]
            if work in ("memext", "umap"):
                job["command"], job["settings"] = (lambda words, e: (words, {"environment": e}))(*self.program(case, work, settings, dram, steps, output, folder))
            words = [self.python, os.path.join(HERE, "worker.py"), json.dumps(job)]
            if rival != "memory":
                record["limit_bytes"] = dram + self.base(case, work) + SLACK
                space = ["--swap", str(int(1.3 * case.data_bytes * (1.5 if "k" in settings else 1)) + SLACK), "--swap-dir", self.place] if work == "swap" else []
                words = [LIMIT, str(record["limit_bytes"]), "--quiet", *space, *(["--no-system"] if self.o.no_system else []), *(["--keep-cache"] if self.o.keep_cache else []), "--", *words]
            record |= self.measured(words, *(self.patience(work, steps, beat) if kind == "search" else (None, "")))
            record["hash"] = case.hash_of(output)
        except Failed as error:
            record["failure"] = str(error)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if os.path.exists(output):
                os.unlink(output)
        if not record.get("failure"):
            report = record.pop("report", {})
            record |= {k: report[k] for k in ("import_s", "export_s") if k in report}
            record |= {"plan": report["plan"], "backend": report["backend"], "stencil_seconds": report["seconds"]} if "plan" in report else {}
            record |= {k: record.get(k, 0.0) for k in ("import_s", "export_s")}
            record["step_s"] = (record["seconds"] - record["import_s"] - record["export_s"]) / steps
            wanted = record["hash"] if rival == "memory" else self.reference(case, steps)
            record["same"] = record["hash"] == wanted
            if not record["same"]:
                record["failure"] = f"the result differs from that of the plain loop (hash {record['hash']}, the plain loop has {wanted})"
        self.records.append(record)
        self.save()
        say(f"{case.name} {factor or ''}x {rival} {json.dumps(settings)} {steps} steps: " + (record.get("failure") or f"{record['seconds']:.2f} s, {1e-6 * case.cells / record['step_s']:.0f} Mupdates/s"))
        return record

    def patience(self, work, steps, beat):
        """(seconds that a run of the search gets, what is said when they are over)"""
        most = self.o.limit * (3 if work == "swap" else 1)
        if beat:  # what starting took is no part of its seconds
            enough = SLOWER * (beat.get("start_s", 0.0) + beat["import_s"] + beat["export_s"] + beat["step_s"] * steps)
            if enough < most:
                return enough, f"stopped after {enough:.1f} s, because another setting takes less than half of that time"
        return most, f"stopped after {most:g} s, the time limit of a run that tries settings (--limit)"

    def measured(self, words, limit, late):
        begin = time.monotonic()
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment())
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.end(process)
            raise Failed(late) from None
        except BaseException:
            self.end(process)
            raise
        if process.returncode != 0:
            said = [line for line in err.strip().splitlines() if line] or ["no message"]
            named = [line for line in said if "out of memory" in line] or [line for line in said if line.startswith(("memext", "umap"))]
            raise Failed(f"{(named or said)[-1][:300]} (exit status {process.returncode})")
        said = json.loads(out.splitlines()[-1])
        return {**said, "start_s": time.monotonic() - begin - said["seconds"]}

    @staticmethod
    def end(process):
        """limit-memory passes the first signal on and kills all it has at the second."""
        for _ in range(2):
            process.terminate()
            try:
                process.communicate(timeout=20)
                return
            except subprocess.TimeoutExpired:
                continue
        process.communicate()

    def reference(self, case, steps):
        """The hash of the plain loop's state after this many steps. One loop over all steps gives those of MARKS."""
        for attempt in range(2):
            for r in self.records:
                if (r["rival"], r["case"], r["shape"]) == ("memory", case.name, list(case.shape)) and not r.get("failure"):
                    if found := {**r.get("hashes", {}), str(r["steps"]): r["hash"]}.get(str(steps)):
                        return found
            done = self.run(case, 0, "memory", {"slab": 8}, self.o.steps if attempt == 0 and steps in MARKS else steps, "reference")
            if done.get("failure"):
                raise Failed(f"the plain loop, with which results are compared, failed: {done['failure']}")
        return done["hash"]

    def search_steps(self, rival, settings):
        """Swap takes seconds for each."""
        k = settings.get("k", 1)
        return min(self.o.steps, 2 * k if k > 1 else 2 if rival == "swap" else 4)

    def best(self, case, factor, rival):
        """The best record of the search, None if all failed."""
        dram = int(case.data_bytes / factor) // MIB * MIB
        first, more = settings_of(rival, case, dram, self.o.threads)
        steps = (lambda s: self.o.steps) if rival == "memext" else lambda s: self.search_steps(rival, s)
        best, tried = None, []

        def attempt(some):
            nonlocal best
            for s in some:
                tried.append(s)
                r = self.run(case, factor, rival, s, steps(s), "search", beat=best)
                if not r.get("failure") and (best is None or r["step_s"] < best["step_s"]):
                    best = r

        attempt(first[:self.o.settings])
        if best:
            attempt([s for s in more(best["settings"]) if s not in tried][:max(0, self.o.settings - len(first))])
        return best

    def whole(self, case, factor, rival, repeat):
        best = self.best(case, factor, rival)
        if best is None:
            return
        k, steps = best["settings"].get("k", 1), self.o.steps
        if best["step_s"] * steps > self.o.most and rival != "memext":  # whose import and export are in its seconds
            most = min(self.o.steps - 1, self.o.most / best["step_s"])
            steps = max([self.search_steps(rival, best["settings"]), *(m for m in MARKS if m % k == 0 and m <= most)])
        if self.o.search:
            self.reference(case, steps)
        else:
            self.run(case, factor, rival, best["settings"], steps, "whole", repeat)
