# SPDX-License-Identifier: BSD-3-Clause
"""Constant arrays in a kernel's text. Each cell reads an element of its own."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

MOST_ELEMENTS = 1 << 16  # of a table in the text of a kernel
IN_A_LINE = 8


class Table:
    """values: a copy of the array; kind: its type in C; safe: an index can be outside, in a grid that is too large for it;
    asked: the indices before those from the end were counted from the beginning."""

    def __init__(self, values: np.ndarray, shown: str, kind: str, safe: bool, asked: list):
        self.values, self.shown, self.kind, self.safe, self.asked = values, shown, kind, safe, asked

    def take(self, indices: list) -> Any:
        return self.values[tuple(indices)]

    def text(self, helpers: dict[str, str], indices: list[str]) -> str:
        """The C text that reads an element. helpers: gets the table and its function. An index outside the table gives NaN (0 for integers)."""
        numbers = list(map(self._number, self.values.ravel()))
        lines = [", ".join(numbers[k:k + IN_A_LINE]) for k in range(0, len(numbers), IN_A_LINE)]
        body = f"[{self.values.size}] = {{" + ",\n    ".join(lines) + "};"
        same = (name for name, text in helpers.items() if text.startswith("static const") and text == f"static const {self.kind} {name}{body}")
        name = next(same, None) or f"mx_table_{1 + sum(text.startswith('static const') for text in helpers.values())}"
        helpers[name] = f"static const {self.kind} {name}{body}"
        letters = "abcdefgh"[:self.values.ndim]
        at = letters[0]
        for letter, n in zip(letters[1:], self.values.shape[1:]):
            at = f"({at}) * {n} + {letter}" if len(at) > 1 else f"{at} * {n} + {letter}"
        called = f"{name}_{'checked_' if self.safe else ''}{'_'.join(map(str, self.values.shape))}"
        if self.safe:
            within = " && ".join(f"{letter} >= 0 && {letter} < {n}" for letter, n in zip(letters, self.values.shape))
            nothing = "NAN" if self.kind in ("double", "float") else "0"
            text = f"int inside = {within}; {self.kind} v = {name}[inside ? {at} : 0]; return inside ? v : {nothing};"
        else:
            text = f"return {name}[{at}];"
        helpers[called] = f"static inline {self.kind} {called}({', '.join(f'int64_t {letter}' for letter in letters)}) {{ {text} }}"
        return f"{called}({', '.join(indices)})"

    def _number(self, value: Any) -> str:
        if self.kind not in ("double", "float"):
            return f"INT64_C({int(value)})" if self.kind == "int64_t" else str(int(value))
        if math.isnan(value):
            return "NAN"
        if math.isinf(value):
            return "INFINITY" if value > 0 else "-INFINITY"
        text = str(np.float32(value)) if self.kind == "float" else repr(float(value))
        return text + ("" if "." in text or "e" in text else ".0") + ("f" if self.kind == "float" else "")
