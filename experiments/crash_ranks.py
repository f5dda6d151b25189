#!/usr/bin/python3
"""kill -9 of a random rank at a random moment, again and again: does a run of ranks always come to the right bits?

A campaign is one problem with a plan drawn at random, begun with 1 to 4 ranks of this machine (the link local). One rank (or,
of a run by itself, the process) gets SIGKILL at a moment drawn from the whole run: while stores are made, the grid is
initialised, sweeps are computed and committed, or planes go over to the stores of another number of ranks. All processes have
to end; then the run goes on with --resume, mostly with another number of ranks, and is killed again. Where a whole set of
stores holds a step, --resume has to take it up; where none does, the run begins anew. At the end of a campaign the run goes on
undisturbed, and its checksum has to be that of a run that nothing ever happened to; only its last stores may be left, and no
process.

usage: experiments/crash_ranks.py [--kills 100] [--seed 1] [--place DIR] [--patience 300] [--json FILE]
The exit status is 0 only when nothing failed.
"""
import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NX, NY = 26, 22
PLANS = [["--algorithm", "stream", "--block", NY, 128, 2], ["--plan", "stream by=7 bt=2 slab=2"], ["--algorithm", "redundant", "--block", 9, 8, 2],
         ["--algorithm", "stream", "--engine", "iblock", "--block", NY, 128, 3]]
EVERY = [[], ["--commit-every", 0], ["--commit-every", 0.01], ["--commit-every", 0.1]]
DEATHS = 8  # of a campaign, at most


class Wrong(Exception):
    """What a run did that it may not do."""


def children(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Campaign:
    def __init__(self, arguments, dice, folder):
        self.memext, self.patience, self.dice, self.folder = arguments.memext, arguments.patience, dice, folder
        self.size = [str(n) for n in (NX, NY, dice.randint(32, 71))]
        self.steps = dice.randint(20, 50)
        kind = ["--stencil", dice.choice(["star7", "edge19", "box27"]), "--dtype", dice.choice(["f64", "f32"])]
        self.problem = ["-n", *self.size, "-t", self.steps, *kind]
        self.plan = [str(word) for word in dice.choice(PLANS)]
        self.delay = dice.choice([0, 500, 2000, 5000])
        self.also = random.Random(repr(self.problem))  # of its own: problems of a seed stay what they were
        self.report = folder.parent / "report.json"
        self.counts = collections.Counter()
        self.log = []

    def words(self, ranks, slow):
        backend = ["--backend", "fault:aio", "--fault", f"delay_us={self.delay}"] if slow and self.delay else ["--backend", "aio"]
        many = ["--ranks", ranks] if ranks > 1 else []
        return [self.memext, "run", "-d", self.folder, *many, "--threads", 1, "--dram", "64MiB", "--quiet", "--keep", *backend]

    def start(self, words):
        words = [str(word) for word in words]
        self.log.append(" ".join(words))
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def alone(self):
        words = [self.memext, "run", *self.problem, "--backend", "dram", "--algorithm", "direct", "--engine", "iblock", "--threads", 1, "--quiet", "--json", "-"]
        return json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout)["checksum"]

    def stores(self):
        """What every store of the folder says of itself; None: it has no note."""
        found = {}
        for path in self.folder.rglob("memext.store"):
            done = subprocess.run([self.memext, "info", path, "--json", "-"], capture_output=True, text=True)
            if done.returncode == 0:
                store = json.loads(done.stdout)["store"]
                found[path] = store if store["step"] >= 0 else None
        return found

    def newest(self, stores):
        """(cut, ranks, step) of the newest cut of which all ranks have a step in common, or None."""
        sets = collections.defaultdict(dict)
        for store in filter(None, stores.values()):
            sets[store["cut"], store.get("ranks", 1)][store.get("rank", 0)] = store
        whole = []
        for (cut, ranks), members in sets.items():
            if len(members) == ranks:
                whole.append((cut, ranks, min(store["step"] for store in members.values())))
        return max(whole, default=None)

    def finish(self, process, victims):
        """Waits for the command and all ranks that it had."""
        try:
            err = process.communicate(timeout=self.patience)[1]
        except subprocess.TimeoutExpired:
            raise Wrong(f"the run did not end within {self.patience} s after a rank was killed") from None
        end = time.monotonic() + self.patience
        while not all(gone(pid) for pid in victims):
            if time.monotonic() > end:
                raise Wrong("a rank outlived its command")
            time.sleep(0.01)
        return err

    def kill_once(self, words, ranks):
        """Starts the command and kills one of its ranks after a random time. False: it was done first."""
        process = self.start(words)
        moment = time.monotonic() + self.dice.random() ** 2 * self.duration
        pids = [process.pid] if ranks == 1 else []
        while time.monotonic() < moment and process.poll() is None:
            time.sleep(0.0005)
        if ranks > 1:
            pids = children(process.pid)
        victim = self.dice.choice(pids) if pids else None
        if victim is not None and process.poll() is None:
            os.kill(victim, signal.SIGKILL)
            self.log.append(f"kill -9 {victim}, of {ranks} ranks")
        err = self.finish(process, pids)
        if process.returncode == 0:
            return False
        expected = -signal.SIGKILL if ranks == 1 else 128 + signal.SIGKILL
        if process.returncode != expected:
            raise Wrong(f"exit status {process.returncode} instead of {expected}: {err.strip()}")
        for line in err.splitlines():
            if not line.startswith("memext run: "):
                raise Wrong(f"not a sentence: {line}")
        self.counts["kills"] += 1
        return True

    def fresh(self, ranks):
        every = self.also.choice(EVERY) or (["--commit-every", 0] if ranks == 1 else [])
        return [*self.words(ranks, True), *self.problem, *self.plan, *every, *self.there(), "--force"]

    def there(self):
        """Now and then on an accelerator."""
        possible = "redundant" not in self.plan and "iblock" not in self.plan
        return ["--accel", "host"] if possible and self.also.random() < 0.3 else []

    def to_its_end(self, words):
        process = self.start([*words, "--json", self.report])
        err = self.finish(process, [])
        if process.returncode != 0:
            raise Wrong(f"exit status {process.returncode}: {err.strip()}")
        self.check_end()

    def check_end(self):
        found = json.loads(self.report.read_text())["checksum"]
        if found != self.wanted:
            raise Wrong(f"checksum {found} instead of {self.wanted}")
        self.counts["right at the end"] += 1
        stores = self.stores()
        _, ranks, step = self.newest(stores) or (0, 0, -1)
        if step != self.steps or len(stores) != ranks:
            raise Wrong(f"at the end there are {[str(path) for path in stores]}, at step {step} of {self.steps}")

    def run(self):
        self.wanted = self.alone()
        begun, ranks = False, self.dice.randint(1, 4)
        begin = time.monotonic()
        self.to_its_end(self.fresh(ranks))
        self.duration = time.monotonic() - begin
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for _ in range(self.dice.randint(3, DEATHS)):
            state = self.newest(self.stores())
            if state is None and begun:
                raise Wrong("the stores of a run that had a state hold none any more")
            if state is None:
                words = self.fresh(ranks)
            else:
                former, ranks = state[1], self.dice.choice([state[1], *range(1, 5)])
                words = [*self.words(ranks, True), "--resume", *(self.also.choice(EVERY) if self.also.random() < 0.3 else []), *self.there()]
                self.counts["resumed"] += 1
                self.counts["resumed with another number of ranks"] += former != ranks
            if not self.kill_once([*words, "--json", self.report], ranks):
                self.counts["done before the kill"] += 1
                return self.check_end()
            after = self.newest(self.stores())
            begun |= after is not None
            if state is None:
                self.counts["killed before the first commit"] += after is None
                continue
            if after is None or after[0] < state[0] or after[2] < state[2]:
                raise Wrong(f"{state} had been committed, and after a kill there is {after}")
            if ranks != state[1]:
                self.counts["killed while going over" if after[1] == state[1] else "killed after going over"] += 1
        self.to_its_end([*self.words(self.dice.randint(1, 4), False), "--resume"] if begun else self.fresh(ranks))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--place", type=Path, default=ROOT / "build")
    parser.add_argument("--memext", type=Path, default=Path(os.environ.get("MEMEXT_BUILD", ROOT / "build" / "release")) / "memext")
    parser.add_argument("--patience", type=float, default=300)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    total, failed, seed = collections.Counter(), 0, arguments.seed
    while total["kills"] < arguments.kills:
        outer = Path(tempfile.mkdtemp(prefix="memext-ranks-", dir=arguments.place))
        folder = outer / "stores"
        folder.mkdir()
        campaign = Campaign(arguments, random.Random(seed), folder)
        try:
            campaign.run()
        except Wrong as wrong:
            failed += 1
            print(f"seed {seed}: {wrong}", *campaign.log, sep="\n    ", file=sys.stderr)
        finally:
            shutil.rmtree(outer)
        total.update(campaign.counts)
        total["campaigns"] += 1
        seed += 1
    total["failed"] = failed
    for name, count in total.items():
        print(f"{count:6} {name}")
    if arguments.json:
        arguments.json.write_text(json.dumps(dict(total), indent=2) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
