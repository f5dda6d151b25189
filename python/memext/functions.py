# SPDX-License-Identifier: BSD-3-Clause
"""Functions of single values that a kernel may call, and the expressions that they become. several.py has the functions of lists."""
from __future__ import annotations

import builtins
import math
from typing import Any, Callable

import numpy as np

from . import expressions as ex
from .expressions import Node, Untranslatable
from .specials import node_of


def together(*values: Any, real: bool = False) -> list[Node]:
    """The values as nodes of one common type. real: the type becomes f8 or f4."""
    nodes = list(map(node_of, values))
    kind = ex.common(*nodes)
    kind = "f8" if kind == "float" or real and kind in (*ex.WHOLE, "bool") else "int" if kind == "bool" else kind
    return [ex.cast(node, kind) for node in nodes]


def _real(name: str) -> Callable:
    def call(a: Any) -> Node:
        return ex.helper(name, *together(a, real=True))
    return call


def _real_2(name: str) -> Callable:
    def call(a: Any, b: Any) -> Node:
        return ex.helper(name, *together(a, b, real=True))
    return call


def pair(name: str, a: Any, b: Any) -> Node:
    """The smaller or the larger of two, by the helper's rule for NaN."""
    a, b = together(a, b)
    pick = min if name in ("lower", "fmin", "first") else max
    return ex.helper(name, a, b, lo=pick(a.lo, b.lo), hi=pick(a.hi, b.hi))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, **bounds: Any) -> Node:
    low, high = bounds.get("min", a_min), bounds.get("max", a_max)
    if low is None and high is None:
        raise Untranslatable("np.clip has no bound here: give it a lower bound, an upper bound, or both")
    if low is None or high is None:
        return pair("lower" if low is None else "higher", a, high if low is None else low)
    a, b, c = together(a, low, high)
    return ex.helper("clip", a, b, c, lo=min(max(a.lo, b.lo), c.lo), hi=min(max(a.hi, b.hi), c.hi))


def _sign(a: Any) -> Node:
    (a,) = together(a)
    return ex.helper("sign", a, lo=0 if a.type == "uint" else -1, hi=1)


def _square(a: Any) -> Node:
    a = together(a)[0]
    ends = sorted((a.lo * a.lo, a.hi * a.hi))
    return ex.helper("square", a, lo=0 if a.lo < 0 < a.hi else ends[0], hi=ends[1])


def _fmod(a: Any, b: Any) -> Node:
    a, b = together(a, b)
    most = max(abs(a.lo), abs(a.hi))
    return ex.helper("fmod", a, b, lo=-most if a.lo < 0 else 0, hi=most)


def _rounded(a: Any, decimals: Any = 0) -> Node:
    node = node_of(a)
    if not isinstance(decimals, (int, np.integer)):
        raise Untranslatable("the number of decimals of np.round must be a constant integer")
    if node.type in (*ex.WHOLE, "bool"):
        if decimals < 0:
            raise Untranslatable("a kernel cannot round an integer to tens: write a // 10 * 10, or np.rint(a / 10) * 10")
        return node if node.type == "uint" else ex.cast(node, "int")
    if decimals == 0:
        return ex.helper("rint", node)
    scale = ex.number(10.0 ** abs(int(decimals)))
    there, back = ("*", "/") if decimals > 0 else ("/", "*")
    return ex.binary(back, ex.helper("rint", ex.binary(there, node, scale)), scale)


def _round(number: Any, ndigits: Any = None) -> Node:
    if ndigits not in (None, 0):
        raise Untranslatable("a kernel cannot call Python's round(a, n), which rounds the decimal text of a number: write np.round(a, n)")
    return _rounded(number)


def _reciprocal(a: Any) -> Node:
    if node_of(a).type in (*ex.WHOLE, "bool"):
        raise Untranslatable("np.reciprocal of an integer is not supported, because numpy rounds it to an integer: write 1 / a")
    return ex.binary("/", ex.number(1), node_of(a))


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Node:
    if not isinstance(condlist, (list, tuple)) or not isinstance(choicelist, (list, tuple)) or len(condlist) != len(choicelist) or not condlist:
        raise Untranslatable("np.select needs a list of conditions and a list of the same number of choices, at least one")
    *choices, made = together(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        made = ex.where(node_of(condition), choice, made)
    return made


def _pow(base: Any, exp: Any, mod: Any = None) -> Node:
    if mod is not None:
        raise Untranslatable("a kernel cannot call pow with three arguments: write (a ** b) % c")
    return ex.binary("**", node_of(base), node_of(exp))


def _operator(op: str) -> Callable:
    return lambda a, b: ex.binary(op, node_of(a), node_of(b))


def _divmod(a: Any, b: Any) -> tuple[Node, Node]:
    return _operator("//")(a, b), _operator("%")(a, b)


def _whether(name: str, of_whole: bool) -> Callable:
    def call(a: Any) -> Any:
        node = node_of(a)
        return of_whole if node.type in (*ex.WHOLE, "bool") else ex.helper(name, node)
    return call


def _signbit(a: Any) -> Node:
    node = node_of(a)
    return ex.binary("<", node, ex.number(0)) if node.type in (*ex.WHOLE, "bool") else ex.helper("signbit", node)


# name, the functions that mean it, what they are as an expression and the keywords that they take
TABLE: list[tuple] = [
    ("np.clip", [np.clip], (_clip, ("a_min", "a_max", "min", "max"))),
    ("np.sign", [np.sign], (_sign,)), ("np.square", [np.square], (_square,)), ("np.reciprocal", [np.reciprocal], (_reciprocal,)),
    ("rint", [np.rint], (_real("rint"),)), ("trunc", [np.trunc, np.fix, math.trunc], (_real("trunc"),)),
    ("round", [builtins.round], (_round, ("ndigits",))), ("np.round", [np.round, np.around, getattr(np, "round_", np.round)], (_rounded, ("decimals",))),
    ("remainder", [np.remainder, np.mod], (_operator("%"),)), ("floor_divide", [np.floor_divide], (_operator("//"),)),
    ("np.fmod", [np.fmod], (_fmod,)), ("math.fmod", [math.fmod], (_real_2("fmod"),)), ("divmod", [builtins.divmod, np.divmod], (_divmod,)),
    ("isnan", [np.isnan, math.isnan], (_whether("isnan", False),)), ("isinf", [np.isinf, math.isinf], (_whether("isinf", False),)),
    ("isfinite", [np.isfinite, math.isfinite], (_whether("isfinite", True),)), ("np.signbit", [np.signbit], (_signbit,)),
    ("copysign", [np.copysign, math.copysign], (_real_2("copysign"),)), ("np.heaviside", [np.heaviside], (_real_2("heaviside"),)),
    ("np.fmin", [np.fmin], (lambda a, b: pair("fmin", a, b),)), ("np.fmax", [np.fmax], (lambda a, b: pair("fmax", a, b),)),
    ("np.select", [np.select], (_select, ("default",))), ("pow", [builtins.pow], (_pow, ("base", "exp", "mod")))]
TABLE += [(f.__name__, [f], (_operator(op),)) for f, op in ((np.add, "+"), (np.subtract, "-"), (np.multiply, "*"), (np.true_divide, "/"), (np.less, "<"),
          (np.less_equal, "<="), (np.greater, ">"), (np.greater_equal, ">="), (np.equal, "=="), (np.not_equal, "!="))]
TABLE += [("negative", [np.negative], (lambda a: ex.unary("-", node_of(a)),))]
