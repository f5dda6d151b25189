# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F811 - fixtures of other files
"""Whole numbers that no double has: users' numbers come to cells of 64 bits as they are, or are refused with the value, the limit and the way out."""
import importlib.util
import math

import numpy as np
import pytest
from package import cache, environment, mx  # noqa: F401 (fixtures)
from test_accel import fake_cuda, no_settings, use, works  # noqa: F401 (fixtures)

KERNEL = """#define MX_NAME "wide"
#define MX_RADIUS 1
#define MX_STATE(F) F(i, int64_t) F(n, uint64_t)
#include <memext/cell.h>
MX_CELL
    SET(i, AT(i, 0, 0, 0));
    SET(n, AT(n, 0, 0, 0));
MX_END
"""
ODD = 2**53 + 1  # between two doubles
BOUNDS = {"i": (-2**63, 2**63 - 1), "n": (0, 2**64 - 1)}


@pytest.fixture
def words(quick_place):
    (quick_place / "wide.c").write_text(KERNEL)
    rng = np.random.default_rng(3)
    cells = {"i": rng.integers(-2**63, 2**63 - 1, (5, 6, 7)), "n": rng.integers(0, 2**64 - 1, (5, 6, 7), dtype="u8")}
    for name, values in cells.items():
        np.save(quick_place / f"{name}.npy", values)
    out = [w for name in cells for w in ("-o", f"{name}={quick_place}/{name}.out.npy")]
    return cells, ["--kernel", quick_place / "wide.c", *(w for name in cells for w in ("--input", f"{name}={quick_place}/{name}.npy")), "--dram", "64MiB", "--overwrite", *out]


def padded(values, number):
    return np.pad(values.astype(object), 1, constant_values=number).astype(values.dtype)


def test_frames_are_exact(memext, quick_place, words):
    cells, run = words
    for numbers in ({"i": -2**63, "n": 2**64 - 1}, {"i": ODD, "n": ODD}, {"i": 2**63 - 1, "n": 0}, {"i": -ODD, "n": 2**63 + 1}):
        frames = [w for name, number in numbers.items() for w in ("--frame", f"{name}={number}")]
        for how in (["--backend", "dram"], ["-d", quick_place, "--force"], ["-d", quick_place, "--force", "--no-fuse"]):
            memext.run(*run, *frames, "-t", 2, *how)
            for name, number in numbers.items():
                assert np.load(quick_place / f"{name}.out.npy").tobytes() == padded(cells[name], number).tobytes(), (name, number, how)
    for word, naming in ((f"i={2**63}", [str(2**63), "i64", str(2**63 - 1)]), ("n=-1", ["-1", "u64", str(2**64 - 1)]), (f"n={2**64}", ["u64", str(2**64 - 1)]),
                         (f"i={ODD + 1}.0", ["only its digits"]), ("i=0.5", ["0.5"])):
        memext.refused("run", *run, "--frame", word, "-t", 1, "-d", quick_place, naming=["frame value", *naming])


def test_numbers_that_attributes_name_are_exact(memext, quick_place):
    """Cells beside one without a value, or beside a limit, have values; those that are it, or beyond it, have none."""
    if not importlib.util.find_spec("h5py") or "hdf5" not in memext("info").stdout:
        pytest.skip("memext is built without HDF5, or h5py is not here")
    import h5py
    (quick_place / "wide.c").write_text(KERNEL)
    run = ["--kernel", quick_place / "wide.c", "-t", 0, "--backend", "dram", "-o", f"i={quick_place}/i.out.npy", "-o", f"n={quick_place}/n.out.npy", "--overwrite"]
    cells = {"i": np.full((3, 4, 5), ODD), "n": np.full((3, 4, 5), 2**63 + 1, "u8")}
    cells["i"][1, 1, 1:3] = -2**63, 2**63 - 1
    cells["n"][1, 1, 1:3] = 0, 2**64 - 1
    for field, number, attributes, missing in (
        ("n", 2**64 - 1, {"_FillValue": 2**64 - 2}, False), ("n", 2**64 - 2, {"_FillValue": 2**64 - 2}, True), ("n", 2**63, {"missing_value": 2**63 + 2}, False),
        ("i", -2**63, {"_FillValue": -2**63 + 2}, False), ("i", -2**63 + 2, {"_FillValue": -2**63 + 2}, True), ("i", 2**63 - 1, {"valid_max": 2**63 - 1}, False),
        ("i", 2**63 - 1, {"valid_max": 2**63 - 2}, True), ("n", 2**53, {"valid_min": 0}, False), ("i", -2**63, {"valid_min": -2**63 + 1}, True)):
        with h5py.File(quick_place / "f.h5", "w") as file:
            for name, values in cells.items():
                own = values.copy()
                if name == field:
                    own[2, 1, 1] = number
                file[name] = own
                for key, value in attributes.items() if name == field else ():
                    file[name].attrs[key] = own.dtype.type(value)
            want = {name: file[name][...] for name in cells}
        given = [w for name in cells for w in ("--input", f"{name}={quick_place}/f.h5:/{name}")]
        if missing:
            plane = 1 if (field, number) in (("i", 2**63 - 1), ("i", -2**63)) else 2
            memext.refused("run", *run, *given, naming=["cells without a value", f"from plane {plane} on"])
            continue
        memext.run(*run, *given)
        for name, values in want.items():
            assert np.load(quick_place / f"{name}.out.npy").tobytes() == values.tobytes(), (field, attributes)


def test_parameters_are_doubles(memext, quick_place):
    """A whole number that no double has is refused; as a real, or where a double has it, it is taken."""
    (quick_place / "p.c").write_text('#define MX_NAME "p"\n#define MX_RADIUS 1\n#define MX_STATE(F) F(i, int64_t)\n#define MX_PARAMS(P) P(a, 0)\n#include <memext/cell.h>\nMX_CELL\n'
                                     "    SET(i, PARAM(a));\nMX_END\n")
    run = ["--kernel", quick_place / "p.c", "-n", 3, 4, 5, "--init", "zero", "-o", quick_place / "out.npy", "--overwrite"]
    for text, number in ((str(2**60), 2**60), (f"{ODD}.0", 2**53), ("-0009007199254740994", -ODD - 1), ("+12", 12), ("0", 0), ("7/2", 3), ("1e18", 10**18), ("-000", 0)):
        memext.run(*run, "-t", 1, "--backend", "dram", "--param", f"a={text}")
        assert int(np.load(quick_place / "out.npy")[2, 2, 2]) == number, text
    for text in (ODD, -ODD, 2**64 - 1, 10**30 + 1, "1" * 300):
        memext.refused("run", *run, "-t", 1, "--backend", "dram", "--param", f"a={text}", naming=["a double cannot hold this integer", "2^53", ".0 to accept the nearest one"])
    for text in ("nan", "inf", "1" * 400):
        memext.refused("run", *run, "-t", 1, "--backend", "dram", "--param", f"a={text}", naming=["not a finite number"])
    memext.run(*run, "-t", 1, "-d", quick_place / "p.memext", "--keep", "--param", f"a={2**60}")
    memext.refused("run", "--resume", "-d", quick_place / "p.memext", "-t", 3, "--edit-param", f"a={ODD}", naming=["--edit-param", "a double cannot hold this integer"])
    memext.run("--resume", "-d", quick_place / "p.memext", "-t", 3, "-o", quick_place / "out.npy", "--overwrite")
    assert int(np.load(quick_place / "out.npy")[2, 2, 2]) == 2**60


def plus(cell, more, low, high):
    """What a cell holds when a real is added to it."""
    total = float(cell) + more
    if math.isnan(more):
        return 0
    if math.isinf(more) or abs(more) >= 2**64:
        return low if more < 0 else high
    exact = total if abs(cell) < 2**53 and abs(total) < 2**53 else cell + int(more)
    return min(max(int(exact), low), high)


@pytest.mark.parametrize("how", ["dram", "uring", "host", "opencl", "cuda"])
def test_point_sources_round_no_cell(request, memext, quick_place, words, fake_cuda, how):
    if how in ("host", "opencl", "cuda"):
        use(request, memext, how)
    _, run = words
    wave = np.array([1.0, -3.0, 2.5, -0.5, 1e9, -1e18, 2.0**62, 7.0])
    np.save(quick_place / "wave.npy", wave)
    begin = {"i": [2**60 + 1, -ODD, 2**63 - 2, 5, -2**63 + 1], "n": [2**60 + 1, ODD, 2**64 - 1, 5, 2**63 + 1]}
    for name, values in begin.items():
        cells = np.load(quick_place / f"{name}.npy")
        cells[2, 3, 1:6] = np.array(values, dtype=object).astype(cells.dtype)
        np.save(quick_place / f"{name}.npy", cells)
    sources = [w for name in begin for x in range(5) for w in ("--source", f"{name}@{x},2,1={quick_place}/wave.npy")]
    where = {"dram": ["--backend", "dram"], "uring": ["-d", quick_place, "--force"]}.get(how, ["-d", quick_place, "--force", "--accel", how])
    memext.run(*run, *sources, "-t", len(wave), *where)
    for name, values in begin.items():
        for number in wave:
            values = [plus(v, float(number), *BOUNDS[name]) for v in values]
        assert [int(v) for v in np.load(quick_place / f"{name}.out.npy")[2, 3, 1:6]] == values, name


# ------------------------------------------------------------------ Python


def held(n, i, r, k, a):
    return n + (k - k), i, r + a


@pytest.fixture
def run(mx, quick_place):
    kernel = mx.kernel(held, fixed={"k": "uint64"}, params={"a": 0.0}, dtype={"n": "uint64", "i": "int64", "r": "float64"})
    with mx.Run(kernel, n=2**64 - 1, i=-2**63 + 1, r=0.5, k=2**63 + 1, shape=(3, 4, 5), device=quick_place, dram="64MiB") as run:
        run.advance(1)
        yield run


def test_numbers_of_python_are_fields(run):
    assert (run["n"][...] == np.uint64(2**64 - 1)).all() and (run["i"][...] == -2**63 + 1).all() and (run["k"][...] == np.uint64(2**63 + 1)).all()
    run["n"][1, 1, 1:4] = [2**63 + 1, 1, ODD]
    run["i"][1, 1, 1:4] = [ODD, -ODD, 0]
    run["n"][2, 2, 2] = np.uint64(2**64 - 2)
    run["i"][2, 2, 2] = -2**63
    run["k"] = 2**64 - 1
    run.advance(np.uint64(3))
    assert [int(v) for v in run["n"][1, 1, 1:4]] == [2**63 + 1, 1, ODD] and [int(v) for v in run["i"][1, 1, 1:4]] == [ODD, -ODD, 0]
    assert int(run["n"][2, 2, 2]) == 2**64 - 2 and int(run["i"][2, 2, 2]) == -2**63 and int(run["k"][0, 0, 0]) == 2**64 - 1
    one = np.uint64(1)
    assert int(run["n"][one, one, one]) == 2**63 + 1 and run["n"][one:np.uint64(3), one].shape == (2, 7)
    assert run["n"].plane(one).shape == (6, 7) and run["n"].planes(one, np.uint64(3)).shape == (2, 6, 7)


def test_what_cells_cannot_hold_is_refused(mx, run, quick_place):
    for field, value, naming in (("n", 2**64, [str(2**64), str(2**64 - 1)]), ("n", -1, ["-1"]), ("i", 2**63, [str(2**63)]), ("i", [2**70, 1, 2], [str(2**70)]),
                                 ("i", [ODD, 0.5, 1], [str(ODD), "numpy rounds integers beyond"]), ("r", ODD, [str(ODD), "float64"]), ("r", 10**400, ["float64"]),
                                 ("n", np.ma.masked_array([1, 2, 3], [0, 1, 0]), ["1 cells without a value", "numpy.ma.filled"])):
        with pytest.raises(mx.MemextError) as refused:
            run[field][1, 1, 1:4] = value
        assert all(text in str(refused.value) for text in naming), (field, value, refused.value)
    for value in (2**64, -1, 10**400, 0.5):
        with pytest.raises(mx.MemextError, match="field k has"):
            run["k"] = value
    run["n"][1, 1, 1:4] = np.ma.masked_array([1, 2, 3], False)
    run.apply(lambda n: np.ma.masked_array(n, n > 2))
    with pytest.raises(mx.MemextError, match="masked"):
        run["n"][...]
    run.withdraw()
    for bad in (math.nan, math.inf, ODD, 10**400, "dt", 1j, np.complex128(1)):
        with pytest.raises(mx.MemextError, match=r"params\['a'\]"):
            run.params["a"] = bad
    for bad in (math.nan, -math.inf, ODD, 10**400, "nan"):
        with pytest.raises(mx.MemextError, match=r"params\['a'\]"):
            mx.Run(run.kernel, params={"a": bad}, n=1, i=1, r=1, k=1, shape=(3, 4, 5), device=quick_place / "other.memext")
        if not isinstance(bad, str):
            with pytest.raises(mx.MemextError, match=r"params\['a'\]"):
                mx.kernel(held, fixed="k", params={"a": bad})
    for bad in ([1, ODD], np.array([1, ODD]), np.ma.masked_array([1.0, 2.0], [0, 1])):
        with pytest.raises(mx.MemextError, match="params: a"):
            mx.Run(run.kernel, params={"a": bad}, n=1, i=1, r=1, k=1, shape=(3, 4, 5), device=quick_place / "other.memext")
    for field, value in (("n", 2**64), ("i", -2**63 - 1), ("n", 0.5), ("r", ODD), ("n", [[[2**64]]]), ("k", 2**64)):
        given = {"n": 1, "i": 1, "r": 1, "k": 1, "shape": (3, 4, 5), field: value}
        with pytest.raises(mx.MemextError, match="field|n"):
            mx.Run(run.kernel, **given, device=quick_place / "other.memext").advance(1)
    with pytest.raises(mx.MemextError, match="a ramp's first value = 9007199254740993"):
        mx.ramp("z", ODD, 0)


def test_frames_in_python_are_exact(mx, quick_place):
    kernel = mx.kernel(lambda i: i + 0 * i[1, 0, 0], name="kept", dtype="int64")
    rng = np.random.default_rng(4)
    for cells, number in ((rng.integers(-9, 9, (3, 4, 5), dtype="i4"), 2**60 + 1), (rng.integers(-2**63, 2**63 - 1, (3, 4, 5)), -ODD), (rng.integers(0, 9, (3, 4, 5), dtype="u8"), -1),
                          (rng.integers(-2**62, 2**62, (3, 4, 5)), 7.0), (rng.integers(-9, 9, (3, 4, 5)).astype("f8"), 2.0**60)):
        with mx.Run(kernel, i=cells, frame=number, device=quick_place, dram="64MiB", resume=False, force=True) as run:
            run.advance(1)
            assert run["i"][...].tobytes() == np.pad(cells.astype("i8"), 1, constant_values=int(number)).tobytes(), (cells.dtype, number)
    for cells, number, naming in ((np.zeros((3, 4, 5)), ODD, "frame = 9007199254740993"), (np.zeros((3, 4, 5), "i8"), 2**64, "field i has values"), (np.zeros((3, 4, 5), "i8"), 0.5, "0.5")):
        with pytest.raises(mx.MemextError, match=naming):
            mx.Run(kernel, i=cells, frame=number, device=quick_place, dram="64MiB", resume=False, force=True).advance(1)
    with pytest.raises(mx.MemextError, match="frame=1j"):
        mx.Run(kernel, i=np.zeros((3, 4, 5), "i8"), frame=1j, device=quick_place)
