#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 of a random rank at a random moment, again and again: does a run of ranks always come to the right bits?

A campaign is one problem with a plan drawn at random, begun with 1 to 4 ranks of this machine (the link local, or with --links
an mpirun). One rank (or, of a run by itself, the process) gets SIGKILL at a moment drawn from the whole run: while stores are
made, the grid is initialised, sweeps are computed and committed, or planes go over to the stores of another number of ranks. All
processes have to end; then the run goes on with --resume, mostly with another number of ranks, and is killed again. Where a whole
set of stores holds a step, --resume has to take it up; where none does, the run begins anew. At the end of a campaign the run goes
on undisturbed, and its checksum has to be that of a run that nothing ever happened to; only its last stores may be left, and no
process. Now and then what goes on is asked for more: more steps, norms, snapshots, hashes. Once any rank has committed a step of
that, it stands: nobody has to ask again, whatever number of ranks goes on.

--in-place: runs that rewrite their one pair of Buffers. What a kill leaves of them is no state, which --resume has to say, but
for that of the end: half of the kills come near it, when ranks commit one after the other.

usage: experiments/crash_ranks.py [--kills 100] [--seed 1] [--links local,openmpi,mpich] [--in-place] [--place DIR] [--patience 300]
           [--json FILE]
The exit status is 0 only when nothing failed.
"""
import argparse
import array
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
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"], "mpich": ["mpirun.mpich", "-n"]}
# What is said of a rank that SIGKILL has ended: by memext, by mpirun of Open MPI, by that of MPICH.
KILLED = {"local": {128 + signal.SIGKILL}, "openmpi": {128 + signal.SIGKILL}, "mpich": {int(signal.SIGKILL), 128 + signal.SIGKILL}}


class Wrong(Exception):
    """A sentence that says what a run did and must not do."""


def ranks_of(pid):
    """The ranks that a command has started; between mpirun and them there may be processes of its own."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):  # mpirun has threads
        try:
            for child in map(int, path.read_text().split()):
                is_rank = Path(f"/proc/{child}/comm").read_text().strip() == "memext"
                found += [child] if is_rank else ranks_of(child)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


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
        self.plan = [str(word) for word in dice.choice(PLANS)]
        self.in_place = arguments.in_place
        if self.in_place:
            kind, self.plan = self.system(), ["--plan", dice.choice(["stream bt=2 slab=3", "stream by=7 bt=2 slab=2", "stream bt=4 slab=2"])]
        self.problem = ["-n", *self.size, "-t", self.steps, *kind]
        self.delay = dice.choice([0, 500, 2000, 5000])
        self.asked = self.stands = False
        self.links = arguments.links.split(",")
        self.also = random.Random(repr(self.problem))  # of its own: problems of a seed stay what they were
        self.more = ["-t", self.steps]
        if not self.in_place and self.also.random() < 0.5:  # it begins with fewer steps
            self.problem[5] = self.steps - self.also.randint(1, 15)
            self.more += self.also.choice([[], ["--check", self.also.randint(1, 9)], ["--integrity"]])
            self.more += self.also.choice([[], ["--snapshot", f"{self.also.randint(1, 7)}:{folder.parent / 'snapshots'}", "--overwrite"]])
        else:
            self.asked = self.stands = True
        self.report = folder.parent / "report.json"
        self.counts = collections.Counter()
        self.log = []

    def system(self):
        """One that reads the old value, with a field that it only reads."""
        field = self.folder.parent / "eps.raw"
        field.write_bytes(array.array("f", [1.0]).tobytes() * ((NX + 2) * (NY + 2) * (int(self.size[2]) + 2)))
        return ["--kernel", ROOT / "systems" / "fdtd.c", "--init", "random", "--field", f"eps={field},f32"]

    def words(self, ranks, slow):
        backend = ["--backend", "fault:aio", "--fault", f"delay_us={self.delay}"] if slow and self.delay else ["--backend", "aio"]
        self.link = self.also.choice(self.links) if ranks > 1 and self.links != ["local"] else "local"
        many = ["--ranks", ranks] if ranks > 1 and self.link == "local" else []
        how = [*LAUNCHERS[self.link], ranks] if self.link != "local" else []
        return [*how, self.memext, "run", "-d", self.folder, *many, "--threads", 1, "--dram", "64MiB", "--quiet", "--keep", *backend]

    def start(self, words):
        words = [str(word) for word in words]
        self.log.append(" ".join(words))
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def alone(self):
        words = [self.memext, "run", *self.problem, *self.more[:2], "--backend", "dram", "--algorithm", "direct", "--engine", "iblock", "--threads", 1, "--quiet", "--json", "-"]
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
            if self.link == "local" or not victims or not all(gone(pid) for pid in victims):
                raise Wrong(f"the run did not end within {self.patience} s (--patience) after a rank was killed") from None
            # That of Open MPI 4.1 may wait for ever in PMIx_server_finalize, for a lock of its own.
            process.kill()
            self.counts["mpirun did not end when its ranks had"] += 1
            err = process.communicate()[1]
        end = time.monotonic() + self.patience
        while not all(gone(pid) for pid in victims):
            if time.monotonic() > end:
                raise Wrong("a rank outlived its command")
            time.sleep(0.01)
        return err

    def moment(self):
        """The moment of the kill as a share of a run's duration: early moments are more likely, except with mpirun, which starts first. In place, every other moment is near the end."""
        if self.in_place and self.dice.random() < 0.5:
            return 0.8 + 0.25 * self.dice.random()
        if self.asked and not self.stands:  # around its first commits
            return 0.3 + 0.7 * self.also.random()
        if self.links != ["local"]:
            return self.dice.random()
        return self.dice.random() ** 2

    def kill_once(self, words, ranks):
        """Starts the command and kills one of its ranks after a random time. False: it was done first."""
        link = self.link if ranks > 1 else "local"
        process = self.start(words)
        moment = time.monotonic() + self.moment() * self.duration
        pids = [process.pid] if ranks == 1 else []
        while time.monotonic() < moment and process.poll() is None:
            time.sleep(0.0005)
        while ranks > 1 and not pids and process.poll() is None:  # mpirun takes its time
            pids = ranks_of(process.pid)
        victim = self.dice.choice(pids) if pids else None
        if victim is not None and process.poll() is None:
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:  # done by now
                victim = None
            self.log.append(f"kill -9 {victim}, of {ranks} ranks, link {link}")
        err = self.finish(process, pids)
        if process.returncode == 0:
            return False
        hung = link != "local" and process.returncode == -signal.SIGKILL
        expected = {-signal.SIGKILL} if ranks == 1 or hung else KILLED[link]
        if link == "mpich" and process.returncode > 128 and "libucp" in err:  # UCX ends a rank whose peer has died in the middle of its memory
            self.counts["ranks ended by UCX"] += 1
        elif process.returncode not in expected:
            raise Wrong(f"the exit status is {process.returncode}, and must be one of {sorted(expected)}: {err.strip()}")
        for line in err.splitlines():
            if link == "local" and not line.startswith("memext run: "):
                raise Wrong(f"stderr has a line that does not begin with 'memext run: ': {line}")
        self.counts["kills"] += 1
        self.counts[f"kills, {link if ranks > 1 else 'one process'}"] += 1
        return True

    def no_state(self):
        """--resume must refuse what a kill leaves of a run in place, with a message."""
        process = self.start([self.memext, "run", "--resume", "-d", self.folder, "--ranks", 2, "--threads", 1, "--quiet"])
        err = self.finish(process, [])
        if process.returncode != 2 or not err.startswith("memext run: "):
            raise Wrong(f"there is no state, and --resume ends with status {process.returncode}, not with 2 and a message: {err.strip()}")
        self.counts["nothing to resume, said"] += 1

    def fresh(self, ranks):
        every = self.also.choice(EVERY) or (["--commit-every", 0] if ranks == 1 else [])
        if self.in_place:
            every = ["--in-place"]
        return [*self.words(ranks, True), *self.problem, *self.plan, *every, *self.there(), "--force"]

    def wishes(self, last=False):
        """Additional options of a resumed run."""
        if self.stands or not (last or self.also.random() < 0.5):
            return []
        self.asked = True
        self.counts["asked for more"] += 1
        return self.more

    def look(self):
        """After a kill: did a commit store what the run was additionally asked for? If not, the campaign forgets that it asked."""
        if self.asked and not self.stands:
            stores = self.stores()
            newest = self.newest(stores)
            of_it = [store for store in filter(None, stores.values()) if newest and (store["cut"], store.get("ranks", 1)) == newest[:2]]
            self.stands = any(store["problem"]["nt"] == self.steps for store in of_it)
            self.counts["more stands"] += self.stands
        self.asked = self.stands

    def there(self):
        """Options of an accelerator, for some of the runs."""
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
            raise Wrong(f"the checksum is {found}, and must be {self.wanted}")
        self.counts["right at the end"] += 1
        stores = self.stores()
        _, ranks, step = self.newest(stores) or (0, 0, -1)
        if step != self.steps or len(stores) != ranks:
            raise Wrong(f"at the end there are the stores {[str(path) for path in stores]}, at step {step} of {self.steps}; only those of the last {ranks} ranks may be left, at the last step")

    def run(self):
        self.wanted = self.alone()
        begun, ranks = False, self.dice.randint(1, 4)
        begin = time.monotonic()
        process = self.start(self.fresh(ranks))
        err = self.finish(process, [])
        if process.returncode != 0:
            raise Wrong(f"exit status {process.returncode}: {err.strip()}")
        self.duration = time.monotonic() - begin
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for _ in range(self.dice.randint(3, DEATHS)):
            state = self.newest(self.stores())
            if state is None and begun:
                raise Wrong("the stores of a run had a state, and have none any more")
            if state is None and self.in_place and any(self.folder.iterdir()):
                self.no_state()
            if state is None:
                words = self.fresh(ranks)
            else:
                former, ranks = state[1], self.dice.choice([state[1], *range(1, 5)])
                words = [*self.words(ranks, True), "--resume", *(self.also.choice(EVERY) if self.also.random() < 0.3 else []), *self.there(), *self.wishes()]
                self.counts["resumed"] += 1
                self.counts["resumed with another number of ranks"] += former != ranks
            if not self.kill_once([*words, "--json", self.report], ranks):
                self.counts["done before the kill"] += 1
                if self.asked or self.stands:
                    return self.check_end()
                continue  # its steps are done, and there are more to ask for
            self.look()
            after = self.newest(self.stores())
            begun |= after is not None
            if state is None:
                self.counts["killed before the first commit"] += after is None
                if self.in_place and after is not None and after[2] != self.steps:
                    raise Wrong(f"a run in place of {self.steps} steps holds {after}")
                continue
            if after is None or after[0] < state[0] or after[2] < state[2]:
                raise Wrong(f"{state} had been committed, and after a kill there is {after}")
            if ranks != state[1]:
                self.counts["killed while going over" if after[1] == state[1] else "killed after going over"] += 1
        if not begun:
            return self.to_its_end([*self.fresh(ranks), "-t", self.steps])
        self.to_its_end([*self.words(self.dice.randint(1, 4), False), "--resume", *self.wishes(last=True)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="number of kills (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of all random draws (default: 1)")
    parser.add_argument("--links", default="local", help="links to use, separated by commas: local, openmpi, mpich (default: local)")
    parser.add_argument("--in-place", action="store_true", help="test runs with --in-place")
    parser.add_argument("--place", type=Path, default=ROOT / "build", help="directory to work in (default: build)")
    parser.add_argument("--memext", type=Path, default=Path(os.environ.get("MEMEXT_BUILD", ROOT / "build" / "release")) / "memext")
    parser.add_argument("--patience", type=float, default=300, metavar="SECONDS", help="a run that takes longer counts as a hang (default: 300)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write counts and failures to FILE")
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
