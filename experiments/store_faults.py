#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What does the first store to a page of a mapped file cost, by the size of the folios that the page cache holds it in?

Writes a file by write() calls of --write bytes, which decides the folios where the file system has large ones, maps it, reads
all of it, and copies into all of it twice: the first time takes a fault a page, the second none. Prints one JSON object, times in
microseconds a page:

    read_us   first reading less the second         store_us   first storing less the second
    folio_bytes   mean size of the folios, from /proc/kpageflags; null without root

usage: experiments/store_faults.py -d DIRECTORY [--write 1MiB] [--size 256MiB] [--json FILE]
"""
import argparse
import array
import ctypes
import json
import mmap
import os
import sys
import tempfile
import time

PAGE = mmap.PAGESIZE
PIECE = 1 << 20
TAIL = 1 << 16  # KPF_COMPOUND_TAIL, Documentation/admin-guide/mm/pagemap.rst
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def size(text):
    count = int(text[:-3]) * UNITS[text[-3:]] if text[-3:] in UNITS else int(text)
    if count < PAGE or count % PAGE:
        raise argparse.ArgumentTypeError(f"{text} is no multiple of a page of {PAGE} bytes")
    return count


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-d", "--device", default=".", metavar="DIRECTORY", help="directory on the file system to measure (default: .)")
    p.add_argument("--write", type=size, default=PIECE, help="bytes of each write() call (default: 1MiB)")
    p.add_argument("--size", type=size, default=256 << 20, help="size of the file; it must fit into memory (default: 256MiB)")
    p.add_argument("--json", metavar="FILE", help="write the object to FILE instead of stdout")
    return p.parse_args()


def over(start, count, store):
    """Seconds to copy all of the file once in pieces, from or to memory that is resident."""
    buffer = ctypes.create_string_buffer(b"\1" * PIECE, PIECE)
    begin = time.perf_counter()
    for at in range(0, count, PIECE):
        n = min(PIECE, count - at)
        if store:
            ctypes.memmove(start + at, buffer, n)
        else:
            ctypes.memmove(buffer, start + at, n)
    return time.perf_counter() - begin


def folio_bytes(start, count):
    """Mean size of the folios: each page that is not a tail page begins one. None if this user may not read /proc/kpageflags."""
    tails = seen = 0
    try:
        with open("/proc/self/pagemap", "rb", 0) as pagemap, open("/proc/kpageflags", "rb", 0) as flags:
            pagemap.seek(start // PAGE * 8)
            for entry in array.array("Q", pagemap.read(count // PAGE * 8)):
                frame = entry & ((1 << 55) - 1)
                if not entry >> 63 or frame == 0:
                    continue
                flags.seek(frame * 8)
                tails += bool(int.from_bytes(flags.read(8), sys.byteorder) & TAIL)
                seen += 1
    except OSError:
        return None
    return seen * PAGE / (seen - tails) if seen > tails else None


def measure(o):
    with tempfile.TemporaryFile(dir=o.device) as file:
        descriptor, chunk = file.fileno(), b"\1" * o.write
        os.posix_fallocate(descriptor, 0, o.size)
        for at in range(0, o.size, o.write):
            os.pwrite(descriptor, chunk[:o.size - at], at)
        os.fsync(descriptor)
        mapped = mmap.mmap(descriptor, o.size)
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        read, again, store, stored = (over(start, o.size, stores) for stores in (False, False, True, True))
        pages = o.size / PAGE * 1e-6
        result = {"write_bytes_a_call": o.write, "file_bytes": o.size, "pages": o.size // PAGE, "folio_bytes": folio_bytes(start, o.size),
                  "read_us": (read - again) / pages, "store_us": (store - stored) / pages, "store_seconds": store}  # fmt: skip
        return result


def tell(measured, path):
    """Writes an object as JSON to a file, or to stdout if no file is named."""
    text = json.dumps(measured)
    if path:
        with open(path, "w") as file:
            file.write(text + "\n")
    else:
        print(text)


def main():
    o = options()
    tell(measure(o), o.json)


if __name__ == "__main__":
    main()
