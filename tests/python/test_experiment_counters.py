# SPDX-License-Identifier: BSD-3-Clause
"""The experiment runner: what the kernel counted while a run lasted, runs that a machine cannot do, and file systems in files."""
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from runner import counters, execute, loopfs, plan, registry, removing, storage
from runner_project import PLAN, a_run, left, limit_memory, needs_root, place_in, project, start, stopped, wait_for  # noqa: F401 (fixtures)

pytestmark = pytest.mark.machine

STAT = "10 2 800 5 20 3 1600 7 0 9 12 0 0 0 0 4 4\n"
INTERRUPTS = """           CPU0       CPU1
 36:          7         30 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 37:          1          0 PCI-MSIX-0000:00:02.0   2-edge      virtio1-req.1
 38:        100          0 PCI-MSIX-0000:00:03.0   1-edge      virtio10-req.0
 39:        100          0 PCI-MSIX-0000:00:02.0   0-edge      virtio1-config
NMI:          5          5   Non-maskable interrupts
"""


@pytest.fixture
def kernel(tmp_path):
    """(sys, proc) of a machine with one virtio disk, vda."""
    sys, proc = tmp_path / "sys", tmp_path / "proc"
    (sys / "devices" / "virtio1").mkdir(parents=True)
    (sys / "block" / "vda").mkdir(parents=True)
    (sys / "block" / "vda" / "device").symlink_to(sys / "devices" / "virtio1")
    (sys / "block" / "vda" / "stat").write_text(STAT)
    (proc / "pressure").mkdir(parents=True)
    (proc / "interrupts").write_text(INTERRUPTS)
    (proc / "vmstat").write_text("pgscan_direct 5\nallocstall_normal 2\nallocstall_movable 1\nnr_free_pages 9\n")
    (proc / "pressure" / "memory").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=100\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=40\n")
    return sys, proc


def test_what_is_read_of_the_kernel(kernel):
    sys, proc = kernel
    found = counters.now("vda", sys, proc)
    assert found["block"] == {"reads": 10, "reads_merged": 2, "read_sectors": 800, "writes": 20, "writes_merged": 3, "write_sectors": 1600, "interrupts": 38}
    assert found["vmstat"] == {"pgscan_direct": 5, "allocstall_normal": 2, "allocstall_movable": 1}
    assert found["pressure"] == {"memory_some_us": 100, "memory_full_us": 40}


def test_what_the_kernel_does_not_count_is_left_out(kernel):
    """No device, no PSI, interrupts of an adapter that are not the device's: absent, never 0."""
    sys, proc = kernel
    assert counters.now("", sys, proc)["block"] == {} and counters.now("sdb", sys, proc)["block"] == {}
    (sys / "block" / "vda" / "device").unlink()
    (sys / "block" / "vda" / "device").symlink_to(sys / "devices")
    shutil.rmtree(proc / "pressure")
    found = counters.now("vda", sys, proc)
    assert found["pressure"] == {} and "interrupts" not in found["block"] and found["block"]["reads"] == 10
    (proc / "vmstat").unlink()
    assert counters.now("vda", sys, proc)["vmstat"] == {}


def test_increases_are_of_what_was_counted_before_and_after():
    before = {"block": {"reads": 5}, "pressure": {}, "vmstat": {"pgscan_direct": 1, "gone": 3}}
    after = {"block": {"reads": 9, "writes": 2}, "pressure": {"io_some_us": 4}, "vmstat": {"pgscan_direct": 1}}
    assert counters.since(before, after) == {"block": {"reads": 4}, "pressure": {}, "vmstat": {"pgscan_direct": 0}}


def test_discards_are_waited_for(kernel):
    """Until the device has completed none for a while; a device that goes on with them is waited for no longer than asked, and without one nothing is."""
    sys, _ = kernel
    stat = sys / "block" / "vda" / "stat"
    assert 0.05 <= storage.wait_for_discards("vda", sys, 0.05) and storage.wait_for_discards("", sys, 9.0) < 1 and storage.wait_for_discards("sdb", sys, 9.0) < 1
    over = threading.Event()

    def discard():
        done = 0
        while not over.wait(0.005):
            done += 1
            (sys / "block" / "stat").write_text(STAT.replace(" 12 0 ", f" 12 {done} "))
            (sys / "block" / "stat").replace(stat)

    thread = threading.Thread(target=discard)
    thread.start()
    try:
        assert storage.wait_for_discards("vda", sys, 60.0, 0.2) >= 0.2
    finally:
        over.set()
        thread.join()


def test_what_is_read_of_a_cgroup(tmp_path):
    assert counters.cgroup("v1", tmp_path) == {"version": "v1"} and counters.cgroup("v2", tmp_path) == {"version": "v2"}
    (tmp_path / "memory.stat").write_text("anon 5\npgscan_direct 70\npgsteal_direct 60\n")
    (tmp_path / "memory.events").write_text("low 0\nhigh 12\nmax 3\n")
    (tmp_path / "memory.pressure").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n")
    assert counters.cgroup("v2", tmp_path) == {"version": "v2", "pgscan_direct": 70, "pgsteal_direct": 60, "events_high": 12, "events_max": 3, "memory_some_us": 9}


def test_counters_are_in_the_record(project, monkeypatch):
    """Increases; {} of a device that is none, and the cgroup's counts as limit-memory wrote them, null without a limit."""
    limiter = project / "limiter"
    limiter.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do [ "$1" = --counts ] && echo \'{"version":"v2","events_high":7}\' > "$2"; shift; done; shift; exec "$@"\n')
    limiter.chmod(0o755)
    place = place_in(project)
    place.limit_memory, place.owner = limiter, None
    limited, free = execute.execute(a_run(project, "true", limit="64MiB"), 0, place), execute.execute(a_run(project, "true"), 0, place)
    assert limited["cgroup"] == {"version": "v2", "events_high": 7} and free["cgroup"] is None and limited["status"] == free["status"] == "done"
    assert free["vmstat"] and all(value >= 0 for value in free["vmstat"].values()) and free["block"] == {} and isinstance(free["pressure"], dict)
    place.device = "vda" if Path("/sys/block/vda").exists() else sorted(os.listdir("/sys/block"))[0]
    assert {"reads", "write_sectors"} <= execute.execute(a_run(project, "true"), 0, place)["block"].keys()


def test_a_command_that_cannot_be_done_here_is_skipped(project):
    """Exit status 77: no failure, and its last words say why."""
    result = execute.execute(a_run(project, "echo no such call >&2; exit 77"), 0, place_in(project))
    assert result["status"] == "skipped" and result["exit"] == 77 and "no such call" in result["stderr"]


def test_the_limiter_is_told_what_a_run_wants(project):
    run = a_run(project, "true", limit="64MiB", high="32MiB")
    assert execute.command_of(run, place_in(project), "d", "j", "t", "c")[1:6] == ["64MiB", "--high", "32MiB", "--counts", "c"]


def test_new_keys_of_a_plan_change_the_keys_of_no_other_run(project):
    (project / "probe.toml").write_text(PLAN + '[[run]]\nid = "x"\ncommand = "true"\nlimit = "2MiB"\nhigh = "1MiB"\nfile_system = "ext4 64MiB"\n')
    run = plan.load(project / "probe.toml", "quick").runs[-1]
    assert (run.high, run.file_system) == ("1MiB", "ext4 64MiB")
    plain = plan.Run(run.plan, run.id, run.words, run.params, limit=run.limit, usual=run.usual)
    keys = {run.key("p"), plain.key("p"), plan.Run(run.plan, run.id, run.words, run.params, limit=run.limit, high="1MiB").key("p")}
    assert len(keys) == 3 and a_run(project, "true").key("prog") == "f0a6bf9464fc3b4e"
    assert "a file system (ext4 64MiB) in a file" in execute.needs_of_system(run)


# ------------------------------------------------------------------ file systems in files


@pytest.fixture
def can_mount(project):
    """Skips where a loop device cannot be had."""
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4", path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
        pytest.skip("root and mkfs.ext4 are needed")
    try:
        with registry.Owner("test") as owner:
            place = owner.directory(project / "data", "run-")
            entry, _ = loopfs.make(owner, place["path"], "ext4", 32 << 20)
            owner.remove(entry)
    except loopfs.LoopError as error:
        pytest.skip(str(error))


def upon(folder):
    """Loop devices on files there, and mounts there."""
    devices = [path for path in Path("/sys/block").glob("loop*/loop/backing_file") if str(folder) in path.read_text()]
    return devices + [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]


def test_a_run_on_a_file_system_of_its_own(project, can_mount):
    """{data} is empty, on it and writable; after the run neither mount nor loop device nor image is left."""
    run = a_run(project, "stat -f -c %T $0 > $1; ls $0 >> $1; echo x > $0/file", file_system="ext4 32MiB")
    run = plan.Run(run.plan, run.id, (*run.words, "{data}", str(project / "log")), {}, file_system="ext4 32MiB")
    result = execute.execute(run, 0, place_in(project))
    assert result["status"] == "done" and result["file_system"] == "ext4 32MiB", result["stderr"]
    assert (project / "log").read_text() == "ext2/ext3\n" and upon(project) == [] and left(project) == []


@needs_root
def test_a_file_system_without_its_tool_skips_the_run(project):
    result = execute.execute(a_run(project, "true", file_system="nofs 32MiB"), 0, place_in(project))
    assert result["status"] == "skipped" and "mkfs.nofs is not installed" in result["stderr"] and left(project) == []


def test_a_tool_that_fails_fails_the_run(project, can_mount, monkeypatch):
    (project / "mkfs.badfs").write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    (project / "mkfs.badfs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{project}:{os.environ['PATH']}")
    result = execute.execute(a_run(project, "true", file_system="badfs 32MiB"), 0, place_in(project))
    assert result["status"] == "failed" and "mkfs.badfs failed: broken" in result["stderr"] and upon(project) == [] and left(project) == []


@pytest.mark.parametrize("where, mounted", [("loop device attached", False), ("mounted", True)])
def test_a_file_system_of_a_killed_runner_is_unmounted_by_the_next_start(project, can_mount, where, mounted):
    (project / "probe.toml").write_text('name = "probe"\ntitle = "x"\n[scale.quick]\n[[run]]\nid = "x"\ncommand = "true {data}"\nfile_system = "ext4 32MiB"\n')
    process = start(project, MEMEXT_PAUSE_AT=where)
    wait_for(lambda: stopped(process), process)
    assert upon(project)
    process.kill()
    process.communicate()
    wait_for(lambda: bool(upon(project)) == mounted)
    assert limit_memory().returncode == 0
    wait_for(lambda: upon(project) == [])
    assert left(project) == []


def test_a_mount_of_others_is_left_alone(project, can_mount):
    """Something else is mounted where the record says: it stays, and so does the directory that it is in."""
    with registry.Owner("test") as owner:
        directory = owner.directory(project / "data", "run-")["path"]
        entry = owner.mount(directory, directory + "/image")
        os.mkdir(entry["path"])
        subprocess.run(["mount", "-t", "tmpfs", "none", entry["path"]], check=True)
        try:
            with pytest.raises(removing.Foreign, match="not made by memext"):
                owner.remove(entry)
            assert os.path.ismount(entry["path"])
        finally:
            subprocess.run(["umount", entry["path"]], check=True)


# ------------------------------------------------------------------ small programs that ask the kernel

SCRIPTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.mark.parametrize("words, wanted", [
    (["first_stores.py", "--extents", "written", "--how", "touch", "--size", "1MiB", "--seconds", "0"], {"rounds", "store_us", "read_ratio"}),
    (["first_stores.py", "--extents", "unwritten", "--how", "populate", "--size", "1MiB", "--seconds", "0.001"], {"rounds", "populate_us", "faults_a_page"}),
    (["advised_reads.py", "--advice", "both", "--size", "1MiB", "--piece", "64KiB", "--seconds", "0.01"], {"us_a_mib", "storage_read_bytes", "system_us_a_mib"}),
    (["polled_reads.py", "--size", "1MiB", "--seconds", "0.01"], {"answer", "io_poll", "plain"}),
])  # fmt: skip
def test_small_programs_answer(tmp_path, words, wanted):
    done = subprocess.run(["/usr/bin/python3", SCRIPTS / words[0], "-d", tmp_path, *words[1:]], capture_output=True, text=True, timeout=600)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert wanted <= json.loads(done.stdout).keys() and list(tmp_path.iterdir()) == []


def test_threads_of_a_ring_are_added_to_the_report(tmp_path):
    """The command's report and status; a thread by the name of a poller is seen."""
    code = "import json, sys, threading, time\nopen('/proc/self/comm', 'w').write('iou-sqp-1')\nend = time.time() + 0.5\nwhile time.time() < end: pass\njson.dump({'a': 1}, open(sys.argv[1], 'w'))"
    report = tmp_path / "report"
    done = subprocess.run(["/usr/bin/python3", SCRIPTS / "ring_threads.py", "--json", report, "--", "/usr/bin/python3", "-c", code, report], capture_output=True, text=True, timeout=600)
    found = json.loads(report.read_text())
    assert done.returncode == 0 and found["a"] == 1 and found["ring_threads"].keys() == {"iou-sqp"}, done.stderr
    assert subprocess.run(["/usr/bin/python3", SCRIPTS / "ring_threads.py", "--json", report, "--", "sh", "-c", "exit 3"], timeout=600).returncode == 3
