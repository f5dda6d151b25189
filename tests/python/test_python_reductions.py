# SPDX-License-Identifier: BSD-3-Clause
"""Reductions and criteria of the Python package."""
import functools
import math
import warnings

import numpy as np
import pytest
from package import cache, environment, load, mx  # noqa: F401 (fixtures)


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
    with pytest.raises(mx.KernelError, match="reads neighbours 2 cells away"):
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
    with pytest.raises(mx.MemextError, match="give 'below' or 'above'"):
        mx.Run(module.dying, u=u, reductions=[module.flux], until={"flux-spread": {"floor": 1}}, **common).advance(1)


def first(u): return u  # noqa: E704
def second(eta): return eta  # noqa: E704


def test_reductions_of_staggered_kernels(mx, quick_place):
    """Both arrays between steps; along with the steps those of the fields that come first, and the others are refused with the way out."""
    def momentum(u, eta):
        return u.old - 0.2 * (eta[1, 0, 0] - eta)

    def continuity(eta, u):
        return eta.old - 0.2 * (u - u[-1, 0, 0])

    pair, along, apart = mx.staggered(momentum, continuity), mx.reduce(first), mx.reduce(second)
    given = {"u": "random", "eta": "random", "shape": (6, 7, 8), "device": quick_place, "dram": "64MiB"}
    with mx.Run(pair, **given, reductions=[along], check=2) as run:
        run.advance(4)
        assert run.report["norms"][-1]["reductions"]["first"]["sum"] > 0
        for reduction, name in ((along, "u"), (apart, "eta")):
            assert run.reduce(reduction).total == pytest.approx(run[name][1:-1, 1:-1, 1:-1].sum())
    with pytest.raises(mx.KernelError, match=r"second reads eta\. .* computes, u: leave it out of reductions=, and call run.reduce\(second\) between steps"):
        mx.Run(pair, **given, reductions=[apart])
