# SPDX-License-Identifier: BSD-3-Clause
"""The experiment runner: settings of the kernel, --no-system, and where results come from."""
import io
import json
import re
import subprocess
from pathlib import Path

import pytest
from runner import cli, execute, host, knobs, plan, record, registry, removing
from runner_project import FAKE, PLAN, SETTING, a_run, finish, left, place_in, project, runs_of  # noqa: F401 (fixtures)

pytestmark = pytest.mark.machine


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
    assert done.returncode == 0 and "with --no-system this changes only files on this machine" in done.stderr and "2 of 6 runs were skipped" in done.stderr
    assert {i for i, r in runs.items() if r["status"] == "done"} == {"aio-s", "mmap-s", "aio-m", "mmap-m"} and "failed" not in done.stderr
    assert runs["limited"]["status"] == runs["set"]["status"] == "skipped"
    assert "memory limit of 64MiB and a swap file of 16MiB" in runs["limited"]["stderr"] and "vm.page-cluster" in runs["set"]["stderr"]
    assert SETTING.read_text() == before and left(project) == []
    assert "0 runs; 6 more are recorded already" in finish(project, "--no-system").stderr
    store, runs = record.Store(project / "results" / "probe"), plan.load(project / "probe.toml", "quick").runs
    assert len(cli.work_list(plan.load(project / "probe.toml", "quick"), store, host.program_id(Path("/bin/sh")), 1)) == len(runs) == 6


def test_runs_that_are_left_undone_are_told_by_the_exit_status(project):
    """No run fits into no time. Without --minutes all are done, and the status is 0."""
    (project / "fake.sh").write_text(FAKE.replace('[ "$3" = mmap ]', "false"))
    done = finish(project, "--no-system", "--minutes", "0")
    assert done.returncode == cli.OUT_OF_TIME and "4 of 4 runs did not fit into --minutes 0;" in done.stderr and not (project / "log").exists()
    assert finish(project, "--no-system").returncode == 0


def test_one_line_says_what_is_changed(project):
    (project / "probe.toml").write_text(NEEDING)
    said = cli.announcement([plan.load(project / "probe.toml", "quick")], project / "data", project / "results", False)
    for text in ("page cache", "cgroups", f"swap files in {project / 'data'}", "vm.page-cluster", str(project / "results"), "--no-system"):
        assert text in said
    assert "\n" not in said


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


def test_what_has_the_value_already_is_not_written(settings):
    """The state of DAMON refuses the value that it has."""
    folder, files, partners, owner = settings
    (folder / "ahead").chmod(0o444)
    stamp = (folder / "ahead").stat().st_mtime_ns
    with knobs.applied({"read_ahead_kb": "128"}, "ahead", owner, files, partners):
        assert recorded(folder) == [] and (folder / "ahead").stat().st_mtime_ns == stamp


DIRTY = {"vm.dirty_background_bytes": "8192", "vm.dirty_bytes": "16384"}


def test_dirty_bytes_are_limits_of_cgroup_v1(project, monkeypatch):
    """With cgroup v2 they would be a share of the machine's memory: an arm leaves them out, and a run that asks for them itself is skipped. Without a limit they mean what they say."""
    arm = {"vm.swappiness": "60", **DIRTY}
    assert knobs.usual_of(arm, "64MiB", "v1") == knobs.usual_of(arm, "", "v2") == arm and knobs.usual_of(arm, "64MiB", "v2") == {"vm.swappiness": "60"}
    knobs.check_own(DIRTY, "64MiB", "v1"), knobs.check_own(DIRTY, "", "v2"), knobs.check_own({"vm.swappiness": "1"}, "64MiB", "v2")
    monkeypatch.setattr(execute.host, "cgroup_version", lambda: "v2")
    found = execute.execute(a_run(project, "true", limit="64MiB", knobs=DIRTY), 0, place_in(project))
    assert found["status"] == "skipped" and "share of the whole machine's memory" in found["stderr"] and "64MiB" in found["stderr"]


def test_every_setting_can_be_put_back():
    """The record of a killed runner names files; only those of settings are written."""
    places = [path.format(device="vda") for path in (*knobs.FILES.values(), *knobs.PARTNERS.values())]
    assert [path for path in places if not any(re.fullmatch(place, path) for place in removing.SETTING_PLACES)] == []


def test_a_pause_follows_what_was_held_in_dram():
    """In proportion to it, at most 25 s; none behind a memory limit or a small run."""
    free, limited = plan.Run("p", "a", (), {}), plan.Run("p", "a", (), {}, limit="64MiB")
    held = lambda size: {"report": {"peak_rss_bytes": size}}  # noqa: E731
    assert cli.settle_s(free, held(8 << 30)) == cli.settle_s(free, held(64 << 30)) == 25 and cli.settle_s(free, held(2 << 30)) == 6.25
    assert cli.settle_s(limited, held(8 << 30)) == cli.settle_s(free, held(100 << 20)) == cli.settle_s(free, {"report": None}) == 0


def test_damon_tells_what_it_took(tmp_path):
    """Of kdamonds that are on; asked for by a word to its state."""
    for number, state, took in ((0, "on", (4096, 8192)), (1, "off", (9,))):
        for scheme, size in enumerate(took):
            stats = tmp_path / str(number) / "contexts" / "0" / "schemes" / str(scheme) / "stats"
            stats.mkdir(parents=True)
            (stats / "sz_applied").write_text(f"{size}\n")
        (tmp_path / str(number) / "state").write_text(state)
    assert host.damon_took_bytes(tmp_path) == 12288 and (tmp_path / "0" / "state").read_text() == "update_schemes_stats"
    assert host.damon_took_bytes(tmp_path) is None and host.damon_took_bytes(tmp_path / "none") is None


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
