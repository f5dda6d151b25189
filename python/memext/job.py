# SPDX-License-Identifier: BSD-3-Clause
"""One run of the library (mx_run)."""
from __future__ import annotations

import errno
import os
import sys
import threading
import time
from typing import Any, Callable

from . import _core
from .edits import Edits
from .errors import MemextError
from .sources import Sink, Source

_POLL_S = 0.1
_PATIENCE_S = 3.0  # after Ctrl-C, with what prepares


class Job:
    """One mx_run, with its options and callbacks, and the objects that these need as long as it is open."""

    def __init__(self, options: list[str], source: Source | None = None, sink: Sink | None = None, edits: Edits | None = None):
        ffi, lib = _core.ffi, _core.lib
        self.source, self.sink, self.edits, self.remarks, self.closed, self.left = source, sink, edits, [], False, False
        words = [ffi.new("char[]", os.fsencode(o)) for o in options]
        handle = ffi.new_handle(self)
        given = ffi.new("struct mx_run_options *", {"size": ffi.sizeof("struct mx_run_options"), "remark": lib.mxp_remark, "context": handle})
        array = ffi.new("char *[]", [*words, ffi.NULL])
        given.options = ffi.cast("const char *const *", array)
        self._alive: list[Any] = [words, handle, array, given]
        if source is not None:
            made, more = source.struct()
            given.source = made
            self._alive += [made, more]
        if sink is not None:
            made, more = sink.struct()
            given.sink = made
            self._alive += [made, more]
        why, out = _core.new_why(), ffi.new("mx_run **")
        _core.check(lib.mx_run_open(given, why, out), why)
        self.run = out[0]
        if edits is not None:
            made, more = edits.struct()
            self._alive += more
            _core.check(lib.mx_run_edit(self.run, made, why), why)
        self.progress = ffi.new("struct mx_run_progress *", {"size": ffi.sizeof("struct mx_run_progress"), "committed_step": -1})

    def _raise(self, code: int, why: Any) -> None:
        for side in (self.source, self.sink, self.edits, self.edits and self.edits.source):
            if side is not None and side.error is not None:
                raise side.error
        try:
            _core.check(code, why)
        except MemextError as error:
            sentence = error.sentence.replace("or start again with the option force and without resume", "or start again: resume=False and force=True")
            raise type(error)(sentence, error.errno, error.status) from None

    def compare(self) -> None:
        why = _core.new_why()
        self._raise(_core.lib.mx_run_compare(self.run, why), why)

    def prepare(self) -> None:
        """Prepares the run on a thread, so that Ctrl-C works. A thread that does not end then waits for something that may never come; it is left alone."""
        why, codes, prepared = _core.new_why(), [], threading.Event()

        def work() -> None:
            codes.append(_core.lib.mx_run_prepare(self.run, why))
            prepared.set()

        threading.Thread(target=work, daemon=True).start()
        try:
            while not prepared.wait(_POLL_S):
                pass
        except KeyboardInterrupt:
            _core.lib.mx_run_stop(self.run)
            self.left = not prepared.wait(_PATIENCE_S)
            raise
        self._raise(codes[0], why)

    def start(self) -> None:
        why = _core.new_why()
        _core.check(_core.lib.mx_run_start(self.run, why), why)

    def wait(self, seconds: float) -> tuple[int, Any]:
        why = _core.new_why()
        return _core.lib.mx_run_wait(self.run, seconds, why, self.progress), why

    def finish(self, watch: Callable[[Any], None]) -> None:
        """Waits until the run ends. Ctrl-C asks it to stop, and is raised after the commit."""
        try:
            while True:
                code, why = self.wait(_POLL_S)
                watch(self.progress)
                if code != 0:
                    break
        except KeyboardInterrupt:
            _core.lib.mx_run_stop(self.run)
            print("\nmemext: stopping after the next commit", file=sys.stderr, flush=True)
            code, why, late = 0, None, time.monotonic() + _PATIENCE_S
            while code == 0:  # a second Ctrl-C does not wait
                code, why = self.wait(_POLL_S)
                if code == 0 and time.monotonic() > late and _core.ffi.string(self.progress.phase) == b"prepare":
                    self.left = True
                    raise KeyboardInterrupt("interrupted while the run was being prepared: nothing was computed") from None
            step = self.progress.committed_step
            if code < 0 and code != -errno.EINTR:
                self._raise(code, why)
            kept = f"step {step} is committed: the same run resumes from there" if step >= 0 else "nothing was committed yet"
            raise KeyboardInterrupt(kept) from None
        except BaseException:  # from the caller's progress function: the caller shall see it, and only a run that has ended has a report
            _core.lib.mx_run_stop(self.run)
            while self.wait(_POLL_S)[0] == 0:
                pass
            raise
        if code < 0:
            self._raise(code, why)

    def report(self) -> dict:
        return _core.take_json(_core.lib.mx_run_report, self.run)

    def close(self) -> None:
        if not self.closed and not self.left:
            self.closed = True
            _core.lib.mx_run_close(self.run)
