# SPDX-License-Identifier: BSD-3-Clause
"""State of whole numbers: every type in one kernel, and the systems life and ising, by plans, ranks, accelerators, resumes, edits and files, against numpy."""
import json
import os
import re

import numpy as np
import pytest
from conftest import ROOT
from package import cache, environment, load, mx, systems  # noqa: F401 (fixtures)
from test_accel import fake_cuda, use  # noqa: F401 (fixtures)

STEPS, N = 6, (18, 20, 22)  # interior x, y, z
SHAPE = tuple(n + 2 for n in N[::-1])
INNER = (slice(1, -1),) * 3
TYPES = {"a": "i1", "b": "u1", "c": "i2", "d": "u2", "e": "i4", "f": "u4", "g": "i8", "h": "u8", "r": "f8", "q": "f4"}
C_TYPES = {"i1": "int8_t", "u1": "uint8_t", "i2": "int16_t", "u2": "uint16_t", "i4": "int32_t", "u4": "uint32_t", "i8": "int64_t", "u8": "uint64_t", "f8": "double",
           "f4": "float"}
WHOLE = [n for n, t in TYPES.items() if t[0] != "f"]
# Every field of whole numbers is given a whole number in cells of even T + X, a real in the others; 1e300, a NaN and numbers in between occur.
MIXED = f"""#define MX_NAME "mixed"
#define MX_RADIUS 1
#define MX_STATE(F) {" ".join(f"F({n}, {C_TYPES[t]})" for n, t in TYPES.items())}
#define MX_FIXED(F) F(m, int8_t) F(k, uint32_t)
#define MX_REDUCES(R) R(total, MX_SUM) R(top, MX_MAX)
#include <memext/cell.h>
MX_CELL
    const uint64_t w = (uint64_t)AT(h, -1, 0, 0) * 6364136223846793005u + (uint64_t)AT(e, 0, 1, 0) + (uint64_t)AT(k, 0, 0, 0) * (uint64_t)X + (uint64_t)AT(m, 0, 0, 0);
    const double v = (double)(int64_t)w * (X % 3 == 0 ? 0x1p-60 : X % 3 == 1 ? 0x1p-33 : 4.0) + (double)AT(a, 0, 0, -1);
    const double real = Y % 7 == 0 ? 1e300 * v : Y % 7 == 1 ? 0.0 / (AT(r, 0, 0, 0) * 0) : v;
    const int even = (T + X) % 2 == 0;
    {" ".join(f"if (even) SET({n}, w); else SET({n}, real);" for n in WHOLE)}
    SET(r, 0.5 * AT(r, 0, 0, 1) + (double)AT(b, 0, 0, 0) + (double)AT(c, 1, 0, 0));
    SET(q, (double)AT(d, 0, 0, 0) - (double)AT(g, 0, -1, 0) * 0x1p-40);
MX_END
MX_REDUCE(total)
    RESULT((double)AT(c, 0, 0, 0) + AT(b, 0, 0, 0));
MX_END
MX_REDUCE(top)
    RESULT(AT(e, 0, 0, 0));
MX_END
"""


def as_set(values, dtype):
    """SET of reals, one by one in Python's whole numbers."""
    limits = np.iinfo(dtype)
    return np.array([0 if v != v else int(min(max(v, -1e30), 1e30)) for v in values.ravel()], object).clip(limits.min, limits.max).astype(dtype).reshape(values.shape)


def mixed(nt, state, m, k):
    z, y, x = np.indices(N[::-1])
    s = {n: v.copy() for n, v in state.items()}
    for t in range(nt):
        old = {n: v.copy() for n, v in s.items()}

        def at(n, dx, dy, dz):
            return old[n][tuple(slice(1 + d, 1 + d + size) for d, size in zip((dz, dy, dx), N[::-1]))]

        with np.errstate(all="ignore"):
            w = (at("h", -1, 0, 0) * np.uint64(6364136223846793005) + at("e", 0, 1, 0).astype("u8") + k[INNER].astype("u8") * x.astype("u8") + m[INNER].astype("u8"))
            v = w.astype("i8").astype("f8") * np.select([x % 3 == 0, x % 3 == 1], [2.0**-60, 2.0**-33], 4.0) + at("a", 0, 0, -1)
            real = np.select([y % 7 == 0, y % 7 == 1], [1e300 * v, np.nan], v)
            for n in WHOLE:
                s[n][INNER] = np.where((t + x) % 2 == 0, w.astype(TYPES[n]), as_set(real, TYPES[n]))
            s["r"][INNER] = 0.5 * at("r", 0, 0, 1) + at("b", 0, 0, 0) + at("c", 1, 0, 0)
            s["q"][INNER] = at("d", 0, 0, 0) - at("g", 0, -1, 0).astype("f8") * 2.0**-40
    return s


def random_field(rng, dtype):
    if dtype[0] == "f":
        return rng.uniform(-3, 3, SHAPE).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, SHAPE, dtype, endpoint=True)


@pytest.fixture(scope="module")
def given():
    """The state and the read-only fields, and the states of numpy."""
    rng = np.random.default_rng(8)
    state, m, k = {n: random_field(rng, t) for n, t in TYPES.items()}, random_field(rng, "i1"), random_field(rng, "u4")
    return state, {"m": m, "k": k}, mixed(STEPS, state, m, k)


@pytest.fixture
def words(tmp_path, cache, monkeypatch, given):
    """Of a run of MIXED from files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    (tmp_path / "mixed.c").write_text(MIXED)
    for n, a in {**given[0], **given[1]}.items():
        np.save(tmp_path / f"{n}.npy", a)
    return ["--kernel", tmp_path / "mixed.c", *(w for n in given[0] for w in ("--input", f"{n}={tmp_path}/{n}.npy")),
            *(w for n in given[1] for w in ("--field", f"{n}={tmp_path}/{n}.npy")), "--dram", "64MiB", "--threads", 2]


def outputs(where, names=TYPES):
    return ["--overwrite", *(w for n in names for w in ("--output", f"{n}={where}/{n}.out.npy"))]


def check(where, wanted, what):
    for n, values in wanted.items():
        got = np.load(where / f"{n}.out.npy")
        assert got.dtype == values.dtype and got.tobytes() == values.tobytes(), (n, what, np.argwhere(got != values)[:3])


PLANS = [("uring", f"stream by={N[1]} bt=2 slab=4"), ("aio", "stream by=9 bt=2 slab=2 faces=side-file"), ("mmap", f"redundant by=9 bz=7 bt=2 engine=iblock"),
         ("uring", "redundant by=9 bz=7 bt=2 engine=tiled"), ("uring", f"skewed by={N[1]} bz=12 bt=2"), ("dram", f"direct by={N[1]} bz={N[2]} bt=2 engine=tiled")]


def test_all_types_by_every_plan(memext, quick_place, words, given):
    for backend, plan in PLANS:
        result = memext.run(*words, "-t", STEPS, "--backend", backend, *([] if backend == "dram" else ["-d", quick_place, "--force"]), "--plan", plan, "--verify",
                            *outputs(quick_place))
        check(quick_place, given[2], plan)
        assert result["verified"] is True
        if backend in ("uring", "aio"):
            assert (result["read_bytes"], result["write_bytes"]) == (result["predicted_read_bytes"], result["predicted_write_bytes"])


@pytest.mark.parametrize("form", ["1", "1n", "1w", "2n", "2w"])
def test_every_form_of_row_functions(memext, words, given, tmp_path, monkeypatch, form):
    monkeypatch.setenv("MEMEXT_KERNEL_FORM", form)
    memext.run(*words, "-t", STEPS, "--backend", "dram", *outputs(tmp_path))
    check(tmp_path, given[2], form)


@pytest.mark.parametrize("accel", ["host", "opencl", "cuda"])
def test_all_types_on_accelerators(request, memext, quick_place, words, given, accel):
    use(request, memext, accel)
    np.save(quick_place / "wave.npy", np.array([3.5, -900.0, 1e30, np.nan, 0.25, -1e30]))
    (quick_place / "probes.txt").write_text("".join(f"{n} 3 4 5\n" for n in TYPES if n != "h"))
    more = ["-t", STEPS, "--check", 2, *(w for n in "abcdef" for w in ("--source", f"{n}@3,4,5={quick_place}/wave.npy")), "--probes", quick_place / "probes.txt",
            "--probes-out", quick_place / "traces.npy", "--nonfinite", "ignore", "--overwrite"]
    cpu = memext.run(*words, *more, "--backend", "dram", *outputs(quick_place))
    plain, traces = {n: np.load(quick_place / f"{n}.out.npy") for n in TYPES}, np.load(quick_place / "traces.npy")
    assert any((plain[n] != given[2][n]).any() for n in "abcdef")
    for how in (["--plan", "stream by=9 bt=2 slab=2"], *([] if accel == "opencl" else [["--algorithm", "direct"]])):
        result = memext.run(*words, *more, "-d", quick_place, "--force", "--accel", accel, *how, *outputs(quick_place))
        check(quick_place, plain, (accel, how))
        assert np.load(quick_place / "traces.npy").tobytes() == traces.tobytes()
        assert result["norms"] == cpu["norms"]
        assert result["host_to_device_bytes"] == result["predicted_host_to_device_bytes"] and result["device_to_host_bytes"] == result["predicted_device_to_host_bytes"]


def test_ranks_resumes_snapshots_and_export(memext, quick_place, words, given):
    for n in (2, 3):
        memext.run(*words, "-t", STEPS, "-d", quick_place, "--force", "--ranks", n, *outputs(quick_place))
        check(quick_place, given[2], n)
    memext.run(*words, "-t", 3, "-d", quick_place, "--force", "--keep", "--snapshot", f"2:{quick_place}/all", "--snapshot-fields", "a,c,g,r")
    two = mixed(2, given[0], **given[1])
    for n in "acgr":
        files = [p for p in (quick_place / "all").rglob("*.npy") if p.stem.startswith(n)]
        assert any(np.load(p).tobytes() == two[n][INNER].tobytes() for p in files), n
    told = json.loads(memext("info", quick_place, "--json", "-").stdout)["store"]
    assert {a["name"]: a["dtype"] for a in told["arrays"] if a["name"] in TYPES} == {n: t[0] + str(8 * int(t[1])) for n, t in TYPES.items()}
    assert b'"note":8,' in (quick_place / "memext.store").read_bytes()
    done = memext("export", quick_place, *outputs(quick_place))
    assert done.returncode == 0, done.stderr
    check(quick_place, mixed(3, given[0], **given[1]), "export")
    memext.run("--resume", "-d", quick_place, "-t", STEPS, "--keep", *outputs(quick_place))
    check(quick_place, given[2], "resumed")


def test_killed_runs_go_on(memext, quick_place, words, given):
    for n in (60, 150):
        done = memext("run", *words, "-t", STEPS, "-d", quick_place, "--force", "--plan", f"stream by={N[1]} bt=2 slab=4", "--backend", "fault:uring", "--fault",
                      f"fail_after={n}", "--commit-every", 0, "--keep", "--quiet", "--no-fuse")
        assert done.returncode in (0, 3), done.stderr
        if done.returncode == 3 and memext("info", quick_place).returncode == 0:
            memext.run("--resume", "-d", quick_place, "-t", STEPS, "--keep", *outputs(quick_place))
            check(quick_place, given[2], n)


def test_snapshots_with_a_stride(memext, quick_place, words, given):
    taken = quick_place / "all"
    memext.run(*words, "-t", 2, "-d", quick_place, "--force", "--snapshot", f"2:{taken}:3")
    two = mixed(2, given[0], **given[1])
    for n in TYPES:
        assert any(np.load(p).tobytes() == np.ascontiguousarray(two[n][INNER][::3, ::3, ::3]).tobytes() for p in taken.rglob("*.npy") if p.stem.startswith(n)), n


# ------------------------------------------------------------------ sides and frames


SIDED = """#define MX_NAME "sided"
#define MX_RADIUS 2
#define MX_STATE(F) F(a, int8_t) F(b, int32_t) F(c, int64_t)
#include <memext/cell.h>
#define NEXT(f) (3 * (int64_t)AT(f, -2, 0, 0) - AT(f, 2, 0, 0) + 5 * (int64_t)AT(f, 0, -1, 0) - AT(f, 0, 2, 0) + AT(f, 0, 0, -2) - 2 * (int64_t)AT(f, 0, 0, 1))
MX_CELL
    SET(a, NEXT(a));
    SET(b, NEXT(b));
    SET(c, (int64_t)((uint64_t)AT(c, 0, 0, -1) * 3u - (uint64_t)AT(c, 2, 0, 0) + (uint64_t)AT(c, 0, -2, 0)));
MX_END
"""


def sided(nt, state, kind):
    """Odd and mirror sides in numpy's wrapping whole numbers; minus the lowest is itself."""
    made = {n: v.copy() for n, v in state.items()}
    for _ in range(nt):
        def at(n, dx, dy, dz):
            f = np.pad(made[n], 2, mode="symmetric")
            if kind == "odd":
                for axis in range(3):
                    ends = [slice(None)] * 3
                    for cut in (slice(0, 2), slice(-2, None)):
                        ends[axis] = cut
                        f[tuple(ends)] = -f[tuple(ends)]
            return f[tuple(slice(2 + d, 2 + d + size) for d, size in zip((dz, dy, dx), made[n].shape))]

        new = {}
        for n in "ab":
            old = [at(n, *d).astype("i8") for d in ((-2, 0, 0), (2, 0, 0), (0, -1, 0), (0, 2, 0), (0, 0, -2), (0, 0, 1))]
            new[n] = (3 * old[0] - old[1] + 5 * old[2] - old[3] + old[4] - 2 * old[5]).astype(state[n].dtype)
        with np.errstate(all="ignore"):
            new["c"] = at("c", 0, 0, -1) * np.int64(3) - at("c", 2, 0, 0) + at("c", 0, -2, 0)
        made = new
    return made


@pytest.mark.parametrize("kind", ["odd", "mirror"])
def test_sides_of_whole_numbers(memext, quick_place, cache, monkeypatch, kind):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    (quick_place / "sided.c").write_text(SIDED)
    rng, shape = np.random.default_rng(2), (9, 10, 11)
    state = {n: rng.integers(np.iinfo(t).min, np.iinfo(t).max, shape, t, endpoint=True) for n, t in {"a": "i1", "b": "i4", "c": "i8"}.items()}
    for n, v in state.items():
        v.flat[::5] = np.iinfo(v.dtype).min
        np.save(quick_place / f"{n}.npy", v)
    wanted = sided(4, state, kind)
    for how in (["--backend", "dram"], ["-d", quick_place, "--force", "--plan", "stream by=10 bt=2 slab=3"], ["-d", quick_place, "--force", "--plan", "redundant by=5 bz=9 bt=2"],
                ["--accel", "host", "--backend", "dram"], *([["--accel", "opencl", "--backend", "dram"]] if kind == "odd" else [])):
        memext.run("--kernel", quick_place / "sided.c", *(w for n in state for w in ("--input", f"{n}={quick_place}/{n}.npy")), "--frame", "0", "--dram", "64MiB",
                   *(w for a in "xyz" for w in ("--side", f"{a}={kind}")), "-t", 4, *how, "--output-frame", "none", *outputs(quick_place, state))
        check(quick_place, wanted, (kind, how))


REFUSED = [
    (["--side", "x=odd"], ["field b is u8, which has no negative values", "mirror"]), (["--side", "b:z=odd-node"], ["u8", "signed type"]),
    (["--frame", "300"], ["frame value 300", "i8", "-128 to 127"]), (["--frame", "2.5"], ["2.5", "integer from -128 to 127"]), (["--dtype", "u8"], ["f64 or f32", "leave --dtype out"])]


@pytest.mark.parametrize("more, naming", REFUSED)
def test_what_whole_numbers_cannot_be(memext, quick_place, words, more, naming):
    bare = [f"{w}" if not str(w).endswith("a.npy") else w for w in words]
    memext.refused("run", *bare, *more, "-t", 1, "-d", quick_place, "-q", naming=naming)


def test_built_in_stencils_compute_reals(memext, quick_place):
    np.save(quick_place / "u.npy", np.zeros((5, 6, 7), "u1"))
    memext.refused("run", "-n", 5, 6, 7, "-t", 1, "--dtype", "u8", "-d", quick_place, "-q", naming=["--dtype u8", "f64 or f32", "a kernel"])
    memext.refused("run", "--input", quick_place / "u.npy", "-t", 1, "-d", quick_place, "-q", naming=["u1", "f8"])
    memext.refused("run", "-n", 5, 6, 7, "-t", 1, "--dtype", "i7", "-d", quick_place, "-q", naming=["i7", "f64 or f32"])


def test_a_file_of_another_type_is_refused(memext, quick_place, words):
    np.save(quick_place / "wide.npy", np.zeros(SHAPE, "i2"))
    memext.refused("run", *words, "--input", f"b={quick_place}/wide.npy", "-t", 1, "-d", quick_place, "-q", naming="twice")
    other = [str(w).replace("b=", "B=") if not str(w).startswith("b=") else f"b={quick_place}/wide.npy" for w in words]
    memext.refused("run", *other, "-t", 1, "-d", quick_place, "-q", naming=["i16", "field b", "u8"])


def test_patterns_are_rounded(memext, quick_place, cache, monkeypatch):
    """--init fills whole numbers with the nearest."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    result = memext.run("--kernel", ROOT / "systems/life.c", "-n", 30, 20, 10, "-t", 0, "--init", "random", "--backend", "dram", "--output", f"u={quick_place}/u.npy")
    cells = np.load(quick_place / "u.npy")
    assert cells.dtype == np.uint8 and set(np.unique(cells)) == {0, 1} and 0.45 < cells.mean() < 0.55 and result["problem"]["kernel"]["name"] == "life"


# ------------------------------------------------------------------ life and ising


def begin(name):
    rng = np.random.default_rng(3)
    return {"u": (rng.random(SHAPE) < 0.4).astype("u1")} if name == "life" else {"s": rng.choice(np.array([-1, 1], "i1"), SHAPE)}


@pytest.mark.parametrize("name", ["life", "ising"])
def test_the_systems_in_c(memext, quick_place, cache, monkeypatch, name):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    state, field = begin(name), "u" if name == "life" else "s"
    np.save(quick_place / "in.npy", state[field])
    wanted = load(ROOT / f"systems/{name}.py").run(STEPS, **state)
    run = ["--kernel", ROOT / f"systems/{name}.c", "--input", f"{field}={quick_place}/in.npy", "--dram", "64MiB", "-t", STEPS, *outputs(quick_place, [field])]
    place = ["-d", quick_place, "--force"]
    for how in (["--backend", "dram"], [*place, "--plan", f"stream by={N[1]} bt=4 slab=4"], [*place, "--plan", "redundant by=9 bz=7 bt=2"], [*place, "--ranks", 2],
                ["--accel", "host", *place], *([["--accel", "opencl", *place]] if name == "ising" else [])):
        result = memext.run(*run, *how)
        check(quick_place, wanted, how)
        if "-d" in how and "--ranks" not in how:
            assert (result["read_bytes"], result["write_bytes"]) == (result["predicted_read_bytes"], result["predicted_write_bytes"])
    assert (wanted[field] != state[field]).mean() > 0.1
    if name == "life":  # a criterion on a sum that is exact, and the change in f64: 0 to 1 and 1 to 0 alike
        report = memext.run(*run, *place, "--check", 1, "--until", "max-change=0")
        before = load(ROOT / "systems/life.py").run(STEPS - 1, **state)["u"]
        assert report["norms"][-1]["reductions"]["alive"]["sum"] == int(before[INNER].sum()) and report["norms"][-1]["max_change"] == 1.0


def test_periodic_ising(memext, quick_place, cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    state = begin("ising")
    np.save(quick_place / "in.npy", state["s"])
    wanted = load(ROOT / "systems/ising.py").run(STEPS, **state, w=0.3, seed=7, periodic=True)["s"][INNER]
    for how in ([], ["--ranks", 2], ["--accel", "host"]):
        memext.run("--kernel", ROOT / "systems/ising.c", "--input", f"s={quick_place}/in.npy", "--dram", "64MiB", "-t", STEPS, "-d", quick_place, "--force", "--param", "w=0.3",
                   "--param", "seed=7", *(w for a in "xyz" for w in ("--side", f"{a}=periodic")), *how, *outputs(quick_place, ["s"]))
        assert np.load(quick_place / "s.out.npy")[INNER].tobytes() == wanted.tobytes(), how


@pytest.mark.parametrize("name", ["life", "ising"])
def test_the_systems_in_python(mx, systems, quick_place, name):
    state, field = begin(name), "u" if name == "life" else "s"
    wanted, kernel = load(ROOT / f"systems/{name}.py").run(STEPS, **state), getattr(systems, name)
    assert kernel.reference(STEPS, **state)[field].tobytes() == wanted[field].tobytes()
    with mx.Run(kernel, **state, device=quick_place, dram="64MiB", threads=2, verify=True) as run:
        run.advance(STEPS)
        assert run[field].dtype == wanted[field].dtype and run[field][...].tobytes() == wanted[field].tobytes()


def test_edits_between_steps(mx, systems, quick_place):
    state, life = begin("life"), load(ROOT / "systems/life.py")
    wanted = life.run(2, **state)["u"]
    wanted[2, 3:6, 4] = 1
    wanted = life.run(3, wanted)["u"]
    with mx.Run(systems.life, **state, device=quick_place, dram="64MiB") as run:
        for step in run.steps(5, check=1):
            if step == 2:
                run["u"][2, 3:6, 4] = 1
        assert run["u"][...].tobytes() == wanted.tobytes()
        with pytest.raises(mx.MemextError, match="300"):
            run["u"][2, 3:6, 4] = 300


# ------------------------------------------------------------------ whole numbers in Python kernels


def test_types_of_python_kernels(mx, quick_place):
    @mx.kernel(dtype={"n": "uint64", "v": "float32"})
    def counted(n, v):
        return n + (v > 0.5), v[1, 0, 0]

    v = np.random.default_rng(1).random(SHAPE).astype("f4")
    n = np.full(SHAPE, 2**64 - 2, "u8")
    with mx.Run(counted, n=n, v=v, device=quick_place, dram="64MiB") as run:
        run.advance(3)
        wanted = counted.reference(3, n=n, v=v)
        assert all(run[f].dtype == wanted[f].dtype and run[f][...].tobytes() == wanted[f].tobytes() for f in "nv")
        assert wanted["n"][INNER].min() < 3  # it has wrapped
    doubled = mx.kernel(lambda n: n + n[1, 0, 0], name="doubled", dtype="int64")
    assert "(int64_t)((uint64_t)" in doubled.source  # where C leaves open what an overflow is
    for name, other in (("i8", "int8"), ("u8", "uint64")):
        with pytest.raises(mx.KernelError, match=other):
            counted.c_source({"n": name})
    with pytest.raises(mx.MemextError, match="built-in stencils"):
        mx.Run(u="random", shape=(5, 5, 5), dtype="uint8")
    with pytest.raises(mx.MemextError, match="2.5"):
        mx.Run(counted, n=2.5, v=v, device=quick_place, dram="64MiB").advance(1)
    with pytest.raises(mx.MemextError, match="-1"):
        mx.Run(counted, n=-1, v=v, device=quick_place, dram="64MiB").advance(1)
    with mx.Run(counted, n=2**60 + 1, v=v, device=quick_place, dram="64MiB", resume=False, force=True) as run:
        run.advance(0)
        assert (run["n"][...] == 2**60 + 1).all()


MIX = (("n + i", "negative"), ("np.uint64(v)", "floating-point value.*int"), ("n << 64", "0 to 63"), ("n % 0", "zero"), ("i + 2**70", "beyond int64"))


@pytest.mark.parametrize("text, naming", MIX)
def test_what_whole_numbers_of_python_cannot_be(mx, tmp_path, text, naming):
    (tmp_path / "cell.py").write_text(f"import numpy as np, memext as mx\ndef cell(n, i, v):\n    return {text}, i, v\n")
    with pytest.raises(mx.KernelError, match=naming) as caught:
        mx.kernel(load(tmp_path / "cell.py").cell, dtype={"n": "uint64", "i": "int64"}).code()
    assert "cell.py:3" in str(caught.value)


class Drawn:
    """Texts of whole numbers over fields of all types; and their values by numpy, whose int64 and uint64 are what the translator promises."""
    SIGNED = ["i[1, 0, 0]", "i", "d", "d[0, 0, 1]", "j[0, -1, 0]", "k", "b[0, 0, 1]", "c", "x", "y * z", "t", "3", "-7", "2**31", "int(n)"]
    UNSIGNED = ["n", "n[0, 1, 0]", "np.uint64(i)", "np.uint64(x)"]

    def __init__(self, rng):
        self.rng = rng

    def pick(self, options):
        return options[self.rng.integers(len(options))]

    def signed(self, deep):
        if deep == 0:
            return self.pick(self.SIGNED)
        a, b = self.signed(deep - 1), self.signed(deep - 1)
        return self.pick([f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} // {self.pick('3 -5 8 1000'.split())})", f"({a} % {self.pick('3 -5 8 1000'.split())})",
                          f"({a} & {b})", f"({a} | {b})", f"({a} ^ {b})", f"({a} << {self.pick('1 7'.split())})", f"({a} >> {self.pick('1 13'.split())})", f"(~{a})", f"(-{a})",
                          f"min({a}, {b})", f"max({a}, {b})", f"abs({a})", f"mx.where({a} < {b}, {b}, {a})", f"int({self.unsigned(deep - 1)})"])

    def unsigned(self, deep):
        if deep == 0:
            return self.pick(self.UNSIGNED)
        a, b = self.unsigned(deep - 1), self.unsigned(deep - 1)
        return self.pick([f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} // {self.pick(['3', '8', b])})", f"({a} % {self.pick(['3', '8', b])})", f"({a} & {b})", f"({a} | {b})",
                          f"({a} ^ {b})", f"({a} << {self.pick('1 7 40'.split())})", f"({a} >> {self.pick('1 13 40'.split())})", f"(~{a})", f"min({a}, {b})", f"max({a}, {b})",
                          f"mx.where({a} < {b}, {b}, {a})", f"np.uint64({self.signed(deep - 1)})", f"({a} * 6364136223846793005 + 1442695040888963407)"])

    def real(self, deep):
        return self.pick([f"({self.signed(deep)}) / 3", f"v * ({self.signed(deep)})", f"({self.unsigned(deep)}) * 0.75", f"({self.signed(deep)}) * 2.0**-40", "1e30 * v", "300.0", "-1.5"])


FIELDS = {"i": "i4", "j": "i1", "k": "i8", "n": "u8", "b": "u1", "c": "u2", "d": "u4", "v": "f4"}


class At:
    """A field over all cells, as numpy has it in a cell's arithmetic."""

    def __init__(self, array):
        self.wide = array.astype({"i": "i8", "u": "u8" if array.dtype.itemsize == 8 else "i8", "f": array.dtype}[array.dtype.kind])

    def __getitem__(self, d):
        return self.wide[tuple(slice(1 + o, 1 + o + n) for o, n in zip(d[::-1], N[::-1]))]


def by_numpy(text, state, t):
    """The value of one expression over all cells. Fields that stand alone are their own cells."""
    z, y, x = np.indices(N[::-1], "i8")
    names = {n: At(a) for n, a in state.items()}
    plain = text
    for n in FIELDS:
        plain = re.sub(rf"\b{n}\b(?!\[)", f"{n}[0, 0, 0]", plain)

    def whole(a):
        return np.asarray(a).astype("i8")

    def u64(a):
        return np.asarray(a).astype("u8")

    class Where:
        where = staticmethod(np.where)

    class Numpy:
        uint64 = staticmethod(u64)

    def low(a, b):
        return np.where(np.asarray(b) < a, b, a)

    def high(a, b):
        return np.where(np.asarray(b) > a, b, a)

    with np.errstate(all="ignore"):
        return np.broadcast_to(eval(plain, {"mx": Where, "np": Numpy, "int": whole, "min": low, "max": high, "abs": abs}, {**names, "x": x, "y": y, "z": z, "t": np.int64(t)}), N[::-1])


@pytest.mark.parametrize("seed", range(int(os.environ.get("MEMEXT_TEST_TIMES", 1)) * 2))
def test_whole_numbers_are_numpys(mx, tmp_path, quick_place, seed):
    rng = np.random.default_rng(seed)
    drawn = Drawn(rng)
    texts = {n: drawn.unsigned(3) if n == "n" and seed % 2 else drawn.real(1) if rng.random() < 0.3 else drawn.signed(2) for n in FIELDS if n != "v"}
    texts["v"] = "v[-1, 0, 0] * 0.5"
    (tmp_path / "cell.py").write_text("import numpy as np, memext as mx\n" + f"def cell({', '.join(FIELDS)}, x, y, z, t):\n    return (" + ",\n            ".join(texts.values()) + ")\n")
    dtypes = {n: np.dtype(d) for n, d in FIELDS.items()}
    kernel = mx.kernel(load(tmp_path / "cell.py").cell, dtype=dtypes)
    state = {n: random_field(rng, d) for n, d in FIELDS.items()}
    wanted = {n: a.copy() for n, a in state.items()}
    for t in range(2):
        values = {n: by_numpy(text, wanted, t) for n, text in texts.items()}
        for n, v in values.items():
            wanted[n][INNER] = as_set(v, FIELDS[n]) if v.dtype.kind == "f" and FIELDS[n][0] != "f" else v.astype(FIELDS[n])
    here = kernel.reference(2, **state)
    for n in FIELDS:
        assert here[n].tobytes() == wanted[n].tobytes(), (n, texts[n])
    for how in ({"backend": "dram"}, {"device": quick_place, "plan": "redundant by=9 bz=7 bt=2"}, *([] if seed % 2 else [{"backend": "dram", "accel": "opencl"}])):
        with mx.Run(kernel, **state, dram="64MiB", threads=2, **how) as run:
            run.advance(2)
            for n in FIELDS:
                assert run[n][...].tobytes() == wanted[n].tobytes(), (n, texts[n], how)


def test_numbers_of_long_long(request, memext, quick_place):
    """1ull is another type than uint64_t to some compilers of devices, and has 128 bits there: sums and differences wrap all the same."""
    use(request, memext, "opencl")
    (quick_place / "k.c").write_text("""#define MX_NAME "ll"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, uint64_t) F(v, float) F(w, uint32_t) F(x, uint64_t)
#include <memext/cell.h>
MX_CELL
    SET(u, (AT(u, -1, 0, 0) ^ (uint64_t)X) * 0x9E3779B97F4A7C15ull);
    SET(v, (uint64_t)(X + AT(v, 0, 0, 1)) * 3ull % 7ull);
    const unsigned long long far = AT(u, 0, 1, 0) % 1000ull - (unsigned  long long)AT(u, 1, 0, 0), name_of_3ll = 0xFuLL + 1;
    SET(w, (far + far / 3LLU) >> 40); // no "long long" here
    SET(x, (0x9e3779b97f4a7c15ull + (0x9e3779b97f4a7c15ull << 1)) / name_of_3ll);
MX_END
""")
    memext.run("--kernel", quick_place / "k.c", "-n", 9, 8, 7, "-t", 3, "--init", "random", "-d", quick_place / "s.memext", "--accel", "opencl", "--dram", "64MiB", "--verify")


# Where C's int is narrower than what numpy computes in, and where its division has no value.
NARROW = ["d - 5", "-d", "~d", "d * i", "d ^ i", "d | -2", "d << 31", "d + d", "d + b", "b - d", "abs(d - 7)", "(d - 1) >> 1", "max(d - 10, 0)", "int(d < i)", "int(d > -1)", "int(d == -1)",
          "min(255, max(0, k))", "max(-128, min(127, k))", "min(d, 5)", "min(i, 2**31)", "max(d, k)", "min(d, b)", "3 * i", "5 - i", "-i", "-~i", "2**31 - 1 + b", "65536 * c",
          "k // m", "k % m", "rest(k, m)", "i // j"]  # fmt: skip


def test_whole_numbers_wider_than_int(mx, tmp_path):
    """Each expression over the ends of the types, against whole numbers of Python that wrap at 64 bits."""
    names = [f"o{n}" for n in range(len(NARROW))]
    types = {"i": "i4", "j": "i4", "d": "u4", "k": "i8", "m": "i8", "b": "u1", "c": "u2"}
    (tmp_path / "cell.py").write_text("import numpy as np, memext as mx\nrest = np.fmod\ndef cell(" + ", ".join([*names, *types]) + "):\n    return " + ", ".join(NARROW) + "\n")
    some = {"i4": [-2**31, -1, 0, 1, 10**9, 2**31 - 1], "u4": [0, 3, 7, 2**31, 4 * 10**9, 2**32 - 1], "i8": [-2**63, 2**63 - 1, 2**32 + 7, -5, 0, 2**40], "u1": [0, 1, 255], "u2": [0, 5, 65535]}
    rng, shape = np.random.default_rng(1), (4, 6, 9)
    fields = {n: rng.choice(np.array(some[t], t), shape) for n, t in types.items()}
    fields["m"], fields["j"] = rng.choice(np.array([-1, 3, -7, 2**40], "i8"), shape), rng.choice(np.array([-1, 4, -3], "i4"), shape)
    fields["k"][0, 0], fields["m"][0, 0], fields["i"][0, 0], fields["j"][0, 0] = -2**63, -1, -2**31, -1
    for step in range(0, len(NARROW), 16):
        kernel_text, part = (tmp_path / "cell.py").read_text(), names[step:step + 16]
        (tmp_path / f"cell{step}.py").write_text(kernel_text.replace(", ".join([*names, *types]), ", ".join([*part, *types])).replace(", ".join(NARROW), ", ".join(NARROW[step:step + 16])))
        kernel = mx.kernel(load(tmp_path / f"cell{step}.py").cell, fixed={n: np.dtype(t).name for n, t in types.items()}, dtype=dict.fromkeys(part, "int64"))
        out = mx.Run(kernel, **dict.fromkeys(part, 0), **fields, shape=tuple(n - 2 for n in shape), backend="dram").advance(1)
        here = kernel.reference(1, **{n: np.zeros(shape, "i8") for n in part}, **fields)
        for name, text in zip(part, NARROW[step:]):
            got, inside = out[name][...], (slice(1, -1),) * 3
            assert np.array_equal(got[inside], here[name][inside]), text
            for at in np.ndindex(*(n - 2 for n in shape)):
                own = {n: int(fields[n][tuple(i + 1 for i in at)]) for n in types}
                value = eval(text, {"rest": lambda a, b: (abs(a) % abs(b)) * (1 if a >= 0 else -1)}, own)
                assert (value - int(got[inside][at])) % 2**64 == 0, (text, own, int(got[inside][at]))
