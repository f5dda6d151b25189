# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of memext. Each has the library's sentence: the value, the limit, the way out."""
from __future__ import annotations

import errno as _errno
from typing import Any


class MemextError(Exception):
    """A request that the library refused or could not finish.

    errno: a positive number (errno.EINVAL, ...), or 0 if there is none. status: the exit status that the command `memext` would have
    (2 refused, 3 I/O error, 4 the result differs from the plain computation, 5 interrupted, 6 cells are not finite)."""

    def __init__(self, sentence: str, errno: int = 0, status: int = 2):
        super().__init__(sentence)
        self.sentence, self.errno, self.status = sentence, errno, status

    @property
    def errorname(self) -> str:
        return _errno.errorcode.get(self.errno, "")


class KernelError(MemextError):
    """Python code cannot become a kernel. file, line (from 1) and text say where it stands."""

    def __init__(self, sentence: str, file: str = "", line: int = 0, text: str = ""):
        where = f"{file}:{line}: " if file else ""
        super().__init__(f"{where}{sentence}" + (f"\n    {text}" if text else ""), _errno.EINVAL)
        self.file, self.line, self.text = file, line, text


class NotFinite(MemextError, ArithmeticError):
    """Cells of the state, or of the initial values, are NaN or infinite. run.report["nonfinite_cells"] says how many."""


class MemoryRefused(MemextError, MemoryError):
    """The requested array or run does not fit into DRAM."""


def refusal(sentence: str, number: int = _errno.EINVAL) -> MemextError:
    return MemextError(sentence, number)


def unreadable(what: Any, error: BaseException, number: int = _errno.EINVAL) -> MemextError:
    """Makes one MemextError, with the file and the cause, of any error that the library of a format raises."""
    own = getattr(error, "errno", None)
    cause = " ".join(str(error).split())[:400] or type(error).__name__
    return refusal(f"{what} cannot be read: {cause}", own if isinstance(own, int) and own > 0 else number)
