"""experiments/limit-memory on a real cgroup: the limit holds, the status is passed on, nothing stays behind."""
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from conftest import IS_ROOT, LIMIT_MEMORY, needs_root

PYTHON = "/usr/bin/python3"
MIB = 2**20
TOUCH = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler can miss one just before it sleeps
block = bytearray({mib} << 20)
block[::4096] = b"x" * (({mib} << 20) // 4096)
print("ready", flush=True)
time.sleep({seconds})
"""


def limited(*arguments, **options):
    return subprocess.run([LIMIT_MEMORY, *arguments], capture_output=True, text=True, timeout=120, **options)


def touch(mib, seconds=0):
    return ["--", PYTHON, "-c", TOUCH.format(mib=mib, seconds=seconds)]


def left_behind(pid=""):
    """Cgroups and swap files of limit-memory (of the process pid)."""
    cgroups = [path for path, _, _ in os.walk("/sys/fs/cgroup") if path.endswith(f"memext-limit-{pid}")]
    swaps = re.findall(rf"\S*memext-swap-{pid}\b\S*", pathlib.Path("/proc/swaps").read_text())
    return cgroups + swaps


@pytest.fixture(autouse=True)
def can_limit():
    if not IS_ROOT:
        pytest.skip("memory cgroups need root")
    probe = subprocess.run([LIMIT_MEMORY, "64MiB", "--keep-cache", "--", "true"], capture_output=True, text=True)
    if probe.returncode:
        pytest.skip(probe.stderr.strip())


def test_what_exceeds_the_limit_is_killed():
    """limit < touched and no swap => SIGKILL, status 128 + 9."""
    done = limited("64MiB", "--keep-cache", *touch(128))
    assert done.returncode == 137 and "out of memory" in done.stderr and "64 MiB" in done.stderr


def test_what_fits_runs():
    assert limited("128MiB", "--keep-cache", *touch(32)).returncode == 0


def test_swap_takes_what_exceeds_the_limit(place):
    """limit < touched < limit + swap => done, in swap; touched > limit + swap => killed. No file stays."""
    script = TOUCH.format(mib=160, seconds=0) + "print(open('/proc/self/status').read())"
    command = ["--keep-cache", "--swap", "192MiB", "--swap-dir", place, "--", PYTHON, "-c"]
    done = limited("64MiB", *command, script)
    assert done.returncode == 0, done.stderr
    swapped, resident = (int(re.search(rf"{key}:\s+(\d+)", done.stdout).group(1)) for key in ("VmSwap", "VmRSS"))
    assert swapped >= 96 * 1024 and resident <= 80 * 1024  # RSS counts shared pages that others are charged for
    assert limited("64MiB", *command, TOUCH.format(mib=320, seconds=0)).returncode == 137
    assert list(place.iterdir()) == []


def test_page_cache_is_limited_too(place):
    """A file of 3 x limit, written and read, never has more than the limit of its pages resident."""
    script = f"""
import mmap, os
path = {str(place / 'file')!r}
with open(path, 'wb') as file:
    for _ in range(192): file.write(b'x' * {MIB})
    os.fsync(file.fileno())
with open(path, 'rb') as file:
    while file.read({MIB}): pass
"""
    done = limited("64MiB", "--keep-cache", "--", PYTHON, "-c", script)
    assert done.returncode == 0, done.stderr
    fincore = subprocess.run(["fincore", "--bytes", "--noheadings", "--output", "RES", place / "file"],
                             capture_output=True, text=True, check=True)
    assert 0 < int(fincore.stdout) <= 64 * MIB


def test_cached_files_are_dropped_first(place):
    """Without --keep-cache no page of a clean file is resident when the command starts."""
    (place / "file").write_bytes(b"x" * 8 * MIB)
    done = limited("64MiB", "--", "fincore", "--bytes", "--noheadings", "--output", "RES", place / "file")
    assert int(done.stdout) == 0


@pytest.mark.parametrize("script, status", [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)])
def test_exit_status_is_the_commands(script, status):
    assert limited("64MiB", "--keep-cache", "--", "sh", "-c", script).returncode == status


def test_commands_that_cannot_start():
    assert limited("64MiB", "--keep-cache", "--", "no-such-command").returncode == 127
    assert limited("64MiB", "--keep-cache", "--", "/etc/passwd").returncode == 126


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_after_a_signal(place, number):
    process = subprocess.Popen([LIMIT_MEMORY, "64MiB", "--keep-cache", "--swap", "128MiB", "--swap-dir", place,
                                *touch(96, seconds=60)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    assert len(left_behind(process.pid)) == 2
    process.send_signal(number)
    process.communicate(timeout=240)  # swapoff brings everything back in, at the speed of a busy disk
    assert process.returncode == 128 + number
    assert left_behind(process.pid) == [] and list(place.iterdir()) == []


def test_signals_while_it_sets_up_leave_nothing(place):
    """Wherever in the first 400 ms the signal falls."""
    for delay_ms in range(0, 400, 80):
        process = subprocess.Popen([LIMIT_MEMORY, "64MiB", "--keep-cache", "--swap", "64MiB", "--swap-dir", place,
                                    "--", "sleep", "60"], stderr=subprocess.DEVNULL)
        time.sleep(delay_ms / 1000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) in (143, -signal.SIGTERM)
        assert left_behind(process.pid) == [] and list(place.iterdir()) == []


def test_the_second_signal_kills():
    """A command that ignores SIGTERM ends with the second one."""
    process = subprocess.Popen([LIMIT_MEMORY, "64MiB", "--keep-cache", "--", "sh", "-c",
                                "trap '' TERM; echo ready; while :; do sleep 0.1; done"], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    time.sleep(0.3)
    assert process.poll() is None
    process.terminate()
    assert process.wait(timeout=30) == 137 and left_behind(process.pid) == []


def test_what_the_command_left_running_ends():
    process = subprocess.run([LIMIT_MEMORY, "64MiB", "--keep-cache", "--", "sh", "-c",
                              "setsid sleep 100 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, timeout=30)
    status = pathlib.Path(f"/proc/{process.stdout.strip()}/status")
    assert process.returncode == 0
    assert not status.exists() or "State:\tZ" in status.read_text()  # ended; init may reap it later


def test_what_a_killed_one_left_is_cleared_by_the_next(place):
    process = subprocess.Popen([LIMIT_MEMORY, "64MiB", "--keep-cache", "--swap", "64MiB", "--swap-dir", place,
                                *touch(1, seconds=60)], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.kill()
    process.wait()
    assert len(left_behind(process.pid)) == 2
    assert limited("64MiB", "--keep-cache", "--swap", "1MiB", "--swap-dir", place, "--", "true").returncode == 0
    assert left_behind(process.pid) == [] and list(place.iterdir()) == []


def test_limits_nest():
    """An outer limit holds inside a wider inner one."""
    done = limited("64MiB", "--keep-cache", "--", LIMIT_MEMORY, "1GiB", "--keep-cache", *touch(128))
    assert done.returncode == 137


@pytest.mark.parametrize("arguments, naming", [
    (["12", "--", "true"], "12 bytes"),
    (["many", "--", "true"], "'many'"),
    (["64MiB"], "no command"),
    (["64MiB", "--keep-cache", "--swap", "64MiB", "--swap-dir", "/nowhere", "--", "true"], "/nowhere"),
    (["64MiB", "--keep-cache", "--swap", "64MiB", "--swap-dir", "/dev/shm", "--", "true"], "tmpfs"),
    (["64MiB", "--keep-cache", "--swap", "900TiB", "--swap-dir", "/var/tmp", "--", "true"], "MiB free"),
])
def test_refusals_name_the_value(arguments, naming):
    done = limited(*arguments)
    assert done.returncode == 2 and naming in done.stderr


@needs_root
def test_without_root_it_says_so():
    done = limited("64MiB", "--keep-cache", "--", "true", user=65534)
    assert done.returncode == 2 and "root is needed" in done.stderr
