# SPDX-License-Identifier: BSD-3-Clause
"""The Python package, installed into a virtual environment of its own against the library that was built, and what its tests share."""
import ast
import importlib.util
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, made_once

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
def cache(tmp_path_factory, own_cache):
    """One for all files of tests in this process."""
    return own_cache(tmp_path_factory.getbasetemp() / "package-cache")


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


def arrays(names, shape, dtype, seed=3, low=0.0):
    rng = np.random.default_rng(seed)
    return {n: (low + rng.random(shape) * (1 - low)).astype(dtype) for n in names.split()}


def star7(u, steps):
    for _ in range(steps):
        new = u.copy()
        s = u[1:-1, 1:-1, 1:-1]
        around = [u[1:-1, 1:-1, :-2], u[1:-1, 1:-1, 2:], u[1:-1, :-2, 1:-1], u[1:-1, 2:, 1:-1], u[:-2, 1:-1, 1:-1], u[2:, 1:-1, 1:-1]]
        new[1:-1, 1:-1, 1:-1] = 0.4 * s + 0.1 * sum(around)
        u = new
    return u


def function_of(folder, program):
    """relax, without what stands around it."""
    tree = next(n for n in ast.parse(program).body if isinstance(n, ast.FunctionDef) and n.name == "relax")
    tree.decorator_list = []
    (folder / "relax_alone.py").write_text("import memext as mx\n" + ast.unparse(tree) + "\n")
    return load(folder / "relax_alone.py").relax


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


KEYS = [np.s_[...], np.s_[3], np.s_[-1, :, 2], np.s_[1:5:2, ::-1, 3:4], np.s_[::-2, 1, ::3], np.s_[2:2], np.s_[..., -2:], np.s_[4, 3, 2], np.s_[:, 6:1:-2]]


def check_array(mx, array, want):
    assert array.shape == want.shape and array.dtype.newbyteorder("=") == want.dtype.newbyteorder("=") and array.ndim == 3
    for key in KEYS:
        assert np.array_equal(array[key], want[key]), key
    assert np.array_equal(np.asarray(array), want) and np.array_equal(np.stack(list(array)), want)
    for bad in (np.s_[99], np.s_[0, 0, 0, 0], np.s_[[1, 2]], None, 1.5, np.float64(1), True, np.bool_(False), (..., ...), "x"):
        with pytest.raises(IndexError):
            array[bad]


@pytest.fixture
def finished(mx, systems, quick_place):
    """A run of two fields that has done three steps, and what they are."""
    u = np.random.default_rng(3).random((8, 9, 21))
    with mx.Run(systems.gray_scott, u=u, v=1 - u, device=quick_place, dram="64MiB", timeline=quick_place / "timeline.jsonl") as run:
        run.advance(3)
        yield run, {n: run[n][...] for n in "uv"}


def halved(a):
    """Means of 2 x 2 x 2 cells; where one is alone at the end, of it alone."""
    a = np.pad(a, [(0, n % 2) for n in a.shape], mode="edge")
    for axis in (2, 1, 0):
        a = (np.take(a, range(0, a.shape[axis], 2), axis) + np.take(a, range(1, a.shape[axis], 2), axis)) * a.dtype.type(0.5)
    return a
