# SPDX-License-Identifier: BSD-3-Clause
"""A project for the experiment runner, with /bin/sh in the place of memext."""
import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments"))

from runner import cli, execute, plan, record  # noqa: E402

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
    monkeypatch.setattr(execute.storage, "wait_for_discards", lambda device: 0.0)  # beside other tests the disk is never quiet
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


def a_run(project, script, timeout_s=5.0, **more):
    return plan.Run("probe", "x", ("/bin/sh", "-c", script), {}, timeout_s=timeout_s, **more)


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
    """Words that start run.py on the project's plan, and its environment. /proc/sys/vm/drop_caches is not written; nobody waits for a disk that is never quiet beside other tests."""
    code = (
        "import sys; sys.path.insert(0, %r); from runner import cli, execute, host; from pathlib import Path\n"
        "cli.ROOT = Path(%r); host.is_memory = lambda p: False; execute.drop_caches = lambda data: False\n"
        "execute.storage.wait_for_discards = lambda device: 0.0\n"
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


SETTING = Path("/proc/sys/vm/page-cluster")  # read-ahead of swap; nothing else depends on it
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="settings need root")


def limit_memory(**environment):
    return subprocess.run([ROOT / "experiments" / "limit-memory", "64MiB", "--keep-cache", "--", "true"], cwd="/", capture_output=True, text=True,
                          env={**os.environ, **environment})  # fmt: skip
