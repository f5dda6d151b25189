# SPDX-License-Identifier: BSD-3-Clause
"""What these programs make on a machine is written down before it is made, so that the next start finds what a killed one left.

Each owner (a process of limit-memory, run.py, demo.sh, speed.py) has one record, a JSON file of one line in the state directory:
/var/lib/memext for root, $XDG_STATE_HOME/memext (~/.local/state/memext) for others, $MEMEXT_STATE in its place if set.

    {"registry": 1, "id": "PID-START-TOKEN", "program": "limit-memory", "pid": 71, "start": 8123, "boot": "...", "pid_ns": "...",
     "locked": true, "made": [{"kind": "swap", "path": ".../memext-swap-71-8123-5f0c1a2e", "mount": "/"}, ...]}

kinds: swap (a swap file), zram (a swap space in compressed memory, with the uuid in its header), cgroup (with all that runs in it), directory (with its contents), setting (file and value of before),
processes (those that carry MEMEXT_OWNER=id in their environment).

An owner lives as long as its record is locked (flock, which the kernel gives up with the process) or as the process of that pid and
that start time runs in this boot. Every start sweeps the others: it removes what they name and what is verified to be theirs (name with
the id in it, owner, kind of file; no link is followed), and after that the record. A sweep may be killed at any point; the next goes on.
"""
import contextlib
import ctypes
import fcntl
import json
import os
import re
import secrets
import select
import shutil
import signal
import stat
import sys
import time

VERSION = 1
SWAP_PREFIX = "memext-swap-"
CGROUP_PREFIX = "memext-limit-"
DIRECTORY_PREFIXES = ("run-", "memext-run-", "memext-demo-", "memext-speed-")
OWNER_VARIABLE = "MEMEXT_OWNER"
# Files of settings that may be put back; values are one word or number.
SETTING_PLACES = (r"/proc/sys/vm/[\w-]+", r"/sys/block/[^/]+/queue/read_ahead_kb", r"/sys/kernel/mm/transparent_hugepage/enabled",
                  r"/sys/kernel/mm/lru_gen/(enabled|min_ttl_ms)", r"/sys/module/zswap/parameters/(enabled|compressor|max_pool_percent)")  # fmt: skip
GRACE_S = 15.0
GONE_S = 30.0  # a killed process is gone by then, or stuck in the kernel
RETRY_S = 0.02

libc = ctypes.CDLL(None, use_errno=True)


class RegistryError(Exception):
    """One sentence: why no record can be kept."""


class Foreign(Exception):
    """What is there is not what the record names: left alone and forgotten."""


class Stuck(Exception):
    """Ours, and cannot be removed now: stays in the record."""


class Later(Stuck):
    """On a file system that is not mounted now: stays in the record without a word."""


class Busy(Exception):
    """Somebody else holds the lock."""


# ------------------------------------------------------------------ who and where

def state_directory():
    if os.environ.get("MEMEXT_STATE"):
        return os.environ["MEMEXT_STATE"]
    if os.geteuid() == 0:
        return "/var/lib/memext"
    return os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "memext")


def open_state():
    """Path of the state directory, made if need be. Whoever may write there decides what is removed: it must be ours alone."""
    path = state_directory()
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise RegistryError(f"no record of what is changed can be kept in {path}: {error.strerror}; name another directory in MEMEXT_STATE") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise RegistryError(f"{path} is no directory that belongs to this user alone; name another in MEMEXT_STATE")
    return path


def boot_id():
    """Of this boot; MEMEXT_BOOT_ID lets a test reboot the machine."""
    if os.environ.get("MEMEXT_BOOT_ID"):
        return os.environ["MEMEXT_BOOT_ID"]
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def pid_namespace():
    return os.readlink("/proc/self/ns/pid")


def start_ticks(pid):
    """When a process began (field 22 of stat), 0 if it is gone or has ended."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def lives(record):
    """By pid and start time: for records without a lock, and should a lock have been lost."""
    if record["boot"] != boot_id():
        return False
    if record["pid_ns"] != pid_namespace():  # its pids mean nothing here: the lock alone tells
        return not record["locked"]
    return start_ticks(record["pid"]) == record["start"]


def pause(where):
    """Tests stop a process here, by MEMEXT_PAUSE_AT, to kill it at that point."""
    if os.environ.get("MEMEXT_PAUSE_AT") == where:
        os.kill(os.getpid(), signal.SIGSTOP)


def interruptible():
    """SIGINT, SIGTERM and SIGHUP end the run and what it made goes; further ones do not disturb that. Ignored ones (nohup) stay ignored."""
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
    """Writes a record so that it is there whole or not at all, and on disk. Returns its descriptor, which holds the lock."""
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
        raise RegistryError(f"no record of what is changed can be kept in {state}: {error.strerror}") from error
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
            raise Busy(f"another start holds {path}") from None
        yield
    finally:
        os.close(descriptor)


# ------------------------------------------------------------------ removing, by kind

def opened(record, path, prefixes):
    """(descriptor of its directory, name, lstat) of a path that a record names, None if it is gone."""
    place, name = os.path.split(path)
    if record["id"] not in name or not name.startswith(prefixes):
        raise Foreign(f"{path} has no name of ours")
    try:
        if os.path.realpath(place) != place:
            raise Foreign(f"{place} leads elsewhere now")
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        return folder, name, os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        os.close(folder)
        return None


def gone(entry):
    """What is not there is gone, unless the file system that it is on is not there either."""
    mount = entry.get("mount", "/")
    if not os.path.ismount(mount):
        raise Later(f"{mount} is not mounted")


def active_swaps():
    with open("/proc/swaps") as file:
        return [line.split()[0].encode().decode("unicode_escape") for line in file.read().splitlines()[1:]]


def switch_off(path):
    for last in (False, False, True):
        if path not in active_swaps() or libc.swapoff(os.fsencode(path)) == 0:
            return
        why = os.strerror(ctypes.get_errno())
        if last:
            raise Stuck(f"the swap file {path} could not be switched off: {why}")
        time.sleep(0.5)


def remove_swap(record, entry):
    path = entry["path"]
    found = opened(record, path, SWAP_PREFIX)
    if found is None:
        return gone(entry)
    folder, name, facts = found
    try:
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_nlink != 1:
            raise Foreign(f"{path} is no swap file of ours")
        switch_off(path)
        os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


SWAP_UUID_AT, SWAP_MAGIC = 1024 + 12, b"SWAPSPACE2"


def remove_zram(record, entry):
    """Ours while it is empty, or has our swap header."""
    path, base = entry["path"], "/sys/block/" + os.path.basename(entry["path"])
    if not re.fullmatch(r"/dev/zram\d+", path):
        raise Foreign(f"{path} is no zram device")
    if record["boot"] != boot_id() or not os.path.exists(base):
        return
    with open(base + "/disksize") as file:
        in_use = file.read().strip() != "0"
    if in_use:
        with open(path, "rb") as file:
            header = file.read(os.sysconf("SC_PAGESIZE"))
        if any(header) and header[SWAP_UUID_AT:SWAP_UUID_AT + 16] != bytes.fromhex(entry["uuid"]):
            raise Foreign(f"{path} is in use by others")
        switch_off(path)
        try:
            with open(base + "/reset", "w") as file:
                file.write("1")
        except OSError as error:
            raise Stuck(f"{path} could not be given back: {error.strerror}") from error
    if entry.get("added"):
        with contextlib.suppress(OSError), open("/sys/class/zram-control/hot_remove", "w") as file:
            file.write(path.removeprefix("/dev/zram"))


def mounts():
    """(root, mount point, type, super options) of every mount."""
    with open("/proc/self/mountinfo") as file:
        lines = file.read().splitlines()
    for line in lines:
        before, after = line.split(" - ", 1)
        fields, (kind, _, options) = before.split(), after.split(" ", 2)
        yield fields[3], re.sub(r"\\(\d{3})", lambda m: chr(int(m.group(1), 8)), fields[4]), kind, options.split(",")


def in_cgroups(path):
    inside = [(len(point), kind) for _, point, kind, _ in mounts() if path.startswith(point.rstrip("/") + "/")]
    return bool(inside) and max(inside)[1] in ("cgroup", "cgroup2")


def members(cgroup):
    try:
        with open(os.path.join(cgroup, "cgroup.procs")) as file:
            return [int(pid) for pid in file.read().split() if pid != "0"]
    except OSError:
        return []


def nested(cgroup):
    """It and the cgroups in it, innermost first."""
    return [folder for folder, _, _ in os.walk(cgroup, topdown=False)]


def signal_if(pid, number, still):
    """To the process that is `still` what was looked for, once a descriptor holds its pid. That descriptor, or None."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        if still(pid):
            signal.pidfd_send_signal(descriptor, number)
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def ended(descriptors, seconds):
    """Waits until the processes have ended, closes their descriptors."""
    deadline = time.monotonic() + seconds
    for descriptor in descriptors:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        os.close(descriptor)


def kill_cgroup(cgroup):
    """SIGKILL to all that runs in it and in those nested in it; descriptors of the processes."""
    killed = []
    for folder in nested(cgroup):
        for pid in members(folder):
            descriptor = signal_if(pid, signal.SIGKILL, lambda pid, folder=folder: pid in members(folder))
            if descriptor is not None:
                killed.append(descriptor)
    return killed


def remove_cgroup(record, entry):
    path = entry["path"]
    found = opened(record, path, CGROUP_PREFIX)
    if found is None:
        return
    os.close(found[0])
    if not stat.S_ISDIR(found[2].st_mode) or not in_cgroups(path):
        raise Foreign(f"{path} is no cgroup")
    deadline = time.monotonic() + GONE_S
    while os.path.isdir(path):
        ended(kill_cgroup(path), 1)
        try:
            for folder in nested(path):
                os.rmdir(folder)
        except OSError as error:
            if time.monotonic() > deadline:
                raise Stuck(f"the cgroup {path} could not be removed: {error.strerror}") from error
            time.sleep(RETRY_S)


def remove_directory(record, entry):
    path = entry["path"]
    found = opened(record, path, DIRECTORY_PREFIXES)
    if found is None:
        return gone(entry)
    os.close(found[0])
    if not stat.S_ISDIR(found[2].st_mode) or found[2].st_uid != os.geteuid():
        raise Foreign(f"{path} is no directory of ours")
    for _, point, _, _ in mounts():
        if point == path or point.startswith(path + "/"):
            raise Stuck(f"{path} is left: {point} is mounted in it")
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Stuck(f"{path} could not be removed: {error.strerror}") from error


def restore_setting(record, entry):
    """A reboot has put the machine's own value back already."""
    path, value = entry["path"], entry["value"]
    if record["boot"] != boot_id():
        return
    if not any(re.fullmatch(place, path) for place in SETTING_PLACES) or not re.fullmatch(r"[\w.+-]*", value):
        raise Foreign(f"{path} is no setting of ours")
    try:
        with open(path, "w") as file:
            file.write(value)
    except FileNotFoundError:
        return  # its device is gone
    except OSError as error:
        raise Stuck(f"{path} could not be put back to {value}: {error.strerror}") from error


def carries(mark):
    def look(pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return mark in file.read().split(b"\0") and start_ticks(pid) != 0
        except OSError:
            return False
    return look


def end_processes(record, entry):
    if record["boot"] != boot_id():
        return
    ours = carries(f"{OWNER_VARIABLE}={record['id']}".encode())
    for number, seconds in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GONE_S)):
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
        signalled = [signal_if(pid, number, ours) for pid in pids if ours(pid)]
        ended([descriptor for descriptor in signalled if descriptor is not None], seconds)


# In the order of removal: what runs ends before what it uses goes.
KINDS = {"processes": end_processes, "cgroup": remove_cgroup, "swap": remove_swap, "zram": remove_zram, "directory": remove_directory, "setting": restore_setting}


def show(entry):
    if entry["kind"] == "setting":
        return f"{entry['path']} put back to {entry['value']}"
    return {"swap": "swap file ", "zram": "swap in compressed memory ", "cgroup": "cgroup ", "directory": "", "processes": "its processes"}[entry["kind"]] + entry.get("path", "")


def clear(record, say):
    """Removes what a record names. The entries that must stay in it."""
    left = []
    for kind, remove in KINDS.items():
        for entry in [e for e in record["made"] if e.get("kind") == kind]:
            try:
                remove(record, entry)
            except Later:
                left.append(entry)
            except Stuck as why:
                left.append(entry)
                say(str(why))
            except Foreign as why:
                say(f"{why}: left alone")
            except OSError as error:
                left.append(entry)
                say(f"{show(entry)} could not be removed: {error}")
    return left


# ------------------------------------------------------------------ the owner

class Owner:
    """The record of this process, or of another, `pid`, that cannot hold a lock itself (a shell script)."""

    def __init__(self, program, pid=None):
        self.state = open_state()
        self.lock = pid is None
        pid = pid or os.getpid()
        start = start_ticks(pid)
        self.record = {"registry": VERSION, "id": f"{pid}-{start}-{secrets.token_hex(4)}", "program": program, "pid": pid, "start": start,
                       "boot": boot_id(), "pid_ns": pid_namespace(), "locked": self.lock, "made": []}  # fmt: skip
        self.id = self.record["id"]
        self.count = 0
        self.descriptor = None
        self.save()

    def save(self):
        self.descriptor = store(self.state, self.record, self.descriptor, self.lock)

    def add(self, *entries):
        """Called before the things are made."""
        self.record["made"] += entries
        self.save()
        return entries

    def remove(self, *entries):
        """Removes the things and their entries; Stuck and Foreign pass through."""
        for entry in entries:
            KINDS[entry["kind"]](self.record, entry)
        self.forget(*entries)

    def forget(self, *entries):
        self.record["made"] = [e for e in self.record["made"] if not any(e is entry for entry in entries)]
        self.save()

    def swap(self, place):
        place = os.path.realpath(place)
        return self.add({"kind": "swap", "path": os.path.join(place, SWAP_PREFIX + self.id), "mount": mount_of(place)})[0]

    def zram(self, path, uuid, added):
        return self.add({"kind": "zram", "path": path, "uuid": uuid, "added": added})[0]

    def cgroup(self, parent):
        return self.add({"kind": "cgroup", "path": os.path.join(os.path.realpath(parent), CGROUP_PREFIX + self.id)})[0]

    def directory(self, parent, prefix):
        """The entry of a new, empty directory."""
        parent = os.path.realpath(parent)
        self.count += 1
        path = os.path.join(parent, f"{prefix}{self.id}-{self.count}")
        entry = self.add({"kind": "directory", "path": path, "mount": mount_of(parent)})[0]
        os.mkdir(path, 0o700)
        pause("directory made")
        return entry

    def mark(self):
        """Environment of the processes that are to end with this one."""
        if not any(e["kind"] == "processes" for e in self.record["made"]):
            self.add({"kind": "processes"})
        return {OWNER_VARIABLE: self.id}

    def close(self, say=lambda text: print(text, file=sys.stderr, flush=True)):
        """Removes what is left and the record; what cannot be removed stays in it for the next start."""
        left = clear(self.record, say)
        if left:
            self.record["made"] = left
            self.save()
        else:
            os.unlink(os.path.join(self.state, self.id + ".json"))
        os.close(self.descriptor)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# ------------------------------------------------------------------ the sweep

def read_record(descriptor):
    try:
        record = json.loads(os.pread(descriptor, 2**20, 0))
        complete = {"registry", "id", "program", "pid", "start", "boot", "pid_ns", "locked", "made"} <= set(record)
        return record if complete and record["registry"] == VERSION else None
    except ValueError:
        return None


def abandoned(path, settings):
    """(record, descriptor that locks it) if its owner is gone, else None. With `settings` (their lock is ours), an owner that holds
    settings is dying: waited for."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return None
    facts, record = os.fstat(descriptor), read_record(descriptor)
    wait = settings and record is not None and any(e.get("kind") == "setting" for e in record["made"])
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        same = os.path.samestat(facts, os.lstat(path))  # else its owner has just replaced or removed it
        if same and stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and record is not None and not lives(record):
            return record, descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None


def sweep_one(state, path, settings, say):
    """Whether an abandoned record was cleared completely."""
    found = abandoned(path, settings)
    if found is None:
        return False
    record, descriptor = found
    left = clear(record, say)
    cleared = [show(e) for e in record["made"] if e not in left]
    if left:
        record["made"] = left
        descriptor = store(state, record, descriptor)
    else:
        os.unlink(path)
    os.close(descriptor)
    if cleared:
        say(f"cleared away what a killed {record['program']} (process {record['pid']}) left: {', '.join(cleared)}")
    return not left


def drop_half_written(state):
    """Records that were being written when their writer was killed: what they were to name had not been made."""
    for name in os.listdir(state):
        match = re.fullmatch(r"(\d+)-(\d+)-[0-9a-f]+\.json\.new", name)
        if match and start_ticks(int(match.group(1))) != int(match.group(2)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(state, name))


def sweep(say, settings=False):
    """Clears away what owners left that are gone. May be interrupted at any point."""
    state = open_state()
    with held("sweep"):
        drop_half_written(state)
        progress = True
        while progress:  # ending the processes of one may leave another behind
            paths = [os.path.join(state, name) for name in sorted(os.listdir(state)) if name.endswith(".json")]
            progress = any([sweep_one(state, path, settings, say) for path in paths])


# ------------------------------------------------------------------ for shell scripts

def records_of(pid):
    state = open_state()
    for name in sorted(os.listdir(state)):
        if name.startswith(f"{pid}-{start_ticks(pid)}-") and name.endswith(".json"):
            yield os.path.join(state, name)


def main(words):
    """registry.py sweep | directory PID PREFIX PARENT (prints the path, PREFIX and id in it) | clear PID"""
    def say(text):
        print(f"registry.py: {text}", file=sys.stderr)

    try:
        if words == ["sweep"]:
            sweep(say)
        elif len(words) == 4 and words[0] == "directory" and words[2] in DIRECTORY_PREFIXES:
            owner = Owner("demo.sh", int(words[1]))
            owner.mark()
            print(owner.directory(words[3], words[2])["path"])
        elif len(words) == 2 and words[0] == "clear":
            for path in records_of(int(words[1])):
                with open(path) as file:
                    left = clear(json.load(file), say)
                if not left:
                    os.unlink(path)
        else:
            say(main.__doc__)
            return 2
    except (RegistryError, OSError) as error:
        say(str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
