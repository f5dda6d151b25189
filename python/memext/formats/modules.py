# SPDX-License-Identifier: BSD-3-Clause
"""What the formats have in common: their libraries, and names of arrays within a file."""
from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

from ..errors import refusal


def module(name: str, what: Any) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise refusal(f"{what} is read by the package {name}, which is not installed: pip install {name}", errno.ENOTSUP) from None


def choose(ranks: Mapping[str, int], wanted: str | None, path: Any, rank: int | None = None) -> str:
    """ranks: of all arrays by name. Without a wish of so many dimensions: those of three, or where there are none those of two."""
    if isinstance(wanted, str) and ranks.get(wanted.strip("/")) in ((2, 3) if rank is None else (rank,)):
        return wanted.strip("/")
    wished = rank or (3 if 3 in ranks.values() else 2)
    names = [n for n, r in ranks.items() if r == wished]
    if wanted is None and len(names) == 1:
        return names[0]
    none = f"(none of {'two' if rank == 2 else 'three or two' if rank is None else 'three'} dimensions)"
    raise refusal(f"{path} has the arrays {', '.join(names) or none}: name one of them, open(path, NAME)")
