#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What do the first stores through a mapping cost? This depends on the state of the file's extents, and on how its pages are made resident.

--extents unwritten   the file is only allocated: there is nothing to read
--extents written     the file was written, and is not in the page cache
--how touch           each page faults at its first store
--how populate        madvise(MADV_POPULATE_WRITE) over all of it first (Linux 5.14)

A round makes a file, which is not timed, maps it, copies into all of it and syncs it. Rounds follow one another until they took
--seconds. Prints one JSON object; times in microseconds a page:

    populate_us, store_us, sync_us    the call, the copying, msync and fsync
    read_ratio, faults_a_page         bytes that the storage read, of those stored; minor and major faults

Exit status 77: this Linux has no MADV_POPULATE_WRITE, or the file system cannot allocate extents.

usage: experiments/first_stores.py -d DIRECTORY --extents unwritten|written --how touch|populate [--size 256MiB] [--seconds 2.2] [--json FILE]
"""
import argparse
import ctypes
import errno
import mmap
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from store_faults import PAGE, PIECE, over, size, tell

POPULATE_WRITE = 23  # MADV_POPULATE_WRITE
ABSENT = 77
NAMES = ("populate", "store", "sync")


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-d", "--device", default=".", metavar="DIRECTORY", help="directory on the file system to measure (default: .)")
    p.add_argument("--extents", choices=("unwritten", "written"), required=True, help="state of the extents before the stores")
    p.add_argument("--how", choices=("touch", "populate"), required=True, help="how pages are made resident")
    p.add_argument("--size", type=size, default=256 << 20, help="size of the file; it must fit into memory (default: 256MiB)")
    p.add_argument("--seconds", type=float, default=2.2, help="seconds to measure, at least (default: 2.2)")
    p.add_argument("--json", metavar="FILE", help="write the object to FILE instead of stdout")
    return p.parse_args()


def absent(text):
    print(f"first_stores.py: {text}", file=sys.stderr)
    sys.exit(ABSENT)


def allocate(descriptor, count):
    """Allocates extents. posix_fallocate would write if the file system cannot allocate."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(descriptor, 0, ctypes.c_long(0), ctypes.c_long(count)) != 0:
        absent(f"this file system cannot allocate extents: {os.strerror(ctypes.get_errno())}")


def prepare(descriptor, o):
    allocate(descriptor, o.size)
    if o.extents == "written":
        chunk = b"\1" * PIECE
        for at in range(0, o.size, PIECE):
            os.pwrite(descriptor, chunk[:o.size - at], at)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, o.size, os.POSIX_FADV_DONTNEED)


def populate(mapped):
    try:
        mapped.madvise(POPULATE_WRITE)
    except OSError as error:
        if error.errno == errno.EINVAL:
            absent("this Linux has no MADV_POPULATE_WRITE (it came with Linux 5.14)")
        raise


def counted():
    """(bytes that the storage read for this process, its faults)"""
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return int(lines["read_bytes"]), usage.ru_minflt + usage.ru_majflt


def a_round(o):
    """Seconds of each step, and what was counted."""
    with tempfile.TemporaryFile(dir=o.device) as file:
        prepare(file.fileno(), o)
        mapped = mmap.mmap(file.fileno(), o.size)
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        before, marks = counted(), [time.perf_counter()]
        if o.how == "populate":
            populate(mapped)
        marks.append(time.perf_counter())
        over(start, o.size, True)
        marks.append(time.perf_counter())
        mapped.flush()
        os.fsync(file.fileno())
        marks.append(time.perf_counter())
        read, faults = (b - a for a, b in zip(before, counted()))
        return {**dict(zip(NAMES, (b - a for a, b in zip(marks, marks[1:])))), "read": read, "faults": faults}


def measure(o):
    rounds = [a_round(o)]
    while sum(r[name] for r in rounds for name in NAMES) < o.seconds:
        rounds.append(a_round(o))
    pages = len(rounds) * o.size / PAGE
    total = {name: sum(r[name] for r in rounds) for name in rounds[0]}
    return {"extents": o.extents, "how": o.how, "file_bytes": o.size, "rounds": len(rounds), "seconds": sum(total[name] for name in NAMES), **{f"{name}_us": total[name] / pages * 1e6 for name in NAMES},
            "read_ratio": total["read"] / (pages * PAGE), "faults_a_page": total["faults"] / pages}  # fmt: skip


def main():
    o = options()
    tell(measure(o), o.json)


if __name__ == "__main__":
    main()
