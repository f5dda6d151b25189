# SPDX-License-Identifier: BSD-3-Clause
"""Records of what these programs make on a machine. A record is written before the thing is made, so the next start finds what a killed one left.

Each owner (a process of limit-memory, with-settings, run.py, demo.sh, speed.py) has one record, a JSON file of one line in the state directory:
/var/lib/memext for root, $XDG_STATE_HOME/memext (~/.local/state/memext) for others, $MEMEXT_STATE in its place if set.

    {"registry": 1, "id": "PID-START-TOKEN", "program": "limit-memory", "pid": 71, "start": 8123, "boot": "...", "pid_ns": "...",
     "locked": true, "made": [{"kind": "swap", "path": ".../memext-swap-71-8123-5f0c1a2e", "mount": "/"}, ...]}

kinds: swap (a swap file), zram (a swap space in compressed memory, with the uuid in its header), cgroup (with all that runs in it), mount (a file system in a file, loopfs.py), directory (with its contents), setting (file and value of before),
processes (those that carry MEMEXT_OWNER=id in their environment).

An owner lives as long as its record is locked (flock, which Linux releases with the process), or as long as the process of that pid and
start time runs in this boot. Every start sweeps the records of dead owners: it removes the things that they name and that are verified to be
theirs (name with the id in it, owner, kind of file; no link is followed), and then the record. A sweep may be killed at any point; the next
one continues.
"""
import contextlib
import fcntl
import json
import os
import re
import secrets
import stat
import sys

if not __package__:  # started by a shell script
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from runner.ownership import (OWNER_VARIABLE, VERSION, RegistryError, boot_id, held, lives, mount_of, open_state, pause, pid_namespace, read_record,  # noqa: E402
                              start_ticks, store)
from runner.removing import CGROUP_PREFIX, DIRECTORY_PREFIXES, KINDS, MOUNT_PREFIX, SWAP_PREFIX, clear, show  # noqa: E402


class Owner:
    """The record of this process, or of the process `pid` that cannot hold a lock itself (a shell script)."""

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
        """Records things. Call this before they are made."""
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

    def mount(self, directory, image):
        """The entry of a mount point to be made there, for a file system in the file `image`."""
        directory = os.path.realpath(directory)
        self.count += 1
        path = os.path.join(directory, f"{MOUNT_PREFIX}{self.id}-{self.count}")
        return self.add({"kind": "mount", "path": path, "image": image, "mount": mount_of(directory)})[0]

    def mark(self):
        """The environment variable that marks processes which must end with this one."""
        if not any(e["kind"] == "processes" for e in self.record["made"]):
            self.add({"kind": "processes"})
        return {OWNER_VARIABLE: self.id}

    def close(self, say=lambda text: print(text, file=sys.stderr, flush=True)):
        """Removes what is left, and the record. Things that cannot be removed stay in the record for the next start."""
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


def abandoned(path, settings):
    """(record, descriptor that locks it) if its owner is gone, else None. With `settings`, this process holds the lock of settings; so an owner that
    still has settings is dying, and this waits for it."""
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
    """Clears an abandoned record. Was it cleared completely?"""
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
        say(f"removed what a killed {record['program']} (process {record['pid']}) had left: {', '.join(cleared)}")
    return not left


def drop_half_written(state):
    """Removes records whose writer was killed while it wrote them: the things that they name had not been made."""
    for name in os.listdir(state):
        match = re.fullmatch(r"(\d+)-(\d+)-[0-9a-f]+\.json\.new", name)
        if match and start_ticks(int(match.group(1))) != int(match.group(2)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(state, name))


def sweep(say, settings=False):
    """Removes what dead owners left. May be interrupted at any point."""
    state = open_state()
    with held("sweep"):
        drop_half_written(state)
        progress = True
        while progress:  # ending the processes of one owner may abandon another record
            paths = [os.path.join(state, name) for name in sorted(os.listdir(state)) if name.endswith(".json")]
            progress = any([sweep_one(state, path, settings, say) for path in paths])


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
