# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F401, F811 - fixtures
"""Functions that a kernel in Python may call: a run gives the bits of numpy on the same cells, in float64 and float32, at zeros of both signs, halves,
negative, large, infinite and NaN values."""
import functools
import math
import statistics

import numpy as np
import pytest
from package import cache, environment, load, mx  # fixtures

EDGES = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.5, 7.5, -7.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.1, -0.1, 0.3, 1e6 + 0.5, -1e6 - 0.5, 8388607.5, 1e30, -1e30, 1e-30]

# Of u, v, w; n, which is NaN where u is 3.5, and q, which is infinite there. Where numpy may give either zero, + 0.0 takes its sign.
ONE = ["np.clip(u, -1.5, 2.5) + 0.0", "np.clip(n, v, w) + 0.0", "np.clip(u, None, v) + 0.0", "np.sign(n)", "np.square(u)", "np.rint(q)", "np.trunc(n)", "np.fix(u)", "np.mod(u, v)",
       "np.remainder(q, w)", "u % v", "v % q", "n % 2.5", "u // v", "q // w", "v // n", "-7.0 // u", "np.floor_divide(u, w)", "np.fmod(q, v)", "np.isnan(n)", "np.isinf(q / v)",
       "np.isfinite(n * q)", "np.signbit(u) + 2 * np.signbit(n)", "np.copysign(u, v)", "np.fmax(n, v) + 0.0", "np.fmin(v, n) + 0.0", "np.heaviside(n, v)", "np.reciprocal(u)"]
TWO = ["np.select([u > v, v > w], [u, v * 2], w)", "np.select([u > 1, n > 0], [v, 1])", "np.select([u > v], [n], default=-0.5)", "pow(u, 2)", "np.round(u)", "np.around(q)", "np.round(v, 0)",
       "np.round(np.clip(u, -99, 99), 2)", "np.round(u, decimals=-2)", "divmod(u, v)[0]", "divmod(u, v)[1]", "np.divmod(w, u)[1]", "np.add(u, v) - np.multiply(v, 2.0)", "np.negative(u) / np.true_divide(w, 3)",
       "np.less(u, v) | np.equal(u, w)", "(u % 1.0) + (v // 1.0)", "np.where(np.isfinite(u / v), u / v, -1.0)", "np.hypot(3.0, 4.0) * u", "np.copysign(0.0, u)", "np.fmod(u, 0.3)"]
# What Python's own functions or math's are, beside what numpy has for arrays.
THREE = [("math.fmod(u, v + 0.25)", "np.fmod(u, v + 0.25)"), ("math.isnan(n) + 2 * math.isinf(q) + 4 * math.isfinite(u)", "np.isnan(n) + 2 * np.isinf(q) + 4 * np.isfinite(u)"),
         ("math.copysign(1, u)", "np.copysign(u * 0 + 1, u)"), ("round(u)", "np.rint(u)"), ("round(q, 0)", "np.rint(q)"), ("math.trunc(u)", "np.trunc(u)"),
         ("np.min([n, v, w]) + 0.0", "np.min([n, v, w], axis=0) + 0.0"), ("np.amax((u, n, w)) + 0.0", "np.max([u, n, w], axis=0) + 0.0"), ("np.max([[u, v], [w, 0.5]]) + 0.0", "np.max([u, v, w, u * 0 + 0.5], axis=0) + 0.0"),
         ("np.sum([u, v, w, 0.5])", "((u + v) + w) + 0.5"), ("np.mean([u, v, w])", "((u + v) + w) / 3"), ("np.prod([u, 1.5, w])", "u * 1.5 * w"), ("math.prod([u, v, w], start=0.5)", "0.5 * u * v * w"),
         ("np.dot([u, v, w], WEIGHTS)", "u * 0.25 + v * 0.5 + w * -2.0"), ("np.dot((u, v), (v, w))", "u * v + v * w"), ("np.median([n, v, w]) + 0.0", "np.median([n, v, w], axis=0) + 0.0"),
         ("np.median([u, v, w, q]) + 0.0", "np.median([u, v, w, q], axis=0) + 0.0"), ("statistics.median([u, v, w])", "middle([u, v, w])"), ("statistics.median((u, v, w, 0.3))", "middle([u, v, w, u * 0 + EDGE])"),
         ("sorted([u, v, w, -u])[1]", "ordered([u, v, w, -u])[1]"), ("sorted((u, v, w), reverse=True)[2]", "backwards([u, v, w])[2]"), ("np.sort([n, v, w])[2]", "ordered([n, v, w])[2]"),
         ("any([u > v, n > w]) + 2 * all([u > v, v > w])", "((u > v) | (n > w)) + 2 * ((u > v) & (v > w))"), ("np.any([u, v * 0]) + 2 * np.all((u, v, n))", "((u != 0) | (v * 0 != 0)) + 2 * ((u != 0) & (v != 0) & (n != 0))"),
         ("np.argmin([u, n, w, v])", "np.argmin([u, n, w, v], axis=0)"), ("np.argmax([u, n, w, v])", "np.argmax([u, n, w, v], axis=0)"), ("[u, v, w][np.argmax([w, v, u])]", "np.choose(np.argmax([w, v, u], axis=0), [u, v, w])"),
         ("in_place([w, v, u])[0]", "ordered([w, v, u])[0]")]
SUMS = [("sum((u, v), start=0.25)", "(0.25 + u) + v"), ("sum([u, w], 0.5) + sum(k * a for k, a in enumerate((u, v, w), start=1))", "(0.5 + u + w) + ((u + 2 * v) + 3 * w)")]
GROUPS = {"one": [(t, t) for t in ONE], "two": [(t, t) for t in TWO], "several": THREE, "sums": SUMS}


def ordered(values):
    return np.sort(np.array(values), axis=0, kind="stable")


def middle(values):
    s, n = ordered(values), len(values)
    return s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2


def drawn(kind, cells, seed=5):
    """Three fields: all pairs of edges, then random ones of them and others."""
    rng = np.random.default_rng(seed)
    pairs = np.array([(a, b) for a in EDGES for b in EDGES])
    some = rng.choice(EDGES, (cells - len(pairs), 2))
    third = np.where(rng.random(cells) < 0.7, rng.choice(EDGES, cells), rng.normal(size=cells))
    return [np.concatenate([pairs[:, k], some[:, k]]).astype(kind) for k in range(2)] + [third.astype(kind)]


def same(found, want):
    """The same bits; NaN is NaN."""
    return found.dtype == want.dtype and bool(np.all((found.view(f"i{found.itemsize}") == want.view(f"i{want.itemsize}")) | np.isnan(found) & np.isnan(want)))


HEAD = """
import functools, math, statistics
import numpy as np, memext as mx
WEIGHTS = np.array([0.25, 0.5, -2.0])
def in_place(values):
    values = list(values)
    values.sort()
    return values
"""


@pytest.mark.parametrize("kind", ["f8", "f4"])
@pytest.mark.parametrize("group", GROUPS)
def test_functions_give_the_bits_of_numpy(mx, tmp_path, group, kind):
    """Three steps, in each of which the fields have changed places; a run and the kernel's own reference."""
    cases, inner = GROUPS[group], (5, 6, 31)
    results = [f"r{k}" for k in range(len(cases))]
    lines = [f"def cell(u, v, w, {', '.join(results)}):", "    n, q = mx.where(u == 3.5, math.nan, u), mx.where(u == 3.5, math.inf, u)",
             f"    return v, w, u, {', '.join(text for text, _ in cases)}"]
    path = tmp_path / "cells.py"
    path.write_text(HEAD + "\n".join(lines) + "\nmade = mx.kernel(cell)\n")
    kernel = load(path).made
    now = drawn(kind, math.prod(inner))
    given = {name: np.pad(a.reshape(inner), 1) for name, a in zip("uvw", now)}
    for name in results:
        given[name] = np.zeros([n + 2 for n in inner], kind)
    for _ in range(2):
        now = [now[1], now[2], now[0]]
    u, v, w = now
    with np.errstate(all="ignore"):
        names = {"np": np, "u": u, "v": v, "w": w, "n": np.where(u == 3.5, u.dtype.type(np.nan), u), "q": np.where(u == 3.5, u.dtype.type(np.inf), u), "ordered": ordered, "middle": middle,
                 "backwards": lambda values: ordered(values[::-1])[::-1], "EDGE": u.dtype.type(0.3)}
        want = {name: np.asarray(eval(text, names)).astype(kind) for name, (_, text) in zip(results, cases)}
    here = kernel.reference(3, **given)
    with mx.Run(kernel, **given, dtype=kind, backend="dram", dram="64MiB", nonfinite="ignore") as run:
        run.advance(3)
        for name, (text, _) in zip(results, cases):
            for found in (run[name][...], here[name]):
                found = np.ascontiguousarray(found[1:-1, 1:-1, 1:-1]).ravel()
                wrong = [(float(a), float(b), float(c), float(f), float(g)) for a, b, c, f, g in zip(u, v, w, found, want[name]) if not same(np.array([f]), np.array([g]))]
                assert same(found, want[name]), (text, wrong[:5])


WHOLE = ["np.clip(i, -3, 40)", "np.clip(i, x, c)", "np.sign(i)", "np.square(i)", "np.fmod(i, 7)", "np.fmod(i, x - 3)", "np.remainder(i, 7)", "np.mod(i, y - 9)", "divmod(i, 5)[0]", "np.round(i)", "np.isnan(i) + np.isfinite(c)",
         "np.signbit(i * 1.0) + 2 * np.signbit(i)", "np.fmax(i, c)", "np.select([i > c, x > y], [i, x], -2)"]
WHOLE_LISTS = [("np.sum([i, c, x, 2])", "i + c + x + 2"), ("np.mean([i, c, x])", "(i + c + x) / 3"), ("np.median([i, c, x, y])", "np.median(np.broadcast_arrays(i, c, x, y), axis=0)"), ("sorted([i, c, x])[1]", "np.sort(np.broadcast_arrays(i, c, x), axis=0)[1]"),
               ("np.argmax([i, c, x])", "np.argmax(np.broadcast_arrays(i, c, x), axis=0)"), ("np.min([i, c, y])", "np.min(np.broadcast_arrays(i, c, y), axis=0)"), ("np.dot([1, -2], [i, c])", "i - 2 * c"), ("np.sum([i > 3, c > 3, x > 3])", "(i > 3) * 1 + (c > 3) + (x > 3)"),
               ("round(i) + math.prod([x, y])", "i + x * y"), ("pow(i, 2) + pow(x, 3)", "i ** 2 + x ** 3")]


def test_functions_of_whole_numbers(mx, tmp_path):
    cases = [(t, t) for t in WHOLE] + WHOLE_LISTS
    results = [f"r{k}" for k in range(len(cases))]
    path = tmp_path / "whole.py"
    path.write_text(HEAD + f"def cell({', '.join(results)}, c, i, x, y):\n    return {', '.join(t for t, _ in cases)}\nmade = mx.kernel(cell, fixed='c i')\n")
    rng, shape = np.random.default_rng(1), (6, 12, 33)
    given = {"c": rng.integers(0, 256, shape).astype("u1"), "i": rng.integers(-300, 300, shape).astype("i2")}
    given["i"][rng.random(shape) < 0.2] = 3
    inner = (slice(1, -1),) * 3
    names = {"np": np, "c": given["c"][inner].astype("i8"), "i": given["i"][inner].astype("i8"), "x": np.arange(31)[None, None, :], "y": np.arange(10)[None, :, None]}
    with mx.Run(load(path).made, **given, **{n: 0.0 for n in results}, backend="dram", dram="64MiB") as run:
        run.advance(1)
        for name, (text, plain) in zip(results, cases):
            with np.errstate(all="ignore"):
                want = np.broadcast_to(np.asarray(eval(plain, names)), names["c"].shape).astype("f8")
            assert np.array_equal(run[name][...][inner], want), text


REFUSED = [("np.clip(u)", "has no bound.*lower bound"), ("round(u, 2)", "np.round"), ("np.sum([[u, v], [v, u]], axis=0)", "a list within a list.*join"), ("sorted([u, v], key=abs)", "key"), ("np.median([u, v], axis=3)", "axis"),
           ("np.dot([[u, v]], [u])", "np.dot of matrices"), ("np.dot([u, v], [u])", "np.dot is given 2 and 1"), ("pow(u, 2, 3)", "three arguments"), ("np.select([u > 0], [u, v])", "the same number of choices"), ("np.reciprocal(x)", "1 / a"), ("math.fsum([u, v])", "fsum"),
           ("np.std([u, v])", "docs/kernels.md"), ("np.min([])", "ValueError|empty"), ("[u, v][x]", "may be any integer.*%"), ("statistics.median(u)", "a list or a tuple"), ("sum(sorted([u] * 65))", "at most 64"), ("np.sum([u, v], dtype='f4')", "does not accept dtype=.*axis="),
           ("[u, v].count(1)", "list.count compares values while the kernel is made.*sum"), ("(u, v).index(0)", "tuple.index"), ("[1, 2].index(u)", "list.index"), ("sum([u], initial=1)", "leave initial= out"),
           ("list(zip([u, v], [u], strict=True))", "shorter|TypeError"), ("math.hypot(u, v, u)", "hypot does not accept 3 arguments"), ("math.log(u, 2)", "log does not accept 2 arguments")]


@pytest.mark.parametrize("body, naming", REFUSED)
def test_what_cannot_be_is_refused_with_its_line_and_a_way_out(mx, tmp_path, body, naming):
    path = tmp_path / "refused.py"
    path.write_text(HEAD + f"def cell(u, v, x):\n    a = u + 1\n    return {body}, a\n")
    with pytest.raises(mx.KernelError, match=naming) as caught:
        mx.kernel(load(path).cell)
    assert caught.value.line == len(path.read_text().splitlines()), str(caught.value)


def test_functions_of_the_c_library_are_said_to_depend_on_the_machine(mx, tmp_path):
    """Within rounding of numpy; the report names these and no others."""
    path = tmp_path / "machine.py"
    path.write_text(HEAD + "@mx.kernel\ndef free(u, v): return np.cbrt(u) + np.exp2(v), np.hypot(u, v)\n"
                    "@mx.kernel\ndef bound(u, v): return np.rint(u * 3) % 2.5 + np.fmod(v, 0.3), np.copysign(np.trunc(u), v) // 0.7\n")
    m, rng, inner = load(path), np.random.default_rng(2), (slice(1, -1),) * 3
    u, v = rng.normal(size=(2, 6, 7, 9))
    for kernel, names in ((m.free, ["cbrt", "exp2", "hypot"]), (m.bound, [])):
        with mx.Run(kernel, u=u, v=v, backend="dram", dram="64MiB") as run:
            run.advance(1)
            assert sorted((run.report.get("kernel_calls") or "").replace(",", " ").split()) == names
            if names:
                assert np.allclose(run["u"][...][inner], (np.cbrt(u) + np.exp2(v))[inner], rtol=1e-15, atol=1e-15)
                assert np.allclose(run["v"][...][inner], np.hypot(u, v)[inner], rtol=1e-15, atol=0)
