# SPDX-License-Identifier: BSD-3-Clause
"""Parameters over time: the bits are those of the same kernel with its values in a table that it indexes by T, by every plan, backend, rank, accelerator and resume."""
import shutil

import numpy as np
import pytest
from package import cache, environment, mx  # noqa: F401 (fixtures)
from test_accel import works

STEPS = 13
GRID = ["-n", 33, 28, 30, "--init", "random", "--dram", "90MiB"]
HEAD = '#define MX_NAME "driven"\n#define MX_RADIUS 1\n#define MX_PARAMS(P) P(a, 0.5) P(c, 0.25) P(b, 2.0)\n'
NEAR = "double s = 0.25 * (AT(u,1,0,0) + AT(u,-1,0,0)) + 0.125 * (AT(u,0,1,0) + AT(u,0,-1,0) + AT(u,0,0,1) + AT(u,0,0,-1));\n"
CELL = "#include <memext/cell.h>\n%sMX_CELL\n" + NEAR + "%sMX_END\n"
KERNELS = {
    "jacobi": HEAD + "#define MX_STATE(F) F(u, double)\n#define MX_REDUCES(R) R(drive, MX_SUM)\n" + CELL % ("", "SET(u, s + PARAM(a) * AT(u,0,0,0) * PARAM(c) + PARAM(b) * (X == 3));\n")
    + "MX_REDUCE(drive)\n    RESULT(PARAM(a) * AT(u,0,0,0) + T);\nMX_END\n",
    "float": HEAD + "#define MX_REAL float\n#define MX_STATE(F) F(u, float)\n" + CELL % ("", "SET(u, (float)s * PARAM(c) + PARAM(a) * PARAM(b));\n"),
    "leapfrog": HEAD + "#define MX_FORM MX_LEAPFROG\n#define MX_STATE(F) F(u, double)\n" + CELL % ("", "if (PARAM(a) > 0.4) SET(u, PARAM(b) * s - PARAM(a) * OLD(u));\n"),
    "staggered": HEAD + "#define MX_FORM MX_STAGGERED\n#define MX_STATE(F) F(e, double)\n#define MX_PARTNER(F) F(u, double)\n#include <memext/cell.h>\n"
    "MX_CELL_B\nSET(u, OLD(u) - PARAM(a) * (AT(e,1,0,0) - AT(e,0,0,0)));\nMX_END\nMX_CELL_A\nSET(e, OLD(e) - PARAM(b) * (AT(u,0,0,0) - AT(u,-1,0,0)) + PARAM(a));\nMX_END\n",
}  # fmt: skip
PLANS = ["stream by=28 bt=4", "stream by=9 bt=2", "redundant by=9 bz=7 bt=2", "stream by=28 bt=2 engine=iblock", "redundant by=28 bz=30 bt=6 engine=tiled"]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """(folder, {name: the kernel}, {name: its words of --param}, {name: the same with tables}); a and b are given over time."""
    folder = tmp_path_factory.mktemp("series")
    rng = np.random.default_rng(5)
    values = {"a": rng.random(STEPS + 4), "b": rng.random(STEPS).astype("f4")}
    for name, v in values.items():
        np.save(folder / f"{name}.npy", v)
    tables = "".join(f"static const double of_{n}[{STEPS}] = {{{', '.join(float(x).hex() for x in v[:STEPS])}}};\n" for n, v in values.items())
    short, full = {}, {}
    for name, text in KERNELS.items():
        (folder / f"{name}.c").write_text(text)
        real = "float" if name == "float" else "double"
        text = text.replace("PARAM(a)", f"(({real})of_a[T])").replace("PARAM(b)", f"(({real})of_b[T])").replace("#include <memext/cell.h>\n", "#include <memext/cell.h>\n" + tables)
        (folder / f"{name}-full.c").write_text(text)
        short[name], full[name] = folder / f"{name}.c", folder / f"{name}-full.c"
    return folder, short, ["--param", f"a={folder}/a.npy", "--param", f"b={folder}/b.npy"], full


def wanted(memext, kernels, name, *words):
    return memext.run("--kernel", kernels[3][name], *GRID, "-t", STEPS, "--backend", "dram", "--algorithm", "direct", *words)


@pytest.mark.parametrize("name", KERNELS)
def test_series(memext, quick_place, kernels, name):
    """Every plan; two ranks; and a run that goes on, for which no file is named again."""
    _, short, given, _ = kernels
    checksum = wanted(memext, kernels, name)["checksum"]
    words = ["--kernel", short[name], *GRID, *given, "-d", quick_place, "--force"]
    for plan in PLANS:
        result = memext.run(*words, "-t", STEPS, "--plan", plan, "--verify")
        assert result["checksum"] == checksum and result["verified"] is True, plan
        assert result["read_bytes"] == result["predicted_read_bytes"] and result["write_bytes"] == result["predicted_write_bytes"]
    params = result["problem"]["kernel"]["params"]
    assert params["a"].endswith("/a.npy") and params["c"] == 0.25
    assert memext.run(*words, "-t", STEPS, "--ranks", 2)["checksum"] == checksum
    memext.run(*words, "-t", 6, "--keep")
    assert memext.run("--resume", "-t", STEPS, "-d", quick_place, "--ranks", 3)["checksum"] == checksum


# OpenCL compiles each kernel for seconds: that of two levels, and all when there is time.
@pytest.mark.parametrize("name, accel", [pytest.param(name, accel, marks=[pytest.mark.long] if accel == "opencl" and name != "staggered" else [])
                                         for accel in ("host", "opencl", "cuda") for name in KERNELS])  # fmt: skip
def test_series_on_accelerators(memext, quick_place, kernels, name, accel):
    if not works(memext, accel)["works"]:
        pytest.skip(works(memext, accel)["why"])
    checks = ["--check", 5] if name == "jacobi" else []
    reference = wanted(memext, kernels, name, *checks).report
    words = ["--kernel", kernels[1][name], *GRID, *kernels[2], "--accel", accel, *checks]
    for where in (["--backend", "dram", "-t", STEPS], ["-d", quick_place, "--force", "-t", STEPS, "--plan", PLANS[1]]):
        result = memext.run(*words, *where).report
        assert (result["checksum"], result.get("norms")) == (reference["checksum"], reference.get("norms")), where
    memext.run(*words, "-d", quick_place, "--force", "-t", 5, "--keep")
    assert memext.run("--resume", "-t", STEPS, "-d", quick_place, "--accel", accel)["checksum"] == reference["checksum"]


def test_reductions_see_the_value_of_their_step(memext, quick_place, kernels):
    reference = wanted(memext, kernels, "jacobi", "--check", 3)
    result = memext.run("--kernel", kernels[1]["jacobi"], *GRID, *kernels[2], "-t", STEPS, "--check", 3, "-d", quick_place, "--plan", PLANS[0])
    assert result["norms"] == reference["norms"] and len(result["norms"]) >= 4


def test_a_run_goes_on_with_a_longer_file(memext, quick_place, kernels, tmp_path):
    """The values that were used are compared; what follows them may change, and -t may grow as far as the file reaches. The file may have another name."""
    folder, short, given, _ = kernels
    begun = quick_place / "begun"
    begun.mkdir()
    memext.run("--kernel", short["jacobi"], *GRID, *given, "-d", begun, "-t", 6, "--keep", "--force")
    a = np.load(folder / "a.npy")
    files = {"later": np.r_[a[:6], a[6:] + 1], "other": np.r_[a[:5], a[5:] + 1], "short": a[:5], "longer": np.r_[a, a]}
    for name, values in files.items():
        np.save(tmp_path / f"{name}.npy", values)

    def on(place, *words):
        shutil.copytree(begun, place)
        return "run", "--resume", "-d", place, "-q", *words

    checksum = wanted(memext, kernels, "jacobi")["checksum"]
    assert memext.run(*on(quick_place / "1", "-t", STEPS, "--param", f"a={tmp_path}/longer.npy")[1:])["checksum"] == checksum
    assert memext.run(*on(quick_place / "2", "-t", STEPS, "--param", f"a={tmp_path}/later.npy")[1:])["checksum"] != checksum
    memext.refused(*on(quick_place / "3", "-t", STEPS, "--param", f"a={tmp_path}/other.npy"), naming=["other values of the parameter a than the first 6 of"])
    memext.refused(*on(quick_place / "4", "-t", STEPS, "--param", f"a={tmp_path}/short.npy"), naming=["has used 6 values", "has 5"])
    memext.refused(*on(quick_place / "5", "-t", STEPS, "--param", "a=0.5"), naming=["a value of the parameter a for each step, not with one value"])
    memext.refused(*on(quick_place / "6", "-t", STEPS, "--param", f"c={tmp_path}/later.npy"), naming=["one value of the parameter c, not with a value for each step"])
    memext.refused(*on(quick_place / "7", "-t", STEPS + 1), naming=[f"b.npy has {STEPS} values, and the run has {STEPS + 1} steps", f"-t {STEPS}"])
    told = memext("info", begun)
    assert "a.npy" in told.stdout and "c=0.25" in told.stdout


def test_what_is_no_series_is_refused(memext, kernels, tmp_path):
    """Before anything is touched, with the value, the limit and the way out."""
    short = kernels[1]["jacobi"]
    run = ["run", "--kernel", short, *GRID, "-t", 4, "--backend", "dram"]
    np.save(tmp_path / "flat.npy", np.ones((4, 2)))
    np.save(tmp_path / "nan.npy", np.array([1.0, 2.0, np.nan, 4.0]))
    np.save(tmp_path / "whole.npy", np.arange(4))
    np.save(tmp_path / "empty.npy", np.empty(0))
    np.save(tmp_path / "three.npy", np.ones(3))
    for name, naming in {"flat": ["2 dimensions", "a value for each step"], "nan": ["value 2", "not finite"], "whole": ["has element type '<i8'; '<f8'"], "empty": ["is empty"], "three": ["3 values", "4 steps", "-t 3"], "none": ["No such file"]}.items():
        memext.refused(*run, "--param", f"a={tmp_path}/{name}.npy", naming=naming)
    memext.refused(*run, "--param", "a=file.txt", naming=["not a finite number", "FILE.npy"])
    memext.refused(*run, "--param", f"a={kernels[0]}/a.npy", "--param", "a=1", naming=["given twice"])
    memext.refused(*run, "--param", f"a={kernels[0]}/a.npy", "-o", kernels[0] / "a.npy", "--overwrite", naming=["a.npy"])
    memext.refused(*run, "--param", f"a={kernels[0]}/a.npy", "--param", "typo=1", "--json", kernels[0] / "a.npy", naming=["a.npy"])
    assert np.load(kernels[0] / "a.npy").shape == (STEPS + 4,)


def test_files_of_a_stored_run_are_not_written_over(memext, quick_place, kernels, tmp_path):
    """By reports of requests that are refused, by exports and by info; also of the stores of ranks."""
    kernel, series = tmp_path / "k.c", tmp_path / "a.npy"
    for ranks in ([], ["--ranks", 2]):
        place = quick_place / ("ranks" if ranks else "one")
        place.mkdir()
        kernel.write_bytes(kernels[1]["jacobi"].read_bytes())
        np.save(series, np.arange(8.0))
        before = {p: p.read_bytes() for p in (kernel, series)}
        memext.run("--kernel", kernel, "--param", f"a={series}", *GRID, "-t", 4, "-d", place, "--keep", *ranks)
        for file in before:
            memext.refused("run", "--resume", "-d", place, "-t", 1, "-q", "--json", file, *ranks, naming=["never written", file.name])
            memext.refused("export", place, "-o", f"u={tmp_path / 'u.npy'}", "--json", file, naming=["never written", file.name])
            memext.refused("info", place, "--json", file, naming=["never written", file.name])
        memext.refused("export", place, "-o", f"u={series}", "--overwrite", naming=["never written"])
        memext.refused("run", "--kernel", kernel, "--param", f"a={series}", *GRID, "-t", 4, "--write-job", series, "--overwrite", naming=["never written"])
        assert {p: p.read_bytes() for p in before} == before


@pytest.mark.parametrize("behind", [0, 1])
def test_ranks_share_the_newest_series(memext, quick_place, kernels, tmp_path, behind):
    """A commit that not all ranks came to leaves notes of two runs; the later one has a file with other values from step 4 on."""
    values = np.arange(9.0) / 8
    np.save(tmp_path / "a.npy", values)
    values[4:] += 1
    np.save(tmp_path / "later.npy", values)
    run = ["--ranks", 2, "--backend", "aio", "--plan", "stream by=28 bt=4 slab=2"]
    memext.run("--kernel", kernels[1]["jacobi"], "--param", f"a={tmp_path}/a.npy", *GRID, "-t", 4, "-d", quick_place, "--keep", *run)
    shutil.copy(quick_place / f"rank-{behind}" / "memext.store", tmp_path / "behind")
    memext.run("--resume", "-d", quick_place, "-t", 8, "--param", f"a={tmp_path}/later.npy", "--keep", *run[:4])
    shutil.copy(tmp_path / "behind", quick_place / f"rank-{behind}" / "memext.store")
    result = memext.run("--resume", "-d", quick_place, "-t", 8, *run[:4]).report
    wanted = memext.run("--kernel", kernels[1]["jacobi"], "--param", f"a={tmp_path}/later.npy", *GRID, "-t", 8, "--backend", "dram")
    assert result["resumed_from"] == 4 and result["checksum"] == wanted["checksum"]


# ------------------------------------------------------------------ the Python package


def test_in_python(mx, quick_place):
    """An array, a list or a file is a parameter over time; run and reference have the same bits; going on compares what was used."""
    @mx.kernel(params={"dt": 0.1, "amp": 0.0})
    def forced(u, dt, amp, x):
        return u + dt * (u[-1, 0, 0] + u[1, 0, 0] - 2 * u) + (amp if x == 3 else 0.0)

    u = np.random.default_rng(3).random((12, 14, 18))
    amp = np.sin(np.arange(20.0))
    expected = forced.reference(12, u=u, params={"amp": amp})["u"]
    np.save(quick_place / "amp.npy", amp)
    for value in (amp, list(amp), quick_place / "amp.npy"):
        run = mx.Run(forced, u=u, params={"amp": value, "dt": 0.1}, device=quick_place / "a.memext", keep=True, force=True, resume=False)
        assert np.array_equal(run.advance(7).advance(12)["u"], expected)
    mx.Run(forced, u=u, params={"amp": amp[:6]}, device=quick_place / "b.memext", keep=True).advance(6)
    longer = mx.Run(forced, u=u, params={"amp": amp}, device=quick_place / "b.memext", keep=True)
    assert np.array_equal(longer.advance(12)["u"], expected) and longer.report["resumed_from"] == 6
    def first(u, amp): return u + amp
    def second(u, amp): return u * (1 + amp)
    staged = mx.stages(first, second, params={"amp": 0.0})
    for shape in ((16,), (8, 2), (16,)):  # which have the same bytes
        values = np.arange(16.0).reshape(shape) / 16
        with mx.Run(staged, u=u, params={"amp": values}, backend="dram", dram="64MiB") as run:
            assert np.array_equal(run.advance(4)["u"], staged.reference(4, u=u, params={"amp": values})["u"]), shape
    changed = amp.copy()
    changed[3] += 1
    with pytest.raises(mx.MemextError, match="other values of the parameter amp"):
        mx.Run(forced, u=u, params={"amp": changed}, device=quick_place / "b.memext").advance(12)
    with pytest.raises(mx.MemextError, match="20 values"):
        mx.Run(forced, u=u, params={"amp": amp}, device=quick_place / "c.memext").advance(21)
    for bad, says in ((amp.reshape(4, 5), "give it the shape .steps."), (np.array([1.0, np.inf]), "is not finite at step 1"), ("amp.txt", "neither a number nor a .npy file"), (quick_place / "none.npy", "none.npy"), (np.array(["a"]), "give numbers with the shape .steps.")):
        with pytest.raises(mx.MemextError, match=says):
            mx.Run(forced, u=u, params={"amp": bad}, device=quick_place / "d.memext")


def test_reductions_of_a_state_in_python(mx, quick_place):
    """run.reduce takes the value of the step that the state is at, and says so where there is none."""
    @mx.kernel(params={"amp": 0.0})
    def grows(u, amp):
        return u + amp

    @mx.reduce(params={"amp": 0.0})
    def scaled(u, amp):
        return u * amp

    amp = np.array([1.0, 2.0, 4.0, 8.0])
    run = mx.Run(grows, u=np.zeros((6, 6, 6)), params={"amp": amp}, reductions=[scaled], device=quick_place, keep=True)
    run.advance(3)
    assert run.reduce(scaled) == 7.0 * 8.0 * 4**3
    run.advance(4)
    with pytest.raises(mx.MemextError, match="none for step 4"):
        run.reduce(scaled)
