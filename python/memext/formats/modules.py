# SPDX-License-Identifier: BSD-3-Clause
"""What the formats have in common: their libraries, and names of arrays within a file."""
from __future__ import annotations

import errno
from typing import Any

from ..errors import refusal


def module(name: str, what: Any) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise refusal(f"{what} is read by the package {name}, which is not installed: pip install {name}", errno.ENOTSUP) from None


def choose(names: list[str], wanted: str | None, path: Any) -> str:
    if isinstance(wanted, str) and wanted.strip("/") in names:
        return wanted.strip("/")
    if wanted is None and len(names) == 1:
        return names[0]
    raise refusal(f"{path} has the arrays {', '.join(names) or '(none of three dimensions)'}: name one of them, open(path, NAME)")
