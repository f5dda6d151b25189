# SPDX-License-Identifier: BSD-3-Clause
"""What has a special meaning in a kernel: fields, and functions of numpy, math and Python that become expressions."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable

from . import expressions as ex
from .expressions import Node, Untranslatable


class FieldRef:
    """A field as an argument of a kernel: FIELD[dx, dy, dz], FIELD.old, or FIELD, which means FIELD[0, 0, 0]."""

    def __init__(self, name: str, dtype: str, radius: int, readable: bool = True):
        self.name, self.dtype, self.radius, self.readable = name, dtype, radius, readable


class Special:
    """A function that becomes an expression in a kernel. keywords: the keywords that it accepts. named: it also gets the function that makes local variables."""

    def __init__(self, name: str, call: Callable, keywords: Iterable[str] = (), named: bool = False):
        self.name, self.call, self.keywords, self.named = name, call, tuple(keywords), named

    def use(self, local: Callable[[str, Node], Node], args: list, keywords: dict[str, Any]) -> Any:
        unknown = next((k for k in keywords if k not in self.keywords), None)
        if unknown is not None:
            raise Untranslatable(f"{self.name} accepts no keywords in a kernel: leave {unknown}= out" if not self.keywords else
                                 f"{self.name} does not accept {unknown}= in a kernel: it accepts only {', '.join(f'{k}=' for k in self.keywords)}")
        try:
            return self.call(local, *args, **keywords) if self.named else self.call(*args, **keywords)
        except TypeError:
            raise Untranslatable(f"{self.name} does not accept {len(args)} arguments in a kernel") from None


SPECIALS: dict[int, Special] = {}  # by the function's id; translate.py, which knows what they mean, fills it


def special(function: Any) -> Special | None:
    return SPECIALS.get(id(function))


def node_of(value: Any) -> Node:
    if isinstance(value, Node):
        return value
    if isinstance(value, FieldRef):
        if not value.readable:
            raise Untranslatable(f"this function computes {value.name}, so it cannot read neighbours or new values of it: {value.name}.old is the cell's value before")
        return ex.load("at", value.name, value.dtype)
    return ex.number(value)


def symbolic(value: Any) -> bool:
    """Does it depend on the cell?"""
    if isinstance(value, (tuple, list)):
        return any(map(symbolic, value))
    if isinstance(value, dict):
        return any(map(symbolic, value.values()))
    return isinstance(value, (Node, FieldRef))
