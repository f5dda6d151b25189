# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of SymPy expressions. Their trees become the same expressions that Python functions become, term by term, in the order in which sympy.ccode
would print them. Types and C text are those of memext.kernel."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import expressions as ex
from .errors import KernelError
from .expressions import Node, Untranslatable
from .translate import Cell


def is_symbolic(update: Any) -> bool:
    """Is it a mapping of fields to expressions?"""
    return isinstance(update, Mapping)


class SymbolicPart:
    """The part of a kernel (see Part) that is made of expressions instead of a function: {field: its new value}."""
    file, line = "", 0

    def __init__(self, update: Mapping[Any, Any], fixed: Mapping[str, str | None], params: Mapping[str, float], name: str | None):
        try:
            import sympy
        except ImportError:
            raise KernelError("a kernel of expressions needs the package sympy, which is not installed: pip install sympy") from None
        self.sympy = sympy
        self.update = {_name_of(field): sympy.sympify(value) for field, value in update.items()}
        self.fields = list(self.update)
        self.name = name or "_".join(["update", *self.fields])[:40]
        self._fixed, self._params = dict(fixed), dict(params)
        self._found: dict[str, None] = {}
        dtypes = {n: "f8" for n in [*self.fields, *fixed]}
        for kind in ("f8", "u1"):  # whole numbers may be wanted of fields that are only read
            try:
                self._found.clear()
                self.translate({**dtypes, **{n: fixed[n] or kind for n in fixed}}, "f8", self.fields)
                break
            except KernelError:
                if kind == "u1":
                    raise
        self.fixed = [n for n in fixed if n in self._found]
        self.params = [n for n in params if n in self._found]
        self.coordinates = [n for n in ex.COORDINATES if n in self._found and n not in fixed and n not in params and n not in self.fields]
        self.arguments = [*self.fields, *self.fixed, *self.params, *self.coordinates]

    def function(self, *_args: Any, **_keywords: Any) -> Any:
        raise KernelError(f"{self.name} is a kernel of expressions and cannot be called: use its reference(), which computes with numpy")

    def translate(self, dtypes: Mapping[str, str], real: str, computed: list[str] | None, readable: Iterable[str] | None = None) -> Cell:
        tree = _Tree(self, dtypes, real, set(self.fields if readable is None else readable))
        cell = Cell()
        try:
            cell.values = [tree.node(self.update[field]) for field in computed or self.fields]
        except Untranslatable as error:
            raise KernelError(f"{self.name}: {error}") from None
        return cell


def _name_of(field: Any) -> str:
    """The name of a field, which is given as a text, an IndexedBase, a symbol, a function's class, or the cell itself, u[0, 0, 0]."""
    if isinstance(field, str):
        return field
    field = getattr(field, "base", field)
    return str(getattr(field, "label", None) or getattr(field, "name", None) or getattr(field, "__name__", field))


class _Tree:
    """Makes nodes of expressions, for one set of types. Equal subexpressions become the same node."""

    def __init__(self, part: SymbolicPart, dtypes: Mapping[str, str], real: str, readable: set[str]):
        self.part, self.dtypes, self.real, self.readable, self.sympy = part, dtypes, real, readable, part.sympy
        self.memo: dict[Any, Node] = {}
        s = self.sympy
        self.handlers = [
            (s.Integer, lambda e: ex.number(int(e))), ((s.Rational, s.Float, s.NumberSymbol), lambda e: ex.number(float(e))),
            (s.Indexed, self.indexed), (s.Symbol, self.symbol), (s.Add, self.add), (s.Mul, self.product), (s.Pow, self.power),
            (s.Piecewise, self.piecewise), (s.Min, lambda e: self.extreme("min", e)), (s.Max, lambda e: self.extreme("max", e)),
            (s.Abs, lambda e: ex.call("abs", self.node(e.args[0]))), (s.Mod, lambda e: ex.binary("%", *map(self.node, e.args))),
            (s.sign, self.sign), (s.And, lambda e: self.fold("&", e)), (s.Or, lambda e: self.fold("|", e)),
            (s.Not, lambda e: ex.unary("!", self.node(e.args[0]))), (s.logic.boolalg.BooleanAtom, lambda e: ex.number(bool(e))),
            (s.core.relational.Relational, self.relation), (s.core.function.AppliedUndef, self.applied)]
        self.functions = {"exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
                          "asin": "asin", "acos": "acos", "atan": "atan", "atan2": "atan2", "floor": "floor", "ceiling": "ceil"}

    def node(self, e: Any) -> Node:
        if e not in self.memo:
            self.memo[e] = self.make(e)
        return self.memo[e]

    def make(self, e: Any) -> Node:
        for kinds, handler in self.handlers:
            if isinstance(e, kinds):
                return handler(e)
        name = self.functions.get(getattr(e.func, "__name__", ""))
        if name is not None:
            return ex.call(name, *map(self.node, e.args))
        raise Untranslatable(f"a kernel cannot compute '{e}' ({type(e).__name__}): rewrite it with functions that docs/kernels.md lists")

    # ---- names

    def load(self, name: str, offsets: tuple[int, int, int], text: str) -> Node:
        p = self.part
        if name.endswith("_old") and name not in self.dtypes and name[:-4] in p.update:
            if any(offsets):
                raise Untranslatable(f"'{text}' is a neighbour: only the cell's own old value can be read, {name} or {name}[0, 0, 0]")
            return ex.load("old", name[:-4], self.dtypes[name[:-4]])
        if name not in p.update and name not in p._fixed:
            raise Untranslatable(f"'{text}': {name} is neither computed ({', '.join(p.update)}) nor a read-only field: name it in fixed")
        p._found[name] = None
        far = max(abs(i) for i in offsets)
        if far > 8:
            raise Untranslatable(f"'{text}' is {far} cells away: a kernel reads neighbours up to 8 cells away")
        if name in p.update and name not in self.readable:
            raise Untranslatable(f"'{text}': these expressions compute {name}, so they cannot read it: {name}_old is the cell's value before")
        return ex.load("at", name, self.dtypes[name], offsets)

    def indexed(self, e: Any) -> Node:
        if len(e.indices) != 3 or not all(i.is_Integer for i in e.indices):
            raise Untranslatable(f"'{e}' is not a neighbour: give three integers, {e.base}[dx, dy, dz]")
        return self.load(str(e.base.label), tuple(int(i) for i in e.indices), str(e))  # type: ignore[arg-type]

    def applied(self, e: Any) -> Node:
        """u(x + 1, y, z), the form that sympy gives finite differences of functions."""
        offsets = []
        for argument, name in zip(e.args, "xyz"):
            known = [s for s in argument.free_symbols if s.name == name]  # with whatever assumptions it has
            offsets.append(self.sympy.expand(argument - known[0]) if known else argument + self.sympy.nan)
        if len(e.args) != 3 or not all(o.is_Integer for o in offsets):
            raise Untranslatable(f"'{e}' is not a neighbour: a field that is a function has the arguments x, y and z, each plus an integer, u(x + 1, y, z)")
        return self.load(e.func.__name__, tuple(int(o) for o in offsets), str(e))  # type: ignore[arg-type]

    def symbol(self, e: Any) -> Node:
        name, p = e.name, self.part
        if name in p._params and name not in p._fixed:
            p._found[name] = None
            return ex.Node("param", (), self.real, data=name)
        if name in ex.COORDINATES and name not in p.update and name not in p._fixed:
            p._found[name] = None
            return ex.coordinate(name)
        return self.load(name, (0, 0, 0), name)

    # ---- arithmetic

    def add(self, e: Any) -> Node:
        total: Node | None = None
        for term in e.as_ordered_terms():
            minus = total is not None and term.could_extract_minus_sign()
            value = self.node(-term if minus else term)
            total = value if total is None else ex.binary("-" if minus else "+", total, value)
        return total  # type: ignore[return-value]

    def product(self, e: Any) -> Node:
        """A fraction, as ccode prints it: factors with a negative exponent are in the denominator."""
        if e.could_extract_minus_sign() and -e != e and not (-e).could_extract_minus_sign():
            return ex.unary("-", self.node(-e))
        above, below = [], []
        for factor in e.as_ordered_factors():
            if factor.is_Pow and factor.exp.is_Rational and factor.exp.is_negative:
                below.append(self.sympy.Pow(factor.base, -factor.exp))
            else:
                above.append(factor)
        top = self.times(above) if above else ex.number(1)
        return ex.binary("/", top, self.times(below)) if below else top

    def times(self, factors: list) -> Node:
        value = self.node(factors[0])
        for factor in factors[1:]:
            value = ex.binary("*", value, self.node(factor))
        return value

    def power(self, e: Any) -> Node:
        if e.exp.is_Integer:
            return ex.power(self.node(e.base), ex.number(int(e.exp)))
        if e.exp == self.sympy.Rational(-1, 2):
            return ex.binary("/", ex.number(1), ex.call("sqrt", self.node(e.base)))
        return ex.power(self.node(e.base), self.node(e.exp))

    def sign(self, e: Any) -> Node:
        value, zero = self.node(e.args[0]), ex.number(0)
        return ex.where(ex.binary(">", value, zero), ex.number(1), ex.where(ex.binary("<", value, zero), ex.number(-1), zero))

    # ---- choices; sets of arguments in an order of their own, so that the C text is always the same

    def ordered(self, e: Any) -> list[Node]:
        return [self.node(a) for a in sorted(e.args, key=self.sympy.default_sort_key)]

    def extreme(self, op: str, e: Any) -> Node:
        first, *others = self.ordered(e)
        for other in others:
            first = ex.extreme(op, first, other)
        return first

    def fold(self, op: str, e: Any) -> Node:
        first, *others = map(ex.truth, self.ordered(e))
        for other in others:
            first = ex.binary(op, first, other)
        return first

    def relation(self, e: Any) -> Node:
        return ex.binary(e.rel_op, self.node(e.lhs), self.node(e.rhs))

    def piecewise(self, e: Any) -> Node:
        *pairs, (value, otherwise) = e.args
        if otherwise is not self.sympy.true:
            raise Untranslatable(f"'{e}' has no value if none of its conditions holds: end it with (value, True)")
        result = self.node(value)
        for value, condition in reversed(pairs):
            result = ex.where(self.node(condition), self.node(value), result)
        return result

