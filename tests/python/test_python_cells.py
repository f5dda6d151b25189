# SPDX-License-Identifier: BSD-3-Clause
"""Kernels in Python: what a cell may say, and that it means what it means in Python."""
import re

import numpy as np
import pytest
import random_kernels
from conftest import ROOT
from package import arrays, cache, environment, load, mx, need, systems  # noqa: F401 (fixtures)


def test_a_kernel_of_python_is_the_c_file_that_it_writes(mx, systems, memext, quick_place, tmp_path, monkeypatch):
    """One text for the package and the command: after a run from Python the command finds it compiled, and has the same checksum."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel = systems.gray_scott
    with mx.Run(kernel, u="random", v="random", shape=(6, 7, 19), device=quick_place, dram="64MiB") as run:
        ours = run.advance(4).report["checksum"]
    compiled = tmp_path / "memext" / "kernels"
    before = {p.name: p.stat().st_mtime_ns for p in compiled.iterdir()}
    theirs = memext.run("--kernel", kernel.write(), "-n", 19, 7, 6, "-t", 4, "--init", "random", "-d", quick_place, "--dram", "64MiB")
    after = {p.name: p.stat().st_mtime_ns for p in compiled.iterdir()}
    assert theirs["checksum"] == ours and after == before != {}


CASES = {
    "diffusion": (3, "f8", 1, "u", {"k": "f4"}, {"dt": 0.05}),
    "wave": (3, "f4", 4, "p", {"v": "f4", "damping": "f4"}, {"dt": 0.3, "dx": 1.0}),
    "fdtd": (3, "f4", 1, "ex ey ez hx hy hz", {"eps": "f4"}, {}),
    "gray_scott": (3, "f8", 1, "u v", {}, {"feed": 0.03}),
    "lattice_boltzmann": (2, "f4", 1, " ".join(f"f{i}" for i in range(19)), {"wall": "u1"}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_example_systems_give_the_bits_of_their_c_kernels(mx, systems, memext, quick_place, name, cache):
    """Kernel in Python, kernel in C by the command, and the reference in numpy: the same bits in every field, frames too."""
    steps, dtype, h, names, fixed, params = CASES[name]
    shape = (9 + 2 * h, 11 + 2 * h, 21 + 2 * h)
    state = arrays(names, shape, dtype, low=0.5)
    given = {n: (np.random.default_rng(5).random(shape) < 0.2).astype(d) if d == "u1" else arrays(n, shape, d, seed=len(n), low=0.5)[n]
             for n, d in fixed.items()}
    kernel = getattr(systems, name)
    with mx.Run(kernel, **state, **given, params=params, dtype=dtype, device=quick_place, dram="64MiB", threads=2, verify=True) as run:
        run.advance(steps)
        ours = {n: run[n][...] for n in names.split()}
        assert run.report["verified"] is True and run.step == steps
    assert list(quick_place.iterdir()) == []
    words = ["--kernel", ROOT / f"systems/{name}.c", "-t", steps, "-d", quick_place, "--dram", "64MiB"]
    for n, a in {**state, **given}.items():
        np.save(quick_place / f"{n}.npy", a)
        words += ["--input" if n in state else "--field", f"{n}={quick_place / n}.npy"]
    words += [w for n, v in params.items() for w in ("--param", f"{n}={v!r}")]
    words += [w for n in state for w in ("--output", f"{n}={quick_place / n}-out.npy")]
    memext.run(*words)
    extra = {"p_old": state["p"]} if name == "wave" else {}
    reference = load(ROOT / f"systems/{name}.py").run(steps, **state, **given, **params, **extra)
    for n in state:
        theirs = np.load(quick_place / f"{n}-out.npy")
        assert ours[n].tobytes() == theirs.tobytes(), n
        assert np.allclose(reference[n], theirs, rtol=1e-12 if dtype == "f8" else 1e-6, atol=0), n
    here = kernel.reference(steps, params=params, **state, **given)
    assert all(here[n].tobytes() == ours[n].tobytes() for n in state), "kernel.reference"


class Cell:
    """One cell's view of a field, for Python itself to compute with."""

    def __init__(self, array, z, y, x):
        self.array, self.at = array, (z, y, x)

    def __getitem__(self, offsets):
        dx, dy, dz = offsets
        z, y, x = self.at
        value = self.array[z + dz, y + dy, x + dx]
        return int(value) if self.array.dtype.kind in "iu" else float(value)


def random_expression(rng, depth, kinds):
    """Text of kind "number", "whole" or "truth" over neighbours of u (f8), c (u1), i (i2) and x, y, z, t."""
    pick = lambda *options: options[rng.integers(len(options))]
    if depth == 0:
        offsets = ", ".join(str(rng.integers(-1, 2)) for _ in range(3))
        return {"number": pick(f"u[{offsets}]", f"u[{offsets}]", "w", "0.75", "2.5", "3"), "whole": pick("x", "y", "z", "t", "c[0,0,0]", "i[0,0,0]", "5", "3"),
                "truth": pick(f"(u[{offsets}] > 0.5)", "(c[0,0,0] > 100)", "(x < nx - 2)", "(y == z)")}[kinds]
    sub = lambda kind: random_expression(rng, depth - 1, kind)
    if kinds == "number":
        return pick(f"({sub('number')} {pick('+', '-', '*')} {sub('number')})", f"({sub('number')} / (1.5 + abs({sub('number')})))", f"-{sub('number')}",
                    f"min({sub('number')}, {sub('number')})", f"max({sub('whole')}, {sub('number')})", f"sqrt(abs({sub('number')}))",
                    f"({sub('number')} if {sub('truth')} else {sub('number')})", f"({sub('whole')} + {sub('number')})",
                    f"({sub('whole')} / (1 + abs({sub('whole')})))", f"({sub('number')} ** 2)")
    if kinds == "whole":
        return pick(f"({sub('whole')} {pick('+', '-')} {sub('whole')})", f"({sub('whole')} % {pick('2', '3', '8', '5')})",
                    f"({sub('whole')} // {pick('2', '3', '7')})", f"-{sub('whole')}", f"abs({sub('whole')})", f"(({sub('whole')}) & 7)",
                    f"min({sub('whole')}, {sub('whole')})", f"({sub('whole')} if {sub('truth')} else {sub('whole')})")
    return pick(f"({sub('truth')} {pick('and', 'or')} {sub('truth')})", f"(not {sub('truth')})", f"({sub('number')} < {sub('number')})",
                f"({sub('whole')} {pick('==', '!=', '>=', '<')} {sub('whole')})", f"(0 <= {sub('whole')} < 9)")


WHOLE = ["(x - 5) % 2", "(x - 5) % 8", "(y - 9) // 4", "(x - 5) // 3", "(z - 7) % 5", "-x % 3", "i[0,0,0] % (y + 1)", "i[0,0,0] // (1 - 2 * (x & 1))"]


def test_random_expressions_mean_what_they_mean_in_python(mx, quick_place, tmp_path):
    """Whole numbers of either sign and 12 random expressions, a field for each: every cell that a run computes has the value that Python
    computes from its neighbours."""
    rng = np.random.default_rng(11)
    texts = [f"{text} + 0.25" for text in WHOLE] + [random_expression(rng, int(rng.integers(1, 4)), "number") for _ in range(12)]
    names = ["u", *(f"v{i}" for i in range(1, 20))]
    lines = ["from math import sqrt", "def cell(" + ", ".join(names) + ", c, i, w, x, y, z, t, nx):"]
    lines += [f"    a{k} = {text}" for k, text in enumerate(texts)]
    lines += ["    return " + ", ".join(f"a{k}" for k in range(20))]
    (tmp_path / "random_cell.py").write_text("\n".join(lines) + "\n")
    cell = load(tmp_path / "random_cell.py").cell
    kernel = mx.kernel(cell, fixed="c i", params={"w": 0.3})
    shape = (6, 7, 11)
    given = {"c": rng.integers(0, 256, shape).astype("u1"), "i": rng.integers(-300, 300, shape).astype("i2"), "u": rng.normal(size=shape)}
    with mx.Run(kernel, **given, **{n: 0.0 for n in names[1:]}, device=quick_place, dram="64MiB") as run:
        run.advance(1)
        found = {n: run[n][...] for n in names}
    checked = 0
    for z, y, x in np.ndindex(*(n - 2 for n in shape)):
        fields = {n: Cell(given.get(n), z + 1, y + 1, x + 1) for n in (*names, "c", "i")}
        values = cell(**fields, w=0.3, x=x, y=y, z=z, t=0, nx=shape[2] - 2)
        for n, value in zip(names, values):
            assert found[n][z + 1, y + 1, x + 1] == value, (n, texts[names.index(n)], (x, y, z))
            checked += 1
    assert checked == 20 * 4 * 5 * 9
    here = kernel.reference(1, **given, **{n: np.zeros(shape) for n in names[1:]})
    assert all(here[n].tobytes() == found[n].tobytes() for n in names)


STATEMENTS = '''
import memext as mx
SCALE = 3
def twice(v, n=2):
    return n * v
@mx.kernel(fixed="c", params={"w": 0.5})
def cell(u, v, c, w, x, y, z, t, nx, ny, nz):
    """Local variables, loops, branches, helpers, constants of the module."""
    total = 0
    for dx, dy, dz in [(1, 0, 0), (0, 1, 0), (0, 0, 1)]:
        total += u[dx, dy, dz] - u[-dx, -dy, -dz]
    total *= w
    if c > 2 and x % 2 == 1:
        total = twice(total)
        extra = v ** 2
    elif y == 0:
        extra = max(v, 0.25)
    else:
        extra = -v
    parts = [total + k for k in range(SCALE)]
    return twice(sum(parts), n=0.5) + (t + nx * ny + nz), extra if not (c == 0) else mx.where(z > 1, u, v)
'''


def test_statements(mx, quick_place, tmp_path):
    """Assignment, +=, loops, comprehensions, if and elif, helpers with defaults: what numpy's evaluation and a run give is what plain Python gives."""
    (tmp_path / "statements.py").write_text(STATEMENTS)
    kernel = load(tmp_path / "statements.py").cell
    rng, shape = np.random.default_rng(2), (6, 5, 9)
    a = {"u": rng.random(shape), "v": rng.random(shape), "c": rng.integers(0, 5, shape).astype("u1")}
    with mx.Run(kernel, **a, device=quick_place, dram="64MiB") as run:
        run.advance(1)
        found = run["u"][...], run["v"][...]

    for z, y, x in np.ndindex(4, 3, 7):
        at = (z + 1, y + 1, x + 1)
        want = kernel(random_kernels.Cell(a["u"], at), random_kernels.Cell(a["v"], at), int(a["c"][at]), 0.5, x, y, z, 0, 7, 3, 4)
        assert (found[0][at], found[1][at]) == (float(want[0]), float(want[1])), (x, y, z)


@pytest.mark.parametrize("body, line, naming", [
    ("while u > 0: u = u - 1\n    return u", 4, "'while'"),
    ("return u[x, 0, 0]", 4, "use constant integers, u[dx, dy, dz]"),
    ("return print(u)", 4, "cannot call print"),
    ("q = u + 1\n    return q[1, 0, 0]", 5, "'q' is a value of this cell"),
    ("return u, u", 2, "returns 2 values; it computes 1 of u"),
    ("u[0, 0, 0] = 3\n    return u", 4, "assign only to names"),
    ("return u[9, 0, 0]", 4, "9 cells away: a kernel reads neighbours up to 8"),
    ("return u << 2", 4, "<< needs integers"),
    ("return u + nope", 4, "nope is not known"),
    ("return u & 3", 4, "parentheses"),
    ("import os\n    return u", 4, "not os: import os before the kernel"),
    ("return [v for v in u][0]", 4, "cannot go over a value that depends on the cell"),
    ("return u[1]", 4, "three integers"),
    ("return 'a' * u", 4, "'a' is not a number"),
    ("return c.old", 4, "c is read-only and has no .old"),
    ("return u.new", 4, "the only attribute of a field is .old"),
    ("return u[0:1]", 4, "cannot read slices of a field"),
    ("return u + 1 // 0", 4, "ZeroDivisionError"),
    ("try:\n        pass\n    finally:\n        pass\n    return u", 4, "'try'"),
    ("if u > 0:\n        a = 1\n    return a", 6, "a is not known here"),
    ("pass", 3, "returns nothing"),
    ("return cell(u, c, x)", 4, "cell"),
])
def test_what_cannot_be_translated_is_refused_with_its_line(mx, tmp_path, body, line, naming):
    path = tmp_path / "refused.py"
    path.write_text(f"import memext as mx\n@mx.kernel(fixed='c')\ndef cell(u, c, x):\n    {body}\n")
    with pytest.raises(mx.KernelError) as caught:
        load(path)
    error = caught.value
    assert naming in str(error) and error.file == str(path) and error.line == line, str(error)
    assert line == 2 or error.text == path.read_text().splitlines()[line - 1].strip()


def test_kernels_of_sympy_expressions(mx, systems, quick_place):
    """Expressions with branches, fixed fields, parameters, coordinates, two fields; finite differences of functions, leapfrog: a run gives the bits of
    the reference in numpy, and what sympy itself computes of them within 1e-12. The text is the same in another process."""
    sympy = need("sympy")
    u, v, c = map(sympy.IndexedBase, "uvc")
    dt, x = sympy.symbols("dt x")
    around = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)]
    heat = u[0, 0, 0] + dt * (sum(u[d] for d in around) - 6 * u[0, 0, 0]) / (2 + v[0, 0, 0] ** 2)
    other = sympy.Piecewise((sympy.sqrt(sympy.Abs(u[1, 0, 0])) + v[0, 0, 1] / 3, (c[0, 0, 0] > 2) & sympy.Eq(sympy.Mod(x, 2), 1)),
                            (sympy.Max(u[0, 0, 0], v[0, -1, 0], sympy.Rational(1, 4)), True))
    kernel = mx.kernel({u: heat, "v": other}, fixed="c", params={"dt": 0.05}, name="pair")
    rng = np.random.default_rng(7)
    a = {"u": rng.random((6, 7, 11)), "v": rng.random((6, 7, 11)), "c": rng.integers(0, 5, (6, 7, 11)).astype("u1")}
    with mx.Run(kernel, **a, params={"dt": 0.07}, device=quick_place, dram="64MiB", verify=True) as run:
        run.advance(3)
        assert all(run[n][...].tobytes() == kernel.reference(3, params={"dt": 0.07}, **a)[n].tobytes() for n in "uv")
    s = (slice(1, -1),) * 3
    near = {f[d]: np.roll(a[f.label.name], [-i for i in d[::-1]], (0, 1, 2))[s] for f in (u, v, c) for d in [*around, (0, 0, 0)]}
    symbols = {e: sympy.Symbol(f"q{i}") for i, e in enumerate(near)}
    once = kernel.reference(1, params={"dt": 0.07}, **a)
    for name, expression in (("u", heat), ("v", other)):
        call = sympy.lambdify([*symbols.values(), dt, x], expression.xreplace(symbols), "math")
        values = [call(*(float(n[at]) for n in near.values()), 0.07, at[2]) for at in np.ndindex(4, 5, 9)]
        assert np.allclose(once[name][s].ravel(), values, rtol=1e-12, atol=0), name
    assert "AT(u, -1, 0, 0)" in kernel.source and "MX_FIXED(F) F(c, " in kernel.source
    p, (x, y, z, w) = sympy.Function("p"), sympy.symbols("x y z w")
    laplace = sum(p(x, y, z).diff(n, 2).as_finite_difference([n - 1, n, n + 1], n) for n in (x, y, z))
    wave = mx.kernel({p: 2 * p(x, y, z) - sympy.Symbol("p_old") + w**2 * laplace}, params={"w": 0.4}, name="wave7")
    first, before = rng.random((6, 7, 11)), rng.random((6, 7, 11))
    with mx.Run(wave, p=first, p_old=before, device=quick_place, dram="64MiB") as run:
        run.advance(2)
        assert wave.form == "leapfrog" and run["p"][...].tobytes() == wave.reference(2, p=first, p_old=before)["p"].tobytes()
    for update, naming in (({"u": u[9, 0, 0]}, "9 cells away"), ({"u": u[x, 0, 0]}, "three integers"), ({"u": sympy.Symbol("q")}, "q is neither computed"),
                           ({"u": sympy.gamma(u[0, 0, 0])}, "gamma"), ({"u": sympy.Piecewise((1, u[0, 0, 0] > 1))}, "(value, True)"),
                           ({"T": u[0, 0, 0]}, "u is neither computed|cannot be called T")):
        with pytest.raises(mx.KernelError, match=naming.replace("(", r"\(").replace(")", r"\)")):
            mx.kernel(update)


@pytest.mark.parametrize("arguments, keywords, naming", [
    ("T", {}, "cannot be called T"), ("double", {}, "double"), ("u, w", {"params": {"k": 1}}, "k is not an argument"), ("x", {}, "computes no field"),
    ("u=3", {}, "without defaults"), ("*u", {}, "without defaults"), ("u_23_characters_and_more", {}, "use at most 23")])
def test_arguments_that_no_kernel_can_have(mx, tmp_path, arguments, keywords, naming):
    path = tmp_path / "arguments.py"
    path.write_text(f"def cell({arguments}):\n    return 1.0\n")
    with pytest.raises(mx.KernelError, match=re.escape(naming)):
        mx.kernel(load(path).cell, **keywords)


def test_kernels_of_another_text_are_not_resumed(mx, systems, quick_place):
    """A store that another kernel's run left is not overwritten and not gone on with."""
    u, k = np.ones((6, 6, 6)), np.ones((6, 6, 6), "f4")
    with mx.Run(systems.diffusion, u=u, k=k, device=quick_place, dram="64MiB", keep=True) as run:
        run.advance(2)
    with pytest.raises(mx.MemextError, match="force") as caught:
        mx.Run(systems.gray_scott, u=u, v=u, device=quick_place, dram="64MiB").advance(1)
    assert caught.value.errorname == "EEXIST" and caught.value.status == 2
    with pytest.raises(mx.MemextError, match="python"):  # another initial state
        mx.Run(systems.diffusion, u=2 * u, k=k, device=quick_place, dram="64MiB").advance(4)
    with mx.Run(systems.diffusion, u=u, k=k, device=quick_place, dram="64MiB") as run:
        assert list(run.steps(4, check=1)) == [2, 3, 4]  # the step that is there once more
        assert run["u"][...].tobytes() == systems.diffusion.reference(4, u=u, k=k)["u"].tobytes()
