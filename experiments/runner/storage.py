# SPDX-License-Identifier: BSD-3-Clause
"""Syncs single file systems, and waits for their discards."""
import ctypes
import os
import time

DISCARDS = 11  # field of /sys/block/DEVICE/stat
QUIET_S, MOST_S = 0.2, 10.0

libc = ctypes.CDLL(None, use_errno=True)


def sync(paths):
    """Syncs the file systems of these paths (missing paths are ignored), and no others: another file system may be slow, or not answer at all."""
    seen = set()
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            device = os.fstat(descriptor).st_dev
            if device not in seen:
                libc.syncfs(descriptor)
            seen.add(device)
        finally:
            os.close(descriptor)


def wait_for_discards(device, sys="/sys", quiet_s=QUIET_S, most_s=MOST_S):
    """Waits until the device has completed no discard for quiet_s seconds, and returns the seconds waited. With the mount option `discard`, discards of deleted files continue after the sync, and would fall into
    the next run."""
    def counted():
        try:
            with open(f"{sys}/block/{device}/stat") as file:
                return file.read().split()[DISCARDS]
        except (OSError, IndexError):
            return None

    begin = last = time.monotonic()
    before = counted() if device else None
    while before is not None and time.monotonic() - last < quiet_s and time.monotonic() - begin < most_s:
        time.sleep(quiet_s / 10)
        now = counted()
        if now != before:
            before, last = now, time.monotonic()
    return time.monotonic() - begin
