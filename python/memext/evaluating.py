# SPDX-License-Identifier: BSD-3-Clause
"""Evaluates expressions over one cell by numpy, over many cells at a time."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from . import helpers
from .expressions import COMPARISONS, FOLD, Node, common

_NUMPY_FUNCTIONS = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "pow": np.power}
_NUMPY_TYPES = {"f8": np.float64, "f4": np.float32, "int": np.int64, "uint": np.uint64, "bool": np.bool_, "float": np.float64}


def evaluate(node: Node, leaf: Callable[[Node], Any], memo: dict[int, Any]) -> Any:
    """The value of an expression over many cells. leaf gives the values of at, old, param, coordinate and local nodes."""
    if id(node) in memo:
        return memo[id(node)]
    op, kind = node.op, _NUMPY_TYPES[node.type]
    if op == "number":
        return kind(node.data)
    if op in ("at", "old", "param", "coordinate", "local"):
        value = leaf(node)
        value = value.astype(kind, copy=False) if isinstance(value, np.ndarray) else kind(value)
    else:
        meet = kind
        if op in COMPARISONS:
            meet = _NUMPY_TYPES[common(*node.args)]
        args = [evaluate(a, leaf, memo) for a in node.args]
        if op not in ("where", "cast", "!", "helper", "table"):
            args = [a.astype(meet, copy=False) if isinstance(a, np.ndarray) else meet(a) for a in args]
        with np.errstate(all="ignore"):
            value = _apply(node, op, args, kind)
    memo[id(node)] = value
    return value


def _apply(node: Node, op: str, args: list, kind: type) -> Any:
    if op == "where":
        return np.where(args[0], np.asarray(args[1], kind), np.asarray(args[2], kind))
    if op == "cast":
        return np.asarray(args[0]).astype(kind)
    if op == "neg":
        return -args[0]
    if op == "!":
        return ~np.asarray(args[0], bool)
    if op == "~":
        return ~args[0]
    if op in ("min", "max"):
        better = args[1] < args[0] if op == "min" else args[1] > args[0]
        return np.where(better, args[1], args[0])
    if op == "abs":
        return np.abs(args[0])
    if op == "helper":
        return helpers.evaluate(node.data, args)
    if op == "table":
        return np.asarray(node.data.take(args)).astype(kind)  # tables of narrow integers are int in C
    if op == "call":
        return _NUMPY_FUNCTIONS.get(node.data, None)(*args) if node.data in _NUMPY_FUNCTIONS else getattr(np, node.data)(*args)
    return FOLD[op](*args)
