# SPDX-License-Identifier: BSD-3-Clause
"""Functions that C lacks, or has under names that fields may have. A kernel's text contains the definition of each one that it uses. The results are
numpy's, to the bit."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np


class Helper:
    """real: the body in C for arguments a, b, c of type {t}, double or float; {f} is the ending of names of <math.h>. whole: the body for integers, if
    there is one. numpy: the same function over arrays of one type. truth: the result is a condition."""

    def __init__(self, real: str, numpy: Callable, whole: str = "", truth: bool = False):
        self.real, self.numpy, self.whole, self.truth = real, numpy, whole, truth


def _lower(a: Any, b: Any) -> Any:
    return np.where((a < b) | np.isnan(a), a, b)


def _higher(a: Any, b: Any) -> Any:
    return np.where((a > b) | np.isnan(a), a, b)


def _floor_divide(a: Any, b: Any) -> Any:
    m = np.fmod(a, b)
    d = (a - m) / b
    d = np.where((m != 0) & ((b < 0) != (m < 0)), d - d.dtype.type(1), d)
    q = np.floor(d)
    q = np.where(d - q > 0.5, q + d.dtype.type(1), q)
    return np.where(b == 0, a / b, np.where(d != 0, q, np.copysign(np.zeros_like(d), a / b)))


def _remainder(a: Any, b: Any) -> Any:
    m = np.fmod(a, b)
    return np.where(m != 0, np.where((b < 0) != (m < 0), m + b, m), np.copysign(np.zeros_like(m), b))


HELPERS: dict[str, Helper] = {
    "rint": Helper("return rint{f}(a);", np.rint),
    "trunc": Helper("return trunc{f}(a);", np.trunc),
    "copysign": Helper("return copysign{f}(a, b);", np.copysign),
    "square": Helper("return a * a;", lambda a: a * a, "return a * a;"),
    "sign": Helper("return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a;", lambda a: np.where(a > 0, a.dtype.type(1), np.where(a < 0, a.dtype.type(-1), np.where(
        a == 0, a.dtype.type(0), a))), "return (a > 0) - (a < 0);"),
    "clip": Helper("{t} m = a > b || a != a ? a : b; return m < c || m != m ? m : c;", lambda a, b, c: _lower(_higher(a, b), c),
                   "{t} m = a > b ? a : b; return m < c ? m : c;"),
    "lower": Helper("return a < b || a != a ? a : b;", _lower, "return a < b ? a : b;"),
    "higher": Helper("return a > b || a != a ? a : b;", _higher, "return a > b ? a : b;"),
    "fmin": Helper("return a < b || b != b ? a : b;", lambda a, b: np.where((a < b) | np.isnan(b), a, b), "return a < b ? a : b;"),
    "fmax": Helper("return a > b || b != b ? a : b;", lambda a, b: np.where((a > b) | np.isnan(b), a, b), "return a > b ? a : b;"),
    # Of a sorted pair, equal ones as they stood; NaN is larger than all.
    "first": Helper("return b < a || a != a ? b : a;", lambda a, b: np.where((b < a) | np.isnan(a), b, a), "return b < a ? b : a;"),
    "second": Helper("return b < a || a != a ? a : b;", lambda a, b: np.where((b < a) | np.isnan(a), a, b), "return b < a ? a : b;"),
    "less": Helper("return a < b || (a != a && b == b);", lambda a, b: (a < b) | np.isnan(a) & ~np.isnan(b), "return a < b;", True),
    "more": Helper("return a > b || (a != a && b == b);", lambda a, b: (a > b) | np.isnan(a) & ~np.isnan(b), "return a > b;", True),
    "isnan": Helper("return a != a;", np.isnan, truth=True),
    "isinf": Helper("return fabs{f}(a) == INFINITY;", np.isinf, truth=True),
    "isfinite": Helper("return fabs{f}(a) < INFINITY;", np.isfinite, truth=True),
    "signbit": Helper("return copysign{f}(1, a) < 0;", np.signbit, truth=True),
    "heaviside": Helper("return a != a ? a : a == 0 ? b : a < 0 ? 0 : 1;", lambda a, b: np.where(np.isnan(a), a, np.where(a == 0, b, np.where(
        a < 0, a.dtype.type(0), a.dtype.type(1))))),
    "fmod": Helper("return fmod{f}(a, b);", np.fmod, "return b == 0 || (({t})-1 < 0 && b == ({t})-1) ? 0 : a % b;"),  # C's % of the lowest number and -1 is an error
    "remainder": Helper("{t} m = fmod{f}(a, b); return m != 0 ? ((b < 0) != (m < 0) ? m + b : m) : copysign{f}(0, b);", _remainder),
    "floor_divide": Helper("{t} m = fmod{f}(a, b), d = (a - m) / b; d = m != 0 && (b < 0) != (m < 0) ? d - 1 : d; {t} q = floor{f}(d); "
                           "q = d - q > 0.5 ? q + 1 : q; q = d != 0 ? q : copysign{f}(0, a / b); return b == 0 ? a / b : q;", _floor_divide)}


def definition(name: str, called: str, kind: str, result: str, count: int) -> str:
    """The C text of a helper for arguments of one C type."""
    helper = HELPERS[name]
    body = (helper.real if kind in ("double", "float") else helper.whole).replace("{t}", kind).replace("{f}", "f" if kind == "float" else "")
    return f"static inline {result} {called}({', '.join(f'{kind} {letter}' for letter in 'abc'[:count])}) {{ {body} }}"


def evaluate(name: str, args: list) -> Any:
    return HELPERS[name].numpy(*map(np.asarray, args))
