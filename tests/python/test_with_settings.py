# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F811 - fixtures of other files
"""experiments/with-settings: the setting holds while the command runs, the status comes back, and the machine is as it was, also after kill -9."""
import signal
import subprocess

import pytest
from runner_project import ROOT, SETTING, ended, left, limit_memory, needs_root, project, wait_for  # noqa: F401 (fixtures)

pytestmark = pytest.mark.machine

PROGRAM = str(ROOT / "experiments" / "with-settings")


def words_of(*words):
    return [PROGRAM, *map(str, words)]


def with_settings(*words):
    return subprocess.run(words_of(*words), check=False, capture_output=True, text=True, timeout=600)


@pytest.fixture
def wanted():
    """A value that the setting does not have; the test ends with the one that it had."""
    before = SETTING.read_text().strip()
    yield "1" if before != "1" else "2"
    assert SETTING.read_text().strip() == before


def setting(value):
    return f"vm.page-cluster={value}"


@pytest.mark.parametrize("words, says", [
    (("/", "vm.page-cluster", "--", "true"), "'vm.page-cluster' is not of the form NAME=VALUE; write for instance read_ahead_kb=128"),
    (("/", "vm.nonsense=1", "--", "true"), "setting 'vm.nonsense' is not known"),
    (("/proc", "read_ahead_kb=128", "--", "true"), "/proc is not on a block device"),
    (("/absent", "read_ahead_kb=128", "--", "true"), "/absent: No such file"),
    (("/", "vm.page-cluster=1"), "usage"),
    (("/", "--", "true"), "usage"),
])  # fmt: skip
def test_refusals(project, words, says):
    done = with_settings(*words)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr


@needs_root
def test_the_setting_holds_while_the_command_runs(project, wanted):
    """Inside it has the value, the second form says the same; the exit status passes through; one line says what is changed, and --quiet leaves it out."""
    before = SETTING.read_text().strip()
    done = with_settings("/", setting(wanted), "--", "sh", "-c", f"cat {SETTING}; {PROGRAM} / vm.page-cluster; exit 7")
    assert (done.returncode, done.stdout.split()) == (7, [wanted, wanted]), done.stderr
    assert done.stderr.count("\n") == 1 and setting(wanted) in done.stderr
    assert with_settings("/", "vm.page-cluster").stdout.strip() == before and left(project) == []
    assert with_settings("/", setting(wanted), "--quiet", "--", "sh", "-c", "kill -9 $$").returncode == 137
    done = with_settings("/", setting(wanted), "--quiet", "--", "no-such-command")
    assert done.returncode == 127 and "changes these settings" not in done.stderr and left(project) == []


@needs_root
def test_the_read_ahead_is_that_of_the_disk_under_the_directory(project, mounted):
    folder, _ = mounted(2**24)
    before = with_settings(folder, "read_ahead_kb").stdout.strip()
    wanted = "64" if before != "64" else "32"
    done = with_settings(folder, f"read_ahead_kb={wanted}", "--quiet", "--", PROGRAM, folder, "read_ahead_kb")
    assert (done.returncode, done.stdout.strip()) == (0, wanted), done.stderr
    assert with_settings(folder, "read_ahead_kb").stdout.strip() == before


@needs_root
def test_a_value_that_the_kernel_refuses_runs_nothing(project, wanted):
    done = with_settings("/", setting("many"), "--", "touch", project / "ran")
    assert done.returncode == 2 and "Linux refused vm.page-cluster = many" in done.stderr and not (project / "ran").exists()
    assert left(project) == []


def waiting(project, wanted, script):
    """with-settings around a command that has begun; it writes its pid into `pid` first."""
    process = subprocess.Popen(words_of("/", setting(wanted), "--", "sh", "-c", f"echo $$ > {project}/new; mv {project}/new {project}/pid; {script}"), stderr=subprocess.PIPE, text=True)
    wait_for((project / "pid").exists, process)
    assert SETTING.read_text().strip() == wanted
    return process


@needs_root
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_passed_on(project, wanted, number):
    """The command decides what its end is, and the setting is put back after it."""
    process = waiting(project, wanted, "trap 'exit 5' TERM INT HUP; touch trapped; while :; do sleep 0.1; done".replace("trapped", f"{project}/trapped"))
    wait_for((project / "trapped").exists, process)
    process.send_signal(number)
    assert process.wait(600) == 5 and left(project) == []


@needs_root
def test_after_a_kill_the_next_start_puts_it_back(project, wanted):
    """Of any program that keeps records; the command does not go on without its settings."""
    process = waiting(project, wanted, "exec sleep 1000")
    process.kill()
    process.communicate()
    wait_for(lambda: ended(int((project / "pid").read_text())))
    assert SETTING.read_text().strip() == wanted
    assert limit_memory().returncode == 0 and left(project) == []


@needs_root
def test_a_second_one_waits(project, wanted):
    """It would take the value of the first for the machine's own. With --no-wait it ends at once."""
    before = SETTING.read_text().strip()
    first = waiting(project, wanted, "exec sleep 1000")
    refused = with_settings("/", setting(0), "--no-wait", "--", "true")
    assert refused.returncode == 2 and "another program that changes settings" in refused.stderr and SETTING.read_text().strip() == wanted
    second = subprocess.Popen(words_of("/", setting(wanted), "--quiet", "--", "cat", SETTING), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "waiting for another program" in second.stderr.readline()
    first.send_signal(signal.SIGTERM)
    assert first.wait(600) == 128 + signal.SIGTERM
    assert second.communicate(timeout=600)[0].strip() == wanted and second.returncode == 0
    assert SETTING.read_text().strip() == before and left(project) == []
