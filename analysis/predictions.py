"""Predicted against measured seconds of every run, and what the tuner's choice costs against the best of all plans that were run (its regret)."""
from dataclasses import dataclass

from analysis.effects import LEAST_PAIRS, LEAST_SECONDS, by_repeat, median_interval
from analysis.stats import Stat, median

TRANSFER = ("aio", "uring")
BUSY, IDLE = 0.1, 0.5  # share of the time waited, below and above which computation or transfers alone decide
PLAN_KEYS = ("algorithm", "engine", "by", "bz", "bt", "iy", "iz", "slab", "tile", "ct", "column", "faces")


@dataclass(frozen=True)
class Prediction:
    """One configuration: what the plan said, and the median of its runs."""

    plan: str
    id: str
    backend: str
    algorithm: str
    predicted_s: float
    measured: Stat
    wait_share: float = 0.0  # of the measured time

    @property
    def transfer(self):
        return self.backend in TRANSFER

    @property
    def counts(self):
        """Do its runs say how long it takes? By the rule of all findings: repeats enough, and each long enough."""
        return self.transfer and self.measured.n >= LEAST_PAIRS and self.measured.median >= LEAST_SECONDS

    @property
    def ratio(self):
        return self.predicted_s / self.measured.median

    @property
    def error(self):
        """|predicted - measured| / measured."""
        return abs(self.ratio - 1)

    @property
    def why(self):
        """What the prediction had wrong, as far as the time says: a run that hardly waited is as long as its computation, one that waited much as its transfers."""
        what = "update rate" if self.wait_share < BUSY else "bandwidth" if self.wait_share > IDLE else "update rate or bandwidth"
        return f"waited {self.wait_share:.0%} of the time: {what} taken too {'low' if self.ratio > 1 else 'high'}"


def predictions(results):
    """Of every configuration whose runs ended and were predicted."""
    found = []
    for plan in results.values():
        for group in plan.groups.values():
            report = group.done[0].report if group.done else {}
            if report.get("predicted_seconds") and report.get("seconds") and "backend" in report:
                found.append(Prediction(plan.name, group.id, report["backend"], report.get("plan", {}).get("algorithm", ""), median([r.report["predicted_seconds"] for r in group.done]), group.stat(lambda r: r.report["seconds"]),
                                        median([r.report.get("wait_share") or 0.0 for r in group.done])))  # fmt: skip
    return found


def median_error(errors):
    """(median, low, high): an interval of 95 % by order statistics."""
    return median_interval(errors)


def best_of(rows, least=min):
    """rows: [{repeat: value}]. {repeat: value} of the best; which is best in a repeat, the medians of the other repeats say, where there are any."""
    best = {}
    for k in sorted({k for row in rows for k in row}):
        there = [row for row in rows if k in row]

        def others(row):
            rest = [v for j, v in row.items() if j != k]
            return median(rest) if rest else row[k]

        best[k] = least(there, key=others)[k]
    return best


@dataclass(frozen=True)
class Regret:
    label: str
    plans: int
    ratios: dict  # {repeat: blk / best}
    groups: tuple


def _problem(group):
    """What has to be the same for two runs to be rivals."""
    run = group.done[0]
    p = run.report["problem"]
    return tuple(p[k] for k in ("nx", "ny", "nz", "nt", "stencil", "dtype")) + (run.report["backend"], run.limit, run.report.get("dram_budget_bytes"))


def _choice(group):
    p = group.done[0].report["plan"]
    return tuple(str(p.get(k)) for k in PLAN_KEYS)


def _free(run):
    """Did the tuner choose among all algorithms?"""
    return "--algorithm" not in run.command


def regrets(results):
    """Of every choice of Blk-Tune that has a rival: another plan that was run for the same problem, backend and DRAM; of the same algorithm and engine, where the tuner was bound to them."""
    for plan in results.values():
        groups = [g for g in plan.groups.values() if g.done and "stencil" in (g.done[0].report.get("problem") or {}) and g.done[0].report.get("backend") in TRANSFER]
        for g in groups:
            p = g.done[0].report["plan"]
            if p.get("tuner") != "blk":
                continue
            same = [o for o in groups if _problem(o) == _problem(g) and (_free(g.done[0]) or all(o.done[0].report["plan"][k] == p[k] for k in ("algorithm", "engine")))]
            rivals = {_choice(o): o for o in same if o is not g and _choice(o) != _choice(g)}
            if rivals:
                mine = by_repeat(g, lambda r: r.report["seconds"])
                best = best_of([mine, *(by_repeat(o, lambda r: r.report["seconds"]) for o in rivals.values())])
                yield Regret(f"{plan.name} {g.id}", len(rivals) + 1, {k: v / best[k] for k, v in mine.items()}, (g, *rivals.values()))
