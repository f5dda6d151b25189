# SPDX-License-Identifier: BSD-3-Clause
"""What a process has moved, and how results are compared."""
import contextlib
import hashlib
import os

PAGE = 4096


def counters(place):
    """Bytes that this process, its threads and the children that have ended moved; swap of the machine; the device of `place`."""
    with open("/proc/self/io") as file:
        own = dict(line.split(": ") for line in file.read().splitlines())
    with open("/proc/vmstat") as file:
        pages = dict(line.split() for line in file.read().splitlines())
    found = {"read_bytes": int(own["read_bytes"]), "write_bytes": int(own["write_bytes"]) - int(own["cancelled_write_bytes"]),
             "swapped_in_bytes": int(pages["pswpin"]) * PAGE, "swapped_out_bytes": int(pages["pswpout"]) * PAGE}  # fmt: skip
    number = os.stat(place).st_dev
    with contextlib.suppress(OSError), open(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat") as file:
        sectors = file.read().split()
        found |= {"device_read_bytes": int(sectors[2]) * 512, "device_write_bytes": int(sectors[6]) * 512}
    return found


def digest(cells):
    """Of the bytes of an array or a file's blocks: by it results are compared."""
    found = hashlib.blake2b(digest_size=12)
    for piece in cells:
        found.update(piece)
    return found.hexdigest()


def peak_rss_bytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))
