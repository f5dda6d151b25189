# SPDX-License-Identifier: BSD-3-Clause
"""Settings of Linux that a run asks for. They are restored afterwards.

The old values are first written to the owner's record (registry.py). So the next start of any of these programs restores what a killed
runner left, wherever its data was. Only one runner at a time may change settings: a second one would mistake the first one's settings for
the machine's own (cli.py and with-settings hold the lock "settings" throughout).
"""
import contextlib
from pathlib import Path

from . import ownership

# Setting -> file. {device} is the block device that holds the data directory (sysfs name).
FILES = {
    "read_ahead_kb": "/sys/block/{device}/queue/read_ahead_kb",
    "wbt": "/sys/block/{device}/queue/wbt_lat_usec",  # throttling of buffered write-back: microseconds, 0 = off. It does not affect transfers that bypass the page cache
    "damon": "/sys/kernel/mm/damon/admin/kdamonds/0/state",  # on, off
    "vm.dirty_bytes": "/proc/sys/vm/dirty_bytes",
    "vm.dirty_background_bytes": "/proc/sys/vm/dirty_background_bytes",
    "vm.dirty_expire_centisecs": "/proc/sys/vm/dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs": "/proc/sys/vm/dirty_writeback_centisecs",
    "vm.swappiness": "/proc/sys/vm/swappiness",
    "vm.page-cluster": "/proc/sys/vm/page-cluster",
    "mglru": "/sys/kernel/mm/lru_gen/enabled",
    "mglru.min_ttl_ms": "/sys/kernel/mm/lru_gen/min_ttl_ms",
    "zswap": "/sys/module/zswap/parameters/enabled",
    "zswap.compressor": "/sys/module/zswap/parameters/compressor",
    "zswap.max_pool_percent": "/sys/module/zswap/parameters/max_pool_percent",
    "transparent_hugepage": "/sys/kernel/mm/transparent_hugepage/enabled",
}
# Writing a setting of bytes sets its ratio to 0, and vice versa. The one that was in force is saved and restored.
# In a memory cgroup of version 2, Linux turns these bytes into a share of the machine's available memory and applies that share to the cgroup (domain_dirty_limits). 102 MiB of 23.5 GiB become 2.2 MiB
# of 512 MiB. The ratios are shares already, and mean the same in a cgroup as for the machine.
DIRTY_BYTES = ("vm.dirty_bytes", "vm.dirty_background_bytes")
PARTNERS = {"vm.dirty_bytes": "/proc/sys/vm/dirty_ratio", "vm.dirty_background_bytes": "/proc/sys/vm/dirty_background_ratio"}


class KnobError(RuntimeError):
    pass


class KnobAbsent(KnobError):
    """This Linux lacks what the setting needs."""


def path_of(name, device, files=FILES):
    if name not in files:
        raise KnobError(f"setting '{name}' is not known; the settings are {', '.join(sorted(files))}")
    return Path(files[name].format(device=device or "none"))


def present(settings, device, files=FILES):
    """The settings that this machine has: read-ahead, for instance, needs a block device."""
    return {name: value for name, value in settings.items() if path_of(name, device, files).exists()}


def usual_of(settings, limit, version):
    """The settings of an arm that have their usual meaning with this memory limit. With cgroup v2, bytes of dirty data do not, and the machine's ratios stay."""
    return {name: value for name, value in settings.items() if name not in DIRTY_BYTES or not limit or version == "v1"}


def check_own(settings, limit, version):
    """Refuses bytes of dirty data that a run asks for, if Linux would interpret them as something else."""
    asked = [name for name in DIRTY_BYTES if name in settings]
    if asked and limit and version != "v1":
        raise KnobAbsent(f"{asked[0]}: with cgroup v2, Linux turns bytes of dirty data into a share of the whole machine's memory, so they do not limit a run in {limit}; use cgroup v1")


def value_of(path):
    """The value in the file of a setting."""
    text = path.read_text().strip()
    if "[" in text:  # several words; the active one is in brackets
        return text[text.index("[") + 1 : text.index("]")]
    return text


def _changes(settings, device, files):
    """The settings whose value differs now. Some files refuse the value that they have (the state of DAMON)."""
    return {name: value for name, value in settings.items() if _differs(path_of(name, device, files), value)}


def _differs(path, value):
    return not path.exists() or value_of(path) != value


def _saved(names, device, files, partners):
    """[path, value] pairs that restore everything when written in order."""
    saved = []
    for name in names:
        path = path_of(name, device, files)
        try:
            value = value_of(path)
        except FileNotFoundError as error:
            raise KnobAbsent(f"this Linux has no {path}, so {name} cannot be set") from error
        partner = partners.get(name)
        if partner and value == "0":
            saved.append([partner, value_of(Path(partner))])
        else:
            saved.append([str(path), value])
    return saved


def _put_back(owner, entries):
    """Restores settings. Returns "" or why one could not be restored: it stays in the record, and the runner tries again at its end."""
    try:
        owner.remove(*entries)
    except (ownership.Stuck, ownership.Foreign) as why:
        return str(why)
    return ""


@contextlib.contextmanager
def applied(settings, device, owner, files=FILES, partners=PARTNERS):
    """Applies the settings inside the with block."""
    if not settings:
        yield
        return
    try:
        settings = _changes(settings, device, files)
        saved = _saved(settings, device, files, partners)
    except OSError as error:
        raise KnobError(f"cannot read a setting: {error}") from error
    entries = owner.add(*({"kind": "setting", "path": path, "value": value} for path, value in saved))
    try:
        ownership.pause("settings recorded")
        for name, value in settings.items():
            try:
                path_of(name, device, files).write_text(value)
            except OSError as error:
                raise KnobError(f"Linux refused {name} = {value}: {error}") from error
        ownership.pause("settings changed")
        yield
    except BaseException:
        _put_back(owner, entries)
        raise
    why = _put_back(owner, entries)
    if why:
        raise KnobError(why)
