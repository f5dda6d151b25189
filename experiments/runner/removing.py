# SPDX-License-Identifier: BSD-3-Clause
"""How each kind of thing is removed. Only things that are verified to belong to the record are removed."""
import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import stat
import time

from runner.ownership import OWNER_VARIABLE, Foreign, Later, Stuck, boot_id, libc, start_ticks

SWAP_PREFIX = "memext-swap-"
CGROUP_PREFIX = "memext-limit-"
MOUNT_PREFIX = "memext-mount-"
DIRECTORY_PREFIXES = ("run-", "memext-run-", "memext-demo-", "memext-speed-")
# Files of settings that may be put back; values are one word or number.
SETTING_PLACES = (r"/proc/sys/vm/[\w-]+", r"/sys/block/[^/]+/queue/(read_ahead_kb|wbt_lat_usec)", r"/sys/kernel/mm/damon/admin/kdamonds/\d+/state", r"/sys/kernel/mm/transparent_hugepage/enabled",
                  r"/sys/kernel/mm/lru_gen/(enabled|min_ttl_ms)", r"/sys/module/zswap/parameters/(enabled|compressor|max_pool_percent)")  # fmt: skip
GRACE_S = 15.0
UMOUNT_NOFOLLOW = 8
GONE_S = 30.0  # a killed process is gone by then, or stuck in Linux
RETRY_S = 0.02


def opened(record, path, prefixes):
    """(descriptor of its directory, name, lstat) of a path that a record names; None if it is gone."""
    place, name = os.path.split(path)
    if record["id"] not in name or not name.startswith(prefixes):
        raise Foreign(f"{path} does not have a name that memext gives")
    try:
        if os.path.realpath(place) != place:
            raise Foreign(f"{place} is a symbolic link or has one in its path now")
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        return folder, name, os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        os.close(folder)
        return None


def gone(entry):
    """A missing thing counts as removed, unless its file system is not mounted."""
    mount = entry.get("mount", "/")
    if not os.path.ismount(mount):
        raise Later(f"{mount} is not mounted")


def active_swaps():
    with open("/proc/swaps") as file:
        return [re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), line.split()[0]) for line in file.read().splitlines()[1:]]


def switch_off(path):
    for last in (False, False, True):
        if path not in active_swaps() or libc.swapoff(os.fsencode(path)) == 0:
            return
        why = os.strerror(ctypes.get_errno())
        if last:
            raise Stuck(f"cannot switch off the swap file {path}: {why}")
        time.sleep(0.5)


def remove_swap(record, entry):
    path = entry["path"]
    found = opened(record, path, SWAP_PREFIX)
    if found is None:
        return gone(entry)
    folder, name, facts = found
    try:
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_nlink != 1:
            raise Foreign(f"{path} is not a swap file that memext made")
        switch_off(path)
        os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


SWAP_UUID_AT, SWAP_MAGIC = 1024 + 12, b"SWAPSPACE2"


def remove_zram(record, entry):
    """Removes a zram device that is empty or has the swap header of this record."""
    path, base = entry["path"], "/sys/block/" + os.path.basename(entry["path"])
    if not re.fullmatch(r"/dev/zram\d+", path):
        raise Foreign(f"{path} is not a zram device")
    if record["boot"] != boot_id() or not os.path.exists(base):
        return
    with open(base + "/disksize") as file:
        in_use = file.read().strip() != "0"
    if in_use:
        with open(path, "rb") as file:
            header = file.read(os.sysconf("SC_PAGESIZE"))
        if any(header) and header[SWAP_UUID_AT:SWAP_UUID_AT + 16] != bytes.fromhex(entry["uuid"]):
            raise Foreign(f"{path} is in use by another program")
        switch_off(path)
        try:
            with open(base + "/reset", "w") as file:
                file.write("1")
        except OSError as error:
            raise Stuck(f"cannot reset {path}: {error.strerror}") from error
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
    """The cgroup and the cgroups in it, innermost first."""
    return [folder for folder, _, _ in os.walk(cgroup, topdown=False)]


def signal_if(pid, number, still):
    """Sends a signal to a process, if still(pid) holds after a descriptor has pinned its pid. Returns that descriptor, or None."""
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
    """Waits until the processes have ended, for `seconds` at most, and closes their descriptors."""
    deadline = time.monotonic() + seconds
    for descriptor in descriptors:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        os.close(descriptor)


def kill_cgroup(cgroup):
    """Sends SIGKILL to all processes in the cgroup and in nested ones. Returns descriptors of the processes."""
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
        raise Foreign(f"{path} is not a cgroup")
    deadline = time.monotonic() + GONE_S
    while os.path.isdir(path):
        ended(kill_cgroup(path), 1)
        try:
            for folder in nested(path):
                os.rmdir(folder)
        except OSError as error:
            if time.monotonic() > deadline:
                raise Stuck(f"cannot remove the cgroup {path}: {error.strerror}") from error
            time.sleep(RETRY_S)


def remove_mount(record, entry):
    """Unmounts only a loop device on the image that the record names. The device disappears with the mount, and the directory and the image with the run's directory."""
    path = entry["path"]
    found = opened(record, path, MOUNT_PREFIX)
    if found is None:
        return gone(entry)
    os.close(found[0])
    deadline = time.monotonic() + GRACE_S
    while os.path.ismount(path):
        number = os.lstat(path).st_dev
        try:
            with open(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/loop/backing_file") as file:
                image = file.read().strip()
        except OSError:
            image = ""
        if image != entry["image"]:
            raise Foreign(f"the file system that is mounted on {path} was not made by memext")
        if libc.umount2(os.fsencode(path), UMOUNT_NOFOLLOW) != 0:
            if time.monotonic() > deadline:
                raise Stuck(f"cannot unmount {path}: {os.strerror(ctypes.get_errno())}")
            time.sleep(RETRY_S)


def remove_directory(record, entry):
    path = entry["path"]
    found = opened(record, path, DIRECTORY_PREFIXES)
    if found is None:
        return gone(entry)
    os.close(found[0])
    if not stat.S_ISDIR(found[2].st_mode) or found[2].st_uid != os.geteuid():
        raise Foreign(f"{path} is not a directory that memext made")
    for _, point, _, _ in mounts():
        if point == path or point.startswith(path + "/"):
            raise Stuck(f"cannot remove {path}: {point} is mounted in it; unmount it first")
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Stuck(f"cannot remove {path}: {error.strerror}") from error


def restore_setting(record, entry):
    """Restores a setting, unless a reboot has restored it already."""
    path, value = entry["path"], entry["value"]
    if record["boot"] != boot_id():
        return
    if not any(re.fullmatch(place, path) for place in SETTING_PLACES) or not re.fullmatch(r"[\w.+-]*", value):
        raise Foreign(f"{path} is not a setting that memext changes, or '{value}' is not a value of one")
    try:
        with open(path, "w") as file:
            file.write(value)
    except FileNotFoundError:
        return  # its device is gone
    except OSError as error:
        raise Stuck(f"cannot restore {path} to {value}: {error.strerror}") from error


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


# In the order of removal: processes end before the things that they use are removed.
KINDS = {"processes": end_processes, "cgroup": remove_cgroup, "swap": remove_swap, "zram": remove_zram, "mount": remove_mount, "directory": remove_directory, "setting": restore_setting}


def show(entry):
    if entry["kind"] == "setting":
        return f"{entry['path']} restored to {entry['value']}"
    return {"swap": "swap file ", "zram": "swap in compressed memory ", "cgroup": "cgroup ", "mount": "file system on ", "directory": "", "processes": "its processes"}[entry["kind"]] + entry.get("path", "")


def clear(record, say):
    """Removes the things that a record names. Returns the entries that must stay in it."""
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
                say(f"{why}; it is left alone")
            except OSError as error:
                left.append(entry)
                say(f"cannot remove {show(entry)}: {error}")
    return left
