# SPDX-License-Identifier: BSD-3-Clause
"""What a result must say of its origin: machine, storage, commit, program."""
import contextlib
import hashlib
import json
import os
import platform
import subprocess
from pathlib import Path


def _text(path, default=""):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


def _output(*words, cwd=None):
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def device_of(path):
    """sysfs name of the whole block device that holds a path, "" if there is none (tmpfs, overlay, network)."""
    number = os.stat(path).st_dev
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not link.exists():
        return ""
    real = link.resolve()
    return real.parent.name if (real / "partition").exists() else real.name


def is_memory(path):
    return _output("stat", "-f", "-c", "%T", str(path)) in ("tmpfs", "ramfs")


def commit(root):
    """The commit, with "+changes" where tracked files of the program differ from it."""
    head = _output("git", "rev-parse", "--short=12", "HEAD", cwd=root) or "unknown"
    places = [p for p in ("runtime", "backends", "cmake", "CMakeLists.txt", "CMakePresets.json") if (Path(root) / p).exists()]
    changed = _output("git", "status", "--porcelain", "--untracked-files=no", "--", *places, cwd=root)
    return head + ("+changes" if changed else "")


def program_id(path):
    """Short hash of the program file: the same for the same build, whatever was committed around it."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    except OSError:
        return "absent"


def _cpu():
    for line in _text("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def _memory_bytes():
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0


def _storage(data):
    name = device_of(data)
    queue = Path(f"/sys/block/{name}/queue")
    scheduler = _text(queue / "scheduler")
    return {
        "path": str(data),
        "file_system": _output("findmnt", "-n", "-o", "FSTYPE", "-T", str(data)) or _output("stat", "-f", "-c", "%T", str(data)),
        "device": name,
        "model": _text(f"/sys/block/{name}/device/model"),
        "bytes": int(_text(f"/sys/block/{name}/size", "0") or 0) * 512,
        "rotational": _text(queue / "rotational") == "1",
        "scheduler": scheduler[scheduler.find("[") + 1 : scheduler.find("]")] if "[" in scheduler else scheduler,
        "max_request_kb": int(_text(queue / "max_sectors_kb", "0") or 0),
        "read_ahead_kb": int(_text(queue / "read_ahead_kb", "0") or 0),
        "wbt_lat_usec": _text(queue / "wbt_lat_usec"),
        "write_cache": _text(queue / "write_cache"),
        "mount_options": _output("findmnt", "-n", "-o", "OPTIONS", "-T", str(data)),
    }


def _system():
    for line in _text("/etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.split("=", 1)[1].strip('"')
    return platform.platform()


def active(text):
    """Of "always [madvise] never", the word in brackets; else the text."""
    return text[text.find("[") + 1 : text.find("]")] if "[" in text else text


def damon():
    """What DAMON does with memory by itself, in words: "pageout (kdamond 0)"; "" where nothing is on."""
    found = []
    for kdamond in sorted(Path("/sys/kernel/mm/damon/admin/kdamonds").glob("[0-9]*")):
        if _text(kdamond / "state") == "on":
            actions = [_text(path) for path in sorted(kdamond.glob("contexts/*/schemes/*/action"))]
            found.append(f"{', '.join(actions) or 'watches'} (kdamond {kdamond.name})")
    found += [name for name in ("damon_reclaim", "damon_lru_sort") if _text(f"/sys/module/{name}/parameters/enabled") == "Y"]
    return "; ".join(found)


def damon_took_bytes(kdamonds="/sys/kernel/mm/damon/admin/kdamonds"):
    """What the schemes of all kdamonds that are on have been applied to so far; None where none is on, or it does not tell."""
    found = []
    for kdamond in Path(kdamonds).glob("[0-9]*"):
        if _text(kdamond / "state") == "on":
            with contextlib.suppress(OSError):
                (kdamond / "state").write_text("update_schemes_stats")
                found += [int(path.read_text()) for path in kdamond.glob("contexts/*/schemes/*/stats/sz_applied")]
    return sum(found) if found else None


def folios():
    """Sizes of anonymous folios beside 2 MiB that are on: "64kB madvise"."""
    sizes = Path("/sys/kernel/mm/transparent_hugepage").glob("hugepages-*")
    words = {path.name.removeprefix("hugepages-"): active(_text(path / "enabled")) for path in sizes}
    return ", ".join(f"{size} {word}" for size, word in sorted(words.items(), key=lambda x: int(x[0].removesuffix("kB"))) if word and word != "never")


def zswap():
    values = {name: _text(f"/sys/module/zswap/parameters/{name}") for name in ("enabled", "compressor", "max_pool_percent", "shrinker_enabled")}
    return {name: value for name, value in values.items() if value}


def cgroup_version():
    """Of the memory controller."""
    return "v2" if "memory" in _text("/sys/fs/cgroup/cgroup.controllers").split() else "v1"


def machine(data, memext=None):
    """Everything about this machine that a reader of the results may ask for."""
    record = {
        "node": platform.node(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": _memory_bytes(),
        "kernel": platform.release(),
        "system": _system(),
        "python": platform.python_version(),
        "virtualised": _output("systemd-detect-virt") or "none",
        "cgroup": cgroup_version(),
        "root": os.geteuid() == 0,
        "storage": _storage(data),
        "vm": {k: _text(f"/proc/sys/vm/{k}") for k in ("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes", "swappiness", "page-cluster")},
        "transparent_hugepage": _text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "folios": folios(),
        "swap_read_ahead": _text("/sys/kernel/mm/swap/vma_ra_enabled"),
        "zswap": zswap(),
        "damon": damon(),
    }
    if memext:
        try:
            record["memext"] = json.loads(_output(str(memext), "info", "--json", "-") or "null")
        except ValueError:
            record["memext"] = None
    return record
