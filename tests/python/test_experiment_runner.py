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

from runner import cli, execute, host, knobs, plan, record  # noqa: E402

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
    monkeypatch.setattr(execute, "drop_caches", lambda: False)  # a test leaves the machine's caches alone
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


def test_every_plan_of_the_project_loads_at_both_scales():
    files = cli.plan_files([])
    assert len(files) >= 12
    for path in files:
        for scale in ("quick", "full"):
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


def test_timeout_ends_the_whole_session(project):
    pid_file = project / "pid"
    script = f"trap '' TERM; (trap '' TERM; echo $$ > {pid_file}; exec sleep 60) & wait; sleep 60"
    old, execute.GRACE_S = execute.GRACE_S, 0.3
    begin = time.monotonic()
    try:
        process = subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True)
        time.sleep(0.3)
        members = execute._session_members(process.pid)
        execute.stop(process, 0.3)
    finally:
        execute.GRACE_S = old
    assert members and time.monotonic() - begin < 5
    for pid in members:
        assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    late = execute.execute(a_run(project, "echo slow >&2; sleep 60", timeout_s=0.3), 0, place_in(project))
    assert late["status"] == "timeout" and late["exit"] is None and "slow" in late["stderr"]
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
    assert words[1:7] == ["64MiB", "--swap", "128MiB", "--swap-dir", str(project / "data"), "--"] and words[0].endswith("limit-memory")


def test_interrupted_runner_goes_on(project):
    """SIGTERM in the middle of a run: exit 5, no data left, that run is not recorded, the earlier ones are."""
    (project / "fake.sh").write_text(FAKE.replace('[ "$3" = mmap ]', '[ "$3" = mmap ] && [ -z "$FAST" ] && sleep 60; [ "$3" = mmap ]'))
    code = (
        "import sys; sys.path.insert(0, %r); from runner import cli, execute, host; from pathlib import Path\n"
        "cli.ROOT = Path(%r); host.is_memory = lambda p: False; execute.drop_caches = lambda: False\n"
        "sys.exit(cli.main([%r, '--repeats', '1', '--memext', '/bin/sh', '--data', %r, '--results', %r]))"
        % (str(ROOT / "experiments"), str(project), str(project / "probe.toml"), str(project / "data"), str(project / "results"))
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while (not (project / "log").exists() or (project / "log").read_text() != "aio\nmmap\n") and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 5 and "goes on" in process.stderr.read()
    assert [r["id"] for r in runs_of(project)] == ["aio-s"]
    assert not list((project / "data").iterdir())
    again = subprocess.run([sys.executable, "-c", code], env={**os.environ, "FAST": "1"}, capture_output=True, text=True)
    assert again.returncode == 0 and "3 runs, 1 are there already" in again.stderr
    assert [r["id"] for r in runs_of(project)] == ["aio-s", "mmap-s", "aio-m", "mmap-m"]


# ------------------------------------------------------------------ settings


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "bytes").write_text("0")
    (tmp_path / "ratio").write_text("20\n")
    (tmp_path / "ahead").write_text("128\n")
    files = {"vm.dirty_bytes": str(tmp_path / "bytes"), "read_ahead_kb": str(tmp_path / "{device}")}
    return tmp_path, files, {"vm.dirty_bytes": str(tmp_path / "ratio")}


def test_settings_hold_inside_and_come_back(settings):
    folder, files, partners = settings
    journal = folder / "journal"
    with pytest.raises(RuntimeError, match="boom"):
        with knobs.applied({"read_ahead_kb": "0"}, "ahead", journal, files, partners):
            assert (folder / "ahead").read_text() == "0" and journal.exists()
            raise RuntimeError("boom")
    assert (folder / "ahead").read_text() == "128" and not journal.exists()


def test_the_ratio_comes_back_where_the_ratio_counted(settings):
    folder, files, partners = settings
    with knobs.applied({"vm.dirty_bytes": "1048576"}, "", folder / "journal", files, partners):
        (folder / "ratio").write_text("0")  # as the kernel does
        assert (folder / "bytes").read_text() == "1048576"
    assert (folder / "ratio").read_text() == "20"


def test_a_journal_left_by_a_killed_runner_is_put_back(settings):
    folder, files, partners = settings
    journal = folder / "journal"
    journal.write_text(json.dumps([[str(folder / "ahead"), "128"]]))
    (folder / "ahead").write_text("4")
    assert knobs.restore(journal) == [[str(folder / "ahead"), "128"]]
    assert (folder / "ahead").read_text() == "128" and not journal.exists()


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
