#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""How much does posix_fadvise alone help a reader that reads a file plane by plane, as `stream` reads a Buffer?

Reads all of a file in pieces of --piece bytes, from its beginning to its end and again, until --seconds have passed. A checksum of each
piece stands for the computation. Advice:

    none, sequential, random    given once for the whole file, or not
    willneed                    for the piece after the next, before each read
    dontneed                    for the piece before, after each read
    both                        willneed ahead and dontneed behind

Prints one JSON object: seconds, read_bytes (asked for), storage_read_bytes (what the storage read), us_a_mib, system_us_a_mib.

usage: experiments/advised_reads.py -d DIRECTORY --advice none|sequential|random|willneed|dontneed|both [--size 128MiB] [--piece 1MiB] [--seconds 2.2] [--json FILE]
"""
import argparse
import os
import tempfile
import time
import zlib
from pathlib import Path

from store_faults import PIECE, size, tell

WHOLE = {"sequential": os.POSIX_FADV_SEQUENTIAL, "random": os.POSIX_FADV_RANDOM}
ADVICES = ("none", *WHOLE, "willneed", "dontneed", "both")


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-d", "--device", default=".", metavar="DIRECTORY", help="directory on the storage to measure (default: .)")
    p.add_argument("--advice", choices=ADVICES, required=True, help="advice to give")
    p.add_argument("--size", type=size, default=128 << 20, help="size of the file; it must be larger than the memory that the page cache may use (default: 128MiB)")
    p.add_argument("--piece", type=size, default=PIECE, help="bytes of a read (default: 1MiB)")
    p.add_argument("--seconds", type=float, default=2.2, help="seconds to measure, at least (default: 2.2)")
    p.add_argument("--json", metavar="FILE", help="write the object to FILE instead of stdout")
    return p.parse_args()


def storage_bytes():
    return int(dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())["read_bytes"])


def read_all(descriptor, o, buffer):
    """Reads the file once, from its beginning to its end."""
    view = memoryview(buffer)
    for at in range(0, o.size, o.piece):
        if o.advice in ("willneed", "both"):
            os.posix_fadvise(descriptor, (at + o.piece) % o.size, o.piece, os.POSIX_FADV_WILLNEED)
        n = os.preadv(descriptor, [view[:min(o.piece, o.size - at)]], at)
        zlib.crc32(view[:n])
        if o.advice in ("dontneed", "both"):
            os.posix_fadvise(descriptor, at, n, os.POSIX_FADV_DONTNEED)


def measure(o):
    with tempfile.TemporaryFile(dir=o.device) as file:
        descriptor, chunk = file.fileno(), os.urandom(PIECE)
        for at in range(0, o.size, PIECE):
            os.pwrite(descriptor, chunk[:o.size - at], at)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, o.size, os.POSIX_FADV_DONTNEED)
        if o.advice in WHOLE:
            os.posix_fadvise(descriptor, 0, o.size, WHOLE[o.advice])
        buffer, passes = bytearray(o.piece), 0
        begin, before, system = time.perf_counter(), storage_bytes(), os.times().system
        while not passes or time.perf_counter() - begin < o.seconds:
            read_all(descriptor, o, buffer)
            passes += 1
        seconds, system = time.perf_counter() - begin, os.times().system - system
        mib = passes * o.size / 2**20
        return {"advice": o.advice, "file_bytes": o.size, "passes": passes, "seconds": seconds, "read_bytes": passes * o.size, "storage_read_bytes": storage_bytes() - before,
                "us_a_mib": seconds / mib * 1e6, "system_us_a_mib": system / mib * 1e6}  # fmt: skip


def main():
    o = options()
    tell(measure(o), o.json)


if __name__ == "__main__":
    main()
