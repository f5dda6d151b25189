# SPDX-License-Identifier: BSD-3-Clause
"""What the report adds to its figures: findings, predictions and regret over all plans, the page of text, mixed commits, figures of the plans that are not recorded; the picture of speed.py."""
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import test_verdicts as made
from made_up import fail, group, plan

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from analysis import claim, figures, overview, origin, predictions, published, report, results, setups, speed, style, verdicts  # noqa: E402

RECORDED = ROOT / "tests" / "data" / "recorded"
KNOWN = published.read_all()


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    style.plt.close("all")


def lines_of(figure, gid):
    return [line for ax in figure.axes for line in ax.get_lines() if line.get_gid() == gid]


# ------------------------------------------------------------------ over all plans


def test_swap_is_read_ahead_by_the_mapping_on_no_rotational_device():
    """nr_rotate_swap: while such a swap is on, the kernel reads ahead by the place in the file, whatever its setting says."""
    on = {"swap_read_ahead": "true", "storage": {"rotational": False}}
    assert origin.swap_read_ahead(on) == "by address in the mapping" and origin.swap_read_ahead({**on, "swap_read_ahead": "false"}) == "by position in the file"
    assert origin.swap_read_ahead({**on, "storage": {"rotational": True}}) == "by position in the file, because the device counts as rotational"


def test_the_l3_is_told():
    """Blocks that fit into it are no Blocks in DRAM. Runs of wavefront do not tell it, and a plan may be one for another machine."""
    run = lambda **report: results.Run({"status": "done", "report": {"seconds": 3.0, **report}}, None)  # noqa: E731
    assert origin.third_level([run(machine={"l3_bytes": 480 << 20}), run(), run(machine={"l3_bytes": 0}), run(machine={"l3_bytes": 20 << 20}, seconds=0)]) == "480 MiB" and origin.third_level([run()]) == ""


def test_what_throttles_buffered_writes_is_told():
    """Of machines whose record has it."""
    assert origin.throttled({"device": "vda"}) == ""
    assert origin.throttled({"wbt_lat_usec": "75000", "write_cache": "write back", "mount_options": "rw,discard"}) == ", write-back throttling at 75 ms, write cache: write back, mounted with discard"
    assert origin.throttled({"wbt_lat_usec": "0", "mount_options": "rw"}) == ", write-back throttling off, write cache: unknown, mounted without discard"


def test_the_storage_has_rates():
    """Those measured right before runs; a device that is slowed on purpose says nothing of the storage."""
    run = lambda rate, *words: results.Run({"status": "done", "command": list(words), "near": {"rates": {"read_bytes_per_s": rate}} if rate else None}, None)  # noqa: E731
    assert origin.storage_rates([run(2e9, "memext"), run(3e9, "memext"), run(2.5e9, "memext"), run(0.4e9, "x/limit-bandwidth", "370MiB"), run(0, "memext")]) == "reads 2.50 GB/s (2.00 to 3.00), measured right before 3 runs"
    assert origin.storage_rates([run(0, "memext")]) == ""


def test_each_configuration_is_told():
    """The page has the numbers behind its ratios: what was run, and the median with its extremes."""
    group = results.Group("aio-temporal", {})
    told = {"problem": {"nx": 510, "ny": 254, "nz": 126}, "plan": {"algorithm": "redundant", "by": 128, "bz": 64, "bt": 32}, "steps_done": 64}
    group.runs = [results.Run({"status": "done", "limit": "512MiB", "report": {**told, "seconds": s}}, None) for s in (2.5, 9.25, 3.0)]
    assert setups.configuration(group) == ["aio-temporal", "510 x 254 x 126", "512 MiB", "redundant", "128 x 64", "32", "64", "3", "3 (2.5 to 9.25)"]
    page = report.markdown(made.fig05(), [])
    assert "<details><summary>fig05</summary>" in page and "| " + " | ".join(setups.COLUMNS) + " |" in page


def test_findings_draw_effect_interval_and_state():
    """A confirmed and an open row: one dot each; the interval only where there are enough repeats; what has no effect is left out."""
    few = made.fig05()
    decided = [v for v in verdicts.all_verdicts({**made.fig19(), **made.cut(few, 2)}, KNOWN) if v.name in ("aio5y-time", "cost-without", "wave-tile")]
    (drawn,) = overview.findings(decided)
    figure = drawn.figure
    assert [t.get_gid() for t in figure.axes[0].get_yticklabels()] == ["finding cost-without", "finding aio5y-time"]
    assert [t.get_text().replace("\n", " ").split(" (n")[0] for t in figure.axes[0].get_yticklabels()] == [v.finding for v in decided if v.name != "wave-tile"]
    (dot,), (interval,) = lines_of(figure, "effect aio5y-time"), lines_of(figure, "interval aio5y-time")
    part = next(v for v in decided if v.name == "aio5y-time").parts[0]
    assert dot.get_xdata()[0] == pytest.approx(part.effect.value) and tuple(interval.get_xdata()) == pytest.approx(part.effect.interval())
    assert dot.get_color() == style.GREEN and lines_of(figure, "effect cost-without")[0].get_markerfacecolor() == "white" and not lines_of(figure, "interval cost-without")
    assert overview.findings([v for v in decided if v.name == "wave-tile"]) == []


def test_findings_have_pages_on_one_axis():
    """More rows than a page holds: several pages, each row once, all with the same ends. Of single runs alone nothing is drawn."""
    results_ = {}
    for case in made.CASES.values():
        results_.update({k: p for k, p in (case[0] if isinstance(case, tuple) else {}).items() if k not in results_})
    pages = overview.findings(verdicts.all_verdicts(results_, KNOWN))
    names = [t.get_gid() for page_ in pages for t in page_.figure.axes[0].get_yticklabels()]
    assert len(pages) > 1 and len(names) == len(set(names)) and len({page_.figure.axes[0].get_xlim() for page_ in pages}) == 1 and [p.name for p in pages[:2]] == ["effects", "effects-2"]
    once = [v for v in verdicts.all_verdicts(made.cut(made.fig05(), 1), KNOWN) if any(p.effect is not None for p in v.parts)]
    assert once and overview.findings(once) == []


def test_predictions_are_those_of_the_reports():
    """4 s measured, 5 s predicted: an error of a quarter, for aio; mmap counts apart."""
    found = plan("p", group({"run": 1}, 4.0, noise=(1.0,), predicted_seconds=5.0), group({"run": 2}, 4.0, noise=(1.0,), backend="mmap", predicted_seconds=1.0), *fail(plan("x", group({"run": 3})))["x"].groups.values())
    drawn = overview.predicted(found)
    (aio,), (mmap,) = lines_of(drawn.figure, "aio"), lines_of(drawn.figure, "mmap")
    assert (list(aio.get_xdata()), list(aio.get_ydata())) == ([4.0], [5.0]) and list(mmap.get_ydata()) == [1.0]
    assert [row[:4] for row in drawn.rows] == [["aio", "p", "1", "25%"], ["mmap", "p", "1", "75%"]]
    assert [p.transfer for p in predictions.predictions(found)] == [True, False] and overview.predicted({}) is None
    assert "The largest errors on aio and uring: p 1, predicted 1.25 times the measured 4.00 s (waited 0% of the time: update rate assumed too low)." in drawn.notes
    late = plan("p", group({"run": 1}, 4.0, predicted_seconds=1.0, wait_share=0.8))
    assert predictions.predictions(late)[0].why == "waited 80% of the time: bandwidth assumed too high"


def with_near(results, ratio, first_age_s=600.0):
    """Each run was predicted again, with rates of its minute, as so much of what it took."""
    for p in results.values():
        for g in p.groups.values():
            for r in g.runs:
                r.record["near"] = {"predicted_seconds": ratio * r.report["seconds"], "predicted_time": {"compute_s": r.report["seconds"], "io_s": 0.1, "stall_s": 0.0, "copy_s": 0.0, "cores_s": 0.0, "edge_s": 0.7 * r.report["seconds"]}, "rates_age_s": 0.5, "first_rates_age_s": first_age_s}
    return results


def test_rates_of_the_minute_judge_a_prediction():
    """Predicted 1.5 times too long with the rates of the beginning, 1.1 times with those of the minute: both are shown, the latter counts. A run without them takes the configuration back to the former."""
    found = with_near(made.predicted(1.5), 1.1)
    near = predictions.predictions(found)
    assert all(p.ratio == p.near == pytest.approx(1.1) and p.first == pytest.approx(1.5, rel=0.02) and p.computing == pytest.approx(2.0) and p.model == pytest.approx(1.2) for p in near)
    said = predictions.with_which_rates(near)
    assert said == ["For 28 of these configurations the rates were measured again right before each run (0.5 s before it began). With these rates their median error is 10%. With the rates that the runs were planned with (measured once, before all runs, or assumed), their median error is 50%.",
                    "With each run's own update rate, instead of the rate measured before it, the median error would be 20%."]
    assert said[0] in report.prediction_summary(found) and said[0] in overview.predicted(found).notes
    assert overview.predicted(found).rows[0][3].startswith("10%") and overview.predicted(found).rows[0][-1] == "50%"
    del next(iter(found["any"].groups.values())).runs[2].record["near"]
    assert [p.near is None for p in predictions.predictions(found)] == [True] + 27 * [False]


def test_one_median_in_all_sentences():
    """Three configurations of one problem were predicted half too long, those of two others right. The median is over problems everywhere, as in the finding."""
    found = with_near(plan("p", *(group({"run": k}, 4.0, predicted_seconds=s, problem={"nx": nx}) for k, (s, nx) in enumerate([(6.0, 1), (6.0, 1), (6.0, 1), (4.0, 2), (4.0, 3)]))), 1.0)
    near = predictions.predictions(found)
    assert sorted(predictions.errors_by_problem(near, lambda p: p.first_error)) == [pytest.approx(0, abs=0.01), pytest.approx(0, abs=0.01), pytest.approx(0.5, abs=0.01)]
    assert predictions.with_which_rates(near)[0].endswith("their median error is 0%.")


def test_what_others_took_is_said_beside_an_error():
    """A quarter of two cores for as long as the run took."""
    found = plan("p", group({"run": 1}, 4.0, predicted_seconds=2.0, machine={"cores": 2}), group({"run": 2}, 4.0, predicted_seconds=4.0, machine={"cores": 2}))
    for r in next(iter(found["p"].groups.values())).runs:
        r.record.update(other_cpu_s=0.2 * r.record["wall_s"], stolen_cpu_s=0.3 * r.record["wall_s"])
    rough, calm = predictions.predictions(found)
    assert rough.disturbed and rough.why.endswith("; other work took 25% of the CPU time") and not calm.disturbed
    assert predictions.with_which_rates([rough, calm]) == ["During the runs of 1 of the 2 configurations, the hypervisor and other processes took more than 5% of the CPU time. The median error of these is 50%, that of the remaining ones 0%."]


def test_regret_is_drawn_for_each_choice():
    drawn = overview.regret(made.rivals(0.5))
    assert drawn.rows == [["regret blk", "2", "6", drawn.rows[0][3]]] and drawn.rows[0][3].startswith("2.000")
    assert overview.regret({}) is None


# ------------------------------------------------------------------ mixed commits


def mixed_plan(**second):
    found = plan("p", group({"run": 1}))["p"]
    found.runs[1].record.update(second)
    return found


def test_mixed_commits_are_flagged():
    """One commit: nothing. Two: a sentence with both, and whether the program was the same; in the figure too."""
    assert origin.mixed(mixed_plan()) == ""
    assert origin.mixed(mixed_plan(commit="d")) == "Mixed: these runs come from 2 commits (c, d), but from the same program."
    said = origin.mixed(mixed_plan(commit="d", program="h"))
    assert "2 programs" in said


def test_the_flag_stands_in_the_picture(tmp_path):
    drawn = figures.enough(made.enough()["enough"], None)
    figure = drawn.figure
    report.picture(drawn, tmp_path, "Mixed: these runs come from 2 commits (c, d), but from the same program.")
    assert [t.get_text() for t in figure.texts if t.get_gid() == "mixed"] == ["Mixed: these runs come from 2 commits"]


# ------------------------------------------------------------------ the page of text


of_the_page = pytest.mark.xdist_group("page")  # one process makes it


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    for name in ("fig05", "fig19", "table2", "uring"):
        shutil.copytree(RECORDED / name, folder / "r" / name)
    decided = report.build(folder / "r", folder / "report.html", folder / "docs" / "results.md")
    return decided, (folder / "docs" / "results.md").read_text(), (folder / "report.html").read_text()


@of_the_page
def test_the_page_has_every_finding_with_its_rule(page):
    decided, text, html = page
    for v in decided:
        assert v.finding.replace("|", "\\|") in text and report.escape(v.finding) in html and report.escape(v.rule) in html
    for state in {v.state for v in decided}:
        assert f"### {state.capitalize()}" in text and report.how_many(sum(v.state == state for v in decided), state) in text
    order = [text.index(f"### {s.capitalize()}") for s in claim.STATES if f"### {s.capitalize()}" in text]
    assert order == sorted(order) and all(rule in text for rule in verdicts.RULES) and all(f": {said}" in text for said in verdicts.MEANINGS.values())


@of_the_page
def test_the_page_has_commit_and_machine(page):
    _, text, _ = page
    found = results.read_all(RECORDED)
    session = found["fig05"].sessions[-1]
    assert session["machine"]["cpu"] in text and all(r.commit in text for r in found["fig05"].runs)
    assert "have runs of several commits" in text and "Predicted seconds differ from measured seconds by" in text and "## Failed runs" in text


@of_the_page
def test_its_tables_are_tables(page):
    """Every row of a table has the cells of its head, whatever stands in the numbers."""
    assert report.cells(["a|b", "c\nd"]) == "| a\\|b | c d |"
    _, text, _ = page
    width = None
    for line in text.splitlines():
        if not line.startswith("|"):
            width = None
            continue
        count = line.replace("\\|", "").count("|")
        assert width is None or count == width, line
        width = count


def test_regrets_are_drawn():
    drawn = overview.regret(made.rivals())
    assert drawn.name == "regret" and drawn.rows and style.image(drawn.figure, "png")[:4] == b"\x89PNG" and overview.regret(made.fig19()) is None


@of_the_page
def test_the_report_shows_findings_and_predictions(page):
    _, _, html = page
    assert all(f'id="{name}"' in html for name in ("findings", "effects", "predicted")) and html.count('id="findings"') == 1


def test_the_page_is_written_where_the_command_says(tmp_path):
    shutil.copytree(RECORDED / "table2", tmp_path / "r" / "table2")
    done = subprocess.run(["/usr/bin/python3", str(ROOT / "analysis" / "report.py"), str(tmp_path / "r"), "--markdown", str(tmp_path / "new" / "results.md")], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "### Confirmed" in (tmp_path / "new" / "results.md").read_text()


# ------------------------------------------------------------------ figures of plans that are not recorded

MADE = {"enough": made.enough, "largest": made.largest, "layout": made.layout, "devices": made.devices, "hhrt": made.hhrt, "ktable": made.ktable, "fig7a": made.fig7a, "fig7b": made.fig7b, "fig4w": made.fig4w, "divisions": made.divisions,
        "fig05-large": lambda: made.large(made.fig05()), "fig07-large": lambda: made.large(made.fig07())}  # fmt: skip


@pytest.mark.parametrize("draw, name, values", figures.MORE, ids=[m[1] for m in figures.MORE])
def test_the_other_figures_are_drawn(draw, name, values):
    """With every run there, and with every run failed."""
    for results_ in (MADE[name](), fail(MADE[name]())):
        drawn = draw(results_[name], KNOWN.get(values))
        assert drawn.rows and all(len(row) == len(drawn.header) for row in drawn.rows)
        if drawn.figure:
            assert style.image(drawn.figure, "png")[:4] == b"\x89PNG"
    assert any("no disk" in str(c) or c == "" for row in drawn.rows for c in row)


@pytest.mark.parametrize("draw, name, values", figures.MORE, ids=[m[1] for m in figures.MORE])
def test_they_are_read_in_a_column(draw, name, values):
    """As wide as one column of a paper or two, no letters under 6.5 points, n under the axes; of single runs nothing is drawn."""
    drawn = draw(MADE[name]()[name], KNOWN.get(values))
    if drawn.figure:
        feet = [t.get_text() for t in drawn.figure.texts if t.get_gid() == "foot"]
        assert drawn.figure.get_figwidth() in (style.ONE, style.TWO) and feet and feet[0].startswith("n = 6 rounds")
        assert all(t.get_fontsize() >= style.SMALL for t in drawn.figure.findobj(style.plt.Text) if t.get_text())
        alone = draw(made.cut(MADE[name](), 1)[name], KNOWN.get(values))
        assert alone.figure is None and any("with one run" in note and "not drawn" in note for note in alone.notes)


@pytest.mark.parametrize("name, expected", [("hhrt", {"published": [2.68 / 149, 79.3 / 149]}), ("fig7a", {"best published, wavefront": [10, 0.8]}), ("fig7b", {"waves published, wavefront": [0.8]}),
                                            ("ktable", {"published 96": [v / 149 for v in (2.68, 20.7, 33.4, 47.7, 53.4, 79.3)]})])  # fmt: skip
def test_they_have_the_published_values(name, expected):
    draw, _, values = next(m for m in figures.MORE if m[1] == name)
    figure = draw(MADE[name]()[name], KNOWN[values]).figure
    found = {gid: [v for line in lines_of(figure, gid) for v in line.get_ydata()] for gid in expected}
    assert {gid: sorted(row) for gid, row in found.items()} == {gid: pytest.approx(sorted(row)) for gid, row in expected.items()}


def test_wavefront_reports_need_seconds_and_plan_alone():
    record = {**made.fig7a()["fig7a"].runs[0].record, "command": ["memext", "wavefront"]}
    record["report"] = {"seconds": 1.0, "plan": {"layout": "row"}}
    results.check_record("x", record)
    del record["report"]["plan"]
    with pytest.raises(results.SchemaError, match="plan"):
        results.check_record("x", record)


# ------------------------------------------------------------------ the picture of speed.py


def speed_record(*failed, **change):
    rows = [{"name": "normal (dram, iblock)", "group": "memory", "gups": 1.2, "least": 1.1, "most": 1.3}, {"name": "stream 8x", "group": "stream", "gups": 1.9, "least": 1.8, "most": 2.0, "predicted": True, **change}]
    return {"size": [510, 510, 1022], "steps": 64, "repeats": 3, "commit": "abc", "stencil": "star7", "dtype": "f64", "rows": rows, "failed": list(failed)}


def test_speed_is_drawn_from_its_record(tmp_path):
    path = tmp_path / "speed-star7-f64.json"
    path.write_text(json.dumps(speed_record()))
    assert speed.main([str(path)]) == 0 and speed.main([str(path), "-o", str(tmp_path / "other.png")]) == 0 and (tmp_path / "other.svg").exists()
    assert (tmp_path / "speed-star7-f64.png").read_bytes()[:4] == b"\x89PNG" and (tmp_path / "speed-star7-f64.svg").exists()
    ax = speed.draw(speed_record()).axes[0]
    assert [p.get_width() for p in ax.patches] == [1.2, 1.9] and "Buffers 4.0 GiB" in ax.get_title() and not any("×" in t.get_text() for t in ax.texts)


def test_speed_marks_what_is_not_right():
    """Bytes that are not the predicted ones; a reason that the record gives for a run; a run without any result, which has a row all the same."""
    def marks(record):
        ax = speed.draw(record).axes[0]
        return [t.get_text() for t in ax.texts if "×" in t.get_text()], [label.get_text() for label in ax.get_yticklabels()]

    assert marks(speed_record(predicted=False))[0] == ["1.90  × the bytes differ from the prediction"]
    assert marks(speed_record({"name": "stream 8x", "why": "its checksum is another"}))[0] == ["1.90  × its checksum is another"]
    assert marks(speed_record({"name": "stream 16x", "why": "no disk"})) == (["× no disk"], ["normal (dram, iblock)", "stream 8x", "stream 16x"])


def test_speed_refuses_what_it_cannot_draw(tmp_path, capsys):
    path = tmp_path / "x.json"
    path.write_text("[]")
    assert speed.main([str(path)]) == 2 and speed.main([str(tmp_path / "none.json")]) == 2
    assert "experiments/speed.py" in capsys.readouterr().err


def test_results_of_several_sittings(recorded_copy):
    """Nights add up: each machine and program is a session, a finding names those of its runs, and the page has a table of each."""
    found = results.read_all(recorded_copy)
    decided = verdicts.all_verdicts(found, KNOWN)
    text = report.markdown(found, decided)
    there = origin.sittings(found)
    assert len(there) > 1 and text.count("| machine |") == len(there) and f"## Session {len(there)}" in text
    assert [one.begin for one in there] == sorted(one.begin for one in there)
    other = [one for one in there if one.machine["cpu"] == "another"]
    assert all(set(one.plans) == {"advice"} for one in other) and sum(one.plans["advice"] for one in other) == len(found["advice"].runs)
    order = next(v for v in decided if v.name == "order")
    assert origin.runs_of(found, order.plans) == "; ".join(f"fig05: {one.plans['fig05']} runs of session {one.number}" for one in there if "fig05" in one.plans) in text
    assert origin.runs_of(found, ()).startswith(f"all: {len(there[0].runs)} runs of session 1; all: ")


@pytest.fixture
def recorded_copy(tmp_path):
    """The recorded results, `advice` on another machine a day later."""
    folder = tmp_path / "results"
    shutil.copytree(RECORDED, folder)
    path = folder / "advice" / "raw.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for record in lines:
        record["started_unix_s"] += 86400
        if record["kind"] == "session":
            record["machine"]["cpu"] = "another"
    path.write_text("".join(json.dumps(record) + "\n" for record in lines))
    return folder
