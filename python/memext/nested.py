# SPDX-License-Identifier: BSD-3-Clause
"""Functions and imports within a kernel. A def or lambda sees the names around it with the values that they have when it is called."""
from __future__ import annotations

import ast
import copy
import importlib
import inspect
from typing import Any

from .expressions import Untranslatable
from .known import Outside, Source, Taker, locals_of

MODULES = ("cmath", "fractions", "functools", "itertools", "math", "memext", "numpy", "operator", "statistics")


class Nested(Outside):
    """A function that the kernel defines. scope: the scope of the function around it."""

    def __init__(self, scope: Any, tree: ast.FunctionDef | ast.Lambda):
        self.scope, self.tree, self.layers = scope, tree, scope.layers
        name = tree.name if isinstance(tree, ast.FunctionDef) else "a lambda"
        super().__init__(scope.function.taker, self, f"the function {name}" if isinstance(tree, ast.FunctionDef) else name)
        self.source: Source = copy.copy(scope.source)
        self.source.name, self.source.tree, self.source.locals = name, tree, locals_of(tree)
        args, kinds = tree.args, inspect.Parameter
        parameters = [kinds(a.arg, kinds.POSITIONAL_ONLY) for a in args.posonlyargs] + [kinds(a.arg, kinds.POSITIONAL_OR_KEYWORD) for a in args.args]
        self.defaults: dict[str, Any] = {}
        for k, default in enumerate(reversed(args.defaults), 1):
            parameters[-k] = parameters[-k].replace(default=None)
            self.defaults[parameters[-k].name] = scope.value(default)
        if args.vararg:
            parameters.append(kinds(args.vararg.arg, kinds.VAR_POSITIONAL))
        for a, default in zip(args.kwonlyargs, args.kw_defaults):
            parameters.append(kinds(a.arg, kinds.KEYWORD_ONLY, default=None if default is not None else kinds.empty))
            if default is not None:
                self.defaults[a.arg] = scope.value(default)
        if args.kwarg:
            parameters.append(kinds(args.kwarg.arg, kinds.VAR_KEYWORD))
        self.signature = inspect.Signature(parameters)

    def names_for(self, name: str) -> dict[str, Any]:
        """The names around it, as they are now: of comprehensions it sees those that it is made in, also afterwards."""
        for bound, inside, _ in reversed(self.layers):
            if name in bound:
                return inside
        others = self.scope.layers[len(self.layers):] if self.scope.layers[:len(self.layers)] == self.layers else self.scope.layers
        return others[0][2] if others else self.scope.names

    def look_up(self, name: str) -> Any:
        raise AttributeError(f"{self.shown}, which the kernel defines, has no attribute {name}")

    def bind(self, args: list, keywords: dict) -> dict[str, Any]:
        try:
            bound = dict(self.signature.bind(*args, **keywords).arguments)
        except TypeError as error:
            raise Untranslatable(f"{self.shown}: {error}") from None
        for p in self.signature.parameters.values():
            if p.name not in bound:
                bound[p.name] = () if p.kind is p.VAR_POSITIONAL else {} if p.kind is p.VAR_KEYWORD else self.defaults[p.name]
        return bound


def imported(taker: Taker, name: str) -> Any:
    """The module that an import within a kernel names."""
    if name.partition(".")[0] not in MODULES:
        raise Untranslatable(f"a kernel can import only {', '.join(MODULES)}, not {name}: import {name} before the kernel, and call only its pure functions")
    try:
        return taker.take(importlib.import_module(name), name)
    except ImportError as error:
        raise Untranslatable(f"'import': {error}") from None
