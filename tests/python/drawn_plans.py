# SPDX-License-Identifier: BSD-3-Clause
"""Random ways to run a problem: backend, algorithm and plan, ranks, accelerator, and the rest; and which of them memext has to refuse, or may."""
import re
from dataclasses import dataclass, field

SKEWED = ("skewed", "skewed-y", "skewed-min", "direct-skewed", "direct-skewed-opt")
ON_BUFFERS = ("direct", "direct-skewed", "direct-skewed-opt")  # the mapped Buffers themselves
STORED = ("uring", "aio", "mmap")
COPIES = ("mirror", "odd", "mirror-node", "odd-node", "edge")


@dataclass
class Run:
    """One call of memext run, without the words of the problem. Numbers that are None are memext's to choose."""

    upto: int
    resume: bool = False
    at: int = None  # the step that the store holds
    asked: int = 0  # steps of the run that it goes on with
    backend: str = "uring"
    algorithm: str = None
    engine: str = None
    by: int = None
    bz: int = None
    bt: int = None
    ranks: int = 1
    accel: str = None
    in_place: bool = False
    integrity: bool = False
    verify: bool = False
    commits: float = None  # seconds
    check: int = 0
    fault: int = 0  # the request from which on the device is dead
    snapshot: int = 0
    more: list = field(default_factory=list)
    plan: list = field(default_factory=list)

    def words(self):
        words = ["-t", self.upto, *self.plan, *self.more]
        if self.fault:
            words += ["--backend", "fault:uring", "--fault", f"fail_after={self.fault}", "--no-fuse"]
        else:
            words += ["--backend", self.backend]
        for given, said in ((self.ranks > 1, ["--ranks", self.ranks]), (self.accel, ["--accel", self.accel]), (self.in_place, ["--in-place"]), (self.integrity, ["--integrity"]),
                            (self.verify, ["--verify"]), (self.commits is not None, ["--commit-every", self.commits]), (self.check, ["--check", self.check])):
            words += said if given else []
        return [str(w) for w in words]

    def drawn(self):
        yield f"backend {'fault:uring' if self.fault else self.backend}"
        yield f"algorithm {self.algorithm or 'chosen by the tuner'}"
        yield f"ranks {self.ranks}"
        if self.accel:
            yield f"accelerator {self.accel}"
        for name in ("in_place", "integrity", "verify", "resume", "fault", "snapshot"):
            if getattr(self, name):
                yield f"run with {name.replace('_', '-')}" if name != "resume" else "a run that goes on"
        for w in self.words():
            if w in ("--no-fuse", "--commit-every", "--tuner", "--column", "--threads"):
                yield f"run with {w}"
        for name in ("engine=iblock", "engine=tiled", "faces=side-file", "slab=", "ahead="):
            if any(name in str(w) for w in self.plan):
                yield f"plan with {name.rstrip('=')}"


class Ways:
    """Draws runs of a problem."""

    def __init__(self, problem, r):
        self.p, self.k, self.r = problem, problem.kernel, r
        self.ny, self.nz = (1 if self.k.flat else problem.n[1]), problem.n[-1]  # rows and planes, as plans count them

    def draw(self, upto, at=None, alone=False, asked=0):
        """A run that goes on from step `at`, or a new one. `alone`: nothing needs to go on with it."""
        r, resume = self.r, at is not None
        run = Run(upto, resume, at, asked)
        names = ["uring"] * 4 + ["aio"] * 3 + ["mmap"] * 3 + ([] if resume or not alone else ["dram"] * 2 + ["swap"])
        run.backend = r.choice(names)
        if r.random() < 0.15:
            run.accel = r.choice(["host", "host", "host", "opencl", "cuda"])
            if run.backend in ("mmap", "swap") and r.random() < 0.9:
                run.backend = "uring"
        if r.random() < 0.2 and run.backend != "swap":
            run.ranks = r.choice((2, 2, 3))
        run.in_place = r.random() < (0.15 if self.k.form != "jacobi" and not resume else 0.01)
        run.integrity = not resume and run.backend in STORED and r.random() < 0.12
        run.verify, run.check = r.random() < 0.15, 0 if resume else self.p.check
        run.commits = r.choice((0, 1e-6, 10)) if run.backend in STORED and r.random() < 0.25 else None
        self.draw_plan(run)
        if r.random() < 0.15:
            run.more.append("--no-fuse")
        if r.random() < 0.6:
            run.more += ["--threads", r.choice((1, 2, 3)) if run.ranks == 1 else 1]
        if r.random() < 0.06 and not run.accel:
            run.more += ["--column", r.randint(1, 24)]
        if not resume and alone and r.random() < 0.1:
            run.snapshot = r.randint(1, upto)
        return run

    def plain(self, upto, at):
        """One that every problem takes."""
        return Run(upto, at is not None, at, backend="mmap", algorithm="direct", engine="iblock", plan=["--algorithm", "direct", "--engine", "iblock"], check=0 if at is not None else self.p.check)

    def fault(self, upto):
        """One whose device dies, of a kind that may go on."""
        r = self.r
        run = Run(upto, check=self.p.check, commits=r.choice((0, 0, 1e-6)), fault=r.randint(3, 140), integrity=r.random() < 0.15)
        run.algorithm = r.choice(("stream", "stream", "redundant"))
        self.line(run)
        return run

    def algorithms(self, run):
        if run.accel:
            return ["stream"] * 4 + ["direct", "resident", None] + ["redundant"] * (self.r.random() < 0.1)
        names = ["stream"] * 5 + ["redundant"] * 3 + [None] * 2
        if run.ranks == 1 or self.r.random() < 0.05:
            names += ["skewed", "skewed-y", "skewed-min"] * (not run.resume or self.r.random() < 0.05) + ["resident"]
        if run.backend not in ("uring", "aio") and run.ranks == 1 or self.r.random() < 0.05:
            names += ["direct", "direct"] + ["direct-skewed", "direct-skewed-opt"] * (not run.resume)
        return names

    def draw_plan(self, run):
        r = self.r
        run.algorithm = r.choice(self.algorithms(run))
        kind = r.random()
        if run.algorithm is None:
            run.plan = ["--tuner", "naive"] if kind < 0.2 else []
        elif kind < 0.2:
            run.plan = ["--algorithm", run.algorithm]
        else:
            self.line(run)

    def line(self, run):
        """A line of --plan with numbers at random."""
        r, a = self.r, run.algorithm
        run.bt = self.k.levels * r.choice((1, 1, 2, 3, 4)) + (self.k.levels > 1 and r.random() < 0.03)
        line = [a, f"bt={run.bt}"]
        if a != "resident" and r.random() < 0.8:
            run.by = self.ny if a == "stream" and r.random() < 0.5 else r.randint(1, self.ny)
            line.append(f"by={run.by}")
        if a not in ("stream", "resident") and r.random() < 0.9:
            run.bz = r.randint(1, self.nz)
            line.append(f"bz={run.bz}")
        if not run.accel and r.random() < 0.5 or a == "resident" and not run.accel:
            run.engine = r.choice(("iblock", "tiled")) if a != "resident" else "iblock"
            line.append(f"engine={run.engine}")
        if r.random() < 0.5:
            line.append(f"slab={r.randint(1, 6)}")
        if a == "stream" and run.by not in (None, self.ny) and r.random() < 0.4:
            line.append("faces=side-file")
        if a == "stream" and r.random() < 0.2:
            line.append(f"ahead={r.randint(1, 3)}")
        run.plan = ["--plan", " ".join(line)]

    # ---- refusals

    def around(self, axes):
        """A periodic axis of these."""
        return any(self.p.periodic(axis) for axis in axes)

    def outer(self):
        return [1] if self.k.flat else [1, 2]

    def copies(self, axis, end, node=False):
        kinds = {pair[axis][end] for pair in self.p.kinds.values()}
        return any(k in (("mirror-node", "odd-node") if node else COPIES) for k in kinds)

    def reach(self, axis, end):
        """Cells that the frame at this end copies from, as far as they reach."""
        return self.k.h + self.copies(axis, end, node=True) if self.copies(axis, end) else 0

    def column(self, run):
        return "--column" in run.more

    def must_refuse(self, run):
        """What memext has to say no to, whatever else: a part of the sentence for each reason."""
        k, least, resident = self.k, self.nz // run.ranks, bool(run.accel) and run.algorithm == "direct"
        reasons = [
            (run.algorithm in ON_BUFFERS and not resident and run.backend in ("uring", "aio") and not run.accel, "works on mapped Buffers"),
            (run.bt is not None and run.bt % k.levels != 0, "bt is"),
            (run.in_place and k.form == "jacobi", "--in-place needs a kernel"),
            (run.in_place and run.algorithm == "redundant", "redundant"),
            (run.accel and run.algorithm not in (None, "stream", "direct", "resident"), "cannot compute on an accelerator"),
            (run.accel and run.backend in ("mmap", "swap"), f"backend {run.backend}"),
            (run.algorithm in SKEWED and self.around(self.outer()), "periodic"),
            (run.algorithm == "direct" and run.engine == "tiled" and not run.accel and self.around(self.outer()), "periodic"),
            (run.ranks > 1 and run.algorithm in SKEWED, "ranks"),
            (run.ranks > 1 and run.algorithm in ("direct", "resident"), "ranks"),
            (run.ranks > 1 and least < k.levels * k.h, "rank"),
            (run.integrity and run.algorithm in ON_BUFFERS and not run.accel, "--integrity"),
            (run.in_place and run.ranks == 1 and self.around(self.outer()[-1:]) and run.algorithm == "stream", "in-place"),
        ]
        if run.resume and self.p.probes and run.upto > run.asked:
            return ["has no room for", *(phrase for it, phrase in reasons if it)]
        return [phrase for it, phrase in reasons if it]

    def may_refuse(self, run, said):
        """Whether a sentence is a right one here, of those that hang on numbers which only the planner knows."""
        k, p, least = self.k, self.p, self.nz // run.ranks
        bt = run.bt or 1 << 30
        axes = {"x": 0, "y": 1, "z": 2}
        found = re.search(r"\b([xyz])=", said)
        axis = axes[found[1]] if found else None
        side = axis is not None and not self.around([axis]) and (self.copies(axis, 0) or self.copies(axis, 1))
        need = re.search(r"(?:= (\d+) \w+ and has (\d+))|(?:copies (\d+) cells of one Block.* has only (\d+))", said)
        short = need is not None and int(need[1] or need[3]) > int(need[2] or need[4])
        table = [
            (r"copies cells of the first Block or strip", side and short and run.algorithm in (None, "stream", *SKEWED)),
            (r"copies \d+ cells of one Block", side and short and run.algorithm in (None, "redundant")),
            (r"copies \d+ cells of the last Block", side and run.algorithm in (None, "stream", *SKEWED)),
            (r"=periodic: a (sweep of|step)", axis is not None and self.around([axis]) and min(bt, run.upto * k.levels) * k.h > p.n[axis]),
            (r"a sweep of \d+ levels needs \d+ (planes|rows) of a neighbour", run.ranks > 1 and min(bt, run.upto * k.levels) * k.h > least),
            (r"the smallest rank has|(lower|upper) end of z copies|copies \d+ (planes|rows), and rank", run.ranks > 1 and least < max(k.levels * k.h, k.h + 1)),
            (r"rewrites (the|its) Buffers in place", run.algorithm in (*SKEWED, *ON_BUFFERS) or run.in_place or (run.algorithm is None and run.backend in ("mmap", "swap"))),
            (r"in-place", run.in_place and (run.resume or run.verify or self.around(self.outer()) or run.algorithm in (None, "redundant"))),
            (r"--column", self.column(run) and (any(kind != "fixed" for pair in p.kinds.values() for kind in pair[0]) or p.check > 0)),
            (r"is not possible with .* which computes one end of the grid long before", self.around(self.outer()) and run.algorithm in (None, "direct", "resident", *SKEWED)),
            (r"computes a (sum|top|low) that is NaN", min(p.n) <= 3 and any(one.test for one in k.reductions)),  # no cell meets the condition
            (r"holds no state to resume", run.resume and run.at == 0),
            (r"direct transfers|each hash of this store covers", run.resume and run.backend in ("uring", "aio")),
            (r"would transfer parts of planes|rows without their padding", run.resume or run.integrity),
            (r"which several ranks cannot do with [yz]=periodic", run.resume and run.ranks > 1 and self.around(self.outer()[-1:])),
            (r"no swap space is active", run.backend == "swap"),  # the machine's, which may go at any moment
            (r"cannot run on several ranks", run.ranks > 1 and run.algorithm is not None),
        ]
        return next((pattern for pattern, it in table if it and re.search(pattern, said)), None)
