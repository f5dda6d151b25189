# SPDX-License-Identifier: BSD-3-Clause
"""The experiment runner, with /bin/sh in the place of memext."""
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments"))

from runner import cli, execute, host, knobs, near, plan, record, registry, removing  # noqa: E402

pytestmark = pytest.mark.machine

PLAN = """
name = "probe"
title = "a probe"
repeats = {quick = 2, full = 3}
timeout_s = 5

[scale.all]
common = "/bin/sh {root}/fake.sh {json} {timeline}"
[scale.quick]
n = "8 8 8"
sizes = [{size = "s", nt = 1}, {size = "m", nt = 2}]
[scale.full]
n = "64 64 64"
sizes = []

[[run]]
id = "{backend}-{size}"
command = "{common} {backend} {nt} {n}"
matrix = {size = "sizes", backend = ["aio", "mmap"]}

[[run]]
id = "big"
command = "{common} big 1 {n}"
scales = ["full"]
"""

FAKE = """
echo "$3" >> "$LOG"
[ "$3" = mmap ] && { echo "no memory left" >&2; exit 3; }
printf '{"status":"done","backend":"%s","seconds":0.5}' "$3" > "$1"
printf '{"memext_timeline":1}\\n' > "$2"
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "probe.toml").write_text(PLAN)
    (tmp_path / "fake.sh").write_text(FAKE)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("MEMEXT_STATE", str(tmp_path / "state"))  # records of its own: what else runs on the machine is not waited for
    monkeypatch.setattr(execute, "drop_caches", lambda data: False)  # a test leaves the machine's caches alone
    return tmp_path


def place_in(project, name="probe"):
    return execute.Place(project, Path("/bin/sh"), project / "data", project / "results" / name)


def run_all(project, scale="quick", repeats=None, retry_failed=False):
    a_plan = plan.load(project / "probe.toml", scale)
    o = cli.options([])
    o.repeats, o.retry_failed = repeats, retry_failed
    return cli.run_plans([a_plan], lambda p: place_in(project, p.name), "prog", o, ["--quick"], stream=io.StringIO())


def runs_of(project):
    store = record.Store(project / "results" / "probe")
    return [r for r in store.records() if r["kind"] == "run"]


# ------------------------------------------------------------------ plans


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


# ------------------------------------------------------------------ runs


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


def a_run(project, script, timeout_s=5.0, **more):
    return plan.Run("probe", "x", ("/bin/sh", "-c", script), {}, timeout_s=timeout_s, **more)


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


def ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def stopped(process):
    return Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def wait_for(condition, process=None):
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline, "it did not come to this within ten minutes"
        assert process is None or process.poll() is None, process.communicate()[1]
        time.sleep(0.005)


def runner(project, *words, data=None, **environment):
    """Words that start run.py on the project's plan, and its environment. /proc/sys/vm/drop_caches is not written."""
    code = (
        "import sys; sys.path.insert(0, %r); from runner import cli, execute, host; from pathlib import Path\n"
        "cli.ROOT = Path(%r); host.is_memory = lambda p: False; execute.drop_caches = lambda data: False\n"
        "sys.exit(cli.main(sys.argv[1:]))" % (str(ROOT / "experiments"), str(project))
    )
    (project / "tmp").mkdir(exist_ok=True)
    command = [sys.executable, "-c", code, str(project / "probe.toml"), "--repeats", "1", "--memext", "/bin/sh", "--data",
               str(data or project / "data"), "--results", str(project / "results"), *words]  # fmt: skip
    return command, {**os.environ, "TMPDIR": str(project / "tmp"), **environment}


def start(project, *words, **more):
    command, environment = runner(project, *words, **more)
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def finish(project, *words, **more):
    command, environment = runner(project, *words, **more)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)


def left(project):
    """Run directories and records."""
    return [path.name for name in ("data", "tmp", "state") for path in (project / name).glob("*") if path.suffix != ".lock"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_interrupted_runner_goes_on(project, number):
    """A signal in the middle of a run: exit 5, no data left, that run is not recorded, the earlier ones are."""
    (project / "fake.sh").write_text(FAKE.replace('[ "$3" = mmap ]', '[ "$3" = mmap ] && [ -z "$FAST" ] && sleep 1000; [ "$3" = mmap ]'))
    process = start(project)
    wait_for(lambda: (project / "log").exists() and (project / "log").read_text() == "aio\nmmap\n", process)
    process.send_signal(number)
    assert process.wait(60) == 5 and "goes on" in process.stderr.read()
    assert [r["id"] for r in runs_of(project)] == ["aio-s"]
    assert left(project) == []
    again = finish(project, FAST="1")
    assert again.returncode == 0 and "3 runs, 1 are there already" in again.stderr
    assert [r["id"] for r in runs_of(project)] == ["aio-s", "mmap-s", "aio-m", "mmap-m"]


# ------------------------------------------------------------------ killed runners, and what the next start finds

SETTING = Path("/proc/sys/vm/page-cluster")  # read-ahead of swap; nothing else depends on it
CHANGING = """
name = "probe"
title = "a probe that changes a setting"
[scale.quick]
[[run]]
id = "only"
command = "/bin/sh {root}/fake.sh {json} {data}"
knobs = {"vm.page-cluster" = "%s"}
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="settings need root")


@pytest.fixture
def changing(project):
    """(the project with a plan that changes SETTING and a command that does not end, the value before, the one that the plan wants)"""
    before = SETTING.read_text().strip()
    wanted = "1" if before != "1" else "2"
    (project / "probe.toml").write_text(CHANGING % wanted)
    (project / "fake.sh").write_text('[ -n "$FAST" ] && exec echo "{}" > "$1"; echo $$ > "$LOG"; exec sleep 1000')
    yield project, before, wanted
    SETTING.write_text(before)


def limit_memory(**environment):
    return subprocess.run([ROOT / "experiments" / "limit-memory", "64MiB", "--keep-cache", "--", "true"], cwd="/", capture_output=True, text=True,
                          env={**os.environ, **environment})  # fmt: skip


def killed_at(where, project):
    process = start(project, MEMEXT_PAUSE_AT=where)
    wait_for(lambda: stopped(process), process)
    process.kill()
    process.communicate()
    return process


@needs_root
@pytest.mark.parametrize("next_start", ["run.py", "limit-memory"])
@pytest.mark.parametrize("where", ["directory made", "settings recorded", "settings changed"])
def test_what_a_killed_runner_left_is_cleared_by_the_next_start(changing, where, next_start):
    """Also with its data elsewhere, or of another program: setting as before, no run directory, no record."""
    project, before, wanted = changing
    killed_at(where, project)
    assert SETTING.read_text().strip() == (wanted if where == "settings changed" else before) and len(left(project)) >= 2
    done = limit_memory() if next_start == "limit-memory" else finish(project, data=project / "elsewhere", FAST="1")
    assert done.returncode == 0, done.stderr
    assert SETTING.read_text().strip() == before and left(project) == []


@needs_root
def test_the_command_of_a_killed_runner_ends(changing):
    """It gets SIGTERM when the runner is killed, and the next start leaves nothing of the run."""
    project, before, _ = changing
    process = start(project)
    wait_for(lambda: (project / "log").exists() and (project / "log").read_text().strip(), process)
    process.kill()
    process.communicate()
    pid = int((project / "log").read_text())
    wait_for(lambda: ended(pid))
    assert limit_memory().returncode == 0
    assert SETTING.read_text().strip() == before and left(project) == []


@needs_root
def test_processes_of_a_killed_runner_that_live_on_are_ended(changing):
    """One in a session of its own is found by the mark in its environment."""
    project, _, _ = changing
    (project / "fake.sh").write_text('setsid sleep 1000 & echo $! > "$LOG"; wait')
    process = start(project)
    wait_for(lambda: (project / "log").exists() and (project / "log").read_text().strip(), process)
    process.kill()
    process.communicate()
    pid = int((project / "log").read_text())
    assert not ended(pid)
    assert limit_memory().returncode == 0
    assert ended(pid) and left(project) == []


@needs_root
def test_after_a_reboot_settings_are_the_machines_own(changing):
    """The kernel has forgotten what was set; what is set since then stays. Run directories go."""
    project, before, wanted = changing
    killed_at("settings changed", project)
    since = next(value for value in "0345" if value not in (before, wanted))
    SETTING.write_text(since)
    assert limit_memory(MEMEXT_BOOT_ID="another").returncode == 0
    assert SETTING.read_text().strip() == since and left(project) == []


@needs_root
def test_a_second_runner_is_refused(changing):
    """It would take the settings of the first for the machine's own."""
    project, before, wanted = changing
    first = start(project, MEMEXT_PAUSE_AT="settings changed")
    wait_for(lambda: stopped(first), first)
    second = finish(project, data=project / "elsewhere", FAST="1")
    assert second.returncode == 2 and "another run.py" in second.stderr and SETTING.read_text().strip() == wanted
    first.send_signal(signal.SIGTERM)
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=900)
    assert first.returncode == 5 and SETTING.read_text().strip() == before and left(project) == []


# ------------------------------------------------------------------ --no-system


NEEDING = PLAN + """
[[run]]
id = "limited"
command = "{common} limited 1 {n}"
limit = "64MiB"
swap = "16MiB"

[[run]]
id = "set"
command = "{common} set 1 {n}"
knobs = {"vm.page-cluster" = "1"}
"""


def test_no_system_skips_what_needs_it(project):
    """Runs that change nothing are done; the others are recorded as skipped with the reason, not as failed. A start without it does all."""
    (project / "probe.toml").write_text(NEEDING)
    (project / "fake.sh").write_text(FAKE.replace('[ "$3" = mmap ]', "false"))
    before = SETTING.read_text()
    done = finish(project, "--no-system")
    runs = {r["id"]: r for r in runs_of(project)}
    assert done.returncode == 0 and "changes nothing on this machine" in done.stderr and "2 of 6 runs were skipped" in done.stderr
    assert {i for i, r in runs.items() if r["status"] == "done"} == {"aio-s", "mmap-s", "aio-m", "mmap-m"} and "failed" not in done.stderr
    assert runs["limited"]["status"] == runs["set"]["status"] == "skipped"
    assert "memory limit of 64MiB and a swap file of 16MiB" in runs["limited"]["stderr"] and "vm.page-cluster" in runs["set"]["stderr"]
    assert SETTING.read_text() == before and left(project) == []
    assert "0 runs, 6 are there already" in finish(project, "--no-system").stderr
    store, runs = record.Store(project / "results" / "probe"), plan.load(project / "probe.toml", "quick").runs
    assert len(cli.work_list(plan.load(project / "probe.toml", "quick"), store, host.program_id(Path("/bin/sh")), 1)) == len(runs) == 6


def test_one_line_says_what_is_changed(project):
    (project / "probe.toml").write_text(NEEDING)
    said = cli.announcement([plan.load(project / "probe.toml", "quick")], project / "data", project / "results", False)
    for text in ("page cache", "cgroups", f"swap files in {project / 'data'}", "vm.page-cluster", str(project / "results"), "--no-system"):
        assert text in said
    assert "\n" not in said


# ------------------------------------------------------------------ settings


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """(folder, files of settings, their partners, owner)"""
    (tmp_path / "bytes").write_text("0")
    (tmp_path / "ratio").write_text("20\n")
    (tmp_path / "ahead").write_text("128\n")
    monkeypatch.setenv("MEMEXT_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(removing, "SETTING_PLACES", (str(tmp_path) + "/.*",))
    files = {"vm.dirty_bytes": str(tmp_path / "bytes"), "read_ahead_kb": str(tmp_path / "{device}")}
    with registry.Owner("test") as owner:
        yield tmp_path, files, {"vm.dirty_bytes": str(tmp_path / "ratio")}, owner
    assert not list((tmp_path / "state").glob("*.json"))


def recorded(folder):
    return [entry for path in (folder / "state").glob("*.json") for entry in json.loads(path.read_text())["made"]]


def test_settings_hold_inside_and_come_back(settings):
    """What was there is on disk before anything is changed, and forgotten when it is back."""
    folder, files, partners, owner = settings
    with pytest.raises(RuntimeError, match="boom"):
        with knobs.applied({"read_ahead_kb": "0"}, "ahead", owner, files, partners):
            assert (folder / "ahead").read_text() == "0"
            assert recorded(folder) == [{"kind": "setting", "path": str(folder / "ahead"), "value": "128"}]
            raise RuntimeError("boom")
    assert (folder / "ahead").read_text() == "128" and recorded(folder) == []


def test_the_ratio_comes_back_where_the_ratio_counted(settings):
    folder, files, partners, owner = settings
    with knobs.applied({"vm.dirty_bytes": "1048576"}, "", owner, files, partners):
        (folder / "ratio").write_text("0")  # as the kernel does
        assert (folder / "bytes").read_text() == "1048576"
    assert (folder / "ratio").read_text() == "20"


def test_a_setting_that_cannot_be_put_back_is_remembered(settings):
    """It fails the run, stays in the record, and the end of the runner tries again."""
    folder, files, partners, owner = settings
    with pytest.raises(knobs.KnobError, match="ahead"):
        with knobs.applied({"read_ahead_kb": "0"}, "ahead", owner, files, partners):
            (folder / "ahead").unlink()
            (folder / "ahead").mkdir()
    assert len(recorded(folder)) == 1
    (folder / "ahead").rmdir()
    (folder / "ahead").write_text("0")


def test_an_unknown_setting_is_a_failed_run(project):
    result = execute.execute(a_run(project, "true", knobs={"vm.nonsense": "1"}), 0, place_in(project))
    assert result["status"] == "failed" and "vm.nonsense" in result["stderr"]
    assert not list((project / "data").iterdir())


# ------------------------------------------------------------------ origin


def test_commit_marks_changes_of_the_program_only(tmp_path):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "a.c").write_text("1")
    (tmp_path / "notes").write_text("1")
    git("add", "."), git("commit", "-m", "x")
    clean = host.commit(tmp_path)
    (tmp_path / "notes").write_text("2")
    assert len(clean) == 12 and host.commit(tmp_path) == clean
    (tmp_path / "runtime" / "a.c").write_text("2")
    assert host.commit(tmp_path) == clean + "+changes"


def test_time_left():
    assert cli.clock(4) == "4 s" and cli.clock(65) == "1 min 05 s" and cli.clock(7260) == "2 h 01 min"
    progress = cli.Progress(3, io.StringIO())
    a, b = plan.Run("p", "a", (), {}), plan.Run("p", "b", (), {})
    progress.end(a, 0, {"status": "done", "wall_s": 2.0}, 2.0, [])
    assert progress.left_s([(a, 1), (b, 0)]) == 2.0 + 2.0


# ------------------------------------------------------------------ speed.py, with a script in the place of memext

SPEED_FAKE = """#!/usr/bin/python3
import json, os, sys, time
words = sys.argv[1:]
if "info" in words:
    print('{"machine": {}}')
    sys.exit()
store = words[words.index("-d") + 1]
open(store, "a").write("x")
algorithm, steps = words[words.index("--algorithm") + 1], int(words[words.index("-t") + 1])
budget = int(words[words.index("--dram") + 1]) if "--dram" in words else 0
if os.environ.get("HANG") and algorithm == "skewed-min":
    open(os.environ["HANG"], "w").close()
    time.sleep(1000)
if algorithm == "stream" and 0 < budget < 4 << 20:
    sys.exit("no memory left")
odd = algorithm == "skewed-min" and budget < 4 << 20
print(json.dumps({"updates_per_second": 1e9, "seconds": 1.0, "wait_share": 0.0, "read_bytes": 8, "write_bytes": 8, "predicted_read_bytes": 8,
                  "predicted_write_bytes": 9 if algorithm == "skewed-min" and not odd else 8, "peak_rss_bytes": 1, "dram_budget_bytes": budget,
                  "predicted_seconds": 2.0, "plan": {}, "checksum": "b" * 16 if odd else "a" * 16, "steps_done": steps}))
"""


def start_speed(project, **environment):
    """stream and skewed-min at two budgets, 5 MiB and 2 MiB, twice."""
    (project / "memext").write_text(SPEED_FAKE)
    (project / "memext").chmod(0o755)
    code = (
        "import sys; sys.path.insert(0, %r); import speed\n"
        "speed.MEMEXT = speed.BENCH = %r; speed.draw = lambda path: None\n"
        "sys.exit(speed.main())" % (str(ROOT / "experiments"), str(project / "memext"))
    )
    words = ["--only", "stream,skewed-min", "--no-system", "--repeats", "2", "--factors", "4,10", "--size", "126", "126", "82", "--steps", "8",
             "--device", str(project / "data"), "--output", str(project / "speed")]  # fmt: skip
    return subprocess.Popen([sys.executable, "-c", code, *words], env={**os.environ, **environment}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)  # fmt: skip


def speed_results(project):
    return json.loads((project / "speed" / "speed-star7-f64.json").read_text())


def test_speed_checks_what_it_records(project):
    """One configuration fails, one moves other bytes than predicted, one has another checksum: each is named, the rest is kept, exit 1."""
    process = start_speed(project)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 1, err
    found = speed_results(project)
    assert {row["name"]: row["finished"] for row in found["rows"]} == {"stream 4x": 2, "skewed-min 4x": 2, "skewed-min 10x": 2}
    failed = {f["name"]: f["why"] for f in found["failed"]}
    assert set(failed) == {"stream 10x", "skewed-min 4x", "skewed-min 10x"}
    assert "no memory left" in failed["stream 10x"] and "bytes" in failed["skewed-min 4x"] and "checksum" in failed["skewed-min 10x"]
    assert "Traceback" not in err and not list((project / "data").iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_speed_leaves_no_store_and_keeps_results_on_a_signal(project, number):
    hang = project / "hanging"
    process = start_speed(project, HANG=str(hang))
    wait_for(hang.exists, process)
    assert list((project / "data").glob("memext-speed-*/grid.store"))
    process.send_signal(number)
    err = process.communicate(timeout=600)[1]
    assert process.returncode == 1 and "interrupted" in err and "Traceback" not in err
    assert not list((project / "data").iterdir()) and left(project) == []
    assert [row["name"] for row in speed_results(project)["rows"]] == ["stream 4x"]


# ------------------------------------------------------------------ kernel.py: the page from the runs

def kernel_record(name, repeat, seconds, status="done", stderr="", **params):
    counters = {key: 2**20 for key in ("storage_read_bytes", "storage_write_bytes", "minor_faults", "refault_bytes", "system_s")}
    report = {"seconds": seconds, "steps_done": 10, "predicted_read_bytes": 2**20, "write_bytes": 2**20, "layout": {"buffer_bytes": 2**20},
              "kernel": counters} if status == "done" else None  # fmt: skip
    return {"kind": "run", "id": name, "repeat": repeat, "key": name, "status": status, "stderr": stderr, "params": params, "limit": "1MiB",
            "knobs": {}, "command": ["memext", "run"], "report": report, "timeline": None, "other_cpu_s": 0.0, "wall_s": 1.0}  # fmt: skip


def kernel_study(folder, **seconds):
    """{run: seconds of each round}"""
    import kernel
    store = record.Store(folder)
    storage = {"file_system": "ext4", "device": "sda", "read_ahead_kb": 128}
    machine = {"kernel": "6.18", "cores": 2, "cpu": "a CPU", "virtualised": "none", "cgroup": "v2", "storage": storage}
    store.append({"kind": "session", "commit": "abc", "program": "def", "machine": machine})
    for name, values in seconds.items():
        for repeat, value in enumerate(values):
            store.append(kernel_record(name.replace("_", "-"), repeat, value))
    store.append(kernel_record("mglru-on", 0, 0, "skipped", "this kernel has no mglru"))
    return kernel


def test_a_difference_of_kernels_page_is_one_of_its_interval(project):
    """`apart` is larger in all rounds, and so unevenly that its interval still holds 1; three rounds have none."""
    kernel = kernel_study(project / "kernel", slow=[2, 4, 6, 2, 3], base=[1, 2, 3, 1, 1], mixed=[1, 1, 4, 2, 9], apart=[1.01, 2.02, 9, 1.01, 9], few=[5, 5, 5], fast=[0.5, 1, 1, 0.5, 0.1])
    study = kernel.Study(project / "kernel")
    signs = {name: kernel.Effect(study, name, "base").sign for name in ("slow", "mixed", "apart", "few", "fast")}
    assert signs == {"slow": 1, "mixed": 0, "apart": 0, "few": 0, "fast": -1}
    assert "cannot be told from" in kernel.takes(study, "mixed", "base", "it") and "takes 2.00 times" in kernel.takes(study, "slow", "base", "it")
    with pytest.raises(kernel.Missing, match="absent"):
        kernel.Effect(study, "absent", "base")


def test_what_was_not_run_is_said_on_kernels_page(project):
    """Dirty limits and read-ahead have all their runs and a finding, MGLRU the kernel's reason, the others the name of a run that is missing."""
    kernel = kernel_study(project / "kernel", mmap_stream_none=[1.0] * 5, dirty_1048576=[2.0, 2.1, 2.2, 2.3, 2.4], ahead_128=[3.0] * 5, ahead_1024=[2.5] * 5)
    out = project / "page.md"
    kernel.page(kernel.Study(project / "kernel"), project / "kernel", out)
    text = out.read_text()
    assert "Too short to rest on: `mmap-stream-none` 1.0 s." in text and text.count("Too short") == 1, "and no run of 2 s or more is"
    assert "`vm.dirty_bytes` of 1 MiB a run takes 2.20 times [2.00 to 2.40, n = 5]" in text and (project / "page" / "dirty.png").stat().st_size > 0
    assert "Not tested here: `mglru-on` has no result (this kernel has no mglru)" in text
    assert text.count("Not tested here") == len(kernel.QUESTIONS) - 2 and "`uring-stream` has no result (it was not run)" in text


# ------------------------------------------------------------------ predict.py

def test_recorded_runs_are_predicted_again():
    """The recorded command without its limiter, with the plan of its report in place of what chose it, the limit said in words, and --dry-run: nothing is written."""
    import predict
    from made_up import report, run
    words = ["/x/limit-memory", "128MiB", "--quiet", "--", "/y/memext", "run", "-n", "510", "126", "126", "-t", "64", "-d", "/gone/run-1", "--quiet", "--json", "/gone/report.json", "--timeline", "/gone/t",
             "--backend", "aio", "--algorithm", "redundant", "--engine", "iblock", "--block", "32", "32", "8", "--stencil", "edge19"]  # fmt: skip
    recorded = run("a", {}, 0, report(4.0, plan={"by": 32, "bz": 30, "bt": 8}), limit="128MiB", command=words)
    expected = ["/z/memext", "run", "-n", "510", "126", "126", "-t", "64", "--backend", "aio", "--stencil", "edge19", "--dram", "128MiB", "-d", "/data", "--plan",
                "redundant engine=iblock by=32 bz=30 bt=8 iy=1 iz=8 slab=8 threads=2 tuner=manual", "--dry-run", "--quiet", "--json", "-"]  # fmt: skip
    assert predict.command(recorded, "/z/memext", "/data") == expected
    recorded.record["command"] += ["--dram", "120MiB"]
    assert predict.command(recorded, "/z/memext", "/data").count("--dram") == 1


# ------------------------------------------------------------------ rates of the minute

FAKE_MEMEXT = """#!/bin/sh
echo "$XDG_CACHE_HOME $*" >> "$LOG"
for word; do [ "$last" = --json ] && out=$word; last=$word; done
case "$*" in
*--calibrate-seconds*) [ -n "$BROKEN" ] && exit 3; cat "$XDG_CACHE_HOME/memext/rates.json" > "$LOG.kept"; echo "{\\"rates\\":{\\"read_bytes_per_s\\":2.0,\\"device_source\\":\\"measured\\"}}" > "$out" ;;
*--dry-run*) echo "{\\"predicted_seconds\\":3.5,\\"predicted_time\\":{\\"io_s\\":1.0}}" > "$out" ;;
*) echo "{\\"status\\":\\"done\\",\\"seconds\\":4.0,\\"predicted_seconds\\":8.0,\\"plan\\":{\\"algorithm\\":\\"stream\\",\\"bt\\":7}}" > "$out" ;;
esac
"""


def probed(project, monkeypatch, backend, seconds=0.5):
    """Record, and the calls of memext as (cache, words)."""
    program = project / "memext"
    program.write_text(FAKE_MEMEXT)
    program.chmod(0o755)
    log, first = project / "calls", project / "first"
    log.unlink(missing_ok=True)
    (first / "memext").mkdir(parents=True, exist_ok=True)
    (first / "memext" / "rates.json").write_text("of the beginning")
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setenv("XDG_CACHE_HOME", str(first))
    words = ("{memext}", "run", "-n", "8", "8", "8", "-t", "2", "-d", "{data}", "--quiet", "--json", "{json}", "--backend", backend, "--engine", "tiled", "--queue-depth", "4", "--dram", "1MiB")
    run = plan.Run(plan="p", id="a", words=words, params={}, timeout_s=60.0)
    place = execute.Place(project, program, project / "data", project / "results" / "p", probe_s=seconds)
    (project / "data").mkdir(exist_ok=True)
    found = execute.execute(run, 0, place)
    return found, [line.split(" ", 1) for line in log.read_text().splitlines()], str(first)


def test_rates_are_measured_right_before_a_run(project, monkeypatch):
    """In a cache of their own, which begins as a copy of the first and the run never sees; the run's plan is predicted with them."""
    found, calls, first = probed(project, monkeypatch, "uring")
    (own, probe), (planning, ran), (again, predicting) = calls
    assert own == again != first == planning
    assert probe.startswith("tune -n 8 8 8 -t 2 --backend uring --dram 512MiB -d ") and "--calibrate-seconds 0.5" in probe and "--engine" not in probe
    assert ran.startswith("run -n 8 8 8 -t 2 -d ") and "--dry-run" not in ran
    assert "--plan stream bt=7 --dry-run" in predicting and "--queue-depth 4" in predicting and "--engine" not in predicting
    assert (project / "calls.kept").read_text() == "of the beginning"
    said = found["near"]
    assert (said["rates"], said["predicted_seconds"], said["predicted_time"], said["seconds"]) == ({"read_bytes_per_s": 2.0}, 3.5, {"io_s": 1.0}, 0.5)
    assert said["rates_age_s"] >= 0 and said["first_rates_age_s"] >= 0 and "why" not in said and found["report"]["predicted_seconds"] == 8.0


def test_nothing_is_measured_before_other_runs(project, monkeypatch):
    for backend, seconds in (("mmap", 0.5), ("aio", 0)):
        found, calls, _ = probed(project, monkeypatch, backend, seconds)
        assert len(calls) == 1 and "near" not in found
    assert not near.is_judged(["/x/memext", "tune", "--backend", "aio"]) and near.is_judged(["limit", "--", "/x/memext", "run", "--backend", "aio"])


def test_a_failed_probe_spoils_no_run(project, monkeypatch):
    monkeypatch.setenv("BROKEN", "1")
    found, calls, _ = probed(project, monkeypatch, "aio")
    assert found["status"] == "done" and len(calls) == 2 and found["near"]["why"] == "the rates were not measured: exit 3"


def test_a_probe_has_the_storage_of_its_run():
    """A limit of bandwidth holds for it too, one of memory does not; what it measures in is too large for cache."""
    run = ["/x/limit-memory", "128MiB", "--", "/x/limit-bandwidth", "220MiB", "/data", "--", "/y/memext", "run", "-n", "8", "8", "8", "--backend", "aio"]
    assert near.probing(run, "128MiB", "/z/memext", "/d", "/r", 1.0) == ["/x/limit-bandwidth", "220MiB", "/data", "--", "/z/memext", "tune", "-n", "8", "8", "8", "--backend", "aio", "--dram", "512MiB", "-d", "/d",
                                                                       "--calibrate-seconds", "1", "--quiet", "--json", "/r"]  # fmt: skip
    drams = {said: near.probing([*run, "--dram", said], "", "memext", "/d", "/r", 1.0)[-8] for said in ("240MiB", "31GiB", "600MiB", "1048576", "0.6 GiB")}
    assert drams == {"240MiB": "512MiB", "31GiB": "31GiB", "600MiB": "600MiB", "1048576": "512MiB", "0.6 GiB": "0.6 GiB"}


def test_the_cache_of_rates_is_memexts():
    assert near.rates_cache({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/memext/rates.json")
    assert near.rates_cache({"HOME": "/h"}) == Path("/h/.cache/memext/rates.json")
