# SPDX-License-Identifier: BSD-3-Clause
"""Kernels with as many read-only fields as there may be: 21 constants of elasticity, and 32."""
import json

import numpy as np
import pytest
from package import cache, environment, mx  # noqa: F401 (fixtures)
from test_accel import works

NX, NY, NZ, STEPS = 23, 17, 21, 7
NEAR = [(0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]
TYPES = {"double": "f8", "float": "f4", "uint8_t": "u1", "int16_t": "i2"}


def text(n):
    types = [list(TYPES)[i % len(TYPES)] for i in range(n)]
    fixed = " ".join(f"F(c{i}, {t})" for i, t in enumerate(types))
    terms = "".join(f"    s += AT(c{i}, 0, 0, 0) * (AT(u, {x}, {y}, {z}) * PARAM(a));\n" for i, (x, y, z) in enumerate(NEAR[i % len(NEAR)] for i in range(n)))
    return (f'#define MX_NAME "many{n}"\n#define MX_RADIUS 1\n#define MX_PARAMS(P) P(a, 0.001)\n#define MX_STATE(F) F(u, double)\n#define MX_FIXED(F) {fixed}\n'
            f"#include <memext/cell.h>\nMX_CELL\n    double s = AT(u, 0, 0, 0);\n{terms}    SET(u, s);\nMX_END\n")  # fmt: skip


@pytest.fixture(scope="module", params=[21, 32])
def many(tmp_path_factory, request):
    """(words of the problem, how many, the result in numpy)"""
    n = request.param
    folder = tmp_path_factory.mktemp("many")
    (folder / "many.c").write_text(text(n))
    rng, shape = np.random.default_rng(n), (NZ + 2, NY + 2, NX + 2)
    u = rng.random(shape)
    np.save(folder / "u.npy", u)
    fields = []
    for i in range(n):
        dtype = list(TYPES.values())[i % len(TYPES)]
        fields.append((rng.random(shape) * (1 if dtype[0] == "f" else 100)).astype(dtype))
        np.save(folder / f"c{i}.npy", fields[-1])
    inside = (slice(1, -1),) * 3
    for _ in range(STEPS):
        s = u[inside].copy()
        for i, c in enumerate(fields):
            x, y, z = NEAR[i % len(NEAR)]
            s += c[inside].astype("f8") * (u[1 + z:NZ + 1 + z, 1 + y:NY + 1 + y, 1 + x:NX + 1 + x] * 0.001)
        u = u.copy()
        u[inside] = s
    words = ["--kernel", folder / "many.c", "-n", NX, NY, NZ, "--input", f"u={folder}/u.npy", *(w for i in range(n) for w in ("--field", f"c{i}={folder}/c{i}.npy")), "--dram", "90MiB"]
    return words, n, u


@pytest.mark.parametrize("words", [["--backend", "dram", "--algorithm", "direct"], ["--plan", "stream by=17 bt=3"], ["--plan", "stream by=8 bt=2", "--field-copy"],
                                   ["--plan", "redundant by=9 bz=7 bt=2"], ["--ranks", 2], ["--backend", "mmap", "--field-copy"]])
@pytest.mark.each_value
def test_bits(memext, quick_place, tmp_path, many, words):
    given, _, want = many
    place = [] if "dram" in words else ["-d", quick_place]
    result = memext.run(*given, "-t", STEPS, *words, *place, "-o", f"u={tmp_path}/u.npy", "--verify")
    assert result["verified"] is True and np.array_equal(np.load(tmp_path / "u.npy"), want)
    if "mmap" not in words:
        assert (result["read_bytes"], result["write_bytes"]) == (result["predicted_read_bytes"], result["predicted_write_bytes"])


@pytest.mark.parametrize("accel", ["host", "opencl", "cuda"])
def test_accelerators(memext, quick_place, tmp_path, many, accel):
    if not works(memext, accel)["works"]:
        pytest.skip(works(memext, accel)["why"])
    memext.run(*many[0], "-t", STEPS, "--accel", accel, "--plan", "stream by=17 bt=3", "-d", quick_place, "-o", f"u={tmp_path}/u.npy")
    assert np.array_equal(np.load(tmp_path / "u.npy"), many[2])


def test_a_store_with_all_of_them(memext, mx, quick_place, tmp_path, many):  # noqa: F811
    """More arrays than a superblock of before had room for: they are looked at, exported, shown in Python, and gone on with by another number of ranks."""
    given, n, want = many
    memext.run(*given, "-t", 3, "-d", quick_place, "--field-copy", "--keep")
    store = json.loads(memext("info", quick_place, "--json", "-").stdout)["store"]
    assert len(store["arrays"]) == n + 1 and len(store["extents"]) >= n + 2
    last = next(w.removeprefix(f"c{n - 1}=") for w in given if str(w).startswith(f"c{n - 1}="))
    assert np.array_equal(mx.open(quick_place)[f"c{n - 1}"][...], np.load(last))
    memext.run("--resume", "-d", quick_place, "-t", 5, "--ranks", 2, "--keep")
    memext.run("--resume", "-d", quick_place, "-t", STEPS, "-o", f"u={tmp_path}/u.npy")
    assert np.array_equal(np.load(tmp_path / "u.npy"), want)


def test_hashes_of_all_of_them(memext, quick_place, tmp_path, many):
    """With --integrity each array in a store has a table: 21 copied fields have room, 32 are refused before anything is touched, and read in place they have."""
    given, n, want = many
    words = [*given, "-t", STEPS, "-d", quick_place, "--integrity", "-o", f"u={tmp_path}/u.npy"]
    if n == 32:
        for more in ([], ["--dry-run"]):
            refused = memext("run", *words, "--field-copy", *more, check=False)
            assert refused.returncode == 2 and "room for 62 arrays" in refused.stderr and "32 read-only fields" in refused.stderr
            assert list(quick_place.iterdir()) == []
    memext.run(*words, *(["--field-copy"] if n < 32 else []))
    assert np.array_equal(np.load(tmp_path / "u.npy"), want)


def test_one_more(memext, tmp_path):
    (tmp_path / "k.c").write_text(text(33))
    refused = memext("kernel", "check", tmp_path / "k.c", check=False)
    assert refused.returncode == 2 and "MX_FIXED" in refused.stderr and "32" in refused.stderr


def test_python(mx, quick_place, many):  # noqa: F811
    """As a kernel of Python with a decorator."""
    n = many[1]
    names = [f"c{i}" for i in range(n)]
    body = "def sum_of(u, " + ", ".join(names) + "):\n    return u + 0.001 * (" + " + ".join(f"{c} * u[1, 0, 0]" for c in names) + ")\n"
    space = {}
    path = quick_place.parent / f"many{n}.py"
    path.write_text(body)
    exec(compile(body, str(path), "exec"), space)  # noqa: S102
    kernel = mx.kernel(fixed=" ".join(names))(space["sum_of"])
    rng = np.random.default_rng(1)
    u, c = rng.random((12, 13, 14)), {name: rng.random((12, 13, 14)) for name in names}
    with mx.Run(kernel, u=u, **c, device=quick_place, dram="64MiB") as run:
        run.advance(3)
        assert np.array_equal(run["u"][...], kernel.reference(3, u=u, **c)["u"])


def test_a_third_buffer_that_has_no_room(memext, quick_place, tmp_path):
    """29 copied fields, two Buffers and their hashes are 62 arrays: a run takes no third Buffer of its own accord, and one that is asked for is refused with the way out."""
    (tmp_path / "k.c").write_text(text(29))
    for i in range(29):
        np.save(tmp_path / f"c{i}.npy", np.ones((NZ + 2, NY + 2, NX + 2), list(TYPES.values())[i % len(TYPES)]))
    words = ["--kernel", tmp_path / "k.c", "-n", NX, NY, NZ, "-t", 8, "--init", "random", *(w for i in range(29) for w in ("--field", f"c{i}={tmp_path}/c{i}.npy")), "--dram", "90MiB",
             "--field-copy", "--integrity", "--plan", "stream by=17 bt=2", "-d", quick_place]  # fmt: skip
    result = memext.run(*words, "--keep").report
    assert (result["commits"]["buffers"], result["commits"]["every_s"]) == (2, 0)
    plain = [w for w in words if w not in ("--integrity",)]
    assert memext.run(*plain, "--dry-run", "--force")["commits"]["buffers"] == 3, "this run would have one if there were room"
    for more in (["--force"], ["--resume"]):
        asked = [*words, "--commit-every", 5, *more] if more == ["--force"] else ["--resume", "-d", quick_place, "-t", 10, "--commit-every", 5]
        refused = memext("run", *asked, check=False)
        assert refused.returncode == 2 and "this run needs 64" in refused.stderr and "--commit-every 0" in refused.stderr, refused.stderr
    assert memext.run("--resume", "-d", quick_place, "-t", 10)["steps_done"] == 10
