# SPDX-License-Identifier: BSD-3-Clause
"""Makes files appear only when they are complete: each is written under another name in the same directory, synced, and then renamed."""
from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import itertools
import os
import pathlib
import re
import shutil
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import _core
from .errors import MemextError


@contextlib.contextmanager
def writing(path: pathlib.Path, arrays: Iterable[Any]) -> Iterator[None]:
    """Turns what the libraries of formats raise while a file is written into one MemextError. Exceptions of the user's own arrays pass unchanged."""
    try:
        yield
    except (MemextError, MemoryError):
        raise
    except Exception as error:
        if any(error is getattr(a, "failed", None) for a in arrays):
            raise
        number = getattr(error, "errno", None)
        cause = " ".join(str(error).split())[:400] or type(error).__name__
        raise MemextError(f"{path} cannot be written: {cause}", number if isinstance(number, int) and number > 0 else errno.EINVAL,
                          3 if isinstance(error, OSError) else 2) from error


def check_free(path: pathlib.Path, overwrite: bool, source: pathlib.Path | None) -> None:
    """Refuses a file that must not be written. source: the file that is read for it."""
    if not path.parent.is_dir():
        raise MemextError(f"{path}: the directory {path.parent} does not exist: make it first", errno.ENOENT)
    if os.path.lexists(path) and not overwrite:
        raise MemextError(f"{path} exists already: name another file, or give overwrite=True", errno.EEXIST)
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise MemextError(f"{path} is the file that is read: name another one", errno.EINVAL)
    if path.is_file() and _is_store(path):
        raise MemextError(f"{path} is a store of memext and cannot be replaced: name another file", errno.EINVAL)


def _is_store(path: pathlib.Path) -> bool:
    try:
        _core.look(path)
    except MemextError as error:
        return error.errno in (errno.EIO, errno.ENOTSUP)  # damaged, or of another format
    return True


def sync(path: pathlib.Path) -> None:
    """Writes a file or directory to the disk, before it gets its name. It syncs several files at a time, because a file system can log them together."""
    def one(file: pathlib.Path) -> None:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    with ThreadPoolExecutor(max(1, min(16, len(files)))) as pool:
        list(pool.map(one, files))


_numbers, _naming = itertools.count(), threading.Lock()


@functools.cache
def _machine() -> str:
    """A text that distinguishes the processes that this one can see from those of other machines and containers; "" if it is not known."""
    try:
        seen = f"{pathlib.Path('/proc/sys/kernel/random/boot_id').read_text()} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""
    return hashlib.blake2b(seen.encode(), digest_size=4).hexdigest()


def name_beside(path: pathlib.Path, former: bool = False) -> pathlib.Path:
    """A name in the same directory that no other process and thread uses. former: for a file that is moved away; only its mover may remove it."""
    if not former:
        _sweep(path)
    return path.with_name(f".{path.stem}.memext-{'former-' * former}{_machine()}-{os.getpid()}-{next(_numbers)}{path.suffix}")


def _sweep(path: pathlib.Path) -> None:
    """Removes the unfinished files for this name that killed processes of this machine have left."""
    begin, machine = f".{path.stem}.memext-", _machine()
    names = os.listdir(path.parent) if machine and path.parent.is_dir() else []
    for name in names:
        found = re.fullmatch(rf"{machine}-(\d+)-\d+", name[len(begin):len(name) - len(path.suffix)])
        if found and name.startswith(begin) and name.endswith(path.suffix) and not _is_alive(int(found[1])):
            remove(path.with_name(name))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def replace(beside: pathlib.Path, path: pathlib.Path, overwrite: bool) -> None:
    """Gives a complete file its name. A directory cannot replace another in one step: the former one stays under another name until the new one is in
    place, and comes back if something interrupts."""
    with _naming:  # of several threads one after the other
        there = os.path.lexists(path)
        if there and not overwrite:
            raise MemextError(f"{path} exists now, but did not when the writing began: name another file, or give overwrite=True", errno.EEXIST)
        if not there or not (beside.is_dir() or (path.is_dir() and not path.is_symlink())):
            os.replace(beside, path)
            return
        before = name_beside(path, former=True)
        try:
            os.rename(path, before)
            os.rename(beside, path)
        except BaseException:
            if os.path.lexists(before) and not os.path.lexists(path):
                os.rename(before, path)
            raise
    remove(before)


def remove(path: pathlib.Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
