# SPDX-License-Identifier: BSD-3-Clause
"""Runners that are interrupted or killed, and what the next start finds."""
import signal

import pytest
from runner_project import FAKE, SETTING, ended, finish, left, limit_memory, needs_root, project, runs_of, start, stopped, wait_for  # noqa: F401 (fixtures)

pytestmark = pytest.mark.machine


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_interrupted_runner_goes_on(project, number):
    """A signal in the middle of a run: exit 5, no data left, that run is not recorded, the earlier ones are. The next start runs the whole round, which is of one start."""
    (project / "fake.sh").write_text(FAKE.replace('[ "$3" = mmap ]', '[ "$3" = mmap ] && [ -z "$FAST" ] && sleep 1000; [ "$3" = mmap ]'))
    process = start(project)
    wait_for(lambda: (project / "log").exists() and (project / "log").read_text() == "aio\nmmap\n", process)
    process.send_signal(number)
    assert process.wait(60) == 5 and "start the same command again to continue" in process.stderr.read()
    (first,) = runs_of(project)
    assert first["id"].startswith("aio") and left(project) == []
    again = finish(project, FAST="1")
    assert again.returncode == 0 and "4 runs\n" in again.stderr
    assert sorted(r["id"] for r in runs_of(project)[1:]) == ["aio-m", "aio-s", "mmap-m", "mmap-s"]


CHANGING = """
name = "probe"
title = "a probe that changes a setting"
[scale.quick]
[[run]]
id = "only"
command = "/bin/sh {root}/fake.sh {json} {data}"
knobs = {"vm.page-cluster" = "%s"}
"""


@pytest.fixture
def changing(project):
    """(the project with a plan that changes SETTING and a command that does not end, the value before, the one that the plan wants)"""
    before = SETTING.read_text().strip()
    wanted = "1" if before != "1" else "2"
    (project / "probe.toml").write_text(CHANGING % wanted)
    (project / "fake.sh").write_text('[ -n "$FAST" ] && exec echo "{}" > "$1"; echo $$ > "$LOG"; exec sleep 1000')
    yield project, before, wanted
    SETTING.write_text(before)


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
