# SPDX-License-Identifier: BSD-3-Clause
"""experiments/night.py: how often a plan is repeated is fixed by a pilot, nights add up; analysis/pack.py keeps what decides."""
import gzip
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from made_up import NOISE
from test_verdicts import KNOWN, fig05

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "experiments")]

import night  # noqa: E402
from runner import cli, host, plan  # noqa: E402
from runner.record import Store  # noqa: E402

from analysis import claim, pack, pilots, report, results, verdicts  # noqa: E402
from analysis.effects import MOST_PAIRS, Effect, pairs_needed  # noqa: E402

RECORDED = ROOT / "tests" / "data" / "recorded"


# ------------------------------------------------------------------ repeats


def test_pairs_that_a_scatter_asks_for():
    """So many that the interval fits into the band, and one less does not: counted by drawing. A quiet ratio needs five."""
    rng, width = np.random.default_rng(1), math.log(1.1)
    n = pairs_needed(0.2, width, 0.05)
    widths = {k: np.median([np.diff(np.log(Effect(tuple(np.exp(0.2 * rng.normal(size=k)))).interval()))[0] / 2 for _ in range(200)]) for k in (n // 2, n + 3)}
    assert widths[n + 3] < width < widths[n // 2] and 15 < n < 25
    assert pairs_needed(0.001, width) == 5 and pairs_needed(9.0, width) == 1000 and pairs_needed(0.2, width, 0.001) > 2 * n


def test_bands_of_numbers_have_a_width():
    near = claim.near(2.0)
    assert night.band_width(near) == night.band_width(claim.no_more_than(near)) == night.band_width(claim.no_less_than(near)) == pytest.approx(math.log(1.1))
    assert night.band_width(claim.near(0.5, 0.6)) == pytest.approx(math.log(0.66 / (0.5 / 1.1)) / 2)
    assert all(night.band_width(band) is None for band in (claim.SMALLER, claim.LARGER, claim.AT_MOST, claim.Band(0.0, 1.05)))


def noisy(scatter, rounds, seed=1):
    """fig05 with times of swap that scatter, in so many rounds."""
    rng = np.random.default_rng(seed)
    made = fig05(swap_noise=tuple(np.exp(scatter * rng.normal(size=rounds))))
    for g in made["fig05"].groups.values():
        first = g.runs[0]
        g.runs = [results.Run(json.loads(json.dumps({**first.record, "repeat": k})), first.folder) for k in range(rounds)]
        for k, r in enumerate(g.runs):
            factor = math.exp(scatter * rng.normal()) if r.params["method"] == "swap" else NOISE[k % 6]
            r.report["seconds"] *= factor
    return made


def test_a_pilot_asks_for_what_scatters():
    few, many = (max(n for _, n in night.wishes("fig05", noisy(scatter, 5), KNOWN).values()) for scatter in (0.001, 0.2))
    assert few == 5 and many > 15
    assert all(name.split(":")[0] not in ("order", "temporal") for name in night.wishes("fig05", noisy(0.2, 5), KNOWN)), "orders have no width"


# ------------------------------------------------------------------ the night


class Runner:
    """In the place of run.py: every run of a plan takes `took` seconds, rounds end when the minutes do. fail: calls that end with a status."""

    def __init__(self, program, took=3.0, scatter=0.01, fail=()):
        self.program, self.took, self.scatter, self.fail, self.calls = program, took, scatter, list(fail), []
        self.rng, self.clock = np.random.default_rng(3), 1e9

    def __call__(self, name, o, repeats, minutes):
        self.calls.append((name, repeats, round(minutes, 1)))
        if self.fail and (status := self.fail.pop(0)):
            return status
        a_plan = plan.load(plan.PLANS / f"{name}.toml", "night")
        store, session = Store(o.results / name), f"s{len(self.calls)}"
        done = store.finished()
        store.append({"kind": "session", "session": session, "plan": name, "title": a_plan.title, "scale": "night", "runs": [r.id for r in a_plan.runs], "commit": "c", "program": self.program,
                      "started_unix_s": self.clock, "argv": [], "machine": {"node": "n", "cores": 2}})  # fmt: skip
        end = self.clock + 60 * minutes
        made, cut = fig05()["fig05"].one(method="normal").runs[0].record, False
        for k in range(max(repeats or r.repeats for r in a_plan.runs)):
            cut = cut or self.clock + self.took * len(a_plan.runs) > end
            if cut:
                break
            for r in a_plan.runs:
                if (r.key(self.program), k) not in done:
                    seconds = self.took * math.exp(self.scatter * self.rng.normal())
                    store.append({**made, "session": session, "plan": name, "scale": "night", "id": r.id, "repeat": k, "params": r.params, "key": r.key(self.program), "program": self.program, "knobs": {},
                                  "started_unix_s": self.clock, "wall_s": self.took, "report": {**made["report"], "seconds": seconds, "backend": r.params.get("method", "aio").split("-")[0]}})  # fmt: skip
                    self.clock += self.took
        return cli.OUT_OF_TIME if cut else 0


@pytest.fixture
def folders(tmp_path, monkeypatch):
    (tmp_path / "memext").write_text("a program")
    words = ["--results", str(tmp_path / "results"), "--packed", str(tmp_path / "packed"), "--memext", str(tmp_path / "memext")]

    def start(runner, *more):
        monkeypatch.setattr(night, "run", runner)
        return night.main([*more, *words])

    return tmp_path, host.program_id(tmp_path / "memext"), start


def rounds(folder, name):
    return {r["repeat"] for r in Store(folder / "results" / name).records() if r["kind"] == "run"}


def test_a_plan_of_numbers_has_a_pilot(folders):
    """Five rounds, then as many as they ask for, fixed in a file; then it is packed, and the next start takes up the next plan."""
    folder, program, start = folders
    runner = Runner(program, scatter=0.05)
    assert start(runner, "fig05", "table2") == 0
    fixed = json.loads((folder / "results" / "fig05" / "repeats.json").read_text())
    assert runner.calls[0] == ("fig05", 5, 50.0) and runner.calls[1][:2] == ("fig05", fixed["repeats"]) and runner.calls[2][:2] == ("table2", None)
    asked = [c["pairs"] for c in fixed["comparisons"].values()]
    assert fixed["repeats"] == max([13, *(n for n in asked if n <= fixed["room"])]) and rounds(folder, "fig05") == set(range(fixed["repeats"]))
    assert results.read_plan(folder / "packed" / "fig05.jsonl.gz").sessions[-1]["repeats"] == fixed, "and what fixed them is packed"
    assert {p.name for p in (folder / "packed").iterdir()} == {"fig05.jsonl.gz", "table2.jsonl.gz"} and rounds(folder, "table2") == {0}
    again = Runner(program)
    again.fail = [7]
    assert start(again) == 7 and again.calls[0][0] == "divisions", "what is packed is not run again"


def test_minutes_bound_the_rounds(folders):
    """A noisy plan gets what fits, and is packed: what its rounds leave open is open."""
    folder, program, start = folders
    runner = Runner(program, took=20.0, scatter=0.5)
    assert start(runner, "fig05-large") == 0
    fixed = json.loads((folder / "results" / "fig05-large" / "repeats.json").read_text())
    a_round = 20 * len(plan.load(plan.PLANS / "fig05-large.toml", "night").runs)
    assert fixed["room"] == 3000 // a_round and fixed["out_of_reach"] and len(rounds(folder, "fig05-large")) == fixed["repeats"] == min(13, fixed["room"])
    assert runner.clock - 1e9 <= 3000


def test_a_plan_that_was_cut_is_not_packed(folders, capsys):
    """Nine rounds of 160 s do not fit into 10 minutes and a quarter of that: the next plan is taken up, the status says so, and more minutes end it."""
    folder, program, start = folders
    took = 160 / len(plan.load(plan.PLANS / "enough.toml", "night").runs)
    assert start(Runner(program, took=took), "enough", "table2", "--minutes", "10") == cli.OUT_OF_TIME
    said = capsys.readouterr().err
    assert "enough did not complete within --minutes 10" in said and "not complete: enough;" in said
    assert [p.name for p in (folder / "packed").iterdir()] == ["table2.jsonl.gz"] and 0 < len(rounds(folder, "enough")) < 9
    assert start(Runner(program, took=took), "enough", "--minutes", "30") == 0 and rounds(folder, "enough") == set(range(9))
    assert (folder / "packed" / "enough.jsonl.gz").exists()


def test_an_interrupted_night_goes_on(folders):
    """With the number of rounds that was fixed, and within the same minutes."""
    folder, program, start = folders
    runner = Runner(program, fail=[0, 5])
    assert start(runner, "fig05") == 5 and not (folder / "packed").exists()
    fixed = json.loads((folder / "results" / "fig05" / "repeats.json").read_text())["repeats"]
    runner.calls.clear()
    assert start(runner, "fig05") == 0
    assert [c[1] for c in runner.calls] == [5, fixed] and runner.calls[1][2] < 50 * night.TO_END and (folder / "packed" / "fig05.jsonl.gz").exists()


def test_every_plan_of_the_night_is_one(capsys):
    speak = {path.stem for path in plan.PLANS.glob("*.toml") if plan.has(path, "night")}
    assert set(night.PLANS) == speak - {"kernel"}, "the page about the kernel has a script of its own"
    assert night.main(["--list"]) == 0 and "left:" in capsys.readouterr().out
    assert night.main(["fig99"]) == 2 and "fig99" in capsys.readouterr().err


def test_runs_that_are_too_short_end_a_plan(folders, capsys):
    """Runs of 1.5 s decide nothing, however often they are repeated: no more than the pilot is run, nothing is packed, and the next plan has its turn."""
    folder, program, start = folders
    runner = Runner(program, took=1.5)
    assert start(runner, "fig05", "table2") == 0 and [c[:2] for c in runner.calls] == [("fig05", 5), ("table2", None)]
    assert "fig05 stops after the pilot and is not packed" in capsys.readouterr().err and {p.name for p in (folder / "packed").iterdir()} == {"table2.jsonl.gz"}


# ------------------------------------------------------------------ packing


def test_packed_results_decide_the_same(tmp_path):
    """Every finding with the same words, from files that are the same to the byte each time; figures but those of timelines are drawn."""
    folders_ = [path.parent for path in RECORDED.glob("*/raw.jsonl")]
    for folder in folders_:
        first = pack.pack(folder, tmp_path).read_bytes()
        assert pack.pack(folder, tmp_path).read_bytes() == first
    raw, packed = results.read_all(RECORDED), results.read_all(tmp_path)
    assert list(packed) == list(raw)
    for a, b in zip(verdicts.all_verdicts(raw, KNOWN), verdicts.all_verdicts(packed, KNOWN)):
        assert (a.name, a.state, a.effect, a.numbers) == (b.name, b.state, b.effect, b.numbers)
    assert report.prediction_summary(packed) == report.prediction_summary(raw)
    assert report.main([str(tmp_path), "-o", str(tmp_path / "out" / "report.html"), "--markdown", str(tmp_path / "out.md")]) == 0


def test_packed_results_name_no_path_of_the_project(tmp_path):
    folder = tmp_path / "fig05"
    folder.mkdir()
    raw = (RECORDED / "fig05" / "raw.jsonl").read_text().replace('"build/release/', '"/home/somebody/memext/build/release/').replace('"experiments/', '"/home/somebody/memext/experiments/').replace('"results/', '"/home/somebody/memext/results/')
    (folder / "raw.jsonl").write_text(raw)
    text = gzip.decompress(pack.pack(folder, tmp_path).read_bytes()).decode()
    assert "/home/somebody/memext/build/release/memext" in raw and "somebody" not in text and '"build/release/memext"' in text


def test_the_page_is_that_of_the_committed_results():
    """docs/results.md says what analysis/report.py makes of data/results."""
    committed = results.read_all(ROOT / "data" / "results")
    assert committed, "no results are committed"
    history = report.history_of(ROOT / "data" / "results")
    page = (ROOT / "docs" / "results.md").read_text()
    assert page == report.markdown(committed, verdicts.all_verdicts(committed, KNOWN), history=history) and history and all(t in page for t in history)


def test_the_measurement_with_more_rounds_decides():
    """The page says so of plans that were measured several times; the names of the packed files put it into effect. With equally many rounds the earlier one decides."""
    committed = results.read_all(ROOT / "data" / "results")

    def rank(name):
        return pilots.made(committed[name]), -min(r.started_unix_s for g in committed[name].groups.values() for r in g.done)

    measured = {}
    for name in committed:
        plan, again = results.plan_of(name)
        measured.setdefault(plan, {})[again] = rank(name)
    orders = [[found[again] for again in ("", *results.AGAIN) if again in found] for found in measured.values()]
    assert max(map(len, orders)) > 1 and all(order == sorted(order, reverse=True) for order in orders)
    assert all(set(found) == set(("", *results.AGAIN)[: len(found)]) for found in measured.values()), "a measurement is missing between two others"


def test_the_page_says_how_many_rounds_the_pilots_asked_for():
    """Numbers that the time of a plan did not allow are told from those that the plan did not need. Plans without a pilot are not in the table."""
    without, asked, plenty, counted = (fig05()["fig05"] for _ in range(4))
    fixed = {"rounds_of_the_pilot": 5, "room": 9, "repeats": 6, "out_of_reach": [], "comparisons": {"a: b": {"scatter": 0.1, "pairs": 6}, "c: d": {"scatter": 0.2, "pairs": 35}}}
    asked.sessions = [{"repeats": fixed}, {}]  # a session that came later packed nothing
    plenty.sessions = [{"repeats": {**fixed, "comparisons": {"a: b": {"scatter": 9.0, "pairs": MOST_PAIRS}}}}]
    counted.sessions = [{"repeats": {**fixed, "comparisons": {}}}]
    next(iter(asked.groups.values())).runs.pop()  # only whole rounds count
    rows = pilots.rows({"a": without, "b": asked, "c": plenty, "d": counted})
    assert [row[1:] for row in rows] == [[5, 2, 35, 9, 5, 2], [5, 1, f"{MOST_PAIRS} or more", 9, 6, 1], [5, 0, "", 9, 6, 0]]
    page = (ROOT / "docs" / "results.md").read_text()
    committed = pilots.rows(results.read_all(ROOT / "data" / "results"))
    assert committed and all("| " + " | ".join(str(c) for c in row) + " |" in page for row in committed)


def test_a_quick_run_says_that_it_was_one():
    quick = results.read_all(RECORDED)
    text = report.markdown(quick, verdicts.all_verdicts(quick, KNOWN))
    assert "### Undecided in a quick run" in text and report.HISTORY not in text  # which belongs to the results that are committed
    for p in quick.values():
        p.scale = "night"
    assert "### Undecided\n" in report.markdown(quick, verdicts.all_verdicts(quick, KNOWN))
