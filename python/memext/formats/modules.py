# SPDX-License-Identifier: BSD-3-Clause
"""Functions that several formats use: they import libraries, and choose an array within a file."""
from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

from ..errors import refusal


def module(name: str, what: Any) -> Any:
    """The package that reads or writes the file `what`. Raises MemextError with errno ENOTSUP if it is not installed."""
    try:
        return __import__(name)
    except ImportError:
        raise refusal(f"{what} needs the package {name}, which is not installed: pip install {name}", errno.ENOTSUP) from None


def choose(ranks: Mapping[str, int], wanted: str | None, path: Any, rank: int | None = None) -> str:
    """The name of the array to open. ranks: the dimensions of all arrays, by name. rank: the dimensions to look for; None: three, or two if no array has
    three."""
    if isinstance(wanted, str) and ranks.get(wanted.strip("/")) in ((2, 3) if rank is None else (rank,)):
        return wanted.strip("/")
    wished = rank or (3 if 3 in ranks.values() else 2)
    names = [n for n, r in ranks.items() if r == wished]
    if wanted is None and len(names) == 1:
        return names[0]
    if not names:
        several, others = {2: "two", 3: "three"}.get(rank, "three or two"), f" (it has {', '.join(ranks)})" if ranks else ""  # type: ignore[arg-type]
        raise refusal(f"{path} has no array of {several} dimensions{others}: open another file")
    raise refusal(f"{path} has the arrays {', '.join(names)}: name one of them, open(path, NAME)")
