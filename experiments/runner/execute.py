# SPDX-License-Identifier: BSD-3-Clause
"""Executes one run with dropped caches, an empty data directory and a time limit, and cleans up afterwards."""
import contextlib
import gzip
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import counters, distance, host, knobs, loopfs, near, ownership, plan, registry, storage

STDERR_KEPT = 4000
GRACE_S = 15.0
PR_SET_PDEATHSIG = 1
ZRAM = "zram "  # before the size of a swap space in compressed memory
ABSENT = 77  # exit status of a command for which Linux or the machine lacks something; the last line of stderr names it
KILLED_S = 5.0  # a killed process is gone by then, or stuck in Linux


@dataclass
class Place:
    """Where a runner works."""

    root: Path  # of the project
    memext: Path
    data: Path  # on storage
    results: Path  # folder of this plan
    device: str = ""  # sysfs name under data
    limit_memory: Path = None
    owner: registry.Owner = None  # of what is made; None = one for each run
    system: bool = True  # may the machine be changed: memory limits, swap, settings, caches
    probe_s: float = 0.0  # rates are measured for so long before each run that predictions are judged by (near.py); 0 = not
    near_cores: distance.Limit = None  # runs wait for cores that are so near to each other; None = they do not

    def limiter(self):
        return self.limit_memory or self.root / "experiments" / "limit-memory"


def drop_caches(data):
    """Drops the page cache, after syncing the file system of the data, for a cold start. False if this user may not."""
    storage.sync([".", data])
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        return False
    return True


def command_of(run, place, data, report, timeline, counts=None):
    """The words to execute, the memory limit around them; with `counts`, what its cgroup counts goes to that file."""
    values = {"memext": place.memext, "data": data, "json": report, "timeline": timeline, "root": place.root}
    words = [word.format_map(values) for word in run.words]
    if run.limit:
        swap = ["--swap", run.swap, "--swap-dir", str(place.data)] if run.swap else []
        if run.swap.startswith(ZRAM):
            swap = ["--zram", run.swap.removeprefix(ZRAM)]
        high = ["--high", run.high] if run.high else []
        counted = ["--counts", str(counts)] if counts else []
        words = [str(place.limiter()), run.limit, *high, *swap, *counted, "--quiet", "--", *words]
    return words


def swap_in_words(swap):
    if swap.startswith(ZRAM):
        return f"swap space of {swap.removeprefix(ZRAM)} in compressed memory"
    return f"a swap file of {swap}" if swap else ""


def needs_of_system(run):
    """What a run changes on the machine, in words; "" if nothing."""
    needs = [f"a memory limit of {run.limit}" if run.limit else "", swap_in_words(run.swap), f"a file system ({run.file_system}) in a file" if run.file_system else "",
             "the settings " + ", ".join(run.knobs) if run.knobs else ""]  # fmt: skip
    return " and ".join(filter(None, needs))


def cpu_times():
    """(busy, stolen) seconds of all cores since boot, and of this process's ended children."""
    ticks = os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, irq, softirq, steal = (int(v) / ticks for v in Path("/proc/stat").read_text().split()[1:9])
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return user + nice + system + irq + softirq, steal, children.ru_utime + children.ru_stime


def _session_members(leader):
    """Living processes of the session that the command leads, the leader left out."""
    members = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == leader:
            continue
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == leader and fields[0] not in "ZX":
                members.append(int(entry.name))
    return members


def _ended(process, timeout_s):
    """Waits for a process and returns its exit status. Popen.wait holds a lock that an interrupt may leave locked, and then nobody could wait any more."""
    if process.returncode is not None:
        return process.returncode
    descriptor = os.pidfd_open(process.pid)
    try:
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        if not waiting.poll(timeout_s * 1000):
            raise subprocess.TimeoutExpired(process.args, timeout_s)
    finally:
        os.close(descriptor)
    numbers = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    try:
        return process.wait()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, numbers)


def stop(process, grace_s=GRACE_S):
    """Ends the command. limit-memory passes a first SIGTERM on, kills its child on the second one, and cleans up after both."""
    for _ in range(2):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            _ended(process, grace_s)
            break
    end = time.monotonic() + KILLED_S
    # again until none is left: one may have started another meanwhile, and a killed process takes a moment to go
    while pids := [*_session_members(process.pid), *([process.pid] if process.poll() is None else [])]:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    process.wait()


def _tail(path, size=STDERR_KEPT):
    text = path.read_text(errors="replace") if path.exists() else ""
    return text[-size:]


def _report(path):
    """The JSON that the command wrote, or None."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def _keep_timeline(path, folder, name):
    if not path.exists() or path.stat().st_size == 0:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    with open(path, "rb") as source, gzip.open(folder / (name + ".jsonl.gz"), "wb", 6) as target:
        shutil.copyfileobj(source, target)
    return f"{folder.name}/{name}.jsonl.gz"


def _end_with_us(parent):
    """Runs in the child: makes Linux send it SIGTERM if this process is killed."""
    ownership.libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(143)


def _wait(words, errors, timeout_s, mark):
    """(exit status, timed out)."""
    parent = os.getpid()
    with open(errors, "wb") as stderr:
        try:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True,
                                       env={**os.environ, **mark}, preexec_fn=lambda: _end_with_us(parent))  # fmt: skip
        except OSError as error:
            stderr.write(f"cannot start {words[0]}: {error}\n".encode())
            return 127, False
        try:
            return _ended(process, timeout_s), False
        except subprocess.TimeoutExpired:
            stop(process)
            return None, True
        except BaseException:  # Ctrl-C, SIGTERM: leave nothing behind
            stop(process)
            raise


def skipped(run, repeat, place):
    """The record of a run that would have to change the machine, and may not."""
    return {"plan": run.plan, "id": run.id, "repeat": repeat, "params": run.params, "limit": run.limit, "swap": run.swap, "knobs": run.knobs,
            "timeout_s": run.timeout_s, "command": list(run.words), "status": "skipped", "exit": None, "report": None, "timeline": None,
            "stderr": f"not run with --no-system: it needs {needs_of_system(run)}", "wall_s": 0.0, "started_unix_s": time.time(),
            "caches_dropped": False}  # fmt: skip


# A host takes back memory that a process of a virtual machine has freed, and slows down what runs then: for about 25 s after 8 GiB (docs/notes/out-of-core.md). Less memory is assumed to take less time.
SETTLE_S, SETTLE_BYTES, LEAST_SETTLE_S = 25.0, 8 << 30, 0.5


def settle_s(run, record):
    """Seconds of a pause after a run without a memory limit, which may have held its whole problem in DRAM."""
    held = ((record.get("report") or {}).get("peak_rss_bytes") or 0) if not run.limit else 0
    wanted = SETTLE_S * min(1.0, held / SETTLE_BYTES)
    return wanted if wanted >= LEAST_SETTLE_S else 0.0


def execute(run, repeat, place):
    """Executes a run and returns its record (without the session's fields). Never raises because of what the command did."""
    with contextlib.ExitStack() as stack:
        owner = place.owner if place.owner is not None else stack.enter_context(registry.Owner("run.py"))
        cores = distance.Distance(place.memext, place.near_cores)
        while True:
            record = _execute(run, repeat, place, owner, cores)
            if record["status"] != "done" or not cores.disturbed() or not cores.once_more(record["wall_s"]):
                return {**record, "cores": cores.ended()}
            time.sleep(settle_s(run, record))


def _remove(owner, *entries):
    """Removes run directories. Those that cannot be removed now stay in the record."""
    for entry in entries:
        try:
            owner.remove(entry)
        except (ownership.Stuck, ownership.Foreign) as why:
            print(f"run.py: {why}", file=sys.stderr)


def _probe(run, words, place, scratch, owner):
    """The Probe that measures current rates for a run, or None."""
    if place.probe_s <= 0 or not near.is_judged(words):
        return None

    def call(words, environment):
        return _wait(words, scratch / "probe-stderr", near.TIMEOUT_S, {**owner.mark(), **environment})

    return near.Probe(words, run.limit, place.memext, scratch, call, place.probe_s)


def _storage(run, data, owner, made):
    """Where the command's data goes: the run's directory, or a file system of its own in it."""
    if not run.file_system:
        return data
    kind, size = run.file_system.split()
    entry, inner = loopfs.make(owner, data, kind, int(plan.size_bytes(size)))
    made.append(entry)
    return Path(inner)


def _measured(run, words, place, owner, errors, record):
    """Executes the words under the record's settings, and puts what was counted meanwhile into the record."""
    record["started_unix_s"] = time.time()
    begin, busy_before, before = time.monotonic(), cpu_times(), counters.now(place.device)
    status, late = _wait(words, errors, run.timeout_s, owner.mark())
    record["wall_s"] = time.monotonic() - begin
    busy, stolen, own = (b - a for a, b in zip(busy_before, cpu_times()))
    record.update(counters.since(before, counters.now(place.device)))
    record["other_cpu_s"], record["stolen_cpu_s"] = max(0.0, busy - own), stolen
    record["status"] = "timeout" if late else {0: "done", ABSENT: "skipped"}.get(status, "failed")
    record["exit"] = status


def _collect(run, place, repeat, files, record):
    """What the command wrote: report, messages, timeline, and what its cgroup counted."""
    report, timeline, errors, counts = files
    record["stderr"] = _tail(errors)
    record["report"], record["cgroup"] = _report(report), _report(counts)
    if record["status"] == "done" and "{json}" in " ".join(run.words) and record["report"] is None:
        record["status"] = "failed"
        record["stderr"] += "\nthe command ended with status 0 but wrote no report to {json}\n"
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"{run.id}-{repeat}")
    record["timeline"] = _keep_timeline(timeline, place.results / "timelines", name)


def _execute(run, repeat, place, owner, cores):
    # Two directories: the command's data on storage, the reports elsewhere so that they are no part of its I/O.
    directories = owner.directory(place.data, "run-"), owner.directory(tempfile.gettempdir(), "memext-run-")
    data, scratch = (Path(entry["path"]) for entry in directories)
    files = report, timeline, errors, counts = [scratch / name for name in ("report.json", "timeline.jsonl", "stderr", "cgroup.json")]
    version = host.cgroup_version()
    usual = knobs.usual_of(run.usual, run.limit, version)
    settings = {**(knobs.present(usual, place.device) if place.system else {}), **run.knobs}
    record = {"plan": run.plan, "id": run.id, "repeat": repeat, "params": run.params, "limit": run.limit, "high": run.high, "swap": run.swap,
              "file_system": run.file_system, "knobs": settings, "timeout_s": run.timeout_s, "command": list(run.words)}  # fmt: skip
    mounts = []
    try:
        knobs.check_own(run.knobs, run.limit, version)
        data = _storage(run, data, owner, mounts)
        record["command"] = words = command_of(run, place, data, report, timeline, counts)
        probe = _probe(run, words, place, scratch, owner)
        cores.before()
        if probe is not None:
            probe.measure(data)
        with knobs.applied(settings, place.device, owner):
            record["caches_dropped"] = place.system and drop_caches(place.data)
            record["discards_waited_s"] = storage.wait_for_discards(place.device) if place.system else 0.0
            cores.before()
            if probe is not None:
                probe.started()
            taken = host.damon_took_bytes() if place.system else None
            _measured(run, words, place, owner, errors, record)
            cores.after()
            now = host.damon_took_bytes() if taken is not None else None
            record["damon_bytes"] = now - taken if now is not None else None
        _collect(run, place, repeat, files, record)
        if probe is not None:
            record["near"] = probe.predict(record["report"] if record["status"] == "done" else None, data)
    except (knobs.KnobError, loopfs.LoopError) as error:
        absent = isinstance(error, (knobs.KnobAbsent, loopfs.Absent))
        record.update(status="skipped" if absent else "failed", exit=None, stderr=str(error), report=None, timeline=None)
        record.setdefault("wall_s", 0.0)
        record.setdefault("started_unix_s", time.time())
        record.setdefault("caches_dropped", False)
    finally:
        _remove(owner, *mounts, *directories)
    return record
