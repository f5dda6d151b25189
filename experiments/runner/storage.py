# SPDX-License-Identifier: BSD-3-Clause
"""File systems, one by one."""
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)


def sync(paths):
    """Writes what is dirty to the file systems of these paths that exist, and of no others: one elsewhere may be slow, or not answer at all."""
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
