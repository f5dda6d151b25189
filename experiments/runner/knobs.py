# SPDX-License-Identifier: BSD-3-Clause
"""Kernel settings that a run asks for, put back afterwards.

What was there before is written to the owner's record first (registry.py), so that the next start of anything puts back what a
killed runner left, wherever its data was. One runner at a time may change settings: a second one would take the first one's for the
machine's own (cli.py and with-settings hold the lock "settings" throughout).
"""
import contextlib
from pathlib import Path

from . import ownership

# Setting -> file. {device} is the block device that holds the data directory (sysfs name).
FILES = {
    "read_ahead_kb": "/sys/block/{device}/queue/read_ahead_kb",
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
# Writing one of these sets the other to 0: both are kept, the one that counted is put back last.
PARTNERS = {"vm.dirty_bytes": "/proc/sys/vm/dirty_ratio", "vm.dirty_background_bytes": "/proc/sys/vm/dirty_background_ratio"}


class KnobError(RuntimeError):
    pass


class KnobAbsent(KnobError):
    """This kernel was built without what the setting is for."""


def path_of(name, device, files=FILES):
    if name not in files:
        raise KnobError(f"setting '{name}' is not known; known are {', '.join(sorted(files))}")
    return Path(files[name].format(device=device or "none"))


def present(settings, device, files=FILES):
    """Those of them that this machine has: read-ahead belongs to a block device."""
    return {name: value for name, value in settings.items() if path_of(name, device, files).exists()}


def value_of(path):
    """What the file of a setting holds."""
    text = path.read_text().strip()
    if "[" in text:  # one of several words, the active one in brackets
        return text[text.index("[") + 1 : text.index("]")]
    return text


def _saved(names, device, files, partners):
    """[path, value] pairs that bring everything back when written in order."""
    saved = []
    for name in names:
        path = path_of(name, device, files)
        try:
            value = value_of(path)
        except FileNotFoundError as error:
            raise KnobAbsent(f"this kernel has no {path}: {name} cannot be set") from error
        partner = partners.get(name)
        if partner and value == "0":
            saved.append([partner, value_of(Path(partner))])
        else:
            saved.append([str(path), value])
    return saved


def _put_back(owner, entries):
    """"" or why a setting is not as it was: it stays in the record, and the end of the runner tries again."""
    try:
        owner.remove(*entries)
    except (ownership.Stuck, ownership.Foreign) as why:
        return str(why)
    return ""


@contextlib.contextmanager
def applied(settings, device, owner, files=FILES, partners=PARTNERS):
    """The settings hold inside the with block."""
    if not settings:
        yield
        return
    try:
        saved = _saved(settings, device, files, partners)
    except OSError as error:
        raise KnobError(f"a setting cannot be read: {error}") from error
    entries = owner.add(*({"kind": "setting", "path": path, "value": value} for path, value in saved))
    try:
        ownership.pause("settings recorded")
        for name, value in settings.items():
            try:
                path_of(name, device, files).write_text(value)
            except OSError as error:
                raise KnobError(f"{name} = {value} was refused: {error}") from error
        ownership.pause("settings changed")
        yield
    except BaseException:
        _put_back(owner, entries)
        raise
    why = _put_back(owner, entries)
    if why:
        raise KnobError(why)
