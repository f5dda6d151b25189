# SPDX-License-Identifier: BSD-3-Clause
"""experiments/limit-bandwidth: the command runs in a cgroup with the limit, its status comes back, nothing stays. No test measures a rate."""
import os
import subprocess

import pytest
from conftest import ROOT, needs_root

pytestmark = pytest.mark.machine

PROGRAM = ROOT / "experiments" / "limit-bandwidth"
V1 = "/sys/fs/cgroup/blkio"


def run(*words, state):
    return subprocess.run([str(w) for w in (PROGRAM, *words)], capture_output=True, text=True, timeout=600, env={**os.environ, "MEMEXT_STATE": str(state)})


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


@pytest.mark.parametrize("words, says", [(("fast", "/tmp", "--", "true"), "a rate of 'fast'"), (("0", "/tmp", "--", "true"), "a rate of '0'"), (("1MiB", "/proc", "--", "true"), "/proc is not on a block device"), (("1MiB", "/tmp"), "usage")])
def test_refusals(state, words, says):
    done = run(*words, state=state)
    assert done.returncode == 2 and says in done.stderr


@needs_root
def test_the_limit_holds_while_the_command_runs(place, state):
    """Inside, the kernel names the device with the rate for both directions; the exit status passes through; the cgroup is gone afterwards, and so is the record."""
    if not os.path.isdir(V1):
        pytest.skip("no cgroup v1 controller of block devices here")
    show = f"cd {V1}$(sed -n 's/.*[:,]blkio[^:]*://p' /proc/self/cgroup); pwd; cat blkio.throttle.read_bps_device blkio.throttle.write_bps_device; exit 7"
    done = run("250MiB", place, "--", "sh", "-c", show, state=state)
    folder, *limits = done.stdout.splitlines()
    assert done.returncode == 7, done.stderr
    assert "memext-limit-" in folder and len(limits) == 2 and all(line.split()[1] == str(250 * 2**20) for line in limits)
    assert not os.path.exists(folder) and not list(state.glob("*.json"))


@needs_root
def test_a_killed_command_is_reported_as_a_shell_does(place, state):
    done = run("250MiB", place, "--", "sh", "-c", "kill -9 $$", state=state)
    if done.returncode == 2:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 137 and not list(state.glob("*.json"))
