# SPDX-License-Identifier: BSD-3-Clause
"""The present parameters of a run, which a program may change between steps."""
from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np

from .errors import MemextError
from .exact import real
from .series import Series


class Parameters(MutableMapping[str, Any]):
    """A mapping of names to values. run.params["dt"] = 0.05 holds from the present step on. Before the first step it is the value that the run begins with."""
    __slots__ = ("_defaults", "_found", "_given", "_of_reductions", "_when", "edits")

    def __init__(self, defaults: Mapping[str, float], of_reductions: Mapping[str, float], given: dict[str, Any], when: Callable[[], str]):
        """given: the program's values, which are compared with the store. when: gives "begin", "past" (the store is further on, so the value is ignored) or "now"."""
        self._defaults, self._of_reductions, self._given, self._when = dict(defaults), dict(of_reductions), given, when
        self._found: dict[str, float] = {}  # what the store has
        self.edits: dict[str, float] = {}  # not committed yet

    def now(self) -> dict[str, Any]:
        """The present values: numbers, and a Series for a parameter over time."""
        return {**self._defaults, **self._given, **self._found, **self.edits}

    def found(self, stored: Mapping[str, Any]) -> None:
        """Notes the parameters of the store that the run resumes."""
        self._found = {n: v for n, v in stored.items() if isinstance(v, float) and n in {**self._of_reductions, **self._defaults} and not isinstance(self._given.get(n), Series)}

    def committed(self, edits: Mapping[str, float]) -> None:
        """Drops the changes that are committed now. Values that were set meanwhile are kept for the next commit."""
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
            raise MemextError(f"{name} is not a parameter of the kernel: it has {', '.join(known) or 'none'}", errno.EINVAL)
        if isinstance(self._given.get(name), Series):
            raise MemextError(f"the parameter {name} has a value for each step and cannot change between steps: give other values as params= of a new Run", errno.EINVAL)
        if not isinstance(value, (int, float, np.number)) or isinstance(value, bool):
            raise MemextError(f"params[{name!r}] = {value!r}: give a finite number", errno.EINVAL)
        number = real(value, f"params[{name!r}]")
        when = self._when()
        if when == "begin":
            self._given[name] = number
        elif when == "now":
            self.edits[name] = number

    def __delitem__(self, name: str) -> None:
        raise MemextError(f"the parameter {name} cannot be deleted: give it another value", errno.EINVAL)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._of_reductions, **self.now()})

    def __len__(self) -> int:
        return len({**self._of_reductions, **self.now()})

    def __repr__(self) -> str:
        return repr(dict(self))
