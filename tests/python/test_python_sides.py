# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F811 - fixtures of other files
"""Sides of the Python package."""
import numpy as np
import pytest
from drawn_problems import framed
from package import cache, environment, mx  # noqa: F401 - fixtures

KINDS = {"u": [("edge", "edge"), ("fixed", "fixed"), ("mirror", "mirror")], "v": [("fixed", "fixed"), ("fixed", "mirror-node"), ("odd", "odd-node")]}


@pytest.mark.parametrize("side", [
    {"z": "mirror", "v:z": ("odd", "odd-node"), "u:x": "edge", "v:y": "fixed,mirror-node"},
    {"v": {"z": ("odd", "odd-node"), "y": ["fixed", "mirror-node"]}, "u": {"x": "edge"}, "z": "mirror"},
    ["v:y=fixed,mirror-node", "u:x=edge", "z=mirror", "v:z=odd,odd-node"],
])
def test_sides_of_fields(mx, side):
    """Run takes sides by axis, by field and axis, by field, and as words: the cells of numpy, frames included."""
    def cell(u, v):
        return 0.5 * u + 0.25 * (u[0, 0, -1] - v[1, 0, 0]), 0.5 * v + 0.125 * (u[0, -1, 0] + v[0, 1, 1])

    rng = np.random.default_rng(5)
    u, v = rng.random((8, 7, 6)), rng.random((8, 7, 6))
    with mx.Run(mx.kernel(cell), backend="dram", side=side, u=u, v=v, keep=True) as run:
        run.advance(3)
        got = {name: np.array(run[name]) for name in "uv"}
    i = slice(1, -1)
    u, v = framed(u, 1, KINDS["u"]), framed(v, 1, KINDS["v"])
    for _ in range(3):
        a, b = u.copy(), v.copy()
        a[i, i, i] = 0.5 * u[i, i, i] + 0.25 * (u[:-2, i, i] - v[i, i, 2:])
        b[i, i, i] = 0.5 * v[i, i, i] + 0.125 * (u[i, :-2, i] + v[2:, 2:, i])
        u, v = framed(a, 1, KINDS["u"]), framed(b, 1, KINDS["v"])
    for name, wanted in (("u", u), ("v", v)):
        assert np.array_equal(got[name], wanted[i, i, i] if got[name].shape == (6, 5, 4) else wanted), name


def test_sides_that_are_refused(mx):
    def cell(u, v):
        return 0.5 * u, 0.5 * v

    grid = np.ones((5, 5, 5))
    for side, naming in (({"w:z": "odd"}, "u, v"), ({"u": {"z": "odd"}, "u:z": "edge"}, "given twice"), ({"u:z": "periodic"}, "for all fields or none")):
        with pytest.raises(mx.MemextError, match=naming):
            mx.Run(mx.kernel(cell), backend="dram", side=side, u=grid, v=grid).advance(1)
