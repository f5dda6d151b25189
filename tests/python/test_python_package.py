# SPDX-License-Identifier: BSD-3-Clause
"""The Python package: installed into a virtual environment of its own, against the library that was built; runs, kernels, files."""
import ast
import errno
import functools
import importlib.util
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
import xml.etree.ElementTree

import numpy as np
import pytest
import random_kernels
from conftest import ROOT, made_once, wait_until

EXAMPLES = ROOT / "python" / "examples"


def sh(*words, **options):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=900, **options)


@pytest.fixture(scope="session")
def environment(build, tmp_path_factory):
    """The venv's python, with the package installed as `pip install .` does it, from the repository's root."""
    with made_once(tmp_path_factory, "python-package") as (folder, made):
        if not made:
            install(build, folder)
    return folder / "venv/bin/python"


def install(build, folder):
    if sh("/usr/bin/python3", "-m", "venv", "--system-site-packages", folder / "venv").returncode != 0:
        pytest.skip("no virtual environment can be made: python3-venv is not installed")
    pip = [folder / "venv/bin/python", "-m", "pip", "install", "-q"]
    tools = sh(*pip, "scikit-build-core>=0.11", "cffi>=1.15")
    if tools.returncode != 0:
        pytest.skip(f"scikit-build-core and cffi cannot be had: {tools.stderr.strip().splitlines()[-1]}")
    assert sh("cmake", "--install", build, "--prefix", folder / "prefix").returncode == 0
    done = sh(*pip, "--no-build-isolation", "--no-deps", f"--config-settings=cmake.define.MEMEXT_INSTALLED={folder / 'prefix'}", ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def mx(environment, cache, monkeypatch):
    """The installed package, in this process: the venv's python is this one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    site = next((environment.parents[1] / "lib").glob("python*/site-packages"))
    monkeypatch.syspath_prepend(str(site))
    import memext
    assert pathlib.Path(memext.__file__).is_relative_to(site)
    return memext


@pytest.fixture
def systems(mx):
    return load(EXAMPLES / "systems.py")


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def need(name):
    return pytest.importorskip(name, reason=f"{name} is not installed")


# ------------------------------------------------------------------ what is installed

def test_the_version_is_the_librarys_and_the_licence_is_inside(environment, mx):
    """The version of the distribution, of the module and of memext.h are one; the licence is installed with it."""
    header = (ROOT / "runtime/include/memext/memext.h").read_text()
    version = re.search(r'MX_VERSION "(.*)"', header).group(1)
    site = pathlib.Path(mx.__file__).parents[1]
    folder = site / f"memext-{version}.dist-info"
    metadata = (folder / "METADATA").read_text()
    assert f"\nVersion: {version}\n" in metadata and mx.__version__ == version and "\nLicense-Expression: BSD-3-Clause\n" in metadata
    assert (folder / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_types_and_info(mx, quick_place):
    assert (pathlib.Path(mx.__file__).parent / "py.typed").exists()
    info = mx.info(quick_place)
    assert info["machine"]["cores"] >= 1 and any(b["name"] == "dram" and b["works"] for b in info["backends"])
    assert info["device"]["path"] == str(quick_place)
    with pytest.raises(mx.MemextError, match="nonexistent"):
        mx.info("/nonexistent")


# ------------------------------------------------------------------ kernels

def test_a_kernel_of_python_is_the_c_file_that_it_writes(mx, systems, memext, quick_place, cache):
    """One text for the package and the command: after a run from Python the command finds it compiled, and has the same checksum."""
    kernel = systems.gray_scott
    with mx.Run(kernel, u="random", v="random", shape=(6, 7, 19), device=quick_place, dram="64MiB") as run:
        ours = run.advance(4).report["checksum"]
    compiled = cache / "memext" / "kernels"
    before = {p.name: p.stat().st_mtime_ns for p in compiled.iterdir()}
    theirs = memext.run("--kernel", kernel.write(), "-n", 19, 7, 6, "-t", 4, "--init", "random", "-d", quick_place, "--dram", "64MiB")
    after = {p.name: p.stat().st_mtime_ns for p in compiled.iterdir()}
    assert theirs["checksum"] == ours and after == before != {}


def arrays(names, shape, dtype, seed=3, low=0.0):
    rng = np.random.default_rng(seed)
    return {n: (low + rng.random(shape) * (1 - low)).astype(dtype) for n in names.split()}


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
    ("return u[x, 0, 0]", 4, "offsets are constants"),
    ("return print(u)", 4, "print is no function"),
    ("q = u + 1\n    return q[1, 0, 0]", 5, "'q' is a value of this cell"),
    ("return u, u", 2, "returns 2 values; it computes 1 of u"),
    ("u[0, 0, 0] = 3\n    return u", 4, "only names"),
    ("return u[9, 0, 0]", 4, "9 cells away; 8 at most"),
    ("return u % 2", 4, "whole numbers"),
    ("return u + nope", 4, "nope is not known"),
    ("return u & 3", 4, "parentheses"),
    ("import os\n    return u", 4, "'import'"),
    ("return [v for v in u][0]", 4, "loop over what depends on the cell"),
    ("return u[1]", 4, "three whole numbers"),
    ("return 'a' * u", 4, "'a' is no number"),
    ("return c.old", 4, "c is only read"),
    ("return u.new", 4, "has .old and nothing else"),
    ("return u[0:1]", 4, "slices of a field"),
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
    for update, naming in (({"u": u[9, 0, 0]}, "9 cells away"), ({"u": u[x, 0, 0]}, "three whole numbers"), ({"u": sympy.Symbol("q")}, "q is neither computed"),
                           ({"u": sympy.gamma(u[0, 0, 0])}, "gamma"), ({"u": sympy.Piecewise((1, u[0, 0, 0] > 1))}, "(value, True)"),
                           ({"T": u[0, 0, 0]}, "u is neither computed|cannot be called T"), ({"u": sympy.Mod(u[0, 0, 0], 2)}, "whole numbers")):
        with pytest.raises(mx.KernelError, match=naming.replace("(", r"\(").replace(")", r"\)")):
            mx.kernel(update)


@pytest.mark.parametrize("arguments, keywords, naming", [
    ("T", {}, "cannot be called T"), ("double", {}, "double"), ("u, w", {"params": {"k": 1}}, "k is no argument"), ("x", {}, "no field"),
    ("u=3", {}, "without defaults"), ("*u", {}, "without defaults"), ("u_23_characters_and_more", {}, "23 at most")])
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
        assert list(run.steps(4, check=1)) == [3, 4]
        assert run["u"][...].tobytes() == systems.diffusion.reference(4, u=u, k=k)["u"].tobytes()


# ------------------------------------------------------------------ runs

def star7(u, steps):
    for _ in range(steps):
        new = u.copy()
        s = u[1:-1, 1:-1, 1:-1]
        around = [u[1:-1, 1:-1, :-2], u[1:-1, 1:-1, 2:], u[1:-1, :-2, 1:-1], u[1:-1, 2:, 1:-1], u[:-2, 1:-1, 1:-1], u[2:, 1:-1, 1:-1]]
        new[1:-1, 1:-1, 1:-1] = 0.4 * s + 0.1 * sum(around)
        u = new
    return u


def test_a_built_in_stencil_without_a_device(mx, tmp_path, monkeypatch):
    """No device: a directory beside the program, which goes with the run. Backend dram: the result is in memory."""
    monkeypatch.chdir(tmp_path)
    u = np.random.default_rng(1).random((10, 12, 20))
    with mx.Run(u=u, dram="64MiB") as run:
        steps = list(run.steps(7, check=3))
        assert steps == [3, 6, 7] and np.allclose(run["u"], star7(u, 7), rtol=1e-12, atol=0)
        assert len(run.reports) == 3 and run.report["resumed_from"] == 6
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(mx.MemextError, match="has ended"):
        run["u"]
    memory = mx.Run(u=u, backend="dram").advance(7)
    assert np.allclose(memory["u"], star7(u, 7), rtol=1e-12, atol=0)
    with pytest.raises(mx.MemextError, match="keeps nothing between checks"):
        list(mx.Run(u=u, backend="dram").steps(4, check=2))


def test_a_plan_touches_nothing(mx, quick_place):
    plan = mx.plan(u="random", shape=(62, 46, 78), steps=30, device=quick_place, dram="64MiB")
    assert plan["status"] == "planned" and plan["problem"]["nx"] == 78 and plan["predicted_write_bytes"] > 0
    assert list(quick_place.iterdir()) == [] and "plan" in plan._repr_html_() and "stream" in str(plan) + "stream"
    other = mx.Run(u="random", shape=(62, 46, 78), device=quick_place, dram="64MiB").plan(30, algorithm="redundant")
    assert other["plan"]["algorithm"] == "redundant"


@pytest.mark.parametrize("keywords, naming, errno_name", [
    ({"shape": (3, 3)}, "has 2 of", None), ({}, "no grid", None), ({"shape": (3, 3, 3), "dram": "5QB"}, "no size", "EINVAL"),
    ({"shape": (3, 3, 3), "speed": 9}, "'speed'", "EINVAL"), ({"shape": (3, 3, 3), "device": "/nonexistent/store"}, "/nonexistent", "ENOENT"),
    ({"shape": (3, 3, 3), "stencil": "star8"}, "star8", "EINVAL"), ({"u": np.zeros((4, 4))}, "2 dimensions", "EINVAL"),
    ({"u": np.zeros((2, 4, 4))}, "at least 1", "EINVAL"), ({"u": np.zeros((4, 4, 4)), "shape": (4, 4, 4)}, "frame of 1", "EINVAL"),
    ({"shape": (3, 3, 3), "params": {"q": 1}, "verify": 3}, "'verify'", "EINVAL")])
def test_refusals_carry_the_sentence(mx, place, monkeypatch, keywords, naming, errno_name):
    monkeypatch.chdir(place)
    with pytest.raises((mx.MemextError, ValueError)) as caught:
        run = mx.Run(**{"dram": "64MiB", **keywords})
        try:
            run.advance(1)
        finally:
            run.close()
    assert naming in str(caught.value)
    if errno_name:
        assert caught.value.errorname == errno_name and caught.value.sentence == str(caught.value)


def test_an_exception_in_a_callback_ends_the_run(mx, quick_place):
    """It is the exception that the caller sees."""
    def broken(x, y, z):
        raise ZeroDivisionError(f"plane {z}")

    with pytest.raises(ZeroDivisionError, match="plane -1"), mx.Run(u=broken, shape=(4, 4, 4), device=quick_place, dram="64MiB") as run:
        run.advance(1)


def test_the_lock_of_python_is_free_while_it_computes(mx, quick_place):
    """A thread stops a run that the main thread waits for within the library; with the lock held this would end with the run alone."""
    from memext import _core
    from memext.job import Job
    job = Job(["size=62 62 94", "steps=4000", "init=random", f"device={quick_place}", "dram=128MiB", "block=62 94 2", "algorithm=redundant",
                "backend=fault:aio", "fault=delay_us=20000"])
    job.start()
    while _core.ffi.string(job.progress.phase) != b"updates":
        assert job.wait(0.01)[0] == 0  # a run that refuses its options never computes
    about_to_wait = threading.Event()
    stopper = threading.Thread(target=lambda: (about_to_wait.wait(), _core.lib.mx_run_stop(job.run)))
    stopper.start()
    about_to_wait.set()
    code, why = job.wait(-1)
    stopper.join()
    assert code == -errno.EINTR, _core.sentence(why)
    assert job.report()["status"] == "interrupted"
    job.close()


PROGRAM = '''
import sys
import numpy as np
import memext as mx
def show(step, steps, phase):
    if phase == "updates" and step > 5:
        print("computing", flush=True)
u = lambda x, y, z: ((31 * x + 17 * y + 7 * z) % 101) / 101.0
slow = {"backend": "fault:aio", "fault": "delay_us=100000"} if sys.argv[2] == "slow" else {}
with mx.Run(u=u, shape=(78, 46, 62), device=sys.argv[1], dram="64MiB", block=(46, 78, 2), algorithm="redundant", commit_every=0, **slow) as run:
    for step in run.steps(30, check=20, progress=show):
        print("step", step, flush=True)
    print("resumed from", run.reports[0]["resumed_from"])
    run["u"].save(sys.argv[3])
'''


def test_ctrl_c_stops_at_a_commit_and_the_same_program_goes_on(mx, environment, quick_place, tmp_path):
    """SIGINT while it computes: KeyboardInterrupt, with the step that is committed; again: from that step, with the result of an uninterrupted run."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = [str(environment), str(program), str(quick_place), "slow", str(tmp_path / "no.npy")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "computing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=900)
    assert "KeyboardInterrupt" in err and process.returncode != 0, err
    step = int(re.search(r"step (\d+) is committed", err).group(1))
    assert 0 < step < 20 and not (tmp_path / "no.npy").exists()
    done = sh(environment, program, quick_place, "fast", tmp_path / "u.npy")
    assert done.returncode == 0, done.stderr
    assert f"resumed from {step}\n" in done.stdout and "step 20\nstep 30\n" in done.stdout.replace("computing\n", "")
    z, y, x = np.ogrid[-1:79, -1:47, -1:63]
    assert np.allclose(np.load(tmp_path / "u.npy"), star7(((31 * x + 17 * y + 7 * z) % 101) / 101.0, 30), rtol=1e-12, atol=0)
    assert list(quick_place.iterdir()) == []


def rock(folder, n):
    """An image of open neighbours, 0 in the rock, with its frame: sides closed, inlet and outlet open; as a .nhdr of raw cells."""
    pore = np.random.default_rng(1).random((n + 2,) * 3) < 0.85
    pore[:, 0] = pore[:, -1] = pore[:, :, 0] = pore[:, :, -1] = False
    padded = np.pad(pore, 1)
    count = sum(np.roll(padded, d, axis)[1:-1, 1:-1, 1:-1] for axis in range(3) for d in (-1, 1)).astype("u1") * pore
    count[0], count[-1] = pore[0], pore[-1]
    (folder / "rock.raw").write_bytes(count.tobytes())
    (folder / "rock.nhdr").write_text(f"NRRD0004\ntype: uchar\ndimension: 3\nsizes: {n + 2} {n + 2} {n + 2}\nencoding: raw\ndata file: rock.raw\n")
    return count


def test_the_program_of_the_readme(mx, environment, place):
    """As it is written there, with a smaller rock and less DRAM: its result is that of the kernel in numpy at the step where it stopped."""
    h5py = need("h5py")
    text = (ROOT / "python/README.md").read_text()
    program = re.search(r"^    import memext as mx\n(?:    .*\n|\n)+", text, re.M).group()
    program = "\n".join(line[4:] for line in program.splitlines())
    assert "/scratch" in program and "16GiB" in program
    program = program.replace('"/scratch"', '"store"').replace("16GiB", "64MiB") + "\nprint('stopped at', step)\n"
    (place / "program.py").write_text(program)
    (place / "store").mkdir()
    count = rock(place, 40)
    before = (place / "rock.raw").read_bytes()
    done = sh(environment, "program.py", cwd=place)
    assert done.returncode == 0, done.stderr
    step = int(re.search(r"stopped at (\d+)", done.stdout).group(1))
    spec = importlib.util.spec_from_file_location("program", place / "program.py")
    assert step % 100 == 0 and spec is not None
    with h5py.File(place / "u.h5") as file:
        found = file["u"][:]
    kernel = mx.kernel(fixed="c", params={"w": 1.9})(function_of(place, program))
    u = np.where(count > 0, np.linspace(1, 0, 42)[:, None, None], 0).astype("f4")
    assert found.tobytes() == kernel.reference(step, u=u, c=count)["u"].tobytes()
    assert (place / "rock.raw").read_bytes() == before and list((place / "store").iterdir()) == []


def function_of(folder, program):
    """relax, without what stands around it."""
    tree = next(n for n in ast.parse(program).body if isinstance(n, ast.FunctionDef) and n.name == "relax")
    tree.decorator_list = []
    (folder / "relax_alone.py").write_text("import memext as mx\n" + ast.unparse(tree) + "\n")
    return load(folder / "relax_alone.py").relax


@pytest.mark.parametrize("frame", ["edge", "mirror", "periodic", 0.25])
def test_arrays_without_a_frame(mx, systems, quick_place, frame):
    """The frame that is made is numpy's pad, of the state and of what is only read."""
    rng = np.random.default_rng(8)
    u, k = rng.random((5, 6, 7)), rng.random((5, 6, 7)).astype("f4")
    mode = {"edge": {"mode": "edge"}, "mirror": {"mode": "symmetric"}, "periodic": {"mode": "wrap"}}.get(frame, {"constant_values": frame})
    with mx.Run(systems.diffusion, u=u, k=k, frame=frame, device=quick_place, dram="64MiB") as run:
        run.advance(2)
        assert run["u"][...].tobytes() == systems.diffusion.reference(2, u=np.pad(u, 1, **mode), k=np.pad(k, 1, **mode))["u"].tobytes()


def test_values_that_fields_begin_with(mx, systems, quick_place):
    """Numbers, ramps, functions, names, files, the step before of a leapfrog kernel; after no step they are what the store holds."""
    np.save(quick_place / "v.npy", np.full((11, 12, 13), 0.5, "f4"))
    p = np.random.default_rng(4).random((11, 12, 13)).astype("f4")
    with mx.Run(systems.wave, p=p, p_old=lambda x, y, z: x + 10 * y + 100 * z, v=quick_place / "v.npy", damping=0.25, dtype="f4", device=quick_place,
                dram="64MiB") as run:
        run.advance(0)
        z, y, x = np.ogrid[-4:7, -4:8, -4:9]
        assert np.array_equal(run["p.old"], (x + 10 * y + 100 * z).astype("f4")) and np.array_equal(run["p"], p)
        assert np.array_equal(run["damping"], np.full((11, 12, 13), 0.25, "f4")) and (run["v"][...] == 0.5).all()
    for axis, shape in (("x", (1, 1, 9)), ("y", (1, 8, 1)), ("z", (7, 1, 1))):
        with mx.Run(u=mx.ramp(axis, 2, 0), shape=(5, 6, 7), device=quick_place, dram="64MiB") as run:
            run.advance(0)
            assert np.array_equal(run["u"], np.broadcast_to(np.linspace(2, 0, max(shape)).reshape(shape), (7, 8, 9)))


def test_reductions(mx, quick_place, tmp_path):
    """Sums in the library's order, extremes, per plane and in all, with neighbours, parameters and read-only fields."""
    (tmp_path / "reductions.py").write_text('''
import memext as mx
@mx.kernel(fixed="c", params={"w": 2.0})
def cell(u, c, w): return u * w
@mx.reduce(per="z")
def slope(u, c, w, x, y, z): return mx.where(c > 0, w * (u - u[0, 0, 1]), 0) + x * y + z
@mx.reduce(op="max")
def largest(u): return abs(u)
@mx.reduce
def far(u): return u[0, 0, 2]
''')
    module = load(tmp_path / "reductions.py")
    rng = np.random.default_rng(6)
    u, c = rng.normal(size=(6, 7, 21)), rng.integers(0, 2, (6, 7, 21)).astype("u1")
    with mx.Run(module.cell, u=u, c=c, params={"w": 3.0}, device=quick_place, dram="64MiB") as run:
        run.advance(1)
        slopes, largest = run.reduce(module.slope), run.reduce(module.largest)
    now = u.copy()
    now[1:-1, 1:-1, 1:-1] *= 3
    s = np.s_[1:-1, 1:-1]
    for z in range(4):
        total = 0.0
        for y in range(5):  # rows: lanes x mod 8 from left to right, then lanes 0 to 7
            lanes = [0.0] * 8
            for x in range(19):
                value = (3.0 * (now[z + 1][s][y, x] - now[z + 2][s][y, x]) if c[z + 1][s][y, x] > 0 else 0.0) + x * y + z
                lanes[x % 8] += value
            row = 0.0
            for lane in lanes:
                row += lane
            total += row
        assert slopes[z] == total
    assert slopes.shape == (4,) and math.isclose(slopes.spread, (slopes.max() - slopes.min()) / abs(slopes.mean()), rel_tol=1e-12)
    assert largest.total == abs(now[1:-1, 1:-1, 1:-1]).max()
    with mx.Run(module.cell, u=u, c=c, params={"w": 3.0}, reductions=[module.slope, module.largest], check=1, device=quick_place, dram="64MiB") as run:
        run.advance(2)  # the check of step 2 is of the state after step 1
        taken = run.report["norms"][-1]
    assert taken["step"] == 2 and taken["reductions"]["largest"]["max"] == largest.total
    assert taken["reductions"]["slope"]["sum"] == functools.reduce(lambda a, b: a + b, slopes.tolist(), 0.0)
    with mx.Run(module.cell, u=u, c=c, reductions=[module.largest], check=3, until={"largest": 1e9}, device=quick_place, dram="64MiB") as run:
        assert list(run.steps(20)) == [3] and run.step == 3
    with pytest.raises(mx.KernelError, match="reads 2 cells"):
        mx.Run(module.cell, u=u, c=c, reductions=[module.far])
    assert mx.Reduced([0, 2, 4, 0]).spread == 2 / 3 and mx.Reduced([0.0]).spread == math.inf
    assert mx.Reduced([0, 0, 2, 4, 2, 0]).spread == 2 and mx.Reduced([0, 5]).spread == 2 and mx.Reduced([0, 5, 0]).spread == 2
    assert mx.Reduced([1, 3], floor=4.0).spread == 0.5 and mx.Reduced([1, 3], floor=1.0).spread == 1 and mx.Reduced([0.0, 0.0], floor=1.0).spread == 0


DYING = '''
import memext as mx
@mx.kernel
def dying(u): return 0.01 * u
@mx.reduce(per="z")
def flux(u, z, nz): return mx.where((z > 0) & (z < nz - 1), (1 + z % 2) * u, 0)
@mx.reduce(op="min")
def low(u): return u
'''


def test_names_that_c_text_uses(mx, quick_place, tmp_path):
    """F, P and R are what the C text calls the items of its lists, unless a field, parameter or reduction has that name; others are refused in words."""
    (tmp_path / "letters.py").write_text('''
import memext as mx
@mx.kernel(fixed="R", params={"P": 2.0})
def cell(F, F_, R, P): return F * P + R, F_
@mx.reduce
def R(F): return F
''')
    module, u = load(tmp_path / "letters.py"), np.random.default_rng(5).random((6, 6, 6))
    with mx.Run(module.cell, F=u, F_=u, R=u.astype("f4"), reductions=[module.R], check=1, device=quick_place, dram="64MiB") as run:
        run.advance(1)
        assert np.array_equal(run["F"][1:-1, 1:-1, 1:-1], (u * 2.0 + u.astype("f4"))[1:-1, 1:-1, 1:-1]) and run.report["norms"][0]["reductions"]["R"]["sum"] > 0
    for name in "T", "NX", "AT", "linux", "M_PI", "MX_CELL", "double":
        (tmp_path / "refused.py").write_text(f"import memext as mx\n@mx.kernel\ndef cell({name}): return {name} * 0.5\n")
        with pytest.raises(mx.KernelError, match=f"cannot be called {name}"):
            load(tmp_path / "refused.py")


def test_criteria_and_reductions_mean_the_same(mx, quick_place, tmp_path):
    """The spread of run.reduce is the number that `until` compares, with a floor and without, above and below, of minima too; a flux that dies away
    is named once."""
    (tmp_path / "dying.py").write_text(DYING)
    module = load(tmp_path / "dying.py")
    u, common = np.random.default_rng(8).random((12, 8, 8)) + 1, {"device": quick_place, "dram": "64MiB"}
    seen = {}
    with mx.Run(module.dying, u=u, **common) as run, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for step in run.steps(12, check=1):
            fluxes = run.reduce(module.flux)
            seen[step] = fluxes.spread, run.reduce(module.flux, floor=1e-6).spread, run.reduce(module.low).total
        assert [str(w.message).count("give a floor") for w in said if "flux" in str(w.message)] == [1]
        with pytest.raises(mx.MemextError, match="floor"):
            run.reduce(module.flux, floor=-1)
    for until, column, met in (({"flux-spread": {"below": 0.01, "floor": 1e-6}}, 1, lambda v: v <= 0.01),
                               ({"low": 1e-9}, 2, lambda v: v <= 1e-9), ({"low": {"above": 1e-5}}, 2, lambda v: v >= 1e-5),
                               ({"flux-spread": {"above": 0.1}}, 0, lambda v: v >= 0.1)):
        with mx.Run(module.dying, u=u, reductions=[module.flux, module.low], check=1, until=until, **common) as run:
            run.advance(12)
            ended, value = run.step, run.report["met"]["value"]
        # a check is of the state that its step is computed from
        first = next((s + 1 for s, v in seen.items() if met(v[column])), None)
        assert ended == first and value == seen[ended - 1][column] or ended == 1 and met(value), (until, ended, value)
    with pytest.raises(mx.MemextError, match="one of below and above"):
        mx.Run(module.dying, u=u, reductions=[module.flux], until={"flux-spread": {"floor": 1}}, **common).advance(1)


ODD = '''
import memext as mx
@mx.kernel(fixed="c")
def mixed(u, c): return u * 0.5 + c * 0.25
'''


@pytest.fixture
def mixed(mx, tmp_path, monkeypatch):
    """A kernel of u and c in a module that can be imported."""
    (tmp_path / "odd_module.py").write_text(ODD)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_module", raising=False)
    return importlib.import_module("odd_module").mixed


def test_cells_of_every_type_and_order(mx, mixed, quick_place):
    """Numbers of any type, contiguous or not, of state and of what is only read: what numpy makes of them in f8."""
    whole = np.random.default_rng(4).integers(0, 100, (12, 7, 16))
    kinds = [whole[::2, :, ::2].astype(t) for t in ("f4", "f2", "g", "i1", "u1", ">i2", "u4", "i8", "?", ">f8")]
    kinds += [np.asfortranarray(whole[:6, :, :8]), whole[5::-1, ::-1, :8], whole[:8, :, :6].T, np.broadcast_to(np.float64(3), (6, 7, 8)), np.ma.array(whole[:6, :, :8])]
    for a in kinds:
        with mx.Run(mixed, u=a, c=a[::-1], device=quick_place, dram="64MiB") as run:
            run.advance(2)
            assert run["u"][...].tobytes() == mixed.reference(2, u=a.astype("f8"), c=a[::-1].astype("f8"))["u"].tobytes(), (a.dtype, a.strides)


@pytest.mark.parametrize("given, naming", [
    (lambda: np.zeros((6, 7, 8), "c16"), "u.real and u.imag"), (lambda: np.zeros((6, 7, 8), "M8[s]"), "real numbers"), (lambda: np.zeros((6, 7, 8), "O"), "object"),
    (lambda: np.ma.masked_less(np.arange(336.0).reshape(6, 7, 8), 5), r"5 cells without a value \(masked\).*filled"), (lambda: "randm", "neither a file nor.*gauss"),
    (lambda: lambda x, y, z: None, "object"), (lambda: lambda x, y, z: 1j * x, "complex"), (lambda: lambda x, y, z: np.zeros((3, 3)), r"plane of \(3, 3\); planes of \(7, 8\)")])
def test_what_is_no_field_is_refused(mx, mixed, quick_place, given, naming):
    with pytest.raises(mx.MemextError, match=naming), mx.Run(mixed, u=given(), c=np.zeros((6, 7, 8)), device=quick_place, dram="64MiB") as run:
        run.advance(1)


@pytest.mark.parametrize("given, naming", [
    ({"u": 1e300, "dtype": "f4"}, r"1e\+300, which float32"), ({"u": np.full((6, 7, 8), 1e39), "dtype": "f4"}, "which float32"), ({"u": np.full((6, 7, 8), 2**24 + 1), "dtype": "f4"}, "16777217, which float32"),
    ({"u": np.full((6, 7, 8), 2**53 + 1)}, "9007199254740993, which float64"), ({"u": np.full((6, 7, 8), 2**64 - 1, "u8")}, "18446744073709551615"), ({"shape": (4.5, 5, 6)}, "whole numbers"),
    ({"shape": (4, 5)}, "whole numbers"), ({"shape": 5}, "whole numbers"), ({"frame": "banana"}, "included, edge"), ({"frame": None}, "included, edge"), ({"frame": True}, "included, edge"),
    ({"resume": "banana"}, "auto"), ({"dtype": {"v": "f4"}}, "dtype names v"), ({"reductions": [3]}, "no reduction")])
def test_arguments_that_would_compute_something_else(mx, mixed, quick_place, given, naming):
    """Numbers that a type does not hold, names of nothing: refused, not rounded, made infinite or passed over."""
    with pytest.raises(mx.MemextError, match=naming), mx.Run(mixed, **{"u": 1.0, "c": 1.0, "shape": (4, 5, 6), "device": quick_place, "dram": "64MiB", **given}) as run:
        run.advance(1)


def test_whole_numbers_that_fit_and_frames_of_fractions(mx, mixed, quick_place):
    """Large ones that a float holds, infinities that were given; a frame of 0.5 around whole numbers is 0.5."""
    for u in (np.full((6, 7, 8), 2**40, "i8"), np.full((6, 7, 8), np.inf), np.full((6, 7, 8), -(2**24), "i4")):
        with mx.Run(mixed, u=u, c=0.0, dtype="f4", device=quick_place, dram="64MiB", nonfinite="ignore") as run:
            assert np.array_equal(run.advance(0)["u"], u.astype("f4"))
    for frame in (0.5, 300, -1, 7, np.float32(0.25)):
        with mx.Run(mixed, u=np.full((4, 5, 6), 3, "u1"), c=0.0, frame=frame, device=quick_place, dram="64MiB") as run:
            assert np.array_equal(run.advance(0)["u"], np.pad(np.full((4, 5, 6), 3.0), 1, constant_values=frame))


def test_a_store_that_began_with_something_else_is_not_taken_for_ours(mx, mixed, quick_place):
    """Also where it is as far as was asked for, so that there is nothing to compute; steps that are no whole numbers; nothing computed yet."""
    u = np.random.default_rng(5).random((6, 7, 8))
    with mx.Run(mixed, u=u, c=1.0, device=quick_place, dram="64MiB") as run:
        with pytest.raises(mx.MemextError, match="nothing was computed yet"):
            run["u"]
        for steps in "4", 4.5:
            with pytest.raises(mx.MemextError, match="whole numbers"):
                run.advance(steps)
        run.advance(np.int64(3))
        for other in ({"u": 2 * u, "c": 1.0}, {"u": u, "c": 2.0}):
            with pytest.raises(mx.MemextError, match="other fields to begin with"):
                mx.Run(mixed, **other, device=quick_place, dram="64MiB").advance(2)
        same = mx.Run(mixed, u=u, c=1.0, device=quick_place, dram="64MiB").advance(2)
        assert same.step == 3 and np.array_equal(same["u"], run["u"])


IDENTITIES = """
import functools
import numpy as np
from memext.computed import Function
from memext.sources import Source
class Callable:
    def __init__(self, a=1): self.a = a
    def __call__(self, x, y, z): return self.a * x
    def method(self, x, y, z): return self.a * y
def scaled(x, y, z, *words, by=1, **more): return by * (x + y + z)
def nested(x, y, z): return sum(map(lambda a: (lambda b: b * 3)(a), (x, y, z)))
def of_strings(x, y, z): return x * 1.0 if "x" in {"x", "yy", "zzz", "w"} else y
itself = []
itself.append(itself)
SAME = [lambda x, y, z: x * 0.5, nested, of_strings, functools.partial(scaled, by=2), functools.partial(scaled, by=nested), functools.partial(scaled, by=np.arange(3.0)),
        functools.partial(functools.partial(scaled, by=2), w=Callable()), np.vectorize(scaled), np.vectorize(lambda x, y, z: (lambda: x)()), Callable(), Callable().method,
        functools.lru_cache(scaled), functools.partial(scaled, s={"a", "b", "c"}, d={"b": 1, "a": (2,)}, i=itself, o=np.array([Callable()], "O"), e=...), np.hypot, max, Callable]
OTHERS = [functools.partial(scaled, by=3), functools.partial(nested, by=2), np.vectorize(lambda x, y, z: (lambda: y)()), lambda x, y, z: (lambda b: b * 4)(x),
          lambda x, y, z: (lambda b: b * 5)(x), functools.partial(scaled, by=np.arange(3.0) + 1), functools.lru_cache(nested), np.arctan2, min]
print([Function(f).identity() for f in SAME + OTHERS])
"""


def test_identities_of_functions_are_those_of_other_processes(mx, environment, mixed, quick_place, tmp_path):
    """Partial functions, nested ones, vectorized ones, objects: the same text in every process, free of addresses, and others where it can be told;
    a store that is finished is taken for ours."""
    (tmp_path / "identities.py").write_text(IDENTITIES)
    seen = []
    for seed in 1, 2:
        done = sh(environment, tmp_path / "identities.py", env={**os.environ, "PYTHONHASHSEED": str(seed)})
        assert done.returncode == 0, done.stderr
        seen.append(ast.literal_eval(done.stdout))
    one, two = seen
    assert one == two and not any(re.search(r"\b0x[0-9a-f]{6}| at 0x", text) for text in one)
    assert len(set(one)) == len(one)

    calls = []
    for weight in (lambda: functools.partial(lambda x, y, z, seen, by: seen.append(z) or by * (x + y + z), seen=calls, by=0.5),
                   lambda: np.vectorize(lambda x, y, z: (lambda: x + 0.5 * y)())):
        with mx.Run(mixed, u=weight(), c=1.0, shape=(6, 7, 8), device=quick_place, dram="64MiB") as run:
            list(run.steps(3, check=1))
            calls.clear()
            assert mx.Run(mixed, u=weight(), c=1.0, shape=(6, 7, 8), device=quick_place, dram="64MiB").advance(3).step == 3


def test_an_exception_while_it_computes_is_what_the_caller_sees(mx, quick_place):
    """Of a progress function: the run is stopped and ended first, and the store can be gone on with."""
    def broken(step, steps, phase):
        if phase == "updates":
            raise RuntimeError("mine")

    slow = {"backend": "fault:aio", "fault": "delay_us=20000", "block": (62, 94, 2), "algorithm": "redundant"}
    with pytest.raises(RuntimeError, match="mine"), mx.Run(u="random", shape=(62, 62, 94), device=quick_place, dram="64MiB", **slow) as run:
        run.advance(4000, progress=broken)
    assert run.reports[-1]["status"] == "interrupted" and mx.open(quick_place).info["in_use"] is False


IN_GERMAN = """
import locale, sys
import numpy as np
import memext as mx
@mx.kernel(params={"w": 1.5})
def scaled(u, w): return u * w
u = np.random.default_rng(1).random((6, 7, 8))
assert locale.setlocale(locale.LC_ALL, sys.argv[2]) and locale.str(1.5) == "1,5"
run = mx.Run(scaled, u=u, params={"w": 0.3}, device=sys.argv[1], dram="0.0625GiB", commit_every=0.5, keep=True).advance(2)
assert mx.open(sys.argv[1]).info["problem"]["kernel"]["params"]["w"] == 0.3 and run.report["seconds"] < 100 and mx.info()["machine"]["cores"] > 0
assert locale.str(1.5) == "1,5"
locale.setlocale(locale.LC_ALL, "C")
run = mx.Run(scaled, u=u, params={"w": 0.3}, device=sys.argv[1], dram="64MiB").advance(4)
assert np.array_equal(run["u"], scaled.reference(4, u=u, params={"w": 0.3})["u"])
run.close()
"""


def test_numbers_have_a_point_where_the_program_writes_commas(environment, quick_place, tmp_path, cache):
    """In a program that set a locale, as those with windows do: numbers go to the library and back, and what a store says is read anywhere."""
    if sh("localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8").returncode != 0:
        pytest.skip("localedef cannot make a locale: the package locales is not installed")
    (tmp_path / "german.py").write_text(IN_GERMAN)
    done = sh(environment, tmp_path / "german.py", quick_place, "de_DE.UTF-8", env={**os.environ, "LOCPATH": str(tmp_path), "XDG_CACHE_HOME": str(cache)})
    assert done.returncode == 0, done.stderr


def test_pickles_forks_and_threads(mx, mixed, quick_place, tmp_path, monkeypatch):
    """Kernels, errors, arrays of stores and reports are pickled, runs are not; a child of fork has a run of its own and leaves the parent's store; runs in two
    threads; a run that nobody closed leaves nothing."""
    import gc
    import pickle
    u = np.random.default_rng(6).random((6, 7, 8))
    want = mixed.reference(3, u=u, c=np.ones(u.shape))["u"]
    with mx.Run(mixed, u=u, c=1.0, device=quick_place, dram="64MiB") as run:
        run.advance(3)
        assert pickle.loads(pickle.dumps(mixed)) is mixed
        assert np.array_equal(pickle.loads(pickle.dumps(run["u"])), want) and pickle.loads(pickle.dumps(run.report))["status"] == "done"
        with pytest.raises(TypeError, match="bound to its store"):
            pickle.dumps(run)
        child = os.fork()
        if child == 0:
            try:
                run.close()
                with mx.Run(mixed, u=u, c=1.0, device=tmp_path, dram="64MiB") as own:
                    own.advance(3)
                    os._exit(0 if np.array_equal(own["u"], want) else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and np.array_equal(run["u"], want)
    with pytest.raises(mx.MemextError) as caught:
        mx.open(tmp_path / "nothing.npy")
    assert pickle.loads(pickle.dumps(caught.value)).errno == caught.value.errno != 0
    found = {}

    def one(i):
        (tmp_path / f"{i}").mkdir()
        with mx.Run(mixed, u=u * i, c=1.0, device=tmp_path / f"{i}", dram="64MiB") as own:
            for _ in range(10):
                own.plan(3)  # each loads the kernel, after a child process has tried to
            found[i] = own.advance(3)["u"][...]
    threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert all(np.array_equal(found[i], mixed.reference(3, u=u * i, c=np.ones(u.shape))["u"]) for i in range(4))
    monkeypatch.chdir(quick_place)
    left = mx.Run(mixed, u=u, c=1.0, dram="64MiB").advance(1)
    assert len(list(quick_place.iterdir())) == 1
    del left
    gc.collect()
    assert list(quick_place.iterdir()) == []


def test_a_directory_without_a_name_stays_while_it_is_read(mx, mixed, quick_place, monkeypatch):
    """Nobody closes these runs: arrays and stores, what is made of them, their copies hold the directory, and pickles do not; keep is looked at last."""
    import copy
    import gc
    import pickle
    monkeypatch.chdir(quick_place)
    u = np.random.default_rng(6).random((6, 7, 8))
    want = mixed.reference(9, u=u, c=np.ones(u.shape))["u"]

    def new():
        return mx.Run(mixed, u=u, c=1.0, dram="64MiB").advance(9)

    def there():
        gc.collect()
        return len(list(quick_place.iterdir()))
    for held in (lambda run: run["u"], lambda run: run.store, lambda run: iter(run["u"]), lambda run: copy.copy(run["u"]), lambda run: copy.deepcopy(run.store),
                 lambda run: run.store.part("u", False), lambda run: mx.ramp("x", 0, 1, where=run["u"]), lambda run: mx.Run(mixed, u=run["u"], c=0.0)):
        found = held(new())
        assert there() == 1, found
        cells = found["u"] if isinstance(found, mx.Store) else next(found) if not hasattr(found, "shape") else found
        if isinstance(cells, mx.Array):
            assert np.array_equal(cells, want if cells.shape == want.shape else want[1:-1, 1:-1, 1:-1])
        del found, cells
        assert there() == 0
    array = new()["u"]
    pickled = pickle.loads(pickle.dumps(array))
    assert np.array_equal(pickled, want)
    del array
    assert there() == 0
    with pytest.raises(mx.MemextError):
        pickled[0]
    run = new()
    run.keep = True
    del run
    assert there() == 1
    shutil.rmtree(next(quick_place.iterdir()))
    run = new()
    run.close(keep=True)
    del run
    assert there() == 1


def test_large_planes_are_written_in_rows(mx, tmp_path, monkeypatch):
    """What is in hand at a time does not grow with the planes; every chunk is written by one thread, and all cells arrive."""
    from memext import pieces
    from memext.formats import zarrs
    monkeypatch.setattr(zarrs, "GROUP_BYTES", 6000)
    want = np.random.default_rng(8).random((7, 30, 41)).astype("f4")
    mx.save(want, tmp_path / "a.npy")
    array = mx.open(tmp_path / "a.npy")
    for chunks in ((1, 1), (3, 4), (7, 30), (2, 16)):
        boxes = pieces.boxes(array, chunks, 6000)
        seen = np.zeros(want.shape, "u1")
        for box in boxes:
            seen[box] += 1
            assert box[0].start % chunks[0] == 0 and box[1].start % chunks[1] == 0
            assert want[box].nbytes <= max(6000, chunks[0] * chunks[1] * 41 * 4), (chunks, box)
        assert (seen == 1).all()
    assert np.array_equal(array, want)
    for ending, name, chunks in ((".h5", "h5py", (3, 4, 10)), (".zarr", "zarr", (3, 4, 10)), (".zarr", "zarr", (2, 30, 41))):
        need(name)
        path = array.save(tmp_path / f"{chunks[0]}{ending}", "field", chunks=chunks)
        assert np.array_equal(mx.open(path, "field"), want)


@pytest.mark.parametrize("planes, most", [(1, 16), (2, 16), (8, 16), (32, 32)])
def test_what_a_zarr_holds_under_way_is_bounded(mx, tmp_path, monkeypatch, planes, most):
    """Cells that a library decodes, in chunks from an eighth of a group's bytes to four times as many: read and not yet written are two groups at most, or
    one chunk's planes where these are more. Here a thread writes only when it is waited for, as slowly as it can be."""
    from memext.formats import zarrs
    need("zarr")
    want = np.random.default_rng(8).random((64, 4, 8))
    held, peak = [0], [0]
    monkeypatch.setattr(zarrs, "GROUP_BYTES", 8 * want[0].nbytes)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)))

    class Chunks:
        shape, dtype, chunks = want.shape, want.dtype, (planes, 4, 8)

        def __getitem__(self, key):
            held[0] += want[key].shape[0]
            peak[0] = max(peak[0], held[0])
            return want[key].copy()

    class Later:
        def __init__(self, work):
            self.work = work

        def result(self):
            self.work()
            held[0] -= self.work.args[1].shape[0]

    class Threads:
        def __init__(self, _count):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_error):
            pass

        def submit(self, *words):
            return Later(functools.partial(*words))

        def map(self, *words):
            return map(*words)

    monkeypatch.setattr(zarrs, "ThreadPoolExecutor", Threads)
    mx.save(Chunks(), tmp_path / "a.zarr", chunks=(planes, 4, 8))
    assert held == [0] and max(4, planes) <= peak[0] <= most, peak
    assert np.array_equal(mx.open(tmp_path / "a.zarr"), want)


# ------------------------------------------------------------------ arrays and files

KEYS = [np.s_[...], np.s_[3], np.s_[-1, :, 2], np.s_[1:5:2, ::-1, 3:4], np.s_[::-2, 1, ::3], np.s_[2:2], np.s_[..., -2:], np.s_[4, 3, 2], np.s_[:, 6:1:-2]]


def check_array(mx, array, want):
    assert array.shape == want.shape and array.dtype.newbyteorder("=") == want.dtype.newbyteorder("=") and array.ndim == 3
    for key in KEYS:
        assert np.array_equal(array[key], want[key]), key
    assert np.array_equal(np.asarray(array), want) and np.array_equal(np.stack(list(array)), want)
    for bad in (np.s_[99], np.s_[0, 0, 0, 0], np.s_[[1, 2]], None, 1.5, np.float64(1), True, np.bool_(False), (..., ...), "x"):
        with pytest.raises(IndexError):
            array[bad]


def test_files_are_read_as_numpy_would(mx, tmp_path):
    """.npy, raw, NRRD and MetaImage attached and detached, little and big endian, with offsets."""
    want = np.random.default_rng(9).integers(-30000, 30000, (7, 8, 9)).astype("<i2")
    np.save(tmp_path / "a.npy", want)
    check_array(mx, mx.open(tmp_path / "a.npy"), want)
    (tmp_path / "a.raw").write_bytes(b"header" + want.tobytes())
    check_array(mx, mx.open(tmp_path / "a.raw", dtype="<i2", shape=(7, 8, 9), offset=6), want)
    big = want.astype(">i2")
    (tmp_path / "big.raw").write_bytes(b"\n1234" + big.tobytes())
    header = "NRRD0005\n# words\ntype: short\ndimension: 3\nsizes: 9 8 7\nencoding: raw\n"
    (tmp_path / "b.nhdr").write_text(header + "endian: big\nline skip: 1\nbyte skip: 4\ndata file: big.raw\n")
    check_array(mx, mx.open(tmp_path / "b.nhdr"), want)
    (tmp_path / "c.nrrd").write_bytes(header.encode() + b"endian: little\n\n" + want.tobytes())
    check_array(mx, mx.open(tmp_path / "c.nrrd"), want)
    meta = "ObjectType = Image\nNDims = 3\nDimSize = 9 8 7\nElementType = MET_SHORT\n"
    for truth in "True", "true", "1":
        (tmp_path / "d.mhd").write_text(meta + f"ElementByteOrderMSB = {truth}\nHeaderSize = -1\nElementDataFile = big.raw\n")
        check_array(mx, mx.open(tmp_path / "d.mhd"), want)
    (tmp_path / "e.mha").write_bytes(meta.encode() + b"ElementDataFile = LOCAL\n" + want.tobytes())
    check_array(mx, mx.open(tmp_path / "e.mha"), want)
    for text, naming in (("encoding: gzip", "gzip"), ("sizes: 9 8", "sizes"), ("dimension: 2", "2 dimensions"), ("type: block", "block"), ("sizes: 9 8 8", "1152")):
        key = text.split(":")[0]
        (tmp_path / "bad.nhdr").write_text(re.sub(f"{key}: .*", text, header) + "endian: big\ndata file: big.raw\n")
        with pytest.raises(mx.MemextError, match=naming):
            mx.open(tmp_path / "bad.nhdr")
    for path, naming in ((tmp_path / "none.npy", "not there"), (tmp_path / "a.raw", "dtype and shape|memext store|no store|holds no"), (tmp_path, "store")):
        with pytest.raises(mx.MemextError, match=naming):
            mx.open(path)


def test_files_of_libraries(mx, tmp_path):
    """HDF5 contiguous (read without the library) and in compressed chunks, Zarr, TIFF stacks in one file and one a plane."""
    h5py, tifffile, zarr = need("h5py"), need("tifffile"), need("zarr")
    want = np.random.default_rng(10).integers(0, 60000, (7, 8, 9)).astype("u2")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["plain"] = want
        file.create_dataset("group/chunks", data=want, chunks=(2, 4, 5), compression="gzip")
    check_array(mx, mx.open(tmp_path / "a.h5", "plain"), want)
    check_array(mx, mx.open(tmp_path / "a.h5", "group/chunks"), want)
    assert type(mx.open(tmp_path / "a.h5", "plain")).__name__ == "RawArray"
    with pytest.raises(mx.MemextError, match="group/chunks, plain"):
        mx.open(tmp_path / "a.h5")
    zarr.save(str(tmp_path / "a.zarr"), want)
    check_array(mx, mx.open(tmp_path / "a.zarr"), want)
    tifffile.imwrite(tmp_path / "a.tif", want)
    check_array(mx, mx.open(tmp_path / "a.tif"), want)
    for z in range(7):
        tifffile.imwrite(tmp_path / f"slice-{z:02}.tif", want[z])
    check_array(mx, mx.open(tmp_path / "slice-*.tif"), want)


def test_variables_of_netcdf(mx, tmp_path, monkeypatch):
    """NetCDF4 by netCDF4, h5netcdf or h5py: chunked and contiguous variables, packed ones, steps of a fourth dimension, groups; cells without a value
    are refused and not read as numbers; older files by netCDF4 alone."""
    netcdf = need("netCDF4")
    rng = np.random.default_rng(12)
    want, series = rng.random((7, 8, 9)).astype("f4"), rng.random((3, 7, 8, 9))
    packed = rng.integers(-1000, 1000, (7, 8, 9)).astype("i2")
    with netcdf.Dataset(tmp_path / "a.nc", "w") as file:
        for name, n in (("t", None), ("z", 7), ("y", 8), ("x", 9)):
            file.createDimension(name, n)
        file.createVariable("u", "f4", ("z", "y", "x"), chunksizes=(2, 4, 5), zlib=True)[:] = want
        file.createVariable("plain", "u2", ("z", "y", "x"))[:] = packed.astype("u2")
        file.createVariable("bytes", "u1", ("z", "y", "x"), fill_value=False)[:] = packed.astype("u1")
        v = file.createVariable("packed", "i2", ("z", "y", "x"))
        v.set_auto_maskandscale(False)
        v.scale_factor, v.add_offset = 0.25, 10.0
        v[:] = packed
        file.createVariable("series", "f8", ("t", "z", "y", "x"))[:] = series
        holes = file.createVariable("holes", "f4", ("z", "y", "x"), fill_value=-1.0)
        holes[:] = want
        holes[4, 2, 3] = np.ma.masked
        file.createGroup("deep").createVariable("u", "f8", ("z", "y", "x"))[:] = series[0]
    with netcdf.Dataset(tmp_path / "old.nc", "w", format="NETCDF3_CLASSIC") as file:
        for name, n in zip("zyx", want.shape):
            file.createDimension(name, n)
        file.createVariable("u", "f4", ("z", "y", "x"))[:] = want
    check_array(mx, mx.open(tmp_path / "old.nc"), want)
    readers = ["netCDF4", "h5netcdf", "h5py"]
    for i, reader in enumerate(readers):
        for other in readers[:i]:
            monkeypatch.setitem(sys.modules, other, None)  # as if it were not there
        if importlib.util.find_spec(reader) is None:
            continue
        check_array(mx, mx.open(tmp_path / "a.nc", "u"), want)
        check_array(mx, mx.open(tmp_path / "a.nc", "plain"), packed.astype("u2"))
        check_array(mx, mx.open(tmp_path / "a.nc", "bytes"), packed.astype("u1"))
        assert type(mx.open(tmp_path / "a.nc", "bytes")).__name__ == "RawArray"  # bytes that are not filled have no value for cells that nobody wrote
        check_array(mx, mx.open(tmp_path / "a.nc", "packed"), packed * 0.25 + 10.0)
        check_array(mx, mx.open(tmp_path / "a.nc", "series[2]"), series[2])
        if reader != "h5netcdf":
            check_array(mx, mx.open(tmp_path / "a.nc", "deep/u"), series[0])
        holes = mx.open(tmp_path / "a.nc", "holes")
        assert np.array_equal(holes[:4], want[:4])
        with pytest.raises(mx.MemextError, match="1 cells without a value.*plane 4"):
            holes[3:6]
        for name, naming in (("series", "3 steps"), ("series[3]", "steps 0 to 2"), ("none", "holes")):
            with pytest.raises(mx.MemextError, match=naming):
                mx.open(tmp_path / "a.nc", name)
    with pytest.raises(mx.MemextError, match="netCDF4"):
        mx.open(tmp_path / "old.nc")


def test_what_is_no_file_of_its_kind_is_refused(mx, tmp_path):
    """Empty files, noise, headers without cells: a sentence that names the file, whatever the library of the format raises."""
    for ending in (".npy", ".nhdr", ".mhd", ".h5", ".nc", ".tif", ".sgy", ".zarr", ".raw"):
        if ending in (need_of := {".h5": "h5py", ".nc": "netCDF4", ".tif": "tifffile", ".sgy": "segyio", ".zarr": "zarr"}) and not importlib.util.find_spec(need_of[ending]):
            continue
        for data in b"", np.random.default_rng(3).bytes(5000):
            (tmp_path / f"odd{ending}").write_bytes(data)
            with pytest.raises(mx.MemextError, match=rf"odd\{ending}"):
                mx.open(tmp_path / f"odd{ending}")
    meta = "NDims = 3\nDimSize = 3 3 3\nElementType = MET_FLOAT\n"
    nrrd = "NRRD0004\ntype: float\ndimension: 3\nsizes: 3 3 3\nencoding: raw\nendian: little\n"
    for name, text, naming in (("a.mhd", meta + "ElementDataFile = none.raw\n", "No such file"), ("a.mhd", meta, "lacks ElementDataFile"), ("a.mhd", meta + "ElementDataFile = LIST\n", "several"),
                               ("a.mhd", meta + "HeaderSize = x\nElementDataFile = a.mhd\n", "'x'"), ("a.nhdr", nrrd + "data file: none.raw\n", "No such file"),
                               ("a.nhdr", nrrd + "byte skip: abc\ndata file: a.nhdr\n", "'abc'")):
        (tmp_path / name).write_text(text)
        with pytest.raises(mx.MemextError, match=naming):
            mx.open(tmp_path / name)
    np.save(tmp_path / "flat.npy", np.zeros((3, 4)))
    with pytest.raises(mx.MemextError, match="2 dimensions"):
        mx.open(tmp_path / "flat.npy")
    cells = tmp_path / "cells.bin"
    cells.write_bytes(bytes(64))
    for more, naming in (({"dtype": "O"}, "objects of Python"), ({"dtype": "banana"}, "banana"), ({"shape": (1, 1)}, "nz, ny, nx"), ({"shape": (1.5, 1, 1)}, "float"),
                         ({"shape": (-1, -1, 1)}, "below 0"), ({"offset": -8}, "below 0"), ({"shape": (1, 8, 9)}, "64 bytes")):
        with pytest.raises(mx.MemextError, match=naming):
            mx.open(cells, **{"dtype": "u1", "shape": (1, 1, 1), **more})
    assert mx.open(os.fsencode(cells), dtype="u1", shape=(4, 4, 4))[...].sum() == 0
    with pytest.raises(ValueError, match="without a copy"):
        mx.open(cells, dtype="u1", shape=(4, 4, 4)).__array__(copy=False)


def test_stacks_of_tiff(mx, tmp_path):
    """One page that stands for all planes, as ImageJ writes beyond 4 GiB; numbers in names without zeros before them; channels, pages and files of
    another size or type are refused, not cut, repeated or converted."""
    tifffile = need("tifffile")
    want = np.random.default_rng(14).random((12, 9, 7)).astype("f4")
    for name, more in (("whole.tif", {"imagej": True}), ("one.tif", {"imagej": True, "truncate": True}), ("shaped.tif", {"truncate": True}), ("big.tif", {"byteorder": ">"}),
                       ("tiles.tif", {"tile": (16, 16), "compression": "zlib", "photometric": "minisblack"})):
        tifffile.imwrite(tmp_path / name, want, **more)
        check_array(mx, mx.open(tmp_path / name), want)
    tifffile.imwrite(tmp_path / "channels.tif", np.zeros((4, 2, 9, 7), "u2"), imagej=True)
    with pytest.raises(mx.MemextError, match="4 dimensions"):
        mx.open(tmp_path / "channels.tif")
    for odd in (lambda a: a[:1], lambda a: a.astype("f8")):
        with tifffile.TiffWriter(tmp_path / "odd.tif") as file:
            for z in range(5):
                file.write(odd(want[z]) if z == 2 else want[z], contiguous=False, photometric="minisblack")
        with pytest.raises(mx.MemextError, match="not images of one size"):
            mx.open(tmp_path / "odd.tif")
    for z in range(12):
        tifffile.imwrite(tmp_path / f"slice-{z}.tif", want[z])
    check_array(mx, mx.open(tmp_path / "slice-*.tif"), want)
    for odd in (want[5][:1], want[5].astype("f8")):
        tifffile.imwrite(tmp_path / "slice-5.tif", odd)
        with pytest.raises(mx.MemextError, match="plane 5 has"):
            mx.open(tmp_path / "slice-*.tif")[...]


def test_hdf5_links_and_cells_that_nobody_wrote(mx, tmp_path):
    """Behind a block of the user's too; soft links and those to other files; names that begin with a slash. A dataset of which nothing was ever written
    has no cells, as the command says."""
    h5py = need("h5py")
    want = np.random.default_rng(15).random((4, 5, 6))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["u"] = 2 * want
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as file:
        file["u"] = want
        file.create_dataset("never", shape=want.shape, dtype="f8", fillvalue=7)
        file["soft"], file["far"] = h5py.SoftLink("/u"), h5py.ExternalLink("other.h5", "/u")
        file.create_dataset("text", shape=(2, 2, 2), dtype=h5py.string_dtype())
    for name, cells in (("u", want), ("/u", want), ("soft", want), ("far", 2 * want)):
        assert np.array_equal(mx.open(tmp_path / "a.h5", name), cells), name
    for name, naming in (("text", "objects of Python"), ("never", "nothing was ever written")):
        with pytest.raises(mx.MemextError, match=naming):
            mx.open(tmp_path / "a.h5", name)


def test_segy_of_several_offsets_and_of_whole_numbers(mx, tmp_path):
    segyio = need("segyio")
    cube = (np.random.default_rng(16).random((5, 6, 7)) * 2**30).astype("i4")
    segyio.tools.from_array3D(str(tmp_path / "whole.sgy"), cube, format=segyio.SegySampleFormat.SIGNED_INTEGER_4_BYTE)
    check_array(mx, mx.open(tmp_path / "whole.sgy"), cube)
    segyio.tools.from_array4D(str(tmp_path / "offsets.sgy"), np.zeros((5, 6, 2, 7), "f4"))
    with pytest.raises(mx.MemextError, match="2 offsets"):
        mx.open(tmp_path / "offsets.sgy")


def test_a_zarr_of_one_array_has_no_names(mx, tmp_path):
    zarr = need("zarr")
    zarr.save(str(tmp_path / "a.zarr"), np.zeros((3, 4, 5)))
    with pytest.raises(mx.MemextError, match="called u"):
        mx.open(tmp_path / "a.zarr", "u")


def test_chunks_larger_than_the_dram_are_refused(mx, quick_place, tmp_path):
    """A chunk is decoded as a whole: the DRAM would not be kept."""
    h5py = need("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = file.create_dataset("u", shape=(130, 256, 256), dtype="f8", chunks=(130, 256, 256))
        data[0] = 1.0
    with pytest.raises(mx.MemextError, match=r"chunks of 65.00 MiB.*64.00 MiB of DRAM"), mx.Run(u=tmp_path / "a.h5", device=quick_place, dram="64MiB") as run:
        run.advance(0)


def test_fields_from_chunked_files(mx, systems, quick_place, tmp_path):
    """A run whose fields come from HDF5 chunks and a TIFF stack, plane by plane: the bits of a run from memory; the sources are as they were."""
    h5py, tifffile = need("h5py"), need("tifffile")
    u, k = np.random.default_rng(1).random((8, 9, 10)), np.random.default_rng(2).random((8, 9, 10)).astype("f4")
    with h5py.File(tmp_path / "u.h5", "w") as file:
        file.create_dataset("u", data=u, chunks=True, compression="gzip")
    tifffile.imwrite(tmp_path / "k.tif", k)
    before = [(tmp_path / n).read_bytes() for n in ("u.h5", "k.tif")]
    with mx.Run(systems.diffusion, u=tmp_path / "u.h5", k=mx.open(tmp_path / "k.tif"), device=quick_place, dram="64MiB") as run:
        run.advance(3)
        assert run["u"][...].tobytes() == systems.diffusion.reference(3, u=u, k=k)["u"].tobytes()
    assert before == [(tmp_path / n).read_bytes() for n in ("u.h5", "k.tif")]


def test_chunks_are_decoded_once_and_ahead(mx):
    """Planes in order: every group once, the next one begun while one is used if both have room; an error comes with its planes; given up in between."""
    want = np.random.default_rng(3).random((10, 4, 4))

    class Chunks:
        shape, dtype, chunks = want.shape, want.dtype, (4, 2, 4)

        def __init__(self, broken=None):
            self.asked, self.broken = [], broken

        def __getitem__(self, key):
            self.asked.append((key[0].start, key[0].stop))
            if key[0].start == self.broken:
                raise OSError("a chunk is damaged")
            return want[key]

    source = Chunks()
    array = mx.arrays.ObjectArray(source)
    array.group_bytes = 2 * 4 * want[0].nbytes
    assert np.array_equal(array.plane(1), want[1])
    array._next[1].result(600)
    assert source.asked == [(0, 4), (4, 8)]
    assert np.array_equal(np.stack([array.plane(z) for z in range(10)]), want) and source.asked == [(0, 4), (4, 8), (8, 10)]
    array.plane(0)
    array.release()
    assert array._held is None and array._next is None and np.array_equal(array.plane(7), want[7])
    source = Chunks()
    array = mx.arrays.ObjectArray(source)
    array.group_bytes = 2 * 4 * want[0].nbytes - 1
    array.plane(1)
    assert array._next is None and source.asked == [(0, 4)]
    array = mx.arrays.ObjectArray(Chunks(broken=4))
    assert np.array_equal(array.plane(3), want[3])
    with pytest.raises(OSError, match="damaged"):
        array.plane(4)


def test_a_child_of_fork_does_not_wait_for_what_its_parent_decodes(mx):
    """Planes are being decoded ahead while the process forks: the child decodes them itself, and gives an array up."""
    want = np.random.default_rng(3).random((8, 4, 4))
    parent, begun, go_on = os.getpid(), threading.Event(), threading.Event()

    class Chunks:
        shape, dtype, chunks = want.shape, want.dtype, (4, 2, 4)

        def __getitem__(self, key):
            if key[0].start == 4 and os.getpid() == parent:
                begun.set()
                assert go_on.wait(600)
            return want[key]

    array = mx.arrays.ObjectArray(Chunks())
    try:
        assert np.array_equal(array.plane(0), want[0]) and begun.wait(600)
        for what in (lambda: np.array_equal(array.plane(5), want[5])), (lambda: array.release() is None and array._next is None):
            child = os.fork()
            if child == 0:
                try:
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.alarm(600)
                    os._exit(0 if what() else 1)
                finally:
                    os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        go_on.set()
    assert np.array_equal(array.plane(5), want[5])


IN_AND_OUT = '''
import gc, hashlib, importlib.util, pathlib, sys
import numpy as np
import memext as mx
folder, n = pathlib.Path(sys.argv[1]), 320  # 125 MiB of cells
BUDGET = 48 << 20
def status(key):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(key))
def digest(path):
    h = hashlib.sha256()
    for p in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if p.is_file():
            with open(p, "rb") as file:
                while piece := file.read(1 << 20):
                    h.update(piece)
    return h.hexdigest()
def planes():
    for z in range(n):
        yield np.full((n, n), z, "f4") + np.arange(n, dtype="f4") / 512
def npy(path):
    out = np.lib.format.open_memmap(path, "w+", "f4", (n, n, n))
    for z, plane in enumerate(planes()): out[z] = plane
def h5(path):
    import h5py
    with h5py.File(path, "w") as file:
        data = file.create_dataset("u", (n, n, n), "f4", chunks=(16, 160, 160), compression="gzip", compression_opts=1)
        for z in range(0, n, 16): data[z:z + 16] = np.stack([np.full((n, n), i, "f4") + np.arange(n, dtype="f4") / 512 for i in range(z, z + 16)])
def nc(path):
    import netCDF4
    with netCDF4.Dataset(path, "w") as file:
        for name in "zyx": file.createDimension(name, n)
        data = file.createVariable("u", "f4", ("z", "y", "x"), chunksizes=(4, 160, 160))
        for z, plane in enumerate(planes()): data[z] = plane
def zarr(path):
    import zarr
    data = zarr.open(str(path), mode="w", shape=(n, n, n), dtype="f4", chunks=(16, 160, 160))
    for z in range(0, n, 16): data[z:z + 16] = np.stack([np.full((n, n), i, "f4") + np.arange(n, dtype="f4") / 512 for i in range(z, z + 16)])
def tif(path):
    import tifffile
    with tifffile.TiffWriter(path) as file:
        for plane in planes(): file.write(plane, contiguous=True)
def sgy(path):
    import segyio
    spec = segyio.spec()
    spec.ilines, spec.xlines, spec.samples, spec.sorting, spec.format = range(n), range(n), range(n), 2, 5
    with segyio.create(str(path), spec) as file:
        for z, plane in enumerate(planes()):
            for y in range(n):
                file.header[z * n + y] = {segyio.TraceField.INLINE_3D: z, segyio.TraceField.CROSSLINE_3D: y}
                file.trace[z * n + y] = plane[y]
for ending, write, module in (("npy", npy, "numpy"), ("h5", h5, "h5py"), ("nc", nc, "netCDF4"), ("zarr", zarr, "zarr"), ("tif", tif, "tifffile"),
                              ("sgy", sgy, "segyio")):
    if importlib.util.find_spec(module) is None:
        print(ending, "without")
        continue
    path = folder / f"source.{ending}"
    write(path)
    before = digest(path)
    def measured(call):
        gc.collect()
        open("/proc/self/clear_refs", "w").write("5")
        rss = status("VmRSS")
        call()
        return (status("VmHWM") - rss) / BUDGET
    mx.open(path)[0, 0, 0]  # what libraries load when they are first used
    with mx.Run(u=path, dtype="f4", device=folder / "store", dram=BUDGET) as run:
        shares = [measured(lambda: run.advance(0))]
        assert run["u"][n - 1, 5, 256] == n - 1 + 0.5 and run["u"][3, 7, 0] == 3
        if ending in ("npy", "h5", "zarr"):
            out = folder / f"result.{ending}"
            out_options = {} if ending == "npy" else {"chunks": (16, 160, 160)}
            small = mx.save(np.zeros((2, 2, 2), "f4"), folder / f"small.{ending}")
            mx.pyramid(small, folder / f"small-coarse.{ending if ending != 'npy' else 'h5'}", overwrite=True)
            shares.append(measured(lambda: run["u"].save(out, **out_options)))
            shares.append(measured(lambda: mx.pyramid(run.store, folder / f"coarse.{ending if ending != 'npy' else 'h5'}", 3, overwrite=True)))
            assert mx.open(out)[n - 1, 5, 256] == n - 1 + 0.5
    print(ending, "same" if digest(path) == before else "CHANGED", *(f"{s:.2f}" for s in shares), flush=True)
'''


def test_files_in_and_out_within_the_budget(mx, environment, place, tmp_path):
    """125 MiB in and out of every format, 48 MiB of DRAM for each: the resident set grows by less, whatever chunks there are, and the sources are as they were."""
    need("h5py")
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("this kernel keeps no peak that can be reset: /proc/self/clear_refs")
    (tmp_path / "in_and_out.py").write_text(IN_AND_OUT)
    (place / "store").mkdir()
    done = sh(environment, tmp_path / "in_and_out.py", place)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert lines["npy"].startswith("same") and lines["h5"].startswith("same"), done.stdout
    for found in lines.values():
        if found != "without":
            what, *shares = found.split()
            assert what == "same" and all(0 <= float(s) < 1 for s in shares), done.stdout


def test_what_does_not_fit_into_dram_is_refused(mx, tmp_path, monkeypatch):
    """4 TiB that take no space: slices are read, all of it is refused with the sizes."""
    with open(tmp_path / "large.raw", "wb") as file:
        file.truncate(1 << 42)
    array = mx.open(tmp_path / "large.raw", dtype="f4", shape=(1 << 14, 1 << 13, 1 << 13))
    assert array[9000, 5, 7:9].tolist() == [0, 0]
    with pytest.raises(MemoryError, match="4.00 TiB.*DRAM") as caught:
        np.asarray(array)
    assert isinstance(caught.value, mx.MemextError)


@pytest.fixture
def finished(mx, systems, quick_place):
    """A run of two fields that has done three steps, and what they are."""
    u = np.random.default_rng(3).random((8, 9, 21))
    with mx.Run(systems.gray_scott, u=u, v=1 - u, device=quick_place, dram="64MiB", timeline=quick_place / "timeline.jsonl") as run:
        run.advance(3)
        yield run, {n: run[n][...] for n in "uv"}


def test_results_in_files(mx, finished, tmp_path):
    """Every format holds what the store holds; an existing file stays unless it is to be replaced."""
    run, want = finished
    for ending in (".npy", ".raw", ".h5", ".zarr"):
        if ending in (".h5", ".zarr"):
            need({".h5": "h5py", ".zarr": "zarr"}[ending])
        path = run["v"].save(tmp_path / f"v{ending}")
        raw = {"dtype": "f8", "shape": run["v"].shape} if ending == ".raw" else {}
        check_array(mx, mx.open(path, **raw), want["v"])
        with pytest.raises(mx.MemextError, match="there already"):
            run["u"].save(path)
        run["u"].save(path, overwrite=True)
        check_array(mx, mx.open(path, **raw), want["u"])
    with pytest.raises(mx.MemextError, match="ending"):
        run["u"].save(tmp_path / "u.txt")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["v.h5", "v.npy", "v.raw", "v.zarr"]


@pytest.mark.parametrize("shape", [(130, 130, 130), (1, 129, 5), (9, 257, 128), (700, 3, 2)])
def test_chunks_of_results_are_full(mx, tmp_path, shape):
    """Whatever the extents, a file of HDF5 has hardly more bytes than its cells; chunks are no larger than 1 MiB."""
    need("h5py")
    path = mx.save(np.ones(shape, "f4"), tmp_path / "u.h5")
    cells = 4 * math.prod(shape)
    assert cells < path.stat().st_size < 1.1 * cells + 20_000
    chunks = mx.pieces.chunks_of(mx.arrays.Array(shape, "f4"))
    assert 4 * math.prod(chunks) <= 1 << 20 and all(c <= max(n, 1) for c, n in zip(chunks, shape))


def test_results_take_the_place_of_nothing_else(mx, finished, tmp_path):
    """overwrite=True replaces one file, not a folder, the store that is read or what a link leads to; nothing else is written over at all."""
    run, _want = finished
    for folder in tmp_path / "thesis.npy", tmp_path / "thesis.zarr":
        folder.mkdir()
        (folder / "chapter").write_text("mine")
        with pytest.raises(mx.MemextError, match="is a directory"):
            run["u"].save(folder, overwrite=True)
        assert (folder / "chapter").read_text() == "mine"
    need("h5py")
    place = run.store["u"].path
    before, mine = place.read_bytes(), tmp_path / "u.xdmf"
    with pytest.raises(mx.MemextError, match="the file that is read"):
        run.store.link(place, overwrite=True)
    (tmp_path / "store.raw").symlink_to(place)
    with pytest.raises(mx.MemextError, match="the file that is read"):
        run["u"].save(tmp_path / "store.raw", overwrite=True)
    mine.write_text("mine")
    for path, match in (tmp_path / "u.h5", "there already"), (tmp_path / "v.xdmf", r"end its name with \.h5"):
        with pytest.raises(mx.MemextError, match=match):
            run.store.link(path)
    (tmp_path / "u.h5").symlink_to(mine)
    (tmp_path / "u.h5").rename(tmp_path / "link.h5")
    run.store.link(tmp_path / "link.h5", overwrite=True)
    assert place.read_bytes() == before and mine.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.h5", "link.xdmf", "store.raw", "thesis.npy", "thesis.zarr", "u.xdmf"]


@pytest.mark.parametrize("ending", [".npy", ".h5", ".zarr"])
def test_exports_over_others(mx, tmp_path, monkeypatch, ending):
    """What stands there stays until what replaces it is whole and has its name, also where an interrupt comes between; several threads and what appears
    meanwhile; nothing else is left."""
    if ending != ".npy":
        need({".h5": "h5py", ".zarr": "zarr"}[ending])
    old, new, path = np.zeros((3, 4, 5)), np.ones((30, 40, 50)), tmp_path / f"u{ending}"
    mx.save(old, path)

    def interrupted(*_words):
        raise KeyboardInterrupt
    rename = os.rename
    monkeypatch.setattr(os, "replace", interrupted)
    monkeypatch.setattr(os, "rename", lambda a, b: rename(a, b) if b != path or "-1." in a.name else interrupted())
    monkeypatch.setattr(mx.replacing, "_numbers", iter([0, 1]))
    with pytest.raises(KeyboardInterrupt):
        mx.save(new, path, overwrite=True)
    monkeypatch.undo()
    assert np.array_equal(mx.open(path), old) and [p.name for p in tmp_path.iterdir()] == [path.name]
    threads = [threading.Thread(target=mx.save, args=(new, path), kwargs={"overwrite": True}) for _ in range(5)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert np.array_equal(mx.open(path), new) and [p.name for p in tmp_path.iterdir()] == [path.name]
    late = tmp_path / f"late{ending}"
    monkeypatch.setattr(mx.saving, "sync", lambda _path: late.write_text("mine"))
    with pytest.raises(mx.MemextError, match="is there now"):
        mx.save(new, late)
    assert late.read_text() == "mine" and len(list(tmp_path.iterdir())) == 2
    monkeypatch.undo()
    mx.save(old, late, overwrite=True)
    assert np.array_equal(mx.open(late), old)
    if ending != ".zarr":
        with pytest.raises(mx.MemextError, match="are free there") as caught:
            mx.save(np.broadcast_to(1.0, (1 << 14, 1 << 15, 1 << 15)), tmp_path / f"huge{ending}")
        assert caught.value.errorname == "ENOSPC" and len(list(tmp_path.iterdir())) == 2


def test_arrays_of_no_cells_and_of_no_numbers(mx, tmp_path):
    for shape in (0, 3, 4), (3, 0, 4), (3, 4, 0):
        for ending in (".npy", ".raw", ".h5", ".zarr"):
            if ending in (".h5", ".zarr"):
                need({".h5": "h5py", ".zarr": "zarr"}[ending])
            path = mx.save(np.zeros(shape), tmp_path / f"none{ending}", overwrite=True)
            raw = {"dtype": "f8", "shape": shape} if ending == ".raw" else {}
            assert mx.open(path, **raw)[...].shape == shape
            mx.open(path, **raw)._repr_html_()
    for cells in np.array([[[{}]]]), np.zeros((1, 1, 1), "S3"), np.zeros((1, 1, 1), "M8[s]"), np.zeros((1, 1, 1), [("a", "f4")]):
        for ending in (".npy", ".raw", ".h5", ".zarr"):
            with pytest.raises(mx.MemextError, match="numbers"):
                mx.save(cells, tmp_path / f"odd{ending}")
    need("matplotlib")
    most = np.finfo(float).max
    for cells in (np.zeros((3, 4, 5)) > 1, np.zeros((3, 4, 5), "f2"), np.full((3, 4, 5), 1e300), np.full((3, 4, 5), most), np.full((3, 4, 5), np.nan),
                  np.full((3, 4, 5), 5e-324), 1e300 + 1e285 * np.arange(60).reshape(3, 4, 5)):  # fmt: skip
        assert mx.view(cells, tmp_path / "a.png").stat().st_size > 5000
    for cells in np.zeros((0, 4, 5)), np.zeros((3, 4, 5), "c8"):
        with pytest.raises(mx.MemextError, match="real numbers"):
            mx.view(cells, tmp_path / "b.png")
    truth = np.random.default_rng(17).random((5, 6, 7)) > 0.5
    for ending in ".h5", ".zarr":
        levels = mx.pyramid(truth, tmp_path / f"truth{ending}")["array"]
        assert np.array_equal(levels[1], np.rint(halved(truth.astype("f4"))).astype("u1"))


def test_results_where_they_lie(mx, finished, tmp_path):
    """The linked HDF5 file is small and shows the fields, without padding, with or without the frame, to h5py and to HDF5's own tools."""
    h5py = need("h5py")
    run, want = finished
    for frame in (False, True):
        path = run.store.link(tmp_path / "link.h5", frame=frame, overwrite=True)
        assert path.stat().st_size < 20000
        with h5py.File(path) as file:
            for n in "uv":
                assert np.array_equal(file[n][:], want[n] if frame else want[n][1:-1, 1:-1, 1:-1]) and file[n].attrs["step"] == 3
    text = (tmp_path / "link.xdmf").read_text()
    assert "link.h5:/u" in text and 'Dimensions="8 9 21"' in text


@pytest.mark.parametrize("ending", [".npy", ".h5", ".zarr"])
def test_what_killed_saves_leave(mx, tmp_path, ending):
    """The next save of the same file removes it; what living processes write, what was moved away, and other files stay."""
    need({".npy": "numpy", ".h5": "h5py", ".zarr": "zarr"}[ending])
    path = tmp_path / f"u{ending}"
    dead = subprocess.Popen(["true"])
    dead.wait()
    beside = mx.replacing.name_beside(path).name
    own, other = re.sub(rf"-{os.getpid()}-\d+", f"-{dead.pid}-7", beside), re.sub(r"memext-[0-9a-f]+", "memext-00000000", beside)
    names = [own, beside, other, own.replace("memext-", "memext-former-"), own.replace(".u.", ".v."), own + "x"]
    for name in names:
        (tmp_path / name).mkdir() if ending == ".zarr" else (tmp_path / name).write_text("left")
    assert own != beside and len(set(names)) == 6
    for _ in range(2):
        mx.save(np.ones((3, 4, 5)), path, overwrite=True)
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*names[1:], path.name])


def test_xdmf_files(mx, finished, tmp_path):
    """Beside links and pyramids: well-formed XML whatever the file is called, with a time, which is the step (pyvista asks for one), and items that
    name data of their type and shape. pyvista reads them, where it is there (MEMEXT_PYVISTA_PYTHON)."""
    h5py = need("h5py")
    run, want = finished
    run.store.link(tmp_path / "a & <b>.h5")
    run.store.pyramid(tmp_path / "p.h5", 1)
    for dtype in "u1", "i1", "u2", "i8", "f4":
        mx.pyramid(np.ones((4, 5, 6), dtype), tmp_path / f"{dtype}.h5", 1)
    names = {"u1": ("UChar", 1), "i1": ("Char", 1), "u2": ("UInt", 2), "i8": ("Int", 8), "f4": ("Float", 4), "f8": ("Float", 8)}
    drawn = sorted(tmp_path.glob("*.xdmf"))
    assert len(drawn) == 7
    for path in drawn:
        grid = xml.etree.ElementTree.parse(path).getroot().find("Domain/Grid")
        assert grid.find("Time").get("Value") == ("3" if path.name[0] in "ap" else "0")
        for item in grid.findall("Attribute/DataItem"):
            file, dataset = item.text.split(":/")
            with h5py.File(path.parent / file) as whole:
                cells = whole[dataset]
                assert (item.get("NumberType"), int(item.get("Precision"))) == names[cells.dtype.str[1:]]
                assert tuple(map(int, item.get("Dimensions").split())) == cells.shape
    python = os.environ.get("MEMEXT_PYVISTA_PYTHON")
    if not python:
        pytest.skip("pyvista is not there: pip install pyvista into an environment whose python MEMEXT_PYVISTA_PYTHON names")
    done = sh(python, "-c", "import sys, pyvista\nfor path in sys.argv[1:]:\n    m = pyvista.read(path); print(m.dimensions, m.array_names, float(m['u'].sum()))",
              tmp_path / "a & <b>.xdmf", tmp_path / "p-2x.xdmf")
    u = [want["u"][1:-1, 1:-1, 1:-1], np.asarray(mx.open(tmp_path / "p.h5", "u/2x"))]
    read = [ast.literal_eval(f"[{line.replace(') [', '), [').replace('] ', '], ')}]") for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(read) == 2, done.stdout + done.stderr
    for (shape, fields, total), cells in zip(read, u):
        assert shape == cells.shape[::-1] and fields == ["u", "v"] and math.isclose(total, cells.sum(), rel_tol=1e-6)


def halved(a):
    """Means of 2 x 2 x 2 cells; where one is alone at the end, of it alone."""
    a = np.pad(a, [(0, n % 2) for n in a.shape], mode="edge")
    for axis in (2, 1, 0):
        a = (np.take(a, range(0, a.shape[axis], 2), axis) + np.take(a, range(1, a.shape[axis], 2), axis)) * a.dtype.type(0.5)
    return a


@pytest.mark.parametrize("ending", [".h5", ".zarr"])
def test_pyramids(mx, finished, tmp_path, ending):
    """2, 4 and 8 times smaller: the means, to the bit, of the interior and of what is in a file; whole numbers are rounded once; nothing is written over."""
    need({".h5": "h5py", ".zarr": "zarr"}[ending])
    run, want = finished
    found = run.store.pyramid(tmp_path / f"p{ending}")
    for n in "uv":
        expected = [want[n][1:-1, 1:-1, 1:-1]]
        while len(expected) < 4:
            expected.append(halved(expected[-1]))
        assert [a.shape for a in found[n]] == [(6, 7, 19), (3, 4, 10), (2, 2, 5), (1, 1, 3)]
        assert all(a[...].tobytes() == e.tobytes() for a, e in zip(found[n], expected))
    with pytest.raises(mx.MemextError, match="there already"):
        mx.pyramid(run.store, tmp_path / f"p{ending}")
    image = np.random.default_rng(3).integers(0, 256, (9, 8, 33)).astype("u1")
    np.save(tmp_path / "image.npy", image)
    levels = mx.pyramid(tmp_path / "image.npy", tmp_path / f"image{ending}", 2)["image"]
    half = halved(image.astype("f4"))
    assert np.array_equal(levels[1], np.rint(half).astype("u1")) and np.array_equal(levels[2], np.rint(halved(half)).astype("u1"))
    with pytest.raises(mx.MemextError, match="ending"):
        run["u"].pyramid(tmp_path / "p.npy")
    if ending == ".zarr":
        of = json.loads((tmp_path / "p.zarr/u/.zattrs").read_text())["multiscales"][0]
        assert [d["path"] for d in of["datasets"]] == ["2x", "4x", "8x"] and of["datasets"][1]["coordinateTransformations"] == [
            {"type": "scale", "scale": [4.0] * 3}, {"type": "translation", "translation": [1.5] * 3}]
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]


OME_ZARR = '''
import json
import sys
import numpy
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader
nodes = list(Reader(parse_url(sys.argv[1], mode="r"))())
assert len(nodes) == 1, nodes
said = nodes[0].metadata
numpy.savez(sys.argv[2], *(numpy.asarray(level) for level in nodes[0].data))
print(json.dumps({"name": said["name"], "axes": [a["name"] for a in said["axes"]], "types": [a["type"] for a in said["axes"]],
                  "transformations": said["coordinateTransformations"]}))
'''


def test_pyramids_in_ome_zarr(finished, tmp_path):
    """ome-zarr-py, by which napari's plugin opens such files, takes a field's group for one image of three levels: axes, places and numbers."""
    need("zarr")
    python = os.environ.get("MEMEXT_OME_ZARR_PYTHON", sys.executable)
    (tmp_path / "read.py").write_text(OME_ZARR)
    if sh(python, "-c", "import ome_zarr.reader").returncode != 0:
        pytest.skip("ome-zarr is not installed: pip install ome-zarr into an environment whose python MEMEXT_OME_ZARR_PYTHON names")
    run, _ = finished
    levels = run.store.pyramid(tmp_path / "p.zarr")
    for n in "uv":
        done = sh(python, tmp_path / "read.py", tmp_path / "p.zarr" / n, tmp_path / f"{n}.npz")
        assert done.returncode == 0, done.stdout + done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
        assert (said["name"], said["axes"], said["types"]) == (n, ["z", "y", "x"], ["space"] * 3)
        with np.load(tmp_path / f"{n}.npz") as found:
            assert len(found.files) == 3
            for k in (1, 2, 3):
                assert np.array_equal(found[f"arr_{k - 1}"], levels[n][k][...])
                assert said["transformations"][k - 1] == [{"type": "scale", "scale": [2.0**k] * 3}, {"type": "translation", "translation": [(2**k - 1) / 2] * 3}]


PARAVIEW = '''
import pathlib
import sys
import numpy
from paraview import servermanager
from paraview.simple import GetActiveViewOrCreate, OpenDataFile, Render, SaveScreenshot, Show, UpdatePipeline
from vtkmodules.util.numpy_support import vtk_to_numpy
out, grids = sys.argv[1], {}
for path in sys.argv[2:]:
    reader, name = OpenDataFile(path), pathlib.Path(path).stem
    UpdatePipeline(proxy=reader)
    grid = servermanager.Fetch(reader)
    while not hasattr(grid, "GetDimensions"):
        grid = grid.GetPiece(0) if hasattr(grid, "GetPiece") else grid.GetBlock(0)
    for i in range(grid.GetPointData().GetNumberOfArrays()):
        array = grid.GetPointData().GetArray(i)
        grids[f"{name}/{array.GetName()}"] = vtk_to_numpy(array).reshape(grid.GetDimensions()[::-1])
    grids[f"{name}/where"] = numpy.array([*grid.GetSpacing(), *grid.GetOrigin()])
numpy.savez(out, **grids)
print("read", flush=True)
view = GetActiveViewOrCreate("RenderView")
view.ViewSize = [320, 240]
shown = Show(reader, view)
shown.SetRepresentationType("Surface")
Render(view)
SaveScreenshot(out + ".png", view)
print("shown", flush=True)
'''


@pytest.fixture
def display():
    """For ParaView and napari, a display that nobody sees. It says its number when it is ready."""
    if os.environ.get("DISPLAY"):
        yield os.environ["DISPLAY"]
        return
    if shutil.which("Xvfb") is None:
        pytest.skip("ParaView and napari draw on a display, and there is none: tests/run.sh --paraview installs packages-paraview.txt, which has xvfb")
    server = subprocess.Popen(["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        number = server.stdout.readline().strip()
        if not number:
            pytest.skip("Xvfb cannot be started here")
        yield f":{number}"
    finally:
        server.terminate()
        server.wait()


@pytest.mark.skipif(shutil.which("pvpython") is None, reason="pvpython is not installed: tests/run.sh --paraview installs packages-paraview.txt")
def test_results_in_paraview(mx, finished, display, tmp_path):
    """ParaView, off screen, opens the file that shows the store where it lies and the pyramid: the numbers of h5py, at their places, and a picture."""
    need("h5py")
    run, want = finished
    run.store.link(tmp_path / "u.h5")
    levels = run.store.pyramid(tmp_path / "p.h5")
    (tmp_path / "look.py").write_text(PARAVIEW)
    done = sh("pvpython", "--force-offscreen-rendering", tmp_path / "look.py", tmp_path / "seen",
              *(tmp_path / f"p-{k}x.xdmf" for k in (2, 4, 8)), tmp_path / "u.xdmf", cwd=tmp_path, env={**os.environ, "DISPLAY": display})
    assert "read\n" in done.stdout, done.stdout + done.stderr
    with np.load(tmp_path / "seen.npz") as seen:
        for n in "uv":
            assert np.array_equal(seen[f"u/{n}"], want[n][1:-1, 1:-1, 1:-1])
            for k in (1, 2, 3):
                assert np.array_equal(seen[f"p-{2**k}x/{n}"], levels[n][k]), (n, k)
                assert seen[f"p-{2**k}x/where"].tolist() == [2**k] * 3 + [(2**k - 1) / 2] * 3
    assert "shown\n" in done.stdout, done.stdout + done.stderr
    import matplotlib.image
    picture = matplotlib.image.imread(tmp_path / "seen.png")
    assert picture.shape[:2] == (240, 320) and picture.std() > 0


NAPARI = """
import sys
import napari
import numpy as np
sys.path.append(sys.argv[1])
import memext as mx
store = mx.open(sys.argv[2])
whole = store["u"][1:-1, 1:-1, 1:-1]
levels = mx.pyramid(store, sys.argv[3])["u"]
viewer = napari.Viewer(show=False)
layer = viewer.add_image(levels, multiscale=True, name="u")
assert layer.multiscale and layer.level_shapes.tolist() == [list(level.shape) for level in levels]
for z in range(len(whole)):
    viewer.dims.set_point(0, z)
    assert layer.get_value((z, 2, 3))[1] == np.asarray(levels[layer.data_level])[(z, 2, 3) if layer.data_level == 0 else tuple(i >> layer.data_level for i in (z, 2, 3))]
assert np.array_equal(layer.data[0][3], whole[3])
shot = viewer.screenshot(canvas_only=True, flash=False)
viewer.dims.ndisplay = 3
assert layer.data_level == len(levels) - 1
print("seen", shot.std() > 0)
viewer.close()
"""


@pytest.mark.skipif("MEMEXT_NAPARI_PYTHON" not in os.environ, reason="MEMEXT_NAPARI_PYTHON names no Python that has napari (0.9 GB), PyQt5, cffi and zarr")
def test_pyramids_in_napari(mx, finished, display, tmp_path):
    """napari shows the levels as one image, with the numbers of the store, and takes the coarsest in three dimensions."""
    (tmp_path / "seen.py").write_text(NAPARI)
    run, _want = finished
    done = sh(os.environ["MEMEXT_NAPARI_PYTHON"], tmp_path / "seen.py", pathlib.Path(mx.__file__).parents[1], run.store.path, tmp_path / "p.zarr",
              env={**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb", "PYTHONPATH": ""})
    assert done.returncode == 0 and "seen True\n" in done.stdout, done.stdout + done.stderr


def test_a_store_that_went_on_is_not_read_by_mistake(mx, systems, quick_place):
    u = np.ones((6, 6, 6))
    with mx.Run(systems.gray_scott, u=u, v=u, device=quick_place, dram="64MiB") as run:
        run.advance(1)
        old = run["u"]
        assert old[2, 2, 2] != 1
        run.advance(2)
        with pytest.raises(mx.MemextError, match="gone on") as caught:
            old[0]
        assert caught.value.errorname == "ESTALE"
        store = mx.open(quick_place)
        assert store.step == 2 and store.fields == ["u", "v"] and store.frame == 1 and "u" in store and len(store) == 2
        with pytest.raises(KeyError, match="it has u, v"):
            store["w"]


def test_tables(mx, finished, quick_place):
    need("pandas")
    run, _ = finished
    row = run.report.frame()
    assert len(row) == 1 and row["plan.bt"][0] == run.report["plan"]["bt"]
    samples, events = mx.timeline(quick_place / "timeline.jsonl")
    assert len(samples) >= 1 and {"advance", "load", "store"} <= set(events["what"]) and (events["end_s"] >= events["begin_s"]).all()


def test_pictures(mx, environment, build, finished, quick_place, tmp_path):
    """Notebooks get a plan and three slices; the command writes a PNG."""
    plt = need("matplotlib.pyplot")
    run, want = finished
    text = run._repr_html_()
    assert text.count("data:image/png;base64,") == 3 and "plan" in text and f"{want['u'][:, 4].max():.3g}"[:3] in text + "0.9"
    done = sh(environment, "-m", "memext", "view", quick_place, "--dataset", "v", "-o", tmp_path / "u.png")
    assert done.returncode == 0, done.stderr
    assert plt.imread(tmp_path / "u.png").shape[:2] == (400, 1600)
    path = f"{environment.parent}:{os.environ['PATH']}"
    done = sh(build / "memext", "view", quick_place, "--dataset", "u", "-o", tmp_path / "u2.png", env={**os.environ, "PATH": path})
    assert done.returncode == 0 and (tmp_path / "u2.png").stat().st_size > 1000, done.stderr
    absent = sh(build / "memext", "view", quick_place, env={**os.environ, "PATH": "/nonexistent"})
    assert absent.returncode == 2 and "Python package" in absent.stderr
    with mx.Run(u="random", shape=(6, 7, 8), device=tmp_path, snapshot=f"2:{tmp_path / 'snaps'}", dram="64MiB") as other:
        other.advance(5)
        newest, = mx.looking.newest_snapshots(tmp_path / "snaps")
        assert newest.name == "u-000004.npy" and newest.shape == (6, 7, 8)
    done = sh(environment, "-m", "memext", "view", tmp_path / "snaps", "-o", tmp_path / "snaps.png")
    assert done.returncode == 0 and plt.imread(tmp_path / "snaps.png").shape[:2] == (400, 1600), done.stderr
    (tmp_path / "snaps.png").unlink()
    refused = sh(environment, "-m", "memext", "view", tmp_path)
    assert refused.returncode == 2 and "store" in refused.stderr and "Traceback" not in refused.stderr


def test_what_is_no_file_is_refused_at_once(mx, tmp_path):
    """Nobody waits for the other end of a pipe, and a directory that is missing does not become a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "a.nhdr").write_text("NRRD0004\ntype: double\ndimension: 3\nsizes: 4 4 4\nencoding: raw\nendian: little\nline skip: 2\ndata file: pipe\n")
    calls = {"open": lambda: mx.open(pipe), "info": lambda: mx.info(pipe), "timeline": lambda: mx.timeline(pipe), "header": lambda: mx.open(tmp_path / "a.nhdr"),
             "view": lambda: mx.view(np.zeros((4, 4, 4)), pipe), "run": lambda: mx.Run(u=pipe, device=tmp_path), "raw": lambda: mx.open(pipe, dtype="f8", shape=(4, 4, 4)),
             "device": lambda: mx.Run(u="random", shape=(4, 4, 4), device=pipe, dram="64MiB").advance(1),
             "absent": lambda: mx.Run(u="random", shape=(4, 4, 4), device=tmp_path / "absent", dram="64MiB").advance(1)}
    for name, call in calls.items():
        with pytest.raises(mx.MemextError, match="pipe|absent|bytes"):
            call()
    assert sorted(os.listdir(tmp_path)) == ["a.nhdr", "pipe"]


HANGS = """
import memext as mx, sys
@mx.kernel
def heat(u): return u + 0.05 * (u[1, 0, 0] - u)
getattr(mx.Run(heat, u="random", shape=(4, 4, 4), device=sys.argv[2], dram="64MiB"), sys.argv[1])(1)
"""


def test_ctrl_c_ends_what_still_prepares(environment, tmp_path):
    """A compiler that never ends stands for whatever a run can wait for: KeyboardInterrupt, as in any program, and nothing in the place."""
    (tmp_path / "cc").write_text('#!/bin/sh\ntouch "$STARTED"\nexec tail --pid=$PPID -f /dev/null\n')
    (tmp_path / "cc").chmod(0o755)
    (tmp_path / "place").mkdir()
    (tmp_path / "hangs.py").write_text(HANGS)
    started = {}
    for verb in ("advance", "plan"):
        own = {**os.environ, "CC": str(tmp_path / "cc"), "XDG_CACHE_HOME": str(tmp_path / f"cache-{verb}"), "STARTED": str(tmp_path / verb)}
        started[verb] = subprocess.Popen([str(environment), str(tmp_path / "hangs.py"), verb, str(tmp_path / "place")], env=own, stderr=subprocess.PIPE, text=True)
    for verb, process in started.items():
        wait_until((tmp_path / verb).exists, "the compiler", process)
        process.send_signal(signal.SIGINT)
    for verb, process in started.items():
        _, said = process.communicate(timeout=600)
        assert process.returncode == -signal.SIGINT and "KeyboardInterrupt" in said, (verb, process.returncode, said)
    assert os.listdir(tmp_path / "place") == []


@pytest.mark.parametrize("how", [">/dev/full", ">&-"])
def test_a_standard_output_that_cannot_be_written(environment, how):
    """python -m memext ends as the command does."""
    done = sh("sh", "-c", f'"$0" -m memext info {how}', environment)
    assert done.returncode == 3 and done.stderr.startswith("memext: the standard output cannot be written"), done


@pytest.mark.parametrize("path, bytes_a_cell", [  # two Buffers of the state, and what is only read
    ("python/examples/effective_diffusivity.py", 2 * 4 + 1), ("examples/antenna.py", 6 * 4 + 2), ("examples/rock_flow.py", 2 * 19 * 4 + 1),
    ("systems/applications/seismic_shot.py", 2 * 4 + 3)])
def test_examples_are_larger_than_the_dram_they_get(path, bytes_a_cell):
    """With what they take if nothing is said: at least 3 times; each is in the list of examples and leaves a picture."""
    text = (ROOT / path).read_text()
    if found := re.search(r"common.parser\(.*?\[(\d+), (\d+), (\d+)\], \"(\d+)MiB\"", text, re.S):
        *n, dram = map(int, found.groups())
    else:
        n = 3 * [int(re.search(r'"--cells", type=int, default=(\d+)', text).group(1))]
        dram = int(re.search(r'"--dram", default="(\d+)MiB"', text).group(1))
    assert math.prod(n) * bytes_a_cell > 3 * dram * 2**20
    assert "--picture" in text and os.path.relpath(ROOT / path, ROOT / "examples") in (ROOT / "examples/README.md").read_text()


@pytest.mark.parametrize("name, words, said", [
    ("antenna", ["--cells", 64, "--wave", 12, "--picture", "antenna.png"], r"within 0\.0\d+ of the thin half-wave dipole's"),
    ("rock_flow", ["--check", "--steps", 2000], r"0\.\d+% apart"), ("rock_flow", ["--cells", 16, "--steps", 100, "--picture", "flow.png"], r"permeability 0\.\d*[1-9]")])
def test_the_other_examples(mx, environment, place, name, words, said):
    """The antenna's pattern and the flow between plates are those of their formulas; the rock lets something through; pictures."""
    need("matplotlib"), need("scipy")
    done = sh(environment, ROOT / "examples" / f"{name}.py", "--device", ".", "--dram", "64MiB", *words, cwd=place)
    assert done.returncode == 0 and re.search(said, done.stdout), done.stdout + done.stderr
    assert [p.suffix for p in place.iterdir()] == [".png"] * ("--picture" in words)


def test_the_example(mx, environment, place):
    """The effective diffusivity of a made-up rock: between nothing and the porosity, and a picture."""
    need("matplotlib")
    done = sh(environment, EXAMPLES / "effective_diffusivity.py", "--cells", 32, "--device", place, "--dram", "64MiB", "--picture", place / "rock.png")
    assert done.returncode == 0, done.stderr
    porosity, diffusivity = map(float, re.search(r"porosity ([\d.]+), effective diffusivity ([\d.]+)", done.stdout).groups())
    assert 0 < diffusivity < porosity and (place / "rock.png").stat().st_size > 10000


