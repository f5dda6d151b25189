# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel counted while a run lasted. What a machine does not count is left out: it is never 0.

vmstat     /proc/vmstat, pages and events of the whole machine. swpin_zero and swpout_zero are pages of zeros, which swap keeps as a bit each (Linux 6.12) before any tier sees them. Its `direct`, `kswapd` and `allocstall` leave out the reclaim of
           a memory limit; pgscan_file and pgscan_anon have all of it
block      the device that holds the data, all its users together: requests that it completed, merged requests, sectors of 512 bytes, interrupts
pressure   /proc/pressure of the whole machine: microseconds in which some or all tasks waited for memory or I/O
cgroup     of limit-memory's own cgroup, read when the command has ended (limit-memory --counts)
"""
import os
import re
from pathlib import Path

VMSTAT = ("pswpin", "pswpout", "swpin_zero", "swpout_zero", "zswpin", "zswpout", "zswpwb", "workingset_refault_file", "workingset_refault_anon", "thp_file_mapped", "pgscan_direct", "pgsteal_direct",
          "pgscan_kswapd", "pgsteal_kswapd", "pgscan_khugepaged", "pgscan_proactive", "pgscan_file", "pgscan_anon", "pgsteal_file", "pgsteal_anon")  # fmt: skip
STALLS = "allocstall_"  # one counter a zone
BLOCK = ("reads", "reads_merged", "read_sectors", "read_ms", "writes", "writes_merged", "write_sectors", "write_ms")
KEPT = [name for name in BLOCK if not name.endswith("_ms")]
# Of a cgroup of version 2: memory.stat has the reclaim that its tasks did themselves, memory.events how often a limit was met.
STAT = ("pgscan_direct", "pgsteal_direct", "pgscan_kswapd", "workingset_refault_file", "workingset_refault_anon")
EVENTS = ("high", "max")


def lines_of(path):
    """Words of each line; none where the file is not there or cannot be read (PSI may be switched off)."""
    try:
        return [line.split() for line in Path(path).read_text().splitlines()]
    except OSError:
        return []


def numbers(path, wanted):
    """{name: value} of a file with a name and a number a line."""
    return {words[0]: int(words[1]) for words in lines_of(path) if len(words) == 2 and wanted(words[0])}


def vmstat(path="/proc/vmstat"):
    return numbers(path, lambda name: name in VMSTAT or name.startswith(STALLS))


def interrupts(device, sys="/sys", proc="/proc"):
    """Of a virtio or NVMe device, whose queues carry its name. None for others: theirs belong to an adapter."""
    parent = os.path.basename(os.path.realpath(f"{sys}/block/{device}/device"))
    names = re.compile(re.escape(parent) + r"(-req\.|q)\d+")
    found = [words for words in lines_of(f"{proc}/interrupts") if len(words) > 2 and names.fullmatch(words[-1])]
    return sum(int(word) for words in found for word in words[1:] if word.isdigit()) if found else None


def block(device, sys="/sys", proc="/proc"):
    """{} where the data is on no block device."""
    rows = lines_of(f"{sys}/block/{device}/stat") if device else []
    if not rows:
        return {}
    counted = dict(zip(BLOCK, map(int, rows[0])))
    found = {name: counted[name] for name in KEPT}
    raised = interrupts(device, sys, proc)
    return found if raised is None else {**found, "interrupts": raised}


def pressure(path="/proc/pressure/{}"):
    """{"memory_some_us": n, ...} since boot, or since the cgroup was made."""
    found = {}
    for kind in ("memory", "io"):
        for words in lines_of(path.format(kind)):
            found.update({f"{kind}_{words[0]}_us": int(word.removeprefix("total=")) for word in words if word.startswith("total=")})
    return found


def cgroup(version, path):
    """What a cgroup has counted since it was made. Version 1 counts no reclaim; its failcnt stayed 0 on Linux 6.18, however often the limit was met."""
    if version == "v1":
        return {"version": version}
    events = numbers(f"{path}/memory.events", EVENTS.__contains__)
    return {"version": version, **numbers(f"{path}/memory.stat", STAT.__contains__), **{f"events_{name}": n for name, n in events.items()}, **pressure(f"{path}/{{}}.pressure")}


def now(device, sys="/sys", proc="/proc"):
    """{"vmstat": ..., "block": ..., "pressure": ...}"""
    return {"vmstat": vmstat(f"{proc}/vmstat"), "block": block(device, sys, proc), "pressure": pressure(f"{proc}/pressure/{{}}")}


def since(before, after):
    """Increases of what both have."""
    return {kind: {name: value - before[kind][name] for name, value in after[kind].items() if name in before[kind]} for kind in after}
