# SPDX-License-Identifier: BSD-3-Clause
"""What a kernel may use besides its arguments: names from outside, and functions that are known to be pure. Each name is looked up once, when the
function is decorated.

Numbers, texts, tuples, lists, dictionaries, sets and arrays are copied. Functions are kept with their source and with what they use in turn. Of
modules, classes and other objects, the attributes that the source names are kept."""
from __future__ import annotations

import ast
import builtins
import cmath
import collections
import contextlib
import enum
import fractions
import functools
import inspect
import itertools
import math
import numbers
import operator
import os
import sysconfig
import textwrap
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from .errors import KernelError
from .expressions import Node, Untranslatable
from .specials import FieldRef, special

MOST_TABLE_BYTES = 64 << 20  # of an array that a kernel takes along
MOST_THINGS = 20_000  # that are taken before they are asked for


# ------------------------------------------------------------------ source

class Source:
    """The syntax tree of a function, and how to name its lines."""

    def __init__(self, function: types.FunctionType):
        self.name = function.__name__
        code = function.__code__  # not what a decorator says that it wraps
        self.file = inspect.getsourcefile(code) or "?"
        try:
            lines, first = inspect.getsourcelines(code)
        except (OSError, TypeError):
            raise KernelError(f"the source of {self.name} cannot be read: define it in a file or a notebook", self.file) from None
        self.lines, self.first = lines, max(first, 1)
        try:
            self.tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        except SyntaxError:  # a lambda in the middle of a statement
            self.tree = None
        if code.co_name == "<lambda>":
            self.tree = _lambda(self.tree, code)
        if not isinstance(self.tree, ast.FunctionDef):
            raise KernelError(f"{self.name} is not a function made by def: write def {self.name}(...)" if code.co_name != "<lambda>" else
                              "the lambda is not alone in its statement: give it a line of its own, or write the function with def", self.file, self.first, lines[0].strip())
        arguments = self.tree.args
        named = [a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
        if self.tree.name != code.co_name or tuple(named) != code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
            raise KernelError(f"the source of {self.name} has changed since it was loaded: start the program again", self.file, self.first)
        self.locals = locals_of(self.tree)

    def error(self, node: ast.AST, reason: str) -> KernelError:
        offset = getattr(node, "lineno", 1) - 1
        text = self.lines[offset].strip() if offset < len(self.lines) else ""
        return KernelError(reason, self.file, self.first + offset, text)

    def names(self) -> set[str]:
        """The names of things outside the function that it uses."""
        return {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name)} - self.locals

    def chains(self) -> list[list[str]]:
        """The words [a, b, c] of each expression a.b.c."""
        found = []
        for node in ast.walk(self.tree):
            words: list[str] = []
            while isinstance(node, ast.Attribute):
                words.append(node.attr)
                node = node.value
            if words and isinstance(node, ast.Name) and node.id not in self.locals:
                found.append([node.id, *reversed(words)])
        return found

    def attributes(self) -> set[str]:
        """The attributes that it reads from any object. Texts that may be names count too, because getattr takes them."""
        texts = {n.value for n in ast.walk(self.tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.isidentifier()}
        return texts | {n.attr for n in ast.walk(self.tree) if isinstance(n, ast.Attribute)}


def _lambda(tree: ast.AST | None, code: types.CodeType) -> ast.FunctionDef | None:
    """The only lambda of the statement with these arguments, as a function that returns its value."""
    def names(args: ast.arguments) -> tuple:
        return tuple(a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs])

    wanted = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    found = [n for n in ast.walk(tree or ast.Pass()) if isinstance(n, ast.Lambda) and names(n.args) == wanted]
    if len(found) != 1:
        return None
    made = ast.parse("def f(): return 0").body[0]
    made.name, made.args, made.body[0].value = "<lambda>", found[0].args, found[0].body  # type: ignore[attr-defined]
    for node in (made, made.body[0]):  # type: ignore[attr-defined]
        ast.copy_location(node, found[0])
    return made  # type: ignore[return-value]


def locals_of(tree: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names that the function assigns to: they are local everywhere in it. Names within comprehensions and inner functions are not among them."""
    args = tree.args
    found = {a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg] if a is not None}
    stack: list[ast.AST] = list(tree.body) if isinstance(tree.body, list) else [tree.body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        if not isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.FunctionDef)):
            stack.extend(ast.iter_child_nodes(node))
    return found


# ------------------------------------------------------------------ what is pure

def _of(module: Any, names: str) -> list:
    return [f for f in (getattr(module, name, None) for name in names.split()) if f is not None]


_PURE: dict[int, Any] = {id(f): f for f in [
    *_of(builtins, "abs all any bin bool bytes chr complex dict divmod enumerate float format frozenset int isinstance issubclass len list max min oct ord "
                   "pow range reversed round set slice sorted str sum tuple type zip hex ascii"),
    *(f for f in vars(math).values() if callable(f) and not isinstance(f, type)), *(f for f in vars(cmath).values() if callable(f) and not isinstance(f, type)),
    *_of(operator, "abs add and_ eq floordiv ge getitem gt index inv invert le lshift lt mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor contains"),
    *_of(itertools, "accumulate chain combinations combinations_with_replacement islice pairwise permutations product repeat starmap zip_longest"),
    *_of(np, "abs absolute all allclose amax amin any arange argmax argmin argsort argwhere around array array_equal asarray ascontiguousarray atleast_1d atleast_2d "
             "average bool_ broadcast_to ceil clip column_stack concatenate convolve copy correlate count_nonzero cov cross cumprod cumsum delete diag diagonal diff "
             "digitize dot dtype einsum expand_dims eye fabs finfo fix flip fliplr flipud flatnonzero full full_like geomspace gradient hanning hamming bartlett blackman "
             "hsplit hstack identity iinfo in1d indices inner insert interp isclose isin isscalar kaiser kron linspace logspace matmul max mean median meshgrid min "
             "moveaxis ndim nonzero ones ones_like outer pad percentile polyfit polyval prod product ptp quantile ravel repeat reshape resize result_type roll rollaxis "
             "rot90 round searchsorted shape sinc size sort split squeeze stack std sum swapaxes take tensordot tile trace transpose tri tril triu trapz unique "
             "unravel_index vander var vdot vstack where zeros zeros_like"),
    *_of(np.linalg, "cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_power matrix_rank norm pinv qr slogdet solve svd"),
    *_of(np.fft, "fft fftfreq fftshift ifft ifftshift irfft rfft rfftfreq")]}
_PURE.update({id(t): t for t in [np.float64, np.float32, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
                                 np.complex64, np.complex128, np.longdouble, np.ndarray, np.generic, np.integer, np.floating, np.number, object, type(None), fractions.Fraction]})

# Methods that change nothing; of numbers, texts and ranges all are such.
_ARRAY = set("all any argmax argmin argsort astype clip conj conjugate copy cumprod cumsum diagonal dot flatten item max mean min nonzero prod ptp ravel repeat reshape "
             "round searchsorted squeeze std sum swapaxes take tolist trace transpose var view __len__ __getitem__".split())
_REDUCING = {"accumulate", "outer", "reduce", "reduceat"}
_METHODS: list[tuple[Any, set[str] | None]] = [
    ((str, bytes, bool, int, float, complex, range, slice, numbers.Number, np.generic, np.dtype), None), (tuple, {"count", "index"}), (list, {"count", "index", "copy"}),
    (dict, {"copy", "get", "items", "keys", "values"}), ((set, frozenset), {"copy", "difference", "intersection", "isdisjoint", "issubset", "issuperset",
                                                                           "symmetric_difference", "union"}), (np.ndarray, _ARRAY)]
CHANGING = {list: set("append extend insert pop remove reverse sort clear".split()), dict: set("pop setdefault update clear".split()),
            set: set("add discard remove update clear".split())}
# Types whose own methods, operators and iterators can be used as they are.
PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(...), numbers.Number, enum.Enum, np.generic, np.dtype, np.finfo, np.iinfo)
_ITERATORS = (zip, enumerate, reversed, map, filter, *_of(itertools, "accumulate chain combinations combinations_with_replacement islice pairwise permutations product "
                                                                     "repeat starmap zip_longest"),
              type(iter([])), type(iter(())), type(iter({})), type({}.keys()), type({}.values()), type({}.items()), type(reversed([])), type(iter(range(0))))
_ORDERLESS = {id(f) for f in (sorted, len, min, max, all, any, set, frozenset, isinstance, bool)}  # what sets may be given to


# What calls what it is given, or asks it for something: the translator has these itself.
CALLING = {id(f): f for f in (map, filter, getattr, isinstance, functools.reduce, functools.partial)}


def is_pure(function: Any) -> bool:
    """Is the function pure? It then returns the same value for the same arguments, changes nothing and reads nothing else."""
    if id(function) in _PURE:
        return True
    if isinstance(function, np.ufunc):
        return any(set(kind) - set("O->") for kind in function.types)  # not one that calls Python (numpy.frompyfunc)
    if isinstance(function, types.BuiltinMethodType) and not isinstance(function.__self__, (types.ModuleType, type)):
        if isinstance(function.__self__, (np.generic, np.ufunc)):
            return function.__name__ in _ARRAY if isinstance(function.__self__, np.generic) else function.__name__ in _REDUCING and is_pure(function.__self__)
        return any(isinstance(function.__self__, kinds) and (names is None or function.__name__ in names) for kinds, names in _METHODS)
    of = getattr(function, "__self__", None)
    return isinstance(of, type) and (of, function.__name__) in ((dict, "fromkeys"), (itertools.chain, "from_iterable"), (float, "fromhex"), (str, "maketrans"))


def changes(function: Any) -> Any:
    """The list, dictionary or set that a method changes; None if it is not such a method."""
    of = getattr(function, "__self__", None)
    return of if isinstance(function, types.BuiltinMethodType) and function.__name__ in CHANGING.get(type(of), ()) else None


def call_pure(function: Any, args: list, keywords: dict) -> Any:
    for value in [*args, *keywords.values()]:
        check_plain(value, called(function))
        if isinstance(value, (set, frozenset)) and id(function) not in _ORDERLESS and not isinstance(getattr(function, "__self__", None), (set, frozenset)):
            raise Untranslatable(f"{called(function)} is given a set, whose order differs between processes: give it sorted(...)")
    if keywords.get("out") is not None or keywords.get("key") is not None:
        raise Untranslatable(f"a kernel cannot call {called(function)} with {'out' if keywords.get('out') is not None else 'key'}=: leave that argument out")
    return function(*args, **keywords)


def check_plain(value: Any, what: str) -> None:
    """Refuses objects whose own code would run when they are used."""
    if isinstance(value, Outside):
        raise Untranslatable(f"a kernel cannot evaluate {what} of {value!r}: compute it before the kernel, and use the result by a name")
    if isinstance(value, (list, tuple)):
        for item in value:
            check_plain(item, what)
    elif isinstance(value, dict):
        for item in value.values():
            check_plain(item, what)
    elif not (isinstance(value, (*PLAIN, set, frozenset, *_ITERATORS)) or type(value) is np.ndarray or id(value) in _PURE or isinstance(value, type)):
        raise Untranslatable(f"a kernel cannot evaluate {what} of an object of type {type(value).__name__}: compute it before the kernel, and use the result by a name")


def called(function: Any) -> str:
    """A name for messages."""
    if isinstance(function, Outside):
        return function.shown
    module = getattr(function, "__module__", None)
    of = getattr(function, "__self__", None)
    before = f"{type(of).__name__}." if of is not None and not isinstance(of, (types.ModuleType, type)) else f"{module}." if module not in (None, "builtins") else ""
    return before + str(getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__).rpartition(".")[2]


# ------------------------------------------------------------------ what is outside

class Outside:
    """A module, class or other object outside the kernel. Its attributes are kept when the kernel is made, or when they are first read."""

    def __init__(self, taker: Taker, thing: Any, shown: str):
        self.taker, self.thing, self.shown, self.taken = taker, thing, shown, {}

    def __repr__(self) -> str:
        return self.shown

    def attribute(self, name: str) -> Any:
        if name not in self.taken:
            self.taken[name] = self.look_up(name)
        return self.taken[name]

    def look_up(self, name: str) -> Any:
        """The attribute as it is stored: no code of the object runs to compute it."""
        thing = self.thing
        if isinstance(thing, types.ModuleType):
            return self.taker.take(getattr(thing, name), f"{thing.__name__}.{name}")
        if isinstance(thing, enum.EnumMeta) and name in thing.__members__:
            return thing[name]
        found = inspect.getattr_static(thing, name)
        shown = f"{self.shown}.{name}"
        if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            found = getattr(thing, name)
        elif isinstance(found, staticmethod):
            found = found.__func__
        elif isinstance(found, classmethod):
            return Method(self.taker, found.__func__, self if isinstance(thing, type) else self.taker.take(type(thing)), shown)
        elif isinstance(found, types.FunctionType) and not isinstance(thing, type) and name not in getattr(thing, "__dict__", {}):
            return Method(self.taker, found, self, shown)
        elif isinstance(found, property) or hasattr(type(found), "__set__") and not isinstance(thing, type):
            raise Untranslatable(f"{shown} is computed at every read: assign it to a name before the kernel, and use that name")
        return self.taker.take(found, shown)


class Function(Outside):
    """A function, with its source and the names that it uses."""

    def __init__(self, taker: Taker, function: types.FunctionType):
        super().__init__(taker, function, function.__name__)
        self.names: dict[str, Any] = {}
        self._source: Source | None = None
        self.failure: KernelError | None = None
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
        self.signature = inspect.Signature([p.replace(default=None if p.default is not p.empty else p.empty, annotation=p.empty) for p in parameters])
        self.defaults = {p.name: taker.take(p.default) for p in parameters if p.default is not p.empty}
        try:
            self._source = Source(function)
        except KernelError as error:
            self.failure = error

    @property
    def source(self) -> Source:
        if self._source is None:
            raise self.failure  # type: ignore[misc]
        return self._source

    def name(self, name: str) -> Any:
        """What a name means that is not local to the function; KeyError if it means nothing."""
        if name not in self.names:
            self.names[name] = self.taker.take(self.now(name), name)
        return self.names[name]

    def now(self, name: str) -> Any:
        function = self.thing
        if name in function.__code__.co_freevars:
            try:
                return function.__closure__[function.__code__.co_freevars.index(name)].cell_contents
            except ValueError:
                raise KeyError(name) from None
        return function.__globals__[name] if name in function.__globals__ else vars(builtins)[name]

    def bind(self, args: list, keywords: dict) -> dict[str, Any]:
        try:
            bound = self.signature.bind(*args, **keywords).arguments
        except TypeError as error:
            raise Untranslatable(f"{self.shown}: {error}") from None
        for p in self.signature.parameters.values():
            if p.name not in bound:
                bound[p.name] = () if p.kind is p.VAR_POSITIONAL else {} if p.kind is p.VAR_KEYWORD else self.defaults[p.name]
        return dict(bound)


class Method(Outside):
    """A method with the object that it is called on, or a function with the first arguments of functools.partial."""

    def __init__(self, taker: Taker, function: Any, *more: Any, keywords: dict | None = None):
        *self.args, shown = more
        super().__init__(taker, function, shown)
        self.function, self.keywords = taker.take(function), keywords or {}


_PATHS = sysconfig.get_paths()
_SITES = ("site-packages" + os.sep, "dist-packages" + os.sep)
_FOREIGN = tuple(os.path.join(p, "") for p in (_PATHS["stdlib"], _PATHS["platstdlib"], os.path.dirname(np.__file__)))


def _installed(path: str) -> bool:
    return any(site in path for site in _SITES)


def _foreign(path: str) -> bool:
    """Does the file belong to Python itself or to numpy? Functions there are pure if the table above names them."""
    return path.startswith(_FOREIGN) and (path.startswith(_FOREIGN[2]) or not _installed(path)) or path.startswith("<frozen")


class Taker:
    """Keeps what one kernel uses, each thing once."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, Any]] = {}
        self.copies: set[int] = set()  # of what is outside, which nothing changes
        self.waiting: list[Function] = []
        self.words: set[str] = set()
        self.holders: list[Outside] = []

    def function(self, function: types.FunctionType) -> Function:
        """The function with all that it uses, as it is now."""
        taken = self.take(function)
        self.settle()
        return taken

    def settle(self) -> None:
        """Keeps what the sources of the functions name, until nothing is new. What installed functions use is kept when they are called."""
        before = -1
        while before != (before := len(self.known)) and before < MOST_THINGS:
            while self.waiting:
                source = self.waiting.pop()
                if source._source is None:
                    continue
                self.words |= source._source.attributes()
                for name in source._source.names():
                    with contextlib.suppress(KeyError, Untranslatable):
                        source.name(name)
                for first, *others in source._source.chains():
                    with contextlib.suppress(KeyError, Untranslatable, AttributeError):
                        thing = source.name(first)
                        for name in others:
                            thing = thing.attribute(name) if isinstance(thing, Outside) else None
            for holder in self.holders:  # which grow
                if isinstance(holder.thing, types.ModuleType):
                    continue
                for name in self.words - holder.taken.keys():
                    with contextlib.suppress(Exception):  # it is not there, or is refused where it is used
                        holder.attribute(name)

    def take(self, value: Any, shown: str = "") -> Any:
        if id(value) in self.known:
            return self.known[id(value)][1]
        made = self.make(value, shown)
        self.known.setdefault(id(value), (value, made))  # which keeps the id
        return made

    def copied(self, value: Any, made: Any) -> Any:
        self.known[id(value)] = value, made  # which keep their ids
        self.copies.add(id(made))
        return made

    def make(self, value: Any, shown: str) -> Any:
        if isinstance(value, (Outside, Node, FieldRef)) or isinstance(value, PLAIN) and not (isinstance(value, np.generic) and value.dtype.hasobject):
            return value
        if special(value) is not None or is_pure(value) or id(value) in CALLING or isinstance(value, type) and value.__module__ in ("builtins", "numpy"):
            return value
        if isinstance(value, list) and type(value) is list:
            made: Any = []
            self.copied(value, made)
            made.extend(self.take(v) for v in value)
            return made
        if isinstance(value, tuple) and not hasattr(type(value), "n_sequence_fields"):
            return tuple.__new__(type(value), [self.take(v) for v in value])
        if isinstance(value, tuple) and len(names := getattr(type(value), "__match_args__", ())) == len(value):  # sys.float_info, but not os.stat_result
            return collections.namedtuple(type(value).__name__, names)(*map(self.take, value))
        if isinstance(value, (dict, types.MappingProxyType)):
            made = Attributes() if hasattr(type(value), "__getattr__") else {}
            self.copied(value, made)
            made.update((self.take(k), self.take(v)) for k, v in value.items())
            return made
        if type(value) in (set, frozenset):
            return self.copied(value, type(value)(self.take(v) for v in value))
        if type(value) in (np.ndarray, np.memmap) and not value.dtype.hasobject:
            return self.table(value, shown or "an array")
        if isinstance(value, types.FunctionType) and not _foreign(value.__code__.co_filename):
            return self.make_function(value)
        if isinstance(value, functools.partial):
            return Method(self, value.func, *map(self.take, value.args), shown or "functools.partial", keywords={k: self.take(v) for k, v in value.keywords.items()})
        if isinstance(value, types.MethodType):
            return Method(self, value.__func__, self.take(value.__self__), shown or value.__func__.__name__)
        if isinstance(getattr(value, "__wrapped__", None), types.FunctionType) and type(value).__name__ == "_lru_cache_wrapper":
            return self.take(value.__wrapped__)
        made = Outside(self, value, shown or called(value))
        self.known[id(value)] = value, made
        self.holders.append(made)
        return made

    def make_function(self, value: types.FunctionType) -> Function:
        made = Function.__new__(Function)
        self.known[id(value)] = value, made  # which may use itself
        made.__init__(self, value)  # type: ignore[misc]
        if not _installed(value.__code__.co_filename):
            self.waiting.append(made)
        return made

    @staticmethod
    def table(value: np.ndarray, shown: str) -> Any:
        if value.nbytes > MOST_TABLE_BYTES:
            return Large(value, shown)
        made = np.array(value)
        made.setflags(write=False)
        return made


class Attributes(dict):
    """A copy of a dictionary whose attributes are computed by code of the user, which no kernel can call."""


class Large(Outside):
    """An array that is too large to be part of the kernel's text. Its shape and type are known all the same."""

    def __init__(self, value: np.ndarray, shown: str):
        self.thing = value
        self.shown = f"{shown}, an array of {value.nbytes >> 20} MiB (a kernel holds tables of up to {MOST_TABLE_BYTES >> 20} MiB; make a larger one a field of the kernel)"
        self.taken = {name: getattr(value, name) for name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize")}

    def look_up(self, name: str) -> Any:
        raise AttributeError(f"a kernel cannot read {name} of {self.shown}")


def items_of(value: Any) -> Iterable:
    """The items that a loop goes through; only values whose iteration runs no code of the user."""
    if isinstance(value, (set, frozenset)):
        raise Untranslatable("a kernel cannot loop over a set, whose order differs between processes: loop over sorted(...)")
    if isinstance(value, Outside):
        raise Untranslatable(f"a kernel cannot loop over {value!r}: make a list of it before the kernel, and loop over that")
    if isinstance(value, (list, tuple, dict, str, bytes, range, np.ndarray, *_ITERATORS)):
        return value
    raise Untranslatable(f"{value!r} cannot be looped over")
