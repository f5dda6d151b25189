# SPDX-License-Identifier: BSD-3-Clause
"""Places for a store: directories, files, loop devices, small file systems, devices that fail."""
import os
import shutil

from crashing.cases import MIB
from crashing.processes import detach, make, tool, undo


class Place:
    """path: what -d takes; store: what to look at; lines: the commands that made it."""

    def __init__(self, path, store):
        self.path, self.store, self.relieve, self.lines = path, store, lambda: None, []

    def is_directory(self):
        return self.path != self.store


def loop_device(stack, image, count):
    if not image.exists():
        image.touch()
        os.truncate(image, count)
    return make(stack, ["losetup", "--find", "--show", image], detach)


def small_file_system(stack, folder, name, count):
    device, mount = loop_device(stack, folder / f"{name}.img", count), folder / name
    tool("mkfs.ext4", "-q", "-m", "0", "-F", device)
    mount.mkdir()
    make(stack, ["mount", device, mount], undo, "umount", mount)
    return mount


def leave_free(directory, count):
    """Fills a file system up to so many free bytes; returns the file that does it."""
    ballast = directory / "ballast"
    with open(ballast, "wb") as file:
        take = shutil.disk_usage(directory).free - count
        if take > 0:
            os.posix_fallocate(file.fileno(), 0, take)
    return ballast


def make_directory(stack, folder, need, dice):
    path = folder / "store"
    path.mkdir()
    return Place(path, path / "memext.store")


def make_file(stack, folder, need, dice):
    (folder / "store").mkdir()
    return Place(folder / "store" / "grid.store", folder / "store" / "grid.store")


def make_loop(stack, folder, need, dice):
    device = loop_device(stack, folder / "device.img", need + 16 * MIB)
    return Place(device, device)


def make_thin(stack, folder, need, dice):
    """A device that promises more than there is: a sparse file on a file system with too little space."""
    mount = small_file_system(stack, folder, "outer", need + 48 * MIB)
    (mount / "thin.img").touch()
    os.truncate(mount / "thin.img", need + 16 * MIB)
    ballast = leave_free(mount, int(need * dice.uniform(0.05, 0.95)))
    place = Place(*2 * [loop_device(stack, mount / "thin.img", 0)])
    place.relieve = lambda: ballast.unlink(missing_ok=True)
    return place


def make_mapped(stack, folder, need, dice, target):
    """On a device-mapper device that fails: from time to time (flakey), or in its last part (error)."""
    count = need + 16 * MIB
    under, sectors, name = loop_device(stack, folder / "device.img", count), count // 512, f"{folder.parent.name}-{target}"
    good = f"0 {sectors} linear {under} 0"
    bad_from = int(sectors * dice.uniform(0.1, 0.95)) // 8 * 8
    bad = {"flakey": f"0 {sectors} flakey {under} 0 {dice.randint(1, 2)} 1",
           "error": f"0 {bad_from} linear {under} 0\n{bad_from} {sectors - bad_from} error"}[target]
    table = folder / "table"
    table.write_text(bad + "\n")
    make(stack, ["dmsetup", "create", name, table], undo, "dmsetup", "remove", name)

    def relieve():
        table.write_text(good + "\n")
        for words in (["suspend", name], ["load", name, table], ["resume", name]):
            tool("dmsetup", *words)
    place = Place(f"/dev/mapper/{name}", f"/dev/mapper/{name}")
    place.relieve = relieve
    return place


MAKERS = {"directory": make_directory, "file": make_file, "loop": make_loop, "thin": make_thin,
          "flakey": lambda *rest: make_mapped(*rest, "flakey"), "error": lambda *rest: make_mapped(*rest, "error")}


def targets():
    """Of device-mapper."""
    try:
        return {line.split()[0] for line in tool("dmsetup", "targets").splitlines() if line.strip()}
    except OSError:
        return set()
