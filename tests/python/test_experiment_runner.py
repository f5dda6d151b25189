# SPDX-License-Identifier: BSD-3-Clause
"""The experiment runner, with /bin/sh in the place of memext: plans, runs and records."""
import gzip
import io
import json
import subprocess

import pytest
from runner import cli, execute, knobs, plan, record, removing
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
        ('name = "probe"', "", "no key 'name'"),
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


def test_the_night_is_thorough_with_more_of_it(project):
    """[scale.night] upon [scale.thorough] upon [scale.quick]; runs of `thorough` alone are the night's as well; what is counted runs once."""
    more = '[scale.thorough]\nn = "9 9 9"\nsizes = [{size = "l", nt = 3}]\n[scale.night]\nn = "7 7 7"\n'
    (project / "probe.toml").write_text(PLAN.replace('scales = ["full"]', 'scales = ["thorough"]') + more)
    runs = plan.load(project / "probe.toml", "night").runs
    assert [r.id for r in runs] == ["aio-l", "mmap-l", "big"] and runs[0].words[-1] == "7" and runs[0].repeats == 9 and runs[0].timeout_s == 5
    (project / "probe.toml").write_text(PLAN.replace('title = "a probe"', 'title = "a probe"\ncounted = true'))
    assert {r.repeats for scale in ("quick", "thorough", "night", "full") for r in plan.load(project / "probe.toml", scale).runs} == {1}


ARMED = PLAN.replace('title = "a probe"', 'title = "a probe"\nkernel = "linux"') + """
[[run]]
id = "limited-{kernel}"
command = "{common} limited 1 {n}"
matrix = {kernel = ["linux", "machine", "machine-ahead", "machine-dirty"]}
kernel = "{kernel}"
limit = "100MiB"
knobs = {"vm.swappiness" = "10"}

[[run]]
id = "limited"
command = "{common} limited 1 {n}"
limit = "100MiB"
"""


def test_arms_are_settings_of_the_kernel(project):
    """The plan's for each run with a limit, dirty data as shares of it; another one stands beside it, told by `arm`."""
    (project / "probe.toml").write_text(ARMED)
    runs = {r.id: r for r in plan.load(project / "probe.toml", "quick").runs}
    quiet, dirty = {"damon": "off"}, {"vm.dirty_background_bytes": "10485760", "vm.dirty_bytes": "20971520"}
    ahead, dirty = {"read_ahead_kb": "128", "vm.page-cluster": "3", **quiet}, {**dirty, **quiet}
    assert runs["limited"].usual == runs["limited-linux"].usual == {**ahead, **dirty} and runs["aio-s"].usual == {}
    assert runs["limited-machine"].usual == {} and runs["limited-machine-ahead"].usual == dirty and runs["limited-machine-dirty"].usual == ahead
    assert {i: r.params.get("arm") for i, r in runs.items()} == {**dict.fromkeys(("aio-s", "mmap-s", "aio-m", "mmap-m", "limited", "limited-linux")), **{f"limited-{a}": a for a in ("machine", "machine-ahead", "machine-dirty")}}
    assert all(r.knobs == {"vm.swappiness": "10"} for i, r in runs.items() if i.startswith("limited-")) and len({r.key("p") for r in runs.values()}) == len(runs)
    (project / "probe.toml").write_text(ARMED.replace('"machine-dirty"]', '"windows"]'))
    with pytest.raises(plan.PlanError, match="windows.*the values are linux, machine"):
        plan.load(project / "probe.toml", "quick")


def test_arms_hold_while_the_run_lasts(project, monkeypatch):
    """What this machine has of them; the run's own settings count more. --no-system sets none."""
    for name, value in (("swappiness", "60"), ("cluster", "5")):
        (project / name).write_text(value)
        monkeypatch.setitem(knobs.FILES, f"vm.{name}".replace("cluster", "page-cluster"), str(project / name))
    monkeypatch.setattr(removing, "SETTING_PLACES", (str(project) + "/.*",))
    run = a_run(project, f"cat {project}/swappiness {project}/cluster >&2", knobs={"vm.swappiness": "7"}, usual={"vm.swappiness": "8", "vm.page-cluster": "3", "read_ahead_kb": "128"})
    found = execute.execute(run, 0, place_in(project))
    assert (found["status"], found["stderr"], found["knobs"]) == ("done", "73", {"vm.swappiness": "7", "vm.page-cluster": "3"})
    assert (project / "swappiness").read_text() == "60" and (project / "cluster").read_text() == "5"
    place = place_in(project)
    place.system = False
    plain = a_run(project, f"cat {project}/swappiness {project}/cluster >&2", usual=run.usual)
    assert execute.execute(plain, 0, place)["stderr"] == "605"


@pytest.mark.parametrize("words, commits", [("run --algorithm stream -d {data}", True), ("run -d {data} --backend uring", True), ("run --algorithm skewed-y", False), ("run --backend swap", False),
                                            ("tune --algorithm stream", False), ("run --algorithm redundant --commit-every 5", False)])
def test_runs_commit_after_each_sweep(project, words, commits):
    """At every scale, but where nothing is committed."""
    (project / "probe.toml").write_text(PLAN.replace('command = "{common} big 1 {n}"', f'command = "around {{memext}} {words}"').replace('scales = ["full"]', 'scales = ["quick"]'))
    run = next(r for r in plan.load(project / "probe.toml", "quick").runs if r.id == "big")
    given = f"around {{memext}} {words}".split()
    assert list(run.words) == ([*given[:3], "--commit-every", "0", *given[3:]] if commits else given)


def test_every_run_of_the_project_is_taken(memext, tmp_path):
    """No run of a plan is refused by memext for its options: each is planned, without its limits."""
    seen = set()
    for path in cli.plan_files([], "quick"):
        for run in plan.load(path, "quick").runs:
            words = [str(tmp_path) if w == "{data}" else w for w in run.words]
            if "{memext}" not in words or words[words.index("{memext}") + 1] != "run" or "sh" in words[:1]:
                continue
            words = words[words.index("{memext}") + 2:]
            for option in ("--json", "--timeline"):
                if option in words:
                    del words[words.index(option):words.index(option) + 2]
            if tuple(words) not in seen and "opencl" not in words and "cuda" not in words:
                seen.add(tuple(words))
                done = memext("run", *words, "--dry-run", "--quiet")
                assert done.returncode == 0 or "DRAM" in done.stderr or "swap" in done.stderr, (path.stem, run.id, done.stderr)
    assert len(seen) > 100


def test_key_depends_on_all_that_a_result_depends_on(project):
    run = plan.load(project / "probe.toml", "quick").runs[0]
    other = [
        plan.Run(run.plan, run.id, run.words + ("x",), run.params),
        plan.Run(run.plan, run.id, run.words, run.params, limit="1MiB"),
        plan.Run(run.plan, run.id, run.words, run.params, swap="1MiB"),
        plan.Run(run.plan, run.id, run.words, run.params, knobs={"a": "1"}),
        plan.Run(run.plan, run.id, run.words, run.params, usual={"a": "1"}),
    ]
    keys = [run.key("p"), run.key("q"), *(o.key("p") for o in other)]
    assert len(set(keys)) == len(keys)


def test_every_plan_of_the_project_loads_at_every_scale():
    assert len(cli.plan_files([], "quick")) >= 12 and {p.stem for p in cli.plan_files([], "night")} - {p.stem for p in cli.plan_files([], "quick")} == {"fig05-large", "fig07-large"}
    for scale in ("quick", "thorough", "night", "full"):
        for path in cli.plan_files([], scale):
            a_plan = plan.load(path, scale)
            assert a_plan.runs, f"{path} has no run at {scale}"
            assert a_plan.name == path.stem


@pytest.mark.parametrize("scale", ["quick", "thorough", "night", "full"])
def test_mapped_and_swapped_runs_have_the_read_ahead_of_linux(scale):
    """A disk's own read-ahead of 8 MiB would decide a comparison. Only an arm that is named after the machine's settings keeps it."""
    ran = kept = 0
    for path in [p for p in plan.PLANS.rglob("*.toml") if plan.has(p, scale)]:
        for run in plan.load(path, scale).runs:
            backend = next((after for word, after in zip(run.words, run.words[1:]) if word == "--backend"), "")
            if "--dry-run" in run.words or not (run.swap or backend in ("mmap", "mmap1", "swap")):
                continue
            ran += 1
            if plan.AHEAD.keys() <= {**run.usual, **run.knobs}.keys():
                continue
            kept += 1
            assert run.params["arm"].startswith("machine"), (path.stem, run.id)
    assert ran > 100 and kept < 5


def test_rounds_alternate_and_everything_is_recorded(project):
    progress = run_all(project)
    runs = runs_of(project)
    # order: every configuration once, then every configuration again, each round in an order of its own that is the same in every start
    assert [r["repeat"] for r in runs] == [0] * 4 + [1] * 4
    rounds = [[r["id"] for r in runs if r["repeat"] == k] for k in (0, 1)]
    assert all(sorted(ids) == ["aio-m", "aio-s", "mmap-m", "mmap-s"] for ids in rounds) and rounds[0] != rounds[1]
    todo = cli.work_list(plan.load(project / "probe.toml", "quick"), cli.EMPTY, "p", 40)
    assert len({tuple(run.id for run, repeat in todo if repeat == k) for k in range(40)}) > 12
    assert progress.total == 8 and progress.failed == 4
    good = next(r for r in runs if r["id"] == "aio-s")
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
    run_all(project, retry_failed=True)  # both rounds, since a round is of one start
    assert (project / "log").read_text().count("\n") == 16
    assert {r["session"] for r in runs_of(project)[8:]} == {runs_of(project)[8]["session"]}


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
    for ran, postponed in ((11, 5), (8, 0)):  # the round that was broken off is run again
        order.clear()
        progress = cli.run_plans(plans, lambda p: place_in(project, p.name), "prog", o, [], stream=io.StringIO())
        assert (len(order), progress.postponed) == (ran, postponed)
        if ran == 11:
            assert [(p, k) for p, _, k in order] == [("probe", 0)] * 4 + [("other", 0)] * 4 + [("probe", 1)] * 3


def test_half_a_line_of_a_killed_runner_is_dropped(project):
    run_all(project, repeats=1)
    path = project / "results" / "probe" / "raw.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    run_all(project, repeats=1)  # the whole round, so that its runs are of one start
    assert len(runs_of(project)) == 3 + 4 and {r["id"] for r in runs_of(project)[3:]} == {"aio-s", "mmap-s", "aio-m", "mmap-m"}
    assert (project / "log").read_text().count("\n") == 8


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
