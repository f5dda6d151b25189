# SPDX-License-Identifier: BSD-3-Clause
"""The experiment runner, with /bin/sh in the place of memext: plans, runs and records."""
import gzip
import io
import json
import subprocess

import pytest
from runner import cli, execute, knobs, plan, record
from runner_project import PLAN, a_run, ended, place_in, project, run_all, runs_of  # noqa: F401 (fixtures)

pytestmark = pytest.mark.machine


def test_matrix_times_sizes(project):
    # runs = sizes x backends, ids unique, placeholders of the scale filled, the runner's own left
    runs = plan.load(project / "probe.toml", "quick").runs
    assert [r.id for r in runs] == ["aio-s", "mmap-s", "aio-m", "mmap-m"]
    assert runs[3].words == ("/bin/sh", "{root}/fake.sh", "{json}", "{timeline}", "mmap", "2", "8", "8", "8")
    assert runs[3].params["nt"] == 2 and runs[3].params["backend"] == "mmap" and runs[3].repeats == 2


def test_scale_chooses_values_and_runs(project):
    runs = plan.load(project / "probe.toml", "full").runs
    assert [r.id for r in runs] == ["big"] and runs[0].words[-1] == "64" and runs[0].repeats == 3


def test_thorough_is_quick_with_more_of_it(project):
    """What [scale.thorough] does not say is [scale.quick]'s; 9 repeats at least, unless the plan says how many."""
    text = PLAN + '[scale.thorough]\nsizes = [{size = "s", nt = 1}, {size = "m", nt = 2}, {size = "l", nt = 3}]\n'
    (project / "probe.toml").write_text(text)
    runs = plan.load(project / "probe.toml", "thorough").runs
    assert [r.id for r in runs] == ["aio-s", "mmap-s", "aio-m", "mmap-m", "aio-l", "mmap-l"] and runs[0].words[-1] == "8"
    assert runs[0].repeats == 9 and runs[0].timeout_s == 5
    (project / "probe.toml").write_text(text.replace("quick = 2, full", "thorough = 4, quick = 2, full"))
    assert plan.load(project / "probe.toml", "thorough").runs[0].repeats == 4
    assert plan.load(project / "probe.toml", "quick").runs[0].repeats == 2


@pytest.mark.parametrize(
    "old, new, says",
    [
        ('name = "probe"', "", "no name"),
        ("{nt} {n}", "{nt} {absent}", "absent"),
        ('id = "{backend}-{size}"', 'id = "{backend}"', "two runs"),
        ('matrix = {size = "sizes"', 'matrix = {size = "sises"', "sises"),
        ("title", "titel", "titel"),
        ('common = "', 'common = "{common} ', "itself"),
    ],
)
def test_broken_plans_say_what_is_wrong(project, old, new, says):
    (project / "probe.toml").write_text(PLAN.replace(old, new))
    with pytest.raises(plan.PlanError, match=says):
        plan.load(project / "probe.toml", "quick")


def test_key_depends_on_all_that_a_result_depends_on(project):
    run = plan.load(project / "probe.toml", "quick").runs[0]
    other = [
        plan.Run(run.plan, run.id, run.words + ("x",), run.params),
        plan.Run(run.plan, run.id, run.words, run.params, limit="1MiB"),
        plan.Run(run.plan, run.id, run.words, run.params, swap="1MiB"),
        plan.Run(run.plan, run.id, run.words, run.params, knobs={"a": "1"}),
    ]
    keys = [run.key("p"), run.key("q"), *(o.key("p") for o in other)]
    assert len(set(keys)) == len(keys)


def test_every_plan_of_the_project_loads_at_every_scale():
    files = cli.plan_files([])
    assert len(files) >= 12
    for path in files:
        for scale in ("quick", "thorough", "full"):
            a_plan = plan.load(path, scale)
            assert a_plan.runs, f"{path} has no run at {scale}"
            assert a_plan.name == path.stem


def test_rounds_alternate_and_everything_is_recorded(project):
    progress = run_all(project)
    runs = runs_of(project)
    # order: every configuration once, then every configuration again
    assert [(r["id"], r["repeat"]) for r in runs] == [(i, k) for k in (0, 1) for i in ("aio-s", "mmap-s", "aio-m", "mmap-m")]
    assert progress.total == 8 and progress.failed == 4
    good = runs[0]
    assert good["status"] == "done" and good["exit"] == 0 and good["report"]["backend"] == "aio"
    assert good["wall_s"] > 0 and good["other_cpu_s"] >= 0 and good["schema"] == 1 and good["commit"] and good["program"] == "prog"
    with gzip.open(project / "results" / "probe" / good["timeline"], "rt") as file:
        assert json.loads(file.readline()) == {"memext_timeline": 1}
    sessions = [r for r in record.Store(project / "results" / "probe").records() if r["kind"] == "session"]
    assert len(sessions) == 1 and sessions[0]["machine"]["cores"] >= 1 and good["session"] == sessions[0]["session"]


def test_failed_runs_are_results(project):
    run_all(project, repeats=1)
    failed = [r for r in runs_of(project) if r["id"] == "mmap-s"][0]
    assert failed["status"] == "failed" and failed["exit"] == 3 and failed["report"] is None
    assert failed["stderr"].strip() == "no memory left"


def test_goes_on_where_it_stopped(project):
    run_all(project, repeats=1)
    calls = (project / "log").read_text().count("\n")
    run_all(project, repeats=1)
    assert (project / "log").read_text().count("\n") == calls == 4
    run_all(project)  # the second round only
    assert (project / "log").read_text().count("\n") == 8
    run_all(project, retry_failed=True)
    assert (project / "log").read_text().count("\n") == 12


def test_as_many_rounds_as_fit_into_the_time(project, monkeypatch):
    """Runs of 60 s, 5 minutes: round by round over all plans, none that would end later; the same again goes on with the rest."""
    (project / "other.toml").write_text(PLAN.replace('"probe"', '"other"'))
    plans = [plan.load(project / name, "quick") for name in ("probe.toml", "other.toml")]
    clock, order = [0.0], []

    def execute(run, repeat, place):
        clock[0] += 60
        order.append((run.plan, run.id, repeat))
        return {**cli.skipped(run, repeat, place), "status": "done", "wall_s": 60.0, "stderr": ""}

    monkeypatch.setattr(cli, "execute", execute)
    monkeypatch.setattr(cli.time, "monotonic", lambda: clock[0])
    o = cli.options(["--minutes", "11"])
    for ran, postponed in ((11, 5), (5, 0)):
        order.clear()
        progress = cli.run_plans(plans, lambda p: place_in(project, p.name), "prog", o, [], stream=io.StringIO())
        assert (len(order), progress.postponed) == (ran, postponed)
        if ran == 11:
            ids = ["aio-s", "mmap-s", "aio-m", "mmap-m"]
            assert order == [(p, i, 0) for p in ("probe", "other") for i in ids] + [("probe", i, 1) for i in ids[:3]]


def test_half_a_line_of_a_killed_runner_is_dropped(project):
    run_all(project, repeats=1)
    path = project / "results" / "probe" / "raw.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    run_all(project, repeats=1)
    assert [(r["id"], r["repeat"]) for r in runs_of(project)] == [(i, 0) for i in ("aio-s", "mmap-s", "aio-m", "mmap-m")]
    assert (project / "log").read_text().count("\n") == 5


def test_stop_ends_the_whole_session():
    """Both ignore SIGTERM; one is the leader's child."""
    script = "trap '' TERM; (trap '' TERM; echo ready; exec sleep 1000) & wait; sleep 1000"
    process = subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    members = execute._session_members(process.pid)
    execute.stop(process, 0.1)
    assert members and all(ended(pid) for pid in members) and process.poll() is not None


def test_timeout_is_recorded(project):
    late = execute.execute(a_run(project, "sleep 1000", timeout_s=0.1), 0, place_in(project))
    assert late["status"] == "timeout" and late["exit"] is None
    assert not list((project / "data").glob("run-*"))


def test_a_command_that_cannot_start_is_a_failed_run(project):
    result = execute.execute(plan.Run("probe", "x", ("/nonexistent/memext",), {}), 0, place_in(project))
    assert result["status"] == "failed" and result["exit"] == 127 and "/nonexistent/memext" in result["stderr"]


def test_done_without_the_report_it_promised_is_failed(project):
    run = plan.Run("probe", "x", ("/bin/sh", "-c", "exit 0", "{json}"), {})
    assert execute.execute(run, 0, place_in(project))["status"] == "failed"


def test_limit_goes_around_the_command(project):
    run = a_run(project, "true", limit="64MiB", swap="128MiB")
    words = execute.command_of(run, place_in(project), "d", "j", "t")
    assert words[1:8] == ["64MiB", "--swap", "128MiB", "--swap-dir", str(project / "data"), "--quiet", "--"] and words[0].endswith("limit-memory")


def test_compressed_memory_as_swap_space(project):
    run = a_run(project, "true", limit="64MiB", swap="zram 128MiB")
    words = execute.command_of(run, place_in(project), "d", "j", "t")
    assert words[1:5] == ["64MiB", "--zram", "128MiB", "--quiet"]


def test_a_setting_that_the_kernel_lacks_skips_the_run(project, monkeypatch):
    """A kernel built without MGLRU, say: no failure, and the record says which file is not there."""
    monkeypatch.setitem(knobs.FILES, "mglru", str(project / "absent"))
    result = execute.execute(a_run(project, "true", knobs={"mglru": "y"}), 0, place_in(project))
    assert result["status"] == "skipped" and "absent" in result["stderr"] and "mglru" in result["stderr"]


def test_counters_of_the_kernel_are_recorded(project):
    result = execute.execute(a_run(project, "true"), 0, place_in(project))
    assert result["vmstat"] and all(name in execute.VMSTAT and value >= 0 for name, value in result["vmstat"].items())
