# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F401, F811 - fixtures
"""What Python kernels use from outside: pure and known, or refused with its line; taken once, when the function is decorated."""
import copy
import textwrap

import numpy as np
import pytest
import random_kernels
from conftest import drawn
from package import cache, environment, load, mx  # fixtures

PREAMBLE = """
import enum, functools, itertools, math, operator, os, random, time, types
import numpy as np, memext as mx
ALPHA, TABLE, WEIGHTS, NAMES = 0.25, np.arange(6.0) / 8, [0.5, 0.25, [1, 2]], {"a": 0.5, "b": 2.0}
CONFIG = types.SimpleNamespace(alpha=0.5, inner=types.SimpleNamespace(beta=[0.25, 3]))
RNG, COUNT, NUMBERS = np.random.default_rng(1), itertools.count(), iter([1, 2, 3])
class Mode(enum.Enum):
    fast = 0.5
class Sized:
    def __len__(self): return 0
SIZED = Sized()
class Model:
    gamma = 0.125
    def __init__(self, delta): self.delta = delta
    def term(self, u, more=1.0): return self.delta * u * more + self.gamma
    @property
    def noisy(self): return random.random()
    @staticmethod
    def twice(u): return 2 * u
    @classmethod
    def from_class(cls, u): return cls.gamma * u
MODEL = Model(0.75)
def doubled(function):
    @functools.wraps(function)
    def inner(*args, **more): return 2 * function(*args, **more)
    return inner
@doubled
def half(u, by=0.5): return by * u
@functools.lru_cache(None)
def cached(n): return n / 8
def noisy(n): return n * time.time()
def stencil(n):
    out = []
    for k in range(n):
        if k == 1:
            continue
        out.append(TABLE[k] * 2)
    while len(out) > 3:
        out.pop()
    return out
def counted(n):
    WEIGHTS.append(n)
    return n
def solved():
    m = np.eye(2)
    m[0, 1] = 0.5
    m *= 2
    return np.linalg.solve(m, np.array([1.0, 2.0])).tolist()
STAT = os.stat_result(range(10))
"""

# body -> what it is in plain numpy of u (with the names of the preamble)
GOOD = ["u * ALPHA + TABLE[3]", "u * WEIGHTS[2][1] + NAMES['b']", "u * CONFIG.alpha + CONFIG.inner.beta[1]", "MODEL.term(u) + MODEL.term(u, more=3.0)",
        "Model.twice(u) + Model.from_class(u) + MODEL.from_class(u)", "half(u) + half(u, by=4.0)", "u * cached(3)", "u * sum(stencil(5))", "u * solved()[0]", "u * STAT.st_size",
        "functools.partial(half, by=3.0)(u)", "functools.reduce(operator.mul, [u, 2.0, u])", "sum(map(MODEL.term, [u, 2 * u], WEIGHTS[:2]))",
        "u * math.comb(5, 2) * np.cumsum(TABLE)[3]", "u * sum(a * b for a, b in itertools.product((1, 2), repeat=2))", "u * sum({k: v for k, v in NAMES.items()}.values())",
        "u * float(np.linspace(0, 1, 5)[1:][0])", "u * getattr(CONFIG, 'alpha') * len(f'{ALPHA:.2f}')", "u * TABLE[1:4].sum() if isinstance(MODEL, Model) else u",
        "u * sorted({3, 1, 2})[0]", "(u > 0.5) * u + (not ALPHA) * 2", "u * (TABLE == 0).sum()", "u * (None or ALPHA) * (ALPHA and 3)", "u * Mode.fast.value if Mode.fast is Mode.fast else u", "u * mx.where(ALPHA > 1, 2.0, 0.5)", "u * max(WEIGHTS[:2]) * (0 and 1 / 0 or 2)"]

REFUSED = [("u * np.random.normal()", "normal"), ("u * RNG.normal()", "RNG.normal"), ("u * random.random()", "random"), ("u * time.time()", "time.time"),
           ("u * os.getpid()", "getpid"), ("u * next(COUNT)", "next"), ("u * sum(NUMBERS)", "sum"), ("u * len(open('/dev/null').read())", "open"), ("u * noisy(2)", "time.time"),
           ("u * counted(2)", "cannot change anything outside"), ("u * MODEL.noisy", "computed at every read"), ("u * id(ALPHA)", "id"), ("u * hash('a')", "hash"),
           ("u * sum({0.1, 0.2})", "whose order"), ("u * sum(v for v in {0.1, 0.2})", "whose order"), ("u * np.empty(3)[0]", "empty"), ("u * eval('2')", "eval"),
           ("u * TABLE.sort()", "outside|sort"), ("u * np.add(TABLE, 1, out=TABLE)[0]", "out="), ("u * np.vectorize(float)(2)", "vectorize"),
           ("u * np.frompyfunc(float, 1, 1)(2)", "frompyfunc"), ("u * float(Model(2).delta)", "Model"), ("u * MODEL", "MODEL"), ("u * float(os.environ['HOME'])", "environ"),
           ("u * COUNT.__next__()", "__next__"), ("u * sum(itertools.islice(COUNT, 3))", "COUNT"), ("[w for w in NUMBERS][0] * u", "NUMBERS"), ("print(2) or u", "print"),
           ("u if SIZED else 2 * u", "the truth of SIZED"), ("u * input()", "input"), ("u * len(globals())", "globals"), ("u * np.load('x.npy')[0]", "load"), ("u * float(np.fromfile('x'))", "fromfile")]


def module(tmp_path, text):
    path = tmp_path / "kernels.py"
    path.write_text(PREAMBLE + textwrap.dedent(text))
    return path


@pytest.mark.parametrize("body", GOOD)
def test_what_is_known_means_what_it_means_in_python(mx, tmp_path, body):
    """The kernel's own reference, in which the cell is translated, and the plain function on an array of numpy."""
    loaded = load(module(tmp_path, f"""
        def plain(u): return {body}
        cell = mx.kernel(plain)
        """))
    u = np.random.default_rng(3).random((5, 6, 7))
    want = u.copy()
    want[1:-1, 1:-1, 1:-1] = loaded.plain(u)[1:-1, 1:-1, 1:-1]
    assert np.allclose(loaded.cell.reference(1, u=u)["u"], want, rtol=1e-15, atol=0)
    assert loaded.cell.c_source("f4").count("SET") == 1


@pytest.mark.parametrize("body, naming", REFUSED)
def test_what_is_not_pure_is_refused_with_its_line(mx, tmp_path, body, naming):
    path = module(tmp_path, f"""
        def plain(u):
            return {body}
        """)
    loaded, line = load(path), len(path.read_text().splitlines())
    with pytest.raises(mx.KernelError, match=naming) as caught:
        mx.kernel(loaded.plain)
    helpers = {"noisy(": "time.time()", "counted(": "WEIGHTS.append"}
    where = next((text for name, text in helpers.items() if name in body), None)
    lines = [i for i, text in enumerate(path.read_text().splitlines(), 1) if where in text and "return" in text or where in text] if where else [line]
    assert caught.value.file == str(path) and caught.value.line in lines, str(caught.value)
    assert loaded.WEIGHTS == [0.5, 0.25, [1, 2]] and next(loaded.COUNT) == 0 and next(loaded.NUMBERS) == 1, "it was called"


CHANGES = ["m.ALPHA = 9", "m.TABLE[:] = 9", "m.WEIGHTS[2][1] = 9", "m.NAMES['b'] = 9", "m.CONFIG.alpha = 9", "m.CONFIG.inner.beta[1] = 9", "m.MODEL.delta = 9",
           "m.Model.gamma = 9", "m.half = m.noisy", "m.Model.term = lambda self, u: 9", "m.half.__closure__[0].cell_contents = m.solved", "m.stencil.__globals__['TABLE'] = [9]*9",
           "path.write_text(path.read_text().replace('0.75', '0.5').replace('2 * function', '3 * function').replace('ALPHA +', 'ALPHA -'))"]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_outside_is_taken_once(mx, tmp_path, change):
    """For every type of the fields, in kernels and in reductions, whatever becomes of it afterwards."""
    text = """
        def plain(u):
            return u * ALPHA + TABLE[3] + WEIGHTS[2][1] + NAMES["b"] + CONFIG.alpha + CONFIG.inner.beta[1] + MODEL.term(u) + half(u) + sum(stencil(4))
        cell = mx.kernel(plain)
        total = mx.reduce(plain)
        """
    path = module(tmp_path, text)
    m, u = load(path), np.random.default_rng(3).random((5, 6, 7))
    want = {t: m.plain(u.astype(t)) for t in ("f4", "f8")}
    exec(change, {"m": m, "path": path})
    for t in ("f8", "f4"):
        got = m.cell.reference(1, dtype=t, u=u.astype(t))["u"]
        assert np.allclose(got[1:-1, 1:-1, 1:-1], want[t][1:-1, 1:-1, 1:-1], rtol=1e-6 if t == "f4" else 1e-15, atol=0)
    with mx.Run(m.cell, u=u, backend="dram", dram="64MiB") as run:
        run.advance(0)
        assert np.isclose(run.reduce(m.total).total, want["f8"][1:-1, 1:-1, 1:-1].sum(), rtol=1e-14)


def test_closures_are_taken_once(mx):
    made, weight = [], 0.5

    def named(u):
        return u * weight
    cells = [mx.kernel(named)]
    weight = 2.0
    cells.append(mx.kernel(named))
    for _ in range(2):
        made.append([c.c_source(t) for c in cells for t in ("f8", "f4")])
    assert made[0] == made[1] and "0.5" in made[0][0] and "0.5" in made[0][1] and "2 * AT" not in made[0][1] and "0.5" not in made[0][2] + made[0][3]


NAMES = [("if u > 0:\n        ALPHA = 1.0\n    return u * ALPHA", "ALPHA is not known here"), ("ALPHA += 1.0\n    return u * ALPHA", "ALPHA is not known here"),
         ("x = ALPHA\n    ALPHA = 2.0\n    return u * x", "ALPHA is not known here"),
         ("w = [1.0]\n    if u > 0:\n        w.append(2.0)\n    return u * w[-1]", "inside an if"), ("w = [1.0]\n    if u > 0:\n        w[0] = 2.0\n    return u * w[0]", "inside an if"),
         ("for k in range(3):\n        if u > 0:\n            break\n    return u * k", "break cannot stand inside an if"), ("TABLE[0] = 2.0\n    return u * TABLE[0]", "outside"),
         ("w = np.zeros(2)\n    v = w[:1]\n    if u > 0:\n        v[0] = 1.0\n    return u * w[0]", "inside an if"), ("TABLE.T[0] = 1\n    return u", "outside|read-only")]


@pytest.mark.parametrize("body, naming", NAMES)
def test_names_mean_what_they_mean_in_python(mx, tmp_path, body, naming):
    """A name that a function assigns to is its own everywhere in it, and one of outside never; changes stay in the branch that makes them."""
    path = module(tmp_path, f"\n@mx.kernel\ndef cell(u):\n    {body}\n")
    with pytest.raises(mx.KernelError, match=naming):
        load(path)


WAYS = ["if z <= 2:\n        return u * 0.5, v + 1.0", "if u > 0.5:\n        return u - 0.25, v\n    if x % 2 == 0:\n        return\n    return u * v, u",
        "w = u + v\n    if w > 1.0:\n        if x > 3:\n            return w, 0.0\n        w = w * 0.5\n    elif z == 1:\n        return None\n    else:\n        w = w - 1.0\n    return w, v",
        "for k in range(3):\n        if u > 0.25 * k and v < 0.5:\n            return u + k, v - k\n    return v, u", "if u > 0.5:\n        return 1, 2\n    else:\n        return u, 0.5",
        "return early(u), early(v * 2.0)", "if u < 0.9:\n        pass\n    else:\n        return 0.0, 0.0"]


@pytest.mark.parametrize("body", WAYS)
def test_a_way_that_returns_nothing_keeps_the_cell(mx, tmp_path, body):
    """Cell by cell what Python gives; None, or an end without return, is the value that the cell has. By plans as well."""
    head = "\ndef early(a):\n    if a > 0.5: return 1.0\n    if a > 0.25: return a * 3.0\n    return a - 1.0\n"
    m = load(module(tmp_path, f"{head}def cell(u, v, x, z):\n    {body}\nmade = mx.kernel(cell)\n"))
    u, v = np.random.default_rng(1).random((2, 6, 7, 9))
    now = {"u": u.copy(), "v": v.copy()}
    for _ in range(3):
        for z, y, x in np.ndindex(4, 5, 7):
            at = z + 1, y + 1, x + 1
            new = m.cell(now["u"][at], now["v"][at], x, z)
            now["u"][at], now["v"][at] = new if new is not None else (now["u"][at], now["v"][at])
    got = m.made.reference(3, u=u, v=v)
    assert np.array_equal(got["u"], now["u"]) and np.array_equal(got["v"], now["v"])
    for plan in ({"backend": "dram"}, {"device": tmp_path, "plan": "stream by=5 bt=2"}, {"device": tmp_path, "plan": "redundant by=3 bz=2 bt=2"}):
        with mx.Run(m.made, u=u, v=v, dram="64MiB", **plan) as run:
            run.advance(3)
            assert np.array_equal(run["u"], now["u"]) and np.array_equal(run["v"], now["v"]), plan


def test_staggered_fields_keep_the_value_that_is_replaced(mx, tmp_path):
    m = load(module(tmp_path, """
        def h(b, e, x):
            if x != 3: return b.old - 0.5 * (e[1, 0, 0] - e)
        def g(e, b):
            if b > 0: return
            return e.old - 0.5 * (b - b[-1, 0, 0])
        def h_whole(b, e, x): return mx.where(x != 3, b.old - 0.5 * (e[1, 0, 0] - e), b.old)
        def g_whole(e, b): return mx.where(b > 0, e.old, e.old - 0.5 * (b - b[-1, 0, 0]))
        some, whole = mx.staggered(h, g), mx.staggered(h_whole, g_whole)
        """))
    e, b = np.random.default_rng(2).random((2, 6, 7, 9)) - 0.5
    results = []
    for made in (m.some, m.whole):
        with mx.Run(made, e=e, b=b, backend="dram", dram="64MiB") as run:
            run.advance(5)
            results.append([np.asarray(run[n]).copy() for n in "eb"])
    assert all(np.array_equal(a, b) for a, b in zip(*results)) and not np.array_equal(results[0][0], e)


@pytest.mark.parametrize("body, naming", [("return helper(u)", "helper returns nothing on one path"), ("if u > 0:\n        return u, u\n    return u", "returns 2 values; it computes 1")])
def test_ways_that_cannot_be(mx, tmp_path, body, naming):
    path = module(tmp_path, f"\ndef helper(a):\n    if a > 0: return a\n@mx.kernel\ndef cell(u):\n    {body}\n")
    with pytest.raises(mx.KernelError, match=naming):
        load(path)


def test_and_or_give_one_of_their_values(mx, tmp_path):
    m = load(module(tmp_path, """
        @mx.kernel
        def cell(u): return (u or 3.0) + (u and 5.0) + (u > 0.5 or u) + (u > 0.5 and u < 0.75)
        """))
    u = np.random.default_rng(1).random((5, 6, 7))
    u[u < 0.4] = 0
    want = np.vectorize(lambda u: (u or 3.0) + (u and 5.0) + (u > 0.5 or u) + (u > 0.5 and u < 0.75))(u)
    assert np.array_equal(m.cell.reference(1, u=u)["u"][1:-1, 1:-1, 1:-1], want[1:-1, 1:-1, 1:-1])


def test_a_large_array_outside_is_named(mx, tmp_path):
    text = "\nBIG = np.zeros(9 << 20)\n@mx.kernel\ndef cell(u): return u * BIG.shape[0]\ndef bad(u): return u * BIG[3]\n"
    m = load(module(tmp_path, text))
    with pytest.raises(mx.KernelError, match="BIG, an array of 72 MiB .*make a larger one a field"):
        mx.kernel(m.bad)


def test_a_copy_of_a_reduction_takes_what_is_there_now(mx, tmp_path):
    m = load(module(tmp_path, "def plain(u): return u * ALPHA\ncell = mx.kernel(plain)\ntotal = mx.reduce(plain)\n"))
    again = copy.copy(m.total)
    u = np.ones((5, 6, 7))
    with mx.Run(m.cell, u=u, backend="dram", dram="64MiB") as run:
        run.advance(0)
        assert run.reduce(again).total == run.reduce(m.total).total == 0.25 * 3 * 4 * 5


OLD = {"alone": "@mx.kernel\ndef cell(u_old): return u_old[1, 0, 0] / 2 + u_old / 8\n",
       "beside u": "@mx.kernel\ndef cell(u, u_old): return u[1, 0, 0] / 2 + u_old[0, 0, -1] / 8, u_old / 2 + u\n",
       "read only": "@mx.kernel(fixed='u_old')\ndef cell(u, u_old): return (u if u_old > 0.5 else u[1, 0, 0]) / 2 + u_old\n",
       "leapfrog": "@mx.kernel\ndef cell(u_old): return u_old[1, 0, 0] / 2 + u_old.old / 8\n",
       "staggered": "def a(u_old, u): return u_old.old - (u - u[-1, 0, 0]) / 8\ndef b(u, u_old): return u.old - (u_old - u_old[1, 0, 0]) / 8\n"
                    "cell = mx.staggered(a, b)\n"}


@pytest.mark.parametrize("case", OLD)
@pytest.mark.parametrize("backend", [{"backend": "dram"}, {}], ids=["dram", "store"])
def test_a_field_may_be_named_as_an_old_value(mx, tmp_path, case, backend):
    cell, rng = load(module(tmp_path, OLD[case])).cell, np.random.default_rng(3)
    given = {n: rng.random((6, 7, 8)) for n in cell.state + cell.partner + cell.fixed}
    want = cell.reference(3, **given)
    with mx.Run(cell, dram="64MiB", **(backend or {"device": tmp_path}), **given) as run:
        run.advance(3)
        assert all(np.array_equal(run[n], want[n]) for n in cell.state + cell.partner)
        if case != "staggered":
            total = mx.reduce(load(module(tmp_path, f"def total({cell.state[0]}): return {cell.state[0]}\n")).total)
            assert run.reduce(total).total == pytest.approx(want[cell.state[0]][1:-1, 1:-1, 1:-1].sum())


@pytest.mark.parametrize("text", ["@mx.kernel\ndef cell(u, u_old): return u.old - u_old, u_old\n",
                                  "@mx.kernel(fixed='u_old')\ndef cell(u, u_old): return u.old - u_old\n"])
def test_two_things_of_one_name_are_refused(mx, tmp_path, text):
    with pytest.raises(mx.KernelError, match="field u_old and reads u.old.* give the field another name"):
        load(module(tmp_path, text))


@pytest.mark.parametrize("seeds", [drawn(0, 20)[i:i + 10] for i in range(0, len(drawn(0, 20)), 10)], ids=lambda seeds: str(seeds[0]))
@pytest.mark.parametrize("flat", [False, True], ids=["xyz", "xy"])
def test_random_kernels_compute_what_python_computes(mx, tmp_path, seeds, flat):
    """Cell by cell, bit for bit, whatever has become of all that the function uses; the last of them also by every plan and in float32. A kernel that
    asks for no neighbour says nothing about dimensions, and is of three."""
    for seed in seeds:
        path = tmp_path / f"random_{seed}.py"
        path.write_text(random_kernels.text(seed, flat))
        m = load(path)
        u, v, c = random_kernels.grids(seed, (9, 11) if flat and mx.kernel(m.cell, fixed="c").flat else (6, 7, 9))
        want = dict(zip("uv", random_kernels.plain(m.cell, 3, u, v, c)))
        cell = mx.kernel(m.cell, fixed="c")
        m.change()
        got = cell.reference(3, u=u, v=v, c=c)
        assert np.array_equal(got["u"], want["u"]) and np.array_equal(got["v"], want["v"]), seed
    for plan in random_kernels.PLANS:
        if u.ndim == 2 and "faces" in plan.get("plan", ""):
            continue  # of strips
        place = {} if "backend" in plan else {"device": tmp_path}
        with mx.Run(cell, u=u, v=v, c=c, dram="64MiB", **place, **plan) as run:
            run.advance(3)
            assert all(np.array_equal(run[n], want[n]) for n in "uv"), (seed, plan)
    single = {"u": u.astype("f4"), "v": v.astype("f4"), "c": c.astype("f4")}
    want = cell.reference(3, dtype="f4", **single)
    with mx.Run(cell, **single, dtype="f4", backend="dram", dram="64MiB") as run:
        run.advance(3)
        assert all(np.array_equal(run[n], want[n]) for n in "uv"), seed


def test_names_of_kernels(mx, tmp_path):
    """Whatever one is called, its text is C and its file is found; what no name can be is refused where it is made."""
    grid = np.random.default_rng(1).random((6, 7, 8))
    want = None
    for name in ("heat", "physics/heat", "/", "a\\b", 'a"b', "*/ int x; /*", "%s", "é", "x" * 63, ".."):
        kernel = mx.kernel(lambda u: 0.5 * u + 0.5 * u[1, 0, 0], name=name)
        with mx.Run(kernel, u=grid, backend="dram", dram="64MiB") as run:
            run.advance(3)
            want = run["u"][...] if want is None else want
            assert run["u"][...].tobytes() == want.tobytes() and run.report["problem"]["kernel"]["name"] == name
    for name in ("x" * 64, "é" * 32, "a\nb", "a\0b", 5):
        with pytest.raises(mx.KernelError, match="give it a name of 1 to 63 printable bytes, name="):
            mx.kernel(lambda u: 0.5 * u, name=name)


def test_sums_of_many_neighbours(mx):
    """Deeper than functions of Python can call themselves: as a sum, with numpy's, in a loop."""
    every = [(i, j, k) for i in range(-4, 5) for j in range(-4, 5) for k in range(-4, 5)]
    u = np.random.default_rng(3).random((11, 12, 13))
    want = 0.0
    for i, j, k in every:
        want = want + u[4 + k:7 + k, 4 + j:8 + j, 4 + i:9 + i]

    @mx.kernel
    def by_sum(u):
        return sum(u[i, j, k] for i in range(-4, 5) for j in range(-4, 5) for k in range(-4, 5))

    @mx.kernel
    def by_numpy(u):
        return np.sum([u[i, j, k] for i in range(-4, 5) for j in range(-4, 5) for k in range(-4, 5)])

    @mx.kernel
    def by_loop(u):
        s = 0.0
        for i in range(-4, 5):
            for j in range(-4, 5):
                for k in range(-4, 5):
                    s = s + u[i, j, k]
        return s

    for kernel in (by_sum, by_numpy, by_loop):
        with mx.Run(kernel, u=u, backend="dram", dram="64MiB") as run:
            run.advance(1)
            assert np.array_equal(run["u"][4:-4, 4:-4, 4:-4], want), kernel.name
        assert np.array_equal(kernel.reference(1, u=u)["u"][4:-4, 4:-4, 4:-4], want), kernel.name


def test_integers_beyond_64_bits_wrap(mx):
    """Of coordinates too, as numpy's do; their remainders are Python's, and elements of tables are those of the index. Shifts by more than 31 places."""
    table = np.arange(9.0)

    @mx.kernel
    def noise(u, x, y, z, t):
        h = x * 374761393 + y * 668265263 + z * 2147483647 + t * 1274126177
        h = (h ^ (h >> 13)) * 1274126177
        h = h * h
        return u + (h % 1000) / 1000.0 + table[h % 9] + h // 7

    @mx.kernel(dtype="int32")
    def shifted(u):
        return (u >> 40) + u // 2**36 + (u % 2**40) // 2**33

    u = np.zeros((9, 10, 31))
    whole = np.random.default_rng(1).integers(-2**31, 2**31, u.shape).astype("i4")
    for kernel, given in ((noise, u), (shifted, whole)):
        want = kernel.reference(2, u=given)["u"]
        with mx.Run(kernel, u=given, backend="dram", dram="64MiB") as run:
            run.advance(2)
            assert np.array_equal(run["u"][...], want), kernel.name
    a = whole.astype("i8")[1:-1, 1:-1, 1:-1]
    assert np.array_equal(shifted.reference(1, u=whole)["u"][1:-1, 1:-1, 1:-1], ((a >> 40) + a // 2**36 + (a % 2**40) // 2**33).astype("i4"))
    assert len(np.unique(noise.reference(1, u=u)["u"])) > 1000


REFUSED_CHANGES = [("seen = set(); seen.add(u); return 1.0 * len(seen)", "a key of a dictionary or a set depends on the cell"), ("v = [u, 0.0]; v.remove(0.0); return v[0]", "list.remove"),
                   ("v = [1.0, u]; v.pop(u); return v[0]", "list.pop"), ("d = {}; d.setdefault(u, 1.0); return u", "a key of a dictionary"), ("d = {'a': 1.0}; d.pop('x'); return u", "KeyError"),
                   ("return u * getattr(MODEL, 'noisy', 1.0)", "computed at every read"), ("return 1.0 * (x * 2147483647 * 2147483647 * 9 > np.uint64(x))", "may be negative")]  # fmt: skip


@pytest.mark.parametrize("body, naming", REFUSED_CHANGES)
def test_changes_that_would_compare_values_of_the_cell(mx, tmp_path, body, naming):
    text = "\n".join(f"            {line}" for line in body.split("; "))
    with pytest.raises(mx.KernelError, match=naming):
        load(module(tmp_path, f"""
        @mx.kernel
        def cell(u, x):
{text}
        """))


def test_conditions_that_are_known_in_advance(mx, tmp_path):
    """A return under a condition that never holds is not taken; attributes that are there, or not; limits of numbers; tables of narrow integers; large numbers in float32."""
    m = load(module(tmp_path, """
        import sys
        HOT, SMALL = [], np.array([100, 200], "u1")
        @mx.kernel
        def cell(u, x):
            if u > 0.5:
                if u in HOT:
                    return 100.0
            a = u + getattr(MODEL, "delta", 9.0) + getattr(MODEL, "missing", 0.5)
            return (a if abs(u) > sys.float_info.epsilon else 7.0) + np.square(SMALL[x % 2]) + mx.minimum(1e99, u)
        """))
    for kind in ("f8", "f4"):
        u = np.random.default_rng(2).random((5, 6, 9)).astype(kind)
        u[2, 2, 2] = 0
        want = m.cell.reference(1, u=u)["u"]
        at = (slice(1, -1),) * 3
        x = np.arange(7)[None, None, :]
        exact = np.where(np.abs(u[at]) > np.finfo("f8").eps, u[at] + 0.75 + 0.5, 7.0) + np.array([10000, 40000])[x % 2] + u[at]
        assert np.allclose(want[at], exact, rtol=1e-6 if kind == "f4" else 1e-14)
        with mx.Run(m.cell, u=u, dtype=kind, backend="dram", dram="64MiB") as run:
            assert np.array_equal(run.advance(1)["u"][...], want)


def test_expressions_that_are_too_deep_say_so(mx, tmp_path):
    with pytest.raises(mx.KernelError, match="give parts of the expression names"):
        load(module(tmp_path, """
        @mx.kernel
        def cell(u): return max([u[i, j, k] for i in range(-5, 6) for j in range(-5, 6) for k in range(-5, 6)])
        """))
