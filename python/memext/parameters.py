# SPDX-License-Identifier: BSD-3-Clause
"""The parameters of a run as they are now, which a program may change between steps."""
from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np

from .errors import MemextError
from .exact import real
from .series import Series


class Parameters(MutableMapping[str, Any]):
    """run.params["dt"] = 0.05: the new value holds from the present step on. Before anything was computed it is a value that the run begins with."""
    __slots__ = ("_defaults", "_found", "_given", "_of_reductions", "_when", "edits")

    def __init__(self, defaults: Mapping[str, float], of_reductions: Mapping[str, float], given: dict[str, Any], when: Callable[[], str]):
        """given: what the program gave, which the store is compared with. when: "begin", "past" (the store is further on, so the value is ignored) or "now"."""
        self._defaults, self._of_reductions, self._given, self._when = dict(defaults), dict(of_reductions), given, when
        self._found: dict[str, float] = {}  # what the store has
        self.edits: dict[str, float] = {}  # not committed yet

    def now(self) -> dict[str, Any]:
        """Numbers, and those over time as series."""
        return {**self._defaults, **self._given, **self._found, **self.edits}

    def found(self, stored: Mapping[str, Any]) -> None:
        """Of a store that the run goes on with."""
        self._found = {n: v for n, v in stored.items() if isinstance(v, float) and n in {**self._of_reductions, **self._defaults} and not isinstance(self._given.get(n), Series)}

    def committed(self, edits: Mapping[str, float]) -> None:
        """Of the edits that a part of the run began with; what was set meanwhile is still to come."""
        self._found.update(edits)
        for name, value in edits.items():
            if self.edits.get(name) == value:
                del self.edits[name]

    def __getitem__(self, name: str) -> Any:
        value = {**self._of_reductions, **self.now()}[name]
        return value.values if isinstance(value, Series) else value

    def __setitem__(self, name: str, value: Any) -> None:
        known = {**self._defaults, **self._of_reductions}
        if name not in known:
            raise MemextError(f"{name} is no parameter of the kernel: it has {', '.join(known) or 'none'}", errno.EINVAL)
        if isinstance(self._given.get(name), Series):
            raise MemextError(f"the parameter {name} has a value for each step: give others with params when the run is made", errno.EINVAL)
        if not isinstance(value, (int, float, np.number)) or isinstance(value, bool):
            raise MemextError(f"params[{name!r}] = {value!r}: a finite number is needed", errno.EINVAL)
        number = real(value, f"params[{name!r}]")
        when = self._when()
        if when == "begin":
            self._given[name] = number
        elif when == "now":
            self.edits[name] = number

    def __delitem__(self, name: str) -> None:
        raise MemextError(f"the parameter {name} cannot be taken away: give it another value", errno.EINVAL)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._of_reductions, **self.now()})

    def __len__(self) -> int:
        return len({**self._of_reductions, **self.now()})

    def __repr__(self) -> str:
        return repr(dict(self))
