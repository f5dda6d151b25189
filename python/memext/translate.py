# SPDX-License-Identifier: BSD-3-Clause
"""Python functions over one cell become expressions: an interpreter of their syntax tree in which fields are symbols and all else is a
constant, so that loops over constants are unrolled, helper functions are put in place, and names mean what they mean in Python."""
from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
import types
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from . import expressions as ex
from .errors import KernelError
from .expressions import Node, Untranslatable

MOST_STEPS = 100_000  # statements that a cell may take, loops unrolled


class FieldRef:
    """A field as an argument: FIELD[dx, dy, dz], FIELD.old, or FIELD for FIELD[0, 0, 0]."""

    def __init__(self, name: str, dtype: str, radius: int, readable: bool = True):
        self.name, self.dtype, self.radius, self.readable = name, dtype, radius, readable


@dataclass
class Cell:
    """What a function computes: locals in order, then one value for each field that it returns."""
    locals: list[tuple[str, Node]] = field(default_factory=list)
    values: list[Node] = field(default_factory=list)

    def nodes(self) -> list[Node]:
        """Every node that a value depends on."""
        known, found, stack = dict(self.locals), {}, list(self.values)
        while stack:
            node = stack.pop()
            if id(node) in found:
                continue
            found[id(node)] = node
            stack.extend(node.args)
            if node.op == "local":
                stack.append(known[node.data])
        return list(found.values())

    def reach(self, fields: set[str]) -> int:
        return max([0] + [abs(d) for n in self.nodes() if n.op == "at" and n.data[0] in fields for d in n.data[1:]])

    def reads_old(self) -> bool:
        return any(n.op == "old" for n in self.nodes())

    def names(self, op: str) -> set[str]:
        return {n.data if isinstance(n.data, str) else n.data[0] for n in self.nodes() if n.op == op}


class _Return(Exception):
    def __init__(self, value: Any):
        self.value = value


class _Special:
    """A function that means something else in a cell."""

    def __init__(self, name: str, call: Callable):
        self.name, self.call = name, call


def _fold(op: str) -> Callable:
    def several(*args):
        if len(args) == 1:
            args = tuple(args[0])
        value = _node(args[0])
        for a in args[1:]:
            value = ex.extreme(op, value, _node(a))
        return value
    return several


def _specials() -> dict[Any, _Special]:
    import math
    table: dict[Any, _Special] = {}

    def add(name: str, call: Callable, *functions: Any) -> None:
        for function in functions:
            table[id(function)] = _Special(name, call)

    add("where", lambda c, a, b: ex.where(_node(c), _node(a), _node(b)), np.where, where)
    add("min", _fold("min"), builtins.min, np.minimum, minimum)
    add("max", _fold("max"), builtins.max, np.maximum, maximum)
    add("abs", lambda a: ex.call("abs", _node(a)), builtins.abs, np.abs, np.fabs, math.fabs)
    add("sqrt", lambda a: ex.call("sqrt", _node(a)), math.sqrt, np.sqrt, sqrt)
    add("float", lambda a: ex.cast(_node(a), "f8"), builtins.float, np.float64)
    add("f4", lambda a: ex.cast(_node(a), "f4"), np.float32)
    add("int", lambda a: ex.cast(_node(a), "int"), builtins.int, np.int64)
    add("bool", lambda a: ex.truth(_node(a)), builtins.bool, np.bool_)
    add("and", lambda a, b: ex.binary("&", ex.truth(_node(a)), ex.truth(_node(b))), np.logical_and)
    add("or", lambda a, b: ex.binary("|", ex.truth(_node(a)), ex.truth(_node(b))), np.logical_or)
    add("not", lambda a: ex.unary("!", _node(a)), np.logical_not)
    for name in ex.FUNCTIONS:
        aliases = [getattr(math, name, None), getattr(np, name, None),
                   {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "pow": np.power}.get(name)]
        add(name, lambda *a, name=name: ex.call(name, *map(_node, a)), *[a for a in aliases if a is not None])
    return table


def where(condition, a, b):
    """a where the condition holds, else b; in kernels and on arrays."""
    return np.where(condition, a, b)


def minimum(a, b):
    """The smaller of both; in kernels and on arrays."""
    return np.minimum(a, b)


def maximum(a, b):
    """The larger of both; in kernels and on arrays."""
    return np.maximum(a, b)


def sqrt(a):
    """The square root; in kernels and on arrays."""
    return np.sqrt(a)


_table: dict[Any, _Special] = {}


def _special(function: Any) -> _Special | None:
    if not _table:
        _table.update(_specials())
    return _table.get(id(function))


def _node(value: Any) -> Node:
    if isinstance(value, Node):
        return value
    if isinstance(value, FieldRef):
        if not value.readable:
            raise Untranslatable(f"{value.name} is computed from the other array: {value.name}.old is the value that is replaced")
        return ex.load("at", value.name, value.dtype)
    return ex.number(value)


def _symbolic(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_symbolic, value))
    return isinstance(value, (Node, FieldRef))


_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.BitAnd: "&",
           ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


class _Source:
    """The syntax tree of a function, and how to name its lines."""

    def __init__(self, function: types.FunctionType):
        self.function = function
        self.file = inspect.getsourcefile(function) or "?"
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise KernelError(f"the source of {function.__name__} cannot be read: define it in a file or a notebook", self.file) from None
        self.lines, self.first = lines, max(first, 1)
        try:
            self.tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        except SyntaxError:  # a lambda in the middle of a statement
            self.tree = None
        if not isinstance(self.tree, ast.FunctionDef):
            raise KernelError(f"{function.__name__} is no function that def makes", self.file, self.first, lines[0].strip())

    def error(self, node: ast.AST, reason: str) -> KernelError:
        offset = getattr(node, "lineno", 1) - 1
        text = self.lines[offset].strip() if offset < len(self.lines) else ""
        return KernelError(reason, self.file, self.first + offset, text)


class Translator:
    """Translates one function and those that it calls."""

    def __init__(self, cell: Cell | None = None):
        self.cell = cell or Cell()
        self.taken: set[str] = set()
        self.steps = 0
        self.depth = 0

    # ---- functions

    def function(self, function: types.FunctionType, arguments: dict[str, Any]) -> Any:
        source = _Source(function)
        scope = _Scope(self, source, dict(arguments))
        self.depth += 1
        if self.depth > 50:
            raise source.error(source.tree, f"{function.__name__} calls itself without an end")
        try:
            scope.run(source.tree.body)
        except _Return as done:
            return done.value
        finally:
            self.depth -= 1
        raise source.error(source.tree, f"{function.__name__} returns nothing")

    def local(self, name: str, node: Node) -> Node:
        """A name for a value, in C too."""
        name = base = name if name not in RESERVED and not name.startswith("mx_") else name + "_"
        n = 1
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken.add(name)
        self.cell.locals.append((name, node))
        return Node("local", (), node.type, node.lo, node.hi, name)


# Words of C and of cell.h that a local variable cannot be called.
RESERVED = set("""auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof bool true false
AT SET OLD PARAM X Y Z T NX NY NZ NAN INFINITY INT64_C HUGE_VAL math_errhandling errno j0 j1 jn y0 y1 yn gamma signgam""".split())
RESERVED |= set(ex.FUNCTIONS) | {"sqrt", "fabs", "abs"}


class _Scope:
    def __init__(self, translator: Translator, source: _Source, names: dict[str, Any]):
        self.translator, self.source, self.names = translator, source, names
        function = source.function
        self.globals = function.__globals__
        self.outer: dict[str, Any] = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                self.outer[name] = cell.cell_contents
            except ValueError:
                pass

    # ---- statements

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.translator.steps += 1
            if self.translator.steps > MOST_STEPS:
                raise self.source.error(statement, f"more than {MOST_STEPS} statements for one cell, loops unrolled")
            handler = getattr(self, "_" + type(statement).__name__.lower(), None)
            if handler is None:
                raise self.source.error(statement, f"'{type(statement).__name__.lower()}' cannot be translated: a cell is assignments, "
                                                   "loops over constants, if, and a return at its end")
            try:
                handler(statement)
            except Untranslatable as error:
                raise self.source.error(statement, str(error)) from None

    def _pass(self, statement: ast.Pass) -> None:
        pass

    def _expr(self, statement: ast.Expr) -> None:
        if not isinstance(statement.value, ast.Constant):
            raise Untranslatable("an expression whose value goes nowhere")

    def _return(self, statement: ast.Return) -> None:
        raise _Return(None if statement.value is None else self.value(statement.value))

    def _assign(self, statement: ast.Assign) -> None:
        value = self.value(statement.value)
        for target in statement.targets:
            self.bind(target, value)

    def _annassign(self, statement: ast.AnnAssign) -> None:
        if statement.value is not None:
            self.bind(statement.target, self.value(statement.value))

    def _augassign(self, statement: ast.AugAssign) -> None:
        if not isinstance(statement.target, ast.Name):
            raise Untranslatable("only names can be assigned to; a cell returns its new value")
        before = self.name(ast.copy_location(ast.Name(statement.target.id, ast.Load()), statement))
        self.bind(statement.target, self.binary(type(statement.op), before, self.value(statement.value)))

    def _for(self, statement: ast.For) -> None:
        if statement.orelse:
            raise Untranslatable("for with else")
        for item in self.items(statement.iter):
            self.bind(statement.target, item)
            self.run(statement.body)

    def _if(self, statement: ast.If) -> None:
        condition = self.value(statement.test)
        if not _symbolic(condition):
            return self.run(statement.body if condition else statement.orelse)
        condition, before = ex.truth(_node(condition)), self.names
        if condition.op not in ("local", "number"):
            condition = self.translator.local("condition", condition)
        results = []
        for body in (statement.body, statement.orelse):
            self.names = dict(before)
            try:
                self.run(body)
            except _Return:
                raise self.source.error(statement, "a return inside an if that depends on the cell; assign in it and return "
                                                   "afterwards, or use where()") from None
            results.append(self.names)
        self.names = before
        for name in list(dict.fromkeys([*results[0], *results[1]])):
            a, b = results[0].get(name, before.get(name)), results[1].get(name, before.get(name))
            if a is b:
                self.names[name] = a
            elif a is None or b is None:
                self.names.pop(name, None)  # known on one way alone: an error where it is used
            else:
                self.names[name] = self.translator.local(name, ex.where(condition, _node(a), _node(b)))

    def bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, (tuple, list)) or len(value) != len(target.elts):
                raise Untranslatable(f"{len(target.elts)} names and not as many values")
            for one, item in zip(target.elts, value):
                self.bind(one, item)
            return
        if not isinstance(target, ast.Name):
            raise Untranslatable("only names can be assigned to; a cell returns its new value")
        if isinstance(value, Node) and not ex.is_number(value) and value.op != "local":
            value = self.translator.local(target.id, value)
        self.names[target.id] = value

    # ---- expressions

    def value(self, node: ast.expr) -> Any:
        handler = getattr(self, "on_" + type(node).__name__.lower(), None)
        if handler is None:
            raise self.source.error(node, f"'{ast.unparse(node)}' cannot be translated")
        try:
            return handler(node)
        except Untranslatable as error:
            raise self.source.error(node, str(error)) from None

    def items(self, node: ast.expr) -> list:
        value = self.value(node)
        if isinstance(value, (Node, FieldRef)):
            raise self.source.error(node, "a loop over what depends on the cell; ranges, tuples and lists that are known are unrolled")
        try:
            return list(value)
        except TypeError:
            raise self.source.error(node, f"{value!r} cannot be looped over") from None

    def on_constant(self, node: ast.Constant) -> Any:
        return node.value

    def name(self, node: ast.Name) -> Any:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.outer:
            return self.outer[node.id]
        if node.id in self.globals:
            return self.globals[node.id]
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        raise self.source.error(node, f"{node.id} is not known here (or on one way through an if alone)")

    on_name = name

    def on_tuple(self, node: ast.Tuple) -> tuple:
        return tuple(self.elements(node.elts))

    def on_list(self, node: ast.List) -> list:
        return self.elements(node.elts)

    def elements(self, nodes: list[ast.expr]) -> list:
        out = []
        for node in nodes:
            out.extend(self.items(node.value) if isinstance(node, ast.Starred) else [self.value(node)])
        return out

    def on_dict(self, node: ast.Dict) -> dict:
        return {self.value(k): self.value(v) for k, v in zip(node.keys, node.values)}

    def comprehension(self, node: Any) -> list:
        out: list = []

        def loop(generators: list[ast.comprehension]) -> None:
            if not generators:
                out.append(self.value(node.elt))
                return
            for item in self.items(generators[0].iter):
                self.bind(generators[0].target, item)
                tests = [self.value(test) for test in generators[0].ifs]
                if any(_symbolic(test) for test in tests):
                    raise self.source.error(node, "a condition that depends on the cell within a comprehension; use where()")
                if all(tests):
                    loop(generators[1:])

        before = dict(self.names)
        loop(node.generators)
        self.names = before
        return out

    on_listcomp = on_generatorexp = comprehension

    def binary(self, kind: type, a: Any, b: Any) -> Any:
        if not _symbolic(a) and not _symbolic(b):
            return _python_binary(kind, a, b)
        if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
            if kind is ast.Add and type(a) is type(b):
                return a + b
            raise Untranslatable("arithmetic with a tuple or a list")
        if kind not in _BINARY:
            raise Untranslatable(f"the operator {kind.__name__}")
        return ex.binary(_BINARY[kind], _node(a), _node(b))

    def on_binop(self, node: ast.BinOp) -> Any:
        return self.binary(type(node.op), self.value(node.left), self.value(node.right))

    def on_unaryop(self, node: ast.UnaryOp) -> Any:
        a = self.value(node.operand)
        if not _symbolic(a):
            return {ast.USub: lambda: -a, ast.UAdd: lambda: +a, ast.Not: lambda: not a, ast.Invert: lambda: ~a}[type(node.op)]()
        return ex.unary({ast.USub: "-", ast.UAdd: "+", ast.Not: "!", ast.Invert: "~"}[type(node.op)], _node(a))

    def on_compare(self, node: ast.Compare) -> Any:
        values = [self.value(v) for v in [node.left, *node.comparators]]
        result: Any = None
        for op, a, b in zip(node.ops, values, values[1:]):
            if not _symbolic(a) and not _symbolic(b):
                one: Any = _python_compare(type(op), a, b)
            elif type(op) in _COMPARE:
                one = ex.binary(_COMPARE[type(op)], _node(a), _node(b))
            else:
                raise Untranslatable("'in' and 'is' are for constants alone")
            result = one if result is None else self.both(result, one)
        return result

    @staticmethod
    def both(a: Any, b: Any) -> Any:
        if not _symbolic(a):
            return b if a else False
        if not _symbolic(b):
            return a if b else False
        return ex.binary("&", ex.truth(_node(a)), ex.truth(_node(b)))

    def on_boolop(self, node: ast.BoolOp) -> Any:
        values = [self.value(v) for v in node.values]
        result = values[0]
        for value in values[1:]:
            if isinstance(node.op, ast.And):
                result = self.both(result, value)
            elif not _symbolic(result):
                result = result or value
            elif not _symbolic(value):
                result = True if value else result
            else:
                result = ex.binary("|", ex.truth(_node(result)), ex.truth(_node(value)))
        return result

    def on_ifexp(self, node: ast.IfExp) -> Any:
        condition = self.value(node.test)
        if not _symbolic(condition):
            return self.value(node.body if condition else node.orelse)
        return ex.where(_node(condition), _node(self.value(node.body)), _node(self.value(node.orelse)))

    def on_attribute(self, node: ast.Attribute) -> Any:
        value = self.value(node.value)
        if isinstance(value, FieldRef):
            if node.attr == "old" and value.radius >= 0:
                return ex.load("old", value.name, value.dtype)
            if node.attr == "old":
                raise Untranslatable(f"{value.name}.old: {value.name} is only read")
            raise Untranslatable(f"{value.name}.{node.attr}: a field has .old and nothing else")
        if isinstance(value, Node):
            raise Untranslatable(f"'{ast.unparse(node)}': a value has no attributes")
        try:
            return getattr(value, node.attr)
        except AttributeError as error:
            raise Untranslatable(str(error)) from None

    def on_subscript(self, node: ast.Subscript) -> Any:
        value = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            if isinstance(value, (Node, FieldRef)):
                raise Untranslatable("slices of a field; a cell sees single neighbours: u[dx, dy, dz]")
            parts = [None if p is None else self.value(p) for p in (node.slice.lower, node.slice.upper, node.slice.step)]
            return value[slice(*parts)]
        index = self.value(node.slice)
        if isinstance(value, FieldRef):
            return self.neighbour(value, index)
        if _symbolic(index):
            raise Untranslatable("an index that depends on the cell")
        if isinstance(value, Node):
            raise Untranslatable(f"'{ast.unparse(node.value)}' is a value of this cell; neighbours are those of fields")
        try:
            return value[index]
        except (KeyError, IndexError, TypeError) as error:
            raise Untranslatable(f"{type(error).__name__}: {error}") from None

    @staticmethod
    def neighbour(ref: FieldRef, index: Any) -> Node:
        if _symbolic(index):
            raise Untranslatable(f"the neighbour of {ref.name} depends on the cell; offsets are constants")
        if not isinstance(index, tuple) or len(index) != 3 or not all(isinstance(i, (int, np.integer)) for i in index):
            raise Untranslatable(f"{ref.name}[{index}]: a neighbour has three whole numbers, {ref.name}[dx, dy, dz]")
        far = max(abs(int(i)) for i in index)
        if far > 8:
            raise Untranslatable(f"{ref.name}[{', '.join(map(str, index))}] is {far} cells away; 8 at most")
        if not ref.readable:
            raise Untranslatable(f"{ref.name} is computed from the other array: {ref.name}.old is the value that is replaced")
        return ex.load("at", ref.name, ref.dtype, tuple(int(i) for i in index))

    def on_call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        args = self.elements(node.args)
        keywords = {k.arg: self.value(k.value) for k in node.keywords if k.arg is not None}
        if len(keywords) != len(node.keywords):
            raise Untranslatable("** in a call")
        symbolic = any(map(_symbolic, [*args, *keywords.values()]))
        special = _special(function)
        if symbolic and special is not None:
            if keywords:
                raise Untranslatable(f"{special.name} takes no keywords here")
            try:
                return special.call(*args)
            except TypeError:
                raise Untranslatable(f"{special.name} with {len(args)} arguments") from None
        if symbolic and function is builtins.sum:
            total = None
            for item in [*args[1:2], *args[0]]:
                total = _node(item) if total is None else ex.binary("+", total, _node(item))
            return 0 if total is None else total
        if symbolic and function in (builtins.len, builtins.zip, builtins.enumerate, builtins.reversed, builtins.tuple, builtins.list):
            if any(isinstance(a, (Node, FieldRef)) for a in args):
                raise Untranslatable(f"{function.__name__} of a value of the cell")
            return function(*args) if function in (builtins.len, builtins.tuple, builtins.list) else list(function(*args))
        if isinstance(function, types.FunctionType) and symbolic:
            return self.inline(node, function, args, keywords)
        if symbolic:
            name = getattr(function, "__name__", repr(function))
            known = "where, min, max, abs, sqrt, " + ", ".join(ex.FUNCTIONS[:8]) + " ..."
            raise Untranslatable(f"{name} is no function that a kernel can call; there are {known}, and Python functions of your own")
        try:
            return function(*args, **keywords)
        except Exception as error:
            raise Untranslatable(f"'{ast.unparse(node)}' failed: {type(error).__name__}: {error}") from None

    def inline(self, node: ast.Call, function: types.FunctionType, args: list, keywords: dict) -> Any:
        try:
            bound = inspect.signature(function).bind(*args, **keywords)
        except TypeError as error:
            raise Untranslatable(f"{function.__name__}: {error}") from None
        bound.apply_defaults()
        return self.translator.function(function, dict(bound.arguments))


def _python_binary(kind: type, a: Any, b: Any) -> Any:
    tree = ast.Expression(ast.BinOp(ast.Name("a", ast.Load()), kind(), ast.Name("b", ast.Load())))
    try:
        return eval(compile(ast.fix_missing_locations(tree), "<kernel>", "eval"), {}, {"a": a, "b": b})
    except Exception as error:
        raise Untranslatable(f"{type(error).__name__}: {error}") from None


def _python_compare(kind: type, a: Any, b: Any) -> bool:
    tree = ast.Expression(ast.Compare(ast.Name("a", ast.Load()), [kind()], [ast.Name("b", ast.Load())]))
    return bool(eval(compile(ast.fix_missing_locations(tree), "<kernel>", "eval"), {}, {"a": a, "b": b}))
