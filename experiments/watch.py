# SPDX-License-Identifier: BSD-3-Clause
"""Watches a running memext from outside: through /proc and the superblocks of its store.

For tests and campaigns that do something to a run at a known moment. Every question has an answer for a process that is
gone as well: that of one that never began.
"""
import os
import platform
import struct
from pathlib import Path


def proc_numbers(process, file):
    """{name: text} of a file of /proc/PID, empty once the process is gone."""
    try:
        lines = Path(f"/proc/{process.pid}/{file}").read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def catches(process, number):
    """Has it a handler for this signal? Before, the signal ends it without a word, as it does any program."""
    return int(proc_numbers(process, "status").get("SigCgt", "0"), 16) >> (number - 1) & 1 == 1


def written_bytes(process):
    """What it has sent to storage; of a mapping, the pages that became dirty."""
    return int(proc_numbers(process, "io").get("write_bytes", "0"))


def computing(timeline):
    """Has the run begun to compute? Its --timeline begins there, under a temporary name of its own if it has one; by then
    the initial grid is committed."""
    return timeline.exists() or any(timeline.parent.glob(f".{timeline.name}.memext-*"))


FLUSHES = {26, 74, 75, 277}  # msync, fsync, fdatasync, sync_file_range as numbered on x86-64
CAN_SEE_FLUSHES = platform.machine() == "x86_64" and os.path.exists("/proc/self/syscall")


def flushing(process):
    """Is one of its threads inside a call that waits for storage to be durable?"""
    try:
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            number = Path(f"/proc/{process.pid}/task/{thread}/syscall").read_text().split()[0]
            if number.isdecimal() and int(number) in FLUSHES:
                return True
    except (OSError, IndexError):
        pass
    return False


def holds_open(process, folder):
    """Has it a file open in this folder, with a name or without?"""
    try:
        for number in os.listdir(f"/proc/{process.pid}/fd"):
            if os.readlink(f"/proc/{process.pid}/fd/{number}").startswith(f"{folder}/"):
                return True
    except OSError:
        pass
    return False


# Where superblocks of store format 1 and 2 lie, and how they begin: magic, version, finished, generation, extents, note bytes.
SUPERBLOCKS = {1: (0, 4096), 2: (0, 16384, 32768, 49152)}
SUPERBLOCK = struct.Struct("<QIIQII")
MAGIC = int.from_bytes(b"memext01", "little")


def newest_superblock(store):
    """(generation, bytes of the note, finished) of a store, which may be in use; zeros where there is none."""
    try:
        with open(store, "rb") as file:
            head = file.read(65536)
    except OSError:
        return 0, 0, 0
    found = [(0, 0, 0)]
    for version, offsets in SUPERBLOCKS.items():
        for offset in offsets:
            block = head[offset:offset + SUPERBLOCK.size]
            if len(block) == SUPERBLOCK.size and struct.unpack_from("<QI", block) == (MAGIC, version):
                _, _, finished, generation, _, note_bytes = SUPERBLOCK.unpack(block)
                found.append((generation, note_bytes, finished))
    return max(found)


def committed(store):
    """Has a run made a commit to this store?"""
    return newest_superblock(store)[1] > 0
