"""Kernel settings that a run asks for, put back afterwards.

What was there before is written to a journal file first; a runner that finds a journal left by one that was killed puts
the settings back before it does anything else.
"""
import contextlib
import json
import os
from pathlib import Path

# Setting -> file. {device} is the block device that holds the data directory (sysfs name).
FILES = {
    "read_ahead_kb": "/sys/block/{device}/queue/read_ahead_kb",
    "vm.dirty_bytes": "/proc/sys/vm/dirty_bytes",
    "vm.dirty_background_bytes": "/proc/sys/vm/dirty_background_bytes",
    "vm.dirty_expire_centisecs": "/proc/sys/vm/dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs": "/proc/sys/vm/dirty_writeback_centisecs",
    "vm.swappiness": "/proc/sys/vm/swappiness",
    "vm.page-cluster": "/proc/sys/vm/page-cluster",
    "transparent_hugepage": "/sys/kernel/mm/transparent_hugepage/enabled",
}
# Writing one of these sets the other to 0: both are kept, the one that counted is put back last.
PARTNERS = {"vm.dirty_bytes": "/proc/sys/vm/dirty_ratio", "vm.dirty_background_bytes": "/proc/sys/vm/dirty_background_ratio"}


class KnobError(RuntimeError):
    pass


def path_of(name, device, files=FILES):
    if name not in files:
        raise KnobError(f"setting '{name}' is not known; known are {', '.join(sorted(files))}")
    return Path(files[name].format(device=device or "none"))


def _read(path):
    text = path.read_text().strip()
    if "[" in text:  # one of several words, the active one in brackets
        return text[text.index("[") + 1 : text.index("]")]
    return text


def _saved(names, device, files, partners):
    """[path, value] pairs that bring everything back when written in order."""
    saved = []
    for name in names:
        path = path_of(name, device, files)
        value = _read(path)
        partner = partners.get(name)
        if partner and value == "0":
            saved.append([partner, _read(Path(partner))])
        else:
            saved.append([str(path), value])
    return saved


def restore(journal):
    """Puts back what a journal holds and removes it. Returns what was written."""
    journal = Path(journal)
    if not journal.exists():
        return []
    try:
        saved = json.loads(journal.read_text())
    except ValueError:
        saved = []  # killed while writing the journal: nothing had been changed yet
    for path, value in saved:
        Path(path).write_text(value)
    journal.unlink()
    return saved


@contextlib.contextmanager
def applied(settings, device, journal, files=FILES, partners=PARTNERS):
    """The settings hold inside the with block."""
    if not settings:
        yield
        return
    journal = Path(journal)
    try:
        saved = _saved(settings, device, files, partners)
    except OSError as error:
        raise KnobError(f"a setting cannot be read: {error}") from error
    with open(journal, "w") as file:
        json.dump(saved, file)
        file.flush()
        os.fsync(file.fileno())
    try:
        for name, value in settings.items():
            try:
                path_of(name, device, files).write_text(value)
            except OSError as error:
                raise KnobError(f"{name} = {value} was refused: {error}") from error
        yield
    finally:
        restore(journal)
