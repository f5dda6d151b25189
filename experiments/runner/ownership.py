# SPDX-License-Identifier: BSD-3-Clause
"""Owners of records and whether they still live; where records are kept, and their locks. registry.py explains records."""
import contextlib
import ctypes
import fcntl
import json
import os
import signal
import stat

VERSION = 1
OWNER_VARIABLE = "MEMEXT_OWNER"

libc = ctypes.CDLL(None, use_errno=True)


class RegistryError(Exception):
    """A sentence that says why no record can be kept."""


class Foreign(Exception):
    """The thing that exists is not the one that the record names. It is left alone, and its entry is dropped."""


class Stuck(Exception):
    """The thing belongs to the record and cannot be removed now. Its entry stays in the record."""


class Later(Stuck):
    """The thing lies on a file system that is not mounted now. Its entry stays in the record, without a message."""


class Busy(Exception):
    """Another process holds the lock."""


def state_directory():
    if os.environ.get("MEMEXT_STATE"):
        return os.environ["MEMEXT_STATE"]
    if os.geteuid() == 0:
        return "/var/lib/memext"
    return os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "memext")


def open_state():
    """Path of the state directory; makes it if necessary. Who can write there decides what is removed, so it must belong to this user alone."""
    path = state_directory()
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise RegistryError(f"cannot make the directory {path}, where changes of this machine are recorded: {error.strerror}; set MEMEXT_STATE to another directory") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise RegistryError(f"{path}, where changes of this machine are recorded, is not a directory that belongs to this user alone; set MEMEXT_STATE to another directory")
    return path


def boot_id():
    """The id of this boot. A test sets MEMEXT_BOOT_ID to act as if the machine had been rebooted."""
    if os.environ.get("MEMEXT_BOOT_ID"):
        return os.environ["MEMEXT_BOOT_ID"]
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def pid_namespace():
    return os.readlink("/proc/self/ns/pid")


def start_ticks(pid):
    """Start time of a process (field 22 of stat); 0 if it is gone or has ended."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def lives(record):
    """Does the owner of a record live, by pid and start time? This is for records without a lock, and for lost locks."""
    if record["boot"] != boot_id():
        return False
    if record["pid_ns"] != pid_namespace():  # its pids mean nothing here, so only the lock decides
        return not record["locked"]
    return start_ticks(record["pid"]) == record["start"]


def pause(where):
    """Stops the process here if MEMEXT_PAUSE_AT names this place. Tests kill it then."""
    if os.environ.get("MEMEXT_PAUSE_AT") == where:
        os.kill(os.getpid(), signal.SIGSTOP)


def interruptible():
    """Makes SIGINT, SIGTERM and SIGHUP end the run, which then removes what it made. More signals do not disturb the removal. Ignored signals (nohup) stay ignored."""
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]

    def interrupt(number, frame):
        for n in numbers:
            signal.signal(n, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in numbers:
        signal.signal(number, interrupt)


def mount_of(path):
    path = os.path.realpath(path)
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    return path


def sync_directory(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store(state, record, old=None, lock=True):
    """Writes a record to disk, completely or not at all. Returns its descriptor, which holds the lock."""
    path = os.path.join(state, record["id"] + ".json")
    descriptor = os.open(path + ".new", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        if lock:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, (json.dumps(record) + "\n").encode())
        os.fsync(descriptor)
        os.rename(path + ".new", path)
        sync_directory(state)
    except OSError as error:
        os.close(descriptor)
        raise RegistryError(f"cannot write a record of changes to {state}: {error.strerror}; make room there, or set MEMEXT_STATE to another directory") from error
    if old is not None:
        os.close(old)
    return descriptor


@contextlib.contextmanager
def held(name, wait=True):
    """A lock of the state directory: "sweep", "settings"."""
    path = os.path.join(open_state(), name + ".lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise Busy(f"another process holds the lock {path}; wait until it has ended") from None
        yield
    finally:
        os.close(descriptor)


def read_record(descriptor):
    try:
        record = json.loads(os.pread(descriptor, 2**20, 0))
        complete = {"registry", "id", "program", "pid", "start", "boot", "pid_ns", "locked", "made"} <= set(record)
        return record if complete and record["registry"] == VERSION else None
    except ValueError:
        return None
