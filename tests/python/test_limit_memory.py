# SPDX-License-Identifier: BSD-3-Clause
"""experiments/limit-memory on a real cgroup: the limit holds, the status is passed on, nothing stays behind."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import IS_ROOT, LIMIT_MEMORY, ROOT, needs_root, wait_until

sys.path.insert(0, str(ROOT / "experiments"))

from runner import ownership, registry  # noqa: E402

pytestmark = pytest.mark.machine

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
    return subprocess.run([LIMIT_MEMORY, *arguments], capture_output=True, text=True, timeout=900, **options)


def touch(mib, seconds=0):
    return ["--", PYTHON, "-c", TOUCH.format(mib=mib, seconds=seconds)]


def left_behind(pid):
    """Cgroups and active swap files of the limit-memory that was process pid."""
    cgroups = [path for path, _, _ in os.walk("/sys/fs/cgroup") if f"/memext-limit-{pid}-" in path]
    swaps = re.findall(rf"\S*memext-swap-{pid}-\S*", pathlib.Path("/proc/swaps").read_text())
    return cgroups + swaps


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def ended(pid):
    try:
        return state_of(pid) in "ZX"  # init may reap it later
    except OSError:
        return True


def paused_at(where, *arguments):
    """A limit-memory that has come to this point of its work and stands still there."""
    process = subprocess.Popen([LIMIT_MEMORY, *arguments], env={**os.environ, "MEMEXT_PAUSE_AT": where}, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_until(lambda: state_of(process.pid) in "TZ", f"limit-memory pauses at '{where}'")
    assert state_of(process.pid) == "T", process.communicate()[1]
    return process


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """Records of its own; what a failing test leaves is cleared away."""
    folder = tmp_path / "state"
    monkeypatch.setenv("MEMEXT_STATE", str(folder))
    yield folder
    registry.sweep(print)


def records(state):
    return list(state.glob("*.json*"))


@pytest.fixture(autouse=True)
def can_limit(state):
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


needs_zram = pytest.mark.skipif(not IS_ROOT or not pathlib.Path("/sys/class/zram-control").exists(), reason="this kernel has no zram, or root is needed")


def zram_in_use():
    """Devices of compressed memory that somebody has set up."""
    return {path.parent.name for path in pathlib.Path("/sys/block").glob("zram*/disksize") if path.read_text().strip() != "0"}


@needs_zram
def test_compressed_memory_takes_what_exceeds_the_limit():
    """As with a swap file; how much memory it took is said, which is little for pages of zeros, and the device is free again."""
    before = zram_in_use()
    script = TOUCH.format(mib=160, seconds=0) + "print(open('/proc/self/status').read())"
    done = limited("64MiB", "--keep-cache", "--zram", "192MiB", "--", PYTHON, "-c", script)
    assert done.returncode == 0, done.stderr
    assert int(re.search(r"VmSwap:\s+(\d+)", done.stdout).group(1)) >= 96 * 1024
    assert float(re.search(r"at most ([\d.]+) MiB of memory", done.stderr).group(1)) < 64
    assert zram_in_use() <= before


@needs_zram
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("phase", ["zram recorded", "zram sized", "zram on"])
def test_compressed_memory_is_given_back(state, tmp_path, phase, number):
    """After a signal by the program itself, after kill -9 by the next start."""
    before = zram_in_use()
    process = paused_at(phase, "64MiB", "--keep-cache", "--zram", "64MiB", "--", "sleep", "1000")
    assert len(zram_in_use() - before) == (phase != "zram recorded")
    process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=600)
    if number == signal.SIGKILL:
        assert limited("32MiB", "--keep-cache", "--", "true", cwd=tmp_path).returncode == 0
    assert zram_in_use() <= before and records(state) == [] and left_behind(process.pid) == []


@needs_zram
def test_compressed_memory_of_others_is_left_alone(state):
    """What stands on the device is not ours by then: it stays, and is said."""
    process = paused_at("zram sized", "64MiB", "--keep-cache", "--zram", "64MiB", "--", "sleep", "1000")
    device = pathlib.Path(json.loads(records(state)[0].read_text())["made"][-1]["path"])
    process.kill()
    process.communicate()
    try:
        with open(device, "r+b") as file:
            file.write(b"somebody's data".ljust(4096))
        done = limited("32MiB", "--keep-cache", "--", "true")
        assert done.returncode == 0 and f"{device} is in use by another program" in done.stderr
        assert device.name in zram_in_use() and records(state) == []
    finally:
        pathlib.Path(f"/sys/block/{device.name}/reset").write_text("1")


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


def test_what_the_cgroup_counted(place):
    """--counts: its version, and of version 2 what it reclaimed; the command's status is passed on."""
    done = limited("64MiB", "--keep-cache", "--counts", place / "counts", "--", "sh", "-c", "exit 3")
    counted = json.loads((place / "counts").read_text())
    assert done.returncode == 3 and counted["version"] in ("v1", "v2") and (counted["version"] == "v1" or "pgscan_direct" in counted)


def test_throttling_below_the_limit(place):
    """--high: memory.high of version 2 is set; version 1 has none, which is status 77 and a sentence, and nothing stays."""
    command = "cat $(sed -n 's,^0::,/sys/fs/cgroup,p' /proc/self/cgroup)/memory.high"
    done = limited("64MiB", "--keep-cache", "--counts", place / "counts", "--high", "32MiB", "--", "sh", "-c", command)
    if done.returncode == 0:
        assert int(done.stdout) == 32 * MIB
    else:
        assert done.returncode == 77 and "--high needs cgroup v2" in done.stderr and not (place / "counts").exists()


def test_commands_that_cannot_start():
    assert limited("64MiB", "--keep-cache", "--", "no-such-command").returncode == 127
    assert limited("64MiB", "--keep-cache", "--", "/etc/passwd").returncode == 126


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_after_a_signal(place, number):
    process = subprocess.Popen([LIMIT_MEMORY, "64MiB", "--keep-cache", "--swap", "128MiB", "--swap-dir", place,
                                *touch(96, seconds=3600)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    assert len(left_behind(process.pid)) == 2
    process.send_signal(number)
    process.communicate(timeout=900)  # swapoff brings everything back in, at the speed of a busy disk
    assert process.returncode == 128 + number
    assert left_behind(process.pid) == [] and list(place.iterdir()) == []


PHASES = {  # what is there when it stands still: cgroups and active swap files, files in the place
    "recorded": (0, 0),
    "cgroup made": (1, 0),
    "swap file made": (1, 1),
    "swap on": (2, 1),
    "set up": (2, 1),
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("phase", PHASES)
def test_signals_while_it_sets_up_leave_nothing(place, state, phase, number):
    process = paused_at(phase, "64MiB", "--keep-cache", "--swap", "64MiB", "--swap-dir", place, "--", "sleep", "1000")
    process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=900)
    assert process.returncode == 128 + number
    assert left_behind(process.pid) == [] and list(place.iterdir()) == [] and records(state) == []


def test_the_second_signal_kills():
    """A command that ignores SIGTERM ends with the second one."""
    process = subprocess.Popen([LIMIT_MEMORY, "64MiB", "--keep-cache", "--", "sh", "-c",
                                "trap 'echo ignored' TERM; sleep 1000 & echo ready; while :; do wait $!; done"],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.stdout.readline() == "ignored\n" and process.poll() is None
    process.terminate()
    assert process.wait(timeout=900) == 137 and left_behind(process.pid) == []


def test_what_the_command_left_running_ends():
    process = subprocess.run([LIMIT_MEMORY, "64MiB", "--keep-cache", "--", "sh", "-c",
                              "setsid sleep 100 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, timeout=900)
    status = pathlib.Path(f"/proc/{process.stdout.strip()}/status")
    assert process.returncode == 0
    assert not status.exists() or "State:\tZ" in status.read_text()  # ended; init may reap it later


@pytest.fixture(params=[False, True], ids=["same boot", "after a reboot"])
def another_start(request, tmp_path):
    """The next start, which has nothing in common with the one before."""
    def start():
        reboot = {"MEMEXT_BOOT_ID": "another"} if request.param else {}
        return limited("32MiB", "--keep-cache", "--", "true", cwd=tmp_path, env={**os.environ, **reboot})

    return start


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.each_value
def test_what_a_killed_one_left_is_cleared_by_the_next(place, state, another_start, phase):
    """kill -9 at every point; the next start, with other arguments and elsewhere, leaves no cgroup, no active swap, no file, no record."""
    process = paused_at(phase, "64MiB", "--keep-cache", "--swap", "64MiB", "--swap-dir", place, "--", "sleep", "1000")
    process.kill()
    process.wait()
    assert (len(left_behind(process.pid)), len(list(place.iterdir()))) == PHASES[phase] and len(records(state)) == 1
    done = another_start()
    assert done.returncode == 0, done.stderr
    assert left_behind(process.pid) == [] and list(place.iterdir()) == [] and records(state) == []


def test_one_killed_while_its_command_runs(place, state, another_start):
    """Also what the command has started, which outlives the kill, ends: it is in our cgroup. What is elsewhere does not."""
    bystander = subprocess.Popen(["sleep", "1000"])
    process = subprocess.Popen([LIMIT_MEMORY, "64MiB", "--keep-cache", "--swap", "64MiB", "--swap-dir", place, "--", "sh", "-c",
                                "setsid sleep 1000 >/dev/null 2>&1 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    escaped = int(process.stdout.readline())
    process.kill()
    process.wait()
    assert not ended(escaped)
    assert another_start().returncode == 0
    assert ended(escaped) and not ended(bystander.pid)
    assert left_behind(process.pid) == [] and list(place.iterdir()) == [] and records(state) == []
    bystander.kill()
    bystander.wait()


def test_a_nested_one_is_cleared_too(state):
    """Killed outside, with another limit-memory inside: both cgroups go, with what runs in the inner one."""
    process = subprocess.Popen([LIMIT_MEMORY, "64MiB", "--keep-cache", "--", LIMIT_MEMORY, "32MiB", "--keep-cache", "--", "sh", "-c",
                                "setsid sleep 1000 >/dev/null 2>&1 & echo $PPID $!; wait"], stdout=subprocess.PIPE, text=True)
    inner, escaped = map(int, process.stdout.readline().split())
    process.kill()
    process.wait()
    wait_until(lambda: ended(inner), "the inner limit-memory ends")
    assert len(records(state)) == 2
    assert limited("64MiB", "--keep-cache", "--", "true").returncode == 0
    assert ended(escaped) and left_behind(process.pid) == [] and left_behind(inner) == [] and records(state) == []


@pytest.mark.parametrize("killed", [True, False])
def test_cgroups_that_the_command_made_go_too(state, killed):
    """A cgroup in ours that no record names, with a process that outlives the command."""
    process = subprocess.Popen([LIMIT_MEMORY, "64MiB", "--keep-cache", "--", "sh", "-c",
                                "setsid sleep 1000 >/dev/null 2>&1 & echo $!; read line"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    escaped = int(process.stdout.readline())
    inner = pathlib.Path(left_behind(process.pid)[0], "inner")
    inner.mkdir()
    (inner / "cgroup.procs").write_text(str(escaped))
    if killed:
        process.kill()
    process.communicate("go on\n")
    assert process.returncode == (-signal.SIGKILL if killed else 0)
    assert limited("64MiB", "--keep-cache", "--", "true").returncode == 0
    assert ended(escaped) and left_behind(process.pid) == [] and records(state) == []


def test_a_living_one_is_left_alone(place, state, another_start):
    process = paused_at("set up", "64MiB", "--keep-cache", "--swap", "64MiB", "--swap-dir", place, "--", "cat", "/proc/swaps")
    assert another_start().returncode == 0
    assert len(left_behind(process.pid)) == 2 and len(records(state)) == 1
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=900)
    assert process.returncode == 0 and str(place) in out, err
    assert left_behind(process.pid) == [] and records(state) == []


# ------------------------------------------------------------------ what the registry names, and nothing else


def record_of(state, pid, start, locked=True, **more):
    """(id, function that adds entries) of a record as a killed process would have left it."""
    state.mkdir(mode=0o700, exist_ok=True)
    name = f"{pid}-{start}-0123abcd"
    record = {"registry": 1, "id": name, "program": "limit-memory", "pid": pid, "start": start, "boot": ownership.boot_id(),
              "pid_ns": ownership.pid_namespace(), "locked": locked, "made": [], **more}  # fmt: skip

    def add(*entries):
        record["made"] += entries
        (state / f"{name}.json").write_text(json.dumps(record))

    return name, add


def test_a_pid_used_again_is_another_process(place, state):
    """The pid lives, the start time is another: swept. Pid and start time live, without a lock (a script's record): left alone."""
    name, add = record_of(state, os.getpid(), 1)
    (place / f"run-{name}-1").mkdir()
    add({"kind": "directory", "path": str(place / f"run-{name}-1"), "mount": "/"})
    kept, add = record_of(state, os.getpid(), ownership.start_ticks(os.getpid()), locked=False)
    (place / f"run-{kept}-1").mkdir()
    add({"kind": "directory", "path": str(place / f"run-{kept}-1"), "mount": "/"})
    assert limited("64MiB", "--keep-cache", "--", "true").returncode == 0
    assert [path.name for path in place.iterdir()] == [f"run-{kept}-1"] and [path.stem for path in records(state)] == [kept]


@pytest.mark.parametrize("locked", [True, False])
def test_pids_of_another_namespace_mean_nothing_here(place, state, locked):
    """There the lock alone tells: a record that has one and is not locked is swept, one without is left alone in this boot."""
    name, add = record_of(state, os.getpid(), ownership.start_ticks(os.getpid()), locked=locked, pid_ns="pid:[1]")
    (place / f"run-{name}-1").mkdir()
    add({"kind": "directory", "path": str(place / f"run-{name}-1"), "mount": "/"})
    assert limited("64MiB", "--keep-cache", "--", "true").returncode == 0
    assert len(list(place.iterdir())) == len(records(state)) == (0 if locked else 1)


def test_what_is_not_ours_is_left_alone(place, state):
    """Whatever a record says: another name, a link, a hard link, a foreign owner, a way through a link, a file that is no setting."""
    name, add = record_of(state, 1, 1)
    precious = place / "precious"
    precious.mkdir()
    (precious / "data").write_text("x")
    (precious / f"run-{name}-3").mkdir()
    (place / f"run-{name}-1").symlink_to(precious)
    (place / f"run-{name}-2").mkdir()
    os.chown(place / f"run-{name}-2", 65534, 65534)
    (place / "way").symlink_to(precious)
    os.link(precious / "data", place / f"memext-swap-{name}")
    paths = [("directory", precious), ("directory", place / f"run-{name}-1"), ("directory", place / f"run-{name}-2"),
             ("directory", place / "way" / f"run-{name}-3"), ("swap", precious / "data"), ("swap", place / f"memext-swap-{name}"),
             ("cgroup", precious), ("cgroup", place / f"memext-limit-{name}")]  # fmt: skip
    (place / f"memext-limit-{name}").mkdir()
    add(*({"kind": kind, "path": str(path), "mount": "/"} for kind, path in paths), {"kind": "setting", "path": str(precious / "data"), "value": "0"})
    before = sorted(str(path) for path in place.rglob("*"))
    done = limited("64MiB", "--keep-cache", "--", "true")
    assert done.returncode == 0 and done.stderr.count("left alone") == 9, done.stderr
    assert sorted(str(path) for path in place.rglob("*")) == before and (precious / "data").read_text() == "x"
    assert records(state) == []


def test_what_is_not_mounted_now_is_remembered(place, state, tmp_path):
    """After a reboot a disk may come later: its record waits for it, and is silent meanwhile."""
    name, add = record_of(state, 1, 1, boot="another")
    absent = tmp_path / "disk"
    absent.mkdir()
    add({"kind": "swap", "path": str(absent / f"memext-swap-{name}"), "mount": str(absent)})
    done = limited("64MiB", "--keep-cache", "--quiet", "--", "true")
    assert done.stderr == "" and len(records(state)) == 1
    subprocess.run(["mount", "--bind", place, absent], check=True)
    try:
        (absent / f"memext-swap-{name}").write_bytes(b"")
        assert limited("64MiB", "--keep-cache", "--", "true").returncode == 0
        assert list(place.iterdir()) == [] and records(state) == []
    finally:
        subprocess.run(["umount", absent], check=True)


def test_a_half_written_record_goes(state):
    (state / "1-1-0123abcd.json.new").write_text('{"regis')
    assert limited("64MiB", "--keep-cache", "--", "true").returncode == 0 and records(state) == []


def test_a_state_directory_that_others_may_write_to_is_refused(state):
    state.chmod(0o777)
    done = limited("64MiB", "--keep-cache", "--", "true")
    state.chmod(0o700)
    assert done.returncode == 2 and str(state) in done.stderr


# ------------------------------------------------------------------ what it says


def test_one_line_says_what_is_changed(place):
    done = limited("64MiB", "--swap", "32MiB", "--swap-dir", place, "--", "true")
    assert len(done.stderr.splitlines()) == 1
    for text in ("cgroup with a memory limit of 64 MiB", f"swap file of 32 MiB in {place}", "page cache", "--no-system"):
        assert text in done.stderr
    assert limited("64MiB", "--keep-cache", "--quiet", "--", "true").stderr == ""


def test_no_system_changes_nothing(place, state):
    """The command runs where its caller does, without swap, a cached file stays cached, what others left stays, no record is written."""
    with open(place / "file", "wb") as file:
        file.write(b"x" * 8 * MIB)
        os.fsync(file.fileno())
    shown = f"cat /proc/self/cgroup; grep {place} /proc/swaps; fincore --bytes --noheadings --output RES {place}/file; exit 7"
    plain = subprocess.run(["sh", "-c", shown], capture_output=True, text=True)
    shutil.rmtree(state)  # of the probe above
    done = limited("64MiB", "--no-system", "--swap", "64MiB", "--swap-dir", place, "--", "sh", "-c", shown)
    assert (done.stdout, done.returncode) == (plain.stdout, 7) and done.stdout.split()[-1] == str(8 * MIB)
    assert len(done.stderr.splitlines()) == 1 and "without a limit" in done.stderr
    assert not state.exists() and [path.name for path in place.iterdir()] == ["file"]
    assert limited("64MiB", "--no-system", "--", "no-such-command").returncode == 127


def test_limits_nest():
    """An outer limit holds inside a wider inner one."""
    done = limited("64MiB", "--keep-cache", "--", LIMIT_MEMORY, "1GiB", "--keep-cache", *touch(128))
    assert done.returncode == 137


@pytest.mark.parametrize("arguments, naming", [
    (["12", "--", "true"], "12 bytes"),
    (["many", "--", "true"], "'many'"),
    (["64MiB"], "no command"),
    (["64MiB", "--swap", "64MiB", "--zram", "64MiB", "--", "true"], "--zram"),
    (["64MiB", "--keep-cache", "--swap", "64MiB", "--swap-dir", "/nowhere", "--", "true"], "/nowhere"),
    (["64MiB", "--keep-cache", "--swap", "64MiB", "--swap-dir", "/dev/shm", "--", "true"], "tmpfs"),
    (["64MiB", "--keep-cache", "--swap", "900TiB", "--swap-dir", "/var/tmp", "--", "true"], "MiB free"),
])
def test_refusals_name_the_value(arguments, naming):
    done = limited(*arguments)
    assert done.returncode == 2 and naming in done.stderr


@needs_root
def test_without_root_it_says_so(open_place):
    shutil.copy(LIMIT_MEMORY, open_place)
    shutil.copytree(LIMIT_MEMORY.parent / "runner", open_place / "runner", ignore=shutil.ignore_patterns("__pycache__"))
    words = [open_place / LIMIT_MEMORY.name, "64MiB", "--keep-cache", "--", "true"]
    done = subprocess.run(words, capture_output=True, text=True, cwd="/", user=65534)
    assert done.returncode == 2 and "root is needed" in done.stderr
