# SPDX-License-Identifier: BSD-3-Clause
"""Predicted and measured seconds of every run, and the tuner's regret: the time of its choice / the time of the best plan that was run."""
import math
from dataclasses import dataclass

from analysis.effects import LEAST_PAIRS, LEAST_SECONDS, LEVEL, by_repeat, median_interval
from analysis.setups import throttle
from analysis.stats import Stat, median

TRANSFER = ("aio", "uring")
DISTURBED = 0.05  # if other work takes a larger share of the CPU time, the report says so with the error
BUSY, IDLE = 0.1, 0.5  # shares of time spent waiting: below BUSY computation alone decides, above IDLE transfers alone
PLAN_KEYS = ("algorithm", "engine", "by", "bz", "bt", "iy", "iz", "slab", "tile", "ct", "column", "faces")


@dataclass(frozen=True)
class Prediction:
    """One configuration: what its plan predicted, and its runs. There are two predictions. `first` uses the rates of the plan: measured once before all runs, or those that memext assumes where none were. `near` uses, for each run, rates that were
    measured right before it (experiments/runner/near.py); it is None unless every completed run has them."""

    plan: str
    id: str
    backend: str
    algorithm: str
    first: float  # median of predicted seconds / median of measured seconds
    near: object  # median over the runs of predicted / measured, or None
    measured: Stat
    wait_share: float = 0.0  # share of the measured time spent waiting
    others: float = 0.0  # share of the machine's CPU time that the hypervisor and other processes took, median of the runs
    near_age_s: object = None
    computing: object = None  # predicted seconds of computation / seconds that the threads computed, with the rates of `ratio`
    problem: tuple = ()  # grid, stencil, type, memory limit: the errors of configurations that share these are not independent
    model: object = None  # predicted / measured with the run's own update rate, so its error does not come from the speed of the cores. Shown, never judged

    @property
    def transfer(self):
        return self.backend in TRANSFER

    @property
    def counts(self):
        """Do its runs decide how long it takes? As for all findings, they must be enough and long enough."""
        return self.transfer and self.measured.n >= LEAST_PAIRS and self.measured.median >= LEAST_SECONDS

    @property
    def ratio(self):
        """predicted / measured, with the rates measured right before each run if there are any."""
        return self.near if self.near is not None else self.first

    @property
    def predicted_s(self):
        return self.ratio * self.measured.median

    @property
    def error(self):
        """|predicted - measured| / measured."""
        return abs(self.ratio - 1)

    @property
    def first_error(self):
        return abs(self.first - 1)

    @property
    def disturbed(self):
        return self.others > DISTURBED

    @property
    def why(self):
        """Which rate the prediction had wrong, as far as the times show. A run that hardly waited takes as long as its computation; a run that waited much takes as long as its transfers."""
        what = "update rate" if self.wait_share < BUSY else "bandwidth" if self.wait_share > IDLE else "update rate or bandwidth"
        beside = f"; other work took {self.others:.0%} of the CPU time" if self.disturbed else ""
        return f"waited {self.wait_share:.0%} of the time: {what} assumed too {'low' if self.ratio > 1 else 'high'}{beside}"


def _near(run):
    return (run.record.get("near") or {}).get("predicted_seconds")


def _others(run):
    cores = run.report.get("machine", {}).get("cores") or 0
    return (run.record.get("other_cpu_s", 0.0) + run.record.get("stolen_cpu_s", 0.0)) / (run.record["wall_s"] * cores) if cores and run.record["wall_s"] else 0.0


def _computing(run):
    """Predicted seconds of computation / seconds that the threads computed."""
    said = (run.record.get("near") or {}).get("predicted_time") or run.report.get("predicted_time")
    busy = run.report["time"]["update_s"]
    return said["compute_s"] / busy if said and busy else None


def _model(run):
    """predicted / measured, with the run's own update rate. The parts are combined as in runtime/tune/predict.c."""
    said, time = (run.record.get("near") or {}).get("predicted_time"), run.report["time"]
    if not said or not time["update_s"] or "io_s" not in said:
        return None
    moving, computing = said["io_s"] + said["stall_s"], time["update_s"] + said["copy_s"] + said["cores_s"]
    stream = (run.report.get("plan") or {}).get("algorithm") == "stream" and run.report.get("backend") in TRANSFER
    return ((math.cbrt(moving**3 + computing**3) if stream else max(moving, computing)) + said["edge_s"]) / run.report["seconds"]


def _middle(values):
    there = [v for v in values if v is not None]
    return median(there) if there else None


def _grid(run):
    p = run.report.get("problem") or {}
    return (*(p.get(k) for k in ("nx", "ny", "nz", "stencil", "dtype")), run.limit)


def _of_group(plan, group):
    done = group.done
    measured = group.stat(lambda r: r.report["seconds"])
    near = [_near(r) for r in done]
    probes = [r.record.get("near") or {} for r in done]
    return Prediction(plan.name, group.id, done[0].report["backend"], done[0].report.get("plan", {}).get("algorithm", ""), median([r.report["predicted_seconds"] for r in done]) / measured.median,
                      median([n / r.report["seconds"] for n, r in zip(near, done)]) if all(near) else None, measured, median([r.report.get("wait_share") or 0.0 for r in done]), median([_others(r) for r in done]),
                      _middle([p.get("rates_age_s") for p in probes]), _middle([_computing(r) for r in done]), _grid(done[0]), _middle([_model(r) for r in done]))  # fmt: skip


def predictions(results):
    """The Predictions of all configurations whose runs completed and were predicted."""
    found = []
    for plan in results.values():
        for group in plan.groups.values():
            report = group.done[0].report if group.done else {}
            if report.get("predicted_seconds") and report.get("seconds") and "backend" in report:
                found.append(_of_group(plan, group))
    return found


def _percent(found, of=lambda p: p.error):
    """The median over problems, as in every other place: two medians of the same errors would contradict each other."""
    return f"{median(errors_by_problem(found, of)):.0%}"


def with_which_rates(counted):
    """Sentences on configurations that count: the errors with rates measured right before each run and with those of the plans, and the CPU time of other work."""
    near = [p for p in counted if p.near is not None]
    text = []
    if near:
        age = _middle([p.near_age_s for p in near])
        text.append(f"For {len(near)} of these configurations the rates were measured again right before each run" + (f" ({age:.1f} s before it began)" if age is not None else "") + f". With these rates their median error is {_percent(near)}. "
                    f"With the rates that the runs were planned with (measured once, before all runs, or assumed), their median error is {_percent(near, lambda p: p.first_error)}.")  # fmt: skip
    own = [p for p in near if p.model is not None]
    if own:
        text.append(f"With each run's own update rate, instead of the rate measured before it, the median error would be {_percent(own, lambda p: abs(p.model - 1))}.")
    calm, rough = [p for p in counted if not p.disturbed], [p for p in counted if p.disturbed]
    if rough:
        text.append(f"During the runs of {len(rough)} of the {len(counted)} configurations, the hypervisor and other processes took more than {DISTURBED:.0%} of the CPU time. The median error of these is {_percent(rough)}"
                    + (f", that of the remaining ones {_percent(calm)}." if calm else "."))  # fmt: skip
    return text


def median_error(errors, level=LEVEL):
    """(median, low, high): the median and its interval by order statistics."""
    return median_interval(errors, level)


def errors_by_problem(found, of=lambda p: p.error):
    """One error for each problem, the median over its configurations: six variants of a run are not six independent observations."""
    errors = {}
    for p in found:
        errors.setdefault(p.problem, []).append(of(p))
    return [median(e) for e in errors.values()]


def best_of(rows, least=min):
    """{repeat: value} of the best of several rows [{repeat: value}]. In each repeat, the medians of the other repeats decide which row is best, if there are other repeats."""
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
    """What two plans must share to be rivals."""
    run = group.done[0]
    p = run.report["problem"]
    return tuple(p[k] for k in ("nx", "ny", "nz", "nt", "stencil", "dtype")) + (run.report["backend"], run.limit, throttle(run), run.report.get("dram_budget_bytes"))


def _choice(group):
    p = group.done[0].report["plan"]
    return tuple(str(p.get(k)) for k in PLAN_KEYS)


def _free(run):
    """Did the tuner choose among all algorithms?"""
    return "--algorithm" not in run.command


def regrets(results):
    """The Regret of every choice of Blk-Tune that has a rival: another plan that was run for the same problem, backend and DRAM. If the tuner was bound to an algorithm and engine, a rival must have them too."""
    for plan in results.values():
        groups = [g for g in plan.groups.values() if g.done and "stencil" in (g.done[0].report.get("problem") or {}) and g.done[0].report.get("backend") in TRANSFER]
        for g in groups:
            p = g.done[0].report["plan"]
            if p.get("tuner") != "blk":
                continue
            same = [o for o in groups if _problem(o) == _problem(g) and (_free(g.done[0]) or all(o.done[0].report["plan"][k] == p[k] for k in ("algorithm", "engine")))]
            rivals = {_choice(o): o for o in same if o is not g and _choice(o) != _choice(g)}
            if rivals:
                mine = by_repeat(g, lambda r: r.seconds)
                best = best_of([mine, *(by_repeat(o, lambda r: r.seconds) for o in rivals.values())])
                yield Regret(f"{plan.name} {g.id}", len(rivals) + 1, {k: v / best[k] for k, v in mine.items()}, (g, *rivals.values()))


def study(results):
    """The regrets of the plan `regret`, where several good plans are run for each problem. In other plans the rival is a choice that a paper made by hand, which says little."""
    return list(regrets({"regret": results["regret"]})) if "regret" in results else []
