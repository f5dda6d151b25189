# SPDX-License-Identifier: BSD-3-Clause
"""The library through cffi: error sentences become exceptions, JSON texts become objects, and callbacks reach Python objects."""
from __future__ import annotations

import errno
import json
import re
from typing import Any

import numpy as np

from ._memext import ffi, lib
from .errors import MemextError, MemoryRefused, NotFinite
from .options import OPTIONS

__all__ = ["ffi", "lib", "check", "new_why", "sentence", "take_json", "machine", "look", "mark", "discard", "dram_bytes", "require_dram", "size_text", "version"]


def version() -> str:
    """The version of the linked library."""
    return ffi.string(lib.MX_VERSION).decode()


def regular(path: Any) -> Any:
    """The path, if it is a regular file or does not exist. Opening a pipe or a terminal might wait for ever."""
    import os
    import stat
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        raise MemextError(f"{path} is not a regular file: name a regular file", errno.EINVAL)
    return path


def new_why() -> Any:
    return ffi.new("mx_why *")


_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")
_COMMAND = re.compile(r"\bmemext (?:run|tune|export|info|view|kernel|wavefront)\b")


def in_keywords(text: str) -> str:
    """A sentence of the library, which names options of the command, with the keywords of Run in their place: "lower --queue-depth" becomes "lower queue_depth=". Options without
    such a keyword, and those of a whole command, stay as they are."""
    def keyword(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return found[0] if name not in OPTIONS else f"{name}=True" if OPTIONS[name][0] == "True" else f"{name}="
    command = _COMMAND.search(text)
    end = command.start() if command else len(text)
    return _OPTION.sub(keyword, text[:end]) + text[end:]


def sentence(why: Any) -> str:
    return in_keywords(ffi.string(why.text).decode(errors="replace"))


def status_of(code: int) -> int:
    """The exit status of the command for the error with which a run ends."""
    return {errno.EUCLEAN: 4, errno.EINTR: 5, errno.EIO: 3, errno.EBADMSG: 3, errno.EDOM: 6}.get(-code, 2)


def check(code: int, why: Any = None) -> int:
    """Raises the error of a negative code; returns other codes."""
    if code >= 0:
        return code
    text = sentence(why) if why is not None else ""
    if not text:
        import os
        text = os.strerror(-code)
    kind = {errno.ENOMEM: MemoryRefused, errno.EDOM: NotFinite}.get(-code, MemextError)
    raise kind(text, -code, status_of(code))


def take_json(function: Any, *args: Any) -> dict:
    """The object that a function of the library writes as JSON text."""
    why, out = new_why(), ffi.new("char **")
    check(function(*args, why, out), why)
    try:
        return json.loads(ffi.string(out[0]))
    finally:
        lib.free(out[0])


def machine(path: str | None = None) -> dict:
    return take_json(lib.mx_machine_report, ffi.NULL if path is None else _path(path))


def look(path: Any) -> dict:
    """What a store says of itself. Raises MemextError with errno ENOENT if there is no store."""
    return take_json(lib.mx_store_report, _path(path))


def state_of(path: Any) -> tuple[bool, bytes]:
    """Is a run working on the store, and what distinguishes its state from every other: generation, note, Buffers."""
    why, facts = new_why(), ffi.new("struct mx_store_facts *", {"size": ffi.sizeof("struct mx_store_facts")})
    check(lib.mx_store_look(_path(path), why, facts), why)
    extents = ffi.buffer(facts.extents, facts.n_extents * ffi.sizeof("struct mx_store_extent"))[:]
    return facts.in_use, facts.generation.to_bytes(8, "little") + ffi.buffer(facts.note, facts.note_bytes)[:] + extents


def generation_of(state: bytes) -> int:
    return int.from_bytes(state[:8], "little")


class Hashes:
    """The checksums that --integrity keeps for a Buffer of a store. Raises MemextError with errno ENODATA if there are none."""

    def __init__(self, path: Any, buffer: str):
        why, out = new_why(), ffi.new("mx_hashes **")
        check(lib.mx_hashes_open(_path(path), buffer.encode(), why, out), why)
        self._hashes = ffi.gc(out[0], lib.mx_hashes_free)
        self.unit_bytes, self.bytes = lib.mx_hashes_unit_bytes(self._hashes), lib.mx_hashes_bytes(self._hashes)

    def damage(self, offset: int, data: Any) -> int | None:
        """Checks whole units that were read from this byte of the Buffer on. Returns the first byte of the first unit that differs from what was written."""
        found = ffi.new("uint64_t *")
        code = lib.mx_hashes_check(self._hashes, offset, len(data), ffi.from_buffer(data), found)
        return None if check(0 if code == -errno.EBADMSG else code) == code else found[0]


def _path(path: Any) -> bytes:
    import os
    return os.fsencode(os.fspath(path))


def mark(info: dict) -> tuple[int, int]:
    """The generation and the number of the run, from what look() found. They distinguish one state of one run from all others."""
    return info["generation"], int(info.get("run", "0"), 16)


def discard(path: Any, generation: int, run: int, no_lock: bool = False) -> None:
    """Gives up the store with this mark: its file in a directory is removed, a file or block device may be overwritten."""
    why = new_why()
    check(lib.mx_store_discard(_path(path), generation, run, no_lock, why), why)


def dram_bytes() -> int:
    """The bytes of DRAM that this process may use: the limit of the machine or the cgroup."""
    why, budget = new_why(), ffi.new("mx_budget **")
    check(lib.mx_budget_create(0, 0, why, budget), why)
    facts = ffi.new("struct mx_budget_facts *", {"size": ffi.sizeof("struct mx_budget_facts")})
    lib.mx_budget_facts(budget[0], facts)
    lib.mx_budget_free(budget[0])
    return facts.limit_bytes


def _available_bytes() -> int:
    available = dram_bytes()
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    available = min(available, int(line.split()[1]) * 1024)
    except OSError:
        pass
    return available


def size_text(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1024
    raise AssertionError


def require_dram(count: int, what: str, way_out: str) -> None:
    """Raises MemoryRefused if an array of `count` bytes does not fit into the free DRAM."""
    free = _available_bytes()
    if count > free:
        raise MemoryRefused(f"{what} needs {size_text(count)}, but only {size_text(free)} of DRAM are free: {way_out}", errno.ENOMEM)


# ------------------------------------------------------------------ callbacks

def box_array(box: Any, dtype: np.dtype) -> np.ndarray:
    """The memory of a box of the library, as an array [z][y][x]."""
    shape = (box.z1 - box.z0, box.y1 - box.y0, box.x1 - box.x0)
    element = dtype.itemsize
    span = ((shape[0] - 1) * box.plane_pitch_bytes + (shape[1] - 1) * box.row_pitch_bytes + shape[2] * element) if min(shape) > 0 else 0
    memory = np.frombuffer(ffi.buffer(box.data, span), dtype="u1")
    return np.ndarray(shape, dtype, memory, 0, (box.plane_pitch_bytes, box.row_pitch_bytes, element))


def _fail(owner: Any, error: BaseException, why: Any) -> int:
    owner.error = owner.error or error
    if why != ffi.NULL:
        text = f"{type(error).__name__}: {error}".encode("ascii", "replace")[:500]
        ffi.memmove(why.text, text + b"\0", len(text) + 1)
    number = getattr(error, "errno", None)
    return -number if isinstance(number, int) and 0 < number < 4096 else -errno.EIO


def _guarded(context: Any, why: Any, call: Any) -> int:
    owner = ffi.from_handle(context)
    try:
        call(owner)
        return 0
    except BaseException as error:  # noqa: B036 - nothing may pass through C
        return _fail(owner, error, why)


@ffi.def_extern(error=-errno.EIO)
def mxp_source_open(context, grid, why):
    return _guarded(context, why, lambda owner: owner.open(grid))


@ffi.def_extern(error=-errno.EIO)
def mxp_source_region(context, box, why):
    return _guarded(context, why, lambda owner: owner.region(box))


@ffi.def_extern(error=-errno.EIO)
def mxp_source_identity(context, field, out, why):
    def call(owner: Any) -> None:
        out[0] = owner.identity(ffi.string(field).decode() or "u")
    return _guarded(context, why, call)


@ffi.def_extern()
def mxp_source_close(context):
    ffi.from_handle(context).close()


@ffi.def_extern(error=-errno.EIO)
def mxp_sink_open(context, grid, why):
    return _guarded(context, why, lambda owner: owner.open(grid))


@ffi.def_extern(error=-errno.EIO)
def mxp_sink_region(context, box, why):
    return _guarded(context, why, lambda owner: owner.region(box))


@ffi.def_extern(error=-errno.EIO)
def mxp_sink_close(context, whole, why):
    return _guarded(context, why, lambda owner: owner.close(whole))


@ffi.def_extern(error=-errno.EIO)
def mxp_edit_planes(context, boxes, count, why):
    return _guarded(context, why, lambda owner: owner.planes(boxes, count))


@ffi.def_extern()
def mxp_remark(context, text):
    ffi.from_handle(context).remarks.append(in_keywords(ffi.string(text).decode(errors="replace")))
