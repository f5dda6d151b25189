# SPDX-License-Identifier: BSD-3-Clause
"""Expressions over one cell. The translator makes them of Python code; they can be written as C, and evaluated by numpy.

Types are f8, f4, int, uint (uint64_t) and bool. The range of an int is known and decides between int and int64_t in C. A number in the code adapts
to its operand, as in numpy 2: 0.5 * u has the type of u. Integers that may be beyond int64 wrap round, as in numpy."""
from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from . import helpers
from .celltypes import C_TYPES, RANGES

WHOLE = ("int", "uint")
INT64, UINT64 = RANGES["q"], RANGES["Q"]
FUNCTIONS = ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "atan2", "floor", "ceil", "pow", "cbrt",
             "expm1", "log1p", "log2", "log10", "exp2", "hypot")
OF_TWO = ("atan2", "pow", "hypot")
COORDINATES = {"x": "X", "y": "Y", "z": "Z", "t": "T", "nx": "NX", "ny": "NY", "nz": "NZ"}
MOST_COORDINATE = 2**60
DEEP = 100  # operations within each other: deeper expressions get local variables, since functions here call themselves at each


class Node:
    """An operation op with the nodes args. type: f8 f4 int uint bool, or float for numbers; lo, hi: range of an integer; data: number, name, or
    (field, dx, dy, dz). of_cells: it depends on cells of integers; wraps: the result of + - or * may be beyond int64. depth: operations within each other."""
    __slots__ = ("op", "args", "type", "lo", "hi", "data", "of_cells", "wraps", "depth")

    def __init__(self, op: str, args: tuple = (), type: str = "f8", lo: int = 0, hi: int = 0, data: Any = None, of_cells: bool = False):
        self.op, self.args, self.type, self.lo, self.hi, self.data = op, args, type, lo, hi, data
        self.of_cells = of_cells or any(a.of_cells for a in args)
        self.depth = 1 + max((a.depth for a in args), default=0)
        if type == "int" and op != "number" and (lo < INT64[0] or hi > INT64[1]):
            self.lo, self.hi = INT64
        self.wraps = type == "int" and op in ("+", "-", "*") and (self.lo, self.hi) == INT64

    @property
    def wide(self) -> bool:
        return self.type == "int" and (self.lo < -2**31 or self.hi >= 2**31)


class Untranslatable(Exception):
    """Says why code cannot be translated; the translator adds the line."""


def number(value: Any) -> Node:
    if isinstance(value, (bool, np.bool_)):
        return Node("number", (), "bool", 0, 1, bool(value))
    if isinstance(value, (int, np.integer)):
        return Node("number", (), "int", int(value), int(value), int(value))
    if isinstance(value, (float, np.floating)):
        return Node("number", (), "float", data=float(value))
    raise Untranslatable(f"{value!r} is not a number: a kernel computes with numbers")


def is_number(node: Node) -> bool:
    return node.op == "number"


def load(op: str, field: str, dtype: str, at: tuple[int, int, int] = (0, 0, 0)) -> Node:
    if dtype in RANGES:
        return Node(op, (), "uint" if dtype == "Q" else "int", *RANGES[dtype], data=(field, *at), of_cells=True)
    return Node(op, (), dtype, data=(field, *at))


def coordinate(name: str) -> Node:
    return Node("coordinate", (), "int", 0, MOST_COORDINATE, name)


def common(*nodes: Node, modulo: bool = False) -> str:
    """The common type of these values. modulo: the operation has the same low bits for values that wrap."""
    kinds = {node.type for node in nodes}
    if "f8" in kinds:
        return "f8"
    if "f4" in kinds:
        large = any(n.type in WHOLE and not is_number(n) and max(abs(n.lo), abs(n.hi)) > 2**24 for n in nodes)
        return "f8" if large else "f4"
    if "float" in kinds:
        return "float" if all(is_number(n) for n in nodes) else "f8"
    if "uint" in kinds:
        if any(n.lo < 0 and (n.of_cells or not modulo or (n.lo, n.hi) != INT64) for n in nodes):  # of coordinates that wrap the cast has the bits
            raise Untranslatable("a uint64 value and an integer that may be negative have no common integer type: convert one of them, with np.uint64() or int()")
        return "uint"
    if "int" in kinds and any(is_number(n) and not INT64[0] <= n.lo <= n.hi <= INT64[1] for n in nodes):
        raise Untranslatable("a number is beyond int64: convert its other operand with np.uint64(), which holds up to 2^64 - 1")
    return "bool" if kinds == {"bool"} else "int"


def cast(node: Node, to: str) -> Node:
    """node as `to` (f8, f4, int, uint)."""
    if is_number(node) and to in ("f8", "f4"):
        return Node("number", (), to, data=float(node.data))
    if to == "uint" and node.type != "uint":
        if node.type not in ("int", "bool"):
            raise Untranslatable("np.uint64() cannot convert a floating-point value here: write np.uint64(int(...))")
        return Node("number" if is_number(node) else "cast", () if is_number(node) else (node,), "uint", *_wrapped(node), data=is_number(node) and int(node.data) % 2**64)
    if node.type == "uint" and to == "int" and node.hi > INT64[1]:
        return Node("cast", (node,), "int", *INT64)
    if is_number(node) and to == "int":
        return number(int(node.data))
    if node.type == to:
        return node
    if node.type == "bool" and to == "int":
        return Node("cast", (node,), "int", 0, 1)
    if node.type == "uint" and to == "int":
        return Node("cast", (node,), "int", node.lo, node.hi)
    if to == "int":
        return Node("cast", (node,), "int", -2**62, 2**62)
    return Node("cast", (node,), to)


def _wrapped(node: Node) -> tuple[int, int]:
    """The range of an integer as uint64."""
    if is_number(node):
        return (int(node.data) % 2**64,) * 2
    return (node.lo, node.hi) if node.lo >= 0 and node.hi <= UINT64[1] else UINT64


FOLD: dict[str, Callable] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b, "//": lambda a, b: a // b,
    "%": lambda a, b: a % b, "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b, "&": lambda a, b: a & b, "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "**": lambda a, b: a**b}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def _range(op: str, a: Node, b: Node) -> tuple[int, int]:
    if op == "+":
        return a.lo + b.lo, a.hi + b.hi
    if op == "-":
        return a.lo - b.hi, a.hi - b.lo
    if op == "*":
        products = [p * q for p in (a.lo, a.hi) for q in (b.lo, b.hi)]
        return min(products), max(products)
    if op in ("&", "|", "^") and a.lo >= 0 and b.lo >= 0:
        bits = max(a.hi.bit_length(), b.hi.bit_length())
        return 0, min(a.hi, b.hi) if op == "&" else 2**bits - 1
    return min(a.lo, b.lo, -2**62), max(a.hi, b.hi, 2**62)


def binary(op: str, a: Node, b: Node) -> Node:
    if is_number(a) and is_number(b):
        try:
            return number(FOLD[op](a.data, b.data))
        except (TypeError, ZeroDivisionError, ValueError) as error:
            raise Untranslatable(str(error)) from None
    if op == "**":
        return power(a, b)
    if op in COMPARISONS:
        to = common(a, b)
        if to in ("f8", "f4", "uint"):
            a, b = cast(a, to), cast(b, to)
        return Node(op, (a, b), "bool", 0, 1)
    kind = common(a, b, modulo=op in ("+", "-", "*", "&", "|", "^"))
    if op in ("&", "|", "^"):
        if kind == "bool":
            return Node(op, (a, b), "bool", 0, 1)
        if kind == "uint":
            return _unsigned(op, cast(a, kind), cast(b, kind))
        if kind != "int":
            raise Untranslatable(f"{op} needs integers or conditions on both sides: put comparisons in parentheses")
        return Node(op, (cast(a, "int"), cast(b, "int")), "int", *_range(op, a, b))
    if kind == "bool":
        a, b, kind = cast(a, "int"), cast(b, "int"), "int"
    if op == "/":
        to = "f8" if kind in WHOLE else kind
        return Node("/", (cast(a, to), cast(b, to)), to)
    if kind == "uint" and op in ("<<", ">>") and b.type != "uint":
        return _unsigned(op, cast(a, kind), b)
    if kind == "uint":
        return _unsigned(op, cast(a, kind), cast(b, kind))
    if kind == "int":
        return _whole(op, cast(a, "int"), cast(b, "int"))
    if op in ("//", "%"):
        return helper("floor_divide" if op == "//" else "remainder", cast(a, kind), cast(b, kind))
    if op in ("<<", ">>"):
        raise Untranslatable(f"{op} needs integers on both sides: convert with int(...)")
    return Node(op, (cast(a, kind), cast(b, kind)), kind)


def _unsigned(op: str, a: Node, b: Node) -> Node:
    """An operation on uint64, modulo 2^64."""
    if op in ("//", "%") and is_number(b) and b.data == 0:
        raise Untranslatable(f"the right side of {op} is the constant 0: integers cannot be divided by zero")
    if op in ("<<", ">>") and (not is_number(b) or not 0 <= b.data < 64):
        raise Untranslatable(f"{op} needs a constant from 0 to 63 on its right")
    lo, hi = _range(op, a, b) if op in ("+", "*") else UINT64
    if op in ("&", "//", ">>", "%"):
        lo, hi = 0, min(a.hi, b.hi) if op == "&" else a.hi >> b.data if op == ">>" else a.hi
    return Node(op, (a, b), "uint", *((lo, hi) if hi <= UINT64[1] else UINT64))


def _whole(op: str, a: Node, b: Node) -> Node:
    if op in ("//", "%"):
        if is_number(b) and b.data == 0:
            raise Untranslatable(f"the right side of {op} is the constant 0: integers cannot be divided by zero")
        lo, hi = (0, max(b.hi - 1, 0)) if op == "%" and b.lo > 0 else (-2**62, 2**62)
        if op == "//" and b.lo > 0:
            lo, hi = a.lo // b.lo if a.lo < 0 else a.lo // b.hi, a.hi // b.lo if a.hi >= 0 else a.hi // b.hi
        return Node(op, (a, b), "int", lo, hi)
    if op in ("<<", ">>"):
        if not is_number(b) or not 0 <= b.data < 63:
            raise Untranslatable(f"{op} needs a constant from 0 to 62 on its right")
        return Node(op, (a, b), "int", *((a.lo << b.data, a.hi << b.data) if op == "<<" else (a.lo >> b.data, a.hi >> b.data)))
    return Node(op, (a, b), "int", *_range(op, a, b))


def power(a: Node, b: Node) -> Node:
    if not is_number(b):
        to = common(a, b)
        to = "f8" if to in (*WHOLE, "bool") else to
        return Node("call", (cast(a, to), cast(b, to)), to, data="pow")
    if isinstance(b.data, int) and 1 <= b.data <= 16:
        product = a
        for _ in range(b.data - 1):
            product = binary("*", product, a)
        return product
    if b.data == 0.5:
        return call("sqrt", a)
    if b.data == 0:
        return number(1)
    if isinstance(b.data, int) and -16 <= b.data < 0:
        return binary("/", number(1), power(a, number(-b.data)))
    to = common(a, b)
    to = "f8" if to in (*WHOLE, "bool") else to
    return Node("call", (cast(a, to), cast(b, to)), to, data="pow")


def unary(op: str, a: Node) -> Node:
    if op == "+":
        return a
    if is_number(a):
        return number({"-": lambda v: -v, "~": lambda v: (not v) if isinstance(v, bool) else ~v, "!": lambda v: not v}[op](a.data))
    if op == "-":
        a = cast(a, "int") if a.type == "bool" else a
        if a.type == "uint":
            return _unsigned("-", cast(number(0), "uint"), a)
        if a.lo == INT64[0]:
            return _whole("-", number(0), a)
        return Node("neg", (a,), a.type, -a.hi, -a.lo)
    if op == "!" or a.type == "bool":
        return Node("!", (truth(a),), "bool", 0, 1)
    if a.type == "uint":
        return Node("~", (a,), "uint", *UINT64)
    if a.type != "int":
        raise Untranslatable("~ needs an integer or a condition: convert with int(...)")
    return Node("~", (a,), "int", -a.hi - 1, -a.lo - 1)


def shallow(local: Callable, node: Node) -> Node:
    """The value, or a local variable that has it if it is too deep. local: makes one, of a name and a value."""
    return local("part", node) if node.depth > DEEP else node


def truth(a: Node) -> Node:
    if a.type == "bool":
        return a
    return binary("!=", a, number(0))


def where(condition: Node, a: Node, b: Node) -> Node:
    condition = truth(condition)
    if is_number(condition):
        return a if condition.data else b
    kind = common(a, b)
    kind = "f8" if kind == "float" else kind
    if kind in ("f8", "f4"):
        return Node("where", (condition, cast(a, kind), cast(b, kind)), kind)
    if kind in WHOLE:
        a, b = cast(a, kind), cast(b, kind)
    return Node("where", (condition, a, b), kind, min(a.lo, b.lo), max(a.hi, b.hi))


def extreme(op: str, a: Node, b: Node) -> Node:
    """min or max, as Python's: b where b is less (greater), else a."""
    if is_number(a) and is_number(b):
        return number((min if op == "min" else max)(a.data, b.data))
    kind = common(a, b)
    kind = "int" if kind == "bool" else kind
    a, b = cast(a, kind), cast(b, kind)
    pick = min if op == "min" else max
    return Node(op, (a, b), kind, pick(a.lo, b.lo), pick(a.hi, b.hi))


def call(name: str, *args: Node) -> Node:
    if name == "abs":
        a = args[0]
        if is_number(a):
            return number(abs(a.data))
        if a.type == "uint":
            return a
        if a.type in ("int", "bool") and a.lo == INT64[0]:
            return where(binary("<", a, number(0)), unary("-", a), a)
        if a.type in ("int", "bool"):
            return Node("abs", (cast(a, "int"),), "int", 0, max(abs(a.lo), abs(a.hi)))
        return Node("abs", (a,), a.type)
    to = common(*args)
    to = "f8" if to in (*WHOLE, "bool", "float") else to
    return Node("call", tuple(cast(a, to) for a in args), to, data=name)


def helper(name: str, *args: Node, lo: int = 0, hi: int = 0) -> Node:
    """A call of a function of helpers.py; all arguments have one type. lo, hi: range of an integer result."""
    if helpers.HELPERS[name].truth:
        return Node("helper", args, "bool", 0, 1, name)
    return Node("helper", args, args[0].type, lo, hi, name)


# ------------------------------------------------------------------ as C

_LEVEL = {"|": 1, "^": 2, "&": 3, "==": 4, "!=": 4, "<": 5, "<=": 5, ">": 5, ">=": 5, "<<": 6, ">>": 6, "+": 7, "-": 7, "*": 8, "/": 8}
_UNARY, _PRIMARY = 9, 10


def _float_literal(value: float, kind: str) -> str:
    with np.errstate(over="ignore"):
        value = float(np.float32(value)) if kind == "f4" else value
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = str(np.float32(value)) if kind == "f4" else repr(value)
    if "." not in text and "e" not in text:
        text += ".0"
    return text + ("f" if kind == "f4" else "")


def c_type(node: Node) -> str:
    if node.type in ("f8", "f4"):
        return C_TYPES[node.type]
    return "uint64_t" if node.type == "uint" else "int64_t" if node.wide else "int"


class Writer:
    """Writes expressions as C. helpers: the functions that they need besides those of cell.h."""

    def __init__(self):
        self.helpers: dict[str, str] = {}

    def text(self, node: Node) -> str:
        return self._text(node)[0]

    def _within(self, node: Node, level: int) -> str:
        text, own = self._text(node)
        return text if own >= level else f"({text})"

    def _number(self, node: Node) -> tuple[str, int]:
        value = node.data
        if node.type == "bool":
            return ("1" if value else "0"), _PRIMARY
        if node.type == "uint":
            text = f"UINT64_C({value})"
        elif node.type == "int" and value == INT64[0]:
            text = f"(-INT64_C({INT64[1]}) - 1)"
        elif node.type == "int":
            text = f"INT64_C({value})" if node.wide else str(value)
        elif float(value).is_integer() and abs(value) < 2**24 and not (value == 0 and math.copysign(1, value) < 0):
            text = str(int(value))
        else:
            text = _float_literal(value, node.type)
        return text, _UNARY if text.startswith("-") else _PRIMARY

    def _text(self, node: Node) -> tuple[str, int]:
        op, args = node.op, node.args
        if op == "number":
            return self._number(node)
        if op in ("at", "old"):
            text = "AT({}, {}, {}, {})".format(*node.data) if op == "at" else f"OLD({node.data[0]})"
            return (f"(int64_t){text}", _UNARY) if node.wide and (node.lo, node.hi) != INT64 else (text, _PRIMARY)  # of a uint32
        if op == "param":
            return f"PARAM({node.data})", _PRIMARY
        if op == "coordinate":
            return COORDINATES[node.data], _PRIMARY
        if op == "local":
            return node.data, _PRIMARY
        if op == "cast":
            return f"({c_type(node)}){self._within(args[0], _UNARY)}", _UNARY
        if op == "neg":
            return f"-{'(int64_t)' if node.wide and not args[0].wide else ''}{self._within(args[0], _PRIMARY)}", _UNARY
        if op in ("!", "~"):
            return f"{op}{self._within(args[0], _UNARY)}", _UNARY
        if op == "where":
            branches = [_float_literal(a.data, a.type) if is_number(a) and a.type in ("f8", "f4") else self._within(a, 1) for a in args[1:]]
            return f"{self._within(args[0], 1)} ? {branches[0]} : {branches[1]}", 0
        if op in ("//", "%"):
            return self._division(node)
        if op in _LEVEL:
            return self._binary(node)
        if op in ("min", "max"):
            wide = self._widest(node)
            return self._helper(f"mx_{op}_{self._short(wide)}", c_type(wide), args, f"return b {'<' if op == 'min' else '>'} a ? b : a;"), _PRIMARY
        if op == "abs":
            if node.type == "int":
                return self._helper("mx_abs_" + self._short(node), c_type(node), args, "return a < 0 ? -a : a;"), _PRIMARY
            return f"{'fabs' if node.type == 'f8' else 'fabsf'}({self.text(args[0])})", _PRIMARY
        if op == "call":
            name = node.data + ("f" if node.type == "f4" else "")
            return f"{name}({', '.join(self.text(a) for a in args)})", _PRIMARY
        if op == "helper":
            return self._call_helper(node), _PRIMARY
        if op == "table":
            return node.data.text(self.helpers, [self.text(a) for a in args]), _PRIMARY
        raise AssertionError(op)

    @staticmethod
    def _widest(node: Node) -> Node:
        """The node whose type of C holds the arguments and the value."""
        return next((n for n in (*node.args, node) if n.wide), node.args[0])

    def _call_helper(self, node: Node) -> str:
        kind, result = c_type(widest := self._widest(node)), "int" if node.type == "bool" else c_type(node if node.type != "int" else widest)
        name = f"mx_{node.data}_{self._short(widest)}"
        self.helpers[name] = helpers.definition(node.data, name, kind, result, len(node.args))
        return f"{name}({', '.join(self.text(a) for a in node.args)})"

    @staticmethod
    def _short(node: Node) -> str:
        return {"double": "f8", "float": "f4", "int": "i4", "int64_t": "i8", "uint64_t": "u8"}[c_type(node)]

    def _helper(self, name: str, kind: str, args: tuple, body: str) -> str:
        parameters = ", ".join(f"{kind} {letter}" for letter, _ in zip("ab", args))
        self.helpers[name] = f"static inline {kind} {name}({parameters}) {{ {body} }}"
        return f"{name}({', '.join(self.text(a) for a in args)})"

    def _binary(self, node: Node) -> tuple[str, int]:
        a, b = node.args
        level = _LEVEL[node.op]
        # Signs and comparisons beside & and | in parentheses: compilers and readers want them.
        loose = {"&", "|", "^", "<<", ">>"} & {node.op}
        left, right = (self._within(a, _UNARY if loose else level), self._within(b, _UNARY if loose else level + 1))
        far = node.op in ("<<", ">>") and is_number(b) and b.data > 31  # what C has as int cannot be shifted so far
        if a.type in ("int", "bool") and not a.wide and (node.wide and not b.wide or far):
            left = f"(int64_t){self._within(a, _UNARY)}"
        if right.startswith("-"):
            right = f"({right})"
        if node.wraps:  # as unsigned numbers, of which C says so
            return f"(int64_t)((uint64_t)({left}) {node.op} (uint64_t)({right}))", _UNARY
        return f"{left} {node.op} {right}", level

    def _division(self, node: Node) -> tuple[str, int]:
        """Python's // rounds towards minus infinity, and the remainder has the sign of the divisor."""
        a, b = node.args
        if is_number(b) and b.data > 0 and b.data & (b.data - 1) == 0:  # two's complement has it at once
            if node.op == "%":
                return f"{self._within(a, _UNARY)} & {self._number(Node('number', (), b.type, b.data - 1, b.data - 1, b.data - 1))[0]}", _LEVEL["&"]
            places = b.data.bit_length() - 1
            wide = "(int64_t)" if places > 31 and a.type in ("int", "bool") and not a.wide else ""
            return f"{wide}{self._within(a, _UNARY)} >> {places}", _LEVEL[">>"]
        if node.type == "uint" and b.lo == 0:
            return self._helper("mx_remainder_u8" if node.op == "%" else "mx_division_u8", "uint64_t", node.args,
                                f"return b == 0 ? 0 : a {'/' if node.op == '//' else '%'} b;"), _PRIMARY
        if a.lo >= 0 and b.lo > 0:
            return f"{self._within(a, 8)} {'/' if node.op == '//' else '%'} {self._within(b, 9)}", 8
        body = ("if (b == 0 || b == -1) return 0; int64_t r = a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r;" if node.op == "%" else
                "if (b == 0) return 0; if (b == -1) return (int64_t)(0 - (uint64_t)a); int64_t q = a / b; return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;")
        return self._helper("mx_remainder" if node.op == "%" else "mx_floor_division", "int64_t", node.args, body), _PRIMARY
