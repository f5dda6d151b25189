# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F401, F811 - fixtures
"""Kernels in Python: elements of constant arrays by the cell's place, functions within a cell, imports and returns."""
import numpy as np
import pytest
import random_kernels
from package import cache, environment, load, mx  # fixtures

HEAD = """
import math
import numpy as np, memext as mx
RNG = np.random.default_rng(4)
LINE, WIDE = RNG.normal(size=9), np.arange(20, dtype="f4") / 3
BOX = RNG.normal(size=(5, 6, 9)).astype("f4")
NUMBERS, FLAGS, LIST = np.array([3, -1, 200, 7, 1 << 40, 0, 5, 6, 9]), np.array([True, False, True]), [0.5, -1.0, math.inf, 2.0]
BYTES = np.arange(256) ** 2
scaled = lambda a, by=2.0: a * by
"""

PLACES = ["LINE[x]", "WIDE[x + 2] * u", "BOX[z, y, x] + u", "LINE[x - 9]", "NUMBERS[x] * 0.5", "LINE[3 + (x + y) % 4]", "BOX[1, y, nx - 1 - x]", "LIST[min(t, 3)] * 0 + LIST[x % 2]", "mx.where(FLAGS[z % 3], u, -u)",
          "BYTES[c] / 16", "LINE[-1 - x]", "LINE[min(max(int(u * 4), 0), 8)]", "sorted([u, v, 0.5])[x % 3]", "(u, v)[-1 - x % 2]", "LINE[max(x - 1, 0)] + LINE[NUMBERS[0] * (x > 4)]", "LINE[np.argmin([u, v, 0.25])]"]


def cell_by_cell(m, kind, steps, u, v, c):
    """What Python gives, in the type of the fields; the function is called with numbers."""
    u, v = u.copy(), v.copy()
    for t in range(steps):
        before = u.copy(), v.copy()
        for z, y, x in np.ndindex(*(n - 2 for n in u.shape)):
            at = z + 1, y + 1, x + 1
            u[at], v[at] = m.cell(before[0][at], before[1][at], int(c[at]), x, y, z, t, u.shape[2] - 2)
    return {"u": u, "v": v}


def check(mx, m, kind, plans=({"backend": "dram"},), path=None):
    rng = np.random.default_rng(7)
    u, v = (rng.uniform(-2, 2, (7, 8, 11)).astype(kind) for _ in range(2))
    c = rng.integers(0, 256, u.shape).astype("u1")
    want = cell_by_cell(m, kind, 3, u, v, c)
    here = m.made.reference(3, u=u, v=v, c=c)
    for plan in plans:
        with mx.Run(m.made, u=u, v=v, c=c, dtype=kind, dram="64MiB", **plan, **({} if "backend" in plan else {"device": path})) as run:
            run.advance(3)
            for n in "uv":
                assert run[n][...].tobytes() == want[n].tobytes() == here[n].tobytes(), (n, plan)


@pytest.mark.parametrize("kind", ["f8", "f4"])
def test_elements_by_the_cells_place(mx, tmp_path, kind):
    """Cell by cell what Python computes, to the bit, also by plans that cut the grid."""
    plans = [{"backend": "dram"}, {"plan": "stream by=5 bt=2 slab=2"}, {"plan": "redundant by=3 bz=2 bt=2"}]
    for k in range(0, len(PLACES), 4):
        path = tmp_path / f"places_{k}.py"
        texts = [f"0.25 * ({text})" for text in PLACES[k:k + 4]]
        if kind == "f4":  # one rounding: numbers of Python that stand beside fields are of their type
            texts = [f"np.float32({text})" for text in PLACES[k:k + 4]]
        path.write_text(HEAD + f"def cell(u, v, c, x, y, z, t, nx):\n    a, b = {texts[0]}, {texts[1]}\n    return mx.where(t == 1, a, {texts[2]}), mx.where(t == 2, b, {texts[3]})\n"
                        "made = mx.kernel(cell, fixed='c')\n")
        check(mx, load(path), kind, plans if k == 0 else plans[:1], tmp_path)


SMALL = [("LINE[x % 12]", (5, 6, 11), "LINE has 9 elements, and 11 are needed"), ("LINE[x]", (5, 6, 10), "LINE has 9 elements, and 10 are needed in a grid of 5 x 6 x 10"), ("LINE[x + 1]", (5, 6, 9), "LINE has 9 elements, and 10 are needed"),
         ("BOX[z, y, x]", (5, 7, 9), "BOX has 6 elements along axis 1, and 7 are needed"), ("LINE[-2 - x]", (5, 6, 9), "LINE has 9 elements, and the index goes down to -10")]


@pytest.mark.parametrize("text, shape, naming", SMALL)
def test_a_table_that_is_smaller_than_the_grid_is_refused(mx, tmp_path, text, shape, naming):
    path = tmp_path / "small.py"
    path.write_text(HEAD + f"def cell(u, x, y, z):\n    i = x\n    return u * {text}\nmade = mx.kernel(cell)\ntotal = mx.reduce(cell)\n@mx.kernel\ndef plain(u): return u\n")
    m, u = load(path), np.ones([n + 2 for n in shape])
    with pytest.raises(mx.KernelError, match=naming):
        mx.Run(m.made, u=u, backend="dram", dram="64MiB")
    with pytest.raises(mx.KernelError, match=naming):
        m.made.reference(1, u=u)
    with mx.Run(m.plain, u=u, backend="dram", dram="64MiB") as run:
        run.advance(0)
        with pytest.raises(mx.KernelError, match=naming):
            run.reduce(m.total)


REFUSED = [("LINE[x - 10]", "goes down to -10"), ("LINE[t]", "any integer.*min, max or %"), ("LINE[int(u)]", "any integer"), ("LINE[u]", r"is not an integer: write int\("), ("BOX[z]", r"3 dimensions and is given 1 indices.*BOX\[z, y, x\]"),
           ("np.zeros(1 << 17)[x]", "at most 65536.*read-only"), ("'abc'[x]", "is of type str"), ("LINE[x:]", "bounds of a slice cannot depend"), ("np.array(['a', 'b'])[x % 2]", "not an array of integers or floating-point"), ("LINE[c - 256]", "goes down to -256")]


@pytest.mark.parametrize("text, naming", REFUSED)
def test_an_index_that_cannot_be_is_refused_with_its_line(mx, tmp_path, text, naming):
    path = tmp_path / "refused.py"
    path.write_text(HEAD + f"def cell(u, c, x, z, t):\n    return u * {text}\n")
    with pytest.raises(mx.KernelError, match=naming) as caught:
        mx.kernel(load(path).cell, fixed={"c": "u1"})
    assert caught.value.line == len(path.read_text().splitlines())


BODIES = ["def twice(a, by=2.0): return a * by + v\n    return twice(u), twice(v, by=0.5)", "k = 0.5\n    f = lambda a, *more: a * k + sum(more)\n    k = 2.0\n    return f(u), f(v, u, 1.0)",
          "def early(a):\n        if a > 1:\n            return a - 1\n        elif a < -1:\n            return a + 1\n        return a * w\n    w = u * 0.5\n    return early(u), early(v)",
          "def outer(a):\n        def inner(b): return a * b\n        return inner\n    return outer(u)(v), outer(0.5)(u)", "def power(a, n): return a if n == 1 else a * power(a, n - 1)\n    return power(u, 3) / 8, power(v, 2) / 4",
          "import math\n    import numpy as np, statistics as st\n    from math import sqrt as root\n    return root(abs(u)) + math.pi, st.median([u, v, np.float64(0.5)])",
          "for k in (0.25, 0.5, 1.0):\n        if u > k:\n            if v > k:\n                return u - k, v\n            return u, v - k\n        elif x == 3:\n            return v, u\n    return u + v, 0.0",
          "for k in range(2):\n        for n in range(2):\n            if u * (k + 1) > v + n:\n                if x > 2:\n                    return u * 0.5, v\n                else:\n                    return v * 0.5, u + k\n    if u > 0:\n        return 1.0, 2.0\n    else:\n        return 3.0, v",
          "k = 0.5\n    f = lambda a: a * k\n    g = [lambda a, n=n: a * n + k for k in (1.0, 2.0) for n in (k, 3.0)]\n    k = 0.25\n    return sum([f(a) for k in (8.0, 9.0) for a in (u, v)]), g[0](u) + g[1](v) + f(u)",
          "f = [lambda b: a + b for a in (u, v)]\n    a = 0.5\n    return f[0](x), sum([g(k) for k, g in enumerate(f)])", "return u if x in (1, 3, 5) else v, v if z not in [2, y] else u",
          "made = list(map(lambda a: a * 0.5, [u, v]))\n    return made[0], made[1]", "f = (lambda a: a + 1.0) if x is None else (lambda a: a - 1.0)\n    return f(u), scaled(v, by=0.5) + scaled(u)",
          "def both(*, a, b=0.5, **more): return a * b + sum(more.values())\n    return both(a=u, c=v), both(a=v, b=2.0)", "ALPHA = 3.0\n    def f(a):\n        ALPHA = 0.5\n        return a * ALPHA\n    return f(u) + ALPHA, f(v)"]


@pytest.mark.parametrize("body", BODIES)
def test_functions_within_a_cell(mx, tmp_path, body):
    """def, lambda, import and return on several ways: cell by cell what Python gives."""
    path = tmp_path / "nested.py"
    path.write_text(HEAD + f"def cell(u, v, c, x, y, z, t, nx):\n    {body}\nmade = mx.kernel(cell, fixed='c')\n")
    check(mx, load(path), "f8")


WITHIN = [("def f(a):\n        nonlocal u\n        return a\n    return f(u)", 1, "'nonlocal'"), ("def f(a):\n        b = a\n        return b[1, 0, 0]\n    return f(u + 1)", 2, "'b' is a value of this cell"), ("f = lambda a: a\n    return f", -1, "f is not a number|a lambda is not a number"),
          ("def f(a): return a\n    return f(u, u)", 1, "the function f: too many"), ("if u > 0:\n        f = lambda a: a\n    else:\n        f = lambda a: -a\n    return f(u)", 0, "f is a lambda in one branch"),
          ("while a > 0: a = a - 1\n    return a", 0, "while|a is not known"), ("a = u\n    while a > 0: a = a - 1\n    return a", 0, "for k in range"), ("import os\n    return u", 0, "import only .*math.*, not os"), ("from numpy import nothing\n    return u", 0, "nothing"), ("@scaled\n    def f(a): return a\n    return f(u)", 0, "f has a decorator inside"), ("def f(a): return f(a)\n    return f(u)", 0, "nested more than 50 deep: does f call itself")]


@pytest.mark.parametrize("body, line, naming", WITHIN)
def test_what_cannot_stand_in_a_function_within_a_cell(mx, tmp_path, body, line, naming):
    path = tmp_path / "within.py"
    path.write_text(HEAD + f"def cell(u, v):\n    {body}, v\n")
    with pytest.raises(mx.KernelError, match=naming) as caught:
        mx.kernel(load(path).cell)
    assert caught.value.line >= len(HEAD.splitlines()) + 2 + min(line, 0)


def test_a_kernel_of_a_lambda_has_a_name(mx, tmp_path):
    path = tmp_path / "named.py"
    path.write_text("import memext as mx\nhalf = lambda u: u[1, 0, 0] * 0.5\nmade = mx.kernel(half, name='half')\n")
    m = load(path)
    assert m.made.name == "half" and "AT(u, 1, 0, 0) * 0.5" in m.made.source
    with pytest.raises(mx.KernelError, match="needs a name"):
        mx.kernel(m.half)
    path.write_text("import memext as mx\nsome = [lambda u: u, lambda u: -u]\n")
    with pytest.raises(mx.KernelError, match="alone in its statement"):
        mx.kernel(load(path).some[0], name="some")
