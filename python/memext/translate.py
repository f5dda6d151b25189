# SPDX-License-Identifier: BSD-3-Clause
"""Turns Python functions over one cell into expressions. An interpreter walks the function's syntax tree: fields are symbols, everything else is a
constant. It therefore unrolls loops over constants, expands helper functions in place, and gives names the meaning that they have in Python. A function
that is called is translated too, or must be pure (known.py). Names from outside mean what they meant when the function was decorated.

This file is longer than others: it is one interpreter, a short method for each node of Python's syntax, and no part of it is used without the rest."""
from __future__ import annotations

import ast
import builtins
import functools
import inspect
import itertools
import math
import operator
import types
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from . import expressions as ex
from . import functions, lookup, several
from .errors import KernelError
from .expressions import Node, Untranslatable
from .known import Attributes, Function, Method, Outside, call_pure, called, changes, check_plain, is_pure, items_of
from .nested import Nested, imported
from .specials import SPECIALS, FieldRef, Special, node_of, special, symbolic

MOST_STEPS = 100_000  # statements of one kernel when its loops are unrolled


@dataclass
class Cell:
    """What a function computes: its local variables in order, then one value for each field that it returns."""
    locals: list[tuple[str, Node]] = field(default_factory=list)
    values: list[Node] = field(default_factory=list)
    offsets: set[int] = field(default_factory=set)  # how many numbers neighbours are named by: 3, or 2 of a grid of two dimensions

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

    def divides_reals(self) -> bool:
        """Does it apply // or % to floating-point numbers?"""
        stack, seen = [*self.values, *(node for _, node in self.locals)], set()
        while stack:
            node = stack.pop()
            if node.op == "helper" and node.data in ("remainder", "floor_divide"):
                return True
            if id(node) not in seen:
                seen.add(id(node))
                stack.extend(node.args)
        return False

    def names(self, op: str) -> set[str]:
        return {n.data if isinstance(n.data, str) else n.data[0] for n in self.nodes() if n.op == op}


class _Jump(Exception):
    """Leaves the statements that are being translated."""
    word = "return"


class _Return(_Jump):
    def __init__(self, value: Any, at: ast.AST):
        self.value, self.at = value, at


class _Break(_Jump):
    word = "break"


class _Continue(_Jump):
    word = "continue"


_ABSENT = object()


def _fold(op: str) -> Callable:
    def several(*args):
        if len(args) == 1:
            args = tuple(args[0])
        value = node_of(args[0])
        for a in args[1:]:
            value = ex.extreme(op, value, node_of(a))
        return value
    return several


def _of_one(name: str) -> Callable:
    return lambda a: ex.call(name, node_of(a))


def _of_two(name: str) -> Callable:
    return lambda a, b: ex.call(name, node_of(a), node_of(b))


def _specials() -> dict[Any, Special]:
    table: dict[Any, Special] = {}

    def add(name: str, call: Callable, *functions: Any) -> None:
        for function in functions:
            table[id(function)] = Special(name, call)

    for name, given, more in (*functions.TABLE, *several.TABLE):
        for function in given:
            table[id(function)] = Special(name, *more)
    add("where", lambda c, a, b: ex.where(node_of(c), node_of(a), node_of(b)), np.where, where)
    add("min", _fold("min"), builtins.min, np.minimum, minimum)
    add("max", _fold("max"), builtins.max, np.maximum, maximum)
    add("abs", lambda a: ex.call("abs", node_of(a)), builtins.abs, np.abs, np.fabs, math.fabs)
    add("sqrt", lambda a: ex.call("sqrt", node_of(a)), math.sqrt, np.sqrt, sqrt)
    add("float", lambda a: ex.cast(node_of(a), "f8"), builtins.float, np.float64)
    add("f4", lambda a: ex.cast(node_of(a), "f4"), np.float32)
    add("int", lambda a: ex.cast(node_of(a), "int"), builtins.int, np.int64)
    add("np.uint64", lambda a: ex.cast(node_of(a), "uint"), np.uint64)
    add("bool", lambda a: ex.truth(node_of(a)), builtins.bool, np.bool_)
    add("and", lambda a, b: ex.binary("&", ex.truth(node_of(a)), ex.truth(node_of(b))), np.logical_and)
    add("or", lambda a, b: ex.binary("|", ex.truth(node_of(a)), ex.truth(node_of(b))), np.logical_or)
    add("not", lambda a: ex.unary("!", node_of(a)), np.logical_not)
    for name in ex.FUNCTIONS:
        aliases = [getattr(math, name, None), getattr(np, name, None),
                   {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "pow": np.power}.get(name)]
        add(name, _of_two(name) if name in ex.OF_TWO else _of_one(name), *[a for a in aliases if a is not None])
    return table


def where(condition, a, b):
    """Returns a where the condition holds, else b. It works in kernels and on numpy arrays."""
    return np.where(condition, a, b)


def minimum(a, b):
    """Returns the smaller of a and b. It works in kernels and on numpy arrays."""
    return np.minimum(a, b)


def maximum(a, b):
    """Returns the larger of a and b. It works in kernels and on numpy arrays."""
    return np.maximum(a, b)


def sqrt(a):
    """Returns the square root of a. It works in kernels and on numpy arrays."""
    return np.sqrt(a)


SPECIALS.update(_specials())


def _truth(value: Any) -> bool:
    """The truth of a value that is known while the kernel is made."""
    if isinstance(value, Outside):
        if hasattr(type(value.thing), "__bool__") or hasattr(type(value.thing), "__len__"):
            raise Untranslatable(f"a kernel cannot test the truth of {value!r}: compute bool(...) of it before the kernel, and use the result by a name")
        return True
    try:
        return bool(value)
    except ValueError as error:
        raise Untranslatable(str(error)) from None


def _hashable(value: Any) -> Any:
    if symbolic(value):
        raise Untranslatable("a key of a dictionary or a set depends on the cell: use a constant key")
    try:
        hash(value)
    except TypeError as error:
        raise Untranslatable(str(error)) from None
    return value


_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.BitAnd: "&",
           ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_IN_PLACE = {ast.Add: operator.iadd, ast.Sub: operator.isub, ast.Mult: operator.imul, ast.Div: operator.itruediv, ast.FloorDiv: operator.ifloordiv,
             ast.Mod: operator.imod, ast.Pow: operator.ipow, ast.BitAnd: operator.iand, ast.BitOr: operator.ior, ast.BitXor: operator.ixor}
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def _root(value: Any) -> Any:
    """The array that a view belongs to."""
    while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
        value = value.base
    return value


class Translator:
    """Translates one function and those that it calls."""

    def __init__(self, cell: Cell | None = None):
        self.cell = cell or Cell()
        self.taken: set[str] = set()
        self.steps = 0
        self.depth = 0
        self.branch: tuple = ()  # of conditions that depend on the cell
        self.own: dict[int, tuple[Any, tuple]] = {}  # lists and the like that the cell has made, and in which branch: these it may change

    # ---- functions

    def function(self, function: Function | Nested, arguments: dict[str, Any], shape: Callable[[Any], tuple] | None = None) -> Any:
        """What the function returns. shape: given for a kernel; makes a tuple of what one path through it returns. If that is None, the cell keeps its values."""
        source = function.source
        function.taker.settle()
        scope = _Scope(self, function, dict(arguments))
        self.depth += 1
        if self.depth > 50:
            raise source.error(source.tree, f"calls are nested more than 50 deep: does {source.name} call itself without end? Write a loop over range(...)")
        try:
            if isinstance(source.tree, ast.Lambda):
                return scope.value(source.tree.body)
            scope.run(source.tree.body)
            value, at = None, source.tree
        except _Return as done:
            value, at = done.value, done.at
        finally:
            self.depth -= 1
        try:
            return scope.returned(value, at, shape)
        except Untranslatable as error:
            raise source.error(at, str(error)) from None

    def made(self, value: Any) -> Any:
        self.own[id(value)] = value, self.branch
        return value

    def may_change(self, value: Any) -> None:
        value = _root(value)
        if id(value) not in self.own:
            raise Untranslatable("a kernel cannot change anything outside itself: copy it first, and change the copy")
        if self.own[id(value)][1] != self.branch:
            raise Untranslatable("a list, dictionary or array cannot change inside an if that depends on the cell: choose its values with where()")

    def local(self, name: str, node: Node) -> Node:
        """Gives a value a name, which it has in C too."""
        name = base = name if name not in RESERVED and not name.startswith("mx_") else name + "_"
        n = 1
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken.add(name)
        self.cell.locals.append((name, node))
        return Node("local", (), node.type, node.lo, node.hi, name, node.of_cells)

    def shallow(self, node: Node) -> Node:
        """The value, or a local variable that has it."""
        return ex.shallow(self.local, node)


# Words of C and of cell.h: a local variable cannot have such a name.
RESERVED = set("""auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof bool true false
AT SET OLD PARAM X Y Z T NX NY NZ NAN INFINITY INT64_C HUGE_VAL math_errhandling errno j0 j1 jn y0 y1 yn gamma signgam""".split())
RESERVED |= {"UINT64_C"} | set(ex.FUNCTIONS) | {"sqrt", "fabs", "abs", "linux", "unix", "i386"}


class _Scope:
    def __init__(self, translator: Translator, function: Function | Nested, names: dict[str, Any]):
        self.translator, self.source, self.names = translator, function.source, names
        self.within = function if isinstance(function, Nested) else None
        self.function: Function = function.scope.function if isinstance(function, Nested) else function
        self.layers: list[tuple[set[str], dict, dict]] = []  # of comprehensions that are being made: the names that each has, all in it, those around it
        self.ended: list[tuple[Node, Any, ast.AST]] = []  # ways that have returned: the first condition that holds counts

    # ---- statements

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.translator.steps += 1
            if self.translator.steps > MOST_STEPS:
                raise self.source.error(statement, f"the kernel has more than {MOST_STEPS} statements when its loops are unrolled: loop less often")
            handler = getattr(self, "_" + type(statement).__name__.lower(), None)
            if handler is None:
                raise self.source.error(statement, f"'{type(statement).__name__.lower()}' cannot be translated: a kernel may have assignments, "
                                                   "loops over constants, if, inner functions and return")
            try:
                handler(statement)
            except Untranslatable as error:
                raise self.source.error(statement, str(error)) from None

    def _functiondef(self, statement: ast.FunctionDef) -> None:
        if statement.decorator_list:
            raise Untranslatable(f"{statement.name} has a decorator inside the kernel: define and decorate it before the kernel, or call the decorator as a function")
        self.names[statement.name] = Nested(self, statement)

    def on_lambda(self, node: ast.Lambda) -> Nested:
        return Nested(self, node)

    def _import(self, statement: ast.Import) -> None:
        for alias in statement.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            imported(self.function.taker, alias.name)
            self.names[alias.asname or name] = imported(self.function.taker, name)

    def _importfrom(self, statement: ast.ImportFrom) -> None:
        module = imported(self.function.taker, "." * statement.level + (statement.module or ""))
        for alias in statement.names:
            try:
                self.names[alias.asname or alias.name] = module.attribute(alias.name)
            except AttributeError as error:
                raise Untranslatable(f"'import': {error}") from None

    def _pass(self, statement: ast.Pass) -> None:
        pass

    def _expr(self, statement: ast.Expr) -> None:
        if isinstance(statement.value, ast.Call):
            call = statement.value
            function = self.value(call.func)
            changed = changes(function)
            if changed is not None:
                self.translator.may_change(changed)
                keywords = {k.arg: self.value(k.value) for k in call.keywords}
                if isinstance(changed, list) and function.__name__ == "sort" and symbolic(changed):
                    changed[:] = self.call(builtins.sorted, [changed], keywords)
                else:
                    self.change_by(function, changed, self.elements(call.args), keywords)
                return
            self.on_call(call)  # what cannot be called says so
        if not isinstance(statement.value, ast.Constant):
            raise Untranslatable("the value of this expression is not used: assign it to a name, or remove the expression")

    def _assert(self, statement: ast.Assert) -> None:
        condition = self.value(statement.test)
        if symbolic(condition):
            raise Untranslatable("assert cannot test values of the cell: test only what is known while the kernel is made, and choose values with where()")
        if not _truth(condition):
            raise Untranslatable("this assertion does not hold")

    def _break(self, statement: ast.Break) -> None:
        raise _Break

    def _continue(self, statement: ast.Continue) -> None:
        raise _Continue

    def _while(self, statement: ast.While) -> None:
        if statement.orelse:
            raise Untranslatable("'else' after a 'while' loop is not supported: write its statements after the loop")
        while True:
            condition = self.value(statement.test)
            if symbolic(condition):
                raise Untranslatable("the end of this 'while' depends on the cell: write 'for k in range(N)' with the largest number N, and choose values with where()")
            if not _truth(condition) or not self.once(statement.body):
                return

    def once(self, body: list[ast.stmt]) -> bool:
        """Runs the body of a loop once; false if the loop ends."""
        try:
            self.run(body)
        except _Continue:
            pass
        except _Break:
            return False
        return True

    def _return(self, statement: ast.Return) -> None:
        value = None if statement.value is None else self.value(statement.value)
        raise _Return(tuple(value) if isinstance(value, list) else value, statement)

    def returned(self, value: Any, at: ast.AST, shape: Callable[[Any], tuple] | None) -> Any:
        """The value of all paths through the function; `value` is that of the last path."""
        def made(value: Any, at: ast.AST) -> Any:
            if shape is not None:
                return shape(value)
            if value is None:
                raise self.source.error(at, f"{self.source.name} returns nothing" + (" on one path: return a value on each" if self.ended else ": end it with return VALUE"))
            return value

        if value is None and all(one is None for _, one, _ in self.ended):
            raise self.source.error(self.source.tree, f"{self.source.name} returns nothing: end it with return VALUE")
        whole = made(value, at)
        for condition, value, at in reversed(self.ended):
            one = made(value, at)
            several = [isinstance(v, tuple) for v in (one, whole)]
            if several[0] != several[1] or several[0] and len(one) != len(whole):
                raise self.source.error(at, f"{self.source.name} returns different numbers of values on different paths: return as many on each")
            whole = (tuple(ex.where(condition, node_of(a), node_of(b)) for a, b in zip(one, whole)) if several[0] else
                     ex.where(condition, node_of(one), node_of(whole)))
        return whole

    def _assign(self, statement: ast.Assign) -> None:
        value = self.value(statement.value)
        for target in statement.targets:
            self.bind(target, value)

    def _annassign(self, statement: ast.AnnAssign) -> None:
        if statement.value is not None:
            self.bind(statement.target, self.value(statement.value))

    def _augassign(self, statement: ast.AugAssign) -> None:
        if not isinstance(statement.target, ast.Name):
            raise Untranslatable("a kernel can assign only to names: return the new value of a field")
        before = self.name(ast.copy_location(ast.Name(statement.target.id, ast.Load()), statement))
        if isinstance(before, (list, dict, set, np.ndarray)):
            return self.change(type(statement.op), before, self.value(statement.value))
        self.bind(statement.target, self.binary(type(statement.op), before, self.value(statement.value)))

    def _for(self, statement: ast.For) -> None:
        if statement.orelse:
            raise Untranslatable("'else' after a 'for' loop is not supported: write its statements after the loop")
        for item in self.items(statement.iter):
            self.bind(statement.target, item)
            if not self.once(statement.body):
                break

    def _if(self, statement: ast.If) -> None:
        condition = self.condition(statement.test)
        if not symbolic(condition):
            return self.run(statement.body if _truth(condition) else statement.orelse)
        condition, before = ex.truth(node_of(condition)), self.names
        if ex.is_number(condition):
            return self.run(statement.body if condition.data else statement.orelse)
        if condition.op != "local":
            condition = self.translator.local("condition", condition)
        results, ended, gone = [], self.ended, []
        for body, holds in ((statement.body, condition), (statement.orelse, ex.unary("!", condition))):
            self.names, outside, self.ended = dict(before), self.translator.branch, []
            self.translator.branch = (*outside, body)
            try:
                self.run(body)
            except _Return as done:
                gone.append(len(results))
                self.ended.append((ex.number(True), done.value, done.at))
            except _Jump as jump:
                raise self.source.error(statement, f"{jump.word} cannot stand inside an if that depends on the cell: assign a value "
                                                   "there and use it after the if, or use where()") from None
            finally:
                self.translator.branch = outside
            results.append(self.names)
            ended += [(holds if ex.is_number(c) else ex.binary("&", holds, c), value, at) for c, value, at in self.ended]
        self.ended = ended
        if len(gone) == 2:
            _, value, at = ended.pop()
            raise _Return(value, at)
        if gone:
            self.names = results[1 - gone[0]]  # what follows is of the other way alone
            return
        self.names = before
        for name in list(dict.fromkeys([*results[0], *results[1]])):
            a, b = results[0].get(name, before.get(name)), results[1].get(name, before.get(name))
            if a is b:
                self.names[name] = a
            elif a is None or b is None:
                self.names.pop(name, None)  # known on one way alone: an error where it is used
            elif isinstance(a, Outside) or isinstance(b, Outside):
                raise Untranslatable(f"{name} is {a!r} in one branch of the if and {b!r} in the other: use each within its own branch")
            else:
                self.names[name] = self.translator.local(name, ex.where(condition, node_of(a), node_of(b)))

    def bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, (tuple, list)) or len(value) != len(target.elts):
                raise Untranslatable(f"{len(target.elts)} names are assigned a different number of values: give one value for each name")
            for one, item in zip(target.elts, value):
                self.bind(one, item)
            return
        if isinstance(target, ast.Subscript):
            return self.put(target, value)
        if not isinstance(target, ast.Name):
            raise Untranslatable("a kernel can assign only to names: return the new value of a field")
        if isinstance(value, Node) and not ex.is_number(value) and value.op != "local":
            value = self.translator.local(target.id, value)
        if isinstance(value, np.ndarray) and value.flags.writeable and id(_root(value)) not in self.translator.own:
            self.translator.made(_root(value))
        self.names[target.id] = value

    def change(self, kind: type, into: Any, value: Any) -> None:
        """+= on a list, |= on a set, any such operator on an array: the object itself changes, under all of its names."""
        if isinstance(into, np.ndarray) and symbolic(value) or kind not in _IN_PLACE:
            raise Untranslatable("an array cannot hold values that depend on the cell: use a list")
        self.translator.may_change(into)
        check_plain(value if not symbolic(value) else None, "an operation")
        try:
            _IN_PLACE[kind](into, value)
        except Exception as error:
            raise Untranslatable(f"{type(error).__name__}: {error}") from None

    def put(self, target: ast.Subscript, value: Any) -> None:
        """Assigns to an element of a list, dictionary or array that the kernel has made."""
        into, index = self.value(target.value), self.value(target.slice)
        if isinstance(into, (Node, FieldRef)):
            raise Untranslatable("a kernel can assign only to names: return the new value of a field")
        if symbolic(index) or isinstance(into, np.ndarray) and symbolic(value):
            raise Untranslatable("the index of an assignment, and the elements of an array, cannot depend on the cell: use a constant index and a list")
        self.translator.may_change(into)
        try:
            into[index] = value
        except Exception as error:
            raise Untranslatable(f"{type(error).__name__}: {error}") from None

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
            raise self.source.error(node, "a loop cannot go over a value that depends on the cell: loop over a range, tuple or list that is known while the kernel is made")
        try:
            found = list(itertools.islice(items_of(value), MOST_STEPS + 1))
        except Exception as error:
            raise self.source.error(node, str(error)) from None
        if len(found) > MOST_STEPS:
            raise self.source.error(node, f"the loop has more than {MOST_STEPS} items: loop over fewer")
        return found

    def on_constant(self, node: ast.Constant) -> Any:
        return node.value

    def name(self, node: ast.Name) -> Any:
        if node.id in self.names:
            return self.names[node.id]
        scope: _Scope | None = self
        while scope is not None and node.id not in scope.source.locals:  # else it is never the one outside
            if scope.within is not None:
                names = scope.within.names_for(node.id)
                if node.id in names:
                    return names[node.id]
            scope = scope.within.scope if scope.within is not None else None
        if scope is None:
            try:
                return self.function.name(node.id)
            except KeyError:
                pass
        raise self.source.error(node, f"{node.id} is not known here: give it a value before this line, in both branches of an if")

    on_name = name

    def on_tuple(self, node: ast.Tuple) -> tuple:
        return tuple(self.elements(node.elts))

    def on_list(self, node: ast.List) -> list:
        return self.translator.made(self.elements(node.elts))

    def on_set(self, node: ast.Set) -> set:
        return self.translator.made(set(map(_hashable, self.elements(node.elts))))

    def on_slice(self, node: ast.Slice) -> slice:
        parts = [None if p is None else self.value(p) for p in (node.lower, node.upper, node.step)]
        if any(map(symbolic, parts)):
            raise Untranslatable("the bounds of a slice cannot depend on the cell: use constant bounds")
        return slice(*parts)

    def on_joinedstr(self, node: ast.JoinedStr) -> str:
        return "".join(map(str, map(self.value, node.values)))

    def on_formattedvalue(self, node: ast.FormattedValue) -> str:
        value = self.value(node.value)
        if symbolic(value):
            raise Untranslatable("a value of the cell cannot become text: leave it out of the f-string")
        check_plain(value, "a text")
        value = {-1: lambda v: v, 115: str, 114: repr, 97: ascii}[node.conversion](value)
        return format(value, "" if node.format_spec is None else self.value(node.format_spec))

    def elements(self, nodes: list[ast.expr]) -> list:
        out = []
        for node in nodes:
            out.extend(self.items(node.value) if isinstance(node, ast.Starred) else [self.value(node)])
        return out

    def on_dict(self, node: ast.Dict) -> dict:
        made: dict = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                more = self.value(value)
                if not isinstance(more, dict):
                    raise Untranslatable(f"** needs a dictionary, and {more!r} is not one")
                made.update(more)
            else:
                made[_hashable(self.value(key))] = self.value(value)
        return self.translator.made(made)

    def comprehension(self, node: Any) -> list:
        out: list = []

        def loop(generators: list[ast.comprehension]) -> None:
            if not generators:
                out.append((_hashable(self.value(node.key)), self.value(node.value)) if isinstance(node, ast.DictComp) else self.value(node.elt))
                return
            for item in self.items(generators[0].iter):
                self.bind(generators[0].target, item)
                tests = [self.value(test) for test in generators[0].ifs]
                if any(symbolic(test) for test in tests):
                    raise self.source.error(node, "the condition of a comprehension cannot depend on the cell: choose values with where()")
                if all(map(_truth, tests)):
                    loop(generators[1:])

        around, self.names = self.names, dict(self.names)
        bound = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        self.layers = [*self.layers, (bound, self.names, around)]
        loop(node.generators)
        self.names, self.layers = around, self.layers[:-1]
        return self.translator.made(dict(out) if isinstance(node, ast.DictComp) else set(map(_hashable, out)) if isinstance(node, ast.SetComp) else out)

    on_listcomp = on_generatorexp = on_setcomp = on_dictcomp = comprehension

    def binary(self, kind: type, a: Any, b: Any) -> Any:
        if not symbolic(a) and not symbolic(b):
            return _python_binary(kind, a, b)
        if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
            if kind is ast.Add and type(a) is type(b):
                return self.translator.made(a + b)
            if kind is ast.Mult and not symbolic(b) and isinstance(b, (int, np.integer)):
                return self.translator.made(a * int(b))
            raise Untranslatable("a kernel cannot compute with a whole tuple or list: compute with its elements, [a + b for a, b in zip(...)]")
        if kind not in _BINARY:
            raise Untranslatable(f"the operator {kind.__name__} is not supported" + (": write a sum of products" if kind is ast.MatMult else ""))
        return self.translator.shallow(ex.binary(_BINARY[kind], node_of(a), node_of(b)))

    def on_binop(self, node: ast.BinOp) -> Any:
        return self.binary(type(node.op), self.value(node.left), self.value(node.right))

    def on_unaryop(self, node: ast.UnaryOp) -> Any:
        a = self.value(node.operand)
        if not symbolic(a):
            check_plain(a, "an operation")
            return {ast.USub: lambda: -a, ast.UAdd: lambda: +a, ast.Not: lambda: not _truth(a), ast.Invert: lambda: ~a}[type(node.op)]()
        return ex.unary({ast.USub: "-", ast.UAdd: "+", ast.Not: "!", ast.Invert: "~"}[type(node.op)], node_of(a))

    def on_compare(self, node: ast.Compare) -> Any:
        values = [self.value(v) for v in [node.left, *node.comparators]]
        result: Any = None
        for op, a, b in zip(node.ops, values, values[1:]):
            if not symbolic(a) and not symbolic(b):
                one: Any = _python_compare(type(op), a, b)
            elif type(op) in _COMPARE:
                one = ex.binary(_COMPARE[type(op)], node_of(a), node_of(b))
            elif isinstance(op, (ast.Is, ast.IsNot)) and (a is None or b is None):
                one = isinstance(op, ast.IsNot)
            elif isinstance(op, (ast.In, ast.NotIn)) and isinstance(b, (list, tuple, range)):
                one = functools.reduce(lambda x, y: ex.binary("|", x, y), [ex.binary("==", node_of(a), node_of(v)) for v in b], ex.number(False))
                one = ex.unary("!", one) if isinstance(op, ast.NotIn) else one
            else:
                raise Untranslatable("'is' cannot compare values of the cell, and 'in' needs a list or tuple on its right: compare with ==")
            result = one if result is None else self.both(result, one)
        return result

    @staticmethod
    def both(a: Any, b: Any) -> Any:
        """Do both comparisons hold?"""
        if not symbolic(a):
            return b if _truth(a) else a
        if not symbolic(b):
            return a if _truth(b) else False
        return ex.binary("&", ex.truth(node_of(a)), ex.truth(node_of(b)))

    def on_boolop(self, node: ast.BoolOp) -> Any:
        """One of the values, as in Python: a and b is b where a is not 0, else a."""
        return self.either(node, self.value, node.values)

    def either(self, node: ast.BoolOp, value: Callable, operands: list[ast.expr]) -> Any:
        a, also = value(operands[0]), isinstance(node.op, ast.And)
        if len(operands) == 1:
            return a
        if not symbolic(a):
            return self.either(node, value, operands[1:]) if _truth(a) == also else a
        b = self.either(node, value, operands[1:])
        a, b = node_of(a), node_of(b)
        if a.type == b.type == "bool" and not ex.is_number(b):
            return ex.binary("&" if also else "|", a, b)
        return ex.where(ex.truth(a), b, a) if also else ex.where(ex.truth(a), a, b)

    def condition(self, node: ast.expr) -> Any:
        """A value of which only the truth counts."""
        if isinstance(node, ast.BoolOp):
            return self.either(node, self.whether, node.values)
        return self.whether(node)

    def whether(self, node: ast.expr) -> Any:
        value = self.condition(node) if isinstance(node, ast.BoolOp) else self.value(node)
        return ex.truth(node_of(value)) if symbolic(value) and not isinstance(value, (list, tuple, dict)) else value

    def on_ifexp(self, node: ast.IfExp) -> Any:
        condition = self.condition(node.test)
        if not symbolic(condition):
            return self.value(node.body if _truth(condition) else node.orelse)
        return ex.where(node_of(condition), node_of(self.value(node.body)), node_of(self.value(node.orelse)))

    def on_attribute(self, node: ast.Attribute) -> Any:
        value = self.value(node.value)
        if isinstance(value, FieldRef):
            if node.attr == "old" and value.radius >= 0:
                return ex.load("old", value.name, value.dtype)
            if node.attr == "old":
                raise Untranslatable(f"{value.name} is read-only and has no .old: read {value.name} itself")
            raise Untranslatable(f"{value.name}.{node.attr} does not exist: the only attribute of a field is .old")
        if isinstance(value, Node):
            raise Untranslatable(f"'{ast.unparse(node)}' does not exist: a value of the cell has no attributes")
        try:
            if isinstance(value, Outside):
                return value.attribute(node.attr)
            check_plain(value if not symbolic(value) else None, "an attribute")
            return getattr(value, node.attr)
        except AttributeError as error:
            raise Untranslatable(str(error)) from None

    def on_subscript(self, node: ast.Subscript) -> Any:
        value = self.value(node.value)
        if isinstance(node.slice, ast.Slice) and isinstance(value, (Node, FieldRef)):
            raise Untranslatable("a kernel cannot read slices of a field: read single neighbours, u[dx, dy, dz]")
        index = self.value(node.slice)
        if isinstance(value, FieldRef):
            return self.neighbour(value, index)
        if symbolic(index) and not isinstance(value, (Node, Outside)):
            return lookup.element(self.translator.cell, self.translator.local, value, index, ast.unparse(node.value))
        if isinstance(value, Node):
            raise Untranslatable(f"'{ast.unparse(node.value)}' is a value of this cell and has no neighbours: only fields have neighbours, u[dx, dy, dz]")
        if isinstance(value, Outside):
            raise Untranslatable(f"a kernel cannot read elements of {value!r}: assign them to names before the kernel")
        try:
            return self.translator.made(value[index]) if isinstance(value, list) and isinstance(index, slice) else value[index]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise Untranslatable(f"{type(error).__name__}: {error}") from None

    def neighbour(self, ref: FieldRef, index: Any) -> Node:
        if symbolic(index):
            raise Untranslatable(f"the offsets of a neighbour of {ref.name} depend on the cell: use constant integers, {ref.name}[dx, dy, dz]")
        if not isinstance(index, tuple) or len(index) not in (2, 3) or not all(isinstance(i, (int, np.integer)) for i in index):
            raise Untranslatable(f"{ref.name}[{index}] is not a neighbour: give three integers, {ref.name}[dx, dy, dz], or in a grid of two dimensions two, "
                                 f"{ref.name}[dx, dy]")
        self.translator.cell.offsets.add(len(index))
        index = (*index, 0) if len(index) == 2 else index
        far = max(abs(int(i)) for i in index)
        if far > 8:
            raise Untranslatable(f"{ref.name}[{', '.join(map(str, index))}] is {far} cells away: a kernel reads neighbours up to 8 cells away")
        if not ref.readable:
            raise Untranslatable(f"this function computes {ref.name}, so it cannot read neighbours or new values of it: {ref.name}.old is the cell's value before")
        return ex.load("at", ref.name, ref.dtype, tuple(int(i) for i in index))

    def on_call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        if isinstance(function, (Node, FieldRef)):
            raise Untranslatable(f"'{ast.unparse(node.func)}' is a value of this cell, not a function: it cannot be called")
        changed = changes(function)
        if changed is not None:
            self.translator.may_change(changed)
        args = self.elements(node.args)
        keywords: dict[str, Any] = {}
        for k in node.keywords:
            value = self.value(k.value)
            if k.arg is None and not isinstance(value, dict):
                raise Untranslatable(f"** needs a dictionary, and {value!r} is not one")
            keywords.update(value if k.arg is None else {k.arg: value})
        try:
            return self.call(function, args, keywords)
        except (Untranslatable, KernelError, _Jump):
            raise
        except Exception as error:
            raise Untranslatable(f"'{ast.unparse(node)}' failed: {type(error).__name__}: {error}") from None

    @staticmethod
    def change_by(function: Any, changed: Any, args: list, keywords: dict) -> Any:
        """Calls a method that changes a list, dictionary or set. None may compare or hash values of the cell, which are not known while the kernel is made."""
        if isinstance(changed, set) and function.__name__ == "update":
            args = [a if isinstance(a, (set, frozenset)) else list(items_of(a)) for a in args]  # iterators are gone through once
        keys = [v for a in args for v in a] if isinstance(changed, set) and function.__name__ == "update" else args if isinstance(changed, set) else \
            args[:1] if isinstance(changed, dict) and function.__name__ in ("pop", "setdefault") else []
        for key in keys:
            _hashable(key)
        if isinstance(changed, list) and (function.__name__ in ("pop", "insert") and symbolic(args[:1]) or function.__name__ == "remove" and symbolic([*changed, *args])):
            raise Untranslatable(f"{called(function)} depends on values of the cell, which are not known while the kernel is made: use where()")
        try:
            return function(*args, **keywords)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise Untranslatable(f"{type(error).__name__}: {error}") from None

    def call(self, function: Any, args: list, keywords: dict) -> Any:
        of_cell = any(map(symbolic, [*args, *keywords.values()]))
        if isinstance(function, (Function, Nested)):
            return self.translator.function(function, function.bind(args, keywords))
        if isinstance(function, Method):
            return self.call(function.function, [*function.args, *args], {**function.keywords, **keywords})
        of = getattr(function, "__self__", None)
        if isinstance(of, (list, tuple)) and function.__name__ in ("count", "index") and (of_cell or symbolic(of)):
            raise Untranslatable(f"{called(function)} compares values while the kernel is made, and these depend on the cell: compare with ==, as in sum(v == 1 for v in values)")
        known = special(function)
        if of_cell and known is not None:
            made = known.use(self.translator.local, args, keywords)
            return self.translator.made(made) if isinstance(made, list) else made
        by_hand = _BY_HAND.get(id(function))
        if by_hand is not None:
            return by_hand(self, *args, **keywords)
        if of_cell and function is builtins.sum:
            unknown = next((k for k in keywords if k != "start"), None)
            if unknown is not None or len(args) != 1 + ("start" not in keywords and len(args) == 2):
                raise Untranslatable("sum() takes a list, and perhaps start=" + (f": leave {unknown}= out" if unknown is not None else ""))
            total = None
            for item in [*args[1:2], *keywords.values(), *args[0]]:
                total = node_of(item) if total is None else self.translator.shallow(ex.binary("+", total, node_of(item)))
            return 0 if total is None else total
        functions_too = any(isinstance(v, Outside) for a in args if isinstance(a, (list, tuple)) for v in a)
        if (of_cell or functions_too) and function in (builtins.len, builtins.zip, builtins.enumerate, builtins.reversed, builtins.tuple, builtins.list):
            if any(isinstance(a, (Node, FieldRef)) for a in args):
                raise Untranslatable(f"{function.__name__}() cannot be called with a single value of the cell: give it a list or a tuple")
            made = function(*args, **keywords) if function in (builtins.len, builtins.tuple, builtins.list) else list(function(*args, **keywords))
            return self.translator.made(made) if isinstance(made, list) else made
        if changes(function) is not None:
            return self.change_by(function, changes(function), args, keywords)
        if of_cell:
            known_ones = "where, min, max, abs, sqrt, " + ", ".join(ex.FUNCTIONS[:8]) + " ..."
            raise Untranslatable(f"a kernel cannot call {called(function)} with values of the cell. It can call {known_ones} (docs/kernels.md lists all), and "
                                 "Python functions of your own")
        if known is None and not is_pure(function):
            raise Untranslatable(f"{called(function)} is not known to be pure: it would run once, while the kernel is made, not for every cell. Call it before "
                                 "the kernel, and use its value by a name")
        made = call_pure(function, args, keywords)
        if isinstance(made, (type({}.values()), type({}.items()))) and symbolic(list(made)):
            made = list(made)
        if isinstance(made, np.ndarray) and made.ndim == 0:
            return made[()]  # as numpy gives numbers of most functions, but not of where
        if isinstance(made, (list, dict, set)) and id(made) not in self.function.taker.copies and id(made) not in self.translator.own:
            self.translator.made(made)
        return made

    # ---- functions that call others, and those that look into things

    def _map(self, function: Any, *lists: Any) -> list:
        return self.translator.made([self.call(function, list(some), {}) for some in zip(*map(items_of, lists))])

    def _filter(self, function: Any, values: Any) -> list:
        kept = [(v, v if function is None else self.call(function, [v], {})) for v in items_of(values)]
        if any(symbolic(test) for _, test in kept):
            raise Untranslatable("the condition of filter() cannot depend on the cell: choose values with where()")
        return self.translator.made([v for v, test in kept if _truth(test)])

    def _reduce(self, function: Any, values: Any, *first: Any) -> Any:
        values = [*first, *items_of(values)]
        if not values:
            raise Untranslatable("reduce() is given an empty list and no initial value: give it one")
        return functools.reduce(lambda a, b: self.call(function, [a, b], {}), values)

    def _partial(self, function: Any, *args: Any, **keywords: Any) -> Method:
        return Method(self.function.taker, function, *args, "functools.partial", keywords=keywords)

    def _getattr(self, of: Any, name: Any, *default: Any) -> Any:
        node = ast.Attribute(ast.Name("object", ast.Load()), name if isinstance(name, str) else str(name), ast.Load())
        before, self.names = self.names, {**self.names, "object": of}
        try:
            return self.on_attribute(node)
        except Untranslatable:
            thing = of.thing if isinstance(of, Outside) else of
            computed = isinstance(thing, Attributes) or hasattr(type(thing), "__getattr__") or isinstance(type(thing).__getattribute__, types.FunctionType)
            absent = not hasattr(thing, name) if isinstance(thing, types.ModuleType) else not computed and inspect.getattr_static(thing, name, _ABSENT) is _ABSENT
            if default and absent:
                return default[0]
            raise
        finally:
            self.names = before

    def _isinstance(self, value: Any, kinds: Any) -> bool:
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        if symbolic(value) and not isinstance(value, (list, tuple, dict)):
            raise Untranslatable("isinstance() cannot test a value of the cell, whose type is not known while the kernel is made: leave the test out")
        return isinstance(value.thing if isinstance(value, Outside) else value, tuple(k.thing if isinstance(k, Outside) else k for k in kinds))


_BY_HAND: dict[int, Callable] = {id(builtins.map): _Scope._map, id(builtins.filter): _Scope._filter, id(functools.reduce): _Scope._reduce, id(functools.partial): _Scope._partial,
                                 id(builtins.getattr): _Scope._getattr, id(builtins.isinstance): _Scope._isinstance}
_BY_HAND.update({id(function): functools.partial(lambda scope, a, b, kind: scope.binary(kind, a, b), kind=kind) for kind, function in (
    (ast.Add, operator.add), (ast.Sub, operator.sub), (ast.Mult, operator.mul), (ast.Div, operator.truediv), (ast.Pow, operator.pow), (ast.FloorDiv, operator.floordiv),
    (ast.Mod, operator.mod))})


def _python_binary(kind: type, a: Any, b: Any) -> Any:
    check_plain(a, "an operation")
    check_plain(b, "an operation")
    tree = ast.Expression(ast.BinOp(ast.Name("a", ast.Load()), kind(), ast.Name("b", ast.Load())))
    try:
        return eval(compile(ast.fix_missing_locations(tree), "<kernel>", "eval"), {}, {"a": a, "b": b})
    except Exception as error:
        raise Untranslatable(f"{type(error).__name__}: {error}") from None


def _python_compare(kind: type, a: Any, b: Any) -> Any:
    if kind not in (ast.Is, ast.IsNot):
        check_plain(a, "a comparison")
        check_plain(b, "a comparison")
    tree = ast.Expression(ast.Compare(ast.Name("a", ast.Load()), [kind()], [ast.Name("b", ast.Load())]))
    try:
        return eval(compile(ast.fix_missing_locations(tree), "<kernel>", "eval"), {}, {"a": a, "b": b})
    except Exception as error:
        raise Untranslatable(f"{type(error).__name__}: {error}") from None
