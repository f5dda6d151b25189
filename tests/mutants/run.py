#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Applies the mutants of table.py one by one to a copy of this tree, builds it, and says after how many problems the random campaign finds each, or which test does."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from table import FOLDERS, MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))

from drawn_runs import Campaign  # noqa: E402


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("names", nargs="*", metavar="MUTANT", help="those alone (default: all)")
    p.add_argument("--seed", default="1", help="of the campaign (default 1)")
    p.add_argument("--problems", type=int, default=400, metavar="N", help="at most, for each (default 400)")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="of the build (default: the cores)")
    p.add_argument("--list", action="store_true", help="says what there is")
    return p.parse_args()


class Copy:
    """A copy of the files of this tree, in a folder of its own."""

    def __init__(self, folder, jobs):
        self.tree, self.jobs = folder / "tree", jobs
        self.env = {**os.environ, "CCACHE_BASEDIR": str(self.tree), "CCACHE_NOHASHDIR": "1"}
        for name in subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True).stdout.split("\0")[:-1]:
            if (ROOT / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)
        self.call("cmake", "--preset", "release")

    def call(self, *words):
        done = subprocess.run(words, cwd=self.tree, env=self.env, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: {done.stdout[-3000:]}{done.stderr[-3000:]}")

    def build(self, *targets):
        self.call("cmake", "--build", "build/release", *(w for t in targets for w in ("--target", t)), f"-j{self.jobs}")

    def change(self, mutant):
        path = self.tree / mutant.file
        text = path.read_text()
        assert text.count(mutant.old) == 1, f"{mutant.name}: its text stands {text.count(mutant.old)} times in {mutant.file}"
        path.write_text(text.replace(mutant.old, mutant.new))

    def restore(self, mutant):
        shutil.copyfile(ROOT / mutant.file, self.tree / mutant.file)

    def campaign(self, folder, o):
        """Of the program that is built."""
        folder.mkdir()
        env = {**os.environ, "MEMEXT_ROWS": "2n", "OMP_WAIT_POLICY": "passive", "XDG_CACHE_HOME": str(folder / "cache")}
        begin = time.monotonic()
        c = Campaign(self.tree / "build/release/memext", folder, o.seed, env, opencl=0).run(0, o.problems, most=1)
        shutil.rmtree(folder)
        found = c.findings[0] if c.findings else None
        return f"by problem {found[0] + 1}: {found[1][:160]}" if found else None, f"in {o.problems} problems", time.monotonic() - begin

    def tests(self, names):
        """The first test of these that fails, of the tree that is built."""
        begin, c_test = time.monotonic(), "/" not in names[0]
        env = {**self.env, "OMP_WAIT_POLICY": "passive", "MEMEXT_BUILD": str(self.tree / "build/release")}
        words = ["ctest", "--test-dir", "build/release", "-R", f"^{names[0]}$", "--output-on-failure"] if c_test else [sys.executable, "-m", "pytest", "-x", "-q", "-rf", "-p", "no:cacheprovider", *names]
        done = subprocess.run(words, cwd=self.tree, env=env, capture_output=True, text=True)
        failed = re.findall(r"\bFAIL\b\S* (\S+?): |^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
        found = next((a or b for a, b in failed), done.stdout[-200:]) if done.returncode != 0 else None
        return f"by {names[0] + ', ' if c_test else ''}{found}" if found else None, f"by {', '.join(names)}", time.monotonic() - begin


def main():
    o = options()
    chosen = [m for m in MUTANTS + FOLDERS if not o.names or m.name in o.names]
    if o.list or not chosen:
        print("\n".join(f"{m.name}: {m.what} ({m.file})" for m in MUTANTS + FOLDERS))
        return 0 if o.list else 2
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=ROOT / "build") as name:
        folder, missed = pathlib.Path(name), []
        copy = Copy(folder, o.jobs)
        for mutant in chosen:
            copy.change(mutant)
            copy.build(*([] if mutant.by else ["memext"]))
            found, tried, seconds = copy.tests(mutant.by) if mutant.by else copy.campaign(folder / "problems", o)
            copy.restore(mutant)
            missed += [] if found else [mutant.name]
            print(f"{mutant.name}: {f'found {found}' if found else f'NOT FOUND {tried}'} ({seconds:.0f} s)", flush=True)
        print(f"{len(chosen) - len(missed)} of {len(chosen)} mutants found{': missed ' + ', '.join(missed) if missed else ''}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
