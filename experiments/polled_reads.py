#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does Linux poll if io_uring asks it to (IORING_SETUP_IOPOLL), and what does it answer if the device has no poll queues?

Reads 4 KiB at a time with O_DIRECT and one request in flight, for --seconds on a ring that polls and for --seconds on one that does not. memext
never asks a device without poll queues to poll, but this program does. Prints one JSON object:

    answer      "done", or the error of the first polled read, such as EOPNOTSUPP
    io_poll     queue/io_poll of the device
    polled, plain     {"reads": n, "us": microseconds of a read, "interrupts": interrupts of the device, null if unknown}

Exit status 77: io_uring or O_DIRECT is not available.

usage: experiments/polled_reads.py -d DIRECTORY [--size 64MiB] [--seconds 1.1] [--json FILE]
"""
import argparse
import ctypes
import errno
import mmap
import os
import struct
import sys
import tempfile
import time
from pathlib import Path

from runner import counters, host
from store_faults import PIECE, size, tell

SETUP, ENTER, READ, GETEVENTS, IOPOLL = 425, 426, 22, 1, 1
SQES_AT = 0x10000000
PAGE = 4096
ABSENT = 77
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-d", "--device", default=".", metavar="DIRECTORY", help="directory on the storage to measure (default: .)")
    p.add_argument("--size", type=size, default=64 << 20, help="size of the file that is read (default: 64MiB)")
    p.add_argument("--seconds", type=float, default=1.1, help="seconds for each of the two rings (default: 1.1)")
    p.add_argument("--json", metavar="FILE", help="write the object to FILE instead of stdout")
    return p.parse_args()


def absent(text):
    print(f"polled_reads.py: {text}", file=sys.stderr)
    sys.exit(ABSENT)


def call(number, *words):
    done = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, words))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def name_of(result):
    """The name of the error of an incomplete read. Two names share one number of Linux, which means EOPNOTSUPP."""
    if result >= 0:
        return f"{result} bytes"
    return "EOPNOTSUPP" if -result == errno.EOPNOTSUPP else errno.errorcode.get(-result, str(-result))


class Ring:
    """One request at a time. The layout is that of struct io_uring_params, io_uring_sqe and io_uring_cqe."""

    def __init__(self, flags):
        params = bytearray(120)
        struct.pack_into("=I", params, 8, flags)
        self.fd = call(SETUP, 1, ctypes.addressof((ctypes.c_char * 120).from_buffer(params)))
        _, entries = struct.unpack_from("=2I", params, 0)
        self.sq = struct.unpack_from("=8I", params, 40)
        self.cq = struct.unpack_from("=8I", params, 80)
        self.rings = mmap.mmap(self.fd, max(self.sq[6] + 4, self.cq[5] + 16 * entries))
        self.sqes = mmap.mmap(self.fd, 64, offset=SQES_AT)

    def number(self, at, value=None):
        if value is not None:
            struct.pack_into("=I", self.rings, at, value)
        return struct.unpack_from("=I", self.rings, at)[0]

    def read(self, fd, address, count, offset):
        """The result of one read: bytes, or a negative errno."""
        self.sqes[:64] = struct.pack("=BBHiQQIIQ24x", READ, 0, 0, fd, offset, address, count, 0, 0)
        tail = self.number(self.sq[1])
        self.number(self.sq[6], 0)
        self.number(self.sq[1], (tail + 1) & 0xFFFFFFFF)
        call(ENTER, self.fd, 1, 1, GETEVENTS, 0, 0)
        head = self.number(self.cq[0])
        while self.number(self.cq[1]) == head:  # a ring that polls may come back with nothing
            call(ENTER, self.fd, 0, 1, GETEVENTS, 0, 0)
        mask = self.number(self.cq[2])
        result = struct.unpack_from("=i", self.rings, self.cq[5] + 16 * (head & mask) + 8)[0]
        self.number(self.cq[0], (head + 1) & 0xFFFFFFFF)
        return result

    def close(self):
        self.rings.close()
        self.sqes.close()
        os.close(self.fd)


def reads(fd, device, flags, o):
    """("done" or the name of an error, {reads, us, interrupts})"""
    buffer = mmap.mmap(-1, PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    ring, n = Ring(flags), 0
    try:
        before, begin = counters.interrupts(device) if device else None, time.perf_counter()
        while not n or time.perf_counter() - begin < o.seconds:
            result = ring.read(fd, address, PAGE, n * PAGE * 7 % o.size)
            if result != PAGE:
                return name_of(result), None
            n += 1
        seconds = time.perf_counter() - begin
        raised = None if before is None else counters.interrupts(device) - before
        return "done", {"reads": n, "us": seconds / n * 1e6, "interrupts": raised}
    finally:
        ring.close()


def measure(o):
    device = host.device_of(o.device)
    poll = Path(f"/sys/block/{device}/queue/io_poll")
    with tempfile.NamedTemporaryFile(dir=o.device) as file:
        for _ in range(0, o.size, PIECE):
            file.write(b"\1" * PIECE)
        file.flush()
        os.fsync(file.fileno())
        try:
            fd = os.open(file.name, os.O_RDONLY | os.O_DIRECT)
        except OSError as error:
            absent(f"-d {o.device}: O_DIRECT is not available: {error.strerror}")
        try:
            begin = time.perf_counter()
            answer, polled = reads(fd, device, IOPOLL, o)
            _, plain = reads(fd, device, 0, o)
        except OSError as error:
            absent(f"io_uring is not available: {error.strerror}")
        finally:
            os.close(fd)
        return {"answer": answer, "io_poll": int(poll.read_text()) if poll.exists() else None, "polled": polled, "plain": plain, "seconds": time.perf_counter() - begin}


def main():
    o = options()
    tell(measure(o), o.json)


if __name__ == "__main__":
    main()
