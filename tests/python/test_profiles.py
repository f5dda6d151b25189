# SPDX-License-Identifier: BSD-3-Clause
"""Read-only fields that are alike along axes: the bits are those of the same field written out, by every plan, backend, rank, accelerator and resume."""
import itertools
import json
import os
import random
import shutil

import numpy as np
import pytest
from conftest import thinned
from package import cache, environment, mx  # noqa: F401 (fixtures)
from test_accel import works
from test_systems import SYSTEMS, reference

HEAD = '#define MX_NAME "profiles"\n#define MX_RADIUS {h}\n#define MX_FIXED_RADIUS {hc}\n#define MX_FIXED(F) F(a, double) F(b, float) F(c, uint8_t)\n'
BODIES = {
    "jacobi": """#define MX_STATE(F) F(u, double)
#define MX_REDUCES(R) R(s, MX_SUM)
#include <memext/cell.h>
MX_CELL
    double s = AT(u, 1, 0, 0) * AT(a, 0, 0, 0) + AT(u, -1, 0, 0) * AT(b, 0, 0, 0) + AT(u, 0, 1, 0) * AT(c, 0, 0, 0) + AT(u, 0, -1, 0);
    s += AT(u, 0, 0, 1) * AT(a, {hc}, 0, 0) + AT(u, 0, 0, -1) * AT(b, 0, {hc}, -{hc}) + AT(c, -{hc}, -{hc}, {hc}) * AT(a, 0, -{hc}, {hc});
    SET(u, s * 0.01);
MX_END
MX_REDUCE(s)
    RESULT(AT(u, 0, 0, 0) * AT(b, 0, {hc}, 0) + AT(a, 0, 0, {hc}));
MX_END
""",
    "leapfrog": """#define MX_FORM MX_LEAPFROG
#define MX_STATE(F) F(u, double)
#include <memext/cell.h>
MX_CELL
    double s = AT(u, 1, 0, 0) * AT(a, 0, 0, 0) + AT(u, -1, 0, 0) * AT(b, 0, 0, 0) + AT(u, 0, 1, 0) * AT(c, 0, 0, 0) + AT(u, 0, -1, 0);
    s += AT(u, 0, 0, 1) * AT(a, {hc}, 0, 0) + AT(u, 0, 0, -1) * AT(b, 0, {hc}, -{hc}) + AT(c, -{hc}, -{hc}, {hc});
    SET(u, s * 0.01 - 0.1 * OLD(u) * AT(b, 0, 0, {hc}));
MX_END
""",
    "staggered": """#define MX_FORM MX_STAGGERED
#define MX_STATE(F) F(u, double)
#define MX_PARTNER(F) F(v, float) F(w, double)
#include <memext/cell.h>
MX_CELL_B
    SET(v, OLD(v) * 0.5f + (float)(AT(u, 1, 0, 0) * AT(a, 0, 0, {hc}) + AT(u, 0, 0, 1) * AT(b, 0, {hc}, 0)) * 0.01f);
    SET(w, OLD(w) * 0.5 + AT(u, 0, -1, 0) * AT(c, -{hc}, 0, 0) * 0.001);
MX_END
MX_CELL_A
    SET(u, OLD(u) * 0.5 + 0.01 * (AT(v, -1, 0, 0) * AT(a, 0, {hc}, 0) + AT(w, 0, 1, 0) * AT(b, {hc}, 0, -{hc})) + AT(w, 0, 0, -1) * 0.01 * AT(c, 0, 0, 0));
MX_END
""",
}
TYPES = {"a": "f8", "b": "f4", "c": "u1"}
CASES = 30 if os.environ.get("MEMEXT_TEST_LONG") else 3


class Problem:
    """A random problem: `words` of it, `short` and `full` the words of its fields, as profiles and written out."""

    def __init__(self, folder, seed, alike):
        """alike: of each field the axes z, y, x along which it is so."""
        rng, values = random.Random(seed), np.random.default_rng(seed)
        form, h = rng.choice(list(BODIES)), rng.choice([1, 1, 2])
        self.want = None
        hc = rng.randint(0, h)
        (folder / "k.c").write_text((HEAD + BODIES[form]).replace("{hc}", str(hc)).replace("{h}", str(h)))
        self.size = [rng.randint(h + 1, 60), rng.randint(h + 1, 34), rng.randint(h + 1, 34)]
        self.words = ["--kernel", folder / "k.c", "-n", *self.size, "-t", rng.randint(1, 9), "--init", "random", "--dram", "200MiB"]
        self.sides = [rng.choice(["fixed", "fixed", "mirror", "periodic", "fixed,mirror", "odd", "edge,mirror-node", "odd-node"]) for _ in "xyz"]
        self.words += [w for axis, side in zip("xyz", self.sides) for w in ("--side", f"{axis}={side}")]
        self.words += ["--check", 2] if form == "jacobi" else []
        self.short, self.full = [], []
        for name, kind in TYPES.items():
            framed = rng.random() < 0.5
            if not framed and hc > 0:
                self.words += ["--frame", f"{name}={rng.choice(['edge', 'mirror', 'periodic'])}"]
            extents = [n + 2 * h * framed for n in reversed(self.size)]
            axes = alike[name]
            given = values.random([1 if axis in axes else n for axis, n in zip("zyx", extents)])
            given = (given * (1 if kind[0] == "f" else 100)).astype(kind)
            np.save(folder / f"{name}.npy", given)
            np.save(folder / f"{name}-full.npy", np.ascontiguousarray(np.broadcast_to(given, extents)))
            self.short += ["--field", f"{name}={folder}/{name}.npy"]
            self.full += ["--field", f"{name}={folder}/{name}-full.npy"]


def same(memext, problem, place, words):
    """A run with profiles gives what the plain program gives with whole fields, or is refused as one with those is. Whether it ran."""

    def run(fields, *more):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        there = [] if "dram" in more else ["-d", place]
        return memext("run", *problem.words, *fields, *more, *there, "--json", "-", "-q", check=False)

    done = run(problem.short, *words)
    if done.returncode != 0:
        assert run(problem.full, *words).returncode == done.returncode, done.stderr
        return False
    if problem.want is None:
        problem.want = json.loads(run(problem.full, "--backend", "dram", "--algorithm", "direct", "--engine", "iblock").stdout)
    got, want = json.loads(done.stdout), problem.want
    assert got["checksum"] == want["checksum"] and got.get("norms") == want.get("norms"), (problem.words, words)
    if "mmap" not in words:
        assert (got["read_bytes"], got["write_bytes"]) == (got["predicted_read_bytes"], got["predicted_write_bytes"])
    return True


# OpenCL compiles each for seconds.
@pytest.mark.parametrize("seed, accel", thinned(itertools.product(range(100, 100 + CASES), ["host", "opencl", "cuda"]), lambda seed, accel: accel != "opencl" or seed == 100))
def test_accelerators(memext, quick_place, tmp_path, accel, seed):
    if not works(memext, accel)["works"]:
        pytest.skip(works(memext, accel)["why"])
    problem = Problem(tmp_path, seed, [{"a": "xz", "b": "x", "c": "y"}, {"a": "x", "b": "xz", "c": "zy"}, {"a": "z", "b": "xyz", "c": "x"}][seed % 3])
    for words in (["--plan", f"stream by={problem.size[1]} bt=4"], ["--backend", "dram", "--algorithm", "resident"]):
        assert same(memext, problem, quick_place / "s", ["--accel", accel, *words]) or min(problem.size) < 8


PML = """#define MX_NAME "layer"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double)
#define MX_FIXED(F) F(a, double) F(b, double)
#include <memext/cell.h>
MX_CELL
    SET(u, AT(a, 0, 0, 0) * (AT(u, 1, 0, 0) + AT(u, 0, 0, -1)) - AT(b, 0, 0, 0) * AT(u, 0, 1, 0));
MX_END
"""
N = (20, 18, 40)  # z, y, x


@pytest.fixture
def layer(tmp_path):
    """(folder, words, a function that gives the result in numpy): a of shape (nz, 1, 1), b of (1, ny, nx)"""
    (tmp_path / "layer.c").write_text(PML)
    rng = np.random.default_rng(3)
    u, a, b = rng.random([n + 2 for n in N]), rng.random((N[0], 1, 1)), rng.random((1, *N[1:]))
    for name, value in (("u", u), ("a", a), ("b", b)):
        np.save(tmp_path / f"{name}.npy", value)

    def after(steps):
        now = u.copy()
        for _ in range(steps):
            new = now.copy()
            new[1:-1, 1:-1, 1:-1] = a * (now[1:-1, 1:-1, 2:] + now[:-2, 1:-1, 1:-1]) - b * now[1:-1, 2:, 1:-1]
            now = new
        return now

    words = ["--kernel", tmp_path / "layer.c", "--input", f"u={tmp_path}/u.npy", "--field", f"a={tmp_path}/a.npy", "--field", f"b={tmp_path}/b.npy", "--dram", "64MiB"]
    return tmp_path, words, after


def test_numpy_resume_and_report(memext, quick_place, layer):
    """The result of numpy; a run that goes on, with other plans and ranks; what report and info say; no byte is read for a profile, and its DRAM counts."""
    folder, words, after = layer
    first = memext.run(*words, "-t", 4, "-d", quick_place, "--plan", "stream by=9 bt=2", "--keep").report
    files = first["files"]
    assert files["a"]["alike"] == "xy" and files["b"]["alike"] == "z" and files["a"]["in_place"] is True
    info = json.loads(memext("info", quick_place, "--json", "-").stdout)["store"]
    assert info["fields_in_place"] == ["a", "b"] and [a["name"] for a in info["arrays"]] == ["u"]
    memext.run("--resume", "-d", quick_place, "-t", 7, "--plan", "stream by=5 bt=2", "--keep")
    memext.run("--resume", "-d", quick_place, "-t", 9, "--ranks", 2, "--keep")
    memext.run("--resume", "-d", quick_place, "-t", 11, "--plan", "redundant by=9 bz=10 bt=2", "-o", f"u={folder}/out.npy", "--verify")
    assert np.array_equal(np.load(folder / "out.npy"), after(11))
    whole = words
    for name in "ab":
        np.save(folder / f"{name}-full.npy", np.ascontiguousarray(np.broadcast_to(np.load(folder / f"{name}.npy"), N)))
        whole = [str(w).replace(f"/{name}.npy", f"/{name}-full.npy") for w in whole]
    plan = ["-t", 4, "-d", quick_place, "--plan", "stream by=18 bt=2", "--dry-run"]
    full, short = memext.run(*whole, *plan), memext.run(*words, *plan)
    assert full["predicted_read_bytes"] - short["predicted_read_bytes"] >= 2 * 2 * 8 * N[0] * N[1] * N[2]


def test_another_file(memext, quick_place, layer):
    """A profile is a part of the problem: a store does not go on with other values, and finds a file that has moved."""
    folder, words, after = layer
    memext.run(*words, "-t", 4, "-d", quick_place, "--keep")
    np.save(folder / "other.npy", np.load(folder / "a.npy") + 1)
    refused = memext("run", "--resume", "-d", quick_place, "-t", 6, "--field", f"a={folder}/other.npy", check=False)
    assert refused.returncode == 2 and "a" in refused.stderr and "other" in refused.stderr
    os.rename(folder / "a.npy", folder / "moved.npy")
    refused = memext("run", "--resume", "-d", quick_place, "-t", 6, check=False)
    assert refused.returncode == 2 and "a.npy" in refused.stderr
    memext.run("--resume", "-d", quick_place, "-t", 6, "--field", f"a={folder}/moved.npy", "-o", f"u={folder}/out.npy")
    assert np.array_equal(np.load(folder / "out.npy"), after(6))


def test_alike_along_x_alone(memext, quick_place, layer):
    """DRAM has one cell of each row, and the kernel is compiled for that. A kernel that the user built is not: the file is copied, in words."""
    folder, words, _ = layer
    b = np.random.default_rng(4).random((N[0], N[1], 1))
    np.save(folder / "b.npy", b)
    np.save(folder / "b-full.npy", np.ascontiguousarray(np.broadcast_to(b, N)))
    full = [str(w).replace("/b.npy", "/b-full.npy") for w in words]
    want = memext.run(*full, "-t", 7, "-d", quick_place)["checksum"]
    done = memext.run(*words, "-t", 3, "-d", quick_place, "--keep", "--force")
    assert done["files"]["b"] == {"path": str(folder / "b.npy"), "in_place": True, "page_cache": False, "alike": "x"} and done["read_bytes"] == done["predicted_read_bytes"]
    memext.run("--resume", "-d", quick_place, "-t", 5, "--keep", "--ranks", 2)
    assert memext.run("--resume", "-d", quick_place, "-t", 7, "--verify")["checksum"] == want
    built = memext("kernel", "build", folder / "layer.c").stdout
    shutil.copy(next(word for word in built.split() if word.endswith(".so")), folder / "layer.so")
    done = memext.run(*[str(w).replace("/layer.c", "/layer.so") for w in words], "-t", 7, "-d", quick_place, "--force")
    assert "constant along x alone" in done.err and done["files"]["b"]["in_place"] is False and done["checksum"] == want


def test_shapes(memext, quick_place, layer):
    """Extents that fit nothing, and those that do not say how large the grid is."""
    folder, words, _ = layer
    rng = np.random.default_rng(4)
    np.save(folder / "b.npy", rng.random((1, N[1], N[2] + 1)))
    refused = memext("run", *words, "-t", 3, "-d", quick_place, check=False)
    assert refused.returncode == 2 and "(1, 18, 41)" in refused.stderr and "may be 1" in refused.stderr
    np.save(folder / "b.npy", rng.random((1, 1, 1)))
    refused = memext("run", *[w for w in words if not str(w).startswith("u=") and w != "--input"], "--init", "random", "-t", 3, "-d", quick_place, check=False)
    assert refused.returncode == 2 and "-n NX NY NZ" in refused.stderr


def test_a_frame_of_another_value(memext, quick_place, tmp_path):
    """A frame of a number makes cells differ that are alike inside: the file is copied as a whole field."""
    (tmp_path / "k.c").write_text((HEAD + BODIES["leapfrog"]).replace("{hc}", "1").replace("{h}", "1"))
    rng = np.random.default_rng(5)
    for name, kind in TYPES.items():
        given = (rng.random((1, 9, 1)) * 9).astype(kind)
        np.save(tmp_path / f"{name}.npy", given)
        np.save(tmp_path / f"{name}-full.npy", np.ascontiguousarray(np.broadcast_to(given, (8, 9, 10))))
    base = ["--kernel", tmp_path / "k.c", "-n", 10, 9, 8, "-t", 5, "--init", "random", "--frame", "a=0.5", "--frame", "b=edge", "--frame", "c=3"]
    sums = [memext.run(*base, *(w for n in TYPES for w in ("--field", f"{n}={tmp_path}/{n}{end}.npy")), "-d", quick_place)["checksum"] for end in ("", "-full")]
    assert sums[0] == sums[1]


def steps_of(kernel, steps, u, **fields):
    return kernel.reference(steps, u=u, **fields)["u"]


@pytest.mark.parametrize("reach", [0, 1])
@pytest.mark.parametrize("frame", ["included", "edge", "mirror", "periodic", 0.5])
def test_python(mx, quick_place, tmp_path, reach, frame):  # noqa: F811
    """Arrays with extents of 1, and of fewer dimensions as numpy broadcasts them: the result is that of the arrays written out, which numpy computes."""

    @mx.kernel(fixed="a b c d")
    def mix(u, a, b, c, d):
        return 0.2 * (a[0, 0, reach] * u[1, 0, 0] + b[0, reach, 0] * u[0, 0, -1] + c[0, -reach, reach] * u[0, 1, 0]) + d * u

    rng = np.random.default_rng(6)
    nz, ny, nx = 11, 12, 13
    more = 2 if frame == "included" and reach else 0
    u = rng.random((nz, ny, nx)) if frame != "included" else rng.random((nz + 2, ny + 2, nx + 2))
    given = {"a": rng.random((nz + more, 1, 1)), "b": rng.random((ny + more, nx + more)), "c": rng.random(nx + more), "d": rng.random((nz + more, ny + more, 1))}
    full = {n: np.ascontiguousarray(np.broadcast_to(v, (nz + more, ny + more, nx + more))) for n, v in given.items()}
    results = []
    for place, fields in (("a", full), ("b", given)):
        (quick_place / place).mkdir()
        with mx.Run(mix, u=u, **fields, device=quick_place / place, dram="64MiB", frame=frame) as run:
            run.advance(3)
            results.append(run["u"][...])
    assert np.array_equal(*results)
    if frame == "included":
        assert np.array_equal(results[0], steps_of(mix, 3, u, **given)) and np.array_equal(results[0], steps_of(mix, 3, u, **full))


def test_python_goes_on(mx, quick_place):  # noqa: F811
    """resume="auto": the same profile, also after the folder of kernels and profiles was emptied; another one is refused. A reduction reads it."""

    @mx.kernel(fixed="a")
    def damp(u, a):
        return a * (u + 0.1 * (u[1, 0, 0] - u))

    @mx.reduce
    def weighed(u, a):
        return a * u

    rng = np.random.default_rng(7)
    u, a = rng.random((12, 202, 202)), rng.random((1, 200, 200))  # more bytes than a sample covers
    for steps in (2, 2, 4):
        with mx.Run(damp, u=u, a=a, device=quick_place, dram="64MiB", resume="auto", keep=True) as run:
            run.advance(steps - run.step) if steps > run.step else None
            assert run["a"].shape == (1, 200, 200)
            assert np.isclose(run.reduce(weighed).total, (a * run["u"][1:-1, 1:-1, 1:-1]).sum())
            assert np.array_equal(run["u"][...], steps_of(damp, steps, u, a=a))
        for file in mx.code.cache_folder().glob("profile-*"):
            file.unlink()
    with pytest.raises(mx.MemextError, match="a"):
        with mx.Run(damp, u=u, a=a + 1, device=quick_place, dram="64MiB", resume="auto", keep=True) as run:
            run.advance(1)


def test_python_shapes(mx):  # noqa: F811
    @mx.kernel(fixed="a")
    def damp(u, a):
        return a * u

    with pytest.raises(mx.MemextError, match="may be 1 if the field is constant along"):
        mx.Run(damp, u=np.ones((9, 9, 9)), a=np.ones((1, 1, 6)), backend="dram")


def test_dram(memext, layer):
    """A profile counts against --dram: 8 MB of one need that much more of it."""
    folder, words, _ = layer

    def least(shape):
        np.save(folder / "b.npy", np.ones(shape))
        words[words.index(f"a={folder}/a.npy")] = f"a={folder}/b.npy"
        asked = [w for w in words if not str(w).startswith("u=") and w not in ("--input", "--dram", "64MiB")]
        for mib in range(2, 60):
            done = memext("run", *asked, "-n", 250, 4, 4000, "-t", 8, "--init", "random", "-d", folder, "--dram", f"{mib}MiB", "--dry-run", "-q", check=False)
            if done.returncode == 0:
                return mib
        raise AssertionError(done.stderr)

    small = least((1, 1, 1))
    words[words.index(f"a={folder}/b.npy")] = f"a={folder}/a.npy"
    assert 14 <= least((4000, 1, 250)) - small <= 18


def test_absorbing_layer(memext, quick_place, tmp_path):
    """systems/pml.c with the profiles of pml.layer: the bits of numpy by two plans, and a pulse that leaves nearly nothing behind, where without the layer it stays."""
    module = reference("pml")
    size, steps = (26, 28, 30), 80  # z, y, x
    state = {n: np.zeros([e + 2 for e in size], "f4") for n in "exy exz eyz eyx ezx ezy hxy hxz hyz hyx hzx hzy".split()}
    z, y, x = (np.arange(e + 2).reshape([-1 if i == k else 1 for k in range(3)]) - e / 2 for i, e in enumerate(size))
    state["ezx"][...] = np.exp(-(x * x + y * y + z * z) / 8)
    left = {}
    for loss in (0.8, 0.0):
        profiles = {}
        for i, axis in enumerate("xyz"):
            profiles.update(zip(("a" + axis, "b" + axis, "p" + axis, "q" + axis), module.layer(size[2 - i], i, loss=loss)))
        want = module.run(steps, **state, **profiles)
        left[loss] = sum(float(((want[a] + want[b])[9:-9, 9:-9, 9:-9] ** 2).sum()) for a, b in (("hxy", "hxz"), ("hyz", "hyx"), ("hzx", "hzy")))
        for name, value in {**state, **profiles}.items():
            np.save(tmp_path / f"{name}.npy", value)
        words = ["--kernel", SYSTEMS / "pml.c", *(w for n in state for w in ("--input", f"{n}={tmp_path}/{n}.npy")), *(w for n in profiles for w in ("--field", f"{n}={tmp_path}/{n}.npy"))]
        words += ["-t", steps, "-d", quick_place, "--dram", "90MiB", *(w for n in state for w in ("-o", f"{n}={tmp_path}/{n}-out.npy")), "--overwrite"]
        for plan in ("stream by=28 bt=8", "redundant by=14 bz=13 bt=4"):
            done = memext.run(*words, "--plan", plan)
            assert all(f["alike"] in ("yz", "xz", "xy") for f in done["files"].values())
            assert all(np.array_equal(np.load(tmp_path / f"{n}-out.npy"), want[n]) for n in state)
    assert left[0.8] < 0.01 * left[0.0], left


def test_python_other_values_of_a_large_one(mx, quick_place):  # noqa: F811
    """Cells that no sample of a file would see are compared too."""

    @mx.kernel(fixed="a")
    def damp(u, a):
        return a * (u + 0.1 * (u[1, 0, 0] - u))

    rng = np.random.default_rng(9)
    u, a = rng.random((5, 502, 502)), rng.random((1, 500, 500))
    for changed in (a, a, np.where(np.arange(500).reshape(1, 500, 1) == 3, 0.5, a)):
        with mx.Run(damp, u=u, a=changed, device=quick_place, dram="64MiB", keep=True) as run:
            if changed is a or (changed == a).all():
                run.advance(2)
            else:
                with pytest.raises(mx.MemextError, match="began with other values: a came from"):
                    run.advance(4)


def test_python_reductions_around(mx, quick_place):  # noqa: F811
    """A reduction reads at periodic sides what the kernel reads: the other end, not the array's own frame."""

    @mx.kernel(fixed="b")
    def mix(u, b):
        return 0.5 * b[0, 1, 0] * u

    @mx.reduce
    def weighed(u, b):
        return b[0, -1, 0] + 0 * u

    b = np.arange(1.0, 7).reshape(1, 6, 1)
    for side in ({"y": "periodic"}, ["y=periodic", "x=periodic"], "y=mirror"):
        with mx.Run(mix, u=np.ones((5, 6, 7)), b=b, side=side, device=quick_place, dram="64MiB", reductions=[weighed], check=1, force=True, resume=False) as run:
            run.advance(1)
            assert run.reduce(weighed).total == run.report["norms"][-1]["reductions"]["weighed"]["sum"]


def test_python_cache(mx, quick_place):  # noqa: F811
    """A file of the cache that is cut short or has other cells is written again."""

    @mx.kernel(fixed="a")
    def damp(u, a):
        return a * u

    u, a = np.ones((8, 9, 10)), np.arange(7.0).reshape(1, 7, 1) + 5
    for spoil in (None, b"", b""):
        with mx.Run(damp, u=u, a=a, device=quick_place, dram="64MiB", force=True, resume=False) as run:
            run.advance(2)
            assert np.array_equal(run["u"][...], steps_of(damp, 2, u, a=a))
        for file in mx.code.cache_folder().glob("profile-1x7x1-*"):
            whole = file.read_bytes()
            file.write_bytes(whole[:-8] + b"\0" * 8 if spoil is None else spoil)


def test_a_single_cell_with_a_frame(memext, tmp_path):
    """(1, 1, 1) is alike everywhere, unless --frame says that the frame is another number."""
    (tmp_path / "k.c").write_text('#define MX_NAME "k"\n#define MX_RADIUS 1\n#define MX_FIXED_RADIUS 1\n#define MX_STATE(F) F(u, double)\n#define MX_FIXED(F) F(c, double)\n'
                                  "#include <memext/cell.h>\nMX_CELL\nSET(u, AT(c, 1, 0, 0));\nMX_END\n")  # fmt: skip
    np.save(tmp_path / "c.npy", np.ones((1, 1, 1)))
    for words, last in (([], 1), (["--frame", "c=5"], 5), (["--frame", "c=edge"], 1)):
        memext.run("--kernel", tmp_path / "k.c", "-n", 4, 4, 4, "-t", 1, "--init", "zero", "--dram", "64MiB", *words, "--field", f"c={tmp_path}/c.npy", "--backend", "dram", "-o", f"u={tmp_path}/u.npy", "--overwrite")
        assert np.load(tmp_path / "u.npy")[2, 2].tolist() == [0, 1, 1, 1, last, 0]


def test_the_file_of_a_profile(memext, quick_place, layer):
    """It is counted before it is read; other extents on --resume are named; a copied one is compared by its axes; a file that changes harms no run whose values are in DRAM."""
    folder, words, _ = layer
    np.save(folder / "b.npy", np.zeros((1, 18, 40)))
    memext.run(*words, "-t", 3, "-d", quick_place, "--keep")
    np.save(folder / "b.npy", np.zeros((1, 1, 40)))
    refused = memext("run", "--resume", "-d", quick_place, "-t", 5, check=False)
    assert refused.returncode == 2 and "(1, 1, 40) is constant along the axes 'yz'. The run began with a file that gives field b constant along 'z'" in refused.stderr
    for name, sizes in (("qz", "1 1 20"), ("qy", "1 20 1")):
        (folder / f"{name}.nhdr").write_text(f"NRRD0004\ntype: double\ndimension: 3\nsizes: {sizes}\nendian: little\nencoding: raw\ndata file: q.raw\n\n")
    np.arange(20.0).tofile(folder / "q.raw")
    given = ["--kernel", folder / "layer.c", "-n", 20, 20, 20, "--init", "random", "--field", f"b={folder}/b.npy", "--dram", "64MiB", "--field-copy"]
    np.save(folder / "b.npy", np.ones((1, 1, 20)))
    memext.run(*given, "--field", f"a={folder}/qz.nhdr", "-t", 2, "-d", quick_place, "--keep", "--force")
    other = memext("run", "--resume", "-d", quick_place, "-t", 4, "--field", f"a={folder}/qy.nhdr", check=False)
    assert other.returncode == 2 and "began with other values" in other.stderr
    with open(folder / "huge.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (1, 20000, 20000)})
        file.truncate(file.tell() + 8 * 20000 * 20000)
    refused = memext("run", "--kernel", folder / "layer.c", "-n", 20000, 20000, 4, "--init", "random", "--field", f"a={folder}/huge.npy", "--field", f"b={folder}/huge.npy", "-t", 2,
                     "--dram", "64MiB", "-d", quick_place, "--force", check=False)  # fmt: skip
    assert refused.returncode == 2 and "DRAM" in refused.stderr
